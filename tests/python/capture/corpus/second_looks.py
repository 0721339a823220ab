"""Functions called again after something that they looked at has changed: attributes, order, defaults, descriptors, registries, state."""

import abc
import collections
import contextlib
import copy
import functools
import itertools
import operator
import types
import typing

import torch
from capture.cases import Reuse, case, t
from torch import nn

LEVEL = {"depth": 0}
REGISTRY = {}
TOTALS = [0]
HISTORY = collections.deque(maxlen=3)


class Meta(type):
    made = 0

    def __call__(cls, *args, **kwargs):
        Meta.made += 1
        return super().__call__(*args, **kwargs)

    def __len__(cls):
        return len(cls.parts)

    def __getitem__(cls, index):
        return cls.parts[index]

    def __contains__(cls, item):
        return item in cls.parts

    def __iter__(cls):
        return iter(cls.parts)


class Kit(metaclass=Meta):
    parts = (1, 2, 3)


@case(lambda: (t(3),))
def a_class_that_is_a_container(x):
    return x * len(Kit) + Kit[1], 2 in Kit, list(Kit)


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(f"{self.name[1:]} is negative")
        setattr(obj, self.name, value)


class Account:
    balance = Positive()
    limit = Positive()

    def __init__(self, balance):
        self.balance = balance

    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda: getattr(self, name[4:])
        raise AttributeError(name)


@case(lambda: (t(3), Account(2)), lambda: (t(3), Account(5)))
def a_descriptor_that_checks(x, a):
    a.limit = a.balance + 1
    try:
        a.balance = -1
    except ValueError as error:
        text = str(error)
    return x * a.get_balance() + a.limit, text, type(Account.balance).__name__, hasattr(a, "nothing")


class Lazy:
    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __get__(self, obj, owner):
        if obj is None:
            return self
        self.calls += 1
        value = self.function(obj)
        obj.__dict__[self.function.__name__] = value
        return value


class Model:
    def __init__(self, scale):
        self.scale = scale

    @Lazy
    def weight(self):
        return self.scale * 2

    @functools.cached_property
    def bias(self):
        return self.scale + 1


@case(lambda: (t(3), Model(2)), lambda: (t(3), Model(3)), reuse=Reuse.FREE)
def values_that_are_computed_once(x, m):
    y = x * m.weight + m.bias
    m.scale = 100
    return y + m.weight + m.bias, sorted(vars(m))


def default_that_grows(x, seen=[], *, kinds={}):  # noqa: B006
    seen.append(len(seen))
    kinds[len(seen)] = True
    return x + len(seen), len(kinds)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_default_that_grows(x):
    start = len(default_that_grows.__defaults__[0])
    first, _ = default_that_grows(x)
    second, _ = default_that_grows(x)
    return second - first, len(default_that_grows.__defaults__[0]) - start


def counter():
    count = 0

    def step(by=1):
        nonlocal count
        count += by
        return count

    def peek():
        return count

    return step, peek


@case(lambda: (t(3), *counter()), reuse=Reuse.FREE)
def a_cell_that_two_functions_share(x, step, peek):
    a = x * step()
    b = a + step(3)
    return b, peek(), step.__closure__[0].cell_contents


@case(lambda: (t(3), *counter()), reuse=Reuse.FREE)
def a_cell_that_is_written_before_a_break(x, step, peek):
    y = x + step()
    print("between", peek())
    return y * step(), peek()


@case(lambda: (t(3), {"b": 1, "a": 2}), lambda: (t(3), {"a": 2, "b": 1}), lambda: (t(3), {"a": 2}))
def the_order_of_a_dict(x, d):
    first = next(iter(d))
    d["c"] = d.pop(first)
    return x * d["c"], list(d), list(reversed(d)), "".join(d)


@case(lambda: (t(3), {"x": 1}, {"x": 5}), lambda: (t(3), {"x": 2}, {"y": 5}))
def merged_dicts(x, a, b):
    merged = {**a, **b, "z": 0}
    a |= b
    return x * merged["x"], a, merged, a is not merged, (a | {"q": 1})["q"]


