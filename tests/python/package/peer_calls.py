"""Small functions about how compiled code is called: modules whose buffers change, arguments and results of every kind, random numbers,
operators that users register, sizes from data, inputs that lie otherwise in later calls, large offsets; they join those of `peer_cases`.
"""

import math
from collections import OrderedDict, namedtuple

import torch
import torch.nn.functional as F
from peer_cases import PEERS, Peer, bools, each, inf, ints, nan, peer, r
from torch import nn

aten, prims = torch.ops.aten, torch.ops.prims


# Modules.


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(16))
        self.register_buffer("table", torch.zeros(4, 16))
        self.scale = nn.Parameter(torch.full((16,), 1.5))

    def forward(self, x):
        self.calls += 1
        self.mean.lerp_(x.mean(0).detach(), 0.1)
        self.table[self.calls % 4] = x[0].detach()
        return (x - self.mean) * self.scale + self.table.sum(0)


class Replaced(nn.Module):
    """Buffers that are assigned, not written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(8, 16))

    def forward(self, x):
        out = x + self.last
        self.last = x.detach().clone()
        return out


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 16, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) + x @ self.first.weight


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.utils.parametrizations.weight_norm(nn.Linear(16, 4))
        self.orthogonal = nn.Linear(16, 16)

    def forward(self, x):
        return self.inner(x) + self.orthogonal(x)[:, :4]


class Recurrent(nn.Module):
    def __init__(self, kind, **settings):
        super().__init__()
        self.inner = kind(16, 5, **settings)

    def forward(self, x):
        return self.inner(x.view(4, 2, 16))


class Mutual(nn.Module):
    """Modules in lists and dicts, called in loops."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(16, 2), "b": nn.Linear(16, 3)})
        self.weights = nn.ParameterList(nn.Parameter(torch.ones(16) * k) for k in range(3))

    def forward(self, x):
        for layer, weight in zip(self.layers, self.weights):
            x = F.silu(layer(x)) * weight + x
        return {name: head(x) for name, head in self.heads.items()}


class BatchNormed(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.inner = nn.BatchNorm1d(16, **settings)

    def forward(self, x):
        return self.inner(x) * 2


torch.manual_seed(11)
MODULES = {
    "counting_buffer": Counter(),
    "replaced_buffer": Replaced(),
    "tied_weights": Tied(),
    "weight_norm": Normed(),
    "lstm": Recurrent(nn.LSTM),
    "lstm_two_layers": Recurrent(nn.LSTM, num_layers=2, bidirectional=True),
    "lstm_projected": Recurrent(nn.LSTM, proj_size=3),
    "gru": Recurrent(nn.GRU, batch_first=True),
    "rnn_relu": Recurrent(nn.RNN, nonlinearity="relu", bias=False),
    "modules_in_lists": Mutual(),
    "batch_norm": BatchNormed(),
    "batch_norm_cumulative": BatchNormed(momentum=None),
    "batch_norm_plain": BatchNormed(affine=False, track_running_stats=False),
    "batch_norm_evaluated": BatchNormed().eval(),
    "sequential": nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.0), nn.Linear(32, 3), nn.LogSoftmax(-1)),
    "transformer_layer": nn.Sequential(nn.Unflatten(0, (2, 4)), nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)),
    "embedding_layer": nn.Sequential(nn.Linear(16, 4), nn.Softmax(-1), nn.Unflatten(1, (2, 2)), nn.Flatten()),
    "bilinear_layer": nn.Sequential(nn.Linear(16, 6), nn.PReLU(6), nn.GroupNorm(2, 6), nn.Hardtanh(-0.5, 0.5)),
    "conv_layers": nn.Sequential(nn.Unflatten(1, (1, 16)), nn.Conv1d(1, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.AdaptiveMaxPool1d(3)),
    "circular_conv": nn.Sequential(nn.Unflatten(1, (1, 16)), nn.Conv1d(1, 2, 5, padding=2, padding_mode="circular"), nn.Conv1d(2, 2, 3, padding=1, padding_mode="reflect")),
}
for _name, _module in MODULES.items():
    PEERS[f"module_{_name}"] = Peer(_module, lambda: [r(8, 16)], True, 1e-4, 1e-5, (lambda: [r(8, 16)],))


