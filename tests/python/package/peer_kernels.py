"""More functions on the subjects of a peer's tests: what its kernels, loops and rewrites are asked for one at a time.

As `peer_cases.py`, whose names these do not repeat.
"""

import functools
import math
import operator

import torch
import torch.nn.functional as F
from peer_cases import aten, bools, each, inf, ints, nan, one, r, two
from torch import nn


def image():
    return [r(2, 3, 9, 10)]


def three():
    return [r(4, 6), r(4, 6), r(4, 6)]


each(
    "loop",
    two,
    {
        "abs_of_difference": lambda x, y: (x - y).abs().sum(-1).max(),
        "added_to_alpha": lambda x, y: torch.add(x, y, alpha=-2.5) + torch.sub(y, x, alpha=3),
        "chain_of_twenty": lambda x, y: functools.reduce(lambda a, _: (a + y).sin(), range(20), x),
        "same_read_twice": lambda x, y: x * x + x / (x.abs() + 1) - x,
        "read_transposed_and_plain": lambda x, y: x[:, :8] + x[:, :8].t() + y[:, 8:].t(),
        "rows_and_columns": lambda x, y: x + y[:, :1] + y[:1, :] + y[0, 0],
        "strided_columns": lambda x, y: x[:, ::2] * y[:, 1::2] + x[:, ::2].contiguous(),
        "reversed_columns": lambda x, y: x.flip(1) + y.flip(0) + (x + y).flip(0, 1),
        "shifted_overlap": lambda x, y: x[:, 1:] - x[:, :-1] + y[:, 2:3],
        "stored_twice": lambda x, y: ((x + y), (x + y).clone(), (x + y) * 1),
        "compare_of_sums": lambda x, y: (x.sum(1) > y.sum(1), (x.sum() > y.sum()).float() * x),
        "sums_of_squares": lambda x, y: ((x * y).sum(), (x * y).pow(2).sum(0), (x * y).pow(2).sum(1)),
        "ratio_of_sums": lambda x, y: x / x.sum(1, keepdim=True).clamp(min=1e-3) + y / y.abs().sum(0),
        "norm_then_scale": lambda x, y: x / x.norm(dim=1, keepdim=True) * y.norm(dim=0),
        "scalar_of_tensor": lambda x, y: x * y.mean() + y.amax(),
        "of_expanded": lambda x, y: x[:1].expand(8, 16) * y + x[:1].expand(8, 16).sum(0),
        "selected_row_is_added": lambda x, y: x + y[3] - x.select(1, 2).unsqueeze(1),
        "square_then_root": lambda x, y: (x * x + y * y + 1e-6).sqrt().log().exp(),
        "outer_of_columns": lambda x, y: x[:, :, None] * y[:, None, :],
        "batched_outer_then_sum": lambda x, y: (x[:, :, None] * y[:, None, :]).sum((1, 2)),
        "where_of_reduced": lambda x, y: torch.where(x > x.mean(1, keepdim=True), x, y.mean(0)),
        "masked_mean": lambda x, y: (x * (y > 0)).sum(1) / (y > 0).sum(1).clamp(min=1),
        "constant_fold_of_zeros": lambda x, y: x + torch.zeros(8, 16) * y + torch.ones(16) - 1,
        "divided_by_constant": lambda x, y: x / 3 + y / 0.1 + (x + y) / 7.0,
        "multiplied_by_inf": lambda x, y: (x > 5).float() * inf + y.clamp(-1, 1) * 0,
        "int_of_float": lambda x, y: (x * 10).int() // 3 + (y * 10).long() % 4,
        "modulo_of_negative": lambda x, y: (x % 0.7, torch.fmod(y, 0.7), torch.remainder(x, -0.7), (x * 9).long() % -4),
        "float_index": lambda x, y: torch.arange(16, dtype=torch.float32) * x + torch.arange(8)[:, None] / 2 * y,
        "index_arithmetic": lambda x, y: x * (torch.arange(16) // 3) + y * (torch.arange(16) % 5),
        "triangle_of_index": lambda x, y: torch.where(torch.arange(16) <= torch.arange(8)[:, None], x, y),
        "two_dtypes": lambda x, y: (x.double() * y, x.half() + y.half(), (x > 0) + y.bfloat16()),
        "reciprocal_forms": lambda x, y: (1 / (x.abs() + 1), (y.abs() + 1) ** -1, (x.abs() + 1).reciprocal(), (y.abs() + 1).rsqrt()),
        "hyperbolic": lambda x, y: (x.sinh(), y.cosh().acosh(), x.tanh().mul(0.9).atanh(), y.asinh()),
        "logs_and_exps": lambda x, y: (x.exp2(), y.expm1(), x.abs().log1p(), (y.abs() + 1).log2(), (x.abs() + 1).log10()),
        "errors": lambda x, y: (torch.erf(x), torch.erfc(y), torch.erfinv(x.tanh() * 0.9), torch.special.erfcx(y)),
        "gammas": lambda x, y: (torch.lgamma(x.abs() + 0.5), torch.digamma(y.abs() + 0.5), torch.polygamma(1, x.abs() + 1)),
        "signs": lambda x, y: (x.sign() * y, torch.copysign(x, y), x.signbit().float() + y.sgn()),
        "next_after": lambda x, y: torch.nextafter(x, y).detach() + torch.nextafter(x, torch.full_like(x, inf)).detach(),
        "ldexp_frexp": lambda x, y: (torch.ldexp(x, torch.tensor(3)), torch.frexp(x).mantissa, torch.frexp(y.detach()).exponent),
        "heaviside": lambda x, y: torch.heaviside(x.detach(), y.detach()),
        "hypot_atan2": lambda x, y: torch.hypot(x, y) + torch.atan2(x, y),
        "logaddexp": lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.logsumexp(torch.stack([x, y]), 0)),
        "xlogy_of_zero": lambda x, y: (torch.xlogy(torch.zeros(16), x.abs()), torch.special.xlog1py(x, y.abs())),
        "sinc_i0": lambda x, y: (torch.sinc(x), torch.i0(y), torch.special.i1(x)),
        "mvlgamma": lambda x, y: torch.mvlgamma(x.abs() + 3, 2),
        "float_power": lambda x, y: (torch.float_power(x.abs() + 1, 1.5), torch.pow(2, y), torch.pow(x.abs() + 1, y)),
        "nan_to_num": lambda x, y: torch.nan_to_num(x / (y - y), nan=1.0, posinf=2.0, neginf=-2.0),
        "isnan_family": lambda x, y: ((x / 0).isinf(), (x / 0 - y / 0).isnan(), (x / 0).isposinf(), (y / 0).isneginf(), x.isfinite(), x.isreal()),
        "lerp_forms": lambda x, y: (torch.lerp(x, y, 0.25), torch.lerp(x, y, y.sigmoid()), x.lerp(y, 1.0)),
        "addc_forms": lambda x, y: (torch.addcmul(x, x, y, value=2), torch.addcdiv(x, y, x.abs() + 1, value=-0.5)),
    },
)

