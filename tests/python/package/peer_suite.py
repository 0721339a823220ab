"""Small functions after the subjects that a compiler's test suite goes through one by one: views and their writes, pools and their
gradients, images that are resized, indices, orders, dtypes, layouts, numbers from data; they join those of `peer_cases`.
"""

import math

import torch
import torch.nn.functional as F
from peer_cases import bools, each, inf, ints, nan, peer, r
from torch import nn

aten, prims = torch.ops.aten, torch.ops.prims


# Views that are written, read and returned.

each(
    "aliased",
    lambda: [r(6, 8)],
    {
        "as_strided_of_view": lambda x: (x.t().as_strided((3, 2), (2, 1), 1) * 2, x[1:].as_strided((2, 2), (8, 1), 0) + 1),
        "as_strided_of_computed": lambda x: (x + 1).as_strided((4, 4), (8, 1)).contiguous() + (x * 2).as_strided((4, 4), (1, 8), 3),
        "as_strided_write": lambda x: (lambda c: (c.as_strided((3, 3), (9, 1), 2).add_(1), c))(x.clone()),
        "as_strided_overlapping_read": lambda x: x.as_strided((5, 3), (2, 1)).sum(1),
        "as_strided_scatter_of_rows": lambda x: torch.as_strided_scatter(x.detach(), torch.zeros(3, 4), (3, 4), (8, 1), 9),
        "view_of_slice_of_view": lambda x: x.view(2, 3, 8)[1].view(3, 4, 2)[..., 1].mul(2) + x.view(-1)[5:17].view(3, 4),
        "slice_of_expand": lambda x: x[:, None].expand(6, 4, 8)[:, 1:3].reshape(12, 8) * 2,
        "flatten_of_transposed": lambda x: x.t().flatten()[3:20:2] + 1,
        "add_to_row_of_transposed": lambda x: (lambda c: (c.t()[2].add_(1), c.t()[3].mul_(2), c))(x.clone()),
        "swap_columns": lambda x: (lambda c: (c.__setitem__((slice(None), [0, 1]), c[:, [1, 0]]), c)[1])(x.clone()),
        "write_every_other": lambda x: (lambda c: (c[::2].copy_(c[1::2]), c[1::2].zero_(), c))(x.clone()),
        "reverse_write": lambda x: (lambda c: (c.copy_(x.flip(0)), c[0].copy_(c[-1].clone()), c))(x.clone()),
        "chunk_writes": lambda x: (lambda c: ([part.mul_(number) for number, part in enumerate(c.chunk(3))], c))(x.clone()),
        "unbind_writes": lambda x: (lambda c: ([row.add_(number) for number, row in enumerate(c.clone().unbind(1))], c))(x),
        "select_of_select": lambda x: (lambda c: (c[2][3:5].fill_(7), c.select(0, 2).select(0, 4), c.sum()))(x.clone()),
        "diagonal_write": lambda x: (lambda c: (c.diagonal().copy_(torch.arange(6.0)), c.diagonal(1).mul_(2), c))(x.clone()),
        "unfold_read": lambda x: x.unfold(1, 3, 2).sum(-1) + x.unfold(0, 2, 2).sum(),
        "real_of_complex_write": lambda x: (lambda c: (c.real.mul_(2), c.imag.add_(1), torch.view_as_real(c)))(torch.complex(x, x + 1)),
        "view_as_other_then_write": lambda x: (lambda c: (c.view(torch.int32).bitwise_and_(0x7FFFFFFF), c))(x.clone()),
        "expand_then_write_refused": lambda x: x[:1].expand(6, 8).clone().add_(1),
        "two_outputs_one_storage": lambda x: (lambda y: (y, y[1], y.t(), y.view(-1)[8:16]))(x * 2),
        "output_is_view_of_output": lambda x: (lambda y: (y[::2], y[1::2]))(x.relu()),
        "squeezed_writes": lambda x: (lambda c: (c.unsqueeze(0).squeeze_(0).add_(1), c.unsqueeze(-1).sub_(2), c))(x.clone()),
        "detach_shares": lambda x: (lambda c: (c.detach().zero_(), c + 1))(x.detach().clone()),
        "narrow_and_cat": lambda x: torch.cat([x.narrow(1, 0, 3), x.narrow(1, 5, 3), x.narrow(1, -2, 2)], 1),
        "view_as_real_slices": lambda x: torch.view_as_complex(x.view(6, 4, 2))[:, 1:].abs(),
        "roll_of_view": lambda x: (x.t().roll(1, 0), x.roll((1, -2), (0, 1)), x.roll(13), x[:0].roll(1)),
        "hsplit_and_write": lambda x: (lambda c: (c.hsplit(2)[1].mul_(3), c.vsplit([2, 4])[1].neg_(), c))(x.clone()),
        "permute_negative": lambda x: (x.view(2, 3, 8).permute(-1, 0, 1) + 1, x.movedim(-1, 0), x.swapdims(0, -1)),
        "ravel_of_contiguous": lambda x: (x.ravel(), x.t().ravel(), x.reshape(-1), x.contiguous().view(-1)),
    },
)
each(
    "input_is_written",
    lambda: [r(6, 8), r(8)],
    {
        "and_read_before": lambda x, y: (x.sum(), x.add_(y), x.sum())[::2],
        "through_transposed": lambda x, y: (x.t().mul_(2).sum(0), x.detach()),
        "by_row": lambda x, y: (x[2].copy_(y), x[3:5].zero_(), x * 1)[2],
        "copied_from_itself": lambda x, y: (x.copy_(x.flip(1).clone()), y.copy_(x[0]), y * x)[2],
        "twice_by_slices": lambda x, y: (x[:, :4].add_(x[:, 4:]), x[:, 4:].sub_(x[:, :4]), x.mean())[2],
        "and_returned_as_view": lambda x, y: (x.add_(1), x[1:3], x.t())[1:],
        "conditionally": lambda x, y: torch.where(x > 0, x.mul_(0.5), y),
        "by_out": lambda x, y: (torch.add(x, y, out=x), torch.mul(y, 2, out=y))[1] + x,
        "by_index_put": lambda x, y: (x.index_put_((torch.tensor([0, 2]),), y), x.sum(1))[1],
        "by_scatter": lambda x, y: (x.scatter_(1, torch.zeros(6, 1, dtype=torch.long), 5.0), x + y)[1],
        "by_masked_fill": lambda x, y: (x.masked_fill_(x < 0, 0.0), x @ y)[1],
        "by_random": lambda x, y: (x.uniform_(), y.normal_(), x @ y)[2],
        "with_a_cast": lambda x, y: (x.copy_((y * 10).int()), x[0] + y.long())[1],
        "by_setitem_slices": lambda x, y: (x.__setitem__((slice(1, 3), slice(None, None, 3)), 4.0), x.__setitem__(Ellipsis, x * 2), x.sum(0))[2],
        "and_size_of_it": lambda x, y: (x.add_(x.size(0)), y.mul_(x.numel()), x.shape[1])[:2],
        "by_foreach": lambda x, y: (torch._foreach_add_([x, y], 1.0), torch._foreach_mul_([x, y], [2.0, 3.0]), x.sum() + y.sum())[2],
        "then_broken_into_rows": lambda x, y: [row * y for row in x.sub_(1).unbind(0)],
        "by_cumsum": lambda x, y: (x.cumsum_(0), y.cumprod_(0), x / (y + 10))[2],
        "by_triangles": lambda x, y: (x.tril_(), x.triu_(-2), x + y)[2],
        "by_clamp_and_round": lambda x, y: (x.clamp_(-1, 1), y.round_().floor_(), x * y)[2],
    },
    gradients=False,
)