# Arguments and results of every kind.

Point = namedtuple("Point", "x y")


@peer(lambda: [{"a": r(3), "b": [r(3), (r(2), None)]}, 2])
def nested_dict_in(tree, number):
    return {"sum": tree["a"] + tree["b"][0], "rest": (tree["b"][1][0] * number, None, number + 1)}


@peer(lambda: [Point(r(3), r(3))])
def named_tuple_in_and_out(point):
    return Point(point.y * 2, point.x - 1)


@peer(lambda: [[r(2), r(3)], OrderedDict(b=r(2), a=r(3))])
def lists_and_ordered_dicts(items, named):
    return [each * 2 for each in items], OrderedDict((key, value + 1) for key, value in named.items())


@peer(lambda: [r(3), None, 1.5, True, "sum", torch.float64, (2, 1)], then=(lambda: [r(3), None, 2.5, False, "mean", torch.float16, (1, 2)],))
def every_kind_of_argument(x, nothing, number, flag, how, dtype, shape):
    y = x.sum() if how == "sum" else x.mean()
    return (y * number if flag else y).to(dtype), nothing, torch.zeros(shape) + number, flag, how


@peer(lambda: (lambda x: [x, x])(r(4, 4)))
def the_same_tensor_twice(x, y):
    return x * 2 + y, x.sum() - y


@peer(lambda: (lambda x: [x, x])(r(4, 4)), gradients=False, then=(lambda: [r(4, 4), r(4, 4)], lambda: (lambda x: [x, x.t()])(r(4, 4))))
def the_same_tensor_is_written(x, y):
    x.add_(1)
    return y * 2, y.mul_(x)


@peer(lambda: [r(3)], then=(lambda: [r(3, dtype=torch.float64)], lambda: [ints(3)], lambda: [r(3, 2)], lambda: [r(0)], lambda: [r(1)]))
def types_and_ranks_change(x):
    return x * 2 + 1, x.sum(0), x.reshape(-1)


@peer(lambda: [r(4, 6)], then=(lambda: [r(6, 4).t()], lambda: [r(4, 12)[:, ::2]], lambda: [r(1, 6).expand(4, 6)], lambda: [r(5, 6)[1:]], lambda: [r(4, 1).expand(4, 6)]))
def layouts_change(x):
    return x + 1, x.t() * 2, x.sum(1), x[1:3].contiguous(), (x * 2).view(-1)


@peer(lambda: [r(2, 3, 4, 5)], then=(lambda: [r(2, 3, 4, 5).to(memory_format=torch.channels_last)], lambda: [r(2, 1, 4, 5).to(memory_format=torch.channels_last)], lambda: [r(1, 3, 1, 1)]))
def formats_change(x):
    return x * 2, F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 2), x.clone(), torch.empty_like(x).fill_(1), x.flatten(1), x.mean((2, 3))


@peer(lambda: [r(4), 3], then=(lambda: [r(4), 4], lambda: [r(4), 0], lambda: [r(4), -1], lambda: [r(4), 2**40]))
def whole_numbers_change(x, n):
    return x * n, x + n, torch.full((2,), n), x.roll(n % 4)


@peer(lambda: [r(4), 0.5], then=(lambda: [r(4), 0.25], lambda: [r(4), inf], lambda: [r(4), nan], lambda: [r(4), -0.0], lambda: [r(4), 1e300]))
def fractions_change(x, number):
    return x * number, x + number, torch.full((2,), number), x.clamp(min=number) if number == number else x


@peer(lambda: [r(4), True], then=(lambda: [r(4), False], lambda: [r(4), True]))
def flags_change(x, flag):
    return x.relu() if flag else x.neg(), x * flag, flag


