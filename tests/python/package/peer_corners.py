"""Functions at corners of a CPU compiler: Python numbers as arguments, gradients at ties and kinks, writes to views of inputs, memory formats that
are ambiguous, indices with every kind of subscript, limits of ranges, losses with everything ignored; they join those of `peer_cases`.

Most are called again with other sizes and numbers: `then` names those calls.
"""

import torch
import torch.nn.functional as F
from peer_cases import bools, each, inf, ints, nan, r


def many(make, *sizes):
    """A factory of arguments for each size, the first one and those of further calls."""
    first, *then = ((lambda n=n: make(n)) for n in sizes)
    return first, tuple(then)


def several(prefix, make, sizes, functions, **settings):
    first, then = many(make, *sizes)
    each(prefix, first, functions, then=then, **settings)


several("corner_python_numbers", lambda k: [r(5, 4), *k], [(3, 0.5, True), (1, 2.0, False), (0, inf, True), (-2, nan, False), (2**33, -0.0, True)], {
    "as_values": lambda x, n, s, b: (x + n, x * s, n - x, x * b, x.clamp(min=n), torch.full((2,), n), torch.full((2,), s), torch.full((2,), b), n * 2, s / 2, not b),
    "as_conditions": lambda x, n, s, b: (x + 1 if b else x - 1, x * (n if n > 2 else 2), torch.where(x > s, x, n), b and n > 0, x.mul(3) if s == s else x),
    "mixed": lambda x, n, s, b: (torch.tensor([n, 1]) + 1, torch.tensor([s, 1.0]), torch.tensor(b), x.new_tensor([n, s]), torch.add(x, x, alpha=s), torch.scalar_tensor(n), x.new_full((2,), b)),
    "powers": lambda x, n, s, b: (x.abs() ** min(n, 4), x.abs().pow(s), torch.pow(2, torch.tensor([n % 7, 3])), s * x.abs().sqrt(), x.double() * n, x.half() * s),
    "integers": lambda x, n, s, b: (x.int() + n % 100, x.int() * b, x.long() + n, x.long() // (abs(n) + 1), x.long() % (n if n else 5), x.int() < n % 1000, x.int().float() * n),
})
several("corner_python_sizes", lambda k: [r(12, 6), *k], [(3, 2), (4, 1), (1, 6), (2, 3)], {
    "reshaped": lambda x, n, m: (x.view(n, -1), x.reshape(12 // n, n, 6), x.split(n), x.chunk(m, 1), x[:n], x[n:, :m], x[-n], x.narrow(0, n - 1, m), x.select(1, m - 1)),
    "made": lambda x, n, m: (torch.arange(n), torch.zeros(n, m), torch.eye(n, m), torch.ones(n).cumsum(0) * m, torch.linspace(0, n, m + 1), torch.arange(n, n * m + 1, m), torch.tril_indices(n, m)),
    "tiled": lambda x, n, m: (x.repeat(n, m), x[0].expand(n, 6), x.roll(n, 0), x.roll((n, m), (0, 1)), F.pad(x, (n, m)), F.pad(x, (-m + 1, n)), x.unfold(0, n, m), x.diagonal(n - m)),
    "top": lambda x, n, m: (x.topk(m, 1), x.kthvalue(m, 1).values, x.sort(1).values[:, :m], x.flatten().topk(n).values, x.tril(n - 3), x.triu(-m), x.unflatten(0, (n, -1))),
    "windows": lambda x, n, m: (F.avg_pool1d(x[None], m), F.max_pool1d(x[None], m, 1), F.adaptive_avg_pool1d(x[None], n), F.interpolate(x[None], n * m), F.unfold(x[None, None], (n, m))),
})


def sized(n):
    return [r(n, 7), r(n)]


several("corner_size_values", sized, [6, 3, 1, 11], {
    "arithmetic": lambda x, y: (x * x.shape[0], x / x.shape[0], x + x.size(0) // 2, x - x.numel() ** 0.5, x % x.shape[0], x.shape[0] - x, x.sum() / x.numel(), y * (1 / y.shape[0])),
    "filled": lambda x, y: (torch.full((2,), x.shape[0]), torch.full((x.shape[0],), x.shape[0] * 1.0), x.new_full((3,), x.shape[0]), torch.tensor([x.shape[0], 3]), torch.tensor(x.shape[0] * 2.0), torch.tensor(x.shape), x.new_tensor(x.shape[0])),
    "ranges": lambda x, y: (torch.arange(x.shape[0]) * x.shape[1], torch.arange(x.shape[0], 0, -1), torch.linspace(0, x.shape[0], 5), torch.arange(x.shape[0] / 2), torch.arange(0, x.shape[0], 2) + y.shape[0], torch.linspace(-1, 1, x.shape[0])),
    "chosen": lambda x, y: (x[x.shape[0] // 2], x[: x.shape[0] // 2], x[-(x.shape[0] // 3) :], y[x.shape[0] - 1], x[min(x.shape[0] - 1, 4)], x.narrow(0, x.shape[0] // 2, 1), y[y.shape[0] // 2 :: 2]),
    "conditions": lambda x, y: (x * 2 if x.shape[0] > 4 else x * 3, x.shape[0] % 2 == 0, max(x.shape), torch.where(torch.arange(x.shape[0]) < x.shape[0] // 2, y, 0.0), x.sum(0 if x.shape[0] > x.shape[1] else 1)),
    "joined": lambda x, y: (torch.cat([x, x[:1]]), torch.stack([y, y]), torch.cat([y, torch.zeros(x.shape[0] * 2)]), x.repeat(1, x.shape[0]), F.pad(y, (x.shape[0], 1)), y.expand(x.shape[0], -1), torch.outer(y, torch.arange(x.shape[0]).float())),
    "padded_to_multiple": lambda x, y: (F.pad(x, (0, 0, 0, -x.shape[0] % 4)).view(-1, 4, 7).sum(1), F.pad(y, (0, (8 - y.shape[0]) % 8)), y[: y.shape[0] // 2 * 2].view(-1, 2)),
    "masks": lambda x, y: (torch.ones(x.shape[0], x.shape[0]).tril(), torch.zeros(x.shape[0], x.shape[0]).fill_diagonal_(x.shape[0]), torch.eye(x.shape[0])[0], (torch.arange(x.shape[0])[:, None] >= torch.arange(x.shape[0])).float() @ x),
    "statistics": lambda x, y: (x.var(0, correction=0), x.mean(0, keepdim=True).expand_as(x), x.std(1), (x - x.mean(0)) / x.shape[0] ** 0.5, F.layer_norm(x, x.shape[1:]), y.softmax(0).sum(), x.cumsum(0)[-1]),
})
# Gradients where a function has several slopes, or none.
each("corner_slopes", lambda: [torch.tensor([0.0, -0.0, 1.0, 1.0, -1.0, 2.0]), torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])], {
    "ties": lambda x, y: (x.max(), x.min(), x.amax(0), y.amax(1), y.amin((0, 1)), torch.maximum(x, x.flip(0)), torch.minimum(x, torch.tensor(1.0))),
    "ties_of_rows": lambda x, y: (y.max(1).values, y.min(0).values, y.median(1).values, x.median(), y.sort(1).values, y.topk(2, 1).values, y.cummax(1).values, y.cummin(0).values, x.kthvalue(3).values, y.mode(1).values),
    "at_zero": lambda x, y: (x.abs(), x.relu(), F.relu6(x), F.leaky_relu(x), F.elu(x), F.hardtanh(x), F.hardswish(x - 3), F.hardsigmoid(x * 3), F.softshrink(x, 1.0), F.hardshrink(x, 1.0), F.threshold(x, 1.0, 5.0), F.prelu(x, torch.tensor([0.2])), x.sign(), x.clamp(0, 1), x.clamp(min=torch.tensor(1.0))),
    "infinite": lambda x, y: (x.sqrt(), x.abs().sqrt(), x.log(), x.reciprocal(), x.abs().pow(0.5), x.rsqrt(), x.abs() ** 0.0, x.asin(), x.atanh()),
    "powers": lambda x, y: (x**0, x**1, x**2, x.pow(x.flip(0)), torch.pow(0.0, x), torch.pow(2.0, x), x.abs().pow(1.5), x.pow(torch.tensor(2.0))),
    "products": lambda x, y: (x.prod(), y.prod(0), y.prod(1), x[2:].prod(), x.cumprod(0), y.cumprod(1), x[:3].cumprod(0)),
    "norms": lambda x, y: (y.norm(dim=1), y.norm(1, dim=1), y.norm(inf, dim=0), y[1].norm(), torch.linalg.vector_norm(y, 3, 1), F.normalize(y, dim=1), F.cosine_similarity(y[0], y[1], 0), torch.dist(y[0], y[0]), torch.cdist(y, y)),
    "masked": lambda x, y: (torch.where(x > 0, x.sqrt(), x), torch.where(x > 0, x.log(), 0.0), x.masked_fill(x <= 0, 1.0).log(), y.masked_fill(y == 0, -inf).softmax(1), y.masked_fill(y == 0, -inf).logsumexp(1), F.log_softmax(y.masked_fill(y > 0, -inf), 1)),
    "statistics": lambda x, y: (x[:1].var(correction=0), y.std(1), y[1].std(), y.var((0, 1)), x.mean() * 0, torch.var_mean(y, 1), y.std(0, correction=0)),
    "piecewise": lambda x, y: (x.round() * x, x.floor() + x, x.frac(), x.trunc(), torch.fmod(x, 1.0), x % 1.0, x // 1.0, torch.atan2(x, x.flip(0)), torch.hypot(x, x), torch.copysign(x, torch.tensor(-0.0)), torch.heaviside(x, torch.tensor(0.5)), torch.nan_to_num(x / x)),
    "losses": lambda x, y: (F.l1_loss(x, x.flip(0)), F.smooth_l1_loss(x, x.flip(0), beta=0.0), F.huber_loss(x, x.flip(0), delta=1.0), F.hinge_embedding_loss(x, torch.tensor([1.0, -1, 1, -1, 1, -1])), F.margin_ranking_loss(x, x, torch.ones(6)), F.soft_margin_loss(x, torch.ones(6)), F.kl_div(y, y.abs(), reduction="sum"), F.binary_cross_entropy(y, y)),
})
# Writes to views of inputs.
several("corner_written_views", lambda n: [r(n, 6), r(2, n, 6), ints(n, 6, high=9)], [4, 2, 7], {
    "steps": lambda x, y, n: (x[:, ::2].mul_(2), x[1:, 1::3].add_(1), x.t()[0].zero_(), x.view(-1)[3:9:2].fill_(7), x.clone())[-1],
    "diagonals": lambda x, y, n: (x.diagonal().copy_(torch.arange(float(min(x.shape)))), y.diagonal(0, 1, 2).add_(1), y[0].diagonal(-1).mul_(0), y.sum(0))[-1],
    "chained": lambda x, y, n: (y[1].t()[1:3].unsqueeze(0).add_(x[:, 1:3].t()), y.transpose(0, 2)[2, :, 1].neg_(), y.flatten()[-6:].copy_(x[0]), y * 1)[-1],
    "reads_between": lambda x, y, n: (lambda a: (a.clone(), x.add_(1), a + 0, a.mul_(3), x.sum(), a))(x[0]),
    "swapped": lambda x, y, n: (lambda a: (x[0].copy_(x[1]), x[1].copy_(a), x * 1)[-1])(x[0].clone()),
    "by_index": lambda x, y, n: (x.__setitem__((slice(None), [0, 2]), 5.0), x.__setitem__(n > 5, 0.0), x.__setitem__(torch.tensor([0, -1]), x[:2] * 1), n.__setitem__((..., -1), 3), n[:, 1:].__ilshift__(1), (x * 1, n * 1))[-1],
    "masked": lambda x, y, n: (x[:, :3].masked_fill_(n[:, :3] > 4, -1.0), x[:, 3:].masked_scatter_(n[:, 3:] > 4, y[0]), x.where(n > 2, torch.zeros(())))[-1],
    "scattered": lambda x, y, n: (x.scatter_(1, n[:, :2] % 6, 9.0), y[0].scatter_add_(0, n[:, :3] % x.shape[0], x[:, :3]), y[1].index_add_(0, torch.tensor([0, 1]), x[:2], alpha=2), x[:, 2:4].index_fill_(1, torch.tensor([1]), 4.0), y * 1)[-1],
    "expanded": lambda x, y, n: (y.add_(x[:1]), x.mul_(x[:, :1].clone()), x.sub_(y[0, 0].sum()), y[:, :1].expand(2, 3, 6) + 1)[-1],
    "returned": lambda x, y, n: (x[1:].add_(1), x, x[:1].mul_(2), y[0], y[0].t(), n.add_(1)),
    "into_views": lambda x, y, n: (torch.add(x[:2], 1, out=y[0][:2]), torch.mul(x[:, 0], 2, out=x[:, 1]), torch.sum(x, 1, out=y[1, :, 0]), torch.cat([x[:1], x[1:2]], out=y[0][:2]), y * 1)[-1],
    "wider_source": lambda x, y, n: (x[0].copy_(n[0]), n[0].copy_(x[1] * 10), x[1].add_(n[1]), x.half().mul_(n), n.div_(2, rounding_mode="floor"), n * 1)[-1],
}, gradients=False)
each("corner_complex_views", lambda: [torch.randn(3, 4, dtype=torch.complex64), r(3, 4, 2)], {
    "parts_written": lambda z, x: (lambda w: (w.real.add_(1), w.imag.mul_(2), torch.view_as_real(w)[0].zero_(), w))(z * 1)[-1],
    "as_complex": lambda z, x: (torch.view_as_complex(x) * z, torch.view_as_real(z.conj().resolve_conj()), torch.view_as_real(z) + x, z.real @ z.imag.t(), torch.view_as_complex(x * 2).abs()),
    "conjugates": lambda z, x: (z.conj() * z, z.mH @ z, z.conj().imag, z.conj().real + 1, (z.conj() + 1).conj(), torch.vdot(z[0], z[1]), z.conj().clone(), z.conj().sum(), -z.imag, z.adjoint()),
    "reduced": lambda z, x: (z.sum(0), z.mean(1), z.prod(1), z.cumsum(0), z.cumprod(1), z.norm(), z.abs().max(), z.var(0), z.std(), torch.linalg.vector_norm(z, dim=1)),
    "moved": lambda z, x: (torch.where(z.real > 0, z, z.conj()), torch.cat([z, x[..., 0]]), z.roll(1), z.flip(0), F.pad(z, (1, 1)), z.index_select(1, torch.tensor([3, 0])), z.tril(), z.t().contiguous(), z.masked_fill(z.real > 0, 1j), z[z.imag > 0].sum()),
    "arithmetic": lambda z, x: (z * 2, z + 1j, z / (1 + 2j), 1 / z, z**2, z**-1, z - x[..., 0], z * torch.tensor(2.0, dtype=torch.float64), z == z.conj(), z.reciprocal(), torch.polar(x[..., 0].abs(), x[..., 1]), torch.complex(x[..., 0], x[..., 1]), z.angle(), z.sgn(), z @ z.t()),
    "at_zero": lambda z, x: ((z * 0).abs(), (z * 0).sgn(), (z * 0).angle(), torch.sqrt(z * z), (z * 0 + 1).log(), z.exp().log()),
}, rtol=1e-4, atol=1e-4)
several("corner_subscripts", lambda n: [r(n, 5, 3), ints(4, high=n), bools(n, 5), ints(2, 1, high=5)], [6, 3, 9], {
    "mixed": lambda x, i, m, j: (x[i, :, 1], x[i, 2], x[:, j, 1], x[i[:2, None], j[:, 0]], x[..., i % 3], x[i, ..., i % 3], x[None, i], x[i[:, None], :, i % 3], x[:, None, j]),
    "masks": lambda x, i, m, j: (x[m], x[m, 1], x[m.any(1)], x[:, m[0]], x[m][:, 0], x[m.all(1), 0], x[~m].sum(), x[torch.zeros(x.shape[0], dtype=torch.bool)], x[m, None], x[:, :, [True, False, True]]),
    "negative": lambda x, i, m, j: (x[-i - 1], x[:, -j - 1], x.index_select(0, i), x.take(-i - 1), x[-1, -i % 5], x.gather(1, (j % 5).expand(2, 5)[..., None])),
    "written": lambda x, i, m, j: (lambda y: (y.index_put_((i, j[0]), torch.tensor(2.0), accumulate=True), y.index_put_((i,), x[:4, :1], accumulate=True), y.__setitem__((m, 0), -1.0), y.__setitem__((slice(None), j), 3.0), y.__setitem__((..., [0, 2]), y[..., [1, 1]]), y))(x.clone())[-1],
    "accumulated": lambda x, i, m, j: (x.index_put((i, i % 5), torch.ones(3), accumulate=True), x.index_put((i,), torch.ones(5, 1), True), x.index_put((i[:, None], j[:, 0] % 5), x.new_ones(4, 2, 3), True), x.index_add(1, i % 5, x[:, :4], alpha=-0.5), x.index_add(2, torch.tensor([0, 0]), x[..., :2])),
    "index_functions": lambda x, i, m, j: (x.index_copy(1, torch.tensor([4, 0]), x[:, :2]), x.index_fill(2, torch.tensor([0, -1]), 2.5), x.index_reduce(0, i, x[:1].expand(4, 5, 3), "amax", include_self=False), x.index_reduce(1, i % 5, x[:, :4], "mean"), x.index_reduce(0, i, x[:1].expand(4, 5, 3), "prod")),
    "scatters": lambda x, i, m, j: (lambda k: (x.scatter_reduce(0, k, x, "sum", include_self=False), x.scatter_reduce(0, k, x, "mean"), x.scatter_reduce(0, k, x, "amin", include_self=False), x.scatter_reduce(0, k, x.abs() + 1, "prod"), x.scatter(0, k, 2.0, reduce="multiply"), x.scatter_add(0, k, x), x.gather(0, k)))((torch.arange(x.numel()).view_as(x) * 7 + 3) % x.shape[0]),
    "along": lambda x, i, m, j: (torch.take_along_dim(x, x.argsort(0), 0), torch.take_along_dim(x, x.argmax(1, keepdim=True), 1), x.put(torch.tensor([0, -1]), torch.tensor([1.0, 2.0])), x.put(torch.tensor([1, 1]), torch.tensor([1.0, 2.0]), accumulate=True), x.masked_scatter(m[..., None], x.flip(0)), x.select_scatter(x[0] * 2, 0, 1), x.slice_scatter(x[:, :2] * 2, 1, 1, 5, 2), x.diagonal_scatter(x.diagonal() * 0)),
}, rtol=1e-4, atol=1e-5)
several("corner_formats", lambda n: [torch.randn(n, 3, 5, 4).contiguous(memory_format=torch.channels_last), r(n, 3, 5, 4), r(1, 3, 1, 1)], [2, 3], {
    "pointwise": lambda a, b, c: (a + 1, a + b, b + a, a * c, c - b, a.exp(), torch.where(a > 0, a, b), a.clone(), a.double(), a.mT + b.mT, torch.empty_like(a).fill_(1), torch.zeros_like(a, memory_format=torch.contiguous_format), b.to(memory_format=torch.channels_last)),
    "reduced": lambda a, b, c: (a.sum(1), a.sum((2, 3), keepdim=True), a.mean(0), a.amax(1, keepdim=True), a.softmax(1), a.var(1), a.argmax(1), a.cumsum(2), a.sort(1).values, a.std((0, 2, 3)), a.norm(dim=(1, 2)), a.any(3), a.prod(1)),
    "moved": lambda a, b, c: (torch.cat([a, a], 1), torch.cat([a, b], 1), torch.cat([b, a]), torch.stack([a, a]), a.flip(1), a.roll(1, 2), F.pad(a, (1, 1)), a.repeat(1, 2, 1, 1), a[:, 1:], a.permute(0, 2, 3, 1) + 1, a.flatten(2), a.reshape(a.shape[0], -1), a.expand(2, *a.shape), a.split(2, 1), a.tril(), a.unfold(2, 2, 1)),
    "layers": lambda a, b, c: (F.conv2d(a, torch.ones(4, 3, 2, 2)), F.max_pool2d(a, 2, 1), F.avg_pool2d(a, 2), F.interpolate(a, scale_factor=2), F.batch_norm(a, torch.zeros(3), torch.ones(3), training=True), F.group_norm(a, 3), F.layer_norm(a, (5, 4)), F.adaptive_avg_pool2d(a, (2, 3)), F.pixel_shuffle(torch.cat([a] * 4, 1), 2), F.grid_sample(a, torch.zeros(a.shape[0], 2, 2, 2), align_corners=True), F.relu(a), F.dropout(a, 0.0)),
    "written": lambda a, b, c: (lambda y: (y.add_(b), y[:, 1].mul_(2), y.permute(0, 2, 3, 1)[..., 0].zero_(), y, y.view_as(y), y.stride(), y.is_contiguous(memory_format=torch.channels_last)))(a.clone()),
    "asked": lambda a, b, c: (a.stride(), a.is_contiguous(), a.is_contiguous(memory_format=torch.channels_last), c.is_contiguous(memory_format=torch.channels_last), a.contiguous().stride(), (a + b).stride(), (b + a).stride(), c.clone(memory_format=torch.channels_last).stride(), torch.empty_like(a).stride(), a[:, :1].stride(), a.new_empty(a.shape).stride(), a.permute(1, 0, 2, 3).clone().stride()),
    "five": lambda a, b, c: (lambda v: (v + 1, v * v[:, :1], v.sum(1), F.conv3d(v, torch.ones(2, 3, 1, 2, 2)), F.avg_pool3d(v, (1, 2, 2)), v.contiguous(), v.amax((1, 2)), torch.cat([v, v], 2)))(torch.stack([a, b], 2).contiguous(memory_format=torch.channels_last_3d)),
}, rtol=1e-4, atol=1e-5)
each("corner_limits_of_ranges", lambda: [r(3)], {
    "arange": lambda x: (torch.arange(0, 1, 0.1), torch.arange(0, 0.3, 0.1), torch.arange(1, 0, -0.25), torch.arange(0), torch.arange(5, 5), torch.arange(2.5, dtype=torch.int64), torch.arange(0, 10, 3, dtype=torch.float16), torch.arange(-3, 3.5), torch.arange(2**53, 2**53 + 4), torch.arange(0, 255, 50, dtype=torch.uint8)),
    "linspace": lambda x: (torch.linspace(0, 1, 1), torch.linspace(0, 1, 0), torch.linspace(3, 3, 4), torch.linspace(5, -5, 4), torch.linspace(0, 10, 4, dtype=torch.int64), torch.linspace(-2, 2, 7, dtype=torch.float16), torch.linspace(0, 1, 3, dtype=torch.complex64), torch.linspace(x[0], 1, 4), torch.linspace(x[0], x[1], 3), torch.linspace(1e30, 1e38, 5), torch.linspace(0, 255, 6, dtype=torch.uint8)),
    "logspace": lambda x: (torch.logspace(0, 2, 3), torch.logspace(0, 3, 4, base=2), torch.logspace(0, 1, 1), torch.logspace(0, 3, 4, dtype=torch.int64), torch.logspace(-1, 1, 3, base=0.5), torch.logspace(0, 1, 0)),
    "filled": lambda x: (torch.full((2,), True), torch.full((2,), 3), torch.full((2,), 2.5, dtype=torch.int32), torch.full((), inf), torch.full((0, 3), 1.0), torch.full((2,), -1, dtype=torch.uint8), torch.full((2,), 1 + 2j), torch.full((2,), 70000.0, dtype=torch.float16), x.new_zeros(2, 0), torch.zeros((), dtype=torch.bool), torch.full_like(x, nan), torch.ones(2, dtype=torch.complex128)),
    "windows": lambda x: (torch.hann_window(5), torch.hamming_window(6, periodic=False), torch.bartlett_window(4), torch.blackman_window(7), torch.kaiser_window(5, beta=4.0), torch.hann_window(1), torch.hann_window(0), torch.eye(3, 5), torch.eye(0), torch.vander(x, 3), torch.tril_indices(3, 4, -1), torch.triu_indices(4, 2), torch.combinations(x), torch.cartesian_prod(x, x)),
    "conversions": lambda x: (torch.tensor([3.99, -3.99, 0.5]).int(), torch.tensor([300.0, 3.5]).to(torch.uint8), torch.tensor([2**31, -1]).to(torch.int32), torch.tensor([1e-8, 65520.0]).half(), torch.tensor([3.4e38]).bfloat16(), torch.tensor([True, False]).float(), torch.tensor([257, -1, 128]).to(torch.int8), torch.tensor([2**24 + 1]).float(), torch.tensor([2.0**63]).double().to(torch.float32)),
})
each("corner_wide_shifts", lambda: [torch.tensor([1, -1, 127, -128, 5], dtype=torch.int8), torch.tensor([1, 255, 128, 0, 7], dtype=torch.uint8), torch.tensor([1, -1, 2**62, -(2**63), 5]), torch.tensor([0, 7, 8, 31, 63])], {
    "left": lambda a, b, c, s: (a << s.to(torch.int8), b << s.to(torch.uint8), c << s, c.int() << s.int(), a << 7, b << 9, c << 63, c.short() << 15, a << 0),
    "right": lambda a, b, c, s: (a >> s.to(torch.int8), b >> s.to(torch.uint8), c >> s, c.int() >> s.int(), a >> 7, b >> 9, c >> 63, c.short() >> 15, a >> 0),
    "promoted": lambda a, b, c, s: (a << s, b >> s, a << torch.tensor(3), b << True, 1 << s, 3 << b, -1 >> s.int(), a.bitwise_left_shift(2), torch.bitwise_right_shift(255, b.int() % 8)),
    "bits": lambda a, b, c, s: (a & b, a | 64, c ^ -1, ~b, a & True, torch.bitwise_or(1, b), a.bitwise_and(torch.tensor(200)), b ^ a, a.logical_and(b)),
    "wrapped": lambda a, b, c, s: (a + 100, a * a, b + b, b - 200, -a, a.abs(), b * 2 + 1, a - a.int(), c + c, c * 3, -c, c.abs(), a.square(), b.square(), torch.neg(b), a.cumsum(0, dtype=torch.int8), b.sum(dtype=torch.uint8), a.prod(dtype=torch.int8), b.cumprod(0, dtype=torch.uint8)),
    "compared": lambda a, b, c, s: (a < b, a == b, b > -1, b == 256, a < 200, a == -128.0, c < 2.0**62, c == 2.0**63, torch.maximum(a, b), torch.clamp(b, -5, 300), torch.clamp(a, max=200), a.clamp(min=-300), torch.isin(a, torch.tensor([1, 5])), a.ne(127.5)),
    "divided": lambda a, b, c, s: (a // 3, a % 3, a // -3, a % -3, b // 3, b % 5, torch.div(a, 3, rounding_mode="trunc"), a / 0.0, a / 2, torch.fmod(a, -3), c // 7, c % 7, torch.remainder(c, -7), 100 // (b.int() + 1), a // 2.5, b % 2.5, c // 2.0),
}, gradients=False)
each("corner_ordered", lambda: [torch.tensor([[3.0, nan, 1.0, 3.0], [inf, -inf, -0.0, 0.0], [2.0, 2.0, 2.0, nan]]), ints(3, 6, high=3), torch.tensor([1, 0, 2, 1], dtype=torch.uint8)], {
    "sorted": lambda x, n, u: (x.sort(1, stable=True), x.sort(0, descending=True, stable=True), x.argsort(1, stable=True), n.sort(stable=True), n.argsort(1, descending=True, stable=True), u.sort(stable=True), x.msort(), n.bool().sort(stable=True), x.half().sort(1, stable=True)),
    "extremes": lambda x, n, u: (x.max(1), x.min(0), x.argmax(1), x.argmin(), n.max(1), n.argmin(0), x.cummax(1), x.cummin(0), n.cummax(1), torch.aminmax(x, dim=1), x.nan_to_num().topk(2, 1).values, u.argmax(), torch.fmax(x[0], x[2]), x.amax(0), n.bool().max(1)),
    "middle": lambda x, n, u: (x.median(1).values, x.nanmedian(1).values, n.median(1).values, x.nanmedian(), n.median(), n.kthvalue(3, 1).values, n.mode(1).values, u.median(), torch.quantile(x[2, :3], 0.3), torch.nanquantile(x, torch.tensor([0.0, 0.4, 1.0]), 1), n.float().quantile(0.5, 1, keepdim=True)),
    "interpolated": lambda x, n, u: tuple(torch.quantile(n.float(), 0.35, dim=1, interpolation=way) for way in ("linear", "lower", "higher", "midpoint", "nearest")),
    "searched": lambda x, n, u: (lambda s: (torch.searchsorted(s, torch.tensor([0.5, 1.0, nan, inf])), torch.searchsorted(s, torch.tensor([1.0, 2.0]), right=True), torch.searchsorted(s, 2.0), torch.searchsorted(s, torch.tensor([1.0]), side="left", out_int32=True), torch.searchsorted(s.flip(0), torch.tensor([1.5]), sorter=torch.tensor([3, 2, 1, 0])), torch.bucketize(x, s), torch.bucketize(x.nan_to_num(), s, right=True), torch.bucketize(n, torch.tensor([0, 1])), torch.bucketize(torch.tensor([1.0]), torch.tensor([]))))(torch.tensor([0.0, 1.0, 1.0, 2.0])),
    "rows_searched": lambda x, n, u: (torch.searchsorted(n.sort(1).values, n), torch.searchsorted(n.sort(1).values.float(), n[:, :2].float() + 0.5, right=True), torch.searchsorted(n[0].sort().values.to(torch.uint8), u), torch.searchsorted(torch.zeros(3, 0), torch.zeros(3, 2))),
    "counted": lambda x, n, u: (torch.histc(n.float(), 3), torch.histc(n.float(), 4, 0, 2), torch.bincount(u), torch.bincount(u, minlength=5), torch.bincount(n[0], weights=n[1].float()), n.unique(return_counts=True), n.unique_consecutive(), torch.unique(n, dim=0), torch.isin(n, u), n.flatten().unique(sorted=True, return_inverse=True)),
    "scanned": lambda x, n, u: (x.cumsum(1), x.nan_to_num(0, 1, -1).cumprod(1), x.logcumsumexp(1), n.cumsum(0), u.cumsum(0), n.cumprod(1), x.diff(dim=0), n.diff(n=2), torch.trapezoid(n.float()), torch.cumulative_trapezoid(n.float(), dim=0), n.float().flip(1).logcumsumexp(1)),
}, gradients=False)
several("corner_joined_oddly", lambda n: [r(n, 4), r(2, 4), ints(n, 4)], [3, 1, 8], {
    "cat": lambda x, y, n: (torch.cat([torch.empty(0), x]), torch.cat([x, n]), torch.cat([n, y.half(), x.double()]), torch.cat([x]), torch.cat([x, y, x[:0]]), torch.cat([x[:, :1], x.t()[:2].t()], -1), torch.cat([x.bool(), n]), torch.cat([x.half(), torch.ones(1, 4, dtype=torch.bfloat16)]), torch.concat([y, y], 0)),
    "stack": lambda x, y, n: (torch.stack([x, x], -1), torch.stack([x, n], 1), torch.hstack([x, n]), torch.vstack([x, y[0]]), torch.dstack([y, y]), torch.column_stack([x, x[:, 0]]), torch.block_diag(x, y, torch.tensor(3.0)), torch.stack([x.t(), x.t()])),
    "split": lambda x, y, n: (x.split([1, 0, 3], 1), x.chunk(3, 1), x.chunk(9, 0), torch.tensor_split(x, (1, 3), 1), torch.tensor_split(x, 3), torch.tensor_split(x, torch.tensor([1, 2]), 1), x.hsplit(2), x.hsplit([1, 5]), x.unbind(1), y.vsplit(2), x[:0].chunk(2), torch.tensor_split(y, (5,))),
    "broadcast": lambda x, y, n: (torch.broadcast_tensors(x, y[0], x[:, :1]), x.expand(2, -1, -1), x[:, None] - y, torch.broadcast_to(y[0], (3, 2, 4)), torch.atleast_3d(x), x.squeeze(), x.unsqueeze(-1).squeeze((0, 2)), torch.meshgrid(x[0], y[:, 0], indexing="xy"), x.movedim(0, 1), x.swapaxes(0, 1) + 1, torch.einsum("ij,kj->ik", x, y), torch.tensordot(x, y, ([1], [1])), x.rot90(), torch.repeat_interleave(x, torch.arange(4), dim=1), torch.repeat_interleave(y, 2)),
    "padded": lambda x, y, n: (F.pad(x, (-1, 2)), F.pad(x, (1, -2, 0, 1), value=inf), F.pad(n, (1, 1), value=7), F.pad(x[None], (2, 1), mode="reflect"), F.pad(x[None], (-1, 3), mode="replicate"), F.pad(x[None], (4, 2), mode="circular"), F.pad(y[None, None], (1, 2, 1, 0), mode="reflect"), F.pad(x[None, None], (1, 1, 2, 2), mode="replicate"), F.pad(x.bool(), (1, 0), value=True), F.pad(x[:0], (1, 1, 2, 0), value=3.0)),
})
several("corner_pools", lambda n: [r(n, 2, 7, 9), r(n, 2, 10)], [2, 1], {
    "ceil": lambda x, y: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, (2, 3), ceil_mode=True, count_include_pad=False), F.avg_pool1d(y, 4, 3, 2, ceil_mode=True, count_include_pad=False), F.max_pool1d(y, 4, 3, 1, ceil_mode=True), F.lp_pool2d(x.abs(), 2, 3, ceil_mode=True), F.avg_pool2d(x, 3, 4, 1, ceil_mode=True, count_include_pad=True)),
    "divisors": lambda x, y: (F.avg_pool2d(x, 2, divisor_override=3), F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.avg_pool2d(x, (1, 9)), F.avg_pool3d(x[:, None], (1, 2, 2), divisor_override=-1), F.avg_pool2d(x[0], 3, 3, 1), F.lp_pool1d(y.abs(), 3, 2), F.avg_pool1d(y[0], 5, 1, 2)),
    "dilated": lambda x, y: (F.max_pool2d(x, 2, 1, 0, 2), F.max_pool2d(x, (2, 3), (1, 2), (1, 1), (3, 1)), F.max_pool1d(y, 3, 1, 1, 3), F.max_pool2d(x, 3, 2, 1, 2, ceil_mode=True), F.max_pool3d(x[:, None], (1, 2, 3), 1, (0, 1, 1), (1, 2, 2)), F.max_pool2d(x[0], 2)),
    "indices": lambda x, y: (lambda p: (*p, F.max_unpool2d(*p, 2, output_size=(7, 9)), *F.max_pool1d(y, 3, 2, 1, return_indices=True), *F.max_pool2d(x, 3, 1, 1, return_indices=True), *F.adaptive_max_pool2d(x, (2, 4), return_indices=True)))(F.max_pool2d(x, 2, return_indices=True)),
    "adaptive": lambda x, y: (F.adaptive_avg_pool2d(x, (None, 4)), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, (5, None)), F.adaptive_avg_pool1d(y, 7), F.adaptive_avg_pool2d(x, (10, 11)), F.adaptive_max_pool1d(y, 4), F.adaptive_avg_pool3d(x[:, None], (1, 3, 5)), F.adaptive_avg_pool2d(x[0], (7, 9))),
    "with_infinity": lambda x, y: (F.max_pool2d(torch.where(x > 0.5, nan, x), 2), F.max_pool2d(torch.full_like(x, -inf), 3, 2, 1), F.avg_pool2d(torch.where(x > 1, inf, x), 2), F.adaptive_max_pool2d(torch.where(x > 1, nan, x), 3), F.max_pool2d(x.half().float(), 2), F.max_pool2d(x.double(), 2), F.avg_pool2d(x.bfloat16(), 2)),
    "resized": lambda x, y: (F.interpolate(x, scale_factor=1.7, mode="nearest-exact"), F.interpolate(x, scale_factor=(0.5, 1.3), mode="bilinear"), F.interpolate(x, scale_factor=1.4, mode="bilinear", recompute_scale_factor=True), F.interpolate(x, (3, 4), mode="bicubic"), F.interpolate(x, (1, 1), mode="bilinear", align_corners=True), F.interpolate(y, 3, mode="area"), F.interpolate(y, scale_factor=2.5, mode="linear", align_corners=True), F.interpolate(x[:, None], (2, 5, 3), mode="trilinear"), F.interpolate(x, (14, 5), mode="nearest"), F.interpolate(x, scale_factor=0.3, mode="bicubic", align_corners=True), F.interpolate(x, size=(7, 9), mode="bicubic")),
    "folded": lambda x, y: (F.unfold(x, (2, 3), dilation=2, padding=1, stride=2), F.fold(F.unfold(x, 3, padding=1), (7, 9), 3, padding=1), x.unfold(3, 4, 5), x.unfold(2, 3, 2).unfold(3, 2, 2).sum((-1, -2)), y.unfold(2, 10, 1), F.pixel_unshuffle(x[..., :6, :8], 2), F.channel_shuffle(x, 2), F.local_response_norm(x, 3)),
}, rtol=1e-4, atol=1e-4)
each("corner_losses_ignored", lambda: [r(5, 4), ints(5, high=4), r(5, 4).softmax(1), r(5, 4, 3)], {
    "nll": lambda x, t, p, z: (F.nll_loss(x.log_softmax(1), t, ignore_index=2), F.nll_loss(x, torch.full((5,), -100)), F.nll_loss(x, t, weight=torch.tensor([1.0, 0.0, 2.0, 0.5]), reduction="sum"), F.nll_loss(z, t[:, None].expand(5, 3), reduction="none"), F.cross_entropy(x, torch.full((5,), 3), ignore_index=3), F.cross_entropy(x, t, weight=torch.zeros(4)), F.cross_entropy(x[0], t[0])),
    "smoothed": lambda x, t, p, z: (F.cross_entropy(x, t, label_smoothing=0.3, ignore_index=1), F.cross_entropy(x, p, label_smoothing=0.2), F.cross_entropy(x, p, weight=torch.arange(4.0)), F.cross_entropy(z, t[:, None].expand(5, 3), label_smoothing=0.1, weight=torch.arange(4.0), reduction="none"), F.cross_entropy(x, t, label_smoothing=1.0), F.cross_entropy(x[0], p[0])),
    "divergence": lambda x, t, p, z: (F.kl_div(x, p, reduction="batchmean"), F.kl_div(x, p.log(), log_target=True), F.kl_div(x, p * 0, reduction="sum"), F.binary_cross_entropy(p, (x > 0).float(), weight=torch.arange(4.0)), F.binary_cross_entropy_with_logits(x, p, pos_weight=torch.arange(4.0)), F.binary_cross_entropy_with_logits(x * 100, (x > 0).float()), F.poisson_nll_loss(x, p, full=True, log_input=False, eps=0.1), F.gaussian_nll_loss(x, p, p, full=True)),
    "margins": lambda x, t, p, z: (F.multi_margin_loss(x, t, p=2, margin=0.5, weight=torch.arange(4.0)), F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1]] * 5)), F.multilabel_soft_margin_loss(x, (x > 0).float(), weight=torch.arange(4.0)), F.triplet_margin_loss(x, p, -x, p=1, swap=True), F.cosine_embedding_loss(x, p, torch.tensor([1.0, -1, 1, -1, 1]), margin=0.2), F.hinge_embedding_loss(x, torch.where(x > 0, 1.0, -1.0), reduction="none"), F.margin_ranking_loss(x[0], x[1], torch.ones(4), margin=0.3), F.triplet_margin_with_distance_loss(x, p, -x)),
    "sequences": lambda x, t, p, z: (F.ctc_loss(z.permute(0, 2, 1).log_softmax(2), torch.tensor([[1, 2], [2, 1], [1, 1]]), torch.full((3,), 5), torch.tensor([2, 1, 2])), F.ctc_loss(z.permute(0, 2, 1).log_softmax(2), torch.tensor([[1, 1], [2, 2], [3, 3]]), torch.tensor([5, 2, 1]), torch.tensor([2, 2, 2]), zero_infinity=True, reduction="sum")),
    "bags": lambda x, t, p, z: (F.embedding_bag(t, x, torch.tensor([0, 2, 2]), mode="sum"), F.embedding_bag(t, x, torch.tensor([0, 2, 5]), mode="mean", include_last_offset=True), F.embedding_bag(t[None], x, mode="max"), F.embedding_bag(t, x, torch.tensor([0, 3]), mode="sum", per_sample_weights=x[:, 0]), F.embedding_bag(t, x, torch.tensor([0, 1]), mode="mean", padding_idx=2), F.embedding(t, x, padding_idx=1), F.embedding(t[None], x * 3, max_norm=None), F.one_hot(t), F.one_hot(t, 6), F.embedding(t[:0], x)),
    "distances": lambda x, t, p, z: (F.pairwise_distance(x, p, p=3, keepdim=True), F.cosine_similarity(x, p, 0), torch.pdist(x), torch.cdist(x, p, p=1), torch.cdist(x, p, p=inf), torch.cdist(x[None], p, p=0.0), torch.cdist(x, p, p=1.5), F.normalize(x, p=1, dim=0), torch.renorm(x, 2, 0, 1.0), torch.cross(z[:, 0], z[:, 1], 1), torch.cov(x), torch.corrcoef(p), torch.logdet(x.t() @ x + torch.eye(4))),
}, rtol=1e-4, atol=1e-5)
each("corner_products_scaled", lambda: [r(4, 5), r(5, 3), torch.full((4, 3), nan), r(2, 4, 5), r(2, 5, 3), ints(4, 5, low=-3, high=4), ints(5, 3, low=-3, high=4)], {
    "beta_zero": lambda a, b, n, c, d, i, j: (torch.addmm(n, a, b, beta=0), torch.baddbmm(n, c, d, beta=0, alpha=2), torch.addmv(n[:, 0], a, b[:, 0], beta=0), torch.addr(n, a[:, 0], b[0], beta=0), torch.addbmm(n, c, d, beta=0), torch.addmm(n[0], a, b, beta=0, alpha=-1)),
    "alpha_zero": lambda a, b, n, c, d, i, j: (torch.addmm(a[:, :3], a, b, alpha=0), torch.addmm(a[:, :1], a, b, beta=2, alpha=0.5), torch.baddbmm(a[:, :3], c, d, alpha=0), torch.addmv(a[:, 0], a, b[:, 0], alpha=0, beta=3), torch.addr(a[:, :3], a[:, 0], b[0], alpha=-2), torch.addbmm(a[:, :3], c, d, beta=0.5)),
    "integers": lambda a, b, n, c, d, i, j: (i @ j, torch.addmm(i[:, :3], i, j, beta=2, alpha=3), torch.mv(i, j[:, 0]), i.to(torch.int8) @ j.to(torch.int8), i.to(torch.uint8) @ j.to(torch.uint8), torch.bmm(i[None], j[None]), i.bool().int() @ j.int(), torch.addr(i[:, :3], i[:, 0], j[0], alpha=2), torch.dot(i[0], i[1]), torch.einsum("ij,jk->k", i, j)),
    "shapes": lambda a, b, n, c, d, i, j: (a @ b[:, 0], b[:, 0] @ b, c @ b, a @ d, c[:, None] @ d, torch.matmul(c, b[:, 0]), a[:0] @ b, a[:, :0] @ b[:0], torch.mm(a.t()[:, ::2], a[::2]), a[::2, 1:] @ b[1:], a.t().contiguous().t() @ b, (a.expand(3, 4, 5) @ b).sum(0), torch.linalg.multi_dot([a, b, b.t(), a.t()])),
    "blended": lambda a, b, n, c, d, i, j: (torch.lerp(a, a * 2, 0.3), torch.lerp(a, a * 2, a.abs()), torch.lerp(a, torch.ones(5), torch.tensor(0.7)), torch.addcmul(a, a, a, value=-0.5), torch.addcdiv(a, a, a.abs() + 1, value=2), torch.addcmul(i, i, i, value=3), torch.add(i, i, alpha=-2), torch.sub(a, 2, alpha=3), torch.rsub(a, 1, alpha=2), torch.addcmul(a.half(), a.half(), a.half(), value=0.1), torch.lerp(a.bfloat16(), a.bfloat16() * 2, 0.25), torch.lerp(a, a, inf)),
    "linear": lambda a, b, n, c, d, i, j: (F.linear(a, b.t()), F.linear(c, b.t(), b[0]), F.linear(a[0], b.t()), F.linear(a, b[:, 0]), F.bilinear(a, a, torch.ones(2, 5, 5), torch.ones(2)), torch.kron(a[:2, :2], b[:2]), torch.inner(a, b.t()), torch.tensordot(c, d, ([0, 2], [0, 1])), torch.einsum("bij,bjk,k->bi", c, d, b[0]), torch.einsum("...ij,jk->...k", c, b), torch.einsum("ii->i", a[:, :4]), torch.trace(a)),
}, rtol=1e-4, atol=1e-5)
each("corner_solved", lambda: [(lambda a: a @ a.t() + 4 * torch.eye(4))(r(4, 4)), r(4, 2), r(3, 4, 4)], {
    "systems": lambda a, b, c: (torch.linalg.solve(a, b), torch.linalg.inv(a), torch.linalg.cholesky(a), torch.cholesky_solve(b, torch.linalg.cholesky(a)), torch.linalg.solve_triangular(a.tril(), b, upper=False), torch.linalg.solve(c + 5 * torch.eye(4), b), torch.linalg.solve(a, b[:, 0]), torch.cholesky_inverse(torch.linalg.cholesky(a)), torch.linalg.inv_ex(a)[0]),
    "named": lambda a, b, c: (torch.linalg.qr(b).R.abs(), torch.linalg.lu(c).U, torch.linalg.inv_ex(a).inverse, torch.linalg.cholesky_ex(a).L, torch.linalg.svd(b).S, torch.linalg.eigh(a).eigenvalues, torch.linalg.slogdet(c).logabsdet, torch.linalg.lu_factor(a).LU, torch.linalg.solve_ex(a, b).result, torch.linalg.lstsq(a, b).solution),
    "values": lambda a, b, c: (torch.linalg.det(a), torch.linalg.slogdet(c), torch.linalg.eigvalsh(a), torch.linalg.svdvals(b), torch.linalg.matrix_norm(c, "nuc"), torch.linalg.matrix_norm(c, 2), torch.linalg.cond(a), torch.logdet(a), torch.linalg.matrix_norm(b, -1), torch.linalg.norm(b, ord=inf), torch.linalg.vecdot(b, b, dim=0)),
    "powers": lambda a, b, c: (torch.linalg.matrix_power(a, 3), torch.linalg.matrix_power(c, 0), torch.linalg.matrix_power(a, -1), torch.linalg.matrix_exp(c * 0.1), torch.linalg.pinv(b), torch.linalg.qr(b).R.abs(), torch.linalg.lstsq(a, b).solution, torch.linalg.tensorinv(a, 1), torch.linalg.vander(b[:, 0], N=3), torch.linalg.householder_product(b, b[0] * 0.1)),
}, rtol=1e-3, atol=1e-4)
each("corner_transformed", lambda: [r(3, 8), torch.randn(3, 5, dtype=torch.complex64), r(2, 6, 7)], {
    "real": lambda x, z, y: (torch.fft.rfft(x), torch.fft.rfft(x, 5), torch.fft.rfft(x, 11, norm="ortho"), torch.fft.irfft(z), torch.fft.irfft(z, 9), torch.fft.rfft2(y), torch.fft.irfft2(torch.fft.rfft2(y), s=(6, 7)), torch.fft.rfftn(y, dim=(0, 2)), torch.fft.hfft(z, 8), torch.fft.ihfft(x), torch.fft.rfft(x, dim=0, norm="forward")),
    "complex": lambda x, z, y: (torch.fft.fft(z), torch.fft.ifft(z, 7, norm="forward"), torch.fft.fft(x), torch.fft.fft2(y), torch.fft.ifftn(z), torch.fft.fftn(y, s=(4, 9), dim=(1, 2)), torch.fft.fft(z.t(), dim=0), torch.fft.ifft2(y, norm="ortho")),
    "shifted": lambda x, z, y: (torch.fft.fftshift(x), torch.fft.ifftshift(y, dim=(1, 2)), torch.fft.fftfreq(7, 0.5), torch.fft.rfftfreq(6), torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(x.flip(1))).real, torch.fft.irfft(torch.fft.rfft(x) * z, 8)),
    "short_time": lambda x, z, y: (torch.stft(x, 4, 2, window=torch.hann_window(4), return_complex=True), torch.stft(x, 6, center=False, window=torch.ones(6), return_complex=True), torch.istft(torch.stft(x, 4, 1, window=torch.ones(4), return_complex=True), 4, 1, window=torch.ones(4), length=8), torch.stft(x, 4, 2, window=torch.ones(4), normalized=True, onesided=False, return_complex=True).abs()),
}, rtol=1e-4, atol=1e-4)
each("corner_promoted", lambda: [r(3, 4), ints(3, 4), torch.tensor(2.5, dtype=torch.float64), torch.tensor(3), r(3, 4).half(), bools(3, 4), torch.tensor([1, 2, 3, 4], dtype=torch.uint8)], {
    "zero_dims": lambda x, n, s, k, h, b, u: (x + s, n + s, h + s, h + k, b + k, b + s, u + k, u * s, s + k, n / k, n * s, k / 2, k // s, h * x[0, 0], u - 300 * k),
    "scalars": lambda x, n, s, k, h, b, u: (n + 2.5, n * True, b + 1, b * 2.5, u + 1.5, u - 1, n / 2, n // 2.5, h + 1e10, u * -1, b - 0.5, ~b + 2, n + 1j, h * 2j, x + True, 2**n % 7, n**2.0),
    "kinds": lambda x, n, s, k, h, b, u: (x + n, h + n, h + x, u + n.to(torch.int8), b + u, h + h.bfloat16(), x + x.double(), n.int() + u, b * b, x * b, torch.where(b, x, n), torch.where(b, n, 2.5), torch.where(b, h, s), torch.where(b, u, 1), torch.clamp(n, 0.5, 3.5), torch.clamp(u, max=n)),
    "written": lambda x, n, s, k, h, b, u: (x.clone().add_(s), x.clone().mul_(n), h.clone().add_(x), x.clone().copy_(n), n.clone().copy_(x * 10), n.clone().fill_(2.9), u.clone().add_(k), n.clone().mul_(b), x.clone().masked_fill_(b, k), x.clone().pow_(n), n.clone().index_fill_(0, torch.tensor([0]), 1.9), x.clone().sub_(True)),
    "reduced": lambda x, n, s, k, h, b, u: (b.sum(), u.sum(), n.prod(), h.sum(), n.float().mean(), b.float().var(), u.max(), h.sum(dtype=torch.float64), n.sum(dtype=torch.float16), u.cumsum(0), b.cumprod(0), n.any(), h.all(), n.sum(1, dtype=torch.uint8), b.amax(0), u.amin(0)),
    "functions": lambda x, n, s, k, h, b, u: (n.sqrt(), b.exp(), u.sigmoid(), n.sin(), torch.atan2(n, k), torch.hypot(x, s), k.log(), u.rsqrt(), torch.logaddexp(x, x.double()), torch.xlogy(n, 2.0), torch.xlogy(u, x), torch.copysign(n, x), torch.nextafter(x, x + 1), torch.floor_divide(n, k), torch.true_divide(n, u), torch.float_power(u, 2), torch.ldexp(x, n % 5), torch.heaviside(n, k), torch.special.xlog1py(n, u), n.float().frexp()),
    "compared": lambda x, n, s, k, h, b, u: (n < 2.5, u == -1, x > n, b == 1, b < s, h >= s, torch.eq(n, x), n != True, torch.isclose(x, x.double().float()), u > n, torch.logical_and(x, n), torch.logical_or(b, u), torch.isin(n, k), torch.equal(n, n.clone()), torch.allclose(x, x)),
    "asked": lambda x, n, s, k, h, b, u: tuple(str(torch.result_type(p, q)) for p in (x, n, h, b, u) for q in (s, k, 2, 2.5, True)),
}, gradients=False)
each("corner_drawn", lambda: [r(6, 5), r(4).softmax(0)], {
    "filled": lambda x, p: (torch.rand(3, 4), torch.randn(5), torch.randint(3, 9, (7,)), torch.randint(0, 2, (4,), dtype=torch.uint8), torch.randperm(9), torch.rand_like(x), torch.randn_like(x, dtype=torch.float64), torch.randint_like(x, 5), torch.normal(0.0, 2.0, (3,)), torch.normal(x, x.abs()), torch.rand(3, dtype=torch.float64), torch.randn(2, dtype=torch.complex64), torch.rand(5).half()),
    "in_place": lambda x, p: (x.clone().uniform_(-1, 2), x.clone().normal_(1, 2), x.clone().exponential_(2.0), x.clone().bernoulli_(0.3), x.clone().cauchy_(), x.clone().log_normal_(), x.clone().geometric_(0.4), x.clone().random_(0, 10), torch.empty(7, dtype=torch.int64).random_(), torch.empty(5).random_(3, 8), x.half().uniform_(), x.t().uniform_()),
    "chosen": lambda x, p: (torch.bernoulli(p), torch.multinomial(p, 3), torch.multinomial(p, 5, replacement=True), torch.poisson(x.abs() * 3), torch.bernoulli(x.sigmoid()), torch.binomial(torch.full((4,), 10.0), p), x[torch.randperm(6)], torch.rand(()) < 0.5),
    "dropped": lambda x, p: (F.dropout(x, 0.5), F.dropout(x, 0.0), F.dropout(x, 1.0), F.dropout(x, 0.3, training=False), F.alpha_dropout(x, 0.4), F.dropout1d(x[None], 0.5), F.feature_alpha_dropout(x, 0.5, training=True), F.rrelu(x, training=True), F.gumbel_softmax(x, hard=True), F.dropout2d(x[None, :, :, None], 0.3), F.dropout(x.half(), 0.5)),
    "seeded": lambda x, p: (torch.manual_seed(3), torch.rand(4), x + torch.randn(5), torch.manual_seed(3), torch.rand(4))[1::3],
    "between": lambda x, p: (lambda a: (a, a * torch.rand(()), torch.rand(2).sum() + a.sum(), F.dropout(a, 0.2) + torch.randint(0, 3, (5,))))(torch.rand(6, 5)),
}, gradients=False)
several("corner_strided_far", lambda n: [torch.randn(n * 100)[: n * 90].as_strided((n, 3, 2), (70, 11, 30)), r(n, 1).expand(n, 6), r(3 * n)[::3], r(n, 8).t()], [4, 9], {
    "pointwise": lambda a, b, c, d: (a + 1, a * a.flip(0), b * 2 + c[:, None], d.exp(), b + d.t()[:, :6], c * c[:1], a.sum(0) + a[0], (b + 0).stride(), (a + 0).stride(), d + d),
    "reduced": lambda a, b, c, d: (a.sum(), a.sum(1), b.sum(1), b.mean(0), d.amax(0), d.argmax(1), c.cumsum(0), a.softmax(2), b.var(1), d.norm(dim=0), a.transpose(0, 2).amax(1), b.logsumexp(0)),
    "moved": lambda a, b, c, d: (a.contiguous(), b.contiguous(), a.reshape(-1), b.reshape(-1, 2), d.reshape(-1), torch.cat([b, b[:, :1]], 1), a.permute(2, 0, 1).clone(), c.flip(0), b.clone(), a.unfold(1, 2, 1), d.roll(1, 0), a.view(a.shape), torch.stack([c, c], 1), b.t().contiguous()),
    "multiplied": lambda a, b, c, d: (d.t() @ d, b @ d[:6], a.transpose(1, 2) @ a, c @ b, torch.bmm(a, a.transpose(1, 2)), F.linear(b, d[:6].t()), torch.outer(c, c), torch.einsum("nij,n->ij", a, c)),
    "picked": lambda a, b, c, d: (a[[0, -1]], b[:, [0, 5]], d[[1, 0]], c[c > 0].sum(), a.gather(1, torch.zeros(a.shape[0], 1, 2, dtype=torch.long)), d.index_select(1, torch.tensor([0])), torch.where(b > 0, b, 0), d.masked_fill(d > 0, 1.0), b.sort(0).values, d.topk(2, 0).values, a.scatter(1, torch.zeros(a.shape[0], 1, 2, dtype=torch.long), 5.0), d.tril()),
})
several("corner_returned", lambda n: [r(n, 3), r(n, 3), [r(2), {"a": r(3)}]], [4, 2], {
    "inputs": lambda x, y, t: (x, x, y.t(), x[0], t, t[1]["a"]),
    "same": lambda x, y, t: (lambda z: {"a": z, "b": [z, z[0], (z,)], "c": None, "d": z.view(-1), "e": z.t()})(x + y),
    "written": lambda x, y, t: (x.add_(1), x, x.t(), t[0].mul_(2), t[1]["a"].zero_(), t[1], None, 3, "text", 2.5, True),
    "containers": lambda x, y, t: [{"k": (x.sum(), [y.mean(), {"z": None}])}, [], {}, (), [[x * 2]], x.shape, x.dtype],
    "detached": lambda x, y, t: (x.detach(), x.detach() + 1, (x * 2).detach(), x.data, x.clone(), x.view(-1), x.detach().t(), x + 0, x.contiguous(), x.to(torch.float32), x.float(), x.expand_as(x), x.reshape(x.shape), x.squeeze(), x[:], x[...]),
    "numbers": lambda x, y, t: (x.shape[0] * 2, x.numel() / 2, len(t), x.dim() + 0.5, x.shape, list(x.shape), x.stride(), x.element_size(), x.size(-1), x.is_contiguous()),
})
each("corner_saved", lambda: [r(4, 5), r(5, 3)], {
    "no_grad": lambda x, w: (_without_gradients(x), x.detach() * x, (x @ w).detach().sum() * x, torch.relu(x).data * 2 + x),
    "twice": lambda x, w: (lambda y: (y.sum(), (y * y).sum(), y[0], y.t() @ x))(x @ w),
    "expanded": lambda x, w: (x.expand(3, 4, 5).sum(0), x[None] * w.t()[:, None], x.mean(0, keepdim=True) - x, x.repeat(2, 1).view(2, 4, 5).prod(0), x[[0, 0, 1]], x.gather(1, torch.zeros(4, 7, dtype=torch.long)), x.unfold(1, 3, 1), x.as_strided((3, 3), (1, 1)), x.diagonal().sum(), F.unfold(x[None, None], 2)),
    "in_place": lambda x, w: (x.clone().mul_(2).add_(x), x.clone().relu_(), (x * 2).exp_(), x.clone().index_put_((torch.tensor([0]),), w[0].sum()), (x + 0).masked_fill_(x > 0, 0.0), (x * 1).t().mul_(3), x.clone().addmm_(x, w @ w.t()), x.clone().clamp_(0, 1), (x + 1)[:, 1:].mul_(x[:, 1:]), x.clone().copy_(x.flip(0))),
    "ordered": lambda x, w: (x.sort(1).values, x.topk(2).values, x.max(0).values, x.cummax(1).values, x.kthvalue(2).values, x.median(0).values, x.msort(), x.logcumsumexp(1), x.cumsum(0), x.cumprod(1), x.flip(0), x.tril(), x.roll(1), torch.rot90(x)),
    "chosen": lambda x, w: (torch.where(x > 0, x, x * 0.1), x.masked_select(x > 0), x[x > 0] * 2, x.take(torch.tensor([0, 3, 3])), x.index_select(1, torch.tensor([1, 1])), torch.take_along_dim(x, x.argsort(1), 1), x.scatter(0, torch.zeros(1, 5, dtype=torch.long), x[:1] * 2), x.index_add(0, torch.tensor([1, 1]), x[:2]), x.index_copy(0, torch.tensor([2]), x[:1]), x.masked_scatter(x > 0, x.flip(0)), x.scatter_reduce(0, torch.zeros(4, 5, dtype=torch.long), x, "amax"), x.index_reduce(0, torch.tensor([0, 0]), x[:2], "mean")),
    "functions": lambda x, w: (x.erf(), x.tanh().atanh(), x.abs().lgamma(), x.abs().digamma(), torch.special.i0e(x), x.sinc(), x.sigmoid().logit(), torch.special.ndtri(x.sigmoid()), x.expm1(), torch.special.entr(x.abs()), torch.special.log_ndtr(x), x.asinh(), torch.logaddexp(x, x.flip(0)), torch.xlogy(x, x.abs()), F.mish(x), F.celu(x, 0.5), F.selu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.softplus(x, 2, 1), F.logsigmoid(x), F.tanhshrink(x), F.glu(x[:, :4]), F.softsign(x), torch.special.erfcx(x), torch.polygamma(1, x.abs() + 0.5), torch.mvlgamma(x.abs() + 2, 2)),
}, rtol=1e-4, atol=1e-4)


def _without_gradients(x):
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        return y + x
