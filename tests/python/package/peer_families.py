"""Families of operators in every element type and layout, and functions called again with other sizes; they join those of `peer_cases`.

A family is asked in each element type that eager has for it, over layouts that are no rows of numbers in order: transposed, every other
column, expanded, sliced to nothing. `then` names further calls of the same compiled function: sizes of one, of none, and of many.
"""

import torch
import torch.nn.functional as F
from peer_cases import PEERS, Peer, bools, each, inf, ints, nan, r
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (declares operators)
from torch.distributions import Bernoulli, Beta, Categorical, Exponential, Gamma, Laplace, Normal, Uniform, kl_divergence

FLOATS = (torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def short(dtype):
    return str(dtype).removeprefix("torch.")


def numbers(dtype, *shape):
    """Numbers of a type: of either sign where it has signs, some of them equal."""
    if dtype == torch.bool:
        return bools(*shape)
    if dtype.is_floating_point:
        return r(*shape).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -7, 8, shape).to(dtype)


# Every element type.

for _dtype in INTEGERS:
    each(
        f"of_{short(_dtype)}",
        lambda d=_dtype: [numbers(d, 6, 10), numbers(d, 6, 10), numbers(d, 10)],
        {
            "arithmetic": lambda x, y, z: (x + y, x - z, x * y, x + 2, 2 - x, x * 3, x + 2.5, x * True, -x, x.abs(), x.square(), x.neg().abs(), torch.add(x, y, alpha=3), torch.sub(x, y, alpha=2), torch.rsub(x, y), x.positive()),
            "division": lambda x, y, z: (lambda n: (x / n, x // n, x % n, torch.fmod(x, n), torch.div(x, n, rounding_mode="trunc"), torch.div(x, n, rounding_mode="floor"), x / 2, x // 2, x % 3, torch.fmod(x, 3), x / 2.5, 7 // n, 7 % n, 1 / n, x // 2.5, x % 2.5, x.float_power(2)))(y * 2 + 1),
            "comparison": lambda x, y, z: (x < y, x <= 2, x > 2.5, x >= z, x == y, x != 1, torch.maximum(x, y), torch.minimum(x, z), x.clamp(1, 4), x.clamp(max=z), x.clamp(min=2.5), torch.fmax(x, y), torch.fmin(x, z), torch.isclose(x, y), x.eq(True)),
            "bits": lambda x, y, z: (x & y, x | z, x ^ 5, ~x, x << 1, x >> 1, x << (y & 3), x >> (z & 3), torch.bitwise_and(3, x), x.logical_and(y), x.logical_xor(z), x.logical_not(), torch.bitwise_left_shift(2, z & 3)),
            "functions": lambda x, y, z: (x.sin(), x.exp(), (x * x + 1).log(), (x * x).sqrt(), x.sigmoid(), x.tanh(), torch.atan2(x, y), x.erf(), (x * x + 1).rsqrt(), (x * x + 1).reciprocal(), x.exp2(), x.sinc(), torch.hypot(x.float(), y.float()), torch.copysign(x, y), x.rad2deg(), x.logit(0.1), x.nan_to_num()),
            "rounding": lambda x, y, z: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), x.sgn(), x.isnan(), x.isinf(), x.isfinite(), x.signbit(), torch.relu(x), F.relu6(x), F.hardtanh(x, -2, 3), F.threshold(x, 2, 1)),
            "powers": lambda x, y, z: (x**2, x**3, x ** (y & 3), 2 ** (x & 3), x**0, x**1, x**2.0, x**0.5, torch.pow(x, 4), x.to(torch.float32) ** y, (x & 3) ** (z & 3)),
            "reductions": lambda x, y, z: (x.sum(), x.sum(0), x.sum(1, True), x.prod(1), x.amax(0), x.amin(1), x.max(), x.min(1), x.max(0), x.argmax(1), x.argmin(0), x.any(1), x.all(0), x.sum(1, dtype=torch.float32), x.mean(0, dtype=torch.float32), x.aminmax(dim=1), x.count_nonzero(1), x.sum(dtype=torch.int32), x.median(1), x.mode(1)),
            "scans": lambda x, y, z: (x.cumsum(1), x.cumsum(0), x.cumprod(1), x.cummax(1), x.cummin(0), x.cumsum(1, dtype=torch.float32), x.diff(), x.sort(dim=1, stable=True), x.sort(dim=0, descending=True, stable=True), x.argsort(dim=1, stable=True), x.topk(3, 1)[0], x.kthvalue(2, 1)[0], x.unique(), x.flip(1).cumsum(1)),
            "layouts": lambda x, y, z: (x.t() + y.t(), x[:, ::2] * 2, x[::2, 1:] - z[1:], z.expand(6, 10) + x, torch.cat([x, y]), torch.stack([x, y], 1), x.t().sum(0), F.pad(x, (1, 2), value=3), x.roll(2, 1), x.tril(), x.repeat(2, 1), torch.where(x > y, x, 0), x.masked_fill(x > 2, 1), x.view(-1)[::7], x.t().contiguous()),
            "indexing": lambda x, y, z: (lambda i: (x[i], x[:, i], x.gather(1, i[None].expand(6, 4)), x.index_add(0, i, y[:4]), x.index_put((i,), y[:4], accumulate=True), x.scatter_add(0, i[:, None].expand(4, 10), y[:4]), x.scatter_reduce(0, i[:, None].expand(4, 10), y[:4], "amax"), x.index_fill(0, i, 2), x.take(i), x.scatter(1, i[None].expand(6, 4), 1)))(torch.tensor([0, 5, 5, 2])),
            "products": lambda x, y, z: (x @ y.t(), x @ z, torch.mm(x.t(), y), torch.bmm(x[None], y.t()[None]), torch.addmm(z[:6], x, y.t()), x.float() @ y.float().t(), torch.dot(z, z), torch.outer(z, z), torch.einsum("ij,kj->ik", x, y)),
            "writes": lambda x, y, z: (lambda w: (w.add_(y), w.mul_(2), w[0].fill_(3), w[:, 1].zero_(), w.sub_(z), w.clamp_(0, 9), w.t()[2].add_(1), w))(x.clone())[-1],
            "casts": lambda x, y, z: (x.to(torch.float16), x.to(torch.bfloat16), x.double(), x.to(torch.int8), x.to(torch.uint8), x.to(torch.int64), x.bool(), x.to(torch.complex64), x.half() / 3, x + y.half(), x * y.to(torch.int16), x + y.to(torch.uint8), x * torch.tensor(2.5), x + torch.tensor(3), torch.result_type(x, 2.5) == torch.float32),
        },
        gradients=False,
    )

