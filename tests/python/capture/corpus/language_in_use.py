"""Exceptions, generators, containers, texts, classes and builtins, as programs use them."""

import abc
import collections
import copy
import functools
import gc
import logging
import math
import operator
import os
import re
import string
import sys
import textwrap
import threading
import time
import traceback
import types
import typing
import unittest
import warnings
import weakref

import torch
from capture.cases import Reuse, case, t

COUNTER = 0
TABLE = {"a": 1}


class MyError(Exception):
    def __init__(self, code, *rest):
        super().__init__(code, *rest)
        self.code = code

    def __str__(self):
        return f"MyError({self.code})"


@case(lambda: (t(3),))
def raise_and_catch_chain(x):
    try:
        try:
            raise KeyError("k")
        except KeyError as e:
            raise MyError(3) from e
    except MyError as e:
        return x + e.code, str(e), e.args, type(e.__cause__), e.__suppress_context__, e.__context__ is e.__cause__


@case(lambda: (t(3),))
def finally_and_else(x):
    log = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            log.append(i)
        except ValueError:
            log.append("e")
        else:
            log.append("else")
        finally:
            log.append("f")
    return x, log


@case(lambda: (t(3),))
def reraise_bare(x):
    try:
        try:
            raise ValueError("a")
        except ValueError:
            x = x + 1
            raise
    except ValueError as e:
        return x, e.args


@case(lambda: (t(3),))
def uncaught_exception(x):
    x = x + 1
    raise MyError(5, x.shape[0])


@case(lambda: (t(3),))
def exception_notes(x):
    try:
        e = ValueError("q")
        e.add_note("note")
        raise e
    except ValueError as f:
        return x, f.__notes__, e is f


