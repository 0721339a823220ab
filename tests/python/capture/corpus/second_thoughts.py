"""Programs that rest on an exception: what is raised in capture alone, or not raised there, takes the other way."""

import enum

import torch
from capture.cases import case, t


class Word(str, enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@case(lambda: (t(3), Word.SUM), lambda: (t(3), Word.MEAN))
def a_member_as_the_name_of_an_attribute(x, word):
    try:
        return getattr(x, word)()
    except TypeError:
        return x


@case(lambda: (t(3),))
def tensors_as_the_items_of_a_tensor(x):
    try:
        return torch.tensor([x.sum(), x.max()])
    except TypeError as error:
        return str(error)


@case(lambda: (t(3),))
def tensors_as_the_items_of_a_tensor_unguarded(x):
    return torch.tensor([x.sum(), x.max()]), torch.as_tensor([x[0], x[1]]), torch.tensor([[x[0]], [x[1]]])


@case(lambda: (t(3),))
def pairs_with_values_that_have_no_hash(x):
    table = {"e": [x], "b": 2}
    try:
        return x + 1, table.items() >= {("b", 2)}, {("b", 2)} <= table.items(), table.items() <= {("b", 2)}
    except TypeError as error:
        return str(error)


@case(lambda: (t(3),))
def sets_beside_other_containers(x):
    told = []
    for step in (lambda: {1} | [1], lambda: [1] - {1}, lambda: {1} & (1,), lambda: {} ^ {1}, lambda: hash([]), lambda: hash({}), lambda: hash({1})):
        try:
            told.append(step())
        except TypeError as error:
            told.append(str(error))
    return x + len(told), told


class Restarting:
    """An iterator that begins anew whenever it is asked for its iterator."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.k = 0
        return self

    def __next__(self):
        if self.k == self.n:
            raise StopIteration
        self.k += 1
        return self.k


@case(lambda: (t(3), Restarting(3)))
def the_rest_of_an_iterator_that_begins_anew(x, numbers):
    first, *rest = numbers
    return x * first, rest


@case(lambda: (t(3), Restarting(1)))
def too_few_of_an_iterator_that_begins_anew(x, numbers):
    try:
        first, second, *rest = numbers
    except ValueError as error:
        return x, str(error)
    return x + first, second, rest


@case(lambda: (t(3),))
def a_tensor_with_a_plus(x):
    return +x is x, +x + 1


@case(lambda: (torch.tensor([True, False]),))
def bools_with_a_plus(x):
    try:
        return +x
    except RuntimeError as error:
        return "bool" in str(error)


@case(lambda: (t(4), 3), lambda: (t(4), 0), lambda: (t(4), -3), lambda: (t(4), 7))
def roots_of_numbers_that_have_none(x, n):
    try:
        return x * n**0.5, x + (n / 2) ** 1.5
    except TypeError as error:
        return str(error)


@case(lambda: (t(4), 3.0), lambda: (t(4), 0.0), lambda: (t(4), -3.0), lambda: (t(4), 1000.0), lambda: (t(4), 2.0))
def functions_of_numbers_that_have_no_result(x, f):
    import math

    told = []
    for function in (math.sqrt, math.log, math.exp, math.cosh, math.log2):
        try:
            told.append(x * function(f))
        except (ValueError, OverflowError) as error:
            told.append(type(error).__name__)
    return told


@case(lambda: (t(9), 3), lambda: (t(9), 5), lambda: (t(9), 7), lambda: (t(9), 10), lambda: (t(9), 6))
def rounded_to_the_even_one(x, n):
    return x[: round(n / 2)], x[: round(n / 4)], round(n / 8), round(n * 0.25), x.sum() * round(n / 3)


@case(lambda: (t(9), 3), lambda: (t(9), 5), lambda: (t(9), -7))
def powers_that_are_returned(x, n):
    return x * n**2, n**3, n**-1, abs(n) ** 0.5, abs(n) ** -0.5, n**0


@case(lambda: (t(4, 4),))
def autocast_left_after_a_break(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        print("break")
        z = y @ x
    return y, z, x @ x, torch.is_autocast_enabled("cpu")


@case(lambda: (t(4, 4),))
def autocast_in_autocast_left_after_a_break(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            y = x @ x
            print("break")
            z = y @ x
        w = x @ x
    return y, z, w, x @ x


@case(lambda: (t(4, 4),))
def autocast_left_by_an_exception_after_a_break(x):
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            print("break")
            raise ValueError("out")
    except ValueError:
        return y, x @ x, torch.is_autocast_enabled("cpu")


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def defaults_set_and_returned(x, n):
    def inner(a, by=1, *, plus=0):
        return a * by + plus

    inner.__defaults__, inner.__kwdefaults__ = (n,), {"plus": n}
    made = inner(x)
    inner.__defaults__ = None
    try:
        inner(x)
    except TypeError as error:
        return made, str(error), inner.__defaults__, inner.__kwdefaults__


@case(lambda: (t(3),))
def a_function_with_new_defaults_returned(x):
    def inner(a, by=1):
        return a * by

    inner.__defaults__ = (x,)
    return inner
