"""Small programs that mix parts of Python and torch as users do: syntax, classes, the standard library, modules, state."""

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import inspect
import io
import itertools
import json
import logging
import math
import operator
import re
import string
import struct
import sys
import threading
import types
import typing
import warnings
import weakref

import numpy as np
import torch
from capture.cases import Message, Reuse, call, case, t
from torch import nn

COUNT = 0
TABLE = {"a": 1}
LOCAL = threading.local()
LOCAL.scale = 3


# Syntax.


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def walrus_in_a_condition(x, n):
    if (half := n // 2) > 1 and (rest := n % 2):
        return x * half + rest
    return x - half


@case(lambda: (t(3),))
def walrus_in_a_comprehension(x):
    last = None
    squares = [last := i * i for i in range(4)]
    return x * last + sum(squares)


@case(lambda: (t(3), [1, 2, 3, 4]), lambda: (t(3), [1, 2]))
def starred_targets(x, values):
    first, *middle, last = values
    (a, *b), c = (1, 2, 3), 4
    return x * first + last, middle, b, a + c


@case(lambda: (t(3), {"kind": "scale", "by": 2}), lambda: (t(3), {"kind": "shift"}), lambda: (t(3), [1, 2, 3]), lambda: (t(3), (4, 5)), lambda: (t(3), 7))
def matched(x, command):
    match command:
        case {"kind": "scale", "by": by}:
            return x * by
        case {"kind": kind, **rest}:
            return x + len(kind), rest
        case [first, *others] if first == 1:
            return x - first, others
        case (a, b):
            return x * a + b
        case int(n) | str(n):
            return x + n
        case _:
            return x


@dataclasses.dataclass
class Shape:
    kind: str
    size: int = 2
    extra: list = dataclasses.field(default_factory=list)


class Positioned:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y


@case(lambda: (t(3), Shape("box", 3)), lambda: (t(3), Shape("ring")), lambda: (t(3), Positioned(1, 2)))
def matched_by_class(x, thing):
    match thing:
        case Shape(kind="box", size=size):
            return x * size
        case Shape(kind, size):
            return x + size, kind
        case Positioned(1, y):
            return x - y


@case(lambda: (t(3), 3), lambda: (t(3), 30))
def chained_comparison(x, n):
    return x + 1 if 0 < n <= 10 != n else x - 1


@case(lambda: (t(2, 3), 3.14159, "ab"))
def formatted(x, f, s):
    y = x + 1
    return y, f"{f:.2f}|{s:>5}|{s!r}|{x.shape[0]:03d}|{len(s)=}|{f:{5}.{3}}", "%s-%d-%5.1f" % (s, 3, f), "{0}{1:x}".format(s, 255)


@case(lambda: (t(3),), watch=("COUNT", "TABLE"))
def globals_written(x):
    global COUNT
    COUNT += 2
    TABLE["b"] = COUNT
    del TABLE["a"]
    return x * COUNT


@case(lambda: (t(3),))
def a_name_deleted(x):
    y = x + 1
    z = y
    del y
    try:
        return y
    except UnboundLocalError as error:
        return z * 2, type(error).__name__


@case(lambda: (t(3),))
def counters_by_nonlocal(x):
    total = 0

    def outer():
        count = 0

        def inner(by):
            nonlocal count, total
            count += by
            total += count
            return count

        return inner

    a, b = outer(), outer()
    a(1), a(2), b(5)
    return x * total, a(1)


@case(lambda: (t(3),))
def loops_with_else(x):
    for i in range(3):
        if i == 5:
            break
    else:
        x = x + 1
    while i > 0:
        i -= 1
        if i == 1:
            continue
    else:
        x = x * 2
    return x


@case(lambda: (t(3),))
def a_lambda_with_defaults(x):
    functions = [lambda v, i=i: v * i for i in range(3)]
    late = [lambda v: v * i for i in range(3)]
    return [f(x) for f in functions], [f(x) for f in late]


@case(lambda: (t(3),))
def arguments_of_every_kind(x):
    def f(a, /, b, *args, c, d=4, **kwargs):
        return a + b + sum(args) + c + d + sum(kwargs.values())

    return x * f(1, 2, 3, 4, c=5, e=6, **{"f": 7}), f(*[1], **{"b": 2, "c": 3})


@case(lambda: (t(3),))
def wrong_arguments(x):
    def f(a, /, b, *, c):
        return a

    texts = []
    for args, kwargs in (((), {}), ((1, 2, 3), {"c": 1}), ((1,), {"a": 1, "b": 2, "c": 3}), ((1, 2), {"d": 1, "c": 2}), ((1, 2), {})):
        try:
            f(*args, **kwargs)
        except TypeError as error:
            texts.append(str(error))
    return x + len(texts), texts


@case(lambda: (t(3),))
def slices_assigned(x):
    values = [0, 1, 2, 3, 4, 5]
    values[1:3] = ["a"]
    values[::2] = [7] * len(values[::2])
    del values[-1:]
    return x + 1, values


@case(lambda: (t(3),))
def conditional_imports(x):
    import math as m
    from operator import add, mul as times

    return add(x, m.floor(2.5)), times(x, 2)


@case(lambda: (t(3),))
def nested_comprehensions(x):
    grid = [[i * j for j in range(3)] for i in range(3)]
    flat = {v: [k for k in range(v)] for row in grid for v in row if v % 2 == 0}
    return x * sum(map(sum, grid)), flat, {v for v in flat}


@case(lambda: (t(3),))
def an_assertion_with_a_message(x):
    try:
        assert len(x) == 4, f"length {len(x)}"
    except AssertionError as error:
        return x, error.args


@case(lambda: (t(3),))
def bits_and_powers(x):
    n = 5
    n |= 8
    n ^= 1
    n <<= 2
    n //= 3
    n **= 2
    n %= 50
    return x * n, ~n, divmod(-7, 2), pow(3, 4, 5), -7 // 2, round(2.5), round(-1.234, 2), int("ff", 16), bin(10)


@case(lambda: (t(3),))
def returned_from_finally(x):
    def f():
        try:
            return x + 1
        finally:
            return x + 2  # noqa: B012

    def g():
        for i in range(3):
            try:
                continue
            finally:
                if i == 1:
                    break  # noqa: B012
        return i

    return f(), g()


@case(lambda: (t(3),))
def type_annotations_inside(x):
    y: torch.Tensor = x + 1
    n: int
    z: "list[int]" = [1]
    return y, z


# Classes.


class Celsius:
    def __init__(self, degrees):
        self._degrees = degrees

    @property
    def degrees(self):
        return self._degrees

    @degrees.setter
    def degrees(self, value):
        if value < -273:
            raise ValueError(f"too cold: {value}")
        self._degrees = value

    @degrees.deleter
    def degrees(self):
        self._degrees = 0


@case(lambda: (t(3), Celsius(20)))
def property_set_and_deleted(x, temperature):
    temperature.degrees += 5
    y = x * temperature.degrees
    try:
        temperature.degrees = -300
    except ValueError as error:
        text = str(error)
    del temperature.degrees
    return y + temperature.degrees, text


class Validated:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.name, 1)

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2)

    def __delete__(self, instance):
        delattr(instance, self.name)


