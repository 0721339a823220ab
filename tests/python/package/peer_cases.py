"""Small functions on the subjects that the tests of PyTorch's own compiler have, for every way to compile them.

`PEERS` maps a name to a function and a factory of its arguments. The functions ask for what such a compiler gets wrong first:
order of writes, views of views, sizes that are symbols, dtypes that are promoted, infinities, empty tensors, alignment.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

aten = torch.ops.aten
inf, nan = math.inf, math.nan


@dataclasses.dataclass
class Peer:
    """A function, a factory of its arguments, and what is not asked of it."""

    function: Callable
    arguments: Callable
    gradients: bool = True
    # Where rounding is amplified; by default what the element type asks for.
    rtol: float | None = None
    atol: float | None = None
    # Factories of the arguments of further calls of the same compiled function.
    then: tuple[Callable, ...] = ()


PEERS = {}


def r(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


def ints(*shape, low=0, high=10, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def bools(*shape):
    return torch.rand(shape) > 0.5


def peer(make=None, gradients=True, **settings):
    """Declares a function; its arguments are made anew for each call."""

    def declare(function):
        name = function.__name__.strip("_")
        assert name not in PEERS, name
        PEERS[name] = Peer(function, make or (lambda: [r(8, 16)]), gradients, **settings)
        return function

    return declare


def each(prefix, make, functions, gradients=True, **settings):
    for name, function in functions.items():
        assert f"{prefix}_{name}" not in PEERS, name
        PEERS[f"{prefix}_{name}"] = Peer(function, make, gradients, **settings)


def two():
    return [r(8, 16), r(8, 16)]


def one():
    return [r(8, 16)]


# Reductions.

each(
    "reduce",
    one,
    {
        "bool_any_all": lambda x: (torch.any(x > 0), torch.all(x > 0), torch.any(x > 0, 1), torch.all(x > 0, 0, keepdim=True)),
        "any_of_floats": lambda x: (x.any(-1), x.isinf().any(), x.isinf().all(), torch.any(x, 0)),
        "sum_dtype": lambda x: (x.sum(dtype=torch.float64), x.sum(1, dtype=torch.float64), x.half().sum(dtype=torch.float32)),
        "sum_of_ints": lambda x: (x.to(torch.int32).sum(), x.to(torch.uint8).sum(0), x.bool().sum(1), x.to(torch.int8).sum(dtype=torch.int8)),
        "sum_no_dims": lambda x: (x.sum([]), x.mean([0, 1]), x.sum((-1, -2), keepdim=True)),
        "mean_half": lambda x: (x.half().mean(-1), x.bfloat16().mean(), x.mean(dtype=torch.float16)),
        "min_max": lambda x: (x.max(), x.min(), x.amax((0, 1)), x.amin(0, True), *x.max(1), *x.min(0, True), torch.aminmax(x, dim=0)),
        "prod": lambda x: (x.prod(), x.prod(1), x.prod(0, keepdim=True), x.to(torch.int64).prod(-1)),
        "var": lambda x: (x.var(), x.var(1), x.var(0, correction=0), x.var((0, 1), keepdim=True, correction=3), x.std(-1)),
        "var_mean": lambda x: (*torch.var_mean(x), *torch.var_mean(x, 1, correction=0), *torch.std_mean(x, [0], keepdim=True)),
        "norms": lambda x: (x.norm(), x.norm(1, 1), x.norm(inf, 0), x.norm(-inf, 0), x.norm(0, 1), x.norm(3), x.norm(0.5, -1)),
        "vector_norm": lambda x: (torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 2, -1), torch.linalg.vector_norm(x, 1, (0, 1), dtype=torch.float64)),
        "matrix_norm": lambda x: torch.linalg.matrix_norm(x, "fro"),
        "logsumexp": lambda x: (torch.logsumexp(x, 0), torch.logsumexp(x, (0, 1)), torch.logsumexp(x * inf, 1)),
        "softmaxes": lambda x: (F.softmax(x, 0), F.log_softmax(x, 1), torch.softmax(x, -1, dtype=torch.float64), F.softmin(x, 1)),
        "count_nonzero": lambda x: (torch.count_nonzero(x > 0), torch.count_nonzero(x > 0, dim=0), torch.count_nonzero(x > 0, dim=(0, 1))),
        "nan_reductions": lambda x: (torch.where(x > 1, nan, x).nansum(), torch.where(x > 1, nan, x).nanmean(1)),
        "arg_of_half": lambda x: (x.half().argmax(1), x.bfloat16().argmin(0), x.to(torch.int16).argmax(), x.argmax(), x.argmin(0, keepdim=True)),
        "multilayer": lambda x: (x.sum(1).sum(), (x - x.mean(1, keepdim=True)).pow(2).sum(1).sqrt().max()),
        "fused_sibling": lambda x: (x.sum(0), x.amax(0), (x * 2).sum(0) + x.mean(0)),
        "transposed": lambda x: (x.t().sum(0), x.t().amax(1), x.t().contiguous().sum(-1), x.t()[1:].mean(0)),
        "of_reduction": lambda x: x.sum(0, keepdim=True).expand(8, 16).sum(1),
        "dist": lambda x: (torch.dist(x, x + 1), torch.dist(x, x * 2, 1), torch.cdist(x, x + 1)),
    },
)


@peer(lambda: [torch.tensor([[1.0, nan, 3.0], [nan, nan, 0.0], [2.0, 2.0, 1.0]])], gradients=False)
def max_min_of_nan(x):
    return x.max(), x.min(), x.amax(1), x.amin(0), *x.max(1), *x.min(0), x.argmax(), x.argmin(1), torch.maximum(x, x.t()), torch.fmax(x, x.t())


@peer(lambda: [torch.tensor([[3, 3, 1], [3, 0, 0], [2, 2, 2]])], gradients=False)
def ties_take_the_first(x):
    return x.argmax(0), x.argmin(1), x.max(1).indices, x.min(0).indices, x.float().argmax(), torch.mode(x, 1)


@peer(lambda: [torch.tensor([[True, False, True], [False, False, False]])], gradients=False)
def reductions_of_bools(x):
    return x.sum(), x.sum(1), x.prod(0), x.any(1), x.all(0), x.amax(0), x.amin(1), x.int().argmax(1), x.cumsum(1), x.max(), x.min()


@peer(lambda: [torch.empty(0, 5), torch.empty(3, 0)], gradients=False)
def reductions_of_nothing(x, y):
    return x.sum(0), y.sum(1), y.prod(1), x.mean(0), y.any(1), x.all(0), x.sum(), y.logsumexp(1), x.cumsum(0), y.norm(dim=1), F.softmax(x, 0), y.var(1)


@peer(lambda: [r(3, 7, 1, 129)])
def long_and_short_dims(x):
    return x.sum(-1), x.sum(2), x.mean((1, 3)), x.amax((0, 2)), x.var(-1), F.softmax(x, 2), x.argmax(3)


@peer(lambda: [r(2, 3, 1025)])
def split_reduction(x):
    return x.sum(), x.mean(-1), x.amax(), x.var(), x.argmax(-1), x.logsumexp(-1), torch.cumsum(x, -1)


@peer(lambda: [torch.tensor(3.0), torch.tensor(-2.0)])
def zero_dim(x, y):
    return x.sum(), x.mean(0), x.argmax(), x.amax(0), x.cumsum(0), x.softmax(0), x + y, x.max(0)[0], torch.stack([x, y]), x.sort()[0], x.unsqueeze(0) * y, x.expand(2, 3)


@peer(lambda: [r(6, 5, dtype=torch.float64)])
def doubles(x):
    return x.sin() * x.exp(), x.sum(1), x @ x.t(), F.gelu(x), x.erf(), torch.cumsum(x, 0), F.layer_norm(x, (5,)), torch.erfinv(x.tanh() * 0.9)


# Cumulative and sorting.

each(
    "scan",
    one,
    {
        "cumsum": lambda x: (x.cumsum(0), x.cumsum(1), x.to(torch.int32).cumsum(0), x.half().cumsum(1), x.cumsum(0, dtype=torch.float64)),
        "cumprod": lambda x: (x.cumprod(0), x.cumprod(1), x.to(torch.int32).cumprod(0)),
        "logcumsumexp": lambda x: (x.logcumsumexp(0), x.logcumsumexp(1)),
        "cummax": lambda x: (*x.cummax(0), *x.cummin(1), *torch.cummax(x.to(torch.int64), 1)),
        "zero_dim": lambda x: (x[0, 0].cumsum(0), x[0, 0].cumprod(-1), x[0, 0].logcumsumexp(0), *x[0, 0].cummax(0)),
        "trapezoid": lambda x: (torch.trapezoid(x), torch.cumulative_trapezoid(x), torch.diff(x), torch.diff(x, dim=0, n=2)),
    },
)
each(
    "order",
    one,
    {
        "sort": lambda x: (*x.sort(), *x.sort(0), *x.sort(descending=True), *torch.sort(x, stable=True, dim=1)),
        "sort_flags": lambda x: (*torch.sort((x * 2).round(), stable=True, dim=1, descending=True), torch.sort((x > 0).to(torch.uint8), dim=0, stable=True)[0]),
        "argsort": lambda x: (x.argsort(), x.argsort(0, descending=True), torch.argsort((x * 3).to(torch.int32), stable=True)),
        "topk": lambda x: (*x.topk(3), *x.topk(2, 0, largest=False), x.topk(16)[0]),
        "kthvalue": lambda x: (*x.kthvalue(3), *x.median(1), x.median()),
        "nanmedian": lambda x: (x.nanmedian(), *x.nanmedian(1)),
        "quantile": lambda x: (x.quantile(0.3), x.quantile(0.5, 1), x.nanquantile(0.25)),
        "msort": lambda x: torch.msort(x),
        "unfold_sort": lambda x: x.unfold(1, 4, 2).sort()[0],
        "searchsorted": lambda x: (torch.searchsorted(x.sort(1)[0], x), torch.searchsorted(x[0].sort()[0], x, right=True), torch.searchsorted(x[0].sort()[0], 0.5, out_int32=True)),
        "bucketize": lambda x: (torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])), torch.bucketize(x, torch.tensor([-1.0, 0.0]), right=True, out_int32=True), torch.bucketize(0.3, x[0].sort()[0])),
        "isin": lambda x: (torch.isin(x.round(), torch.tensor([0.0, 1.0])), torch.isin(x.to(torch.int64), 1), torch.isin(x.to(torch.int64), torch.tensor([1, 2]), invert=True)),
        "histc": lambda x: torch.histc(x, 10, -2, 2),
        "bincount": lambda x: torch.bincount((x.reshape(-1) * 2).abs().to(torch.int64), minlength=4),
        "tril_triu": lambda x: (x.tril(), x.triu(1), x.tril(-2), torch.tril_indices(4, 5), torch.triu_indices(3, 3, 1)),
        "tri_of_bools": lambda x: ((x > 0).tril(), (x > 0).triu(2), x.to(torch.int64).tril()),
    },
)

# Indexing.


def indexed():
    return [r(8, 16), ints(5, high=8), ints(5, high=16), bools(8, 16)]


each(
    "index",
    indexed,
    {
        "plain": lambda x, i, j, m: (x[i], x[:, j], x[i, j], x[i[:, None], j[None]], x[i - 8], x[None, i], x[..., j]),
        "with_slices": lambda x, i, j, m: (x[1:, j], x[i, 2:5], x[i][:, 1:], x[i, None], x[i, ..., None]),
        "select": lambda x, i, j, m: (x.index_select(0, i), x.index_select(-1, j), x.take(i), x.take_along_dim(i[None] % 8, 1)),
        "gather": lambda x, i, j, m: (x.gather(0, i[:, None]), x.gather(1, j[None].expand(8, 5)), x.gather(0, i[:0, None])),
        "bool_row": lambda x, i, j, m: x.masked_fill(m, 0)[i],
        "where_masks": lambda x, i, j, m: (torch.where(m, x, 0.0), torch.where(m, 1, x), torch.where(m, x.double(), x), torch.where(m, 1, 2), torch.where(m, 1.5, 2)),
        "fill": lambda x, i, j, m: (x.index_fill(0, i, 3.0), x.index_fill(1, j, 0), x.masked_fill(m, -inf), x.masked_fill(m, torch.tensor(2.0))),
        "add": lambda x, i, j, m: (x.index_add(0, i, x[:5]), x.index_add(1, j, x[:, :5], alpha=2), x.index_copy(0, i.unique()[:1], x[:1])),
        "put_fallback": lambda x, i, j, m: (x.index_put((i,), x[:5]), x.index_put((i, j), x[0, :5], accumulate=True), x.index_put((i[:, None], j), torch.tensor(1.0))),
        "put_mask": lambda x, i, j, m: (torch.index_put(x, (m,), torch.tensor(3.0)), torch.index_put(x, (m[:, 0],), torch.tensor(4.0))),
        "put_none": lambda x, i, j, m: (aten.index_put(x, [None, j], x[:, :5]), aten.index(x, [None, j]), aten.index(x, [i, None])),
        "scatter": lambda x, i, j, m: (x.scatter(0, i[:, None], x[:5, :1]), x.scatter(1, j[None], 1.5), x.scatter_add(0, i[:, None].expand(5, 16), x[:5])),
        "scatter_modes": lambda x, i, j, m: (x.detach().scatter(1, j[None], 1.5, reduce="add"), x.detach().scatter(1, j[None], 1.5, reduce="multiply")),
        "scatter_reduce": lambda x, i, j, m: tuple(x.scatter_reduce(0, i[:, None].expand(5, 16), x[:5], mode, include_self=s) for mode in ("sum", "mean", "amax", "amin") for s in (True, False)),
        "scatter_reduce_prod": lambda x, i, j, m: x.scatter_reduce(0, i[:, None], x[:5, :1], "prod"),
        "index_reduce": lambda x, i, j, m: tuple(torch.index_reduce(x, 0, i, x[:5], mode, include_self=False) for mode in ("mean", "amax", "amin", "prod")),
        "slice_scatter": lambda x, i, j, m: (torch.slice_scatter(x, x[:3], 0, 2, 5), torch.slice_scatter(x, x[:, :4], 1, 1, 9, 2), torch.slice_scatter(x, x[:2], 0, -2, 9223372036854775807)),
        "select_scatter": lambda x, i, j, m: (torch.select_scatter(x, x[0], 0, 1), torch.select_scatter(x, x[:, 0], 1, -1), torch.diagonal_scatter(x, x[0, :8])),
        # Eager's gradient of the argument is that of the part that is overwritten, in place of the rest.
        "as_strided_scatter": lambda x, i, j, m: torch.as_strided_scatter(x.detach(), x[0, :6].reshape(2, 3), (2, 3), (16, 2), 3),
        "masked_scatter": lambda x, i, j, m: x.masked_scatter(m, x.flip(0)),
        "put": lambda x, i, j, m: (x.put(i, x[0, :5]), x.put(i, x[0, :5], accumulate=True)),
        "embedding": lambda x, i, j, m: (F.embedding(i, x), F.embedding(i, x, padding_idx=2), F.embedding(i[None], x, -1), F.embedding(i.int(), x)),
        "one_hot": lambda x, i, j, m: (F.one_hot(i, 8), F.one_hot(j, 16).float() @ x.t()),
        "unravel": lambda x, i, j, m: torch.unravel_index(i * 3 + j, (8, 16)),
        "negative_tensor": lambda x, i, j, m: (x[-i], x[:, -j - 1], x.index_put((-i,), x[:5])),
        "uint8_index": lambda x, i, j, m: (x[i.int()], x[:, j.to(torch.int16).long()]),
        "nested_masks": lambda x, i, j, m: torch.where(m, torch.where(x > 0, x, -x), torch.where(i[0] > 3, 1.0, x * 2)),
        "repeat_interleave": lambda x, i, j, m: (x.repeat_interleave(2, 0), x.repeat_interleave(3), x.repeat_interleave(2, dim=1)),
        "propagation": lambda x, i, j, m: (x[torch.arange(7, -1, -1)], x[:, torch.arange(0, 16, 2)], x[torch.arange(8) // 2, torch.arange(8) * 2]),
        "flip_index": lambda x, i, j, m: x.flip(1)[:, torch.arange(15, 8, -1)],
    },
)


@peer(lambda: [r(8, 16), ints(5, high=8), r(5, 16)])
def index_put_in_place(x, i, v):
    x = x.clone()
    x[i] = v
    x[:, 3:5] = 7
    x[x > 1] = 0
    x[..., -1] += 2
    x[i, 0] = v[:, 0]
    return x


@peer(lambda: [r(4, 4), ints(4, high=4), bools(4, 4)], gradients=False)
def masked_writes_to_inputs(x, i, m):
    x.masked_fill_(m, 2.0)
    x[i] = 1.0
    x.index_add_(0, i, torch.ones(4, 4))
    x.scatter_(1, i[:, None], 5.0)
    return x + 1


@peer(lambda: [torch.zeros(4, 4, dtype=torch.bool), ints(4, high=4)], gradients=False)
def writes_to_bools(x, i):
    y = x.clone()
    y[i] = True
    y |= x
    y[:, 0] = ~y[:, 0]
    z = y.logical_not()
    z.logical_or_(y)
    return y, z, y.index_put((i,), torch.tensor(False)), x.scatter(0, i[None], True), torch.where(y, y, x)


@peer(lambda: [ints(3, 5, high=100, dtype=torch.int32), ints(4, high=3)], gradients=False)
def index_of_ints(x, i):
    return x[i], x.index_put((i,), torch.tensor(3, dtype=torch.int32)), x.scatter_add(0, i[:, None], x[:1, :1].expand(4, 1)), x.gather(0, i[:, None]), x.index_add(0, i, x[:1].expand(4, 5))


@peer(lambda: [r(2, 3, 4, 5), ints(2, 1, high=3), ints(4, high=4)])
def index_of_several_dims(x, i, j):
    return x[:, i], x[..., j], x[:, :, 1, j], x[1, :, :, j], x[:, i, :, j[:2, None] % 5], x[i.squeeze(1) % 2, 1:], x[:, :, None, j.view(2, 2)]


@peer(lambda: [r(5, 4), torch.tensor([], dtype=torch.int64)])
def empty_index(x, i):
    return x[i], x.index_select(1, i), x.index_put((i,), x[i]), x.gather(0, i.reshape(0, 4)), x.scatter_add(0, i.reshape(0, 4), x[:0]), F.embedding(i, x), torch.cat([x, x[i]])


# Views, strides and aliases.

each(
    "view",
    lambda: [r(4, 6, 8)],
    {
        "chains": lambda x: (x.view(24, 8).t().reshape(8, 4, 6), x.permute(2, 0, 1).reshape(-1), x.transpose(0, 2).contiguous().view(-1, 4)),
        "returned": lambda x: (x.view(-1), x[1], x.t() if x.dim() == 2 else x.mT, x.permute(1, 0, 2), x.unsqueeze(1), x[:, ::2], x.expand(2, 4, 6, 8), x.diagonal(0, 1, 2)),
        "of_computed": lambda x: ((x + 1).view(24, 8), (x + 1).permute(2, 1, 0), (x * 2)[1:], (x * 2).unsqueeze(-1).expand(4, 6, 8, 2)),
        "as_strided": lambda x: (x.as_strided((4, 6), (48, 8)), x.as_strided((3,), (7,), 5), (x + 1).as_strided((2, 2), (1, 2), 1), x.as_strided((8,), (0,))),
        "split": lambda x: (*x.split(2), *x.split([1, 5], 1), *x.chunk(3, -1), *x.tensor_split(3, 1), *x.unbind(0)),
        "split_uneven": lambda x: (*x.split(3, 2), *torch.chunk(x, 5, 1), *x.split([0, 8, 0], 2), *torch.hsplit(x, 2), *torch.vsplit(x, 2)),
        "split_then_cat": lambda x: (torch.cat(x.split([2, 4, 2], 2)[::-1], 2), torch.stack(x.unbind(1), 2), torch.cat([a + 1 for a in x.chunk(4)], 1)),
        "squeeze": lambda x: (x[:, :1].squeeze(), x[:, :1].squeeze(1), x.squeeze(0), x[:1, :, :1].squeeze((0, 2)), x.unsqueeze(0).squeeze(0).unsqueeze(-1)),
        "flatten": lambda x: (x.flatten(), x.flatten(1), x.transpose(1, 2).flatten(0, 1), x.unflatten(1, (2, 3)), x.unflatten(-1, (-1, 2))),
        "movedim": lambda x: (x.movedim(0, -1), x.swapaxes(0, 1), x.moveaxis((0, 1), (2, 0)), x.mT, torch.rot90(x, 1, (0, 2)), x.adjoint()),
        "roll": lambda x: (x.roll(1), x.roll((1, -2), (0, 2)), x.roll(3, 1), x.flip(0), x.flip((1, 2)), torch.fliplr(x), torch.flipud(x)),
        "repeat": lambda x: (x.repeat(2, 1, 1), x.repeat(1, 2, 3, 1), x.tile((2,)), x.repeat(0, 1, 1), x[0].expand(3, 6, 8), x[:, :1].expand(-1, 6, -1), x.expand_as(x)),
        "unfold": lambda x: (x.unfold(1, 3, 2), x.unfold(2, 2, 1).sum(-1), x.unfold(0, 4, 1)),
        "diagonal": lambda x: (x.diagonal(1, 0, 2), torch.diag_embed(x[0]), torch.diagonal(x[0], -1), x[0, :, :6].diag(), x[0, 0].diag(1), torch.diag_embed(x[0], 1, 0, 2)),
        "narrow": lambda x: (x.narrow(1, 2, 3), x.select(2, -1), x.narrow_copy(0, 1, 2), x[..., None, 1:3], x[-1], x[:, -3:-1], x[5:], x[::3, ::2, ::5]),
        "dtype_views": lambda x: (x.view(torch.int32), x.view(torch.int16), x.half().view(torch.int16), x[..., :2].contiguous().view(torch.float64), x.view(torch.uint8)),
        "complex_views": lambda x: (torch.view_as_complex(x.view(4, 6, 4, 2)).real, torch.view_as_complex(x.view(4, 6, 4, 2)).abs(), torch.view_as_real(torch.complex(x, x * 2))),
        "expand_then_reduce": lambda x: (x[:1].expand(4, 6, 8).sum(0), x[:, :1].expand(4, 6, 8).mean(1) * x[0, 0, 0]),
        "cat": lambda x: (torch.cat([x, x * 2], 0), torch.cat([x, x[:, :2]], 1), torch.cat([x, x.flip(2)], -1), torch.cat([x[:0], x]), torch.cat([torch.empty(0), x]), torch.cat([x])),
        "cat_promotes": lambda x: (torch.cat([x, x.double()]), torch.cat([x.half(), x]), torch.cat([x.to(torch.int32), x > 0]), torch.stack([x.half(), x.float()])),
        "cat_of_views": lambda x: (torch.cat([x.transpose(0, 1), x.transpose(0, 1) + 1]), torch.hstack([x, x]), torch.vstack([x, x]), torch.dstack([x, x]), torch.column_stack([x[0], x[1]])),
        "cat_uint8": lambda x: torch.cat([x.to(torch.uint8), (x + 1).to(torch.uint8)], 1),
        "block_diag": lambda x: (torch.block_diag(x[0], x[1, :2]), torch.kron(x[0, :2, :2], x[1, :3, :3]), torch.cartesian_prod(x[0, 0], x[0, 1])),
        "meshgrid": lambda x: (*torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"), *torch.meshgrid(x[0, 0], x[0, :, 0], indexing="xy")),
        "broadcast": lambda x: (*torch.broadcast_tensors(x[:, :1], x[:1]), torch.broadcast_to(x[0], (2, 6, 8)), x + x[0, 0], x[:, :1] * x[:1]),
        "memory_format": lambda x: (x[None].contiguous(memory_format=torch.channels_last), x[None].to(memory_format=torch.channels_last) + 1, torch.empty_like(x[None], memory_format=torch.channels_last).stride()),
        "preserved": lambda x: (x.permute(2, 0, 1) + 1, torch.relu(x.transpose(0, 1)), x.transpose(1, 2) * x.transpose(1, 2), torch.clone(x.mT), x.mT.to(torch.float64), torch.zeros_like(x.mT), x.permute(1, 2, 0).exp().permute(2, 0, 1)),
        "alias": lambda x: (aten.alias(x), x.detach(), x.view_as(x), x[:], x.reshape(x.shape)),
        "empty": lambda x: (x[:0].view(0, 48), x[:, :0].reshape(-1), x[:0] + 1, x[:0].sum(), x[:, 6:], x[:0].expand(0, 6, 8), x[4:].transpose(0, 2)),
        "pixel_shuffle": lambda x: (F.pixel_shuffle(x[None], 1), F.pixel_shuffle(x.view(1, 4, 6, 8), 2), F.pixel_unshuffle(x.view(1, 4, 6, 8), 2), F.channel_shuffle(x.view(1, 4, 6, 8), 2)),
        "col2im": lambda x: F.fold(F.unfold(x.view(1, 4, 6, 8), (3, 2), padding=1, stride=2), (6, 8), (3, 2), padding=1, stride=2),
        "glu": lambda x: (F.glu(x), F.glu(x, 0), F.glu(x.mT, 2)),
        "einsum": lambda x: (torch.einsum("ijk,ljk->il", x, x), torch.einsum("ijk->kji", x), torch.einsum("ijk,k->ij", x, x[0, 0]), torch.einsum("iij->j", x[:, :4])),
        "tensordot": lambda x: (torch.tensordot(x, x, dims=([1, 2], [1, 2])), torch.inner(x[0], x[1]), torch.outer(x[0, 0], x[0, 1]), torch.cross(x[..., :3], x[..., 3:6], -1)),
        "constant_pad": lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 3), value=3.0), F.pad(x, (-1, 1, 0, -2)), F.pad(x > 0, (1, 1), value=True), F.pad(x.to(torch.int64), (0, 1), value=2)),
        "mode_pad": lambda x: (F.pad(x, (2, 1), "reflect"), F.pad(x, (1, 2, 2, 1), "replicate"), F.pad(x, (3, 3), "circular"), F.pad(x[None], (1, 1, 1, 1), "reflect"), F.pad(x[None], (0, 1, 1, 0, 1, 1), "replicate")),
    },
)


@peer(lambda: [r(4, 4).t(), r(4, 4), r(2, 8)[:, ::2]])
def strides_are_kept(x, y, z):
    return x + 1, x + y, torch.relu(x), x * 2.0, z + 1, torch.where(x > 0, x, y), x.clone(), x.double(), x @ y, torch.cat([x, y]), torch.empty_like(x).stride(), x.contiguous(), x.neg().t()


@peer(lambda: [r(2, 3, 8, 8).to(memory_format=torch.channels_last), r(4, 3, 3, 3)])
def channels_last_is_kept(x, w):
    y = F.conv2d(x, w, padding=1)
    return y, y.relu(), F.max_pool2d(y, 2), x + 1, F.interpolate(x, scale_factor=2.0), F.avg_pool2d(x, 2), F.batch_norm(x, torch.zeros(3), torch.ones(3)), x.mean((2, 3))


@peer(lambda: [r(64)])
def unaligned(x):
    return x[1:] + x[:-1], x[3:35].view(4, 8) * 2, x[1:17].sum(), x[5:].exp()[2:], x[1::2].contiguous()


@peer(lambda: [r(65)[1:], r(64)])
def unaligned_input(x, y):
    return x + y, x.sum(), (x * y).view(8, 8) @ y.view(8, 8)


# Writes.


@peer(lambda: [r(4, 4)], gradients=False)
def write_through_two_views(x):
    y = x.view(-1)
    y[::2].mul_(2)
    x[1].add_(y[:4])
    x.t()[2].zero_()
    return y, x.sum()


@peer(lambda: [r(4, 4), r(4, 4)], gradients=False)
def write_input_and_return_it(x, y):
    x.add_(y)
    y.mul_(x)
    return x, y.view(-1), x[0]


@peer(lambda: [r(4, 4)], gradients=False)
def write_view_of_input_after_read(x):
    a = x + 1
    x[0] = a[1]
    b = x + 1
    x.copy_(b.t())
    return a, b


@peer(lambda: [r(6)], gradients=False)
def overlapping_copy(x):
    x[:-1] = x[1:].clone()
    x[1:].copy_(x[:-1].clone())
    return x * 1


@peer(lambda: [r(4, 4)])
def write_to_clone_through_views(x):
    y = x.clone()
    y.view(2, 8)[:, ::2] += x[:2]
    y.diagonal().fill_(1.0)
    y.t()[1:3].mul_(3)
    y.narrow(0, 1, 2).clamp_(min=0)
    return y, y.sum(1)


@peer(lambda: [r(3, 5)])
def write_to_expanded_clone(x):
    y = x[:1].expand(3, 5).clone()
    y[1] = x[0] * 2
    y.unsqueeze(0).squeeze(0).add_(x)
    return y


@peer(lambda: [r(4, 4), r(4)], gradients=False)
def out_arguments(x, y):
    a = torch.empty(4, 4)
    torch.add(x, y, out=a)
    b = torch.empty(4)
    torch.sum(x, 0, out=b)
    c = torch.empty(4, 4)
    torch.mm(x, x, out=c)  # into an operand, what BLAS leaves is nobody's promise
    torch.mul(x, y, out=x)
    return a, b, c


@peer(lambda: [r(4, 4)], gradients=False)
def detach_then_write(x):
    y = x.detach()
    y.mul_(2)
    z = x.clone().detach_()
    z.add_(1)
    return x + y, z


@peer(lambda: [r(5), torch.tensor(2.0)], gradients=False)
def scalars_are_written(x, s):
    s.add_(1)
    x.mul_(s)
    s.copy_(x.sum())
    return s * 2


@peer(lambda: [ints(4, 4), r(4, 4)], gradients=False)
def write_with_another_dtype(x, y):
    x.copy_(y * 10)
    y.copy_(x > 3)
    z = torch.zeros(4, 4, dtype=torch.float16)
    z.add_(y)
    z[0] = 7
    return x + 1, z


@peer(lambda: [r(4, 3), r(4, 3)], gradients=False)
def foreach_writes(x, y):
    torch._foreach_add_([x, y], 1.0)
    torch._foreach_mul_([x, y], [y.clone(), x.clone()])
    return torch._foreach_add([x, y], [y, x], alpha=2), torch._foreach_norm([x, y]), torch._foreach_addcdiv([x], [y], [y + 9])


@peer(lambda: [r(4, 4)], gradients=False)
def write_then_return_views_of_input(x):
    y = x[1:]
    x.fill_(3.0)
    z = x.t()
    x[0, 0] = 1.0
    return y, z, x.view(-1)


@peer(lambda: [r(3, 4), r(3, 4)])
def inplace_chain(x, y):
    z = x * 1
    z.sub_(y).div_(2).neg_().clamp_(-1, 1).tanh_()
    return z


@peer(lambda: [r(3, 4)])
def inplace_activations(x):
    return F.relu(x + 1, inplace=True), F.elu(x * 2, inplace=True), F.hardtanh(x * 3, inplace=True), F.leaky_relu(x - 1, 0.2, inplace=True), F.silu(x + 2, inplace=True), F.threshold(x * 2, 0.1, 5.0, inplace=True)


@peer(lambda: [r(3, 4), r(3, 4)], gradients=False)
def swapped_data(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x - y


@peer(lambda: [r(4, 6)], gradients=False)
def copy_between_slices(x):
    x[:, :3].copy_(x[:, 3:])
    x[0].copy_(x[1])
    x[2:].copy_(x[:2].flip(1))
    return x


@peer(lambda: [r(4, 3, 6), torch.zeros(3), torch.ones(3)], gradients=False)
def instance_norm_with_statistics(x, m, v):
    y = F.instance_norm(x, m, v)
    return y + 1, m * 2


@peer(lambda: [r(4, 6)], gradients=False)
def mutation_then_reshape(x):
    y = x.reshape(2, 12)
    y.add_(1)
    z = x.t().reshape(4, 6)
    z.add_(1)
    return x, y, z


@peer(lambda: [r(10)], gradients=False)
def fill_variants(x):
    x.fill_(2)
    x[2:4].fill_(torch.tensor(5.0))
    x[5:].zero_()
    y = torch.full((3,), 2).fill_(7)
    return x, y, torch.full_like(x, 3, dtype=torch.int32), x.new_full((2,), True), x.new_zeros(3), x.new_ones(2, dtype=torch.int8), x.new_empty(2).fill_(1), x.new_tensor([1, 2])


# Dtypes.

each(
    "dtype",
    lambda: [ints(4, 5, low=-4), ints(5, low=1, dtype=torch.int32), ints(4, 1, high=200, dtype=torch.uint8), r(5, dtype=torch.float16), bools(4, 5)],
    {
        "promotion": lambda a, b, c, d, e: (a + b, b + c, c + d, d + e, a * d, e + e, e * 2, c - 1, b / 2, a / b, c / 2, d + 1.5, b + 1.5, e + 1.5, c + True),
        "comparison": lambda a, b, c, d, e: (a > b, c >= 3, d < a, e == 1, a != 2.5, c < -1, e > False, b <= d),
        "division": lambda a, b, c, d, e: (a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a / b, c // 3, d // 2, torch.floor_divide(a, 3), torch.remainder(-a, 3), torch.true_divide(a, b), 5 // b, 7 % b),
        "shifts": lambda a, b, c, d, e: (a << b, a >> 1, b >> b, c << 3, c >> 2, torch.bitwise_left_shift(b, 2), torch.bitwise_right_shift(-b, 1), (a - 100) >> 2, a << 65, b >> 40),
        "bitwise": lambda a, b, c, d, e: (a & b, a | 7, a ^ b, ~c, ~e, e & e, e ^ True, c & 15, torch.bitwise_not(a), b | e),
        "power": lambda a, b, c, d, e: (b**2, a**2, c**3, b**0, d**2, d**0.5, 2**b, a.abs() ** b, torch.pow(2.5, a), torch.float_power(b, 2)),
        "unary": lambda a, b, c, d, e: (a.abs(), b.neg(), c.sqrt(), e.float().exp(), b.sin(), a.sign(), c.sign(), e.sin(), a.sigmoid(), b.rsqrt(), c.log(), a.floor(), b.round(), c.trunc(), a.square(), b.reciprocal()),
        "casts": lambda a, b, c, d, e: (a.to(torch.uint8), a.to(torch.int8), d.to(torch.int32), c.to(torch.bool), e.to(torch.int64), a.to(torch.float16), a.bool(), b.char(), c.short(), a.type(torch.int16), a.double().to(torch.float32)),
        "clamp": lambda a, b, c, d, e: (a.clamp(0, 3), a.clamp(0.5), c.clamp(max=100), b.clamp(b - 1, b + 2), torch.minimum(a, b), torch.maximum(c, b), d.clamp(0), a.clamp(min=a)),
        "logical": lambda a, b, c, d, e: (torch.logical_and(a, b), torch.logical_xor(d, e), torch.logical_not(c), torch.logical_or(a, 0 * a), e.logical_and(d)),
        "where": lambda a, b, c, d, e: (torch.where(e, a, b), torch.where(e, d, b), torch.where(e, a, 1.5), torch.where(e, c, 3), torch.where(a > 0, e, a), torch.where(c > 100, c, d)),
        "result": lambda a, b, c, d, e: (torch.add(a, d, alpha=2), torch.sub(b, 2, alpha=3), torch.rsub(c, 5), torch.mul(e, 0.5), torch.addcmul(d, d, d), torch.lerp(d, d * 2, 0.5), torch.hypot(d, d), torch.copysign(a, d), torch.heaviside(d, d)),
    },
    gradients=False,
)
each(
    "half",
    lambda: [r(8, 16, dtype=torch.float16), r(8, 16, dtype=torch.bfloat16)],
    {
        "pointwise": lambda x, y: (x + 1, y * 2.5, x.exp(), y.sigmoid(), x.float() + y.float(), F.gelu(x), F.silu(y), x.tanh(), y.log1p().nan_to_num(), x.abs().sqrt(), y.abs().rsqrt(), x / 3),
        "reduce": lambda x, y: (x.sum(1), y.mean(0), F.softmax(x, 1), F.log_softmax(y, 0), x.amax(0), y.var(1), x.norm(dim=1)),
        "normalise": lambda x, y: (F.layer_norm(x, (16,)), F.layer_norm(y, (16,)), F.group_norm(x[None].transpose(0, 1), 1), F.rms_norm(y, (16,))),
        "chain": lambda x, y: (((x * 1.1 + 0.3) * 0.7 - 0.2) / 1.7).relu() + (y * 1.3).to(torch.float16),
        "matmul": lambda x, y: (x @ x.t(), y @ y.t(), F.linear(y, y, y[:, 0])),
        "to_float": lambda x, y: (x.to(torch.float32).sum(), y.float().exp().to(torch.bfloat16), x.to(torch.bfloat16), y.to(torch.float16), x.double()),
    },
)
_FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


@peer(one, gradients=False)
def float8_casts(x):
    return tuple((x.to(t).to(torch.float32), (x * 2).to(t).view(torch.uint8), x.half().to(t).to(torch.bfloat16)) for t in _FLOAT8)


@peer(lambda: [r(4, 5).to(torch.float8_e4m3fn), ints(4, 5).to(torch.uint16), ints(4, 5).to(torch.uint32), ints(4, 5).to(torch.uint64)], gradients=False)
def small_and_unsigned_inputs(x, a, b, c):
    return x.to(torch.float32) + 1, a.to(torch.int32) + 1, b.to(torch.int64) * 2, c.to(torch.float32), a == a, b.to(torch.uint8), x.view(torch.uint8), a.clone()


@peer(lambda: [torch.complex(r(4, 5), r(4, 5)), torch.complex(r(4, 5), r(4, 5))])
def complexes(x, y):
    return x + y, x * y, x.real, y.imag, x.conj() * 2, x.abs(), x / y, x.exp(), x.sum(), torch.view_as_real(x), x @ y.t(), x.angle(), x.t(), x.conj().resolve_conj(), x - 1j, x * 2.5


@peer(lambda: [torch.complex(r(4, 5), r(4, 5))], gradients=False)
def complex_forms(x):
    return x == x, x.clone(), x.to(torch.complex128), torch.zeros_like(x), x.real.sum(), x.imag.contiguous(), torch.where(x.real > 0, x, 0), x.mean(), x.flip(0), torch.cat([x, x]), x.roll(1), x[1:], x.sin(), x.sqrt(), x.log(), x.pow(2), x.sgn(), x.reciprocal(), x.is_complex()


@peer(lambda: [r(16)])
def fourier(x):
    return torch.fft.rfft(x).abs(), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fft(x).real, torch.fft.fftshift(x), torch.fft.rfftfreq(8), torch.stft(x, 4, return_complex=True, window=torch.ones(4)).abs()


# Infinities.


@peer(lambda: [torch.tensor([inf, -inf, nan, 0.0, -0.0, 1e-40, 3e38, -3e38, 0.5, -1.0])], gradients=False)
def infinities(x):
    return (
        x.exp(), x.log(), x.sqrt(), x.tanh(), x.sigmoid(), x / x, x * 0, x.relu(), x.clamp(-1, 1), x.sign(), x.sgn(), x.isfinite(), x.erf(), x.floor(), x.round(), x.trunc(), x.sin(),
        x.max(), x.sum(), F.softmax(x[:1], 0), x.nan_to_num(), x.nan_to_num(1, 2, 3), x.reciprocal(), x.rsqrt(), x.pow(2), x.pow(0.5), x.pow(-1), 0.0**x, x**0, torch.atan2(x, -x), x.log1p(), x.expm1(),
        x.frac(), x.fmod(2), x.remainder(2), x.half(), x.bfloat16(), x == x, x.minimum(x * 0), x.fmin(x * 0), torch.hypot(x, x), x.square(), x.abs(), x.neg(), x.logit(), F.silu(x), F.softplus(x),
        F.hardswish(x), F.elu(x), F.mish(x), F.logsigmoid(x), x.signbit(), torch.copysign(x * 0 + 1, x), torch.logaddexp(x, x), torch.xlogy(x, x.abs()), x.exp2(), x.log2(), x.cosh(), x.asinh(), x.lgamma(), x.digamma(),
    )  # fmt: skip


@peer(lambda: [torch.tensor([2.5, -2.5, 0.5, 1.5, -0.5, 1e10, 123456.789, -7.0]), torch.tensor([2.0, 2.0, -0.5, 0.3, 0.25, 3.0, -0.1, 2.0])], gradients=False)
def rounding(x, y):
    return x.round(), x.round(decimals=1), x.round(decimals=-2), x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x.trunc(), x.frac(), x.ceil(), x.to(torch.int64), x.half().round(), torch.floor_divide(x, y), x.fix()


@peer(lambda: [ints(4, 5, low=-9), torch.tensor([-3, -2, 2, 3, 4])], gradients=False)
def signed_division(x, y):
    return x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), torch.remainder(x, y), x // -2, -x % 3, torch.gcd(x, y), torch.lcm(x, y)


# Networks.

each(
    "pool",
    lambda: [r(2, 3, 9, 11)],
    {
        "max": lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, (3, 2), (1, 2)), F.max_pool2d(x, 3, 1, 1, 2), F.max_pool2d(x, 2, ceil_mode=True)),
        "max_indices": lambda x: (*F.max_pool2d(x, 2, return_indices=True), *F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)),
        "max_1d_3d": lambda x: (F.max_pool1d(x[0], 3), F.max_pool1d(x[0], 2, return_indices=True)[1], F.max_pool3d(x, 2), F.max_pool3d(x[None], (1, 2, 3), 2)),
        "max_unpool": lambda x: F.max_unpool2d(*F.max_pool2d(x[..., :8, :8], 2, return_indices=True), 2),
        "avg": lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 2, divisor_override=3), F.avg_pool2d(x, 9)),
        "avg_1d_3d": lambda x: (F.avg_pool1d(x[0], 3), F.avg_pool3d(x, 2), F.avg_pool3d(x[None], (1, 3, 2), 2, (0, 1, 1))),
        "adaptive": lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 5)), F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_max_pool2d(x, 3), F.adaptive_avg_pool1d(x[0], 4), F.adaptive_avg_pool3d(x, 2), F.adaptive_max_pool1d(x[0], 2)),
        "adaptive_indices": lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        "fractional": lambda x: F.fractional_max_pool2d(x, 3, output_size=(2, 2), _random_samples=torch.full((2, 3, 2), 0.3)),
        "lp": lambda x: (F.lp_pool2d(x.abs() + 0.1, 2, 2), F.lp_pool1d(x[0].abs() + 0.1, 3, 2)),
        "global": lambda x: (x.mean((2, 3)), x.amax((2, 3), keepdim=True), F.adaptive_avg_pool2d(x, 1).flatten(1)),
        "low_memory": lambda x: aten._low_memory_max_pool_with_offsets(x, [2, 2], [2, 2], [0, 0], [1, 1], False) if hasattr(aten, "_low_memory_max_pool_with_offsets") else F.max_pool2d(x, 2),
    },
)


@peer(lambda: [r(2, 3, 4, 5), r(2, 3, 9, 11)], gradients=False)
def pool_backward(g, x):
    y, i = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    return (
        aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, i),
        aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        aten._adaptive_avg_pool2d_backward(g, x),
    )


@peer(lambda: [r(2, 4, 14, 14), r(2, 4, 15, 15)], gradients=False)
def pool_backward_of_overlaps(g, x):
    y, i = aten.max_pool2d_with_indices(x, [4, 4], [1, 1], [1, 1])
    return aten.max_pool2d_with_indices_backward(g, x, [4, 4], [1, 1], [1, 1], [1, 1], False, i), aten.avg_pool2d_backward(g, x, [4, 4], [1, 1], [1, 1], False, False, 7)


each(
    "upsample",
    lambda: [r(2, 3, 5, 6)],
    {
        "nearest": lambda x: (F.interpolate(x, size=(7, 9)), F.interpolate(x, scale_factor=2.5), F.interpolate(x, scale_factor=(0.5, 2.0)), F.interpolate(x[0], size=4), F.interpolate(x[:, :, None], size=(2, 3, 4))),
        "nearest_exact": lambda x: (F.interpolate(x, size=(7, 9), mode="nearest-exact"), F.interpolate(x[0], scale_factor=1.7, mode="nearest-exact")),
        "bilinear": lambda x: (F.interpolate(x, size=(7, 9), mode="bilinear"), F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True), F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)),
        "bicubic": lambda x: (F.interpolate(x, size=(7, 9), mode="bicubic"), F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=True)),
        "linear_trilinear": lambda x: (F.interpolate(x[0], size=9, mode="linear"), F.interpolate(x[:, :, None], size=(2, 7, 8), mode="trilinear", align_corners=True)),
        "antialias": lambda x: (F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), F.interpolate(x, size=(3, 4), mode="bicubic", antialias=True)),
        "area": lambda x: F.interpolate(x, size=(3, 2), mode="area"),
        "grid_sample": lambda x: tuple(F.grid_sample(x, x.new_ones(2, 4, 4, 2).cumsum(1) * 0.3 - 1, mode=m, padding_mode=p, align_corners=False) for m in ("bilinear", "nearest") for p in ("zeros", "border", "reflection")),
        "affine_grid": lambda x: F.affine_grid(x[:, 0, :2, :3], (2, 3, 4, 5), align_corners=False),
        "grid_sample_3d": lambda x: F.grid_sample(x[:, :, None], x.new_ones(2, 2, 3, 4, 3).cumsum(3) * 0.4 - 1, align_corners=True),
    },
)


@peer(lambda: [r(2, 3, 8, 8), r(6, 3, 3, 3), r(6), r(3, 4, 2, 2)])
def convolutions(x, w, b, t):
    return F.conv2d(x, w, b), F.conv2d(x, w, stride=2, padding=1), F.conv2d(x, w, dilation=2, padding="same"), F.conv2d(x, w[:, :1], groups=3), F.conv_transpose2d(x, t, stride=2, output_padding=1), F.conv1d(x[:, :, 0], w[:, :, 0]), F.conv3d(x[:, None], w[:, :1, None]), F.conv2d(x[0], w, b)


@peer(lambda: [r(2, 3, 8, 8)])
def conv_bn_relu(x):
    torch.manual_seed(3)
    net = _CONV
    return net(x), F.relu6(net[0](x)), net[0](x).sigmoid() * 2


_CONV = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU()).eval()


@peer(lambda: [r(4, 3, 6), torch.zeros(3), torch.ones(3), r(3), r(3)], gradients=False)
def batch_norms(x, m, v, w, b):
    y = F.batch_norm(x, m, v, w, b, training=True, momentum=0.2)
    return y, F.batch_norm(x, m, v, w, b), F.batch_norm(x, None, None, training=True), F.instance_norm(x, m, v, w, b), F.group_norm(x, 3, w, b), aten.native_batch_norm(x, w, b, m, v, True, 0.1, 1e-5)


@peer(lambda: [r(4, 6, 5), r(6), r(6), r(5), r(5)])
def normalisations(x, w, b, v, c):
    return F.group_norm(x, 2, w, b), F.group_norm(x, 3), F.layer_norm(x, (5,), v, c), F.layer_norm(x, (6, 5)), F.instance_norm(x), F.rms_norm(x, (5,), v), F.normalize(x, dim=1), F.local_response_norm(x, 3), F.batch_norm(x, None, None, w, b, True), aten.native_layer_norm(x, [5], v, c, 1e-5)[0], aten.native_group_norm(x, w, b, 4, 6, 5, 2, 1e-5)[0]


@peer(lambda: [r(4, 8), r(6, 8), r(6), r(2, 4, 8), r(2, 8, 3)])
def products(x, w, b, p, q):
    return F.linear(x, w, b), F.linear(x[None, None], w), torch.addmm(b, x, w.t()), torch.addmm(b, x, w.t(), beta=0.5, alpha=2), p @ q, torch.bmm(p, q), torch.baddbmm(q[:, :4], p, q), torch.matmul(x, q), x[0] @ x[1], torch.mv(x, x[0]), torch.addmv(b[:4], x, x[0]), torch.dot(x[0], x[1]), torch.einsum("bij,bjk->bik", p, q), torch.chain_matmul(x, w.t()), torch.linalg.multi_dot([x, w.t(), w]), torch.addbmm(r(4, 3) * 0, p, q), x[:0] @ w.t(), x @ w.t()[:, :0], torch.vdot(x[0], x[1]), torch.ger(b, b), torch.addr(x[:, :6] * 0, b[:4], b)


@peer(lambda: [ints(4, 8, low=-5, dtype=torch.int8), ints(8, 3, low=-5, dtype=torch.int8), ints(4, 8), ints(8, 4)], gradients=False)
def products_of_ints(x, y, a, b):
    return torch._int_mm(x.repeat(8, 1), y.repeat(1, 8)), a @ b, a.to(torch.int32) @ b.to(torch.int32), torch.bmm(a[None], b[None]), a[0] @ b


@peer(lambda: [r(2, 4, 6, 8), r(2, 4, 6, 8), r(2, 4, 6, 8), bools(6, 6)])
def attention(q, k, v, m):
    m = m | torch.eye(6, dtype=torch.bool)
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, m.float(), scale=0.3), F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True), F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


each(
    "sdpa",
    lambda: [r(2, 4, 6, 8), r(2, 4, 6, 8), r(2, 4, 6, 8)],
    {
        "plain": lambda q, k, v: torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), -1) @ v,
        "mul": lambda q, k, v: (q @ k.mT).mul(0.35).softmax(-1).matmul(v),
        "permuted": lambda q, k, v: torch.matmul(torch.softmax(torch.matmul(q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1)) * 0.3, -1), v.permute(0, 2, 1, 3)).permute(0, 2, 1, 3),
        "masked": lambda q, k, v: torch.softmax((q @ k.mT / 2.8).masked_fill(torch.ones(6, 6).triu(1).bool(), -inf), -1) @ v,
        "added": lambda q, k, v: torch.softmax(q @ k.mT / 2.8 + torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(1) > 0, -1e4), -1, dtype=torch.float32).to(q.dtype) @ v,
        "where": lambda q, k, v: torch.where(torch.ones(6, 6).tril().bool(), q @ k.mT, torch.tensor(-3e38)).softmax(-1) @ v,
        "bmm": lambda q, k, v: torch.bmm(torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT).softmax(-1), v.flatten(0, 1)).view(2, 4, 6, 8),
        "dropout": lambda q, k, v: F.dropout((q @ k.mT * 0.3).softmax(-1), 0.0) @ v,
        "flash": lambda q, k, v: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0],
        "flash_permuted": lambda q, k, v: F.scaled_dot_product_attention(q.permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3), k, v),
    },
)


@peer(lambda: [r(5, 7), ints(5, high=7), r(5, 7), torch.rand(5, 7)])
def losses(x, t, y, p):
    return (
        F.cross_entropy(x, t), F.cross_entropy(x, t, label_smoothing=0.1, reduction="none"), F.cross_entropy(x, p), F.nll_loss(x, t, ignore_index=2), F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y),
        F.huber_loss(x, y, delta=0.5), F.binary_cross_entropy_with_logits(x, p, pos_weight=torch.ones(7) * 2), F.binary_cross_entropy(p * 0.9 + 0.05, p), F.kl_div(x, p), F.kl_div(x, p, log_target=True, reduction="batchmean"), F.cosine_similarity(x, y), F.hinge_embedding_loss(x, y.sign()),
        F.margin_ranking_loss(x, y, p.sign()), F.soft_margin_loss(x, y.detach().sign()), F.multi_margin_loss(x, t), F.multilabel_soft_margin_loss(x, p.round()), F.triplet_margin_loss(x, y, p), F.poisson_nll_loss(x, p), F.gaussian_nll_loss(x, y, p + 0.1), F.pairwise_distance(x, y), F.cosine_embedding_loss(x, y, t.sign() * 2 - 1), F.cross_entropy(x, t, weight=p[0]),
    )  # fmt: skip


@peer(lambda: [r(10, 4), ints(6, high=10), torch.tensor([0, 2, 2])])
def embedding_bags(w, i, o):
    return F.embedding_bag(i, w, o), F.embedding_bag(i, w, o, mode="sum"), F.embedding_bag(i.view(2, 3), w, mode="mean"), F.embedding_bag(i, w, o, mode="sum", per_sample_weights=w[0].repeat(2)[:6])


@peer(lambda: [r(10, 4), ints(6, high=10), torch.tensor([0, 2, 2])], gradients=False)
def embedding_bags_max(w, i, o):
    return F.embedding_bag(i, w, o, mode="max"), aten._embedding_bag(w, i, o, False, 0), aten.embedding_dense_backward(w[:6], i, 10, -1, False), aten.embedding_dense_backward(w[:6], i, 10, 3, True)


# Making tensors and random numbers.


@peer(lambda: [r(3, 4)], gradients=False)
def factories(x):
    n = x.shape[0]
    return (
        torch.arange(5), torch.arange(1, 9, 2, dtype=torch.float32), torch.arange(0, 1, 0.3), torch.arange(n * 2) + x.sum(), torch.linspace(0, 1, 7), torch.linspace(-1, 1, 1), torch.logspace(0, 2, 4), torch.eye(3), torch.eye(n, 5, dtype=torch.int64), torch.zeros(n, 2), torch.ones(2, n, dtype=torch.bool),
        torch.full((n,), 3), torch.full((2, 2), 1.5, dtype=torch.float64), torch.full([], True), torch.tensor([1, 2, 3]), torch.tensor(2.5), torch.tensor([[1.0, nan]]), torch.scalar_tensor(3), torch.zeros(0), torch.empty(2, 0), torch.zeros_like(x, dtype=torch.int32), torch.ones_like(x[0]), torch.full_like(x, 7), torch.hann_window(5), torch.vander(x[0]), torch.complex(x, x).real, torch.tensor([x.shape[0], 2]), torch.as_tensor(n), torch.arange(5, -5, -3), torch.tril(torch.ones(n, n)), torch.empty_strided((2, 3), (1, 2)).fill_(1), torch.full((n, 2), float(n)), torch.full((2,), -inf),
    )  # fmt: skip


@peer(lambda: [r(64, 8)])
def dropouts(x):
    return F.dropout(x, 0.5), F.dropout(x, 0.0), F.dropout(x, 0.3, training=False), F.alpha_dropout(x, 0.2), F.dropout1d(x[None], 0.4), F.feature_dropout(x, 0.5) if hasattr(F, "feature_dropout") else x


@peer(lambda: [r(16, 8)], gradients=False)
def random_numbers(x):
    return torch.rand(5), torch.randn(4, 3), torch.rand_like(x), torch.randn_like(x.half()), torch.randint(0, 9, (4,)), torch.randperm(7), torch.bernoulli(torch.full((20,), 0.4)), torch.empty(5).uniform_(2, 3), torch.normal(0.0, 1.0, (6,)), torch.rand(3, dtype=torch.float64), torch.randint_like(x, 5), torch.empty(4).exponential_(), torch.multinomial(x.softmax(1), 2), torch.empty(3).bernoulli_(0.5), torch.empty(5).normal_(1, 2), torch.randn(2, generator=None), torch.poisson(x.abs()), x.bernoulli(0.3), torch.normal(x, 1.0)


# Special functions.

each(
    "special",
    lambda: [torch.rand(5, 7) * 0.8 + 0.1, torch.rand(5, 7) + 0.5],
    {
        name: (lambda x, y, f=getattr(torch.special, name): f(x))
        for name in "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 i0 i0e i1 i1e entr erfcx ndtr ndtri log_ndtr gammaln psi logit sinc exp2 expm1 round softmax_".split()
        if hasattr(torch.special, name)
    },
    gradients=False,
)
each(
    "special_binary",
    lambda: [torch.rand(5, 7) * 0.8 + 0.1, torch.rand(5, 7) + 1.5, ints(5, 7, low=0, high=5)],
    {
        "polynomials": lambda x, y, n: tuple(getattr(torch.special, f"{name}_polynomial_{k}")(x, n) for name, kinds in (("chebyshev", "tuvw"), ("hermite", ("h", "he")), ("laguerre", "l"), ("legendre", "p"), ("shifted_chebyshev", "tuvw")) for k in kinds),
        "gamma": lambda x, y, n: (torch.special.gammainc(y, x), torch.special.gammaincc(y, x), torch.polygamma(1, y), torch.polygamma(2, y), torch.mvlgamma(y + 3, 2), torch.special.zeta(y, x)),
        "xlog": lambda x, y, n: (torch.xlogy(x, y), torch.special.xlog1py(x, y), torch.xlogy(n, y), torch.xlogy(0.0, y), torch.xlogy(x, 2)),
        "other": lambda x, y, n: (torch.nextafter(x, y), torch.frexp(y), torch.ldexp(x, n), torch.logaddexp2(x, y), torch.erfinv(x), torch.lerp(x, y, x), torch.heaviside(x - 0.5, y), torch.float_power(x, y), torch.igamma(y, x)),
    },
    gradients=False,
)
each(
    "pointwise",
    two,
    {
        "trig": lambda x, y: (torch.atan2(x, y), x.asinh(), (x.abs() + 1).acosh(), x.tanh().atanh(), x.tan(), x.sinh(), y.cosh(), x.clamp(-0.9, 0.9).acos(), torch.sinc(x), torch.hypot(x, y)),
        "logs": lambda x, y: (x.exp().log(), x.abs().log2(), y.abs().log10(), x.abs().log1p(), torch.logaddexp(x, y), x.sigmoid().logit(), torch.xlogy(x.abs(), y.abs()), x.expm1()),
        "activations": lambda x, y: (F.relu6(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x), F.selu(x), F.celu(x, 0.5), F.elu(x, 2), F.softplus(x, 2, 1), F.gelu(x), F.gelu(x, approximate="tanh"), F.mish(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.logsigmoid(x), F.threshold(x, 0, 0.5), F.leaky_relu(x), F.prelu(x, y[0, :1]), F.silu(x)),
        "relu_backward": lambda x, y: (aten.threshold_backward(x, y, 0), aten.hardtanh_backward(x, y, -1, 1), aten.gelu_backward(x, y), aten.sigmoid_backward(x, y.sigmoid()), aten.tanh_backward(x, y.tanh()), aten.leaky_relu_backward(x, y, 0.1, False), aten.elu_backward(x, 1.0, 1, 1, False, y), aten._softmax_backward_data(x, y.softmax(1), 1, torch.float32), aten._log_softmax_backward_data(x, y.log_softmax(1), 1, torch.float32)),
        "fma": lambda x, y: (torch.addcmul(x, y, y, value=2), torch.addcdiv(x, y, y.abs() + 1, value=0.5), torch.lerp(x, y, 0.3), x * y + x, torch.add(x, y, alpha=0.5), torch.sub(x, y, alpha=2), torch.rsub(x, y, alpha=3)),
        "const_folding": lambda x, y: (x + torch.ones(16) * 2, x * torch.arange(16.0).exp().sum(), x @ (torch.eye(16) + 1), x + torch.tensor([1.0]) / 3, y * (torch.full((8, 1), 2.0) ** 3)),
        "shared_tmps": lambda x, y: (lambda a: (a.sum(0), a.exp(), a.sum(1, keepdim=True) * a, (a + a.sum()).relu()))(x * y + 1),
        "python_numbers": lambda x, y: (x * math.pi, x + int(3.7), x ** 2.0, 2 / (x.abs() + 1), 1 - x, -(x), abs(x), x.shape[0] * y, len(x) + x, round(2.5) * x),
        "min_max_scalar": lambda x, y: (x.clamp(min=torch.tensor(0.1)), torch.maximum(x, torch.tensor(0.2)), x.clamp(y - 1, y + 1), max(x.sum(), y.sum()), torch.clamp_min(x, 0.5), torch.clip(x, -0.1, 0.1)),
        "square_root_chain": lambda x, y: (x.pow(2).sum(1).sqrt(), (x / x.norm(dim=1, keepdim=True)) @ y.t(), x.abs().pow(1.5), x.square().mean().rsqrt() * y),
        "remainders": lambda x, y: (x % 2, x % y.detach(), torch.fmod(x, 2.5), torch.remainder(x, -1.5)),
        "bool_chain": lambda x, y: ((x > 0) & (y < 0) | ~(x > y), (x > 0).float() * y, torch.logical_xor(x > 0, y > 0).int(), (x > 0).sum() * y, (x > 0).to(torch.uint8) + 1, ((x > 0) * 2.5)),
        "isclose": lambda x, y: (torch.isclose(x, x + 1e-9), torch.allclose(x, x), torch.equal(x, y), torch.eq(x, y).all(), torch.ne(x, 0.0), x.isreal(), x.signbit()),
        "copies": lambda x, y: (x.clone(), x.contiguous(), aten._to_copy(x, dtype=torch.float16), aten.lift_fresh_copy(x), aten.expand_copy(x[:1], [8, 16]), x.to(y), aten.view_copy(x, [128])),
        "unsafe": lambda x, y: (aten._unsafe_view(x, [128]), aten._unsafe_index(x, [torch.tensor([1, 2])]), aten._unsafe_index_put(x, [torch.tensor([1, 2])], y[:2]), aten._unsafe_masked_index(x, x > 0, [torch.arange(8)[:, None], torch.arange(16)], 0.0), aten._unsafe_masked_index_put_accumulate(x, x > 0, [torch.arange(8)[:, None], torch.arange(16)], y)),
        "where_gradient_of_nan": lambda x, y: torch.where(x > 0, x.clamp(min=1e-3).log(), y).sum(),
        "constant_outputs": lambda x, y: (torch.zeros(3), 5, x.shape[0], torch.tensor(1.0), x + 1, None, (x.dim(), "a")),
        "linspace_weights": lambda x, y: x * torch.linspace(0, 1, 16) + torch.arange(8)[:, None] ** 2,
        "stack_of_reductions": lambda x, y: torch.stack([x.sum(), y.mean(), x.amax(), (x - y).abs().max()]),
        "complex_mix": lambda x, y: torch.view_as_real(torch.complex(x, y) * torch.complex(y, x)).sum(-1),
    },
)


# Sizes that are symbols or come from data.


@peer(one)
def size_arithmetic(x):
    a, b = x.shape
    return x.reshape(b, a), x.view(a * b), x[: a // 2], x[:, : b - 1], torch.zeros(a + b), x * a, x / b, x.new_full((a,), b), x.expand(2, a, b), torch.arange(a) * b, x.view(-1, b // 2), x.sum() / x.numel(), x[a - 1], F.pad(x, (a, b)), torch.full((2,), a * 1.5), math.sqrt(a) * x, x ** (a / b), float(a) + x, min(a, b) * x, max(a, 3) + x, int(a * 0.5) * x, torch.tensor(a), x.repeat(a // 4, 1)


@peer(lambda: [r(6, 6), 3, 0.5])
def numbers_as_arguments(x, n, f):
    return x * n, x + f, x[:n], x.roll(n), x**f, F.dropout(x, f, training=False), torch.full((n,), f), x.clamp(max=f), x.topk(n)[0], x * (n + f), x.view(n, -1), torch.arange(n, 7), n, f, torch.full((2,), n), x / n, F.leaky_relu(x, f), torch.lerp(x, x * 2, f), x.masked_fill(x > 0, f)


@peer(lambda: [torch.tensor([3, 0, 2, 0, 1]), r(5)], gradients=False)
def sizes_from_data(i, x):
    found = i.nonzero()
    return found, x[i > 0], x.masked_select(i > 0) * 2, i.unique(), torch.where(i > 0)[0] + 1, found.sum(0), x[i > 0].sum(), torch.argwhere(i), i.unique(return_counts=True)[1]


@peer(lambda: [torch.tensor(3), r(8, 4)], gradients=False)
def numbers_from_data(n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= 8)
    return x[:k].sum(), torch.zeros(k) + 1, x * k, torch.arange(k), torch.full((2,), k), x.narrow(0, 0, k).exp(), k + 1


@peer(lambda: [torch.tensor([3, 5]), r(8, 4)], gradients=False)
def splits_from_data(n, x):
    sizes = n.tolist()
    for each in sizes:
        torch._check(each >= 0)
    a, b = torch.split(x, sizes)
    return a * 2, b.sum(0)


@peer(lambda: [torch.tensor(2.5), r(4)], gradients=False)
def floats_from_data(s, x):
    v = s.item()
    return x * v, v + 1, torch.full((2,), v), x.clamp(max=v)


@peer(lambda: [torch.tensor([2, 1, 3]), r(3, 4)], gradients=False)
def repeat_by_data(n, x):
    return torch.repeat_interleave(x, n, dim=0), torch.repeat_interleave(n), torch.repeat_interleave(x, n, dim=0, output_size=6)


@peer(one, gradients=False)
def control_flow_of_sizes(x):
    y = x
    for k in range(x.shape[0] // 4):
        y = y + k
    if x.shape[1] > 4:
        y = y * 2
    return y, [y[k] for k in range(2)], {"n": x.shape[0], "y": y}


# Modules.


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.calls += 1
        y = self.norm(self.linear(x))
        with torch.no_grad():
            self.mean.lerp_(y.mean(0), 0.1)
        return y * self.calls, self.mean


PEERS["module_state"] = Peer(Stateful(), one)
PEERS["module_lstm"] = Peer(nn.LSTM(16, 5, batch_first=True), lambda: [r(2, 3, 16)])
PEERS["module_gru"] = Peer(nn.GRU(16, 5, 2), lambda: [r(3, 2, 16)])
PEERS["module_rnn_cell"] = Peer(nn.LSTMCell(16, 5), lambda: [r(3, 16)])
PEERS["module_transformer"] = Peer(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), lambda: [r(2, 5, 16)])
PEERS["module_attention"] = Peer(nn.MultiheadAttention(16, 4, batch_first=True), lambda: [r(2, 5, 16)] * 3)
PEERS["module_weight_norm"] = Peer(nn.utils.parametrizations.weight_norm(nn.Linear(16, 4)), one)
PEERS["module_embedding_bag"] = Peer(nn.EmbeddingBag(10, 4), lambda: [ints(3, 5)])
PEERS["module_bilinear"] = Peer(nn.Bilinear(16, 16, 3), two)
PEERS["module_transposed"] = Peer(nn.ConvTranspose1d(4, 3, 3, 2, 1, 1), lambda: [r(2, 4, 9)])
PEERS["module_prelu"] = Peer(nn.Sequential(nn.Linear(16, 6), nn.PReLU(6), nn.Softmax(-1)), one)
PEERS["module_group"] = Peer(nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 3)), lambda: [r(2, 4, 8, 8)])
PEERS["module_instance"] = Peer(nn.Sequential(nn.InstanceNorm2d(3, affine=True, track_running_stats=True), nn.Hardswish(), nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")), lambda: [r(2, 3, 6, 6)])


@peer(lambda: [r(4, 6)], gradients=False)
def repeated_calls_write_the_same(x):
    for _ in range(3):
        x.mul_(1.5)
        x.add_(x.sum())
    return x


@peer(lambda: [r(4, 4)])
def many_outputs_of_one(x):
    y = x.sin()
    return y, y, y.t(), y + 0, y.view(-1), x, [y, (x, y * 2)]


@peer(lambda: [r(4, 4), r(4, 4)])
def gradients_of_unused(x, y):
    return x * 2, y.detach() * 3, (x * y).detach()


@peer(lambda: [r(4, 4)])
def no_grad_inside(x):
    with torch.no_grad():
        s = x.sum()
    y = x * s
    with torch.enable_grad():
        z = y.exp()
    return y, z, s


@peer(lambda: [r(3, 4, 5)], gradients=False)
def autocast_inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.mT
        z = F.softmax(y, -1)
    return y, z, y.float() + 1


@peer(lambda: [[r(3), r(4)], {"a": r(3)}])
def containers(xs, d):
    return [xs[0] + d["a"], {"b": xs[1] * 2}], tuple(x.sum() for x in xs)


@peer(lambda: [r(8, 16)], gradients=False)
def large_graph(x):
    y = x
    for k in range(40):
        y = torch.sin(y) + x[:, k % 16 : k % 16 + 1] * 0.1
    return y


@peer(lambda: [r(300, 300)])
def larger_than_caches(x):
    return x.sum(0), x.t().softmax(1), (x @ x)[::3], x.cumsum(1)[:, -1], x.sort(1)[0][:, :2], x.argmax(0)


@peer(lambda: [r(2, 40, 130), r(130)])
def wide_rows(x, w):
    return F.layer_norm(x, (130,), w), (x * w).sum(-1), x.amax(1), x.mean((0, 1)), x.argmax(1), x.softmax(1), x.var(0), x.flip(-1) * w, x[..., 1:129:2] + 1, torch.cat([x, x[..., :7]], -1)


# Element types: every view of one type as another, every cast, numbers and zero-dimensional tensors beside tensors.

_TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
for _x, _y in itertools.product(_TYPES, _TYPES):
    _of = f"{str(_x)[6:]}_{str(_y)[6:]}"
    PEERS[f"dtype_view_{_of}"] = Peer(
        lambda x, a=_x, b=_y: (x.view(b) + 1, x.view(b), (x + 1).view(b).view(a)), lambda a=_x: [(r(8, 16) * 4).to(a)], gradients=False
    )
    PEERS[f"dtype_cast_{_of}"] = Peer(lambda x, y, b=_y: (x.to(b), x + y, torch.where(x > 1, x, y)), lambda a=_x, b=_y: [(r(40) * 4).to(a), (r(40) * 4).to(b)], gradients=False)
for _x in _TYPES:
    _name = str(_x)[6:]
    PEERS[f"unspecialised_{_name}"] = Peer(
        lambda x, y, n, f: (x + y, x * y.sum(), x + n, x * f, torch.maximum(x, y), x - n * 2, y / (n + 1), x.clamp(max=n)), lambda a=_x: [r(4, 4).to(a), torch.tensor(3).to(a), 5, 1.5], gradients=False
    )


@peer(lambda: [r(4, 5), 3], gradients=False)
def index_by_number(x, n):
    y = x.clone()
    y[n] = 1
    y[:, n] += 2
    return y, x[n], x[n - 1 :], x[..., n], x.select(0, n), x.index_select(0, torch.tensor([n]))


# User operators.

if not hasattr(torch.ops, "pyrite_peers") or not hasattr(torch.ops.pyrite_peers, "double"):

    @torch.library.custom_op("pyrite_peers::double", mutates_args=())
    def _double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @_double.register_fake
    def _(x):
        return torch.empty_like(x)

    _double.register_autograd(lambda ctx, g: g * 2)

    @torch.library.custom_op("pyrite_peers::fill", mutates_args=("x",))
    def _fill(x: torch.Tensor, value: float) -> None:
        x.fill_(value)

    @torch.library.custom_op("pyrite_peers::add_to", mutates_args=("x", "y"))
    def _add_to(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y.mul_(2)
        return x + y

    @_add_to.register_fake
    def _(x, y):
        return torch.empty_like(x)

    @torch.library.custom_op("pyrite_peers::fill_all", mutates_args=("xs",))
    def _fill_all(xs: list[torch.Tensor], n: int) -> None:
        for x in xs:
            x.fill_(n)

    @torch.library.custom_op("pyrite_peers::places", mutates_args=())
    def _places(x: torch.Tensor) -> torch.Tensor:
        return x.nonzero()

    @_places.register_fake
    def _(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.dim(), dtype=torch.int64)

    @torch.library.custom_op("pyrite_peers::halves", mutates_args=())
    def _halves(x: torch.Tensor, n: int, scale: float, flag: bool = True) -> list[torch.Tensor]:
        return [x[:n] * scale, x[n:].clone()]

    @_halves.register_fake
    def _(x, n, scale, flag=True):
        return [torch.empty_like(x[:n]), torch.empty_like(x[n:])]

    _library = torch.library.Library("pyrite_peers_two", "DEF")
    _library.define("composed(Tensor x, int n) -> Tensor")
    _library.impl("composed", lambda x, n: (x * n).sin(), "CompositeImplicitAutograd")
    _library.define("plain(Tensor x, Tensor? y=None) -> (Tensor, Tensor)")
    _library.impl("plain", lambda x, y=None: (x + 1, x.t().contiguous()), "CompositeExplicitAutograd")

each(
    "user",
    two,
    {
        "operator": lambda x, y: torch.ops.pyrite_peers.double(x + 1) * y,
        "composite": lambda x, y: (torch.ops.pyrite_peers_two.composed(x, 3) + y, torch.ops.pyrite_peers_two.composed(x, x.shape[0])),
        "strided": lambda x, y: torch.ops.pyrite_peers.double(x.t()).t() + y,
    },
)
each(
    "user_writes",
    two,
    {
        "one": lambda x, y: (torch.ops.pyrite_peers.fill(x, 2.5), x + y)[1],
        "two": lambda x, y: (torch.ops.pyrite_peers.add_to(x, y) + 1, x * 2),
        "list": lambda x, y: (torch.ops.pyrite_peers.fill_all([x, y], 3), x + y)[1],
        "fresh": lambda x, y: (lambda z: (torch.ops.pyrite_peers.fill(z, 1.0), z + x)[1])(x * y),
        "view": lambda x, y: (torch.ops.pyrite_peers.fill(x[1:3], 9.0), x * 1)[1],
        "sized": lambda x, y: torch.ops.pyrite_peers.places(x > 0).sum(0) + 1,
        "lists": lambda x, y: [a + 1 for a in torch.ops.pyrite_peers.halves(x, x.shape[0] // 2, 0.5)],
        "explicit": lambda x, y: [a + 1 for a in torch.ops.pyrite_peers_two.plain(x)],
    },
    gradients=False,
)

# What eager refuses, compiled code refuses.

each(
    "refused",
    lambda: [r(4, 4), ints(4, 4), bools(4, 4)],
    {
        "index": lambda x, i, m: x[torch.tensor([7])],
        "gather": lambda x, i, m: x.gather(0, i + 100),
        "embedding": lambda x, i, m: F.embedding(i + 100, x),
        "shape": lambda x, i, m: x @ x[:3],
        "broadcast": lambda x, i, m: x + x[:3],
        "cat": lambda x, i, m: torch.cat([x, x[:, :2]]),
        "view": lambda x, i, m: x.view(3, 5),
        "view_of_transposed": lambda x, i, m: x.t().view(-1),
        "bool_minus": lambda x, i, m: m - m,
        "bool_neg": lambda x, i, m: -m,
        "float_shift": lambda x, i, m: x << 1,
        "float_and": lambda x, i, m: x & x,
        "int_dropout": lambda x, i, m: F.dropout(i),
        "int_mean": lambda x, i, m: i.mean(),
        "int_softmax": lambda x, i, m: F.softmax(i, 0),
        "max_pool_bool": lambda x, i, m: F.max_pool2d(m[None, None], 2),
        "adaptive_long": lambda x, i, m: F.adaptive_avg_pool2d(i[None, None], 2),
        "conv_types": lambda x, i, m: F.conv2d(x[None, None], i[None, None]),
        "conv_shape": lambda x, i, m: F.conv2d(x[None], x[None]),
        "linear_types": lambda x, i, m: F.linear(x, i),
        "mm_types": lambda x, i, m: x @ i,
        "bmm_rank": lambda x, i, m: torch.bmm(x, x),
        "scatter_type": lambda x, i, m: x.scatter(0, i % 4, i),
        "index_add_type": lambda x, i, m: x.index_add(0, i[0] % 4, i),
        "where_condition": lambda x, i, m: torch.where(x, x, x),
        "inplace_type": lambda x, i, m: i.clone().add_(1.5),
        "inplace_shape": lambda x, i, m: x[:, 0].clone().add_(x),
        "split": lambda x, i, m: x.split([1, 2]),
        "expand": lambda x, i, m: x.expand(3, 4),
        "squeeze_dim": lambda x, i, m: x.squeeze(3),
        "reduce_dim": lambda x, i, m: x.sum(2),
        "stack": lambda x, i, m: torch.stack([x, x[:2]]),
        "cross_entropy": lambda x, i, m: F.cross_entropy(x, i[0] + 50),
        "pad": lambda x, i, m: F.pad(x, (9, 9), "reflect"),
        "topk": lambda x, i, m: x.topk(9),
        "argmax_empty": lambda x, i, m: x[:0].argmax(),
        "max_empty": lambda x, i, m: x[:0].max(),
        "amax_empty": lambda x, i, m: x[:0].amax(0),
        "cholesky": lambda x, i, m: torch.linalg.cholesky(x - 9 * torch.eye(4)),
        "complex_order": lambda x, i, m: torch.complex(x, x) < 1,
        "complex_max": lambda x, i, m: torch.complex(x, x).max(),
        "pad_bool": lambda x, i, m: F.pad(m, (1, 1), "reflect"),
        "searchsorted_bool": lambda x, i, m: torch.searchsorted(m, m),
        "xlogy_complex": lambda x, i, m: torch.xlogy(torch.complex(x, x), x),
        "fill_overflow": lambda x, i, m: i.to(torch.uint8).masked_fill(m, 300),
        "scatter_mean_bool": lambda x, i, m: m.scatter_reduce(0, i % 4, m, "mean"),
        "pool3d_half": lambda x, i, m: F.avg_pool3d(x.half()[None, None], 2),
        "norm_int": lambda x, i, m: torch.linalg.vector_norm(i),
        "layer_norm_shape": lambda x, i, m: F.layer_norm(x, (3,)),
        "bernoulli_range": lambda x, i, m: torch.bernoulli(x * 9),
        "repeat": lambda x, i, m: x.repeat(2),
        "permute": lambda x, i, m: x.permute(0, 0),
        "one_hot": lambda x, i, m: F.one_hot(i, 2),
        "unfold": lambda x, i, m: x.unfold(0, 9, 1),
        "negative_size": lambda x, i, m: torch.zeros(-1),
        "dot_types": lambda x, i, m: torch.dot(x[0], i[0]),
        "out_of_range_arange": lambda x, i, m: torch.arange(5, 1),
        "logical_shift": lambda x, i, m: torch.bitwise_left_shift(m, m),
    },
    gradients=False,
)

# Other forms.

each(
    "form",
    lambda: [r(8, 16), r(16, 8)],
    {
        "symbolic_round": lambda x, y: (x * round(x.shape[0] / 3), x + x.shape[0] // 3 * 0.1, torch.zeros(round(x.shape[1] * 0.5)) + 1),
        "symbolic_sqrt": lambda x, y: (x / math.sqrt(x.shape[1]), x * math.pow(x.shape[0], 0.5), x * x.shape[0] ** -0.5, torch.full((2,), math.sqrt(y.shape[0]))),
        "symbolic_fill": lambda x, y: (torch.full((2, 2), x.shape[0]), torch.full((3,), x.shape[1] / 2), x.new_full((2,), x.shape[0]), torch.scalar_tensor(x.shape[0]), torch.full_like(x, x.shape[0]), x.masked_fill(x > 0, x.shape[0]), torch.tensor(x.shape[0]) + x, torch.arange(x.shape[0], x.shape[1] + 1), torch.arange(0, x.shape[1], 2), x.clamp(max=x.shape[0]), torch.where(x > 0, x.shape[0], x), F.pad(x, (1, 1), value=x.shape[0]), torch.linspace(0, x.shape[0], 5), torch.tensor([x.shape[0], x.shape[1]])),
        "symbolic_sizes": lambda x, y: (x[: max(1, x.shape[0] // 3)], x[min(x.shape[0] - 1, 3)], x.view(2, x.shape[0] // 2, -1), x[:, x.shape[1] % 3 :], torch.ones(x.shape[0] * y.shape[0]).view(x.shape[0], -1), x.reshape(x.numel()), x.unflatten(1, (4, x.shape[1] // 4)), x[: -(x.shape[0] // 2)]),
        "bool_of_sizes": lambda x, y: x + 1 if x.shape[0] < y.shape[0] and x.shape[1] == y.shape[0] else x - 1,
        "sym_extrema": lambda x, y: (x * torch.sym_max(x.shape[0], 3), x[: torch.sym_min(x.shape[0], 5)], x + torch.sym_int(2.5), x * torch.sym_float(x.shape[0])),
        "packets": lambda x, y: (aten.cat.default([x, x]), aten.add(x, x), aten.sum.dim_IntList(x, [1]), torch.ops.aten.mm(x, y), aten.relu.default(x), aten.slice.Tensor(x, 0, 1, 3)),
        "linalg": lambda x, y: (torch.linalg.inv(x @ y + 9 * torch.eye(8)), torch.linalg.det(x @ y), torch.linalg.solve(x @ y + 9 * torch.eye(8), x), torch.linalg.qr(x)[1].abs(), torch.linalg.svdvals(x), torch.linalg.eigvalsh(x @ x.t()), torch.linalg.cholesky(x @ x.t() + 9 * torch.eye(8)), torch.trace(x @ y), torch.linalg.norm(x)),
        "requires": lambda x, y: (x.detach().requires_grad_(False) * 2, x.data + 1, x.is_contiguous(), x.stride(), x.dtype == torch.float32, x.is_floating_point(), x.numel(), x.element_size()),
        "numpy_like": lambda x, y: (x.mean(axis=0), x.sum(axis=1, keepdims=True), torch.concatenate([x, x], axis=0), x.T, x.ravel(), x.swapdims(0, 1), x.max(axis=1).values, torch.row_stack([x, x]), x.clip(min=0), x.absolute(), torch.negative(x), torch.multiply(x, x), torch.subtract(x, 1), torch.divide(x, 2)),
        "hooks_of_reductions": lambda x, y: (x.sum(0).softmax(0) @ y, (x @ y).diagonal().sum(), torch.trace(x @ y), (x @ y).tril().sum(1)),
        "double_where": lambda x, y: torch.where(x > 0, torch.where(x > 1, x * 2, x * 3), torch.where(x < -1, x * 4, x * 5)),
        "slices_of_cat": lambda x, y: (torch.cat([x, y.t()])[3:12], torch.cat([x, y.t()], 1)[:, 5:20].sum(1), torch.cat([x[:, :3], y.t()[:, 3:]], 1).view(-1)[::3]),
        "bias_gelu": lambda x, y: F.gelu(x @ y + y[0]) * F.sigmoid(x @ y),
        "layer_norm_chain": lambda x, y: F.layer_norm(F.layer_norm(x + 1, (16,)) * 2 + x, (16,)) @ y,
        "softmax_of_masked": lambda x, y: (x.masked_fill(x > 0, -inf).softmax(1), x.masked_fill(x < 9, -inf).softmax(1).nan_to_num(), torch.log_softmax(x.masked_fill(x > 1, -1e9), 0)),
        "rope": lambda x, y: torch.cat([-x[:, 8:], x[:, :8]], 1) * x.sin() + x * x.cos(),
        "cumulative_mean": lambda x, y: x.cumsum(1) / torch.arange(1, 17),
        "outer_product": lambda x, y: (x[:, None, :] * y.t()[None, :, :]).sum(-1) + (x.unsqueeze(1) - x.unsqueeze(0)).pow(2).sum(-1).sqrt().clamp(min=1e-3),
        "weighted": lambda x, y: (x * x.softmax(1)).sum(1, keepdim=True).expand_as(x) - x.mean(),
        "std_normal": lambda x, y: (x - x.mean(0)) / (x.std(0) + 1e-5),
        "argmax_gather": lambda x, y: x.gather(1, x.argmax(1, keepdim=True)).squeeze(1) + y[x.argmax(1)].sum(1),
        "one_element": lambda x, y: (x[0, 0] * y, x[:1, :1] + y, x[0, :1].sum() * y, x[:1].var(0, correction=0), x[:1, :1].softmax(0), x[:1].norm(dim=0)),
        "views_of_views": lambda x, y: (x.view(4, 2, 16)[1:].transpose(0, 2)[2:].reshape(-1, 2), x.t().unsqueeze(0).expand(3, 16, 8)[1].t()[::2], x.view(-1)[3:19].view(4, 4).t().diagonal()),
        "strided_output": lambda x, y: (x.t() + y, (x.t() + y).t(), torch.empty_strided((8, 16), (1, 8)).copy_(x), x.as_strided((4, 4), (1, 4)) + 1),
        "empty_outputs": lambda x, y: (x[:0] @ y, x[:, :0].sum(1), torch.cat([x[:0], x[:0]]), x[:0].t().contiguous(), torch.zeros(0, 3) + 1, x[8:].mean(1), F.linear(x[:0], y.t())),
        "convert_chain": lambda x, y: x.half().float().bfloat16().to(torch.int32).bool().double().to(torch.uint8),
        "constants_in_lists": lambda x, y: (x + torch.tensor([float(k) for k in range(16)]), x * torch.tensor([[1], [2]]).repeat(4, 1), x[torch.tensor([[0, 1], [2, 3]])], x * torch.tensor(True), torch.tensor([], dtype=torch.float32), torch.tensor([1, 2], dtype=torch.uint8) + 255),
        "bitcasts": lambda x, y: (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32),
        "scalar_tensors": lambda x, y: (x * torch.tensor(2), x + torch.tensor(2.0, dtype=torch.float64), torch.tensor(3) * torch.tensor(2.5), torch.tensor(1) / 3, x.sum() * torch.tensor([2.0])),
    },
)


class _Tripled(torch.autograd.Function):
    """A gradient that is not the derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 3


