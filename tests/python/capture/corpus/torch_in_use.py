"""Modules, functions of autograd, transforms, higher-order operators, subclasses and tensors, as programs use them."""

import copy
import types

import numpy as np
import torch
import torch.utils.checkpoint
from capture.cases import Message, Reuse, case, t
from torch import nn
from torch.utils import _pytree as pytree


class Block(nn.Module):
    scale = 2

    def __init__(self, n=4):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.register_buffer("count", torch.zeros(()))
        self.extra = None

    def forward(self, x):
        self.count += 1
        return self.lin(x) * self.scale + self.count


class Sub(Block):
    def forward(self, x, *, twice=False):
        y = super().forward(x)
        return super().forward(y) if twice else y


@case(lambda: (Block(), t(2, 4)))
def module_with_buffer_update(m, x):
    return m(x)


@case(lambda: (Sub(), t(2, 4)), lambda: (Sub(), t(3, 4)))
def module_super_forward(m, x):
    return m(x, twice=True), m.training


@case(lambda: (nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()}), t(2, 4)))
def moduledict_ops(m, x):
    for k, v in m.items():
        x = v(x)
    return x, list(m.keys()), "a" in m, len(m), [type(v).__name__ for v in m.values()]


@case(lambda: (nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)]), t(2, 4)))
def modulelist_ops(m, x):
    for i, l in enumerate(m[:2]):
        x = l(x) * (i + 1)
    return m[-1](x), len(m), [isinstance(l, nn.Linear) for l in reversed(m)]


@case(lambda: (nn.ParameterList([torch.ones(3), torch.zeros(3)]), nn.ParameterDict({"a": torch.ones(3)}), t(3)))
def parameterlist_ops(l, d, x):
    for p in l:
        x = x + p
    for k in d:
        x = x * d[k]
    return x, len(l), "a" in d


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), t(2, 4)))
def sequential_named(m, x):
    names = [n for n, _ in m.named_parameters()]
    total = sum(p.numel() for p in m.parameters())
    return m(x), names, total, [n for n, _ in m.named_modules()], [n for n, _ in m.named_children()], [n for n, _ in m.named_buffers()]


@case(lambda: (Block(), t(2, 4)))
def module_attributes(m, x):
    m.extra = 5
    m.new = x + 1
    hasattr(m, "nothing")
    d = m.__dict__
    return m(x) + getattr(m, "other", 3), "extra" in d, m.new


@case(lambda: (Block(), t(2, 4)))
def module_state_dict(m, x):
    s = m.state_dict()
    return x + s["lin.bias"], list(s)


@case(lambda: (Block(), t(2, 4)))
def module_train_eval(m, x):
    m.eval()
    y = m(x)
    a = m.training
    m.train()
    return y, a, m.training


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)), t(5, 4)))
def module_batchnorm_dropout(m, x):
    return m(x)


@case(lambda: (nn.Linear(4, 4), t(2, 4)), reuse=Reuse.FREE)
def module_forward_hooks(m, x):
    seen = []
    h = m.register_forward_hook(lambda mod, a, out: seen.append(out.shape) or out * 2)
    p = m.register_forward_pre_hook(lambda mod, a: (a[0] + 1,))
    y = m(x)
    h.remove()
    p.remove()
    return y, m(x), seen


def _hooked():
    m = nn.Linear(4, 4)
    m.register_forward_hook(lambda mod, a, out: out * 2)
    m.register_forward_pre_hook(lambda mod, a, k: ((a[0] + 1,), k), with_kwargs=True)
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2,))
    return m


@case(lambda: (_hooked(), t(2, 4, grad=True)), reuse=Reuse.FREE)
def module_with_hooks_outside(m, x):
    return m(x)


@case(lambda: (torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), t(2, 4)), reuse=Reuse.FREE)
def module_weight_norm(m, x):
    return m(x)


@case(lambda: (torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), t(2, 4)), reuse=Reuse.FREE)
def module_spectral_norm(m, x):
    return m(x)