@case(lambda: (t(3), [3, 1, 2]), lambda: (t(3), [1, 2, 3]), lambda: (t(3), [3, 1, 2, 0]))
def lists_by_slices(x, items):
    items[1:2] = [7, 8]
    del items[::2]
    items[:0] = [x.shape[0]]
    a, *rest, b = [*items, 5, 6]
    return x * a + b, rest, items[::-1], items.index(8) if 8 in items else -1


@case(lambda: (t(3), 5), lambda: (t(3), 0), lambda: (t(3), -3), lambda: (t(3), "text"), lambda: (t(3), [1, 2, 3]), lambda: (t(3), {"k": 4}))
def a_match_statement(x, value):
    match value:
        case 0:
            return x
        case int(n) if n > 0:
            return x * n
        case int():
            return x - 1
        case str() as s:
            return x + len(s)
        case [first, *rest]:
            return x * first + len(rest)
        case {"k": v, **others}:
            return x * v, others


@case(lambda: (t(3), [4, 1, 3]), lambda: (t(3), [1]))
def a_walrus(x, items):
    if (n := len(items)) > 2 and (m := max(items)) == 4:
        x = x * m
    total = [y := 0] and [y := y + item for item in items]
    return x + n, y, total


class Node:
    __slots__ = ("next", "value")

    def __init__(self, value, following=None):
        self.value = value
        self.next = following

    def __iter__(self):
        node = self
        while node is not None:
            yield node.value
            node = node.next

    def __eq__(self, other):
        return isinstance(other, Node) and list(self) == list(other)

    __hash__ = None


@case(lambda: (t(3), Node(1, Node(2))), lambda: (t(3), Node(1, Node(3))), lambda: (t(3), Node(1)))
def a_linked_list(x, node):
    last = node
    while last.next:
        last = last.next
    last.next = Node(x.shape[0])
    try:
        {node: 1}
    except TypeError as error:
        text = str(error)
    return x * sum(node), node == Node(1, Node(2, Node(3))), text


