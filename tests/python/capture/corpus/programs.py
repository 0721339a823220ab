"""Small programs as people write them: layers, configurations, registries, caches, pipelines."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import operator
import typing

import torch
from capture.cases import Reuse, case, t
from torch import nn

REGISTRY = {}
CACHE = {}
DEFAULTS = {"scale": 2, "bias": None}


def register(name):
    def decorate(function):
        REGISTRY[name] = function
        return function

    return decorate


@register("relu")
def my_relu(x):
    return x.clamp(min=0)


@register("scale")
def my_scale(x, by=3):
    return x * by


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"

    @property
    def factor(self):
        return 2 if self is Mode.FAST else 3

    @classmethod
    def parse(cls, text):
        return cls(text)


@dataclasses.dataclass
class Config:
    width: int = 4
    mode: Mode = Mode.FAST
    names: typing.List[str] = dataclasses.field(default_factory=lambda: ["a", "b"])
    extra: typing.Optional[dict] = None

    @property
    def area(self):
        return self.width**2


class Output(typing.NamedTuple):
    value: torch.Tensor
    hidden: typing.Optional[torch.Tensor] = None


class Block(nn.Module):
    count = 0

    def __init__(self, size, config=None):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.config = config or Config()
        self.register_buffer("calls", torch.zeros(()))
        self.history = []

    def forward(self, x, *, scale=None, **kwargs):
        self.history.append(x.shape[0])
        y = self.linear(x)
        if scale is not None:
            y = y * scale
        return Output(y, x) if kwargs.get("full") else y


class Stack(nn.Module):
    def __init__(self, size=3, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList([Block(size) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(size, 1), "b": nn.Identity()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1) * i) for i in range(1, 3)])

    def forward(self, x, head="a"):
        for i, (block, scale) in enumerate(zip(self.blocks, self.scales)):
            x = block(x, scale=scale) + i
        return self.heads[head](x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x)), self.a is self.b


class Dynamic(nn.Module):
    def __getattr__(self, name):
        if name == "magic":
            return 7
        return super().__getattr__(name)

    def forward(self, x):
        return x * self.magic


class Pipeline:
    def __init__(self, *steps):
        self.steps = list(steps)

    def __or__(self, step):
        return Pipeline(*self.steps, step)

    def __call__(self, x):
        return functools.reduce(lambda value, step: step(value), self.steps, x)

    def __len__(self):
        return len(self.steps)


class Tracker:
    def __init__(self):
        self.events = collections.defaultdict(list)

    def __getitem__(self, name):
        return self.events[name]

    @contextlib.contextmanager
    def span(self, name):
        self.events[name].append("start")
        try:
            yield self
        except ValueError:
            self.events[name].append("error")
            raise
        finally:
            self.events[name].append("end")


def make_module(kind, *args):
    torch.manual_seed(0)
    return kind(*args)


@case(lambda: (t(3),))
def registry_of_functions(x):
    out = {name: function(x) for name, function in REGISTRY.items()}
    return out, sorted(REGISTRY), REGISTRY["scale"](x, by=5)


@case(lambda: (t(3), "relu"), lambda: (t(3), "scale"), lambda: (t(3), "none"))
def registry_looked_up(x, name):
    function = REGISTRY.get(name)
    return x if function is None else function(x)


@case(lambda: (t(3), 2), lambda: (t(3), 3), watch=("CACHE",))
def cache_of_results(x, n):
    if n not in CACHE:
        CACHE[n] = n * n
    return x * CACHE[n]


@case(lambda: (t(3), Config()), lambda: (t(3), Config(width=5)), lambda: (t(3), Config(mode=Mode.SLOW)))
def configuration(x, config):
    if config.extra is None:
        config.extra = {}
    config.extra["seen"] = len(config.names)
    return x * config.area * config.mode.factor, Mode.parse("fast") is config.mode, dataclasses.replace(config, width=1).width


@case(lambda: (t(3),))
def merged_settings(x):
    settings = {**DEFAULTS, "bias": 1}
    settings |= {"extra": [1]}
    scale, *_ = settings.values()
    return x * scale + settings["bias"], settings


@case(lambda: (make_module(Block, 3), t(2, 3)), lambda: (make_module(Block, 3), t(4, 3)))
def module_with_history(m, x):
    y = m(x, scale=2)
    out = m(x, full=True)
    return y + out.value, out.hidden, m.history


@case(lambda: (make_module(Stack), t(2, 3)))
def module_containers(m, x):
    return m(x), m(x, head="b"), len(m.blocks), list(m.heads), [name for name, _ in m.named_children()]


@case(lambda: (make_module(Stack), t(2, 3)))
def module_traversal(m, x):
    total = sum(p.numel() for p in m.parameters())
    names = [name for name, _ in m.named_parameters()]
    norms = sum(p.sum() for p in m.parameters())
    return x * total, names, norms, isinstance(m.blocks[0], nn.Module), m.blocks[-1].config.width


@case(lambda: (make_module(Shared), t(2, 3)))
def module_shared(m, x):
    return m(x)


@case(lambda: (Dynamic(), t(2, 3)))
def module_with_getattr(m, x):
    return m(x), hasattr(m, "magic"), getattr(m, "absent", 1)


@case(lambda: (make_module(Stack).eval(), t(2, 3)), lambda: (make_module(Stack), t(2, 3)))
def module_mode(m, x):
    return x * (2 if m.training else 3), [b.training for b in m.blocks]


@case(lambda: (make_module(nn.Sequential, nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)), t(2, 3)), reuse=Reuse.FREE)
def module_slices(m, x):
    for layer in m[:2]:
        x = layer(x)
    return x, len(m), m[1](x)


@case(lambda: (t(3),))
def pipeline(x):
    p = Pipeline(torch.sin) | torch.cos | (lambda v: v + 1)
    return p(x), len(p), bool(Pipeline())


@case(lambda: (t(3), Pipeline(torch.sin)), lambda: (t(3), Pipeline(torch.sin, torch.cos)))
def pipeline_from_outside(x, p):
    p.steps.append(torch.exp)
    return p(x)


@case(lambda: (t(3), Tracker()))
def tracker(x, tr):
    with tr.span("a") as inner:
        x = x + 1
        inner["b"].append(2)
    try:
        with tr.span("c"):
            raise ValueError("c")
    except ValueError:
        x = x * 2
    return x, dict(tr.events)


@case(lambda: (t(4, 3),))
def batching(x):
    batches = [x[i : i + 2] for i in range(0, len(x), 2)]
    grouped = collections.defaultdict(list)
    for i, batch in enumerate(batches):
        grouped["even" if i % 2 == 0 else "odd"].append(batch.sum())
    return {name: torch.stack(rows) for name, rows in grouped.items()}


@case(lambda: (t(3), {"a": {"b": [1, {"c": 2}]}}))
def nested_structure(x, tree):
    def walk(node, path=()):
        if isinstance(node, dict):
            for key, value in node.items():
                yield from walk(value, (*path, key))
        elif isinstance(node, list):
            for i, value in enumerate(node):
                yield from walk(value, (*path, i))
        else:
            yield path, node

    leaves = dict(walk(tree))
    return x * sum(leaves.values()), leaves


@case(lambda: (t(3), {"a": t(2), "b": [t(2), (t(1), 5)]}))
def tree_mapped(x, tree):
    def apply(function, node):
        if isinstance(node, torch.Tensor):
            return function(node)
        if isinstance(node, dict):
            return {key: apply(function, value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(apply(function, value) for value in node)
        return node

    return apply(torch.neg, tree), apply(lambda v: v.shape, tree)


@case(lambda: (t(3),))
def memoized_recursion(x):
    memo = {}

    def fib(n):
        if n in memo:
            return memo[n]
        memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    return x * fib(10), len(memo)


@case(lambda: (t(3), 3), lambda: (t(3), 4))
def keyword_forwarding(x, n):
    def inner(a, /, b, *rest, c=1, **more):
        return a * b + sum(rest) + c + sum(more.values())

    def outer(*args, **kwargs):
        kwargs.setdefault("c", 5)
        return inner(*args, **kwargs)

    return outer(x, n), outer(x, n, 1, 2), outer(x, b=n, d=4), outer(x, n, c=0, e=1)


@case(lambda: (t(3),))
def mutable_default(x):
    def append(item, into=[]):
        into.append(item)
        return len(into)

    return x * append(1) + append(2), append.__defaults__[0]


@case(lambda: (t(2, 3),), lambda: (t(4, 3),), lambda: (t(5, 3),))
def sizes_used_as_numbers(x):
    b, c = x.shape
    pads = [c - i for i in range(c)]
    rows = max(b, c) - min(b, c)
    return x.view(-1).sum() * rows, pads, x.reshape(c, b).shape == (c, b), list(x.size()), x.numel() // c, x.shape[-1] == 3


@case(lambda: (t(3),))
def questions_about_tensors(x):
    flags = [x.is_floating_point(), torch.is_tensor(x), x.dtype in (torch.float32, torch.float64), x.device.type == "cpu", x.ndim == 1, x.is_contiguous()]
    return x * sum(flags), isinstance(x, (torch.Tensor, int)), x.dtype, str(x.dtype), x.layout is torch.strided


@case(lambda: (t(3), [t(3), None, t(3)]))
def optional_values(x, maybe):
    present = [v for v in maybe if v is not None]
    first = next((v for v in maybe if v is None), "none")
    return sum(present) + x, len(present), first, any(v is None for v in maybe), [v or 0 for v in (None, 1, 0)]


@case(lambda: (t(3), [3, 1, 2]))
def sorting_and_grouping(x, keys):
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = {key: rank for rank, key in enumerate(sorted(keys))}
    groups = {k: list(g) for k, g in itertools.groupby(sorted(keys), key=lambda v: v % 2)}
    best = max(zip(keys, "abc"), key=operator.itemgetter(0))
    return x[order], ranks, groups, best


@case(lambda: (t(3),))
def text_reports(x):
    rows = [("a", 1), ("bb", 22)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}|{value:>4d}|{value / 3:.1f}" for name, value in rows]
    return x * width, "\n".join(lines), "{0}{1}{0}".format("x", 2), f"{x.shape!s} {x.dtype}", "a" * 3 + "%d%%" % 5


@case(lambda: (t(3), Config(extra={"k": [1]})))
def copies_of_structures(x, config):
    shallow, deep = copy.copy(config), copy.deepcopy(config.extra)
    shallow.width = 9
    deep["k"].append(2)
    return x * config.width, config.extra, deep, shallow.extra is config.extra


@case(lambda: (t(3),))
def accumulators(x):
    total = x.new_zeros(3)
    log = []
    while len(log) < 3:
        total += x * len(log)
        log.append(total.clone())
        if len(log) == 2:
            continue
    else:
        log.append(None)
    return total, log


@case(lambda: (t(3), 5), lambda: (t(3), 50))
def early_exits(x, n):
    for i in itertools.count():
        for j in range(3):
            if i * j > n:
                return x * i
            if j == i:
                break
        else:
            x = x + 1
        if i > 6:
            break
    return x - n


@case(lambda: (t(3),))
def swaps_and_slices(x):
    a, b = [1, 2, 3], [4, 5]
    a, b = b, a
    a[1:], b[::2] = [7, 8, 9], [0, 0]
    (p, (q, *r)), s = (1, (2, 3, 4)), 5
    del a[0], b[-1:]
    return x * p * q, a, b, r, s


@case(lambda: (t(3),))
def class_counting_objects(x):
    class_total = []

    def build(n):
        out = Config(width=n)
        class_total.append(out.area)
        return out

    configs = [build(n) for n in range(3)]
    return x * sum(c.area for c in configs), class_total, configs[1] == Config(width=1), configs[0] != configs[1]


@case(lambda: (t(3), Config()))
def attributes_by_name(x, config):
    for name in ("width", "depth"):
        if hasattr(config, name):
            setattr(config, name, getattr(config, name) * 2)
        else:
            setattr(config, name, 1)
    return x * config.width + config.depth, [f.name for f in dataclasses.fields(config)]


@case(lambda: (t(3), Output(t(3))), lambda: (t(3), Output(t(3), t(3))))
def named_outputs(x, out):
    value, hidden = out
    if hidden is None:
        out = out._replace(hidden=value * 2)
    return x + out.hidden, out._fields, out._asdict()["value"], isinstance(out, Output)
