"""Small functions of tensors, by subject: what a compiler for PyTorch has to get right one operator, view or write at a time.

`FUNCTIONS` has for each name the function and what makes its inputs for a size. Floats among the inputs get gradients.
"""

import math

import torch
import torch.nn.functional as F

FUNCTIONS = {}


def r(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype)


def u(*shape, dtype=torch.float32):
    """Numbers above zero."""
    return torch.rand(shape, dtype=dtype) + 0.1


def i(high, *shape, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def b(*shape):
    return torch.rand(shape) < 0.5


def add(subject, inputs, **functions):
    for name, function in functions.items():
        assert (subject, name) not in FUNCTIONS
        FUNCTIONS[subject, name] = function, inputs


def one(n):
    return (r(n, 19),)


def two(n):
    return r(n, 19), r(n, 19)


def positive(n):
    return (u(n, 19),)


def whole(n):
    return i(9, n, 19, low=-9), i(9, n, 19, low=1)


def image(n):
    return (r(2, 3, n + 4, n + 5),)


# Pointwise.

for _name in (
    "abs acos asin asinh atan ceil cos cosh deg2rad digamma erf erfc exp exp2 expm1 floor frac isfinite isinf isnan lgamma "
    "logical_not logit neg positive rad2deg relu round sgn sigmoid sign signbit sin sinc sinh square tan tanh trunc"
).split():
    add("unary", one if _name not in ("acos", "asin", "logit") else lambda n: (torch.rand(n, 19) * 0.9,), **{_name: getattr(torch, _name)})
for _name in "log log10 log1p log2 reciprocal rsqrt sqrt acosh".split():
    add("unary", lambda n: (u(n, 19) + 1,), **{_name: getattr(torch, _name)})
for _name in "relu6 silu gelu elu selu celu softplus softsign hardswish hardsigmoid hardtanh leaky_relu logsigmoid mish tanhshrink softshrink hardshrink".split():
    add("activation", one, **{_name: getattr(F, _name)})
for _name in "add sub mul div maximum minimum atan2 fmax fmin hypot logaddexp copysign eq ne lt le gt ge".split():
    add("binary", two, **{_name: getattr(torch, _name)})
for _name in "bitwise_and bitwise_or bitwise_xor floor_divide remainder fmod gcd lcm div".split():
    add("integers", whole, **{_name: getattr(torch, _name)})
add(
    "integers",
    whole,
    shift_left=lambda x, y: x << (y % 8),
    shift_right=lambda x, y: x >> (y % 8),
    negative_floor=lambda x, y: (-x) // y,
    mixed=lambda x, y: x * 2.5 + y,
    power=lambda x, y: x**2 - y**3,
    trunc=lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    both=lambda x, y: (x // y) * y + x % y,
    narrow=lambda x, y: (x.to(torch.int8) * 100).to(torch.int32) + y,
    bytes=lambda x, y: x.to(torch.uint8) + y.to(torch.uint8),
)
add(
    "binary",
    two,
    div_floor=lambda x, y: torch.div(x, y, rounding_mode="floor"),
    div_trunc=lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    remainder=lambda x, y: torch.remainder(x, y.abs() + 1),
    fmod=lambda x, y: torch.fmod(x, y.abs() + 1),
    alpha=lambda x, y: torch.add(x, y, alpha=3) - torch.sub(x, y, alpha=0.5),
    lerp=lambda x, y: torch.lerp(x, y, 0.3),
    addcmul=lambda x, y: torch.addcmul(x, y, y, value=0.5),
    addcdiv=lambda x, y: torch.addcdiv(x, y, y * y + 1, value=0.5),
    where=lambda x, y: torch.where(x > y, x, y * 2),
    where_number=lambda x, y: torch.where(x > 0, x, 0.0) + torch.where(y > 0, 1, 2),
    clamp=lambda x, y: x.clamp(-0.5, 0.5) + torch.clamp(y, min=0) + y.clamp(max=0.1),
    clamp_tensor=lambda x, y: torch.clamp(x, torch.minimum(x, y), torch.maximum(x, y) * 0.5),
    chain=lambda x, y: ((x * y).sin() + (x - y).cos()).tanh() * x,
    masked_fill=lambda x, y: x.masked_fill(y > 0, -1.0),
    nan_to_num=lambda x, y: torch.nan_to_num(x / (y * 0)),
    isclose=lambda x, y: torch.isclose(x, y) | torch.isclose(x, x),
    xlogy=lambda x, y: torch.xlogy(x, y.abs() + 1),
    rsub=lambda x, y: 1 - x - torch.rsub(y, 2),
    scalar_first=lambda x, y: 2 / (x.abs() + 1) + 2 ** y,
)
add(
    "broadcast",
    lambda n: (r(n, 1, 7), r(5, 1), r(7), r()),
    all=lambda x, y, z, w: x + y * z - w,
    compare=lambda x, y, z, w: (x > y) & (z < w),
    where=lambda x, y, z, w: torch.where(x > z, y, w),
    expand=lambda x, y, z, w: x.expand(-1, 5, 7) + y.expand(5, 7),
    outer=lambda x, y, z, w: torch.outer(z, z) + w,
    tensors=lambda x, y, z, w: torch.broadcast_tensors(x, y, z)[1] * 2,
)
add(
    "power",
    positive,
    half=lambda x: x**0.5,
    minus=lambda x: x**-1.5,
    cube=lambda x: x**3,
    tensor=lambda x: x**x,
    base=lambda x: torch.pow(2.0, x),
    float_power=lambda x: torch.float_power(x, 3),
    rsqrt=lambda x: x ** (-0.5) * torch.rsqrt(x),
)

# Types.

for _dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8, torch.bool):
    _name = str(_dtype).removeprefix("torch.")
    add("types", lambda n: (r(n, 33) * 3,), **{f"to_{_name}": lambda x, dtype=_dtype: x.abs().to(dtype)})
    if _dtype.is_floating_point:
        add("types", lambda n, dtype=_dtype: (r(n, 33, dtype=dtype), r(33, dtype=dtype)), **{f"sum_{_name}": lambda x, y: (x * y + 1).sum(1)})
        add("types", lambda n, dtype=_dtype: (r(n, 33, dtype=dtype),), **{f"softmax_{_name}": lambda x: F.softmax(x, 1)})
add(
    "types",
    lambda n: (r(n, 18), i(7, n, 18), b(n, 18)),
    promote=lambda x, k, m: x + k * m,
    bool_sum=lambda x, k, m: m.sum() + k.sum(),
    compare=lambda x, k, m: (x > k).to(torch.float32) * m,
    view_dtype=lambda x, k, m: x.detach().view(torch.int32) & 0xFF,
    int_mean=lambda x, k, m: k.float().mean(0) + m.double().mean(0),
    type_as=lambda x, k, m: k.type_as(x) * x,
    true_div=lambda x, k, m: k / 3 + k / (k + 1),
    result=lambda x, k, m: torch.tensor(2.5) * k + torch.tensor(3) * x,
)

# Reductions.

for _name in "sum mean prod amax amin std var logsumexp argmax argmin median any all count_nonzero norm".split():
    for _dim in (0, 1, -1):
        add(
            "reduce",
            lambda n: (r(n, 37, 6),),
            **{f"{_name}_{_dim}".replace("-", "m"): lambda x, name=_name, dim=_dim: getattr(torch, name)(x, dim=dim)},
        )
for _name in "sum mean prod amax amin std var argmax argmin any all norm max min".split():
    add("reduce", lambda n: (r(n, 5, 6) * 0.9,), **{f"{_name}_all": lambda x, name=_name: getattr(torch, name)(x)})
add(
    "reduce",
    lambda n: (r(n, 37, 6),),
    two_dims=lambda x: x.sum((0, 2)) + x.mean((0, 2)),
    keep=lambda x: x - x.mean(1, keepdim=True) * x.amax((0, 1), keepdim=True),
    max_dim=lambda x: tuple(x.max(1)),
    min_dim=lambda x: tuple(x.min(0)),
    var_mean=lambda x: torch.var_mean(x, 1, correction=0),
    std_mean=lambda x: torch.std_mean(x, (0, 2)),
    aminmax=lambda x: torch.aminmax(x, dim=1),
    cumsum=lambda x: x.cumsum(1),
    cumsum_first=lambda x: x.cumsum(0),
    cumprod=lambda x: (x * 0.5).cumprod(2),
    cummax=lambda x: torch.cummax(x, 1),
    logcumsumexp=lambda x: torch.logcumsumexp(x, 1),
    norms=lambda x: x.norm(dim=1) + x.norm(p=1, dim=1) + x.norm(p=float("inf"), dim=1),
    vector_norm=lambda x: torch.linalg.vector_norm(x, 3, (0, 1)),
    nansum=lambda x: torch.nansum(x, 0) + x.nanmean(0),
    chain=lambda x: ((x.exp().sum(2) + 1).log() * x.amax(2)).sum(),
    masked=lambda x: (x * (x > 0)).sum(1) / (x > 0).sum(1).clamp(min=1),
    softmax_manual=lambda x: (x - x.amax(1, keepdim=True)).exp() / (x - x.amax(1, keepdim=True)).exp().sum(1, keepdim=True),
    argmax_keep=lambda x: x.argmax(1, keepdim=True),
    twice=lambda x: x.sum(2).amax(1),
    dtype=lambda x: x.sum(1, dtype=torch.float64),
    median_dim=lambda x: x.median(1).values,
    diff=lambda x: x.diff(dim=1),
    trapezoid=lambda x: torch.trapezoid(x, dim=1),
)
add("reduce", lambda n: (r(n, 1),), one_norm=lambda x: (x * 1e-30).norm(dim=1))

# Views and copies.

add(
    "views",
    lambda n: (r(n, 4, 6),),
    view=lambda x: x.view(x.shape[0], 24) + 1,
    reshape=lambda x: (x.transpose(0, 1).reshape(4, -1) * 2,),
    flatten=lambda x: x.flatten(1).sin(),
    unflatten=lambda x: x.unflatten(2, (2, 3)) * 2,
    permute=lambda x: x.permute(2, 0, 1) + 1,
    transpose=lambda x: x.transpose(1, 2).contiguous() * 2,
    mt=lambda x: x.mT @ x,
    squeeze=lambda x: x.unsqueeze(1).unsqueeze(-1).squeeze(1) * 2,
    slices=lambda x: x[:, 1:3, ::2] + x[:, :2, 1::2],
    negative=lambda x: x[-1] + x[:, -2].sum(),
    select=lambda x: x.select(1, 2) * x[:, 0],
    narrow=lambda x: x.narrow(2, 1, 3).cos(),
    ellipsis=lambda x: x[..., None, 2] + x[0, ..., 1],
    diagonal=lambda x: x.diagonal(0, 1, 2) * 2,
    as_strided=lambda x: x.as_strided((3, 4), (6, 1), 2) + 1,
    unfold=lambda x: x.unfold(2, 3, 2).sum(-1),
    expand=lambda x: x[:, :1].expand(-1, 5, -1) * 2,
    swap=lambda x: torch.swapaxes(x, 0, 2).movedim(0, 1) - 1,
    flip=lambda x: x.flip(0, 2) * 2,
    roll=lambda x: x.roll(2, 1) + x.roll((1, -1), (0, 2)),
    rot90=lambda x: torch.rot90(x, 1, (1, 2)),
    repeat=lambda x: x.repeat(2, 1, 3) + 1,
    tile=lambda x: torch.tile(x, (1, 2)) * 2,
    interleave=lambda x: x.repeat_interleave(3, 1),
    unbind=lambda x: sum(part * k for k, part in enumerate(x.unbind(1))),
    chunk=lambda x: torch.chunk(x, 3, 2)[1] * 2,
    split=lambda x: [part.sum() for part in x.split([1, 3], 1)],
    tensor_split=lambda x: [part + 1 for part in torch.tensor_split(x, 3, 2)],
    tril=lambda x: x.tril() + x.triu(1) * 2,
    contiguous=lambda x: x.transpose(0, 2).contiguous(),
    clone=lambda x: x.clone().transpose(0, 1),
    detach=lambda x: x.detach() * 2 + x,
    view_as=lambda x: x.reshape(-1).view_as(x) * 2,
    size_arithmetic=lambda x: x.reshape(x.shape[0] * 2, x.shape[1] // 2, -1) * x.numel() / x.size(0),
    block_diag=lambda x: torch.block_diag(x[0], x[1]),
    diag_embed=lambda x: torch.diag_embed(x[:, 0]),
    pixel=lambda x: F.pixel_unshuffle(x[None], 2),
    output_view=lambda x: (x[1:], x.T if x.dim() == 2 else x.mT, x),
)
add(
    "cat",
    lambda n: (r(n, 5), r(n, 3), r(n, 5)),
    rows=lambda x, y, z: torch.cat([x, z]) * 2,
    columns=lambda x, y, z: torch.cat([x, y, z], 1).sin(),
    stack=lambda x, y, z: torch.stack([x, z, x + z], 1),
    parts=lambda x, y, z: torch.cat([x.relu(), y.sigmoid(), z[:, :2]], -1),
    hstack=lambda x, y, z: torch.hstack([x, y]) + 1,
    vstack=lambda x, y, z: torch.vstack([x, z]),
    split_again=lambda x, y, z: torch.cat([x, y, z], 1).split([5, 3, 5], 1)[1] * 2,
    empty=lambda x, y, z: torch.cat([x[:0], z, x]),
    mixed=lambda x, y, z: torch.cat([x, torch.ones(x.shape[0], 2), y.double().float()], 1),
    of_reduced=lambda x, y, z: torch.cat([x.sum(1, keepdim=True), y, z.amax(1, keepdim=True)], 1),
    same_twice=lambda x, y, z: torch.cat([x, x, x], 0).sum(0),
    meshgrid=lambda x, y, z: torch.meshgrid(x[0], y[0], indexing="ij"),
)
add(
    "padding",
    lambda n: (r(2, 3, n, 7),),
    constant=lambda x: F.pad(x, (1, 2, 3, 0), value=0.5),
    negative=lambda x: F.pad(x, (-1, 2, 0, -1)),
    reflect=lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"),
    replicate=lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate"),
    circular=lambda x: F.pad(x, (2, 1, 1, 2), mode="circular"),
    then_sum=lambda x: F.pad(x, (1, 1)).sum(-1),
)

# Indexing and scattering.

add(
    "index",
    lambda n: (r(n, 9), i(9, 4), i(n, 6)),
    rows=lambda x, k, j: x[j] * 2,
    columns=lambda x, k, j: x[:, k],
    both=lambda x, k, j: x[j[:4], k],
    mixed=lambda x, k, j: x[j][:, k].sum(),
    negative=lambda x, k, j: x[-1 - j] + x[j],
    select=lambda x, k, j: torch.index_select(x, 1, k).cos(),
    gather=lambda x, k, j: x.gather(1, k.expand(x.shape[0], -1)),
    take=lambda x, k, j: torch.take(x, k) + torch.take_along_dim(x, k[None].expand(x.shape[0], -1), 1).sum(),
    embedding=lambda x, k, j: F.embedding(j, x) + 1,
    one_hot=lambda x, k, j: F.one_hot(k, 9).float() @ x.t(),
    scatter=lambda x, k, j: torch.zeros_like(x).scatter(0, j[:, None].expand(-1, 9)[:1], x[:1]),
    scatter_add=lambda x, k, j: torch.zeros(x.shape[0], 9).scatter_add(0, j[:, None].expand(-1, 9), x[j]),
    scatter_reduce=lambda x, k, j: torch.zeros(9).scatter_reduce(0, k, x[0, :4], "amax", include_self=False),
    index_add=lambda x, k, j: x.index_add(1, k, x[:, :4], alpha=2),
    index_copy=lambda x, k, j: x.index_copy(0, j[:1], x[:1] * 2),
    index_fill=lambda x, k, j: x.index_fill(1, k, 3.0),
    index_put=lambda x, k, j: x.index_put((j[:4], k), x[0, :4], accumulate=True),
    masked_select=lambda x, k, j: x[x > 0].sum(),
    masked_scatter=lambda x, k, j: x.masked_scatter(x > 0, x.abs() + 1),
    bool_put=lambda x, k, j: torch.where(x > 0, x, x * 0.1)[:, k],
    nonzero=lambda x, k, j: (x > 0).nonzero().sum(),
    setitem=lambda x, k, j: set_rows(x * 1, j, 2.0),
    setitem_slice=lambda x, k, j: set_columns(x * 1),
    setitem_mask=lambda x, k, j: set_masked(x * 1),
    bucketize=lambda x, k, j: torch.bucketize(x.detach(), torch.linspace(-1, 1, 5)),
    searchsorted=lambda x, k, j: torch.searchsorted(torch.linspace(-1, 1, 7), x.detach(), right=True),
    diagonal_scatter=lambda x, k, j: torch.diagonal_scatter(x[:5, :5], x[0, :5]),
    select_scatter=lambda x, k, j: torch.select_scatter(x, x[:, 0], 1, 3),
    slice_scatter=lambda x, k, j: torch.slice_scatter(x, x[:, :3], 1, 2, 8, 2),
)


def set_rows(x, rows, value):
    x[rows] = value
    return x


def set_columns(x):
    x[:, 1:4] = x[:, 5:8]
    x[0] += 1
    return x


def set_masked(x):
    x[x > 0] = 0.0
    return x * 2


# Sorting.

add(
    "sort",
    lambda n: (torch.randperm(n * 13).float().reshape(n, 13),),
    sort=lambda x: torch.sort(x, 1),
    descending=lambda x: torch.sort(x, 0, descending=True),
    stable=lambda x: torch.sort((x % 3), 1, stable=True),
    argsort=lambda x: torch.argsort(x, -1),
    topk=lambda x: torch.topk(x, 3, 1),
    smallest=lambda x: torch.topk(x, 2, 0, largest=False),
    kthvalue=lambda x: torch.kthvalue(x, 3, 1),
    quantile=lambda x: torch.quantile(x, 0.3, dim=1),
    unique=lambda x: torch.unique(x % 5),
    msort=lambda x: torch.msort(x),
    mode=lambda x: torch.mode(torch.zeros_like(x), 1).values,
)

# Networks.

add(
    "pool",
    image,
    max=lambda x: F.max_pool2d(x, 2),
    max_padded=lambda x: F.max_pool2d(x, 3, 2, 1),
    max_dilated=lambda x: F.max_pool2d(x, 2, 1, 0, 2),
    max_ceil=lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    max_indices=lambda x: F.max_pool2d(x, 2, return_indices=True),
    avg=lambda x: F.avg_pool2d(x, 2),
    avg_padded=lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    avg_ceil=lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True, divisor_override=5),
    adaptive=lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    adaptive_one=lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
    adaptive_max=lambda x: F.adaptive_max_pool2d(x, 3),
    one_dim=lambda x: F.max_pool1d(x[0], 2) + F.avg_pool1d(x[0], 2),
    adaptive_one_dim=lambda x: F.adaptive_max_pool1d(x[0], 3) + F.adaptive_avg_pool1d(x[0], 3),
    three_dims=lambda x: F.avg_pool3d(x[None], 2) + F.max_pool3d(x[None], 2),
    lp=lambda x: F.lp_pool2d(x.abs() + 1, 2, 2),
)
add(
    "resample",
    image,
    nearest=lambda x: F.interpolate(x, scale_factor=2),
    bilinear=lambda x: F.interpolate(x, size=(9, 7), mode="bilinear"),
    corners=lambda x: F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=True),
    bicubic=lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
    shuffle=lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
    channel_shuffle=lambda x: F.channel_shuffle(x.repeat(1, 2, 1, 1), 2),
    grid=lambda x: F.grid_sample(x, torch.tanh(x[:, :2].permute(0, 2, 3, 1)), align_corners=False),
    unfold=lambda x: F.unfold(x, 2, 1, 1),
    unfold_stride=lambda x: F.unfold(x, (3, 2), stride=2),
    fold=lambda x: F.fold(F.unfold(x, 2), x.shape[2:], 2),
)
add(
    "convolution",
    lambda n: (r(2, 4, n + 3, n + 4), r(6, 4, 3, 3), r(6), r(4, 1, 3, 3), r(4, 6, 2, 2)),
    plain=lambda x, w, b, d, t: F.conv2d(x, w, b),
    padded=lambda x, w, b, d, t: F.conv2d(x, w, b, 2, 1),
    same=lambda x, w, b, d, t: F.conv2d(x, w, padding="same"),
    dilated=lambda x, w, b, d, t: F.conv2d(x, w, b, dilation=2, padding=2).relu(),
    depthwise=lambda x, w, b, d, t: F.conv2d(x, d, groups=4, padding=1),
    grouped=lambda x, w, b, d, t: F.conv2d(x, w[:, :2], b, groups=2),
    transposed=lambda x, w, b, d, t: F.conv_transpose2d(x, t, b, stride=2),
    transposed_padded=lambda x, w, b, d, t: F.conv_transpose2d(x, t, stride=2, padding=1, output_padding=1),
    one_dim=lambda x, w, b, d, t: F.conv1d(x[:, :, 0], w[:, :, 0], b),
    three_dims=lambda x, w, b, d, t: F.conv3d(x[:, :, None], w[:, :, None], b),
    channels_last=lambda x, w, b, d, t: F.conv2d(x.contiguous(memory_format=torch.channels_last), w, b),
    batch_norm=lambda x, w, b, d, t: F.batch_norm(F.conv2d(x, w), None, None, b, b, True),
)
add(
    "normalisation",
    lambda n: (r(n, 6, 10), r(10), r(10), r(6)),
    layer=lambda x, w, b, c: F.layer_norm(x, (10,), w, b),
    layer_two=lambda x, w, b, c: F.layer_norm(x, (6, 10)),
    group=lambda x, w, b, c: F.group_norm(x, 3, c, c),
    instance=lambda x, w, b, c: F.instance_norm(x),
    batch=lambda x, w, b, c: F.batch_norm(x, None, None, c, c, True),
    rms=lambda x, w, b, c: F.rms_norm(x, (10,), w),
    normalize=lambda x, w, b, c: F.normalize(x, dim=1),
    local=lambda x, w, b, c: F.local_response_norm(x, 2),
    softmax=lambda x, w, b, c: F.softmax(x, 1) * w,
    log_softmax=lambda x, w, b, c: F.log_softmax(x, -1) + b,
    softmin=lambda x, w, b, c: F.softmin(x, 2),
    cosine=lambda x, w, b, c: F.cosine_similarity(x, x.flip(0), dim=-1),
    glu=lambda x, w, b, c: F.glu(x, 1),
    weight=lambda x, w, b, c: x @ (w[:, None] / w.norm()),
)
add(
    "matmul",
    lambda n: (r(n, 12), r(12, 7), r(3, n, 12), r(7)),
    mm=lambda x, w, s, b: x @ w,
    linear=lambda x, w, s, b: F.linear(x, w.t(), b).relu(),
    addmm=lambda x, w, s, b: torch.addmm(b, x, w, beta=0.5, alpha=2),
    bmm=lambda x, w, s, b: torch.bmm(s, s.mT),
    broadcast=lambda x, w, s, b: s @ w + b,
    vector=lambda x, w, s, b: (x @ w) @ b,
    dot=lambda x, w, s, b: torch.dot(b, b) + torch.mv(w, b).sum(),
    baddbmm=lambda x, w, s, b: torch.baddbmm(b, s, w.expand(3, -1, -1)),
    einsum=lambda x, w, s, b: torch.einsum("bnk,kj->bjn", s, w),
    einsum_outer=lambda x, w, s, b: torch.einsum("i,j->ij", b, b),
    tensordot=lambda x, w, s, b: torch.tensordot(s, w, 1),
    chain=lambda x, w, s, b: torch.linalg.multi_dot([x, w, w.t()]),
    transposed=lambda x, w, s, b: w.t() @ x.t(),
    cdist=lambda x, w, s, b: torch.cdist(x, x + 1),
    kron=lambda x, w, s, b: torch.kron(b, b),
    bilinear=lambda x, w, s, b: F.bilinear(x[:, :7], x[:, :7], torch.ones(2, 7, 7)),
    attention=lambda x, w, s, b: F.scaled_dot_product_attention(s, s, s),
    causal=lambda x, w, s, b: F.scaled_dot_product_attention(s, s, s, is_causal=True),
    attention_manual=lambda x, w, s, b: F.softmax(s @ s.mT / math.sqrt(12), -1) @ s,
    masked=lambda x, w, s, b: F.softmax((s @ s.mT).masked_fill(torch.ones(s.shape[1], s.shape[1]).triu(1).bool(), float("-inf")), -1),
)
add(
    "loss",
    lambda n: (r(n, 7), i(7, n), u(n, 7)),
    mse=lambda x, k, t: F.mse_loss(x, t),
    mse_sum=lambda x, k, t: F.mse_loss(x, t, reduction="sum") + F.mse_loss(x, t, size_average=False),
    l1=lambda x, k, t: F.l1_loss(x, t, reduction="none"),
    smooth=lambda x, k, t: F.smooth_l1_loss(x, t, beta=0.5),
    huber=lambda x, k, t: F.huber_loss(x, t, delta=0.5),
    cross=lambda x, k, t: F.cross_entropy(x, k),
    smoothed=lambda x, k, t: F.cross_entropy(x, k, label_smoothing=0.1, reduction="sum"),
    ignored=lambda x, k, t: F.cross_entropy(x, torch.where(k == 0, -100, k)),
    soft=lambda x, k, t: F.cross_entropy(x, t / t.sum(1, keepdim=True)),
    nll=lambda x, k, t: F.nll_loss(F.log_softmax(x, 1), k, weight=t[0].detach()),
    bce=lambda x, k, t: F.binary_cross_entropy(x.sigmoid(), (t > 0.5).float()),
    bce_logits=lambda x, k, t: F.binary_cross_entropy_with_logits(x, (t > 0.5).float(), pos_weight=t[0].detach()),
    kl=lambda x, k, t: F.kl_div(F.log_softmax(x, 1), t / t.sum(1, keepdim=True), reduction="batchmean"),
    margin=lambda x, k, t: F.margin_ranking_loss(x[:, 0], t[:, 0], torch.ones(x.shape[0]), 0.5),
    triplet=lambda x, k, t: F.triplet_margin_loss(x, t, x.flip(0), 1.5, 2),
    hinge=lambda x, k, t: F.hinge_embedding_loss(x, torch.ones_like(x), 1.0),
    cosine=lambda x, k, t: F.cosine_embedding_loss(x, t, torch.ones(x.shape[0])),
    poisson=lambda x, k, t: F.poisson_nll_loss(x, t),
    gaussian=lambda x, k, t: F.gaussian_nll_loss(x, t, t),
    soft_margin=lambda x, k, t: F.soft_margin_loss(x, torch.ones_like(x)),
    multi_margin=lambda x, k, t: F.multi_margin_loss(x, k),
)
add(
    "embedding",
    lambda n: (r(11, 6), i(11, n, 3)),
    plain=lambda w, k: F.embedding(k, w),
    padded=lambda w, k: F.embedding(k, w, padding_idx=2).sum(1),
    scaled=lambda w, k: F.embedding(k, w, scale_grad_by_freq=True).mean(),
    bag=lambda w, k: F.embedding_bag(k, w, mode="mean"),
    tied=lambda w, k: F.embedding(k, w) @ w.t(),
)

