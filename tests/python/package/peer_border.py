"""Programs at the border of a compiler: what functions return, memory that inputs share, layouts, autograd's own functions, sizes from data,
operators of `torch.library`, and calls that eager refuses; they join those of `peer_cases`.
"""

import collections
import typing

import numpy
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from peer_cases import each, r

Pair = collections.namedtuple("Pair", "first second")


class Typed(typing.NamedTuple):
    a: torch.Tensor
    b: int


each("nested_lists", lambda: [r(4, 6, 3)], {
    "as_tuples": lambda x: (x[[[0, 1], [1, 0]]], x[[[0, 1]]], x[[(0, 1), (1, 2)]], x[[[[0, 1], [1, 0]]]], x[[slice(0, 2), 1]], x[[0, torch.tensor(1)]], x[[None, 0]], x[[..., 0]]),
    "as_indices": lambda x: (x[[0, 1]], x[:, [[0, 1], [1, 0]]], x[[True, False, True, False]], x[[-1, 0], 1:], x[[]], x[([0, 1], [1, 0])], x[1, [0, 2]]),
    "written": lambda x: (lambda y: (y.__setitem__([[0, 1], [1, 0]], 5.0), y.__setitem__([0, 3], 2.0), y)[2])(x.clone()),
})
each("outputs", lambda: [r(4, 6), r(4, 6)], {
    "named": lambda x, y: Pair(x + 1, y * 2),
    "typed": lambda x, y: Typed(x + 1, 3),
    "max": lambda x, y: torch.max(x, 1),
    "max_fields": lambda x, y: (x.max(0).values, torch.sort(x).indices, torch.topk(y, 2).values, torch.linalg.slogdet(x[:, :4]).logabsdet, x.median(1).indices, torch.aminmax(x).min),
    "dict": lambda x, y: {"a": x + 1, "b": [y, {"c": x}], 3: (x * y,)},
    "ordered": lambda x, y: collections.OrderedDict(b=x + 1, a=y),
    "none": lambda x, y: (None, x + 1, None, [None, y]),
    "nothing": lambda x, y: None,
    "constant": lambda x, y: 5,
    "only_input": lambda x, y: x,
    "swapped": lambda x, y: (y, x),
    "twice": lambda x, y: (lambda z: (z, z, [z, z.view(-1)]))(x * y),
    "views_of_one": lambda x, y: (lambda z: (z[0], z[1:], z.t(), z.view(-1)[::2], z.detach()))(x * y),
    "shapes": lambda x, y: (x.shape, x.size(0), x.dtype, x.device, x.dim(), x.numel(), x.stride(), x.is_contiguous(), x.t().is_contiguous(), x.requires_grad, x.is_floating_point(), x.storage_offset(), len(x)),
    "bools": lambda x, y: (x.shape == y.shape, x is y, x.dtype == torch.float32, bool(x.shape[0] > 2)),
    "string": lambda x, y: ("a" * 2 + str(x.dim()), x + 1, f"{x.shape[1] - x.shape[1]}"),
})


def aliased():
    x = r(4, 6)
    return [x, x]


def halves_of_one():
    x = r(8, 6)
    return [x[:4], x[4:]]


def overlapping():
    x = r(30)
    return [x[:24].view(4, 6), x[6:].view(4, 6)]


for _name, _make in {"same": aliased, "halves": halves_of_one, "overlapping": overlapping}.items():
    each(f"sharing_{_name}", _make, {
        "read": lambda x, y: (x + y, (x * y).sum(), x.t() + y.t()),
        "returned": lambda x, y: (x, y, x.view(-1), y[1:]),
    })
    if _name == "overlapping":  # torch's own tracing of writes to such inputs fails where sizes are symbols
        continue
    each(f"sharing_written_{_name}", _make, {
        "first": lambda x, y: (x.add_(1), y * 2),
        "both": lambda x, y: (x.mul_(2), y.add_(x), x + y),
        "slices": lambda x, y: (x[0].fill_(3), y[1].copy_(x[0]), x.sum(), y.sum()),
        "copied": lambda x, y: (x.copy_(y.clone() * 2), y + 1),
    }, gradients=False)
