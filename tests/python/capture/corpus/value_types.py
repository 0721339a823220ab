"""Numbers, texts, sets and tuples of classes of the user's, with operators of their own, and records of Python's library."""

import collections
import copy
import dataclasses
import enum
import fractions
import functools
import operator
import typing
import weakref

import torch
from capture.cases import Reuse, case, t


class Wide(int):
    def __add__(self, other):
        return Wide(int(self) + int(other) * 10)

    def __radd__(self, other):
        return Wide(int(other) * 100 + int(self))

    def __mul__(self, other):
        return Wide(int(self) * int(other) + 1)

    def __eq__(self, other):
        return int(self) % 10 == int(other) % 10

    def __lt__(self, other):
        return int(self) > int(other)

    def __hash__(self):
        return int(self) % 10

    def __bool__(self):
        return int(self) != 5


class Loud(str):
    def __add__(self, other):
        return Loud(str.__add__(self, other).upper())

    def __eq__(self, other):
        return str(self).lower() == str(other).lower()

    def __hash__(self):
        return hash(str(self).lower())

    def __len__(self):
        return 2 * str.__len__(self)

    def __contains__(self, item):
        return item == "!"

    def __getitem__(self, index):
        return "?" + str.__getitem__(self, index)


class Rate(float):
    def __mul__(self, other):
        return Rate(float(self) * float(other) / 100)

    def __rmul__(self, other):
        return "rate"

    def __neg__(self):
        return Rate(1 - float(self))


class Bag(set):
    def __or__(self, other):
        return Bag(set.__or__(self, other) | {0})

    def __contains__(self, item):
        return set.__contains__(self, item % 10)

    def __len__(self):
        return 100 + set.__len__(self)

    def add(self, item):
        super().add(item * 2)


class Pair(tuple):
    __slots__ = ()

    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))

    def __add__(self, other):
        return Pair(self[0] + other[0], self[1] + other[1])

    def __getitem__(self, index):
        return tuple.__getitem__(self, index)

    @property
    def swapped(self):
        return Pair(self[1], self[0])


@case(lambda: (t(3), Wide(3)), lambda: (t(3), Wide(4)))
def an_int_that_adds_in_its_own_way(x, n):
    return x * (n + 1), n + 2, 2 + n, n * 3, type(n + 1) is Wide


@case(lambda: (t(3), Wide(3)), lambda: (t(3), Wide(13)), lambda: (t(3), Wide(5)))
def an_int_that_compares_in_its_own_way(x, n):
    y = x + 1 if n == 13 else x - 1
    if n:
        y = y * 2
    return y, n < 2, n > 2, n != 3


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def an_int_made_in_the_frame(x, n):
    w = Wide(n)
    return x * (w + 1), w * w, hash(w), {w: 1}


@case(lambda: (t(3), {Wide(3): "a"}), lambda: (t(3), {Wide(4): "a"}))
def an_int_as_a_key(x, d):
    return x + 1, d.get(Wide(13), "none")


@case(lambda: (t(3), Loud("ab")), lambda: (t(3), Loud("AB")), lambda: (t(3), Loud("xyz")))
def a_text_with_operators(x, s):
    y = x + 1 if s == "ab" else x - 1
    return y * len(s), s + "c", "!" in s, s[0], s.upper()


@case(lambda: (t(3), "ab"), lambda: (t(3), "cd"))
def a_text_made_in_the_frame(x, s):
    loud = Loud(s)
    return x + len(loud), loud + s, loud == s.upper(), f"{loud}", loud.join(["1", "2"])


@case(lambda: (t(3), Rate(0.5)), lambda: (t(3), Rate(0.25)))
def a_float_with_operators(x, r):
    return x * float(r * 200), 2.0 * r, -r, x + float(-r)


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.75))
def a_float_made_in_the_frame(x, r):
    rate = Rate(r)
    return rate * 10, -rate, type(-rate).__name__, x * 2


