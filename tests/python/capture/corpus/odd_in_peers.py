"""Odd corners of Python that suites of other compilers reach by accident."""

import builtins
import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import json
import math
import operator
import pathlib
import re
import string
import textwrap
import threading
import time
import types
import typing
import weakref

import torch
from capture.cases import Message, Reuse, case, t


class KeyLike(KeyError):
    pass


class OsLike(OSError):
    pass


@case(lambda: (t(3),))
def texts_of_errors(x):
    told = []
    for error in (
        KeyError("a"),
        KeyLike("a"),
        KeyLike("a", 1),
        ExceptionGroup("g", [ValueError(1)]),
        BaseExceptionGroup("g", [ValueError(1), KeyError(2)]),
        ValueError(KeyError("k")),
        StopIteration(3),
        AttributeError("a", name="b"),
        ImportError("no", name="m"),
        SystemExit(2),
        RuntimeError(),
        ValueError("a", 2),
    ):
        told.append((str(error), repr(error), f"{error}", error.args))
    return x + len(told), told


@case(lambda: (t(3),))
def texts_of_errors_from_c(x):
    told = []
    for attempt in (lambda: "é".encode("ascii"), lambda: b"\xff".decode("utf-8"), lambda: int("12x", 10), lambda: "%d" % "a", lambda: "{}".format(), lambda: "a".split("")):
        try:
            attempt()
        except Exception as error:
            told.append((type(error).__name__, str(error)))
    return x + 1, told


@case(lambda: (t(3),))
def traceback_set_and_taken(x):
    seen = []
    try:
        raise ValueError("a")
    except ValueError as error:
        seen.append(error.__traceback__ is None)
        error.__traceback__ = None
        seen.append(error.__traceback__ is None)
        try:
            raise error
        except ValueError as again:
            seen.append(again.__traceback__ is None)
            seen.append(again is error)
    fresh = KeyError().with_traceback(None)
    seen.append(fresh.__traceback__)
    return x + 1, seen


@case(lambda: (t(3),))
def arguments_of_errors_changed(x):
    error = ValueError("a", 1)
    error.args = ("b",)
    error.extra = x
    try:
        raise error
    except ValueError as caught:
        return caught.extra + 1, str(caught), caught.args


@case(lambda: (t(3),))
def dates_and_fractions(x):
    day = datetime.date(2020, 2, 28) + datetime.timedelta(days=2)
    half = fractions.Fraction(1, 3) + fractions.Fraction(1, 6)
    money = decimal.Decimal("1.10") * 3
    return x + day.day, day.isoformat(), half, money, str(half)


@case(lambda: (t(3),))
def paths(x):
    p = pathlib.PurePosixPath("/a/b") / "c.txt"
    return x + len(p.parts), p.suffix, p.stem, str(p.parent), p.with_suffix(".py").name


@case(lambda: (t(3),))
def patterns(x):
    found = re.match(r"(?P<name>\w+)-(\d+)", "layer-12")
    return x + int(found.group(2)), found["name"], re.sub(r"\d", "#", "a1b2"), re.findall(r"[a-z]", "a1b2"), re.split(",", "a,b")


@case(lambda: (t(3),))
def data_as_text(x):
    text = json.dumps({"a": [1, 2.5, None, True]})
    return x + json.loads(text)["a"][0], text


@case(lambda: (t(3),))
def text_files_in_memory(x):
    out = io.StringIO()
    out.write("abc")
    print("def", file=out)
    with contextlib.redirect_stdout(out):
        print("inside")
    return x + 1, out.getvalue()


@case(lambda: (t(3),))
def templates(x):
    return x + 1, string.Template("$a b").substitute(a=1), textwrap.dedent("  a\n  b"), string.ascii_lowercase[:3], textwrap.shorten("a b c d", 5)


@case(lambda: (t(3), t(3)))
def swapped_and_chained(x, y):
    x, y = y, x
    a = b = x + 1
    lo, hi = 0, 10
    ok = lo < 5 <= hi != 3
    return a is b, a - y, ok, (x if ok else y) + 1, not ok, x is not y