class Base(abc.ABC):
    registry = []

    def __init_subclass__(cls, tag="none", **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag
        Base.registry.append(cls)

    @abc.abstractmethod
    def run(self, x): ...

    @classmethod
    def pick(cls, tag):
        return next(each for each in cls.registry if each.tag == tag)

    @staticmethod
    def twice(x):
        return x * 2


class Fast(Base, tag="fast"):
    def run(self, x):
        return self.twice(x)


class Slow(Fast, tag="slow"):
    def run(self, x):
        return super().run(x) + 1


@case(lambda: (t(3), "fast"), lambda: (t(3), "slow"))
def classes_by_their_tags(x, tag):
    return Base.pick(tag)().run(x), [each.__name__ for each in Slow.__mro__[:2]], issubclass(Slow, Fast)


@case(lambda: (t(3),))
def an_abstract_class(x):
    try:
        Base()
    except TypeError as error:
        return x + 1, "abstract" in str(error)


class Left:
    def go(self, log):
        log.append("left")
        return 1


class Right:
    def go(self, log):
        log.append("right")
        return 2


class A(Left):
    def go(self, log):
        log.append("a")
        return super().go(log) * 10


class B(Right, Left):
    def go(self, log):
        log.append("b")
        return super().go(log) * 10


class Both(A, B):
    def go(self, log):
        return super().go(log)


@case(lambda: (t(3), Both()), lambda: (t(3), B()))
def several_bases(x, o):
    log = []
    return x * o.go(log), log, [c.__name__ for c in type(o).__mro__]


@case(lambda: (t(3),), watch=("LEVEL", "REGISTRY"))
def globals_changed_by_functions_that_are_called(x):
    def enter(name):
        LEVEL["depth"] += 1
        REGISTRY.setdefault(name, []).append(LEVEL["depth"])

    for name in ("a", "b", "a"):
        enter(name)
    return x * LEVEL["depth"], REGISTRY["a"]


@case(lambda: (t(3),), watch=("TOTALS", "HISTORY"))
def a_global_list_and_deque(x):
    TOTALS[0] += x.shape[0]
    TOTALS.append(len(TOTALS))
    for i in range(5):
        HISTORY.append(i)
    HISTORY.rotate(1)
    HISTORY.appendleft(9)
    return x + TOTALS[0], list(HISTORY), HISTORY.maxlen


@contextlib.contextmanager
def deeper():
    LEVEL["depth"] += 1
    try:
        yield LEVEL["depth"]
    finally:
        LEVEL["depth"] -= 1


def recursive(x, n):
    with deeper() as depth:
        return x * depth if n == 0 else recursive(x + depth, n - 1)


@case(lambda: (t(3), 2), lambda: (t(3), 3), watch=("LEVEL",))
def recursion_with_a_manager(x, n):
    return recursive(x, n), LEVEL["depth"]


@case(lambda: (t(3), iter([1, 2, 3])), lambda: (t(3), iter([5, 6])), reuse=Reuse.FREE)
def an_iterator_that_is_advanced(x, it):
    a = next(it)
    b = next(it, 0)
    return x * a + b, next(it, "end")


@case(lambda: (t(3), zip([1, 2], [3, 4])), reuse=Reuse.FREE)
def a_zip_that_is_advanced(x, pairs):
    a, b = next(pairs)
    return x * a + b, list(pairs), list(pairs)


@case(lambda: (t(3), [1, 2, 3, 4]), lambda: (t(3), [4, 3]))
def tools_of_iteration(x, items):
    running = list(itertools.accumulate(items, operator.mul))
    pairs = list(itertools.pairwise(items))
    grouped = {k: list(g) for k, g in itertools.groupby(sorted(items), key=lambda v: v % 2)}
    taken = list(itertools.takewhile(lambda v: v < 4, items))
    return x * running[-1], pairs, grouped, taken, list(itertools.islice(itertools.cycle(items), 5)), list(itertools.chain.from_iterable([items, taken]))


@case(lambda: (t(3), functools.partial(operator.add, 2)), lambda: (t(3), functools.partial(operator.mul, 3)), reuse=Reuse.FREE)
def tools_of_functions(x, f):
    composed = functools.reduce(lambda g, h: lambda v: h(g(v)), [f, f])
    by_name = operator.attrgetter("shape")(x)
    return x * composed(1), f.args, f.func.__name__, by_name, operator.methodcaller("sum", dim=0)(x), operator.itemgetter(1, 0)([5, 6])


@functools.lru_cache(maxsize=None)
def expensive(n):
    return n * 10


@functools.total_ordering
class Version:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number

    def __lt__(self, other):
        return self.number < other.number

    def __hash__(self):
        return hash(self.number)


@case(lambda: (t(3), Version(2), Version(3)), lambda: (t(3), Version(3), Version(2)), lambda: (t(3), Version(2), Version(2)))
def objects_in_order(x, a, b):
    return x + (1 if a >= b else 2), max(a, b).number, {a: 1, b: 2}[Version(2)], expensive(a.number), a != b


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(3), persistent=False)
        self.seen = []
        self.mode = "sum"

    def forward(self, x):
        self.steps += 1
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        self.seen.append(tuple(x.shape))
        y = self.linear(x)
        return getattr(y, self.mode)() if self.training else y


def buffered(training=True, mode="sum"):
    module = Buffered()
    module.mode = mode
    return module.train(training)


@case(
    lambda: (buffered(), t(2, 3)),
    lambda: (buffered(False), t(2, 3)),
    lambda: (buffered(mode="mean"), t(2, 3)),
    lambda: (buffered(), t(4, 3)),
)
def a_module_with_state(m, x):
    return m(x), m.steps, m.seen, sorted(m.state_dict())


@case(lambda: (nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()}), t(2, 3), "a"), lambda: (nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(3, 3)}), t(2, 3), "b"))
def modules_by_their_names(m, x, key):
    y = m[key](x)
    for name, module in m.items():
        y = module(y) + len(name)
    return y, "a" in m, list(m.keys()), [n for n, _ in m.named_parameters()]


