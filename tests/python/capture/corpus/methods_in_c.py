"""Methods and functions that are written in C: how many arguments they take, what they say of operands and objects that they do not know."""

import collections
import operator

import torch

from capture.cases import Reuse, case, t


def told(function, *args, **kwargs):
    """What a call gives, or what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


@case(lambda: (t(3), [1], {"a": 1}))
def too_many_arguments(x, items, table):
    calls = [
        told(table.pop, "b", 2, 3),
        told(table.pop),
        told(table.get),
        told(table.get, "b", 2, 3),
        told(table.keys, 1),
        told(table.setdefault, "b", 2, 3),
        told(table.clear, 1),
        told(items.append),
        told(items.append, 1, 2),
        told(items.pop, 0, 1),
        told(items.copy, 1),
        told(items.index),
        told(items.reverse, 1),
        told(items.sort, 1),
        told((1, 2).count),
        told((1, 2).index),
        told({1}.add),
        told({1}.pop, 1),
        told(collections.deque([1]).append, 1, 2),
        told(collections.OrderedDict(a=1).move_to_end),
        told(list.append, items),
    ]
    return x + 1, calls, items, table


@case(lambda: (t(3), [1], {"a": 1}))
def keywords_that_nobody_takes(x, items, table):
    calls = [
        told(items.append, object=1),
        told(items.pop, index=0),
        told(items.insert, 0, object=1),
        told(table.get, "a", default=1),
        told(table.keys, x=1),
        told({1}.add, item=1),
        told((1, 2).index, value=1),
        told(len, obj=items),
        told(abs, x=1),
        told(list, iterable=[1]),
        told(set, iterable=[1]),
        told(any, iterable=[1]),
        told(getattr, items, "x", default=1),
        told(isinstance, 1, cls=int),
        told(sum, [1], begin=2),
        told(sorted, [1], by=2),
        told(bool, x=1),
        told(tuple, sequence=(1,)),
        told(repr, obj=1),
    ]
    return x + 1, calls, items, table


@case(lambda: (t(3), [1]))
def functions_with_too_many_arguments(x, items):
    calls = [
        told(len, items, 1),
        told(len),
        told(abs, 1, 2),
        told(isinstance, 1),
        told(callable, 1, 2),
        told(sum, items, 1, 2),
        told(sorted, items, 1),
        told(list, items, 1),
        told(tuple, items, 1),
        told(enumerate, items, 1, 2),
        told(any, items, 1),
        told(hash, 1, 2),
        told(repr),
        told(divmod, 1),
        told(hasattr, items),
        told(setattr, items, "a"),
    ]
    return x + 1, calls


class Items(list):
    def __eq__(self, other):
        known = super().__eq__(other)
        return "unknown" if known is NotImplemented else known


class Queue(collections.deque):
    def __eq__(self, other):
        known = super().__eq__(other)
        return "unknown" if known is NotImplemented else known


class Pair(tuple):
    def __eq__(self, other):
        known = super().__eq__(other)
        return "unknown" if known is NotImplemented else known


@case(lambda: (t(3), [1], {"a": 1}))
def operators_called_by_their_names(x, items, table):
    group, pair, queue = {1}, (1, 2), collections.deque([1])
    answers = [
        list.__eq__(items, (1,)),
        list.__ne__(items, (1,)),
        list.__lt__(items, (1,)),
        list.__eq__(items, [1]),
        tuple.__eq__(pair, [1, 2]),
        tuple.__le__(pair, (1, 2)),
        dict.__eq__(table, 1),
        dict.__or__(table, [("b", 2)]),
        dict.__or__(table, {"b": 2}),
        set.__eq__(group, [1]),
        set.__or__(group, [2]),
        set.__sub__(group, frozenset([1])),
        set.__le__(group, [1]),
        collections.deque.__eq__(queue, [1]),
        collections.deque.__eq__(queue, collections.deque([1])),
        table.keys().__eq__(["a"]),
        table.keys().__eq__({"a"}),
        object.__eq__(items, items),
    ]
    return x + 1, [answer if answer is not NotImplemented else "unknown" for answer in answers]


@case(lambda: (t(3), [1]))
def derived_containers_ask_their_bases(x, items):
    return x + 1, Items(items) == items, Items(items) == (1,), Queue(items) == items, Queue(items) == Queue([1]), Pair(items) == items, Pair(items) == (1,)


@case(lambda: (t(3), 4), lambda: (t(3), 5), lambda: (t(3), 6))
def operators_of_numbers_called_by_their_names(x, number):
    unknown = [(3).__add__(x) is NotImplemented, (3).__mul__([1]) is NotImplemented, (3).__add__(2.5) is NotImplemented, (2.5).__add__(number)]
    return x + 1, unknown, (3).__add__(number), (3).__sub__(x.shape[0])


class Bare:
    pass


class Whole:
    def __index__(self):
        return 7


class Iterated:
    def __iter__(self):
        return iter((1, 2))


@case(lambda: (t(3), Bare()))
def objects_without_the_method(x, bare):
    def assigns():
        bare[0] = 1

    def deletes():
        del bare[0]

    calls = [
        told(int, bare),
        told(float, bare),
        told(abs, bare),
        told(round, bare),
        told(next, bare),
        told(reversed, bare),
        told(assigns),
        told(deletes),
        told(len, bare),
        told(reversed, Iterated()),
        told(reversed, {1}),
    ]
    return x + 1, calls, int(Whole()), float(Whole())


class Wrong:
    def __int__(self):
        return "seven"

    def __float__(self):
        return 7


@case(lambda: (t(3), Wrong()))
def conversions_to_something_else(x, wrong):
    return x + 1, told(int, wrong), told(float, wrong)


@case(lambda: (t(3), [], 1))
def what_is_no_mapping(x, items, number):
    def of(value):
        return {"a": 1, **value}

    return x + 1, told(of, items), told(of, number), told(of, (("b", 1),)), told(of, {"b": 2})


class Text(str):
    pass


class Raw(bytes):
    pass


class Pile(list):
    pass


@case(lambda: (t(3), [Text("ab"), Raw(b"ab"), Pile([1, 2]), (1, 2), "ab", range(2), collections.deque([1, 2]), {"a": 1}, {1, 2}, torch.Size([1, 2]), torch.ones(2)]))
def patterns_of_sequences_and_mappings(x, subjects):
    found = []
    for subject in [*subjects, Text("cd"), Pile([1, 2]), collections.OrderedDict(a=1)]:
        match subject:
            case [_, _]:
                found.append("sequence")
            case {}:
                found.append("mapping")
            case _:
                found.append("neither")
    return x + 1, found


@case(lambda: (t(3), float("nan"), float("nan")), reuse=Reuse.FREE)
def two_numbers_that_are_not_equal_to_themselves(x, first, second):
    table = {first: 1, second: 2}
    made = float("nan")
    again = {made: 1, float("nan"): 2}
    again[made] = 3
    return x + 1, len(table), first in table, table.get(second), first in [second], list(again.values()), len({first, second, made}), len({(first,), (second,)})


def same_number():
    number = float("nan")
    return t(3), number, number


@case(same_number, lambda: (t(3), float("nan"), float("nan")), same_number, reuse=Reuse.FREE)
def one_number_that_is_not_equal_to_itself(x, first, second):
    return x + 1, len({first: 1, second: 2}), len({first, second}), first in [second], (first,) == (second,), operator.eq(first, second)


@case(lambda: (t(3), {float("nan"): 1}, float("nan")), reuse=Reuse.FREE)
def tables_with_numbers_that_are_not_equal_to_themselves(x, table, number):
    (held,) = table
    table[number] = 2
    return x + 1, len(table), table[number], table[held], held in table, float("nan") in table