@peer(lambda: [r(4, 6)], then=(lambda: [r(1, 6)], lambda: [r(4, 1)], lambda: [r(0, 6)], lambda: [r(7, 5)]))
def sizes_change(x):
    return x.mean(0), x.softmax(1), torch.cat([x, x]), x.view(-1, x.size(1)).t(), x[:, :1].expand(x.shape), x.std(0, correction=0)


@peer(lambda: [r(4), r(4)], then=(lambda: [r(4), r(1)], lambda: [r(4), r()], lambda: [r(1), r(4)], lambda: [r(3, 4), r(4)]))
def broadcasts_change(x, y):
    return x + y, x * y, torch.maximum(x, y), torch.where(x > y, x, y)


@peer(lambda: [r(3, 3)], then=(lambda: [r(3, 3)],))
def constants_are_lifted(x):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return x[:2, :2] @ table, torch.tensor(3.0) * x, torch.tensor([1, 2])[x[0].gt(-9).long()], torch.tensor([x.shape[0], 7])


@peer(lambda: [r(3)], gradients=False)
def constants_are_written(x):
    table = torch.tensor([1.0, 2.0, 3.0])
    table += x.detach()
    table[0] = 7
    return table, table.sum()


FROZEN = torch.arange(12.0).view(3, 4)


@peer(lambda: [r(3, 4)], then=(lambda: [r(3, 4)],))
def globals_are_read(x):
    return x + FROZEN, FROZEN[1:] * 2, FROZEN.t(), FROZEN


@peer(lambda: [r(3)])
def results_that_are_no_tensors(x):
    return x.shape, x.dtype, x.device, x.dim(), x.numel(), x.stride(), x.is_contiguous(), x.requires_grad is not None, "text", 3, 2.5, None, True, ...


@peer(lambda: [r(3), r(3)])
def an_input_is_returned(x, y):
    return x, y, x + y, x


@peer(lambda: [r(3)])
def nothing_is_computed(x):
    return x


@peer(lambda: [r(3)], gradients=False)
def nothing_is_returned(x):
    x.add_(1)


@peer(lambda: [r(3, 4)])
def keyword_only(x):
    def inner(a, *rest, scale=2.0, **more):
        return a * scale + sum(rest) + more.get("bias", 0)

    return inner(x, 1, 2, scale=3.0, bias=4), inner(x, **{"bias": x}), inner(*[x, x])


@peer(lambda: [r(4, 4)])
def closures_and_defaults(x, factor=2.0, dims=(0, 1)):
    total = 0
    for dim in dims:
        def step(value, dim=dim):
            return value.cumsum(dim) * factor

        total = total + step(x)
    return total


@peer(lambda: [r(3)])
def windows_are_made(x):
    return torch.hann_window(4), torch.hamming_window(3), torch.special.airy_ai(x.detach() + 1)


# Random numbers.

