"""Classes derived from containers and numbers, objects made by `__new__`, iterators of the user's."""

import collections
import dataclasses
import enum
import typing

import torch
from capture.cases import Reuse, case, t


class Stack(list):
    def push(self, item):
        self.append(item)
        return self

    def peek(self):
        return self[-1]


class Doubled(list):
    def __getitem__(self, index):
        return super().__getitem__(index) * 2


class Defaults(dict):
    def __missing__(self, key):
        return len(key)


class Upper(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)

    def __getitem__(self, key):
        return super().__getitem__(key.upper())


class Named(dict):
    __getattr__ = dict.get

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self["made"] = True


class Tags(set):
    def add_all(self, *names):
        for name in names:
            self.add(name)


class Frozen(frozenset):
    def first(self):
        return min(self)


class Pair(tuple):
    def swapped(self):
        return Pair((self[1], self[0]))


class Triple(tuple):
    def __new__(cls, a, b, c):
        return super().__new__(cls, (a, b, c))

    @property
    def middle(self):
        return self[1]


class Meters(float):
    def doubled(self):
        return Meters(self * 2)


class Level(int):
    def next(self):
        return Level(self + 1)


class Label(str):
    def shout(self):
        return self.upper() + "!"


class Point(typing.NamedTuple):
    x: object
    y: object = 2

    def total(self):
        return self.x + self.y


class Counting:
    made = 0

    def __new__(cls, *args):
        made = super().__new__(cls)
        made.tag = len(args)
        return made

    def __init__(self, *args):
        self.args = args


class Interned:
    _known: typing.ClassVar = {}

    def __new__(cls, name):
        if name not in cls._known:
            cls._known[name] = super().__new__(cls)
            cls._known[name].name = name
        return cls._known[name]


class Rows:
    def __init__(self, x):
        self.x, self.place = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.place >= self.x.shape[0]:
            raise StopIteration
        self.place += 1
        return self.x[self.place - 1]


class Spread:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from self.items

    def __len__(self):
        return len(self.items)

    def __contains__(self, item):
        return item in self.items

    def __reversed__(self):
        return iter(self.items[::-1])


class Indexed:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError(index)
        return index * 10


class Order(collections.OrderedDict):
    def last_key(self):
        return next(reversed(self))


class Bag(collections.defaultdict):
    def total(self):
        return sum(self.values())


class History(collections.deque):
    def latest(self):
        return self[-1]


class Config(collections.UserDict):
    def width(self):
        return self["width"]


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


class Flags(enum.Flag):
    A = 1
    B = 2


@case(lambda: (t(3),))
def list_subclass(x):
    stack = Stack([x])
    stack.push(x + 1).push(x * 2)
    return stack.peek() - stack[0], len(stack)


@case(lambda: (t(3), Stack([1, 2])), lambda: (t(3), Stack([1, 2, 3])))
def list_subclass_from_outside(x, stack):
    stack.push(4)
    return x * stack.peek() + len(stack)


@case(lambda: (t(3),))
def list_subclass_with_getitem(x):
    items = Doubled([1, 2, 3])
    return x * items[1] + len(items)


@case(lambda: (t(3), Doubled([1, 2])))
def list_subclass_with_getitem_from_outside(x, items):
    return x * items[1] + sum(items)


@case(lambda: (t(3),))
def list_subclass_returned(x):
    stack = Stack()
    stack.push(x.sin())
    return stack


@case(lambda: (t(3),))
def list_subclass_with_attribute(x):
    stack = Stack([1])
    stack.name = "s"
    return x + len(stack.name)


@case(lambda: (t(3),))
def dict_subclass_missing(x):
    d = Defaults(a=1)
    return x * d["abc"] + d["a"]


@case(lambda: (t(3), Defaults(a=2)))
def dict_subclass_missing_from_outside(x, d):
    return x * d["abcd"] + d["a"]


@case(lambda: (t(3),))
def dict_subclass_with_setitem(x):
    d = Upper()
    d["a"] = x + 1
    return d["a"] * len(d), list(d)


@case(lambda: (t(3), Upper(A=2)))
def dict_subclass_with_getitem_from_outside(x, d):
    return x * d["a"]


@case(lambda: (t(3),))
def dict_subclass_with_getattr(x):
    d = Named(scale=3)
    return x * d.scale, d.made, d.absent


@case(lambda: (t(3),))
def set_subclass(x):
    tags = Tags({"a"})
    tags.add_all("b", "c")
    return x * len(tags), "b" in tags


@case(lambda: (t(3), Tags({1, 2})))
def set_subclass_from_outside(x, tags):
    tags.add(5)
    return x * len(tags)


@case(lambda: (t(3),))
def frozenset_subclass(x):
    return x * Frozen({3, 1, 2}).first()


@case(lambda: (t(3),))
def tuple_subclass(x):
    pair = Pair((x, x + 1))
    first, second = pair.swapped()
    return first - second * 2


@case(lambda: (t(3), Pair((1, 2))), lambda: (t(3), Pair((3, 2))))
def tuple_subclass_from_outside(x, pair):
    return x * pair[0] + pair.swapped()[0]


@case(lambda: (t(3),))
def tuple_subclass_with_new(x):
    three = Triple(x, x + 1, 3)
    return three.middle * three[2], len(three)


@case(lambda: (t(3), Triple(1, 2, 3)))
def tuple_subclass_with_new_from_outside(x, three):
    a, _, c = three
    return x * three.middle + a + c


@case(lambda: (t(3),))
def float_subclass(x):
    return x * Meters(1.5).doubled()


@case(lambda: (t(3), Meters(2.0)), lambda: (t(3), Meters(3.0)))
def float_subclass_from_outside(x, m):
    return x * m.doubled() + m


