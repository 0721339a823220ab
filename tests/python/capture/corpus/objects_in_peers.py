"""Objects: attributes, descriptors, classes, records and protocols, as suites of other compilers probe them."""

import abc
import collections
import collections.abc
import contextlib
import dataclasses
import enum
import numbers
import types
import typing

import torch
from capture.cases import Reuse, case, t


class Logged:
    """Reads and writes of an attribute, noted."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.name) + 1

    def __set__(self, instance, value):
        setattr(instance, self.name, value)

    def __delete__(self, instance):
        delattr(instance, self.name)


class WithDescriptors:
    scale = Logged()

    def __init__(self, scale):
        self.scale = scale


@case(lambda: (t(3), WithDescriptors(2)))
def data_descriptors(x, holder):
    y = x * holder.scale
    holder.scale = 5
    return y + holder.scale, type(WithDescriptors.scale).__name__, holder._scale


@case(lambda: (t(3),))
def a_deleted_descriptor(x):
    holder = WithDescriptors(1)
    del holder.scale
    return x + hasattr(holder, "scale") + hasattr(holder, "_scale")


class Lazily:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("missing"):
            raise AttributeError(f"no {name}")
        self.asked.append(name)
        return len(name)


@case(lambda: (t(3), Lazily()))
def attributes_made_up(x, lazily):
    return x + lazily.abc + lazily.de, lazily.asked, hasattr(lazily, "missing_one"), getattr(lazily, "missing", 7)


class Everywhere:
    def __init__(self):
        self.n = 3

    def __getattribute__(self, name):
        if name == "secret":
            return 42
        return object.__getattribute__(self, name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value if name != "n" else value + 1)


@case(lambda: (t(3), Everywhere()))
def attributes_taken_over(x, object_):
    object_.m = 2
    object_.n = 5
    return x + object_.secret + object_.n + object_.m


class Slotted:
    __slots__ = ("a", "b", "__weakref__")

    def __init__(self, a):
        self.a = a


class SlottedMore(Slotted):
    __slots__ = ("c",)


@case(lambda: (t(3), Slotted(1)))
def slots_set_and_absent(x, slotted):
    before = hasattr(slotted, "b")
    slotted.b = x
    del slotted.a
    try:
        slotted.z = 1
    except AttributeError:
        before = (before, "refused")
    return slotted.b + 1, before, hasattr(slotted, "a")


@case(lambda: (t(3),))
def slots_of_a_new_object(x):
    s = SlottedMore(2)
    s.c = x
    return s.c + s.a, s


class Meta(type):
    made = 0

    def __call__(cls, *args, **kwargs):
        instance = super().__call__(*args, **kwargs)
        instance.stamped = cls.__name__
        return instance

    def __len__(cls):
        return 7

    def __contains__(cls, item):
        return item == 3

    def __getitem__(cls, key):
        return key * 2

    @property
    def shout(cls):
        return cls.__name__.upper()


class Made(metaclass=Meta):
    def __init__(self, n):
        self.n = n


@case(lambda: (t(3),))
def classes_that_are_objects(x):
    m = Made(2)
    return x + m.n + len(Made) + (3 in Made) + Made[4], m.stamped, Made.shout, type(Made).__name__


class Registered:
    registry = {}

    def __init_subclass__(cls, key=None, **kwargs):
        super().__init_subclass__(**kwargs)
        Registered.registry[key or cls.__name__] = cls

    def __class_getitem__(cls, item):
        return f"{cls.__name__}[{item}]"


class First(Registered, key="first"):
    value = 1


@case(lambda: (t(3),))
def classes_that_were_registered(x):
    return x + Registered.registry["first"].value, Registered[3], First.__mro__[1] is Registered, First.__bases__ == (Registered,)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_made_in_the_frame(x):
    class Local:
        k = 3

        def __init__(self, y):
            self.y = y

        def scaled(self):
            return self.y * self.k

        @staticmethod
        def shift(y):
            return y + 1

        @classmethod
        def build(cls, y):
            return cls(cls.shift(y))

        @property
        def half(self):
            return self.y / 2

    local = Local.build(x)
    return local.scaled() + local.half


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_made_by_type(x):
    Local = type("Local", (Made,), {"extra": 4, "more": lambda self: self.n + self.extra})
    return x + Local(1).more()


@dataclasses.dataclass
class Point:
    x: int
    y: float = 2.0
    tags: list = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=1, repr=False, compare=False)

    def __post_init__(self):
        self.tags.append(self.x)


@dataclasses.dataclass(frozen=True, order=True)
class Fixed:
    a: int
    b: str = "b"


@dataclasses.dataclass(slots=True, kw_only=True)
class Tight:
    a: int
    b: object = None


@case(lambda: (t(3),))
def records_made_and_compared(x):
    p, q = Point(1), Point(1, hidden=3)
    return x * p.y + p.x, p == q, repr(p), p.tags, dataclasses.asdict(q), [f.name for f in dataclasses.fields(Point)]


@case(lambda: (t(3),))
def records_replaced(x):
    f = Fixed(1)
    g = dataclasses.replace(f, a=3)
    try:
        f.a = 2
    except dataclasses.FrozenInstanceError as error:
        told = str(error)
    return x + g.a, f < g, hash(f) == hash(Fixed(1)), told, dataclasses.is_dataclass(g), dataclasses.astuple(g)


@case(lambda: (t(3),))
def records_with_slots(x):
    tight = Tight(a=2, b=x)
    tight.a += 1
    return tight.b * tight.a, tight


@case(lambda: (Point(2), t(3)), lambda: (Point(3), t(3)))
def records_as_inputs(p, x):
    p.y = x
    return p.x + x


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    ALIAS = 1

    def mixed(self, other):
        return self.value + other.value

    @classmethod
    def default(cls):
        return cls.GREEN

    @property
    def lower(self):
        return self.name.lower()


class Rights(enum.IntFlag):
    R = 4
    W = 2
    X = 1


class Mode(str, enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Auto(enum.IntEnum):
    A = enum.auto()
    B = enum.auto()


@case(lambda: (t(3), Color.RED), lambda: (t(3), Color.GREEN))
def members_of_enumerations(x, color):
    if color is Color.RED:
        x = x + 1
    return x * color.value + Color.default().mixed(color), color.lower, Color(2), Color["RED"], Color.ALIAS is Color.RED, len(Color), list(Color)


@case(lambda: (t(3), Rights.R | Rights.X), lambda: (t(3), Rights.W))
def flags_combined(x, rights):
    y = x + 1 if Rights.R in rights else x - 1
    return y * int(rights), rights & Rights.X, ~rights, bool(rights & Rights.W)


@case(lambda: (t(3), Mode.SUM), lambda: (t(3), Mode.MEAN))
def texts_as_members(x, mode):
    return getattr(x, mode.value)(), mode == "sum", Mode("mean"), mode.upper(), {Mode.SUM: 1}[Mode.SUM]


@case(lambda: (t(3), Auto.B))
def integers_as_members(x, n):
    return x * n + Auto.A, n > Auto.A, [1, 2, 3][n], n + 1


class Pair(typing.NamedTuple):
    first: torch.Tensor
    second: int = 2

    def scaled(self):
        return self.first * self.second

    @property
    def both(self):
        return self.first + self.second


@case(lambda: (Pair(t(3)),), lambda: (Pair(t(3), 5),))
def named_tuples_with_methods(p):
    first, second = p
    return p.scaled() + p.both, p._replace(second=7), p._fields, p._asdict()["second"], p.index(second) if second == 2 else None


@case(lambda: (t(3),))
def a_named_tuple_made_in_the_frame(x):
    Local = collections.namedtuple("Local", "a b", defaults=[3])
    made = Local(x)
    return made.a * made.b, Local._make([1, 2]).b


class Base(abc.ABC):
    @abc.abstractmethod
    def forward(self, x): ...

    @property
    @abc.abstractmethod
    def k(self): ...

    def __call__(self, x):
        return self.forward(x) * self.k


class Derived(Base):
    k = 3

    def forward(self, x):
        return x + 1


@Base.register
class Virtual:
    pass


@case(lambda: (t(3), Derived()))
def abstract_bases(x, derived):
    try:
        Base()
    except TypeError:
        x = x + 1
    return derived(x), isinstance(Virtual(), Base), issubclass(list, collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(3, numbers.Number)


@typing.runtime_checkable
class HasForward(typing.Protocol):
    def forward(self, x): ...


@case(lambda: (t(3), Derived()))
def protocols_checked(x, derived):
    return x + 1 if isinstance(derived, HasForward) and not isinstance(x, HasForward) else x


class Box(typing.Generic[typing.TypeVar("T")]):
    def __init__(self, item):
        self.item = item


@case(lambda: (t(3),))
def generic_classes(x):
    return Box[int](x).item + 1, Box[int].__origin__ is Box


class Number:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Number(self.n + getattr(other, "n", other))

    __radd__ = __add__

    def __iadd__(self, other):
        self.n = self.n + 10
        return self

    def __mul__(self, other):
        return NotImplemented

    def __rmul__(self, other):
        return Number(other * self.n)

    def __neg__(self):
        return Number(-self.n)

    def __matmul__(self, other):
        return self.n @ other.n

    def __eq__(self, other):
        return isinstance(other, Number) and self.n is other.n

    def __hash__(self):
        return 5

    def __bool__(self):
        return False

    def __index__(self):
        return 2

    def __len__(self):
        return 4

    def __getitem__(self, key):
        return (key.start, key.stop) if isinstance(key, slice) else key

    def __contains__(self, item):
        return item == 1

    def __call__(self, *args, k=1):
        return len(args) + k

    def __invert__(self):
        return "inverted"

    def __divmod__(self, other):
        return ("divmod", other)

    def __round__(self, digits=None):
        return digits

    def __format__(self, spec):
        return f"<{spec}>"

    def __reversed__(self):
        return iter([3, 2])


@case(lambda: (t(3),))
def operators_of_a_class(x):
    n = Number(x)
    m = 1 + n + n
    m += 3
    negated = (-n).n + (n @ n)
    return m.n + negated, n(1, 2, k=3), ~n, divmod(n, 2), round(n, 1), f"{n:abc}", list(reversed(n)), n[1:2], 1 in n, [7, 8, 9][n], not n, (2 * n).n


@case(lambda: (t(3),))
def operators_not_implemented(x):
    try:
        Number(x) * 2
    except TypeError as error:
        return x + 1, str(error)


class Walks:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@case(lambda: (t(3), Walks(3)))
def iterators_of_a_class(x, walks):
    first = next(walks)
    for n in walks:
        x = x + n
    return x + first, next(walks, "end")


@case(lambda: (t(3),))
def unpacked_iterators_of_a_class(x):
    a, *b = Walks(4)
    return x + a, b, [*Walks(2)], sum(Walks(3)), dict(zip("ab", Walks(2)))


class Mapping(collections.abc.MutableMapping):
    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __setitem__(self, key, value):
        self.items_[key] = value

    def __delitem__(self, key):
        del self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


@case(lambda: (t(3), Mapping(a=1, b=2)))
def mappings_of_a_class(x, mapping):
    mapping.update(c=3)
    mapping.setdefault("d", 4)
    mapping.pop("a")
    return x + mapping["c"] + mapping.get("z", 0), list(mapping), dict(**mapping), "b" in mapping, list(mapping.values())


class Sequence(collections.abc.Sequence):
    def __init__(self, *items):
        self.data = items

    def __getitem__(self, n):
        return self.data[n]

    def __len__(self):
        return len(self.data)


@case(lambda: (t(3),))
def sequences_of_a_class(x):
    s = Sequence(1, 2, x)
    return s[-1] + s.index(2) + s.count(1), list(reversed(s))[1:], 2 in s


class MyList(list):
    def __init__(self, *items):
        super().__init__(items)
        self.extra = 3

    def append(self, item):
        super().append(item)
        self.extra += 1

    def __getitem__(self, n):
        return super().__getitem__(n) if n else 9


@case(lambda: (t(3), MyList(1, 2)))
def derived_lists(x, items):
    items.append(x)
    return items[2] + items[0] + items.extra, len(items), items + [1], items == [1, 2, 3]


class MyDict(dict):
    def __missing__(self, key):
        return len(key)

    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


@case(lambda: (t(3), MyDict(a=1)))
def derived_dictionaries(x, items):
    items.b = x
    items["c"] = 2
    return items.b + items.a + items["longer"], sorted(items), items | {"d": 1}


class MyInt(int):
    def __add__(self, other):
        return MyInt(int(self) + other + 100)

    @property
    def doubled(self):
        return self * 2


@case(lambda: (t(3), MyInt(2)))
def derived_numbers(x, n):
    return x * n + (n + 1), n.doubled, type(n + 1).__name__


class Cooperative:
    def __init__(self, **kwargs):
        self.trail = ["base"]


class Left(Cooperative):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.trail.append("left")


class Right(Cooperative):
    def __init__(self, *, k, **kwargs):
        super().__init__(**kwargs)
        self.trail.append("right")
        self.k = k


class Both(Left, Right):
    def __init__(self, **kwargs):
        super(Both, self).__init__(**kwargs)

    def __new__(cls, **kwargs):
        made = super().__new__(cls)
        made.early = 1
        return made


@case(lambda: (t(3),))
def diamonds(x):
    b = Both(k=3)
    return x * b.k + b.early, b.trail, [c.__name__ for c in Both.__mro__]


class Single:
    instance = None

    def __new__(cls, n):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance

    def __init__(self, n):
        self.n = n


@case(lambda: (t(3),), reuse=Reuse.FREE)
def singletons(x):
    a, b = Single(1), Single(2)
    Single.instance = None
    return x + a.n, a is b


class Managed:
    def __init__(self, swallow=False):
        self.swallow = swallow
        self.events = []

    def __enter__(self):
        self.events.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.events.append(kind.__name__ if kind else None)
        return self.swallow


@case(lambda: (t(3), Managed(swallow=True)))
def managers_of_a_class(x, managed):
    with managed as m:
        x = x + len(m.events)
        raise ValueError("no")
    with managed:
        x = x * 2
    return x, managed.events


@contextlib.contextmanager
def switched(holder, name, value):
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield before
    except KeyError:
        holder.caught = True
    finally:
        setattr(holder, name, before)


@case(lambda: (t(3), types.SimpleNamespace(a=1)))
def managers_of_generators(x, holder):
    with switched(holder, "a", 5) as before:
        y = x + holder.a + before
        raise KeyError
    return y, holder


@case(lambda: (t(3), types.SimpleNamespace(a=1)))
def managers_over_a_break(x, holder):
    with switched(holder, "a", 5), contextlib.ExitStack() as stack:
        stack.callback(print, "left")
        y = x + holder.a
        print("inside")
        y = y * holder.a
    return y + holder.a


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        print("in")

    def __exit__(self, *failure):
        print("out")


@Decorating()
def inside(x):
    return x + 1


@case(lambda: (t(3),))
def managers_as_decorators(x):
    return inside(x) * 2


@case(lambda: (t(3), {"kind": "a", "size": [1, 2]}), lambda: (t(3), ("b", 4)), lambda: (t(3), Point(1, 2.5)), lambda: (t(3), 7), lambda: (t(3), [x for x in range(3)]))
def matched(x, subject):
    match subject:
        case {"kind": str(kind), "size": [first, *rest], **others}:
            return x + first + len(rest), kind, others
        case ("b" | "c" as name, int(n)) if n > 3:
            return x * n, name
        case Point(x=px, y=float(py)):
            return x + px + py
        case [_, 1, *_]:
            return x - 1
        case _:
            return x


@case(lambda: (t(3),))
def walrus_in_comprehensions(x):
    found = [y for n in range(4) if (y := n * 2) > 2]
    while (n := len(found)) < 4:
        found.append(n)
    return x + y + n, found, [[i * j for j in range(i)] for i in range(3)], {k: v for k, v in zip("ab", found)}, {n % 2 for n in found}


@case(lambda: (t(3),))
def scopes_of_comprehensions(x):
    n = 5
    a = [n for n in range(3)]
    functions = [lambda: n for n in range(3)]
    return x + n, a, [f() for f in functions], [(lambda y: y + x)(i) for i in range(2)]


@case(lambda: (t(3),))
def names_deleted_and_absent(x):
    y = x + 1
    del y
    try:
        return y
    except UnboundLocalError as error:
        return x, str(error)


@case(lambda: (t(3), Derived()))
def attributes_of_objects_listed(x, derived):
    derived.z = 1
    return x + len(vars(derived)), "forward" in dir(derived), sorted(derived.__dict__), derived.__class__.__name__, type(derived) is Derived


@case(lambda: (t(3), Color.RED, 3), lambda: (t(3), Color.RED, "s"), lambda: (t(3), Color.RED, None))
def types_asked(x, color, value):
    kind = type(value)
    if isinstance(value, (int, str)) and kind in (int, str):
        return x + len(str(value))
    return x - 1, kind is type(None), isinstance(color, enum.Enum), isinstance(value, int | None)


class Hashed:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return self.n == other.n


@case(lambda: (t(3),))
def keys_of_a_class(x):
    table = {Hashed(1): 10, Hashed(2): 20}
    return x + table[Hashed(2)], Hashed(1) in table, len({Hashed(1), Hashed(1)})


@case(lambda: (t(3), types.MappingProxyType({"a": 2})), lambda: (t(3), types.MappingProxyType({"a": 3})))
def read_only_mappings(x, proxy):
    return x * proxy["a"] + len(proxy), list(proxy.items()), "b" in proxy
