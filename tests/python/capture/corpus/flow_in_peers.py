"""Exceptions, generators, dictionaries and sets, as suites of other compilers probe them."""

import collections
import contextlib
import itertools
import sys
import traceback
import warnings

import torch
from capture.cases import Message, Reuse, case, t


class Custom(Exception):
    def __init__(self, x, *, code=0):
        super().__init__("custom", code)
        self.x = x
        self.code = code


class Child(Custom, ValueError):
    pass


@case(lambda: (t(3),))
def an_error_with_a_tensor(x):
    try:
        raise Custom(x + 1, code=3)
    except ValueError:
        return x
    except Custom as error:
        return error.x * error.code, error.args


@case(lambda: (t(3),))
def handlers_by_base_class(x):
    for kind in (Child, Custom, KeyError):
        try:
            raise kind(x) if kind is not KeyError else kind
        except (ValueError, KeyError) as error:
            x = x + len(type(error).__mro__)
        except Exception:
            x = x * 2
    return x


@case(lambda: (t(3),))
def context_and_cause(x):
    try:
        try:
            {}["a"]
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        return x + 1, error.__cause__ is error.__context__, error.__suppress_context__, repr(error.__cause__)


@case(lambda: (t(3),))
def cause_taken_away(x):
    try:
        try:
            [][0]
        except IndexError:
            raise ValueError("outer") from None
    except ValueError as error:
        return x + 1, error.__cause__, type(error.__context__).__name__, error.__suppress_context__


@case(lambda: (t(3),))
def raised_again(x):
    try:
        try:
            raise Custom(x, code=1)
        except Custom as error:
            error.code += 1
            raise
    except Custom as error:
        return x + error.code, error.__context__


@case(lambda: (t(3),))
def notes_of_an_error(x):
    try:
        error = ValueError("a")
        error.add_note("one")
        raise error
    except ValueError as caught:
        caught.add_note("two")
        return x + len(caught.__notes__), caught.__notes__


@case(lambda: (t(3),))
def the_current_error(x):
    try:
        raise KeyError("k")
    except KeyError:
        kind, value, trace = sys.exc_info()
        inside = (kind.__name__, str(value), trace is not None)
    return x + 1, inside, sys.exc_info()


@case(lambda: (t(3),))
def a_traceback_kept(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        bare = error.with_traceback(None)
    return x + 1, bare.__traceback__ is None, str(bare)


@case(lambda: (t(3),))
def a_formatted_traceback(x):
    try:
        raise ValueError("a")
    except ValueError:
        text = traceback.format_exc()
    return x + 1, text.splitlines()[-1]


@case(lambda: (t(3),))
def finally_overrides_return(x):
    def inner():
        try:
            return 1
        finally:
            return 2

    def outer():
        for i in range(3):
            try:
                raise ValueError
            except ValueError:
                continue
            finally:
                if i == 1:
                    break
        else:
            return 10
        return i

    return x + inner() + outer()


@case(lambda: (t(3),))
def an_assertion_that_fails(x):
    try:
        assert x.shape[0] == 4, f"size {x.shape[0]}"
    except AssertionError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def an_error_leaves_the_function(x):
    y = x + 1
    raise Custom(y, code=7)


@case(lambda: (t(3), [1]))
def an_error_after_a_write(x, items):
    items.append(2)
    x.add_(1)
    raise ValueError("after")


@case(lambda: (t(3),))
def errors_of_python_itself(x):
    told = []
    for attempt in (
        lambda: {}["a"],
        lambda: [1][3],
        lambda: 1 / 0,
        lambda: int("a"),
        lambda: None.a,
        lambda: "a" + 1,
        lambda: (1, 2)[0.5],
        lambda: next(iter(())),
        lambda: {[]: 1},
        lambda: len(3),
        lambda: iter(3),
        lambda: [1, 2].index(3),
        lambda: {1}.remove(2),
        lambda: "abc".index("z"),
        lambda: (lambda a: a)(),
        lambda: [].pop(),
        lambda: {}.popitem(),
        lambda: max([]),
        lambda: 3(),
        lambda: sorted([1, "a"]),
        lambda: chr(-1),
        lambda: [*None],
    ):
        try:
            attempt()
        except Exception as error:
            told.append((type(error).__name__, str(error)))
    return x + len(told), told


@case(lambda: (t(3),))
def unpacking_of_wrong_length(x):
    told = []
    for items in ([1], [1, 2, 3]):
        try:
            a, b = items
        except ValueError as error:
            told.append(str(error))
    try:
        a, b, *c = [1]
    except ValueError as error:
        told.append(str(error))
    return x + 1, told


@case(lambda: (t(3),), message=Message.ANY)
def a_torch_error_is_caught(x):
    try:
        x @ torch.ones(4)
    except RuntimeError:
        return x + 1


@case(lambda: (t(3),))
def errors_in_managers(x):
    @contextlib.contextmanager
    def wrapping():
        try:
            yield
        except KeyError as error:
            raise ValueError("wrapped") from error

    try:
        with wrapping():
            raise KeyError("k")
    except ValueError as error:
        return x + 1, repr(error.__cause__), str(error)


@case(lambda: (t(3),))
def groups_split_by_kind(x):
    group = ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [KeyError(2), ValueError(3)])])
    matched, rest = group.split(ValueError)
    return x + len(matched.exceptions), str(rest), group.subgroup(KeyError).message