for _dtype in FLOATS:
    each(
        f"of_{short(_dtype)}",
        lambda d=_dtype: [numbers(d, 6, 10), numbers(d, 6, 10), numbers(d, 10)],
        {
            "arithmetic": lambda x, y, z: (x + y, x - z, x * y, x + 2, 2 - x, x / y, x / 3, 1 / x, -x, x.abs(), x.square(), torch.add(x, y, alpha=0.3), torch.sub(x, y, alpha=2), torch.addcmul(x, y, z, value=0.3), torch.addcdiv(x, y, z.abs() + 1), torch.lerp(x, y, 0.3)),
            "functions": lambda x, y, z: (x.sin(), x.exp(), x.abs().log(), x.abs().sqrt(), x.sigmoid(), x.tanh(), torch.atan2(x, y), x.erf(), (x.abs() + 0.1).rsqrt(), x.expm1(), x.abs().log1p(), x.cos(), x.tan(), x.sinh(), x.asinh(), x.exp2(), x.erfc(), x.frac(), torch.logaddexp(x, y), torch.hypot(x, y), x.atan(), x.lgamma(), x.sinc()),
            "activations": lambda x, y, z: (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.elu(x), F.selu(x), F.celu(x, 0.5), F.softplus(x), F.hardswish(x), F.hardsigmoid(x), F.leaky_relu(x, 0.2), F.logsigmoid(x), F.softsign(x), F.tanhshrink(x), F.hardtanh(x), F.softshrink(x), F.glu(x), F.prelu(x, z[:1])),
            "reductions": lambda x, y, z: (x.sum(), x.sum(0), x.mean(1), x.prod(1), x.amax(0), x.amin(1), x.var(1), x.std(0), x.norm(), x.norm(dim=1), x.logsumexp(1), x.softmax(1), x.log_softmax(0), torch.var_mean(x, 1), x.cumsum(1), x.cumprod(0), x.norm(1, 0), x.norm(inf, 1), x.nansum(1), x.mean()),
            "normalisation": lambda x, y, z: (F.layer_norm(x, (10,), z, z), F.group_norm(x[None], 3), F.rms_norm(x, (10,), z), F.batch_norm(x, None, None, z, z, training=True), F.instance_norm(x[None]), F.normalize(x, dim=1), F.layer_norm(x, (6, 10)), F.local_response_norm(x[None], 2)),
            "products": lambda x, y, z: (x @ y.t(), x @ z, F.linear(x, y), F.linear(x, y, z[:6]), torch.addmm(z[:6], x, y.t(), beta=0.5, alpha=2), torch.baddbmm(x[None, :, :6], x[None], y.t()[None]), torch.einsum("ij,kj->ik", x, y), torch.outer(z, z), torch.cdist(x, y) if x.dtype == torch.float64 else x, F.cosine_similarity(x, y)),
            "images": lambda x, y, z: (lambda im: (F.max_pool2d(im, 2), F.avg_pool2d(im, 3, 1, 1), F.conv2d(im, y.view(1, 1, 6, 10)[..., :3, :3]), F.interpolate(im, scale_factor=2), F.interpolate(im, (9, 7), mode="bilinear"), F.pad(im, (1, 1, 2, 2), "reflect"), F.adaptive_avg_pool2d(im, (4, 3)), F.pixel_unshuffle(im, 2), F.unfold(im, 2), F.adaptive_max_pool2d(im, 2)))(x.view(1, 1, 6, 10)),
            "indexing": lambda x, y, z: (lambda i: (x[i], x[:, i], x.gather(1, i[None].expand(6, 4)), x.index_add(0, i, y[:4]), x.index_put((i,), y[:4], accumulate=True), x.scatter_add(0, i[:, None].expand(4, 10), y[:4]), x.scatter_reduce(0, i[:, None].expand(4, 10), y[:4], "mean"), x.index_fill(0, i, 2), x.take(i), F.embedding(i, x)))(torch.tensor([0, 5, 5, 2])),
            "losses": lambda x, y, z: (F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.cross_entropy(x, torch.arange(6)), F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), F.nll_loss(x.log_softmax(1), torch.arange(6)), F.soft_margin_loss(x, torch.ones(6, 10, dtype=x.dtype))),
            "attention": lambda x, y, z: (lambda q, k: (F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q, k, k, is_causal=True), F.scaled_dot_product_attention(q, k, q, scale=0.2)))(x.view(1, 1, 6, 10), y.view(1, 1, 6, 10)),
        },
    )
    each(
        f"jumps_of_{short(_dtype)}",
        lambda d=_dtype: [numbers(d, 6, 10), numbers(d, 6, 10), numbers(d, 10)],
        {
            "rounding": lambda x, y, z: (x.floor(), (x * 3).ceil(), (x * 2).round(), x.trunc(), x.sign(), x.isnan(), x.signbit(), torch.round(x, decimals=1), x // 0.5, x % 0.7, torch.fmod(x, 0.7), torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), torch.remainder(x, y), torch.fmod(y, x), torch.heaviside(x, y), torch.nextafter(x, y) if x.dtype != torch.float16 else x),
            "comparison": lambda x, y, z: (x < y, x <= 0.1, x == x, torch.maximum(x, y), x.clamp(-0.5, 0.5), x.clamp(min=z), torch.where(x > 0, x, 0), torch.where(x > 0, x, y), x.argmax(1), x.argmin(0), x.max(1), x.min(0), torch.fmin(x, z), x.median(1), x.sort(1), x.topk(3), x.cummax(1), x.kthvalue(2), x.aminmax(dim=0), torch.isclose(x, y)),
            "casts": lambda x, y, z: ((x * 20).to(torch.int8), (x * 20).abs().to(torch.uint8), (x * 100).int(), x.bool(), x.float(), x.half(), x.bfloat16(), x.double(), x.to(torch.complex64), x + y.float(), x * y.double(), x * torch.tensor(0.3, dtype=torch.float64), x + torch.tensor(2), x > torch.tensor(0.1, dtype=torch.float64)),
            "writes": lambda x, y, z: (lambda w: (w.add_(y), w.mul_(0.3), w[0].fill_(3), w[:, 1].zero_(), w.sub_(z), w.div_(3), w.clamp_(-1, 9), w.t()[2].add_(1), w.pow_(2), w.sqrt_(), w.copy_(w.float() * 2), w))(x.clone())[-1],
        },
        gradients=False,
    )

each(
    "of_bool",
    lambda: [bools(6, 10), bools(6, 10), bools(10)],
    {
        "arithmetic": lambda x, y, z: (x + y, x * z, x + 1, x * 2.5, x | y, x & z, x ^ True, ~x, x / 2, x + y.int(), 1 - x.int(), x.float() - y.float(), torch.add(x, y), x == y, x < y, x >= z, x.logical_not(), x / y.int().clamp(1), x.int() // 2, x**2),
        "reductions": lambda x, y, z: (x.sum(), x.sum(1), x.any(), x.all(0), x.prod(1), x.amax(1), x.amin(0), x.float().mean(), x.cumsum(1), x.int().argmax(1), x.max(), x.count_nonzero(), x.max(1), x.min(0), x.sum(dtype=torch.uint8), x.long().cumprod(1), torch.any(x, (0, 1)), x.sort(dim=1, stable=True), x.argsort(dim=1, stable=True), x.unique()),
        "layouts": lambda x, y, z: (x.t() | y.t(), torch.cat([x, y]), torch.cat([x, y.int()]), torch.stack([x, y]), torch.where(x, 1, 0), torch.where(x, y, z), x.masked_fill(y, True), F.pad(x, (1, 1), value=True), x.tril(), x.roll(1), x.flip(1), x.repeat(1, 2), x.view(torch.uint8), x.view(torch.int8) + 1, x.gather(1, torch.zeros(6, 1, dtype=torch.int64)), x[torch.tensor([1, 1])]),
        "writes": lambda x, y, z: (lambda w: (w.logical_and_(y), w.__ior__(x), w[0].fill_(True), w.t()[1].logical_not_(), w.masked_fill_(y, False), w.bitwise_xor_(z), w.copy_(w.float() * 2), w.index_put_((torch.tensor([0, 0]),), torch.tensor(True)), w))(x.clone())[-1],
        "functions": lambda x, y, z: (x.sin(), x.exp(), x.sqrt(), x.sigmoid(), torch.maximum(x, y), x.float().relu(), x.isnan(), x.to(torch.complex64), x.half(), x.int() << 2, x.nonzero(), x.to(torch.float64).sum(), torch.bitwise_not(x), x.int().bitwise_and(y.int()), x.logical_xor(y)),
    },
    gradients=False,
)
for _dtype in (torch.complex64, torch.complex128):
    each(
        f"of_{short(_dtype)}",
        lambda d=_dtype: [torch.randn(4, 6, dtype=d), torch.randn(4, 6, dtype=d), torch.randn(6, 3, dtype=d)],
        {
            "arithmetic": lambda x, y, z: (x + y, x - y, x * y, x / y, x + 2, x * 2.5, x * 1j, x - (1 + 2j), 1 / x, -x, x.square(), x**2, x**0.5, x.reciprocal(), torch.add(x, y, alpha=2j), x + y.real, x.real * y, x.imag + 1, torch.complex(x.real, y.imag), x == y, x != y, torch.rsub(x, y), x + torch.tensor(2.0), torch.where(x.real > 0, x, y)),
            "parts": lambda x, y, z: (x.abs(), x.angle(), x.conj() * 2, x.real, x.imag, x.sgn(), torch.view_as_real(x), x.conj().real, x.conj().imag, torch.polar(x.abs(), x.angle()), x.resolve_conj(), x.isfinite(), x.isreal(), torch.view_as_complex(torch.view_as_real(x) * 2), x.mT, x.mH + 1, x.adjoint() * 1, x.isnan()),
            "functions": lambda x, y, z: (x.exp(), x.log(), x.sqrt(), x.sin(), x.cos(), x.tanh(), x.sinh(), x.cosh(), x.tan(), x.sigmoid(), x.asin(), x.atan(), x.acos(), x.rsqrt(), x.log10(), x.expm1(), x.asinh(), x.pow(y)),
            "reductions": lambda x, y, z: (x.sum(), x.sum(0), x.mean(1), x.prod(1), x.cumsum(1), x.cumprod(0), x.norm(), torch.linalg.vector_norm(x, dim=1), x.var(), x.std(1), torch.linalg.vector_norm(x, 1), torch.cumsum(x, 0)[-1], x.abs().amax(1)),
            "products": lambda x, y, z: (x @ z, torch.mm(x, z), torch.bmm(x[None], z[None]), torch.dot(x[0], y[0]), torch.vdot(x[0], y[0]), torch.einsum("ij,jk->ik", x, z), torch.outer(x[0], y[0]), torch.addmm(x[:, :3], x, z), x.conj() @ z, x @ y.mH, torch.kron(x[:2, :2], y[:2, :2]), torch.inner(x, y)),
            "layouts": lambda x, y, z: (torch.cat([x, y]), torch.stack([x, y], 1), x.t() + y.t(), x[:, ::2] * 2, x.flip(1), x.roll(1, 0), F.pad(x, (1, 1)), x.tril(), x.repeat(1, 2), x[torch.tensor([0, 0, 2])], x.index_add(0, torch.tensor([0, 0]), y[:2]), x.gather(1, torch.zeros(4, 1, dtype=torch.int64)), x.scatter_add(0, torch.zeros(1, 6, dtype=torch.int64), y[:1]), x.masked_fill(x.real > 0, 0), x.expand(2, 4, 6) * 1, torch.diag(x[0]), x.reshape(-1).to(torch.complex128)),
            "transforms": lambda x, y, z: (torch.fft.fft(x), torch.fft.ifft(x, dim=0), torch.fft.fft2(x), torch.fft.fftshift(x), torch.fft.irfft(x), torch.fft.rfft(x.real), torch.fft.fftn(x, norm="ortho"), torch.fft.hfft(x), torch.fft.ihfft(x.real)),
        },
        rtol=1e-4,
        atol=1e-5,
    )

# Functions called again with other sizes.


def sized(name, make, functions, gradients=True, sizes=(5, 9, 1, 0, 33), **settings):
    """Functions of tensors with a size that differs from call to call."""
    each(name, lambda: make(sizes[0]), functions, gradients, then=tuple((lambda n=n: make(n)) for n in sizes[1:]), **settings)


sized(
    "sized",
    lambda n: [r(n, 6), r(6, 4), r(n)],
    {
        "pointwise": lambda x, w, v: (x * 2 + v[:, None], x.t() + 1, x.sin().t() * v, torch.where(x > 0, x, v[:, None]), x[:, ::2] * v[:, None]),
        "reductions": lambda x, w, v: (x.sum(0), x.sum(1), x.sum(), x.mean(1), x.prod(0), x.amax(1), x.softmax(1), x.log_softmax(1), x.logsumexp(1), x.norm(dim=1), x.cumsum(0), x.var(1), x.any(0), (x > 0).sum()),
        "products": lambda x, w, v: (x @ w, x.t() @ x, x @ w @ w.t(), v @ x, F.linear(x, w.t(), w[0]), torch.outer(v, v), torch.einsum("ij,jk->ik", x, w), torch.bmm(x[None], w[None]), torch.addmm(w[0], x, w)),
        "layers": lambda x, w, v: (F.layer_norm(x, (6,)), F.gelu(F.linear(x, w.t())).softmax(-1), F.rms_norm(x, (6,)), F.normalize(x, dim=1), F.group_norm(x, 3) if x.shape[0] else x),
        "views": lambda x, w, v: (x.view(-1, 2, 3), x.reshape(-1), x.t().reshape(6, -1), x.unsqueeze(0).expand(2, -1, -1), x.flip(0), x.roll(1, 0), x.repeat(2, 1), torch.cat([x, x * 2]), torch.stack([x, x], 1), x.chunk(2, 1), x.transpose(0, 1).contiguous(), x[:, 1:4], x[1:], x[:-1], x[::2], F.pad(x, (0, 0, 1, 2)), x.narrow(1, 2, 3), x.unbind(1), x.repeat_interleave(2, 0)),
        "indexing": lambda x, w, v: (x[torch.arange(x.shape[0])], x[:, torch.tensor([0, 3])], x.gather(1, torch.zeros(x.shape[0], 2, dtype=torch.int64)), x.index_select(1, torch.tensor([5, 5])), x.masked_fill(x > 0, 0), x.tril(), x.triu(1), torch.zeros(4, 6).index_add(0, torch.arange(x.shape[0]) % 4, x), x.index_fill(1, torch.tensor([1]), 3.0)),
        "orders": lambda x, w, v: (x.sort(1), x.argsort(1), x.topk(2, 1), x.sort(0)[0], x.cummax(1), x.max(1), x.argmax(1), x.median(1), x.kthvalue(2, 1), v.sort()),
        "factories": lambda x, w, v: (torch.arange(x.shape[0]), torch.zeros(x.shape[0], 2), torch.ones_like(x), torch.eye(x.shape[0]), torch.full((x.shape[0],), 7), x.new_zeros(x.shape[0] + 1), torch.linspace(0, 1, x.shape[0]), torch.arange(0, x.shape[0], 2), torch.tril_indices(x.shape[0], 3), torch.full_like(v, x.shape[0])),
        "numbers": lambda x, w, v: (x * x.shape[0], x / (x.shape[0] + 1), x.shape[0] // 2 + v, x.numel(), x.shape, x.stride(), v.sum() / max(x.shape[0], 1), x.shape[0] % 3, float(x.shape[0]), x.shape[0] > 4),
        "writes": lambda x, w, v: (lambda y: (y[:, 0].fill_(2), y.t()[1].mul_(3), y.add_(v[:, None]), y))(x * 1)[-1],
        "attention": lambda x, w, v: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
        "losses": lambda x, w, v: (F.cross_entropy(x, torch.arange(x.shape[0]) % 6), F.l1_loss(x, x * 2, reduction="sum"), F.binary_cross_entropy_with_logits(x, x.sigmoid().detach())),
        "embedding": lambda x, w, v: (F.embedding(torch.arange(x.shape[0]) % 6, w), F.one_hot(torch.arange(x.shape[0]) % 3, 3), w[torch.arange(x.shape[0]) % 6] * v[:, None]),
    },
)
sized(
    "sized_written",
    lambda n: [r(n, 6), r(n)],
    {
        "inputs": lambda x, v: (x.mul_(2), x.add_(v[:, None]), v.copy_(x[:, 0]), x.sum())[-1],
        "views": lambda x, v: (x[:, 1:3].fill_(7), x.t()[0].add_(v), x.view(-1)[::2].neg_(), x[1:].mul_(2), x + 1)[-1],
        "returned": lambda x, v: (x, x.view(-1), x.add_(1), v[1:], x.t()),
    },
    gradients=False,
)
sized(
    "sized_image",
    lambda n: [r(2, 3, n, n + 2), r(4, 3, 3, 3)],
    {
        "convolution": lambda x, w: (F.conv2d(x, w), F.conv2d(x, w, padding=1, stride=2), F.conv2d(x, w, padding="same"), F.conv_transpose2d(F.conv2d(x, w), w)),
        "pools": lambda x, w: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 2)), F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.adaptive_max_pool2d(x, 2)),
        "upsampling": lambda x, w: (F.interpolate(x, scale_factor=2), F.interpolate(x, (7, 7), mode="bilinear"), F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True), F.interpolate(x, scale_factor=0.5, mode="area"), F.interpolate(x, (5, 4), mode="bicubic"), F.interpolate(x, scale_factor=0.7, mode="nearest-exact")),
        "padding": lambda x, w: (F.pad(x, (1, 2, 3, 4)), F.pad(x, (1, 2, 2, 1), "reflect"), F.pad(x, (1, 2, 3, 4), "replicate"), F.pad(x, (1, 1, 2, 2), "circular"), F.pad(x, (-1, 0, 0, -1))),
        "normalisation": lambda x, w: (F.instance_norm(x), F.group_norm(x, 3), F.batch_norm(x, None, None, training=True), F.layer_norm(x, x.shape[1:])),
        "shuffles": lambda x, w: (x.flip(3), x.roll((1, 1), (2, 3)), x.permute(0, 2, 3, 1) * 2, x.mean((2, 3)), x.flatten(2).transpose(1, 2), F.unfold(x, 3, padding=1), x.contiguous(memory_format=torch.channels_last) + 1, x.unfold(2, 2, 1)),
    },
    sizes=(6, 11, 4, 17),
    rtol=1e-4,
    atol=1e-5,
)

