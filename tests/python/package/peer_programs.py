"""More small programs on the subjects that the tests of PyTorch's own compiler have; they join those of `peer_cases`.

Here are overloads of ATen called directly, backward operators, writes in loops and through slices, user operators that write, numbers that
are symbols, and element types that few kernels have.
"""

import math

import torch
import torch.nn.functional as F
from peer_cases import PEERS, Peer, aten, bools, each, inf, ints, nan, one, peer, r, two
from torch import nn

prims = torch.ops.prims

# Fused loops.

each(
    "fused",
    lambda: [r(2, 8, 16), r(2, 8, 16), r(8, 16)],
    {
        "horizontal": lambda a, b, c: (a + b, a - c, b * c),
        "horizontal_reshaped": lambda a, b, c: (a.view(-1) + 1, (b * 2).view(16, 16), a.permute(0, 2, 1) + 1),
        "vertical": lambda a, b, c: ((a.sin() + b).cos() * c).exp().mean(-1, keepdim=True) - a,
        "two_sizes": lambda a, b, c: (a[:, :4] + 1, b[:, 4:] * 2, a.sum(1), c.sum()),
        "realized": lambda a, b, c: (lambda y: (y[:, :1] + y, y.flip(1) * y, y.roll(1, 2) + y.mT.reshape(2, 8, 16)))((a * b + c).relu()),
        "broadcast_both": lambda a, b, c: a[:1, :, :1] + b[:, :1, :1] + c[None, :1],
        "expanded_reduction": lambda a, b, c: (a[:, :, None] + b[:, None]).sum((0, 3)),
        "softmax_backward_by_hand": lambda a, b, c: (lambda s: s * (b - (s * b).sum(-1, keepdim=True)))(a.softmax(-1)),
        "mean_of_var": lambda a, b, c: (a - a.mean(-1, keepdim=True)) * (a.var(-1, keepdim=True) + 1e-5).rsqrt() * c + b,
        "cumsum_then_reduce": lambda a, b, c: (a.cumsum(-1) * b).sum(1) + c.cumsum(0)[-1],
        "split_cumsum": lambda a, b, c: [x.cumsum(-1) for x in a.split([3, 5, 8], -1)],
        "split_cumprod": lambda a, b, c: [(x * 0.5).cumprod(-1) for x in a.chunk(4, -1)],
        "mixed_reductions": lambda a, b, c: (a.sum((0, 2)) + b.amax((0, 2)), (a * b).prod(1), a.argmax(2) + b.argmin(2)),
        "simplified_loops": lambda a, b, c: a.unsqueeze(2).expand(2, 8, 3, 16).reshape(2, 24, 16) + c.repeat(3, 1),
        "argmax_to_float": lambda a, b, c: a.argmax(-1).to(torch.float32) * b.sum(-1),
        "any_of_isinf": lambda a, b, c: ((a / (b > 0)).isinf().any(-1), (a / (b > 0)).isnan().any(), (a > 0).all((0, 1))),
        "lerp_of_views": lambda a, b, c: torch.lerp(a.mT, b.mT, c.t() * 0.1),
        "triple_where": lambda a, b, c: torch.where(a > b, torch.where(b > c, a, b), torch.where(a > c, c, 1.0)),
        "disjoint_reads": lambda a, b, c: torch.cat([a[:, :4].sin(), a[:, 4:].cos()], 1) * a,
        "tmp_not_defined": lambda a, b, c: (lambda s: (s.exp() / s.exp().sum(-1, keepdim=True)).mT @ b)(a - a.amax(-1, keepdim=True)),
        "sum_of_outer": lambda a, b, c: (a.unsqueeze(-1) * b.unsqueeze(-2)).sum((1, 2)),
        "triu_masks": lambda a, b, c: a.masked_fill(torch.ones(8, 16, dtype=torch.bool).triu(1), -1e4).softmax(-1) + torch.triu(c, 2) - torch.tril(c, -1),
        "divisor_of_count": lambda a, b, c: (a * (b > 0)).sum() / (b > 0).sum().clamp(min=1),
        "index_expressions": lambda a, b, c: a + (torch.arange(8)[:, None] * 16 + torch.arange(16)).float() / 128 + (torch.arange(16) % 3),
        "float_index_expression": lambda a, b, c: a * (torch.arange(16) * 0.5 + 1) + torch.arange(8, dtype=torch.float64)[:, None].to(torch.float32),
    },
)


@peer(lambda: [r(10, 1), r(1, 17)])
def reductions_over_broadcasts(x, y):
    z = x + y
    return z.sum(), z.mean(0), z.mean(1), z.amax(), (z * 0 + 1).sum(1), z.var(), z.softmax(1).sum(0)


@peer(lambda: [r(1, 4, 4099)])
def multilayer_of_prime_size(x):
    return x.sum(), x.max(), x.mean(-1), x.var(-1), x.argmin(-1), x.any(-1), x.prod(-1), torch.linalg.vector_norm(x)


@peer(lambda: [torch.zeros(4000, dtype=torch.bool), torch.ones(70, 70)], gradients=False)
def multilayer_any(x, y):
    return x.any(), (y > 1).any(), y.isinf().any(), torch.all(y == 1), y.bool().sum(), (~x).all()


@peer(lambda: [r(300, 400, dtype=torch.float16)], gradients=False)
def multilayer_sum_of_halves(x):
    return x.sum(), x.float().sum(1), x.mean(), x.bfloat16().amax(0)


@peer(lambda: [r(1 << 17)])
def larger_pointwise(x):
    return x + 1, x.exp().sum(), (x * 2)[::3], x.view(512, -1).sum(0), x.view(-1, 64).amax(1)


# Overloads called directly.

