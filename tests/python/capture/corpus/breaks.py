"""What no graph can hold: the graph breaks there, and everything else goes on as before."""

import contextlib
import time
import warnings

import torch
from capture.cases import Reuse, case, t


@case(lambda: (t(3), torch.ones(3)), lambda: (t(3), -torch.ones(3)))
def example_of_the_documentation(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


@case(lambda: (t(3),))
def print_between(x):
    y = x + 1
    print("between", x.shape)
    return y * 2


@case(lambda: (t(3),))
def print_first_and_last(x):
    print("first")
    y = x + 1
    print("last")
    return y


@case(lambda: (t(3),))
def print_a_tensor(x):
    y = x + 1
    print(torch.zeros(2))
    return y


@case(lambda: (t(3),))
def item_of_a_tensor(x):
    n = x.sum().item()
    return x * n, n


@case(lambda: (torch.tensor(3), t(5)), lambda: (torch.tensor(2), t(5)))
def item_as_a_size(n, x):
    return x[: n.item()] * 2


@case(lambda: (torch.tensor([1.0, 2.0]),))
def tolist(x):
    return x * 2, x.tolist(), (x + 1).tolist()


@case(lambda: (torch.ones(3),), lambda: (-torch.ones(3),))
def branch_on_data(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@case(lambda: (torch.ones(3),), lambda: (-torch.ones(3),))
def branch_on_data_in_a_callee(x):
    def pick(y):
        return y * 2 if y.mean() > 0 else y * 3

    return pick(x + 1) + pick(x)


@case(lambda: (torch.full((3,), 0.7),), lambda: (torch.full((3,), 0.1),))
def while_on_data(x):
    steps = 0
    while x.sum() < 10:
        x = x * 2
        steps += 1
    return x, steps


@case(lambda: (t(3),))
def break_in_a_loop(x):
    for n in range(3):
        x = x + n
        print(n)
        x = x * 2
    return x


@case(lambda: (t(3),))
def break_in_a_nested_loop(x):
    total = x
    for a in range(2):
        for b in range(2):
            total = total + a * b
            print(a, b)
        total = total * 2
    return total


@case(lambda: (t(3),))
def break_in_a_loop_over_a_dict(x):
    table = {"a": 1, "b": 2}
    for key, value in table.items():
        x = x * value
        print(key)
    return x


@case(lambda: (t(3),))
def break_in_a_loop_over_zip(x):
    for n, m in zip([1, 2], enumerate("ab")):
        x = x + n
        print(m)
    return x


@case(lambda: (t(3),))
def break_in_try(x):
    try:
        y = x + 1
        print("inside")
        y = y * 2
    except ValueError:
        y = x
    return y


@case(lambda: (t(3),))
def break_in_except(x):
    try:
        raise ValueError("v")
    except ValueError as error:
        x = x + 1
        print(error)
        x = x * 2
    return x


@case(lambda: (t(3),))
def break_in_finally(x):
    try:
        x = x + 1
    finally:
        print("finally")
        x = x * 2
    return x


@case(lambda: (t(3),))
def exception_after_a_break(x):
    y = x + 1
    print("before")
    try:
        raise KeyError("k")
    except KeyError:
        y = y * 2
    return y


@case(lambda: (t(3),))
def break_in_a_comprehension(x):
    def shown(n):
        print(n)
        return n

    return [x * shown(n) for n in range(3)]


@case(lambda: (t(3),))
def break_with_values_on_the_stack(x):
    def shown(y):
        print("shown")
        return y + 1

    return (x * 2, shown(x), x * 3, shown(x * 4))


@case(lambda: (t(3),))
def break_inside_an_argument(x):
    return torch.add(x + 1, torch.tensor(x.sum().item()), alpha=2)


@case(lambda: (t(3),))
def break_inside_an_f_string(x):
    return x + 1, f"{x.shape[0]} {(x * 0).sum().item():.1f} end"


@case(lambda: (t(3),))
def break_inside_a_display(x):
    return {"a": x + 1, "b": (x * 0).sum().item(), "c": [x, (x * 0).max().item()]}


def helper_with_a_print(x, n):
    y = x + n
    print("helper", n)
    return y * n


@case(lambda: (t(3),))
def break_in_a_callee(x):
    y = x * 2
    z = helper_with_a_print(y, 3)
    return z + y


@case(lambda: (t(3),))
def break_in_a_deep_callee(x):
    def outer(y):
        return inner(y + 1) * 2

    def inner(y):
        return helper_with_a_print(y, 2) - 1

    return outer(x) + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def break_in_a_method(x):
    class Shower:
        def __init__(self, n):
            self.n = n

        def show(self, y):
            y = y + self.n
            print(self.n)
            self.n += 1
            return y * self.n

    shower = Shower(2)
    return shower.show(shower.show(x)), shower.n


@case(lambda: (t(3),))
def break_with_a_closure(x):
    n = 1

    def step(y):
        nonlocal n
        n += 1
        return y * n

    y = step(x)
    print(n)
    return step(y), n


@case(lambda: (t(3),))
def break_with_a_cell_changed_before(x):
    n = 1
    get = lambda: n  # noqa: E731
    y = x * get()
    n = 5
    print("break")
    n = n + get()
    return y + get()


@case(lambda: (t(3), [1]))
def break_with_a_list_of_the_caller(x, items):
    items.append(x + 1)
    print(len(items))
    items.append(x + 2)
    return items[-1]


@case(lambda: (t(3),))
def break_with_an_object_under_construction(x):
    items = [x + 1]
    alias = items
    print(len(items))
    alias.append(x)
    return items, alias is items


@case(lambda: (t(3),))
def break_with_an_iterator(x):
    numbers = iter([1, 2, 3])
    x = x * next(numbers)
    print("one")
    x = x + next(numbers)
    return x, list(numbers)


@case(lambda: (t(3),))
def break_with_inplace(x):
    x.add_(1)
    print("between")
    x.mul_(2)
    return x


@case(lambda: (t(3, grad=True),))
def gradients_across_a_break(x):
    y = x.sin() * 2
    print("between")
    return (y * x).exp()


@case(lambda: (t(3, grad=True),))
def gradients_across_item(x):
    y = x * x
    return y / y.sum().item()


@case(lambda: (t(3),))
def unknown_c_function(x):
    y = x + 1
    time.perf_counter()
    return y * 2


@case(lambda: (t(3),))
def warning_raised(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x + 1
        warnings.warn("careful", stacklevel=2)
        return y * 2


@case(lambda: (t(4),))
def shape_from_data(x):
    positive = x[x > 0]
    return positive.shape[0] <= 4, positive.sum() * 2


@case(lambda: (torch.tensor([0.0, 1.0, 2.0]),))
def nonzero(x):
    return x.nonzero(), torch.nonzero(x > 0.5, as_tuple=True)[0] * 2


@case(lambda: (torch.tensor([3.0, 1.0]),))
def data_converted_by_builtins(x):
    return float(x[0]) + int(x[1]), bool(x[0] > x[1]), x * 2


@case(lambda: (t(3),))
def tensor_in_a_list_by_value(x):
    return (torch.tensor(1.0) in [torch.tensor(1.0)]), x + 1


@case(lambda: (torch.ones(3),), lambda: (torch.zeros(3),))
def assert_on_data(x):
    assert x.sum() > 0, "positive"
    return x * 2


@case(lambda: (torch.ones(3),), lambda: (-torch.ones(3),))
def conditional_expression_on_data(x):
    y = x * 2 if (x > 0).all() else x * 3
    return y + 1


@case(lambda: (torch.ones(3), torch.zeros(3)))
def and_or_on_data(x, y):
    return (x.sum() or y.sum()) + 1, (y.sum() and x.sum()) + 1


@case(lambda: (t(3),))
def many_breaks_in_a_row(x):
    print(1)
    print(2)
    x = x + 1
    print(3)
    x = x * 2
    print(4)
    return x


@case(lambda: (t(3),))
def break_in_a_lambda(x):
    show = lambda y: (print("lambda"), y + 1)[1]  # noqa: E731
    return show(x * 2) * 3


@case(lambda: (t(3),))
def break_in_a_recursion(x):
    def down(y, n):
        print(n)
        return y if n == 0 else down(y * 2, n - 1) + 1

    return down(x, 3)


@case(lambda: (t(3),))
def break_then_return_many(x):
    y = x + 1
    print("break")
    return y, x, [y, {"k": y}], y is x


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def break_with_a_python_number(x, n):
    y = x * n
    print(n)
    n += 1
    return y + n, n


@case(lambda: (t(3),))
def break_in_a_generator(x):
    def steps():
        for n in range(2):
            print(n)
            yield x * n

    return sum(steps(), x)


@case(lambda: (t(3),))
def break_in_keyword_arguments(x):
    def f(*, a, b):
        return a + b

    return f(a=x * 2, b=(x * 0).sum().item())


@case(lambda: (t(3),))
def break_between_augmented_items(x):
    table = {"k": x}
    table["k"] += (x * 0).sum().item() + 1
    return table["k"] * 2


@case(lambda: (t(3),))
def unpacking_across_a_break(x):
    def both():
        print("both")
        return x + 1, x + 2

    a, b = both()
    return a * b


@case(lambda: (t(3),))
def del_across_a_break(x):
    y = x + 1
    z = y * 2
    del y
    print("break")
    try:
        return y
    except NameError:
        return z


@case(lambda: (t(3),))
def break_under_a_match(x):
    match (1, x):
        case (n, y):
            print(n)
            return y + n


@contextlib.contextmanager
def doubling(log):
    log.append("in")
    try:
        yield 2
    finally:
        log.append("out")


@case(lambda: (t(3), []))
def break_inside_a_generator_context(x, log):
    y = x + 1
    with doubling(log) as factor:
        y = y * factor
        print(len(log))
        y = y - 1
    return y * 3


@case(lambda: (t(3), []))
def exception_inside_a_generator_context(x, log):
    try:
        with doubling(log) as factor:
            x = x * factor
            print(len(log))
            raise ValueError("inside")
    except ValueError as error:
        log.append(str(error))
    return x * 3


@case(lambda: (t(3), {}))
def break_in_except_after_a_graph(x, table):
    y = x.relu() * 2
    try:
        y = y + table["missing"]
    except KeyError as error:
        y = y + 1
        print(error)
    return y * 3


@case(lambda: (t(3), []))
def exit_stack_with_a_break(x, log):
    y = x * 2
    with contextlib.ExitStack() as stack:
        factor = stack.enter_context(doubling(log))
        print("inside")
        y = y * factor
    return y + 1
