"""Tensors: methods, properties, views, indexing, in-place operators, sizes, creation, torch functions."""

import torch
import torch.nn.functional as F
from capture.cases import Message, case, t


@case(lambda: (t(3), t(3)), lambda: (t(2, 3), t(3)), lambda: (t(3).double(), t(3)))
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x**2, -x, x // 2, x % 2, 2**x, 1 / x, 3 - x


@case(lambda: (t(3), t(3)))
def comparisons(x, y):
    return x < y, x <= 0, x == y, x != 1, x > y, x >= y, ~(x > 0), (x > 0) & (y > 0), (x > 0) | (y > 0)


@case(lambda: (torch.arange(6), 3))
def integer_tensors(x, n):
    return x // n, x % n, x & n, x | 1, x ^ n, x << 1, x >> 1, x / n, x + 1.5, x * True


@case(lambda: (t(3, 4),), lambda: (t(5, 4),))
def methods_chained(x):
    return x.relu().transpose(0, 1).contiguous().view(-1).sum(dim=0, keepdim=True)


@case(lambda: (t(2, 3),), lambda: (t(2, 3).double(),), lambda: (t(3, 2).t(),))
def properties(x):
    return x * 1, x.shape, x.dtype, x.device, x.ndim, x.requires_grad, x.is_contiguous(), x.stride(), x.T.shape, x.is_cuda


@case(lambda: (t(2, 3),), lambda: (t(4, 6),))
def size_arithmetic(x):
    rows, columns = x.shape
    return x.reshape(columns, rows), rows * columns, x.size(0) // 2, x.numel() + 1


@case(lambda: (t(2, 3, 4),))
def torch_size(x):
    size = x.size()
    return x + 1, size, size[1:], size.numel(), torch.Size([1, 2]) + size, tuple(size), size == (2, 3, 4), len(size), list(size)


@case(lambda: (t(4, 5),), lambda: (t(6, 7),))
def basic_indexing(x):
    return x[0], x[-1], x[1:3], x[:, 2], x[..., 0], x[::2, 1:], x[None], x[:, None, :], x[1, 2]


@case(lambda: (t(4, 5), torch.tensor([0, 2])))
def index_by_a_tensor(x, index):
    return x[index], x[:, index], x[index, index], x.index_select(0, index), x.gather(1, index.repeat(4, 1))


@case(lambda: (t(4, 5),))
def index_by_a_list(x):
    return x[[0, 1]], x[[0, 1], [2, 3]], x[:, [True, False, True, False, True]]


@case(lambda: (t(4),))
def index_by_a_mask(x):
    return x[x > 0].sum()


@case(lambda: (t(4, 5),))
def item_assignment(x):
    y = x.clone()
    y[0] = 1.0
    y[1:3, 2] = y[0, 0] + 5
    y[..., -1] = x[:, 0]
    return y


@case(lambda: (t(4),))
def item_assignment_of_the_input(x):
    x[0] = 7.0
    x[1:] += 1
    return x * 2


@case(lambda: (t(4),))
def masked_assignment(x):
    y = x.clone()
    y[y > 0] = 0.0
    return y


@case(lambda: (t(3), t(3)))
def inplace_on_an_input(x, y):
    x.add_(y)
    x.mul_(2).clamp_(min=0)
    return x


@case(lambda: (t(3),))
def inplace_operators(x):
    y = x.clone()
    z = y
    y += 1
    y *= 2
    y -= x
    y /= 3
    return y, z is y


@case(lambda: (t(2, 3),))
def inplace_through_a_view(x):
    y = x.clone()
    row = y[0]
    row.zero_()
    y.view(-1)[1] = 5.0
    return y, row


@case(lambda: (t(2, 3),))
def inplace_through_a_view_of_the_input(x):
    x.t()[0].fill_(9.0)
    return x.sum()


@case(lambda: (t(2, 3),))
def views_of_the_input(x):
    return x.view(3, 2), x.t(), x[0], x.unsqueeze(0), x.expand(4, 2, 3), x.detach()


@case(lambda: (t(2, 3),))
def views_of_an_output(x):
    y = x * 2
    return y, y.view(-1), y[1], y.T


@case(lambda: (t(4, 6),))
def split_chunk_unbind(x):
    return x.split(4, dim=1), x.chunk(2), x.unbind(0)[1], torch.split(x, [1, 5], dim=1)


@case(lambda: (t(2, 3), t(2, 3)))
def cat_and_stack(x, y):
    return torch.cat([x, y]), torch.cat((x, y), dim=1), torch.stack([x, y], -1), torch.hstack([x, y])