each(
    "shape",
    one,
    {
        "split_and_swap": lambda x: torch.cat(x.chunk(4, 1)[::-1], 1),
        "split_sizes": lambda x: [part.sum() * n for n, part in enumerate(x.split([3, 5, 8], 1))],
        "unbind_and_stack": lambda x: torch.stack(x.unbind(0)[::2], 1),
        "hsplit_vsplit": lambda x: (*torch.hsplit(x, 4), *torch.vsplit(x, [2, 5])),
        "dstack_hstack": lambda x: (torch.hstack([x, x]), torch.vstack([x, x * 2]), torch.dstack([x, x + 1]), torch.column_stack([x, x[:, 0]])),
        "atleast": lambda x: (torch.atleast_1d(x.sum()), torch.atleast_2d(x[0]), torch.atleast_3d(x)),
        "roll_forms": lambda x: (x.roll(3), x.roll((1, -2), (0, 1)), x.roll(100, 1), torch.roll(x.t(), 5, 0)),
        "rot90": lambda x: (torch.rot90(x, 1), torch.rot90(x, 2), torch.rot90(x, -1, (0, 1))),
        "tile_repeat": lambda x: (x.tile(2, 1), x.repeat(1, 2, 1), x.repeat_interleave(2, 1), x.repeat(0, 1)),
        "expand_as": lambda x: x[:, :1].expand_as(x) + x[0].expand(8, 16),
        "reshape_of_permuted": lambda x: x.reshape(2, 4, 4, 4).permute(2, 0, 3, 1).reshape(16, 8) + 1,
        "view_as": lambda x: x.view_as(x.reshape(8, 16)).reshape_as(x.t().contiguous()),
        "unflatten": lambda x: x.unflatten(1, (4, -1)).flatten(0, 1),
        "movedim_swapaxes": lambda x: x.reshape(2, 4, 16).movedim(0, -1).swapaxes(0, 1).swapdims(1, 2) * 2,
        "squeeze_tuple": lambda x: x[None, :, None].squeeze((0, 2)) + x.unsqueeze(-1).squeeze(-1),
        "diag_forms": lambda x: (x.diag(), x[0].diag(), x.diagonal(1), torch.diag_embed(x), x[:, :8].diagflat(2)),
        "tril_triu": lambda x: (x.tril(-1), x.triu(2), torch.tril(x.reshape(2, 4, 16)), torch.triu(x[:, :1])),
        "tril_indices": lambda x: (x[torch.tril_indices(8, 8).unbind()], torch.triu_indices(3, 5, 1)),
        "unfold_windows": lambda x: x.unfold(1, 4, 3).sum(-1) + x.unfold(0, 8, 1).mean(),
        "as_strided_windows": lambda x: x.as_strided((5, 4), (2, 3), 1) * 2,
        "narrow_and_copy": lambda x: x.narrow(1, 3, 5) + torch.narrow_copy(x, 1, -6, 5),
        "select_negative": lambda x: x.select(1, -2) + x[-1, -8:],
        "ellipsis": lambda x: x.reshape(2, 4, 4, 4)[..., 1:3, None, 0] + x.reshape(2, 4, 4, 4)[0, ..., :1, :1],
        "block_diag": lambda x: torch.block_diag(x, x[:2, :3], x[0]),
        "cartesian": lambda x: (torch.cartesian_prod(x[0, :3], x[1, :2]), torch.combinations(x[0, :5], 2)),
        "broadcast_to": lambda x: (torch.broadcast_to(x[0], (3, 16)), *torch.broadcast_tensors(x[:, :1], x[:1])),
        "meshgrid": lambda x: torch.meshgrid(x[0, :3], x[1, :4], indexing="xy"),
        "vander": lambda x: (torch.vander(x[0, :4]), torch.vander(x[0, :4], 3, True)),
        "kron": lambda x: torch.kron(x[:2, :3], x[3:5, :2]),
        "pixel_unshuffle": lambda x: F.pixel_unshuffle(x.reshape(1, 2, 8, 8), 2),
        "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(2, 4, 4, 4), 2) * 2,
        "fold_of_unfold": lambda x: F.fold(F.unfold(x.reshape(1, 2, 8, 8), 3, padding=1), (8, 8), 3, padding=1),
        "glu_halves": lambda x: (F.glu(x), F.glu(x, 0)),
        "trace": lambda x: (x.trace(), x[:, :8].trace() * 2),
        "gradient_of_grid": lambda x: torch.gradient(x, spacing=0.5),
        "diff": lambda x: (x.diff(), x.diff(2, 0), torch.diff(x, prepend=x[:, :1])),
        "cumulative_trapezoid": lambda x: (torch.cumulative_trapezoid(x), torch.trapezoid(x, dx=0.5)),
        "bool_pad": lambda x: (F.pad(x > 0, (1, 2), value=True), F.pad(x, (-1, 2, 0, -3)), F.pad(x, (1, 1), value=-inf)),
        "contiguous_of_slice": lambda x: x[:, 3:].contiguous().view(-1) + x[:, :13].reshape(-1),
        "empty_slice": lambda x: (x[3:3], torch.cat([x[:0], x]), x[:, :0].sum(1), x[:0].sum(0)),
    },
)

