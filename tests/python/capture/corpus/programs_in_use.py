"""Small programs of a compiler's users: objects, sizes, modes, modules, higher-order operators, exceptions."""

import contextvars
import inspect
import itertools
import operator
import types
import weakref

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from capture.cases import Reuse, call, case, t
from torch import nn


class Custom:
    def __init__(self, x):
        self.x = x
        self.calls = 0

    def __call__(self, y):
        self.calls += 1
        return self.x + y

    def method(self, y, scale=2):
        return self.x * y * scale

    @property
    def doubled(self):
        return self.x * 2


@case(lambda: (Custom(t(3)), t(3)))
def object_argument_written(o, y):
    a = o(y)
    o.x = a
    o.extra = o.doubled
    del o.calls
    return o.method(y, scale=3)


@case(lambda: (Custom(t(3)).method, t(3)))
def bound_method_argument(f, y):
    return f(y) + f(y, 4), f.__func__ is Custom.method, f.__self__.calls


@case(lambda: (t(3), 4))
def closure_returned(x, n):
    y = x + 1

    def inner(z, k=n):
        return y * z * k

    return inner, inner(x)


@case(lambda: (t(3),))
def closure_nonlocal_after_break(x):
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    bump()
    torch._dynamo.graph_break()
    bump()
    return x * count


@case(lambda: (t(4, 4),))
def inplace_on_view_of_argument(x):
    v = x[1:3].t()
    v.add_(1)
    x.view(-1)[0] = 7
    return v, x.sum()


@case(lambda: (t(4), t(4)))
def swapped_arguments(a, b):
    a, b = b, a
    a.mul_(2)
    return a + b, a is b


@case(lambda: (lambda v: (v, v))(t(3)))
def same_tensor_twice(a, b):
    a.add_(1)
    return a is b, a + b


@case(lambda: (t(3), t(3)))
def tensors_compared(a, b):
    if a is b:
        return a
    return (a == b).all(), a != b, a is not None, a in [a], [a].index(a)


@case(lambda: (t(2, 3),), lambda: (t(3, 3),), lambda: (t(5, 3),))
def shape_methods(x):
    n = x.shape[0]
    s = torch.Size([n, 3])
    assert s == x.shape
    return x.new_zeros(s), x.expand(2, *s), len(s), s.numel(), s + (1,), s[1:], isinstance(s, tuple), x.shape.index(3), x.shape.count(3), hash(s) == hash((n, 3)), torch.zeros(x.size()), x.reshape(s[::-1])


@case(lambda: (t(2, 3), [1, -1]), lambda: (t(4, 3), [1, -1]))
def view_with_lists(x, sizes):
    return x.view(sizes), x.view(*sizes), x.reshape((-1,)), torch.reshape(x, tuple(sizes))


@case(lambda: (t(6),), lambda: (t(8),), lambda: (t(10),))
def branches_on_sizes(x):
    n = x.size(0)
    if n % 4 == 0:
        return x.view(4, -1)
    if n > 9:
        return x[:5]
    return x * n


@case(lambda: (t(6, 2),), lambda: (t(8, 2),), lambda: (t(10, 2),))
def ranges_on_sizes(x):
    out = []
    for i in range(x.shape[1]):
        out.append(x[:, i] * i)
    return torch.stack(out), torch.arange(x.shape[0]), torch.linspace(0, 1, x.shape[0]), torch.full((x.shape[0],), 1.0), torch.eye(x.shape[0])


@case(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(5)))
def item_as_scalar(x, n):
    k = n.item()
    torch._check(k >= 0)
    return x * k, torch.zeros(k).shape[0] == k


@case(lambda: (t(3),))
def float_of_tensor(x):
    return x * float(x.sum())


@case(lambda: (t(3),))
def tolist_of_tensor(x):
    return x.tolist(), x + 1


@case(lambda: (t(3), t(5)))
def python_max_of_tensors(x, y):
    return max(x.sum(), y.sum()), min(1, x.shape[0]), max(x.shape[0], y.shape[0])


