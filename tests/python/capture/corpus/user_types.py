"""Classes of the user's that behave like values: numbers, texts, containers, iterators, with methods and constructors of their own."""

import abc
import collections
import dataclasses
import enum
import functools
import types
import typing

import torch
from capture.cases import Reuse, case, t


class Scale(int):
    def grown(self):
        return Scale(self + 1)


class Ratio(float):
    unit = "m"

    def half(self):
        return self / 2


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Triple(tuple):
    def __new__(cls, first, second, third):
        return super().__new__(cls, (first, second, third))

    @property
    def middle(self):
        return self[1]


class Names(frozenset):
    def longest(self):
        return max(self, key=len)


class Recent(collections.deque):
    def newest(self):
        return self[-1]


class Bag(set):
    def put(self, *items):
        for item in items:
            self.add(item)
        return self


@case(lambda: (t(3), Scale(2)), lambda: (t(3), Scale(5)))
def int_subclass(x, scale):
    return x * scale + scale.grown()


@case(lambda: (t(3), Scale(2)))
def int_subclass_in_arithmetic(x, scale):
    y = scale * 3
    return x + y, type(y) is int, isinstance(scale, int), scale == 2, hash(scale) == hash(2)


@case(lambda: (t(3),))
def int_subclass_made(x):
    scale = Scale(3)
    return x * scale, scale.grown() + 1


@case(lambda: (t(3), Ratio(0.5)), lambda: (t(3), Ratio(1.5)))
def float_subclass(x, ratio):
    return x * ratio.half() + (1 if ratio.unit == "m" else 0)


@case(lambda: (t(3), Name("abc")))
def str_subclass(x, name):
    return {name.shout(): x, name: x + len(name)}[name]


@case(lambda: (t(3),))
def str_subclass_made(x):
    name = Name("q")
    return x + len(name.shout()), name + "r", f"{name}s"


@case(lambda: (t(3), t(3)))
def tuple_subclass_made(x, y):
    made = Triple(x, y, 3)
    return made.middle * made[2], len(made), isinstance(made, tuple)


@case(lambda: (Triple(t(3), t(3), 2),))
def tuple_subclass_from_outside(made):
    first, second, third = made
    return first + second * third + made.middle


@case(lambda: (t(3), t(3)))
def tuple_subclass_returned(x, y):
    return Triple(x + 1, y, 3)


@case(lambda: (t(3), Names(["a", "bcd"])))
def frozenset_subclass(x, names):
    return x + len(names.longest()) + ("a" in names)


@case(lambda: (t(3),))
def deque_subclass_made(x):
    recent = Recent([x], maxlen=2)
    recent.append(x + 1)
    recent.append(x + 2)
    return recent.newest() + len(recent)


@case(lambda: (t(3),))
def set_subclass_made(x):
    bag = Bag().put(1, 2, 2)
    return x + len(bag), 1 in bag


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.built = True
        return made

    @property
    def label(cls):
        return cls.__name__.lower()

    def __contains__(cls, item):
        return item == 3

    def __len__(cls):
        return 4


class Built(metaclass=Meta):
    def __init__(self, x):
        self.x = x


@case(lambda: (t(3),))
def metaclass_call(x):
    made = Built(x)
    return made.x + made.built


@case(lambda: (t(3),))
def metaclass_property(x):
    return x + len(Built.label), 3 in Built, len(Built)


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


@case(lambda: (t(3),))
def user_iterator(x):
    for n in Countdown(3):
        x = x + n
    return x


@case(lambda: (t(3), Countdown(4)))
def user_iterator_from_outside(x, numbers):
    return x + next(numbers) + sum(numbers)


@case(lambda: (t(3),))
def user_iterator_unpacked(x):
    a, b, c = Countdown(3)
    return x * a + b + c, list(zip(Countdown(2), "ab")), [*Countdown(2)], dict(enumerate(Countdown(2)))


@case(lambda: (t(3),))
def user_iterator_in_functions(x):
    return x + max(Countdown(4)) + min(Countdown(4)) + sorted(Countdown(3))[0] + any(Countdown(1)), tuple(map(lambda n: n + 1, Countdown(2)))