each(
    "aten",
    two,
    {
        "sums": lambda x, y: (aten.sum.default(x), aten.sum.dim_IntList(x, [0], True), aten.mean.dim(x, [1]), aten.amax.default(x, [0]), aten.prod.dim_int(x, 1), aten.any.dim(x > 0, 0), aten.all.dims(x > 0, [0, 1])),
        "var": lambda x, y: (aten.var.correction(x, [1], correction=0), aten.var_mean.correction(x, None, correction=1), aten.std.dim(x, [0], True), aten.std.correction(x, [1], correction=2)),
        "scalars": lambda x, y: (aten.add.Scalar(x, 2), aten.sub.Scalar(x, 1, 2), aten.mul.Scalar(x, 0.5), aten.div.Scalar(x, 3), aten.remainder.Scalar(x, 2), aten.fmod.Scalar(x, 1.5), aten.pow.Scalar(2.0, x), aten.pow.Tensor_Scalar(x, 3)),
        "scalar_first": lambda x, y: (aten.rsub.Scalar(x, 2), aten.remainder.Scalar_Tensor(5, y.detach().abs() + 1), aten.where.ScalarSelf(x > 0, 1.0, x), aten.where.ScalarOther(x > 0, x, 0), aten.where.Scalar(x > 0, 1, 0)),
        "compare": lambda x, y: (aten.eq.Scalar(x, 0), aten.ne.Tensor(x, y), aten.lt.Scalar(x, 0.5), aten.ge.Tensor(x, y), aten.logical_and.default(x > 0, y > 0), aten.bitwise_and.Tensor(x > 0, y > 0), aten.bitwise_xor.Scalar(x > 0, True)),
        "views": lambda x, y: (aten.view.default(x, [16, 8]), aten.slice.Tensor(x, 1, 2, 9, 3), aten.select.int(x, 0, -1), aten.permute.default(x, [1, 0]), aten.unsqueeze.default(x, -1), aten.squeeze.dims(x[:1], [0]), aten.expand.default(x[:1], [4, -1])),
        "t_and_transpose": lambda x, y: (aten.t.default(x), aten.transpose.int(x, 0, 1), aten.diagonal.default(x), aten.unfold.default(x, 1, 3, 2), aten.alias.default(x), aten._reshape_alias(x, [128], [1]), aten.detach.default(x)),
        "copies_of_views": lambda x, y: (aten.slice_copy.Tensor(x, 0, 1, 4), aten.select_copy.int(x, 0, 1), aten.permute_copy.default(x, [1, 0]), aten.t_copy.default(x), aten.split_copy.Tensor(x, 4), aten.unbind_copy.int(x[:2]), aten.diagonal_copy.default(x)),
        "splits": lambda x, y: (*aten.split.Tensor(x, 3), *aten.split_with_sizes.default(x, [2, 6]), *aten.unbind.int(x[:, :2], 1), *aten.chunk.default(x, 3, 1), *aten.split.sizes(x, [1, 7])),
        "matmuls": lambda x, y: (aten.mm.default(x, y.t()), aten.addmm.default(x[:, :8], x, y.t(), beta=0.5, alpha=2), aten.bmm.default(x[None], y.t()[None]), aten.mv.default(x, y[0]), aten.dot.default(x[0], y[0]), aten.addmv(x[:, 0], x, y[0]), aten.vdot(x[0], y[0])),
        "activations": lambda x, y: (aten.relu(x), aten.gelu.default(x, approximate="tanh"), aten.silu(x), aten.hardswish(x), aten.hardsigmoid(x), aten.leaky_relu(x, 0.3), aten.elu(x, 1.5, 0.7, 0.9), aten.hardtanh(x, -0.5, 0.5), aten.log_sigmoid_forward(x)[0], aten.mish(x)),
        "normalise": lambda x, y: (aten.native_layer_norm(x, [16], y[0], y[1], 1e-5)[0], aten.native_group_norm(x[None], None, None, 1, 8, 16, 2, 1e-5)[0], aten._softmax(x, 1, False), aten._log_softmax(x, 0, False), aten._safe_softmax(x, 1)),
        "fills": lambda x, y: (aten.full([2, 3], 4), aten.full_like(x, 2.5), aten.zeros_like(x), aten.ones_like(x, dtype=torch.int32), aten.new_zeros(x, [2]), aten.scalar_tensor(2.0), aten.arange.start_step(1, 9, 2), aten.empty_like(x).shape, aten.fill.Scalar(x, 3.0), aten.fill.Tensor(x, torch.tensor(2.0))),
        "converted": lambda x, y: (aten._to_copy(x, dtype=torch.float64), aten.to.dtype(x, torch.int32), aten.type_as(x, y.half()), prims.convert_element_type(x.detach(), torch.float16), aten.to.other(x, y.double()), aten._to_copy(x, dtype=torch.bool)),
        "clamps": lambda x, y: (aten.clamp.default(x, -1, None), aten.clamp.Tensor(x, y - 1, y + 1), aten.clamp_min.Tensor(x, y), aten.clamp_max(x, 0.3), aten.maximum(x, y), aten.fmin(x, y), aten.threshold(x, 0.2, 5)),
        "rolled": lambda x, y: (aten.roll(x, [1, 2], [0, 1]), aten.flip(x, [1]), aten.repeat(x, [2, 1]), aten.constant_pad_nd(x, [1, 2, 0, 1], 3.0), aten.reflection_pad1d(x, [1, 2]), aten.replication_pad1d(x, [2, 0]), aten.cat([x, y], -1), aten.stack([x, y], 1)),
        "index": lambda x, y: (aten.index.Tensor(x, [torch.tensor([1, 0]), None]), aten.index_select(x, 1, torch.tensor([3, 3])), aten.gather(x, 1, torch.zeros(8, 2, dtype=torch.int64)), aten.take(x, torch.tensor([5])), aten.embedding(x, torch.tensor([[1, 2]])), aten.index_put(x, [torch.tensor([0])], y[:1], True)),
        "scatters": lambda x, y: (aten.scatter.src(x, 0, torch.zeros(1, 16, dtype=torch.int64), y[:1]), aten.scatter.value(x, 1, torch.ones(8, 1, dtype=torch.int64), 2.0), aten.scatter_add(x, 0, torch.zeros(3, 16, dtype=torch.int64), y[:3]), aten.select_scatter(x, y[0], 0, 2), aten.slice_scatter(x, y[:2], 0, 1, 3), aten.diagonal_scatter(x, y[0, :8])),
        "foreach": lambda x, y: (aten._foreach_add.List([x, y], [y, x]), aten._foreach_mul.Scalar([x, y], 2.0), aten._foreach_sqrt([x.abs() + 1]), aten._foreach_div.ScalarList([x, y], [2.0, 3.0]), aten._foreach_lerp.Scalar([x], [y], 0.5), aten._foreach_maximum.List([x], [y]), aten._foreach_clamp_min([x], 0.1)),
        "losses": lambda x, y: (aten.mse_loss(x, y), aten.l1_loss(x, y, 2), aten.smooth_l1_loss(x, y, 0, 0.5), aten.huber_loss(x, y, 1, 2.0), aten.nll_loss_forward(x.log_softmax(1), torch.arange(8), None, 1, -100)[0], aten.binary_cross_entropy_with_logits(x, y.sigmoid())),
    },
)
each(
    "backward_of",
    two,
    {
        "softmaxes": lambda g, x: (aten._softmax_backward_data(g, x.softmax(1), 1, torch.float32), aten._log_softmax_backward_data(g, x.log_softmax(0), 0, torch.float32)),
        "activations": lambda g, x: (aten.hardswish_backward(g, x), aten.hardsigmoid_backward(g, x), aten.silu_backward(g, x), aten.elu_backward(g, 1.0, 1.0, 1.0, False, x), aten.softplus_backward(g, x, 1, 20), aten.mish_backward(g, x), aten.logit_backward(g, x.sigmoid(), 1e-4)),
        "losses": lambda g, x: (aten.mse_loss_backward(g[0, 0], x, g, 1), aten.smooth_l1_loss_backward(g[0, 0], x, g, 1, 1.0), aten.huber_loss_backward(g[0, 0], x, g, 1, 1.0), aten.binary_cross_entropy_backward(g[0, 0], x.sigmoid(), g.sigmoid())),
        "layer_norm": lambda g, x: aten.native_layer_norm_backward(g, x, [16], x.mean(1, keepdim=True), (x.var(1, keepdim=True, correction=0) + 1e-5).rsqrt(), g[0], g[1], [True, True, True]),
        "views": lambda g, x: (aten.slice_backward(g[:, :4], [8, 16], 1, 2, 6, 1), aten.select_backward(g[0], [8, 16], 0, 3), aten.diagonal_backward(g[0, :8], [8, 16], 0, 0, 1), aten.unfold_backward(g[:, :15].reshape(8, 5, 3), [8, 16], 1, 3, 3)),
        "index": lambda g, x: (aten.embedding_dense_backward(g, torch.arange(8) % 3, 5, 1, False), aten.nll_loss_backward(g[0, 0], x.log_softmax(1), torch.arange(8), None, 1, -100, torch.tensor(8.0))),
        "pads": lambda g, x: (aten.reflection_pad1d_backward(g, x[:, :13], [1, 2]), aten.replication_pad1d_backward(g, x[:, :12], [2, 2])),
        "dropout": lambda g, x: (aten.native_dropout_backward(g, x > 0, 2.0), aten.native_dropout(x, 0.5, False)[0]),
        "batch_norm": lambda g, x: aten.native_batch_norm_backward(g, x, x[0], x[0], x[1].abs() + 1, x.mean(0), (x.var(0, correction=0) + 1e-5).rsqrt(), True, 1e-5, [True, True, True]),
        "threshold_of_bools": lambda g, x: (aten.threshold_backward(g, x.relu(), 0), aten.leaky_relu_backward(g, x, 0.1, True), aten.gelu_backward(g, x, approximate="tanh"), aten.hardtanh_backward(g, x, -0.4, 0.4)),
    },
    gradients=False,
)


@peer(lambda: [r(2, 4, 6, 8), r(2, 3, 6, 8), r(4, 3, 3, 3)], gradients=False)
def backward_of_convolution(g, x, w):
    back = aten.convolution_backward
    return *back(g, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]), back(g, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])[1]


@peer(lambda: [r(2, 4, 10, 12), r(2, 4, 5, 6)], gradients=False)
def backward_of_upsampling(g, x):
    return (
        aten.upsample_nearest2d_backward(g, [10, 12], [2, 4, 5, 6]),
        aten.upsample_bilinear2d_backward(g, [10, 12], [2, 4, 5, 6], False),
        aten.upsample_bicubic2d_backward(g, [10, 12], [2, 4, 5, 6], True),
        aten.grid_sampler_2d_backward(x, x, torch.zeros(2, 5, 6, 2) + 0.1, 0, 0, False, [True, True]),
        aten.reflection_pad2d_backward(g, x, [3, 3, 2, 3]),
        aten.replication_pad2d_backward(g, x, [3, 3, 2, 3]),
        aten.avg_pool2d_backward(x, g, [2, 2], [2, 2], [0, 0], False, True, None),
        aten.im2col(x, [2, 2], [1, 1], [0, 0], [1, 1]),
        aten.col2im(aten.im2col(x, [3, 2], [1, 1], [1, 0], [1, 2]), [5, 6], [3, 2], [1, 1], [1, 0], [1, 2]),
    )


@peer(lambda: [r(2, 64, 20, 20), r(2, 64, 4, 4)], gradients=False)
def backward_of_large_windows(x, g):
    y, i = aten.max_pool2d_with_indices(x, [13, 13], [5, 5], [2, 2], [1, 1], False)
    back = aten.max_pool2d_with_indices_backward(torch.ones_like(y), x, [13, 13], [5, 5], [2, 2], [1, 1], False, i)
    return back, aten.avg_pool2d_backward(g, x, [13, 13], [5, 5], [2, 2], True, False, None)


@peer(lambda: [r(1, 2, 6, 6, 6)])
def pools_in_three_dimensions(x):
    return F.avg_pool3d(x, 3, 2, 1), F.avg_pool3d(x, (1, 2, 3), divisor_override=5), *F.max_pool3d(x, 2, 1, 1, return_indices=True), F.adaptive_max_pool3d(x, 2), F.adaptive_avg_pool3d(x, (1, 2, 3)), F.lp_pool3d(x.abs() + 0.1, 2, 2)


@peer(lambda: [r(1, 3, 7, 7, 7), r(4, 3, 2, 2, 2), r(3, 2, 3, 3, 3)])
def convolutions_in_three_dimensions(x, w, t):
    return F.conv3d(x, w), F.conv3d(x, w, stride=2, padding=1, dilation=2), F.conv_transpose3d(x, t, stride=2), F.conv3d(x[0], w)


# Writes.


@peer(lambda: [r(8), r(8)], gradients=False)
def writes_in_a_loop(x, y):
    for k in range(4):
        x[k] = y[k] + x[k + 1]
        y[k + 1 :] += x[k]
    return x.sum() + y


@peer(lambda: [torch.zeros(3, 6), r(3)], gradients=False)
def mutations_fused_into_one_loop(out, x):
    out[:, 0] = x
    out[:, 1] = x * 2
    out[:, 2::2] += x[:, None]
    out[1].mul_(out[0])
    return out.sum(0)


@peer(lambda: [torch.randn(3, 8, 1, 4).to(memory_format=torch.channels_last), r(3, 8, 1, 4)], gradients=False)
def add_in_place_to_permuted(x, y):
    return x.add_(y), x.permute(0, 2, 3, 1).mul_(2)