each(
    "drawn_from",
    lambda: [r(8, 16)],
    {
        "dropout": lambda x: (F.dropout(x, 0.3), F.dropout(x, 0.3), F.dropout(x, 0.0), F.dropout(x, 1.0), F.dropout(x, 0.5, False)),
        "dropout_of_shapes": lambda x: (F.dropout1d(x, 0.5), F.dropout2d(x[None], 0.5), F.alpha_dropout(x, 0.2), F.feature_alpha_dropout(x, 0.2)),
        "dropout_of_views": lambda x: (F.dropout(x.t(), 0.4), F.dropout(x[:, ::2], 0.4), F.dropout(x[:1].expand(8, 16), 0.4), F.dropout(x[:0], 0.5)),
        "native_dropout": lambda x: (aten.native_dropout(x, 0.3, True), aten.native_dropout(x, 0.3, False)),
        "bernoulli": lambda x: (torch.bernoulli(x.sigmoid()), torch.bernoulli(x, 0.3), x.detach().clone().bernoulli_(0.7), x.detach().clone().bernoulli_(x.detach().sigmoid())),
        "uniform": lambda x: (torch.rand(3, 4), torch.rand_like(x), x.new_empty(5).uniform_(-2, 3), torch.rand(2, dtype=torch.float64), torch.rand(())),
        "normal": lambda x: (torch.randn(3), torch.randn_like(x), torch.normal(x.detach(), 1.0), torch.normal(0.0, x.detach().abs()), torch.normal(1.0, 2.0, (3,)), x.new_empty(40).normal_(1, 3)),
        "integers": lambda x: (torch.randint(10, (5,)), torch.randint(-3, 4, (5,)), torch.randint_like(x, 5), torch.randint(2**40, (3,)), torch.randint(0, 2, (4,), dtype=torch.bool), torch.randint(5, (3,), dtype=torch.float32)),
        "permutations": lambda x: (torch.randperm(10), torch.randperm(7, dtype=torch.int32), x[torch.randperm(8)], torch.randperm(0), torch.randperm(1)),
        "exponential": lambda x: (x.detach().clone().exponential_(), x.detach().clone().exponential_(3.0), x.detach().clone().geometric_(0.3), x.detach().clone().log_normal_(), x.detach().clone().cauchy_()),
        "multinomial": lambda x: (torch.multinomial(x.detach().softmax(-1), 3), torch.multinomial(x.detach().abs(), 20, replacement=True), torch.multinomial(x[0].detach().abs(), 1)),
        "gumbel": lambda x: (F.gumbel_softmax(x, tau=0.5), F.gumbel_softmax(x, hard=True)),
        "rrelu": lambda x: (F.rrelu(x, training=True), F.rrelu(x)),
        "poisson": lambda x: (torch.poisson(x.detach().abs() * 5), torch.distributions.Poisson(x.detach().abs() + 1).sample()),
        "initialised": lambda x: (nn.init.kaiming_uniform_(torch.empty(4, 6)), nn.init.xavier_normal_(torch.empty(4, 6)), nn.init.trunc_normal_(torch.empty(40)), nn.init.orthogonal_(torch.empty(3, 5)).abs()),
        "halves": lambda x: (torch.rand(6, dtype=torch.float16), torch.randn(20, dtype=torch.bfloat16), F.dropout(x.detach().half(), 0.3), torch.rand_like(x.detach().bfloat16())),
        "between_breaks": lambda x: (torch.rand(2), print("", end=""), torch.rand(2), F.dropout(x, 0.5))[::3],
        "seeded_inside": lambda x: (torch.manual_seed(3), torch.rand(3), torch.randn(2))[1:],
        "by_mask": lambda x: torch.where(torch.rand_like(x) > 0.5, x, -x) * (torch.rand(8, 1) > 0.2),
        "layouts": lambda x: (torch.rand_like(x.t()), torch.randn_like(x.t()), torch.rand_like(x.view(2, 4, 4, 4).to(memory_format=torch.channels_last))),
        "stochastic_depth": lambda x: x * torch.empty(8, 1).bernoulli_(0.8).div_(0.8) + torch.randn(16) * 0.1,
    },
)


# Operators that users register.

LIBRARY = torch.library.Library("peer_calls", "FRAGMENT")
LIBRARY.define("scale(Tensor x, float by) -> Tensor")
LIBRARY.define("add_rows_(Tensor(a!) x, Tensor row) -> ()")
LIBRARY.define("two(Tensor x, int n=2) -> (Tensor, Tensor)")
LIBRARY.define("pick(Tensor[] items, int which, Tensor? extra=None) -> Tensor")
LIBRARY.define("nonzeros(Tensor x) -> Tensor")
LIBRARY.define("needs_contiguous(Tensor x) -> Tensor", tags=[torch.Tag.needs_fixed_stride_order] if hasattr(torch.Tag, "needs_fixed_stride_order") else [])
LIBRARY.define("strides_of(Tensor x) -> Tensor")
LIBRARY.define("write_all_(Tensor(a!)[] items, Scalar value) -> ()")
LIBRARY.define("write_and_return_(Tensor(a!) x, Tensor y) -> Tensor")
LIBRARY.define("write_optional_(Tensor(a!)? x, Tensor y) -> ()")


