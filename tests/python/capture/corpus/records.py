"""Records: named tuples, data classes, enumerations, slots, and the classes that make them."""

import collections
import copy
import dataclasses
import enum
import functools
import types
import typing

import torch
from capture.cases import case, t

Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[2])


class Point(typing.NamedTuple):
    x: torch.Tensor
    y: int = 3

    def scaled(self, by):
        return self._replace(x=self.x * by)


@dataclasses.dataclass
class Settings:
    rate: float = 0.5
    names: list = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=1, repr=False, compare=False)

    def __post_init__(self):
        self.doubled = self.rate * 2


@dataclasses.dataclass(frozen=True)
class Fixed:
    weight: torch.Tensor
    power: int = 2


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int = 0


@dataclasses.dataclass(slots=True)
class Slotted:
    value: torch.Tensor
    count: int = 0


@dataclasses.dataclass(kw_only=True)
class Named:
    a: int
    b: int = 7


@dataclasses.dataclass
class Base:
    width: int = 4
    start: dataclasses.InitVar[int] = 2
    seen: typing.ClassVar[int] = 9

    def __post_init__(self, start):
        self.sum = self.width + start


@dataclasses.dataclass
class Derived(Base):
    depth: int = 1


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3

    def next(self):
        return Color(self.value % 3 + 1)

    @property
    def weight(self):
        return self.value * 10


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Flag(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = A | B


class Word(str, enum.Enum):
    ADD = "add"
    MUL = "mul"


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Counting(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.made_by = cls.__name__
        return made


class Made(metaclass=Counting):
    def __init__(self, n):
        self.n = n


class Registered:
    known: typing.ClassVar[dict] = {}

    def __init_subclass__(cls, *, key=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.key = key
        Registered.known[key] = cls

    def apply(self, x):
        return x + len(self.key)


class Adder(Registered, key="adder"):
    pass


class Multiplier(Registered, key="mul"):
    def apply(self, x):
        return super().apply(x) * 2


@case(lambda: (t(3),))
def a_named_tuple_made_in_the_frame(x):
    Local = collections.namedtuple("Local", "a b")
    made = Local(x + 1, 2)
    return made.a * made.b


@case(lambda: (t(3),))
def the_methods_of_a_named_tuple(x):
    pair = Pair(x)
    other = pair._replace(left=x + 1)
    return other._asdict()["left"] + pair.right, Pair._fields, Pair._make([x, 1]).right, pair._field_defaults


@case(lambda: (t(3),))
def a_typed_named_tuple(x):
    point = Point(x).scaled(2)
    x, y = point
    return x * y, point[0] + point.y, isinstance(point, tuple), len(point)


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25))
def a_data_class_made_and_returned(x, rate):
    made = Settings(rate, ["a"])
    made.names.append("b")
    return x * made.doubled, made


@case(lambda: (t(3),))
def fields_of_a_data_class(x):
    made = Settings()
    total = 0
    for field in dataclasses.fields(made):
        if field.name != "names":
            total = total + getattr(made, field.name)
    return x + total, dataclasses.is_dataclass(made), dataclasses.is_dataclass(Settings)


@case(lambda: (t(3),))
def a_data_class_replaced(x):
    first = Fixed(x)
    second = dataclasses.replace(first, power=3)
    return second.weight**second.power, second


@case(lambda: (t(3),))
def a_frozen_data_class_refuses(x):
    made = Fixed(x)
    try:
        made.power = 3
    except dataclasses.FrozenInstanceError as error:
        return x + 1, str(error)
    return x


@case(lambda: (t(3),))
def a_data_class_as_a_dict(x):
    made = Fixed(x)
    held = dataclasses.asdict(Version(1, 2))
    return made.weight + held["major"], dataclasses.astuple(Version(3)), list(held)


@case(lambda: (t(3), Version(1, 2)), lambda: (t(3), Version(3, 0)))
def data_classes_compared(x, version):
    if version > Version(2, 0):
        return x + 1
    return x - 1, version == Version(1, 2), version <= Version(1, 2)


@case(lambda: (Slotted(t(3)),))
def a_data_class_with_slots(made):
    made.count += 1
    made.value = made.value * 2
    return made.value + made.count


@case(lambda: (t(3),))
def keyword_only_fields(x):
    made = Named(a=3)
    return x * made.a + made.b, made


@case(lambda: (t(3),))
def a_derived_data_class(x):
    made = Derived(3, depth=2)
    return x * made.sum + made.depth, made.seen, made


@case(lambda: (t(3),))
def a_data_class_that_is_hashed(x):
    @functools.lru_cache
    def power(version):
        return version

    table = {Color.RED: 1, Word.ADD: 2}
    return x + table[Color.RED] + table["add"]


@case(lambda: (t(3), Color.RED), lambda: (t(3), Color.BLUE))
def an_enumeration_as_an_argument(x, color):
    if color is Color.RED:
        x = x + 1
    return x * color.weight, color.next(), color.name


@case(lambda: (t(3),))
def members_of_an_enumeration(x):
    total = 0
    for color in Color:
        total += color.value
    return x + total, Color["GREEN"], Color(3), len(Color), list(Color.__members__), Color.RED in Color


@case(lambda: (t(3), Level.LOW), lambda: (t(3), Level.HIGH))
def integer_enumerations(x, level):
    if level > Level.LOW:
        x = x * 2
    return x + level, level + 1, x[: level.value]


@case(lambda: (t(3), Flag.A | Flag.B), lambda: (t(3), Flag.A))
def flags(x, flag):
    if Flag.B in flag:
        x = x + 1
    return x * (flag & Flag.A).value, flag | Flag.B, bool(flag & Flag.B)


@case(lambda: (t(3), Word.ADD), lambda: (t(3), Word.MUL))
def texts_that_are_enumerations(x, word):
    if word == "add":
        return x + 2
    return x * 2, word.upper(), word.value


@case(lambda: (t(3),))
def slots_of_a_plain_class(x):
    made = Slots(x)
    had = hasattr(made, "b")
    made.b = 2
    del made.a
    try:
        made.c = 1
    except AttributeError:
        made.b = 3
    return x * made.b, had, hasattr(made, "a")


@case(lambda: (t(3),))
def a_metaclass_that_makes(x):
    made = Made(4)
    return x * made.n, made.made_by


@case(lambda: (t(3),))
def subclasses_that_register(x):
    y = Registered.known["mul"]().apply(x)
    return y + Adder().apply(x), Multiplier.key


@case(lambda: (t(3),))
def a_simple_namespace(x):
    held = types.SimpleNamespace(a=1, x=x)
    held.b = held.a + 2
    return held.x * held.b, vars(held)["a"], held


@case(lambda: (t(3),))
def copies_of_records(x):
    made = Settings(names=["a"])
    shallow, deep = copy.copy(made), copy.deepcopy(made)
    shallow.names.append("b")
    return x + len(made.names) * 10 + len(deep.names), copy.copy(Pair(1)), copy.deepcopy([made, made])


@case(lambda: (t(3), [t(2), {"a": t(2)}]))
def a_deep_copy_of_tensors(x, items):
    made = copy.deepcopy(items)
    made[0].add_(1)
    made[1]["b"] = x
    return made, items


@case(lambda: (t(3),))
def typing_objects(x):
    kind = typing.Optional[int]
    listed: list[int] = [1, 2]
    if typing.get_origin(typing.List[int]) is list:
        x = x + len(listed)
    return x * len(typing.get_args(typing.Union[int, str])), typing.cast(int, 3), kind is not None


@case(lambda: (t(3),))
def a_class_made_by_type(x):
    Local = type("Local", (Registered,), {"n": 3}, key="local") if False else None
    return x + (0 if Local is None else Local.n)


@case(lambda: (t(3), Slots(2)), lambda: (t(3), Slots(5)))
def slots_from_outside(x, held):
    held.b = x * held.a
    held.a += 1
    return held.b + held.a