each("expanded_inputs", lambda: [torch.randn(4, 1).expand(4, 6), torch.randn(6).expand(4, 6), torch.randn(()).expand(4, 6)], {
    "pointwise": lambda x, y, z: (x + y, x * 2, x + x, z * 2, x.exp() + z, torch.relu(y), x.clone(), x.contiguous(), torch.empty_like(x).fill_(1), torch.zeros_like(y), x.to(torch.float64), y.half()),
    "reduced": lambda x, y, z: (x.sum(), x.sum(1), y.mean(0), z.amax(), x.softmax(1), (x + y).cumsum(1), y.var(0), x.argmax(1), y.sort(1)[0], x.norm(dim=1)),
    "viewed": lambda x, y, z: (x.t(), x[:, ::2], y.reshape(-1), x.reshape(2, 12), z.reshape(24), torch.cat([x, y]), torch.stack([x, z]), x.flip(1), x.unsqueeze(0), x.permute(1, 0) + 1),
    "products": lambda x, y, z: (x @ y.t(), y @ x.t(), F.linear(x, y), torch.einsum("ij,kj->ik", x, z), x.t() @ y, torch.outer(x[:, 0], y[0])),
})
each("odd_layouts", lambda: [r(5, 4).t(), r(8, 10)[::2, ::2], r(4, 5, 3)[..., 1], torch.randn(2, 4, 5).permute(0, 2, 1).transpose(1, 2)[0]], {
    "pointwise": lambda a, b, c, d: (a + b, b + c, c + d, a * c, (a + b) * (c - d), a.exp(), b.exp(), c.exp(), torch.where(a > 0, b, c), a + 1, c * 2, torch.addcmul(a, b, c), a.clone(), b.clone(), c.clone(), torch.ones_like(b), torch.zeros_like(a), a.double(), b.int()),
    "reduced": lambda a, b, c, d: tuple(f(t) for t in (a, b, c, d) for f in (lambda t: t.sum(0), lambda t: t.sum(1), lambda t: t.softmax(1), lambda t: t.cumsum(0), lambda t: t.amax(1), lambda t: t.argmax(0), lambda t: t.mean(), lambda t: t.var(0), lambda t: F.layer_norm(t, (5,)))),
    "products": lambda a, b, c, d: (a @ b.t(), b.t() @ c, c @ d.t(), F.linear(a, b), F.linear(a.t(), b.t()), torch.addmm(a[:, :4], b, c.t()), torch.bmm(a[None], b.t()[None]), torch.baddbmm(b[None, :, :4], c[None], d.t()[None]), a.t() @ a, b @ b.t()),
    "moved": lambda a, b, c, d: (torch.cat([a, b]), torch.stack([b, c], 1), a.reshape(-1), b.reshape(2, 10), c.flip(0), d.roll(1, 1), a.tril(), b.repeat(2, 1), c[torch.tensor([0, 3])], d.gather(1, torch.zeros(4, 2, dtype=torch.int64)), F.pad(a, (1, 1)), b.unfold(1, 2, 2), c.sort(1)[0], a.contiguous(), b.t(), c.view(4, 5), d[:, 1:]),
})
each("odd_written", lambda: [r(5, 4).t(), r(8, 10)[::2, ::2], r(4, 5, 3)[..., 1]], {
    "added": lambda a, b, c: (a.add_(b), b.mul_(c), c.sub_(a)),
    "filled": lambda a, b, c: (a[0].fill_(1), b[:, 1].zero_(), c.t()[2].add_(5), a.sum() + b.sum() + c.sum()),
    "indexed": lambda a, b, c: (a.index_add_(0, torch.tensor([0, 0]), b[:2]), b.scatter_(1, torch.zeros(4, 1, dtype=torch.int64), 9.0), c.masked_fill_(c > 0, -1.0), c.index_put_((torch.tensor([1]),), b[0])),
    "copied": lambda a, b, c: (a.copy_(b), b.copy_(c.flip(0)), c.copy_(torch.arange(20).view(4, 5))),
}, gradients=False)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k, x.sum()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * ctx.k * 3 + h + x * 0, None


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-1, 1)