each(
    "reduced",
    one,
    {
        "var_of_views": lambda x: (x.t().var(0), x[:, ::2].var(1, unbiased=False), x.reshape(2, 64).std(0, correction=1)),
        "mean_of_strided": lambda x: (x[::2].mean(1), x.t()[::3].mean(0), x[:, 1:].mean()),
        "two_passes": lambda x: ((x - x.mean()) / x.std()).pow(3).mean(),
        "max_then_index": lambda x: x.gather(1, x.argmax(1, keepdim=True)) + x.max(1, keepdim=True).values,
        "min_of_ints": lambda x: ((x * 10).int().amin(1), (x * 10).to(torch.int8).amax(0), (x * 10).long().min(1)),
        "argmax_flat": lambda x: (x.argmax(), x.t().argmin(), x.reshape(-1).argmax(0)),
        "prod_of_dims": lambda x: (x.tanh().prod(1), x.tanh().prod(0, dtype=torch.float64), x[:2].prod()),
        "logsumexp_keep": lambda x: x - x.logsumexp(1, keepdim=True) + x.logsumexp((0, 1)),
        "norms_of_dims": lambda x: (x.norm(p=1, dim=0), x.norm(p=inf, dim=(0, 1)), torch.linalg.norm(x, dim=1, ord=3), x.norm(p="fro", dim=(0, 1))),
        "renorm": lambda x: (x.renorm(2, 0, 1.0), x.renorm(1, 1, 0.5)),
        "cummax_of_views": lambda x: (*x.t().cummax(1), *x[:, ::2].cummin(0)),
        "cumsum_of_views": lambda x: (x.t().cumsum(0), x[::2].cumsum(1), x.flip(1).cumsum(1).flip(1), (x > 0).cumsum(0)),
        "logcumsumexp": lambda x: (x.logcumsumexp(0), x[:, ::3].logcumsumexp(1)),
        "cumprod_with_zero": lambda x: (torch.where(x > 1.5, 0, x).cumprod(1), x.sign().cumprod(0)),
        "median_mode": lambda x: (x.median(), *x.median(1), *(x * 2).round().mode(1)),
        "quantiles": lambda x: (x.quantile(0.3), x.quantile(torch.tensor([0.1, 0.9]), 1, True), x.nanquantile(0.5, 0)),
        "kthvalue_topk": lambda x: (*x.kthvalue(3, 1), *x.topk(4, 1, largest=False), *x.topk(2, 0)),
        "sort_then_gather": lambda x: x.gather(1, x.sort(1, descending=True).indices[:, :5]),
        "sort_stable_of_ints": lambda x: torch.sort((x * 2).round().int(), stable=True, dim=1),
        "unique_of_sorted": lambda x: (x * 2).round().sort(1).values.sum(0),
        "any_all_of_dims": lambda x: ((x > 1).any(1), (x > -3).all(0), (x > 0).any(), x.bool().all(1, True)),
        "count_and_mean": lambda x: ((x > 0).sum(0) / x.shape[0], torch.count_nonzero(x, 1).float().mean()),
        "aminmax": lambda x: (*x.aminmax(), *x.aminmax(dim=1, keepdim=True)),
        "softmax_of_strided": lambda x: (x.t().softmax(0), x[:, ::2].log_softmax(1), x.softmax(0, dtype=torch.float64)),
        "softmax_of_masked_rows": lambda x: x.masked_fill(torch.arange(8)[:, None] == 2, -inf).softmax(1),
        "nan_aware": lambda x: (torch.where(x > 1, nan, x).nansum(1), torch.where(x > 1, nan, x).nanmean(), torch.where(x > 1, nan, x).max(1).values),
        "half_sums": lambda x: (x.half().sum(), x.bfloat16().sum(1), x.half().mean(0), x.bfloat16().softmax(1), x.half().float().var(1)),
        "of_empty_dim": lambda x: (x[:, :0].prod(1), x[:0].mean(1), x[:0].any(), x[:, :0].logsumexp(1)),
        "histogram": lambda x: (torch.histc(x, 5, -2, 2), torch.bincount((x.abs() * 3).long().view(-1), minlength=20)),
        "scatter_then_softmax": lambda x: torch.zeros(4, 16).index_add(0, torch.arange(8) % 4, x).softmax(0),
    },
)

