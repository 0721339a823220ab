"""Objects that are reached by several paths: one object in some calls, several in others. What is written by one path is read by the other."""

import collections
import math
import re

import torch

from capture.cases import Reuse, case, t


class Box:
    def __init__(self, value=0):
        self.value = value
        self.items = []


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value=0):
        self.value = value


def apart(make):
    """Arguments that are two objects."""
    return lambda: (make(), make(), t(3))


def together(make):
    """Arguments that are one object."""

    def arguments():
        one = make()
        return one, one, t(3)

    return arguments


def both(make):
    """A case that is called with two objects, with one, and in the other order."""
    return case(apart(make), together(make), apart(make))


def same_first(make):
    return case(together(make), apart(make), together(make))


@both(Box)
def attributes_that_count(a, b, x):
    a.value = a.value + 1
    return x + b.value, b.value


@same_first(Box)
def attributes_that_count_apart_later(a, b, x):
    a.value = a.value + 1
    return x + b.value, b.value


@both(Slotted)
def slots_that_are_set(a, b, x):
    a.value = 7
    return x + b.value


@both(Box)
def attributes_that_go(a, b, x):
    del a.value
    return x + hasattr(b, "value")


@both(Box)
def attributes_by_the_dictionary(a, b, x):
    a.__dict__["value"] = 9
    return x + getattr(b, "value")


@both(Box)
def lists_inside(a, b, x):
    a.items.append(1)
    return x + len(b.items)


@both(list)
def lists_that_grow(a, b, x):
    a.append(1)
    b.append(2)
    return x + len(a), list(a), list(b)


@both(lambda: {1: 2})
def dictionaries_that_grow(a, b, x):
    a[0] = 5
    return x + b.get(0, 1), len(b)


@both(lambda: {1, 2})
def sets_that_grow(a, b, x):
    a.add(5)
    return x + len(b), 5 in b


@both(lambda: collections.deque([1, 2, 3]))
def deques_that_turn(a, b, x):
    a.rotate(1)
    return x + b[0], list(b)


@both(lambda: iter([1, 2, 3, 4]))
def iterators_that_advance(a, b, x):
    return x + next(a), next(b)


@both(lambda: [[1]])
def lists_in_lists(a, b, x):
    a[0].append(1)
    return x + len(b[0])


@both(lambda: torch.nn.Linear(3, 3))
def parameters_that_are_set(a, b, x):
    a.weight = torch.nn.Parameter(torch.ones(3))
    return x + b.weight.sum().detach() * (b.weight.dim() == 1)


@both(torch.nn.ReLU)
def modules_in_modes(a, b, x):
    a.train()
    b.eval()
    return x + a.training


@case(lambda: ([Box(1), Box(2)], t(3)), lambda: ([Box(1)] * 2, t(3)), lambda: ([Box(1), Box(2)], t(3)))
def objects_in_one_list(boxes, x):
    boxes[0].value = 5
    return x + boxes[1].value


@both(Box)
def objects_that_are_equal(a, b, x):
    return x + (a == b), a != b, a in [b], [a].count(b), (a,) == (b,)


@same_first(Box)
def objects_that_are_equal_apart_later(a, b, x):
    return x + (a == b), a in (b,), {a: 1}.get(b)


@both(torch.nn.ReLU)
def modules_that_were_seen(a, b, x):
    seen = []
    for module in (a, b):
        if module not in seen:
            seen.append(module)
    return x * len(seen)


@both(object)
def plain_objects(a, b, x):
    return x + (a == b), a is b, a in [b]


@same_first(object)
def plain_objects_apart_later(a, b, x):
    return x + (a == b), a is b, a in [b]


@case(together(object), apart(object), together(object), reuse=Reuse.FREE)
def plain_objects_in_a_set(a, b, x):
    return x + len({a, b})


@same_first(lambda: re.compile("a+"))
def patterns(a, b, x):
    return x + (a is b), len({id(a), id(b)})


@both(lambda: float("nan"))
def not_a_number(a, b, x):
    return x, a in [b], a == b, a is b


@case(lambda: (None, 1, t(3)), lambda: (1, 1, t(3)), lambda: (2, 1, t(3)), lambda: (3, 3, t(3)))
def small_numbers_that_are_one(a, b, x):
    return x + (a is b)


@case(lambda: (t(3), t(4)), lambda: (t(5), t(5)), lambda: (t(6), t(7)))
def sizes_that_are_one(x, y):
    return x * (x.shape[0] is y.shape[0])


def holds_itself():
    held = []
    held.append(held)
    return held


@case(lambda: (t(3),))
def lists_that_hold_themselves(x):
    held = holds_itself()
    return x + len(held), repr(held), repr({1: held}), f"{held!a}", ascii(held), "%s" % held, "{}".format(held), str((held,))


@case(lambda: (t(3),))
def lists_too_deep_to_be_printed(x):
    held = []
    for _ in range(1500):
        held = [held]
    try:
        return x, repr(held)
    except RecursionError:
        return x + 1, "too deep"


@case(lambda: (t(3),))
def comparisons_of_lists_that_hold_themselves(x):
    try:
        return x + (holds_itself() == holds_itself())
    except RecursionError:
        return x + 2


@case(lambda: (t(3),))
def slices_with_large_steps(x):
    items = list(range(9))
    return x, items[3 :: 2**62], items[::-(2**62)], items[:: 2**63 - 1]


@case(lambda: (t(3),))
def contexts_of_exceptions_that_lead_back(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as error:
            error.__context__ = error
            raise TypeError(2)
    except TypeError as error:
        return x + math.isfinite(1), type(error.__context__), error.__context__.__context__ is error.__context__


@case(lambda: (t(3),))
def globals_that_come_and_go(x):
    global AssertionError
    AssertionError = TypeError
    try:
        raise AssertionError("hello")
    except TypeError as error:
        said = str(error)
    del AssertionError
    return x + len(said), AssertionError is TypeError


def boxes(count, together):
    made = [Box(number) for number in range(count)]
    return [*made[:-1], made[0]] if together else made


@case(lambda: (boxes(40, False), t(3)), lambda: (boxes(40, True), t(3)), lambda: (boxes(40, False), t(3)))
def many_objects_that_are_changed(held, x):
    for box in held:
        box.value += 1
    return x + held[0].value, held[-1].value