@case(lambda: (t(3), Bag({1, 2})), lambda: (t(3), Bag({3})))
def a_set_with_operators(x, b):
    return x * len(b), 11 in b, sorted(b | {7}), type(b | {7}).__name__


@case(lambda: (t(3), Bag({1, 2})), lambda: (t(3), Bag({3})))
def a_set_that_adds_in_its_own_way(x, b):
    b.add(5)
    return x + (10 if 10 in b else 0), sorted(b)


@case(lambda: (t(3), 1), lambda: (t(3), 2))
def a_set_made_in_the_frame(x, n):
    b = Bag([n, n + 1])
    b.add(n + 2)
    return x + len(b), sorted(set(b))


@case(lambda: (t(3), Pair(1, 2)), lambda: (t(3), Pair(3, 2)))
def a_tuple_with_operators(x, p):
    q = p + (1, 1)
    return x * q[0], q.swapped, type(q).__name__, p.swapped == Pair(2, 1)


@case(lambda: (t(3), t(3)))
def a_tuple_of_tensors_with_operators(x, y):
    p = Pair(x, y) + (y, x)
    return p[0] * 2, p.swapped[0]


@case(lambda: (t(3), t(2)))
def tuples_of_tensors_as_keys(x, y):
    d = {(x, 1): "a", (x, y): "b"}
    d[(y, x)] = "c"
    return d[(x, 1)], (x, y) in d, (y, y) in d, d[(y, x)], x + len(d)


@case(lambda: (t(3), t(2)))
def tuples_of_tensors_in_a_set(x, y):
    seen = {(x, "w"), (y, "w")}
    seen.add((x, "w"))
    return len(seen), (x, "w") in seen, (x, "v") in seen, x + 1


@functools.singledispatch
def describe(value):
    return "object"


@describe.register
def _(value: int):
    return "int"


@describe.register(list)
def _(value):
    return "list of " + describe(value[0])


@describe.register
def _(value: torch.Tensor):
    return value.shape[0]


class Shown:
    @functools.singledispatchmethod
    def show(self, value):
        return "other"

    @show.register
    def _(self, value: str):
        return "text " + value

    @show.register
    def _(self, value: torch.Tensor):
        return value * 2


@case(lambda: (t(3), 1), lambda: (t(3), [1]), lambda: (t(3), "a"), lambda: (t(3), [t(4)]))
def a_function_by_class(x, value):
    return x + 1, describe(value), describe(x)


@case(lambda: (t(3), Shown(), "a"), lambda: (t(3), Shown(), 2))
def a_method_by_class(x, s, value):
    return s.show(x), s.show(value)


class Circle:
    def __init__(self, r):
        self.r = r

    @property
    def area(self):
        return self.r * 3

    @area.setter
    def area(self, value):
        self.r = value / 3


@case(lambda: (t(3), Circle(2)), lambda: (t(3), Circle(5)))
def a_property_by_its_function(x, c):
    Circle.area.fset(c, 30)
    return x * Circle.area.fget(c), Circle.area.fdel, c.r


@typing.runtime_checkable
class Walks(typing.Protocol):
    def walk(self): ...


@typing.runtime_checkable
class Named(typing.Protocol):
    name: str


class Dog:
    name = "dog"

    def walk(self):
        return 4


class Stone:
    pass


@case(lambda: (t(3), Dog()), lambda: (t(3), Stone()))
def a_protocol(x, thing):
    if isinstance(thing, Walks):
        return x * thing.walk()
    return x - 1


def stone_with_a_name():
    stone = Stone()
    stone.name = "pebble"
    return stone


@case(lambda: (t(3), Dog()), lambda: (t(3), Stone()), lambda: (t(3), stone_with_a_name()))
def a_protocol_of_data(x, thing):
    return x + (1 if isinstance(thing, Named) else 2)


