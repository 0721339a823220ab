"""Still more small programs on the subjects that the tests of PyTorch's own compiler have; they join those of `peer_cases`.

Here are exact values (signs of zero, half precisions that are rounded where eager rounds them, integers at their limits), results that jump,
layouts of outputs, modes of scatters and pools, calls that eager refuses, and programs whose parts were fused in the wrong order once.
"""

import math

import torch
import torch.nn.functional as F
from peer_cases import PEERS, Peer, bools, each, inf, ints, nan, one, peer, r, two
from torch import nn

HALVES = (torch.float16, torch.bfloat16)

# Half precisions: eager rounds what an operator returns, and what looks at it closely sees that.


def halves(dtype):
    return lambda: [r(4, 33, dtype=dtype), r(4, 33, dtype=dtype), r(4, 33)]


for _dtype in HALVES:
    _name = str(_dtype).removeprefix("torch.")
    each(
        f"rounded_{_name}",
        halves(_dtype),
        {
            "upcast": lambda x, y, z: ((x * y).float(), (x + y).double(), (x - y).float() * 2),
            "upcast_of_chain": lambda x, y, z: ((x * y + x) * y).float() - x.float() * y.float(),
            "promoted": lambda x, y, z: (x * y + z, torch.where(x > 0, x * y, z), torch.maximum(x * y, z)),
            "compared": lambda x, y, z: (x * y > x.float() * y.float(), (x * y) == (x * y).float(), (x / 3) < 0.1, x * y != y * x),
            "compared_to_numbers": lambda x, y, z: (torch.full_like(x, 0.1) == 0.1, x * 0 + 0.3 >= 0.3, (x * 0 + 1e-3).eq(1e-3)),
            "compared_to_extrema": lambda x, y, z: (lambda p: (p == p.amax(1, keepdim=True), p == p.amin(), p >= p.mean()))(x * y),
            "arg_extrema": lambda x, y, z: ((x * y).argmax(1), (x * 0.01 + y * 0).argmin(), (x * y).max(0).indices, (x.abs() / 7).min(1)[1]),
            "jumps": lambda x, y, z: ((x * y * 100).floor(), (x / y).ceil(), (x * y * 3).round(), (x * 10 * y).trunc(), (x * y * 9) % 2, torch.fmod(x * y * 9, 2), torch.div(x * y, 0.1, rounding_mode="trunc")),
            "to_integers": lambda x, y, z: ((x * y * 100).int(), (x * y * 100).to(torch.int8), (x * y).bool(), (x / y).to(torch.int64)),
            "reduced_wider": lambda x, y, z: ((x * y).sum(1, dtype=torch.float32), (x * y).softmax(1, dtype=torch.float32), (x * y).mean(0, dtype=torch.float64), torch.linalg.vector_norm(x * y, dtype=torch.float32)),
            "joined_wider": lambda x, y, z: (torch.cat([x * y, z]), torch.stack([x.float(), (x + y).float()]), torch.cat([(x * y).t(), z.t()], 1)),
            "between_halves": lambda x, y, z: ((x * y).half().bfloat16(), (x * y).bfloat16().half().float(), (x / 3).to(torch.float16).to(torch.bfloat16)),
            "viewed": lambda x, y, z: ((x * y).view(torch.int16), (x * y).contiguous().view(torch.int16) & 255),
            "normalised": lambda x, y, z: (F.layer_norm(x * y, (33,)), F.rms_norm(x + y, (33,)), F.softmax(x * y, 0), F.gelu(x * y), F.silu(x + y).float()),
            "accumulated": lambda x, y, z: (torch.zeros(3, 33, dtype=x.dtype).index_put((torch.tensor([0, 0, 1, 0]),), x, accumulate=True), torch.ones(2, 33, dtype=x.dtype).index_add(0, torch.tensor([1, 1, 0, 1]), y), torch.zeros(5, dtype=x.dtype).put(torch.tensor([1, 1, 2]), x[0, :3], accumulate=True)),
            "of_products": lambda x, y, z: ((x @ y.t()).float(), (x @ y.t() > 0.5), (x @ y.t()).relu().float().sum(0)),
        },
        gradients=False,
    )
    each(
        f"trained_{_name}",
        lambda d=_dtype: [r(6, 16, dtype=d), r(16, 8, dtype=d)],
        {
            "linear": lambda x, w: F.relu(x @ w).float().pow(2).mean(),
            "norm": lambda x, w: F.layer_norm(x, (16,)).float().sum(0) * w[:, 0].float(),
            "attention": lambda x, w: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])[0, 0] @ w,
            "cross_entropy": lambda x, w: F.cross_entropy((x @ w).float(), torch.arange(6)),
            "indexed": lambda x, w: x[torch.tensor([0, 0, 3])].float() * 2,
            "mixed": lambda x, w: (x.float() @ w.float() + (x @ w)).sum(),
        },
    )

# Signs of zero, not a number, and infinities.


def zeros():
    return [torch.tensor([0.0, -0.0, 1.0, -1.0, nan, inf, -inf]), torch.tensor([-0.0, 0.0, -0.0, 0.0, 1.0, -inf, nan])]