@case(lambda: (t(3),), reuse=Reuse.FREE)
def augmented_targets(x):
    class Holder:
        pass

    h = Holder()
    h.v = [1]
    d = {"k": 1}
    h.v += [2]
    h.v[0] += 5
    d["k"] <<= 3
    x = x.clone()
    x *= 2
    x[0] -= 1
    n = 7
    n //= 2
    n **= 2
    n |= 16
    n ^= 1
    n >>= 1
    n %= 5
    return x, h.v, d, n


@case(lambda: (t(3), [1, 2, 3, 4]), lambda: (t(3), [1, 2]))
def starred_everywhere(x, items):
    first, *middle, last = items
    joined = [*items, *range(2), *{"a": 1}]
    merged = {**{"a": 1}, "b": 2, **dict(c=3)}

    def f(a, *rest, k=0, **named):
        return a + len(rest) + k + len(named)

    return x + f(*items, **merged) + f(1, *[2], k=3, **{"z": 1}), first, middle, last, joined, merged, (*items, 9)


@case(lambda: (t(3),))
def loops_with_else(x):
    for n in range(3):
        if n == 5:
            break
    else:
        x = x + 10
    while x.dim() == 1:
        x = x.unsqueeze(0)
    else:
        x = x * 2
    total = 0
    for i, (a, (b, c)) in enumerate([(1, (2, 3)), (4, (5, 6))], start=1):
        if i == 1:
            continue
        total += a * b * c
    return x + total


@case(lambda: (t(3),))
def global_and_builtin_names(x):
    len = lambda v: 42  # noqa: A001
    return x + len([1]) + builtins.len([1]), __name__.rpartition(".")[2], "__file__" in globals()


@case(lambda: (t(3),))
def closures_over_loops(x):
    made = []
    for k in range(3):

        def inner(y, k=k):
            nonlocal x
            x = x + k
            return y * k

        made.append(inner)
    results = [f(x) for f in made]
    return results, x


@case(lambda: (t(3),))
def deleted_cells(x):
    n = 3

    def inner():
        return n

    before = inner()
    del n
    try:
        inner()
    except NameError as error:
        return x + before, str(error)


class Ordered(enum.Enum):
    ONE = 1
    TWO = "two"
    PAIR = (1, 2)

    def __init__(self, value, *rest):
        self.extra = len(rest)

    @staticmethod
    def helper(v):
        return v * 2

    def __str__(self):
        return self.name.lower()


@case(lambda: (t(3), Ordered.PAIR), lambda: (t(3), Ordered.ONE))
def rich_enumerations(x, o):
    table = {Ordered.ONE: 1, Ordered.PAIR: 2}
    return x * table[o] + o.extra, str(o), f"{o}", o.value, o in Ordered, [m.name for m in Ordered], Ordered.helper(2), Ordered.__members__["TWO"] is Ordered.TWO, hash(o) == hash(o), o is not Ordered.TWO


@dataclasses.dataclass
class Node:
    value: torch.Tensor
    children: list = dataclasses.field(default_factory=list)
    parent: typing.Optional["Node"] = None

    def add(self, child):
        child.parent = self
        self.children.append(child)
        return self

    def total(self):
        return self.value + sum(c.total() for c in self.children)

    def __iter__(self):
        yield self
        for c in self.children:
            yield from c


@case(lambda: (t(3),))
def trees_of_records(x):
    root = Node(x).add(Node(x * 2).add(Node(x + 1))).add(Node(x - 1))
    return root.total(), len(list(root)), root.children[0].children[0].parent.parent is root, [n.value.sum() for n in root]


@dataclasses.dataclass
class Config:
    size: int = 4
    names: tuple = ("a", "b")
    rate: float = 0.5
    inner: "Config" = None

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    @property
    def doubled(self):
        return self.size * 2


