"""Small functions of many kinds for `torch.compile(backend="pyrite")`: a name, a function, and what it is called with.

They ask of a compiler's border what users meet: every family of torch functions, views, writes, numbers and sizes, dtypes,
modules, random numbers, autograd's corners. `CASES` maps names to `Case`s.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F


@dataclasses.dataclass
class Case:
    """A function, a factory of its arguments, and how it may be compared."""

    function: Callable
    arguments: Callable
    gradients: bool = True
    dynamic: bool = True
    rtol: float = 1.3e-4
    atol: float = 2e-5


CASES = {}


def r(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


def add(name, function, *shapes, **settings):
    """A case whose arguments are random tensors of these shapes, or what a function makes."""

    def arguments():
        return [shape() if callable(shape) else r(*shape) if isinstance(shape, tuple) else shape for shape in shapes]

    assert name not in CASES, name
    CASES[name] = Case(function, arguments, **settings)


def ints(*shape, low=0, high=10, dtype=torch.int64):
    return lambda: torch.randint(low, high, shape, dtype=dtype)


def positive(*shape):
    return lambda: torch.rand(*shape) + 0.1


def of(dtype, *shape):
    return lambda: r(*shape, dtype=dtype)


def bools(*shape):
    return lambda: torch.rand(*shape) > 0.5


# Pointwise functions.
for _name in (
    "abs neg exp exp2 expm1 sin cos tan tanh sinh cosh atan asinh erf erfc sigmoid relu floor ceil round trunc frac sign square sgn "
    "isnan isinf isfinite isposinf isneginf signbit reciprocal deg2rad rad2deg nan_to_num sinc logical_not positive"
).split():
    add(f"torch.{_name}", getattr(torch, _name), (9, 13), gradients=_name not in ("floor", "ceil", "round", "trunc", "sign", "sgn"))
for _name in "sqrt rsqrt log log2 log10 log1p lgamma digamma acosh".split():
    add(f"torch.{_name}", lambda x, f=getattr(torch, _name): f(x + 1), positive(9, 13))
for _name in "asin acos atanh erfinv logit".split():
    add(f"torch.{_name}", getattr(torch, _name), lambda: torch.rand(7, 9) * 0.9 + 0.05, rtol=1e-3, atol=1e-4)
for _name in "entr erfcx i0e i1 i1e ndtr ndtri expit log_ndtr bessel_j0 bessel_j1 i0 psi gammaln xlog1py zeta".split():
    _function = getattr(torch.special, _name)
    _binary = _name in ("xlog1py", "zeta")
    add(
        f"special.{_name}",
        (lambda x, f=_function: f(x + 1.5, x + 0.5)) if _binary else _function,
        lambda: torch.rand(5, 7) * 0.8 + 0.1,
        gradients=_name not in ("bessel_j0", "bessel_j1", "zeta"),
        rtol=1e-3,
        atol=1e-4,
    )
for _name in "add sub mul div maximum minimum atan2 hypot copysign fmod remainder logaddexp logaddexp2 fmax fmin xlogy nextafter heaviside".split():
    add(f"torch.{_name}", getattr(torch, _name), (6, 10), positive(10), gradients=_name not in ("nextafter", "heaviside", "fmod", "remainder"))
for _name in "eq ne lt le gt ge logical_and logical_or logical_xor isclose".split():
    add(f"torch.{_name}", getattr(torch, _name), ints(6, 10, high=3, dtype=torch.int32), ints(10, high=3, dtype=torch.int32))
for _name in "bitwise_and bitwise_or bitwise_xor gcd lcm floor_divide".split():
    add(f"torch.{_name}", getattr(torch, _name), ints(6, 10, low=1, high=30), ints(10, low=1, high=9))
add("bitwise_not", lambda x: ~x, ints(4, 5))
add("shifts", lambda x, y: (x << y, x >> y), ints(4, 5), ints(4, 5, high=3))
add("div_floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), (5, 6), positive(6), gradients=False)
add("div_trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), ints(5, 6), ints(6, low=1))
add("pow_scalar", lambda x: x**3 + 2**x + x**0.5, positive(5, 6))
add("pow_tensor", lambda x, y: x**y, positive(5, 6), (6,))
add("where", lambda x, y: torch.where(x > 0, x, y), (5, 6), (6,))
add("where_scalar", lambda x: torch.where(x > 0, x, 0.5), (5, 6))
add("clamp", lambda x: (x.clamp(-0.5, 0.5), x.clamp_min(0.1), x.clamp_max(0.1), torch.clip(x, min=-1)), (5, 6))
add("clamp_tensor", lambda x, a: torch.clamp(x, min=a), (5, 6), (6,))
add("lerp", lambda x, y, w: torch.lerp(x, y, w) + torch.lerp(x, y, 0.3), (5, 6), (5, 6), (5, 6))
add("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5) + torch.addcdiv(x, y, z.abs() + 1), (5, 6), (5, 6), (5, 6))
add("masked_fill", lambda x, m: x.masked_fill(m, 3.0), (5, 6), bools(5, 6))
add("polar", lambda x, y: torch.view_as_real(torch.polar(x.abs() + 0.1, y)), (5,), (5,))
add("complex", lambda x: torch.view_as_real(torch.view_as_complex(x) * (2 + 1j)), (5, 2), gradients=False)
add("scalar_chain", lambda x: ((x * 2 + 1) / 3 - 4) * 0.5, (31,))
add("python_max", lambda x: torch.maximum(x, torch.tensor(0.1)) * math.pi, (31,))
add("type_promotion", lambda x, y: (x + y, x * 2.5, y / 2, y + True), ints(4, 5), of(torch.float16, 5))
add("int_overflow", lambda x: x * 1000003, ints(100, high=2**31 - 1, dtype=torch.int32))
add("uint8", lambda x: (x + 200, x // 3, -x), ints(20, high=256, dtype=torch.uint8))
add("to", lambda x: (x.to(torch.int32), x.double(), x.half(), x.bool(), x.to(torch.bfloat16).float()), (5, 6))
add("bool_arithmetic", lambda x, y: (x & y, x | y, x ^ y, (x.float() + y.float()), x.sum()), bools(8), bools(8))

# Activations and losses.
for _name in (
    "relu relu6 elu selu celu leaky_relu gelu silu mish softplus softsign tanhshrink hardshrink softshrink hardtanh hardsigmoid "
    "hardswish logsigmoid threshold"
).split():
    _arguments = (0.1, 20.0) if _name == "threshold" else ()
    add(f"F.{_name}", lambda x, f=getattr(F, _name), a=_arguments: f(x, *a), (7, 11))
add("F.gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), (7, 11))
add("F.glu", lambda x: F.glu(x, 1), (7, 12))
add("F.prelu", lambda x, w: F.prelu(x, w), (2, 5, 7), (5,))
add("F.rrelu", lambda x: F.rrelu(x, 0.1, 0.3, training=False), (7, 11))
add("F.softmax", lambda x: (F.softmax(x, 0), F.log_softmax(x, -1), F.softmin(x, 1)), (7, 11))
add("F.normalize", lambda x: F.normalize(x, dim=1), (7, 11))
add("F.cosine_similarity", lambda x, y: F.cosine_similarity(x, y), (7, 11), (7, 11))
add("F.pairwise_distance", lambda x, y: F.pairwise_distance(x, y), (7, 11), (7, 11))
for _name in "mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss".split():
    add(f"F.{_name}", getattr(F, _name), (7, 11), (7, 11))
add("F.soft_margin_loss", lambda x: F.soft_margin_loss(x, torch.ones(7, 11)), (7, 11))
add("F.cross_entropy", lambda x, t: F.cross_entropy(x, t), (7, 5), ints(7, high=5))
add("F.cross_entropy_smooth", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=2), (7, 5), ints(7, high=5))
add("F.cross_entropy_2d", lambda x, t: F.cross_entropy(x, t), (2, 5, 4, 4), ints(2, 4, 4, high=5))
add("F.cross_entropy_soft", lambda x, t: F.cross_entropy(x, t.softmax(1)), (7, 5), (7, 5))
add("F.nll_loss", lambda x, t: F.nll_loss(F.log_softmax(x, 1), t), (7, 5), ints(7, high=5))
add("F.bce", lambda x, t: F.binary_cross_entropy(x.sigmoid(), t), (7, 5), lambda: torch.rand(7, 5), rtol=1e-3)
add("F.bce_logits", lambda x, t: F.binary_cross_entropy_with_logits(x, t), (7, 5), positive(7, 5))
add("F.kl_div", lambda x, t: F.kl_div(F.log_softmax(x, 1), F.softmax(t, 1), reduction="batchmean"), (7, 5), (7, 5))
add("F.margin_ranking", lambda x, y: F.margin_ranking_loss(x, y, torch.ones(7)), (7,), (7,))
add("F.hinge_embedding", lambda x: F.hinge_embedding_loss(x, torch.ones(7)), (7,))
add("F.triplet", F.triplet_margin_loss, (7, 5), (7, 5), (7, 5))
add("F.cosine_embedding", lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(7)), (7, 5), (7, 5))
add("F.multilabel_soft", lambda x: F.multilabel_soft_margin_loss(x, torch.ones(7, 5)), (7, 5))
add("F.gaussian_nll", lambda x, y, v: F.gaussian_nll_loss(x, y, v), (7, 5), (7, 5), positive(7, 5))
add("F.ctc", lambda x: F.ctc_loss(x.log_softmax(2), torch.ones(2, 3, dtype=torch.long), torch.full((2,), 9), torch.full((2,), 3)), (9, 2, 5), dynamic=False)

# Reductions.
for _name in "sum mean prod std var amax amin logsumexp nansum nanmean argmax argmin".split():
    _function = getattr(torch, _name)
    _discrete = _name.startswith("arg")
    if _name not in ("amax", "amin", "logsumexp"):
        add(f"{_name}.all", lambda x, f=_function: f(x), (5, 40), gradients=not _discrete)
    for _dim in (0, 1, -1):
        add(f"{_name}.{_dim}", lambda x, f=_function, d=_dim: f(x, dim=d), (5, 40, 3), gradients=not _discrete)
    add(f"{_name}.keepdim", lambda x, f=_function: f(x, dim=1, keepdim=True), (5, 40, 3), gradients=not _discrete)
for _name in "max min median mode nanmedian cummax cummin".split():
    add(f"{_name}.dim", lambda x, f=getattr(torch, _name): tuple(f(x, 1)), (5, 33), gradients=_name not in ("mode",))
add("aminmax", lambda x: tuple(torch.aminmax(x, dim=0)), (5, 33))
add("max.all", lambda x: (x.max(), x.min(), x.median()), (5, 33))
add("any_all", lambda x: (x.any(), x.all(), x.any(0), x.all(1)), bools(5, 33))
add("count_nonzero", lambda x: (x.count_nonzero(), x.count_nonzero(1)), bools(5, 33))
add("var_mean", lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, (0, 1), correction=0)), (5, 33))
add("norms", lambda x: (x.norm(), x.norm(1), x.norm(float("inf"), 1), torch.linalg.vector_norm(x, 3, 0)), (5, 33))
add("linalg_norm", lambda x: (torch.linalg.norm(x), torch.linalg.norm(x, "fro"), torch.linalg.norm(x, 1)), (5, 7))
for _name in "cumsum cumprod logcumsumexp".split():
    add(_name, lambda x, f=getattr(torch, _name): f(x, 1), (5, 17))
add("kthvalue", lambda x: tuple(x.kthvalue(3, 1)), (5, 17))
add("topk", lambda x: tuple(x.topk(4, 1)), (5, 17))
add("sort", lambda x: (*x.sort(1), *x.sort(dim=0, descending=True, stable=True), x.argsort(1)), (5, 17))
add("quantile", lambda x: torch.quantile(x, 0.3, dim=1), (5, 17))
add("histc", lambda x: torch.histc(x, 10, -2, 2), (100,), gradients=False)
add("bincount", lambda x: torch.bincount(x, minlength=12), ints(50), dynamic=False)
add("sum_dtype", lambda x: (x.sum(dtype=torch.float64), x.sum(0, dtype=torch.int64)), ints(5, 6, dtype=torch.int32))
add("mean_half", lambda x: x.mean(), of(torch.bfloat16, 300), rtol=1e-2, atol=1e-2)
add("sum_of_nothing", lambda x: (x.sum(), x.sum(0), x.prod(1), x.mean()), (0, 4), dynamic=False)
add("trace_diag", lambda x: (x.trace(), x.diag(), x.diagonal(1), torch.diag_embed(x), x.tril(), x.triu(1)), (6, 6))
add("cdist", lambda x, y: torch.cdist(x, y), (6, 3), (4, 3))
add("cov", lambda x: torch.cov(x), (4, 10))
add("renorm", lambda x: x.renorm(2, 0, 1.0), (5, 7))
add("dist", lambda x, y: torch.dist(x, y), (5,), (5,))
add("diff", lambda x: torch.diff(x, dim=1), (5, 17))
add("trapezoid", lambda x: torch.trapezoid(x, dx=0.5), (5, 17))
add("searchsorted", lambda x, v: torch.searchsorted(x.sort().values, v), (20,), (7,), gradients=False)
add("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), (20,), gradients=False)

# Views, shapes, joins.
add("views", lambda x: (x.t(), x.view(-1), x[1:], x[:, ::2], x.unsqueeze(0), x.expand(3, 6, 8)), (6, 8))
add("views_computed", lambda x: (x.permute(2, 0, 1) + 1, x.reshape(-1, 4) * 2, x.flatten(1).sin()), (2, 3, 4))
add("unflatten", lambda x: x.unflatten(1, (2, -1)) + 1, (3, 8))
add("narrow", lambda x: x.narrow(1, 2, 3) * x.select(1, 0)[:, None], (4, 8))
add("split", lambda x: [each * 2 for each in x.split(3)] + list(x.chunk(2, 1)), (7, 8))
add("unbind", lambda x: sum(x.unbind(1)), (4, 5))
add("cat", lambda x, y: (torch.cat([x, y]), torch.stack([x, y], 1), torch.cat([x, x * 2], 1)), (4, 5), (4, 5))
add("cat_empty", lambda x: torch.cat([x, x.new_empty(0, 5)]), (4, 5))
add("cat_of_types", lambda x, y: torch.cat([x, y]), (4, 5), ints(4, 5))
add("hstack", lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y]), torch.dstack([x, y])), (4, 5), (4, 5))
add("tile", lambda x: (x.tile(2, 3), x.repeat(2, 1, 1), x.repeat_interleave(2, 1)), (4, 5))
add("flip_roll", lambda x: (x.flip(0), x.roll(2, 1), x.rot90(), x.fliplr()), (4, 5))
add("pad", lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, -1, 2, 0), value=3.0)), (2, 3, 6, 7))
add("pad_modes", lambda x: (F.pad(x, (1, 2), mode="reflect"), F.pad(x, (1, 2), mode="replicate"), F.pad(x, (1, 2), mode="circular")), (2, 3, 7))
add("pad_2d", lambda x: (F.pad(x, (1, 2, 2, 1), mode="reflect"), F.pad(x, (1, 2, 2, 1), mode="replicate")), (2, 3, 6, 7))
add("unfold", lambda x: x.unfold(1, 3, 2).sum(-1), (4, 9))
add("F.unfold", lambda x: F.unfold(x, 2, 1, 1), (2, 3, 5, 6))
add("F.fold", lambda x: F.fold(x, (4, 5), 2), (2, 12, 12), dynamic=False)
add("as_strided", lambda x: torch.as_strided(x, (3, 3), (2, 1), 1) * 2, (20,), dynamic=False)
add("movedim", lambda x: torch.movedim(x, 0, -1).contiguous() + torch.swapaxes(x, 0, 0).sum(), (2, 3, 4))
add("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), (4,), (5,))
add("cartesian", lambda x, y: torch.cartesian_prod(x, y), (4,), (5,))
add("broadcast", lambda x, y: torch.broadcast_tensors(x, y), (4, 1), (5,))
add("atleast", lambda x: (torch.atleast_2d(x), torch.atleast_3d(x)), (4,))
add("block_diag", lambda x, y: torch.block_diag(x, y), (2, 3), (3, 2))
add("kron", lambda x, y: torch.kron(x, y), (2, 3), (3, 2))
add("channels_last", lambda x: (x.to(memory_format=torch.channels_last) + 1, x.contiguous(memory_format=torch.channels_last)), (2, 3, 4, 5))
add("pixel_shuffle", lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2) + 1, 2), (2, 8, 3, 3))
add("channel_shuffle", lambda x: F.channel_shuffle(x, 2), (2, 4, 3, 3))
add("expand_inputs", lambda x: x.expand(4, 5) + x.expand(4, 5).contiguous(), (5,))
add("squeeze", lambda x: (x.squeeze() + 1, x.squeeze(0), x[None, ..., None]), (1, 4, 1))

# Indexing.
add("index", lambda x, i: (x[i], x[:, i[:3]], x[i, i], x[i][:, None]), (6, 6), ints(4, high=6))
add("index_negative", lambda x: (x[-1], x[..., -2:], x[torch.tensor([0, -1])]), (6, 6))
add("index_bool", lambda x: x[x > 0], (6, 6), gradients=False)
add("index_put", lambda x, i, v: x.index_put((i,), v), (6, 5), ints(3, high=6), (3, 5))
add("index_put_accumulate", lambda x, i, v: x.index_put((i,), v, accumulate=True), (6, 5), ints(9, high=6), (9, 5))
add("index_select", lambda x, i: x.index_select(1, i) * 2, (4, 6), ints(3, high=6))
add("index_add", lambda x, i, v: x.index_add(0, i, v, alpha=2), (6, 5), ints(4, high=6), (4, 5))
add("index_copy", lambda x, v: x.index_copy(0, torch.tensor([0, 2]), v), (6, 5), (2, 5))
add("index_fill", lambda x: x.index_fill(0, torch.tensor([0, 2]), 9.0), (6, 5))
add("gather", lambda x, i: x.gather(1, i), (4, 6), ints(4, 3, high=6))
add("scatter", lambda x, i, v: (x.scatter(1, i[:, :1], v[:, :1]), x.scatter_add(1, i, v), x.scatter(1, i[:, :1], 2.0)), (4, 6), ints(4, 3, high=6), (4, 3))
add("scatter_reduce", lambda x, i, v: (x.scatter_reduce(1, i, v, "sum"), x.scatter_reduce(1, i, v, "amax"), x.scatter_reduce(1, i, v, "mean", include_self=False)), (4, 6), ints(4, 3, high=6), (4, 3), gradients=False)
add("take", lambda x, i: (x.take(i), torch.take_along_dim(x, i[:4, None] % 6, 1)), (4, 6), ints(9, high=24))
add("put", lambda x: x.put(torch.tensor([0, 3]), torch.tensor([1.0, 2.0])), (4, 6))
add("masked_select", lambda x, m: x.masked_select(m) * 2, (4, 6), bools(4, 6), gradients=False)
add("masked_scatter", lambda x, m, v: x.masked_scatter(m, v), (4, 6), bools(4, 6), (4, 6))
add("nonzero", lambda x: (x > 0).nonzero(), (4, 6), gradients=False)
add("argwhere", lambda x: torch.argwhere(x > 0), (4, 6), gradients=False)
add("unique", lambda x: torch.unique(x), ints(20))
add("one_hot", lambda x: F.one_hot(x, 10), ints(20))
add("embedding", lambda w, i: F.embedding(i, w), (10, 4), ints(3, 5))
add("embedding_padding", lambda w, i: F.embedding(i, w, padding_idx=0), (10, 4), ints(3, 5))
add("embedding_bag", lambda w, i: F.embedding_bag(i, w, mode="mean"), (10, 4), ints(3, 5))
add("embedding_bag_offsets", lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 2]), mode="sum"), (10, 4), ints(5))
add("slice_scatter", lambda x, y: torch.slice_scatter(x, y, 1, 0, 2) + torch.select_scatter(x, y[:, 0], 1, 3), (4, 6), (4, 2))
add("diagonal_scatter", lambda x: torch.diagonal_scatter(x, torch.ones(4)), (4, 6))
add("triu_indices", lambda x: x[tuple(torch.triu_indices(4, 4))], (4, 4))
add("tensor_split", lambda x: torch.tensor_split(x, 3), (10, 2))

# Creation.
add("creation", lambda x: (torch.zeros(3, 4), torch.ones(2), torch.full((2, 2), 1.5), torch.eye(3), x.new_zeros(3), torch.zeros_like(x)), (2, 3), gradients=False)
add("arange", lambda x: (torch.arange(10), torch.arange(1, 10, 3), torch.arange(0, 1, 0.1), torch.linspace(0, 1, 5), torch.logspace(0, 1, 5)), (2,), gradients=False)
add("arange_of_size", lambda x: (torch.arange(x.shape[0]), torch.arange(x.shape[0], dtype=torch.float32) * 0.5, torch.arange(x.shape[1] / 2)), (6, 5), gradients=False)
add("fill_with_size", lambda x: (torch.full((2, 3), x.shape[0]), x.fill_(1.0) * x.shape[1], x + x.shape[0] ** 0.5), (6, 5), gradients=False)
add("tensor_of_size", lambda x: x * torch.tensor(x.shape[0]) + torch.tensor([1.0, 2.0]).sum(), (6, 5))
add("tensor_constant", lambda x: x + torch.tensor([1.0, 2.0, 3.0]), (6, 3))
add("windows", lambda x: x * torch.hann_window(8) + torch.hamming_window(8) + torch.bartlett_window(8), (8,))
add("tril_mask", lambda x: x.masked_fill(torch.ones(x.shape[-1], x.shape[-1]).tril() == 0, float("-inf")).softmax(-1), (2, 5, 5))
add("empty_written", lambda x: torch.empty(x.shape[0], 2).fill_(3.0) + torch.empty_like(x[:, :2]).zero_(), (6, 5), gradients=False)
add("scalar_tensor", lambda x: x + torch.scalar_tensor(2.0) * torch.tensor(3), (4,))
add("vander", lambda x: torch.vander(x, 4), (5,), gradients=False)
add("complex_of", lambda x: torch.complex(x, x).abs(), (5,))

# Matrices.
add("matmul", lambda x, y: (x @ y, torch.matmul(x, y[:, 0])), (7, 5), (5, 6))
add("bmm", lambda x, y: (torch.bmm(x, y), x @ y[0]), (3, 7, 5), (3, 5, 6))
add("addmm", lambda x, y, z: (torch.addmm(z, x, y, beta=0.5, alpha=2), torch.addmv(z[:, 0], x, y[:, 0])), (7, 5), (5, 6), (7, 6))
add("baddbmm", lambda x, y, z: torch.baddbmm(z, x, y, beta=0.5), (3, 7, 5), (3, 5, 6), (3, 7, 6))
add("einsum", lambda x, y: (torch.einsum("ij,jk->ik", x, y), torch.einsum("ij,ij->", x, x), torch.einsum("ij->ji", x), torch.einsum("ij,kl->ijkl", x, y)), (4, 5), (5, 6))
add("einsum_batch", lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q, k), (2, 3, 4, 5), (2, 3, 6, 5))
add("tensordot", lambda x, y: torch.tensordot(x, y, dims=([1], [0])), (4, 5), (5, 6))
add("outer", lambda x, y: (torch.outer(x, y), torch.dot(x, x), torch.vdot(x, x), torch.inner(x, x)), (5,), (6,))
add("linear", lambda x, w, b: F.linear(x, w, b).relu(), (2, 7, 5), (6, 5), (6,))
add("bilinear", lambda x, y, w: F.bilinear(x, y, w), (7, 3), (7, 4), (5, 3, 4))
add("chain_matmul", lambda x, y, z: torch.linalg.multi_dot([x, y, z]), (4, 5), (5, 6), (6, 2))
add("inverse", lambda x: torch.linalg.inv(x @ x.T + 5 * torch.eye(4)), (4, 4), rtol=1e-3, atol=1e-4)
add("cholesky", lambda x: torch.linalg.cholesky(x @ x.T + 5 * torch.eye(4)), (4, 4), rtol=1e-3, atol=1e-4)
add("solve", lambda x, y: torch.linalg.solve(x @ x.T + 5 * torch.eye(4), y), (4, 4), (4, 2), rtol=1e-3, atol=1e-4)
add("det", lambda x: torch.linalg.det(x @ x.T + torch.eye(4)), (4, 4), rtol=1e-3, atol=1e-3)
add("eigh", lambda x: torch.linalg.eigvalsh(x @ x.T), (4, 4), rtol=1e-3, atol=1e-4)
add("svdvals", lambda x: torch.linalg.svdvals(x), (4, 6), rtol=1e-3, atol=1e-4)
add("qr", lambda x: torch.linalg.qr(x)[1].abs(), (6, 4), gradients=False, rtol=1e-3, atol=1e-4)
add("matrix_power", lambda x: torch.linalg.matrix_power(x, 3), (4, 4), rtol=1e-3)
add("matrix_exp", lambda x: torch.matrix_exp(x), (4, 4), rtol=1e-3, atol=1e-4)
add("cross", lambda x, y: torch.linalg.cross(x, y), (5, 3), (5, 3))
add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (2, 3, 9, 8), (2, 3, 9, 8), (2, 3, 9, 8))
add("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 3, 9, 8), (2, 3, 9, 8), (2, 3, 9, 8))
add("attention_mask", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), (2, 3, 9, 8), (2, 3, 9, 8), (2, 3, 9, 8), (9, 9))
add("fft", lambda x: (torch.fft.rfft(x).abs(), torch.fft.irfft(torch.fft.rfft(x), n=16)), (4, 16), rtol=1e-3, atol=1e-4)
add("stft", lambda x: torch.stft(x, 16, return_complex=True, window=torch.hann_window(16)).abs(), (2, 64), gradients=False, dynamic=False, rtol=1e-3, atol=1e-4)
add("conv1d_of", lambda x, w: F.conv1d(x, w, padding="same"), (2, 3, 11), (4, 3, 3))
add("conv2d_of", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), (2, 3, 11, 9), (4, 3, 3, 3), (4,))
add("conv2d_groups", lambda x, w: F.conv2d(x, w, groups=2, dilation=2), (2, 4, 11, 9), (6, 2, 3, 3))
add("conv3d_of", lambda x, w: F.conv3d(x, w), (1, 2, 5, 6, 7), (3, 2, 2, 2, 2))
add("conv_transpose", lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), (2, 3, 5, 6), (3, 4, 3, 3))

# Pooling, images, normalisation.
add("max_pool", lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool1d(x[0], 2)), (2, 3, 8, 9))
add("max_pool_indices", lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 8, 9))
add("avg_pool", lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool1d(x[0], 2)), (2, 3, 8, 9))
add("adaptive_pool", lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 3)), F.adaptive_max_pool2d(x, 2)), (2, 3, 8, 9))
add("lp_pool", lambda x: F.lp_pool2d(x.abs() + 0.1, 2, 2), (2, 3, 8, 8))
add("max_unpool", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (2, 3, 8, 8))
for _mode in "nearest bilinear bicubic area nearest-exact".split():
    add(f"interpolate.{_mode}", lambda x, m=_mode: F.interpolate(x, scale_factor=2, mode=m), (2, 3, 5, 6), rtol=1e-3, atol=1e-4)
add("interpolate.fraction", lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest"), (2, 3, 5, 6))
add("interpolate.size", lambda x: F.interpolate(x, size=(7, 8), mode="bilinear", align_corners=True), (2, 3, 5, 6), rtol=1e-3, atol=1e-4)
add("interpolate.linear", lambda x: F.interpolate(x, size=9, mode="linear"), (2, 3, 5), rtol=1e-3, atol=1e-4)
add("grid_sample", lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (2, 3, 5, 6), (2, 4, 4, 2), rtol=1e-3, atol=1e-4)
add("affine_grid", lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=False), (2, 2, 3), rtol=1e-3, atol=1e-4)
add("layer_norm", lambda x, w, b: F.layer_norm(x, (9,), w, b), (5, 9), (9,), (9,))
add("rms_norm", lambda x, w: F.rms_norm(x, (9,), w), (5, 9), (9,))
add("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 5, 5), (4,), (4,))
add("instance_norm", lambda x: F.instance_norm(x), (3, 4, 5, 5))
add("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), (3, 4, 5, 5))
add("local_response_norm", lambda x: F.local_response_norm(x, 2), (3, 4, 5, 5))
add("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), (4, 5), (4, 1))

# Writes.
def _write(x, y):
    x.add_(y)
    return x * 2


def _write_slice(x, y):
    x[1:3] = y[1:3] * 2
    x[:, 0] += 1
    return x.sum()


def _write_view(x):
    y = x.view(-1)
    y[0] = 5.0
    y.mul_(2)
    return y


def _write_fresh(x):
    y = torch.zeros(4, 5)
    y[0] = x[0]
    y.copy_(y + 1)
    y = y.relu() + 1
    y.clamp_(max=3)
    return y


def _write_twice(x):
    x.sin_()
    y = x + 1
    x.cos_()
    return y, x


def _write_index(x, i):
    x[i] = 0.0
    x[i, 0] += 1.0
    return x


def _write_out(x):
    out = torch.empty(4, 5)
    torch.add(x, 1, out=out)
    return out


add("write", _write, (4, 5), (4, 5), gradients=False)
add("write_slice", _write_slice, (4, 5), (4, 5), gradients=False)
add("write_view", _write_view, (4, 5), gradients=False)
add("write_fresh", _write_fresh, (4, 5))
add("write_twice", _write_twice, (4, 5), gradients=False)
add("write_index", _write_index, (4, 5), ints(2, high=4), gradients=False)
add("write_out", _write_out, (4, 5), gradients=False)
add("write_transposed", lambda x: x.t().add_(1).sum(), (4, 5), gradients=False)
add("write_copy", lambda x, y: x.copy_(y), (4, 5), ints(5), gradients=False)
add("write_bool", lambda x: x.logical_not_(), bools(5), gradients=False)
add("write_resized", lambda x: torch.empty(0).resize_as_(x).fill_(2.0), (4, 5), gradients=False)
add("returns_input", lambda x: (x, x, x[0]), (4, 5))
add("returns_constants", lambda x: (x + 1, 3, None, "text", x.shape[0], [x * 2, {"k": x - 1}]), (4, 5))
add("nothing_is_used", lambda x, y: x + 1, (4, 5), (3,))
add("detach", lambda x: (x.detach() * 2, x * 2, x.detach()), (4, 5))


# Numbers and sizes.
def _numbers(x):
    n, m = x.shape
    return x[: n // 2], x.view(m, n), x.new_full((int(math.sqrt(n * m)),), n / m), x * (n % 3) * max(n, m)


def _sizes(x):
    y = torch.cat([x, x])
    return y.view(2, x.shape[0], -1).mean(0), x.size(0) * x.size(1), y.numel(), x.stride()


add("numbers", _numbers, (6, 8), gradients=False)
add("sizes", _sizes, (6, 8))
add("floor_of_size", lambda x: x[: math.floor(x.shape[0] * 0.7)] * round(x.shape[0] / 3), (6, 8))
add("float_argument", lambda x, s: x * s + s, (6, 8), 2.5)
add("int_argument", lambda x, n: x.repeat(n, 1) * n, (6, 8), 3)
add("float_power", lambda x, s: (x.abs() + 1) ** s, (6, 8), 1.5)
add("float_compare", lambda x, s: x * 2 if s > 1 else x * 3, (6, 8), 1.5)
add("bool_argument", lambda x, b: x * 2 if b else x * 3, (6, 8), True)
add("list_argument", lambda xs: torch.stack(xs).sum(0), lambda: [r(4), r(4)], gradients=False)
add("dict_argument", lambda d: d["a"] * d["b"], lambda: {"a": r(4), "b": r(4)}, gradients=False)
add("zero_dim", lambda x: (x + 1, x.unsqueeze(0), x.expand(3)), ())
add("one_element", lambda x: (x.sum(0), x.softmax(0), x.view(())), (1,))
add("item", lambda x: x * x.sum().item(), (4,), gradients=False)
add("size_one", lambda x, y: x * y, (1, 5), (4, 1))
add("empty_rows", lambda x: (x * 2, x.sum(1), x @ torch.ones(5, 3)), (0, 5), dynamic=False)


# Random numbers; the generator is seeded before each run.
add("dropout", lambda x: F.dropout(x, 0.4), (20, 20))
add("dropout_2d", lambda x: F.dropout2d(x, 0.4), (2, 3, 4, 4))
add("alpha_dropout", lambda x: F.alpha_dropout(x, 0.4, training=True), (20, 20))
add("feature_dropout", lambda x: F.feature_alpha_dropout(x, 0.4, training=True), (4, 5, 3))
add("rand", lambda x: (torch.rand(5), torch.randn(3, 4), torch.rand_like(x), torch.randn_like(x) * x), (4, 5), gradients=False)
add("randint", lambda x: (torch.randint(0, 10, (5,)), torch.randperm(7), x + 1), (4, 5), gradients=False)
add("bernoulli", lambda x: (torch.bernoulli(x.sigmoid()), torch.empty_like(x).bernoulli_(0.3)), (4, 5), gradients=False)
add("normal", lambda x: (torch.normal(0.0, 1.0, (4,)), torch.empty_like(x).normal_(), torch.empty_like(x).uniform_(1, 2)), (4, 5), gradients=False)
add("multinomial", lambda x: torch.multinomial(x.abs() + 0.1, 3), (4, 5), gradients=False)
add("exponential", lambda x: torch.empty_like(x).exponential_(), (4, 5), gradients=False)
add("gumbel", lambda x: F.gumbel_softmax(x, hard=True), (4, 5), gradients=False)
add("rrelu_training", lambda x: F.rrelu(x, training=True), (4, 5))


# Autograd's corners.
class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 + x * 0


def _no_grad(x):
    with torch.no_grad():
        y = x.exp()
    return x * y


def _inside_grad(x):
    with torch.no_grad(), torch.enable_grad():
        y = x.exp()
    return x * y


def _autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ y).float().relu()


def _checkpoint(x):
    return torch.utils.checkpoint.checkpoint(lambda t: t.sin().cos(), x, use_reentrant=False)


add("custom_function", lambda x: _Twice.apply(x).sin(), (4, 5))
add("no_grad", _no_grad, (4, 5))
add("enable_grad", _inside_grad, (4, 5))
add("autocast", _autocast, (4, 5), (5, 6), rtol=2e-2, atol=2e-2)
add("checkpoint", _checkpoint, (4, 5))
add("detach_part", lambda x: (x * x.detach()).sum(), (4, 5))
add("requires_grad_of_part", lambda x, y: (x.detach() * y, x + 1), (4, 5), (4, 5))
add("log_api_usage", lambda x: (torch._C._log_api_usage_once("pyrite.tests"), x + 1)[1], (4, 5))
add("overload", lambda x: torch.ops.aten.cat.default([x, torch.ops.aten.relu.default(x)], 1), (4, 5))
add("checked", lambda x: (torch._check(x.shape[0] > 1), x * 2)[1], (4, 5))
add("vmap", lambda x, y: torch.vmap(torch.dot)(x, y), (4, 5), (4, 5))
add("func_grad", lambda x: torch.func.grad(lambda t: t.sin().sum())(x), (4, 5), gradients=False)
add("jvp", lambda x: torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),)), (4, 5), gradients=False)
add("cond", lambda x: torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,)), (4, 5), gradients=False)
add("suppressed", lambda x: _suppressed(x), (4, 5))


def _suppressed(x):
    with contextlib.suppress(ValueError):
        return x * 2


# Modules.
def module(name, make, *shapes, **settings):
    """A case that runs a module; its parameters are drawn from a fixed seed."""

    def call(*arguments):
        return call.module(*arguments)

    torch.manual_seed(7)
    call.module = make()
    add(name, call, *shapes, **settings)
    CASES[name].function = call.module


_n = torch.nn
module("nn.linear", lambda: _n.Sequential(_n.Linear(5, 8), _n.ReLU(), _n.Linear(8, 2)), (4, 5))
module("nn.batch_norm", lambda: _n.Sequential(_n.Conv2d(3, 4, 3), _n.BatchNorm2d(4), _n.ReLU()), (2, 3, 7, 7))
module("nn.batch_norm_eval", lambda: _n.Sequential(_n.Conv2d(3, 4, 3), _n.BatchNorm2d(4)).eval(), (2, 3, 7, 7))
module("nn.layer_norm", lambda: _n.LayerNorm(9), (4, 9))
module("nn.rms_norm", lambda: _n.RMSNorm(9), (4, 9))
module("nn.group_norm", lambda: _n.GroupNorm(2, 4), (2, 4, 5))
module("nn.instance_norm", lambda: _n.InstanceNorm2d(4, affine=True, track_running_stats=True), (2, 4, 5, 5))
module("nn.prelu", lambda: _n.PReLU(4), (2, 4, 5))
module("nn.embedding", lambda: _n.Sequential(_n.Embedding(10, 4), _n.Linear(4, 3)), ints(3, 5))
module("nn.embedding_bag", lambda: _n.EmbeddingBag(10, 4), ints(3, 5))
module("nn.lstm", lambda: _n.LSTM(5, 6, batch_first=True), (2, 7, 5), rtol=1e-3)
module("nn.gru", lambda: _n.GRU(5, 6, bidirectional=True), (7, 2, 5), rtol=1e-3)
module("nn.rnn_cell", lambda: _n.LSTMCell(5, 6), (2, 5))
module("nn.attention", lambda: _n.MultiheadAttention(8, 2, batch_first=True), (2, 5, 8), (2, 5, 8), (2, 5, 8), rtol=1e-3)
module("nn.transformer", lambda: _n.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8), rtol=1e-3)
module("nn.transformer_eval", lambda: _n.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 5, 8), rtol=1e-3)
module("nn.decoder", lambda: _n.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8), (2, 6, 8), rtol=1e-3)
module("nn.conv_transpose", lambda: _n.ConvTranspose1d(3, 4, 3, stride=2), (2, 3, 7))
module("nn.upsample", lambda: _n.Sequential(_n.Conv2d(3, 4, 1), _n.Upsample(scale_factor=2, mode="bilinear")), (2, 3, 5, 5), rtol=1e-3, atol=1e-4)
module("nn.dropout_eval", lambda: _n.Sequential(_n.Linear(5, 5), _n.Dropout(0.5)).eval(), (4, 5))
module("nn.bilinear", lambda: _n.Bilinear(3, 4, 5), (6, 3), (6, 4))
module("nn.spectral_norm", lambda: _n.utils.parametrizations.spectral_norm(_n.Linear(5, 4)).eval(), (3, 5), rtol=1e-3)
module("nn.weight_norm", lambda: _n.utils.parametrizations.weight_norm(_n.Linear(5, 4)), (3, 5))
module("nn.softmax2d", lambda: _n.Softmax2d(), (2, 3, 4, 4))
module("nn.pixel_shuffle", lambda: _n.PixelShuffle(2), (2, 4, 3, 3))
module("nn.fold", lambda: _n.Unfold(2), (2, 3, 4, 4))
module("nn.adaptive_softmax", lambda: _n.CosineSimilarity(), (4, 5), (4, 5))
module("nn.cross_entropy", lambda: _n.CrossEntropyLoss(), (4, 5), ints(4, high=5))

# Sizes as numbers.
add(
    "filled_by_sizes",
    lambda x: (x.masked_fill(x > 0, x.shape[0]), x.new_full((2,), x.shape[0]), torch.full_like(x, x.shape[1]), torch.full((2, x.shape[0]), x.shape[0])),
    (5, 7),
    gradients=False,
)
