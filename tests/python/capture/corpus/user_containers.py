"""Containers of the user's: subclasses of every container, weak ones, views, and what they do by themselves."""

import collections
import collections.abc
import weakref

import torch
from capture.cases import Reuse, case, t


class Stack(list):
    def push(self, item):
        self.append(item)
        return self

    def pop(self, index=-1):
        return super().pop(index)


class Table(dict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2

    def __missing__(self, key):
        return 0


class Attributes(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Recent(collections.deque):
    def newest(self):
        return self[-1]


class Bounded(collections.deque):
    def __init__(self, items=()):
        super().__init__(items, maxlen=2)
        self.pushed = 0

    def append(self, item):
        self.pushed += 1
        super().append(item)


class Grouped(collections.defaultdict):
    def add(self, key, item):
        self[key].append(item)


class Ordered(collections.OrderedDict):
    def first(self):
        return next(iter(self))


class Tally(collections.Counter):
    pass


class Numbers(set):
    def even(self):
        return {n for n in self if n % 2 == 0}


class Frozen(frozenset):
    def widest(self):
        return max(self)


class Shape(tuple):
    def area(self):
        return self[0] * self[1]


class Celsius(float):
    def fahrenheit(self):
        return self * 9 / 5 + 32


class Index(int):
    def __add__(self, other):
        return Index(int(self) + other * 10)


class Tag(str):
    def __len__(self):
        return 99

    @property
    def short(self):
        return self[:1]


class Sequence(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


class Mapping(collections.abc.MutableMapping):
    def __init__(self):
        self.held = {}

    def __getitem__(self, key):
        return self.held[key]

    def __setitem__(self, key, value):
        self.held[key] = value

    def __delitem__(self, key):
        del self.held[key]

    def __iter__(self):
        return iter(self.held)

    def __len__(self):
        return len(self.held)


class UserMade(collections.UserDict):
    pass


class Thing:
    def __init__(self, n=1):
        self.n = n


@case(lambda: (t(3),))
def a_list_subclass_made(x):
    stack = Stack([1]).push(2).push(x)
    return stack.pop() + stack.pop() + len(stack), stack


@case(lambda: (t(3), Stack([1, 2])))
def a_list_subclass_given(x, stack):
    stack.push(5)
    stack += [7]
    return x + stack.pop(0), stack, stack[1:]


@case(lambda: (t(3), Table(a=1)))
def a_dict_subclass_with_its_own_items(x, table):
    table["b"] = 4
    return x + table["a"] + table["b"] + table["c"], table.get("a"), len(table), "c" in table


@case(lambda: (t(3), Attributes(a=1)))
def a_dict_subclass_with_attributes(x, held):
    held.b = held.a + 1
    return x * held.b, held


@case(lambda: (t(3),))
def a_deque_subclass(x):
    recent = Recent([x], maxlen=2)
    recent.append(x + 1)
    recent.append(x + 2)
    recent.appendleft(x)
    return recent.newest() + len(recent), recent


@case(lambda: (t(3), Recent([1, 2, 3])))
def a_deque_subclass_given(x, recent):
    recent.append(4)
    recent.rotate(1)
    return x + recent.newest(), recent.popleft(), list(recent)


@case(lambda: (t(3),))
def a_deque_subclass_with_attributes(x):
    bounded = Bounded([x])
    for n in range(3):
        bounded.append(x + n)
    return bounded[0] + bounded.pushed, len(bounded), bounded.maxlen


@case(lambda: (t(3),))
def a_defaultdict_subclass(x):
    grouped = Grouped(list)
    grouped.add("a", x)
    grouped.add("a", 2)
    return grouped["a"][0] * grouped["a"][1], len(grouped["b"]), list(grouped)


@case(lambda: (t(3),))
def an_ordered_dict_subclass(x):
    ordered = Ordered(a=1, b=2)
    ordered.move_to_end("a")
    return x + len(ordered.first()), ordered, list(reversed(ordered))


@case(lambda: (t(3),))
def a_counter_subclass(x):
    tally = Tally("abca")
    tally.update("b")
    return x * tally["a"], tally.most_common(1), tally["z"], sum(tally.values())


@case(lambda: (t(3), Numbers({1, 2, 4})))
def a_set_subclass(x, numbers):
    numbers.add(6)
    return x + len(numbers.even()), numbers | {9}, 2 in numbers


@case(lambda: (t(3),))
def a_frozenset_subclass(x):
    frozen = Frozen([1, 5, 2])
    return x + frozen.widest(), 5 in frozen, len(frozen), frozen & {1}


@case(lambda: (t(2, 3),))
def a_tuple_subclass(x):
    shape = Shape((2, 3))
    return x * shape.area(), shape, shape[::-1], len(shape)


@case(lambda: (t(3), Celsius(20.0)), lambda: (t(3), Celsius(30.0)))
def a_float_subclass(x, degrees):
    return x + degrees.fahrenheit(), degrees > 25


@case(lambda: (t(3), Index(2)), lambda: (t(3), Index(3)))
def an_int_subclass(x, index):
    return x + (index + 1), x * index


@case(lambda: (t(3), Tag("abc")))
def a_str_subclass(x, tag):
    return x + len(tag), tag.short, tag.upper(), f"{tag}!"


@case(lambda: (t(3),))
def an_abstract_sequence(x):
    held = Sequence(x, 2, 3)
    return held[0] * held[1], 3 in held, held.index(2), held.count(3), len(list(reversed(held)))


@case(lambda: (t(3),))
def an_abstract_mapping(x):
    held = Mapping()
    held["a"] = x
    held.update(b=2)
    held.setdefault("c", 3)
    return held["a"] * held["b"], sorted(held), held.pop("c"), held.get("z", 1), "a" in held, len(held)


@case(lambda: (t(3),))
def a_user_dict(x):
    held = UserMade(a=1)
    held["b"] = x
    return held["b"] + held["a"], len(held), "a" in held


@case(lambda: (t(3), Thing()), reuse=Reuse.FREE)
def weak_keys(x, thing):
    table = weakref.WeakKeyDictionary()
    table[thing] = x + 1
    return table[thing] * 2, thing in table, len(table)


CACHE = weakref.WeakKeyDictionary()
KEPT = Thing(4)
CACHE[KEPT] = 3


@case(lambda: (t(3),))
def weak_keys_from_outside(x):
    return x * CACHE[KEPT], CACHE.get(KEPT), KEPT in CACHE


@case(lambda: (t(3), Thing()), reuse=Reuse.FREE)
def weak_references(x, thing):
    reference = weakref.ref(thing)
    held = reference()
    return x + held.n, reference() is thing


@case(lambda: (t(3), Thing()), reuse=Reuse.FREE)
def a_weak_proxy(x, thing):
    return x + weakref.proxy(thing).n


@case(lambda: (t(3), Thing()), reuse=Reuse.FREE)
def weak_values(x, thing):
    table = weakref.WeakValueDictionary()
    table["a"] = thing
    return x + table["a"].n, "b" in table


@case(lambda: (t(3), weakref.ref(torch.nn.Linear(1, 1))), reuse=Reuse.FREE)
def a_dead_reference(x, reference):
    return x + 1 if reference() is None else x


@case(lambda: (t(3), {"a": 1, "b": 2}))
def views_of_a_dict(x, table):
    keys, values, items = table.keys(), table.values(), table.items()
    table["c"] = 3
    return x + len(keys) + sum(values), ("a", 1) in items, keys & {"a", "z"}, keys - {"a"}, list(reversed(keys))


@case(lambda: (t(3), {1, 2, 3}, frozenset({3, 4})))
def the_methods_of_sets(x, left, right):
    left.discard(9)
    left.symmetric_difference_update({1, 7})
    return (
        x + len(left & right),
        left.union(right, [8]),
        left.issubset(right),
        right.isdisjoint({5}),
        left ^ right,
        right.difference([3]),
        sorted(left - right),
        left >= {2},
    )


@case(lambda: (t(3), {1, 2}))
def sets_that_are_changed(x, items):
    items |= {3}
    items -= {1}
    items &= {2, 3, 4}
    items.update([5], (6,))
    items.intersection_update({2, 5, 6})
    items.difference_update({6})
    try:
        items.remove(100)
    except KeyError as error:
        return x + len(items), items, error.args


@case(lambda: (t(3), [3, 1, 2]))
def the_methods_of_lists(x, items):
    items.sort(key=lambda n: -n)
    items.insert(1, 9)
    items.extend(n * 2 for n in range(2))
    items.reverse()
    items[1:3] = [7, 7, 7]
    del items[0]
    return x + items.index(7) + items.count(7), items * 2, [1] + items, items == [7], items < [8], items.copy()


@case(lambda: (t(3), {"a": 1}))
def the_methods_of_dicts(x, table):
    table.setdefault("b", []).append(x)
    table |= {"c": 3}
    merged = table | {"a": 5}
    key, last = table.popitem()
    return x + merged["a"] + last, key, dict.fromkeys("ab", 1), dict(zip("xy", [1, 2])), list(table), merged.pop("zz", None)


@case(lambda: (t(3),))
def a_chain_of_maps(x):
    chained = collections.ChainMap({"a": 1}, {"a": 2, "b": x})
    inner = chained.new_child({"c": 3})
    return chained["b"] * chained["a"] + inner["c"], len(inner), "b" in inner


@case(lambda: (t(3), {"k": {"n": 1}}))
def nested_containers_changed(x, table):
    table["k"]["n"] += 1
    table["k"]["list"] = [x, (x + 1, {"z": x + 2})]
    (first, (second, held)) = table["k"]["list"]
    return first + second + held["z"]


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"a": 1, "b": 3}), lambda: (t(3), {"a": 4, "b": 2}))
def one_key_of_a_dict(x, table):
    return x + table["a"]