@peer(lambda: [r(4, 8), r(4, 8), r(4, 16)], gradients=False)
def cat_then_add_in_place(x, y, z):
    a = torch.cat((x, y), 1).view(4, 16)
    a.add_(z)
    return a.t().add_(1)


@peer(lambda: [r(8, 16), ints(8, 16, high=9, dtype=torch.int32)], gradients=False)
def in_place_with_other_types(x, y):
    x += y
    y *= 3
    y //= 2
    x /= 3
    x *= y > 4
    z = x.half()
    z += x
    return x, y, z, x.double().add_(y)


@peer(lambda: [r(1, 64)], gradients=False)
def slice_is_written_and_returned(x):
    x[0, 20:40].add_(1)
    y = x[:, 10:30]
    y.copy_(y.flip(1))
    return y + 1, x


@peer(lambda: [r(10, 5), ints(10, high=10)], gradients=False)
def slice_put_of_index(x, i):
    x[i, 1:3] = 5.0
    x[:, 2][i] = 1.0
    x[2:4][:, i % 5] += 1.0
    return x.clone()


@peer(lambda: [r(4, 4), r(4), ints(2, high=4), bools(4)], gradients=False)
def setitem_forms(x, v, i, m):
    x[0] = 1
    x[1, :] = v
    x[:, -1] = torch.tensor(3.0)
    x[i, i] = 9.0
    x[m] = v
    x[..., 0:2] = v[:2]
    x[None, 2] = v
    x[m, 1] = 0.5
    x[-1, ::2] = x[0, ::2]
    return x + 0


@peer(lambda: [r(6, 6), 2], gradients=False)
def setitem_with_a_number(x, n):
    x[n] = n
    x[n + 1 :, 0] = n * 2.5
    x[: n - 1] += n
    x[:, n : n + 2].fill_(n)
    return x


@peer(lambda: [r(4, 6)], gradients=False)
def unsqueezed_in_place(x):
    y = x.clone().unsqueeze_(0)
    z = x.clone().squeeze_().t_()
    w = x.clone().transpose_(0, 1)
    return y, z + 1, w * 2, x.clone().swapaxes_(0, 1)


@peer(lambda: [r(4, 6), r(3, 5)], gradients=False)
def resized(x, y):
    a = torch.empty(0).resize_(2, 3).zero_()
    b = torch.empty(0).resize_as_(x).fill_(1)
    c = x.clone().resize_(4, 3)
    d = x.clone().resize_(2, 12)
    return a, b + x, c * 1, d


@peer(lambda: [r(0, 4), r(3, 0)], gradients=False)
def nothing_is_written(x, y):
    x.add_(1)
    y.fill_(2)
    y[:, :0] = 3
    return x.sum(), y + 1, x


@peer(lambda: [r(8, 8), bools(8, 8)], gradients=False)
def where_in_place(x, m):
    y = torch.where(m, x, 0)
    x.copy_(torch.where(m, 1.0, x))
    torch.where(m, y, x, out=y)
    return x, y


@peer(lambda: [r(5, 5), r(5, 5)], gradients=False)
def results_into_out(x, y):
    a, b, i = torch.empty(5, 5), torch.empty(5), torch.empty(5, dtype=torch.int64)
    torch.max(x, 1, out=(b, i))
    torch.cat([x[:2], y[:3]], out=a)
    torch.mul(x, 2, out=y)
    torch.sort(x, 0, out=(x, torch.empty(5, 5, dtype=torch.int64)))
    return a, b, i, torch.exp(x, out=torch.empty(5, 5))


@peer(lambda: [r(4, 3), r(4, 3)], gradients=False)
def optimizer_step(p, g):
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    for step in range(1, 3):
        m.lerp_(g, 0.1)
        v.mul_(0.99).addcmul_(g, g, value=0.01)
        p.addcdiv_(m / (1 - 0.9**step), (v / (1 - 0.99**step)).sqrt() + 1e-8, value=-0.01)
    torch._foreach_addcmul_([p], [g], [g], 0.1)
    return p, m, v


@peer(lambda: [r(6, 4)])
def views_of_one_clone(x):
    y = x.clone()
    a, b = y[:3], y[3:]
    a.add_(b)
    y.mul_(2)
    b.sub_(a)
    return a * 1, b * 1, y


@peer(lambda: [r(3, 4)])
def view_of_an_alias(x):
    y = x.view(12)
    z = y.view(4, 3)
    return z, z + y.view(4, 3), y[::2].unsqueeze(1).expand(6, 2)


@peer(lambda: [r(3, 4, 5)])
def views_with_dtype_and_order(x):
    y = x.permute(2, 0, 1).contiguous().view(torch.int32)
    return y, y.view(torch.float32).permute(1, 2, 0) + 1, x.mT.view(torch.int32) + 1


# User operators.

if not hasattr(torch.ops, "pyrite_programs") or not hasattr(torch.ops.pyrite_programs, "accumulate"):
    _library = torch.library.Library("pyrite_programs", "DEF")
    _library.define("accumulate(Tensor(a!) x, Tensor y, *, int n=2) -> ()")
    _library.impl("accumulate", lambda x, y, n=2: (x.add_(y * n), None)[1], "CompositeExplicitAutograd")
    _library.define("into(Tensor(a!)[] xs, Tensor? y) -> Tensor")
    _library.impl("into", lambda xs, y: [x.add_(0 if y is None else y) for x in xs][0] * 2, "CompositeExplicitAutograd")
    _library.impl("into", lambda xs, y: torch.empty_like(xs[0]), "Meta")
    _library.define("optional(Tensor(a!)? x, Tensor y) -> Tensor")
    _library.impl("optional", lambda x, y: y + 1 if x is None else (x.mul_(2), y * x)[1], "CompositeExplicitAutograd")
    _library.impl("optional", lambda x, y: torch.empty_like(y), "Meta")
    _library.define("returned(Tensor(a!) x) -> Tensor(a!)")
    _library.impl("returned", lambda x: x.add_(3), "CompositeExplicitAutograd")
    _library.define("strided(Tensor x) -> int", tags=())
    _library.impl("strided", lambda x: x.stride(0), "CompositeExplicitAutograd")
    _library.define("rows(Tensor x) -> Tensor", tags=(torch.Tag.needs_fixed_stride_order,))
    _library.impl("rows", lambda x: torch.full((1,), float(x.stride(0))), "CPU")
    _library.impl("rows", lambda x: x.new_empty(1), "Meta")

    @torch.library.custom_op("pyrite_programs::scaled", mutates_args=())
    def _scaled(x: torch.Tensor, by: float, shape: list[int], name: str = "a", of: torch.dtype | None = None) -> torch.Tensor:
        return (x * by).reshape(shape).clone()

    @_scaled.register_fake
    def _(x, by, shape, name="a", of=None):
        return x.new_empty(shape)

    def _scaled_setup(ctx, inputs, output):
        ctx.by, ctx.shape = inputs[1], inputs[0].shape

    _scaled.register_autograd(lambda ctx, g: ((g * ctx.by).reshape(ctx.shape), None, None, None, None), setup_context=_scaled_setup)

each(
    "library",
    two,
    {
        "writes": lambda x, y: (torch.ops.pyrite_programs.accumulate(x, y, n=3), x * 2)[1],
        "writes_view": lambda x, y: (torch.ops.pyrite_programs.accumulate(x[:, ::2], y[:, :8]), x * 2, y)[1:],
        "writes_fresh": lambda x, y: (lambda z: (torch.ops.pyrite_programs.accumulate(z, y), torch.ops.pyrite_programs.accumulate(z, x), z)[2])(x + y),
        "writes_list": lambda x, y: (torch.ops.pyrite_programs.into([x, y], None) + x, torch.ops.pyrite_programs.into([x], y)),
        "writes_optional": lambda x, y: (torch.ops.pyrite_programs.optional(None, y), torch.ops.pyrite_programs.optional(x, y), x + 1),
        "after_compute": lambda x, y: torch.ops.pyrite_programs.rows((x.t() + 1)) + torch.ops.pyrite_programs.rows(y * 2),
        "written_twice": lambda x, y: (torch.ops.pyrite_peers.fill(x, 1.0), torch.ops.pyrite_peers.fill(x[0], 2.0), torch.ops.pyrite_peers.add_to(x, y), x + y)[2:],
    },
    gradients=False,
)
each("library_grad", two, {"scaled": lambda x, y: torch.ops.pyrite_programs.scaled(x + 1, 2.5, [16, 8]) @ y, "twice": lambda x, y: torch.ops.pyrite_programs.scaled(torch.ops.pyrite_programs.scaled(x, 0.5, [128], "b"), y.shape[0], [8, 16]) * y})

# Numbers that are symbols.

