"""Contexts, random numbers, enumerations, records and functions of the library, as programs use them."""

import collections
import contextlib
import dataclasses
import enum
import functools
import inspect
import itertools
import math
import operator
import random
import typing

import numpy as np
import torch
from capture.cases import Reuse, case, t


@case(lambda: (t(3),))
def graph_break_explicit(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@torch._dynamo.disable
def _disabled(x):
    return x * 3


@torch.compiler.disable(recursive=False)
def _disabled_shallow(x):
    return _inner_of_shallow(x) + 1


def _inner_of_shallow(x):
    return x.sin()


@case(lambda: (t(3),))
def calls_disabled(x):
    return _disabled(x + 1) - 1


@case(lambda: (t(3),))
def calls_disabled_shallow(x):
    return _disabled_shallow(x + 1) - 1


@case(lambda: (t(3),))
def assume_constant_result(x):
    return x * _constant()


@torch._dynamo.assume_constant_result
def _constant():
    return 7


@case(lambda: (t(3),))
def is_compiling_branches(x):
    # both sides compute the same
    if torch.compiler.is_compiling():
        return x + 1
    return 1 + x


@case(lambda: (t(3),))
def cond_op(x):
    return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))


@case(lambda: (t(3),), reuse=Reuse.FREE)
def cond_in_module_method(x):
    class M:
        def f(self, v):
            return v * 2

        def g(self, v):
            return v * 3

    m = M()
    return torch.cond(x.sum() > 100, m.f, m.g, [x])


@case(lambda: (t(3),))
def comptime_print(x):
    from torch._dynamo.comptime import comptime

    y = x * 2

    @comptime
    def _(ctx):
        pass

    return y


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return kind is ValueError


@case(lambda: (t(3), []))
def manager_with_break(x, log):
    with Manager(log):
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
    return x


@case(lambda: (t(3), []))
def manager_swallowing_after_break(x, log):
    with Manager(log) as m:
        x = x + 1
        torch._dynamo.graph_break()
        m.log.append("mid")
        raise ValueError("x")
    return x * 2


@case(lambda: (t(3), []))
def nested_managers_with_exitstack(x, log):
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(Manager(log))
        stack.callback(log.append, "cb")
        stack.push(lambda *exc: log.append("pushed"))
        x = x + len(a.log)
        kept = stack.pop_all()
    log.append("between")
    kept.close()
    return x


@contextlib.contextmanager
def _graded(mode):
    prev = torch.is_grad_enabled()
    torch.set_grad_enabled(mode)
    try:
        yield mode
    finally:
        torch.set_grad_enabled(prev)


@case(lambda: (t(3, grad=True),))
def generator_manager_sets_grad(x):
    with _graded(False) as m:
        y = x * 2
    z = x * 3
    return y, z, y.requires_grad, z.requires_grad, m


@case(lambda: (t(3, grad=True),))
def generator_manager_as_decorator(x):
    @_graded(False)
    def f(v):
        return v * 2

    return f(x), x * 2


@case(lambda: (t(3),))
def suppress_index_error(x):
    with contextlib.suppress(IndexError, KeyError):
        x = x + 1
        [][1]
        x = x + 10
    return x


@case(lambda: (t(3),))
def nullcontext_value(x):
    with contextlib.nullcontext(x + 1) as y:
        return y * 2


@case(lambda: (t(3),), reuse=Reuse.FREE)
def closing_object(x):
    class R:
        closed = 0

        def close(self):
            self.closed += 1

    r = R()
    with contextlib.closing(r) as c:
        x = x + c.closed
    return x + r.closed