@case(lambda: (t(3),))
def print_between(x):
    y = x + 1
    print("hello", y.shape)
    return y * 2


class WithClassAttr:
    table = {"a": 1}
    count = 0


@case(lambda: (t(3),))
def class_attribute_counter(x):
    WithClassAttr.count += 1
    y = x * WithClassAttr.count
    WithClassAttr.count -= 1
    return y, WithClassAttr.table["a"]


class Iterable_:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from self.items

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)

    def __contains__(self, v):
        return any(v is i for i in self.items)

    def __reversed__(self):
        return iter(self.items[::-1])


@case(lambda: (Iterable_([t(3), t(3)]),))
def user_iterable(it):
    a, b = it
    return a + b, sum(it), len(it), it[0] is a, a in it, list(reversed(it)), [*it], dict(enumerate(it)), list(zip(it, it))[0][0] is a, list(map(torch.sin, it))


@case(lambda: (t(3),), reuse=Reuse.FREE)
def user_context_with_state(x):
    class Ctx:
        depth = 0

        def __enter__(self):
            Ctx.depth += 1
            return Ctx.depth

        def __exit__(self, *a):
            Ctx.depth -= 1

    with Ctx() as a, Ctx() as b:
        y = x * a + b
    return y, Ctx.depth


@case(lambda: (t(3, grad=True),))
def nested_grad_modes(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    with torch.set_grad_enabled(False):
        d = x * 5
    with torch.inference_mode():
        e = (x * 2).sum()
    return a.requires_grad, b, c.requires_grad, d, torch.is_grad_enabled()


@case(lambda: (t(3, grad=True),))
def grad_mode_across_break(x):
    with torch.no_grad():
        y = x * 2
        torch._dynamo.graph_break()
        z = y * x
    return z, x * 2, torch.is_grad_enabled()


@case(lambda: (t(3, grad=True),))
def grad_mode_with_early_return(x):
    with torch.no_grad():
        if x.shape[0] == 3:
            return x * 2
    return x


class Tracker(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def mode_that_records(x):
    with Tracker() as m:
        y = torch.sin(x) + x.cos()
    return y, m.names


class Scaled(nn.Module):
    def __init__(self, n, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.scale = scale
        self.history = []

    def forward(self, x):
        self.history.append(len(self.history))
        return x * self.weight * self.scale


class Nest(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Scaled(3, i) for i in range(3)])
        self.named = nn.ModuleDict({"a": Scaled(3, 2)})
        self.const = torch.ones(3)
        self.fn = F.relu
        self.lst = [torch.ones(3), 2]

    @property
    def first(self):
        return self.blocks[0]

    def helper(self, x, block=None):
        return (block or self.first)(x)

    def forward(self, x, mask=None, *, flag=False, **extra):
        for b in self.blocks:
            x = self.helper(x, b)
        x = self.fn(x) + self.const + self.lst[0] * self.lst[1]
        if mask is not None:
            x = x * mask
        if flag:
            x = self.named["a"](x)
        for k in sorted(extra):
            x = x + extra[k]
        return {"out": x, "n": len(self.blocks)}


@case(lambda: (Nest(), t(2, 3)), lambda: call(Nest(), t(2, 3), flag=True), reuse=Reuse.FREE)
def nested_module(m, x, flag=False):
    return m(x, flag=flag), m(x, torch.ones(3), k=1)["out"], m.first.history


@case(lambda: (Nest(), t(2, 3)), reuse=Reuse.FREE)
def module_introspection(m, x):
    a = [n for n, _ in m.named_parameters()]
    b = [type(c).__name__ for c in m.children()]
    c = len(list(m.modules()))
    d = m.get_submodule("blocks.1").scale
    e = m.get_parameter("blocks.0.weight").shape
    f = sum(p.sum() for p in m.parameters())
    g = dict(m.named_modules())["named.a"].scale
    h = m.blocks._modules["0"].scale
    return a, b, c, d, e, f, g, h, x + 1, m.__class__.__name__, isinstance(m, nn.Module), hasattr(m, "nope"), list(m.blocks[1:])[0].scale


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def module_forward_replaced(m, x):
    old = m.forward
    m.forward = lambda v: old(v) * 2
    y = m(x)
    del m.forward
    return y, m(x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def module_call_super(m, x):
    return nn.Linear.forward(m, x), nn.Module.__call__(m, x), F.linear(x, m.weight, m.bias)


@case(lambda: (nn.BatchNorm1d(3), t(4, 3)))
def batchnorm_train_then_eval(m, x):
    a = m(x)
    m.eval()
    return a, m(x), m.running_mean, m.num_batches_tracked


@case(lambda: (nn.Embedding(10, 3), torch.tensor([1, 2])))
def embedding_and_pad(m, i):
    return F.pad(m(i), (1, 1)), F.one_hot(i, 10), F.cross_entropy(m(i), torch.tensor([0, 1]))


@case(lambda: (t(2, 3, 8, 8), nn.Conv2d(3, 4, 3, padding=1)))
def conv_channels_last(x, m):
    y = m(x.to(memory_format=torch.channels_last))
    return y, y.is_contiguous(memory_format=torch.channels_last), F.interpolate(y, scale_factor=2), F.max_pool2d(y, 2, return_indices=True)


@case(lambda: (t(3, grad=True),))
def checkpoint_with_kwargs(x):
    def f(v, *, scale, other=None):
        return (v * scale).sin() + (other if other is not None else 0)

    return torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False, scale=2, other=x)


@case(lambda: (t(3, grad=True),))
def checkpoint_nested_tuple(x):
    def f(a, b):
        return a * b, {"k": a + b}

    return torch.utils.checkpoint.checkpoint(f, x, x * 2, use_reentrant=False)


@case(lambda: (t(3, grad=True), nn.Dropout(0.5)))
def checkpoint_dropout(x, d):
    return torch.utils.checkpoint.checkpoint(d, x, use_reentrant=False)


@case(lambda: (t(3),), lambda: (-t(3).abs(),))
def cond_with_closure(x):
    y = x * 2

    def yes(v):
        return v + y

    def no(v):
        return v - y

    return torch.cond(x.sum() > 0, yes, no, (x,))


@case(lambda: (t(3), 2), lambda: (t(3), 5))
def cond_on_python_bool(x, n):
    return torch.cond(n > 3, lambda v: v + 1, lambda v: v - 1, (x,))


@case(lambda: (t(3),))
def cond_nested(x):
    def inner(v):
        return torch.cond(v.sum() > 1, lambda w: w * 2, lambda w: w * 3, (v,))

    return torch.cond(x.sum() > 0, inner, lambda v: v + 0.0, (x,))


@case(lambda: (t(4, 3), t(3)))
def vmap_nested_in_dims(x, y):
    f = torch.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)
    g = torch.vmap(torch.vmap(lambda v: v + 1))
    h = torch.vmap(lambda d: d["a"] * 2, in_dims=({"a": 0},))
    return f(x, y), g(x), h({"a": x}), torch.vmap(lambda a: (a * 2, a.sum()))(x)


@case(lambda: (t(3), t(3)))
def grad_of_argnums(x, y):
    f = lambda a, b: (a * b).sin().sum()
    return torch.func.grad(f, argnums=(0, 1))(x, y), torch.func.grad(torch.func.grad(lambda v: (v**3).sum() if v.dim() == 0 else v.pow(3).sum()))(x[0])


@case(lambda: (t(3),))
def vjp_with_pytree(x):
    out, f, = torch.func.vjp(lambda d: {"o": d["a"] * 2}, {"a": x})
    return out, f({"o": torch.ones(3)})


@case(lambda: (t(3), t(3)))
def jvp_with_aux(x, v):
    return torch.func.jvp(lambda a: (a.sin(), a * 2), (x,), (v,), has_aux=True)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        r = i.exp()
        ctx.save_for_backward(r)
        ctx.note = {"k": 2}
        return r

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return g * r * ctx.note["k"]


class InPlaceFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Kwargs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2, *, shift=None):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


