"""Functions and methods of torch that are rarely used, and reads of data."""

import functools

import torch
from capture.cases import Reuse, case, t


@case(lambda: ([t(3), t(2)], [t(3), t(2)]))
def foreach_add(xs, ys):
    return torch._foreach_add(xs, ys)


@case(lambda: ([t(3), t(2)],))
def foreach_mul_by_a_number(xs):
    return torch._foreach_mul(xs, 2.0)


@case(lambda: ([t(3), t(2)], [t(3), t(2)]))
def foreach_in_place(xs, ys):
    torch._foreach_add_(xs, ys, alpha=2)
    return xs


@case(lambda: ([t(3) ** 2, t(2) ** 2],))
def foreach_sqrt(xs):
    return torch._foreach_sqrt(xs)


@case(lambda: ([t(3), t(2)], [t(3), t(2)], [t(3) ** 2 + 1, t(2) ** 2 + 1]))
def foreach_addcdiv(xs, ys, zs):
    return torch._foreach_addcdiv(xs, ys, zs, 0.5)


@case(lambda: ([t(3), t(2)], [t(3), t(2)]))
def foreach_lerp_in_place(xs, ys):
    torch._foreach_lerp_(xs, ys, 0.25)
    return xs[0] + 1


@case(lambda: (t(3),))
def new_tensors(x):
    return x.new_zeros(2), x.new_ones(2, 3), x.new_full((2,), 7.0), x.new_empty(2).shape, x.new_tensor([1.0, 2.0])


@case(lambda: (t(3),))
def new_from_a_list(x):
    return x.new([1, 2, 3])


@case(lambda: (t(3),))
def new_of_a_size(x):
    return x.new(2, 3).shape


@case(lambda: (t(3),))
def type_as_a_text(x):
    return x.type(), x.long().type(), x + 1


@case(lambda: (t(3),))
def type_from_a_text(x):
    return x.type("torch.DoubleTensor"), x.type(torch.int64)


@case(lambda: (t(3),))
def typed_constructor(x):
    return torch.FloatTensor([1.0, 2.0, 3.0]) + x


@case(lambda: (t(3),))
def tensor_from_a_number_of_data(x):
    return torch.tensor(x.shape[0]) + x


@case(lambda: (t(3),))
def tensor_from_tensors(x):
    return torch.tensor([x.sum(), x.max()])


@case(lambda: (t(3),))
def as_tensor(x):
    return torch.as_tensor([1.0, 2.0, 3.0]) + torch.as_tensor(x)


@case(lambda: (t(3),))
def data_of_a_tensor(x):
    return x.data + 1


@case(lambda: (t(3, grad=True),))
def data_of_a_leaf(x):
    return x.data.sin() + x


@case(lambda: (t(3),))
def data_is_set(x):
    y = x.clone()
    y.data = x * 2
    return y + 1


@case(lambda: (t(3),))
def requires_grad_in_place(x):
    y = x.clone().requires_grad_()
    return (y * 2).requires_grad, y


@case(lambda: (t(3),))
def detach_in_place(x):
    y = x.sin()
    y.detach_()
    return y


@case(lambda: (t(3, grad=True),))
def requires_grad_under_no_grad(x):
    with torch.no_grad():
        y = x * 2
        flag = y.requires_grad
    return y, flag


@case(lambda: (torch.tensor(3),))
def item_as_a_size(n):
    k = n.item()
    torch._check(k >= 0)
    return torch.zeros(k)


@case(lambda: (torch.tensor(3), t(4)))
def item_in_arithmetic(n, x):
    return x * n.item()


@case(lambda: (torch.tensor(2.5), t(4)))
def item_of_a_float(n, x):
    return x + n.item()


@case(lambda: (torch.tensor([2, 3]), t(5)))
def tolist_as_sizes(n, x):
    a, b = n.tolist()
    return torch.split(x, [a, b])


@case(lambda: (torch.tensor([1.0, 0.0, 2.0]),))
def nonzero_of_data(x):
    return x.nonzero()


@case(lambda: (torch.tensor([1.0, 0.0, 2.0]),))
def nonzero_then_arithmetic(x):
    return torch.nonzero(x).squeeze(-1) + 1


@case(lambda: (torch.tensor([1.0, -1.0, 2.0]),))
def boolean_index(x):
    return x[x > 0]


@case(lambda: (torch.tensor([1.0, -1.0, 2.0]),))
def boolean_index_then_sum(x):
    return (x[x > 0] * 2).sum()


@case(lambda: (torch.tensor([3, 1, 3]),))
def unique_values(x):
    return torch.unique(x)


