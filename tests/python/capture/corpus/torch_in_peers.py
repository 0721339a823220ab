"""Functions of torch: transforms, autograd, higher-order operators, numpy, dynamic sizes, as suites of other compilers probe them."""

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from capture.cases import Message, case, t
from torch.utils.checkpoint import checkpoint


# Functions of autograd with rules of their own.


class Square(torch.autograd.Function):
    """With a derivative, a forward derivative and a rule for vmap."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent

    @staticmethod
    def vmap(info, in_dims, x):
        return Square.apply(x), in_dims[0]


class Generated(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x * k, x + k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.k + h, None


class Odd(torch.autograd.Function):
    """Its rule for vmap is told apart from what vmap would do."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def vmap(info, in_dims, x, y):
        assert info.batch_size == 4
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
        return (x * y) + 1000, 0


@case(lambda: (t(3, grad=True),))
def a_function_with_all_rules(x):
    return Square.apply(x)


@case(lambda: (t(4, 3),))
def a_function_under_vmap(x):
    return torch.vmap(Square.apply)(x)


@case(lambda: (t(4, 3),))
def a_function_with_a_generated_rule_under_vmap(x):
    return torch.vmap(lambda row: Generated.apply(row, 3.0))(x)


@case(lambda: (t(4, 3), t(3)))
def a_function_with_its_own_rule_under_vmap(x, y):
    return torch.vmap(Odd.apply, in_dims=(0, None))(x, y)


@case(lambda: (t(3, 4), t(4)))
def an_own_rule_along_another_dimension(x, y):
    return torch.vmap(Odd.apply, in_dims=(1, 0))(x, y.unsqueeze(-1).expand(4, 3))


@case(lambda: (t(4, 3),))
def an_own_rule_below_a_gradient(x):
    return torch.vmap(torch.func.grad(lambda row: Square.apply(row).sum()))(x)


@case(lambda: (t(3), t(3)))
def a_forward_derivative_of_an_own_rule(x, v):
    return torch.func.jvp(lambda y: Square.apply(y), (x,), (v,))


@case(lambda: (t(3, grad=True),))
def a_gradient_of_a_function_inside(x):
    y = Square.apply(x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * 2


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, flag=True):
        ctx.k = k
        ctx.flag = flag
        ctx.set_materialize_grads(False)
        return x * k, x.detach() + 1

    @staticmethod
    def backward(ctx, g, h):
        if g is None:
            return None, None, None
        return g * ctx.k, None, None


@case(lambda: (t(3, grad=True), 2), lambda: (t(3, grad=True), 3), lambda: (t(5, grad=True), 4))
def a_function_with_numbers(x, k):
    a, b = Scaled.apply(x, k)
    return a + b


@case(lambda: (t(3, grad=True),))
def a_function_by_keyword_default(x):
    return Scaled.apply(x, 2, False)[0] * Scaled.apply(x, 3)[0]


# Hooks on what is saved.


@case(lambda: (t(3, grad=True),))
def saved_tensors_packed(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda y: y * 1, lambda y: y):
        y = x.sin()
    return y * 2


@case(lambda: (t(3, grad=True),))
def saved_tensors_packed_over_a_break(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda y: y * 2, lambda y: y / 2):
        y = x.sin()
        print("inside")
        z = y.exp()
    return z * 2


@case(lambda: (t(3, grad=True),))
def saved_tensors_on_the_cpu(x):
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    return y.sum()


@case(lambda: (t(3, grad=True),))
def hooks_on_intermediates(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sin()


@case(lambda: (t(3, grad=True),))
def hooks_on_inputs_removed(x):
    h = x.register_hook(lambda g: g + 1)
    y = x * 2
    h.remove()
    return y


# Transforms.


def loss(w, x):
    return (x @ w).tanh().sum()


@case(lambda: (t(3), t(4, 3)))
def gradients_for_each_row(w, x):
    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)


@case(lambda: (t(3), t(4, 3)))
def hessians(w, x):
    return torch.func.hessian(loss)(w, x)


@case(lambda: (t(3), t(4, 3)))
def jacobians_both_ways(w, x):
    f = lambda v: (x @ v).sin()
    return torch.func.jacfwd(f)(w), torch.func.jacrev(f)(w)