# Convolutions.

_CONVOLUTIONS = {
    "plain": {},
    "strided": {"stride": 2},
    "padded": {"padding": 1},
    "same": {"padding": "same"},
    "valid": {"padding": "valid"},
    "dilated": {"dilation": 2, "padding": 2},
    "grouped": {"groups": 2},
    "all": {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
}
for _dimensions, _convolve, _transposed in ((1, F.conv1d, F.conv_transpose1d), (2, F.conv2d, F.conv_transpose2d), (3, F.conv3d, F.conv_transpose3d)):
    each(
        f"convolution{_dimensions}",
        lambda n=_dimensions: [r(2, 4, *(9,) * n), r(6, 4, *(3,) * n), r(6)],
        {
            **{name: lambda x, w, b, f=_convolve, s=settings: (f(x, w[:, : 4 // s.get("groups", 1)], b, **s), f(x, w[:, : 4 // s.get("groups", 1)], **s)) for name, settings in _CONVOLUTIONS.items()},
            "unbatched": lambda x, w, b, f=_convolve: f(x[0], w, b, padding=1).relu(),
            "nothing": lambda x, w, b, f=_convolve: f(x[:0], w, b, padding=1),
            "depthwise": lambda x, w, b, f=_convolve: f(x, w[:4, :1], b[:4], groups=4, padding=1) * 2,
            "pointwise": lambda x, w, b, f=_convolve: f(x, w.flatten(2)[..., :1].reshape(6, 4, *(1,) * (x.dim() - 2)), b).sigmoid(),
            "strided_input": lambda x, w, b, f=_convolve: f(x.flip(1)[:, :, ::2], w[:, :, :2], b),
            "transposed": lambda x, w, b, f=_transposed: (f(x, w[:4], stride=2, padding=1, output_padding=1), f(x, w[:4], b[:4]), f(x, w[:4, :2], groups=2), f(x[0], w[:4], dilation=2)),
            "transposed_nothing": lambda x, w, b, f=_transposed: f(x[:0], w[:4], stride=2),
        },
        rtol=1e-4,
        atol=1e-5,
    )
each(
    "convolved_module",
    lambda: [r(2, 4, 8, 8)],
    {
        **{f"pad_{mode}": nn.Conv2d(4, 5, 3, padding=(1, 2), padding_mode=mode) for mode in ("reflect", "replicate", "circular", "zeros")},
        "channels_last": nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)).to(memory_format=torch.channels_last),
        "rectangular": nn.Conv2d(4, 6, (1, 5), (2, 1), (0, 3), (1, 2), 2, False),
        "transposed": nn.ConvTranspose2d(4, 6, (3, 2), (2, 3), 1, (1, 0), 2, dilation=(1, 2)),
        "even": nn.Conv2d(4, 4, 4, padding="same"),
        "eval": nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.Dropout(0.5)).eval(),
        "flattened": nn.Sequential(nn.Flatten(2), nn.Conv1d(4, 4, 3, groups=4), nn.AdaptiveMaxPool1d(5)),
        "unfolded": nn.Sequential(nn.Unfold(3, padding=1), nn.Fold((8, 8), 3, padding=1)),
        "padded": nn.Sequential(nn.ZeroPad2d((1, 0, 2, 1)), nn.ConstantPad2d(1, 3.5), nn.ReflectionPad2d(2), nn.ReplicationPad2d((0, 1, 1, 0)), nn.CircularPad2d(1)),
    },
    rtol=1e-4,
    atol=1e-5,
)

# Normalisations in training and in evaluation.

_NORMS = {
    "batch": lambda: nn.BatchNorm2d(4),
    "batch_plain": lambda: nn.BatchNorm2d(4, affine=False),
    "batch_untracked": lambda: nn.BatchNorm2d(4, track_running_stats=False),
    "batch_cumulative": lambda: nn.BatchNorm2d(4, momentum=None),
    "instance": lambda: nn.InstanceNorm2d(4),
    "instance_tracked": lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
    "group": lambda: nn.GroupNorm(2, 4),
    "group_plain": lambda: nn.GroupNorm(4, 4, affine=False),
    "layer": lambda: nn.LayerNorm((4, 5, 6)),
    "layer_unbiased": lambda: nn.LayerNorm(6, bias=False),
    "layer_plain": lambda: nn.LayerNorm((5, 6), elementwise_affine=False),
    "root_mean": lambda: nn.RMSNorm(6),
    "root_mean_eps": lambda: nn.RMSNorm((5, 6), eps=0.1),
    "local": lambda: nn.LocalResponseNorm(3),
    "spectral": lambda: nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 4, 1)),
    "weight": lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 3, 3)),
    "orthogonal": lambda: nn.utils.parametrizations.orthogonal(nn.Linear(6, 6), use_trivialization=False),
}
torch.manual_seed(2)
for _name, _make in _NORMS.items():
    if _name not in ("spectral", "orthogonal"):
        PEERS[f"norm_{_name}_train"] = Peer(_make(), lambda: [r(3, 4, 5, 6)], then=(lambda: [r(2, 4, 5, 6)],), rtol=1e-4, atol=1e-5)
    PEERS[f"norm_{_name}_eval"] = Peer(_make().eval(), lambda: [r(3, 4, 5, 6)], rtol=1e-4, atol=1e-5)
    if _name not in ("spectral", "orthogonal", "weight"):
        PEERS[f"norm_{_name}_last"] = Peer(_make(), lambda: [r(3, 4, 5, 6).to(memory_format=torch.channels_last)], rtol=1e-4, atol=1e-5)
