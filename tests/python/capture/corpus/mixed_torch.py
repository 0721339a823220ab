"""Small programs about torch as users write them: modules and their hooks, state of the process, tensors, what is compiled again."""

import collections
import contextlib
import copy
import functools
import random

import numpy as np
import torch
import torch.nn.functional as F
from capture.cases import Message, Reuse, call, case, t
from torch import nn
from torch.utils.checkpoint import checkpoint

LOG = []
LAYER = nn.Linear(3, 3)


# Modules.


class Block(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        return torch.relu(self.linear(x))


def with_hooks():
    block = Block()

    def before(module, args):
        LOG.append("before")
        return (args[0] + 1,)

    def before_with_keywords(module, args, kwargs):
        LOG.append("keywords")
        return args, kwargs

    def after(module, args, result):
        LOG.append(len(args))
        return result * 2

    block.register_forward_pre_hook(before)
    block.register_forward_pre_hook(before_with_keywords, with_kwargs=True)
    block.register_forward_hook(after)
    block.linear.register_forward_hook(lambda m, a, k, r: r + len(k), with_kwargs=True, prepend=True)
    return block


@case(lambda: (t(2, 3), with_hooks()), watch=("LOG",), reuse=Reuse.FREE)
def hooks_on_modules(x, block):
    return block(x)


@case(lambda: (t(2, 3), Block()), reuse=Reuse.FREE)
def a_hook_registered_and_removed(x, block):
    seen = []
    handle = block.linear.register_forward_hook(lambda m, a, r: seen.append(r.shape))
    y = block(x)
    handle.remove()
    return block(y), seen


@case(lambda: (t(2, 3), Block()))
def buffers_and_counters(x, block):
    y = block(block(x))
    return y * block.seen + block.calls


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(3)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(3)), "b": nn.Parameter(torch.zeros(3))})
        self.layers = nn.ModuleDict({"first": nn.Linear(3, 3), "second": nn.Linear(3, 3)})
        self.steps = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def forward(self, x):
        for weight in self.weights:
            x = x + weight
        for name, weight in self.named.items():
            x = x * weight + len(name)
        for name, layer in self.layers.items():
            x = layer(x) if name == "first" else x + layer.weight.sum()
        for i, step in enumerate(self.steps[::-1]):
            x = step(x) + i
        return x + len(self.weights) + ("a" in self.named) + len(self.layers)


@case(lambda: (t(3), Held()))
def parameters_in_containers(x, held):
    return held(x)


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.ModuleDict()
        self.order = []

    def forward(self, x, key):
        if key not in self.table:
            self.table[key] = nn.Identity()
            self.order.append(key)
        return self.table[key](x) + len(self.table)


@case(lambda: (t(3), Growing()))
def a_module_dict_that_grows(x, growing):
    return growing(growing(x, "a"), "b"), list(growing.table.keys())


class Called(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def __call__(self, x, *extra):
        return super().__call__(x) + len(extra)

    def forward(self, x):
        return x * self.scale


class Delegating(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Called()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        return self.inner(x, 1, 2) + self.scale


@case(lambda: (t(3), Delegating()))
def modules_that_override(x, module):
    module.scale = 5
    return module(x), module.inner.scale


@case(lambda: (t(3), Block()))
def states_of_modules(x, block):
    state = block.state_dict()
    names = [name for name, _ in block.named_parameters()]
    return block(x), list(state), names, [type(m).__name__ for m in block.modules()], [n for n, _ in block.named_buffers()], sum(p.numel() for p in block.parameters()), dict(block.named_children()).keys() == {"linear"}


@case(lambda: (t(3), Block()))
def a_module_copied(x, block):
    other = copy.deepcopy(block)
    with torch.no_grad():
        other.linear.weight.mul_(2)
    return block(x) + other(x), other.calls


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


@case(lambda: (torch.tensor([0, 3]), Tied()))
def tied_weights(ids, tied):
    return tied(ids), tied.head.weight is tied.embed.weight


@case(lambda: (t(2, 3), nn.LazyLinear(4)), reuse=Reuse.FREE)
def a_lazy_module(x, lazy):
    return lazy(x).shape, type(lazy).__name__


@case(lambda: (t(2, 3), nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))), lambda: (t(2, 3), nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3)).eval()))
def training_and_evaluation(x, model):
    return model(x), model.training


