"""Layers, images, views, writes and sizes in the combinations that a compiler's own shortcuts do not expect: strides that differ from the
usual, kernels larger than images, windows that leave a rest, views written after they were read; they join those of `peer_cases`.
"""

import torch
import torch.nn.functional as F
from peer_cases import bools, each, inf, ints, peer, r


def last(*shape, dtype=torch.float32):
    return r(*shape, dtype=dtype).contiguous(memory_format=torch.channels_last)


each(
    "windows_over",
    lambda: [r(2, 4, 9, 11), last(2, 4, 9, 11)],
    {
        "max_with_rest": lambda x, y: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(y, (2, 3), (3, 2)), F.max_pool2d(x, 3, 1, 1), F.max_pool2d(y, 2, dilation=3)),
        "max_indices": lambda x, y: (F.max_pool2d(x, 2, return_indices=True), F.max_pool2d(y, 3, 2, 1, return_indices=True)[1]),
        "average_with_rest": lambda x, y: (F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(y, (2, 3), divisor_override=5), F.avg_pool2d(y, 3, 3, 1, True, False)),
        "one_dimension": lambda x, y: (F.max_pool1d(x[0], 3, 2, 1), F.avg_pool1d(x[0], 4, 3, 2), F.avg_pool1d(x[0], 3, ceil_mode=True), F.lp_pool1d(x[0].abs(), 2, 3)),
        "three_dimensions": lambda x, y: (F.max_pool3d(x, 2), F.avg_pool3d(x[None], (1, 2, 3), padding=(0, 1, 1)), F.max_pool3d(x[None], (2, 3, 2), 1, 1), F.adaptive_avg_pool3d(x[None], (1, 4, 5))),
        "adaptive": lambda x, y: (F.adaptive_avg_pool2d(x, (4, 5)), F.adaptive_max_pool2d(y, (2, 7)), F.adaptive_avg_pool2d(y, 1), F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_max_pool1d(x[0], 4), F.adaptive_avg_pool1d(x[0], 11)),
        "powers": lambda x, y: (F.lp_pool2d(x.abs(), 2, 3, 2), F.lp_pool2d(y.abs() + 0.1, 3.0, 2, ceil_mode=True)),
        "undone": lambda x, y: F.max_unpool2d(*F.max_pool2d(x, 3, return_indices=True), 3, output_size=(9, 11)),
        "without_batch": lambda x, y: (F.max_pool2d(x[0], 2), F.avg_pool2d(x[1], 3), F.adaptive_avg_pool2d(x[0], 2), F.interpolate(x[:1], (3, 3))),
        "unfolded": lambda x, y: (F.unfold(x, 3, dilation=2, padding=1, stride=2), F.unfold(y, (2, 3)), x.unfold(2, 4, 3).unfold(3, 4, 3)),
        "negative_infinity": lambda x, y: (F.max_pool2d(torch.full((1, 1, 4, 4), -inf), 3, 1, 1), F.max_pool1d(torch.full((1, 1, 5), -inf), 2)),
        "shuffled": lambda x, y: (F.pixel_shuffle(x[:, :, :8, :8], 2), F.pixel_unshuffle(y[:, :, :8, :8], 2), F.channel_shuffle(x, 2), F.pixel_unshuffle(x[:, :, :9, :9], 3)),
        "normalised_locally": lambda x, y: (F.local_response_norm(x, 3), F.local_response_norm(y, 2, alpha=0.1, beta=0.5, k=2.0)),
    },
)
each(
    "whole_windows",
    lambda: [ints(2, 3, 8, 8, high=100)],
    {
        "max_of_ints": lambda n: (F.max_pool2d(n.float(), 2).long(), n.unfold(2, 2, 2).amax(-1), n.unfold(3, 3, 1).sum(-1)),
        "bytes": lambda n: (F.max_pool2d(n.to(torch.uint8), 2), F.interpolate(n.to(torch.uint8), scale_factor=2), n.to(torch.uint8).float().mean((2, 3))),
        "resized_bytes": lambda n: (F.interpolate(n.to(torch.uint8), (5, 13), mode="bilinear"), F.interpolate(n.to(torch.uint8), (16, 16), mode="bicubic"), F.interpolate(n.to(torch.uint8), (3, 5), mode="bilinear", antialias=True), F.interpolate(n.to(torch.uint8), scale_factor=(1.5, 0.5), mode="bilinear", align_corners=True)),
        "resized_last": lambda n: F.interpolate(n.to(torch.uint8).contiguous(memory_format=torch.channels_last), (6, 20), mode="bilinear"),
        "resized_many": lambda n: F.interpolate(n.to(torch.uint8).repeat(1, 2, 1, 1), (11, 7), mode="bicubic", antialias=True),
        "padded": lambda n: (F.pad(n, (1, 2, 0, 1)), F.pad(n, (1, 1), value=-7), F.pad(n.float(), (1, 1, 1, 1), mode="reflect").long(), F.pad(n, (-1, -2, 1, 0))),
    },
    gradients=False,
)
each(
    "folded_kernels",
    lambda: [r(2, 4, 7, 8), r(6, 4, 3, 3), r(6), r(4, 2, 3, 3)],
    {
        "strides": lambda x, w, b, d: (F.conv2d(x, w, b, 2), F.conv2d(x, w, None, (3, 1), (0, 2)), F.conv2d(x, w, b, 4, 1)),
        "dilated": lambda x, w, b, d: (F.conv2d(x, w, b, dilation=2), F.conv2d(x, w, b, 1, 3, (3, 2)), F.conv2d(x, w, padding="same", dilation=2)),
        "same": lambda x, w, b, d: (F.conv2d(x, w, b, padding="same"), F.conv2d(x, w[:, :, :2, :2], padding="same"), F.conv2d(x, w, padding="valid"), F.conv1d(x[:, :, 0], w[:, :, 0, :2], padding="same")),
        "grouped": lambda x, w, b, d: (F.conv2d(x, w[:, :2], b, groups=2), F.conv2d(x, w[:4, :1], groups=4), F.conv2d(x, torch.cat([w, w[:2]])[:8, :1], None, 1, 1, groups=4)),
        "pointwise": lambda x, w, b, d: (F.conv2d(x, w[:, :, :1, :1], b), F.conv2d(x.transpose(2, 3), w[:, :, 1:2, 1:2]), F.conv2d(x, w[:, :, :1, :1], b, stride=2, padding=1)),
        "transposed": lambda x, w, b, d: (F.conv_transpose2d(x, d, b[:2], 2), F.conv_transpose2d(x, d, None, 3, 1, 2), F.conv_transpose2d(x, d, b[:4], 2, 1, 1, groups=2), F.conv_transpose2d(x, d, dilation=2)),
        "one_dimension": lambda x, w, b, d: (F.conv1d(x[:, :, 0], w[:, :, 0], b, 2, 1), F.conv_transpose1d(x[:, :, 0], d[:, :, 0], stride=2), F.conv1d(x[:, :, 0], w[:, :2, 0], groups=2)),
        "three_dimensions": lambda x, w, b, d: (F.conv3d(x[None], w[:, :2, None].expand(6, 2, 2, 3, 3)[:, :2], padding=1), F.conv_transpose3d(x[None], torch.full((2, 3, 2, 2, 2), 0.1), stride=2)),
        "without_batch": lambda x, w, b, d: (F.conv2d(x[0], w, b), F.conv1d(x[0, :, 0], w[:, :, 0]), F.conv_transpose2d(x[1], d)),
        "strided_weights": lambda x, w, b, d: (F.conv2d(x, w.flip(2)), F.conv2d(x, w.transpose(2, 3), b), F.conv2d(x, w[::2], b[::2]), F.conv2d(x.expand(2, 4, 7, 8), w.expand(6, 4, 3, 3))),
        "channels_last": lambda x, w, b, d: (F.conv2d(x.contiguous(memory_format=torch.channels_last), w, b), F.conv2d(x, w.contiguous(memory_format=torch.channels_last)), F.conv_transpose2d(x.contiguous(memory_format=torch.channels_last), d)),
        "followed": lambda x, w, b, d: (F.relu(F.conv2d(x, w, b)) + 1, F.conv2d(x, w, b).sum((2, 3)), F.conv2d(F.gelu(x), w).mean(), F.conv2d(x, w * 2, b + 1).softmax(1)),
        "double": lambda x, w, b, d: (F.conv2d(x.double(), w.double(), b.double()), F.conv_transpose2d(x.double(), d.double())),
        "as_large_as_the_image": lambda x, w, b, d: (F.conv2d(x[:, :, :3, :3], w, b), F.conv2d(x[:, :, :2, :2], w, b, padding=1), F.conv2d(x[:, :, :1], w, None, 1, (1, 0))),
        "reused": lambda x, w, b, d: F.conv2d(F.conv2d(x, w[:4], padding=1) + x, w[:4], padding=1) * x,
    },
    rtol=1e-4,
    atol=1e-4,
)
each(
    "norms_of",
    lambda: [r(3, 4, 5), last(2, 4, 3, 5), r(5), r(5)],
    {
        "rms_last": lambda x, y, w, b: (F.rms_norm(y, (5,)), F.rms_norm(y, (5,), w), F.rms_norm(x, (5,), w, 1e-3), F.rms_norm(x, (4, 5)), F.rms_norm(y.transpose(1, 2), (5,))),
        "layers": lambda x, y, w, b: (F.layer_norm(x, (5,), w, b), F.layer_norm(x, (4, 5)), F.layer_norm(y, (5,), w), F.layer_norm(y, (3, 5)), F.layer_norm(x.transpose(1, 2), (4,)), F.layer_norm(x, (5,), None, b)),
        "groups": lambda x, y, w, b: (F.group_norm(y, 2), F.group_norm(x, 4), F.group_norm(y, 4, w[:4], b[:4]), F.group_norm(x, 1, w[:4]), F.group_norm(y.contiguous(), 2)),
        "instances": lambda x, y, w, b: (F.instance_norm(y), F.instance_norm(x, weight=w[:4], bias=b[:4]), F.instance_norm(x, torch.zeros(4), torch.ones(4), use_input_stats=False)),
        "batches": lambda x, y, w, b: (F.batch_norm(y, None, None, training=True), F.batch_norm(x, torch.zeros(4), torch.ones(4), w[:4], b[:4]), F.batch_norm(x[:, :, 0], torch.zeros(4), torch.ones(4), training=True, momentum=0.3)),
        "to_length": lambda x, y, w, b: (F.normalize(x), F.normalize(x, 1, -1), F.normalize(y, dim=0), F.normalize(x, inf, 2), torch.renorm(x, 2, 0, 1.0)),
        "of_constants": lambda x, y, w, b: (F.layer_norm(torch.full((2, 5), 3.0), (5,)), F.group_norm(torch.ones(2, 4, 3), 2), F.rms_norm(torch.zeros(2, 5), (5,)), F.normalize(torch.zeros(3, 3))),
        "lengths": lambda x, y, w, b: (x.norm(), x.norm(1, 2), x.norm(inf, 1), torch.linalg.vector_norm(x, 3, (0, 2)), torch.linalg.matrix_norm(x), x.norm(dim=(0, 1)), x.norm(0.5, 1), torch.dist(x, x * 2, 1)),
        "of_one": lambda x, y, w, b: (F.layer_norm(x[..., :1], (1,)), F.rms_norm(x[..., :1], (1,)), x[:1].var(0, correction=0), x[:1].std(0, unbiased=False), torch.var_mean(x, (0, 1), correction=2)),
    },
    rtol=1e-4,
    atol=1e-4,
)
each(
    "attended",
    lambda: [r(2, 4, 5, 8), r(2, 4, 7, 8), r(2, 4, 7, 8), bools(2, 1, 5, 7)],
    {
        "masked_rows": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.index_fill(2, torch.tensor([1]), True)),
        "float_mask": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, torch.where(m, 0.0, -1e4)),
        "causal_oblong": lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(k, q, q, is_causal=True)),
        "scaled": lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, scale=0.1), F.scaled_dot_product_attention(q, k, v, scale=1.0)),
        "wide_values": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, torch.cat([v, v], -1)),
        "three_dimensions": lambda q, k, v, m: (F.scaled_dot_product_attention(q[0], k[0], v[0]), F.scaled_dot_product_attention(q[0, 0], k[0, 0], v[0, 0])),
        "shared_heads": lambda q, k, v, m: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
        "expanded": lambda q, k, v, m: (F.scaled_dot_product_attention(q, k[:, :1].expand(2, 4, 7, 8), v[:, :1].expand(2, 4, 7, 8)), F.scaled_dot_product_attention(q, k[:, :1], v[:, :1])),
        "transposed": lambda q, k, v, m: F.scaled_dot_product_attention(q.transpose(1, 2), q.transpose(1, 2), q.transpose(1, 2)).transpose(1, 2),
        "by_hand": lambda q, k, v, m: ((q @ k.mT / 8**0.5).masked_fill(~m.index_fill(3, torch.tensor([0]), True), -inf).softmax(-1) @ v, torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)),
        "biased": lambda q, k, v, m: torch.baddbmm(torch.zeros(8, 5, 7), q.reshape(8, 5, 8), k.reshape(8, 7, 8).mT, beta=0, alpha=0.3).softmax(-1).bmm(v.reshape(8, 7, 8)),
        "one_query": lambda q, k, v, m: (F.scaled_dot_product_attention(q[:, :, :1], k, v), F.scaled_dot_product_attention(q[:, :, :1], k, v, m[:, :, :1].index_fill(3, torch.tensor([0]), True))),
        "double": lambda q, k, v, m: F.scaled_dot_product_attention(q.double(), k.double(), v.double()),
    },
    rtol=1e-4,
    atol=1e-4,
)
each(
    "views_of",
    lambda: [r(4, 6), r(2, 3, 4)],
    {
        "windows": lambda x, y: (x.unfold(1, 3, 2), x.unfold(0, 2, 1).sum(-1), y.unfold(-1, 4, 1), x.as_strided((3, 2), (6, 2), 1), x.as_strided((4, 4), (1, 1))),
        "renamed": lambda x, y: (y.movedim(0, -1), y.movedim((0, 1), (2, 0)), y.swapaxes(0, 2), y.mT, x.T, y.permute(2, 0, 1).contiguous(), x.H, y.swapdims(1, 2)),
        "unflattened": lambda x, y: (x.unflatten(1, (2, -1)), y.flatten(1), y.flatten(0, 1), x.view(2, 2, -1), x.view(-1), x.reshape(3, 8), y.view(6, 4), y.ravel()),
        "split": lambda x, y: (x.split([1, 2, 3], 1), x.tensor_split((1, 3)), x.hsplit(3), y.dsplit(2), x.vsplit([1]), x.chunk(4, 1), x.unsafe_chunk(2), x.unsafe_split(4, 1)),
        "squeezed": lambda x, y: (x[None, :, None].squeeze(), x[None, :, None].squeeze((0, 2)), y[:1].squeeze(0), y.unsqueeze(-2), y.squeeze(1), x.unsqueeze(-1).unsqueeze(0)),
        "expanded": lambda x, y: (x[:, None].expand(-1, 3, -1), x[:1].expand_as(x), y[:, :, :1].expand(2, 3, 5).sum(2), x[0].expand(2, 6).contiguous(), torch.broadcast_tensors(x[:1], x[:, :1]), torch.broadcast_to(x[0], (3, 6))),
        "as_other_types": lambda x, y: (x.view(torch.int32), x.view(torch.uint8).sum(), x.double().view(torch.int64)[0], x.view(torch.complex64) if x.shape[1] % 2 == 0 else x, x.half().view(torch.int16)),
        "sliced": lambda x, y: (x[::2, ::3], x[1:-1, -4:-1], y[..., ::2], y[:, 1, 1:], x[3:1], x[10:], y[-1], x.narrow(1, 2, 3), x.select(0, -1), x[:, -100:100]),
        "triangles": lambda x, y: (x.tril(), x.triu(2), y.tril(-1), y.triu(1), x.t().tril(1), torch.ones(3, 3).tril().mT),
        "repeated": lambda x, y: (x.repeat(2, 1), x.repeat(2, 1, 3), y.tile(2, 1), x.repeat_interleave(2, 1), x.repeat_interleave(torch.tensor([1, 0, 2, 1]), 0), y.repeat_interleave(3)),
        "joined": lambda x, y: (torch.cat([x, x[:0], x[:1]]), torch.cat([x.t(), x.t()], 1), torch.hstack([x, x]), torch.dstack([x, x]), torch.column_stack([x[:, 0], x]), torch.row_stack([x, x[0]]), torch.stack([y[0], y[1].flip(0)], -1)),
        "copies": lambda x, y: (torch.transpose_copy(x, 0, 1), torch.view_copy(x, (8, 3)), torch.unbind_copy(x), torch.slice_copy(x, 1, 0, 4, 2), torch.diagonal_copy(x), torch.squeeze_copy(x), torch.permute_copy(y, (1, 2, 0))),
    },
)