def signs(*values):
    """Values with the signs of their zeros."""
    return tuple((each, torch.signbit(each)) for each in values)


each(
    "zeros",
    zeros,
    {
        "added": lambda x, y: signs(x + y, x - y, -x, x * y, 0 - x, x + 0, x * -0.0, y - y, x.neg()),
        "rounded": lambda x, y: signs((x * 0.4).round(), (y * 0.3).ceil(), (x * 0.2).trunc(), x.floor(), x.frac(), torch.round(x * 0.04, decimals=1)),
        # Which of two zeros is the larger is open.
        "extrema": lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), x.clamp(0), x.clamp(max=-0.0), x.relu(), F.hardtanh(x, 0, 1)),
        "divided": lambda x, y: signs(x / inf, y / -inf, x // 2, y // -2, x % 2, y % -2, torch.fmod(x, -3), torch.remainder(y, 3), x / y, torch.div(x, -4, rounding_mode="trunc")),
        "copied_signs": lambda x, y: signs(torch.copysign(x, y), torch.copysign(x, -1), x.abs(), x.sign(), torch.sgn(y), torch.sin(x[:4]), torch.tanh(y[:4]), torch.expm1(x[:4]), torch.asin(y[:4])),
        "reduced": lambda x, y: signs(x[:2].sum(), y[:1].sum(), x[1:2].prod(), torch.stack([x[1], y[0]]).amax(), torch.stack([x[:2], y[:2]]).amin(0), x[1:2].mean(), x[1:2].cumsum(0)),
        "stepped": lambda x, y: signs(torch.nextafter(x, y), torch.nextafter(x, torch.tensor(-inf)), torch.ldexp(x, torch.tensor(2)), torch.heaviside(x, y), torch.frexp(x)[0], torch.hypot(x, y), torch.atan2(x, y)),
        "cast": lambda x, y: signs(x.half(), x.double(), y[:6].bfloat16().float()) + ((x == y), (x[:4].int().float()), x.bool(), x.view(torch.int32)),
        "filled": lambda x, y: signs(torch.full((3,), -0.0), torch.where(x > 0, -0.0, y), x.masked_fill(x == 0, -0.0), torch.zeros(2).fill_(-0.0), torch.lerp(x, y, 0.0), torch.addcmul(x, y, y, value=0)),
        "sorted": lambda x, y: (x.sort(stable=True), y.sort(descending=True, stable=True), x.argsort(stable=True), torch.unique(x[:4]), x.topk(3)[0], x[:4].kthvalue(2)),
        "not_a_number": lambda x, y: (x.max(), x.min(), x.amax(), x.argmax(), x.argmin(), x.max(0), x.cummax(0), x.median(), x.nanmedian(), x.isnan(), x.nan_to_num(7, 8, 9), x.clamp(-2, 2), x.clamp(torch.tensor(nan)), torch.nansum(x), x.nanmean()),
        "losses": lambda x, y: (F.mse_loss(x, y, reduction="none"), F.smooth_l1_loss(x, y, reduction="none"), F.huber_loss(x, y, reduction="none"), F.softplus(x), F.logsigmoid(x), F.softshrink(x), F.hardswish(x), F.elu(x), F.mish(x), F.threshold(x, 0, 5)),
    },
    gradients=False,
)

# Integers at their limits.