# Pools, their indices and their gradients.

each(
    "pool_grad",
    lambda: [r(2, 4, 14, 14)],
    {
        "max_5_1_2": lambda x: F.max_pool2d(x, 5, 1, 2),
        "max_dilated": lambda x: F.max_pool2d(x, 3, 2, 1, dilation=2),
        "max_ceil": lambda x: (F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, 4, 3, 1, ceil_mode=True)),
        "max_rect": lambda x: F.max_pool2d(x, (2, 5), (1, 3), (1, 2)),
        "max_with_both": lambda x: (lambda y, i: (y * 2, i, F.max_unpool2d(y, i, 2, 2, 0, (14, 14))))(*F.max_pool2d(x, 2, return_indices=True)),
        "max_of_13": lambda x: F.max_pool2d(x, 13, 13, 6),
        "avg_5_1_2": lambda x: F.avg_pool2d(x, 5, 1, 2, count_include_pad=False),
        "avg_ceil": lambda x: (F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)),
        "avg_divisor": lambda x: (F.avg_pool2d(x, 3, 2, 1, divisor_override=7), F.avg_pool2d(x, (1, 4), divisor_override=-3)),
        "avg_whole": lambda x: (F.avg_pool2d(x, 14), F.avg_pool2d(x, 13, 1), F.avg_pool2d(x, (14, 1))),
        "adaptive_uneven": lambda x: (F.adaptive_avg_pool2d(x, (5, 3)), F.adaptive_max_pool2d(x, (3, 5)), F.adaptive_avg_pool2d(x, (None, 2))),
        "adaptive_larger": lambda x: (F.adaptive_avg_pool2d(x, 20), F.adaptive_max_pool2d(x, (20, 3))),
        "adaptive_zero": lambda x: F.adaptive_avg_pool2d(x, (0, 3)),
        "adaptive_of_channels_last": lambda x: F.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last), (6, 7)),
        "of_half": lambda x: (F.avg_pool2d(x.detach().half(), 3, 2, 1), F.max_pool2d(x.detach().bfloat16(), 3, 2, 1), F.adaptive_avg_pool2d(x.detach().half(), 5)),
        "of_permuted": lambda x: (F.max_pool2d(x.permute(0, 1, 3, 2), 3, 2), F.avg_pool2d(x.permute(1, 0, 2, 3), 2)),
        "of_expanded": lambda x: F.avg_pool2d(x[:, :1].expand(2, 4, 14, 14), 3, 2),
        "of_slice": lambda x: F.max_pool2d(x[:, 1:3, 2:12, ::2], 2, 1, 1),
        "then_relu": lambda x: F.relu(F.max_pool2d(F.relu(x - 1), 3, 2, 1)).sum(1),
        "lp_norms": lambda x: (F.lp_pool2d(x, 2, 3, 2), F.lp_pool2d(x, 1, (2, 3)), F.lp_pool1d(x[0], 2, 3)),
        "global": lambda x: (x.mean((2, 3)), F.adaptive_avg_pool2d(x, 1).flatten(1), F.adaptive_max_pool2d(x, 1)),
        "of_neg_inf": lambda x: F.max_pool2d(torch.where(x > 5, x, -inf), 3, 1, 1),
        "of_nan": lambda x: F.max_pool2d(torch.where(x > 1, nan, x), 3, 2, 1),
        "of_ties": lambda x: F.max_pool2d(torch.zeros_like(x) + x[:, :1, :1, :1], 2, return_indices=True),
    },
)
each(
    "pool_aten",
    lambda: [r(2, 4, 9, 9), r(2, 4, 5, 5), r(2, 4, 4, 4)],
    {
        "max_backward": lambda x, g, h: (lambda i: aten.max_pool2d_with_indices_backward(g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, i))(
            aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])[1]
        ),
        "avg_backward": lambda x, g, h: aten.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, False, None),
        "avg_backward_ceil": lambda x, g, h: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], True, True, None),
        "avg_backward_divisor": lambda x, g, h: aten.avg_pool2d_backward(h, x, [2, 2], [2, 2], [0, 0], False, True, 3),
        "adaptive_backward": lambda x, g, h: aten._adaptive_avg_pool2d_backward(g, x),
        "adaptive_max_backward": lambda x, g, h: aten.adaptive_max_pool2d_backward(h, x, aten.adaptive_max_pool2d(x, [4, 4])[1]),
        "max_low_memory": lambda x, g, h: aten.max_pool2d_with_indices(x, [2, 2], [1, 1], [0, 0], [2, 2]),
        "avg_no_batch": lambda x, g, h: aten.avg_pool2d(x[0], [3, 3], [1, 1]),
        "max_default_stride": lambda x, g, h: aten.max_pool2d_with_indices(x, [4, 4], []),
        "upsample_backward": lambda x, g, h: aten.upsample_nearest2d_backward(r_fixed(2, 4, 18, 18), [18, 18], [2, 4, 9, 9]),
        "upsample_scales": lambda x, g, h: (aten.upsample_nearest2d.vec(x, None, [1.5, 2.0]), aten.upsample_bilinear2d.vec(x, None, False, [1.7, 0.6])),
        "upsample_sizes": lambda x, g, h: (aten.upsample_nearest2d(x, [7, 13], 0.8, None), aten.upsample_bilinear2d(x, [5, 20], True, None, None)),
        "reflection_backward": lambda x, g, h: aten.reflection_pad2d_backward(r_fixed(2, 4, 13, 12), x, [1, 2, 3, 1]),
        "replication_backward": lambda x, g, h: aten.replication_pad2d_backward(r_fixed(2, 4, 13, 12), x, [1, 2, 3, 1]),
        "grid_sampler": lambda x, g, h: aten.grid_sampler_2d(x, r_fixed(2, 5, 6, 2), 2, 1, False),
        "im2col": lambda x, g, h: (aten.im2col(x, [3, 3], [1, 1], [1, 1], [2, 2]), aten.col2im(aten.im2col(x, [3, 3], [1, 1], [1, 1], [1, 1]), [9, 9], [3, 3], [1, 1], [1, 1], [1, 1])),
    },
    gradients=False,
)


def r_fixed(*shape):
    return torch.linspace(-1.2, 1.3, math.prod(shape)).reshape(shape).sin()


# Images that are resized.