@case(lambda: (t(2, 3, 4),))
def shape_changing(x):
    y = x.permute(2, 0, 1)
    return y, y.flatten(1), x.squeeze(), x.transpose(1, 2).reshape(2, -1), x.movedim(0, 2), x.repeat(1, 2, 1), x.flip(0), x.roll(1, 0)


@case(lambda: (t(3, 4),))
def reductions(x):
    return x.sum(), x.mean(0), x.max(), x.max(dim=1), x.argmax(-1), x.prod(), x.std(), x.var(0), x.norm(), x.amax(1), x.any(), x.all()


@case(lambda: (t(3, 4),))
def named_results(x):
    best = x.max(dim=1)
    values, indices = x.sort(dim=-1, descending=True)
    return best.values, best.indices, values, indices, x.topk(2).values


@case(lambda: (t(3), t(3)))
def where_and_masks(x, y):
    return torch.where(x > y, x, y), torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, -1), torch.maximum(x, y), x.clamp(-1, 1)


@case(lambda: (t(2, 3), t(3, 4)), lambda: (t(5, 3), t(3, 4)))
def matrix_products(x, y):
    return x @ y, torch.mm(x, y), x.matmul(y), torch.einsum("ij,jk->ki", x, y), torch.addmm(torch.ones(4), x, y)


@case(lambda: (t(2, 3, 4), t(2, 4, 5)))
def batched_products(x, y):
    return torch.bmm(x, y), torch.einsum("bij,bjk->bik", x, y), torch.baddbmm(torch.zeros(2, 3, 5), x, y, beta=0.5)


@case(lambda: (t(3),), lambda: (t(7),))
def creation(x):
    n = x.shape[0]
    counted = torch.arange(n), torch.linspace(0, 1, n), torch.eye(n)
    return torch.zeros(n), torch.ones(2, n), torch.full((n,), 3), torch.empty(n).fill_(2), counted


@case(lambda: (t(2, 3),), lambda: (t(2, 3).double(),))
def creation_like(x):
    return torch.zeros_like(x), torch.ones_like(x, dtype=torch.int32), x.new_zeros(2), x.new_full((1,), 3), torch.full_like(x, 2)


@case(lambda: (t(3), 2.5), lambda: (t(3), 4))
def tensor_from_python(x, n):
    return torch.tensor([1.0, 2.0, n]) + x, torch.tensor(n), torch.tensor([[1, 2], [3, 4]]), torch.as_tensor(n)


@case(lambda: (t(3),))
def dtypes_and_casts(x):
    return x.to(torch.float64), x.half(), x.int(), x.bool(), x.to(dtype=torch.int64), x.type(torch.float16), x.double().to(x)


@case(lambda: (t(3), torch.float64), lambda: (t(3), torch.int32))
def dtype_as_an_argument(x, dtype):
    y = x.to(dtype)
    return y, dtype.is_floating_point, y.dtype is dtype, dtype.itemsize, torch.finfo(torch.float32).eps, torch.iinfo(torch.int8).max


@case(lambda: (t(3),))
def devices(x):
    device = torch.device("cpu")
    return x.to(device), x.device == device, device.type, torch.ones(2, device=x.device), x.to("cpu") is x


@case(lambda: (t(3), t(3).half()), lambda: (t(3), torch.arange(3)))
def promotion(x, y):
    return x + y, (x + y).dtype, torch.result_type(x, y), y * 2.5, torch.promote_types(torch.int8, torch.float16)


@case(lambda: (t(3, 4),))
def functional_activations(x):
    return F.relu(x), F.gelu(x), F.softmax(x, dim=-1), F.silu(x), F.log_softmax(x, 1), F.leaky_relu(x, 0.2), F.softplus(x), F.elu(x)


@case(lambda: (t(3, 4), t(5, 4), t(5)), lambda: (t(2, 4), t(5, 4), t(5)))
def functional_linear_and_norms(x, weight, bias):
    y = F.linear(x, weight, bias)
    return F.layer_norm(y, (5,)), F.normalize(y, dim=0), F.linear(x, weight)


@case(lambda: (t(2, 3, 8, 8), t(4, 3, 3, 3)))
def functional_convolution_and_pools(x, weight):
    y = F.conv2d(x, weight, padding=1, stride=2)
    return F.max_pool2d(y, 2), F.avg_pool2d(y, 2), F.adaptive_avg_pool2d(y, 1), F.interpolate(y, scale_factor=2), F.pad(y, (1, 1))


@case(lambda: (t(4, 5), torch.tensor([0, 1, 2, 3])))
def functional_losses(x, target):
    return F.cross_entropy(x, target), F.mse_loss(x, x * 2), F.nll_loss(x, target), F.l1_loss(x, x + 1), F.one_hot(target, 5)