@case(lambda: (t(3), Config(inner=Config(8))), lambda: (t(3), Config(5, inner=Config(8))), lambda: (t(3), Config(6, inner=Config(9))))
def configurations(x, c):
    c.rate = c.rate + 1
    return x * c.inner.doubled + c.size, c.rate, {k: v for k, v in vars(c).items() if k != "inner"}


class Validated:
    def __init__(self, kind):
        self.kind = kind

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        if obj is None:
            return self
        try:
            return obj.__dict__[self.name]
        except KeyError:
            raise AttributeError(self.name) from None

    def __set__(self, obj, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"{self.name} wants {self.kind.__name__}")
        obj.__dict__[self.name] = value


class Typed:
    n = Validated(int)
    s = Validated(str)


@case(lambda: (t(3),))
def validated_attributes(x):
    v = Typed()
    before = hasattr(v, "n")
    v.n = 3
    try:
        v.s = 4
    except TypeError as error:
        told = str(error)
    return x + v.n, before, told, v.__dict__, getattr(v, "s", "none")


class Proxy:
    def __init__(self, target):
        object.__setattr__(self, "_target", target)

    def __getattr__(self, name):
        return getattr(self._target, name)

    def __setattr__(self, name, value):
        setattr(self._target, name, value)

    def __delattr__(self, name):
        delattr(self._target, name)

    def __call__(self, *args):
        return self._target(*args)


@case(lambda: (t(3), Proxy(types.SimpleNamespace(a=1, b=2))))
def proxies_of_objects(x, p):
    p.a = p.a + 5
    p.c = x
    del p.b
    return p.c + p.a, hasattr(p, "b"), sorted(vars(p._target))


class Plugin(type):
    known = []

    def __new__(mcs, name, bases, space, **kwargs):
        space.setdefault("tag", name.lower())
        made = super().__new__(mcs, name, bases, space)
        mcs.known.append(name)
        return made

    def __init__(cls, name, bases, space, **kwargs):
        super().__init__(name, bases, space)
        cls.options = kwargs

    def __instancecheck__(cls, other):
        return getattr(other, "pretends", None) == cls.__name__ or super().__instancecheck__(other)

    def __iter__(cls):
        return iter([1, 2])

    def __eq__(cls, other):
        return cls is other

    def __hash__(cls):
        return 7

    def __add__(cls, other):
        return "added"


class Alpha(metaclass=Plugin, level=3):
    pass


@case(lambda: (t(3), types.SimpleNamespace(pretends="Alpha")))
def classes_of_classes(x, o):
    return x + Alpha.options["level"], Alpha.tag, isinstance(o, Alpha), isinstance(3, Alpha), list(Alpha), Alpha + 1, Alpha == Alpha, Plugin.known, {Alpha: 1}[Alpha]


class Meter:
    total = 0
    history = []

    def update(self, v):
        Meter.total += v
        type(self).history.append(v)
        self.__class__.last = v
        return self


@case(lambda: (t(3),), reuse=Reuse.FREE)
def attributes_of_classes_written(x):
    Meter.total = 0
    Meter.history = []
    m = Meter().update(2).update(3)
    return x + Meter.total, m.history, Meter.last, "total" in m.__dict__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def types_made_by_hand(x):
    P = collections.namedtuple("P", ["a", "b"])
    p = P(1, b=2)
    ns = types.SimpleNamespace(a=1)
    ns.b = 2
    return x + p.a + ns.b, p, ns == types.SimpleNamespace(a=1, b=2), p._asdict(), P._fields, repr(ns), p < (1, 3), p + (3,)


@case(lambda: (t(3),))
def chained_maps(x):
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    child = m.new_child({"c": 4})
    child["b"] = 9
    return x + child["a"] + child["b"], sorted(child), m["b"], dict(child), child.maps[0]


@case(lambda: (t(3),))
def counted(x):
    c = collections.Counter("abca")
    c.update("ab")
    c.subtract({"c": 3})
    d = c + collections.Counter(a=1)
    return x + c["a"] + c["missing"], c.most_common(2), sorted(c.elements()), d, c & d, +c, list(c.items())


