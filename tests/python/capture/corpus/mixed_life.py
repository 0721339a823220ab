"""Programs in which objects live on: over calls, over breaks, in closures, generators and caches."""

import collections
import contextlib
import contextvars
import dataclasses
import functools
import itertools
import operator
import weakref

import torch
from capture.cases import Reuse, case, t
from torch import nn

CACHE = {}
STACK = []
TOTAL = 0
CURRENT = contextvars.ContextVar("CURRENT", default=1)


@case(lambda: (t(3), "a"), lambda: (t(3), "b"), watch=("CACHE",))
def memoized_by_hand(x, key):
    if key not in CACHE:
        CACHE[key] = len(CACHE) + 1
    return x * CACHE[key]


@case(lambda: (t(3),), watch=("STACK",))
def a_stack_of_tensors(x):
    STACK.append(x + 1)
    STACK.append(STACK[-1] * 2)
    return STACK.pop() + len(STACK)


@case(lambda: (t(3),), watch=("TOTAL",))
def a_global_in_a_closure(x):
    def add(n):
        global TOTAL
        TOTAL += n
        return TOTAL

    return x * add(1) + add(2)


@case(lambda: (t(3),))
def closures_that_share_a_cell(x):
    state = {"n": 0}
    value = x

    def step():
        nonlocal value
        state["n"] += 1
        value = value + state["n"]
        return value

    def read():
        return value, state["n"]

    step()
    step()
    return read(), step, step.__closure__[1].cell_contents is value


@case(lambda: (t(3),))
def a_closure_returned_and_called(x):
    def make(scale):
        def apply(v):
            return v * scale

        apply.scale = scale
        return apply

    double = make(2)
    return double(x), double.scale, double.__name__, double.__qualname__


@case(lambda: (t(3),))
def recursion_through_a_cell(x):
    def power(v, n):
        return v if n == 0 else power(v * 2, n - 1)

    return power(x, 3)


@case(lambda: (t(3),))
def decorators_in_a_chain(x):
    log = []

    def traced(name):
        def decorate(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                log.append(("in", name))
                try:
                    return function(*args, **kwargs)
                finally:
                    log.append(("out", name))

            return wrapper

        return decorate

    @traced("a")
    @traced("b")
    def f(v, *, by=2):
        log.append("f")
        return v * by

    return f(x), f(x, by=3), log, f.__name__


@case(lambda: (t(3),))
def variables_of_contexts(x):
    token = CURRENT.set(5)
    y = x * CURRENT.get()
    CURRENT.reset(token)
    return y + CURRENT.get()


class Resource:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"+{self.name}")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append((f"-{self.name}", kind.__name__ if kind else None, str(value) if value else None))
        return self.swallow


@case(lambda: (t(3), []))
def managers_nested_and_raising(x, log):
    with Resource(log, "a", swallow=True), Resource(log, "b"):
        with Resource(log, "c") as c:
            c.extra = x + 1
            raise KeyError("k")
    for i in range(2):
        with Resource(log, i):
            if i:
                break
            continue
    return c.extra * len(log)


@case(lambda: (t(3), []))
def a_manager_around_a_return(x, log):
    def f():
        with Resource(log, "r"):
            return x * 2
        return None

    def g():
        with Resource(log, "s", swallow=True):
            raise ValueError
        return x * 3

    return f(), g()


@case(lambda: (t(3), []))
def an_exit_stack_that_is_handed_on(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Resource(log, "a"))
        stack.push(lambda *error: log.append(error[0]))
        kept = stack.pop_all()
    log.append("after")
    kept.close()
    return x + len(log)


@case(lambda: (t(3),))
def generators_that_are_interleaved(x):
    def numbers(start):
        n = start
        while True:
            got = yield n
            n = n + 1 if got is None else got

    a, b = numbers(0), numbers(10)
    values = [next(a), next(b), next(a), b.send(None) if False else next(b)]
    values.append(a.send(100))
    a.close()
    return x * sum(values), values, next(a, "closed")


@case(lambda: (t(3),))
def a_generator_that_cleans_up(x):
    log = []

    def g():
        try:
            yield x
            yield x * 2
        finally:
            log.append("closed")

    for v in g():
        y = v + 1
        break
    first, *_ = g()
    return y + first, log


@case(lambda: (t(3),))
def a_generator_that_fails(x):
    def g():
        yield 1
        raise ValueError("inside")

    out = []
    try:
        for v in g():
            out.append(v)
    except ValueError as error:
        out.append(str(error))

    def stops():
        yield 1
        raise StopIteration

    try:
        list(stops())
    except RuntimeError as error:
        out += [str(error), type(error.__cause__).__name__]
    return x * len(out), out


@case(lambda: (t(3),))
def a_tree_walked(x):
    tree = {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}

    def walk(node, depth=0):
        yield node["v"], depth
        for kid in node["kids"]:
            yield from walk(kid, depth + 1)

    found = list(walk(tree))
    return x * sum(v * d for v, d in found), found, max(walk(tree), key=operator.itemgetter(1))


@dataclasses.dataclass
class Node:
    value: torch.Tensor
    next: "Node | None" = None

    def __iter__(self):
        node = self
        while node is not None:
            yield node.value
            node = node.next


@case(lambda: (t(3),))
def a_linked_list(x):
    head = None
    for i in range(3):
        head = Node(x * i, head)
    return sum(head), head, [v.shape for v in head]


class Observed:
    def __init__(self):
        self.listeners = []

    def on(self, listener):
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def fire(self, *args):
        return [listener(*args) for listener in list(self.listeners)]