each(
    "limits",
    lambda: [torch.tensor([2**31 - 1, -(2**31), 0, 7], dtype=torch.int32), torch.tensor([2**63 - 1, -(2**63), 2**53 + 1, -5]), torch.tensor([255, 128, 1, 0], dtype=torch.uint8), torch.tensor([127, -128, -1, 3], dtype=torch.int8), torch.tensor([32767, -32768, 9, -9], dtype=torch.int16)],
    {
        "wrapped": lambda a, b, c, d, e: tuple(each + 1 for each in (a, b, c, d, e)) + tuple(each * 3 - 5 for each in (a, b, c, d, e)) + (-a, -b, -c, -d, a.abs(), d.abs(), e.square()),
        "mixed": lambda a, b, c, d, e: (a + b, c + d, c * e, d - c, a * c, (c + 300), d * 1000, c - 1, 1 - c, c.bitwise_not(), ~d),
        "divided": lambda a, b, c, d, e: (a // 2, a % 7, b // -3, b % 10, c // 3, c % 100, d // 7, d % -3, torch.fmod(d, 3), e // 10, torch.div(e, 7, rounding_mode="floor"), torch.div(c, 2, rounding_mode="trunc"), a / 2, c / d.abs().clamp(1)),
        "shifted": lambda a, b, c, d, e: (a << 1, a >> 3, b << 2, b >> 60, c << 1, c >> 1, d << 2, d >> 1, e << 5, e >> 4, 1 << c.clamp(max=6), a >> 31, c << 7, torch.bitwise_left_shift(a, 4), torch.bitwise_right_shift(d, 7)),
        "bitwise": lambda a, b, c, d, e: (a & 255, a | 1, a ^ -1, b & b >> 1, c & 15, c ^ 255, d | e, ~b, c.logical_not(), torch.bitwise_and(a, c), a.bool() ^ d.bool()),
        "compared": lambda a, b, c, d, e: (a > b, c == d, c > -1, d < 200, b == 2**53, b.double() == b, a.float() == a, e >= c, torch.maximum(c, d), torch.minimum(a, e)),
        "summed": lambda a, b, c, d, e: (a.sum(), a.sum(dtype=torch.int32), c.sum(), d.prod(), e.cumsum(0), b.cumsum(0), c.cumprod(0), a.max(), b.min(), b.argmax(), c.float().mean(), torch.cumsum(d, 0, dtype=torch.int8), a.amax(), e.aminmax()),
        "powers": lambda a, b, c, d, e: (a**2, b**3, c**2, d**3, 2 ** c.clamp(max=7), (-1) ** c, (-2) ** c.clamp(max=9).long(), e**0, 1**b, torch.pow(d, 2), a.pow(1), torch.float_power(c, 2)),
        "cast": lambda a, b, c, d, e: (a.to(torch.int8), b.to(torch.int32), c.to(torch.int8), d.to(torch.uint8), e.to(torch.uint8), b.float(), b.double().long(), a.to(torch.int16).to(torch.int64), b.to(torch.uint8), c.half(), d.bfloat16()),
        "indexed": lambda a, b, c, d, e: (torch.arange(10)[a.clamp(0, 9).long()], torch.arange(256)[c.long()], F.one_hot(c.clamp(max=3).long(), 4), torch.bincount(c.clamp(max=9).long()), b.gather(0, c.clamp(max=3).long()), a.index_select(0, d.clamp(0, 3).long())),
        "searched": lambda a, b, c, d, e: (torch.bucketize(a, torch.tensor([-5, 0, 7])), torch.searchsorted(torch.tensor([0, 100, 200]), c.long(), right=True), torch.isin(d, torch.tensor([3, -1], dtype=torch.int8)), b.sort()[1], c.sort(descending=True), torch.unique(e), a.topk(2), d.median(), e.mode()),
        "gcd": lambda a, b, c, d, e: (torch.gcd(a[2:], a[2:] + 7), torch.lcm(c.long(), torch.tensor([6, 4, 3, 2])), torch.gcd(d[2:], d[2:] + 1), a.sign(), c.sign(), b.signbit(), torch.clamp(c, 10, 20), d.clamp(-5), e.clip(max=4)),
    },
    gradients=False,
)

# Scatters and gathers.

each(
    "scattered",
    lambda: [r(5, 6), ints(4, 6, high=5), r(4, 6), ints(7, high=5)],
    {
        f"{mode}_{'with' if own else 'without'}_self": lambda x, i, v, j, mode=mode, own=own: (torch.scatter_reduce(x, 0, i, v, mode, include_self=own), torch.scatter_reduce(x.t(), 1, i.t(), v.t(), mode, include_self=own), torch.index_reduce(x, 0, j[:4] % 5, v, mode, include_self=own) if mode != "sum" else x)
        for mode in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    }
    | {
        "of_nothing": lambda x, i, v, j: (x.scatter(0, i[:0], v[:0]), x.scatter_add(0, i[:0], v[:0]), x.index_add(0, j[:0], v[:0]), x.gather(0, i[:0]), x[j[:0]], x.index_copy(0, j[:0], v[:0]), x.take(j[:0])),
        "by_numbers": lambda x, i, v, j: (x.scatter(0, i, 2.5), x.index_fill(0, j[:2], -1.0), x.index_fill(1, torch.tensor(2), 3.0), x.masked_fill(x > 0, -inf), x.scatter_add(0, i, torch.ones(4, 6))),
        "of_part": lambda x, i, v, j: (x.scatter(0, i[:2, :3], v[:2, :3]), x.gather(0, i[:, :2]), x.gather(1, i[:3, :2]), x.scatter_add(1, i[:2, :4] % 6, v[:2, :4]), torch.take_along_dim(x, i % 5, 0), x.index_add(1, j[:3], v[:1, :3].expand(5, 3), alpha=2)),
        "into_slices": lambda x, i, v, j: (torch.slice_scatter(x, v[:2], 0, 1, 5, 2), torch.select_scatter(x, v[0], 0, -1), torch.diagonal_scatter(x, v[0, :5]), torch.as_strided_scatter(x.detach(), v[:2, :2], (2, 2), (6, 1), 3), x.diagonal_scatter(v[0, :5], 1)),
        "in_place": lambda x, i, v, j: (lambda y: (y.scatter_(0, i, v), y.index_add_(0, j[:4], v), y.index_fill_(1, torch.tensor([0]), 0.0), y.masked_fill_(y > 1, 1.0), y.index_copy_(0, torch.tensor([2, 0]), v[:2])))(x.detach().clone()),
        "then_read": lambda x, i, v, j: (lambda y: (y * 2, y[j], y.sum(0), y.gather(0, i)))(x.scatter_add(0, i, v)),
        "negative": lambda x, i, v, j: (x[j - 5], x[-1], x[:, -j[:2] - 1], x.index_put((j[:4] - 5,), v), x[torch.tensor([-1, 0, -5])], x[j.unsqueeze(1) - 5, torch.tensor([-1, -6])]),
        "booleans": lambda x, i, v, j: (torch.where(x > 0, x, 0).sum(1), x.masked_scatter(x > 0, v.new_ones(30)), x.index_put((x > 1,), torch.tensor(9.0)), torch.where(x[:, :1] > 0, x, v[0]), x * (x > 0) + (x <= 0) * 2),
    },
)

# Pools, windows and images.

each(
    "pooled",
    lambda: [r(2, 3, 13, 17)],
    {
        "ceil": lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, (2, 3), (2, 1), ceil_mode=True, count_include_pad=False), F.max_pool2d(x, 2, ceil_mode=True, return_indices=True)),
        "dilated": lambda x: (F.max_pool2d(x, 3, 1, 1, dilation=2), F.max_pool2d(x, (2, 3), dilation=(3, 2)), F.max_pool1d(x[0], 3, 2, 1, 2)),
        "divisor": lambda x: (F.avg_pool2d(x, 3, divisor_override=5), F.avg_pool2d(x, 2, 1, 1, count_include_pad=False), F.avg_pool1d(x[0], 3, 2, 1, count_include_pad=False), F.avg_pool3d(x, 2)),
        "adaptive": lambda x: (F.adaptive_avg_pool2d(x, (5, 7)), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, (4, 3)), F.adaptive_avg_pool2d(x, (None, 4)), F.adaptive_avg_pool1d(x[0], 6), F.adaptive_avg_pool2d(x, (20, 30)), F.adaptive_max_pool2d(x, 3, return_indices=True)),
        "fractional": lambda x: (F.fractional_max_pool2d(x, 2, (5, 6), _random_samples=torch.full((2, 3, 2), 0.3)), F.fractional_max_pool2d(x, (2, 3), output_ratio=(0.5, 0.5), _random_samples=torch.full((2, 3, 2), 0.7), return_indices=True)),
        "unpooled": lambda x: (lambda y, i: (F.max_unpool2d(y, i, 2, output_size=(13, 17)), y * 2))(*F.max_pool2d(x, 2, return_indices=True)),
        "powers": lambda x: (F.lp_pool2d(x.abs() + 0.1, 2, 3), F.lp_pool1d(x[0].abs() + 0.1, 3.0, 2), F.local_response_norm(x, 3)),
        "unfolded": lambda x: (F.unfold(x, 3, 1, 1, 2), F.unfold(x, (2, 3), padding=1), F.fold(F.unfold(x, 2, stride=2)[:, :, :48], (12, 16), 2, stride=2), x.unfold(2, 4, 3).unfold(3, 5, 2), x.unfold(3, 3, 3).sum(-1)),
        "padded": lambda x: (F.pad(x, (1, 2, 3, 0), "reflect"), F.pad(x[0], (2, 1), "replicate"), F.pad(x, (1, 1, 1, 1), "circular"), F.pad(x, (-1, 2, 0, -3)), F.pad(x, (0, 0, 1, 1), value=7), F.pad(x[0], (1, -1, 2, -2, 1, 1), value=-1)),
        "upsampled": lambda x: (F.interpolate(x, scale_factor=1.7), F.interpolate(x, (20, 9), mode="bilinear"), F.interpolate(x, scale_factor=(0.5, 2.0), mode="bilinear", align_corners=True), F.interpolate(x, (7, 8), mode="bicubic"), F.interpolate(x, (6, 5), mode="area"), F.interpolate(x, (9, 9), mode="nearest-exact")),
        "upsampled_flat": lambda x: (F.interpolate(x[0], 23, mode="linear"), F.interpolate(x[0], scale_factor=0.3), F.interpolate(x[None].transpose(0, 1), (4, 20, 20), mode="trilinear"), F.interpolate(x, scale_factor=2.5, recompute_scale_factor=True, mode="bilinear"), F.upsample(x, (5, 5))),
        "shuffled": lambda x: (F.pixel_shuffle(x[:, :, :12, :16].reshape(2, 12, 6, 8), 2), F.pixel_unshuffle(x[:, :, :12, :16], 4), F.channel_shuffle(x.reshape(1, 6, 13, 17), 3), x.rot90(1, (2, 3)), x.rot90(-1, (1, 3)), x.flip((0, 3)), x.roll((2, -3), (2, 3)), x.fliplr(), x.flipud()),
        "channels_last": lambda x: (lambda y: (y * 2, F.relu(y), F.max_pool2d(y, 2), F.avg_pool2d(y, 3, 2), F.interpolate(y, scale_factor=2), y.sum(1), y + y.mean((2, 3), keepdim=True), torch.cat([y, y], 1), y.permute(0, 2, 3, 1) + 1, y.clone(), y.contiguous(), F.pad(y, (1, 1))))(x.contiguous(memory_format=torch.channels_last)),
        "grids": lambda x: tuple(F.grid_sample(x, F.affine_grid(torch.tensor([[[1.1, 0.1, 0], [0.2, 0.9, 0.3]]]).expand(2, 2, 3), (2, 3, 6, 7), False), mode=m, padding_mode=p, align_corners=a) for m, p, a in (("bilinear", "zeros", False), ("nearest", "border", True), ("bicubic", "reflection", False))),
        "normalised": lambda x: (F.instance_norm(x), F.group_norm(x, 3), F.layer_norm(x, (13, 17)), F.batch_norm(x, None, None, training=True), F.normalize(x, dim=1), F.normalize(x, p=1, dim=(2, 3)), F.layer_norm(x, (3, 13, 17), eps=0.1)),
        "convolved": lambda x: (F.conv2d(x, x[:1, :, :3, :2] * 0.1, padding="same"), F.conv2d(x, x[:, :, :2, :2], stride=(2, 3), padding=(1, 0), dilation=(2, 1)), F.conv_transpose2d(x, x[:1].transpose(0, 1)[:, :, :3, :3], stride=2, output_padding=1), F.conv1d(x[0], x[:1, 0, :13, :4]), F.conv2d(x, x[:1, :, :1, :1].transpose(0, 1), groups=3)),
    },
    rtol=1e-4,
    atol=1e-5,
)