each(
    "indexed",
    lambda: [r(8, 16), ints(5, high=8), ints(8, 16, high=8), bools(8, 16)],
    {
        "rows_then_sum": lambda x, i, j, m: x[i].sum(0) + x[i, 3],
        "rows_and_columns": lambda x, i, j, m: x[i[:, None], torch.tensor([0, 3, 15])],
        "negative_tensor": lambda x, i, j, m: x[-i - 1] * x[i - 8],
        "gather_then_scatter": lambda x, i, j, m: torch.zeros_like(x).scatter(0, j, x.gather(0, j)),
        "scatter_add_of_rows": lambda x, i, j, m: torch.zeros(8, 16).scatter_add(0, i[:, None].expand(5, 16), x[:5]),
        "put_accumulate": lambda x, i, j, m: torch.ones(8, 16).index_put((i,), x[:5], accumulate=True),
        "put_slice_and_tensor": lambda x, i, j, m: x.clone().index_put((torch.tensor([1, 2]), torch.tensor([3, 4])), x.new_tensor([5.0, 6.0])),
        "set_rows": lambda x, i, j, m: setitem(x.clone(), (torch.tensor([0, 2]), slice(None, None, 2)), 1.5),
        "set_masked": lambda x, i, j, m: setitem(x.clone(), m, 0.25),
        "set_masked_rows": lambda x, i, j, m: setitem(x * 1, torch.tensor([True, False] * 4), x[:4] + 1),
        "masked_where": lambda x, i, j, m: torch.where(m, x, x.flip(0)).masked_fill(~m & (x > 0), -1),
        "masked_scatter": lambda x, i, j, m: x.masked_scatter(m, torch.arange(128.0)),
        "take_put": lambda x, i, j, m: x.take(j) + x.put(i, torch.zeros(5)),
        "take_along_dim": lambda x, i, j, m: x.take_along_dim(x.argsort(1), 1),
        "index_select_views": lambda x, i, j, m: x.t().index_select(1, i) + x[:, ::2].index_select(0, i).sum(),
        "index_copy_fill": lambda x, i, j, m: x.index_copy(0, torch.tensor([7, 1]), x[:2]).index_fill(1, torch.tensor([0, 5]), 9.0),
        "int32_indices": lambda x, i, j, m: x[i.int()] + x.index_select(0, i.int()),
        "embedding_padding": lambda x, i, j, m: F.embedding(i, x, padding_idx=3).sum(1),
        "one_hot_matmul": lambda x, i, j, m: F.one_hot(i, 8).float() @ x,
        "where_of_indices": lambda x, i, j, m: torch.where(j % 2 == 0, x.gather(0, j), x),
        "argsort_twice": lambda x, i, j, m: x.argsort(0).argsort(0) + j.argsort(1, stable=True),
        "bucketize_right": lambda x, i, j, m: (torch.bucketize(x, torch.linspace(-1, 1, 5), right=True), torch.searchsorted(x.sort(1).values, x[:, :3].contiguous(), out_int32=True)),
        "slice_scatter_strided": lambda x, i, j, m: torch.slice_scatter(x, x[:, ::4] * 0 + 3, 1, 0, 16, 4),
        "select_diagonal_scatter": lambda x, i, j, m: x.select_scatter(x[0] * 2, 0, 3).diagonal_scatter(torch.ones(8)),
        "unsafe_index": lambda x, i, j, m: aten._unsafe_index(x, [i, None]) + aten.index(x, [None, i])[:5, :1],
        "isin_unique": lambda x, i, j, m: (torch.isin(j, i), torch.isin(j, 3), torch.isin(j, i, invert=True)),
        "cdist_rows": lambda x, i, j, m: torch.cdist(x[i], x, p=1),
        "count_by_scatter": lambda x, i, j, m: torch.zeros(8, dtype=torch.long).scatter_add(0, i, torch.ones_like(i)),
        "boolean_reductions": lambda x, i, j, m: (m.sum(1), m.any(0), (m & (x > 0)).float().mean(), m.int().argmax(1)),
        "chained_gather": lambda x, i, j, m: x.gather(0, j).gather(1, j)[i],
    },
)