@case(lambda: (t(3), t(3)))
def products_of_vectors_and_jacobians(x, v):
    out, back = torch.func.vjp(torch.sin, x)
    return back(v), out


@case(lambda: (t(3),))
def gradients_and_values_with_extras(x):
    def f(y):
        return (y**3).sum(), {"mean": y.mean()}

    g, (value, extra) = torch.func.grad_and_value(f, has_aux=True)(x)
    return g + value, extra


@case(lambda: (t(3), t(3)))
def gradients_of_several(x, y):
    return torch.func.grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(x, y)


@case(lambda: (t(3),))
def linearized(x):
    out, f = torch.func.linearize(torch.sin, x)
    return out + f(torch.ones_like(x))


@case(lambda: (t(3), t(3)))
def forward_derivatives_within(x, v):
    with torch.autograd.forward_ad.dual_level():
        d = torch.autograd.forward_ad.make_dual(x, v)
        return torch.autograd.forward_ad.unpack_dual(d.sin()).tangent


@case(lambda: (torch.nn.Linear(3, 2), t(4, 3)))
def a_functional_call(m, x):
    params = {k: v.detach() * 2 for k, v in m.named_parameters()}
    return torch.func.functional_call(m, params, (x,))


MODELS = [torch.nn.Linear(3, 2) for _ in range(2)]


@case(lambda: (t(4, 3),))
def an_ensemble(x):
    params, buffers = torch.func.stack_module_state(MODELS)

    def one(p, b, y):
        return torch.func.functional_call(MODELS[0], (p, b), (y,))

    return torch.vmap(one, in_dims=(0, 0, None))(params, buffers, x)


@case(lambda: (t(2, 3, 4),))
def vmaps_within_vmaps(x):
    return torch.vmap(torch.vmap(lambda r: r.sum(), in_dims=1, out_dims=0), out_dims=1)(x)


@case(lambda: (t(4, 3),))
def vmaps_with_structures(x):
    return torch.vmap(lambda d: {"a": d["x"] * 2, "b": (d["x"].sum(), d["k"])}, in_dims=({"x": 0, "k": None},))({"x": x, "k": x[0]})


@case(lambda: (t(6, 3),))
def vmaps_in_chunks(x):
    return torch.vmap(lambda r: r.softmax(0), chunk_size=2)(x)


@case(lambda: (t(4, 3),))
def vmaps_with_random_numbers(x):
    return torch.vmap(lambda r: r + torch.rand(3), randomness="same")(x).shape


@case(lambda: (t(3),))
def functionalized(x):
    def f(y):
        z = y.clone()
        z.add_(1)
        return z

    return torch.func.functionalize(f)(x)


# Higher-order operators.


@case(lambda: (t(3),), lambda: (-t(3).abs(),))
def a_condition_on_data(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_condition_that_is_known(x, flag):
    return torch.cond(flag, lambda y: y + 1, lambda y: y - 1, (x,))


@case(lambda: (torch.nn.Linear(3, 3), t(3)))
def a_condition_with_a_module(m, x):
    return torch.cond(x.sum() > 0, lambda y: m(y), lambda y: m(y) * 2, (x,))


class Wrapper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.k = 2

    def body(self, x, scale=1.0):
        return torch.relu(self.inner(x)) * scale

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False, scale=self.k)


@case(lambda: (Wrapper(), t(4, 3, grad=True)))
def a_checkpoint_of_a_method(m, x):
    return m(x)


@case(lambda: (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)), t(4, 3, grad=True)))
def a_checkpoint_of_a_module(m, x):
    return checkpoint(m, x, use_reentrant=False, preserve_rng_state=True)


@case(lambda: (t(3, grad=True), t(3)))
def a_checkpoint_of_a_partial(x, y):
    return checkpoint(functools.partial(torch.add, alpha=2), x, y, use_reentrant=False).sin()


def decorated_with_checkpoint(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return checkpoint(f, *args, use_reentrant=False, **kwargs)

    return inner


@decorated_with_checkpoint
def body_of_checkpoint(x, *, k):
    return (x.sin() * k, {"extra": x + k})


@case(lambda: (t(3, grad=True),))
def a_checkpoint_by_a_decorator(x):
    a, b = body_of_checkpoint(x, k=3)
    return a + b["extra"]


@case(lambda: (t(5),))
def a_loop_on_data(x):
    return torch.while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2), (torch.tensor(0), x))