class Holder:
    width = Validated()


@case(lambda: (t(3), Holder()))
def a_descriptor_of_data(x, holder):
    y = x * holder.width
    holder.width = 3
    z = x * holder.width
    del holder.width
    return y, z, holder.width


class Lazy:
    def __init__(self):
        self.log = []

    def __getattr__(self, name):
        if name.startswith("w_"):
            value = len(name)
            self.__dict__[name] = value
            self.log.append(name)
            return value
        raise AttributeError(f"no {name}")


@case(lambda: (t(3), Lazy()))
def attributes_made_on_demand(x, lazy):
    y = x * lazy.w_abc + lazy.w_abc
    return y, hasattr(lazy, "other"), getattr(lazy, "thing", 5)


class Recorder:
    def __init__(self):
        object.__setattr__(self, "writes", [])

    def __setattr__(self, name, value):
        self.writes.append(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.writes.append("del " + name)
        super().__delattr__(name)


@case(lambda: (t(3), Recorder()))
def attributes_recorded(x, recorder):
    recorder.a = x + 1
    recorder.b = 2
    del recorder.b
    return recorder.a * len(recorder.writes)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class MoreSlots(Slotted):
    __slots__ = ("c",)

    def __init__(self, a, c):
        super().__init__(a)
        self.c = c


@case(lambda: (t(3), MoreSlots(2, 3)))
def slots(x, s):
    made = MoreSlots(s.a, x)
    try:
        made.b  # noqa: B018
    except AttributeError as error:
        missing = str(error)
    s.b = made.c * 2
    try:
        s.d = 1
    except AttributeError as error:
        refused = type(error).__name__
    return s.b + s.a, missing, refused, made


class Registry(type):
    members = []

    def __new__(mcs, name, bases, body, **options):
        made = super().__new__(mcs, name, bases, body)
        made.options = options
        return made

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tagged = True
        return made

    def __len__(cls):
        return 7


class Registered(metaclass=Registry, scale=4):
    def __init__(self, n):
        self.n = n


@case(lambda: (t(3),))
def a_metaclass_that_calls(x):
    made = Registered(2)
    return x * made.n * len(Registered) + Registered.options["scale"], made.tagged, isinstance(Registered, Registry)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_inside(x):
    class Adder:
        step = 2

        def __init__(self, n):
            self.n = n

        def __call__(self, v):
            return v + self.n * self.step

        @staticmethod
        def twice(v):
            return v * 2

        @classmethod
        def default(cls):
            return cls(cls.step)

    return Adder.twice(Adder.default()(x))


class A:
    def f(self):
        return ["A"]


class B(A):
    def f(self):
        return ["B", *super().f()]


class C(A):
    def f(self):
        return ["C", *super().f()]


class D(B, C):
    def f(self):
        return ["D", *super().f()]


@case(lambda: (t(3), D()))
def a_diamond_of_supers(x, d):
    return x * len(d.f()), d.f(), [c.__name__ for c in type(d).__mro__], super(B, d).f()


class Base(abc.ABC):
    @abc.abstractmethod
    def scale(self): ...

    @property
    @abc.abstractmethod
    def name(self): ...

    def apply(self, x):
        return x * self.scale()


class Double(Base):
    name = "double"

    def scale(self):
        return 2


@case(lambda: (t(3), Double()))
def an_abstract_class(x, double):
    try:
        Base()
    except TypeError as error:
        text = type(error).__name__
    return double.apply(x), double.name, text, issubclass(Double, Base), isinstance(double, abc.ABC)


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3

    @property
    def weight(self):
        return self.value * 10

    @classmethod
    def middle(cls):
        return cls(2)


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2
    BOTH = READ | WRITE


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    YES = "yes"


@case(lambda: (t(3), Color.RED, Mode.READ), lambda: (t(3), Color.BLUE, Mode.WRITE))
def enums(x, color, mode):
    if color is Color.RED:
        x = x + color.weight
    names = [c.name for c in Color]
    try:
        Color(9)
    except ValueError as error:
        text = str(error)
    combined = mode | Mode.WRITE
    return x * Level.HIGH, names, Color["GREEN"].value, Color.middle(), text, combined == Mode.BOTH, bool(mode & Mode.READ), Word.YES == "yes", Level.HIGH > Level.LOW


Point = collections.namedtuple("Point", ["x", "y"], defaults=[5])


class Row(typing.NamedTuple):
    a: torch.Tensor
    n: int = 3

    def total(self):
        return self.a.sum() * self.n


@case(lambda: (t(3),))
def named_tuples(x):
    p = Point(x)
    q = p._replace(y=7)
    row = Row(x)
    a, n = row
    return q.x * q.y, p._asdict(), row.total(), Row._fields, Point._make([1, 2]), p == q[:1], row._replace(n=a + n)


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0

    def bump(self):
        return dataclasses.replace(self, minor=self.minor + 1)


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    size: int = dataclasses.field(init=False)
    name: dataclasses.InitVar[str] = "n"

    def __post_init__(self, name):
        self.size = self.x.shape[0]
        self.label = name.upper()


@case(lambda: (t(3), Version(1, 2)))
def data_classes(x, version):
    try:
        version.major = 3
    except dataclasses.FrozenInstanceError as error:
        text = str(error)
    batch = Batch(x, name="abc")
    fields = [f.name for f in dataclasses.fields(batch)]
    return batch.x * batch.size, version.bump() > version, dataclasses.asdict(version), dataclasses.astuple(Version(3)), fields, text, batch.label, repr(version), {version: 1}


class Money:
    def __init__(self, n):
        self.n = n

    def __add__(self, other):
        return Money(self.n + (other.n if isinstance(other, Money) else other))

    __radd__ = __add__

    def __iadd__(self, other):
        self.n += other
        return self

    def __eq__(self, other):
        return isinstance(other, Money) and self.n == other.n

    def __lt__(self, other):
        return self.n < other.n

    def __hash__(self):
        return hash(self.n)

    def __bool__(self):
        return self.n > 0

    def __index__(self):
        return self.n

    def __getitem__(self, key):
        return key

    def __contains__(self, item):
        return item == self.n

    def __matmul__(self, other):
        return self.n * other

    def __neg__(self):
        return Money(-self.n)

    def __float__(self):
        return float(self.n)

    def __len__(self):
        return 2

    def __iter__(self):
        yield self.n
        yield -self.n

    def __reversed__(self):
        return iter([-self.n, self.n])

    def __repr__(self):
        return f"Money({self.n})"

    def __format__(self, spec):
        return f"{self.n}{spec}"

    def __enter__(self):
        self.n += 100
        return self

    def __exit__(self, *error):
        self.n -= 100
        return bool(error[0])


@case(lambda: (t(3), Money(2)))
def operators_of_an_object(x, m):
    total = sum([m, m, 1])
    m += 3
    with m as richer:
        y = x * richer.n
        raise ValueError
    a, b = m
    return y, total.n, m == Money(5), m < Money(9), sorted([Money(3), Money(1)])[0].n, not m, [10, 20, 30, 40, 50, 60][m], m[1:2, ...], 5 in m, m @ 2, (-m).n, float(m), list(reversed(m)), f"{m:>x} {m}", a + b, {m: 1}[Money(5)], max(Money(1), Money(4)).n


@case(lambda: (t(3),))
def functools_of_all_kinds(x):
    @functools.singledispatch
    def describe(v):
        return "object"

    @describe.register
    def _(v: int):
        return "int"

    @describe.register(list)
    def _(v):
        return "list"

    part = functools.partial(torch.add, x, alpha=2)
    return part(1), functools.reduce(operator.mul, [1, 2, 3], 1), describe(1), describe([]), describe(2.0)


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@case(lambda: (t(3),))
def a_cached_recursion(x):
    return x * fibonacci(8)


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


@doubled
def documented(x):
    """Documented."""
    return x + 1


@case(lambda: (t(3),))
def a_wrapped_function(x):
    return documented(x), documented.__name__, documented.__doc__, documented.__wrapped__(x)


class Cached:
    def __init__(self, n):
        self.n = n
        self.computed = 0

    @functools.cached_property
    def table(self):
        self.computed += 1
        return list(range(self.n))

    @functools.partialmethod
    def nothing(self):
        return 0


@case(lambda: (t(3), Cached(4)))
def a_cached_property(x, c):
    return x * sum(c.table) + len(c.table), c.computed


@functools.total_ordering
class Ranked:
    def __init__(self, r):
        self.r = r

    def __eq__(self, other):
        return self.r == other.r

    def __lt__(self, other):
        return self.r < other.r


@case(lambda: (t(3), Ranked(1), Ranked(2)))
def total_ordering(x, a, b):
    return x + (1 if a <= b else 0) + (1 if a >= b else 0), a > b, functools.cmp_to_key(lambda p, q: q - p)(1) < functools.cmp_to_key(lambda p, q: q - p)(2), sorted([3, 1, 2], key=functools.cmp_to_key(lambda p, q: q - p))


# Iterators and containers.


@case(lambda: (t(3),))
def itertools_of_all_kinds(x):
    it = itertools
    values = [
        list(it.accumulate([1, 2, 3], operator.mul, initial=2)),
        list(it.chain([1], (2, 3), "a")),
        list(it.chain.from_iterable([[1], [2]])),
        list(it.combinations("abc", 2)),
        list(it.combinations_with_replacement([1, 2], 2)),
        list(it.compress("abcd", [1, 0, 1, 0])),
        list(it.dropwhile(lambda v: v < 2, [1, 2, 1])),
        list(it.takewhile(lambda v: v < 2, [1, 2, 1])),
        list(it.filterfalse(lambda v: v % 2, range(5))),
        [(k, list(g)) for k, g in it.groupby("aabbb")],
        list(it.islice(it.count(3, 2), 1, 6, 2)),
        list(it.islice(it.cycle([1, 2]), 5)),
        list(it.pairwise([1, 2, 3])),
        list(it.permutations([1, 2, 3], 2)),
        list(it.product([1, 2], repeat=2)),
        list(it.repeat(4, 2)),
        list(it.starmap(pow, [(2, 3), (3, 2)])),
        [list(v) for v in it.tee([1, 2])],
        list(it.zip_longest([1, 2], [3], fillvalue=0)),
    ]
    return x * len(values), values


@case(lambda: (t(3), itertools.count(5, 2)), reuse=Reuse.FREE)
def a_count_given(x, ids):
    a = next(ids)
    b = next(ids)
    return x * a + b


@case(lambda: (t(3), itertools.cycle([1, 2, 3])), reuse=Reuse.FREE)
def a_cycle_given(x, ids):
    return x * next(ids) + next(ids) + next(ids) + next(ids)


@case(lambda: (t(3), itertools.repeat(2, 3)), reuse=Reuse.FREE)
def a_repeat_given(x, values):
    for v in values:
        x = x * v
    return x


@case(lambda: (t(3), iter([1, 2, 3])))
def a_list_iterator_given(x, it):
    x = x * next(it)
    for v in it:
        x = x + v
    return x, next(it, None)


@case(lambda: (t(3), enumerate(["a", "b"])))
def an_enumeration_given(x, pairs):
    for i, name in pairs:
        x = x * (i + 1) + len(name)
    return x


@case(lambda: (t(3), zip([1, 2], [3, 4])))
def a_zip_given(x, pairs):
    for a, b in pairs:
        x = x * a + b
    return x


@case(lambda: (t(3), map(abs, [-1, -2])))
def a_map_given(x, values):
    return x * sum(values)


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Squares:
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return i * i


@case(lambda: (t(3), Countdown(4), Squares(4)))
def iterators_of_the_user(x, countdown, squares):
    for v in countdown:
        x = x + v
    return x * sum(squares), 9 in squares, list(zip(Countdown(2), squares)), next(countdown, "end"), [*Squares(3)], iter(Countdown(3).__next__, 1).__next__()


@case(lambda: (t(3),))
def collections_of_all_kinds(x):
    counter = collections.Counter("abracadabra")
    counter.update("aa")
    counter.subtract({"b": 1})
    default = collections.defaultdict(list)
    default["k"].append(1)
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    popped = ordered.popitem(last=False)
    queue = collections.deque([1, 2, 3], maxlen=3)
    queue.appendleft(0)
    queue.rotate(1)
    chained = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    return x * counter["a"], counter.most_common(2), default, ordered, popped, queue, chained["b"], dict(chained), counter + collections.Counter(z=1)


@case(lambda: (t(3), {"a": 1, "b": 2}))
def methods_of_dicts(x, d):
    a = d.pop("a")
    b = d.setdefault("c", 5)
    d.update({"e": 6}, f=7)
    d |= {"g": 8}
    try:
        d.pop("zz")
    except KeyError as error:
        missing = error.args
    item = d.popitem()
    keys = d.keys() & {"b", "c"}
    copied = d.copy()
    d.clear()
    return x * a + b, missing, item, sorted(keys), copied, dict.fromkeys("ab", 0), list(reversed(copied)), d.get("q", 3), copied | {"x": 1}


@case(lambda: (t(3),))
def methods_of_sets(x):
    s = {1, 2, 3}
    s.add(4)
    s.discard(9)
    try:
        s.remove(9)
    except KeyError as error:
        missing = error.args
    s ^= {4, 5}
    s &= {1, 2, 5}
    frozen = frozenset(s)
    return x * len(s), missing, sorted(s), s <= {1, 2, 5, 6}, s.isdisjoint({9}), frozen | {7}, sorted(s.symmetric_difference([1])), {frozen: 1}


@case(lambda: (t(3),))
def methods_of_lists(x):
    values = [3, 1, 2]
    values.insert(1, 9)
    values.extend(i for i in range(2))
    values.sort(key=lambda v: -v, reverse=True)
    errors = []
    for f in (lambda: values.remove(77), lambda: values.index(77), lambda: values.pop(99), lambda: values[99], lambda: [].pop(), lambda: values + (1,)):
        try:
            f()
        except (ValueError, IndexError, TypeError) as error:
            errors.append(f"{type(error).__name__}: {error}")
    values.reverse()
    return x * values.count(1) + values.index(9), values, errors, values[::-2], values * 2, [1, 2] < [1, 3]


@case(lambda: (t(3),))
def methods_of_strings(x):
    s = "Hello, World"
    return (
        x * s.count("l") + s.find("W"),
        [s.split(", "), s.rpartition("o"), s.replace("l", "L", 1), s.swapcase(), s.center(20, "*"), s.encode(), s.title(), s.zfill(15), "a,b\nc".splitlines(), s.startswith(("He", "x")), s.translate({72: "J"}), "-".join("abc"), s[::-1], "%(a)s" % {"a": 1}, s.removeprefix("Hell"), "ab".ljust(4, "."), s.casefold().isalpha(), "x".join(["1", "2"]), string.ascii_lowercase[:3], ord("a"), chr(98), ascii("é"), s.expandtabs()],
    )


class Stack(list):
    def push(self, v):
        self.append(v)
        return self

    def __getitem__(self, i):
        return super().__getitem__(-1 - i)


class Upper(dict):
    def __missing__(self, key):
        return len(key)

    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)