@case(lambda: (t(3, 4),))
def autocast_region(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return y, y.dtype


@case(lambda: (t(3, grad=True),))
def set_grad_enabled_function(x):
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, x * 3


@case(lambda: (t(3, grad=True),))
def no_grad_as_decorator_inside(x):
    @torch.no_grad()
    def f(v):
        return v * 2

    @torch.enable_grad()
    def g(v):
        return v * 2

    with torch.no_grad():
        b = g(x)
    return f(x), b


@case(lambda: (t(3),))
def profiler_record_function(x):
    with torch.profiler.record_function("name"):
        x = x + 1
    with torch.autograd.profiler.record_function("other"):
        x = x * 2
    return x


@case(lambda: (t(3, grad=True),))
def saved_tensors_hooks_region(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v * 1, lambda v: v):
        y = x.sin() * x
    return y


@case(lambda: (t(3),))
def disable_saved_tensor_hooks(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        return x + 1


@case(lambda: (t(5),))
def random_functions(x):
    a = random.random()
    b = random.randint(1, 5)
    c = random.uniform(1, 2)
    d = random.choice([1, 2, 3])
    return x * a + b + c + d


@case(lambda: (t(5),))
def random_object(x):
    r = random.Random(5)
    return x * r.random() + r.randrange(3, 10) + r.uniform(0, 1)


@case(lambda: (t(5),))
def random_seed_and_state(x):
    random.seed(3)
    s = random.getstate()
    a = random.random()
    random.setstate(s)
    b = random.random()
    return x * a, a == b


@case(lambda: (t(5),))
def random_shuffle(x):
    items = [1, 2, 3, 4, 5]
    random.shuffle(items)
    return x * items[0], items


@case(lambda: (t(5),))
def torch_rng_state_kept(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return a, torch.rand(3), x + 1


@case(lambda: (t(5),))
def torch_manual_seed_inside(x):
    torch.manual_seed(7)
    return x + torch.rand(5)


@case(lambda: (t(5),))
def torch_generator_inside(x):
    g = torch.Generator()
    g.manual_seed(3)
    return x + torch.rand(5, generator=g)


@case(lambda: (t(5),))
def np_generator(x):
    g = np.random.default_rng(0)
    return x + float(g.random())


class Color(enum.Enum):
    RED = 1
    BLUE = "b"

    @property
    def pretty(self):
        return self.name.title()

    @classmethod
    def default(cls):
        return cls.RED


class Bits(enum.IntFlag):
    A = 1
    B = 2


@case(lambda: (t(3), Color.RED), lambda: (t(3), Color.BLUE))
def enum_branches(x, c):
    if c is Color.default():
        return x + c.value, c.pretty
    return x, c.pretty, Color["RED"].value, Color("b").name, len(Color), list(Color)


@case(lambda: (t(3), Bits.A), lambda: (t(3), Bits.A | Bits.B))
def flags_arith(x, b):
    if b & Bits.B:
        return x * 2, b | Bits.A
    return x * int(b), b ^ Bits.B


@case(lambda: (t(3),))
def enum_made_inside(x):
    E = enum.Enum("E", "A B C")
    return x * E.B.value


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: torch.Tensor
    n: int = 3

    def scaled(self):
        return self.a * self.n


@dataclasses.dataclass
class Mutable:
    a: torch.Tensor
    tags: list = dataclasses.field(default_factory=list)
    n: int = dataclasses.field(default=2, repr=False)
    total: int = dataclasses.field(init=False)

    def __post_init__(self):
        self.total = self.n * 2


@case(lambda: (t(3),))
def frozen_dataclass_inside(x):
    f = Frozen(x, 4)
    g = dataclasses.replace(f, n=5)
    return f.scaled() + g.scaled(), f, g


@case(lambda: (t(3),))
def frozen_dataclass_write(x):
    f = Frozen(x)
    try:
        f.n = 3
    except dataclasses.FrozenInstanceError as e:
        return x + 1, str(e), type(e)
    return x


@case(lambda: (t(3),))
def dataclass_functions(x):
    m = Mutable(x, n=5)
    m.tags.append("q")
    names = [f.name for f in dataclasses.fields(m)]
    return m, names, dataclasses.is_dataclass(m), dataclasses.astuple(Mutable(x))[1], m.total, repr(Bits.A)


@case(lambda: (Frozen(t(3), 2),), lambda: (Frozen(t(3), 5),))
def dataclass_argument(f):
    return f.a * f.n, dataclasses.asdict(f)["n"]


@dataclasses.dataclass(order=True, eq=True)
class Ordered:
    a: int
    b: int


@case(lambda: (t(3), Ordered(1, 2), Ordered(1, 3)), lambda: (t(3), Ordered(2, 2), Ordered(1, 3)))
def dataclass_order(x, p, q):
    if p < q:
        return x + 1, p == q, sorted([q, p])[0]
    return x - 1, max(p, q)


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: int = 3


@case(lambda: (t(3),))
def dataclass_slots(x):
    s = Slotted(x)
    s.b += 1
    return s.a * s.b, s


Point = collections.namedtuple("Point", ["x", "y"], defaults=[5])


class Typed(typing.NamedTuple):
    a: torch.Tensor
    b: int = 1

    def total(self):
        return self.a + self.b


@case(lambda: (t(3),))
def namedtuple_functions(x):
    p = Point(x)
    q = p._replace(y=7)
    d = q._asdict()
    r = Point._make([x, 1])
    return p, q, d["y"], r, Point._fields, p._field_defaults, Typed(x).total(), isinstance(p, tuple)


@case(lambda: (Typed(t(3)),), lambda: (Typed(t(3), 4),))
def namedtuple_argument(p):
    a, b = p
    return p.total() * b, p[0] + p.b, p


@case(lambda: (t(3),))
def namedtuple_made_inside(x):
    P = collections.namedtuple("P", "u v")
    p = P(x, 2)
    return p.u * p.v


@functools.lru_cache
def _cached(n):
    return n * 2


@functools.cache
def _cached_tensor_free(n):
    return [n, n + 1]


@case(lambda: (t(3),))
def lru_cached_function(x):
    return x * _cached(4) + _cached_tensor_free(2)[1]


@case(lambda: (t(3),))
def partial_things(x):
    p = functools.partial(torch.add, alpha=3)
    q = functools.partial(p, x)
    return q(x), q.func is torch.add, q.keywords, len(q.args)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def partialmethod_thing(x):
    class C:
        def f(self, a, b):
            return a * b

        g = functools.partialmethod(f, b=4)

    return C().g(x)


@functools.singledispatch
def _dispatch(v):
    return 1


@_dispatch.register
def _(v: int):
    return v + 1


@_dispatch.register(list)
def _(v):
    return len(v)


@case(lambda: (t(3),))
def singledispatch_call(x):
    return x * _dispatch(3) + _dispatch([1, 2]) + _dispatch("q")


@case(lambda: (t(3),))
def reduce_and_accumulate(x):
    s = functools.reduce(operator.add, [x, x, x], torch.zeros(3))
    return s, list(itertools.accumulate([1, 2, 3], operator.mul, initial=2))


@case(lambda: (t(3),))
def cmp_to_key(x):
    return x + sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))[0]


@case(lambda: (t(3),), reuse=Reuse.FREE)
def total_ordering_class(x):
    @functools.total_ordering
    class V:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

    return x + (V(1) >= V(0)) + (V(1) > V(3))


@case(lambda: (t(3),))
def wraps_decorator(x):
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k):
            return f(*a, **k) + 1

        return inner

    @deco
    def g(v):
        "doc"
        return v * 2

    return g(x), g.__name__, g.__doc__, g.__wrapped__(x)