each(
    "more",
    two,
    {
        "fft_c2c": lambda x,y: torch.ops.aten._fft_c2c(torch.complex(x,y),[0,1],0,True),
        "fft_roundtrip": lambda x,y: torch.fft.ifft(torch.fft.fft(x)).real,
        "complex_add": lambda x,y: torch.complex(x,y)+torch.complex(y,x)*2-1j,
        "complex_cat": lambda x,y: torch.cat([torch.complex(x,y),torch.complex(y,x)]).real,
        "conj": lambda x,y: torch.complex(x,y).conj().imag,
        "angle": lambda x,y: (torch.angle(torch.complex(x,y)), torch.angle(x)),
        "randn_generator": lambda x,y: torch.randn(3,generator=torch.Generator().manual_seed(2)),
        "randn_generator_none": lambda x,y: torch.randn([4,8],generator=None),
        "rand_kwargs": lambda x,y: torch.ops.aten.rand.default([3],dtype=torch.float64,device='cpu'),
        "cauchy": lambda x,y: torch.sum(1/(torch.unsqueeze(x,-1)-y.flatten())),
        "unique_dim": lambda x,y: torch.unique((x>0).int(), dim=0).sum(),
        "to_sparse": lambda x,y: (x.relu().to_sparse().to_dense()+1),
        "quantize": lambda x,y: torch.dequantize(torch.quantize_per_tensor(x,0.1,2,torch.qint8)),
        "fake_quant": lambda x,y: torch.fake_quantize_per_tensor_affine(x,0.1,0,-128,127),
        "fake_quant_channel": lambda x,y: torch.fake_quantize_per_channel_affine(x,torch.ones(8)*0.1,torch.zeros(8,dtype=torch.int32),0,-128,127),
        "scatter_bf16": lambda x,y: x.bfloat16().scatter_add(0, torch.zeros(8,16,dtype=torch.int64), y.bfloat16()).shape,
        "view_detach": lambda x,y: x[0].detach(),
        "grad_of_view": lambda x,y: x[0].detach()*y[0],
        "lstm_cellops": lambda x,y: torch.lstm_cell(x,(y[:, :4],y[:, 4:8]),torch.ones(16,16),torch.ones(16,4)),
        "std_unbiased": lambda x,y: (x.std(unbiased=False), x.var([0],True,True)),
        "sym_constrain": lambda x,y: (torch._check(x.shape[0]>0), x+1)[1],
        "assert": lambda x,y: (torch._assert_async(torch.tensor(True)), x+1)[1],
        "assert_msg": lambda x,y: (torch._assert(x.shape[0]==8,"x"), x+1)[1],
        "checkpoint": lambda x,y: torch.utils.checkpoint.checkpoint(lambda a: (a.sin()*a).cos(), x, use_reentrant=False),
        "autograd_function": lambda x,y: _Tripled.apply(x)+y,
        "grad_inside": lambda x,y: torch.func.grad(lambda a:(a*a).sum())(x),
        "vmap_inside": lambda x,y: torch.vmap(lambda a,b: a*b.sum())(x,y),
        "jvp_inside": lambda x,y: torch.func.jvp(torch.sin,(x,),(y,))[1],
        "cond": lambda x,y: torch.cond(x.sum()>0, lambda a: a+1, lambda a: a-1, (x,)),
        "assoc_scan": lambda x,y: torch._higher_order_ops.associative_scan(lambda a,b: a+b, x, 0, combine_mode="generic"),
        "map": lambda x,y: torch._higher_order_ops.map(lambda a: a*2, x),
        "round_decimals": lambda x,y: torch.round(x,decimals=2),
        "mm_out_dtype": lambda x,y: torch.mm(x.half(), y.t().half()).float(),
        "linear_mixed": lambda x,y: F.linear(x.to(torch.float64), y.to(torch.float64)),
        "addmm_int": lambda x,y: torch.addmm(torch.ones(8,8,dtype=torch.int64), (x*3).long(), (y.t()*3).long()),
        "baddbmm": lambda x,y: torch.baddbmm(x[None,:,:8], x[None], y.t()[None], beta=0, alpha=1),
        "softmax_bwd_data": lambda x,y: aten._softmax_backward_data(x,y.softmax(0),0,torch.float32),
        "rrelu": lambda x,y: F.rrelu(x, training=False),
        "logit_eps": lambda x,y: torch.logit(x.sigmoid(),eps=1e-3),
        "polygamma": lambda x,y: torch.special.polygamma(1, x.abs()+1),
        "multi_margin": lambda x,y: F.multilabel_margin_loss(x.softmax(1), torch.zeros(8,16,dtype=torch.int64)),
        "ctc": lambda x,y: F.ctc_loss(x[:, None].log_softmax(2), torch.ones(1,3,dtype=torch.int64), [8],[3]),
        "combinations": lambda x,y: torch.combinations(x[0][:4]),
        "tensor_split": lambda x,y: x.tensor_split([2,5],1),
        "cov": lambda x,y: (torch.cov(x), torch.corrcoef(x)),
        "pdist": lambda x,y: F.pdist(x),
        "cdist": lambda x,y: torch.cdist(x,y,p=1.0),
        "lu": lambda x,y: torch.linalg.lu_factor(x@y.t())[1],
        "svd": lambda x,y: torch.linalg.svd(x)[1],
        "pinv": lambda x,y: torch.linalg.pinv(x).shape,
        "matrix_exp": lambda x,y: torch.matrix_exp(x[:, :8]*0.1),
        "kaiser": lambda x,y: torch.kaiser_window(8),
        "bincount_weights": lambda x,y: torch.bincount(torch.tensor([1,2,2]), weights=torch.ones(3)),
        "put_acc": lambda x,y: x.index_put((torch.tensor([0,0,1]),), y[:3], accumulate=True),
        "uint_consts": lambda x,y: torch.tensor([1,255],dtype=torch.uint8)*x[0,:2],
        "uint16_const": lambda x,y: torch.tensor([1,60000],dtype=torch.uint16).to(torch.int32)+1,
        "uint32_arith": lambda x,y: (torch.tensor([1,4000000000],dtype=torch.uint32).to(torch.int64)+1, torch.full((2,),7,dtype=torch.uint64)),
        "neg_zero": lambda x,y: (-0.0*x.abs()).signbit(),
        "list_out": lambda x,y: [x+1,[y,(x,)],{"a":x*2}],
        "kwargs_only": lambda x,y: torch.clamp(input=x,min=0,max=1),
        "inplace_on_input_view": lambda x,y: (x.view(-1)[3:9].add_(1), x*2)[1] if not x.requires_grad else x,
        "block_mask": lambda x,y: torch.where(torch.arange(16)[None]<torch.arange(8)[:,None], x, 0).tril(),
        "triangular": lambda x,y: torch.linalg.solve_triangular(x[:, :8].triu()+9*torch.eye(8), y, upper=True),
        "stft": lambda x,y: torch.view_as_real(torch.stft(x,8,return_complex=True,window=torch.hann_window(8))),
        "istft": lambda x,y: torch.istft(torch.stft(x.repeat(1,4),8,return_complex=True,window=torch.hann_window(8)),8,window=torch.hann_window(8)),
        "fp8_scaled": lambda x,y: x.to(torch.float8_e4m3fn).to(torch.float32)*2,
        "dunder": lambda x,y: (x.__add__(y), x.__rsub__(1), x.__rtruediv__(2), x.__rpow__(2.0), x.__matmul__(y.t()), x.__getitem__(0)),
        "any_int": lambda x,y: ((x>0).to(torch.uint8).any(1), (x>0).to(torch.uint8).all()),
        "argwhere_like": lambda x,y: torch.nonzero_static(x>0,size=5),
        "item_in_graph": lambda x,y: x*y.sum().item() if not x.requires_grad else x,
        "bool_item": lambda x,y: x+int((y>0).sum().item()) if not x.requires_grad else x,
        "nonzero_unbacked": lambda x,y: (lambda nz: torch.ones(nz.shape[0]).sum())((x>0).nonzero()) if not x.requires_grad else x,
        "index_unbacked": lambda x,y: x[x>0].exp().sum(),
        "masked_select_twice": lambda x,y: (x.masked_select(y>0)*2).relu().mean(),
        "unbacked_cat": lambda x,y: torch.cat([x[x>0], y[y>0], x[0]]),
        "unbacked_matmul": lambda x,y: (lambda n: x[n]@y.t())(torch.nonzero(x[:,0]>-9).squeeze(1)),
        "unbacked_scatter": lambda x,y: (lambda n: torch.zeros(16).index_put((n,), torch.tensor(1.0)))((x[0]>0).nonzero().squeeze(1)),
        "unbacked_view": lambda x,y: (x[x[:,0]>-9]).reshape(-1,2).sum(1),
        "repeat_interleave_sym": lambda x,y: x.repeat_interleave(x.shape[0]//4,0),
    },
)