def setitem(x, key, value):
    x[key] = value
    return x


each(
    "written",
    one,
    {
        "rows_in_turn": lambda x: functools.reduce(lambda y, n: setitem(y, n, y[n - 1] * 0.5 + 1), range(1, 8), x.clone()),
        "view_after_write": lambda x: (lambda y: (y[:, 0].mul_(2), y.t()[0].add_(1), y.clone())[2])(x.clone()),
        "twice_through_views": lambda x: (lambda y: (y.view(-1)[::3].zero_(), y.view(16, 8)[1].fill_(2), y)[2])(x.clone()),
        "copy_with_cast": lambda x: torch.empty(8, 16, dtype=torch.float64).copy_(x) + torch.zeros(8, 16).half().copy_(x).float(),
        "copy_broadcast": lambda x: torch.empty(3, 8, 16).copy_(x) * torch.empty(8, 16).copy_(x[0]),
        "in_place_chain": lambda x: x.clone().add_(1).mul_(2).clamp_(-1, 1).neg_().tanh_(),
        "in_place_activations": lambda x: F.relu(x * 2, inplace=True) + F.elu(x * 1, inplace=True) + F.hardtanh(x + 1, inplace=True),
        "in_place_masked": lambda x: x.clone().masked_fill_(x > 0, 3.0).tril_(),
        "in_place_of_ints": lambda x: (x * 10).int().bitwise_and_(7).bitwise_or_(16).mul_(3),
        "in_place_sums": lambda x: torch.zeros(16).add_(x.sum(0)).addcmul_(x[0], x[1], value=2).lerp_(x[2], 0.5),
        "in_place_matmul": lambda x: torch.zeros(8, 8).addmm_(x, x.t(), beta=0.5, alpha=2).add_(1),
        "scatter_in_place": lambda x: x.clone().scatter_(1, ints(8, 3, high=16), 7.0).scatter_add_(1, torch.zeros(8, 2, dtype=torch.long), torch.ones(8, 2)),
        "index_in_place": lambda x: x.clone().index_add_(0, torch.tensor([0, 0, 3]), torch.ones(3, 16)).index_fill_(1, torch.tensor([2]), 0.0),
        "cumsum_in_place": lambda x: x.clone().cumsum_(1).cumprod_(0),
        "swap_rows": lambda x: (lambda y: setitem(setitem(y, 0, y[1].clone() * 1), 1, x[0]))(x.clone()),
        "unsqueeze_in_place": lambda x: x.clone().unsqueeze_(1).transpose_(0, 2).squeeze_(1) + 1,
        "detached_is_written": lambda x: (lambda y: (y.detach().mul_(0), y * 2)[1])(x.detach().clone()),
        "round_in_place": lambda x: x.clone().mul_(4).round_().div_(4).floor_().frac_(),
        "filled_from_tensor": lambda x: torch.empty(4).fill_(x.sum().detach()) + x.new_full((4,), 2.5),
        "in_place_comparisons": lambda x: x.clone().gt_(0) + x.clone().eq_(1).logical_not_(),
    },
)