# Layouts of outputs, and views.

each(
    "laid_out",
    lambda: [r(4, 6, 5), r(5, 6)],
    {
        "permuted": lambda x, y: (x.permute(2, 0, 1) + 1, x.transpose(0, 2) * x.transpose(0, 2), x.mT @ y.new_ones(6, 2), x.permute(1, 2, 0).contiguous(), x.permute(1, 0, 2).exp().sum(1), torch.empty_like(x.permute(2, 0, 1)).fill_(1)),
        "strided": lambda x, y: (x[::2] + 1, x[:, 1::2, ::3] * 2, x[..., 0] + x[..., -1], x[:, :1].expand(4, 6, 5) + 0, x.as_strided((3, 4), (7, 2), 5) * 2, x.diagonal(0, 1, 2) + 1, x.unfold(1, 2, 2) * 1),
        "returned": lambda x, y: (x.mT, x[1:], x[::2, 1], x.view(-1), x.unsqueeze(1), x.expand(2, 4, 6, 5), x.diagonal(), x.view(2, 2, 30), x.movedim(0, -1), x.narrow(1, 2, 3), x.flatten(1), x.squeeze(), x.real, x.detach()),
        "reshaped": lambda x, y: (x.transpose(0, 1).reshape(6, 20), x.reshape(-1, 5).t().reshape(3, -1), x.mT.reshape(-1)[::7], x.view(24, 5).unflatten(0, (2, -1)), x.ravel() + 1, x.reshape(4, 30)[:, ::4], y.t().reshape(2, 15), x.swapdims(0, 2).flatten()),
        "joined": lambda x, y: (torch.cat([x, x.transpose(1, 2).reshape(4, 6, 5)], 2), torch.stack([y, y * 2], -1), torch.hstack([y, y]), torch.vstack([y, y]), torch.dstack([y, y]), torch.column_stack([y, y[:, 0]]), torch.cat([x[:, :0], x], 1), torch.cat([y.int(), y], 0), torch.stack([x.mT, x.mT * 2], 1)),
        "parted": lambda x, y: (*x.chunk(3, 1), *x.split([1, 2, 3], 1), *x.unbind(2), *x.tensor_split(4, 2), *torch.hsplit(y, 3), *torch.vsplit(y, [1, 4]), *x.tensor_split((1, 3), 1)),
        "tiled": lambda x, y: (y.repeat(2, 3), y.tile(2, 1, 2), y.repeat_interleave(2, 1), y.expand(3, 5, 6).reshape(15, 6), torch.broadcast_to(y[:1], (4, 6)), torch.kron(y[:2, :2], y[:3, :1]), y.repeat(1, 1, 1, 2), torch.cartesian_prod(y[0, :2], y[1, :3]), torch.combinations(y[0, :4])),
        "triangles": lambda x, y: (x.tril(), x.triu(-1), y.tril(2), torch.tril_indices(4, 5), torch.triu_indices(3, 6, 1), y.triu(1).t(), torch.diag(y[0]), torch.diag(y, 1), torch.diagflat(y[:2, :2]), torch.diag_embed(y, 1), x.diagonal(1).sum(-1), y[:5, :5].trace()),
        "bit_casts": lambda x, y: (y.view(torch.int32), y.view(torch.int16), x.view(torch.uint8).sum(-1), y.half().view(torch.int16) + 1, y.view(torch.complex64), torch.view_as_real(torch.view_as_complex(x[..., :4].reshape(4, 6, 2, 2).contiguous()) * 2), y.double().view(torch.int64) >> 52),
    },
    gradients=False,
)
each(
    "layout_trained",
    lambda: [r(4, 6, 5), r(5, 6)],
    {
        "permuted": lambda x, y: (x.permute(2, 0, 1) * y[:, None]).sum((1, 2)) + x.mT.reshape(-1, 6).mean(0).sum(),
        "strided": lambda x, y: (x[::2, 1:, ::2] * 2).sum() + (x.as_strided((3, 4), (7, 2), 5) ** 2).sum(),
        "repeated": lambda x, y: (x.expand(3, 4, 6, 5) * torch.arange(3.0).view(3, 1, 1, 1)).sum(0) * y.t(),
        "gathered": lambda x, y: x[torch.tensor([0, 0, 3]), :, torch.tensor([1, 1, 4])] * y[0],
        "rolled": lambda x, y: x.roll((1, 2), (0, 2)) * x.flip(1) + x.rot90(1, (0, 1)).sum() + torch.triu(y).sum(),
        "split": lambda x, y: [part.exp().sum() * k for k, part in enumerate(x.split([1, 2, 3], 1))] + [each.norm() for each in y.unbind(1)],
    },
)