@case(lambda: (t(2, 4, 3, 8),), lambda: (t(2, 4, 5, 8),))
def functional_attention(q):
    return F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, is_causal=True)


@case(lambda: (t(10, 4), torch.tensor([[1, 2], [3, 4]])))
def functional_embedding(weight, index):
    return F.embedding(index, weight), weight[index]


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def gradients_flow(x, y):
    z = x * y
    return z.sum() + z.sin().sum(), z.detach() * x


@case(lambda: (t(3, grad=True),))
def gradients_with_views_and_inplace(x):
    y = x.exp()
    z = y.view(1, 3) * 2
    w = z.clone()
    w[0, 0] = 0.0
    w.mul_(3)
    return w


@case(lambda: (t(3, grad=True),))
def requires_grad_is_seen(x):
    return x.requires_grad, (x * 2).requires_grad, x.detach().requires_grad, x.is_leaf, x * 2


@case(lambda: (t(3, grad=True), t(3)), lambda: (t(3), t(3, grad=True)))
def some_inputs_require_grad(x, y):
    return x * y, y + 1


@case(lambda: (t(3, grad=True),))
def autograd_grad_inside(x):
    y = (x**2).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * 2


@case(lambda: (t(3, grad=True),))
def backward_inside(x):
    y = (x**3).sum()
    y.backward()
    return x.grad * 1


@case(lambda: (t(3),))
def random_numbers(x):
    return x + torch.rand(3), torch.randn(2, 2), torch.randint(0, 10, (3,)), torch.rand_like(x), torch.randperm(4)


@case(lambda: (t(3),))
def random_numbers_with_a_seed(x):
    torch.manual_seed(3)
    return x + torch.rand(3), torch.bernoulli(torch.full((4,), 0.5))


@case(lambda: (t(8, 8),))
def dropout(x):
    return F.dropout(x, 0.5), F.dropout(x, 0.5, training=False), F.dropout(x, p=0.0)


@case(lambda: (t(3),), lambda: (t(0),))
def empty_tensors(x):
    return x[:0], torch.cat([x, x[:0]]), x[:0].sum(), torch.zeros(0, 3)


@case(lambda: (torch.tensor(2.0), t(3)))
def zero_dimensional(s, x):
    return s * x, s.dim(), s.shape, s + 1, x.sum() / s


@case(lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 4))
def integer_argument_that_changes(x, n):
    return x * n, torch.ones(n)


@case(lambda: (t(3), 0.1), lambda: (t(3), 0.2), lambda: (t(3), 0.3))
def float_argument_that_changes(x, f):
    return x * f + f


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def size_that_keeps_changing(x):
    return x * x.shape[0], x.view(-1, 1).expand(-1, 2)


@case(lambda: (t(2, 3), t(3, 2)), lambda: (t(4, 5), t(5, 4)), lambda: (t(6, 7), t(7, 6)))
def two_sizes_that_change(x, y):
    return (x @ y).reshape(-1), x.shape[0] + y.shape[0]


@case(lambda: (t(1, 3),), lambda: (t(2, 3),), lambda: (t(1, 3),))
def size_of_one(x):
    return x + torch.ones(2, 3) if x.shape[0] in (1, 2) else x, x.squeeze(0)


def twins():
    x = t(3)
    return x, x


@case(twins, lambda: (t(3), t(3)))
def same_tensor_twice(x, y):
    x.add_(1)
    return y * 2, x is y


@case(lambda: (t(4),))
def overlapping_views(x):
    a, b = x[:3], x[1:]
    a.add_(10)
    return b * 1, a


def strided():
    base = t(4, 6)
    return (base[:, ::2], base.t())


@case(strided, lambda: (t(4, 3), t(6, 4)))
def strides_of_the_inputs(x, y):
    return x * 2, y + 1, x.contiguous().stride(), x.is_contiguous()


@case(lambda: (t(2, 3, 4, 4).to(memory_format=torch.channels_last),), lambda: (t(2, 3, 4, 4),))
def channels_last(x):
    return x * 2, (x + 1).is_contiguous(memory_format=torch.channels_last), x.to(memory_format=torch.contiguous_format)


@case(lambda: (t(3),))
def out_argument(x):
    out = torch.empty(3)
    torch.add(x, 1, out=out)
    return out


@case(lambda: (t(3),))
def cumulative_and_sorting(x):
    return x.cumsum(0), x.sort().indices, x.argsort(), torch.searchsorted(x.sort().values, 0.0), x.unique().shape[0]


