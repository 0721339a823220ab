"""Classes: methods of every kind, protocols, operators, dataclasses, named tuples, enums."""

import collections
import enum
import functools
import typing
from dataclasses import dataclass, field, replace

import torch
from capture.cases import Reuse, case, t


class Scale:
    """Methods of every kind around one number."""

    default = 3
    made = 0

    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor

    def __call__(self, x):
        return self.apply(x) + 1

    @property
    def twice(self):
        return self.factor * 2

    @twice.setter
    def twice(self, value):
        self.factor = value / 2

    @classmethod
    def usual(cls):
        return cls(cls.default)

    @staticmethod
    def shifted(x, by=1):
        return x + by


class Louder(Scale):
    default = 10

    def __init__(self, factor, extra=1):
        super().__init__(factor)
        self.extra = extra

    def apply(self, x):
        return super().apply(x) + self.extra


@case(lambda: (t(3), Scale(2)), lambda: (t(3), Scale(4)), lambda: (t(3), Louder(2)))
def method(x, scale):
    return scale.apply(x)


@case(lambda: (t(3), Scale(2)))
def object_that_is_called(x, scale):
    return scale(x)


@case(lambda: (t(3), Scale(2)), lambda: (t(3), Scale(5)))
def property_read(x, scale):
    return x * scale.twice


@case(lambda: (t(3), Scale(2)))
def property_written(x, scale):
    scale.twice = 10
    return x * scale.factor


@case(lambda: (t(3),))
def classmethod_makes_an_object(x):
    return Scale.usual().apply(x) + Louder.usual().apply(x)


@case(lambda: (t(3), Scale(1)))
def staticmethod_both_ways(x, scale):
    return Scale.shifted(x) + scale.shifted(x, by=3)


@case(lambda: (t(3), Louder(2, 5)), lambda: (t(3), Louder(2, 6)))
def super_in_a_method(x, louder):
    return louder.apply(x)


@case(lambda: (t(3),))
def object_made_inside(x):
    return Louder(4, extra=2)(x)


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def object_made_and_returned(x, n):
    scale = Scale(n)
    scale.seen = x + 1
    return scale


@case(lambda: (t(3), Scale(2)))
def bound_method_kept(x, scale):
    f = scale.apply
    return f(x) + f(f(x))


@case(lambda: (t(3), Scale(2)))
def unbound_method(x, scale):
    return Scale.apply(scale, x)


@case(lambda: (t(3), Scale(2)))
def attribute_written(x, scale):
    scale.factor = scale.factor + 1
    scale.last = x * scale.factor
    return scale.last + 1


@case(lambda: (t(3), Scale(2)))
def attribute_deleted(x, scale):
    factor = scale.factor
    del scale.factor
    return x * factor, hasattr(scale, "factor")


@case(lambda: (t(3), Scale(2)))
def missing_attribute_raises(x, scale):
    return x * scale.nothing


@case(lambda: (t(3), Scale(2)))
def class_attribute_through_the_object(x, scale):
    first = scale.default
    scale.default = 7
    return x * first + scale.default + Scale.default


class Left:
    def name(self):
        return ["left"]


class Base:
    def name(self):
        return ["base"]


class A(Base):
    def name(self):
        return ["a"] + super().name()


class B(Base):
    def name(self):
        return ["b"] + super().name()


class Diamond(A, B):
    def name(self):
        return ["diamond"] + super().name()


@case(lambda: (t(3), Diamond()))
def diamond_inheritance(x, diamond):
    names = diamond.name()
    return x + len(names), names, [c.__name__ for c in type(diamond).__mro__]


class Bag:
    """A container by protocol."""

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __setitem__(self, index, value):
        self.items[index] = value

    def __delitem__(self, index):
        del self.items[index]

    def __contains__(self, value):
        return any(value is item for item in self.items)

    def __iter__(self):
        return iter(self.items)

    def __bool__(self):
        return len(self.items) > 1


@case(lambda: (t(3), Bag([1, 2, 3])), lambda: (t(3), Bag([4])))
def getitem_and_len(x, bag):
    return x * bag[0] + len(bag) + bag[-1]


@case(lambda: (t(3), Bag([1, 2, 3])))
def setitem_and_delitem(x, bag):
    bag[0] = x + 1
    del bag[1]
    return bag[0] * bag[1]


@case(lambda: (t(3), Bag([1, 2, 3])), lambda: (t(3), Bag([1])))
def bool_of_an_object(x, bag):
    return x + 1 if bag else x - 1


@case(lambda: (t(3), Bag([1, 2, 3])), lambda: (t(3), Bag([])))
def iteration_over_an_object(x, bag):
    for item in bag:
        x = x * item
    return x, list(bag)


@case(lambda: (t(3),))
def contains_by_protocol(x):
    y = x + 1
    bag = Bag([x, y])
    return (x in bag, y in bag, 3 in bag), x * 2