@case(lambda: (t(2, 3), nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))))
def switched_to_evaluation(x, model):
    y = model(x)
    model.eval()
    return y, model(x), model.training


@case(lambda: (t(2, 3), nn.Linear(3, 3)))
def parameters_replaced(x, linear):
    linear.weight = nn.Parameter(linear.weight.detach() * 2)
    linear.bias = None
    return linear(x)


@case(lambda: (t(2, 3), Block()))
def parameters_frozen(x, block):
    for p in block.parameters():
        p.requires_grad_(False)
    return block(x)


@case(lambda: (t(2, 3), nn.Linear(3, 3)))
def gradients_zeroed(x, linear):
    linear(x).sum().backward()
    norm = torch.stack([p.grad.norm() for p in linear.parameters()]).sum()
    linear.zero_grad()
    return norm, linear.weight.grad


@case(lambda: (t(2, 3), nn.Linear(3, 3)))
def applied_to_modules(x, linear):
    linear.apply(lambda m: m.weight.data.fill_(0.5))
    return linear(x)


@case(lambda: (t(2, 3),))
def a_global_module(x):
    return LAYER(x) + LAYER.in_features, str(LAYER)


@case(lambda: (t(2, 3),))
def a_module_made_inside(x):
    layer = nn.ReLU()
    return layer(x), nn.Identity()(x), nn.Flatten()(x)


@case(lambda: (t(2, 3), nn.Linear(3, 3)))
def called_functionally(x, linear):
    parameters = {name: p * 2 for name, p in linear.named_parameters()}
    return torch.func.functional_call(linear, parameters, (x,))


# State of the process.