each(
    "imaged",
    image,
    {
        "conv_relu_pool": lambda x: F.max_pool2d(F.relu(F.conv2d(x, torch.ones(4, 3, 3, 3) * 0.1, padding=1)), 2),
        "conv_groups": lambda x: F.conv2d(x, torch.ones(6, 1, 3, 3) * 0.1, groups=3, stride=2, dilation=2),
        "conv_same": lambda x: F.conv2d(x, torch.ones(2, 3, 2, 2) * 0.1, padding="same") + F.conv2d(x, torch.ones(2, 3, 1, 1), padding="valid"),
        "conv_transpose_stride": lambda x: F.conv_transpose2d(x, torch.ones(3, 2, 3, 3) * 0.1, stride=2, output_padding=1, padding=1),
        "avg_pool_forms": lambda x: (F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3)),
        "adaptive_sizes": lambda x: (F.adaptive_avg_pool2d(x, (3, None)), F.adaptive_max_pool2d(x, 4), F.adaptive_avg_pool2d(x, 1)),
        "lp_pool": lambda x: F.lp_pool2d(x.abs() + 0.1, 2, 3, 2),
        "interpolate_modes": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (5, 7), mode="bilinear"), F.interpolate(x, (12, 13), mode="bicubic", align_corners=True)),
        "interpolate_fraction": lambda x: F.interpolate(x, scale_factor=(1.5, 0.7), mode="bilinear", recompute_scale_factor=True),
        "nearest_exact": lambda x: F.interpolate(x, (4, 21), mode="nearest-exact"),
        "pads": lambda x: (F.pad(x, (1, 2, 3, 0), "reflect"), F.pad(x, (2, 1, 0, 4), "replicate"), F.pad(x, (1, 1, 2, 2), "circular")),
        "batch_norm_eval": lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), torch.ones(3) * 2, torch.ones(3)),
        "batch_norm_train": lambda x: F.batch_norm(x, None, None, training=True).relu(),
        "instance_norm": lambda x: F.instance_norm(x, weight=torch.ones(3), bias=torch.zeros(3)),
        "group_norm": lambda x: F.group_norm(x, 3, torch.arange(3.0), torch.ones(3)),
        "layer_norm_of_image": lambda x: F.layer_norm(x, (9, 10)) + F.rms_norm(x, (10,)),
        "local_response": lambda x: F.local_response_norm(x, 3),
        "channels_last_chain": lambda x: F.conv2d(x.to(memory_format=torch.channels_last), torch.ones(4, 3, 3, 3) * 0.1).relu() + 1,
        "grid_sample": lambda x: F.grid_sample(x, F.affine_grid(torch.eye(2, 3).expand(2, 2, 3) * 0.9, (2, 3, 5, 6), align_corners=False), align_corners=False),
        "unfold_matmul": lambda x: torch.ones(4, 27) @ F.unfold(x, 3, padding=1),
        "max_unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x[:, :, :8], 2, return_indices=True), 2),
        "dropout_of_zero": lambda x: F.dropout(x, 0.0) + F.dropout2d(x, 0.3, training=False),
        "cosine_channels": lambda x: F.cosine_similarity(x, x.flip(1), dim=1) + F.normalize(x, dim=1).sum(1),
        "softmax_channels": lambda x: (x.softmax(1), x.argmax(1), x.log_softmax(1).exp().sum(1)),
        "losses_of_pixels": lambda x: F.cross_entropy(x, torch.zeros(2, 9, 10, dtype=torch.long)) + F.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
    },
)