each(
    "resize",
    lambda: [r(2, 3, 7, 9)],
    {
        "bicubic": lambda x: (F.interpolate(x, (11, 5), mode="bicubic"), F.interpolate(x, scale_factor=1.7, mode="bicubic", align_corners=True)),
        "bilinear_aa": lambda x: (F.interpolate(x, (3, 4), mode="bilinear", antialias=True), F.interpolate(x, (12, 4), mode="bilinear", antialias=True)),
        "bicubic_aa": lambda x: F.interpolate(x.detach(), (3, 13), mode="bicubic", antialias=True),
        "bilinear_to_one": lambda x: (F.interpolate(x, (1, 1), mode="bilinear", align_corners=True), F.interpolate(x, (1, 5), mode="bilinear")),
        "nearest_fraction": lambda x: (F.interpolate(x, scale_factor=(0.5, 1.3)), F.interpolate(x, scale_factor=2.5, recompute_scale_factor=True)),
        "nearest_exact": lambda x: (F.interpolate(x, (10, 4), mode="nearest-exact"), F.interpolate(x, scale_factor=0.6, mode="nearest-exact")),
        "area": lambda x: (F.interpolate(x, (3, 4), mode="area"), F.interpolate(x, scale_factor=2, mode="area")),
        "of_channels_last": lambda x: F.interpolate(x.contiguous(memory_format=torch.channels_last), scale_factor=2, mode="bilinear"),
        "of_half": lambda x: (F.interpolate(x.half(), scale_factor=2), F.interpolate(x.bfloat16(), (5, 5), mode="bilinear")),
        "of_double": lambda x: F.interpolate(x.double(), scale_factor=1.5, mode="bilinear"),
        "lines": lambda x: (F.interpolate(x[0], 20, mode="linear"), F.interpolate(x[0], scale_factor=0.7), F.interpolate(x[0], 4, mode="nearest-exact")),
        "volumes": lambda x: (F.interpolate(x[None], (3, 10, 5), mode="trilinear"), F.interpolate(x[None], scale_factor=(2, 1, 1.5))),
        "same_size": lambda x: (F.interpolate(x, (7, 9)), F.interpolate(x, (7, 9), mode="bilinear"), F.interpolate(x, scale_factor=1.0, mode="bicubic")),
        "then_cat": lambda x: torch.cat([F.interpolate(x, scale_factor=2), F.interpolate(x, (14, 18), mode="bilinear", align_corners=True)], 1),
        "pixels_shuffled": lambda x: (F.pixel_shuffle(torch.cat([x] * 4, 1), 2), F.pixel_unshuffle(x[..., :6, :8], 2), F.channel_shuffle(torch.cat([x, x], 1), 3)),
        "sampled": lambda x: (lambda g: (F.grid_sample(x, g, align_corners=True), F.grid_sample(x, g, "nearest", "border", False), F.grid_sample(x, g, "bicubic", "reflection", False)))(r_fixed(2, 4, 5, 2)),
        "sampled_outside": lambda x: F.grid_sample(x, r_fixed(2, 4, 5, 2) * 3, padding_mode="reflection", align_corners=True),
        "affine": lambda x: F.grid_sample(x, F.affine_grid(torch.tensor([[[0.8, 0.1, 0.0], [0.0, 1.1, 0.2]]] * 2), [2, 3, 5, 6], align_corners=False), align_corners=False),
        "of_expanded": lambda x: F.grid_sample(x[:, :1].expand(-1, 3, -1, -1), r_fixed(2, 4, 5, 2), align_corners=False),
        "padded": lambda x: (F.pad(x, (1, 2, 3, 4), "reflect"), F.pad(x[0], (2, 1), "replicate"), F.pad(x, (3, 3, 1, 0), "circular"), F.pad(x, (-1, 2, 1, -3), value=2.5)),
        "padded_volumes": lambda x: (F.pad(x, (1, 1, 2, 2, 1, 1), "replicate"), F.pad(x, (1, 1, 2, 2, 1, 1), "reflect"), F.pad(x[0], (1, 0), "reflect")),
    },
)


# Indices of every kind.

each(
    "picked",
    lambda: [r(5, 6, 7), torch.tensor([0, 4, -1, 2]), torch.tensor([[1, -2], [0, 3]])],
    {
        "first_and_last": lambda x, i, j: (x[i, :, i], x[:, i, i], x[i, 1:3, i], x[i][:, i]),
        "with_none": lambda x, i, j: (x[None, i], x[i, None], x[:, None, i, None], x[..., None, i]),
        "matrix_of_indices": lambda x, i, j: (x[j], x[:, j], x[j, j], x[j, :, j], x[..., j]),
        "with_number": lambda x, i, j: (x[1, i], x[i, 1], x[:, -1, i], x[i, ..., 0], x[0, i, 2:]),
        "with_mask": lambda x, i, j: (x[torch.tensor([True, False, True, True, False])], x[:, torch.tensor([True] * 3 + [False] * 3), 1]),
        "int32": lambda x, i, j: (x[i.int()], x.index_select(1, i.int() % 6), F.embedding(i.int() % 5, x[:, 0])),
        "computed": lambda x, i, j: (x[(i * 2) % 5], x[i // 2], x[torch.arange(5).flip(0)], x[torch.argsort(x[:, 0, 0])]),
        "gathered": lambda x, i, j: (x.gather(0, (x > 0).long()), x.gather(-1, torch.zeros(5, 6, 1, dtype=torch.long)), x.gather(1, j.abs()[:, :, None] % 6)),
        "taken": lambda x, i, j: (x.take(i), x.take(j * 7), torch.take_along_dim(x, x.argsort(1), 1), torch.take_along_dim(x, j.abs().view(-1)[None, None] % 7, 2)),
        "put": lambda x, i, j: (x.index_put((i,), torch.tensor(1.0)), x.index_put((i[:3], i[1:]), x[0, 0] * 2), x.index_put((i, i), torch.ones(7), True)),
        "put_accumulated": lambda x, i, j: torch.zeros(5, 7).index_put((torch.tensor([1, 1, 1, 4]),), x[0, :4], accumulate=True),
        "put_masked": lambda x, i, j: (x.index_put((x > 0,), torch.tensor(-1.0)), x.masked_fill(x[0] > 0, 3.0), torch.where(x > 0, x, 0)),
        "put_number": lambda x, i, j: (lambda c: (c.__setitem__(i, 3), c.__setitem__((slice(None), 2), 1), c))(x.clone()),
        "put_broadcast": lambda x, i, j: (lambda c: (c.__setitem__((i, slice(None), 0), torch.arange(6.0)), c.__setitem__((Ellipsis, i), torch.zeros(6, 1)), c))(x.clone()),
        "copied": lambda x, i, j: (x.index_copy(0, torch.tensor([3, 1]), x[:2] + 1), x.index_copy(-1, torch.tensor([6]), x[..., :1])),
        "added": lambda x, i, j: (x.index_add(0, torch.tensor([3, 3]), x[:2], alpha=-2), x.index_add(2, torch.tensor([1, 0, 1]), x[..., :3])),
        "filled": lambda x, i, j: (x.index_fill(1, i, 2.0), x.index_fill(-1, torch.tensor([0, 0]), torch.tensor(5.0)), x.index_fill(0, i[:0], 1.0)),
        "scattered": lambda x, i, j: (x.scatter(0, (x[:2] > 0).long(), 1.0), x.scatter(1, (x > 0).long()[:, :1], x[:, :1] * 3)),
        "scatter_added": lambda x, i, j: (x.scatter_add(2, torch.zeros(5, 6, 7, dtype=torch.long), x), torch.zeros(2, 7).scatter_add(0, (x[0] > 0).long(), x[1])),
        "scatter_reduced": lambda x, i, j: tuple(
            torch.ones(2, 7).scatter_reduce(0, (r_fixed(6, 7) > 0).long(), x[0], how, include_self=own) for how in ("sum", "mean", "amax", "amin") for own in (True, False)
        ),
        "slice_scattered": lambda x, i, j: (torch.slice_scatter(x, x[:, 1:3], 1, 2, 6, 2), torch.slice_scatter(x, x[:2] * 2, 0, -2), aten.slice_scatter(x, x, 0, 0, 2**63 - 1)),
        "select_scattered": lambda x, i, j: (torch.select_scatter(x, x[0] * 2, 0, -1), torch.select_scatter(x, x[:, 0], 1, 3)),
        "diagonal_scattered": lambda x, i, j: (torch.diagonal_scatter(x, torch.zeros(7, 5), 0, 0, 1), torch.diagonal_scatter(x[0], torch.ones(5), 2)),
        "sliced_far": lambda x, i, j: (x[2:100], x[-100:2], x[:, 4:2], x[..., ::3], x[:, -3:-1], x[3:3].sum()),
        "by_float_expression": lambda x, i, j: (x[(torch.arange(4) * 0.9).long()], x[:, (torch.linspace(0, 5, 4)).round().long()]),
        "embedding_bag": lambda x, i, j: tuple(F.embedding_bag(i.abs(), x[:, 0], torch.tensor([0, 2]), mode=mode) for mode in ("sum", "mean", "max")),
        "embedding_scaled": lambda x, i, j: (F.embedding(j.abs(), x[0], padding_idx=1), F.embedding(i.abs()[:0], x[0]), nn.functional.embedding(torch.tensor(2), x[0])),
        "nonzero_tuple": lambda x, i, j: torch.zeros(3, 3).fill_diagonal_(1).nonzero(as_tuple=True),
        "unravelled": lambda x, i, j: (x[torch.unravel_index(torch.tensor([3, 100, 209]), x.shape)], torch.unravel_index(i.abs(), (2, 3))),
        "roll_by_index": lambda x, i, j: x[:, (torch.arange(6) + 2) % 6] + x[:, torch.arange(6) - 1],
        "pairs": lambda x, i, j: (x[tuple(torch.triu_indices(5, 6))], x[:, *torch.tril_indices(3, 3)]),
    },
)


# Orders and searches.

each(
    "ordered",
    lambda: [r(5, 33), torch.tensor([3.0, nan, 1.0, inf, -inf, 1.0, -0.0, 0.0])],
    {
        "sorted_nan": lambda x, n: (n.sort(), n.sort(descending=True), n.argsort(stable=True), n.msort()),
        "top_nan": lambda x, n: (n.topk(3)[0], n.topk(3, largest=False)[0], n.kthvalue(2)[0], n.max(0), n.min(0), n.argmax(), n.argmin()),
        "median_nan": lambda x, n: (n.median(), n.nanmedian(), x.median(1), x.nanmedian(0), x[:, :4].median(1)),
        "sorted_transposed": lambda x, n: (x.t().sort(0), x.t().sort(1, descending=True), x[:, ::2].sort(1), x.sort(dim=0, stable=True)),
        "topk_unsorted": lambda x, n: (x.topk(4, 1, sorted=True), x.topk(2, 0), x.t().topk(3, 0, largest=False), x.topk(33)),
        "searched": lambda x, n: (lambda s: (torch.searchsorted(s, x), torch.searchsorted(s, x, right=True), torch.searchsorted(s[0], x), torch.searchsorted(s, x, side="right", out_int32=True)))(x.sort(1)[0]),
        "searched_by_sorter": lambda x, n: torch.searchsorted(x, x * 0.5, sorter=x.argsort(1)),
        "bucketized": lambda x, n: (torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])), torch.bucketize(x, torch.tensor([-1.0, 0.0]), right=True, out_int32=True), torch.bucketize(0.3, torch.tensor([0.1, 0.3]))),
        "bucketized_ints": lambda x, n: torch.bucketize((x * 3).int(), torch.tensor([-2, 0, 0, 3], dtype=torch.int32)),
        "unique": lambda x, n: (torch.unique((x * 2).round(), return_inverse=True, return_counts=True), torch.unique_consecutive((x[0] * 2).round(), return_counts=True)),
        "cummax": lambda x, n: (n.cummax(0), n.cummin(0), x.cummax(1), x.t().cummin(0), x[:0].cummax(1)),
        "quantiles": lambda x, n: (x.quantile(torch.tensor([0.1, 0.9]), 1), x.nanquantile(0.3), x.quantile(0.5, 0, interpolation="lower"), x.quantile(0.25, 1, True, interpolation="nearest")),
        "histogram": lambda x, n: (torch.histc(x, 10, -1, 1), torch.histc(x), torch.bincount((x[0] * 3).abs().long(), minlength=4), torch.histogram(x, 5)),
        "histogram_weighted": lambda x, n: (torch.bincount((x[0] * 3).abs().long(), x[1]), torch.histogram(x, torch.tensor([-1.0, 0.0, 2.0]), weight=x.abs(), density=True)),
        "kth": lambda x, n: (x.kthvalue(3, 1), x.kthvalue(1, 0, True), x.mode(1)[0], (x * 2).round().mode(0)[0]),
        "isin": lambda x, n: (torch.isin((x * 2).round(), torch.tensor([0.0, 1.0])), torch.isin(x, 0.0, invert=True), torch.isin(torch.arange(5), torch.tensor([], dtype=torch.long))),
        "argsorted_twice": lambda x, n: (x.argsort(1).argsort(1), x.argsort(dim=0, descending=True, stable=True)),
        "lexicographic": lambda x, n: (lambda a, b: a[b.argsort(stable=True)].argsort(stable=True))((x[0] * 2).round(), (x[1] * 2).round()),
        "ranks_of_ties": lambda x, n: (lambda y: (y[:, None] > y).sum(1) + ((y[:, None] == y) & (torch.arange(33)[:, None] > torch.arange(33))).sum(1))((x[0] * 3).round()),
    },
    gradients=False,
)