for _dtype in (torch.float16, torch.bfloat16):
    for _name in ("batch", "group", "layer", "root_mean"):
        PEERS[f"norm_{_name}_{short(_dtype)}"] = Peer(_NORMS[_name]().to(_dtype), lambda d=_dtype: [r(3, 4, 5, 6, dtype=d)])

# Pools in one and in three dimensions.

each(
    "pooled_lines",
    lambda: [r(2, 3, 17)],
    {
        "max": lambda x: (F.max_pool1d(x, 3), F.max_pool1d(x, 3, 1, 1), F.max_pool1d(x, 2, 3, ceil_mode=True), F.max_pool1d(x, 3, 2, 1, 2), *F.max_pool1d(x, 4, return_indices=True), F.max_pool1d(x[0], 5)),
        "avg": lambda x: (F.avg_pool1d(x, 3), F.avg_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 4, 3, 2, ceil_mode=True), F.avg_pool1d(x, 4, 3, 2, True, False), F.avg_pool1d(x[0], 2)),
        "adaptive": lambda x: (F.adaptive_avg_pool1d(x, 1), F.adaptive_avg_pool1d(x, 7), F.adaptive_avg_pool1d(x, 30), F.adaptive_max_pool1d(x, 4), *F.adaptive_max_pool1d(x, 6, return_indices=True)),
        "unpooled": lambda x: (lambda y, i: F.max_unpool1d(y, i, 2))(*F.max_pool1d(x[..., :16], 2, return_indices=True)),
        "power": lambda x: (F.lp_pool1d(x.abs() + 0.1, 2, 3), F.lp_pool1d(x.abs() + 0.1, 3, 2, 1, True), F.lp_pool1d(x.abs() + 0.1, 1.5, 4)),
        "nothing": lambda x: (F.max_pool1d(x[:0], 3), F.avg_pool1d(x[:0], 3), F.adaptive_avg_pool1d(x[:0], 2), F.max_pool1d(x[:, :, :3], 3)),
    },
)
each(
    "pooled_volumes",
    lambda: [r(1, 2, 5, 6, 7)],
    {
        "max": lambda x: (F.max_pool3d(x, 2), F.max_pool3d(x, 3, 2, 1, ceil_mode=True), F.max_pool3d(x, 2, 1, dilation=2), *F.max_pool3d(x, (1, 2, 3), return_indices=True), F.max_pool3d(x[0], 2)),
        "avg": lambda x: (F.avg_pool3d(x, 2), F.avg_pool3d(x, 3, 2, 1, ceil_mode=True), F.avg_pool3d(x, 3, 2, 1, count_include_pad=False), F.avg_pool3d(x, 2, divisor_override=3)),
        "adaptive": lambda x: (F.adaptive_avg_pool3d(x, 1), F.adaptive_avg_pool3d(x, (2, 4, 3)), F.adaptive_avg_pool3d(x, (None, 2, 9)), F.adaptive_max_pool3d(x, (2, 3, 2))),
        "unpooled": lambda x: (lambda y, i: F.max_unpool3d(y, i, 2, output_size=(5, 6, 7)))(*F.max_pool3d(x, 2, return_indices=True)),
        "upsampled": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (3, 4, 5), mode="trilinear"), F.interpolate(x, scale_factor=1.5, mode="trilinear", align_corners=True), F.interpolate(x, (4, 4, 4), mode="area"), F.interpolate(x, (7, 3, 9), mode="nearest-exact")),
        "padded": lambda x: (F.pad(x, (1, 2, 0, 1, 2, 1)), F.pad(x, (1, 2, 0, 1, 2, 1), "reflect"), F.pad(x, (1, 2, 3, 1, 2, 1), "replicate"), F.pad(x, (1, 2, 0, 1, 2, 1), "circular"), F.pad(x, (-1, 2, 0, -1, 1, 1), value=2)),
        "channels_last": lambda x: (lambda y: (y + 1, F.max_pool3d(y, 2), F.avg_pool3d(y, 2), F.conv3d(y, y[:, :, :2, :2, :2].contiguous()), F.interpolate(y, scale_factor=2), y.sum(1)))(x.contiguous(memory_format=torch.channels_last_3d)),
        "sampled": lambda x: (F.grid_sample(x, F.affine_grid(torch.eye(3, 4)[None] * 1.1, (1, 2, 4, 4, 4), align_corners=False), align_corners=False), F.grid_sample(x, F.affine_grid(torch.eye(3, 4)[None] * 1.4, (1, 2, 3, 3, 3), align_corners=True), mode="nearest", padding_mode="border", align_corners=True)),
    },
    rtol=1e-4,
    atol=1e-5,
)

# Upsampling.

each(
    "resampled",
    lambda: [r(2, 3, 7, 9)],
    {
        **{
            f"{mode.replace('-', '_')}_{name}": lambda x, mode=mode, s=s: F.interpolate(x, mode=mode, **s)
            for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
            for name, s in {"size": {"size": (12, 5)}, "factor": {"scale_factor": (1.6, 0.7)}, "recomputed": {"scale_factor": 1.3, "recompute_scale_factor": True}}.items()
        },
        **{f"{mode}_corners": lambda x, mode=mode: (F.interpolate(x, (11, 4), mode=mode, align_corners=True), F.interpolate(x, (1, 1), mode=mode, align_corners=True), F.interpolate(x, scale_factor=2, mode=mode, align_corners=True)) for mode in ("bilinear", "bicubic")},
        **{f"{mode}_antialias": lambda x, mode=mode: (F.interpolate(x, (3, 4), mode=mode, antialias=True), F.interpolate(x, (10, 4), mode=mode, antialias=True, align_corners=True)) for mode in ("bilinear", "bicubic")},
        "bytes": lambda x: (F.interpolate((x.detach() * 40 + 128).clamp(0, 255).to(torch.uint8), (5, 13), mode="nearest"), F.interpolate((x.detach() * 40 + 128).clamp(0, 255).to(torch.uint8), (5, 13), mode="bilinear")),
    },
    rtol=1e-4,
    atol=1e-5,
)

# Losses.