each(
    "multiplied",
    three,
    {
        "linear_forms": lambda x, y, z: (F.linear(x, y), F.linear(x, y, z[:, 0]), F.linear(x[0], y), F.linear(x[None], y, z[:, 1])),
        "addmm_forms": lambda x, y, z: (torch.addmm(z[:, :4], x, y.t()), torch.addmm(z[0, :4], x, y.t(), beta=0, alpha=2), torch.addmv(z[:, 0], x, y[0])),
        "bmm_of_expanded": lambda x, y, z: torch.bmm(x.expand(3, 4, 6), y.t().expand(3, 6, 4)),
        "baddbmm": lambda x, y, z: torch.baddbmm(z[None, :, :4], x[None], y.t()[None], beta=0.5),
        "matmul_broadcast": lambda x, y, z: torch.matmul(x.reshape(2, 1, 2, 6), y.t().reshape(3, 2, 4)[:, None].expand(3, 3, 2, 4).reshape(9, 2, 4)[:1].transpose(1, 2).reshape(1, 1, 8)[..., :6].transpose(1, 2)),
        "mv_dot": lambda x, y, z: (x.mv(y[0]), x[0].dot(y[1]), torch.vdot(x[1], z[0]), torch.inner(x, y), torch.outer(x[0], y[0])),
        "einsum_forms": lambda x, y, z: (torch.einsum("ij,kj->ik", x, y), torch.einsum("ij,ij->", x, y), torch.einsum("ij,ij,ij->i", x, y, z), torch.einsum("ii->i", x[:, :4])),
        "chain_matmul": lambda x, y, z: torch.linalg.multi_dot([x, y.t(), z]),
        "matrix_power": lambda x, y, z: torch.linalg.matrix_power(x[:, :4] * 0.3, 3) + torch.matrix_exp(y[:, :4] * 0.1),
        "tensordot": lambda x, y, z: (torch.tensordot(x, y, ([1], [1])), torch.tensordot(x, y.t(), 1)),
        "cross": lambda x, y, z: (torch.cross(x[:, :3], y[:, :3], dim=1), torch.linalg.cross(x[:3], y[:3], dim=0)),
        "residual_mlp": lambda x, y, z: x + F.gelu(x @ y.t(), approximate="tanh") @ z,
        "attention_by_hand": lambda x, y, z: ((x @ y.t()) / math.sqrt(6) + torch.triu(torch.full((4, 4), -inf), 1)).softmax(-1) @ z,
        "sdpa_forms": lambda x, y, z: F.scaled_dot_product_attention(x[None, None], y[None, None], z[None, None], is_causal=True, scale=0.3),
        "gated": lambda x, y, z: torch.sigmoid(x @ y.t()) * torch.tanh(z @ y.t()),
        "inverse_of_gram": lambda x, y, z: torch.linalg.solve(x @ x.t() + torch.eye(4), y),
        "cholesky_of_gram": lambda x, y, z: torch.linalg.cholesky(x @ x.t() + torch.eye(4)) @ z,
        "int_matmul": lambda x, y, z: (x * 3).int() @ (y * 3).int().t(),
        "half_matmul": lambda x, y, z: x.bfloat16() @ y.bfloat16().t() + (x.half() @ y.half().t()).float(),
        "lora": lambda x, y, z: F.linear(x, y) + F.linear(F.linear(x, z[:2]), y[:, :2]) * 0.5,
    },
)