class Dotted(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


@case(lambda: (t(3), Dotted(a=1)))
def accessors_that_are_written_in_c(x, held):
    held.b = x + held.a
    held.c = 2
    del held.a
    return held.b * held.c, held, list(held)


class Tagged(collections.deque):
    def __init__(self, *items, tag="none"):
        super().__init__(items, maxlen=3)
        self.tag = tag

    def appendleft(self, item):
        self.tag += "!"
        super().appendleft(item)


@case(lambda: (t(3), Tagged(1, 2, tag="t")))
def a_deque_subclass_from_outside_with_attributes(x, held):
    held.appendleft(x)
    held.extend([4, 5])
    return held[-1] + x, held.tag, held.maxlen, list(held), Tagged(*held, tag="new")


@case(lambda: (t(3),))
def the_length_that_a_deque_may_have(x):
    bounded, free = collections.deque([1, 2, 3], maxlen=2), collections.deque()
    return x + bounded.maxlen, free.maxlen is None, bounded.maxlen == 2, list(bounded)


class Backwards(list):
    def __iter__(self):
        return iter([*super().__iter__()][::-1])


class Shifted(collections.deque):
    def __getitem__(self, index):
        return super().__getitem__(index) + 100

    def __len__(self):
        return super().__len__() + 5

    def __iter__(self):
        return iter([7, 8])


@case(lambda: (t(3), Backwards([1, 2, 3]), Shifted([4, 5])))
def containers_that_say_otherwise_what_they_hold(x, backwards, shifted):
    return x + backwards[0] + shifted[0], list(backwards), len(shifted), list(shifted), [n for n in backwards], collections.deque.__len__(shifted)


class Lengths(collections.defaultdict):
    def __missing__(self, key):
        self[key] = made = len(key)
        return made


@case(lambda: (t(3), Lengths(None, {"z": 1})))
def copies_of_a_defaultdict_subclass(x, held):
    merged, copied = held | {"b": 2}, held.copy()
    return x + held["abc"], merged, copied, type(merged).__name__, type(copied).__name__, Lengths(int, a=1)


@case(lambda: (t(3), collections.OrderedDict(a=1), collections.defaultdict(list, b=[2])))
def dicts_of_the_library_merged(x, ordered, defaulted):
    first, second, third = ordered | {"c": 3}, {"c": 3} | ordered, defaulted | {"d": 4}
    return x + len(first), first, second, third, third["new"], {"q": 1} | defaulted, [type(d).__name__ for d in (first, second, third)]


class Place:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return self.n == other.n


@case(lambda: (t(3),))
def keys_that_are_made_and_returned(x):
    return {Place(1): x, (Place(2), 3): x + 1}, {Place(3), Place(4), Place(3)}, {Place(1): x}[Place(1)]


@case(lambda: (t(3),))
def keys_that_are_made_before_a_break(x):
    table, members = {Place(1): x * 2}, {Place(2)}
    print("break")
    return table[Place(1)] + len(members), Place(2) in members


@case(lambda: (t(3),))
def a_frozenset_of_keys_that_are_made(x):
    return x + 1, frozenset([Place(1)])