@case(lambda: (t(3),))
def starred_handlers(x):
    told = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* (ValueError, TypeError) as group:
        told.append(len(group.exceptions))
        x = x + 1
    except* KeyError as group:
        told.append(str(group.exceptions[0]))
    else:
        told.append("else")
    finally:
        told.append("finally")
    return x, told


@case(lambda: (t(3),))
def a_starred_handler_of_a_bare_error(x):
    try:
        raise ValueError("bare")
    except* ValueError as group:
        x = x + len(group.exceptions)
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise TypeError("inner")
    except ExceptionGroup as outer:
        return x, [type(e).__name__ for e in outer.exceptions], str(outer)


@case(lambda: (t(3),))
def warnings_caught(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning)
    return x + len(caught)


def counting(n):
    total = 0
    while total < n:
        got = yield total
        total += got if got is not None else 1
    return "done"


@case(lambda: (t(3),))
def a_generator_that_is_sent_to(x):
    g = counting(10)
    a = next(g)
    b = g.send(4)
    c = g.send(None)
    rest = list(g)
    return x + a + b + c, rest


@case(lambda: (t(3),))
def the_value_of_a_generator(x):
    g = counting(1)
    next(g)
    try:
        next(g)
    except StopIteration as stop:
        return x + 1, stop.value, stop.args


@case(lambda: (t(3),))
def a_generator_that_is_thrown_at(x):
    log = []

    def worker():
        while True:
            try:
                log.append((yield len(log)))
            except KeyError as error:
                log.append(repr(error))
            finally:
                log.append("finally")

    g = worker()
    next(g)
    a = g.throw(KeyError("k"))
    b = g.send("s")
    g.close()
    return x + a + b, log


@case(lambda: (t(3),))
def a_generator_that_is_closed(x):
    log = []

    def worker():
        try:
            yield 1
            yield 2
        except GeneratorExit:
            log.append("exit")
            raise
        finally:
            log.append("finally")

    g = worker()
    first = next(g)
    g.close()
    g.close()
    return x + first, log, next(g, None)


@case(lambda: (t(3),))
def a_generator_that_refuses_to_close(x):
    def worker():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    g = worker()
    next(g)
    try:
        g.close()
    except RuntimeError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def generators_within_generators(x):
    def inner(y):
        received = yield y
        return received * 2

    def outer(y):
        result = yield from inner(y)
        yield result + 1
        yield from (y + n for n in range(2))

    g = outer(x)
    a = next(g)
    b = g.send(x)
    return a + b, list(g)


@case(lambda: (t(3),))
def stop_iteration_inside(x):
    def worker():
        yield 1
        raise StopIteration

    try:
        list(worker())
    except RuntimeError as error:
        return x + 1, str(error), type(error.__cause__).__name__