@case(lambda: (t(3),))
def exception_groups(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as eg:
        x = x + len(eg.exceptions)
    except* TypeError:
        x = x * 2
    return x


@case(lambda: (t(3),))
def exception_group_plain(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except ExceptionGroup as eg:
        m, rest = eg.split(ValueError)
        return x + len(m.exceptions), rest.message


@case(lambda: (t(3),))
def stop_iteration_value(x):
    def g():
        yield x
        return 5

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x + e.value


@case(lambda: (t(3),))
def key_error_message(x):
    try:
        {}["missing"]
    except KeyError as e:
        a = str(e), e.args
    try:
        [1][5]
    except IndexError as e:
        b = str(e)
    try:
        int("q")
    except ValueError as e:
        c = str(e)
    try:
        x.nothing
    except AttributeError as e:
        d = str(e), e.name
    try:
        1 / 0
    except ZeroDivisionError as e:
        f = str(e)
    try:
        None.q
    except AttributeError as e:
        g = str(e)
    return x, a, b, c, d, f, g


@case(lambda: (t(3),))
def assert_with_message(x):
    try:
        assert x.shape[0] == 4, f"bad {x.shape[0]}"
    except AssertionError as e:
        return x, str(e)


@case(lambda: (t(3),))
def assert_on_data(x):
    assert (x * x).sum() >= 0, "never"
    return x + 1


@case(lambda: (t(3),))
def sys_exc_info(x):
    try:
        raise ValueError(3)
    except ValueError:
        kind, value, _ = sys.exc_info()
        y = x + value.args[0]
    return y, kind, sys.exc_info()[0]


@case(lambda: (t(3),))
def traceback_format(x):
    try:
        raise ValueError("text")
    except ValueError as e:
        return x, traceback.format_exception_only(type(e), e)


@case(lambda: (t(3),))
def exception_in_generator_finally(x):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    for v in g():
        x = x + v
        break
    it = g()
    next(it)
    it.close()
    return x, log


@case(lambda: (t(3),))
def generator_send_throw(x):
    def g():
        got = yield 1
        try:
            got = yield got * 2
        except ValueError as e:
            got = yield str(e)
        return got

    it = g()
    a = next(it)
    b = it.send(x)
    c = it.throw(ValueError("thrown"))
    try:
        it.send(9)
    except StopIteration as e:
        d = e.value
    return a, b, c, d


@case(lambda: (t(3),))
def yield_from_return(x):
    def inner():
        r = yield x
        return r

    def outer():
        v = yield from inner()
        yield v

    it = outer()
    return next(it), it.send(x * 2)


@case(lambda: (t(3),))
def generator_over_break(x):
    def g():
        yield x
        torch._dynamo.graph_break()
        yield x + 1

    return [v * 2 for v in g()]


@case(lambda: (t(3),))
def generator_returned(x):
    return (x * i for i in range(3))


@case(lambda: (t(3), [1, 2, 3]))
def generator_expression_any(x, items):
    return x + any(v > 2 for v in items) + all(v > 2 for v in items) + sum(v for v in items), max((v for v in items), default=0)


class MyDict(dict):
    def __missing__(self, k):
        return k * 2


class MyList(list):
    def append(self, v):
        super().append(v)
        super().append(v)


class MySet(set):
    pass


class MyOrdered(collections.OrderedDict):
    def __setitem__(self, k, v):
        super().__setitem__(k, v)
        self.move_to_end(k, last=False)


class MyUser(collections.UserDict):
    pass


@case(lambda: (t(3),))
def dict_subclass_missing(x):
    d = MyDict(a=1)
    d["b"] = 2
    return x + d["a"] + d[4], d.get(9), d, d | {"q": 1}


@case(lambda: (t(3),))
def list_subclass(x):
    l = MyList([1])
    l.append(x)
    return l, len(l), l + [1], l[1:] , l * 2


@case(lambda: (t(3),))
def ordered_subclass(x):
    d = MyOrdered()
    d["a"] = x
    d["b"] = x + 1
    return list(d), d, d.popitem()


@case(lambda: (t(3),))
def userdict(x):
    d = MyUser(a=x)
    d["b"] = x * 2
    return sum(d.values()), len(d), "a" in d, d.get("z", 3), list(d)


@case(lambda: (t(3),))
def userlist(x):
    d = collections.UserList([x, x])
    d.append(x)
    return sum(d), len(d)


@case(lambda: (t(3),))
def counter_ops(x):
    c = collections.Counter("abca")
    c.update("b")
    d = collections.Counter(a=1)
    return x * c["a"], c.most_common(1), c["zz"], c + d, c - d, sum(c.values()), list(c.elements()), c.total()


@case(lambda: (t(3),))
def chainmap_ops(x):
    c = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    c["q"] = 5
    return x * c["a"] + c["b"], dict(c), c.maps[0], len(c), c.new_child({"z": 1})["z"]


@case(lambda: (t(3),))
def defaultdict_ops(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["a"].append(1)
    e = collections.defaultdict(lambda: x)
    e["z"]
    f = collections.defaultdict(int, {"q": 1})
    f["r"] += 1
    return d, e["y"], f, d.default_factory is list


@case(lambda: (t(3),))
def deque_ops(x):
    d = collections.deque([1, 2, 3], maxlen=3)
    d.append(x)
    d.appendleft(7)
    d.rotate(1)
    d.extend([8, 9])
    d.extendleft([1])
    e = collections.deque([1, 2, 3])
    e.remove(2)
    e.insert(1, 5)
    e.reverse()
    return d, d.maxlen, e, e.count(5), e.index(5), e.pop(), e.popleft(), copy.copy(e), 5 in e, d[0]


@case(lambda: (t(3),))
def set_ops(x):
    a = {1, 2, 3}
    b = frozenset([2, 3, 4])
    a.add(5)
    a.discard(9)
    c = a & b, a | b, a - b, a ^ b
    a |= {7}
    a.update([8], (9,))
    a.intersection_update({1, 2, 7})
    return x + len(a), c, a <= {1, 2, 7}, a.isdisjoint({100}), sorted(a), b.union([1]), a.issuperset({1}), MySet([1, 2])


@case(lambda: (t(3),))
def set_of_tensors(x):
    y = x + 1
    s = {x, y, x}
    return len(s), x in s, {x: 1, y: 2}[y]


@case(lambda: (t(3),))
def dict_ops(x):
    d = {"a": x, "b": 2}
    d.setdefault("c", []).append(3)
    d.update(e=4, **{"f": 5})
    p = d.pop("b")
    k = d.keys() & {"a", "z"}
    d |= {"g": 1}
    last = d.popitem()
    e = dict.fromkeys("abc", 0)
    return d, p, k, last, e, list(reversed(d)), d == dict(d), {**d, "h": 1}, dict(zip("ab", [1, 2])), sorted(e.items(), reverse=True), ("c", [3]) in d.items()


@case(lambda: (t(3), {"a": 1, "b": 2}), lambda: (t(3), {"b": 2, "a": 1}), lambda: (t(3), {"a": 1, "c": 3}))
def dict_iteration_order(x, d):
    for k, v in d.items():
        x = x * v + len(k)
    return x, [*d]


@case(lambda: (t(3),))
def list_ops(x):
    l = [3, 1, 2]
    l.sort(key=lambda v: -v)
    l.insert(1, x)
    l[1:2] = [7, 8]
    del l[0]
    l.extend(range(2))
    l.reverse()
    l *= 2
    m = l.copy()
    m.clear()
    return l, l.index(8), l.count(7), sorted(l), m, l[::-2], l == l[:], [1, 2] < [1, 3], l.pop(2), l.remove(7)


@case(lambda: (t(3),))
def dict_views_mutation(x):
    d = {"a": 1}
    k = d.keys()
    d["b"] = 2
    try:
        for q in d:
            d["z"] = 1
    except RuntimeError as e:
        return x, list(k), str(e)


@case(lambda: (t(3),))
def mapping_proxy(x):
    d = types.MappingProxyType({"a": x})
    try:
        d["b"] = 1
    except TypeError as e:
        return d["a"] + 1, str(e), "a" in d, len(d)


@case(lambda: (t(3),))
def simple_namespace(x):
    n = types.SimpleNamespace(a=x, b=2)
    n.c = n.a * n.b
    return n, n.c, vars(n)["b"]


@case(lambda: (t(3), "ab"), lambda: (t(3), "cde"))
def text_methods(x, s):
    return (
        x * len(s), s.upper(), s.split("b"), "-".join(s), s.startswith("a"), s.encode(), f"{s!r:>8}|{3.14159:.2f}|{10:#x}|{x.shape[0]:03d}", "%s %d %5.1f" % (s, 3, 2.5), s.replace("a", "z"),
        "{0}{k}".format(s, k=3), s.zfill(5), s.partition("b"), s[::-1], s.center(9, "*"), s * 2, "b" in s, s.translate(str.maketrans("a", "q")), s.isalpha(), ord(s[0]), chr(97), s.title(), re.sub("a", "b", s),
        string.Template("$a").substitute(a=3), re.match(r"(\w)", s).group(1), s.casefold(), s.removeprefix("a"), textwrap.dedent("  q"), bytes([1, 2]).hex(), b"ab".decode(), ascii("é"),
    )


@case(lambda: (t(3),))
def format_tensor_parts(x):
    return x, f"{x.shape} {x.dtype} {x.device} {tuple(x.shape)} {x.dim()}", str(x.shape), repr(x.dtype), "{}".format(x.size(0))


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = "meta"
        return made

    @property
    def prop(cls):
        return 11


class WithMeta(metaclass=Meta):
    def __init__(self, n=1):
        self.n = n


class Descriptor:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj, value):
        setattr(obj, self.name, value * 2)


class Described:
    d = Descriptor()

    def __init__(self, v):
        self.d = v

    @property
    def p(self):
        return self.d + 1

    @p.setter
    def p(self, v):
        self.d = v

    @p.deleter
    def p(self):
        self.d = 0

    @functools.cached_property
    def c(self):
        return self.d * 10

    @staticmethod
    def s(a):
        return a + 1

    @classmethod
    def k(cls, v):
        return cls(v)

    def __call__(self, x):
        return x * self.d

    def __getitem__(self, i):
        return i * 2

    def __len__(self):
        return 4

    def __contains__(self, v):
        return v == 3

    def __bool__(self):
        return False

    def __add__(self, o):
        return self.d + o

    __radd__ = __add__

    def __iadd__(self, o):
        self.d = o
        return self

    def __neg__(self):
        return -self.d

    def __eq__(self, o):
        return isinstance(o, Described) and self.d == o.d

    def __hash__(self):
        return 5

    def __repr__(self):
        return f"<{self.d}>"

    def __format__(self, spec):
        return spec + "!"

    def __index__(self):
        return 2

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False


@case(lambda: (t(3),))
def class_protocols(x):
    o = Described(2)
    o.p = 3
    q = Described.k(1)
    c = o.c
    q += 4
    r = (
        o(x), o[3], len(o), 3 in o, bool(o), o + 1, 1 + o, -o, o == q, hash(o), repr(o), f"{o:q}", [1, 2, 3][o], c, o.c, Described.s(1), {o: 1}[o], str(o), range(5)[o], o.__class__.__name__,
        isinstance(o, Described), callable(o), Described.d.name, "c" in o.__dict__,
    )
    del o.p
    return r, o.d


@case(lambda: (t(3),))
def metaclass_things(x):
    w = WithMeta(3)
    return x * w.n, w.tag, WithMeta.prop, type(WithMeta) is Meta


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_inside(x):
    class Base(abc.ABC):
        registry = []

        def __init_subclass__(cls, **kw):
            super().__init_subclass__()
            Base.registry.append(cls.__name__)

        @abc.abstractmethod
        def f(self, v): ...

    class Derived(Base):
        def f(self, v):
            return v * 2

    try:
        Base()
    except TypeError as e:
        m = type(e)
    return Derived().f(x), Base.registry, m


class Slots:
    __slots__ = ("a", "__weakref__")

    def __init__(self, a):
        self.a = a


@case(lambda: (t(3),))
def slots_and_weakref(x):
    s = Slots(x)
    r = weakref.ref(s)
    try:
        s.b = 1
    except AttributeError:
        pass
    return r().a + 1, r() is s


@case(lambda: (t(3),), reuse=Reuse.FREE)
def getattr_hooks(x):
    class G:
        def __getattr__(self, n):
            if n.startswith("v"):
                return len(n)
            raise AttributeError(n)

        def __setattr__(self, n, v):
            object.__setattr__(self, "s_" + n, v)

        def __delattr__(self, n):
            object.__delattr__(self, "s_" + n)

        def __getattribute__(self, n):
            return object.__getattribute__(self, n)

    g = G()
    g.q = 3
    y = x * g.vvv + g.s_q, hasattr(g, "zz"), getattr(g, "zz", 5)
    del g.q
    return y, hasattr(g, "s_q")


@case(lambda: (t(3),), reuse=Reuse.FREE)
def new_and_init(x):
    class Single:
        made = None

        def __new__(cls, *a):
            if cls.made is None:
                cls.made = super().__new__(cls)
            return cls.made

        def __init__(self, n):
            self.n = n

    a = Single(1)
    b = Single(2)
    return x * a.n, a is b


@case(lambda: (t(3),), reuse=Reuse.FREE)
def multiple_inheritance(x):
    class A:
        def f(self):
            return ["A"]

    class B(A):
        def f(self):
            return ["B"] + super().f()

    class C(A):
        def f(self):
            return ["C"] + super().f()

    class D(B, C):
        def f(self):
            return ["D"] + super().f()

    return x, D().f(), [c.__name__ for c in D.__mro__], issubclass(D, A), super(B, D()).f()


@case(lambda: (t(3),), reuse=Reuse.FREE)
def object_functions(x):
    class P:
        z = 1

        def __init__(self):
            self.a = 1

    p = P()
    setattr(p, "b", 2)
    delattr(p, "a")
    p.__dict__["c"] = 3
    p.__dict__.update(d=4)
    return x, vars(p), p.c, p.d, dir(p)[-3:], type(p)().a, P.__name__, P.__qualname__, p.__class__ is P, copy.copy(p).b, copy.deepcopy(p).__dict__


class Typed(typing.Generic[typing.TypeVar("T")]):
    def f(self, v):
        return v


class TD(typing.TypedDict, total=False):
    a: int


@case(lambda: (t(3),))
def typing_things(x):
    v = typing.cast(int, 3)
    return Typed[int]().f(x) * v, TD(a=1), typing.get_args(typing.Optional[int]), isinstance(3, int | str)


@typing.runtime_checkable
class HasF(typing.Protocol):
    def f(self): ...


@case(lambda: (t(3),))
def protocol_isinstance(x):
    return x + isinstance(Typed(), HasF), isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(x, collections.abc.Hashable), isinstance(3, (int, str)), issubclass(bool, int)


@case(lambda: (t(3), ("add", 1, {"k": 2})), lambda: (t(3), ["mul", 2]), lambda: (t(3), Described(4)))
def match_statement(x, command):
    match command:
        case ("add", n, {"k": k, **rest}):
            return x + n + k, rest
        case [str() as op, int(n)] if n > 1:
            return x * n, op
        case Described(d=d):
            return x - d
        case _:
            return x


@case(lambda: (t(3),))
def walrus_and_unpacking(x):
    if (n := x.shape[0]) > 2:
        a, *b, (c, d) = [1, 2, 3, (4, 5)]
    first, second = {"k": 1, "l": 2}
    print(n, *b, sep="-", end="!\n")
    return x * n, a, b, c, d, first, [*b, *(1, 2)], {**{"a": 1}}, (lambda *p, q=1, **r: (p, q, r))(1, 2, q=3, z=4)


@case(lambda: (t(3),))
def comprehension_scopes(x):
    k = 3
    return [[x * i * k for i in range(j)] for j in range(3)], {i: (lambda: i)() for i in range(2)}, {i % 2 for i in range(5)}, [i for i in range(9) if i % 2 if i > 3]


@case(lambda: (t(3),))
def loops_with_else(x):
    for i in range(3):
        if i == 5:
            break
    else:
        x = x + 1
    n = 0
    while n < 3:
        n += 1
        if n == 2:
            continue
        x = x * n
    else:
        x = x - 1
    return x


@case(lambda: (t(3),))
def numbers_functions(x):
    return (
        x, divmod(7, 3), round(2.567, 2), abs(-3), pow(2, 5, 7), int(3.9), float("1.5"), complex(1, 2) * 2, hex(255), bin(5), oct(8), min(3, 1), max([1, 5], key=lambda v: -v), 7 // 2, -7 % 3, 2**-1, 1 << 4, ~5, 5 & 3, True + 1,
        math.floor(2.5), math.sqrt(16), math.gcd(4, 6), math.isclose(1, 1.0), math.inf, (5).bit_length(), (2.5).is_integer(), (2.5).as_integer_ratio(), int.from_bytes(b"\x01\x02", "big"), 3 .__add__(4), math.comb(5, 2), float.fromhex("0x1p3"), sum([0.1] * 3),
        operator.index(3), operator.itemgetter(1)([4, 5]), operator.attrgetter("real")(3), operator.methodcaller("upper")("q"), operator.mul(3, 4), operator.contains([1], 1), operator.truth([]), operator.concat([1], [2]),
    )


@case(lambda: (t(3),))
def builtins_many(x):
    return (
        x, sorted("hello"), list(reversed((1, 2))), list(enumerate("ab", 1)), any([]), all([]), isinstance(x, torch.Tensor), type(x), callable(len), id(x) == id(x), hash("a") == hash("a"), list(map(str, [1, 2])), slice(1, 2).stop, list(range(5, 0, -2)),
        bytearray(b"ab"), memoryview(b"ab")[0], frozenset([1]), tuple([1]), bool([]), repr("q"), format(3.14159, ".2f"), getattr(x, "ndim"), hasattr(x, "zzz"), len(range(10)), range(3) == range(3), object() is None, print("p", 1), eval("1+1"),
    )


@case(lambda: (t(3),), reuse=Reuse.FREE)
def locals_and_vars(x):
    a = 1
    l = locals()
    return x + l["a"], sorted(l), "COUNTER" in globals()


@case(lambda: (t(3),))
def sys_and_os(x):
    return x, sys.version_info >= (3, 8), sys.maxsize > 0, os.path.join("a", "b"), os.environ.get("NOT_THERE"), sys.platform, os.getcwd() == os.getcwd(), sys.byteorder, "torch" in sys.modules, os.sep


@case(lambda: (t(3),))
def time_and_warnings(x):
    a = time.time()
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        warnings.warn("hello")
    return x + 1, a > 0, len(w)


@case(lambda: (t(3),))
def logging_call(x):
    log = logging.getLogger("corpus")
    log.debug("no %s", x.shape)
    return x + 1


@case(lambda: (t(3),))
def unittest_assertions(x):
    c = unittest.TestCase()
    c.assertEqual(1, 1)
    c.assertTrue(True)
    c.assertIn(1, [1])
    c.assertIsNone(None)
    c.assertIsInstance(x, torch.Tensor)
    with c.assertRaises(ValueError) as r:
        raise ValueError("q")
    c.assertRaises(KeyError, lambda: {}[1])
    with c.assertRaisesRegex(ValueError, "q"):
        raise ValueError("q")
    return x + 1, str(r.exception)


LOCAL = threading.local()


@case(lambda: (t(3),))
def thread_local(x):
    LOCAL.v = 3
    y = x * LOCAL.v
    del LOCAL.v
    return y, hasattr(LOCAL, "v")


LOCK = threading.Lock()


@case(lambda: (t(3),))
def lock_region(x):
    with LOCK:
        return x + 1


@case(lambda: (t(3),))
def rlock_made_inside(x):
    l = threading.RLock()
    with l:
        return x + 1


@case(lambda: (t(3),))
def function_attributes(x):
    def f(a: int, b=3, *, c=4):
        """doc"""
        return a

    f.tag = 3
    f.__name__ = "g"
    return f(x) * f.tag, f.__name__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__annotations__, f.__code__.co_name, f.__code__.co_varnames, f.__module__, f.__dict__, f.__closure__


@case(lambda: (t(3),))
def function_made_by_hand(x):
    def f(a):
        return a * 2

    g = types.FunctionType(f.__code__, globals(), "g")
    m = types.MethodType(lambda s, v: v + s, 3)
    return g(x), m(x), m.__self__, f.__get__(x)()


@case(lambda: (t(3),))
def recursion(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def down(v, n):
        return v if n == 0 else down(v + 1, n - 1)

    return x * fib(7), down(x, 10)


@case(lambda: (t(3),))
def star_args_calls(x):
    def f(a, /, b, *c, d=1, **e):
        return a * b + d, c, e

    args, kw = (2, 3), {"d": 4, "z": 5}
    try:
        f(1)
    except TypeError as err:
        m = str(err)
    return f(x, *args, 6, **kw), m


@case(lambda: (t(3),))
def copy_functions(x):
    a = [x, [1, 2], {"k": (3,)}]
    b = copy.copy(a)
    c = copy.deepcopy(a)
    c[1].append(3)
    return a, b, c, b[1] is a[1], c[0] is a[0]


@case(lambda: (t(3),))
def gc_and_del(x):
    y = x + 1
    del y
    gc.collect()
    try:
        return y
    except UnboundLocalError as e:
        return x, str(e)


@case(lambda: (t(3),))
def async_not_awaited(x):
    async def f():
        return 3

    c = f()
    try:
        c.send(None)
    except StopIteration as e:
        return x + e.value