each(
    "symbol",
    lambda: [r(8, 12), r(12, 8)],
    {
        "arange_step": lambda x, y: (torch.arange(0, x.shape[0], 2), torch.arange(x.shape[0], 0, -3), torch.arange(0, 24, x.shape[0] // 4), torch.arange(x.shape[0], x.shape[1]), torch.arange(0.0, x.shape[0], 0.5)),
        "int_fills": lambda x, y: (torch.full((2,), x.shape[0], dtype=torch.int32), torch.full_like(x, x.shape[1], dtype=torch.int32), torch.zeros(2, dtype=torch.int16).fill_(x.shape[0]), torch.ones(3, dtype=torch.int32) * x.shape[0], torch.tensor([1, 2], dtype=torch.uint8) + x.shape[0]),
        "half_fills": lambda x, y: (torch.full((2,), x.shape[0], dtype=torch.float16), x.half() * x.shape[0], x.bfloat16() + x.shape[0] / 2, x.half().masked_fill(x > 0, x.shape[1]), torch.full((2,), x.shape[0] / 3, dtype=torch.bfloat16)),
        "bool_fills": lambda x, y: (torch.full((2,), x.shape[0] > 4), torch.full((2,), x.shape[0], dtype=torch.bool), x * (x.shape[0] == 8), torch.tensor(x.shape[0] < 3)),
        "powers": lambda x, y: (x.shape[0] ** 2 + x, x ** x.shape[0], x.shape[0] ** 0.5 * x, x.abs() ** (1 / x.shape[1]), math.sqrt(x.shape[0]) + x, math.log(x.shape[0]) * x, x.shape[0] ** -1 * x, 2 ** x.shape[0] + x),
        "rounding": lambda x, y: (x + math.floor(x.shape[0] / 3), x + math.ceil(x.shape[1] / 5), x + int(x.shape[0] * 0.7), x + round(x.shape[0] / 3, 1), x + x.shape[0] % 5, x * math.trunc(x.shape[1] / 7), x + abs(-x.shape[0])),
        "linspace": lambda x, y: (torch.linspace(0, x.shape[0], 5), torch.linspace(0, 1, x.shape[0]), torch.logspace(0, 1, x.shape[0]), torch.eye(x.shape[0]), torch.linspace(0, x.shape[0], x.shape[1])),
        "reduced": lambda x, y: (x.sum() / x.shape[0], x.sum(0) / len(x), x.mean() * x.numel(), x.var(0) * (x.shape[0] - 1) / x.shape[0], x.sum() / math.prod(x.shape)),
        "interpolated": lambda x, y: (F.interpolate(x[None, None], size=(x.shape[0] * 2, 7)), F.interpolate(x[None, None], scale_factor=(2.0, 1.5), mode="bilinear"), F.interpolate(x[None], size=x.shape[1] // 2, mode="linear")),
        "padded": lambda x, y: (F.pad(x, (0, 16 - x.shape[1])), F.pad(x, (0, -x.shape[0] % 5), value=1.0), F.pad(x, (x.shape[0], 1)), F.pad(x[None], (x.shape[0] // 4, 1), "reflect")),
        "strides": lambda x, y: (x.as_strided((x.shape[0], 2), (x.shape[1], 1)), torch.empty_strided((x.shape[0], 4), (4, 1)).fill_(1), x.new_empty_strided((2, x.shape[0]), (1, 2)).zero_(), x.stride(0) + x, x.t().contiguous().view(-1)),
        "views": lambda x, y: (x.view(x.shape[0] // 2, 2, -1).transpose(0, 1).reshape(x.shape[0], -1), x.unflatten(0, (2, -1)), x.view(1, *x.shape).expand(3, *x.shape), x.reshape(-1, x.shape[0]), x.flatten().view(*y.shape), x.repeat(x.shape[0] // 4, 1)),
        "slices": lambda x, y: (x[x.shape[0] // 2 :], x[:, -x.shape[0] // 4 :], x[:: x.shape[0] // 2], x.narrow(1, x.shape[0] // 4, x.shape[1] // 3), x[x.shape[0] - 2], x.split(x.shape[0] // 4), x.chunk(x.shape[1] // 4, 1), x.unfold(1, x.shape[0] // 2, 2)),
        "writes": lambda x, y: (lambda z: (z[: x.shape[0] // 2].fill_(x.shape[0]), z[x.shape[0] - 1].mul_(x.shape[1]), z)[2])(x * 1),
        "pools": lambda x, y: (F.adaptive_avg_pool2d(x[None, None], (2, 3)), F.max_pool2d(x[None, None], 2), F.avg_pool2d(x[None, None], 3, 2, 1), F.avg_pool1d(x, x.shape[1]), F.adaptive_max_pool1d(x, 5)),
        "triangles": lambda x, y: (torch.ones(x.shape[0], x.shape[0]).tril(), torch.tril_indices(x.shape[0], x.shape[0]), torch.zeros(x.shape[0], x.shape[0]).fill_diagonal_(2), torch.triu(x, x.shape[0] // 4), torch.diag(x[:, 0])),
        "attention": lambda x, y: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], scale=1 / x.shape[1]) * math.sqrt(x.shape[1]),
        "softmax_scaled": lambda x, y: ((x @ y) / math.sqrt(x.shape[1])).softmax(-1) * float(x.shape[0]),
        "cat_and_stack": lambda x, y: (torch.cat([x, torch.zeros(1, x.shape[1])]), torch.stack([x[0], y[: x.shape[1], 0]]), torch.cat([x] * (x.shape[0] // 4), 1), torch.cat([x[:0], x])),
        "gather": lambda x, y: (x[torch.arange(x.shape[0] - 1, -1, -1)], x[torch.arange(x.shape[0]), torch.arange(x.shape[0])], x.gather(1, torch.arange(x.shape[0])[:, None]), x.index_select(1, torch.arange(x.shape[1] // 2) * 2), F.one_hot(torch.arange(x.shape[0]), x.shape[0])),
        "where": lambda x, y: (torch.where(x > x.shape[0], 0.0, x), torch.where(x > 0, x.shape[0], x), torch.where(torch.arange(x.shape[1]) < x.shape[0], x, -1), x.clamp(max=x.shape[0] / 16), x.clamp(-x.shape[0], 0.1)),
        "products": lambda x, y: (x @ y * x.shape[0], torch.addmm(x[:, :8], x, y, alpha=x.shape[0]), torch.baddbmm(x[None, :, :8], x[None], y[None], beta=1 / x.shape[0]), F.linear(x, y.t())),
        "randomly": lambda x, y: (torch.rand(x.shape[0], 2), torch.randn(x.shape[0]), torch.randint(0, x.shape[0], (4,)), torch.randperm(x.shape[0]), F.dropout(x, 0.5), torch.bernoulli(torch.full((x.shape[0],), 0.5))),
        "returned": lambda x, y: (x.shape, x.numel(), x.shape[0] * 2, x.stride(), x.shape[0] / 2, x.size(1) > 3, -x.shape[0], x + 1, x.shape[0] ** 0.5),
        "normalised": lambda x, y: (F.layer_norm(x, x.shape[1:]), F.group_norm(x[None], x.shape[0] // 4), F.normalize(x, dim=0), F.batch_norm(x, None, None, training=True), F.rms_norm(x, (x.shape[1],), eps=1 / x.shape[0])),
        "converted": lambda x, y: (torch.tensor(x.shape[0], dtype=torch.float32) * x, torch.as_tensor(x.shape[1]), torch.tensor([x.shape[0], x.shape[1]]), torch.tensor(float(x.shape[0])), x.new_tensor(x.shape[0])),
        "bitwise": lambda x, y: (x + (x.shape[0] & 3), x + (x.shape[0] | 1), x * (x.shape[0] >> 1), x + (1 << (x.shape[0] // 4)), x + (x.shape[0] ^ 5)),
        "divided": lambda x, y: (x + x.shape[0] // 3, x * (x.shape[1] / x.shape[0]), x + (x.shape[0] + 1) // 2, x + -x.shape[0] // 3, x + divmod(x.shape[1], 5)[0]),
        "scatter": lambda x, y: (torch.zeros(x.shape[0], 4).scatter(1, (torch.arange(x.shape[0]) % 4)[:, None], 1.0), torch.zeros(x.shape[1]).index_add(0, torch.arange(x.shape[0]), x[:, 0]), x.index_fill(0, torch.arange(2), x.shape[0]), x.scatter(0, torch.zeros(1, 12, dtype=torch.int64), x.shape[0])),
    },
)


@peer(lambda: [r(4, 6), 2.5, 3, True])
def scalars_of_every_kind(x, f, n, flag):
    y = x * f + n if flag else x
    return y, x.clamp(-f, f), x ** n, torch.full((n,), f), torch.add(x, x, alpha=f), F.leaky_relu(x, f), x / f, f * 2, n * f, x.detach().half() * f, x.to(torch.int32) * n, x.to(torch.int32) + f, math.sqrt(f) * x, torch.lerp(x, x + 1, f), F.elu(x, f), x > f


@peer(lambda: [r(4, 6), 0.25])
def dropout_probability_is_a_number(x, p):
    return F.dropout(x, p), F.dropout(x, p, training=False), x * (1 - p)


@peer(lambda: [r(4, 6), torch.tensor(3), torch.tensor(0.5), torch.tensor(True)], gradients=False)
def zero_dim_operands(x, n, f, b):
    return x + n, x * f, x + b, n + f, n + 1, b + 1, n / 2, x.half() * f, x.half() + n, torch.where(b, x, f), x.clamp(max=f), x[n], x ** n, torch.pow(n, 2), x.to(torch.int32) + n, n.expand(3), torch.stack([n, n]), x.sum() + f


@peer(lambda: [r(4, 6).double(), torch.tensor(0.5)], gradients=False)
def zero_dim_of_a_smaller_type(x, f):
    return x + f, f + x, x * f.double(), torch.maximum(x, f), torch.where(x > 0, x, f), x.float() + f.double(), torch.lerp(x, x + 1, f.double())


# Element types.

_UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
for _dtype in _UNSIGNED:
    _name = str(_dtype)[6:]
    PEERS[f"unsigned_{_name}"] = Peer(
        lambda x, y: (x == y, x.to(torch.int64), x.float() + 1, x.clone(), x.view(-1), torch.cat([x, y]), x[1:], torch.where(x == y, x, y)),
        lambda dtype=_dtype: [ints(4, 5, high=60000).to(dtype), ints(4, 5, high=60000).to(dtype)],
        gradients=False,
    )
for _dtype in [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]:
    _name = str(_dtype)[6:]
    PEERS[f"{_name}"] = Peer(
        lambda x, y, d=_dtype: (x.float() + y, (y * 0.3).to(d), y.half().to(d).float(), y.double().to(d).to(torch.bfloat16), x.view(torch.uint8), x.t().contiguous().float(), x.clone(), torch.cat([x, x]), (y * 1e6).to(d).float()),
        lambda dtype=_dtype: [(r(4, 5) * 3).to(dtype), r(4, 5)],
        gradients=False,
    )


@peer(lambda: [ints(8, 16, high=256, dtype=torch.uint8), r(16)], gradients=False)
def packed_bytes(x, s):
    low, high = x & 15, x >> 4
    weights = torch.stack([low, high], -1).reshape(8, 32).to(torch.int8) - 8
    return weights.float() @ torch.cat([s, s]), x.view(torch.int8) + 1, x.float() * s, x[:, :4].contiguous().view(torch.int32), x[:, -4:].contiguous().view(torch.float16).isnan()


@peer(lambda: [r(4, 32), ints(16, 32, low=-128, high=127, dtype=torch.int8), torch.rand(16)], gradients=False)
def int8_weights_only(x, w, s):
    return F.linear(x, w.to(x.dtype)) * s, (x @ w.t().to(x.dtype)) * s, F.linear(x.bfloat16(), w.bfloat16()) * s.bfloat16(), torch._weight_int8pack_mm(x.bfloat16(), w, s.bfloat16())


@peer(lambda: [ints(4, 4, low=-100, high=100, dtype=torch.int8), ints(4, 4, low=-(1 << 30), high=1 << 30, dtype=torch.int32)], gradients=False)
def integers_that_wrap(x, y):
    return x * 3, x + x, x - 120, -x, y * y, y << 3, x.abs() * 2, y.sum(), x.sum(dtype=torch.int8), x.cumsum(0, dtype=torch.int8), y.to(torch.int16), y.to(torch.uint8), x.prod(1), (y * 4).to(torch.int64), x.to(torch.uint8) // 3


@peer(lambda: [torch.tensor([300.7, -1.5, 2.5e9, 70000.0, -128.0, 0.99])], gradients=False)
def floats_to_integers(x):
    return x.to(torch.int64), x[:1].to(torch.int32), x[[1, 4, 5]].to(torch.int8), x[[5]].to(torch.uint8), x.to(torch.float16), x[[0, 1, 3]].to(torch.int32).to(torch.int16), x.bool(), x.to(torch.float16).to(torch.int64)[[0, 1, 4]]


@peer(lambda: [torch.tensor([True, False, True]), torch.tensor([False, False, True])], gradients=False)
def bools_of_every_kind(a, b):
    return a + b, a * b, a & b, a | b, a ^ b, ~a, a == b, a < b, a.float() - 1, a.sum(), a.any(), a.all(), a.cumsum(0), torch.where(a, b, a), a.to(torch.int8) << 1, a.logical_xor(b), a.max(), a.int().argmax(), torch.sort(a, stable=True)[0], a.prod(), a.mul(2), a.masked_fill(b, True), a / 2, a.int() % 2, torch.maximum(a, b), a.bitwise_not(), a[b], a.repeat(2)


# Extremes.


@peer(lambda: [torch.tensor([inf, -inf, nan, 0.0, -0.0, 1e-40, 3e38, -3e38, 0.5, -1.0])], gradients=False)
def infinities_of_activations(x):
    return (
        F.gelu(x), F.gelu(x, approximate="tanh"), F.selu(x), F.celu(x), F.hardsigmoid(x), F.hardtanh(x), F.relu6(x), F.leaky_relu(x), F.softsign(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x), F.threshold(x, 0, 1), F.rrelu(x),
        x.erfc(), x.erfinv(), x.log10(), x.log2(), x.atan(), x.asin(), x.acos(), x.atanh(), x.acosh(), x.sinh(), x.tan(), x.cos(), x.exp2(), torch.sinc(x), x.deg2rad(), torch.atan2(x, torch.tensor(2.0)), torch.logaddexp2(x, -x),
        torch.special.entr(x), torch.special.ndtr(x), torch.special.log_ndtr(x), torch.special.i0(x), torch.special.erfcx(x), torch.special.expit(x), torch.special.xlog1py(x, x), x.amax(), x.amin(), x.argmax(), x.cummax(0)[0], x.sort()[0],
        x.isposinf(), x.isneginf(), x.prod(), x.cumsum(0), x.mean(), x.var(), x.norm(), x.logsumexp(0), F.log_softmax(x, 0), x.nansum(), x.double().float(), x.half().float(), torch.fmax(x, x.flip(0)), torch.maximum(x, x.flip(0)), x.clamp(nan), x.clamp(min=-inf), x > x.flip(0), x.remainder(inf), x.fmod(inf), x.floor_divide(2), torch.nextafter(x, x + 1), x.sort(descending=True)[0],
    )  # fmt: skip


@peer(lambda: [torch.tensor([inf, -inf, nan, 0.0, -0.0, 1e-7, 6e4, -6e4, 0.5, -1.0], dtype=torch.float16), torch.tensor([inf, -inf, nan, 0.0, 3e38, -1e-40], dtype=torch.bfloat16)], gradients=False)
def infinities_of_halves(x, y):
    return tuple((z.exp(), z.log(), z.sqrt(), z.tanh(), z.sigmoid(), F.gelu(z), F.silu(z), z * z, z + z, z / 3, z.sum(), z.amax(), z.relu(), z.clamp(-1, 1), z.abs(), z.sign(), z.float(), z.round(), z.reciprocal(), F.softplus(z), z.erf(), z.isinf()) for z in (x, y))


@peer(lambda: [torch.tensor([0.0, 1.0, -2.0, 3.0]), torch.tensor([0.0, 2.0, 0.5, -1.0])], gradients=False)
def powers_of_every_kind(x, y):
    return x**y, x**2, x**3, x**-1, x**0.5, x**-0.5, 2**x, 0**x, (-2) ** x, x.pow(0), torch.pow(x.int(), 2), torch.pow(x.abs().int(), y.abs().int()), x.double() ** y, torch.float_power(x, 2), x.square(), torch.pow(torch.tensor(2), x), x ** torch.tensor(2), x.to(torch.int64) ** 3, x.half() ** 2


@peer(lambda: [torch.tensor([1.0, 2.0, 0.5, -0.5, 3.0, -3.7]), torch.tensor([2, 3, 0, -4, 7, 5])], gradients=False)
def divisions_of_every_kind(x, i):
    one = torch.tensor(3)
    return x / 2, x // 0.3, x % 0.3, x / one, i / 2, i // 2, i % 2, i // one, i // 2.5, i % -3, torch.div(x, 2, rounding_mode="floor"), torch.div(i, 2, rounding_mode="trunc"), torch.div(i, 2.0, rounding_mode="floor"), 7 / x, 7 // (i.abs() + 1), 7 % (i.abs() + 1), torch.div(7, x), x / True, torch.fmod(i, 3), x.remainder(i.abs() + 1), i / i.abs().clamp(min=1), aten.div.Tensor_mode(x, x + 5, rounding_mode=None)


# Other subjects.


@peer(lambda: [torch.randn(2, 3, 16, 16), torch.tensor([[0, 1.0, 1.0, 9.0, 9.0], [1, 2.0, 3.0, 12.5, 7.25]])], gradients=False)
def roi_align(x, boxes):
    import torchvision

    return torchvision.ops.roi_align(x, boxes, (4, 4)), torchvision.ops.nms(boxes[:, 1:], torch.tensor([0.5, 0.4]), 0.5)


@peer(lambda: [r(3, 8, 8)])
def fourier_transforms(x):
    return torch.fft.rfft2(x).abs(), torch.fft.fft2(x).imag, torch.fft.irfft2(torch.fft.rfft2(x)), torch.fft.fftn(x).real, torch.fft.hfft(torch.complex(x, x)), torch.fft.fft(x, n=5, dim=1).abs(), torch.fft.ifftshift(x), torch.fft.rfftn(x, dim=(0, 1)).real, torch.fft.fft(x, norm="ortho").real


@peer(lambda: [r(3, 8, 8)], gradients=False)
def fourier_transforms_returned(x):
    return torch.fft.rfft(x), torch.fft.fft2(x), torch.fft.rfft2(x), torch.fft.ifft(torch.complex(x, x)), torch.fft.fft(x.double()), torch.fft.rfft(x, dim=0), torch.fft.irfft(torch.complex(x, x))


@peer(lambda: [torch.complex(r(4, 5), r(4, 5)), r(4, 5)], gradients=False)
def complex_products(x, y):
    z = x * y
    return z, x + 2, x * 1j, x.abs() * y, torch.polar(y.abs(), y), x.t() @ x, x.sum(0), x.view(-1).conj() * 2, x.real + y, torch.view_as_real(x)[..., 0], torch.cat([x, x * 2]), x.permute(1, 0).contiguous(), torch.complex(y, y).sgn(), x[1:3] - x[:2], x.angle(), torch.abs(x) ** 2, x.to(torch.complex128)


@peer(lambda: [torch.tensor([1.0, 3.0, 5.0, 7.0]), r(6, 4), ints(4, 4, high=9)], gradients=False)
def searches(edges, x, i):
    return (
        torch.searchsorted(edges, x), torch.searchsorted(edges, x, right=True), torch.searchsorted(edges, x, out_int32=True), torch.searchsorted(edges.expand(6, 4).contiguous(), x), torch.bucketize(x, edges), torch.bucketize(i, torch.tensor([1, 4, 4, 8])),
        torch.searchsorted(edges, 4.0), torch.searchsorted(torch.tensor([5.0, 1.0, 3.0]), x, sorter=torch.tensor([1, 2, 0])), torch.bucketize(x.half(), edges.half(), right=True), torch.searchsorted(edges, torch.tensor([nan, inf, -inf])), torch.bucketize(x.t(), edges),
    )  # fmt: skip


@peer(lambda: [r(4, 33), ints(4, 33, high=5)], gradients=False)
def sorts(x, i):
    return (
        *x.sort(dim=0), *torch.sort(i, stable=True), *torch.sort(i, dim=0, stable=True, descending=True), *torch.sort((x > 0), stable=True), *x.t().sort(dim=1), *torch.sort(x[:, ::2]), *x.topk(5), x.topk(3, dim=0, sorted=True)[0], torch.argsort(i, stable=True, dim=-1),
        *torch.sort(x.half(), stable=True), *torch.sort(x[:0]), *torch.sort(x[0, 0]), *x.sort(-1, True), *torch.sort(i.to(torch.uint8), stable=True), *torch.sort(torch.tensor([nan, 1.0, -inf, inf, nan]), stable=True), torch.kthvalue(x, 3, 0)[0], *torch.unique(i, return_inverse=True, return_counts=True),
    )  # fmt: skip


@peer(lambda: [r(5, 9), ints(5, high=9), torch.rand(9)], gradients=False)
def nll_losses(x, t, w):
    logp = x.log_softmax(1)
    t2 = t.clone()
    t2[0] = -100
    return (
        aten.nll_loss_forward(logp, t, w, 1, -100), aten.nll_loss_forward(logp, t2, None, 0, -100), aten.nll_loss_forward(logp, t, w, 2, 3), F.nll_loss(logp, t, w), F.nll_loss(logp, t2, reduction="sum"), F.cross_entropy(x, t2, w, label_smoothing=0.2),
        F.cross_entropy(x.view(1, 9, 5), t.view(1, 5)), aten.nll_loss_backward(torch.tensor(1.0), logp, t, w, 1, -100, torch.tensor(2.0)), F.cross_entropy(x, torch.full_like(t, -100)),
    )  # fmt: skip


@peer(lambda: [r(3, 4, 6, 5), ints(3, 6, 5, high=4)])
def losses_of_images(x, t):
    return F.cross_entropy(x, t), F.nll_loss(x.log_softmax(1), t, reduction="none"), F.cross_entropy(x, t, ignore_index=2), F.cross_entropy(x, x.softmax(1))


@peer(lambda: [r(8, 8), bools(8, 8), r(64)])
def masked_scatters(x, m, s):
    return x.masked_scatter(m, s), torch.masked_scatter(x, m[:1], s), x.masked_fill(m, 1).masked_scatter(~m, s * 2), torch.masked_fill(x, m[0], -inf).exp()


@peer(lambda: [ints(4, high=3), r(4, 5)], gradients=False)
def repeats_of_everything(n, x):
    return x.repeat_interleave(3, 1), x.repeat(2, 3, 1), torch.repeat_interleave(x, 2), x.tile(2, 2), x.expand(2, -1, -1).reshape(8, 5), x.repeat(1, 0), x[:, None].repeat(1, 2, 1).as_strided((2, 3), (5, 1)), x.repeat_interleave(n + 1, dim=0)


@peer(lambda: [r(2, 3, 8, 9)])
def reflected_pads(x):
    return F.pad(x, (1, 2, 3, 4), "reflect"), F.pad(x, (-1, 2, 0, -3), "reflect"), F.pad(x, (2, 0, 1, 1), "replicate"), F.pad(x, (1, 1, 2, 2), "circular"), F.pad(x[0], (2, 3), "reflect"), F.pad(x, (1, -1, -2, 2), value=0.5), F.pad(x[0], (1, 1), "replicate"), F.pad(x, (7, 7, 6, 6), "reflect"), F.pad(x[None], (1, 1, 1, 1, 1, 1), "reflect")


@peer(lambda: [r(2, 4, 5, 6), r(6, 4, 3, 3), r(6)])
def upsample_cat_and_convolve(x, w, b):
    up = F.interpolate(x, scale_factor=2, mode="nearest")
    y = F.conv2d(torch.cat([up, up * 2], 1)[:, 2:6], w, b, padding=1)
    return y, F.conv2d(x.to(memory_format=torch.channels_last), w, b), F.conv2d(x, w, b, groups=1).relu_(), F.conv2d(x[0], w), F.conv2d(x, w[:, :2], groups=2, padding=1)


@peer(lambda: [r(2, 3, 15, 15), r(3, 5, 3, 3), r(5)])
def transposed_convolutions(x, w, b):
    return F.conv_transpose2d(x, w, b), F.conv_transpose2d(x, w, b, 2, 1, 1), F.conv_transpose2d(x, w, None, (2, 1), (0, 1), dilation=2), F.conv_transpose1d(x[:, :, 0], w[..., 0]), F.conv_transpose2d(x[0], w), F.conv_transpose2d(x.to(memory_format=torch.channels_last), w)


@peer(lambda: [r(4, 5, 6)])
def list_and_dict_outputs(x):
    y = x + 1
    return {"a": [y, {"b": (x * 2, y)}], "c": None, "d": 3}, [x.sum()], (y.mean(),), y


@peer(lambda: [r(3, 3)], gradients=False)
def constants_of_every_type(x):
    return torch.tensor([1, 2]), torch.tensor([1.5]), torch.tensor(True), torch.tensor([[1, 2], [3, 4]], dtype=torch.int8), torch.tensor(5, dtype=torch.uint8) + x.to(torch.uint8), torch.tensor([0.1, nan]), torch.tensor(1 + 2j), torch.tensor([]), torch.full((2,), 3, dtype=torch.int16), torch.tensor(1e300, dtype=torch.float64), torch.tensor([1, 2], dtype=torch.bfloat16), torch.tensor(2**40), torch.full((), -1, dtype=torch.int64), torch.zeros(2, dtype=torch.uint16)


@peer(lambda: [r(6, 7)], gradients=False)
def random_tensors(x):
    return (
        torch.rand_like(x, dtype=torch.float64), torch.randn_like(x[:0]), torch.randint_like(x, 5), torch.randint_like(x, 2, 9, dtype=torch.int32), torch.randint(-5, 5, (3, 4), dtype=torch.int8), torch.randint(0, 1 << 40, (3,)), torch.rand(0), torch.randn(2, 0), torch.bernoulli(x.sigmoid()), x.clone().bernoulli_(0.3), torch.rand(3, dtype=torch.float16), torch.randn(3, dtype=torch.bfloat16), torch.multinomial(x.softmax(1), 2),
        x.clone().normal_(1, 2), x.clone().exponential_(2.0), x.clone().uniform_(-1, 1), torch.normal(x, x.abs()), torch.randperm(9)[:3], x.clone().random_(0, 5), x.clone().geometric_(0.4), x.clone().log_normal_(), x.clone().cauchy_(), torch.poisson(x.abs()), x[:, torch.randperm(7)], torch.rand_like(x.t()), torch.randn(3, dtype=torch.complex64),
    )  # fmt: skip


@peer(lambda: [r(64, 9)])
def dropouts_of_every_kind(x):
    return F.dropout(x, 1.0), F.dropout(x, 0.25).relu(), F.dropout(x * 2, 0.5).sum(0), aten.native_dropout(x, 0.5, True), F.dropout2d(x[None], 0.5), F.feature_alpha_dropout(x, 0.3, True), F.dropout(x.half(), 0.5), F.dropout(x.t(), 0.3), F.dropout(x, 0.1, True, False) * 1


@peer(lambda: [r(4, 6, 8), r(8), r(8)])
def statistics_of_norms(x, w, b):
    y, mean, rstd = aten.native_layer_norm(x, [8], w, b, 1e-5)
    z, m, s = aten.native_group_norm(x, None, None, 4, 6, 8, 2, 1e-5)
    return y, mean, rstd, z, m, s, torch.native_layer_norm(x, (6, 8), None, None, 1e-3)


@peer(lambda: [torch.rand(4, 6), torch.rand(4, 6)])
def bce(p, t):
    return F.binary_cross_entropy(p, t), F.binary_cross_entropy(p, t, reduction="none"), F.binary_cross_entropy(p, t.round(), weight=t), F.binary_cross_entropy_with_logits(p, t, reduction="sum"), F.binary_cross_entropy(p.round(), t)


@peer(lambda: [r(6, 10), ints(8, high=6), r(8, 10)])
def index_puts(x, i, v):
    return (
        x.index_put((i,), v, accumulate=True), x.index_put((i, i), v[:, 0], accumulate=True), aten.index_put(x, [None, i], v[:6, :8]), x.index_put((torch.arange(6) % 2 == 0,), torch.tensor(2.0)), x.index_put((i[:0],), v[:0]), x.index_put((i[:, None], torch.arange(10)), v, accumulate=True),
        x.clone().index_put_((i[:1],), v[0]), x.double().index_put((i,), v.double(), accumulate=True), x.index_put((torch.tensor(3),), v[0]), x.index_add(0, i, v, alpha=0.5), x.index_copy(0, torch.tensor([4, 0]), v[:2]), x.index_reduce(0, i, v, "amax"),
    )  # fmt: skip


@peer(lambda: [r(6, 10), ints(8, high=6), r(8, 10)], gradients=False)
def index_puts_of_halves(x, i, v):
    return x.half().index_put((i,), v.half(), accumulate=True), x.half().index_add(0, i, v.half()), x.half().scatter_add(0, i[:, None].expand(8, 10), v.half())


@peer(lambda: [r(6, 10), ints(3, 10, high=6), r(3, 10)])
def scatters_that_reduce(x, i, v):
    return tuple(f(x, 0, i, v, mode, include_self=own) for f in (torch.scatter_reduce,) for mode in ("sum", "amax", "amin", "mean", "prod") for own in (True, False)) + (x.scatter_add(0, i, v), x.scatter(0, i[:1], v[:1]), torch.zeros(6, 10).scatter_(0, i, v.detach(), reduce="add"), x.scatter_reduce(1, i % 10, v, "sum"), x.half().scatter_add(0, i, v.half()))


@peer(lambda: [r(2, 3, 4)])
def gradient_of_views_and_copies(x):
    y = x.transpose(0, 1)
    z = y.clone(memory_format=torch.contiguous_format)
    z[0] = x[:, 1] * 2
    return z, y.reshape(3, 8).sum(1), x.expand(5, 2, 3, 4).mean(0), torch.stack(x.unbind(2))[1:], x.view(6, 4)[::2].exp()


@peer(lambda: [r(3, 4), r(4, 5)])
def autocast_of_half(x, y):
    with torch.autocast("cpu", torch.bfloat16):
        z = x @ y
        with torch.autocast("cpu", enabled=False):
            w = x @ y
    return z.float(), w


@peer(lambda: [r(5, 6)])
def kwargs_are_taken(x, *, scale=2.0, other=None):
    return torch.add(input=x, other=x, alpha=scale), torch.sum(input=x, dim=1, keepdim=True), F.softmax(input=x, dim=-1), torch.clamp(x, max=0.5), torch.nn.functional.pad(input=x, pad=(1, 1)), x.reshape(shape=(6, 5)), torch.full(size=(2,), fill_value=3.0), x.permute(dims=(1, 0))


@peer(lambda: [r(3, 5, 7)])
def squeezes_of_every_kind(x):
    y = x[:, :1]
    return y.squeeze(), y.squeeze(1), y.squeeze((0, 1)), y.squeeze(0), x.unsqueeze(0).squeeze(), x[:1, :1, :1].squeeze(), x.squeeze(-1), x.unsqueeze(-1).unsqueeze(0).squeeze((0, -1)), y.squeeze(dim=1).unsqueeze(2)


@peer(lambda: [torch.tensor(2.0), r(4), torch.empty(0)], gradients=False)
def zero_dim_reductions(s, x, e):
    return s.sum(), s.sum(0), s.mean(0), s.argmax(0), s.max(0), s.any(0), s.prod(0), s.softmax(0), s.sort(), s.cumsum(0), s.amax(), s.var(correction=0), s.logsumexp(0), s.norm(), s.unsqueeze(0).mean(), e.sum(), e.prod(), e.any(), e.all(), e.mean(), e.cumsum(0), x.sum(()), s.topk(1), s.flip(0), s.median(), s.kthvalue(1), s.unique()


@peer(lambda: [r(4, 6), r(4, 6)], gradients=False)
def checks_of_values(x, y):
    torch._assert_async((x == x).all())
    torch._check(x.shape[0] == 4)
    assert x.shape == y.shape
    return torch.equal(x, x.clone()), torch.allclose(x, x), torch.is_nonzero(torch.tensor(1)), x.is_contiguous(), torch.is_tensor(x), x.is_complex(), torch.isclose(x, y, rtol=1.0), torch.result_type(x, y) == torch.float32, torch.can_cast(torch.int32, torch.float32), x.ndim, torch.numel(x), torch.is_floating_point(x)


@peer(lambda: [r(2, 3, 4, 4), bools(2, 1, 4, 4)])
def attention_with_masks(q, m):
    mask = m | torch.eye(4, dtype=torch.bool)
    return F.scaled_dot_product_attention(q, q, q, mask), F.scaled_dot_product_attention(q, q[:, :, :2], q[:, :, :2]), F.scaled_dot_product_attention(q, q, q, torch.zeros(4, 4), scale=0.5), F.scaled_dot_product_attention(q[:, 0], q[:, 1], q[:, 2], is_causal=True), F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True), F.multi_head_attention_forward(q[0], q[0], q[0], 4, 2, torch.ones(12, 4), None, None, None, False, 0.0, torch.eye(4), None)[0]


@peer(lambda: [r(10, 4), ints(3, 2, high=10)])
def embeddings_of_every_kind(w, i):
    return F.embedding(i, w, 3), F.embedding(i, w, scale_grad_by_freq=True), F.embedding(i, w * 2, max_norm=None), F.embedding_bag(i, w, mode="sum"), w[i], w.index_select(0, i.view(-1)), torch.nn.functional.one_hot(i, 10).to(w.dtype) @ w


class Branched(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 1)])
        self.norm = nn.BatchNorm2d(4)
        self.scale = nn.Parameter(torch.ones(4, 1, 1))
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})

    def forward(self, x):
        for conv in self.convs:
            x = conv(x) * self.scale
        x = self.norm(x).relu().mean((2, 3))
        return {name: head(x) for name, head in self.heads.items()}


for _name, _module, _make in (
    ("branched", Branched(), lambda: [r(2, 3, 6, 6)]),
    ("conv_transpose_sized", nn.ConvTranspose2d(3, 4, 3, 2), lambda: [r(1, 3, 5, 5), [12, 12]]),
    ("conv_transpose", nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.ReLU()), lambda: [r(1, 3, 5, 5)]),
    ("transformer", nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), lambda: [r(2, 3, 8), r(2, 4, 8)]),
    ("local_response", nn.LocalResponseNorm(2), lambda: [r(2, 4, 5, 5)]),
    ("upsampled", nn.Sequential(nn.Upsample(scale_factor=2), nn.PixelUnshuffle(2), nn.Conv2d(12, 2, 1), nn.ChannelShuffle(2), nn.ZeroPad2d(1)), lambda: [r(1, 3, 4, 4)]),
    ("spectral", nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)), lambda: [r(3, 6)]),
    ("adaptive_softmax", nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4]).eval(), lambda: [r(3, 8), ints(3, high=12)]),
    ("rnn", nn.RNN(6, 4, 2, bidirectional=True), lambda: [r(5, 2, 6)]),
    ("embedding_sum", nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Dropout(0.0), nn.LayerNorm(4), nn.Linear(4, 2)), lambda: [ints(3, 5)]),
    ("cosine", nn.CosineSimilarity(1), lambda: [r(4, 6), r(4, 6)]),
    ("pairwise", nn.PairwiseDistance(), lambda: [r(4, 6), r(4, 6)]),
    ("folded", nn.Sequential(nn.Unfold(2), nn.Flatten(), nn.Linear(3 * 4 * 9, 3)), lambda: [r(2, 3, 4, 4)]),
):
    PEERS[f"net_{_name}"] = Peer(_module, _make)


# Functions that take functions, and other forms.


def _counted(n, x):
    return torch._higher_order_ops.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 2), (n, x))


@peer(lambda: [torch.tensor(0), r(3, 4)], gradients=False)
def while_loops(n, x):
    return _counted(n, x)


@peer(lambda: [r(6, 4), r(4)], gradients=False)
def scans(x, start):
    return torch._higher_order_ops.scan(lambda carry, row: (carry + row, carry * row), start, x, dim=0)


@peer(lambda: [r(4, 4), r(4, 4)])
def conditions(x, y):
    return torch.cond(x.shape[0] > 2, lambda a, b: a @ b, lambda a, b: a + b, (x, y)), torch.cond(x.sum() > -1e9, lambda a, b: (a.sin(), b * 3), lambda a, b: (a.cos(), b * 2), (x, y))[0]


@peer(lambda: [r(3, 4), r(4, 3)])
def transforms(x, y):
    per_row = torch.vmap(lambda a: (a * a).sum() + a.exp())(x)
    value = torch.func.grad(lambda a: (a @ y).sin().sum())(x)
    return per_row, value, torch.func.jacrev(lambda a: a.sin())(x[0]), torch.func.vjp(torch.exp, x)[1](x)[0]


@peer(lambda: [r(8, 8)])
def checkpoints(x):
    def block(a):
        return (a @ a).relu().sin()

    return torch.utils.checkpoint.checkpoint(block, torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False), use_reentrant=False)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        y = x.sin()
        ctx.save_for_backward(x, y)
        return y * by, y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * x.cos() * ctx.by + h * y, None


@peer(lambda: [r(4, 6)])
def custom_functions(x):
    a, b = _Scaled.apply(x * 2, 3.0)
    return a + b, _Scaled.apply(x, x.shape[0])[0]


@peer(lambda: [r(5, 5)], gradients=False)
def factorizations(x):
    a = x @ x.t() + 5 * torch.eye(5)
    return torch.linalg.cholesky(a), torch.linalg.inv(a), torch.linalg.det(a), torch.linalg.slogdet(a), torch.linalg.solve(a, x), torch.linalg.eigvalsh(a), torch.linalg.matrix_rank(a), torch.linalg.cond(a), torch.linalg.norm(a, 2), torch.linalg.lstsq(a, x).solution, torch.linalg.eig(a)[0].abs().sort()[0], torch.linalg.lu(a)[2], torch.linalg.matrix_power(x, 3), torch.linalg.multi_dot([x, a, x]), torch.linalg.vecdot(x, a), torch.linalg.householder_product(x, x[0]), torch.cholesky_inverse(torch.linalg.cholesky(a)), torch.lu_solve(x, *torch.linalg.lu_factor(a)), torch.ormqr(*torch.geqrf(x), a)


@peer(lambda: [r(4, 5), r(4, 5)], gradients=False)
def functions_of_two(x, y):
    return (
        torch.hypot(x, y), torch.atan2(x, y), torch.copysign(x, y), torch.nextafter(x, y), torch.fmod(x, y), torch.remainder(x, y), torch.logaddexp(x, y), torch.xlogy(x.abs(), y.abs()), torch.ldexp(x, ints(5).to(torch.int32) * 0 + 2), torch.heaviside(x, y), torch.float_power(x.abs(), y), torch.true_divide(x, y), torch.floor_divide(x, y),
        torch.isclose(x, y), torch.maximum(x, y), torch.fmax(x, y), torch.cross(x[:, :3], y[:, :3], dim=1), torch.dist(x, y), torch.cdist(x, y), F.cosine_similarity(x, y), F.pairwise_distance(x, y), torch.inner(x, y), torch.kron(x[:2, :2], y[:2, :2]), torch.vdot(x[0], y[0]), torch.outer(x[0], y[0]), torch.equal(x, y), torch.ger(x[0], y[0]), torch.gcd(x.int(), y.int()), torch.complex(x, y).abs(), torch.polar(x.abs(), y).real, torch.lerp(x, y, 0.3), torch.addcdiv(x, y, y.abs() + 1), torch.tensordot(x, y, 2), torch.trapezoid(x, y), torch.bitwise_and(x.int(), y.int()),
    )  # fmt: skip


@peer(lambda: [r(4, 5)], gradients=False)
def functions_of_one(x):
    p = x.abs() + 0.1
    return (
        x.sin(), x.cos(), x.tan(), x.tanh().asin(), x.tanh().acos(), x.atan(), x.sinh(), x.cosh(), x.asinh(), (p + 1).acosh(), x.tanh().atanh(), x.exp(), x.exp2(), x.expm1(), p.log(), p.log2(), p.log10(), p.log1p(), p.sqrt(), p.rsqrt(), p.reciprocal(), x.square(), x.erf(), x.erfc(), x.tanh().erfinv(), p.lgamma(), p.digamma(), torch.polygamma(2, p), x.sigmoid(), x.logit(0.1), x.sinc(), x.sign(), x.signbit(), x.frac(), x.trunc(), x.ceil(), x.floor(), x.round(), x.abs(), x.neg(), x.positive(), x.rad2deg(), x.deg2rad(), x.nan_to_num(), x.isfinite(), torch.special.i0e(x), torch.special.i1(x), torch.special.ndtri(x.sigmoid()), torch.special.log_softmax(x, 1), torch.special.entr(p), torch.frexp(x), torch.special.bessel_j0(x), torch.special.spherical_bessel_j0(p), torch.special.psi(p), torch.special.multigammaln(p + 2, 2),
    )  # fmt: skip


@peer(lambda: [r(4, 5), r(5, 4)], gradients=False)
def casts_between_operators(x, y):
    a = (x.bfloat16() @ y.bfloat16()).float()
    return a, x.to(torch.int64).to(torch.float16), (x > 0).to(torch.bfloat16) * 3, x.double().half().float(), (x * 100).to(torch.int16).to(torch.float32) / 100, x.to(torch.bfloat16).to(torch.int32)


@peer(lambda: [r(2, 8, 4, 4).to(memory_format=torch.channels_last), r(2, 8, 4, 4)])
def formats_mixed(x, y):
    z = x + y
    return z, torch.cat([x, y], 1), F.relu(x), x * 2 + y.contiguous(memory_format=torch.channels_last), F.max_pool2d(x, 2), F.interpolate(x, scale_factor=2), x.flatten(1), x.permute(0, 2, 3, 1) + 1, x.view(2, 8, 16) if x.is_contiguous() else x.reshape(2, 8, 16), F.pixel_shuffle(x, 2), x.mean((2, 3), keepdim=True), F.group_norm(x, 2), torch.empty_like(x).stride(), x.clone(memory_format=torch.preserve_format), x.sum(1), x.unsqueeze(0)[0]


@peer(lambda: [r(3, 1, 5), r(1, 4, 1)])
def sizes_of_one(x, y):
    return x + y, x.squeeze(1).unsqueeze(1) * y, x.expand(3, 4, 5).sum(1), (x * y).sum(0, keepdim=True), x[:, 0], x.transpose(0, 1), x.mean(1), y.sum(2), x.softmax(1), x.view(3, 5), torch.cat([x, x], 1), F.layer_norm(x, (1, 5)), x @ x.mT, y.squeeze()


@peer(lambda: [r(4), torch.tensor([[0, 1], [2, 3]])])
def ranks_of_none_and_one(x, i):
    return x[i], x[None, :, None], x.sum(), x.unsqueeze(0) @ x.unsqueeze(1), x.dot(x), x.outer(x), x[0] * x, x.view(2, 2).diagonal(), x.diag(), x[i].sum(0), torch.stack([x[0], x[1]]), x.max(), x.softmax(0), x.cumsum(0), x[-1:], x[2:2]


@peer(lambda: [r(20, 3), ints(20, high=4)], gradients=False)
def groups(x, i):
    zeros = torch.zeros(4, 3)
    return zeros.index_add(0, i, x), zeros.scatter_reduce(0, i[:, None].expand(20, 3), x, "amax", include_self=False), torch.bincount(i, minlength=4), torch.histc(x, 5), zeros.index_reduce(0, i, x, "mean", include_self=False), torch.segment_reduce(x, "sum", lengths=torch.tensor([5, 5, 10])), torch.unique_consecutive(i.sort()[0]), x[i.argsort(stable=True)], torch.cumsum(F.one_hot(i, 4), 0), torch.bucketize(x, torch.tensor([-1.0, 1.0]))


@peer(lambda: [r(4, 4)], gradients=False)
def several_writes_of_one_input(x):
    a = x.sum()
    x += 1
    b = x.sum()
    x.mul_(2)
    c = x.t()
    x[0].zero_()
    d = x + c
    x.transpose(0, 1)[1].fill_(3)
    return a, b, c, d, x.diagonal()


@peer(lambda: [r(6), r(6)], gradients=False)
def swap_and_reuse(x, y):
    t = x + y
    x.copy_(t)
    t.mul_(2)
    y.copy_(t)
    z = x.clone()
    x.zero_()
    return z, t, x + y


@peer(lambda: [r(4, 6)])
def numbers_of_python(x):
    values = [k * 0.5 for k in range(4)]
    table = {"a": 2, "b": 3.5}
    total = sum(values) + table["a"]
    return x * total + len(table), x[:, : table["a"]], tuple(x[k] * v for k, v in enumerate(values)), x.sum().sqrt() if total < 0 else x.mean(), [*map(lambda v: x * v, values[:2])], max(values) * x, x.size(0) * 1.5, f"{x.dim()}"


# What eager refuses.

each(
    "refused_more",
    lambda: [r(4, 4), ints(4, 4), torch.rand(4, 4)],
    {
        "bce_target_shape": lambda x, i, p: F.binary_cross_entropy(p, p[:2]),
        "copy_overlap": lambda x, i, p: x.view(-1)[1:].copy_(x.view(-1)[:-1]),
        "add_overlap": lambda x, i, p: x.view(-1)[1:].add_(x.view(-1)[:-1]),
        "write_to_expanded": lambda x, i, p: x[:1].expand(4, 4).add_(1),
        "fill_expanded": lambda x, i, p: x[:, :1].expand(4, 4).copy_(p),
        "dropout_p": lambda x, i, p: F.dropout(x, 1.5),
        "nll_target": lambda x, i, p: F.nll_loss(x, i[0] + 4),
        "index_put": lambda x, i, p: x.index_put((i + 100,), p),
        "scatter": lambda x, i, p: x.scatter(0, i + 4, p),
        "narrow": lambda x, i, p: x.narrow(0, 2, 5),
        "select": lambda x, i, p: x.select(0, 4),
        "chunk": lambda x, i, p: x.chunk(0),
        "linspace": lambda x, i, p: torch.linspace(0, 1, -1),
        "avg_pool_uint": lambda x, i, p: F.avg_pool2d(i.to(torch.uint8)[None, None], 2),
        "adaptive_max_long": lambda x, i, p: F.adaptive_max_pool2d(i[None, None], 2),
        "conv_stride": lambda x, i, p: F.conv2d(x[None, None], x[None, None, :2, :2], stride=0),
        "max_unpool": lambda x, i, p: F.max_unpool2d(x[None], i[None] + 99, 2),
        "softmax_dim": lambda x, i, p: F.softmax(x, 2),
        "layer_norm_weight": lambda x, i, p: F.layer_norm(x, (4,), x[0, :3]),
        "group_norm": lambda x, i, p: F.group_norm(x[None], 3),
        "addmm": lambda x, i, p: torch.addmm(x[:3], x, x),
        "int_inverse": lambda x, i, p: torch.linalg.inv(i),
        "bitwise_of_floats": lambda x, i, p: ~x,
        "squeeze_in_place": lambda x, i, p: i.add_(0.5),
        "pow_negative": lambda x, i, p: i ** -1,
        "index_float": lambda x, i, p: x[p],
        "multinomial": lambda x, i, p: torch.multinomial(p, 9),
        "randint": lambda x, i, p: torch.randint(5, 2, (3,)),
        "view_dtype": lambda x, i, p: x[:, :3].view(torch.float64),
        "clamp_nothing": lambda x, i, p: x.clamp(),
        "roll": lambda x, i, p: x.roll((1, 2), 0),
        "cumsum": lambda x, i, p: x.cumsum(2),
        "tril": lambda x, i, p: x[0].tril(),
        "kthvalue": lambda x, i, p: x.kthvalue(9),
        "upsample": lambda x, i, p: F.interpolate(x[None, None], size=(0, 2)),
        "reflection": lambda x, i, p: F.pad(x[None], (4, 0), "reflect"),
        "embedding_float": lambda x, i, p: F.embedding(p, x),
        "grid": lambda x, i, p: F.grid_sample(x[None, None], x[None]),
    },
    gradients=False,
)