@case(lambda: (t(3), types.SimpleNamespace(a=1, b=[2])), lambda: (t(3), types.SimpleNamespace(a=2, b=[2])), lambda: (t(3), types.SimpleNamespace(a=1, b=[2], c=3)))
def a_namespace(x, ns):
    ns.b.append(ns.a)
    ns.d = getattr(ns, "c", 0)
    del ns.a
    return x * ns.b[-1] + ns.d, sorted(vars(ns)), hasattr(ns, "a"), ns == types.SimpleNamespace(b=[2, 1], d=0)


@case(lambda: (t(3), {"a": [1, {"b": t(2)}]}), lambda: (t(3), {"a": [2, {"b": t(2)}]}))
def deep_copies(x, nested):
    shallow, deep = copy.copy(nested), copy.deepcopy(nested)
    deep["a"][1]["b"] += 1
    shallow["a"][0] += 5
    return x * nested["a"][0], deep["a"][1]["b"] - nested["a"][1]["b"], shallow["a"] is nested["a"]


T = typing.TypeVar("T")


class Stack(typing.Generic[T]):
    def __init__(self, items: list[T] | None = None):
        self.items = items or []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self

    def __class_getitem__(cls, item):
        return super().__class_getitem__(item)

    def __bool__(self):
        return bool(self.items)

    def __len__(self):
        return len(self.items)


@case(lambda: (t(3), Stack([1])), lambda: (t(3), Stack([1, 2])), lambda: (t(3), Stack()))
def a_generic_class(x, s):
    y = x if s else x - 1
    s.push(y).push(2)
    made = Stack[int]([len(s)])
    return y * len(s), made.items, typing.cast(int, 5), typing.get_origin(list[int]) is list


@case(lambda: (t(3), 2, 3), lambda: (t(3), 3, 3))
def arguments_of_all_kinds(x, n, m):
    def f(a, b=2, /, c=3, *args, d, e=5, **kwargs):
        return a * b + c + sum(args) + d * e + sum(kwargs.values())

    args, kwargs = (n, m), {"d": 1, "z": n}
    return x * f(*args, **kwargs), f(1, d=2), f(1, 2, 3, 4, 5, d=6, e=7, y=8)


@case(lambda: (t(3), "abc"), lambda: (t(3), "xyz"), lambda: (t(3), "abcd"))
def texts(x, s):
    table = str.maketrans("abc", "123")
    return x * len(s), s.translate(table), f"{s!r:>8}|{len(s):03d}|{s[::-1]:_^7}", s.partition("b"), "%s-%05.2f" % (s, len(s) / 3), s.encode().hex(), "{0[1]}{k}".format(s, k=len(s))


@case(lambda: (t(3), 7), lambda: (t(3), -7), lambda: (t(3), 0))
def integers(x, n):
    return x + n, n // 2, n % 3, -n // 2, n >> 1, n & 5, n | 8, n ^ 3, ~n, divmod(n, 3), pow(n, 2, 5), abs(n), n.bit_length(), bool(n), round(n / 2), int(n / 2)