@case(lambda: (torch.tensor([3, 1, 3]), ))
def masked_select(x):
    return torch.masked_select(x, x > 1)


@case(lambda: (torch.tensor([1, 2, 3]), t(3)))
def repeat_interleave_of_data(n, x):
    return torch.repeat_interleave(x, n)


@case(lambda: (t(3),))
def int_of_a_tensor(x):
    return x + int(torch.tensor(3))


@case(lambda: (torch.tensor(2), t(5)))
def tensor_as_an_index(n, x):
    return x[n]


@case(lambda: (torch.tensor(2), t(5)))
def tensor_as_a_bound_of_a_slice(n, x):
    return x[:n]


@case(lambda: (t(3),))
def tensor_in_a_set_of_dtypes(x):
    return x.dtype in {torch.float32, torch.float64}, x


@case(lambda: (t(3),))
def dtype_properties(x):
    return x.dtype.is_floating_point, x.dtype.itemsize, torch.finfo(x.dtype).eps, x * 2


@case(lambda: (t(3),))
def overload_of_an_operator(x):
    return torch.ops.aten.cat.default([x, x]), torch.ops.aten.add.Tensor(x, x, alpha=2), torch.ops.aten.sin(x)


@case(lambda: (t(3, 3),))
def methods_by_names(x):
    return getattr(x, "sum")(), torch.Tensor.add(x, 1), torch.Tensor.t(x)


@case(lambda: (t(3, 3),))
def properties_of_tensors(x):
    return x.T, x.mT, x.H, x.is_contiguous(), x.stride(), x.storage_offset(), x.ndim, x.nbytes


@case(lambda: (t(3),))
def random_state(x):
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return a, torch.rand(3), x


@case(lambda: (t(3),))
def seeded(x):
    torch.manual_seed(3)
    return torch.rand(3) + x


@case(lambda: (t(3),))
def fork_rng(x):
    with torch.random.fork_rng():
        a = torch.rand(3)
    return a + torch.rand(3) + x


@case(lambda: (t(3),))
def sym_functions(x):
    return torch.sym_max(x.shape[0], 2), torch.sym_min(x.shape[0], 2), torch.sym_int(3.7), torch.sym_not(False), x + 1


@case(lambda: (t(3),))
def size_constructed(x):
    return torch.Size([1, 2]) + x.shape, torch.Size((2, 3)).numel(), x


@case(lambda: (t(2, 3),))
def sizes_of_methods(x):
    return x.size(), x.size(-1), x.numel(), x.dim(), x.shape.numel(), list(x.shape), x.view(*x.shape)


@case(lambda: (t(2, 3),))
def out_variants(x):
    out = torch.empty(2, 3)
    torch.add(x, 1, out=out)
    torch.sin(out, out=out)
    return out


@case(lambda: (t(2, 3), torch.empty(2, 3)))
def out_of_an_argument(x, out):
    return torch.mul(x, 2, out=out)


@case(lambda: (t(4), ))
def topk_by_names(x):
    top = torch.topk(x, 2)
    return top.values, top.indices, torch.max(x, 0).values, torch.sort(x)[1]


@case(lambda: (t(3),))
def compiler_questions(x):
    flags = torch.compiler.is_exporting(), torch.jit.is_scripting(), torch.jit.is_tracing()
    return flags, x + 1


@case(lambda: (t(3),))
def numbers_of_torch(x):
    return x * torch.pi + torch.e + torch.inf * 0 if False else x * torch.pi


@case(lambda: (t(4, 4),))
def einsum_and_friends(x):
    return torch.einsum("ij,jk->ik", x, x), torch.tensordot(x, x, dims=1), torch.linalg.norm(x), torch.trace(x)


@case(lambda: (t(4),))
def stft_like(x):
    return torch.fft.rfft(x).abs(), torch.view_as_real(torch.fft.fft(x))


@torch.jit.script
def scripted(x):
    return x * 2 + 1


@case(lambda: (t(3),))
def call_of_a_scripted_function(x):
    return scripted(x) + 1


@torch.jit.script_if_tracing
def scripted_if_tracing(x):
    return x * 3


@case(lambda: (t(3),))
def call_of_a_function_scripted_if_tracing(x):
    return scripted_if_tracing(x)


@torch.jit.ignore
def ignored_by_jit(x):
    return x + 4


@case(lambda: (t(3),))
def call_of_a_function_that_jit_ignores(x):
    return ignored_by_jit(x)


@case(lambda: ({"a": t(3), "b": [t(2), 3]},))
def tree_map(tree):
    from torch.utils import _pytree

    return _pytree.tree_map(lambda leaf: leaf * 2, tree)