class Sym(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


def _parametrized():
    m = nn.Linear(4, 4)
    torch.nn.utils.parametrize.register_parametrization(m, "weight", Sym())
    return m


@case(lambda: (_parametrized(), t(2, 4)), reuse=Reuse.FREE)
def module_parametrized(m, x):
    return m(x), m.weight


@case(lambda: (nn.LazyLinear(3), t(2, 4)), reuse=Reuse.FREE)
def module_lazy(m, x):
    return m(x)


@case(lambda: (t(2, 4),), message=Message.ANY)
def module_made_inside(x):
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    return m(x)


@case(lambda: (nn.Linear(4, 4), t(2, 4)))
def module_requires_grad_off(m, x):
    for p in m.parameters():
        p.requires_grad_(False)
    return m(x)


@case(lambda: (nn.Linear(4, 4), t(2, 4)))
def module_apply_init(m, x):
    def init(mod):
        if isinstance(mod, nn.Linear):
            nn.init.ones_(mod.weight)
            nn.init.zeros_(mod.bias)

    m.apply(init)
    return m(x)


class Getattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __getattr__(self, name):
        if name == "magic":
            return 7
        return super().__getattr__(name)

    def forward(self, x):
        return self.inner(x) * self.magic


@case(lambda: (Getattr(), t(2, 4)))
def module_getattr(m, x):
    return m(x), m.magic


class Callable_(nn.Module):
    def __call__(self, x):
        return super().__call__(x) + 1

    def forward(self, x):
        return x * 2


@case(lambda: (Callable_(), t(2, 4)))
def module_own_call(m, x):
    return m(x)


@case(lambda: (nn.MultiheadAttention(4, 2, batch_first=True), t(2, 3, 4)))
def module_mha(m, x):
    return m(x, x, x)[0]


@case(lambda: (nn.LSTM(4, 3, batch_first=True), t(2, 3, 4)))
def module_lstm(m, x):
    return m(x)[0]


@case(lambda: (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), t(2, 3, 4)))
def module_encoder(m, x):
    return m(x)


@case(lambda: (nn.Linear(4, 4), t(2, 4)))
def functional_call_params(m, x):
    params = {k: v * 2 for k, v in m.named_parameters()}
    return torch.func.functional_call(m, params, (x,))


@case(lambda: (nn.Linear(4, 4), t(2, 4)))
def module_deepcopy(m, x):
    return copy.deepcopy(m)(x)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k + x, None


class Setup(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.save_for_backward(x, y)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return g * y, g * x


class Vmapped(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


class OwnRule(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def vmap(info, in_dims, x):
        return x.sin(), in_dims[0]


@case(lambda: (t(3, grad=True),))
def autograd_function_basic(x):
    return Double.apply(x, 3).sum() + Double.apply(x + 1, 2)


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def autograd_function_setup(x, y):
    a, b = Setup.apply(x, y)
    return a * 2, b, b.requires_grad


@case(lambda: (t(4, 3, grad=True),))
def autograd_function_vmapped(x):
    return torch.vmap(Vmapped.apply)(x)


@case(lambda: (t(4, 3),))
def autograd_function_own_vmap_rule(x):
    return torch.vmap(OwnRule.apply)(x)


class NoneGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, flag=True):
        ctx.set_materialize_grads(False)
        ctx.flag = flag
        out = x.clone()
        ctx.mark_dirty()
        return out, mask

    @staticmethod
    def backward(ctx, g, gm):
        if ctx.needs_input_grad[0] and ctx.flag:
            return g, None, None
        return None, None, None


@case(lambda: (t(3, grad=True), t(3)))
def autograd_function_none(x, m):
    a, _ = NoneGrad.apply(x, m)
    return a * 2


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


@case(lambda: (t(3, grad=True),))
def autograd_function_ste(x):
    f = StraightThrough.apply
    return f(x) * x


@case(lambda: (t(3, grad=True),))
def autograd_grad_inside(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g + y


@case(lambda: (t(3, grad=True),))
def backward_inside(x):
    y = (x * x).sum()
    y.backward()
    return x.grad + 1


@case(lambda: (t(3),))
def func_grad(x):
    return torch.func.grad(lambda v: (v.sin() * v).sum())(x)


@case(lambda: (t(3),))
def func_grad_and_value_aux(x):
    return torch.func.grad_and_value(lambda v: ((v.sin()).sum(), v * 2), has_aux=True)(x)


@case(lambda: (t(3, 4), t(3, 4)))
def func_vmap_two(x, y):
    return torch.vmap(lambda a, b: (a * b).sum(), in_dims=(0, 0))(x, y), torch.vmap(torch.dot)(x, y)


@case(lambda: (t(3),))
def func_jacobians(x):
    f = lambda v: v.sin() * v.sum()
    return torch.func.jacrev(f)(x), torch.func.jacfwd(f)(x), torch.func.hessian(lambda v: (v**3).sum())(x)


@case(lambda: (t(3), t(3)))
def func_jvp_vjp(x, v):
    out, tangent = torch.func.jvp(torch.sin, (x,), (v,))
    o2, pull = torch.func.vjp(torch.cos, x)
    return out, tangent, o2, pull(v)


@case(lambda: (t(3, 4),))
def func_vmap_random(x):
    return torch.vmap(lambda v: v + torch.rand(4), randomness="different")(x)


@case(lambda: (t(3, 4),))
def func_per_sample_gradients(x):
    w = torch.ones(4)

    def loss(w, v):
        return (w * v).sum() ** 2

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)


@case(lambda: (t(3),))
def func_linearize(x):
    out, f = torch.func.linearize(torch.sin, x)
    return out, f(x)


@case(lambda: (t(2, 3),))
def func_chunked_vmap(x):
    return torch.func.vmap(lambda v: v.sum(), chunk_size=1)(x)


@case(lambda: (t(2, 3),))
def func_stack_state(x):
    return torch.func.functionalize(lambda v: v.clone().add_(1))(x)


@case(lambda: (t(3, grad=True),))
def checkpoint_region(x):
    return torch.utils.checkpoint.checkpoint(lambda v: v.sin().cos(), x, use_reentrant=False)


@case(lambda: (nn.Linear(4, 4), t(2, 4, grad=True)))
def checkpoint_module(m, x):
    return torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False) + 1


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), t(2, 4, grad=True)))
def checkpoint_sequential(m, x):
    return torch.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False)