each(
    "symbolic",
    lambda: [r(7, 12)],
    {
        "mean_by_size": lambda x: x.sum(0) / x.shape[0] + x.shape[1],
        "half_of_rows": lambda x: x[: x.shape[0] // 2] * 2,
        "last_rows": lambda x: x[-(x.shape[0] - 2) :] - 1,
        "pad_to_multiple": lambda x: F.pad(x, (0, (-x.shape[1]) % 5, 0, 8 - x.shape[0])),
        "arange_of_size": lambda x: x + torch.arange(x.shape[1]) - torch.arange(x.size(0), dtype=x.dtype)[:, None],
        "eye_of_size": lambda x: x + torch.eye(x.shape[0], x.shape[1]) * x.numel(),
        "view_of_sizes": lambda x: x.view(x.shape[0], 3, x.shape[1] // 3).transpose(1, 2).reshape(-1, 3),
        "expand_to_size": lambda x: x[0].expand(x.shape[0], -1) + x.new_ones(x.shape[1]),
        "loop_over_rows": lambda x: sum(row * n for n, row in enumerate(x)),
        "branch_on_size": lambda x: x * 2 if x.shape[0] > 5 and x.shape[1] % 2 == 0 else x + 1,
        "causal_of_size": lambda x: x.masked_fill(torch.ones(x.shape[0], x.shape[1]).tril().bool(), 0.0),
        "scale_by_root": lambda x: x / x.shape[-1] ** 0.5 + math.sqrt(x.shape[0]),
        "sizes_returned": lambda x: (x + 1, x.shape[0] * 2, tuple(x.shape), x.numel()),
        "full_of_size": lambda x: torch.full((x.shape[0],), x.shape[1]) + torch.full_like(x, x.shape[0]).sum(1),
        "cat_of_parts": lambda x: torch.cat([x[:3], x[3:], x.new_zeros(x.shape[0], x.shape[1])]),
        "split_by_size": lambda x: [part.sum(1) for part in x.split(x.shape[0] // 2 + 1)],
        "gather_of_range": lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)],
        "product_of_sizes": lambda x: x.reshape(functools.reduce(operator.mul, x.shape)) * 2,
        "max_of_sizes": lambda x: x.new_zeros(max(x.shape), min(x.shape)) + x.shape[0],
        "interpolated": lambda x: F.interpolate(x[None], size=x.shape[1] * 2, mode="linear"),
    },
)


class Blocks(nn.Module):
    """Layers whose parameters, buffers and gradients are compared."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
each("block", one, {
    "norms": Blocks(nn.LayerNorm(16), nn.Linear(16, 8), nn.RMSNorm(8), nn.BatchNorm1d(8)),
    "activations": Blocks(nn.Linear(16, 12), nn.GELU(), nn.Hardswish(), nn.Mish(), nn.Softplus(), nn.PReLU(12)),
    "residual": Blocks(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16, bias=False), nn.Softmax(-1)),
    "softmaxes": Blocks(nn.Linear(16, 10), nn.LogSoftmax(1), nn.Threshold(-2.0, -2.0), nn.Hardtanh(-3.0, 0.0)),
    "flattened": Blocks(nn.Unflatten(1, (4, 4)), nn.Conv1d(4, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.Flatten(), nn.Linear(24, 3)),
})
each("block", image, {
    "convolved": Blocks(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5)),
    "depthwise": Blocks(nn.Conv2d(3, 3, 3, groups=3, padding=1, bias=False), nn.Conv2d(3, 6, 1, bias=False), nn.InstanceNorm2d(6, affine=True), nn.LeakyReLU(0.2)),
    "upsampled": Blocks(nn.ConvTranspose2d(3, 4, 2, stride=2), nn.ELU(), nn.Upsample(scale_factor=0.5), nn.AvgPool2d(3, 1, 1)),
    "shuffled": Blocks(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2), nn.ReflectionPad2d(1), nn.MaxPool2d(3, 2)),
})