@case(lambda: (t(3, grad=True),))
def grad_modes(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    torch.set_grad_enabled(False)
    c = x * 4
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        d = x * 5
    with torch.inference_mode():
        e = x * 6
    return a.requires_grad, b, c.requires_grad, d.requires_grad, e.is_inference(), torch.is_grad_enabled()


@torch.no_grad()
def not_recorded(x):
    return x * 2


@torch.inference_mode()
def inferred(x):
    return x * 3


@torch.set_grad_enabled(False)
def also_not_recorded(x):
    return x * 4


@case(lambda: (t(3, grad=True),))
def grad_modes_as_decorators(x):
    return not_recorded(x), also_not_recorded(x), x * 2, inferred(x).is_inference()


@case(lambda: (t(3, 3),))
def autocast_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x
        with torch.autocast("cpu", enabled=False):
            b = x @ x
        c = torch.is_autocast_enabled("cpu")
    return a, b, c, torch.get_autocast_dtype("cpu")


@case(lambda: (t(3),))
def the_default_type(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3)
    torch.set_default_dtype(before)
    return y + x, y.dtype


@case(lambda: (t(3),))
def seeds(x):
    torch.manual_seed(3)
    a = torch.rand(3)
    state = torch.get_rng_state()
    b = torch.rand(3)
    torch.set_rng_state(state)
    c = torch.rand(3)
    return x + a + b + c, bool((b == c).all())


@case(lambda: (t(3),))
def random_numbers_of_python(x):
    return x * random.random() + random.randint(1, 5) + random.uniform(0, 1)


@case(lambda: (t(3),))
def a_record_of_a_profile(x):
    with torch.profiler.record_function("name"), torch.autograd.profiler.record_function("other"):
        y = x * 2
    return y + 1


@case(lambda: (t(3),))
def questions_about_cuda(x):
    if torch.cuda.is_available():
        return x
    return x * (torch.cuda.device_count() + 1), torch.backends.cudnn.enabled, torch.backends.mps.is_available(), torch.get_num_threads() > 0, torch.version.cuda is None, torch.cuda.is_initialized()


@case(lambda: (t(3),))
def the_default_device(x):
    with torch.device("cpu"):
        y = torch.ones(3)
    with torch.device("meta"):
        z = torch.ones(3)
    return x + y, z.device.type, torch.get_default_device()


@case(lambda: (t(3),))
def deterministic_for_a_while(x):
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    y = x * 2 if torch.are_deterministic_algorithms_enabled() else x
    torch.use_deterministic_algorithms(before)
    return y


@case(lambda: (t(3, grad=True),))
def saved_tensors_changed(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v * 2, lambda v: v):
        y = x * x
    return y


@case(lambda: (t(3),))
def a_function_disabled(x):
    @torch._dynamo.disable
    def f(v):
        return v * 2

    return f(x + 1) - 1


@case(lambda: (t(3),))
def whether_it_compiles(x):
    return x + 1 if torch.compiler.is_exporting() else x - 1


# Tensors.


@case(lambda: (t(2, 3, grad=True),))
def attributes_of_tensors(x):
    y = x.T
    return y * 2, [x.ndim, x.dtype, x.device.type, x.is_leaf, x.requires_grad, x.layout, x.is_contiguous(), y.is_contiguous(), x.stride(), y.stride(0), x.numel(), x.element_size(), x.itemsize, x.nbytes, x.is_floating_point(), x.is_complex(), x.grad, x.size(-1), x.shape.numel(), x.storage_offset(), x.is_cuda, x.is_sparse, x.names, x.is_nested, x.dim(), len(x), x.mT.shape, y.grad_fn is not None, x.output_nr, x._version]


@case(lambda: (t(3, grad=True),))
def gradients_asked_for(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.sum(), g


@case(lambda: (t(3),))
def requires_grad_inside(x):
    y = x.clone().requires_grad_()
    z = (y * 2).sum()
    return z, y.requires_grad, z.requires_grad


@case(lambda: (t(3, grad=True),))
def hooks_on_tensors(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sum()


@case(lambda: (t(3, grad=True),))
def data_of_tensors(x):
    x.data.add_(1)
    d = x.detach()
    d.mul_(2)
    return x * 2, d.requires_grad


@case(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(5)))
def numbers_of_tensors(x, n):
    k = n.item()
    return x * k, x[: int(n)], torch.zeros(k).shape


@case(lambda: (t(3), torch.tensor([1, 2])))
def lists_of_tensors(x, ids):
    values = ids.tolist()
    return x * len(values), [v.item() for v in ids], list(x.unbind()), max(values)


@case(lambda: (t(4),), lambda: (-t(4).abs(),))
def branches_on_data(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@case(lambda: (t(2, 3), t(2, 3)), lambda: (t(2, 3), t(3, 2)), lambda: (t(5, 2), t(5, 2)))
def sizes_compared(x, y):
    if x.shape == y.shape:
        return x + y
    if x.shape[0] < y.shape[0] or x.size() == (9, 9):
        return x @ y
    return x.sum() + y.sum(), x.shape[::-1] == y.shape


@case(lambda: (t(3), torch.zeros(3)))
def written_out(x, out):
    torch.mul(x, 2, out=out)
    torch.add(out, 1, out=out)
    y = torch.empty(0)
    torch.sub(x, 1, out=y)
    return out.sum(), y


@case(lambda: (t(4, 4),))
def views_written(x):
    x[0].fill_(1)
    x[:, 1] += 2
    x.view(-1)[::5].mul_(3)
    x[x > 2] = 0
    a, b = x.chunk(2)
    a.copy_(b)
    x[1, 2:] = torch.arange(2.0)
    x[..., -1].zero_()
    return x.diagonal().sum()


@case(lambda: (t(3, 2),))
def tensors_iterated_over(x):
    total = 0
    for i, row in enumerate(x):
        a, b = row
        total = total + a * b * i
    first, *rest = x
    return total, first, rest, [*x.t()], dict(enumerate(x[0])), sum(x), max(x[:, 0].tolist()) >= 0 or True


@case(lambda: (np.arange(6.0).reshape(2, 3), t(2, 3)))
def arrays_and_tensors(a, x):
    y = torch.from_numpy(a) + x
    b = np.sin(a) + x.numpy()
    return y, b, b.shape, np.add.reduce(a, axis=0), a.T.copy(), np.where(a > 2, a, 0), torch.as_tensor(b).mean(), np.concatenate([a, a]).dtype, a[..., None].sum(-1)


@case(lambda: (t(3),))
def constants_made(x):
    a = torch.tensor([1.0, 2.0, 3.0])
    b = torch.arange(3)
    c = torch.full((3,), 2)
    d = torch.tensor(5)
    e = torch.as_tensor([1, 2, 3], dtype=torch.float64)
    f = x.new_zeros(3)
    g = torch.linspace(0, 1, 3)
    h = torch.eye(3)[0]
    return x + a + b + c + d + f + g + h, e, torch.tensor([[1, 2], [3, 4]]).tolist(), torch.Tensor([1, 2]), torch.zeros_like(x).fill_(3)


@case(lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 4))
def a_changing_int(x, n):
    return x * n


@case(lambda: (t(3), 2.0), lambda: (t(3), 3.5), lambda: (t(3), 4.25))
def a_changing_float(x, f):
    return x * f


@case(lambda: (t(3), "a"), lambda: (t(3), "b"))
def a_changing_string(x, s):
    return x + 1 if s == "a" else x - 1


@case(lambda: (t(3), [1, 2]), lambda: (t(3), [1, 2, 3]))
def a_changing_length(x, values):
    for v in values:
        x = x + v
    return x


@case(lambda: (t(3), {"a": 1}), lambda: (t(3), {"b": 1}))
def changing_keys(x, d):
    for k, v in d.items():
        x = x + v + len(k)
    return x


@case(lambda: (t(3), torch.sin), lambda: (t(3), torch.cos), lambda: (t(3), lambda v: v + 1), reuse=Reuse.FREE)
def a_changing_function(x, f):
    return f(x)


@case(lambda: (t(3),), lambda: (t(3).double(),), lambda: (t(3, grad=True),), lambda: (t(6)[::2],), lambda: (t(3, 1),))
def changing_tensors(x):
    return torch.sin(x) * 2


@case(lambda: (t(3, 4),), lambda: (t(5, 4),), lambda: (t(7, 4),), lambda: (t(1, 4),), lambda: (t(0, 4),))
def changing_sizes(x):
    return x.view(-1).sum() * x.shape[0] + x.size(1)


# Higher-order functions.


@case(lambda: (t(3, 3), t(3)))
def transformations(m, x):
    def f(v):
        return (v**2).sum()

    return torch.func.grad(f)(x), torch.vmap(lambda r: r * x)(m), torch.func.jacrev(lambda v: v * 2)(x), torch.func.vmap(torch.func.grad(f))(m), torch.func.hessian(f)(x), torch.func.grad_and_value(f)(x), torch.func.jvp(f, (x,), (x,)), torch.func.vjp(f, x)[0]


@case(lambda: (t(3, 3, grad=True), nn.Linear(3, 3)))
def checkpointed(x, linear):
    def f(v, scale=1):
        return torch.relu(linear(v)) * scale

    return checkpoint(f, x, use_reentrant=False) + checkpoint(f, x, scale=2, use_reentrant=False)


@case(lambda: (t(3),))
def conditional(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.save_for_backward(x)
        ctx.by = by
        ctx.mark_non_differentiable()
        return x * by

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.by * 10 + x * 0, None


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(x, low):
        return x.clamp(min=low), x > low

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, g, _):
        return (None, None) if g is None else (g * ctx.saved_tensors[0], None)


class Vectorized(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return x * 2, in_dims[0]


@case(lambda: (t(3, grad=True),))
def functions_of_autograd(x):
    y, mask = Clipped.apply(x, 0.0)
    return Scale.apply(x, 2) + y, mask


@case(lambda: (t(2, 3),))
def a_function_with_its_vmap(x):
    return torch.vmap(Vectorized.apply)(x)


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        if function is torch.add:
            LOG.append("add")
        return result


@case(lambda: (t(3).as_subclass(Tagged),), watch=("LOG",))
def a_subclass(x):
    y = torch.add(x, 1)
    return y * 2, type(y).__name__, isinstance(y, Tagged), torch.Tensor.sum(y), y.as_subclass(torch.Tensor)


@case(lambda: (t(3), t(3)), reuse=Reuse.FREE)
def optimizers(x, y):
    w = nn.Parameter(x.clone())
    o = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        o.zero_grad()
        ((w - y) ** 2).sum().backward()
        o.step()
    return w.detach(), o.param_groups[0]["lr"]


@case(lambda: (t(4, 3), torch.tensor([0, 2, 1, 0])))
def losses(x, labels):
    return F.cross_entropy(x, labels), F.one_hot(labels, 3), F.softmax(x, -1), F.pad(x, (1, 1)), F.interpolate(x[None, None], scale_factor=2), F.layer_norm(x, (3,)), F.gelu(x), F.dropout(x, 0.5, training=False), torch.einsum("ij,kj->ik", x, x), torch.where(x > 0, x, 0), torch.topk(x, 2), x.max(dim=1), torch.split(x, 3), torch.meshgrid(x[0], x[1], indexing="ij"), x.unflatten(0, (2, 2))


@case(lambda: ([t(3), t(3)], {"k": (t(3), [t(3)])}))
def trees(xs, d):
    import torch.utils._pytree as pytree

    leaves, spec = pytree.tree_flatten((xs, d))
    doubled = pytree.tree_unflatten([v * 2 for v in leaves], spec)
    return doubled, pytree.tree_map(lambda v: v + 1, d), len(leaves)


@case(lambda: (t(4),))
def unique_values(x):
    y = torch.nonzero(x > 0)
    z = x[x > 0]
    return y.shape[0], z * 2, torch.unique((x > 0).int()), x.masked_select(x < 0).sum()


@case(lambda: (t(3),))
def a_break_in_the_middle(x):
    y = x + 1
    torch._dynamo.graph_break()
    z = y * 2
    print("between")
    return z - y


@case(lambda: (t(3),))
def a_break_in_a_callee(x):
    def inner(v):
        v = v * 2
        print("inner")
        return v + 1

    return inner(inner(x)) * 3


@case(lambda: (t(3),))
def a_break_in_a_nested_condition(x):
    for i in range(2):
        if i:
            print(i)
        x = x + i
    return x


@case(lambda: (t(3), nn.Linear(3, 3)))
def a_hook_after_accumulation_that_counts(x, linear):
    seen = []
    linear.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum()))
    y = linear(x).sum()
    y.backward()
    return linear.weight.grad, seen, y


@case(lambda: (t(3, grad=True), t(3)))
def hooks_after_accumulation_of_leaves(x, plain):
    x.register_post_accumulate_grad_hook(lambda p: print(p.shape))
    texts = []
    for wrong in (plain, x * 2):
        try:
            wrong.register_post_accumulate_grad_hook(lambda p: None)
        except RuntimeError as error:
            texts.append(str(error))
    return (x * x).sum(), texts


@case(lambda: (t(3), nn.Linear(3, 3)))
def gradients_accumulated_with_a_hook(x, linear):
    seen = []
    handle = linear.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.shape))
    linear(x).sum().backward()
    handle.remove()
    return linear.weight.grad, seen


# Deterministic algorithms.


@contextlib.contextmanager
def deterministic_kept():
    before = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


@case(lambda: (t(3),))
def deterministic_and_seen(x):
    with deterministic_kept():
        torch.use_deterministic_algorithms(True, warn_only=True)
        modes = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_deterministic_debug_mode()
        torch._C._set_deterministic_algorithms(False)
        y = x * 2 if torch._C._get_deterministic_algorithms() else x * 3
    return y, modes


@case(lambda: (t(3),))
def deterministic_over_a_break(x):
    with deterministic_kept():
        torch.use_deterministic_algorithms(True)
        x = x + 1
        print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
        y = x * 2
    return y, torch.are_deterministic_algorithms_enabled()


def made_deterministic(x, mode):
    torch.use_deterministic_algorithms(mode)
    return x + 1


@case(lambda: (t(3),))
def deterministic_in_a_callee(x):
    y = made_deterministic(x, True)
    seen = torch.are_deterministic_algorithms_enabled()
    return made_deterministic(y, False), seen


@case(lambda: (t(3, 3),))
def asked_about_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
    return x @ x, inside, torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