@case(lambda: (t(3), Observed()))
def listeners(x, observed):
    off = observed.on(lambda v: v + 1)
    observed.on(x.mul)
    first = observed.fire(2)
    off()
    return first, observed.fire(3), len(observed.listeners)


class Meter:
    instances = 0
    history = collections.deque(maxlen=2)

    def __new__(cls, *args):
        cls.instances += 1
        return super().__new__(cls)

    def __init__(self, start=0.0):
        self.value = start

    def update(self, v):
        self.value = self.value + v
        type(self).history.append(self.value)
        return self


@case(lambda: (t(3), Meter(2.0)), reuse=Reuse.FREE)
def a_meter_updated(x, meter):
    meter.update(x.sum()).update(1.0)
    return meter.value * 2, len(Meter.history) <= 2


class Registry(dict):
    def register(self, name):
        def decorate(function):
            self[name] = function
            return function

        return decorate


@case(lambda: (t(3), Registry()))
def a_registry_of_functions(x, registry):
    @registry.register("double")
    def double(v):
        return v * 2

    registry.register("neg")(operator.neg)
    return [function(x) for _, function in sorted(registry.items())], sorted(registry)


class Pipeline:
    def __init__(self, *steps):
        self.steps = steps

    def __or__(self, step):
        return Pipeline(*self.steps, step)

    def __call__(self, v):
        return functools.reduce(lambda acc, step: step(acc), self.steps, v)

    def __getitem__(self, key):
        return Pipeline(*self.steps[key]) if isinstance(key, slice) else self.steps[key]

    def __len__(self):
        return len(self.steps)


@case(lambda: (t(3), Pipeline(torch.relu)))
def a_pipeline_built(x, pipeline):
    built = pipeline | torch.sin | (lambda v: v + 1)
    return built(x), built[1:](x), len(built), built[0] is torch.relu


class Config:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        return f"no {name}"

    def merged(self, **more):
        return Config(**{**self.__dict__, **more})


@case(lambda: (t(3), Config(scale=2)))
def configurations(x, config):
    more = config.merged(shift=3)
    return x * more.scale + more.shift, more.other, vars(more), config.shift


class Unit(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.kids = nn.ModuleList([Unit(depth - 1) for _ in range(depth)])
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.cache = {}

    def forward(self, x, path=()):
        self.cache[path] = x.shape
        for i, kid in enumerate(self.kids):
            x = x + kid(x, (*path, i))
        return x * self.scale


@case(lambda: (t(3), Unit(2)))
def modules_in_a_tree(x, unit):
    return unit(x), unit.cache, sum(1 for _ in unit.modules())


class Switch(nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = "relu"
        self.layers = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})

    def forward(self, x):
        y = self.layers[self.mode](x)
        self.mode = "tanh" if self.mode == "relu" else "relu"
        return y


@case(lambda: (t(3), Switch()))
def a_module_that_switches(x, switch):
    return switch(x), switch(x), switch.mode


class Ema(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("steps", torch.tensor(0), persistent=False)

    @torch.no_grad()
    def update(self, x):
        self.mean.lerp_(x, 0.1)
        self.steps += 1

    def forward(self, x):
        if self.training:
            self.update(x.detach())
        return x - self.mean


@case(lambda: (t(3, grad=True), Ema()), lambda: (t(3, grad=True), Ema().eval()))
def a_moving_average(x, ema):
    return ema(x) * ema(x), list(ema.state_dict())


@case(lambda: (t(3),))
def weak_references_to_what_is_made(x):
    class_ = type("Made", (), {}) if False else Observed
    made = class_()
    ref = weakref.ref(made)
    alive = ref() is made
    del made
    return x + alive, ref() is None


@case(lambda: (t(3), {"b": t(2), "a": [t(1), (t(4),)]}))
def a_structure_mapped(x, tree):
    def mapped(value):
        if isinstance(value, torch.Tensor):
            return value * 2
        if isinstance(value, dict):
            return type(value)((k, mapped(v)) for k, v in sorted(value.items()))
        return type(value)(map(mapped, value))

    return mapped(tree), x


@case(lambda: (t(3), [3, 1, 2]))
def sorting(x, values):
    pairs = sorted(zip(values, "abc"), key=lambda p: (-p[0], p[1]))
    values.sort(reverse=True)
    tensors = sorted([x * 3, x, x * 2], key=lambda v: v.numel())
    return tensors[0] * values[0], pairs, [*map(max, itertools.batched(values, 2))] if hasattr(itertools, "batched") else values


@case(lambda: (t(4, 4), (slice(1, None), slice(None, 2))), lambda: (t(4, 4), (0, ...)), lambda: (t(4, 4), (None, 1)))
def indices_given(x, index):
    x[index] = 0
    return x[index] + 1, x


@case(lambda: (t(3), 0.5, True), lambda: (t(3), 0.5, False))
def keyword_only_options(x, rate, flag):
    options = {"p": rate, "training": flag}
    torch.manual_seed(0)
    return torch.nn.functional.dropout(x, **options), dict(options, p=1)


@case(lambda: (t(2, 3),))
def shapes_computed_with(x):
    b, *rest = x.shape
    n = 1
    for size in rest:
        n *= size
    view = x.reshape(b, n // 3, -1)
    return view, (b, n), x.shape + (1,), torch.Size([1, 2]).numel(), list(view.shape), x.shape.index(3), 3 in x.shape, f"{x.shape}", tuple(reversed(x.shape)), x.new_ones((*x.shape, 2)).shape