@case(lambda: (t(3),), reuse=Reuse.FREE)
def user_containers_of_the_library(x):
    class D(collections.UserDict):
        def __setitem__(self, k, v):
            super().__setitem__(k.upper(), v)

    d = D(a=1)
    d["b"] = x
    u = collections.UserList([3, 1, 2])
    u.sort()
    return d["B"] + u[0], list(d), u.data, len(u + [1]), collections.UserString("ab").upper()


@case(lambda: (t(3),))
def heaps_and_bisection(x):
    import bisect
    import heapq

    h = [5, 1, 4]
    heapq.heapify(h)
    heapq.heappush(h, 2)
    a = [1, 3, 5]
    bisect.insort(a, 4)
    return x + heapq.heappop(h), h, a, bisect.bisect(a, 3), heapq.nlargest(2, a), heapq.nsmallest(1, [(2, "b"), (1, "a")]), list(heapq.merge([1, 4], [2]))


@case(lambda: (t(3),))
def copies_of_objects(x):
    n = Node(x, [1, [2]])
    a = copy.copy(n)
    b = copy.deepcopy(Config(inner=Config(3)))
    n.children[1].append(3)
    return a.value + b.inner.size, a.children is n.children, b.inner is not None


class Copied:
    def __init__(self, n):
        self.n = n

    def __copy__(self):
        return Copied(self.n + 1)

    def __deepcopy__(self, memo):
        return Copied(self.n + 10)


@case(lambda: (t(3), Copied(1)))
def copies_with_a_say(x, c):
    return x + copy.copy(c).n + copy.deepcopy([c])[0].n


@case(lambda: (t(3),))
def locks(x):
    lock = threading.Lock()
    with lock:
        x = x + 1
    return x, lock.locked()


@case(lambda: (t(3),))
def clocks(x):
    begin = time.perf_counter()
    y = x + 1
    return y, time.perf_counter() >= begin


@case(lambda: (t(3), "b"), lambda: (t(3), "z"))
def dispatch_by_table(x, key):
    def default(y):
        return y - 1

    table = {"a": torch.sin, "b": lambda y: y * 2, "c": functools.partial(torch.add, other=1)}
    return table.get(key, default)(x), key in table


@case(lambda: (t(3),))
def immediately_called(x):
    return (lambda *a, **k: a[0] + k["z"])(x, z=3), (lambda: (yield))().__class__.__name__, [*map(lambda p: p[0](p[1]), [(abs, -1), (str, 2)])]


@case(lambda: (t(3), 5), lambda: (t(3), -5), lambda: (t(3), 0))
def chained_conditions(x, n):
    kind = "neg" if n < 0 else "zero" if n == 0 else "pos"
    flag = n and x.dim() or "nothing"
    return x + (n > 0) - (n < 0), kind, flag, bool(n) is True, n or 3, n and 4, not n


@case(lambda: (t(3), [1, 2, 3]), lambda: (t(3), [1, 2, 3, 4]))
def slices_of_lists(x, items):
    items[1:1] = [9, 8]
    items[::2] = [0] * len(items[::2])
    del items[-1], items[0]
    copy_ = items[:]
    copy_[len(copy_) :] = [7]
    return x + sum(items), items, copy_[::-1], items[slice(None, 2)]


@case(lambda: (t(3),), reuse=Reuse.FREE)
def nested_functions_in_methods(x):
    class A:
        def __init__(self):
            self.k = 2

        def run(self, y):
            def inner(z):
                def deeper(w):
                    return w * self.k

                return deeper(z) + 1

            return inner(y)

    return A().run(x)


@case(lambda: (t(3),))
def generators_in_functions_of_the_library(x):
    def numbers():
        yield from range(4)

    return x + sum(numbers()), max(numbers()), sorted(numbers(), reverse=True), set(numbers()), dict.fromkeys(numbers()), ",".join(str(n) for n in numbers()), list(enumerate(numbers()))[1], all(numbers()), tuple(map(str, numbers())), list(zip(numbers(), numbers())), min(numbers(), key=lambda n: -n), [*numbers()], bytes(numbers()), functools.reduce(operator.add, numbers())