class Bag(collections.UserDict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2


class Items(collections.UserList):
    pass


class Sized(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)


class Changing(collections.abc.MutableMapping):
    def __init__(self):
        self.store = {}

    def __getitem__(self, k):
        return self.store[k]

    def __setitem__(self, k, v):
        self.store[k] = v

    def __delitem__(self, k):
        del self.store[k]

    def __iter__(self):
        return iter(self.store)

    def __len__(self):
        return len(self.store)


@case(lambda: (t(3),))
def containers_of_the_user(x):
    stack = Stack([1]).push(2).push(3)
    upper = Upper(a=1)
    upper["b"] = 2
    bag = Bag(k=3)
    bag["z"] = 4
    items = Items([1, 2])
    items.append(3)
    sized = Sized(1, 2, 3)
    changing = Changing()
    changing.update(a=1, b=2)
    changing.setdefault("c", 3)
    return x * stack[0] + upper["B"] + upper["missing"], len(stack), dict(upper), bag["k"], list(items), sized.index(2), 3 in sized, list(reversed(sized)), changing.pop("a"), dict(changing), sized.count(1)


# Exceptions.


class Failure(Exception):
    def __init__(self, code, text="failed"):
        super().__init__(f"{text} ({code})")
        self.code = code


@case(lambda: (t(3),))
def exceptions_chained(x):
    try:
        try:
            raise KeyError("k")
        except KeyError as inner:
            raise Failure(3) from inner
    except Failure as error:
        chain = [type(error.__cause__).__name__, error.__suppress_context__, error.code, str(error), error.args]
    try:
        try:
            1 / 0
        finally:
            raise ValueError("second")
    except ValueError as error:
        context = type(error.__context__).__name__
    try:
        try:
            raise Failure(1)
        except Failure:
            raise RuntimeError("none") from None
    except RuntimeError as error:
        cause = error.__cause__, error.__suppress_context__
    return x * len(chain), chain, context, cause


@case(lambda: (t(3),))
def exceptions_in_order(x):
    log = []

    def f(n):
        try:
            log.append("try")
            if n == 0:
                raise ValueError("a")
            if n == 1:
                return "returned"
            log.append("end")
        except ValueError:
            log.append("except")
            raise
        else:
            log.append("else")
        finally:
            log.append("finally")

    for n in range(3):
        with contextlib.suppress(ValueError):
            log.append(f(n))
    return x * len(log), log


@case(lambda: (t(3),))
def raised_again(x):
    try:
        try:
            raise Failure(7)
        except Exception as error:
            error.add_note("noted")
            error.extra = x + 1
            raise
    except Failure as error:
        return error.extra * error.code, error.__notes__, error.__traceback__ is not None


@case(lambda: (t(3),))
def raised_out(x):
    x.add_(1)
    raise Failure(4, "out")


@case(lambda: (t(3),))
def groups_of_exceptions(x):
    caught = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as group:
        caught.append(("v", [str(e) for e in group.exceptions]))
    except* TypeError as group:
        caught.append(("t", len(group.exceptions)))
    return x + len(caught), caught


@case(lambda: (t(3), {"a": 1}))
def errors_of_values(x, d):
    errors = []
    for f in (lambda: d["b"], lambda: int("z"), lambda: [1][3], lambda: "a" + 1, lambda: None.foo, lambda: 1 / 0, lambda: next(iter([])), lambda: x.nothing, lambda: math.sqrt(-1), lambda: len(3), lambda: {}[[]], lambda: undefined_name, lambda: (1, 2).append(3), lambda: [1, 2, 3].sort(key=3)):
        try:
            f()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return x + len(errors), errors


@case(lambda: (t(3),))
def a_traceback_looked_at(x):
    try:
        raise ValueError("v")
    except ValueError as error:
        tb = error.__traceback__
        return x + 1, tb.tb_frame.f_code.co_name, tb.tb_next is None


@case(lambda: (t(3),))
def exc_info_asked(x):
    try:
        raise ValueError("v")
    except ValueError:
        kind, value, _ = sys.exc_info()
        y = x + len(str(value))
    return y, kind, sys.exc_info()


# Generators.


def averages():
    total, count, value = 0.0, 0, None
    while True:
        sent = yield value
        if sent is None:
            return total
        total += sent
        count += 1
        value = total / count


def delegating(log):
    result = yield from averages()
    log.append(result)
    yield "end"


@case(lambda: (t(3),))
def a_generator_sent_to(x):
    log = []
    g = delegating(log)
    next(g)
    values = [g.send(v) for v in (1.0, 2.0, 6.0)]
    end = g.send(None)
    return x * values[-1], values, end, log


@case(lambda: (t(3),))
def a_generator_thrown_into(x):
    log = []

    def g():
        try:
            yield 1
        except ValueError as error:
            log.append(str(error))
            yield 2
        finally:
            log.append("finally")

    it = g()
    a = next(it)
    b = it.throw(ValueError("thrown"))
    it.close()
    return x * a + b, log


@case(lambda: (t(3),))
def a_generator_that_returns(x):
    def g():
        yield x
        return 5

    it = g()
    y = next(it)
    try:
        next(it)
    except StopIteration as stop:
        return y * stop.value, list(it)


@case(lambda: (t(3),))
def generators_in_a_pipeline(x):
    def source(n):
        yield from range(n)

    def even(values):
        return (v for v in values if v % 2 == 0)

    def scaled(values):
        for v in values:
            yield x * v

    return sum(scaled(even(source(6)))), any(v > 3 for v in source(5)), max(even(source(9)), default=0), dict(zip("ab", source(5))), tuple(source(2)), sorted(source(3), reverse=True), "".join(str(v) for v in source(3))


@case(lambda: (t(3),))
def a_generator_returned(x):
    return (x * i for i in range(3)), x + 1


@contextlib.contextmanager
def tagged(log, name):
    log.append("in " + name)
    try:
        yield name
    except ValueError:
        log.append("caught")
    finally:
        log.append("out " + name)


@case(lambda: (t(3),))
def managers_of_all_kinds(x):
    log = []
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(tagged(log, n)) for n in "ab"]
        stack.callback(log.append, "called")
        y = x * len(names)
    with contextlib.nullcontext(5) as five, tagged(log, "c") as c:
        y = y + five
        raise ValueError
    with contextlib.suppress(KeyError, IndexError):
        {}["a"]
    with contextlib.closing(io.StringIO()) as text:
        text.write("t")
    return y, log, c


