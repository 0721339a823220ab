"""Integers and floats that change from call to call: as symbols, in divisions and roots, with sizes; several at once."""

import functools
import math

import torch
from capture.cases import case, t


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 0), lambda: (t(3), 1), lambda: (t(3), -2))
def zero_and_one_among_others(x, n):
    return x * n


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5))
def divided(x, n):
    return x * (n / 2) + n / 3 - 1 / n, n / 4, (n + 0.5) * x


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 0))
def inverse(x, n):
    try:
        return x * (1 / n)
    except ZeroDivisionError as error:
        return x, str(error)


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5))
def powers(x, n):
    return x + n**2 + n**3, n**1, n**0, 2**n


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), -1))
def roots(x, n):
    try:
        return x * math.sqrt(n), x / math.sqrt(n), math.sqrt(n)
    except ValueError as error:
        return x, str(error)


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), -3))
def rounded_quotients(x, n):
    return x + math.floor(n / 2) + math.ceil(n / 2) + int(n / 2) + int(n * 0.5) + round(n / 3)


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 7))
def quotients_compared(x, n):
    return x + (n / 2 > 2) + (n / 2 >= 2) * 2 + (n / 2 < 1.7) * 4 + (n / 2 == 2.5) * 8 + (n / 2 != 2) * 16, 3 > n / 2


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 1))
def smaller_and_larger(x, n):
    return x + min(n, 4) + max(n, 2), min(n, 4), max(2, n), x[: min(n, 2)], min(n, 4.5), max(n, n + 1)


@case(lambda: (t(3), 3), lambda: (t(3), 4), lambda: (t(3), 5))
def quotient_and_other_types(x, n):
    return x.double() * (n / 3), x.half() * (n / 3), x.int() * (n / 3), x.bfloat16() + n / 3, x.to(torch.complex64) * (n / 3)


@case(lambda: (t(3, grad=True), 7.0, 2), lambda: (t(3, grad=True), 8.0, 3), lambda: (t(3, grad=True), 9.0, 4))
def gradients_through_quotients(x, a, b):
    return (x * (a / b)).sum() * (b / 2)


@case(lambda: (t(3), 7.5, 2.0), lambda: (t(3), 8.5, 3.0), lambda: (t(3), 9.5, 4.0))
def arithmetic_of_floats(x, a, b):
    return x * (a + b) - a * b / 2 + (1 - a) + (a - 1) + 2 / b, a * 3 - 1, 1 / a


@case(lambda: (t(3, 4),), lambda: (t(4, 4),), lambda: (t(5, 4),))
def means_by_sizes(x):
    return x.sum(0) / x.shape[0], x * (1.0 / math.sqrt(x.shape[0])), x.shape[0] / 2, x.shape[0] ** 2


@case(lambda: (t(3, 4),), lambda: (t(4, 4),), lambda: (t(5, 4),))
def parts_by_sizes(x):
    return x[: math.ceil(x.shape[0] / 2)], x[: int(x.shape[0] * 0.5)], x[: min(x.shape[0], 4)], x + max(x.shape[0], 4)


@case(lambda: (t(3, 4), t(3, 4)), lambda: (t(4, 4), t(4, 4)), lambda: (t(5, 4), t(5, 4)), lambda: (t(1, 4), t(1, 4)))
def two_tensors_that_grow_together(x, y):
    return x + y, torch.cat([x, y])


@case(lambda: (t(3, 4), 2), lambda: (t(4, 4), 3), lambda: (t(5, 4), 4))
def a_size_and_a_number(x, n):
    return x[:n] * n + x.shape[0]


@case(lambda: (t(4, 4), 2), lambda: (t(4, 4), 1), lambda: (t(4, 4), 0), lambda: (t(4, 4), 3), lambda: (t(4, 4), -1))
def positions(x, n):
    return x[n], x.select(0, n), x[:n], x[n:]


@case(lambda: (t(4, 4), 2), lambda: (t(4, 4), 1), lambda: (t(4, 4), 0), lambda: (t(4, 4), 3))
def number_as_a_size(x, n):
    return torch.zeros(n, 4) + x[:n], x.new_ones(n), torch.arange(n)


@case(lambda: (t(4, 4), -1), lambda: (t(4, 4), 1), lambda: (t(4, 4), 0))
def number_as_a_dimension(x, n):
    return x.sum(n), x.softmax(n), x.transpose(0, n)


@case(lambda: (torch.tensor([-2.7]),), lambda: (torch.tensor([3.7]),), lambda: (torch.tensor([1e20]),), lambda: (torch.tensor([float("nan")]),))
def whole_part_of_an_element(x):
    try:
        return int(x), x * int(x)
    except ValueError as error:
        return x + 1, str(error)


@functools.lru_cache(maxsize=None)
def scaled(x, factor):
    return x * factor


@case(lambda: (t(3),))
def kept_result_for_a_tensor(x):
    return scaled(x, 2) + scaled(x, 3), scaled(x, 2) is scaled(x, 2)