each("differentiated", lambda: [r(4, 6)], {
    "function": lambda x: Double.apply(x + 1, 2.5),
    "straight": lambda x: Straight.apply(x * 3) * 2,
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda t: t.sin().exp(), x, use_reentrant=False) * 2,
    "detached": lambda x: x * x.detach() + (x.detach() ** 2).sum(),
    "no_grad": lambda x: (lambda y: x * y)(no_grad_part(x)),
    "enable": lambda x: x * 2 if torch.is_grad_enabled() else x * 3,
    "where_nan": lambda x: torch.where(x > 0, x.sqrt(), x * 0),
    "custom_grad_scale": lambda x: x.clone().mul(2) + x.view(-1).view(4, 6),
    "hook": lambda x: hooked(x),
    "vmap": lambda x: torch.vmap(lambda t: t.sum() * t)(x),
    "vmap_nested": lambda x: torch.vmap(torch.vmap(lambda a: a * 2 + 1))(x),
    "func_grad": lambda x: torch.func.grad(lambda t: (t**3).sum())(x),
    "jacobian": lambda x: torch.func.jacrev(lambda t: t.sin())(x[0]),
    "jvp": lambda x: torch.func.jvp(lambda t: t.sin() * t, (x,), (torch.ones_like(x),)),
    "vjp": lambda x: torch.func.vjp(lambda t: t * 2, x)[1](torch.ones_like(x))[0] + x,
    "hessian": lambda x: torch.func.hessian(lambda t: (t**3).sum())(x[0]),
    "accumulated": lambda x: sum(x[i] * i for i in range(4)),
    "norm_clip": lambda x: x * (1.0 / (x.norm() + 1e-6)).clamp(max=1.0),
})


def no_grad_part(x):
    with torch.no_grad():
        return x.sum() * 2


def hooked(x):
    y = x * 2
    if y.requires_grad:
        y.register_hook(lambda g: g * 3)
    return y.sin()


def numbers_back(x):
    n = (x > 0).sum().item()
    return x * n, torch.full((3,), n)


def data_sizes(x):
    i = (x > 0).nonzero()
    return i, x[i[:, 0], i[:, 1]].sum(), i.shape[0], torch.zeros(i.shape[0]).sum(), i.float().mean(0)


def data_branch(x):
    k = x.long().abs().sum().item()
    torch._check_is_size(k)
    torch._check(k < 1000)
    return torch.arange(k), torch.ones(k, 2).sum(0), x.sum() + k


def data_repeat(x):
    counts = (x[0] > 0).long() + 1
    return torch.repeat_interleave(x, counts, dim=1), torch.repeat_interleave(counts)


def data_unique(x):
    v, i, c = torch.unique((x * 2).round(), return_inverse=True, return_counts=True)
    return v, i, c, v[i] - (x * 2).round(), c.sum()


def data_pad(x):
    keep = x[x > 0]
    return F.pad(keep, (0, 3)), keep.sort()[0], torch.cat([keep, keep]), keep.cumsum(0), keep.view(-1, 1) * 2


def to_list(x):
    n = (x.abs() * 3).long()[0].tolist()
    return sum(n), x * n[0]


each("unbacked", lambda: [r(4, 6)], {"numbers": numbers_back, "sizes": data_sizes, "ranges": data_branch, "repeats": data_repeat, "unique": data_unique, "padded": data_pad, "lists": to_list, "masked": lambda x: (x[x > 0] * 2, torch.masked_select(x, x < 0).exp(), x[(x > 0).any(1)])}, gradients=False)

