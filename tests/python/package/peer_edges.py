"""Small functions at the edges of what operators take: numbers that hardly fit, tensors without dimensions or elements, results written
into given tensors, integers that are divided and shifted, algebra that is no identity for infinities; they join those of `peer_cases`.
"""

import torch
import torch.nn.functional as F
from peer_cases import bools, each, inf, ints, nan, r


def bytes_and_numbers():
    return [torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8), torch.tensor(-1), torch.tensor(300), torch.tensor([-128, -1, 0, 1, 127], dtype=torch.int8)]


each(
    "small_integers",
    bytes_and_numbers,
    {
        "maximum_of_scalar": lambda b, n, m, s: (torch.maximum(b, n), torch.minimum(b, m), torch.maximum(s, m), torch.minimum(s, n)),
        "compared_with_scalar": lambda b, n, m, s: (b < n, b >= m, s == m, s > n, b == n, n < b),
        "sum_with_scalar": lambda b, n, m, s: (b + n, b - m, s * m, m - s, b * n),
        "divided_by_scalar": lambda b, n, m, s: (b / n, s / m, torch.div(b, m, rounding_mode="floor"), torch.div(s, m, rounding_mode="trunc"), s % m, torch.fmod(s, m)),
        "bits_with_scalar": lambda b, n, m, s: (b & n, b | m, s ^ m, ~b, ~s),
        "clamped_by_scalar": lambda b, n, m, s: (torch.clamp(b, min=n), torch.clamp(s, max=m), torch.clamp(b, n, m)),
        "where_with_scalar": lambda b, n, m, s: (torch.where(b > 1, b, n), torch.where(s > 1, m, s)),
        "wrap": lambda b, n, m, s: (b + 200, b * 3, -b, s - 100, s * 2, -s, s.abs(), b - 1),
        "sums_are_wide": lambda b, n, m, s: (b.sum(), s.prod(), b.cumsum(0), s.cumsum(0).dtype, b.sum(dtype=torch.uint8), b.float().mean()),
        "shifted": lambda b, n, m, s: (b << 1, b >> 3, s << 2, s >> 1, b << 7, s >> 7),
        "mixed_types": lambda b, n, m, s: (b + s, b * s, torch.maximum(b, s), b < s, b // (s.short() + 300), (b + s).dtype),
        "to_floats": lambda b, n, m, s: (b.half() * s, b.bfloat16() + s, b / 3, torch.true_divide(s, 7), b.float().sqrt()),
        "powers": lambda b, n, m, s: (b**2, s**3, 2**s.abs().clamp(max=6), b**0, s.float() ** -1),
        "sorted": lambda b, n, m, s: (b.sort(descending=True), s.argsort(), b.topk(2), s.max(), b.argmin(), s.unique()),
        "negative_in_unsigned": lambda b, n, m, s: (torch.full((3,), -1, dtype=torch.uint8), b.new_full((2,), -255), b.clone().fill_(-2)),
        "as_conditions": lambda b, n, m, s: (b.bool(), s.logical_not(), torch.logical_xor(b, s), b.any(), s.all(), b.to(torch.bool) & s.bool()),
        "dot": lambda b, n, m, s: (b @ b, s @ s, torch.outer(b, b), b[None] @ b[:, None]),
    },
    gradients=False,
)
each(
    "wide_integers",
    lambda: [torch.tensor([2**31 - 1, -(2**31), 2**40, -(2**40) - 7, 12345, 0]), torch.tensor([2**31 - 1, -(2**31), 7, -7, 1, 0], dtype=torch.int32)],
    {
        "wrapped_sum": lambda x, y: (y + 1, y - 1, y * 3, x + 2**62, x * 2**30),
        "hash": lambda x, y: ((x * 2654435761) % 2**32, (x ^ (x >> 16)) * 0x45D9F3B & 0xFFFFFFFF),
        "to_float": lambda x, y: (x.float(), y.float(), x.double(), x.half(), y.bfloat16()),
        "to_small": lambda x, y: (x.int(), x.short(), x.byte(), y.char(), x.bool()),
        "floor_division": lambda x, y: (x // 7, x // -7, y // 3, y // -3, torch.div(x, 2**33, rounding_mode="floor"), -x // 1000),
        "truncated_division": lambda x, y: (torch.div(x, 7, rounding_mode="trunc"), torch.div(y, -3, rounding_mode="trunc"), torch.div(x, 2.5, rounding_mode="trunc")),
        "remainder": lambda x, y: (x % 7, x % -7, torch.fmod(x, 7), torch.fmod(y, -3), y % 2**31, torch.remainder(x, 2.5)),
        "modulus_of_number": lambda x, y: (100 % (y.abs() + 1).clamp(min=1), 7 // (x.abs() + 1)),
        "scalar_of_int64": lambda x, y: (y + torch.tensor(2**33), y < torch.tensor(2**33), torch.maximum(y, torch.tensor(2**31))),
        "minimum_of_type": lambda x, y: (y.abs(), -y, y.min(), x.max(), y.sum(), y.prod()),
        "mean_by_hand": lambda x, y: (x.sum() / x.numel(), x.sum() // x.numel(), y.double().mean()),
        "gcd": lambda x, y: (torch.gcd(x, torch.tensor(12)), torch.lcm(y.clamp(-50, 50), torch.tensor(4, dtype=torch.int32))),
        "shifts": lambda x, y: (x >> 3, y << 4, x << 20, y >> 31, x >> 63),
        "counts": lambda x, y: (torch.bincount(y.clamp(0, 5)), torch.bincount(y.clamp(0, 5), minlength=9), x.count_nonzero()),
        "cumulative": lambda x, y: (x.cumsum(0), y.cumprod(0), y.cummax(0), x.logical_not().cumsum(0), torch.diff(x)),
        "equal": lambda x, y: (x == 2**40, y == 2.0**31, x.eq(2**40 + 0.5), y != -(2.0**31), x == 12345.0),
        "large_constant": lambda x, y: (torch.full((2,), 2**62) + x[:2], torch.tensor([2**53 + 1]) + 0, torch.tensor(2**24 + 1) * 1.0),
        "arange": lambda x, y: (torch.arange(2**40, 2**40 + 5), torch.arange(-5, 6, 3), torch.arange(5, 0, -2), torch.arange(0, 1, 0.3), torch.arange(3.0, dtype=torch.int32)),
    },
    gradients=False,
)
each(
    "truth",
    lambda: [bools(3, 5), bools(3, 5), torch.tensor(True)],
    {
        "sum": lambda a, b, c: (a + b, a * b, a + 1, a * 2.5, a + c, a | c, 3 - a.int()),
        "reductions": lambda a, b, c: (a.sum(), a.sum(0), a.prod(1), a.float().mean(1), a.any(0), b.all(1), a.max(), b.min(1), a.amax(0), a.int().argmax(1)),
        "cumulative": lambda a, b, c: (a.cumsum(1), a.cumprod(0), a.cummax(1), a.int().cumsum(0)),
        "compared": lambda a, b, c: (a < b, a == b, a != c, a >= b, a == 1, a < 0.5),
        "bits": lambda a, b, c: (a & b, a | b, a ^ b, ~a, a & True, a ^ 1, torch.bitwise_not(b)),
        "logical": lambda a, b, c: (a.logical_and(b), a.logical_or(b.float() * 2), torch.logical_xor(a, b.float()), a.logical_not()),
        "where": lambda a, b, c: (torch.where(a, b, c), torch.where(a, True, b), torch.where(a, 1, 0), torch.where(a, 1.5, 0), torch.where(a, b, 2)),
        "sorted": lambda a, b, c: (a.sort(dim=1, stable=True), a.argsort(dim=0, stable=True), a.unique(), a.nonzero(), a.flip(0).roll(1, 1)),
        "divided": lambda a, b, c: (a / (b + 1), a.int() // 2, a.int() % 2, torch.true_divide(a, 2)),
        "power": lambda a, b, c: (a.int() ** 2, 2 ** a.int(), a.float().pow(b.float())),
        "matmul": lambda a, b, c: (a.float() @ b.float().t(), a.int() @ b.int().t(), torch.einsum("ij,ij->i", a.int(), b.int())),
        "written": lambda a, b, c: (a.clone().logical_and_(b), a.clone().__ior__(b), a.clone().masked_fill_(b, False), a.clone().fill_(2), a.clone().mul_(b)),
        "padded": lambda a, b, c: (F.pad(a, (1, 1), value=True), F.pad(a, (-1, 2)), torch.cat([a, b.int()]), torch.stack([a, b])),
        "indexed": lambda a, b, c: (a[b], a[:, [True, False, True, True, False]], a[c], a[None, 1], torch.masked_select(a, b), a.gather(1, b.long())),
        "converted": lambda a, b, c: (a.to(torch.uint8), a.to(torch.bfloat16), a.to(torch.complex64), torch.tensor([0.0, nan, -0.0]).bool(), torch.tensor([1 + 0j, 0j]).bool()),
        "scalars": lambda a, b, c: (c + c, c & False, c * 3, c.sum(), c.any(), torch.where(c, 2, 3.0), c.long().neg()),
        "triangles": lambda a, b, c: (a.tril(), b.triu(1), torch.ones(3, 3, dtype=torch.bool).tril(-1), a.diagonal().any()),
        "xor_sum": lambda a, b, c: (a.bitwise_xor(b).sum(1), (a != b).float().sum(), a.logical_xor(b).count_nonzero(dim=0)),
    },
    gradients=False,
)
for _dtype in (torch.float16, torch.bfloat16):
    each(
        f"numbers_in_{str(_dtype)[6:]}",
        lambda d=_dtype: [torch.tensor([0.5, -3.0, 100.0, 6e4, -6e4, inf, -inf, nan, 1e-7, 2048.0]).to(d)],
        {
            "added": lambda x: (x + 7e4, x - 1e6, 1e6 - x, x + 1e-9, x + 2049),
            "multiplied": lambda x: (x * 7e4, x / 1e-6, x * 1e-9, x * 0.1),
            "compared": lambda x: (x < 7e4, x == 2049, x >= -1e6, x != 0.1, x > 2047.5),
            "zero_dimensional": lambda x: (x + torch.tensor(1e6), x * torch.tensor(7e4), x < torch.tensor(2049.0), torch.maximum(x, torch.tensor(1e6)), x + torch.tensor(1e300, dtype=torch.float64)),
            "remainders": lambda x: (x % 7.3, torch.fmod(x, 2049), torch.remainder(x, -3)),
            "clamped": lambda x: (x.clamp(-1, 2049), x.clamp(min=0.1), x.clamp(max=6e4), torch.clamp(x, torch.tensor(-1.0), torch.tensor(1e5))),
            "wider_operand": lambda x: (x + x.float(), x * x.double(), torch.where(x > 0, x, x.float()), x + torch.tensor(5)),
            "int_operand": lambda x: (x + torch.tensor([70000] * 10), x * torch.tensor([2049] * 10), x + torch.tensor(3), x < torch.tensor([2049] * 10)),
            "summed": lambda x: (x[:5].sum(), x[:5].sum(dtype=torch.float32), x[:4].mean(), x[:5].norm(), x[:3].prod(), x.nansum()),
            "rounded": lambda x: (x[:5].round(), (x[:5] * 0.3).floor(), x[:3].trunc(), torch.frac(x[:3]), x.sign(), x.abs(), x.signbit()),
            "classified": lambda x: (x.isnan(), x.isinf(), x.isfinite(), torch.nan_to_num(x, 1.0), x.isposinf()),
            "converted": lambda x: (x[:3].int(), x.float(), x.double(), x.to(torch.float16), x.to(torch.bfloat16), x[:3].long(), x.bool()),
            "viewed": lambda x: (x.view(torch.int16), x.view(torch.uint8).int(), x.view(torch.int32) if x.numel() % 2 == 0 else x),
            "exponential": lambda x: (x[:3].exp(), x[:3].sigmoid(), torch.log1p(x[:1]), x[:3].tanh(), F.softplus(x[:4]), F.gelu(x[:4]), x[:3].softmax(0)),
        },
        gradients=False,
        rtol=1e-2,
        atol=1e-3,
    )
each(
    "nothing_to_reduce",
    lambda: [r(0, 3), r(3, 0), r(0)],
    {
        "sums": lambda x, y, z: (x.sum(), x.sum(0), y.sum(1), x.prod(0), x.mean(0), z.sum(), y.mean(1, keepdim=True)),
        "statistics": lambda x, y, z: (x.var(0), x.std(), y.var(1), z.norm(), x.norm(dim=0), torch.var_mean(x, 0)),
        "logical": lambda x, y, z: (x.any(), x.all(), y.any(1), y.all(1), x.count_nonzero(0), (x > 0).sum(0)),
        "exponential": lambda x, y, z: (x.logsumexp(0), y.logsumexp(1), x.softmax(0), y.softmax(0), x.log_softmax(1)),
        "other_dimension": lambda x, y, z: (x.amax(1), y.max(0).values, x.argmax(1), y.argmin(0), x.median(1).values, y.sort(0).values),
        "cumulative": lambda x, y, z: (x.cumsum(0), y.cumprod(1), z.cumsum(0), x.cummax(0).values, x.logcumsumexp(0)),
        "products": lambda x, y, z: (y @ x, x @ y, torch.addmm(torch.ones(3, 3), y, x), torch.addmm(torch.ones(3, 3), y, x, beta=0.5), z @ z, torch.outer(z, z), torch.einsum("ij,jk->ik", y, x)),
        "batched": lambda x, y, z: (torch.bmm(torch.ones(2, 3, 0), torch.ones(2, 0, 4)), torch.baddbmm(torch.ones(2, 3, 4), torch.ones(2, 3, 0), torch.ones(2, 0, 4)), torch.bmm(torch.ones(0, 3, 2), torch.ones(0, 2, 3))),
        "joined": lambda x, y, z: (torch.cat([x, torch.ones(2, 3)]), torch.cat([z, torch.ones(2, 3)]), torch.stack([x, x]), torch.cat([x, x], 1), torch.cat([z, z])),
        "sorted": lambda x, y, z: (x.sort(0), z.sort(), z.argsort(), x.topk(0, 0), y.topk(0), x.flip(0)),
        "indexed": lambda x, y, z: (x[:, 1], y[1], x[x > 0], z[torch.tensor([], dtype=torch.long)], torch.ones(4, 3)[torch.tensor([], dtype=torch.long)], x.nonzero(), y[[2, 0]]),
        "written": lambda x, y, z: (x.clone().add_(1), x.index_add(0, torch.tensor([], dtype=torch.long), torch.ones(0, 3)), torch.ones(3).index_put((torch.tensor([], dtype=torch.long),), torch.tensor([])), z.scatter(0, torch.tensor([], dtype=torch.long), z)),
        "reshaped": lambda x, y, z: (x.view(3, 0), x.reshape(0, 7), y.t(), x.unsqueeze(1), x.expand(2, 0, 3), z.view(0, 4), y.flatten(), x.permute(1, 0).contiguous(), x.unflatten(1, (3, 1))),
        "padded": lambda x, y, z: (F.pad(x, (1, 1, 1, 2)), F.pad(z, (2, 1), value=3.0), y.repeat(2, 2), x.tile(2), y.repeat_interleave(2, 0), x.roll(1, 0), x.tril()),
        "split": lambda x, y, z: (x.split(1, 1), y.chunk(2), x.unbind(1), torch.tensor_split(y, 2), z.split(3)),
        "losses": lambda x, y, z: (F.mse_loss(x, x, reduction="sum"), F.l1_loss(z, z, reduction="sum"), F.cross_entropy(x, torch.zeros(0, dtype=torch.long)), F.binary_cross_entropy_with_logits(x, x, reduction="sum"), F.nll_loss(x, torch.zeros(0, dtype=torch.long), reduction="none")),
        "layers": lambda x, y, z: (F.linear(x, torch.ones(4, 3), torch.ones(4)), F.layer_norm(x, (3,)), F.embedding(torch.zeros(0, dtype=torch.long), torch.ones(4, 3)), F.dropout(x, 0.5), F.normalize(x)),
        "dots": lambda x, y, z: (torch.dot(z, z), torch.mv(y, z), torch.mv(x, torch.ones(3)), torch.linalg.vector_norm(x, dim=1), torch.cdist(x, torch.ones(2, 3))),
    },
)
each(
    "empty_batch",
    lambda: [r(0, 4, 6, 6), r(0, 4, 6)],
    {
        "conv": lambda x, y: (F.conv2d(x, torch.ones(3, 4, 3, 3)), F.conv1d(y, torch.ones(2, 4, 3), torch.ones(2), padding=1), F.conv_transpose2d(x, torch.ones(4, 2, 2, 2), stride=2)),
        "pool": lambda x, y: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, 3), F.max_pool1d(y, 2), F.adaptive_max_pool1d(y, 2), F.avg_pool1d(y, 2)),
        "norm": lambda x, y: (F.group_norm(x, 2), F.batch_norm(x, torch.zeros(4), torch.ones(4)), F.layer_norm(y, (6,)), F.local_response_norm(x, 2)),
        "resized": lambda x, y: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(3, 9), mode="bilinear"), F.interpolate(y, size=4, mode="linear"), F.pad(x, (1, 1, 1, 1), mode="reflect")),
        "attention": lambda x, y: (F.scaled_dot_product_attention(x, x, x), F.scaled_dot_product_attention(x, x[:, :, :2], x[:, :, :2], is_causal=False)),
        "unfolded": lambda x, y: (F.unfold(x, 3), x.unfold(2, 3, 2), y.unfold(2, 2, 1), F.grid_sample(x, torch.zeros(0, 2, 2, 2), align_corners=False)),
        "softmax": lambda x, y: (x.softmax(1), y.log_softmax(0), y.argmax(1), x.amax((2, 3)), x.sum((0, 2)), x.mean((1, 2, 3))),
    },
)
each(
    "zero_dims",
    lambda: [torch.tensor(2.5), torch.tensor(-1.5), torch.tensor(3)],
    {
        "arithmetic": lambda x, y, n: (x + y, x * n, x / y, x**n, n // 2, n % 2, x - 1, 2**x),
        "reductions": lambda x, y, n: (x.sum(), x.mean(), x.max(), x.prod(), x.norm(), n.sum(), x.sum(0), x.amax(-1), x.std(unbiased=False), x.logsumexp(0)),
        "extremes": lambda x, y, n: (x.max(0), x.argmax(), x.argmin(0), x.sort(), x.topk(1), x.kthvalue(1), x.median(0), x.cummax(0), x.mode()),
        "cumulative": lambda x, y, n: (x.cumsum(0), x.cumprod(-1), n.cumsum(0), x.logcumsumexp(0), x.softmax(0), x.log_softmax(-1)),
        "views": lambda x, y, n: (x.view(1), x.view(()), x.reshape(1, 1), x.unsqueeze(0), x.expand(3), x.flatten(), x.squeeze(), x.t(), x[None], x[...], x.ravel(), x.contiguous(), x.permute(())),
        "indexed": lambda x, y, n: (x[x > 0], x[True], x[False], x[None, ...], torch.arange(5.0)[n], torch.arange(5.0)[n, None], torch.take(x, torch.tensor([0, 0]))),
        "joined": lambda x, y, n: (torch.stack([x, y]), torch.cat([x.view(1), y.view(1)]), torch.hstack([x, y]), torch.vstack([x, y]), torch.atleast_2d(x), torch.meshgrid(x, y, indexing="ij"), torch.cartesian_prod(x.view(1), y.view(1))),
        "gathered": lambda x, y, n: (x.gather(0, torch.tensor(0)), x.index_select(0, torch.tensor([0])), x.scatter(0, torch.tensor(0), 5.0), x.index_fill(0, torch.tensor([0]), 2.0), x.index_add(0, torch.tensor([0]), y), x.take_along_dim(torch.tensor(0))),
        "written": lambda x, y, n: (x.clone().add_(y), x.clone().copy_(n), x.clone().fill_(n), x.clone().masked_fill_(y < 0, 1.0), x.clone().clamp_(max=y), torch.zeros(3).add_(x), torch.zeros(2, 2).copy_(x)),
        "with_rows": lambda x, y, n: (x + torch.ones(3), torch.ones(3) * y, torch.where(torch.tensor([True, False]), x, y), torch.maximum(x, torch.zeros(2)), torch.lerp(torch.zeros(2), torch.ones(2), x), torch.addcmul(x, torch.ones(2), y)),
        "functions": lambda x, y, n: (x.exp(), y.abs().sqrt(), F.relu(y), F.gelu(x), torch.atan2(x, y), torch.sigmoid(n), torch.erf(x), F.softplus(y), n.sin()),
        "nonzero": lambda x, y, n: (x.nonzero(), n.eq(0).nonzero(), x.count_nonzero(), x.numel(), x.dim(), n.tolist(), bool(n == 3)),
        "promoted": lambda x, y, n: (x + torch.tensor(1.0, dtype=torch.float64), n + 1.5, x.half() + y, torch.tensor([1, 2]) * x, torch.tensor([1.0]).half() + x, torch.tensor([True]) + n),
        "loss": lambda x, y, n: (F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"), F.huber_loss(x, y), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid())),
        "matmul": lambda x, y, n: (torch.outer(x.view(1), y.view(1)), torch.dot(x.view(1), y.view(1)), torch.tensordot(x, y, 0), torch.einsum(",->", x, y), torch.inner(x, y), torch.kron(x, y)),
        "flipped": lambda x, y, n: (x.flip(()), x.roll(1), torch.rot90(torch.ones(2, 2) * x), x.repeat(3), x.repeat(2, 2), x.tile(2), x.repeat_interleave(3)),
    },
)


def targets():
    return [r(4, 6), r(4, 6), torch.empty(4, 6), torch.empty(0), torch.empty(6, 4).t()]


each(
    "into_given",
    targets,
    {
        "sum": lambda x, y, out, none, transposed: (torch.add(x, y, out=out), torch.mul(x, y, out=transposed), out.stride(), transposed.stride()),
        "resized": lambda x, y, out, none, transposed: (torch.add(x, y, out=none), none.shape),
        "matmul": lambda x, y, out, none, transposed: (torch.mm(x, y.t(), out=torch.empty(4, 4)), torch.matmul(x, y[0], out=torch.empty(4))),
        "itself": lambda x, y, out, none, transposed: (torch.mul(x, 2, out=x), torch.sub(y, x, out=y)),
        "half_of_target": lambda x, y, out, none, transposed: (torch.exp(x[:2], out=out[:2]), torch.neg(y[2:], out=out[2:]), out),
        "joined": lambda x, y, out, none, transposed: (torch.cat([x, y], out=torch.empty(8, 6)), torch.stack([x, y], out=torch.empty(2, 4, 6))),
        "reduced": lambda x, y, out, none, transposed: (torch.sum(x, 1, out=torch.empty(4)), torch.mean(x, 0, out=torch.empty(6)), torch.amax(x, 0, out=torch.empty(6)), torch.prod(x, 0, out=torch.empty(6))),
        "two_results": lambda x, y, out, none, transposed: (torch.max(x, 1, out=(torch.empty(4), torch.empty(4, dtype=torch.long))), torch.sort(y, 0, out=(torch.empty(4, 6), torch.empty(4, 6, dtype=torch.long)))),
        "top": lambda x, y, out, none, transposed: torch.topk(x, 2, out=(torch.empty(4, 2), torch.empty(4, 2, dtype=torch.long))),
        "cumulative": lambda x, y, out, none, transposed: (torch.cumsum(x, 1, out=out), torch.cumprod(y, 0, out=transposed)),
        "picked": lambda x, y, out, none, transposed: (torch.index_select(x, 0, torch.tensor([2, 0]), out=torch.empty(2, 6)), torch.gather(x, 1, torch.zeros(4, 2, dtype=torch.long), out=torch.empty(4, 2)), torch.take(x, torch.tensor([1, 5]), out=torch.empty(2))),
        "clamped": lambda x, y, out, none, transposed: (torch.clamp(x, -1, 1, out=out), torch.where(x > 0, x, y, out=transposed)),
        "wider_target": lambda x, y, out, none, transposed: (torch.add(x, y, out=torch.empty(4, 6, dtype=torch.float64)), torch.sum(x, 0, out=torch.empty(6))),
        "made": lambda x, y, out, none, transposed: (torch.arange(5, out=torch.empty(5, dtype=torch.long)), torch.zeros(4, 6, out=out), torch.linspace(0, 1, 5, out=torch.empty(5)), torch.full((4, 6), 2.0, out=transposed)),
        "compared": lambda x, y, out, none, transposed: (torch.lt(x, y, out=torch.empty(4, 6, dtype=torch.bool)), torch.eq(x, x, out=out), torch.isnan(x)),
        "products": lambda x, y, out, none, transposed: (torch.bmm(x[None], y.t()[None], out=torch.empty(1, 4, 4)), torch.addmm(torch.ones(4), x, y.t(), out=torch.empty(4, 4)), torch.outer(x[0], y[0], out=torch.empty(6, 6)), torch.mv(x, y[0], out=torch.empty(4))),
        "pointwise": lambda x, y, out, none, transposed: (torch.sigmoid(x, out=out), torch.addcmul(x, x, y, value=0.5, out=transposed), torch.lerp(x, y, 0.3, out=torch.empty(4, 6)), torch.pow(x.abs(), 1.5, out=torch.empty(4, 6))),
        "statistics": lambda x, y, out, none, transposed: (torch.var(x, 1, out=torch.empty(4)), torch.linalg.vector_norm(x, dim=1, out=torch.empty(4)), torch.logsumexp(x, 1, out=torch.empty(4)), torch.argmax(x, 1, out=torch.empty(4, dtype=torch.long))),
        "triangle": lambda x, y, out, none, transposed: (torch.tril(x, out=out), torch.triu(y, 1, out=transposed), torch.diag(x[:, :4], out=torch.empty(4))),
        "then_used": lambda x, y, out, none, transposed: (torch.add(x, 1, out=out), out * 2, torch.mul(out, out, out=out), out + 1)[1::2],
        "loss": lambda x, y, out, none, transposed: (torch.logaddexp(x, y, out=out), torch.hypot(x, y, out=transposed), torch.atan2(x, y, out=torch.empty(4, 6))),
    },
    gradients=False,
)
each(
    "refused_targets",
    targets,
    {
        "narrower": lambda x, y, out, none, transposed: torch.add(x, y, out=torch.empty(4, 6, dtype=torch.int64)),
        "index_type": lambda x, y, out, none, transposed: torch.argmax(x, 1, out=torch.empty(4)),
        "int_mean": lambda x, y, out, none, transposed: torch.mean(x.long(), 0, out=torch.empty(6)),
        "of_gradients": lambda x, y, out, none, transposed: torch.add(x.requires_grad_(), y, out=out) if torch.is_grad_enabled() else torch.add(x, "y", out=out),
        "cat_type": lambda x, y, out, none, transposed: torch.cat([x, y], out=torch.empty(8, 6, dtype=torch.int32)),
        "mm_shape": lambda x, y, out, none, transposed: torch.mm(x, y, out=out),
        "sort_one": lambda x, y, out, none, transposed: torch.sort(x, out=out),
    },
    gradients=False,
)
each(
    "algebra",
    lambda: [torch.tensor([0.0, -0.0, 1.0, -2.5, inf, -inf, nan, 1e-45, 3e38, 0.5, 1.5, 2.5])],
    {
        "times_zero": lambda x: (x * 0, 0 * x, x * 0.0 + 1, x * -0.0, (x * 0).signbit()),
        "minus_itself": lambda x: (x - x, x / x, x + (-x), x**0, x * x - x * x),
        "plus_zero": lambda x: ((x + 0).signbit(), (x - 0).signbit(), (0 - x).signbit(), (x + -0.0).signbit(), (-x).signbit(), (x * -1).signbit(), (x * 1).signbit(), (x / 1).signbit()),
        "twice_inverse": lambda x: (1 / (1 / x), x.reciprocal().reciprocal(), x.exp().log(), x.abs().sqrt() ** 2, x.log().exp()),
        "roots": lambda x: (x**0.5, x.sqrt(), x**-0.5, x.rsqrt(), x**2, x**-1, x**3, x**1, x**-2, (-x) ** 0.5),
        "extremes": lambda x: (torch.maximum(x, torch.tensor(nan)), torch.fmax(x, torch.tensor(nan)), x.clamp(-1, 1), x.clamp(min=nan), torch.minimum(x, torch.tensor(inf)), torch.fmin(x, x.flip(0))),
        "divisions": lambda x: (x // 2, x // 0.0, x % 2, x % -2, x % inf, torch.fmod(x, 2), torch.fmod(x, inf), torch.div(x, 0.3, rounding_mode="trunc"), torch.div(x, -0.0, rounding_mode="floor"), 5 % x, 5 // x),
        "angles": lambda x: (torch.atan2(x, x), torch.atan2(x, -x), torch.atan2(torch.zeros(12), x), torch.hypot(x, x.flip(0)), x.angle(), torch.copysign(torch.ones(12), x), torch.copysign(x, torch.tensor(-0.0))),
        "rounded": lambda x: (x.round(), x.floor().signbit(), x.ceil().signbit(), x.trunc().signbit(), x.round(decimals=1), (x * 10).round(decimals=-1), x.frac()),
        "classes": lambda x: (x.sign(), x.sgn(), x.isnan(), x == x, x != x, x < inf, x.isinf() | x.isnan(), x.signbit(), torch.nextafter(x, torch.tensor(0.0)), x.heaviside(torch.tensor(0.5))),
        "exponentials": lambda x: (x.exp(), x.expm1(), x.exp2(), x.log1p(), torch.log2(x), x.sigmoid(), F.logsigmoid(x), torch.logit(x), F.softplus(x), x.tanh(), x.sinh(), x.cosh()),
        "sums_of_exponentials": lambda x: (torch.logaddexp(x, x), torch.logaddexp(x, -x), torch.logaddexp2(x, x.flip(0)), x.logsumexp(0), x[:6].logsumexp(0), x[:4].softmax(0), x[4:6].softmax(0), torch.tensor([-inf, -inf]).softmax(0), torch.tensor([inf, 1.0]).log_softmax(0)),
        "products_of_logs": lambda x: (torch.xlogy(x, x), torch.xlogy(torch.zeros(12), x), torch.special.xlog1py(x, x), torch.special.entr(x), x * x.log()),
        "sums": lambda x: (x.sum(), x[:4].sum(), x.nansum(), x.nanmean(), x[:6].cumsum(0), x.cummax(0), x.prod(), x[:4].var(), x[4:6].mean(), x.norm(), x[:6].norm(inf), x[:4].norm(0), x[:4].norm(-inf)),
        "ordered": lambda x: (x.sort(), x.sort(descending=True), x.topk(3), x.argmax(), x.argmin(), x.max(), x.min(), x.median(), x.nanmedian(), x[1:].kthvalue(3), x.amax(), torch.aminmax(x)),
        "chosen": lambda x: (torch.where(x > 0, x, -x), torch.where(x.isnan(), 0.0, x), x.masked_fill(x.isinf(), 0.0), torch.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-2.0), x.nan_to_num(), F.relu(x), F.relu(-x).signbit(), F.leaky_relu(x), F.hardtanh(x), F.threshold(x, 0.5, -1.0)),
        "compared_nan": lambda x: (x == nan, x < nan, torch.isclose(x, x), torch.isclose(x, x, equal_nan=True), torch.equal(x, x), torch.allclose(x[:6], x[:6]), x.eq(x.flip(0))),
        "interpolated": lambda x: (torch.lerp(x, x.flip(0), 0.5), torch.addcmul(x, x, x.flip(0), value=0.0), torch.addcdiv(x, x, x, value=2.0), torch.addcmul(x, torch.zeros(12), x)),
        "decomposed": lambda x: (torch.frexp(x[:4]), torch.ldexp(x, torch.tensor([3])), x.trunc(), x.double().float(), x[:4].half().float(), x.logical_not()),
        "trigonometry": lambda x: (x.sin(), x.cos(), x.tan(), x.clamp(-1, 1).asin(), x.acos(), x.atan(), x.asinh(), x.acosh(), x.atanh(), torch.sinc(x)),
        "errors": lambda x: (x.erf(), x.erfc(), x.clamp(-1, 1).erfinv(), torch.special.erfcx(x[:4]), torch.special.ndtr(x), torch.special.log_ndtr(x), torch.special.ndtri(x.clamp(0, 1)), x.lgamma(), x.digamma()),
    },
    gradients=False,
)
each(
    "out_of_order",
    lambda: [r(6, 5), ints(6, 5, high=4)],
    {
        "ties": lambda x, n: (n.sort(dim=1, stable=True), n.argsort(dim=0, stable=True), n.max(1), n.argmax(0), n.min(0), n.mode(1), n.median(1), n.kthvalue(2, 1).values),
        "runs": lambda x, n: (n.flatten().unique_consecutive(), n.flatten().sort().values.unique_consecutive(return_counts=True), n.unique(return_inverse=True), n.unique(dim=0)),
        "searched": lambda x, n: (torch.searchsorted(torch.arange(4), n), torch.searchsorted(torch.arange(4), n, right=True), torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.bucketize(1.5, torch.arange(4.0)), torch.bucketize(-1, torch.arange(4, dtype=torch.uint8)), torch.searchsorted(torch.arange(5, dtype=torch.uint8), 300)),
        "histograms": lambda x, n: (torch.histc(x, 5, -1, 1), torch.histc(x, 3), torch.histogram(x, 4, range=(-1.0, 1.0)), n.flatten().bincount(x.flatten())),
        "ranked": lambda x, n: (x.argsort().argsort(), x.topk(2, 0), x.topk(5, 1, largest=False), x.topk(2, sorted=True).indices, x.msort(), x.sort(0, True).values),
        "cumulative": lambda x, n: (x.cummax(0), n.cummin(1), x.flip(0).cumsum(0).flip(0), n.cumsum(0, dtype=torch.float32), x.cumprod(1), x.logcumsumexp(0)),
        "quantiles": lambda x, n: (x.quantile(0.3), x.quantile(torch.tensor([0.25, 0.75]), 0), x.nanquantile(0.5, 1), x.quantile(0.5, 1, keepdim=True, interpolation="nearest"), x.quantile(0.4, interpolation="lower")),
        "differences": lambda x, n: (x.diff(), x.diff(2, 0), n.diff(prepend=n[:, :1]), torch.gradient(x), torch.trapezoid(x), torch.cumulative_trapezoid(x, dx=2.0)),
        "combined": lambda x, n: (torch.combinations(x[0], 2), torch.cartesian_prod(x[0, :2], x[1, :3]), torch.tril_indices(4, 4, -1), torch.triu_indices(3, 5, 1), torch.block_diag(x[:2, :2], x[0])),
        "rolled": lambda x, n: (x.roll((1, -2), (0, 1)), x.roll(3), x.rot90(1, (0, 1)), x.rot90(-3, (1, 0)), x.flip(0, 1), x.fliplr(), n.roll(-1, 0)),
    },
    gradients=False,
)
each(
    "picked_and_put",
    lambda: [r(5, 4, 3), torch.tensor([3, 0, 3, 1]), bools(5, 4), r(4)],
    {
        "around_slices": lambda x, i, m, v: (x[i, 1:3], x[:, i], x[i, :, [0, 1, 2, 0]], x[[0, 1], ..., [1, 2]], x[i, None, 1], x[..., [2, 0]], x[1, i, 0], x[i[:, None], i]),
        "by_masks": lambda x, i, m, v: (x[m], x[m, 0], x[m][:, 1], x[:, m[0]], x[m[:, 0]], x[m & (x[..., 0] > 0)].sum(0), x[~m].mean()),
        "by_negative": lambda x, i, m, v: (x[-i - 1], x[:, -1], x[-2:, -3:-1], x[i - 4, ..., -1], x[-1, -1, -1], x[torch.tensor(-2)], x[::2, 1::2, -1:]),
        "accumulated": lambda x, i, m, v: (torch.zeros(5).index_put((i,), v, accumulate=True), torch.zeros(5, 4).index_add(0, i, v.expand(4, 4), alpha=0.5), torch.zeros(4, 5).scatter_add(1, i[:, None], v[:, None]), x.index_put((i, i), v[:, None], accumulate=True)),
        "last_wins": lambda x, i, m, v: (x.index_copy(0, torch.tensor([4, 2]), x[:2]), x.index_fill(1, torch.tensor([0, 2]), 7.0), x.scatter(2, torch.zeros(5, 4, 1, dtype=torch.long), 1.5), x.slice_scatter(x[:2] * 2, 0, 1, 3)),
        "scatter_reduced": lambda x, i, m, v: tuple(torch.ones(4, 4).scatter_reduce(0, i.expand(4, 4), x[0, :, :1].expand(4, 4), kind, include_self=own) for kind in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
        "index_reduced": lambda x, i, m, v: tuple(torch.ones(5, 4).index_reduce(0, i, x[:4, :, 0], kind, include_self=own) for kind in ("prod", "mean", "amax", "amin") for own in (True, False)),
        "taken": lambda x, i, m, v: (x.take(i), x.take(torch.tensor([[0, -1], [5, 59]])), torch.take_along_dim(x, i.view(1, 4, 1), 0), x.gather(0, i.view(1, 4, 1).expand(2, 4, 3)), x.index_select(-1, torch.tensor([2, 2, 0])), torch.put(x, i, v)),
        "masked": lambda x, i, m, v: (x.masked_fill(m[..., None], 0.5), x.masked_select(m[..., None]), x.masked_scatter(m[..., None].expand(5, 4, 3), torch.arange(60.0)), torch.where(m[..., None], x, v[:, None])),
        "set_by_mask": lambda x, i, m, v: (lambda y: (y.__setitem__(m, 0.0), y.__setitem__((m, 0), v[0]), y)[2])(x.clone()),
        "set_by_lists": lambda x, i, m, v: (lambda y: (y.__setitem__(([0, 2], slice(None), 1), v), y.__setitem__((slice(1, 3), [0, 3]), 2.0), y.__setitem__((..., -1), v), y)[3])(x.clone()),
        "set_broadcast": lambda x, i, m, v: (lambda y: (y.__setitem__(slice(None, None, 2), v[:, None]), y.__setitem__((0, 1), v[0]), y.__setitem__(i, torch.ones(3)), y)[3])(x.clone()),
        "set_of_other_type": lambda x, i, m, v: (lambda y, z: (y.__setitem__(0, v[:3].double()), z.__setitem__((slice(None), 0), v[:1] * 3), y, z)[2:])(x.clone(), torch.zeros(4, 3, dtype=torch.int32)),
        "added_in_place": lambda x, i, m, v: (lambda y: (y[1:3].add_(1), y[:, 1].mul_(2), y[..., 0].zero_(), y[i[:1]].add_(100), y.view(-1)[::7].fill_(9), y)[5])(x.clone()),
        "overlapping_shift": lambda x, i, m, v: (lambda y: (y[1:].copy_(y[:-1].clone()), y[:, 1:].add_(y[:, :-1].clone()), y)[2])(x.clone()),
        "diagonals": lambda x, i, m, v: (x.diagonal(0, 0, 1), x.diagonal(-1, 1, 2).sum(), torch.diag_embed(v, 1), v.diag(-1), x.diagonal_scatter(torch.ones(3, 4), 0, 0, 1), torch.diagflat(x[:2, :2, 0]), x.diagonal(1, 0, 2)),
        "embedded": lambda x, i, m, v: (F.embedding(i, x[:, :, 0], padding_idx=3), F.embedding(i.view(2, 2), x[:, 0], max_norm=None), F.embedding_bag(i, x[:, 0], torch.tensor([0, 1]), mode="max"), F.embedding_bag(i, x[:, 0], torch.tensor([0, 3]), mode="sum", per_sample_weights=v), F.one_hot(i, 6)),
        "nonzero": lambda x, i, m, v: (m.nonzero(), torch.nonzero(m, as_tuple=True), m.argwhere(), x[m.nonzero(as_tuple=True)], m.nonzero().sum(0)),
    },
)


# Strides that no element depends on, and sizes that are repeated.

each(
    "laid_out",
    lambda: [r(3, 1, 5).transpose(0, 1), r(2, 3, 4, 5).to(memory_format=torch.channels_last), r(6, 1).t()],
    {
        "filled": lambda x, c, n: (x.masked_fill(x > 0, 1.0), c.masked_fill(c > 0, 1.0), n.masked_fill(n > 0, torch.tensor(2.0))),
        "filled_then_computed": lambda x, c, n: (x.masked_fill(x > 0, 1.0) + 1, n.masked_fill(n > 0, 0.0).clone(), x.masked_fill(x > 9, 1.0).relu().unsqueeze(0)),
        "filled_by_a_row": lambda x, c, n: (x.masked_fill(x[:, :1] > 0, 1.0), n.masked_fill(n[:, :1] > 0, 1.0)),
        "sizes_repeated": lambda x, c, n: (c.shape * 2, 2 * x.shape, x.shape + n.shape, (1,) + n.shape, isinstance(c.shape * 2, torch.Size), (x.shape * 2).numel()),
    },
)