@case(lambda: (t(4, 3),))
def mapped_over_rows(x):
    from functorch.experimental.control_flow import map as map_over

    return map_over(lambda row, k: row.sin() + k, x, x.sum(0))


# numpy.


@case(lambda: (np.arange(6.0).reshape(2, 3),), lambda: (np.arange(8.0).reshape(2, 4),))
def arrays_in_and_out(a):
    return np.sin(a) + a.sum(axis=0), a.T.shape, a.dtype == np.float64


@case(lambda: (t(2, 3),))
def from_tensors_to_arrays(x):
    a = x.numpy()
    return torch.from_numpy(np.where(a > 0, a, 0)) + torch.as_tensor(np.ones(3, dtype=np.float32))


@case(lambda: (np.ones((3, 3)), 2))
def linear_algebra_of_arrays(a, n):
    return np.linalg.norm(a @ a), np.einsum("ij,kj->ik", a, a), np.dot(a, a)[0], np.trace(a), np.outer(a[0], a[1]) ** n


@case(lambda: (np.array([3.0, 1.0, 2.0]),))
def sorted_arrays(a):
    return np.sort(a), np.argsort(a), a[::-1], np.unique(a), a.argmax(), np.clip(a, 1.5, 2.5), np.cumsum(a), np.concatenate([a, a]), np.stack([a, a], 1).ravel()


@case(lambda: (np.arange(5),))
def arrays_written_in_place(a):
    a += 1
    a[1:3] = 0
    a[a > 3] = 9
    b = a.astype(np.float32)
    b *= 0.5
    return a, b, a.copy() is a, np.zeros_like(b), a.tolist()


@case(lambda: (t(3),))
def numbers_of_numpy(x):
    k = np.float64(2.5)
    n = np.int64(3)
    return x * k + n, np.pi, np.sqrt(4.0), np.prod([1, 2, 3]), np.ceil(1.2), isinstance(k, float), np.iinfo(np.int32).max, np.finfo(np.float32).eps


@case(lambda: (t(3),))
def a_generator_of_numpy(x):
    rng = np.random.default_rng(3)
    return x * rng.random() + rng.integers(0, 5), rng.normal(size=2)


@case(lambda: (np.ones(3), np.random.default_rng(4)))
def a_generator_of_numpy_given(a, rng):
    return a * rng.uniform(), rng.permutation(3)


@case(lambda: (np.ones(4),))
def drawn_by_numpy(a):
    return a * np.random.rand() + np.random.randn(4) + np.random.randint(0, 9)


@case(lambda: (t(3),))
def array_protocols(x):
    return np.asarray(x).shape, np.array(x.detach()) * 2, torch.tensor(np.arange(3)), np.asarray([x.shape[0], 2]).sum()


@case(lambda: (np.arange(4.0),), lambda: (np.arange(5.0),))
def functions_wrapped_for_numpy(a):
    return np.add.reduce(a), np.multiply.outer(a, a).sum(), np.maximum(a, 2), np.negative(a), np.add(a, a, out=np.empty_like(a))


# Sizes and numbers as symbols.


@case(lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 5), lambda: (t(3), 7))
def integers_that_change(x, n):
    return x * n + n**2 - n // 2 + n % 3, n + 1, x.new_full((n,), n)


@case(lambda: (t(3), 1.5), lambda: (t(3), 2.5), lambda: (t(3), 3.5))
def floats_as_alpha(x, f):
    return torch.add(x, x, alpha=f)


@case(lambda: (t(3), 1.5), lambda: (t(3), 2.5), lambda: (t(3), 3.5))
def floats_as_powers(x, f):
    return x.abs() ** f + torch.pow(x.abs(), f) + torch.pow(f, x)


@case(lambda: (t(4, 3), 1e-5), lambda: (t(4, 3), 1e-4), lambda: (t(4, 3), 1e-3))
def floats_as_epsilon(x, eps):
    return F.layer_norm(x, (3,), eps=eps) + F.normalize(x, eps=eps) + F.rms_norm(x, (3,), eps=eps)