# Making tensors.

add(
    "create",
    lambda n: (r(n, 4),),
    arange=lambda x: torch.arange(x.shape[0]) + x[:, 0],
    arange_step=lambda x: torch.arange(0, x.shape[0], 2, dtype=torch.float32) * 2,
    arange_float=lambda x: torch.arange(0.5, 4.5, 0.5),
    linspace=lambda x: torch.linspace(0, 1, x.shape[0]) * x[:, 0],
    logspace=lambda x: torch.logspace(0, 2, 5),
    full=lambda x: torch.full((x.shape[0], 2), 1.5) + x[:, :2],
    full_size=lambda x: torch.full((2, 2), x.shape[0]),
    zeros_ones=lambda x: torch.zeros_like(x) + torch.ones(x.shape) + x.new_zeros(4) + x.new_full((4,), 3.0),
    eye=lambda x: torch.eye(x.shape[0], 4) * x,
    tensor=lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0]) * x,
    tensor_size=lambda x: torch.tensor(x.shape[0]) + torch.tensor([x.shape[0], 2]),
    tensor_size_float=lambda x: torch.tensor(float(x.shape[0])) * x,
    scalar=lambda x: torch.scalar_tensor(2.5) * x,
    tri=lambda x: torch.tril_indices(4, 4).sum() + torch.triu_indices(3, 4).sum(),
    window=lambda x: torch.hann_window(8) + torch.hamming_window(8),
    dtype_code=lambda x: torch.zeros(3, dtype=torch.float32) + torch.ops.aten.full([3], 1.0, dtype=torch.float32),
    vander=lambda x: torch.vander(x[:, 0], 3),
    empty_filled=lambda x: torch.empty_like(x).fill_(2.0) * x,
    meshgrid=lambda x: torch.meshgrid(torch.arange(3), torch.arange(4), indexing="xy")[0],
    complex=lambda x: torch.view_as_real(torch.complex(x, x * 2) * 1j),
    polar=lambda x: torch.polar(x.abs(), x).abs(),
)