@case(lambda: (t(3), Level(2)), lambda: (t(3), Level(3)))
def int_subclass_from_outside(x, level):
    return x * level.next() + level


@case(lambda: (t(3), Label("ab")), lambda: (t(3), Label("abc")))
def str_subclass_from_outside(x, label):
    return x + len(label.shout()), label.shout()


@case(lambda: (t(3),))
def named_tuple_class(x):
    p = Point(x)
    q = p._replace(y=x + 1)
    return p.total() + q.total(), q._asdict()["y"], Point._fields


@case(lambda: (t(3), Point(1, 2)))
def named_tuple_unpacked(x, p):
    a, b = p
    return x * a + b, p.total(), isinstance(p, tuple), p == (1, 2)


@case(lambda: (t(3),))
def named_tuple_made(x):
    p = Point._make([x, 3])
    return p.x * p.y, p.index(3), p[1:]


@case(lambda: (t(3),))
def object_with_new(x):
    c = Counting(1, 2)
    return x * c.tag + len(c.args)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def object_interned_by_new(x):
    return x + len(Interned("ab").name), Interned("ab") is Interned("ab")


@case(lambda: (t(3, 2),))
def iterator_of_the_user(x):
    total = 0
    for row in Rows(x):
        total = total + row
    return total


@case(lambda: (t(3, 2),))
def iterator_of_the_user_by_functions(x):
    rows = Rows(x)
    first = next(rows)
    rest = list(rows)
    return first + len(rest), next(rows, None)


@case(lambda: (t(3),))
def iterable_protocols(x):
    s = Spread([1, 2, 3])
    a, *rest = s
    return x * a + sum(rest) + len(s), 2 in s, list(reversed(s)), [*s], max(s), sorted(s, reverse=True)


@case(lambda: (t(3), Spread([1, 2])))
def iterable_from_outside(x, s):
    for item in s:
        x = x * item
    return x, bool(s)


@case(lambda: (t(3),))
def sequence_protocol(x):
    return x + sum(Indexed()), list(Indexed()), 20 in Indexed()


@case(lambda: (t(3),))
def ordered_subclass(x):
    d = Order(a=1, b=2)
    d.move_to_end("a")
    return x * d[d.last_key()], list(d)


@case(lambda: (t(3), Order(a=1, b=2)))
def ordered_subclass_from_outside(x, d):
    d["c"] = 3
    return x * d[d.last_key()]


@case(lambda: (t(3),))
def defaultdict_subclass(x):
    bag = Bag(int)
    bag["a"] += 2
    bag["b"] += 3
    return x * bag.total()


@case(lambda: (t(3),))
def deque_subclass(x):
    h = History([1, 2], maxlen=2)
    h.append(5)
    return x * h.latest() + len(h)


@case(lambda: (t(3),))
def user_dict(x):
    c = Config({"width": 2})
    c["height"] = 3
    return x * c.width() + c["height"], "width" in c, len(c)


@case(lambda: (t(3), Config(width=3)))
def user_dict_from_outside(x, c):
    return x * c.width(), dict(c)


@case(lambda: (t(3), Colour.RED), lambda: (t(3), Colour.BLUE))
def int_enum(x, colour):
    return x * colour + Colour.BLUE.value, colour.name, colour is Colour.RED, colour < 2


@case(lambda: (t(3),))
def flag_enum(x):
    both = Flags.A | Flags.B
    return x * len(Flags), Flags.A in both, both.value, list(Colour), Colour["RED"], Colour(2)


@dataclasses.dataclass
class Settings:
    width: int
    depth: int = 2
    names: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.size = self.width * self.depth


@dataclasses.dataclass(frozen=True)
class Fixed:
    a: int
    b: object = None


@dataclasses.dataclass(order=True)
class Ranked:
    rank: int
    name: str = "n"


@dataclasses.dataclass
class Wide(Settings):
    extra: object = None


@case(lambda: (t(3),))
def dataclass_made(x):
    s = Settings(3)
    s.names.append("a")
    return x * s.size + len(s.names), s == Settings(3, 2, ["a"])


@case(lambda: (t(3), Settings(3)), lambda: (t(3), Settings(4)))
def dataclass_from_outside(x, s):
    s.depth += 1
    return x * s.size + s.depth, dataclasses.asdict(s), dataclasses.replace(s, width=5).size


@case(lambda: (t(3),))
def dataclass_frozen(x):
    f = Fixed(2, x)
    try:
        f.a = 3
    except dataclasses.FrozenInstanceError:
        x = x + 1
    return f.b * f.a + x


@case(lambda: (t(3), Fixed(1)))
def dataclass_frozen_as_key(x, f):
    table = {f: 3}
    return x * table[Fixed(1)]


@case(lambda: (t(3),))
def dataclass_ordered(x):
    ranks = sorted([Ranked(3), Ranked(1), Ranked(2)])
    return x * ranks[0].rank, Ranked(1) < Ranked(2), repr(ranks[1])


@case(lambda: (t(3),))
def dataclass_inherited(x):
    w = Wide(2, extra=x)
    return w.extra * w.size, [f.name for f in dataclasses.fields(w)], dataclasses.astuple(Fixed(1, 2))


@case(lambda: (t(3),))
def container_subclasses_are_instances(x):
    flags = [isinstance(Stack(), list), isinstance(Defaults(), dict), isinstance(Pair((1, 2)), tuple), issubclass(Stack, list)]
    return x * sum(flags), type(Stack()).__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def named_tuple_of_collections(x):
    P = collections.namedtuple("P", ["a", "b"])
    p = P(x, 2)
    return p.a * p.b


@case(lambda: (t(3), torch.Size([2, 3])))
def torch_size(x, size):
    return x * size.numel() + size[0] + len(size), size + (1,), tuple(size)