@case(lambda: (t(4, 3), 1.5), lambda: (t(4, 3), 2.5), lambda: (t(4, 3), 3.5))
def floats_in_activations(x, f):
    return F.leaky_relu(x, f) + F.elu(x, f) + F.hardtanh(x, -f, f) + F.softplus(x, beta=f) + F.threshold(x, f, 0.0)


@case(lambda: (t(4, 3), 0.5), lambda: (t(4, 3), 0.25), lambda: (t(4, 3), 0.75))
def floats_that_weigh(x, f):
    return torch.lerp(x, x * 2, f) + x.addcmul(x, x, value=f) + x.addcdiv(x, x.exp(), value=f) + torch.full((3,), f) + x.clamp(-f, f)


@case(lambda: (t(4, 3), t(3, 2), t(2), 1.5), lambda: (t(4, 3), t(3, 2), t(2), 2.5), lambda: (t(4, 3), t(3, 2), t(2), 3.5))
def floats_in_products(x, w, b, f):
    return torch.addmm(b, x, w, beta=f, alpha=f * 2)


@case(lambda: (t(3), 1.5), lambda: (t(3), 2.5), lambda: (t(3), 3.5))
def floats_through_math(x, f):
    return x * math.sqrt(f) + math.sin(f) + math.floor(f) + max(f, 2.0) + round(f) + int(f) + abs(-f)


@case(lambda: (t(3), 0.1), lambda: (t(3), 0.2), lambda: (t(3), 0.3))
def floats_that_are_compared(x, f):
    return x + f if f > 0.25 else x - f