@case(lambda: (t(3),))
def a_manager_as_a_decorator(x):
    log = []

    @tagged(log, "d")
    def f(v):
        return v * 2

    return f(x), f(x), log


# The standard library.


@case(lambda: (t(3),))
def texts_and_numbers(x):
    found = re.match(r"(\d+)-(?P<name>\w+)", "12-ab")
    return (
        x * int(found.group(1)),
        found.groupdict(),
        re.sub(r"a", "b", "banana"),
        re.findall(r"\d", "a1b2"),
        json.dumps({"a": [1, 2.5, None, True]}, sort_keys=True),
        json.loads('{"k": [1]}'),
        struct.pack("<if", 1, 2.0),
        struct.unpack("<i", b"\x01\x00\x00\x00"),
    )


@case(lambda: (t(3),))
def mathematics(x):
    return x * math.pi, [math.floor(2.7), math.gcd(12, 18), math.isclose(0.1 + 0.2, 0.3), math.prod([1, 2, 3]), math.comb(5, 2), math.hypot(3, 4), math.log2(8), math.copysign(1, -0.0), math.isqrt(17), math.fsum([0.1] * 10), math.trunc(-2.5), math.ldexp(1.0, 3), math.inf > 1, math.nan != math.nan, math.dist([0, 0], [3, 4]), math.modf(2.5), math.frexp(8.0), math.ceil(2.1), math.degrees(math.pi), math.factorial(5)]