class Resource:
    log = []

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        Resource.log.append("+" + self.name)
        return self

    def __exit__(self, kind, error, tb):
        Resource.log.append("-" + self.name)
        return kind is KeyError and self.name == "b"


@case(lambda: (t(3),), reuse=Reuse.FREE)
def stacks_of_managers(x):
    Resource.log = []
    with contextlib.ExitStack() as stack:
        for n in "abc":
            stack.enter_context(Resource(n))
        stack.callback(Resource.log.append, "called")
        x = x + 1
        raise KeyError("k")
    return x, Resource.log


@case(lambda: (t(3),), reuse=Reuse.FREE)
def managers_moved_away(x):
    Resource.log = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(Resource("a"))
        later = stack.pop_all()
        x = x * 2
    between = list(Resource.log)
    later.close()
    return x, between, Resource.log


@case(lambda: (t(3),))
def reentrant_managers(x):
    @contextlib.contextmanager
    def tagged(tag, log):
        log.append(f"<{tag}")
        try:
            yield tag
        except ZeroDivisionError:
            log.append("caught")
        finally:
            log.append(f"{tag}>")

    log = []
    with tagged("a", log) as a, tagged("b", log) as b:
        x = x + len(a + b)
        1 / 0
    return x, log


@case(lambda: (t(3),))
def managers_that_return(x):
    @contextlib.contextmanager
    def note(log):
        log.append("in")
        yield
        log.append("out")

    log = []

    def inner():
        with note(log):
            return x + 1

    return inner(), log


@case(lambda: (t(3),), message=Message.ANY)
def a_manager_that_never_yields(x):
    @contextlib.contextmanager
    def empty():
        if False:
            yield

    try:
        with empty():
            pass
    except RuntimeError as error:
        return x + 1, str(error)


@case(lambda: (t(3), None))
def weak_references_to_tensors(x, _):
    r = weakref.ref(x)
    p = weakref.proxy(x)
    return r() + 1, p.shape, r() is x


@case(lambda: (t(3),))
def comparisons_of_all_kinds(x):
    return (
        x + 1,
        (1, 2) < (1, 3),
        [1] == [1.0],
        {"a": 1} == {"a": 1.0},
        "a" < "b" <= "b",
        None is None,
        1 == True,
        float("nan") != float("nan"),
        {1, 2} > {1},
        (1, "a") != (1, "b"),
        range(3) == range(0, 3),
        b"a" == "a",
        x is x,
        x.shape == (3,),
        x.dtype == torch.float32,
        [x] == [x],
        type(x) == torch.Tensor,
        x.device == torch.device("cpu"),
        torch.Size([1]) + (2,) == (1, 2),
    )


@case(lambda: (t(3),))
def numbers_of_all_kinds(x):
    return (
        x * 0x10 + 0b11,
        10**20,
        -7 // 2,
        -7 % 3,
        7.5 // 2,
        divmod(-7, 2),
        2**-1,
        round(2.5),
        round(-1.55, 1),
        int(-3.9),
        math.floor(-0.5),
        math.trunc(2.7),
        1e308 * 10,
        (1 + 2j) * (3 - 1j),
        abs(3 + 4j),
        int.from_bytes(b"\x01\x02", "big"),
        (5).to_bytes(2, "little"),
        hex(255),
        bin(5),
        oct(8),
        float.fromhex("0x1p-2"),
        (0.1).hex(),
        float("inf") - 1,
        True + True,
        ~5,
        5 & 3 | 8 ^ 1,
        1 << 40,
        math.gcd(12, 18),
        math.comb(5, 2),
        math.factorial(5),
        math.hypot(3, 4),
        math.log2(8),
        math.copysign(1, -0.0),
        math.isqrt(17),
        math.fsum([0.1] * 10),
        sum([0.1] * 3),
        math.dist((0, 0), (3, 4)),
        complex("1+2j").conjugate(),
        (3.0).is_integer(),
        (10).bit_count(),
    )