def kernel(name):
    return lambda function: LIBRARY.impl(name, function, "CompositeExplicitAutograd")


def fake(name):
    return torch.library.register_fake(f"peer_calls::{name}", lib=LIBRARY)


kernel("scale")(lambda x, by: x * by)
fake("scale")(lambda x, by: torch.empty_like(x))
kernel("two")(lambda x, n=2: (x[:n].clone(), x.sum(0)))
fake("two")(lambda x, n=2: (x.new_empty(n, *x.shape[1:]), x.new_empty(x.shape[1:])))
kernel("pick")(lambda items, which, extra=None: items[which] + (0 if extra is None else extra))
fake("pick")(lambda items, which, extra=None: torch.empty_like(items[which]))
kernel("nonzeros")(lambda x: x.nonzero())
kernel("needs_contiguous")(lambda x: x.clone())
fake("needs_contiguous")(lambda x: torch.empty_like(x))
kernel("strides_of")(lambda x: torch.tensor(x.stride()))
fake("strides_of")(lambda x: torch.empty(x.dim(), dtype=torch.long))


@fake("nonzeros")
def _nonzeros(x):
    size = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(size, x.dim(), dtype=torch.long)


@kernel("add_rows_")
def _add_rows(x, row):
    x.add_(row)


fake("add_rows_")(lambda x, row: None)


@kernel("write_all_")
def _write_all(items, value):
    for item in items:
        item.fill_(value)


fake("write_all_")(lambda items, value: None)


@kernel("write_and_return_")
def _write_and_return(x, y):
    x.copy_(y)
    return y * 2


fake("write_and_return_")(lambda x, y: torch.empty_like(y))


@kernel("write_optional_")
def _write_optional(x, y):
    if x is not None:
        x.add_(y)


fake("write_optional_")(lambda x, y: None)
ops = torch.ops.peer_calls

each(
    "registered",
    lambda: [r(4, 6), r(6)],
    {
        "plain": lambda x, y: (ops.scale(x, 2.0) + 1, ops.scale(x * 2, 0.5), ops.scale(y, 3)),
        "of_views": lambda x, y: (ops.scale(x.t(), 2.0), ops.scale(x[:, ::2], 2.0) * 2, ops.scale(x[1], 1.5)),
        "two_results": lambda x, y: (lambda a, b: (a * 2, b + y, a.sum() + b.sum()))(*ops.two(x.relu(), 3)),
        "one_result_unused": lambda x, y: ops.two(x)[1] * 2,
        "lists": lambda x, y: (ops.pick([x, x * 2], 1), ops.pick([y, y + 1, y + 2], -1, y), ops.pick([x.t(), x.t()], 0, extra=None)),
        "sizes_from_data": lambda x, y: (lambda i: (i.shape[1], i.sum(0) >= 0))(ops.nonzeros(x > -9)),
        "written": lambda x, y: (lambda c: (ops.add_rows_(c, y), c * 2)[1])(x.clone()),
        "written_view": lambda x, y: (lambda c: (ops.add_rows_(c[1:3], y), ops.add_rows_(c.t()[:4].t(), y[:4]), c)[2])(x.clone()),
        "written_list": lambda x, y: (lambda a, b: (ops.write_all_([a, b[1:]], 2.5), a + b.sum(), b)[1:])(x.clone(), y.clone()),
        "written_and_returned": lambda x, y: (lambda c: (ops.write_and_return_(c[0], y), c))(x.clone()),
        "written_optional": lambda x, y: (lambda c: (ops.write_optional_(None, y), ops.write_optional_(c, y), c)[2])(y.clone()),
        "written_then_read_before": lambda x, y: (lambda c: (lambda before: (ops.add_rows_(c, y), before, c * 2)[1:])(c * 3))(x.clone()),
        "strides_are_seen": lambda x, y: (ops.strides_of(x), ops.strides_of(x.t()), ops.strides_of(x[:, 1:]), ops.strides_of(x.expand(2, 4, 6))),
        "strides_of_computed": lambda x, y: (ops.strides_of(x.t() + 1), ops.strides_of((x * 2).t()), ops.strides_of(x.view(2, 2, 6).permute(2, 0, 1) * 2), ops.strides_of(x.t().contiguous())),
        "strides_of_images": lambda x, y: (lambda i: (ops.strides_of(i), ops.strides_of(i.relu()), ops.strides_of(F.pad(i, (1, 1))), ops.strides_of(i + i.contiguous())))(x.view(1, 2, 2, 6).to(memory_format=torch.channels_last)),
        "needs_strides": lambda x, y: (ops.needs_contiguous(x.t() * 2), ops.needs_contiguous((x * 2)[:, ::2])),
        "between_kernels": lambda x, y: (ops.scale((x * y).relu(), 0.5).tanh() @ y + ops.scale(y, 2.0).sum()),
        "in_input": lambda x, y: (ops.add_rows_(x, y), ops.add_rows_(x[:2], y), x.sum(1))[2],
    },
    gradients=False,
)