@case(lambda: (t(3),))
def operators(x):
    o = operator
    return o.add(x, 1), o.itemgetter(1, 0)([5, 6]), o.attrgetter("shape")(x), o.methodcaller("sum")(x), o.contains([1], 1), o.truth([]), o.index(3), o.concat([1], [2]), o.countOf([1, 1], 1), o.indexOf([1, 2], 2), o.not_(0), o.is_(x, x), o.setitem([1], 0, 2), o.matmul(x, x), o.iadd([1], [2]), o.length_hint([1, 2]), o.attrgetter("shape", "dtype")(x)


@case(lambda: (t(3), [1, [2, 3]]))
def copies(x, nested):
    shallow, deep = copy.copy(nested), copy.deepcopy(nested)
    nested[1].append(4)
    y = copy.deepcopy(x)
    y.add_(1)
    return x * 2, y, shallow, deep


@case(lambda: (t(3),))
def inspected(x):
    def f(a, b: int = 2, *args, c=3, **kw) -> int:
        return a

    signature = inspect.signature(f)
    bound = signature.bind(1, c=4)
    bound.apply_defaults()
    return x * len(signature.parameters), list(signature.parameters), bound.arguments, inspect.isfunction(f), inspect.isclass(Double), callable(f), f.__defaults__, f.__kwdefaults__, f.__annotations__, f.__code__.co_varnames