# Cumulative functions and their types.

each(
    "cumulated",
    lambda: [r(4, 37), ints(4, 37, low=-3, high=4)],
    {
        "sums": lambda x, i: (x.cumsum(0), x.cumsum(-1), x.t().cumsum(1), x.cumsum(1, dtype=torch.float64), x.half().cumsum(1)),
        "sums_of_ints": lambda x, i: (i.cumsum(1), i.int().cumsum(0), i.to(torch.int8).cumsum(1), i.bool().cumsum(1), i.to(torch.uint8).cumsum(1, dtype=torch.uint8)),
        "products": lambda x, i: (x.cumprod(1), i.cumprod(0), i.to(torch.int16).cumprod(1), x.cumprod(0, dtype=torch.float64)),
        "products_with_zeros": lambda x, i: (x * (i != 0)).cumprod(1),
        "logs": lambda x, i: (x.logcumsumexp(1), (x * 50).logcumsumexp(0), torch.where(x > 1, -inf, x).logcumsumexp(1)),
        "of_inf": lambda x, i: (torch.where(i == 3, inf, x).cumsum(1), torch.where(i == 2, -inf, x).cumsum(1)),
        "flipped": lambda x, i: (x.flip(1).cumsum(1).flip(1), x.cumsum(1) - x, (x.cumsum(0) > 0).cumsum(1)),
        "differences": lambda x, i: (x.diff(), x.diff(2, 0), x.diff(prepend=x[:, :1]), x.diff(append=torch.zeros(4, 2)), i.diff(), (i > 0).diff()),
        "integrals": lambda x, i: (torch.trapezoid(x, dx=0.5), torch.cumulative_trapezoid(x, dim=0), torch.trapezoid(x, x.cumsum(1), dim=1)),
        "zero_dims": lambda x, i: (x[0, 0].cumsum(0), x[0, 0].cumprod(-1), x[0, 0].logcumsumexp(0), i[0, 0].cumsum(0)),
        "empty": lambda x, i: (x[:0].cumsum(0), x[:, :0].cumprod(1), x[:0].logcumsumexp(1)),
        "averages": lambda x, i: x.cumsum(1) / torch.arange(1, 38),
        "by_group": lambda x, i: (lambda s: s - s.gather(1, (i.cumsum(1).abs() % 37)))(x.cumsum(1)),
        "of_half": lambda x, i: (x.detach().bfloat16().cumsum(1), x.detach().half().cumprod(1), x.detach().half().logcumsumexp(1), x.bfloat16().cumsum(0, dtype=torch.float32)),
    },
)


# What dtypes become.