# Writes.


@peer(lambda: [r(6, 8)], gradients=False)
def write_through_transposed_rows(x):
    y = x.t()[2:5]
    y.mul_(2)
    x[0] += y[:, 0].sum()
    return x, y, x.sum()


@peer(lambda: [r(6, 8), r(6, 8)], gradients=False)
def write_then_overwrite(x, y):
    x.copy_(y)
    z = x + 1
    x.fill_(3)
    w = x * 2
    x.add_(y)
    return z, w, x


@peer(lambda: [r(8)], gradients=False)
def swap_of_halves_by_clones(x):
    a, b = x[:4].clone(), x[4:].clone()
    x[:4], x[4:] = b, a
    return x * 1


@peer(lambda: [r(5, 5)], gradients=False)
def diagonal_is_written(x):
    x.diagonal().fill_(0)
    x.diagonal(1).add_(5)
    return x, x.trace()


@peer(lambda: [r(4, 4), ints(4, high=4)], gradients=False)
def write_by_index_then_view(x, i):
    x[i] = 7
    y = x.view(2, 8)
    y[0, :3] -= 1
    x[:, i] *= 2
    return y, x[i]


@peer(lambda: [r(10)], gradients=False)
def cumulated_in_place(x):
    x.cumsum_(0)
    x.clamp_(-1, 1).sub_(x.mean())
    x[::2].exp_()
    return x