@case(lambda: (t(3),))
def a_generator_over_a_break(x):
    def worker():
        for n in range(4):
            yield x + n

    g = worker()
    a = next(g)
    print("between")
    b = next(g)
    return a + b, sum(g)


@case(lambda: (t(3),))
def a_break_inside_of_a_generator(x):
    def worker():
        yield x + 1
        print("inside")
        yield x + 2

    return sum(worker())


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_generator_returned(x):
    return (x + n for n in range(3))


def yields(x):
    yield x.sin()
    yield x.cos()


@case(lambda: (t(3),))
def a_generator_function_unpacked(x):
    a, b = yields(x)
    (c, *d) = yields(a)
    return a + b + c, d, dict(enumerate(yields(x)))[1], tuple(yields(b)), torch.stack([*yields(x)])


@case(lambda: (yields(t(3)), t(3)), reuse=Reuse.FREE)
def a_generator_given(g, x):
    return next(g) + x


@case(lambda: (t(3),))
def infinite_generators(x):
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    return x + sum(itertools.islice(naturals(), 2, 5)), next(n for n in naturals() if n * n > 50), list(zip(naturals(), "ab"))


@case(lambda: (t(3),))
def a_generator_with_a_manager(x):
    def worker():
        with torch.no_grad():
            yield x + 1
            yield torch.is_grad_enabled()

    g = worker()
    a = next(g)
    between = torch.is_grad_enabled()
    return a, between, list(g), torch.is_grad_enabled()


@case(lambda: (t(3),))
def a_generator_about_itself(x):
    g = yields(x)
    return g.gi_running, g.gi_frame is None, g.__name__, iter(g) is g, next(g)


# Dictionaries and sets.


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"a": 1, "c": 5}))
def the_algebra_of_dictionaries(x, d):
    e = {"b": 5, "z": x}
    merged = d | e
    d |= {"q": 3}
    keys = d.keys() & e.keys(), d.keys() - e.keys(), d.keys() | {"k"}, d.keys() ^ e.keys()
    return merged["z"] + len(d), [sorted(k) for k in keys], d.items() >= {("q", 3)}, d.keys() == {"a", "b", "q"}, d.keys().isdisjoint(e)


@case(lambda: (t(3),))
def dictionaries_in_order(x):
    d = dict(zip("abc", range(3)), d=9)
    d["a"] = d.pop("a")
    last = d.popitem()
    return x + last[1], list(d), list(reversed(d)), d.setdefault("new", 3), dict.fromkeys("xy", 0), {**d, "b": x}


@case(lambda: (t(3), {1: 1, 1.5: 2, (1, 2): 3, None: 4, True: 5}))
def keys_of_many_kinds(x, d):
    return x + d[1.0] + d[(1, 2)] + d[None], len(d), d.get("none"), 1.5 in d


@case(lambda: (t(3), {"a": t(3), "b": t(3)}), lambda: (t(3), {"b": t(3), "a": t(3), "c": t(3)}))
def tensors_by_name(x, d):
    for name, value in d.items():
        x = x + value * len(name)
    return x, {k: v + 1 for k, v in sorted(d.items())}


@case(lambda: (t(3), {}))
def tensors_as_keys(x, d):
    d[x] = 1
    y = x + 1
    d[y] = 2
    return d[x] + d[y] + x, len(d), y in d


@case(lambda: (t(3), collections.OrderedDict(a=1, b=2)))
def ordered_dictionaries(x, d):
    d.move_to_end("a")
    d["c"] = 3
    first = d.popitem(last=False)
    return x + first[1], list(d.items()), d == collections.OrderedDict(a=1, c=3), d == {"c": 3, "a": 1}