each(
    "typed",
    lambda: [r(3, 5), ints(3, 5, low=-9, high=10), bools(3, 5), r(3, 5, dtype=torch.float16)],
    {
        "views_wider": lambda x, i, b, h: (x.view(torch.uint8), x.view(torch.int16), i.view(torch.int32), h.view(torch.int8)),
        "views_narrower": lambda x, i, b, h: (h[:, :4].contiguous().view(torch.float32), x[:, :4].contiguous().view(torch.int64), b.view(torch.uint8), b.view(torch.int8)),
        "views_of_computed": lambda x, i, b, h: ((x + 1).view(torch.int32) >> 23, (i * 2).int().view(torch.float32), (h * 2).view(torch.int16) & 0x3FF),
        "reductions": lambda x, i, b, h: (i.sum(dtype=torch.int32), b.sum(0), i.float().mean(0), h.sum(1), i.amax(1), b.prod(1), i.prod(0)),
        "mixed": lambda x, i, b, h: (x + i, h + i, h * x, b + i, b * h, i / b.int().clamp(min=1), x ** i.clamp(0, 3), h + 1.5, i + 1.5, b + 1, b + 1.5),
        "results": lambda x, i, b, h: (torch.result_type(x, i), torch.result_type(h, 1.0), torch.promote_types(torch.int8, torch.uint8), torch.can_cast(torch.float32, torch.int32)),
        "full": lambda x, i, b, h: (torch.full((2,), True), torch.full((2,), 3), torch.full((2,), 3.5, dtype=torch.int32), torch.full_like(i, 2.7), torch.full_like(b, 5), i.new_full((2,), -1.9)),
        "casts_truncate": lambda x, i, b, h: ((x * 3).int(), (x * 3).to(torch.int8), (x * 40).to(torch.int16), (-x * 3).long(), (x * 3).bool(), h.int()),
        "comparisons": lambda x, i, b, h: (x == i, h < i, b == i, i > 2.5, h >= 0.1, i == 2.0, b < x, x != 0.1),
        "where": lambda x, i, b, h: (torch.where(b, x, i), torch.where(b, h, 1), torch.where(b, i, 1.5), torch.where(b, h, x), torch.where(b, 1, 2.0), torch.where(b, True, i)),
        "cat": lambda x, i, b, h: (torch.cat([x, i]), torch.cat([h, i], 1), torch.cat([b, i]), torch.stack([h, x]), torch.cat([x.double(), h]), torch.hstack([b, h])),
        "clamp": lambda x, i, b, h: (i.clamp(-2.5, 3), i.clamp(min=2), h.clamp(-0.1, 0.1), i.clamp(max=torch.tensor(1.5)), x.clamp(min=i), torch.clip(i, -3, 3)),
        "shifts": lambda x, i, b, h: (i << 2, i >> 1, 1 << i.abs(), i.int() << 3, i.to(torch.int8) >> 1, i.to(torch.uint8) >> 1, i.to(torch.uint8) << 7),
        "bitwise": lambda x, i, b, h: (i & 3, i | b, ~i, i ^ -1, b ^ True, b & i.bool(), 5 & i, torch.bitwise_left_shift(i, 1), torch.bitwise_not(i.to(torch.uint8))),
        "division": lambda x, i, b, h: (i // 3, i % 3, i / 3, 7 // (i.abs() + 1), -7 % (i.abs() + 1), torch.div(i, -2, rounding_mode="trunc"), torch.div(i, 2.5, rounding_mode="floor"), i.fmod(-4)),
        "division_of_floats": lambda x, i, b, h: (x // 0.3, x % 0.3, x.fmod(0.3), torch.div(x, 0.3, rounding_mode="trunc"), -x // 0.7, x // -0.7, x % -0.7, h // 0.5, h % 0.5),
        "division_by_zero": lambda x, i, b, h: (x / 0, x // 0, x % 0, x.fmod(0), i / 0, torch.div(x, 0.0, rounding_mode="trunc"), 0 / x, -1 / (x * 0)),
        "signs": lambda x, i, b, h: (i.sign(), x.sign(), h.sgn(), b.sign(), i.abs(), i.neg(), x.signbit(), i.signbit(), torch.copysign(x, i), torch.copysign(i, -1.0)),
        "rounding": lambda x, i, b, h: (x.round(decimals=2), (x * 100).round(decimals=-1), i.round(), i.ceil(), x.trunc(), x.frac(), h.floor(), (torch.arange(-5, 6) * 0.5).round()),
        "special_values": lambda x, i, b, h: (torch.tensor([nan, inf, -inf, 1e38, 0.0]).nan_to_num(), torch.tensor([nan, inf]).half().nan_to_num(1.0, 2.0), i.nan_to_num(), torch.tensor([inf, nan, 1.0]).isposinf()),
        "unsigned": lambda x, i, b, h: (i.abs().to(torch.uint16), i.abs().to(torch.uint32), i.abs().to(torch.uint64), i.abs().to(torch.uint16).to(torch.float32) + 1),
        "eights": lambda x, i, b, h: (x.to(torch.float8_e4m3fn), x.to(torch.float8_e5m2), (x * 100).to(torch.float8_e4m3fn).float(), h.to(torch.float8_e5m2).half() * 2),
        "type_as": lambda x, i, b, h: (x.type_as(h), i.type_as(x), x.to(i), h.to(x), i.type(torch.float64), x.double().float(), x.to(torch.bfloat16).to(torch.float16)),
        "bool_arithmetic": lambda x, i, b, h: (b + b, b * b, torch.add(b, b, alpha=True), b.logical_not(), b.int() - 1, b.float().sum(), b.sum() / 3, b.to(torch.float16).mean()),
        "scalar_tensor": lambda x, i, b, h: (x + torch.tensor(1), i + torch.tensor(1.5), h + torch.tensor(1e-3, dtype=torch.float64), b + torch.tensor(2), i * torch.tensor(True), h * torch.tensor(70000.0)),
        "pow_of_ints": lambda x, i, b, h: (i**2, i**0, 2 ** i.abs(), i.abs() ** i.abs(), (-1) ** i, i.float() ** -1, i.to(torch.int8) ** 3, torch.pow(2, x), torch.pow(0.0, x)),
        "integer_functions": lambda x, i, b, h: (i.sqrt(), i.exp(), i.sigmoid(), i.sin(), b.exp(), i.log2(), torch.atan2(i, i.flip(0)), i.float().lgamma(), torch.true_divide(i, i.flip(1))),
        "gcd": lambda x, i, b, h: (torch.gcd(i, i.flip(0)), torch.lcm(i, i.flip(1)), torch.gcd(i.to(torch.int8), torch.tensor(6, dtype=torch.int8)), torch.gcd(i, torch.tensor(0))),
    },
    gradients=False,
)


# Reductions, norms and what they do at edges.

each(
    "summed",
    lambda: [r(3, 4, 5), r(0, 5)],
    {
        "dims": lambda x, e: (x.sum((0, 2)), x.sum((-1, 0), True), x.mean((1,)), x.amax((0, 1)), x.amin(-1, True), x.sum(()), x.sum(None)),
        "keepdim": lambda x, e: (x.sum(1, True), x.mean(0, True), x.max(1, True), x.std(2, keepdim=True), x.logsumexp((0, 1), True), x.prod(1, True)),
        "of_nothing": lambda x, e: (e.sum(0), e.sum(), e.mean(1), e.prod(0), e.any(0), e.all(), e.norm(), e.var(1), e.logsumexp(0), e.nansum(0)),
        "corrections": lambda x, e: tuple(x.var(dim, correction=c) for dim in (0, 2, (0, 1)) for c in (0, 1, 2, 1.5, 10)),
        "std_mean": lambda x, e: (*torch.std_mean(x), *torch.var_mean(x, (1, 2), correction=0, keepdim=True), torch.std(x, (0, 1, 2), False)),
        "var_of_one": lambda x, e: (x[:1].var(0), x[:1].std(0, correction=0), x[..., :1].var(-1, correction=0), x[0, 0, 0].var(correction=0)),
        "norms": lambda x, e: tuple(torch.linalg.vector_norm(x, order, 1) for order in (0, 0.5, 1, 2, 3, inf, -inf, -1)),
        "matrix_norms": lambda x, e: tuple(torch.linalg.matrix_norm(x, order) for order in ("fro", 1, -1, inf, -inf)) + (x.norm("fro", (0, 1)), torch.linalg.norm(x[0])),
        "matrix_norms_by_values": lambda x, e: (torch.linalg.matrix_norm(x, 2), torch.linalg.matrix_norm(x, "nuc"), torch.linalg.norm(x[0], 2), torch.linalg.cond(x[:, :, :4])),
        "argmax": lambda x, e: (x.argmax(), x.argmax(0), x.argmin(-1, True), x.t().argmax(1) if x.dim() == 2 else x.transpose(0, 1).argmax(1), x.flatten().argmin(0)),
        "aminmax": lambda x, e: (torch.aminmax(x), torch.aminmax(x, dim=1), torch.aminmax(x, dim=0, keepdim=True)),
        "nan": lambda x, e: (lambda n: (n.sum(), n.nansum(0), n.nanmean(), n.amax(1), n.max(), n.argmax(0), n.max(0)[1], n.min(1), n.var(0), n.median(1)[0], n.mean(dtype=torch.float64)))(torch.where(x > 1, nan, x)),
        "inf": lambda x, e: (lambda n: (n.sum(), n.logsumexp(0), n.softmax(1), n.log_softmax(0), n.norm(), n.mean(1), n.amax(), n.prod()))(torch.where(x > 1, inf, x)),
        "all_neg_inf": lambda x, e: (lambda n: (n.logsumexp(0), n.softmax(1), n.log_softmax(1), n.amax(0), n.exp().sum()))(x * 0 - inf),
        "softmaxes": lambda x, e: (x.softmax(0), x.softmax(-1, dtype=torch.float64), x.log_softmax(1), F.softmin(x, 2), F.gumbel_softmax(x, hard=True).sum(-1), x.half().softmax(-1)),
        "double_of_float": lambda x, e: (x.sum(dtype=torch.float64), x.mean(1, dtype=torch.float64), x.prod(0, dtype=torch.float64), x.norm(dtype=torch.float64), x.cumsum(0, dtype=torch.float64)),
        "counts": lambda x, e: (x.count_nonzero(), (x > 0).count_nonzero(1), (x > 0).sum((0, 1)), (x > 0).any((0, 2)), (x > 0).all(1, True), x.any((0, 1))),
        "distances": lambda x, e: (torch.cdist(x, x + 1), torch.cdist(x, x, p=1), F.pdist(x[0]), F.pairwise_distance(x, x * 2), F.cosine_similarity(x, x.flip(1), 2), torch.dist(x, x + 1, inf)),
        "renormalized": lambda x, e: (x.renorm(2, 0, 1.0), F.normalize(x, dim=1), F.normalize(x, p=1, dim=-1), F.normalize(x * 0, dim=0)),
        "welford": lambda x, e: (F.layer_norm(x + 1e4, (5,)), F.layer_norm(x * 1e-8, (4, 5)), F.rms_norm(x, (5,)), (x + 1e5).var(1)),
        "group": lambda x, e: (F.group_norm(x, 2), F.group_norm(x, 4, torch.arange(4.0), torch.ones(4), eps=0.1), F.instance_norm(x), F.local_response_norm(x, 2)),
        "tiny_and_huge": lambda x, e: ((x * 1e30).norm(), (x * 1e-30).norm(0), (x * 1e20).var(), (x * 1e-25).std(1), (x * 1e36).mean(), (x * 1e38).logsumexp(0)),
        "of_half": lambda x, e: (lambda h, b: (h.sum(), h.mean(1), b.var(2), h.norm(), h.prod(0), b.amax(1), h.logsumexp(2)))(x.detach().half(), x.detach().bfloat16()),
        "expanded": lambda x, e: (x[:, :1].expand(3, 7, 5).sum(1), x[:1].expand(6, 4, 5).mean((0, 2)), x[0, 0, 0].expand(100).sum(), x[:, :, None].expand(3, 4, 9, 5).amax(2)),
        "means_of_products": lambda x, e: ((x * x.flip(0)).mean((0, 2)), (x[:, :, None] * x[:, None]).sum(-1), torch.einsum("abc,abd->acd", x, x).sum(0)),
    },
)


# Linear algebra.

each(
    "algebraic",
    lambda: [r(3, 4, 4) + 8 * torch.eye(4), r(3, 4, 2), r(4)],
    {
        "solve": lambda a, b, v: (torch.linalg.solve(a, b), torch.linalg.solve(a, b, left=True), torch.linalg.solve(a[0], v), torch.linalg.solve_ex(a, b)[0]),
        "inverse": lambda a, b, v: (torch.inverse(a), torch.linalg.pinv(b), torch.linalg.inv_ex(a)[0]),
        "determinants": lambda a, b, v: (torch.det(a), torch.slogdet(a), torch.logdet(a @ a.mT), torch.linalg.det(a[0])),
        "triangular": lambda a, b, v: (torch.linalg.solve_triangular(a.triu(), b, upper=True), torch.linalg.solve_triangular(a.tril(), b, upper=False, unitriangular=True)),
        "cholesky": lambda a, b, v: (lambda s: (torch.linalg.cholesky(s), torch.linalg.cholesky(s, upper=True), torch.cholesky_solve(b, torch.linalg.cholesky(s)), torch.cholesky_inverse(torch.linalg.cholesky(s))))(a @ a.mT),
        "qr": lambda a, b, v: (lambda q, r_: (q @ r_, r_.diagonal(0, -2, -1).abs()))(*torch.linalg.qr(b)),
        "singular_values": lambda a, b, v: (torch.linalg.svdvals(b), torch.linalg.svd(b, full_matrices=False)[1], torch.linalg.matrix_rank(b)),
        "eigenvalues": lambda a, b, v: (torch.linalg.eigvalsh(a + a.mT), torch.linalg.eigh(a + a.mT)[0]),
        "lu": lambda a, b, v: (lambda p, l, u: p @ l @ u)(*torch.linalg.lu(a)),
        "lu_solve": lambda a, b, v: (lambda f, p: torch.linalg.lu_solve(f, p, b))(*torch.linalg.lu_factor(a)),
        "powers": lambda a, b, v: (torch.linalg.matrix_power(a, 3), torch.linalg.matrix_power(a, -1), torch.linalg.matrix_power(a, 0), torch.matrix_exp(a * 0.1)),
        "least_squares": lambda a, b, v: torch.linalg.lstsq(a, b).solution,
        "products": lambda a, b, v: (a @ b, a @ v, v @ a, v @ v, torch.linalg.multi_dot([a[0], a[1], v]), torch.chain_matmul(a[0], b[0]), torch.mv(a[0], v)),
        "vectors": lambda a, b, v: (torch.outer(v, v), torch.cross(a[:, :3], a[:, 1:], 1), torch.linalg.vecdot(b, b * 2, dim=1), torch.inner(a[0], v), torch.vdot(v, v), torch.kron(b[0], b[1])),
        "beta_zero": lambda a, b, v: (torch.addmm(torch.full((4, 2), nan), a[0], b[0], beta=0), torch.baddbmm(torch.full((3, 4, 2), inf), a, b, beta=0, alpha=2), torch.addmv(torch.full((4,), nan), a[0], v, beta=0)),
        "beta_alpha": lambda a, b, v: (torch.addmm(b[0], a[0], b[1], beta=0.5, alpha=-2), torch.addbmm(b[0], a, b, beta=2, alpha=3), torch.baddbmm(b, a, b, beta=0.1), torch.addr(a[0], v, v, alpha=3), torch.addmv(v, a[0], v, beta=0, alpha=0)),
        "of_empty": lambda a, b, v: (a[:0] @ b[:0], a[0, :0] @ b[0], a[0, :, :0] @ b[0, :0], torch.mm(a[0][:, :0], b[0][:0]), torch.det(a[0, :0, :0]), torch.linalg.inv(a[:0])),
        "einsum": lambda a, b, v: (torch.einsum("bij,bjk->bik", a, b), torch.einsum("bii->b", a), torch.einsum("bij->bji", a), torch.einsum("bij,j", a, v), torch.einsum("...ij,...jk", a, b), torch.einsum("i,j,k->ijk", v, v, v)),
        "tensordot": lambda a, b, v: (torch.tensordot(a[0], a[0], 2), torch.tensordot(a, b, ([0, 2], [0, 1])), torch.tensordot(v, v, 1), torch.tensordot(v, v, 0)),
        "trace_and_tri": lambda a, b, v: (a[0].trace(), a.tril(1), a.triu(-1), a.tril(-5), torch.tril(b, 1), torch.diag(v, 1), torch.diag(a[0], -1), torch.diag_embed(b), torch.diagflat(v)),
        "broadcast": lambda a, b, v: (a[:, None] @ b[None], a[0] @ b, a @ b[:1], torch.matmul(v, b), torch.matmul(a[:, None, None], v)),
        "transposed": lambda a, b, v: (a.mT @ b, b.mT @ a.mT, (a.transpose(0, 1) @ b[:1].expand(4, 4, 2)), a[:, ::2] @ b, a[..., 1:] @ b[:, 1:]),
        "of_ints": lambda a, b, v: ((a * 2).long() @ (b * 2).long(), (a * 2).int() @ (b * 3).int(), (v * 3).short() @ (v * 3).short(), torch.bmm((a * 2).to(torch.uint8), b.to(torch.uint8))),
        "of_half": lambda a, b, v: (a.half() @ b.half(), a.bfloat16() @ v.bfloat16(), torch.addmm(b[0].half(), a[0].half(), b[1].half()), F.linear(v.half(), a[0].half(), v.half())),
        "covariances": lambda a, b, v: (torch.cov(a[0]), torch.corrcoef(a[0]), torch.cov(a[0], correction=0, fweights=torch.tensor([1, 2, 3, 1])), torch.cov(v)),
        "geqrf": lambda a, b, v: torch.linalg.householder_product(*torch.geqrf(b)).abs(),
    },
    rtol=2e-3,
    atol=2e-4,
)


# Convolutions and layers around them.


def convolution(x, w):
    return F.conv2d(x, w, padding=1)


each(
    "convolved",
    lambda: [r(2, 4, 8, 9), r(6, 4, 3, 3), r(4, 3, 3, 3)],
    {
        "epilogues": lambda x, w, t: (F.relu(convolution(x, w)), F.hardswish(convolution(x, w)), F.silu(convolution(x, w)) + 1, F.gelu(convolution(x, w), approximate="tanh")),
        "residual": lambda x, w, t: (lambda y: (y + x.mean(1, True), F.relu(y.add_(1)), y * 2))(convolution(x, w)),
        "reused": lambda x, w, t: (lambda y: torch.cat([y, F.relu(y)], 1))(convolution(x, w)),
        "same": lambda x, w, t: (F.conv2d(x, w, padding="same"), F.conv2d(x, w, padding="valid"), F.conv2d(x, w[..., :2], padding="same", dilation=2)),
        "strided": lambda x, w, t: (F.conv2d(x, w, stride=2), F.conv2d(x, w, stride=(3, 1), padding=(2, 0)), F.conv2d(x, w, dilation=(2, 3), padding=3)),
        "grouped": lambda x, w, t: (F.conv2d(x, w[:, :2], groups=2), F.conv2d(x, w[:4, :1], groups=4), F.conv2d(x, t[:, :1].repeat(2, 1, 1, 1), groups=4)),
        "transposed": lambda x, w, t: (F.conv_transpose2d(x, t), F.conv_transpose2d(x, t, stride=2, padding=1, output_padding=1), F.conv_transpose2d(x, t[:, :2], groups=2), F.conv_transpose2d(x, t, dilation=2)),
        "lines": lambda x, w, t: (F.conv1d(x[:, :, 0], w[..., 0]), F.conv1d(x[0, :, 0], w[..., 0], padding=2), F.conv_transpose1d(x[:, :, 0], t[..., 0], stride=2), F.conv1d(x[:, :, 0].permute(0, 2, 1), torch.ones(2, 9, 3))),
        "volumes": lambda x, w, t: (F.conv3d(x[:, :, None], w[:, :, None], padding=1), F.conv_transpose3d(x[:, :, None], t[:, :, None], stride=(1, 2, 1))),
        "biased": lambda x, w, t: (F.conv2d(x, w, torch.arange(6.0)), F.conv_transpose2d(x, t, torch.arange(3.0)), F.conv2d(x[0], w, torch.ones(6))),
        "pointwise_kernel": lambda x, w, t: (F.conv2d(x, w[..., :1, :1]), F.conv2d(x, w[..., :1, :1], stride=2), F.conv2d(x, w[..., :1, :1].contiguous(memory_format=torch.channels_last))),
        "channels_last": lambda x, w, t: (convolution(x.to(memory_format=torch.channels_last), w), convolution(x, w.to(memory_format=torch.channels_last)), convolution(x.permute(0, 1, 3, 2), w)),
        "of_views": lambda x, w, t: (convolution(x[:, :, ::2], w), convolution(x[:1].expand(3, -1, -1, -1), w), convolution(x.flip(2), w), convolution(x.as_strided((2, 4, 6, 6), (288, 72, 9, 1)), w)),
        "empty_batch": lambda x, w, t: (convolution(x[:0], w), F.conv_transpose2d(x[:0], t)),
        "normalised": lambda x, w, t: F.batch_norm(convolution(x, w), torch.zeros(6), torch.ones(6), torch.arange(6.0), torch.ones(6), False, 0.1, 1e-3),
        "normalised_training": lambda x, w, t: (lambda m, v: (F.batch_norm(convolution(x, w), m, v, None, None, True, 0.3), m, v))(torch.zeros(6), torch.ones(6)),
        "of_double": lambda x, w, t: (convolution(x.double(), w.double()), F.conv_transpose2d(x.double(), t.double())),
        "aten": lambda x, w, t: (torch.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), aten.convolution(x, t, None, [2, 2], [0, 0], [1, 1], True, [1, 1], 1)),
        "aten_backward": lambda x, w, t: aten.convolution_backward(r_fixed(2, 6, 8, 9), x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]),
        "by_computed_weight": lambda x, w, t: convolution(x, w / w.flatten(1).norm(dim=1)[:, None, None, None] + torch.eye(3)),
        "into_pool": lambda x, w, t: F.max_pool2d(F.relu(convolution(x, w)), 3, 2, 1).mean((2, 3)),
        "upsampled_first": lambda x, w, t: convolution(torch.cat([F.interpolate(x[:, :2], scale_factor=2), torch.zeros(2, 2, 16, 18)], 1), w),
    },
    rtol=1e-4,
    atol=1e-4,
)


# Attention in the forms in which models write it.

each(
    "attention",
    lambda: [r(2, 3, 6, 8), r(2, 3, 7, 8), r(2, 3, 7, 8)],
    {
        "scaled_by_sqrt": lambda q, k, v: (q @ k.mT / math.sqrt(8)).softmax(-1) @ v,
        "masked_fill": lambda q, k, v: (q @ k.mT * 8**-0.5).masked_fill(torch.ones(6, 7).tril() == 0, -inf).softmax(-1) @ v,
        "masked_by_min": lambda q, k, v: torch.where(torch.ones(6, 7, dtype=torch.bool).tril(), q @ k.mT, torch.finfo(torch.float32).min).softmax(-1) @ v,
        "whole_row_masked": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.arange(6)[:, None] > torch.arange(7) + 0),
        "float_mask": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.linspace(-3, 3, 42).view(6, 7)),
        "float_mask_expanded": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.linspace(-3, 3, 7).expand(2, 1, 6, 7)),
        "causal": lambda q, k, v: (F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)),
        "permuted": lambda q, k, v: F.scaled_dot_product_attention(q.transpose(1, 2).contiguous().transpose(1, 2), k, v).transpose(1, 2).reshape(2, 6, 24),
        "in_double_softmax": lambda q, k, v: ((q @ k.mT).double().softmax(-1).float() @ v, (q @ k.mT).softmax(-1, dtype=torch.float64).to(q.dtype) @ v),
        "of_half_upcast": lambda q, k, v: ((q.bfloat16() @ k.bfloat16().mT).float().softmax(-1).bfloat16() @ v.bfloat16()).float(),
        "grouped_queries": lambda q, k, v: F.scaled_dot_product_attention(q.repeat(1, 2, 1, 1), k, v, enable_gqa=True),
        "repeated_keys": lambda q, k, v: F.scaled_dot_product_attention(q.repeat_interleave(2, 1), k.repeat_interleave(2, 1), v[:, :, None].expand(2, 3, 2, 7, 8).reshape(2, 6, 7, 8)),
        "three_dims": lambda q, k, v: (F.scaled_dot_product_attention(q[0], k[0], v[0]), torch.bmm(torch.bmm(q[0], k[0].mT).softmax(-1), v[0])),
        "wider_values": lambda q, k, v: F.scaled_dot_product_attention(q, k, torch.cat([v, v], -1)),
        "one_query": lambda q, k, v: F.scaled_dot_product_attention(q[:, :, :1], k, v),
        "no_keys": lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0]),
        "bool_mask_of_keys": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.tensor([True] * 5 + [False] * 2)[None, None, None]),
        "alibi": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, -(torch.arange(6)[:, None] - torch.arange(7)).abs() * torch.tensor([0.5, 0.25, 0.125])[:, None, None]),
        "with_sink": lambda q, k, v: (lambda s: (torch.cat([s, torch.zeros(2, 3, 6, 1)], -1).softmax(-1)[..., :-1] @ v))(q @ k.mT),
        "dropped_nothing": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.0) + F.dropout((q @ k.mT).softmax(-1), 0.5, False) @ v,
        "heads_merged": lambda q, k, v: F.multi_head_attention_forward(
            q[0].transpose(0, 1).reshape(6, 1, 24), k[0].transpose(0, 1).reshape(7, 1, 24), v[0].transpose(0, 1).reshape(7, 1, 24), 24, 3,
            r_fixed(72, 24), torch.zeros(72), None, None, False, 0.0, r_fixed(24, 24), torch.zeros(24),
        ),
        "rotary": lambda q, k, v: (lambda a: q * a.cos() + torch.cat([-q[..., 4:], q[..., :4]], -1) * a.sin())(torch.arange(6.0)[:, None] * 10000 ** (-torch.arange(8.0) / 8)),
        "by_einsum": lambda q, k, v: torch.einsum("bhqk,bhkd->bqhd", torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1), v).flatten(2),
    },
    rtol=1e-3,
    atol=1e-4,
)