_REDUCTIONS = ("none", "mean", "sum")
each(
    "loss",
    lambda: [r(6, 5), r(6, 5), ints(6, high=5), torch.rand(6, 5)],
    {
        "cross_entropy": lambda x, y, t, p: tuple(F.cross_entropy(x, t, reduction=k, **s) for k in _REDUCTIONS for s in ({}, {"label_smoothing": 0.2}, {"ignore_index": 1}, {"weight": torch.arange(1.0, 6)}, {"weight": torch.arange(1.0, 6), "label_smoothing": 0.1, "ignore_index": 2})),
        "cross_entropy_soft": lambda x, y, t, p: tuple(F.cross_entropy(x, p, reduction=k, **s) for k in _REDUCTIONS for s in ({}, {"label_smoothing": 0.2}, {"weight": torch.arange(1.0, 6)})),
        "cross_entropy_images": lambda x, y, t, p: tuple(F.cross_entropy(x.view(2, 5, 3), t.view(2, 3), reduction=k, ignore_index=3) for k in _REDUCTIONS) + (F.cross_entropy(x[0], t[0]), F.cross_entropy(x.view(1, 5, 2, 3), t.view(1, 2, 3), weight=torch.arange(1.0, 6))),
        "cross_entropy_all_ignored": lambda x, y, t, p: (F.cross_entropy(x, t * 0 - 100), F.cross_entropy(x, t * 0 - 100, reduction="sum"), F.nll_loss(x, t * 0 + 1, ignore_index=1)),
        "nll": lambda x, y, t, p: tuple(F.nll_loss(x.log_softmax(1), t, reduction=k, **s) for k in _REDUCTIONS for s in ({}, {"ignore_index": 1}, {"weight": torch.arange(1.0, 6)})) + (F.nll_loss(x[0], t[0]),),
        "regression": lambda x, y, t, p: tuple(f(x, y, reduction=k) for k in _REDUCTIONS for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)),
        "regression_settings": lambda x, y, t, p: (F.smooth_l1_loss(x, y, beta=0.5), F.smooth_l1_loss(x, y, beta=0.0), F.huber_loss(x, y, delta=0.3), F.mse_loss(x, y[:1].expand(6, 5)), F.mse_loss(x, y, weight=p), F.l1_loss(x, y, reduction="none").sum(0)),
        "binary": lambda x, y, t, p: tuple(F.binary_cross_entropy(x.sigmoid(), p, reduction=k) for k in _REDUCTIONS) + tuple(F.binary_cross_entropy_with_logits(x, p, reduction=k, weight=p, pos_weight=torch.arange(1.0, 6)) for k in _REDUCTIONS) + (F.binary_cross_entropy(p.round(), p),),
        "divergence": lambda x, y, t, p: tuple(F.kl_div(x.log_softmax(1), y.log_softmax(1), reduction=k, log_target=True) for k in (*_REDUCTIONS, "batchmean")) + tuple(F.kl_div(x.log_softmax(1), p, reduction=k) for k in _REDUCTIONS),
        "margins": lambda x, y, t, p: tuple(f for k in _REDUCTIONS for f in (F.multi_margin_loss(x, t, reduction=k), F.multi_margin_loss(x, t, p=2, margin=0.5, reduction=k), F.soft_margin_loss(x, p.round() * 2 - 1, reduction=k), F.hinge_embedding_loss(x, p.round() * 2 - 1, 0.5, reduction=k), F.margin_ranking_loss(x[:, 0], y[:, 0], p[:, 0].round() * 2 - 1, 0.1, reduction=k))),
        "labels": lambda x, y, t, p: tuple(f for k in _REDUCTIONS for f in (F.multilabel_soft_margin_loss(x, p.round(), reduction=k), F.multilabel_margin_loss(x, torch.tensor([[0, 3, -1, 1, 1]]).expand(6, 5), reduction=k))),
        "distances": lambda x, y, t, p: tuple(f for k in _REDUCTIONS for f in (F.triplet_margin_loss(x, y, p, reduction=k), F.triplet_margin_loss(x, y, p, p=1, swap=True, margin=0.3, reduction=k), F.cosine_embedding_loss(x, y, t.clamp(max=1) * 2 - 1, 0.2, reduction=k), F.triplet_margin_with_distance_loss(x, y, p, reduction=k))),
        "likelihoods": lambda x, y, t, p: tuple(f for k in _REDUCTIONS for f in (F.poisson_nll_loss(x, p, reduction=k), F.poisson_nll_loss(p, p, False, True, reduction=k), F.gaussian_nll_loss(x, y, p + 0.1, True, reduction=k))),
        # torch's own tracing of the backward of mse_loss divides by zero.
        "nothing": lambda x, y, t, p: (F.mse_loss(x[:0].detach(), y[:0].detach()), F.cross_entropy(x[:0], t[:0]), F.l1_loss(x[:0], y[:0], reduction="sum"), F.binary_cross_entropy_with_logits(x[:0], p[:0])),
    },
    rtol=1e-4,
    atol=1e-5,
)