# Numbers made of sizes.

add(
    "sizes",
    lambda n: (r(n, 6),),
    true_div=lambda x: x * (1 / x.shape[0]) + x.shape[0] / x.shape[1],
    sqrt=lambda x: x / math.sqrt(x.shape[0]) + x.shape[0] ** 0.5,
    power=lambda x: x * x.shape[0] ** 2 + x.shape[0] ** -1,
    floor=lambda x: x[: math.floor(x.shape[0] / 2)] + math.ceil(x.shape[0] / 3),
    rounded=lambda x: x[: round(x.shape[0] * 0.5)] * int(x.shape[0] * 1.5),
    floordiv=lambda x: x.reshape(-1)[: x.numel() // 4].sum() + x.shape[0] % 3,
    minimum=lambda x: x[: min(x.shape[0], 5)] + max(x.shape[0], 3),
    fill=lambda x: torch.full_like(x, x.shape[0]) + x,
    masked_fill=lambda x: x.masked_fill(x > 0, x.shape[0]),
    clamp=lambda x: x.clamp(max=x.shape[0] / 10),
    arange=lambda x: torch.arange(x.shape[0] // 2, x.shape[0]) * x.shape[1],
    mean=lambda x: x.sum() / x.numel() - x.mean(),
    compare=lambda x: x * 2 if x.shape[0] > 3 else x,
    loop=lambda x: sum(x[k] * k for k in range(x.shape[0] // 3)),
    view=lambda x: x.view(x.shape[0] // 1, 2, -1).sum(1),
    linspace=lambda x: torch.linspace(0, x.shape[0], 4),
    scale=lambda x: F.interpolate(x[None, None], scale_factor=2.0).sum((0, 1)),
    eps=lambda x: x / (x.norm() + 1e-6 * x.shape[0]),
    is_equal=lambda x: x + (x.shape[0] == 6) + (x.shape[1] == 6),
    as_tensor=lambda x: torch.as_tensor(x.shape[0], dtype=torch.float32) * x,
)

# Writing.


def in_place(x):
    x = x * 1
    x.add_(1).mul_(2)
    x.sub_(x.mean())
    return x.relu_()


def view_written(x):
    y = x * 1
    y[:, 1].mul_(2)
    y[1:].add_(y[:-1].clone())
    y.view(-1)[::3] = 0
    return y


def written_through_transpose(x):
    y = x.clone()
    y.t()[2] = 7
    y.t().add_(1)
    return y, y.sum()


def copied_into(x):
    y = torch.zeros(x.shape)
    y.copy_(x)
    y[0].copy_(x[-1])
    return y


def list_of_writes(x):
    parts = [x * k for k in range(3)]
    for part in parts:
        part += 1
    return parts


def out_argument(x):
    y = torch.empty_like(x)
    torch.sin(x.detach(), out=y)
    return y


def zeroed(x):
    y = x * 1
    y.zero_()
    y += x
    return y.fill_diagonal_(3.0)


def resized(x):
    y = torch.empty(2)
    y.resize_as_(x.detach()).copy_(x.detach())
    return y


add(
    "writes",
    lambda n: (r(n, 5),),
    in_place=in_place,
    view_written=view_written,
    transpose=written_through_transpose,
    copied=copied_into,
    several=list_of_writes,
    out=out_argument,
    zeroed=zeroed,
    resized=resized,
    clamped=lambda x: (x * 1).clamp_(-1, 1).pow_(2),
    swapped=lambda x: (x * 1).transpose_(0, 1),
    masked=lambda x: (x * 1).masked_fill_(x > 0, 2.0).index_fill_(1, torch.tensor([1]), 5.0),
    scattered=lambda x: torch.zeros_like(x).scatter_(1, torch.tensor([[0, 2]]), x[:1, :2]),
    put=lambda x: (x * 1).index_put_((torch.tensor([0, 1]),), torch.tensor(3.0)),
)


def input_written(x):
    x.add_(1)
    return x * 2


def input_view_written(x):
    x[:, 1:3].mul_(3)
    return x.sum()


def input_returned(x):
    return x.mul_(2), x


def both_written(x, y):
    x += y
    y -= x
    return x @ y.t()


add("mutation", lambda n: (r(n, 5).requires_grad_(False),), add=input_written, view=input_view_written, returned=input_returned)
add("mutation", lambda n: (r(n, 5), r(n, 5)), both=both_written)

# Randomness that can be compared.

add(
    "random",
    lambda n: (r(n, 8),),
    no_dropout=lambda x: F.dropout(x, 0.5, training=False) * 2,
    all_dropout=lambda x: F.dropout(x, 1.0),
    shape=lambda x: F.dropout(x, 0.5).shape[0] + torch.rand_like(x).shape[1] + x,
    seeded=lambda x: torch.rand(x.shape) + torch.randn(x.shape) * x,
    dropped=lambda x: F.dropout(x, 0.3) + x,
    bernoulli=lambda x: torch.bernoulli(torch.full_like(x, 0.4)) * x,
    randint=lambda x: torch.randint(0, 9, (4,)) + x.shape[0],
    permuted=lambda x: x[torch.randperm(x.shape[0])],
    generator=lambda x: torch.randn(4, generator=torch.Generator().manual_seed(3)) + x.sum(),
)

# Linear algebra and signals.

add(
    "linalg",
    lambda n: (r(n, n) + 5 * torch.eye(n), r(n, 2)),
    inverse=lambda x, y: torch.linalg.inv(x) @ y,
    solve=lambda x, y: torch.linalg.solve(x, y),
    det=lambda x, y: torch.linalg.slogdet(x)[1],
    cholesky=lambda x, y: torch.linalg.cholesky(x @ x.mT + torch.eye(x.shape[0])),
    qr=lambda x, y: torch.linalg.qr(x)[1].abs(),
    eigvalsh=lambda x, y: torch.linalg.eigvalsh(x + x.mT),
    trace=lambda x, y: torch.trace(x) + torch.diag(x).sum(),
    matrix_power=lambda x, y: torch.linalg.matrix_power(x / 10, 3),
    cross=lambda x, y: torch.linalg.cross(x[:, :3], x[:, :3].flip(1)),
)
add(
    "fft",
    lambda n: (r(4, n + 4),),
    rfft=lambda x: torch.fft.rfft(x).abs(),
    fft=lambda x: torch.view_as_real(torch.fft.fft(x)),
    back=lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]),
    two=lambda x: torch.fft.fft2(x).real,
)
