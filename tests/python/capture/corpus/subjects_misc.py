"""Subjects of a peer's tests, of many kinds: what users write around tensors in one function each."""

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import math
import operator
import sys
import types
import typing
import warnings
import weakref

import torch
import torch.nn.functional as F
from capture.cases import Message, Reuse, case, t


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def double(self):
        return self.value * 2

    @classmethod
    def first(cls):
        return next(iter(cls))


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: int = 2
    tags: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.total = self.x + self.y


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 1


class Celsius(float):
    def doubled(self):
        return Celsius(self * 2)


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Index(int):
    def after(self):
        return Index(self + 1)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        """The area."""

    @property
    def twice(self):
        return self.area() * 2


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


@case(lambda: (t(3), Color.GREEN), lambda: (t(3), Color.RED))
def an_enum_in_a_branch(x, color):
    if color is Color.RED:
        return x
    return x * color.value + color.double, color.name, Color(2) is color, Color["RED"], Color.first()


@case(lambda: (t(3), Level.HIGH))
def an_int_enum_in_arithmetic(x, level):
    return x * level + Level.LOW, level > Level.LOW, max(Level), list(Level), level + 1


@case(lambda: (t(3), Flags.A | Flags.B))
def flags(x, f):
    return (x + 1 if Flags.A in f else x), bool(f & Flags.B), f == Flags.A | Flags.B


@case(lambda: (t(3),))
def a_dataclass_made_inside(x):
    p = Point(x, tags=["a"])
    q = dataclasses.replace(p, y=5)
    return p.total + q.total, dataclasses.asdict(Frozen(1)), [f.name for f in dataclasses.fields(p)], q.tags


@case(lambda: (t(3), Frozen(2, 3)), lambda: (t(3), Frozen(4)))
def a_frozen_dataclass(x, f):
    return x * f.a, f == Frozen(2, 3), f < Frozen(9, 9), hash(f) == hash(Frozen(f.a, f.b)), {f: 1}[f]


@case(lambda: (t(3), Celsius(1.5)))
def a_float_of_a_class(x, c):
    return x * c.doubled(), type(c.doubled()).__name__, isinstance(c, float), c + 1


@case(lambda: (t(3), Name("abc")))
def a_text_of_a_class(x, name):
    return x + len(name), name.shout(), isinstance(name, str), name + "d", name == "abc"


@case(lambda: (t(3), Index(1)))
def an_int_of_a_class(x, i):
    return x[i] * i.after(), type(i.after()).__name__, [10, 20, 30][i], i == 1


@case(lambda: (t(3),))
def an_abstract_class(x):
    s = Square(x)
    return s.twice, isinstance(s, Shape), issubclass(Square, Shape)


@case(lambda: (t(3), 2), lambda: (t(3), 2.5), lambda: (t(3), "a"))
def dispatch_by_class(x, value):
    @functools.singledispatch
    def kind(v):
        return "other"

    kind.register(int, lambda v: "int")
    kind.register(float, lambda v: "float")
    return x + 1, kind(value)


@case(lambda: (t(3), [3, 1, 2]))
def tools_of_functools(x, items):
    key = functools.cmp_to_key(lambda a, b: b - a)
    return x * functools.reduce(operator.mul, items, 1), sorted(items, key=key)


@functools.lru_cache(maxsize=None)
def squared(n):
    return n * n


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def a_cached_function(x, n):
    return x + squared(n)


@functools.wraps(squared)
def wrapped(x):
    return x + 1


@case(lambda: (t(3),))
def the_name_of_a_wrapper(x):
    return wrapped(x), wrapped.__name__, hasattr(wrapped, "__wrapped__")