# Sizes and numbers from data.

each(
    "from_data",
    lambda: [torch.tensor([3.0, -1.0, 0.0, 2.0, 5.0, 0.0]), torch.tensor([2, 1, 3])],
    {
        "items": lambda x, n: (lambda k: (torch._check(k >= 0), torch._check(k <= 6), x[:k], torch.zeros(k), k + 1)[2:])(n[0].item()),
        "positions": lambda x, n: (x.nonzero(), torch.argwhere(x > 0), x.nonzero().sum(), x[x > 0], x[x.nonzero(as_tuple=True)]),
        "masked": lambda x, n: (lambda y: (y.sum(), y * 2, y.sort()[0], y.cumsum(0), y[None] + 1))(x[x > 0]),
        "masked_matmul": lambda x, n: (lambda y: (y[:, None] @ y[None], y @ y, torch.outer(y, y).sum()))(x[x > 0]),
        "masked_cat": lambda x, n: (torch.cat([x[x > 0], x]), torch.cat([x[x > 0], x[x <= 0]]), torch.stack([x[x > 0], x[x > 0] + 1])),
        "masked_write": lambda x, n: (lambda c: (c.masked_fill_(c > 2, 0), c.__setitem__(c < 0, 9.0), c))(x.clone()),
        "none_found": lambda x, n: (x[x > 99], x[x > 99].sum(), (x > 99).nonzero(), torch.cat([x[x > 99], x[:1]])),
        "repeats": lambda x, n: (torch.repeat_interleave(x[:3], n), torch.repeat_interleave(n), x[:3].repeat_interleave(2), torch.repeat_interleave(x.view(3, 2), n, 0)),
        "splits": lambda x, n: [part.sum() for part in torch.split(x, n.tolist())],
        "unique": lambda x, n: (torch.unique(x), *torch.unique(x, return_counts=True), torch.unique_consecutive(x), torch.unique(x.view(3, 2), dim=0)),
        "counts": lambda x, n: (torch.bincount(n), torch.bincount(n, minlength=6), torch.bincount(n, x[:3])),
        "floats": lambda x, n: (lambda s: (x * s, x + s, torch.full((2,), s), s))(x[0].item()),
        "bools": lambda x, n: (torch.where((x > 0).any(), x, -x), torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))),
        "loops": lambda x, n: sum((x[k] for k in range(int(n[2]))), torch.zeros(())),
        "views_of_found": lambda x, n: (lambda y: (y.view(-1, 1), y.unsqueeze(0), y.expand(2, -1), y.flip(0), y.reshape(-1).t()))(x[x != 0]),
        "softmax_of_found": lambda x, n: (lambda y: (y.softmax(0), y.argmax(), y.topk(2)[0], F.layer_norm(y, y.shape)))(x[x != 0]),
        "scattered": lambda x, n: torch.zeros(6).scatter_add(0, (x > 0).nonzero()[:, 0], x[x > 0]),
        "ranges": lambda x, n: (lambda k: (torch.arange(k), torch.ones(k, 2).sum(0), torch.eye(k)))(n[2].item()),
    },
    gradients=False,
)