@peer(lambda: [torch.zeros(4, dtype=torch.int32), r(4)], gradients=False)
def integers_take_floats(x, y):
    x += (y * 10).int()
    x.copy_(y * 100)
    x[1:3] = y[:2] * 5
    return x, x.float() / 3


@peer(lambda: [r(3, 4), bools(3, 4)], gradients=False)
def masks_are_written(x, m):
    m.logical_not_()
    x[m] = 0
    m[0] = x[0] > 0
    x.masked_fill_(~m, 9)
    return x, m, m.sum()


@peer(lambda: [r(4, 5)])
def written_after_a_use(x):
    y = x * 2
    z = y.relu()
    y.add_(1)
    w = y.sin_()
    return z, w.sum(0), y


@peer(lambda: [r(4, 5)])
def view_written_before_gradient(x):
    y = x.clone()
    y[1] *= 3
    y[:, 2].neg_()
    v = y.view(-1)
    v[::3] = 1
    return y.pow(2).sum(), v


@peer(lambda: [r(3, 3), r(3, 3)], gradients=False)
def out_forms(x, y):
    a = torch.empty(3, 3)
    b = torch.empty(0)
    torch.add(x, y, out=a)
    torch.mm(x, y, out=a)
    c = torch.mul(x, 2, out=torch.empty(3, 3))
    values, places = torch.empty(3), torch.empty(3, dtype=torch.int64)
    torch.max(x, 1, out=(values, places))
    return a, c, values, places, b


# Modules, containers and dead code.


class Counting(nn.Module):
    """Buffers that count and average."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.count += 1
        self.average.lerp_(x.detach().mean(0), 0.1)
        return x * self.weight / (self.average.abs() + 1) + self.count


class Shared(nn.Module):
    """One weight in two places, a frozen one and a list."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.c = nn.ModuleList([nn.Linear(4, 4, bias=False) for _ in range(3)])
        self.c[1].weight.requires_grad_(False)

    def forward(self, x):
        x = self.b(self.a(x).tanh())
        for each in self.c:
            x = x + each(x)
        return x


for _name, _module in {"counting": Counting, "shared": Shared}.items():
    PEERS[f"stateful_{_name}"] = Peer(_module(), lambda: [r(6, 4)])


@peer(lambda: [{"a": r(3), "b": [r(3), (r(3), 2)]}, [r(3), None]])
def nested_arguments(tree, rest):
    a, (b, (c, n)) = tree["a"], tree["b"]
    return {"sum": a + b + c * n, "rest": [rest[0] * 2, None, (a, len(rest))]}, n


@peer(two)
def dead_code(x, y):
    unused = (x @ y.t()).softmax(1).log().sum()
    dropped = torch.nonzero(x > 100)
    x.sin()
    return x + 1


@peer(two)
def the_same_twice(x, y):
    a = x * y
    b = x * y
    return a, b, a, x, x.view(-1), (a + b).sum()


@peer(one)
def constants_fold(x):
    base = torch.arange(16.0).reshape(1, 16) / 16
    mask = torch.tril(torch.ones(8, 8)).bool()
    eye = torch.eye(8)
    return x * base.sin(), mask, (eye @ x) + torch.full((16,), 2.0).sqrt(), torch.linspace(0, 1, 16) * x, torch.tensor([1, 2]) * 3, x[:, torch.tensor([0, 2])] * math.pi


