"""Statements and expressions of Python: matches, handlers, deletions, names of other scopes, formats."""

import functools

import torch
from capture.cases import Reuse, case, t

TOTAL = 0
NAMES = []


class Shape:
    __match_args__ = ("kind", "size")

    def __init__(self, kind, size):
        self.kind = kind
        self.size = size


@case(lambda: (t(3), ("add", 2)), lambda: (t(3), {"op": "mul", "by": 3}), lambda: (t(3), [1, 2, 3]), lambda: (t(3), 7), lambda: (t(3), Shape("sq", 2)))
def matched(x, what):
    match what:
        case ("add", n):
            return x + n
        case {"op": "mul", "by": n, **rest}:
            return x * n, rest
        case [first, *others] if len(others) == 2:
            return x + first, others
        case int(n) | float(n):
            return x - n
        case Shape("sq", size=s):
            return x * s
        case _:
            return x


@case(lambda: (t(3), None), lambda: (t(3), "a"), lambda: (t(3), torch.float32))
def matched_constants(x, what):
    match what:
        case None:
            return x + 1
        case "a" | "b" as letter:
            return x + 2, letter
        case torch.float32:
            return x + 3


@case(lambda: (t(3), 4), lambda: (t(3), 11))
def walrus(x, n):
    if (m := n + 1) > 10:
        return x + m
    return [y := x * m, y + 1]


@case(lambda: (t(3), [1, 2, 3, 4]))
def starred(x, items):
    first, *middle, last = items
    (a, *b), c = (x, 1, 2), 3
    return a + first + last + c, middle, b, [*items, *middle], {**{"a": 1}, "b": 2}, (*middle, x)


@case(lambda: (t(3), 0.123456, "name"))
def formatted(x, value, name):
    texts = [f"{value:.2f}", f"{name!r:>8}", f"{len(x)=}", "{:<5}|{a}".format(name, a=1), "%s %d %.1f" % (name, 3, value), f"{x.shape}", f"{x.dtype} {3:05d}"]
    return x + len(texts), texts


@case(lambda: (t(3), " A,b;C "))
def methods_of_texts(x, text):
    stripped = text.strip().lower()
    return (
        x + len(stripped),
        stripped.split(","),
        stripped.replace("b", "x").title(),
        stripped.partition(","),
        ",".join(reversed(stripped)),
        stripped.find("c"),
        stripped.startswith(("a", "z")),
        stripped.encode().decode("ascii"),
        stripped.zfill(8).center(12, "*"),
        stripped.isalpha(),
        "a\tb".expandtabs(4),
        "x".casefold() in stripped,
        stripped.rsplit(";", 1),
        "ab".ljust(4) + "cd".rjust(4),
        stripped.removeprefix("a"),
        stripped[::-1],
        stripped * 2,
        "a" < "b",
        "{0[0]} {1.real}".format([1], 2),
        "lines\nhere".splitlines(),
        str(b"x"),
        ascii("é"),
    )


@case(lambda: (t(3),), watch=["TOTAL", "NAMES"])
def names_of_the_module(x):
    global TOTAL
    TOTAL += 2
    NAMES.append(TOTAL)
    return x + TOTAL


@case(lambda: (t(3),))
def names_of_an_outer_function(x):
    count = 0

    def bump(by):
        nonlocal count
        count += by
        return count

    bump(1)
    y = x + bump(2)
    return y * count


@case(lambda: (t(3),))
def deleted_names(x):
    y = x + 1
    del x
    try:
        return x
    except UnboundLocalError as error:
        return y, type(error).__name__


@case(lambda: (t(3), {"a": 1}, [1, 2]))
def deleted_items(x, table, items):
    del table["a"], items[0]
    return x + len(items), table


@case(lambda: (t(3),))
def raised_from_another(x):
    try:
        try:
            raise ValueError("inner")
        except ValueError as inner:
            raise KeyError("outer") from inner
    except KeyError as outer:
        return x + 1, str(outer.__cause__), outer.__suppress_context__, outer.__context__ is outer.__cause__


@case(lambda: (t(3), []))
def every_part_of_try(x, log):
    for n in range(3):
        try:
            log.append(("try", n))
            if n == 1:
                raise IndexError(n)
        except IndexError as error:
            log.append(("except", error.args))
            continue
        else:
            log.append("else")
        finally:
            log.append("finally")
        x = x + 1
    return x


@case(lambda: (t(3),))
def a_return_in_finally(x):
    def inner():
        try:
            return x + 1
        finally:
            noted.append("finally")

    noted = []
    return inner(), noted


@case(lambda: (t(3),))
def an_exception_with_attributes(x):
    class_ = RuntimeError
    try:
        error = class_("a", 1)
        error.extra = 5
        error.add_note("note")
        raise error
    except RuntimeError as caught:
        return x + caught.extra, caught.args, caught.__notes__


