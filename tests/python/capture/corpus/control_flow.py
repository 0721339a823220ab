"""Branches, loops, comparison, assignment and deletion."""

import torch
from capture.cases import case, t


@case(lambda: (t(3), True), lambda: (t(3), False))
def branch_on_a_flag(x, flag):
    if flag:
        return x + 1
    return x - 1


@case(lambda: (t(3), 0), lambda: (t(3), 5), lambda: (t(3), -5))
def elif_chain(x, n):
    if n < 0:
        y = x.neg()
    elif n == 0:
        y = x * 0
    else:
        y = x * n
    return y


@case(lambda: (t(4), None), lambda: (t(4), t(4)))
def branch_on_none(x, bias):
    return x if bias is None else x + bias


@case(lambda: (t(2, 3),), lambda: (t(5, 3),))
def branch_on_a_size(x):
    if x.shape[0] > 3:
        return x.sum()
    return x.mean()


@case(lambda: (t(3), 4), lambda: (t(3), 1), lambda: (t(3), 0))
def for_over_a_range(x, n):
    for i in range(n):
        x = x * 2 + i
    return x


@case(lambda: (t(3), 3), lambda: (t(3), 0))
def while_with_a_counter(x, n):
    while n > 0:
        x = x.sin()
        n -= 1
    return x, n


@case(lambda: (t(3), 3), lambda: (t(3), 20))
def break_and_else(x, limit):
    for i in range(10):
        if i == limit:
            break
        x = x + i
    else:
        x = x * 100
    return x


@case(lambda: (t(3),))
def continue_in_a_loop(x):
    for i in range(6):
        if i % 2:
            continue
        x = x + i
    return x


@case(lambda: (t(3),))
def nested_loops_with_break(x):
    for i in range(3):
        for j in range(3):
            if j > i:
                break
            x = x + i * j
    return x


@case(lambda: (t(3), 1, 2, 3), lambda: (t(3), 3, 2, 1))
def chained_comparison(x, a, b, c):
    if a < b < c:
        return x + 1
    return x - 1


@case(lambda: (t(3), 0, 7), lambda: (t(3), 2, 7))
def and_or_give_values(x, a, b):
    first = a or b
    second = a and b
    return x * first + second


@case(lambda: (t(3), 5), lambda: (t(3), 50))
def walrus(x, n):
    if (doubled := n * 2) > 50:
        return x - doubled
    return x + doubled


@case(lambda: (t(5),), lambda: (t(2),))
def walrus_in_a_while(x):
    items = list(range(x.shape[0]))
    total = 0
    while (item := items.pop()) > 0:
        total += item
    return x + total


@case(lambda: (t(3), 2), lambda: (t(3), 0))
def conditional_expression(x, n):
    return x * n if n else x


@case(lambda: (t(3),))
def delete_a_local(x):
    y = x + 1
    z = y * 2
    del y
    return z


@case(lambda: (t(3),))
def use_after_delete_raises(x):
    y = x + 1
    del y
    return y


@case(lambda: (t(3), False), lambda: (t(3), True))
def unbound_on_one_path(x, flag):
    if flag:
        y = x + 1
    return y


@case(lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 9))
def match_on_a_number(x, n):
    match n:
        case 1:
            return x + 1
        case 2 | 3:
            return x + 2
        case _:
            return x


@case(lambda: (t(3), ("scale", 2)), lambda: (t(3), ("shift", 1)), lambda: (t(3), ("shift", 1, 2)), lambda: (t(3), "?"))
def match_on_a_sequence(x, command):
    match command:
        case ("scale", factor):
            return x * factor
        case ("shift", first, *rest):
            return x + first + sum(rest)
        case _:
            return x


@case(lambda: (t(3), {"op": "mul", "by": 3}), lambda: (t(3), {"op": "add"}), lambda: (t(3), {}))
def match_on_a_mapping(x, request):
    match request:
        case {"op": "mul", "by": factor}:
            return x * factor
        case {"op": "add", **rest}:
            return x + len(rest)
    return x


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@case(lambda: (t(3), Point(0, 2)), lambda: (t(3), Point(2, 0)), lambda: (t(3), 4))
def match_on_a_class(x, point):
    match point:
        case Point(0, b):
            return x + b
        case Point(a=first) if first > 1:
            return x * first
        case int(n):
            return x - n
    return x


@case(lambda: (t(3), 3))
def augmented_assignment(x, n):
    n += 2
    n *= 3
    n //= 2
    n **= 2
    n %= 13
    n -= 1
    return x * n, n


@case(lambda: (t(3),))
def many_targets(x):
    a = b = c = x + 1
    return a, b, c


@case(lambda: (t(3),))
def swap(x):
    a, b = x + 1, x - 1
    a, b = b, a
    return a, b


@case(lambda: (t(3),))
def rotate_three_and_four(x):
    a, b, c = x, x + 1, x + 2
    a, b, c = c, a, b
    d = x * 2
    a, b, c, d = d, c, b, a
    return a, b, c, d


@case(lambda: (t(3), 3, [1, 3]), lambda: (t(3), 2, [1, 3]))
def membership(x, n, among):
    if n in among:
        x = x + 1
    if n not in among:
        x = x - 1
    return x


@case(lambda: (t(3), True), lambda: (t(3), False))
def early_return_in_a_loop(x, flag):
    for i in range(3):
        if flag and i == 1:
            return x, i
        x = x + 1
    return x, None


@case(lambda: (t(3),))
def loop_variable_after_the_loop(x):
    for i in range(4):
        pass
    return x + i


@case(lambda: (t(3),))
def return_nothing(x):
    x + 1


@case(lambda: (t(3),))
def return_the_input(x):
    return x


@case(lambda: (3, "a"), lambda: (4, "b"))
def no_tensor_at_all(n, s):
    return s * n


@case(lambda: (t(2, 2),))
def assert_that_holds(x):
    assert x.dim() == 2, "two dimensions"
    return x * 2


@case(lambda: (t(2, 2),), lambda: (t(2),))
def assert_on_a_size(x):
    assert x.dim() == 2, f"two dimensions, not {x.dim()}"
    return x * 2


@case(lambda: (t(3), 1), lambda: (t(3), 1.5), lambda: (t(3), "s"), lambda: (t(3), None))
def branch_on_a_type(x, value):
    if isinstance(value, int):
        return x + value
    elif isinstance(value, float):
        return x * value
    elif value is None:
        return x
    return x.abs()


@case(lambda: (t(3), [1, 2, 3]), lambda: (t(3), []))
def branch_on_emptiness(x, items):
    if not items:
        return x
    if items:
        return x * len(items)


@case(lambda: (torch.ones(3),), lambda: (torch.ones(0),))
def branch_on_numel(x):
    return x.sum() if x.numel() else torch.tensor(-1.0)
