"""The standard library inside of frames: itertools, operator, math, functools, copy, inspect, builtins with all their arguments."""

import collections
import contextlib
import copy
import functools
import inspect
import itertools
import logging
import math
import operator
import random
import string
import sys
import types
import typing
import warnings
import weakref

import torch
from capture.cases import Reuse, case, t


@case(lambda: (t(3),))
def itertools_all_at_once(x):
    ns = [1, 2, 3]
    found = [
        list(itertools.chain(ns, "ab")),
        list(itertools.chain.from_iterable([ns, ns])),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.dropwhile(lambda n: n < 2, ns)),
        list(itertools.takewhile(lambda n: n < 3, ns)),
        list(itertools.filterfalse(lambda n: n % 2, ns)),
        list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.islice(itertools.cycle("ab"), 5)),
        list(itertools.repeat(2, 3)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.zip_longest("ab", "c", fillvalue="-")),
        list(itertools.pairwise(ns)),
        list(itertools.product("ab", repeat=2)),
        list(itertools.permutations(ns, 2)),
        list(itertools.combinations(ns, 2)),
        list(itertools.combinations_with_replacement(ns, 2)),
        [(k, list(g)) for k, g in itertools.groupby("aabbb")],
        list(itertools.accumulate(ns, operator.mul, initial=2)),
    ]
    return x + sum(map(len, found)), found


@case(lambda: (t(3),))
def operator_all_at_once(x):
    o = operator
    held = [3, 1, 2]
    o.setitem(held, 0, 5)
    o.delitem(held, 2)
    return (
        o.add(x, 1), o.sub(x, 1), o.mul(x, 2), o.truediv(x, 2), o.floordiv(7, 2), o.mod(7, 4), o.pow(x, 2), o.matmul(x, x),
        o.neg(x), o.pos(x), o.abs(-3), o.invert(5), o.lshift(1, 3), o.rshift(8, 1), o.and_(6, 3), o.or_(6, 3), o.xor(6, 3),
        o.not_(0), o.truth([1]), o.is_(x, x), o.is_not(x, None), o.lt(1, 2), o.le(1, 1), o.eq(1, 2), o.ne(1, 2), o.ge(1, 2), o.gt(3, 2),
        o.contains([1], 1), o.countOf([1, 1, 2], 1), o.indexOf([4, 5], 5), o.getitem(held, 0), o.length_hint([1, 2]), o.concat([1], [2]),
        o.iadd(1, 2), o.index(4), held,
    )  # fmt: skip


@case(lambda: (t(3),))
def operator_getters(x):
    Point = types.SimpleNamespace(a=types.SimpleNamespace(b=x), n=3)
    return operator.attrgetter("a.b")(Point) * operator.attrgetter("n")(Point), operator.itemgetter(1, 0)([4, 5]), operator.methodcaller("add", 2)(x)


@case(lambda: (t(3), 7), lambda: (t(3), 9))
def math_all_at_once(x, n):
    m = math
    return x + m.sqrt(n), (
        m.floor(2.5), m.ceil(2.5), m.gcd(12, n), m.lcm(4, n), m.factorial(4), m.comb(5, 2), m.perm(4, 2), m.isqrt(n), m.log(n), m.log2(8), m.log10(100),
        m.log1p(1), m.exp(1), m.expm1(1), m.pow(2, 3), m.sin(1), m.cos(1), m.tan(1), m.atan2(1, 2), m.hypot(3, 4), m.degrees(m.pi), m.radians(180),
        m.isnan(m.nan), m.isinf(m.inf), m.isfinite(1), m.isclose(1, 1 + 1e-12), m.copysign(1, -2), m.fabs(-2), m.fmod(7, 3), m.modf(2.5), m.frexp(8),
        m.ldexp(1, 3), m.trunc(2.7), m.prod([2, 3]), m.fsum([0.1] * 3), m.dist([0, 0], [3, 4]), m.erf(0.5), m.gamma(4), m.remainder(7, 4),
        m.nextafter(1, 2), m.ulp(1), m.tau, m.e,
    )  # fmt: skip


@case(lambda: (t(4, 6),), lambda: (t(5, 6),), lambda: (t(8, 6),))
def math_of_a_size(x):
    return x * math.sqrt(x.shape[0]) + math.floor(x.shape[0] / 2) + math.prod(x.shape), math.ceil(x.size(0) / 3)


@case(lambda: (t(3), 2.5), lambda: (t(3), 3.5), lambda: (t(3), 4.5))
def math_of_a_float(x, s):
    return x * math.sqrt(s) + math.floor(s), math.exp(s)