@case(lambda: (t(3),))
def typed(x):
    items = typing.cast(list, [1])
    return x * len(items), typing.get_type_hints(Row.total), typing.get_origin(list[int]), typing.Optional[int] == typing.Union[int, None], isinstance(1, int | str)


@case(lambda: (t(3), Double()))
def weak(x, d):
    ref = weakref.ref(d)
    table = weakref.WeakValueDictionary()
    table["k"] = d
    keys = weakref.WeakKeyDictionary({d: 2})
    return x * keys[d], ref() is d, len(table), "k" in table


@case(lambda: (t(3),))
def effects_of_logging(x):
    print("start", 1, sep="-", end=";")
    logging.getLogger("capture.mixed").debug("value %d", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("w", stacklevel=1)
    y = x + 1
    print(f"{len(y)}")
    return y * 2


@case(lambda: (t(3),))
def heaps_and_bisection(x):
    import bisect

    heap = [5, 3, 8]
    heapq.heapify(heap)
    heapq.heappush(heap, 1)
    return x * heapq.heappop(heap), heapq.nsmallest(2, heap), bisect.bisect_left([1, 3, 5], 3), list(heapq.merge([1, 4], [2, 3])), heapq.nlargest(1, heap)


@case(lambda: (t(3),))
def thread_local(x):
    LOCAL.seen = 2
    return x * LOCAL.scale + LOCAL.seen, hasattr(LOCAL, "other")


@case(lambda: (t(3), types.SimpleNamespace(a=1, b=[2])))
def a_namespace(x, ns):
    ns.c = x + ns.a
    ns.b.append(3)
    made = types.SimpleNamespace(**vars(ns))
    made.d = 4
    return made.c * len(made.b), made, ns == made, sorted(vars(made))


@case(lambda: (t(3),))
def builtins_of_all_kinds(x):
    return (
        x * abs(-3),
        [all([1, 0]), any([]), bytes([1, 2]), complex(1, 2), dict(a=1), hex(255), id(x) == id(x), isinstance(x, (int, torch.Tensor)), list(filter(None, [0, 1])), max([1, 3], key=lambda v: -v), min(2, 1), oct(8), repr("a"), slice(1, 2).indices(5), sorted("bca"), str(1.5), sum([[1], [2]], []), type(1).__name__, tuple(zip("ab", [1, 2])), range(10)[2:8:3], format(3.14159, ".2f"), hash("a") == hash("a"), bool([]), frozenset([1]), divmod(7, 2), getattr(x, "ndim"), callable(len), vars(types.SimpleNamespace(q=1)), issubclass(bool, int), bytearray(b"ab"), memoryview(b"abc")[1], reversed([1, 2]).__next__(), float("inf"), int.from_bytes(b"\x01\x00", "big"), (5).bit_length(), (0.5).as_integer_ratio(), 1_000, "a" "b"],
    )


# Tuples with attributes.


class Seen(tuple):
    def __init__(self, items):
        self.count = len(items)


class Labelled(tuple):
    label = "none"

    def __new__(cls, items, label):
        made = super().__new__(cls, items)
        made.label = label
        return made

    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)

    @property
    def first(self):
        return self[0]