@case(lambda: ({"a": t(3), "b": [t(2), 3]},))
def tree_flatten(tree):
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(tree)
    return pytree.tree_unflatten([leaf + 1 for leaf in leaves], spec)


@case(lambda: ({"a": t(3), "b": [t(2), 3]},))
def map_aggregate_of_fx(tree):
    from torch.fx.node import map_aggregate

    return map_aggregate(tree, lambda leaf: leaf * 2)


@case(lambda: (t(3),))
def deep_copied_tensor(x):
    import copy

    return copy.deepcopy(x) + copy.copy(x)


@case(lambda: (t(3),))
def tensor_attribute_of_the_users(x):
    x.note = "hello"
    return x.note, x + 1


@case(lambda: (t(3, grad=True),))
def grad_that_is_none(x):
    return x.grad is None, x * 2


def with_grad():
    x = t(3, grad=True)
    (x * 2).sum().backward()
    return x


@case(lambda: (with_grad(),))
def grad_that_is_there(x):
    return x.grad + 1, x * 2


@case(lambda: (with_grad(),))
def grad_is_cleared(x):
    x.grad = None
    return x * 2


@case(lambda: (t(3, grad=True),))
def autograd_grad(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    return g


@case(lambda: (t(3),))
def backward_inside(x):
    w = x.clone().requires_grad_()
    (w * w).sum().backward()
    return w.grad


@case(lambda: (t(3, grad=True),))
def hook_of_a_tensor(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y * 3


@case(lambda: (t(3, grad=True),))
def hook_of_an_input(x):
    x.register_hook(lambda g: g * 10)
    return x * 3


@case(lambda: (t(3, grad=True),), reuse=Reuse.FREE)
def hook_of_a_partial(x):
    y = x * 2
    handle = y.register_hook(functools.partial(torch.mul, other=3.0))
    handle.remove()
    return y * 3


@case(lambda: (t(3, grad=True),))
def hook_after_accumulation(x):
    x.register_post_accumulate_grad_hook(lambda p: None)
    return x * 3


@case(lambda: (t(3, grad=True),))
def retained_grad(x):
    y = x * 2
    y.retain_grad()
    return y.sum()


@case(lambda: (t(3),))
def versions(x):
    return x._version, x.add_(1)._version


@case(lambda: (t(3),))
def is_functions(x):
    return torch.is_tensor(x), torch.is_floating_point(x), torch.is_complex(x), torch.numel(x), torch.is_storage(x), torch.is_nonzero(torch.tensor(1.0))


@case(lambda: (t(3),))
def device_of_a_tensor(x):
    return x.to(x.device), x.to("cpu"), x.device.type, x.device == torch.device("cpu"), x.cpu(), x.get_device()


@case(lambda: (t(3),))
def default_dtype(x):
    return torch.get_default_dtype(), torch.tensor(1.0).dtype, x + 1


@case(lambda: (t(3),))
def checks(x):
    torch._check(x.shape[0] == 3)
    torch._check(x.dim() == 1, lambda: "one dimension")
    return x + 1


@case(lambda: (t(3),))
def asserted_on_data(x):
    torch._assert(x.shape[0] == 3, "three")
    return x * 2


@case(lambda: (t(3),))
def assert_async(x):
    torch._assert_async((x == x).all())
    return x * 2


@case(lambda: (t(6),))
def unflatten_and_unbind(x):
    a, b, c = x.unflatten(0, (3, 2)).unbind()
    return torch.stack((c, b, a)), torch.chunk(x, 2), torch.vstack([a, b]), torch.block_diag(a[None], b[None])


@case(lambda: (t(2, 3, 4, 4),))
def functional_of_images(x):
    import torch.nn.functional as F

    return F.interpolate(x, scale_factor=2), F.pad(x, (1, 1)), F.avg_pool2d(x, 2), F.unfold(x, 2)


@case(lambda: (t(3, 4), torch.tensor([1, 0, 3])))
def losses(x, y):
    import torch.nn.functional as F

    return F.cross_entropy(x, y), F.mse_loss(x, x + 1), F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean")


@case(lambda: (t(2, 4),))
def attention(x):
    import torch.nn.functional as F

    return F.scaled_dot_product_attention(x[None], x[None], x[None])


@case(lambda: (t(3),))
def meshgrid_and_ranges(x):
    return torch.meshgrid(x, x, indexing="ij"), torch.linspace(0, 1, 3), torch.arange(0, 3).float() + x, torch.cartesian_prod(x, x)


@case(lambda: (t(3),))
def complex_numbers(x):
    z = torch.complex(x, x)
    return z.abs(), z.real, torch.view_as_real(z * 2j)