each(
    "in_half",
    lambda: [r(2, 4, 8, 9), r(6, 4, 3, 3), r(2, 3, 6, 8)],
    {
        "convolved": lambda x, w, q: (convolution(x.bfloat16(), w.bfloat16()), F.conv2d(x.half(), w.half())),
        "attended": lambda x, w, q: F.scaled_dot_product_attention(q.half(), q.half(), q.half(), is_causal=True),
    },
    gradients=False,
    rtol=2e-2,
    atol=2e-2,
)


# What eager refuses: a source with other dimensions, pools without windows in the backward pass.

each(
    "refused_source",
    lambda: [torch.zeros(()), torch.ones(1), torch.tensor([0])],
    {
        "of_one_for_a_number": lambda x, s, i: x.index_add(0, i, s),
        "of_one_in_place": lambda x, s, i: x.index_add_(0, i, s),
        "number_for_one": lambda x, s, i: s.index_add(0, i, x),
        "of_two": lambda x, s, i: x.index_add(0, torch.tensor([0, 0]), torch.ones(2)),
        "reduced": lambda x, s, i: x.index_reduce(0, i, s, "prod"),
        "reduced_number": lambda x, s, i: s.index_reduce(0, i, x, "amax"),
        "rows": lambda x, s, i: torch.zeros(3, 2).index_add(0, i, torch.ones(2)),
        "copied_rows": lambda x, s, i: torch.zeros(3, 2).index_copy(0, i, torch.ones(2)),
    },
    gradients=False,
)
each(
    "no_windows",
    lambda: [r(2, 3, 4)],
    {
        "average": lambda x: F.adaptive_avg_pool2d(x, (0, 2)),
        "average_of_lines": lambda x: F.adaptive_avg_pool1d(x, 0),
        "maximum": lambda x: F.adaptive_max_pool2d(x, (2, 0)),
        "maximum_of_lines": lambda x: F.adaptive_max_pool1d(x, 0),
        "empty_batch": lambda x: F.adaptive_avg_pool2d(x[None][:0], (2, 2)),
    },
)