# Ties, statistics, limits of types, and every function in half precisions.
# extremes, ties, sort families
each("ties", lambda: [torch.tensor([[3., 1, 3, nan, 2], [0, 0, 0, 0, 0], [inf, -inf, inf, 1, nan]]), torch.tensor([[2, 2, 1], [5, 5, 5]])], {
    "sorts": lambda x, n: (x.sort(dim=1, stable=True), x.sort(dim=1, descending=True, stable=True), x.argsort(dim=0, stable=True), n.sort(dim=1, stable=True), x.msort(), torch.sort(x, stable=True, dim=-1)),
    "medians": lambda x, n: (x.median(), x.median(1), x.nanmedian(), x.nanmedian(1), n.median(1), n.mode(1), x.mode(1), x[::2].kthvalue(1, 1), n.kthvalue(2, 1)[0], n.median()),
    "extremes": lambda x, n: (x.argmax(), x.argmin(), x.argmax(1, True), x.max(1, True), x.min(0), x.amax((0, 1), True), x.cummax(1), x.cummin(0), n.argmax(1), n.argmin(0), n.max(1), x.aminmax(), torch.fmax(x, x.flip(0)), n.amin()),
    "topk": lambda x, n: (x[1].topk(2)[0], x.nan_to_num(0).topk(2, 1)[0], n.topk(1, 0)[0], n.topk(0, 1), x[:0].topk(2, 1), n.topk(2, 1, False, True)[0]),
    "unique": lambda x, n: (n.unique(), n.unique(return_inverse=True, return_counts=True), n.unique_consecutive(), n.unique(dim=0), n.unique(sorted=False).sort()[0], n.unique_consecutive(return_counts=True, dim=1)),
    "buckets": lambda x, n: (torch.bucketize(n, torch.tensor([1, 2, 5])), torch.bucketize(n, torch.tensor([1, 2, 5]), right=True), torch.bucketize(x, torch.tensor([0., 1, 3])), torch.searchsorted(torch.tensor([[1, 2, 3], [4, 5, 6]]), n), torch.searchsorted(torch.tensor([1., 2, 3]), x, side="right"), torch.searchsorted(torch.tensor([3., 1, 2]), x, sorter=torch.tensor([1, 2, 0])), torch.bucketize(torch.tensor(2), torch.tensor([1, 2])), torch.bucketize(torch.tensor([], dtype=torch.int64), torch.tensor([1, 2]))),
    "histograms": lambda x, n: (torch.histc(x.nan_to_num(0, 1, -1), 5), torch.histc(n.float(), 3, 0, 6), torch.bincount(n.flatten()), torch.bincount(n.flatten(), n.flatten().float() * 0.5, 9), torch.bincount(n.flatten()[:0]), torch.histc(x.nan_to_num(0, 1, -1), 4, -2, 2)),
    "quantiles": lambda x, n: tuple(torch.quantile(torch.arange(10.).view(2, 5), q, dim=d, keepdim=k, interpolation=m) for q in (0.3, torch.tensor([0.1, 0.6])) for d in (None, 1) for k in (False, True) for m in ("linear", "lower", "higher", "nearest", "midpoint")) + (x.nanquantile(0.4, 1), x.quantile(0.5)),
}, gradients=False)
each("statistics", lambda: [r(4, 5, 6), torch.zeros(3, 1), torch.ones(2, 0)], {
    "variance": lambda x, o, z: (x.var(), x.var(1, unbiased=False), x.std((0, 2)), x.var(1, correction=2, keepdim=True), x.std(correction=0.5), x.var(None), o.var(1), o.std(1), o.var(1, correction=0), torch.var_mean(x, (0, 1), correction=0), torch.std_mean(x, 2, keepdim=True), o.var()),
    "means": lambda x, o, z: (x.mean((0, 1)), x.mean(), x.mean(2, True), z.mean(), z.mean(0), x.nanmean((0, 1)), x.nansum(0), x.sum((0, 1, 2)), z.sum(1), z.prod(1), z.sum(), x.mean(dtype=torch.float64), x.sum([], keepdim=True)),
    "norms": lambda x, o, z: tuple(torch.linalg.vector_norm(x, p, d) for p in (0, 0.5, 1, 2, 3, inf, -inf) for d in (None, 1, (0, 2))) + (z.norm(), x.norm("fro"), x.norm(2, (0, 1)), x[0].norm("nuc"), F.normalize(x, 1, 2), F.normalize(o, dim=0), torch.renorm(x, 2, 0, 1.0), torch.linalg.norm(x[0]), torch.linalg.matrix_norm(x, "fro"), torch.linalg.matrix_norm(x, 1), torch.linalg.matrix_norm(x, -inf)),
    "products": lambda x, o, z: (x.prod(), x.prod(1), (x * (x > 0)).prod(2), x.cumprod(1), (x * (x > 0)).cumprod(2), torch.zeros(3).prod(), x.prod(0, keepdim=True), x.prod(dtype=torch.float64)),
    "logs": lambda x, o, z: (x.logsumexp((0, 1)), x.logcumsumexp(1), (x * 100).logcumsumexp(2), (x * 100).logsumexp(1), (x - inf).logsumexp(1), torch.logaddexp(x, x * 2), x.softmax(1), (x * 1000).softmax(2), (x * 1000).log_softmax(0), F.softmin(x, 1), F.gumbel_softmax(x, dim=1).sum(1), z.logsumexp(1), torch.nn.functional.softmax(o, 1)),
    "any_all": lambda x, o, z: (x.any(), x.all(1), (x > 1).any((0, 2)), z.any(1), z.all(1), z.all(), (x > 0).all(2, True), x.byte().any(1), x.byte().all()),
    "covariances": lambda x, o, z: (torch.cov(x[0]), torch.corrcoef(x[1]), torch.cov(x[0], correction=0), torch.cov(x[0, 0]), torch.cov(x[0], fweights=torch.tensor([1, 2, 1, 1, 3, 1])), torch.trapezoid(x, dx=0.5), torch.trapezoid(x, x.cumsum(2)), torch.gradient(x, dim=(0, 2))[1], torch.gradient(x[0, 0], spacing=0.3)[0]),
    "scans": lambda x, o, z: (x.cumsum(0), x.cumsum(2), z.cumsum(1), o.cumsum(1), x.cummax(0)[0], x.diff(n=2, dim=1), x.cumsum(1, dtype=torch.float64), x.flip(0).cumsum(0).flip(0), x.transpose(0, 2).cumsum(1), x[::2, :, ::2].cumsum(2), torch.cumulative_trapezoid(x, dim=0)),
}, rtol=1e-4, atol=1e-5)
each("integers_at_limits", lambda: [torch.tensor([-128, 127, -1, 0, 5], dtype=torch.int8), torch.tensor([-2**31, 2**31 - 1, -1, 7, 0], dtype=torch.int32), torch.tensor([-2**63, 2**63 - 1, -1, 7, 0])], {
    "by_minus_one": lambda a, b, c: (torch.div(a, -1, rounding_mode="trunc"), a // -1, a % -1, torch.fmod(a, -1), b // 3, b % -7, torch.div(b, 3, rounding_mode="floor"), c // 2, c % 3, b % 2, c % -2, a.remainder(3), torch.fmod(c, 5), -a, -b, -c, a.abs(), b.abs(), c.abs(), a.sign()),
    "shifts": lambda a, b, c: (a << 1, b << 31, c << 63, a >> 7, b >> 31, c >> 63, b >> 40, c << 64, a << 8, b << 32, a >> 9, torch.bitwise_left_shift(b, torch.tensor([0, 1, 31, 32, 33], dtype=torch.int32)), torch.bitwise_right_shift(c, torch.tensor([0, 1, 63, 64, 65])), 1 << c[2:4].clamp(0), a << torch.tensor(2, dtype=torch.int8)),
    "powers": lambda a, b, c: (a**2, b**2, c**3, a**7, torch.tensor(2) ** torch.tensor([0, 1, 62, 63, 64]), torch.tensor([0, 1, -1, 2]) ** 0, torch.tensor([1, -1]) ** torch.tensor([-1, -1]), b**5, torch.pow(3, torch.tensor([0, 39, 40, 41]))),
    "casts": lambda a, b, c: (b.to(torch.int8), c.to(torch.int32), c.to(torch.int16), a.to(torch.uint8), b.float(), c.float(), c.double(), b.half(), b.bfloat16(), c.to(torch.uint8), b.bool(), a.to(torch.int64), a.double() / 3, c / 2, b / b.clamp(min=1), b.float().to(torch.int64)),
    "reduced": lambda a, b, c: (a.sum(), b.sum(), c.sum(), a.prod(), b.prod(), a.sum(dtype=torch.int8), b.sum(dtype=torch.int32), a.max(), b.min(), c.max(), c.min(), c.argmax(), c.argmin(), a.cumsum(0), b.cumsum(0, dtype=torch.int32), c.cumsum(0), b.cummax(0), a.amin(), c.amax(), b.sort()[0], c.sort()[0], c.topk(2)[0], c.median()),
    "compared": lambda a, b, c: (a < -128, b > 2**31, b >= 2**31 - 1, c > 2**62, c == -2**63, b == 2147483647.0, c < 1e19, a.clamp(-200, 200), b.clamp(-2**40, 2**40), c.clamp(-2**62, 2**62), a.clamp(min=-1000), b.clamp(max=2**33), torch.maximum(a, b), torch.minimum(b, c), torch.where(a > 0, a, b), torch.isin(c, torch.tensor([2**63 - 1]))),
}, gradients=False)
each("floats_to_limits", lambda: [torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 1e10, -1e10, 3.99, -3.99, 0.49999997]), torch.tensor([1e30, -1e30, 1e-30, 65504., 65520., 1e-8, 3e-45, 1.0])], {
    "round": lambda x, y: (x.round(), torch.round(x, decimals=2), torch.round(x, decimals=-1), x.floor(), x.ceil(), x.trunc(), x.frac(), torch.round(x * 10, decimals=0), x.double().round(), x.half().round(), x.round().int()[:5], x[:5].long()),
    "halves": lambda x, y: (y.half(), y.bfloat16(), y.half().float() * 2, y * y, y / y.flip(0), 1 / y, y.sqrt(), y.rsqrt(), y.exp(), y.log(), y.double().float(), (y.double() * 1e10).float(), y.sum(), y.norm(), y.abs().log().sum(), torch.ldexp(y, torch.tensor(3)), torch.frexp(y), torch.nextafter(y, y * 0)),
    "divided": lambda x, y: (x // 0.3, x % 0.3, x // -0.7, x % -0.7, torch.fmod(x, 0.7), x // inf, x % inf, -x % inf, x // 0.0, x % 0.0, torch.div(x, 0.1, rounding_mode="trunc"), torch.div(x, y[:1], rounding_mode="floor"), torch.remainder(x, -inf), torch.floor_divide(x, 2), 5 // x, 5 % x, -5 // x),
    "functions": lambda x, y: (y.exp(), y.expm1(), y.log1p(), y.tanh(), y.sigmoid(), y.sin(), y.cos(), x.tan(), y.atan(), y.sinh(), y.asinh(), y.erf(), y.erfc(), F.softplus(y), F.gelu(y), F.silu(y), F.logsigmoid(y), F.elu(y), F.mish(y), F.softplus(x, 3, 5), y.lgamma(), y.exp2(), torch.logaddexp(y, -y), torch.hypot(y, y), torch.atan2(y, -y), y.sinc(), y.cosh()),
}, gradients=False)
each("half_functions", lambda: [r(5, 9, dtype=torch.float16) * 4, r(5, 9, dtype=torch.bfloat16) * 4], {
    name: (lambda x, y, f=f: (f(x), f(y)))
    for name, f in {
        "exp": torch.exp, "log": lambda x: x.abs().log(), "sqrt": lambda x: x.abs().sqrt(), "tanh": torch.tanh, "erf": torch.erf, "sin": torch.sin, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "softplus": F.softplus, "mish": F.mish, "pow": lambda x: x**3, "rsqrt": lambda x: (x.abs() + 0.1).rsqrt(),
        "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(0), "logsumexp": lambda x: x.logsumexp(1), "sum": lambda x: (x.sum(), x.sum(0), x.sum(1)), "mean": lambda x: x.mean(1), "var": lambda x: x.var(1), "norm": lambda x: x.norm(dim=1), "cumsum": lambda x: x.cumsum(1), "prod": lambda x: (x * 0.3).prod(1), "layer_norm": lambda x: F.layer_norm(x, (9,)), "atan2": lambda x: torch.atan2(x, x.flip(0)), "hardswish": F.hardswish, "celu": F.celu, "lgamma": torch.lgamma, "digamma": lambda x: torch.digamma(x.abs() + 1), "erfinv": lambda x: torch.erfinv(x.tanh() * 0.9), "logit": lambda x: x.sigmoid().logit(0.1), "expm1": torch.expm1, "log1p": lambda x: x.abs().log1p(), "addcmul": lambda x: torch.addcmul(x, x, x.flip(0), value=0.3), "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3), "div": lambda x: x / (x.flip(0).abs() + 0.5), "logsigmoid": F.logsigmoid, "dropout": lambda x: F.dropout(x, 0.4), "i0": lambda x: torch.i0(x), "sinc": torch.sinc, "glu": lambda x: F.glu(x[:, :8]), "matmul": lambda x: x @ x.t(), "bmm": lambda x: torch.bmm(x[None], x.t()[None]), "conv": lambda x: F.conv1d(x[None], x[None, :, :3]), "max_pool": lambda x: F.max_pool1d(x[None], 2), "avg_pool": lambda x: F.avg_pool1d(x[None], 3, 2), "interpolate": lambda x: F.interpolate(x[None], 13, mode="linear"), "mse": lambda x: F.mse_loss(x, x.flip(0)), "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(5)), "embedding": lambda x: F.embedding(torch.tensor([1, 1, 4]), x), "index_add": lambda x: x.index_add(0, torch.tensor([1, 1, 1]), x[:3]), "scatter_add": lambda x: x.scatter_add(0, torch.ones(3, 9, dtype=torch.int64), x[:3]), "cdist": lambda x: torch.cdist(x.float(), x.float() + 1), "group_norm": lambda x: F.group_norm(x[None], 5), "batch_norm": lambda x: F.batch_norm(x, None, None, training=True), "addmm": lambda x: torch.addmm(x[:, :5], x, x.t(), beta=0.5, alpha=0.3), "baddbmm": lambda x: torch.baddbmm(x[None, :, :5], x[None], x.t()[None], alpha=0.3), "linear_bias": lambda x: F.linear(x, x, x[:, 0]), "nansum": torch.nansum, "clamp": lambda x: x.clamp(-0.3, 0.7), "remainder": lambda x: torch.remainder(x.detach(), 0.7), "std": lambda x: x.std(0), "median": lambda x: x.median(1)[0], "hypot": lambda x: torch.hypot(x, x.flip(0)), "square": torch.square, "sinh": lambda x: (x * 0.3).sinh(), "where": lambda x: torch.where(x > 0, x, 0.1), "amax": lambda x: x.amax(1), "logcumsumexp": lambda x: x.logcumsumexp(1) if x.dtype == torch.bfloat16 else x,
    }.items()
})