_library = torch.library.Library("border_peers", "DEF")
_library.define("pair(Tensor x, Tensor y) -> (Tensor, Tensor)")
_library.impl("pair", lambda x, y: (x + y, x * y), "CPU")
_library.impl("pair", lambda x, y: (torch.empty_like(x), torch.empty_like(y)), "Meta")
_library.define("parts(Tensor x, int n) -> Tensor[]")
_library.impl("parts", lambda x, n: [x.clone() * k for k in range(n)], "CPU")
_library.impl("parts", lambda x, n: [torch.empty_like(x) for _ in range(n)], "Meta")
_library.define("nothing(Tensor x) -> ()")
_library.impl("nothing", lambda x: None, "CPU")
_library.impl("nothing", lambda x: None, "Meta")
_library.define("fill(Tensor(a!) x, Scalar v) -> ()")
_library.impl("fill", lambda x, v: [x.fill_(v)].clear(), "CPU")
_library.impl("fill", lambda x, v: None, "Meta")
_library.define("two(Tensor(a!) x, Tensor(b!) y, Tensor z) -> Tensor")
_library.impl("two", lambda x, y, z: (x.add_(z), y.mul_(2), z + 1)[2], "CPU")
_library.impl("two", lambda x, y, z: torch.empty_like(z), "Meta")
_library.define("composite(Tensor x) -> Tensor")
_library.impl("composite", lambda x: x.sin() + 1, "CompositeImplicitAutograd")
_library.define("strided(Tensor x) -> Tensor")
_library.impl("strided", lambda x: x.t().contiguous().t(), "CPU")
_library.impl("strided", lambda x: x.new_empty_strided(x.shape, (1, x.shape[0])), "Meta")
_library.define("options(Tensor x, float a=1.5, int[] n=[], str s='z', bool b=True, ScalarType? d=None, Tensor? t=None, *, int k=2) -> Tensor")
_library.impl("options", lambda x, a=1.5, n=(), s="z", b=True, d=None, t=None, k=2: (x * a + sum(n) + len(s) + int(b) + k + (0 if t is None else t)).to(d or x.dtype), "CPU")
_library.impl("options", lambda x, a=1.5, n=(), s="z", b=True, d=None, t=None, k=2: torch.empty_like(x, dtype=d or x.dtype), "Meta")


@torch.library.custom_op("border_peers::numpy_sin", mutates_args=())
def numpy_sin(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(numpy.sin(x.numpy()))


@numpy_sin.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("border_peers::nz", mutates_args=())
def nz(x: torch.Tensor) -> torch.Tensor:
    return x.nonzero()


@nz.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.dim(), dtype=torch.int64)


@torch.library.custom_op("border_peers::inplace_list", mutates_args={"xs"})
def inplace_list(xs: list[torch.Tensor], v: float) -> None:
    for t in xs:
        t.add_(v)


@torch.library.custom_op("border_peers::scalar_out", mutates_args=())
def scalar_out(x: torch.Tensor) -> int:
    return x.numel()


@scalar_out.register_fake
def _(x):
    return x.numel()


