"""Classes of the user's in detail: descriptors, metaclasses, slots, attribute hooks, super, data classes, enumerations, patterns."""

import collections
import dataclasses
import enum
import typing

import torch
from capture.cases import Reuse, case, t
from torch import nn


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(f"{self.name} is negative")
        setattr(instance, self.name, value)

    def __delete__(self, instance):
        delattr(instance, self.name)


class Account:
    balance = Positive()

    def __init__(self, balance):
        self.balance = balance


@case(lambda: (t(3), Account(5)))
def a_descriptor_read_and_set(x, account):
    account.balance = account.balance + 2
    return x * account.balance


@case(lambda: (t(3), Account(5)))
def a_descriptor_that_refuses(x, account):
    try:
        account.balance = -1
    except ValueError as error:
        return x + account.balance, str(error)


@case(lambda: (t(3), Account(5)))
def a_descriptor_deleted(x, account):
    del account.balance
    return x + 1, hasattr(account, "balance"), vars(account)


class Meta(type):
    registry = {}

    def __new__(mcs, name, bases, space, **options):
        made = super().__new__(mcs, name, bases, space)
        made.tag = name.lower()
        return made

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.made_by = "meta"
        return made

    def __len__(cls):
        return 7

    def __getitem__(cls, key):
        return f"{cls.__name__}[{key}]"

    def __contains__(cls, key):
        return key == "inside"

    def __iter__(cls):
        return iter([1, 2])

    @property
    def doubled(cls):
        return cls.tag * 2


class Made(metaclass=Meta):
    def __init__(self, n):
        self.n = n


@case(lambda: (t(3),))
def a_metaclass_in_use(x):
    made = Made(4)
    return x * made.n, made.made_by, Made.tag, len(Made), Made[3], "inside" in Made, list(Made), Made.doubled


class Base:
    kinds = []

    def __init_subclass__(cls, kind=None, **rest):
        super().__init_subclass__(**rest)
        cls.kind = kind

    def __class_getitem__(cls, item):
        return (cls.__name__, item)


class Derived(Base, kind="derived"):
    pass


@case(lambda: (t(3),))
def hooks_of_classes(x):
    return x + 1, Derived.kind, Base["q"], Derived[int]


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@case(lambda: (t(3), Slotted(2)))
def slots_read_and_written(x, slotted):
    slotted.b = slotted.a + 1
    del slotted.a
    try:
        slotted.c = 1
    except AttributeError:
        return x * slotted.b, hasattr(slotted, "a")


class Fallback:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("no_"):
            raise AttributeError(name)
        self.__dict__.setdefault("seen", []).append(name)
        return len(name)


@case(lambda: (t(3), Fallback()))
def missing_attributes_made_up(x, fallback):
    return x * fallback.abc, fallback.seen, getattr(fallback, "no_such", 5), hasattr(fallback, "no_other")


class Watched:
    def __init__(self, value):
        object.__setattr__(self, "log", [])
        self.value = value

    def __getattribute__(self, name):
        if name == "secret":
            return 42
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        self.log.append(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.log.append("-" + name)
        super().__delattr__(name)


@case(lambda: (t(3), Watched(2)))
def attributes_that_are_watched(x, watched):
    watched.other = watched.value + watched.secret
    del watched.value
    return x + watched.other, watched.log


class A:
    def who(self):
        return ["A"]

    @classmethod
    def make(cls):
        return cls.__name__

    @staticmethod
    def plain(x):
        return x + 1


class B(A):
    def who(self):
        return ["B", *super().who()]


class C(A):
    def who(self):
        return ["C", *super(C, self).who()]

    @classmethod
    def make(cls):
        return "C" + super().make()


class D(B, C):
    def who(self):
        return ["D", *super().who()]

    def skipped(self):
        return super(B, self).who()


@case(lambda: (t(3), D()))
def super_in_its_forms(x, d):
    return x + len(d.who()), d.who(), d.make(), d.skipped(), D.plain(1), d.plain(2), [c.__name__ for c in D.__mro__]


@case(lambda: (t(3), D()))
def super_held(x, d):
    held = super(D, d)
    return x + 1, held.who(), held.__thisclass__.__name__


@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
    tags: list = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=0, repr=False, compare=False)

    def __post_init__(self):
        self.total = self.x + self.y


@dataclasses.dataclass(frozen=True, order=True)
class Fixed:
    a: int
    b: float = 1.5