class Lazily:
    def __init__(self, **known):
        self.__dict__["known"] = known

    def __getattr__(self, name):
        try:
            return self.known[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self.known[name] = value

    def __delattr__(self, name):
        del self.known[name]


@case(lambda: (t(3),))
def getattr_and_setattr(x):
    held = Lazily(a=2)
    held.b = x
    y = held.b * held.a
    del held.a
    return y, hasattr(held, "a"), getattr(held, "c", 4)


@case(lambda: (t(3), Lazily(a=2)), lambda: (t(3), Lazily(a=2, c=3)))
def getattr_from_outside(x, held):
    held.b = x + 1
    return x * held.a + getattr(held, "c", 1)


class Counting:
    def __init__(self):
        object.__setattr__(self, "reads", 0)
        self.value = 3

    def __getattribute__(self, name):
        if name == "value":
            object.__setattr__(self, "reads", object.__getattribute__(self, "reads") + 1)
        return object.__getattribute__(self, name)


@case(lambda: (t(3),))
def getattribute(x):
    held = Counting()
    y = x * held.value + held.value
    return y, held.reads


@case(lambda: (t(3), Counting()))
def getattribute_from_outside(x, held):
    return x * held.value, held.reads


class Checked:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, held, owner=None):
        return self if held is None else getattr(held, self.name)

    def __set__(self, held, value):
        if value < 0:
            raise ValueError("negative")
        setattr(held, self.name, value)


class Sized:
    width = Checked()

    def __init__(self, width):
        self.width = width


@case(lambda: (t(3),))
def descriptor_with_a_name(x):
    sized = Sized(3)
    sized.width = sized.width + 1
    try:
        sized.width = -1
    except ValueError as error:
        x = x + len(str(error))
    return x * sized.width


@case(lambda: (t(3), Sized(2)), lambda: (t(3), Sized(4)))
def descriptor_from_outside(x, sized):
    return x * sized.width


class Temperature:
    def __init__(self, celsius):
        self._celsius = celsius

    @property
    def celsius(self):
        return self._celsius

    @celsius.setter
    def celsius(self, value):
        self._celsius = value

    @celsius.deleter
    def celsius(self):
        self._celsius = 0

    @functools.cached_property
    def fahrenheit(self):
        return self._celsius * 9 / 5 + 32


@case(lambda: (t(3), Temperature(10)), lambda: (t(3), Temperature(20)))
def properties(x, held):
    y = x + held.celsius
    held.celsius = 3
    y = y * held.celsius
    del held.celsius
    return y + held.celsius


@case(lambda: (t(3), Temperature(10.0)))
def cached_property_from_outside(x, held):
    return x + held.fahrenheit + held.fahrenheit


class Interned:
    made = {}

    def __new__(cls, name):
        if name not in cls.made:
            cls.made[name] = super().__new__(cls)
        return cls.made[name]

    def __init__(self, name):
        self.name = name


@case(lambda: (t(3),), reuse=Reuse.FREE)
def new_with_arguments(x):
    class Holder:
        def __new__(cls, x, by=2):
            made = object.__new__(cls)
            made.x = x * by
            return made

        def __init__(self, x, by=2):
            self.y = x + by

    held = Holder(x, by=3)
    return held.x + held.y


class Other:
    def __new__(cls, x):
        return x * 2


@case(lambda: (t(3),))
def new_of_something_else(x):
    return Other(x)


@dataclasses.dataclass
class Options:
    scale: int = 2
    names: list = dataclasses.field(default_factory=list)
    shift: float = dataclasses.field(default=0.5, repr=False)
    total: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.total = self.scale + self.shift


@dataclasses.dataclass(frozen=True)
class Fixed:
    x: torch.Tensor
    by: int = 2

    def grown(self):
        return dataclasses.replace(self, by=self.by + 1)


@dataclasses.dataclass(slots=True)
class Slim:
    x: torch.Tensor
    n: int = 1