class Countdown:
    def __init__(self, start):
        self.at = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == 0:
            raise StopIteration
        self.at -= 1
        return self.at


@case(lambda: (t(3), Countdown(3)), lambda: (t(3), Countdown(5)))
def own_iterator(x, countdown):
    for n in countdown:
        x = x + n
    return x


class Vector:
    """Operators, each with an answer of its own."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Vector(self.value + unwrap(other))

    def __radd__(self, other):
        return Vector(unwrap(other) + self.value * 10)

    def __mul__(self, other):
        return Vector(self.value * unwrap(other))

    def __neg__(self):
        return Vector(-self.value)

    def __matmul__(self, other):
        return Vector((self.value * unwrap(other)).sum())

    def __iadd__(self, other):
        self.value = self.value + unwrap(other) + 100
        return self

    def __eq__(self, other):
        return isinstance(other, Vector) and self.value is other.value

    def __hash__(self):
        return 7

    def __lt__(self, other):
        return True

    def __invert__(self):
        return Vector(self.value + 0.5)

    def __getattr__(self, name):
        if name.startswith("plus_"):
            return self.value + int(name.removeprefix("plus_"))
        raise AttributeError(name)


def unwrap(value):
    return value.value if isinstance(value, Vector) else value


@case(lambda: (t(3),))
def operators_of_an_object(x):
    v = Vector(x)
    return (-(v + v * 2) @ v).value, (~v).value


@case(lambda: (t(3),))
def reflected_operator(x):
    return (1 + Vector(x)).value, (Vector(x) + 1).value


@case(lambda: (t(3), t(3)))
def inplace_operator_of_an_object(x, y):
    v = w = Vector(x)
    v += y
    return v.value, w is v


@case(lambda: (t(3),))
def comparison_of_objects(x):
    v, w = Vector(x), Vector(x)
    return v == w, v != w, v < w, v == 3, x + 1


@case(lambda: (t(3),))
def getattr_of_an_object(x):
    return Vector(x).plus_5, hasattr(Vector(x), "minus")


class Recording:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append(name)
        object.__setattr__(self, name, value)


@case(lambda: (t(3), Recording()))
def setattr_of_an_object(x, recording):
    recording.a = x + 1
    recording.b = recording.a * 2
    return recording.b


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@case(lambda: (t(3), Slotted(2)), lambda: (t(3), Slotted(3)))
def slots(x, slotted):
    slotted.b = x * slotted.a
    return slotted.b + 1


@dataclass
class Config:
    width: int
    bias: torch.Tensor = None
    tags: list = field(default_factory=list)

    def grown(self, by):
        return replace(self, width=self.width + by)

    def __post_init__(self):
        self.area = self.width**2


@case(lambda: (t(3), Config(3)), lambda: (t(3), Config(4, t(3))))
def dataclass_read(x, config):
    y = x * config.width + config.area
    return y if config.bias is None else y + config.bias


@case(lambda: (t(3),))
def dataclass_made(x):
    config = Config(2, bias=x + 1, tags=["a"])
    config.tags.append("b")
    return config


@case(lambda: (t(3), Config(2)))
def dataclass_replaced(x, config):
    return x * config.grown(3).width, config == Config(2), config != Config(3)


@dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 2


@case(lambda: (t(3), Frozen(1)), lambda: (t(3), Frozen(5)))
def frozen_dataclass(x, frozen):
    table = {Frozen(1): 10}
    return x * table.get(frozen, 0), frozen < Frozen(3)


@case(lambda: (t(3), Frozen(1)))
def writing_a_frozen_dataclass_raises(x, frozen):
    frozen.a = 5
    return x


Pair = collections.namedtuple("Pair", ["first", "second"], defaults=[7])


class Named(typing.NamedTuple):
    mean: torch.Tensor
    count: int = 1

    def total(self):
        return self.mean * self.count


@case(lambda: (t(3), Pair(t(3), 2)), lambda: (t(3), Pair(t(3))))
def named_tuple_read(x, pair):
    first, second = pair
    return x + pair.first * pair.second + first[0] + second


@case(lambda: (t(3),))
def named_tuple_made(x):
    named = Named(x.mean(), count=3)
    return named, named.total(), named._replace(count=4), named._asdict(), Named._fields


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Bits(enum.IntFlag):
    A = 1
    B = 2


@case(lambda: (t(3), Mode.SUM), lambda: (t(3), Mode.MEAN))
def branch_on_an_enum(x, mode):
    return x.sum() if mode is Mode.SUM else x.mean()


@case(lambda: (t(3), "mean"))
def enum_by_value_and_name(x, name):
    mode = Mode(name)
    return x + len(mode.value), mode.name, Mode["SUM"], [m.value for m in Mode]


@case(lambda: (t(3), Bits.A | Bits.B), lambda: (t(3), Bits.A))
def flags(x, bits):
    return x + int(bits) if Bits.B in bits else x


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_made_inside(x):
    class Local:
        factor = 3

        def apply(self, y):
            return y * self.factor

    return Local().apply(x)


class Lazy:
    def __init__(self):
        self.computed = 0

    @functools.cached_property
    def value(self):
        self.computed += 1
        return 5


@case(lambda: (t(3), Lazy()))
def cached_property(x, lazy):
    return x * lazy.value + lazy.value, lazy.computed


class Positive:
    """A descriptor that keeps its value under another name."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, 1)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name} has to be positive")
        setattr(instance, self.name, value)