@case(lambda: (t(3),))
def zip_map_filter(x):
    a, b = [1, 2], [3, 4]
    try:
        list(zip(a, [1], strict=True))
    except ValueError as error:
        x = x + len(str(error))
    return x, list(zip(a, b, strict=True)), list(map(operator.add, a, b)), list(filter(None, [0, 1, 2])), list(enumerate("ab", start=3)), list(zip())


@case(lambda: (t(3),))
def sorted_and_friends(x):
    words = ["pear", "fig", "apple"]
    words.sort(key=len, reverse=True)
    return (
        x + len(words[0]), sorted(words, key=lambda w: w[-1]), sorted({"b": 1, "a": 2}), list(reversed(range(3))), max(words, key=len, default=""),
        min([], default=4), min(3, 1, 2, key=lambda n: -n), sum([[1], [2]], []), sum((0.5, 1)), all([]), any([0, ""]), round(2.567, 2), divmod(-7, 3),
        pow(3, 4, 5), abs(-2.5), chr(97), ord("a"), hex(255), bin(5), oct(8), bool([]), complex(1, 2), int("11", 2), float("1.5"), len("abc"),
        list(range(10, 0, -3)), slice(1, 4, 2).indices(3), repr("q"), ascii("é"), hash("a") == hash("a"), callable(len), callable(3),
    )  # fmt: skip


@case(lambda: (t(3),))
def iter_with_a_sentinel(x):
    left = [1, 2, 3, 0, 4]
    taken = list(iter(lambda: left.pop(0), 0))
    return x + sum(taken), left


@case(lambda: (t(3),))
def next_with_defaults(x):
    numbers = iter([1])
    return x + next(numbers) + next(numbers, 5), next((n for n in [1, 2, 3] if n > 1), None)


@case(lambda: (t(3),))
def types_asked(x):
    return (
        x, type(3) is int, type(x) is torch.Tensor, issubclass(bool, int), issubclass(torch.nn.Linear, torch.nn.Module), isinstance([], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping), isinstance(3, typing.Hashable), isinstance(x, collections.abc.Callable), type(None) is types.NoneType,
    )  # fmt: skip


@case(lambda: (t(3),))
def texts_formatted(x):
    n, s = 42, "ab"
    return (
        x, f"{n:05d}|{s:>4}|{3.14159:.2f}|{n:x}|{s!r}|{n=}", "{0}-{1}-{name}".format(n, s, name="q"), "{:,}".format(1234567), "%s %d %.1f" % (s, n, 2.5),
        "%(a)s" % {"a": 1}, "{a[0]} {b.real}".format(a=[5], b=3), format(n, "b"), f"{s:{'^'}{6}}", string.Template("$a!").substitute(a=1), str(b"x", "ascii"),
    )  # fmt: skip


@case(lambda: (t(3),))
def texts_and_their_methods(x):
    s = "Hello, World"
    return x + len(s), (
        s.lower(), s.swapcase(), s.split(", "), s.partition(","), s.rpartition("o"), s.replace("l", "L", 1), s.find("o"), s.rfind("o"), s.count("l"),
        s.startswith(("He", "x")), s.endswith("d"), s.center(20, "*"), s.zfill(15), s.title(), s.strip("Hd"), s.removeprefix("He"), s.removesuffix("ld"),
        ",".join(["a", "b"]), s.index("W"), s.isalpha(), "12".isdigit(), s.encode()[:2], s.casefold(), s.expandtabs(), "a\nb".splitlines(), s.translate({72: "J"}),
        s.ljust(14, "."), s[::-1], s * 2, "l" in s, s < "I", max(s), sorted(set("aab")), s.isidentifier(), "abc".islower(), "{}".format(s), s.rsplit(" ", 1),
    )  # fmt: skip


@case(lambda: (t(3),))
def copies(x):
    nested = {"a": [x, 1], "b": {"c": (x, 2)}}
    shallow, deep = copy.copy(nested), copy.deepcopy(nested)
    deep["a"].append(4)
    return shallow["a"] is nested["a"], deep["a"][0] is x, deep["a"][0] + x, nested


def documented(a, b: int = 2, *rest, c=3, **more) -> int:
    """Says something."""
    return a


@case(lambda: (t(3),))
def signatures(x):
    found = inspect.signature(documented)
    bound = found.bind(1, 2, 3, c=4, d=5)
    bound.apply_defaults()
    return x + len(found.parameters), list(found.parameters), bound.arguments["rest"], found.parameters["b"].default, inspect.isfunction(documented)


@case(lambda: (t(3),))
def function_parts(x):
    return (
        x, documented.__name__, documented.__doc__, documented.__defaults__, documented.__kwdefaults__, documented.__code__.co_argcount,
        documented.__code__.co_varnames[:2], documented.__annotations__["b"] is int, inspect.isclass(int), inspect.ismethod(x.add), inspect.isbuiltin(len),
    )  # fmt: skip