@case(lambda: (t(3), [1, 2, 3, 4]))
def tools_of_itertools(x, items):
    return (
        x + sum(itertools.accumulate(items)),
        list(itertools.combinations(items, 2)),
        list(itertools.permutations(items[:3], 2)),
        list(itertools.product(items[:2], repeat=2)),
        list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.takewhile(lambda i: i < 3, items)),
        list(itertools.dropwhile(lambda i: i < 3, items)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.zip_longest(items, items[:1], fillvalue=0)),
        list(itertools.chain.from_iterable([[1], [2, 3]])),
        list(itertools.compress(items, [1, 0, 1, 0])),
        list(itertools.filterfalse(lambda i: i % 2, items)),
        list(itertools.repeat(7, 2)),
        list(itertools.pairwise(items)),
        [(k, list(g)) for k, g in itertools.groupby(items, lambda i: i // 3)],
    )


@case(lambda: (t(3), [1, 2]))
def an_endless_cycle(x, items):
    c = itertools.cycle(items)
    return x * next(c) + next(c) * next(c), list(itertools.islice(c, 3))


@case(lambda: (t(3),))
def tee_of_tensors(x):
    a, b = itertools.tee([x, x + 1, x + 2])
    return sum(a), list(b)


@case(lambda: (t(3),))
def what_inspect_says(x):
    def f(a, b=2, *args, c, d=4, **kwargs):
        return a

    signature = inspect.signature(f)
    bound = signature.bind(x, c=1)
    bound.apply_defaults()
    return bound.arguments["b"] + x, list(signature.parameters), inspect.isfunction(f), inspect.isclass(Square), inspect.ismethod(f)


@case(lambda: (t(3),))
def what_sys_says(x):
    if sys.version_info >= (3, 8) and sys.byteorder == "little":
        return x + sys.maxsize % 7, sys.intern("a b") == "a b"
    return x


@case(lambda: (t(3),))
def what_typing_says(x):
    y: typing.Optional[torch.Tensor] = x + 1
    return typing.cast(torch.Tensor, y), typing.get_origin(list[int]) is list, typing.get_args(dict[str, int]), typing.TYPE_CHECKING


@case(lambda: (t(3), [1, [2]]))
def copies(x, items):
    shallow, deep = copy.copy(items), copy.deepcopy(items)
    items[1].append(3)
    return x + len(shallow[1]), shallow, deep


@case(lambda: (t(3),))
def a_copy_of_a_tensor(x):
    y = copy.copy(x)
    z = copy.deepcopy(x)
    z.add_(1)
    return y + z, y is x


@case(lambda: (t(3), {"a": [1]}))
def a_copy_of_an_object(x, d):
    p = types.SimpleNamespace(x=x, d=d)
    q = copy.copy(p)
    q.x = x + 1
    q.d["b"] = 1
    return p.x + q.x, p.d


@case(lambda: (t(3),))
def warnings_recorded(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)
    return x + len(seen), str(seen[0].message)


@case(lambda: (t(3),))
def warnings_ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("careful", stacklevel=1)
        return x + 1


@case(lambda: (t(3), []))
def a_stack_of_contexts(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.callback(log.append, "called")
        y = x * 2
        return y, torch.is_grad_enabled(), log


@contextlib.contextmanager
def scaled_by(log, factor):
    log.append("in")
    try:
        yield factor
    except ValueError:
        log.append("caught")
    finally:
        log.append("out")


@case(lambda: (t(3), []))
def a_context_that_swallows(x, log):
    with scaled_by(log, 2) as f:
        x = x * f
        raise ValueError("no")
    return x, log


@scaled_by([], 3)
def decorated(x):
    return x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_context_as_a_decorator(x):
    return decorated(x) * 2


@case(lambda: (t(3),))
def contexts_of_the_library(x):
    with contextlib.suppress(KeyError), contextlib.nullcontext(5) as five:
        x = x + five
        {}["missing"]
    return x


class Closing:
    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


@case(lambda: (t(3),))
def closed_in_the_end(x):
    thing = Closing()
    with contextlib.closing(thing) as same:
        y = x + same.closed
    return y, thing.closed


class Node:
    def __init__(self, value):
        self.value = value


@case(lambda: (t(3), Node(2)), reuse=Reuse.FREE)
def a_weak_reference(x, node):
    ref = weakref.ref(node)
    return x * ref().value, ref() is node


@case(lambda: (t(3), Node(2)), reuse=Reuse.FREE)
def a_weak_dictionary(x, node):
    d = weakref.WeakKeyDictionary()
    d[node] = 3
    return x * d[node], len(d), node in d


@case(lambda: (t(3), Node(2)), reuse=Reuse.FREE)
def a_weak_set(x, node):
    s = weakref.WeakSet([node])
    return x + len(s), node in s


@case(lambda: (t(3),))
def versions(x):
    y = x.clone()
    before = y._version
    y.add_(1)
    return y, y._version - before


@case(lambda: (t(3),))
def data_set(x):
    y = x.clone()
    y.data = torch.zeros(2)
    return y + 1


@case(lambda: (t(3),))
def inference_inside(x):
    with torch.inference_mode():
        y = x * 2
        return y, y.is_inference(), y.requires_grad


@torch.inference_mode()
def inferring(x):
    return x * 2


@case(lambda: (t(3),))
def inference_by_a_decorator(x):
    return inferring(x) + 1


@case(lambda: (t(3),))
def a_counter(x):
    c = collections.Counter("abca")
    c.update("a")
    return x + c["a"], c.most_common(1), c["z"], sum(c.values())


@case(lambda: (t(3),))
def a_chain_map(x):
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": x})
    return m["b"] + m["a"], list(m), "z" in m


@case(lambda: (t(3),))
def a_user_dict(x):
    d = collections.UserDict(a=x)
    d["b"] = x + 1
    return d["a"] + d["b"], len(d), list(d)


@case(lambda: (t(3),))
def a_user_list(x):
    u = collections.UserList([x, x + 1])
    u.append(x + 2)
    return sum(u), len(u)


@case(lambda: (t(3),))
def a_named_tuple(x):
    P = collections.namedtuple("P", "a b", defaults=[5])
    p = P(x)
    return p.a + p.b, p._replace(b=7).b, p._asdict().keys(), P._fields


class Pair(typing.NamedTuple):
    a: torch.Tensor
    b: int = 3

    def total(self):
        return self.a + self.b


@case(lambda: (t(3),))
def a_typed_named_tuple(x):
    p = Pair(x)
    a, b = p
    return p.total(), Pair._make([a, 4]).total(), p == (a, b) if False else b


@case(lambda: (t(3), 5))
def walrus_and_conditions(x, n):
    if (half := n // 2) > 1 and (rest := n % 2):
        return x * half + rest
    return x


@case(lambda: (t(3), {"a": 1, "b": 2}))
def patterns(x, d):
    match d:
        case {"a": a, **rest}:
            x = x + a + len(rest)
    match [1, x]:
        case [int(n), torch.Tensor() as y]:
            x = y * n
    match Color.RED:
        case Color.RED | Color.GREEN:
            x = x + 1
    return x


@case(lambda: (t(3),))
def formatted(x):
    n, f = 3, 1.25
    return x + 1, f"{n:>4}|{f:.1f}|{n!r:^5}|{tuple(x.shape)}|{x.dtype}", "%d-%s" % (n, "a"), "{0}{k}".format(1, k=n)


@case(lambda: (t(3),))
def numbers_of_math(x):
    return x * math.sqrt(2) + math.pi, math.floor(2.7), math.gcd(12, 8), math.isclose(0.1 + 0.2, 0.3), math.comb(5, 2), math.inf > 1


@case(lambda: (t(3), 5), lambda: (t(3), 6))
def bits_of_integers(x, n):
    return x + n.bit_length(), n.to_bytes(2, "big"), int.from_bytes(b"\x01\x02", "big"), (n).__index__(), divmod(n, 4), pow(n, 2, 7)


@case(lambda: (t(3),))
def texts(x):
    s = "a,b,,c"
    return x + s.count(","), s.split(","), s.partition(","), "-".join(["a", "b"]), s.replace(",", ";").title(), s.encode(), ord("a"), chr(98)


@case(lambda: (t(3),), message=Message.ANY)
def an_attribute_that_is_missing(x):
    try:
        return x.nothing
    except AttributeError as error:
        return x, error.name, type(error).__name__


@case(lambda: (t(3),))
def attributes_by_name(x):
    o = types.SimpleNamespace()
    setattr(o, "a", x)
    y = getattr(o, "a") + getattr(o, "b", 1)
    delattr(o, "a")
    return y, hasattr(o, "a"), vars(o)


@case(lambda: (t(3),))
def slices_as_objects(x):
    s = slice(0, 2)
    y = torch.arange(12).reshape(3, 4)
    return x[s], s.indices(3), y[s, slice(None, None, 2)], y[..., s], [1, 2, 3][s]


@case(lambda: (t(2, 3),))
def star_expressions(x):
    first, *rest = x.unbind(1)
    return [*rest, first], {**{"a": first}}, (*x.shape, 1)


@case(lambda: (t(3),))
def functions_with_everything(x):
    def f(a, /, b, *args, c=1, **kwargs):
        return a + b + sum(args) + c + sum(kwargs.values())

    return f(x, 1), f(x, 1, 2, 3, c=4, d=5), f(x, b=2), f(*[x, 1], **{"z": 3})


@case(lambda: (t(3),))
def closures_that_write(x):
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    add(1)
    add(2)
    return x + total, add.__closure__[0].cell_contents


@case(lambda: (t(3),))
def default_arguments_are_shared(x):
    def f(n, seen=[]):
        seen.append(n)
        return len(seen)

    f(1)
    return x + f(2), f.__defaults__


@case(lambda: (t(3),))
def recursion(x):
    def fact(n):
        return 1 if n == 0 else n * fact(n - 1)

    return x * fact(5)


@case(lambda: (t(3),))
def sorting(x):
    items = [(2, "b"), (1, "z"), (2, "a")]
    items.sort(key=operator.itemgetter(0), reverse=True)
    return x, items, sorted(items, key=lambda i: (i[0], i[1])), min(items), max(items, key=lambda i: i[1])


@case(lambda: (t(3),))
def operators_by_name(x):
    return operator.add(x, 1), operator.attrgetter("shape")(x), operator.methodcaller("sum")(x), operator.itemgetter(0, 1)([5, 6]), operator.contains([1], 1)


@case(lambda: (t(3),))
def partials(x):
    f = functools.partial(torch.add, alpha=2)
    g = functools.partial(f, x)
    return g(1), f.keywords, g.args[0] is x, f.func is torch.add


class WithPartialMethod:
    def scale(self, factor, x):
        return x * factor

    double = functools.partialmethod(scale, 2)


@case(lambda: (t(3),))
def a_partial_method(x):
    return WithPartialMethod().double(x)


@functools.total_ordering
class Ordered:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@case(lambda: (t(3),))
def a_total_order(x):
    a, b = Ordered(1), Ordered(2)
    return x + (a <= b) + (b > a), max(a, b) is b, sorted([b, a])[0] is a


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.made_by = cls.__name__
        return made

    def __getitem__(cls, n):
        return n * 2


class Made(metaclass=Meta):
    def __init__(self, x):
        self.x = x

    def __class_getitem__(cls, n):
        return n


@case(lambda: (t(3),))
def a_metaclass(x):
    return Made(x).x + 1, Made(x).made_by, Made[4]


class Registered:
    known = {}

    def __init_subclass__(cls, name=None, **kwargs):
        super().__init_subclass__(**kwargs)
        Registered.known[name] = cls


class First(Registered, name="first"):
    def run(self, x):
        return x + 1


@case(lambda: (t(3),))
def a_registry_of_classes(x):
    return Registered.known["first"]().run(x)


class Lazy:
    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda x: x + len(name)
        raise AttributeError(name)


@case(lambda: (t(3),))
def attributes_made_up(x):
    return Lazy().get_a(x), hasattr(Lazy(), "put_a"), getattr(Lazy(), "other", None)


class Watched:
    def __setattr__(self, name, value):
        object.__setattr__(self, "log", [*self.__dict__.get("log", []), name])
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.log.append("-" + name)
        object.__delattr__(self, name)


@case(lambda: (t(3),))
def attributes_watched(x):
    w = Watched()
    w.a = x
    w.b = 2
    del w.b
    return w.a + 1, w.log


class Ring:
    __slots__ = ("items", "at")

    def __init__(self, items):
        self.items, self.at = items, 0

    def __next__(self):
        self.at += 1
        return self.items[self.at % len(self.items)]

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.items)

    def __contains__(self, item):
        return any(item is other for other in self.items)

    def __getitem__(self, i):
        return self.items[i]

    def __call__(self, x):
        return x + self.at

    def __bool__(self):
        return self.at > 0

    def __reversed__(self):
        return reversed(self.items)


@case(lambda: (t(3),))
def special_methods(x):
    r = Ring([1, 2, 3])
    before = bool(r)
    return x * next(r) + next(r), r(x), len(r), 2 in r, r[1], before, bool(r), list(reversed(r)), list(zip(range(2), r))


@case(lambda: (t(3),))
def types_of_things(x):
    return x + 1, type(x) is torch.Tensor, isinstance(x, (int, torch.Tensor)), isinstance(1, int | str), type(1) is int, callable(F.relu), type(None) is types.NoneType


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_class_made_by_type(x):
    T = type("T", (object,), {"n": 3, "f": lambda self, x: x * self.n})
    return T().f(x), T.__name__


@case(lambda: (t(3),))
def exceptions_with_groups(x):
    try:
        raise ExceptionGroup("many", [ValueError("a"), TypeError("b")])
    except* ValueError as group:
        x = x + len(group.exceptions)
    except* TypeError:
        x = x * 2
    return x