@case(lambda: (t(3),))
def a_traceback_asked_for(x):
    try:
        raise ValueError("v")
    except ValueError as error:
        return x + 1, error.__traceback__ is not None


@case(lambda: (t(3),))
def a_traceback_kept(x):
    try:
        raise ValueError("v")
    except ValueError as error:
        other = KeyError("k").with_traceback(error.__traceback__)
        return x + 1, type(other).__name__


class Managed:
    def __init__(self, log, swallow):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(None if kind is None else kind.__name__)
        return self.swallow


@case(lambda: (t(3), [], True), lambda: (t(3), [], False))
def a_manager_that_swallows(x, log, swallow):
    try:
        with Managed(log, swallow):
            raise ValueError("inside")
    except ValueError:
        log.append("outside")
    return x + len(log)


@case(lambda: (t(3), []))
def a_manager_over_a_break(x, log):
    with Managed(log, False) as held:
        x = x + 1
        print("break")
        x = x * 2
    return x, held.log


@case(lambda: (t(3),))
def comprehensions(x):
    squares = [n * n for n in range(4) if n % 2]
    table = {n: x + n for n in range(2)}
    nested = [(a, b) for a in range(2) for b in "ab"]
    return table[0] + table[1] + sum(squares), {n % 2 for n in range(5)}, nested


@case(lambda: (t(3),))
def chained_comparisons(x):
    n = x.shape[0]
    if 1 < n <= 3 != 4:
        x = x + 1
    return x if not n else x * 2, 1 < n < 2 or "other", n and "both"


@case(lambda: (t(3),))
def default_arguments(x):
    def inner(a, b=[], *args, c=2, **kwargs):
        b.append(a)
        return len(b) + len(args) + c + len(kwargs)

    return x + inner(1) + inner(2, c=5) + inner(1, [4], 6, d=1)


@case(lambda: (t(3),))
def keyword_and_positional_only(x):
    def inner(a, /, b, *, c):
        return a * 100 + b * 10 + c

    try:
        inner(a=1, b=2, c=3)
    except TypeError as error:
        return x + inner(1, 2, c=3), str(error)


@case(lambda: (t(3),))
def while_with_else(x):
    n = 0
    while n < 3:
        n += 1
        if n == 5:
            break
    else:
        x = x + 10
    for _ in range(0):
        pass
    else:
        x = x * 2
    return x


@case(lambda: (t(3),))
def lambdas_and_closures(x):
    makers = [lambda y, n=n: y * n for n in range(3)]
    late = [lambda y: y + m for m in range(2)]
    return makers[2](x) + late[0](x), functools.reduce(lambda a, b: a + b, [x, x, x])


@case(lambda: (t(3),))
def locals_read(x):
    y = x + 1
    held = locals()
    return held["y"] * 2, sorted(held)


@case(lambda: (t(3), [1, 2]))
def augmented(x, items):
    items += [3]
    items *= 2
    n = 7
    n //= 2
    n **= 2
    n %= 5
    n <<= 2
    n |= 1
    n ^= 3
    x @= torch.eye(3) if False else torch.eye(3)
    return x + n, items


@case(lambda: (t(3),))
def an_import_inside(x):
    import math
    from collections import OrderedDict

    return x * math.pi, OrderedDict(a=1)


@case(lambda: (t(3),))
def assertions(x):
    assert x.shape[0] == 3, "three"
    try:
        assert x.dim() == 2, f"dim {x.dim()}"
    except AssertionError as error:
        return x + 1, str(error)


@case(lambda: (t(3), "attr"), lambda: (t(3), "other"))
def attributes_by_name(x, name):
    holder = Shape("a", 2)
    setattr(holder, name, x)
    return getattr(holder, name) + getattr(holder, "missing", 1), hasattr(holder, "attr"), vars(holder).keys() >= {"kind"}


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_statement(x):
    class Local:
        n = 3

        def apply(self, y):
            return y * self.n

    return Local().apply(x)


@case(lambda: (t(3), 3), lambda: (t(3), 0))
def division_by_zero(x, n):
    try:
        return x + 6 // n
    except ZeroDivisionError as error:
        return x, str(error)


@case(lambda: (t(3),))
def a_stop_iteration_by_hand(x):
    items = iter([])
    try:
        next(items)
    except StopIteration as stop:
        return x + 1, stop.value


@case(lambda: (t(3),))
def nested_functions_three_deep(x):
    def a():
        def b():
            def c():
                return x + 1

            return c

        return b

    return a()()()


@case(lambda: (t(3),))
def locals_asked_twice(x):
    first = locals()
    y = x + 1
    second = locals()
    return y, first is second, sorted(first)


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def locals_with_a_break(x, n):
    y = x + n
    print("break")
    return y * 2, sorted(locals())