@dataclasses.dataclass(order=True)
class Ranked:
    rank: int
    name: str = dataclasses.field(compare=False, default="")


@case(lambda: (t(3), Options()), lambda: (t(3), Options(scale=5)))
def dataclass_from_outside(x, options):
    options.names.append("q")
    return x * options.scale + options.total


@case(lambda: (t(3),))
def dataclass_made(x):
    options = Options(scale=3)
    options.names.append(x)
    return x * options.total, [f.name for f in dataclasses.fields(options)], repr(Options(names=[1]))


@case(lambda: (t(3),))
def dataclass_frozen_made(x):
    held = Fixed(x).grown()
    try:
        held.by = 9
    except dataclasses.FrozenInstanceError:
        x = x + 1
    return held.x * held.by + x


@case(lambda: (t(3),))
def dataclass_as_dict(x):
    held = Options(scale=4)
    found = dataclasses.asdict(held)
    return x * found["scale"] + len(dataclasses.astuple(held)), dataclasses.is_dataclass(held)


@case(lambda: (t(3),))
def dataclass_with_slots(x):
    held = Slim(x)
    held.n += 2
    return held.x * held.n


@case(lambda: (t(3),))
def dataclass_ordered(x):
    best = max(Ranked(2, "b"), Ranked(3, "a"), Ranked(1, "c"))
    return x + best.rank, sorted([Ranked(2), Ranked(1)])[0].rank, Ranked(1, "p") == Ranked(1, "q")


@case(lambda: (Fixed(t(3)),), lambda: (Fixed(t(3), 4),))
def dataclass_frozen_from_outside(held):
    return held.x * held.by