@case(lambda: (t(3),))
def inspect_signature(x):
    def f(a, b=2, *, c=3):
        return a

    s = inspect.signature(f)
    bound = s.bind(x, b=5)
    bound.apply_defaults()
    return bound.args[0] * bound.kwargs["c"], list(s.parameters)


@case(lambda: (t(3),))
def inspect_questions(x):
    return x + 1, inspect.isfunction(_cached_tensor_free), inspect.isclass(Color), inspect.ismethod(x.add), inspect.isbuiltin(len), inspect.getmro(Color)


@case(lambda: (t(3),))
def itertools_many(x):
    a = list(itertools.chain([1], (2,), {3: 1}))
    b = list(itertools.combinations(range(4), 2))
    c = list(itertools.permutations([1, 2, 3], 2))
    d = list(itertools.islice(itertools.count(3, 2), 4))
    e = [list(g) for k, g in itertools.groupby([1, 1, 2], key=lambda v: v)]
    f = list(itertools.zip_longest([1], [2, 3], fillvalue=0))
    g = list(itertools.compress("abc", [1, 0, 1]))
    h = list(itertools.dropwhile(lambda v: v < 2, [1, 2, 1])) + list(itertools.takewhile(lambda v: v < 2, [1, 2, 1]))
    i = list(itertools.filterfalse(lambda v: v % 2, range(5)))
    j = list(itertools.pairwise([1, 2, 3]))
    k = list(itertools.starmap(pow, [(2, 3), (3, 2)]))
    m = list(itertools.product([1, 2], repeat=2))
    n = list(itertools.combinations_with_replacement([1, 2], 2))
    o = list(zip(*itertools.tee([1, 2, 3], 3)))
    p = list(itertools.repeat(2, 3))
    return x + 1, a, b, c, d, e, f, g, h, i, j, k, m, n, o, p


@case(lambda: (t(3),))
def itertools_cycle(x):
    c = itertools.cycle([1, 2, 3])
    for _ in range(5):
        x = x + next(c)
    return x, next(c)


@case(lambda: (t(3),))
def itertools_returned(x):
    return x + 1, itertools.count(3), itertools.repeat(4, 2), zip([1, 2], [3, 4])


@case(lambda: (t(3), iter([1, 2, 3])))
def iterator_argument(x, it):
    return x + next(it) + next(it), list(it)


@case(lambda: (t(3),))
def batched_and_sum(x):
    return x + sum(itertools.chain.from_iterable([[1, 2], [3]])), math.prod([2, 3]), sum([x, x], start=x)


@case(lambda: (t(3),))
def zip_strict_raises(x):
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as e:
        return x, str(e)


@case(lambda: (t(3),))
def map_filter_lazy(x):
    m = map(lambda a, b: a * b, [x, x], [2, 3])
    f = filter(None, [0, 1, 2])
    e = enumerate([x, x], start=2)
    r = reversed([x, x + 1])
    return next(m), next(f), next(e)[0], next(r), list(m), list(f)


@case(lambda: (t(3),))
def iter_with_sentinel(x):
    items = [1, 2, 3, 4]
    return [x * n for n in iter(items.pop, 2)], items


@case(lambda: (t(3),), reuse=Reuse.FREE)
def own_iterator(x):
    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.n >= 3:
                raise StopIteration
            self.n += 1
            return self.n

    return x * sum(It()), list(It()), 2 in It(), max(It()), dict(zip("abc", It()))