# Modules, linear algebra, transforms, random numbers, masks and slices.

_MODULES = {
    "lstm_bidirectional": (nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True), lambda: [r(2, 4, 6)]),
    "lstm_projected": (nn.LSTM(6, 5, proj_size=3), lambda: [r(4, 2, 6)]),
    "lstm_unbatched": (nn.LSTM(6, 5, bias=False), lambda: [r(4, 6)]),
    "gru_bidirectional": (nn.GRU(6, 5, bidirectional=True), lambda: [r(4, 2, 6)]),
    "rnn_relu": (nn.RNN(6, 5, 2, nonlinearity="relu", batch_first=True), lambda: [r(2, 4, 6)]),
    "gru_cell": (nn.GRUCell(6, 5), lambda: [r(3, 6)]),
    "rnn_cell": (nn.RNNCell(6, 5, nonlinearity="relu"), lambda: [r(3, 6)]),
    "lstm_state": (nn.LSTM(6, 5), lambda: [r(4, 2, 6), (r(1, 2, 5), r(1, 2, 5))]),
    "attention_masked": (nn.MultiheadAttention(8, 2, dropout=0.0, add_bias_kv=True, add_zero_attn=True), lambda: [r(5, 2, 8), r(6, 2, 8), r(6, 2, 8)]),
    "attention_dims": (nn.MultiheadAttention(8, 2, kdim=5, vdim=6, batch_first=True), lambda: [r(2, 5, 8), r(2, 6, 5), r(2, 6, 6)]),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), 2, enable_nested_tensor=False), lambda: [r(2, 5, 8)]),
    "decoder": (nn.TransformerDecoderLayer(8, 2, 16, 0.0), lambda: [r(5, 2, 8), r(6, 2, 8)]),
    "encoder_eval": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), lambda: [r(2, 5, 8)]),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16, 0.0), lambda: [r(5, 2, 8), r(3, 2, 8)]),
    "embedding_padded": (nn.Embedding(10, 4, padding_idx=2), lambda: [ints(3, 5)]),
    "embedding_scaled": (nn.Embedding(10, 4, scale_grad_by_freq=True), lambda: [ints(3, 5)]),
    "bag_sum": (nn.EmbeddingBag(10, 4, mode="sum", padding_idx=1), lambda: [ints(3, 5)]),
    "bag_max": (nn.EmbeddingBag(10, 4, mode="max"), lambda: [ints(3, 5)]),
    "bag_offsets": (nn.EmbeddingBag(10, 4, mode="mean", include_last_offset=True), lambda: [ints(7), torch.tensor([0, 3, 3, 7])]),
    "bilinear": (nn.Bilinear(3, 4, 5, bias=False), lambda: [r(6, 3), r(6, 4)]),
    "prelu": (nn.PReLU(4), lambda: [r(2, 4, 3)]),
    "softmax2d": (nn.Softmax2d(), lambda: [r(2, 4, 3, 3)]),
    "cosine": (nn.CosineSimilarity(1), lambda: [r(4, 6), r(4, 6)]),
    "adaptive_log_softmax": (nn.AdaptiveLogSoftmaxWithLoss(6, 12, [4, 8]), lambda: [r(5, 6), ints(5, high=12)]),
    "upsample": (nn.Upsample(scale_factor=(2, 3), mode="bicubic", align_corners=False), lambda: [r(1, 2, 4, 4)]),
    "dropout_modules": (nn.Sequential(nn.Dropout(0.3), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2), nn.Dropout1d(0.4)), lambda: [r(3, 4, 6)]),
    "rrelu": (nn.RReLU(), lambda: [r(3, 4)]),
    "unflatten": (nn.Sequential(nn.Flatten(1, 2), nn.Unflatten(1, (2, -1)), nn.ChannelShuffle(2)), lambda: [r(2, 4, 3, 5)]),
    "circular3d": (nn.Sequential(nn.CircularPad3d(1), nn.ReplicationPad3d(1), nn.ReflectionPad3d(1)), lambda: [r(1, 2, 3, 3, 3)]),
    "fold": (nn.Fold((4, 5), (2, 2), stride=1, padding=0, dilation=1), lambda: [r(2, 8, 12)]),
    "pixel": (nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(8, 8, 1), nn.PixelShuffle(2)), lambda: [r(1, 2, 4, 6)]),
    "lppool": (nn.LPPool2d(2, 3, 2), lambda: [torch.rand(1, 2, 8, 8) + 0.1]),
}
for _name, (_module, _make) in _MODULES.items():
    PEERS[f"layer_{_name}"] = Peer(_module, _make, rtol=1e-4, atol=1e-5)