@case(lambda: (t(3),))
def dataclass_returned(x):
    return Slim(x + 1, 4), Options(scale=2)


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def pretty(self):
        return self.name.title()

    @classmethod
    def default(cls):
        return cls.GREEN


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Mode(str, enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()


@case(lambda: (t(3), Color.RED), lambda: (t(3), Color.GREEN))
def enum_from_outside(x, color):
    if color is Color.RED:
        return x + len(color.pretty)
    return x * color.value + len(color.name)


@case(lambda: (t(3),))
def enum_functions(x):
    total = sum(c.value for c in Color)
    return x + total + Color.default().value, Color(2) is Color.GREEN, Color["RED"].name, len(Color), Color.RED in {Color.RED: 1}


@case(lambda: (t(3), Level.HIGH))
def int_enum(x, level):
    return x * level + (1 if level > Level.LOW else 0)


@case(lambda: (t(3), Mode.SUM), lambda: (t(3), Mode.MEAN))
def str_enum(x, mode):
    return x.sum() if mode == "sum" else x.mean()


@case(lambda: (t(3), Perm.R), lambda: (t(3), Perm.R | Perm.W))
def flag_enum(x, perm):
    return x + 1 if Perm.W in perm else x - 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def named_tuple_made_inside(x):
    Point = collections.namedtuple("Point", ["x", "y"])
    point = Point(x, x + 1)
    return point.x + point.y, len(point._fields)


class Pair(typing.NamedTuple):
    left: torch.Tensor
    right: int = 2

    def total(self):
        return self.left + self.right


@case(lambda: (t(3),))
def named_tuple_class(x):
    pair = Pair(x)
    pair = pair._replace(right=5)
    return pair.total(), pair._asdict()["right"], pair


@case(lambda: (Pair(t(3)),), lambda: (Pair(t(3), 4),))
def named_tuple_class_from_outside(pair):
    left, right = pair
    return pair.total() * right + left


class Base(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def doubled(self):
        return self.area() * 2


class Square(Base):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


@case(lambda: (t(3),))
def abstract_class(x):
    try:
        Base()
    except TypeError:
        x = x + 1
    return Square(x).doubled()


class Stack(typing.Generic[typing.TypeVar("T")]):
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self


@case(lambda: (t(3),))
def generic_class(x):
    stack = Stack[int]().push(x).push(x + 1)
    return sum(stack.items)


class Registered:
    known = []

    def __init_subclass__(cls, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag


class Tagged(Registered, tag=4):
    pass


@case(lambda: (t(3),))
def init_subclass(x):
    return x + Tagged.tag


class Indexed:
    def __init__(self, items):
        self.items = items

    def __getitem__(self, index):
        if isinstance(index, slice):
            return Indexed(self.items[index])
        return self.items[index]

    def __setitem__(self, index, value):
        self.items[index] = value

    def __delitem__(self, index):
        del self.items[index]

    def __len__(self):
        return len(self.items)

    def __contains__(self, item):
        return any(item is held for held in self.items)

    def __reversed__(self):
        return iter(self.items[::-1])

    def __missing__(self, key):
        return key


@case(lambda: (t(3), t(3)))
def sequence_of_the_user(x, y):
    held = Indexed([x, y])
    held[0] = x + 1
    held[1:2]
    del held[1]
    return held[0] * len(held), x in held, [n + 1 for n in held], list(reversed(held))


@case(lambda: (Indexed([t(3), t(3)]),))
def sequence_of_the_user_from_outside(held):
    total = 0
    for item in held:
        total = total + item
    held[0] = total
    return total * len(held)


class Vector:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x is other.x

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return True

    def __bool__(self):
        return False

    def __int__(self):
        return 3

    def __index__(self):
        return 2

    def __float__(self):
        return 1.5

    def __round__(self, digits=0):
        return 7

    def __format__(self, spec):
        return f"<{spec}>"

    def __str__(self):
        return "vector"

    def __hash__(self):
        return 5

    def __call__(self, *args, **kwargs):
        return self.x * len(args) + len(kwargs)


@case(lambda: (t(3),))
def special_methods(x):
    v, w = Vector(x), Vector(x)
    return v == w, v != w, v < w, bool(v), int(v), [1, 2, 3][v], float(v), round(v), f"{v:q}", str(v), hash(v), v(1, 2, a=3)


@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@case(lambda: (t(3),))
def total_ordering(x):
    return x + (Version(2) >= Version(1)) + (Version(1) > Version(3)), sorted([Version(2), Version(1)])[0].n


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_made_with_type(x):
    made = type("Made", (Square,), {"by": 3, "scaled": lambda self: self.area() * self.by})
    return made(x).scaled(), made.__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_set_inside(x):
    class Local:
        n = 1

    Local.n = 3
    Local.m = x
    return x * Local.n + Local().m


class Shared:
    count = 0
    items = []


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_attribute_of_outside_set(x):
    before = Shared.count
    Shared.count = before + 1
    Shared.count = before
    return x + Shared.count


class Chain:
    def __init__(self, x):
        self.x = x

    def add(self, n):
        self.x = self.x + n
        return self

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.x = self.x * 2


@case(lambda: (t(3),))
def methods_chained(x):
    with Chain(x).add(1).add(2) as chain:
        chain.add(3)
    return chain.x


@case(lambda: (t(3),))
def method_replaced_on_the_object(x):
    chain = Chain(x)
    chain.add = lambda n: n * 3
    return chain.add(x), types.MethodType(lambda self, n: self.x - n, chain)(1)


@case(lambda: (t(3),))
def dunder_dict_written(x):
    chain = Chain(x)
    chain.__dict__["y"] = x + 1
    chain.__dict__.update(z=3)
    return chain.y * chain.z, sorted(vars(chain))


class Mixin:
    def describe(self):
        return f"{type(self).__name__}:{super().describe()}"


class Root:
    def describe(self):
        return "root"


class Leaf(Mixin, Root):
    pass


@case(lambda: (t(3),))
def cooperative_super(x):
    return x + len(Leaf().describe()), Leaf.__mro__[1].__name__, Leaf.mro()[-1] is object


@case(lambda: (t(3),))
def isinstance_of_unions(x):
    return x + isinstance(3, int | str) + isinstance("a", (int, (str, float))), issubclass(bool, int), isinstance(x, torch.Tensor | None)