@case(lambda: (t(3),))
def while_loop_op(x):
    from torch._higher_order_ops import while_loop

    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x))


@case(lambda: (t(3, 2),))
def map_op(x):
    from torch._higher_order_ops.map import map as hop_map

    return hop_map(lambda v, y: v + y, x, torch.ones(2))


@case(lambda: (t(3, 2),))
def scan_op(x):
    from torch._higher_order_ops.scan import scan

    return scan(lambda c, v: (c + v, c * v), torch.zeros(2), x)


@case(lambda: (t(3, 2),))
def associative_scan_op(x):
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


@case(lambda: (t(1, 2, 8, 16), t(1, 2, 8, 16), t(1, 2, 8, 16)), message=Message.ANY)
def flex_attention_op(q, k, v):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out


class Logging(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **kwargs)
        return out * 2 if func is torch.add else out


@case(lambda: (t(3).as_subclass(Tagged),))
def subclass_default(x):
    y = torch.sin(x) + 1
    return y, type(y) is Tagged


@case(lambda: (t(3).as_subclass(Logging), t(3)))
def subclass_overriding(x, y):
    return torch.add(x, y), torch.mul(x, y), x.sum()


class Duck:
    def __init__(self, v):
        self.v = v

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.v if isinstance(a, Duck) else a for a in args]
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def duck_tensor(x):
    return torch.add(Duck(x), 1), torch.stack([x, x])


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.sin:
            func = torch.cos
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def function_mode_inside(x):
    with Mode():
        y = torch.sin(x)
    return y, torch.sin(x)


@case(lambda: (t(3),))
def device_context(x):
    with torch.device("cpu"):
        y = torch.ones(3)
    return x + y


