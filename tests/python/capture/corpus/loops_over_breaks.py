"""Loops that a graph break interrupts, over containers that have changed since the loop began, and over containers that the frame has made.

Each turn of such a loop is a frame of its own, with other values than the last: what is compiled for one is not always used again."""

import collections

import pyrite
from capture.cases import Reuse, case, t


@pyrite.disable
def seen(value):
    return value


class Pile(list):
    pass


class Table(dict):
    pass


class Group(set):
    pass


class Queue(collections.deque):
    pass


@case(lambda: ([(1, 2), (3, 4)], t(3)), lambda: ([1, (2, 3), 4], t(3)), lambda: ([(1, (5, 6)), 3], t(3)), reuse=Reuse.FREE)
def lists_that_grow_before_the_break(items, x):
    found = []
    for item in items:
        if isinstance(item, tuple):
            items.extend(item)
            continue
        found.append(seen(item))
    return found, x + 1


@case(lambda: ([1, 2], t(3)), reuse=Reuse.FREE)
def lists_that_grow_after_the_break(items, x):
    found = []
    for item in items:
        found.append(seen(item))
        if len(items) < 6:
            items += [item + 10, item + 20]
    return found, x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def own_lists_that_grow(x):
    items, found = [1, 2], []
    for place, item in enumerate(items):
        if len(items) < 6:
            items.append(item + 10)
            items.append(item + 20)
        if place > 2:
            found.append(seen(item))
    return found, items, x + 1


@case(lambda: ([1, 2, 3, 4], t(3)), reuse=Reuse.FREE)
def lists_that_are_filled_anew(items, x):
    iterator = iter(items)
    next(iterator), next(iterator)
    items.clear()
    items.extend([7, 8, 9])
    seen(1)
    return list(iterator), x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def lists_of_a_class(x):
    found = [seen(item) for item in Pile([1, 2, 3])]
    for item in Pile([4, 5, 6]):
        found.append(seen(item))
    return found, x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def dictionaries_of_a_class(x):
    found = []
    for key in Table({1: 2, 3: 4, 5: 6}):
        found.append(seen(key))
    for key, value in Table({1: 2, 3: 4, 5: 6}).items():
        found.append(seen(key + value))
    return found, x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def sets_of_a_class(x):
    found = []
    for member in Group([1, 2, 3]):
        found.append(seen(member))
    return found, x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def deques(x):
    found = []
    for item in collections.deque([1, 2, 3]):
        found.append(seen(item))
    for item in Queue([4, 5, 6]):
        found.append(seen(item))
    return found, x + 1