@case(lambda: (t(3),))
def system_asked(x):
    return x + (sys.version_info >= (3, 8)) + (sys.maxsize > 5), sys.platform, sys.byteorder, sys.version_info[0], sys.float_info.max > 1


@case(lambda: (t(3),))
def warned(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("quiet", stacklevel=1)
        return x + 1


@case(lambda: (t(3),))
def logged(x):
    log = logging.getLogger("capture.corpus")
    log.debug("value %s", 3)
    return x + 1


@case(lambda: (t(3),))
def random_numbers(x):
    return x + random.random() + random.randint(1, 5) + random.uniform(0, 1)


@case(lambda: (t(3),))
def random_generator(x):
    drawn = random.Random(4)
    return x + drawn.random() + drawn.randint(1, 3), drawn.choice([1, 2, 3])


@case(lambda: (t(3),))
def typing_functions(x):
    value = typing.cast(int, 3)
    hinted: list[int] = [value]
    return x + value + len(hinted), typing.get_origin(list[int]) is list, typing.get_args(dict[str, int])[1] is int


@functools.lru_cache
def slow(n):
    return n * 2


@functools.cache
def slower(n, by=2):
    return n * by


@case(lambda: (t(3), 2), lambda: (t(3), 5))
def cached_functions(x, n):
    return x * slow(n) + slower(n, by=3)


@case(lambda: (t(3),))
def partials(x):
    scaled = functools.partial(torch.mul, other=3)
    twice = functools.partial(functools.partial(lambda a, b, c=1: a + b * c, 1), c=4)
    return scaled(x), twice(2), twice.func is scaled.func, twice.args, twice.keywords, isinstance(scaled, functools.partial)


@functools.singledispatch
def shown(value):
    return "object"


@shown.register
def _(value: int):
    return "int"


@shown.register(list)
def _(value):
    return "list"


@case(lambda: (t(3),))
def dispatched(x):
    return x + len(shown(3)), shown([]), shown("a")


class Scaler:
    @functools.singledispatchmethod
    def apply(self, value):
        return value

    @apply.register
    def _(self, value: int):
        return value + 1

    @functools.partialmethod
    def unused(self):
        return 1

    def scaled(self, x, by):
        return x * by

    doubled = functools.partialmethod(scaled, by=2)


@case(lambda: (t(3),))
def partial_methods(x):
    return Scaler().doubled(x)


@case(lambda: (t(3),))
def reduced(x):
    return functools.reduce(lambda a, b: a * b, [x, 2, 3]), functools.reduce(operator.add, [[1], [2]], [0])


@case(lambda: (t(3),))
def wrapped(x):
    def noted(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args) + 1

        return inner

    @noted
    def double(v):
        """Doubles."""
        return v * 2

    return double(x), double.__name__, double.__doc__, double.__wrapped__(x)


@case(lambda: (t(3),))
def dict_methods(x):
    d = dict(a=1, b=2)
    d |= {"c": 3}
    popped = d.pop("a"), d.pop("z", None), d.popitem()
    d.setdefault("e", []).append(x)
    d.update([("f", 4)], g=5)
    other = dict.fromkeys("xy", 0)
    return x + d["e"][0], popped, list(d), other, {**d, **other}.keys() - {"e"}, d.items() >= {("b", 2)}, {k: v for k, v in other.items()}


@case(lambda: (t(3),))
def defaultdicts(x):
    groups = collections.defaultdict(list)
    for n, word in enumerate(["a", "b", "a"]):
        groups[word].append(x + n)
    nested = collections.defaultdict(lambda: collections.defaultdict(int))
    nested["p"]["q"] += 2
    return sum(groups["a"]), sorted(groups), nested["p"]["q"], "r" in nested, groups.default_factory is list


@case(lambda: (t(3), collections.defaultdict(int, a=2)), lambda: (t(3), collections.defaultdict(int)))
def defaultdict_from_outside(x, counts):
    counts["a"] += 1
    return x * counts["a"] + counts["b"]


@case(lambda: (t(3),))
def chain_maps(x):
    chained = collections.ChainMap({"a": 1}, {"a": 2, "b": x})
    child = chained.new_child({"c": 3})
    child["a"] = 9
    return child["b"] + child["a"] + chained["a"], sorted(child), len(child.maps), "c" in chained


@case(lambda: (t(3),))
def counters(x):
    counted = collections.Counter("abca")
    counted.update("aa")
    counted.subtract({"b": 1})
    return x + counted["a"] + counted["z"], counted.most_common(1), sorted((counted + collections.Counter(a=1)).items()), sorted(counted.elements()), counted.total()


@case(lambda: (t(3),))
def ordered_dicts(x):
    d = collections.OrderedDict(a=1, b=2, c=3)
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    return x + d["a"], list(d), d.popitem(last=False), list(reversed(d))


@case(lambda: (t(3),))
def deques(x):
    d = collections.deque([1, 2, 3], maxlen=4)
    d.appendleft(0)
    d.append(4)
    d.rotate(1)
    d.extendleft([7])
    return x + d[0], list(d), d.maxlen, d.count(1), d.pop(), d.popleft(), len(d), list(reversed(d)), d.index(1), 3 in d


@case(lambda: (t(3),))
def sets(x):
    a, b = {1, 2, 3}, frozenset([2, 3, 4])
    a.discard(9)
    a ^= {5}
    return x + len(a & b), sorted(a | b), sorted(a - b), a.isdisjoint({8}), {2} <= a, a >= {1}, sorted(a.symmetric_difference([1])), type(b | a) is frozenset


@case(lambda: (t(3),))
def lists(x):
    a = [3, 1, 2]
    a += (4,)
    a *= 2
    a[1:3] = [9]
    a[::2] = [0] * len(a[::2])
    del a[0], a[-1]
    a.remove(9)
    b = a.copy()
    b.clear()
    return x + len(a), a, a.index(0), a.count(0), b, [1] < [2], [[0] * 2 for _ in range(2)], a == list(a), [*a, *b]


class Held:
    pass


HELD = Held()
HELD.n = 3


@case(lambda: (t(3),))
def weak_references(x):
    held = weakref.ref(HELD)
    return x * held().n, held() is HELD


@case(lambda: (t(3),))
def weak_dictionary(x):
    table = weakref.WeakKeyDictionary()
    table[HELD] = x
    return table[HELD] + len(table), HELD in table


@case(lambda: (t(3),))
def weak_values(x):
    table = weakref.WeakValueDictionary()
    table["a"] = HELD
    return x * table["a"].n


@case(lambda: (t(3),))
def weak_proxy(x):
    return x * weakref.proxy(HELD).n


@case(lambda: (t(3),))
def simple_namespaces(x):
    held = types.SimpleNamespace(a=x, b=2)
    held.c = held.a * held.b
    return held.c, sorted(vars(held)), held == types.SimpleNamespace(a=x, b=2, c=held.c)


@case(lambda: (t(3),))
def mapping_proxies(x):
    shown = types.MappingProxyType({"a": 2})
    try:
        shown["b"] = 1
    except TypeError:
        x = x + 1
    return x * shown["a"], list(shown)


@case(lambda: (t(3),))
def attributes_by_name(x):
    held = Held()
    setattr(held, "a", x)
    delattr(held, "a")
    held.b = 2
    return x * getattr(held, "b") + getattr(held, "a", 4), hasattr(held, "a"), "b" in dir(held), vars(held)


@case(lambda: (t(3),))
def conversions_of_collections(x):
    return x, list("ab"), tuple([1]), dict([("a", 1)]), set((1, 1)), frozenset("a"), list({"a": 1}), dict(zip("ab", [1, 2])), bytes([65]), bytearray(b"q")[0], list(memoryview(b"r"))


@case(lambda: (t(3),))
def numbers_and_their_methods(x):
    return x, (5).bit_length(), (2.5).is_integer(), (0.75).as_integer_ratio(), (3).real, (3 + 4j).conjugate(), abs(3 + 4j), int.from_bytes(b"\x01\x02", "big"), (258).to_bytes(2, "big"), float.fromhex("0x1p3"), (7).__add__(3), int(-2.7), -7 // 2, -7 % 3, 2**-1, True + True


@case(lambda: (t(3),))
def suppressed(x):
    with contextlib.suppress(KeyError, IndexError):
        x = x + 1
        {}["a"]
        x = x + 10
    return x


@case(lambda: (t(3),), reuse=Reuse.FREE)
def closing_and_nullcontext(x):
    class Door:
        closed = False

        def close(self):
            self.closed = True

    with contextlib.closing(Door()) as door, contextlib.nullcontext(3) as n:
        x = x * n
    return x + door.closed


@case(lambda: (t(3),))
def exit_stacks(x):
    log = []

    @contextlib.contextmanager
    def opened(name):
        log.append(f"open {name}")
        try:
            yield name
        finally:
            log.append(f"close {name}")

    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(opened(n)) for n in "ab"]
        stack.callback(log.append, "callback")
        x = x + len(names)
    return x, log


@case(lambda: (t(3),), reuse=Reuse.FREE)
def manager_as_a_decorator(x):
    class Doubling(contextlib.ContextDecorator):
        def __enter__(self):
            return self

        def __exit__(self, *failure):
            return False

    @Doubling()
    def inner(v):
        return v * 2

    @contextlib.contextmanager
    def managed():
        yield

    @managed()
    def other(v):
        return v + 1

    return inner(x) + other(x)