class Checked:
    size = Positive()


@case(lambda: (t(3), Checked()))
def descriptor(x, checked):
    before = checked.size
    checked.size = 4
    return x * checked.size + before


@case(lambda: (t(3), Checked()))
def descriptor_that_raises(x, checked):
    checked.size = -1
    return x


class Counted:
    made = 0

    def __new__(cls, *args):
        instance = super().__new__(cls)
        instance.fresh = True
        return instance

    def __init__(self, n=0):
        self.n = n


@case(lambda: (t(3),))
def new_and_init(x):
    counted = Counted(3)
    return x + counted.n, counted.fresh


@case(lambda: (t(3), Scale(2)), lambda: (t(3), Louder(2)))
def type_of_an_object(x, scale):
    if type(scale) is Scale:
        return x + 1
    return x - 1, type(scale).__name__, isinstance(scale, Scale), issubclass(type(scale), Scale)


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tagged = cls.__name__
        return made


class Tagged(metaclass=Meta):
    def __init__(self, n):
        self.n = n


@case(lambda: (t(3),))
def metaclass(x):
    tagged = Tagged(4)
    return x * tagged.n, tagged.tagged


class Generic(typing.Generic[typing.TypeVar("T")]):
    def __init__(self, value):
        self.value = value


@case(lambda: (t(3),))
def generic_class(x):
    return Generic[int](x).value + 1


class Texted:
    def __repr__(self):
        return "Texted()"

    def __str__(self):
        return "texted"

    def __format__(self, spec):
        return f"<{spec}>"


@case(lambda: (t(3), Texted()))
def text_of_an_object(x, texted):
    return x + 1, f"{texted} {texted!r} {texted:spec} {texted!s}"


@case(lambda: (t(3), [Scale(1), Scale(2), Louder(3)]), lambda: (t(3), [Louder(1)]))
def list_of_objects(x, scales):
    for scale in scales:
        x = scale(x)
    return x


class Counter:
    total = 0

    def step(self, x):
        type(self).total += 1
        return x + self.total


@case(lambda: (t(3), Counter()), reuse=Reuse.FREE)
def class_attribute_written(x, counter):
    Counter.total = 0
    return counter.step(counter.step(x)), Counter.total


class Settings:
    def __init__(self, **given):
        self.__dict__.update(given)
        self.made = True


@case(lambda: (t(3), 2), lambda: (t(3), 5))
def members_through_the_dict(x, n):
    settings = Settings(factor=n, shift=1.0)
    settings.__dict__["extra"] = x + n
    known = sorted(name for name in settings.__dict__)
    pairs = {name: value for name, value in settings.__dict__.items() if name != "extra"}
    return settings.extra * settings.factor, known, pairs, settings.__dict__.get("missing", n), len(settings.__dict__)


@case(lambda: (t(3),))
def members_that_are_returned(x):
    settings = Settings(factor=3)
    members = settings.__dict__
    settings.late = x * 2
    return members, settings.factor


class Remembering:
    def __init__(self, width):
        self.width = width

    @functools.lru_cache(maxsize=4)
    def mask(self, length):
        return torch.ones(length, self.width).tril()


REMEMBERING = Remembering(3)


@case(lambda: (t(3, 3),))
def method_that_keeps_its_results(x):
    return x * REMEMBERING.mask(3) + REMEMBERING.mask(x.shape[0]).sum()


@dataclass
class Record(collections.OrderedDict):
    first: torch.Tensor = None
    second: torch.Tensor = None
    third: tuple = None

    def __post_init__(self):
        for name in ("first", "second", "third"):
            value = getattr(self, name)
            if value is not None:
                self[name] = value

    def __getitem__(self, key):
        if isinstance(key, str):
            return dict(self.items())[key]
        return self.to_tuple()[key]

    def to_tuple(self):
        return tuple(self[name] for name in self.keys())


@case(lambda: (Record(t(3), None, (t(2),)),), lambda: (Record(t(3), t(3)),), lambda: (Record(t(3), t(3), (t(2),)),))
def record_of_the_caller(record):
    y = record.first * 2
    if record.second is not None:
        y = y + record["second"]
    return y, len(record), record[0] is record.first, list(record.keys()), "third" in record