@case(lambda: (t(3, grad=True),))
def tensor_hooks(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    h = x.register_hook(lambda g: g + 1)
    return (y * x).sum()


@case(lambda: (t(3),))
def tensor_attributes(x):
    x.tag = 3
    y = x + x.tag
    y.name_ = "q"
    return y, hasattr(x, "tag"), y.name_, x.is_leaf, x.grad, x.grad_fn, x.device, x.layout, x.is_cuda, x.names if False else 0


@case(lambda: (t(3, 4), t(3)))
def tensor_iteration_and_unpack(x, y):
    a, b, c = x
    *d, e = y
    rows = [r * i for i, r in enumerate(x)]
    return a + b + c, d, e, rows, len(x), x.unbind(1)[0], list(y)[1]


@case(lambda: (t(3, 4),), lambda: (t(5, 4),), lambda: (t(7, 4),))
def sizes_arithmetic(x):
    n, m = x.shape
    s = x.size()
    return x.reshape(n * m), s.numel(), s[-1], n // 2, n % 2 == 1, x.view(-1, m)[: n - 1], torch.Size([n, m]) == s, tuple(s) + (1,)


@case(lambda: (t(3, 4),))
def data_dependent_item(x):
    n = int(x.argmax())
    return x + n


@case(lambda: (t(3, 4),))
def tensor_as_bool(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@case(lambda: (t(3, 4),))
def tensor_to_things(x):
    return x.to(torch.float64), x.to("cpu"), x.to(x), x.double(), x.type(torch.int64), x.type(), x.new_zeros(2), x.new(3).shape, x.type_as(torch.ones(1))


@case(lambda: (t(3, 4),))
def tensor_index_kinds(x):
    i = torch.tensor([0, 2])
    m = x > 0
    x = x.clone()
    x[0] = 1
    x[..., -1] = 2
    x[i, 1] += 3
    x[:, None, ::2]
    x[m] = 0
    return x, x[i], x[None], x[..., 0], x[1:, [0, 1]], x[(0, 1)], x[True].shape


@case(lambda: (t(3, 4),))
def tensor_inplace_ops(x):
    y = x.clone()
    y += 1
    y *= x
    y.add_(2).mul_(3)
    y[0].zero_()
    y.t().add_(1)
    y.fill_diagonal_(5)
    torch.add(x, x, out=y)
    return y


@case(lambda: (t(3, 4),))
def tensor_numpy_roundtrip(x):
    a = x.numpy()
    b = np.sin(a) + a.sum()
    return torch.from_numpy(b) * 2, a.shape, b.dtype


@case(lambda: (np.ones((3, 2)), 3))
def numpy_only(a, n):
    return np.linalg.norm(a) * n, a.reshape(-1).astype(np.float32), np.concatenate([a, a]).T


@case(lambda: (t(4, 4),))
def pytree_functions(x):
    tree = {"a": [x, x + 1], "b": (x * 2, {"c": x})}
    leaves, spec = pytree.tree_flatten(tree)
    out = pytree.tree_map(lambda v: v * 2, tree)
    back = pytree.tree_unflatten([l + 1 for l in leaves], spec)
    return out, back, len(leaves), spec.num_leaves


@case(lambda: (t(4),))
def optimizer_in_frame(x):
    w = torch.nn.Parameter(torch.ones(4))
    opt = torch.optim.SGD([w], lr=0.1)
    loss = (w * x).sum()
    loss.backward()
    opt.step()
    opt.zero_grad()
    return w.detach().clone()


@case(lambda: (t(4),))
def tensor_from_python(x):
    a = torch.tensor([1, 2, 3, 4])
    b = torch.tensor(3.5)
    c = torch.as_tensor([x.sum(), x.mean()])
    d = torch.full((2,), 3)
    e = torch.tensor([[1.0, 2], [3, 4]], dtype=torch.float64)
    f = torch.asarray([1, 2])
    return x + a, b, c, d, e, f, torch.arange(3), torch.LongTensor([1]), torch.FloatTensor([1.0]), torch.scalar_tensor(3)


@case(lambda: (t(4),))
def torch_questions(x):
    return (
        x + 1, torch.is_tensor(x), torch.is_floating_point(x), torch.is_grad_enabled(), torch.get_default_dtype(), torch.finfo(x.dtype).eps, torch.iinfo(torch.int32).max,
        torch.result_type(x, 1), torch.promote_types(torch.int8, torch.float32), torch.can_cast(torch.int8, torch.int16), torch.numel(x), torch.broadcast_shapes((1, 3), (2, 1)),
        torch.cuda.is_available(), torch.is_complex(x), x.is_contiguous(), x.data_ptr() == x.data_ptr(), torch.typename(x), x.element_size(), x.nelement(), x.ndim, x.itemsize, x.nbytes,
    )


@case(lambda: (t(4),))
def script_and_ignore(x):
    return torch.jit.isinstance(x, torch.Tensor), torch.jit.annotate(int, 3), x + 1


@case(lambda: (t(4, grad=True),))
def detach_and_data(x):
    y = x.detach() * 2
    x.data.add_(1)
    z = x.data * 3
    return y, z, x.requires_grad, y.requires_grad


@case(lambda: (t(4),))
def requires_grad_inside(x):
    y = x.clone().requires_grad_()
    z = (y * 2).sum()
    return z, y.requires_grad, z.requires_grad


@case(lambda: (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),))
def nested_jagged(x):
    return x.sin() + 1


@case(lambda: (torch.view_as_complex(t(3, 2)),))
def complex_ops(x):
    return x.abs(), x.conj() * 2, x.real + x.imag


@case(lambda: (t(3), t(3)))
def foreach_ops(x, y):
    a = torch._foreach_add([x, y], 1)
    torch._foreach_mul_(a, 2)
    return a, torch._foreach_norm([x, y])


@case(lambda: (t(3),))
def custom_op_call(x):
    return torch.ops.aten.add.Tensor(x, 1), torch.ops.aten.sin(x), torch.ops.aten.mul.Scalar(x, 2)


@torch.library.custom_op("torch_in_use::twice", mutates_args=())
def twice(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    return x * n


@twice.register_fake
def _(x, n=2):
    return torch.empty_like(x)


@torch.library.custom_op("torch_in_use::bump", mutates_args={"x"})
def bump(x: torch.Tensor) -> None:
    x.add_(1)


@case(lambda: (t(3),))
def custom_ops_own(x):
    y = twice(x, 3)
    bump(y)
    return torch.ops.torch_in_use.twice(y)