@case(lambda: (t(3),))
def defaults_of_dictionaries(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["b"] += [1]
    e = collections.defaultdict(lambda: 3, k=1)
    return d["a"][0] + e["z"], dict(d), len(e), e.default_factory is None, "q" in d, d.get("q")


@case(lambda: (t(3),))
def a_dictionary_changed_while_walked(x):
    d = {"a": 1, "b": 2}
    try:
        for k in d:
            d[k + k] = 1
    except RuntimeError as error:
        return x + len(d), str(error)


@case(lambda: (t(3),))
def views_of_a_dictionary(x):
    d = {"a": 1}
    keys, values, items = d.keys(), d.values(), d.items()
    d["b"] = 2
    return x + sum(values), list(keys), ("b", 2) in items, len(items), keys.mapping["a"], repr(values)


@case(lambda: (t(3), {1, 2, 3}), lambda: (t(3), {2, 3, 4}))
def the_algebra_of_sets(x, s):
    u = {2, 3, 9}
    s.add(7)
    s.discard(100)
    results = [s | u, s & u, s - u, s ^ u, s.union([5], (6,)), s.intersection([2]), s.difference([2]), s.symmetric_difference(u)]
    s -= {7}
    s ^= {1}
    s |= {8}
    return x + len(s), [sorted(r) for r in results], s <= u, s.issubset(range(10)), u.isdisjoint({1}), {2} < u, s == set(sorted(s))


@case(lambda: (t(3),))
def frozen_sets(x):
    f = frozenset([1, 2, 2])
    table = {f: 3}
    g = f | {4}
    return x + table[frozenset({2, 1})], type(g).__name__, len(g), f == {1, 2}, hash(f) == hash(frozenset([2, 1]))


@case(lambda: (t(3), t(3)))
def sets_of_tensors(x, y):
    s = {x, y, x}
    s.remove(y)
    return x + len(s), x in s, y in s


@case(lambda: (t(3), {torch.float32, torch.int64}))
def sets_of_types(x, s):
    return x + 1 if x.dtype in s and torch.bool not in s else x, {int, str} & {int}, type(x) in {torch.Tensor}


@case(lambda: (t(3),))
def missing_members_of_sets(x):
    s = {1}
    try:
        s.remove(3)
    except KeyError as error:
        told = error.args
    s.clear()
    try:
        s.pop()
    except KeyError as error:
        return x + 1, told, str(error)


@case(lambda: (t(3), [3, 1, 2]), lambda: (t(3), [3, 1, 2, 0]))
def the_methods_of_lists(x, items):
    items.insert(1, x)
    items.extend(n for n in range(2))
    del items[0]
    items[1:2] = [7, 8]
    items.remove(8)
    numbers = [n for n in items if isinstance(n, int)]
    numbers.sort(key=lambda n: -n)
    copy = numbers[:]
    copy.reverse()
    numbers *= 2
    return items[0] + numbers.pop(0), numbers.count(1), copy[::-2], numbers.index(1), copy < numbers, [] or [0], numbers[-1:], copy.__contains__(7)


@case(lambda: (t(3), collections.deque([1, 2, 3], maxlen=4)))
def queues_with_two_ends(x, d):
    d.append(x)
    d.appendleft(0)
    d.rotate(1)
    d.extendleft([5])
    left = d.popleft()
    return x + left, list(d)[1:], d.maxlen, len(d), d.count(1), d.index(1), d[-1]


@case(lambda: (t(3),))
def ranges_and_slices(x):
    r = range(10, 0, -3)
    s = slice(1, None, 2)
    return x[s] + r[1], list(r), 4 in r, r.index(4), len(r), r[1:], s.indices(7), s.step, r == range(10, 1, -3), reversed(r)[0] if hasattr(reversed(r), "__getitem__") else next(reversed(r))


@case(lambda: (t(3), (1, (2, {"a": [3]}))), lambda: (t(3), (1, (2, {"a": [4]}))))
def nested_structures(x, nested):
    a, (b, d) = nested
    d["a"].append(a)
    (c, *_), last = d["a"], nested[-1][-1]["a"][-1]
    return x + a + b + c + last


@case(lambda: (t(3), bytearray(b"abc"), memoryview(b"xyz")))
def bytes_of_kinds(x, array, view):
    array.append(100)
    return x + array[0] + len(view), bytes(array), array.decode(), view[1]