@case(lambda: (t(3),))
def a_class_against_a_protocol(x):
    return x + 1, issubclass(Dog, Walks), issubclass(Stone, Walks)


@case(lambda: (t(3),))
def a_weak_reference_to_a_class(x):
    ref = weakref.ref(Dog)
    return x * ref().walk(ref()), ref() is Dog


REFS = weakref.WeakKeyDictionary({Dog: 2, Stone: 3})


@case(lambda: (t(3), Dog), lambda: (t(3), Stone), lambda: (t(3), Circle))
def classes_as_weak_keys(x, cls):
    return x * REFS.get(cls, 7), cls in REFS


class Planet(enum.Enum):
    EARTH = (1, 2.5)
    MARS = (2, 0.5)

    def __init__(self, place, mass):
        self.place = place
        self.mass = mass

    @property
    def weight(self):
        return self.mass * self.place

    def __str__(self):
        return f"planet {self.place}"


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Perm(enum.IntFlag):
    R = 4
    W = 2
    X = 1


@case(lambda: (t(3), Planet.EARTH), lambda: (t(3), Planet.MARS))
def members_with_attributes(x, p):
    return x * p.weight + p.place, str(p), p.name, Planet["MARS"] is p, Planet((1, 2.5)) is p


@case(lambda: (t(3), Mode.FAST), lambda: (t(3), Mode.SLOW), lambda: (t(3), "fast"))
def members_that_are_texts(x, m):
    return x + (1 if m == "fast" else 2), m == Mode.FAST, isinstance(m, Mode), m.upper()


@case(lambda: (t(3), Perm.R | Perm.X), lambda: (t(3), Perm.W))
def members_combined(x, p):
    return x * int(p), bool(p & Perm.R), Perm.X in p, (p | Perm.W).value, ~p & Perm.R


@case(lambda: (t(3),))
def all_members(x):
    total = 0
    for p in Planet:
        total += p.mass
    return x * total, len(Planet), list(Mode.__members__), [m.value for m in Mode]


@dataclasses.dataclass
class Config:
    width: int
    scale: float = 2.0
    names: list = dataclasses.field(default_factory=list)
    cache: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Spot:
    x: int
    y: int = 0

    def moved(self, **changes):
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(order=True)
class Ranked:
    rank: int
    label: str = dataclasses.field(compare=False, default="")


@case(lambda: (t(3), Config(2)), lambda: (t(3), Config(2, 3.0)), lambda: (t(3), Config(2, names=["a"])))
def a_record_that_is_changed(x, c):
    c.names.append(len(c.names))
    c.cache[c.width] = x
    return x * c.scale, dataclasses.asdict(Config(1)), repr(Config(3)), c == Config(2, c.scale, c.names)


@case(lambda: (t(3), Spot(1, 2)), lambda: (t(3), Spot(2, 2)))
def a_frozen_record_with_slots(x, s):
    q = s.moved(x=5)
    try:
        s.x = 3
    except dataclasses.FrozenInstanceError as error:
        text = str(error)
    return x * q.x + q.y, text, hash(q) == hash(Spot(5, s.y)), dataclasses.astuple(q)


@case(lambda: (t(3), Ranked(1, "a"), Ranked(2, "b")), lambda: (t(3), Ranked(2, "a"), Ranked(1, "b")))
def records_in_order(x, a, b):
    return x + max(a, b).rank, sorted([b, a])[0].label, a < b, a == Ranked(a.rank, "z")


class Row(typing.NamedTuple):
    key: int
    value: torch.Tensor
    tag: str = "t"

    def scaled(self):
        return self._replace(value=self.value * self.key)

    @property
    def size(self):
        return self.value.numel()


@case(lambda: (t(3), 2), lambda: (t(4), 3))
def a_named_tuple_with_methods(x, n):
    row = Row(n, x)
    other = row.scaled()
    key, value, tag = other
    return value + other.size, other.tag, row._fields, other._asdict()["key"], Row._make([1, x, "m"]).tag