# Shapes that change in place.

each(
    "reshaped_in_place",
    lambda: [r(1, 4, 6)],
    {
        "squeezed_view": lambda x: (lambda c: (c.unsqueeze(0).squeeze_(0).add_(1), c.unsqueeze(-1).sub_(2), c))(x.clone()),
        "squeezed_then_written": lambda x: (lambda c: (c.squeeze_(0), c[1].mul_(2), c.t()[2:4].add_(1), c))(x.clone()),
        "base_is_written": lambda x: (lambda c, v: (v.squeeze_(), c.mul_(3), v.add_(1), c, v))(*(lambda c: (c, c[:, 1:2]))(x.clone())),
        "transposed": lambda x: (lambda c: (c.transpose_(1, 2), c[:, 1:3].add_(1), c.t_() if c.dim() == 2 else c, c * 2))(x.clone()),
        "unsqueezed_twice": lambda x: (lambda c: (c.unsqueeze_(0).unsqueeze_(-1), c.mul_(2), c.squeeze_(-1).add_(1), c))(x.clone()),
        "as_strided": lambda x: (lambda c: (c.as_strided_((4, 3), (6, 1), 2), c.add_(1), c.sum()))(x.clone()),
        "shape_is_asked": lambda x: (lambda c: (c.squeeze_(0).size(0), c.shape, c.dim(), c.t_().shape, c.stride(), [c][0].unsqueeze_(1).shape))(x.clone()),
        "two_views": lambda x: (lambda a, b: (a.squeeze_(0), b.add_(1), a.mul_(2), a, b))(*(lambda c: (c.view(1, 24), c.view(4, 6)))(x.clone())),
    },
    gradients=False,
)