@case(lambda: (t(3, 4),), lambda: (t(5, 4),), lambda: (t(8, 4),), lambda: (t(9, 4),))
def arithmetic_of_sizes(x):
    n, m = x.shape
    half = n // 2
    odd = n % 2
    return x[:half].sum() + odd, x.reshape(-1, 2) * (n - m), -n + m, n * m % 3, n & 1, (n << 1) - 1, -(n // -2), max(n, m), f"{n}x{m}", str(x.shape)


@case(lambda: (t(4),), lambda: (t(6),), lambda: (t(7),), lambda: (t(3),))
def branches_on_sizes(x):
    n = x.shape[0]
    if n % 2:
        return x * n
    if n > 5 and n != 8:
        return x - n
    return x + {4: 1}.get(n, 2)


class Plugin:
    def __init__(self, name):
        self.name = name
        self.hooks = collections.defaultdict(list)

    def on(self, event):
        def register(function):
            self.hooks[event].append(function)
            return function

        return register

    def fire(self, event, value):
        for hook in self.hooks[event]:
            value = hook(value)
        return value


def plugin(count):
    made = Plugin("p")
    for i in range(count):
        made.on("run")(lambda v, i=i: v * (i + 1))
    return made


@case(lambda: (t(3), plugin(2)), lambda: (t(3), plugin(3)), lambda: (t(3), plugin(0)), reuse=Reuse.FREE)
def functions_in_a_registry(x, p):
    @p.on("run")
    def last(v):
        return v + len(p.hooks["run"])

    return p.fire("run", x), len(p.hooks), p.fire("other", 1), dict(p.hooks).keys() == {"run", "other"}


class Proxy:
    def __init__(self, target):
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_log", [])

    def __getattr__(self, name):
        self._log.append(name)
        return getattr(self._target, name)

    def __setattr__(self, name, value):
        self._log.append("set " + name)
        setattr(self._target, name, value)

    def __call__(self, *args):
        return self._target(*args)

    def __enter__(self):
        self._log.append("in")
        return self

    def __exit__(self, *exc):
        self._log.append("out")
        return False


@case(lambda: (t(2, 3), Proxy(nn.Linear(3, 3))))
def an_object_that_stands_for_another(x, p):
    with p:
        y = p(x) + p.weight.sum()
        p.extra = 5
    return y * p.extra, p._log, isinstance(p._target, nn.Linear)


class Tracked(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})


@case(lambda: (t(3).as_subclass(Tracked),), reuse=Reuse.FREE)
def calls_that_a_tensor_tracks(x):
    Tracked.calls.clear()
    y = torch.sin(x) + 1
    z = y.sum()
    return z, list(Tracked.calls), type(z).__name__


@case(lambda: (t(3), [t(2), t(2)]), lambda: (t(3), [t(2)]), lambda: (t(3), []))
def tensors_in_a_list(x, ts):
    total = sum((u.sum() for u in ts), start=x.sum())
    ts.sort(key=lambda u: u.shape[0])
    ts.insert(0, x)
    popped = ts.pop()
    return total, popped is x, len(ts), [u is x for u in ts], x in ts[:1] if ts else None


@case(lambda: (t(3), t(3)), lambda: (t(3),) * 2)
def the_same_tensor_twice(x, y):
    x.add_(1)
    return x + y, x is y, {x: 1}.get(y, 2), len({id(x), id(y)})


def shared():
    base = t(6)
    return base[:3], base[2:5], base


@case(shared, lambda: (t(3), t(3), t(6)))
def tensors_that_share_memory(x, y, base):
    x.mul_(2)
    y += 1
    return base.sum(), x + y


@case(lambda: (t(3), None), lambda: (t(3), t(3)), lambda: (t(3), 2.0), lambda: (t(3), True))
def an_argument_of_several_kinds(x, y=None):
    if y is None:
        return x
    if isinstance(y, bool):
        return x if y else -x
    if isinstance(y, (int, float)):
        return x * y
    return x + y


@case(lambda: (t(3), "sin"), lambda: (t(3), "cos"), lambda: (t(3), "nothing"))
def functions_by_name(x, name):
    function = getattr(torch, name, None) or (lambda v: v * 0)
    method = getattr(x, name, lambda: "none")
    return function(x), method() if name != "nothing" else method()


@case(*[lambda n=n: (t(n, 2),) for n in (4, 7, 8, 12, 5)])
def bits_of_sizes(x):
    n = x.shape[0]
    below = n - 9
    return x + (n & 3), n << 2, n >> 1, n | 4, n | 1, below & 7, below >> 1, below << 1, below | 2, abs(below), ~n, n ^ 5, -n


@case(*[lambda n=n: (t(3), n) for n in (4, 7, 0, 12, 5)])
def bits_of_numbers(x, n):
    return x * (n & 3) + (n >> 1), n | 4, n << 1, abs(n - 6), (n - 6) & 1, (n - 6) >> 1