@peer(lambda: [torch.empty(0, 4), r(3, 0, 2), r(4)])
def nothing_in_tensors(x, y, z):
    return x.sum(), x.sum(0), x * 2, y.sum(1), y.prod(1), torch.cat([x, z[None]]), x @ z, z @ x.t(), x.amax(1), F.linear(x, r(2, 4) * 0 + 1), y.view(0, 6), x.softmax(1), x.cumsum(0), x.reshape(2, 0), x.to(torch.int64), x.any(), x.all(), F.relu(x), x.expand(2, 0, 4), y.transpose(0, 1)


@peer(lambda: [torch.tensor(2.5), torch.tensor(3), torch.tensor(True)])
def tensors_without_dimensions(x, n, b):
    return x + n, x * b, x.sum(), x.max(), x.argmax(), x.softmax(0), x.sort(), x.topk(1), x.unsqueeze(0) @ x.unsqueeze(0), x.view(1, 1), x.expand(2, 3), torch.stack([x, x]), x.cumsum(0), x[None], x[...], x.item(), n.item() + 1, x.clamp(0, n), torch.where(b, x, n), x.index_select(0, torch.tensor(0)), x.gather(0, torch.tensor(0)), torch.arange(n.item()), x.var(correction=0), x.norm(), x.t(), x.repeat(2), x.flatten()


# Functions of several operands.

each(
    "operands",
    lambda: [r(4, 1, 6), r(3, 1), r(6)],
    {
        "lerp": lambda x, y, z: (torch.lerp(x, y, 0.3), torch.lerp(x, y, z), torch.lerp(x, y.half().float(), torch.tensor(0.7)), x.lerp(y, z.sigmoid())),
        "addcmul": lambda x, y, z: (torch.addcmul(x, y, z), torch.addcmul(x, y, z, value=-0.5), torch.addcdiv(x, y, z.abs() + 1), torch.addcdiv(z, x, y.abs() + 1, value=2)),
        "where": lambda x, y, z: (torch.where(x > y, x, z), torch.where(x > 0, 1.0, z), torch.where(y > 0, x, 2), torch.where(x > 0, y.double(), z), torch.where(torch.tensor(True), x, y)),
        "clamp": lambda x, y, z: (x.clamp(y, z), x.clamp(min=y), torch.clamp(z, max=x), x.clamp(0.5, -0.5), x.clamp(torch.tensor(0.0), None), torch.clip(x, y - 1, y + 1)),
        "distances": lambda x, y, z: (torch.hypot(x, y), torch.atan2(x, z), torch.cdist(x[:, 0], z[None]), F.pairwise_distance(x[:, 0], z), F.cosine_similarity(x, z, -1), torch.dist(x[:, 0], z), torch.logaddexp(x, y), torch.logaddexp2(y, z), torch.linalg.cross(x[:, 0, :3], z[None, :3])),
        "outer": lambda x, y, z: (torch.outer(z, z), torch.einsum("aib,cj,b->ac", x, y, z), torch.inner(x, z), torch.tensordot(x, z, 1), torch.vander(z[:3], 4), torch.linalg.multi_dot([x[:, 0], z[:, None], y.t()]), torch.vdot(z, z), y @ y.t() @ y),
        "bilinear": lambda x, y, z: (F.bilinear(x[:, 0], x[:, 0], z.expand(2, 6, 6)), torch.addbmm(z[:6].expand(1, 6), x, x.transpose(1, 2).expand(4, 6, 1) @ x), torch.baddbmm(x, x[:, :, :1], x), torch.addr(y, y[:, 0], z[:1]), torch.addmv(z[:4], x[:, 0], z)),
        "extremes": lambda x, y, z: (torch.maximum(x, y), torch.minimum(x, z), torch.fmax(y, z), torch.max(x, y), torch.aminmax(x, dim=2), torch.amax(x * y, (0, 2)), (x + y + z).flatten(1).max(1)),
        "powers": lambda x, y, z: (x.abs() ** y, 2**x, x**2, x**3.0, (x.abs() + 0.1) ** -0.5, torch.pow(x.abs() + 1, z), torch.float_power(x, 2), x**0, x**1, z.square() + x.rsqrt().nan_to_num(0)),
        "differences": lambda x, y, z: (torch.diff(x, dim=2), torch.diff(z, 2), torch.gradient(z)[0], torch.trapezoid(x, dim=2), torch.cumulative_trapezoid(z), torch.diff(z, prepend=y[:1, 0]), torch.cov(x[:, 0]), torch.corrcoef(x[:, 0]), torch.std_mean(x, 0), torch.var_mean(z, correction=2)),
        "scans": lambda x, y, z: (x.cumsum(2), x.cumprod(0), torch.logcumsumexp(x, 2), x.cummax(2), z.cummin(0), x.cumsum(0).cumsum(2), (x > 0).cumsum(2), x.flip(2).cumsum(2).flip(2), z.cumsum(0, dtype=torch.float64)),
        "orders": lambda x, y, z: (x.sort(2), x.sort(2, descending=True)[0], z.argsort(), x.topk(2, 2), z.topk(3, largest=False, sorted=True), x.kthvalue(3, 2), x.median(2), z.quantile(0.3), x.quantile(torch.tensor([0.1, 0.9]), dim=2), z.msort(), z.nanquantile(0.5)),
        "special": lambda x, y, z: (torch.xlogy(x, y.abs()), torch.special.xlog1py(x, z.abs()), torch.special.entr(y.abs()), torch.special.zeta(z.abs() + 2, y.abs() + 1), torch.polygamma(1, y.abs() + 1), torch.igamma(x.abs() + 1, y.abs()), torch.mvlgamma(z.abs() + 2, 2), torch.special.logit(x.sigmoid()), torch.erfinv(x.tanh()), torch.sinc(y), torch.digamma(z.abs() + 1), torch.lgamma(x)),
    },
    rtol=1e-4,
    atol=1e-5,
)