@case(lambda: (t(3, grad=True),))
def function_with_context_dict(x):
    return Exp.apply(x) + Exp.apply(Exp.apply(x * 0.1)).sum()


@case(lambda: (t(3, grad=True),))
def function_marked_dirty(x):
    y = x.clone()
    z = InPlaceFn.apply(y)
    return z, z is y


@case(lambda: (t(3, grad=True),))
def function_with_default_argument(x):
    return Kwargs.apply(x), Kwargs.apply(x, 5)


@case(lambda: (t(3, grad=True),))
def function_in_no_grad(x):
    with torch.no_grad():
        y = Exp.apply(x)
    return y, y.requires_grad


@case(lambda: (nn.Linear(3, 1), t(4, 3)))
def training_step(m, x):
    loss = m(x).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in m.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.detach()


@case(lambda: (t(3), np.float32(2.5), np.int64(3)))
def numpy_scalars(x, f, n):
    return x * f + n, type(f) is np.float32, float(f) * 2, int(n) + 1


@case(lambda: (np.arange(6.0).reshape(2, 3), t(3)))
def numpy_and_torch(a, x):
    b = torch.as_tensor(a).float() * x
    c = b.numpy().sum(axis=0)
    return c, np.stack([a, a]).shape, a.mean(), a[a > 2], np.where(a > 2, a, 0), a.T @ a