@case(lambda: (t(4, 6),), lambda: (t(5, 6),), lambda: (t(7, 6),), lambda: (t(7, 8),))
def sizes_that_change(x):
    b, n = x.shape
    return x.view(b, 2, n // 2).transpose(1, 2).reshape(-1, 2) * (b + n), torch.zeros(b, n + 1), x.numel()


@case(lambda: (t(4, 6),), lambda: (t(5, 6),), lambda: (t(9, 6),))
def sizes_that_are_compared(x):
    if x.shape[0] > 6:
        return x + x.shape[0]
    if x.size(0) % 2 == 0:
        return x * 2
    return x - 1


@case(lambda: (t(4), [1, 2]), lambda: (t(4), [3, 2]), lambda: (t(4), [3, 5, 6]))
def lists_of_integers_that_change(x, sizes):
    return x.sum() + sum(sizes), torch.ones(sizes)


@case(lambda: (t(2, 8), 3), lambda: (t(2, 8), 5))
def slices_by_numbers(x, n):
    return x[:, :n], x[:, n:], x[..., -n], x.split(n, 1)[0], x.narrow(1, 0, n), torch.arange(n), x.chunk(2, 1)


@case(lambda: (t(4),), lambda: (t(6),), lambda: (t(8),))
def marked_sizes(x):
    torch._dynamo.graph_break()
    return x.sum() / x.shape[0]


@case(lambda: (t(5), 3), lambda: (t(5), 2))
def items_as_sizes(x, n):
    k = torch.tensor(n).item()
    return x[:k].sum() + k


# Trees and lists of tensors.


@case(lambda: ({"a": t(3), "b": [t(3), (t(3), 2)]},))
def mapped_trees(tree):
    leaves, spec = pytree.tree_flatten(tree)
    doubled = pytree.tree_map_only(torch.Tensor, lambda v: v * 2, tree)
    return pytree.tree_unflatten([v + 1 for v in leaves], spec), doubled, spec.num_leaves


@case(lambda: ([t(3), t(3)],))
def lists_of_tensors_at_once(items):
    torch._foreach_add_(items, 1)
    return torch._foreach_mul(items, 2), torch._foreach_norm(items)


@case(lambda: (t(3), torch.nn.Linear(3, 3)))
def what_a_tensor_is(x, m):
    return (
        x + 1,
        isinstance(m.weight, torch.nn.Parameter),
        torch.is_tensor(x),
        x.is_contiguous(),
        x.is_floating_point(),
        x.device.type,
        x.dtype.is_floating_point,
        x.ndim,
        x.layout is torch.strided,
        x.requires_grad,
        x.is_cuda,
        x.stride(),
        x.element_size(),
        x.is_sparse,
        x.names,
        x.type(),
        x.storage_offset(),
        x.is_leaf,
        x.data.shape,
        x.grad,
        len(x),
        x.nelement(),
        x.T.shape,
        m.weight.requires_grad,
        x.get_device(),
        x.is_nested,
        x.itemsize,
        x.nbytes,
    )


@case(lambda: (t(3),))
def contexts_of_torch(x):
    with torch.set_grad_enabled(False), torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x
    with torch.enable_grad(), torch.device("cpu"):
        b = torch.ones(3)
    with torch.autograd.profiler.record_function("region"):
        c = x * 2
    with torch.inference_mode():
        d = torch.is_inference_mode_enabled()
    return a, b, c, d, torch.is_grad_enabled()


@torch.no_grad()
def without_gradients(x):
    return x * 2, torch.is_grad_enabled()


@case(lambda: (t(3, grad=True),))
def managers_of_torch_as_decorators(x):
    @torch.enable_grad()
    def within(y):
        return y * 3

    y, mode = without_gradients(x)
    return y + within(x), mode


@case(lambda: (t(3),))
def default_types_for_a_while(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3)
    torch.set_default_dtype(before)
    return x + y, y.dtype


@case(lambda: (t(4, 3),))
def distributions_in_use(x):
    normal = torch.distributions.Normal(x, x.exp())
    categorical = torch.distributions.Categorical(logits=x)
    kl = torch.distributions.kl_divergence(normal, torch.distributions.Normal(torch.zeros_like(x), torch.ones_like(x)))
    return normal.log_prob(x), normal.rsample(), categorical.sample(), categorical.entropy(), kl, normal.stddev


@case(lambda: (t(4, 3),), message=Message.ANY)
def distributions_with_validation(x):
    d = torch.distributions.Bernoulli(probs=x.sigmoid(), validate_args=True)
    u = torch.distributions.Uniform(x, x + 1)
    return d.log_prob(torch.ones(4, 3)), u.icdf(torch.full((4, 3), 0.5)), d.variance


@case(lambda: (t(2, 3, 4),))
def items_of_all_kinds(x):
    mask = torch.tensor([True, False])
    places = torch.tensor([0, 2])
    return x[0, ..., None], x[:, places], x[mask.nonzero().flatten()].shape, x[[0, 1], [1, 2]], x[..., ::2], x[None, 1:], x[(0, 1)], x[torch.tensor(1)], x[:, -1], x[True].shape


@case(lambda: (t(3, 4),))
def writes_of_all_kinds(x):
    x[0] = 1
    x[:, 1] += 2
    x[x > 1.5] = 0
    x[1:, ::2].mul_(3)
    x.T[0].zero_()
    y = x.view(-1)
    y[3:5] = torch.ones(2)
    x[[0, 2], [3, 3]] = 7
    return x + 1, y


@case(lambda: (t(3, grad=True),))
def a_backward_pass_inside(x):
    y = x.sin().sum()
    y.backward()
    g = x.grad.clone()
    x.grad = None
    return g * 2


@case(lambda: (t(3),))
def gradients_switched_on_inside(x):
    y = x.detach().requires_grad_()
    z = (y**2).sum()
    return torch.autograd.grad(z, y)[0], z.grad_fn is not None, y.is_leaf


@case(lambda: (t(3),))
def iterated_tensors(x):
    total = 0
    for n, row in enumerate(x):
        total = total + row * n
    a, b, c = x
    return total + a * b * c, [v.shape for v in x], max(x.unbind()), len(list(x))


@case(lambda: (t(3),))
def numbers_of_tensors(x):
    n = torch.tensor(3)
    return x + int(n) + float(n) + n.item(), bool(n), list(range(n)), [1, 2, 3, 4][n], n.tolist(), x.tolist() == x.tolist()


@case(lambda: (t(4, 4),))
def results_by_name(x):
    m = x.max(dim=1)
    v, i = x.topk(2)
    s = torch.linalg.svd(x, full_matrices=False)
    return m.values + m.indices, m[0], v, i, s.S, torch.sort(x).values, type(m).__name__, torch.aminmax(x).max