# Memory far away, and elements that are shared.

def plane(x):
    """More elements than 32 bits count, in the memory of one."""
    return x[:1].expand(1 << 16, 1 << 16)


each(
    "far",
    lambda: [torch.ones(1), torch.zeros(3)],
    {
        "slice_of_expanded": lambda x, y: (plane(x)[-3:, -2:] + 1, plane(x)[::40000, ::50000] * 2, plane(x)[65535, 65535]),
        "view_of_expanded": lambda x, y: (plane(x).t()[1, :3] + y, plane(x)[12345].sum(), plane(x)[:, 7].mean(), plane(x)[:2].amax(1)),
        "strides_beyond": lambda x, y: (y.as_strided((2, 2), (1, 1)) + 1, y.as_strided((1, 3), (1 << 40, 1)) * 2, y[:1].as_strided((1, 1), (1 << 33, 1 << 34)).exp()),
        "gathered": lambda x, y: (plane(x)[torch.tensor([0, 65535, -1]), torch.tensor([65535, 0, -1])], plane(x)[torch.tensor([3, 65535])][:, :2]),
        "sizes": lambda x, y: (plane(x).numel(), plane(x).shape[0] * plane(x).shape[1], plane(x).flatten(0, 0).shape, plane(x).numel() + y.numel()),
    },
    gradients=False,
)


# Primitive operators, called directly.

each(
    "primitive",
    lambda: [r(4, 6), r(4, 6)],
    {
        "arithmetic": lambda x, y: (prims.add(x, y), prims.mul(x, y), prims.div(x, y), prims.maximum(x, y), prims.pow(x.abs(), y)),
        "comparison": lambda x, y: (prims.eq(x, y), prims.lt(x, y), prims.where(prims.gt(x, y), x, y)),
        "shapes": lambda x, y: (prims.rev(x, [1]), prims.cat([x, y], 0)),
        "converted": lambda x, y: (prims.convert_element_type(x, torch.float16), prims.convert_element_type(x * 3, torch.int32), prims.convert_element_type(x, torch.bool)),
        "reduced": lambda x, y: (prims.sum(x, [0]), prims.amax(x, [1]), prims.prod(x, [0, 1]), prims.var(x, [1], 0.0)),
        "made": lambda x, y: (prims.iota(5, start=2, step=3, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False), prims.full([2, 2], 1.5, dtype=torch.float32, device=torch.device("cpu"), requires_grad=False)),
        "functions": lambda x, y: (prims.erf(x), prims.expm1(x), prims.lgamma(x.abs() + 1), prims.cbrt(x), prims.rsqrt(x.abs() + 1), prims.bessel_j0(x)),
    },
    gradients=False,
)


# Operators on integers of eight bits, and quantization by hand.