each("linalg", lambda: [r(4, 4) + 4 * torch.eye(4), r(4, 3), r(2, 4, 4) + 4 * torch.eye(4)], {
    "inv": lambda a, b, c: (torch.linalg.inv(a), torch.inverse(c), torch.linalg.solve(a, b), torch.linalg.det(a), torch.linalg.slogdet(c), torch.logdet(a @ a.t()), torch.det(c)),
    "chol": lambda a, b, c: (torch.linalg.cholesky(a @ a.t()), torch.cholesky_solve(b, torch.linalg.cholesky(a @ a.t())), torch.linalg.solve_triangular(a.triu(), b, upper=True), torch.linalg.solve_triangular(a.tril(), b, upper=False, unitriangular=True), torch.cholesky_inverse(torch.linalg.cholesky(a @ a.t()))),
    "eigh": lambda a, b, c: (torch.linalg.eigvalsh(a + a.t()), torch.linalg.svdvals(b), torch.linalg.eigh(a @ a.t())[0], torch.linalg.matrix_rank(a.detach()), torch.linalg.cond(a.detach())),
    "powers": lambda a, b, c: (torch.linalg.matrix_power(a, 3), torch.linalg.matrix_power(a, 0), torch.linalg.matrix_power(a, -1), torch.matrix_exp(a * 0.1), torch.linalg.multi_dot([a, a, b]), torch.linalg.pinv(b), torch.linalg.matrix_exp(c * 0.1), torch.trace(a), torch.linalg.vecdot(a, a), torch.linalg.cross(b, b.flip(0)), torch.linalg.vander(b[:, 0])),
    "qr": lambda a, b, c: (torch.linalg.qr(a)[1].abs(), torch.linalg.qr(b, mode="complete")[1].abs(), torch.linalg.lstsq(a, b).solution, torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), torch.linalg.lu(a)[2], torch.linalg.ldl_factor(a.detach() + a.detach().t())[0]),
    "tensor": lambda a, b, c: (torch.linalg.tensorinv(c.reshape(4, 2, 4)[:2, :, :].reshape(4, 4).reshape(2, 2, 4) + torch.eye(4).reshape(2, 2, 4) * 5, ind=2), torch.kron(a[:2, :2], b), torch.block_diag(a, b), torch.einsum("bij,jk,bkl->bil", c, a, c), torch.tensordot(c, a, ([2], [0])), torch.cdist(c, c + 1), torch.baddbmm(c, c, c, beta=0.3), torch.addbmm(a, c, c), torch.addr(a, a[0], a[1]), torch.chain_matmul(a, a, b), torch.addmv(a[0], a, a[1])),
}, rtol=1e-3, atol=1e-4)
each("fft", lambda: [r(4, 6), r(2, 5, 8)], {
    "real": lambda x, y: (torch.fft.rfft(x), torch.fft.rfft(x, 8), torch.fft.rfft(x, dim=0, norm="ortho"), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(y), n=7), torch.fft.rfft2(y), torch.fft.irfft2(torch.fft.rfft2(y)), torch.fft.rfftn(y, dim=(0, 2)), torch.fft.hfft(torch.fft.ihfft(x))),
    "complex": lambda x, y: (torch.fft.fft(x).abs(), torch.fft.ifft(torch.fft.fft(x)).real, torch.fft.fft2(y).real, torch.fft.fftn(y, (4, 4), (1, 2)), torch.fft.fft(x, 3), torch.fft.fft(x, 9, norm="forward"), torch.fft.ifft2(torch.fft.fft2(x)).imag),
    "other": lambda x, y: (torch.fft.fftshift(x), torch.fft.ifftshift(x, 1), torch.fft.fftfreq(6) * x, torch.fft.rfftfreq(6), torch.stft(x.flatten(), 8, 4, window=torch.hann_window(8), return_complex=True), torch.istft(torch.stft(x.flatten(), 8, 4, window=torch.hann_window(8), return_complex=True), 8, 4, window=torch.hann_window(8))),
    "convolution": lambda x, y: torch.fft.irfft(torch.fft.rfft(x, 12) * torch.fft.rfft(x.flip(1), 12), 12),
}, rtol=1e-4, atol=1e-4)
each("windows", lambda: [r(4)], {"all": lambda x: (torch.hann_window(7), torch.hamming_window(6, False), torch.blackman_window(5), torch.bartlett_window(6), torch.kaiser_window(5, True, 3.0), torch.signal.windows.gaussian(5), torch.linspace(3, -2, 6), torch.linspace(0, 10, 5, dtype=torch.int64), torch.logspace(-1, 1, 4, base=2), torch.arange(5, 0, -2), torch.arange(0, -3, -0.7), torch.arange(3, dtype=torch.float16), torch.eye(3, 5), torch.eye(4, dtype=torch.int32), torch.tril_indices(3, 5, -1), torch.triu_indices(4, 4, 2), torch.full((2, 2), 3 + 1j), torch.full((), True), torch.empty(0), torch.zeros(2, 0, 3), torch.vander(x), torch.complex(x, x), torch.polar(x.abs(), x), torch.heaviside(x, x), torch.meshgrid(x, x[:2], indexing="ij"), torch.combinations(x, 2, True), torch.cartesian_prod(x, x[:2]))}, gradients=False)
each("quantized", lambda: [r(4, 6) * 3, torch.rand(4) + 0.1, torch.zeros(4, dtype=torch.int32)], {
    "fake": lambda x, s, z: (torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), torch.fake_quantize_per_channel_affine(x, s, z, 0, -8, 7), torch.fake_quantize_per_tensor_affine(x, s[0], z[0], 0, 255), torch.fake_quantize_per_tensor_affine(x, 0.05, 0, 0, 15)),
})
each("quantized_ops", lambda: [r(4, 6) * 3], {
    "by_hand": lambda x: (torch.clamp(torch.round(x / 0.1) + 3, 0, 255).to(torch.uint8), (torch.clamp(torch.round(x / 0.1), -128, 127).to(torch.int8).float() * 0.1), torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 3, 0, 255, torch.uint8), torch.ops.quantized_decomposed.dequantize_per_tensor(torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8), 0.1, 3, -128, 127, torch.int8)),
    "dequantized": lambda x: (torch.quantize_per_tensor(x, 0.1, 10, torch.quint8).dequantize(), torch.quantize_per_channel(x, torch.full((4,), 0.1), torch.zeros(4), 0, torch.qint8).dequantize()),
}, gradients=False)
each("distributions", lambda: [r(4, 6), torch.rand(4, 6) + 0.1], {
    "log_probs": lambda x, s: (Normal(x, s, validate_args=False).log_prob(x + 1), Categorical(logits=x, validate_args=False).log_prob(torch.arange(4)), Categorical(probs=s, validate_args=False).entropy(), Bernoulli(logits=x, validate_args=False).log_prob((x > 0).float()), Laplace(x, s, validate_args=False).log_prob(x * 2), Exponential(s, validate_args=False).log_prob(s * 2), kl_divergence(Normal(x, s), Normal(x + 1, s * 2)), Normal(x, s).cdf(x + 1), Normal(x, s).entropy(), Uniform(x, x + s).log_prob(x + s / 2), Gamma(s, s).log_prob(s + 1), Beta(s, s).log_prob(torch.full((4, 6), 0.3))),
    "samples": lambda x, s: (Normal(x, s, validate_args=False).rsample(), Uniform(x, x + s, validate_args=False).rsample(), Normal(x, s, validate_args=False).sample((2,))),
}, rtol=1e-4, atol=1e-5)
each("drawn", lambda: [torch.rand(5, 7)], {
    "likes": lambda x: (torch.rand_like(x), torch.randn_like(x, dtype=torch.float64), torch.randint_like(x, 5), torch.randint_like(x, 2, 9), torch.bernoulli(x), torch.bernoulli(x, 0.3), torch.empty_like(x).normal_(2, 3), torch.empty_like(x).uniform_(-1, 1), torch.randn(3, dtype=torch.float16), torch.rand(3, dtype=torch.bfloat16)),
    "sampled": lambda x: (torch.multinomial(x, 3), torch.multinomial(x, 9, replacement=True), torch.normal(x, 0.5), torch.normal(0.0, x), torch.normal(1.0, 2.0, (3, 2)), torch.poisson(x * 4), torch.randperm(9), torch.empty(6).exponential_(2), torch.empty(6).geometric_(0.4), torch.empty(6).cauchy_(), torch.empty(6).log_normal_(), torch.empty(6).random_(9)),
    "dropped": lambda x: (F.dropout(x, 0.3), F.dropout(x, 0.9) * 2, F.dropout2d(x[None, None], 0.5), F.dropout3d(x[None, None, None], 0.5), F.alpha_dropout(x, 0.4, True), F.dropout(x, 1.0), F.dropout(x, 0.0), F.feature_alpha_dropout(x[None], 0.3, True), F.gumbel_softmax(x, hard=True), F.rrelu(x - 0.5, training=True)),
    "complex": lambda x: (torch.randn(4, dtype=torch.complex64), torch.rand(3, dtype=torch.complex128)),
    "in_order": lambda x: (lambda a: (a, F.dropout(x, 0.5), torch.rand(2), a + torch.randn(())))(torch.rand(3)),
}, gradients=False)
each("masked", lambda: [r(4, 6), bools(4, 6), ints(4, 6, high=4)], {
    "by_mask": lambda x, m, i: (x[m], x.masked_select(m), x.masked_scatter(m, x.flip(0)), x.masked_fill(m, 1), torch.where(m), m.nonzero(), m.nonzero(as_tuple=True), x[m.any(1)], x[:, m.any(0)], x[m].sum(), x[m.nonzero(as_tuple=True)], torch.argwhere(m)),
    "put": lambda x, m, i: (x.index_put((m,), torch.tensor(0.5)), x.index_put((m,), x[m] * 2), x.index_put((m.any(1),), torch.zeros(6)), x.index_put((torch.tensor([0, 1]), m[0].nonzero()[:1, 0]), torch.tensor(3.0), accumulate=True), x.put(torch.tensor([0, -1]), torch.tensor([5.0, 6.0])), x.take(torch.tensor([[0, -1]]))),
    "choose": lambda x, m, i: (torch.take_along_dim(x, i, 0), torch.take_along_dim(x, i.flatten()), x.gather(0, i), x.scatter_add(0, i, x), x.scatter_reduce(0, i, x, "prod"), torch.select_scatter(x, x[:, 0], 1, 2), x.index_select(0, i[0]), x.index_copy(0, torch.tensor([3, 1]), x[:2])),
})
each("slices", lambda: [r(7, 9, 4)], {
    "basic": lambda x: (x[1:-1:2, ::3], x[-3:], x[:, -1], x[..., 0], x[None, :, None], x[2:2], x[5:2], x[100:], x[-100:3], x[:, 3:100:4], x[0, 1:, ::2], x[True], x[False], x[..., None], x[:, [0, 2]], x[[0, 3], [1, 2]], x[[True, False] * 3 + [True]], x[torch.tensor(2)], x[:, torch.tensor([1, 0]), ::2], x[torch.tensor([[0, 1]]), :, torch.tensor([[2], [3]])]),
    "scatter": lambda x: (torch.slice_scatter(x, x[:2] * 2, 0, 1, 7, 3), x.slice_scatter(x[:, :3], 1, -3), x.select_scatter(x[0], 0, -1), x.diagonal_scatter(x[:, 0, 0][:7, None].expand(7, 4).t(), 0, 0, 1), torch.as_strided_scatter(x.detach(), x[0, :2, :2], (2, 2), (3, 1), 2), x.as_strided((3, 3), (5, 2), 1)),
    "negative": lambda x: (x.flip(0)[1:3], x.flip((0, 2))[:, ::2], x[torch.arange(-1, -8, -1)], x.roll(-3, 1), x.rot90(2, (0, 1)), x.narrow(0, -2, 2), x.select(1, -9), x.unfold(1, 3, 3), x.unfold(-1, 4, 1), x.diagonal(-2, 0, 1), x.diagonal(3, 1, 0), x.movedim((0, 2), (2, 1)), x.swapaxes(0, -1)),
})