@case(lambda: (t(3), Point(1)))
def a_data_class_in_use(x, point):
    point.tags.append("q")
    other = dataclasses.replace(point, x=5)
    return x * other.total, dataclasses.asdict(point), dataclasses.astuple(point), [f.name for f in dataclasses.fields(point)], point == Point(1, tags=["q"]), repr(point)


@case(lambda: (t(3),))
def data_classes_made_here(x):
    point = Point(3, 4)
    point.extra = x * point.total
    return point.extra, point.tags, dataclasses.is_dataclass(point), Point.__dataclass_fields__["y"].default


@case(lambda: (t(3), Fixed(1), Fixed(2)))
def frozen_data_classes(x, a, b):
    try:
        a.a = 5
    except dataclasses.FrozenInstanceError as error:
        told = str(error)
    return x + a.a, a < b, max(a, b) is b, hash(a) == hash(Fixed(1)), {a: 1}[Fixed(1)], told


class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def next(self):
        return Colour.GREEN if self is Colour.RED else Colour.RED


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Rights(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Mode(str, enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@case(lambda: (t(3), Colour.RED), lambda: (t(3), Colour.GREEN))
def members_given(x, colour):
    if colour is Colour.RED:
        x = x * 2
    return x + colour.value, colour.name, colour.next.name, colour == Colour.RED, Colour(2), Colour["GREEN"], colour in Colour, len(Colour)


@case(lambda: (t(3), Level.HIGH), lambda: (t(3), Level.LOW))
def members_that_are_numbers(x, level):
    return x * level + Level.LOW, level > Level.LOW, int(level), level + 1, [member.name for member in Level]


@case(lambda: (t(3), Rights.READ | Rights.WRITE), lambda: (t(3), Rights.READ))
def members_that_are_flags(x, rights):
    return x + (2 if Rights.WRITE in rights else 1), bool(rights & Rights.WRITE), (rights ^ Rights.READ).value, ~rights == Rights(0)


@case(lambda: (t(3), Mode.SUM), lambda: (t(3), Mode.MEAN))
def members_that_are_words(x, mode):
    return getattr(x, mode)() if mode == "sum" else x.mean(), mode.value, mode.upper()


@case(lambda: (t(3), {Colour.RED: 1, Colour.GREEN: 2}, Colour.GREEN))
def members_as_keys(x, table, colour):
    return x * table[colour], [key.name for key in table]


Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[7])


class Typed(typing.NamedTuple):
    a: torch.Tensor
    b: int = 3

    def total(self):
        return self.a + self.b


class Options(typing.TypedDict, total=False):
    scale: int
    shift: float


@case(lambda: (t(3), Pair(1, 2)))
def named_tuples(x, pair):
    left, right = pair
    made = Pair(x)
    return made.left + pair.right, made.right, pair._replace(left=9), pair._asdict(), Pair._fields, Pair._make([1, 2]), pair == (1, 2), repr(pair), left


@case(lambda: (t(3),))
def typed_tuples(x):
    typed = Typed(x)
    return typed.total(), typed, typed[1], isinstance(typed, tuple), typed._field_defaults


@case(lambda: (t(3), Options(scale=2)))
def typed_dicts(x, options):
    made = Options(shift=0.5)
    return x * options["scale"] + made["shift"], type(made).__name__, options.get("shift")


class Vector:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@case(lambda: (t(3), Vector(0, 2)), lambda: (t(3), Vector(1, 2)), lambda: (t(3), [1, 2, 3]), lambda: (t(3), {"k": 5, "r": 1}), lambda: (t(3), "text"), lambda: (t(3), None))
def patterns(x, subject):
    match subject:
        case Vector(0, y):
            return x + y
        case Vector(x=a, y=b) if a < b:
            return x * a - b
        case [first, *rest]:
            return x + first, rest
        case {"k": value, **rest}:
            return x * value, rest
        case str() as text:
            return x, text.upper()
        case None | True:
            return x - 1
    return x


@case(lambda: (t(3), 5), lambda: (t(3), -1), lambda: (t(3), 0))
def patterns_of_values(x, n):
    match n:
        case 0:
            return x
        case int(k) if k > 0:
            return x * k
        case _:
            return -x


class Money:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Money(self.n + (other.n if isinstance(other, Money) else other))

    __radd__ = __add__

    def __mul__(self, other):
        if isinstance(other, Money):
            return NotImplemented
        return Money(self.n * other)

    def __neg__(self):
        return Money(-self.n)

    def __matmul__(self, other):
        return self.n @ other.n if hasattr(self.n, "shape") else self.n * other.n

    def __getitem__(self, key):
        return (self.n, key)

    def __call__(self, *args):
        return len(args)

    def __bool__(self):
        return self.n != 0

    def __int__(self):
        return int(self.n)

    def __float__(self):
        return float(self.n)

    def __index__(self):
        return int(self.n)

    def __format__(self, spec):
        return f"<{self.n}:{spec}>"

    def __str__(self):
        return f"${self.n}"

    def __repr__(self):
        return f"Money({self.n})"

    def __eq__(self, other):
        return isinstance(other, Money) and self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __contains__(self, item):
        return item == self.n

    def __reversed__(self):
        return iter([self.n, 0])

    def __round__(self, digits=0):
        return round(self.n, digits)


@case(lambda: (t(3), Money(3)))
def special_methods_by_syntax(x, money):
    return x * (money + 2).n, sum([money, money]).n, (-money).n, money[1:2][0], money(1, 2), bool(money), int(money), float(money), [0, 1, 2, 5][money]


@case(lambda: (t(3), Money(3)))
def special_methods_by_functions(x, money):
    return x + 1, f"{money:>3}", str(money), repr(money), [money], money == Money(3), 3 in money, list(reversed(money)), round(money), {money: 1}[Money(3)]


@case(lambda: (t(3), Money(3)))
def a_special_method_that_declines(x, money):
    try:
        return money * money
    except TypeError as error:
        return x + money.n, str(error)


@case(lambda: (t(3, 3),))
def special_methods_with_tensors(x):
    a = Money(x)
    return (a + 1).n, (a @ Money(x)), (1 + a).n


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __enter__(self):
        return self

    def __exit__(self, *told):
        self.items.clear()


@case(lambda: (t(3), Stack()))
def methods_in_a_chain(x, stack):
    stack.push(x).push(x * 2).push(3)
    return sum(stack), len(stack), bool(stack)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_with_a_counter(x):
    class Counting:
        made = 0

        def __init__(self):
            type(self).made += 1

    Counting()
    Counting()
    return x + Counting.made


@case(lambda: (t(3), D()))
def types_asked(x, d):
    return x + isinstance(d, A), issubclass(D, (B, int)), type(d) is D, type(d).__name__, d.__class__ is D, isinstance(d, typing.Hashable), callable(d), isinstance(x, torch.Tensor)


@case(lambda: (t(3), D()))
def attributes_by_functions(x, d):
    setattr(d, "n", 4)
    found = getattr(d, "n"), hasattr(d, "m"), getattr(d, "m", None)
    delattr(d, "n")
    return x + found[0], found, vars(d), "who" in dir(d)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = nn.Parameter(torch.ones(x.shape[-1]))
        return x * self.weight


@case(lambda: (Lazy(), t(3)))
def a_parameter_made_at_first(module, x):
    return module(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = self.a
        self.scales = [1, 2]
        self.table = {"relu": torch.relu}
        self.register_buffer("count", torch.zeros(()))

    @property
    def scale(self):
        return self.scales[0]

    def forward(self, x, *, kind="relu", steps=None):
        self.count += 1
        for _ in range(steps or 1):
            x = self.table[kind](self.b(self.a(x))) * self.scale
        return x


@case(lambda: (Tied(), t(2, 3)))
def a_module_with_everything(module, x):
    return module(x), module(x, steps=2), module.count


@case(lambda: (Tied(), t(2, 3)))
def modules_by_their_members(module, x):
    names = [name for name, _ in module.named_parameters()]
    return module.a.weight.sum() + x, names, len(list(module.modules())), isinstance(module.a, nn.Module), "a" in module._modules


@case(lambda: (t(3),))
def objects_compared_and_kept(x):
    a, b = Money(1), Money(1)
    return x + (a == b), a is b, a in [b], len({a, b}), a != b, [a].index(b)


@case(lambda: (t(3), object()))
def plain_objects(x, thing):
    other = object()
    return x + (thing is other), thing == thing, thing in [thing], isinstance(thing, object)


class Iterating:
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


@case(lambda: (t(3), Iterating(3)))
def an_iterator_of_the_user_everywhere(x, numbers):
    a, *b = numbers
    return x + sum(numbers), a, b, list(map(str, numbers)), max(numbers), dict(zip("abc", numbers, strict=True)), 2 in numbers, sorted(numbers, reverse=True)


class Sequenced:
    def __len__(self):
        return 3

    def __getitem__(self, n):
        if n >= 3:
            raise IndexError(n)
        return n * 10


@case(lambda: (t(3), Sequenced()))
def the_old_protocol_of_sequences(x, numbers):
    return x + sum(numbers), list(numbers), list(reversed(numbers)), 20 in numbers, [*numbers]