each(
    "eight_bits",
    lambda: [r(5, 32), ints(32, 32, low=-128, high=128, dtype=torch.int8), torch.rand(32)],
    {
        "weights": lambda x, w, s: (F.linear(x, w.to(x.dtype)) * s, aten._weight_int8pack_mm(x.bfloat16(), w, s.bfloat16())),
        "dynamic": lambda x, w, s: (lambda scale: (x / scale).round().clamp(-128, 127).to(torch.int8).float() * scale)(x.abs().amax(1, True) / 127),
        "int_mm": lambda x, w, s: (torch._int_mm(w, w), w.int() @ w.int().t(), (w.int() @ w.int()).float() * s),
        "fake": lambda x, w, s: (torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), torch.fake_quantize_per_channel_affine(x, s + 0.1, torch.zeros(32, dtype=torch.int32), 1, 0, 255)),
        "packed": lambda x, w, s: (lambda b: ((b & 15).to(torch.int8) - 8, (b >> 4).to(torch.int8) - 8, (b & 15) | (b << 4)))(w.view(torch.uint8)),
        "per_tensor": lambda x, w, s: torch.quantize_per_tensor(x, 0.1, 10, torch.quint8).dequantize(),
        "int_repr": lambda x, w, s: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).int_repr(),
        "choose": lambda x, w, s: (torch.aminmax(x), (x.max() - x.min()) / 255, (-x.min() / ((x.max() - x.min()) / 255)).round().clamp(0, 255).to(torch.uint8)),
        "decomposed": lambda x, w, s: (lambda q: (q - 3).float() * 0.2)((x / 0.2 + 3).round().clamp(0, 255).to(torch.uint8).int()),
        "overflow": lambda x, w, s: (w + w, w * 2, -w, w.abs(), w << 1, w // 3, w.view(torch.uint8) + 200, w.sum(dtype=torch.int8), w - 128),
        "matmul_of_small": lambda x, w, s: (w @ w, torch.mv(w, w[0]), w.view(torch.uint8) @ w.view(torch.uint8), torch.dot(w[0], w[1])),
    },
    gradients=False,
)


# Functions that few use.

each(
    "rarely_used",
    lambda: [r(6, 7), torch.rand(6, 7) * 5 + 0.1],
    {
        "bessel": lambda x, p: (torch.special.bessel_j0(x), torch.special.bessel_j1(x * 10), torch.special.bessel_y0(p), torch.special.bessel_y1(p), torch.special.modified_bessel_i0(x), torch.special.modified_bessel_k1(p)),
        "bessel_scaled": lambda x, p: (torch.special.i0e(x * 9), torch.special.i1(x), torch.special.i1e(x), torch.special.scaled_modified_bessel_k0(p), torch.special.spherical_bessel_j0(x)),
        "gammas": lambda x, p: (torch.lgamma(p), torch.digamma(p), torch.polygamma(1, p), torch.polygamma(3, p), torch.special.gammainc(p, p.flip(0)), torch.special.gammaincc(p, p.flip(1)), torch.mvlgamma(p + 2, 2)),
        "zeta": lambda x, p: (torch.special.zeta(p + 1.1, p), torch.special.zeta(torch.tensor([1.0, 0.5, 3.0]), torch.tensor([2.0, 2.0, 1.0]))),
        "errors": lambda x, p: (torch.erf(x), torch.erfc(x * 3), torch.special.erfcx(x), torch.erfinv(x.tanh()), torch.special.ndtr(x), torch.special.ndtri(p / 6), torch.special.log_ndtr(x * 5)),
        "polynomials": lambda x, p: (torch.special.chebyshev_polynomial_t(x, 3), torch.special.hermite_polynomial_h(x, 2), torch.special.laguerre_polynomial_l(x, 3), torch.special.legendre_polynomial_p(x.tanh(), 2)),
        "airy": lambda x, p: torch.special.airy_ai(x),
        "entropies": lambda x, p: (torch.special.entr(p), torch.special.xlogy(x, p), torch.special.xlog1py(x, p), torch.special.logit(p / 6), torch.special.logit(p / 6, 0.2), torch.special.expit(x)),
        "logs": lambda x, p: (torch.log1p(p), torch.expm1(x), torch.logaddexp(x, p), torch.logaddexp2(x, p), torch.special.log_softmax(x, 0), torch.special.logsumexp(x, 1), p.log2(), p.log10(), x.exp2()),
        "angles": lambda x, p: (torch.atan2(x, p), torch.hypot(x, p), torch.deg2rad(x), torch.rad2deg(x), torch.sinc(x), torch.special.sinc(x * 0), x.tanh().atanh(), (p + 1).acosh(), x.asinh()),
        "neighbours": lambda x, p: (torch.nextafter(x, p), torch.frexp(x), torch.ldexp(x, torch.tensor(3)), torch.heaviside(x, p), torch.float_power(p, 2), torch.copysign(p, x)),
    },
    gradients=False,
    rtol=1e-4,
    atol=1e-5,
)