@case(lambda: (np.ones(3),))
def numpy_inplace(a):
    a += 1
    a[0] = 5
    b = a
    b *= 2
    return a is b, a


@case(lambda: (t(3),))
def f_strings_in_keys(x):
    d = {f"k{i}": x * i for i in range(3)}
    return d, d["k1"], sorted(d), "-".join(d), max(d)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def tuple_subclass(x):
    class P(tuple):
        def total(self):
            return sum(self)

    p = P([x, x])
    return p.total(), len(p)


class Pair(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    @property
    def left(self):
        return self[0]


@case(lambda: (t(3),), lambda: (t(4),))
def tuple_subclass_new(x):
    p = Pair(x, x + 1)
    return p.left + p[1], p, isinstance(p, tuple), p == (p[0], p[1])


@case(lambda: (t(3), [3, 1, 2]))
def sorting_kinds(x, items):
    pairs = [(2, "b"), (1, "a"), (2, "a")]
    items.sort(reverse=True)
    return x * items[0], sorted(pairs), sorted(pairs, key=operator.itemgetter(1)), sorted(pairs, key=lambda p: (-p[0], p[1])), sorted({"b": 1, "a": 2}.items()), min(pairs), max(pairs, key=lambda p: p[1])


@case(lambda: (t(3), None))
def optional_default(x, y=None):
    y = y or x
    return y + 1, y is x


@case(lambda: (t(3),))
def try_finally_return(x):
    def f():
        try:
            return x + 1
        finally:
            log.append("f")

    log = []
    return f(), log


@case(lambda: (t(3),))
def exception_from_torch(x):
    try:
        x.view(7)
    except RuntimeError as e:
        return x + 1, "shape" in str(e)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def exception_from_callee(x):
    class E(ValueError):
        pass

    def f(n):
        if n == 0:
            raise E("deep", n)
        return f(n - 1)

    try:
        f(3)
    except (KeyError, ValueError) as e:
        return x * len(e.args), type(e).__name__, isinstance(e, E), str(e)


@case(lambda: (t(3),))
def exception_context_chain(x):
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            {}["k"]
    except KeyError as e:
        return x, type(e.__context__), e.__cause__, type(e.__traceback__).__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def with_raising_exit(x):
    class C:
        def __enter__(self):
            return self

        def __exit__(self, *a):
            raise KeyError("exit")

    try:
        with C():
            raise ValueError("body")
    except KeyError as e:
        return x + 1, type(e.__context__)


@case(lambda: (t(3),))
def generator_pipeline(x):
    def src(n):
        for i in range(n):
            yield x * i

    def twice(it):
        for v in it:
            yield v
            yield v * 2

    total = 0
    for v in itertools.islice(twice(src(5)), 6):
        total = total + v
    return total, list(twice([1])), next(src(1)), sum(1 for _ in src(3))


@case(lambda: (t(3),))
def generator_with_state(x):
    def counter():
        n = 0
        while True:
            step = yield n
            n += step or 1

    c = counter()
    out = [next(c), c.send(5), next(c)]
    c.close()
    return x * out[1], out, inspect.isgenerator(c)


VAR = contextvars.ContextVar("VAR", default=2)


@case(lambda: (t(3),))
def context_variable(x):
    token = VAR.set(5)
    y = x * VAR.get()
    VAR.reset(token)
    return y, VAR.get()


@case(lambda: (t(3),))
def weakrefs_to_arguments(x):
    r = weakref.ref(x)
    return r() is x, r() + 1


@case(lambda: (t(3),))
def dynamic_attributes(x):
    o = types.SimpleNamespace()
    for i, name in enumerate(("a", "b")):
        setattr(o, name, x * i)
    return getattr(o, "b"), o.__dict__.keys() == {"a", "b"}, hasattr(o, "c"), getattr(o, "c", None)


@case(lambda: (t(3),))
def type_questions(x):
    return type(x)(x.shape).shape, type(1.5)("2.5"), type([])(range(3)), type({})(a=1), issubclass(type(x), torch.Tensor), type(x).__name__, x.__class__, isinstance(x, (int, torch.Tensor)), type(type(x)), type(None)


@case(lambda: (t(3),))
def star_expressions(x):
    a, *b = x.unbind()
    *c, d = [x, x + 1, x + 2]
    f = lambda *p, **k: (len(p), sorted(k))
    return a, b, len(c), d, f(*[1, 2], *(3,), **{"z": 1}, y=2), [*range(2), *"ab"], {**{"a": 1}, "b": 2}


@case(lambda: (t(3),))
def chained_comparisons(x):
    n = x.shape[0]
    return 1 < n < 5, n == 3 != 4, 1 < n > 2, not n, n and 5, n or 6, None or x is x, x if n else None


@case(lambda: (t(3),))
def int_enum_and_bool_index(x):
    items = [x, x + 1]
    return items[True], items[False], [10, 20][x.shape[0] > 2], (1, 2, 3)[-1], "abc"[1], range(10)[2:5], list(range(10))[::3]


@case(lambda: (t(3),))
def dict_of_functions(x):
    table = {"sin": torch.sin, "cos": torch.cos, "own": lambda v: v * 2}
    return [table[k](x) for k in table], {torch.sin: 1}[torch.sin], table.get("tan", torch.tan)(x)


@case(lambda: (t(3),))
def reassigned_global_function(x):
    global helper
    old = helper
    helper = lambda v: v * 3
    y = helper(x)
    helper = old
    return y, helper(x)


def helper(v):
    return v * 2


@case(lambda: (t(3), t(3)))
def out_variants(x, y):
    o = torch.empty(3)
    torch.mul(x, y, out=o)
    r = torch.sin(x, out=o)
    a, b = torch.empty(3), torch.empty(3, dtype=torch.long)
    torch.sort(x, out=(a, b))
    return o, r is o, a, b


@case(lambda: (t(3, 3),))
def linear_algebra(x):
    s = x @ x.t() + torch.eye(3) * 3
    return torch.linalg.inv(s), torch.linalg.det(s), torch.linalg.cholesky(s), torch.linalg.solve(s, x), torch.linalg.eigh(s)[0], torch.linalg.svd(x)[1]


@case(lambda: (t(3),))
def stance_and_compiler_functions(x):
    return x + 1, torch.compiler.is_compiling() or True, torch.compiler.is_exporting()


@torch.compiler.allow_in_graph
def _allowed(x):
    return x * 2 + 1


@case(lambda: (t(3),))
def allowed_in_graph(x):
    return _allowed(x) + 1


@torch._dynamo.nonstrict_trace
def _nonstrict(x):
    return x.sin()


@case(lambda: (t(3),))
def nonstrict_traced(x):
    return _nonstrict(x) + 1