own = torch.ops.border_peers
each("operators", lambda: [r(4, 6), r(4, 6)], {
    "pair": lambda x, y: (lambda a, b: (a * 2, b + a))(*own.pair(x + 1, y)),
    "parts": lambda x, y: sum(own.parts(x * 2, 3)) + y,
    "nothing": lambda x, y: (own.nothing(x * 2), x + y)[1],
    "fill": lambda x, y: (own.fill(x, 3), x + y, x.sum())[1:],
    "fill_view": lambda x, y: (own.fill(x[1:3], 3), own.fill(y.t()[0], 2.5), x + y)[2],
    "two": lambda x, y: (lambda z: (z, x, y, x + y))(own.two(x, y, x * y)),
    "two_same": lambda x, y: (lambda t: (own.two(t, t[0] * 1, t * 2), t))(x * 1),
    "composite": lambda x, y: own.composite(x) * y,
    "strided": lambda x, y: (own.strided(x), own.strided(x + y) * 2, own.strided(y).t()),
    "options": lambda x, y: (own.options(x), own.options(x, 2.0, [1, x.shape[0]], "abc", False, torch.float64, y, k=x.shape[1]), own.options(x, d=torch.int32)),
    "numpy": lambda x, y: numpy_sin(x.t() + 1) * y.t(),
    "nonzero": lambda x, y: (lambda i: (i, i.sum(0), i.shape[0]))(nz(x > 0)),
    "list": lambda x, y: (inplace_list([x, y], 1.5), x * y)[1],
    "scalar": lambda x, y: x * scalar_out(y) + own.scalar_out(x[1:]),
}, gradients=False)

# Calls that eager refuses: places out of range, numbers that are none, shapes and types that do not fit.