@case(lambda: (t(3, 3),))
def triangles_and_diagonals(x):
    return x.tril(), x.triu(1), x.diagonal(), torch.diag(x[0]), x.trace(), torch.outer(x[0], x[1])


@case(lambda: (torch.randint(0, 5, (4,)), t(4)))
def scatter_and_index_add(index, x):
    return torch.zeros(5).scatter_add(0, index, x), torch.zeros(5).index_add_(0, index, x), torch.zeros(5).scatter_(0, index, 1.0)


@case(lambda: (t(3),))
def complex_tensors(x):
    z = torch.complex(x, x + 1)
    return z.abs(), z.real, torch.view_as_real(z * z), z.conj().imag


@case(lambda: (t(8),))
def fourier(x):
    return torch.fft.rfft(x).abs(), torch.fft.irfft(torch.fft.rfft(x))


@case(lambda: (t(3, 3),))
def linear_algebra(x):
    a = x @ x.T + torch.eye(3)
    return torch.linalg.inv(a), torch.linalg.norm(a), torch.linalg.det(a), torch.linalg.cholesky(a)


@case(lambda: (t(2, 3),))
def tensor_builtins(x):
    return len(x), abs(x), sum(x), x.__class__, x.__len__(), isinstance(x, torch.Tensor), torch.is_tensor(x), x.__add__(1)


@case(lambda: (t(3, grad=True),))
def parameter_made_outside_is_detached(x):
    return x.detach().requires_grad_(False), x.data * 2, x.clone().requires_grad


@case(lambda: (t(2, 3),), message=Message.ANY)
def view_that_does_not_fit(x):
    return x.view(4, 2)


@case(lambda: (t(2, 3),), lambda: (t(3, 2),))
def size_as_a_condition(x):
    if x.shape == (2, 3):
        return x.sum(0)
    if x.size(1) < x.size(0):
        return x.sum(1)
    return x


@case(lambda: (t(3), torch.nn.Parameter(t(3))))
def parameter_as_an_argument(x, p):
    return x * p, isinstance(p, torch.nn.Parameter), type(p)


@case(lambda: (t(2, 3),))
def meshgrid_and_broadcast(x):
    a, b = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    return a + b + x, torch.broadcast_tensors(x, torch.ones(3)), torch.broadcast_shapes((2, 1), (3,)), x.expand_as(x)


@case(lambda: (t(4),))
def lerp_addcmul_and_others(x):
    y = torch.lerp(x, x + 1, 0.5), torch.addcmul(x, x, x, value=2), torch.logsumexp(x, 0)
    return y, x.sign(), x.rsqrt(), x.erf(), x.trunc(), x.frac()


@case(lambda: (t(3), 3), lambda: (t(3), 1))
def shape_from_a_python_number(x, n):
    return torch.zeros(n, 2), x.repeat(n), x.unsqueeze(-1).expand(-1, n)


@case(lambda: (t(4, 3),), lambda: (t(6, 3),))
def half_of_a_size(x):
    half = x.shape[0] // 2
    return x[:half] + x[half:], x.view(2, half, 3)


@case(lambda: (t(2, 3),))
def tensor_methods_by_class(x):
    return torch.Tensor.add(x, 1), torch.Tensor.sum(x, dim=0), torch.sum(input=x, dim=1)


@case(lambda: (t(2, 3),))
def set_data_and_copy(x):
    y = torch.zeros(2, 3)
    y.copy_(x)
    y[0].copy_(torch.ones(3))
    return y


@case(lambda: (t(4, 4),), lambda: (t(4, 4, grad=True),))
def decompositions_of_matrices(x):
    a = x @ x.T + torch.eye(4)
    values, vectors = torch.linalg.eigh(a)
    lower = torch.linalg.cholesky(a)
    return values * 2, (vectors * values) @ vectors.T, torch.linalg.solve(a, x), lower.tril() + 1, torch.linalg.norm(a, "fro")


@case(lambda: (t(2, 8),), lambda: (t(2, 8, grad=True),))
def filtered_by_frequency(x):
    frequencies = torch.fft.rfft(x * 2, dim=-1)
    return torch.fft.irfft(frequencies * 0.5, n=x.shape[-1]).relu() + 1, torch.fft.fftn(x).real


@case(lambda: (t(3), t(3), torch.empty(3), torch.empty(0)), lambda: (t(3, grad=True), t(3), torch.empty(3), torch.empty(0)))
def results_written_to_a_tensor(x, y, out, small):
    with torch.no_grad():
        same = torch.mul(x, y, out=out) is out
        torch.add(out, 1, out=out)
    return out, same, torch.sub(y, 1, out=small), torch.nn.functional.normalize(y, dim=0, out=torch.empty(3))