@case(lambda: (t(3),))
def a_tuple_with_attributes_returned(x):
    seen = Seen((x + 1, 2))
    seen.other = x * 2
    return seen, seen.count, seen.other


@case(lambda: (t(3),))
def a_tuple_with_attributes_over_a_break(x):
    seen = Seen([x, 1])
    seen.me = [seen]
    print("between")
    seen.count += 1
    return seen[0] * seen.count, seen.me[0] is seen, vars(seen)["count"]


@case(lambda: (t(3),))
def a_tuple_whose_attributes_go_through_a_method(x):
    made = Labelled((x, 3), "ab")
    try:
        made.first = 1
    except AttributeError as error:
        refused = type(error).__name__
    return made.first * made[1], made.label, Labelled.label, refused


@case(lambda: (t(3),))
def a_tuple_whose_attributes_are_removed(x):
    seen = Seen((x, 1))
    del seen.count
    with contextlib.suppress(AttributeError):
        del seen.count
    return x * len(seen), hasattr(seen, "count"), getattr(seen, "count", 7), seen


@case(lambda: (t(3),))
def copies_of_a_tuple_with_attributes(x):
    seen = Seen((1, 2))
    seen.tag = [3]
    shallow, deep = copy.copy(seen), copy.deepcopy(seen)
    seen.tag.append(4)
    return x * seen.count, shallow is seen, shallow.tag, deep.tag, seen == shallow, type(deep).__name__