each("refused_by_eager", lambda: [r(4, 6), torch.tensor([0, 9]), torch.tensor([1, -9]), torch.zeros(2, dtype=torch.int64)], {
    "index": lambda x, i, j, z: x[i],
    "index_negative": lambda x, i, j, z: x[j],
    "index_second": lambda x, i, j, z: x[:, i] + 1,
    "select": lambda x, i, j, z: x.index_select(0, i),
    "select_negative": lambda x, i, j, z: x.index_select(0, j),
    "gather": lambda x, i, j, z: x.gather(0, i[:, None].expand(2, 6)),
    "gather_negative": lambda x, i, j, z: x.gather(1, j[None]),
    "take": lambda x, i, j, z: x.take(i * 10),
    "embedding": lambda x, i, j, z: F.embedding(i, x),
    "embedding_negative": lambda x, i, j, z: F.embedding(j, x),
    "scatter": lambda x, i, j, z: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i, j, z: x.scatter_add(0, j[:, None], x[:2, :1]),
    "scatter_reduce": lambda x, i, j, z: x.scatter_reduce(0, i[:, None], x[:2, :1], "amax"),
    "index_add": lambda x, i, j, z: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i, j, z: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i, j, z: x.index_fill(0, i, 1.0),
    "index_put": lambda x, i, j, z: x.index_put((i,), x[:2]),
    "put": lambda x, i, j, z: x.put(i * 10, x[0, :2]),
    "nll": lambda x, i, j, z: F.nll_loss(x[:2], i),
    "cross_entropy": lambda x, i, j, z: F.cross_entropy(x[:2], i),
    "cross_entropy_negative": lambda x, i, j, z: F.cross_entropy(x[:2], j),
    "one_hot": lambda x, i, j, z: F.one_hot(i, 4),
    "one_hot_negative": lambda x, i, j, z: F.one_hot(j),
    "bincount": lambda x, i, j, z: torch.bincount(j),
    "divmod": lambda x, i, j, z: divmod(i, 2),
    "divide": lambda x, i, j, z: i // z,
    "remainder": lambda x, i, j, z: i % z,
    "divide_zero": lambda x, i, j, z: i // 0,
    "fmod": lambda x, i, j, z: torch.fmod(i, z),
    "power": lambda x, i, j, z: i ** -1,
    "power_tensor": lambda x, i, j, z: torch.tensor([2, 3]) ** -2,
    "cholesky": lambda x, i, j, z: torch.linalg.cholesky(x[:, :4] @ x[:, :4].t() * -1),
    "inverse": lambda x, i, j, z: torch.linalg.inv(x[:, :4] * 0),
    "multinomial": lambda x, i, j, z: torch.multinomial(x * 0, 2),
    "multinomial_negative": lambda x, i, j, z: torch.multinomial(-x.abs(), 2),
    "bernoulli": lambda x, i, j, z: torch.bernoulli(x + 5),
    "bernoulli_p": lambda x, i, j, z: x.bernoulli(1.5),
    "dropout_p": lambda x, i, j, z: F.dropout(x, 1.5),
    "view": lambda x, i, j, z: x.t().view(-1),
    "view_size": lambda x, i, j, z: x.view(5, 5),
    "view_two": lambda x, i, j, z: x.view(-1, -1),
    "mm": lambda x, i, j, z: x @ x,
    "mm_types": lambda x, i, j, z: x @ x.double().t(),
    "cat": lambda x, i, j, z: torch.cat([x, x[:, :2]]),
    "stack": lambda x, i, j, z: torch.stack([x, x[:2]]),
    "broadcast": lambda x, i, j, z: x + x[:, :5],
    "dim": lambda x, i, j, z: x.sum(2),
    "dim_negative": lambda x, i, j, z: x.softmax(-3),
    "dims_twice": lambda x, i, j, z: x.sum((0, 0)),
    "permute": lambda x, i, j, z: x.permute(0, 0),
    "split": lambda x, i, j, z: x.split([1, 2]),
    "chunk": lambda x, i, j, z: x.chunk(0),
    "topk": lambda x, i, j, z: x.topk(9),
    "kthvalue": lambda x, i, j, z: x.kthvalue(0),
    "narrow": lambda x, i, j, z: x.narrow(0, 3, 4),
    "select_far": lambda x, i, j, z: x[5],
    "expand": lambda x, i, j, z: x.expand(3, 7, 6),
    "repeat": lambda x, i, j, z: x.repeat(2),
    "pool": lambda x, i, j, z: F.max_pool2d(x[None], 9),
    "pool_pad": lambda x, i, j, z: F.avg_pool2d(x[None], 2, 1, 2),
    "pool_ints": lambda x, i, j, z: F.adaptive_avg_pool2d(x[None].int(), 2),
    "conv": lambda x, i, j, z: F.conv1d(x[None], x[None, :3]),
    "conv_small": lambda x, i, j, z: F.conv1d(x[None], r(2, 4, 9)),
    "reflect": lambda x, i, j, z: F.pad(x[None], (7, 0), "reflect"),
    "circular": lambda x, i, j, z: F.pad(x[None], (7, 0), "circular"),
    "group_norm": lambda x, i, j, z: F.group_norm(x, 4),
    "layer_norm": lambda x, i, j, z: F.layer_norm(x, (5,)),
    "batch_norm": lambda x, i, j, z: F.batch_norm(x, torch.zeros(5), torch.ones(5)),
    "unfold": lambda x, i, j, z: x.unfold(0, 5, 1),
    "as_strided": lambda x, i, j, z: x.as_strided((5, 6), (6, 1)),
    "where": lambda x, i, j, z: torch.where(x, x, 1),
    "masked": lambda x, i, j, z: x.masked_fill(x, 1),
    "bools": lambda x, i, j, z: (x > 0) - (x > 1),
    "neg_bool": lambda x, i, j, z: -(x > 0),
    "not_float": lambda x, i, j, z: ~x,
    "shift_float": lambda x, i, j, z: x << 1,
    "mean_int": lambda x, i, j, z: i.mean(),
    "softmax_int": lambda x, i, j, z: i.softmax(0),
    "max_nothing": lambda x, i, j, z: x[:0].max(),
    "amax_nothing": lambda x, i, j, z: x[:0].amax(0),
    "argmax_nothing": lambda x, i, j, z: x[:0].argmax(),
    "median_half": lambda x, i, j, z: x[:0].sum() + x[:0].argmin(0),
    "in_place_type": lambda x, i, j, z: i.add_(0.5),
    "in_place_shape": lambda x, i, j, z: x[:1].add_(x),
    "in_place_bool": lambda x, i, j, z: (x > 0).add_(1.5),
    "expanded_write": lambda x, i, j, z: x[:1].expand(4, 6).add_(1),
    "copy_shape": lambda x, i, j, z: x.copy_(x[:3]),
    "out_type": lambda x, i, j, z: torch.add(x, x, out=torch.empty(4, 6, dtype=torch.int64)),
    "check": lambda x, i, j, z: (torch._check(i.sum().item() > 100), x)[1],
    "bce": lambda x, i, j, z: F.binary_cross_entropy(x * 10, x.sigmoid()),
    "interp": lambda x, i, j, z: F.interpolate(x[None], (3, 3), mode="bilinear"),
    "pixel": lambda x, i, j, z: F.pixel_shuffle(x[None], 3),
    "glu": lambda x, i, j, z: F.glu(x[:, :5]),
    "bucketize": lambda x, i, j, z: torch.bucketize(x, x),
    "einsum": lambda x, i, j, z: torch.einsum("ij,jk->ik", x, x),
    "unsqueeze": lambda x, i, j, z: x.unsqueeze(5),
    "squeeze_far": lambda x, i, j, z: x.squeeze(4),
    "item": lambda x, i, j, z: x * x.item(),
    "complex_compare": lambda x, i, j, z: (x + 1j) > 0,
    "complex_floor": lambda x, i, j, z: (x + 1j) // 2,
    "complex_max": lambda x, i, j, z: (x + 1j).max(),
    "real_only": lambda x, i, j, z: x.imag,
    "view_dtype": lambda x, i, j, z: x[:, :5].view(torch.float64),
    "view_as_complex": lambda x, i, j, z: torch.view_as_complex(x),
    "arange": lambda x, i, j, z: torch.arange(0, 5, 0),
    "linspace": lambda x, i, j, z: torch.linspace(0, 1, -1),
    "zeros_negative": lambda x, i, j, z: torch.zeros(-1),
    "randint": lambda x, i, j, z: torch.randint(5, 5, (2,)),
    "normal": lambda x, i, j, z: torch.normal(x, -1.0),
    "uniform": lambda x, i, j, z: x.clone().uniform_(2, 1),
    "tril_vector": lambda x, i, j, z: x[0].tril(),
    "diag_far": lambda x, i, j, z: x.diagonal(0, 0, 0),
    "cross": lambda x, i, j, z: torch.linalg.cross(x, x),
    "dot": lambda x, i, j, z: torch.dot(x, x),
    "mv": lambda x, i, j, z: torch.mv(x, x[:, 0]),
    "bmm": lambda x, i, j, z: torch.bmm(x, x),
    "baddbmm": lambda x, i, j, z: torch.baddbmm(x[None, :3], x[None], x.t()[None]),
    "lerp": lambda x, i, j, z: torch.lerp(x, x.double(), 0.5),
    "addcdiv_int": lambda x, i, j, z: torch.addcdiv(i, i, i),
    "sdpa": lambda x, i, j, z: F.scaled_dot_product_attention(x[None, None], x[None, None, :, :5], x[None, None]),
    "quantile": lambda x, i, j, z: x.quantile(1.5),
    "renorm": lambda x, i, j, z: torch.renorm(x, 2, 0, -1.0),
    "cumsum_dim": lambda x, i, j, z: x.cumsum(2),
    "flip_twice": lambda x, i, j, z: x.flip((0, 0)),
    "roll": lambda x, i, j, z: x.roll((1, 2), 0),
    "movedim": lambda x, i, j, z: x.movedim((0, 1), 0),
    "std_int": lambda x, i, j, z: i.std(),
    "gcd_float": lambda x, i, j, z: torch.gcd(x, x),
    "huber_negative": lambda x, i, j, z: F.huber_loss(x, x, delta=-1.0),
    "smooth_negative": lambda x, i, j, z: F.smooth_l1_loss(x, x, beta=-1.0),
    "label_smoothing": lambda x, i, j, z: F.cross_entropy(x[:2], z, label_smoothing=1.5),
}, gradients=False)