def write_then_view(x, y):
    z = x * 1
    row = z[1]
    z.mul_(2)
    row.add_(1)
    return z, row, z.t()


def views_written_through(x, y):
    z = x.clone()
    a, b = z[:2], z.view(-1)[3:9]
    a.add_(y[:2])
    b.mul_(3)
    z.t()[0].zero_()
    return a, b, z


def swapped(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x - y


def written_input_returned(x, y):
    x.add_(1)
    view = x.view(-1)
    view[0] = 7
    return view, x, x[1:]


def fibonacci(x, y):
    z = torch.zeros(8)
    z[0], z[1] = 1, 1
    for i in range(2, 8):
        z[i] = z[i - 1] + z[i - 2]
    return z * x[0, 0]


def running_maximum(x, y):
    z = x.clone()
    for i in range(1, z.shape[0]):
        torch.maximum(z[i], z[i - 1], out=z[i])
    return z


def ragged_writes(x, y):
    z = x.new_zeros(x.shape)
    for i in range(z.shape[0]):
        z[i, : i + 1] = x[i, : i + 1] * 2
        z[i, i + 1 :] += y[i, i + 1 :]
    return z


each(
    "written",
    lambda: [r(4, 6), r(4, 6)],
    {
        "then_viewed": write_then_view,
        "through_views": views_written_through,
        "swapped": swapped,
        "and_returned": written_input_returned,
        "in_sequence": fibonacci,
        "into_row": running_maximum,
        "ragged": ragged_writes,
        "other_type": lambda x, y: (x.clone().copy_(y.double()), torch.zeros(4, 6, dtype=torch.int64).copy_(x * 10), x.half().add_(y), x.clone().add_(y.half()), torch.zeros(4, 6, dtype=torch.bfloat16).add_(x)),
        "broadcast": lambda x, y: (x.clone().copy_(y[0]), x.clone().add_(y[:, :1]), x.clone().mul_(2).sub_(y[0]), x.clone().div_(y[:1].exp())),
        "diagonal": lambda x, y: (x.clone().fill_diagonal_(0.0), (lambda z: (z.diagonal().add_(5), z)[1])(x.clone()), (lambda z: (z[:, :4].t().diagonal(1).zero_(), z)[1])(x.clone())),
        "composed": lambda x, y: (x.clone().relu_().mul_(2), F.relu(x.clone(), inplace=True), F.dropout(x.clone(), 0.0, inplace=True), F.leaky_relu(y.clone(), 0.2, True), F.elu_(y.clone()), torch.clamp_(x.clone(), -0.5, 0.5)),
        "matmuls": lambda x, y: (torch.zeros(4, 4).addmm_(x, y.t()), torch.ones(4).addmv_(x, y[0]), torch.ones(4, 6).addr_(x[:, 0], y[0]), torch.ones(1, 4, 4).baddbmm_(x[None], y.t()[None], alpha=0.5)),
        "transposed": lambda x, y: (lambda z: (z.t_(), z.unsqueeze_(0), z.squeeze_(), z.transpose_(0, 1), z)[4])(x.clone()),
        "by_operators": lambda x, y: (lambda z: (z.__iadd__(1), z.__imul__(y), z.__isub__(x), z.__itruediv__(2), z.__ipow__(2), z)[5])(x.clone()),
        "detached": lambda x, y: (lambda z: (z.detach().mul_(2), z)[1])(x * 1),
        "into_slices_of_list": lambda x, y: (lambda parts: (parts[0].add_(1), parts[2].zero_(), torch.cat(parts, 1)))([t.clone() for t in x.split(2, 1)]),
    },
    gradients=False,
)
each(
    "complex_parts",
    lambda: [torch.complex(r(3, 4), r(3, 4)), torch.complex(r(3, 4), r(3, 4)), r(3, 4)],
    {
        "views": lambda z, w, x: (torch.view_as_real(z), torch.view_as_complex(torch.stack([x, x], -1)), z.real + 1, z.imag * 2, z.conj().imag, z.mH, z.t().conj().real),
        "arithmetic": lambda z, w, x: (z * w, z / w, z + x, z * 2j, z - 1.5, x * (1 + 2j), z**2, z.reciprocal(), -z.conj()),
        "functions": lambda z, w, x: (z.exp(), z.abs(), z.angle(), z.sqrt(), z.log(), z.sin(), z.cosh(), z.sgn(), torch.polar(x.abs(), x)),
        "reductions": lambda z, w, x: (z.sum(), z.mean(0), z.prod(1), z.norm(), z.abs().max(), z.cumsum(1), torch.linalg.vector_norm(z, dim=0), z.sum(1)),
        "products": lambda z, w, x: (z @ w.mT, z @ w.mH, torch.einsum("ij,ij->i", z, w.conj()), torch.vdot(z[0], w[0]), torch.outer(z[0], w[0]), z[0].conj() @ w[0]),
        "compared": lambda z, w, x: (z == w, z == z, z != w, torch.isnan(z), z.isreal(), torch.isclose(z, z), torch.where(x > 0, z, w), z.bool()),
        "transformed": lambda z, w, x: (torch.fft.fft(z), torch.fft.ifft(w, dim=0), torch.fft.rfft(x), torch.fft.irfft(z), torch.fft.fft2(x), torch.fft.fftshift(z), torch.fft.hfft(z)),
        "converted": lambda z, w, x: (x.to(torch.complex64), z.to(torch.complex128), torch.complex(x, -x), x.cfloat() * z, torch.real(z).double(), torch.conj_physical(z), torch.resolve_conj(z.conj())),
        "built": lambda z, w, x: (torch.full((2, 2), 1 + 2j), torch.zeros(3, dtype=torch.complex64) + z[:, 0], torch.cat([z, w.conj()]), torch.stack([z.real, w.imag]), F.pad(z, (1, 1)), z.repeat(1, 2)[:, ::3]),
    },
)
further = [lambda: [r(6, 8), r(6, 3)], lambda: [r(10, 12), r(10, 5)]]
each(
    "sizes_in",
    lambda: [r(4, 10), r(4, 7)],
    {
        "reshapes": lambda x, y: (x.view(x.shape[0] // 2, 2, -1), x.reshape(-1, x.shape[1] // 2), x.view(x.size(0) * x.size(1)), x.unflatten(1, (2, x.shape[1] // 2)), x.view(-1, 2)),
        "slices": lambda x, y: (x[: y.shape[1]], x[:, y.shape[1] - 3 :], x[x.shape[0] // 2 :], x[:, : x.shape[1] - y.shape[1] + 2], x[:, -y.shape[0] :], x[:, :: max(1, x.shape[0] // 2)]),
        "made": lambda x, y: (torch.arange(x.shape[0]), torch.full((x.shape[1],), x.shape[0]), x.new_zeros(y.shape), torch.ones(x.shape[0], y.shape[1]).tril(), torch.eye(x.shape[0]), torch.linspace(0, 1, x.shape[1])),
        "padded": lambda x, y: (F.pad(y, (0, x.shape[1])), F.pad(x, (y.shape[1] - 3, 1)), F.pad(x, (x.shape[0] - 2, -1)), F.interpolate(x[None], size=y.shape[1], mode="linear"), F.interpolate(x[None], size=y.shape[1] + 2)),
        "repeated": lambda x, y: (x[:1].expand(y.shape[0], -1), y.repeat(1, x.shape[0] // 2), x[0].repeat(y.shape[1]), x.repeat_interleave(x.shape[0] // 2, 0), x.tile(2, y.shape[0] // 2)),
        "split": lambda x, y: (x.split(x.shape[1] // 2, 1), x.chunk(2, 1), x.tensor_split(3, 1), torch.cat([x, y], 1).split([x.shape[1], y.shape[1]], 1), x.unbind(0)[0]),
        "arithmetic": lambda x, y: (x * x.shape[0], x / x.shape[1], x.sum() / x.numel(), (x.shape[0] + 1) ** 2 * y, x.sum(1) * (x.shape[1] % 3), x.shape[0] / x.shape[1] * y, x.size(1) ** -0.5 * x),
        "masks": lambda x, y: (torch.arange(x.shape[1]) < torch.arange(x.shape[0])[:, None], x.masked_fill(torch.arange(x.shape[1]) % 2 == 0, 0.0), torch.where(torch.arange(x.shape[0])[:, None] > 1, x, -x), torch.triu(torch.full((x.shape[1], x.shape[1]), -inf), 1)),
        "conditions": lambda x, y: (x * 2 if x.shape[0] > 5 else x + 2, x.sum(0 if x.shape[0] > x.shape[1] else 1), y if y.shape[1] % 2 else -y, [x, y][x.shape[0] % 2]),
        "pooled": lambda x, y: (F.adaptive_avg_pool1d(x[None], y.shape[1]), F.avg_pool1d(x[None], x.shape[0] // 2), F.max_pool1d(x[None], 2), x.unfold(1, x.shape[0] // 2, 1), F.adaptive_max_pool1d(y[None], 2)),
        "matmuls": lambda x, y: (x.t() @ y, torch.einsum("bi,bj->ij", x, y), x @ x.t(), torch.outer(x[0], y[0]), torch.bmm(x[:, None], x[:, :, None]), torch.tensordot(x, y, dims=([0], [0]))),
        "indexed": lambda x, y: (x[torch.arange(x.shape[0]), torch.arange(x.shape[0])], x[:, torch.arange(x.shape[1] - 1, -1, -1)], x.gather(1, torch.zeros(x.shape[0], 1, dtype=torch.long) + x.shape[1] - 1), x[x.shape[0] - 1, x.shape[1] - 1], x.roll(x.shape[0] // 2, 1)),
        "looped": lambda x, y: (sum(x[i] for i in range(x.shape[0])), torch.stack([row * i for i, row in enumerate(x)]), [y[:, i] for i in range(min(y.shape[1], 3))]),
        "normed": lambda x, y: (F.layer_norm(x, x.shape[1:]), F.layer_norm(y, (y.shape[-1],)), F.rms_norm(x, (x.shape[1],)), F.softmax(x / x.shape[-1] ** 0.5, -1), F.group_norm(x[None], 2)),
        "returned": lambda x, y: (x.shape, x.numel() + y.numel(), x.shape[0] * y.shape[1], (x.shape[0], x + 1), x.stride(), torch.Size([x.shape[0], 2]), x.shape[1] // x.shape[0], x.shape[1] / 2),
    },
    then=tuple(further),
)


@peer(lambda: [r(3, 5)], then=(lambda: [r(7, 5)], lambda: [r(2, 9)]))
def sizes_as_fill_values(x):
    return torch.full_like(x, x.shape[0]), x.new_full((2,), x.shape[1]), torch.tensor([x.shape[0], x.shape[1]]), torch.tensor(x.shape[0] / 2), x.clone().fill_(x.shape[1]), torch.scalar_tensor(x.shape[0])


@peer(lambda: [r(2, 3, 6, 6)], then=(lambda: [r(1, 3, 8, 10)], lambda: [r(4, 3, 5, 7)]))
def sizes_of_images(x):
    h, w = x.shape[-2:]
    padded = F.pad(x, (0, -w % 4, 0, -h % 4))
    blocks = padded.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
    return blocks.mean((1, 2, 3)), F.interpolate(x, (h * 2, w // 2 + 1), mode="bilinear", align_corners=False), F.adaptive_avg_pool2d(x, (h // 2, 2)), padded.shape