@case(lambda: (t(3), Point(1, 2)))
def attributes_that_tuples_refuse(x, p):
    texts = []
    for value in (p, Point(3), (1, 2), x.shape, Seen((1,))):
        try:
            value.nothing = 1
        except AttributeError as error:
            texts.append(str(error))
    return x + len(texts), texts


class Journal(list):
    def __setattr__(self, name, value):
        self.append(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.append("-" + name)
        super().__delattr__(name)


class Record(dict):
    def __setattr__(self, name, value):
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self[name] = value

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@case(lambda: (t(3), Journal(), Record(a=1)))
def containers_that_take_attributes(x, journal, record):
    journal.size = 2
    journal.kept = x + 1
    del journal.size
    record.b = record.a + 1
    record._hidden = x * 2
    made = Record(c=3)
    made._own = made.c
    try:
        made.missing
    except AttributeError as error:
        missing = str(error)
    return journal.kept * record.b + record._hidden, hasattr(journal, "size"), list(record), made, made._own, missing


# Counts from outside.


@case(lambda: (t(3), itertools.count(1)), lambda: (t(3), itertools.count(7)), lambda: (t(3), itertools.count(30, 3)), lambda: (t(3), itertools.count(-2, -1)), lambda: (t(3), itertools.count(0.5)))
def counts_given(x, ids):
    for i, row in zip(ids, [x, x + 1]):
        x = x + row * i
    return x, next(ids), type(ids) is itertools.count


@case(lambda: (t(3), itertools.count(4)))
def a_count_over_a_break(x, ids):
    first = next(ids)
    print(next(ids))
    return x * first + next(ids), ids


@case(lambda: (t(3), types.SimpleNamespace(ids=itertools.count(2), made=[])))
def a_count_of_an_object(x, maker):
    for _ in range(3):
        maker.made.append(next(maker.ids))
    return x * maker.made[-1], itertools.islice(maker.ids, 2), list(itertools.islice(maker.ids, 2))


# Sorted lists.


@case(lambda: (t(3),))
def bisections(x):
    import bisect

    values = [1, 3, 3, 5]
    bisect.insort(values, 4)
    bisect.insort_left(values, 3)
    texts = []
    try:
        bisect.bisect(values, 2, -1)
    except ValueError as error:
        texts.append(str(error))
    pairs = [("a", 1), ("b", 4)]
    bisect.insort_right(pairs, ("c", 2), key=lambda pair: pair[1])
    return x * bisect.bisect_left(values, 3), bisect.bisect_right(values, 3), bisect.bisect(values, 3, 1, 3), values, pairs, texts, heapq.nsmallest(2, [4, 1, 3]), heapq.nlargest(2, [4, 1, 3], key=lambda v: -v), heapq.nsmallest(2, pairs)


@case(lambda: (t(3), t(4).abs().tolist()))
def iterators_advanced_by_hand(x, values):
    it = iter(values)
    first = it.__next__()
    again = it.__iter__()
    return x * first, again is it, reversed([1, 2]).__next__(), next(again)