@case(lambda: (t(3), Row(2, t(3))), lambda: (t(3), Row(3, t(3), "u")))
def a_named_tuple_from_outside(x, row):
    match row:
        case Row(key=2, value=v):
            return x + v
        case Row(tag="u") as r:
            return x * r.key, r
    return x


@case(lambda: (t(3), fractions.Fraction(1, 3)), lambda: (t(3), fractions.Fraction(1, 4)))
def fractions_of_the_library(x, f):
    return x * float(f + 1), f.denominator


@case(lambda: (t(3), Wide(3)), lambda: (t(3), Wide(4)))
def an_int_as_a_size(x, n):
    return torch.zeros(n) + 1, x[:n], list(range(n)), operator.index(n)


class Meters(int):
    unit = "m"

    def __new__(cls, value, note=""):
        self = super().__new__(cls, value)
        self.note = note
        return self

    def __repr__(self):
        return f"{int(self)}{self.unit}"

    def __format__(self, spec):
        return f"<{int(self)}>"


@case(lambda: (t(3), Meters(3, "a")), lambda: (t(3), Meters(3, "b")), lambda: (t(3), Meters(4, "a")))
def an_int_with_attributes(x, m):
    return x * m, m.note, repr(m), f"{m}", m + 1, m.unit


@case(lambda: (t(3), 3), lambda: (t(3), 4))
def an_int_with_attributes_made_in_the_frame(x, n):
    m = Meters(n, "here")
    return x * m, m.note, repr(m), m


class Tagged(list):
    def __init__(self, items, tag):
        super().__init__(items)
        self.tag = tag

    def __getitem__(self, index):
        return super().__getitem__(index) if index != 99 else self.tag

    def __add__(self, other):
        return Tagged(list(self) + list(other), self.tag)

    def __bool__(self):
        return self.tag != "off"


@case(lambda: (t(3), Tagged([1, 2], "on")), lambda: (t(3), Tagged([1, 2], "off")), lambda: (t(3), Tagged([2], "on")))
def a_list_with_operators(x, items):
    y = x + 1 if items else x - 1
    more = items + [5]
    return y * more[0], more[99], len(more), type(more).__name__


class Defaults(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@case(lambda: (t(3), Defaults(a=1)), lambda: (t(3), Defaults(b=1)), lambda: (t(3), Defaults()))
def a_dict_that_fills_itself(x, d):
    return x * d["a"] + d["c"], d, d.get("zz"), d.b


@case(lambda: (t(3), copy.copy(Config(2))), lambda: (t(3), Config(4, names=["q"])))
def copies_of_records(x, c):
    shallow, deep = copy.copy(c), copy.deepcopy(c)
    shallow.names.append(1)
    deep.names.append(2)
    deep.width += 1
    return x * deep.width, shallow.names is c.names, deep.names, c.names


@case(lambda: (t(3), collections.Counter("abca")), lambda: (t(3), collections.Counter("bb")))
def counters(x, c):
    c.update("ab")
    c.subtract(["a"])
    return x * c["a"], c.most_common(1), +c, (c + c)["b"], sum(c.values()), c["zzz"]


@case(lambda: (t(3), collections.ChainMap({"a": 1}, {"a": 2, "b": 3})), lambda: (t(3), collections.ChainMap({"b": 9})), reuse=Reuse.FREE)
def chained_maps(x, m):
    child = m.new_child({"c": 5})
    m["n"] = 1
    return x * child["b"] + child["c"], "a" in m, list(m.maps[0])


class Box(collections.UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


class Stack(collections.UserList):
    def push(self, item):
        self.append(item)


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def user_dicts_and_lists(x, n):
    b = Box(a=n)
    b["b"] = x
    s = Stack([1])
    s.push(n)
    return b["b"] + b["a"], len(b), s[1], s + [4], list(b)