# What only some calls draw, and in which order.


@peer(lambda: [r(4, 5)])
def drawn_between_uses(x):
    a = torch.rand(3)
    y = F.dropout(x, 0.5)
    b = torch.randn(2, 2)
    return y, a, b, torch.rand_like(x) + y.sum() * 0, torch.randperm(5)


@peer(lambda: [r(4, 5)], gradients=False)
def drawn_and_not_used(x):
    torch.rand(7)
    unused = torch.randn(3)
    return x + torch.rand(())


# Calls that eager refuses.

each(
    "refused_too",
    lambda: [torch.rand(4, 4) + 0.5],
    {
        "bce_input": lambda x: F.binary_cross_entropy(x + 1, x * 0),
        "bce_target": lambda x: F.binary_cross_entropy(x * 0.1, x + 1),
        "bce_nan": lambda x: F.binary_cross_entropy(x * nan, x * 0),
        "bce_negative": lambda x: F.binary_cross_entropy(-x, x * 0, reduction="none"),
        "batch_norm_one": lambda x: F.batch_norm(x[:1], None, None, training=True),
        "instance_norm_one": lambda x: F.instance_norm(x[:, :, None]),
        "group_norm_one": lambda x: F.group_norm(x[:1], 4),
        "atan2_number": lambda x: torch.atan2(x, 2),
        "atan2_number_first": lambda x: torch.atan2(2, x),
        "maximum_number": lambda x: torch.maximum(x, 2),
        "fmin_number": lambda x: torch.fmin(x, 2.0),
        "hypot_number": lambda x: x.hypot(3),
        "addcmul_number": lambda x: torch.addcmul(x, x, 2),
        "logical_number": lambda x: torch.logical_and(x, 1),
        "nextafter_number": lambda x: torch.nextafter(x, 1.0),
        "mse_number": lambda x: F.mse_loss(x, 2.0),
        "smooth_number": lambda x: F.smooth_l1_loss(2, x),
        "poisson_int": lambda x: F.poisson_nll_loss(x, x, 1),
        "mm_number": lambda x: torch.mm(x, 2),
        "dim_of_bool": lambda x: torch.argmax(x, True),
        "chunks_of_bool": lambda x: x.chunk(True),
        "dim_of_float": lambda x: x.cumsum(0.0),
        "strided_int": lambda x: torch.as_strided(x, 2, 1),
        "celu_int": lambda x: F.celu(x.long()),
        "scatter_from_itself": lambda x: x.scatter_(0, torch.zeros(4, 4, dtype=torch.int64), x),
        "index_copy_overlap": lambda x: x.index_copy_(0, torch.tensor([0, 1]), x[1:3]),
    },
    gradients=False,
)


def chunks_of(x):
    return x.chunk(2)


@peer(lambda: [torch.rand(4, 4)], gradients=False)
def refused_write_to_chunk_of_inner_frame(x):
    with torch.enable_grad():
        a, b = chunks_of(x.requires_grad_() * 2)
        a.add_(1)
        return a, b


@peer(lambda: [torch.rand(4, 4)], gradients=False)
def refused_write_to_row_of_view(x):
    with torch.enable_grad():
        y = x.requires_grad_() * 2
        for row in y.unbind(0)[1:]:
            row[:2].mul_(3)
        return y


def ends(*places):
    return torch.tensor(places, dtype=torch.int32)


each(
    "grouped",
    lambda: [r(16, 32), r(3, 32, 24), r(32, 24), r(3, 16, 32)],
    {
        "rows": lambda x, experts, y, batch: torch._grouped_mm(x, experts, ends(4, 10, 16)) * 2,
        "empty_group": lambda x, experts, y, batch: torch._grouped_mm(x, experts, ends(0, 10, 16)),
        "columns": lambda x, experts, y, batch: torch._grouped_mm(batch, y, ends(8, 16, 24)),
        "depths": lambda x, experts, y, batch: torch._grouped_mm(x, y, ends(8, 16, 32)),
        "batches": lambda x, experts, y, batch: torch._grouped_mm(batch, experts),
        "transposed_weights": lambda x, experts, y, batch: torch._grouped_mm(x, experts.mT.contiguous().mT, ends(4, 10, 16)).relu(),
        "halves": lambda x, experts, y, batch: torch._grouped_mm(x.bfloat16(), experts.bfloat16(), ends(4, 10, 16)),
    },
)
