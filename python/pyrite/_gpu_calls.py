"""Matmuls, convolutions and attention on GPUs by kernels of Pyrite's own.

Libraries have tiles for large operands: of a small matmul, a convolution of a few images or attention over a short sequence they make
fewer tiles than a GPU has multiprocessors. Pyrite's kernels have smaller tiles, and share the inner dimension out to several blocks
where a kernel that reads the result adds up the parts anyway. They compute in single precision as IEEE 754 says, so nothing
is replaced where torch may use TF32.

`use_own_kernels` rewrites a graph before it is cut: a call becomes a function of this module, or is marked with the tile that its kernel
is to have (`TILE`). Each function gives torch's result where its kernel refuses the operands, because vectors are not aligned.
"""

from __future__ import annotations

import functools
import math
import operator

import torch

from pyrite import _native

_aten = torch.ops.aten

# The key of a node's tile in its metadata: Pyrite's kernel computes it.
TILE = "pyrite_tile"

# Multiprocessors of a large device. Estimates below are in microseconds, measured on an H200.
_PROCESSORS = 132
# Tiles by number: rows, columns, steps that a block brings at a time; what a launch takes, whatever it computes, what a block takes
# on a multiprocessor, and what each round of steps.
_TILES = ((32, 32, 128, 1.3, 0.75, 1.2), (64, 32, 64, 2.0, 1.05, 0.95), (64, 64, 64, 1.8, 1.65, 1.85))
# How much more a round takes that reads windows of images.
_WINDOWS = (1.45, 1.4, 1.2)
# What it costs to add a part up in the kernel that reads it, for each million elements.
_PART = 1.0
# The fewest rows, columns and steps of a tile's worth.
_FEWEST = 16
_PARTS = (1, 2, 4, 8, 16)


@functools.cache
def matmuls(interpret):
    """The kernels of matmuls and convolutions."""
    return _native.GpuMatmul(interpret=interpret)


@functools.cache
def attentions(interpret):
    """The kernels of attention."""
    return _native.GpuAttention(interpret=interpret)


def plan(batch, rows, steps, columns, parts=(1,), windows=False):
    """The tile, the number of parts and the time of a GEMM, or a convolution, that is shared out best."""
    best = None
    for number, (height, width, depth, launch, block, step) in enumerate(_TILES):
        for count in parts:
            blocks = batch * count * -(-rows // height) * -(-columns // width)
            rounds = -(-(steps // count) // depth)
            each = block + rounds * step * (_WINDOWS[number] if windows else 1.0)
            time = launch + -(-blocks // _PROCESSORS) * each + (count - 1) * _PART * rows * columns * batch / 1e6
            if best is None or time < best[2]:
                best = (number, count, time)
    return best


def _library_matmul(batch, rows, steps, columns):
    """What a library's matmul takes: up to some number of steps it goes through all of them."""
    return 3.2 + 0.0095 * min(steps, 512) + batch * rows * steps * columns / 25e6


def _library_convolution(rows, steps, columns):
    """What a library's convolution takes: tiles of 32 by 32 that go through all steps."""
    tiles = -(-rows // 32) * -(-columns // 32)
    return 4.0 + 0.0225 * steps * -(-tiles // (2 * _PROCESSORS))


def use_own_kernels(module, is_gpu, is_loop):
    """Replaces calls on GPUs that Pyrite's kernels are faster at. `is_loop` tells whether a kernel of loops reads a value."""
    for node in list(module.graph.nodes):
        if node.target is _aten._safe_softmax.default:
            _replace_written_attention(module.graph, node, is_gpu)
    for node in list(module.graph.nodes):
        value = node.meta.get("val")
        value = value[0] if isinstance(value, (tuple, list)) and value else value
        if node.target not in _REPLACED or not isinstance(value, torch.Tensor) or value.dtype is not torch.float32 or not is_gpu(value.device):
            continue
        tensors = [each.meta.get("val") for each in node.all_input_nodes]
        if all(isinstance(each, torch.Tensor) and each.dtype is torch.float32 and _has_sizes(each) for each in tensors):
            loops = bool(node.users) and all(map(is_loop, node.users))
            _REPLACED[node.target](module.graph, node, loops)


def _may_use_tf32(library):
    """Whether torch lets a library round operands. It refuses to say where precision was set by its newer names."""
    try:
        return library.allow_tf32
    except RuntimeError:
        return True


def _has_sizes(tensor):
    """Whether sizes and strides are numbers."""
    return all(isinstance(size, int) for size in (*tensor.shape, *tensor.stride()))


def _call(graph, function, args, node, value, name):
    """A call of a function in the place of a node."""
    function.operator, function.is_recordable = name, True
    call = graph.call_function(function, args)
    call.meta.update({key: each for key, each in node.meta.items() if key != "val"}, val=value)
    return call


def _then(graph, node, target, *args):
    """A call of an operator in the place of a node."""
    call = graph.call_function(target, args)
    values = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in args]
    call.meta.update({key: each for key, each in node.meta.items() if key != "val"}, val=target(*values))
    return call


def _added_up(graph, node, parts):
    """The sum of the parts of a tensor along its first dimension, in pairs."""
    terms = [_then(graph, node, _aten.select.int, parts, 0, index) for index in range(parts.meta["val"].shape[0])]
    while len(terms) > 1:
        pairs = [terms[index : index + 2] for index in range(0, len(terms), 2)]
        terms = [_then(graph, node, _aten.add.Tensor, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


def _replace(graph, node, new):
    node.replace_all_uses_with(new)
    graph.erase_node(node)


# Matmuls.


def split_matmul(lhs, rhs, parts, tile):
    """`lhs @ rhs` in parts of the inner dimension, which add up to the result."""
    rows, steps = lhs.shape
    lhs = lhs.view(rows, parts, steps // parts).transpose(0, 1)
    rhs = rhs.view(parts, steps // parts, rhs.shape[1])
    result = matmuls(lhs.device.type == "cpu")(lhs, rhs, tile=tile)
    return torch.bmm(lhs, rhs) if result is None else result


def own_matmul(node):
    """A function that computes a marked matmul from its arguments: Pyrite's kernel, or torch's operator where operands do not lie as
    that wants them."""
    theirs, tile = node.target, node.meta[TILE]

    def matmul(*given):
        bias, (lhs, rhs) = (given[0] if len(given) == 3 else None), given[-2:]
        result = matmuls(lhs.device.type == "cpu")(lhs, rhs, bias, tile=tile)
        return theirs(*given) if result is None else result

    return matmul


def _replace_matmul(graph, node, loops):
    given = [each.meta["val"] if isinstance(each, torch.fx.Node) else None for each in node.args]
    if node.kwargs or _may_use_tf32(torch.backends.cuda.matmul) or not all(isinstance(each, torch.Tensor) for each in given):
        return
    lhs, rhs = given[-2:]
    bias = given[0] if len(given) == 3 else None
    if bias is not None and bias.dim() != 1:
        return
    batch, (rows, steps, columns) = (lhs.shape[0] if lhs.dim() == 3 else 1), (*lhs.shape[-2:], rhs.shape[-1])
    is_fit = min(rows, steps, columns) >= _FEWEST and steps % 4 == 0 and columns % 4 == 0
    can_split = loops and lhs.dim() == 2 and is_fit
    parts = [count for count in _PARTS if count == 1 or (can_split and steps % (4 * count) == 0 and steps // count >= _FEWEST)]
    tile, count, time = plan(batch, rows, steps, columns, parts) if is_fit else (0, 1, math.inf)
    # The library's kernel adds parts up in a launch of its own.
    if time <= _library_matmul(batch, rows, steps, columns):
        if count == 1:
            node.meta[TILE] = tile
            return
        with graph.inserting_before(node):
            value = node.meta["val"].new_empty((count, rows, columns))
            call = _call(graph, split_matmul, (*node.args[-2:], count, tile), node, value, str(node.target))
            result = _added_up(graph, node, call)
            if bias is not None:
                result = _then(graph, node, _aten.add.Tensor, result, node.args[0])
        _replace(graph, node, result)
    elif bias is not None and loops:
        # Libraries have faster kernels without a bias, which the kernel that reads the result adds.
        with graph.inserting_before(node):
            product = _then(graph, node, _aten.mm.default, *node.args[1:])
            result = _then(graph, node, _aten.add.Tensor, product, node.args[0])
        _replace(graph, node, result)


# Convolutions.


def split_convolution(images, weights, stride, padding, parts, tile):
    """A convolution in parts of its channels, which add up to the result."""
    program = matmuls(images.device.type == "cpu")
    result = program.convolve(images, weights, stride=stride, padding=padding, parts=parts, tile=tile)
    if result is None:
        pairs = zip(images.chunk(parts, 1), weights.chunk(parts, 1))
        result = torch.stack([torch.nn.functional.conv2d(*pair, None, stride, padding) for pair in pairs])
    return result


def _replace_convolution(graph, node, loops):
    images, weights, bias, stride, padding, dilation, transposed, _, groups = node.args
    read, windows, made = images.meta["val"], weights.meta["val"], node.meta["val"]
    plain = not node.kwargs and read.dim() == 4 and not transposed and groups == 1 and list(dilation) == [1, 1] and loops
    if not plain or _may_use_tf32(torch.backends.cudnn) or not all(each.is_contiguous() for each in (read, windows, made)):
        return
    if len(stride) != 2 or len(padding) != 2 or not all(isinstance(each, int) for each in (*stride, *padding)):
        return
    channels, window = read.shape[1], windows.shape[2] * windows.shape[3]
    rows, steps, columns = windows.shape[0], channels * window, made.shape[0] * made.shape[2] * made.shape[3]
    if min(rows, steps, columns) < _FEWEST or (made.shape[2] * made.shape[3]) % 4:
        return
    parts = [count for count in _PARTS if channels % count == 0 and (channels // count * window) % 4 == 0 and steps // count >= _FEWEST]
    if not parts:
        return
    tile, count, time = plan(1, rows, steps, columns, parts, windows=True)
    if time > _library_convolution(rows, steps, columns):
        return
    with graph.inserting_before(node):
        value = made.new_empty((count, *made.shape))
        args = (images, weights, tuple(stride), tuple(padding), count, tile)
        result = _added_up(graph, node, _call(graph, split_convolution, args, node, value, str(node.target)))
        if bias is not None:
            row = _then(graph, node, _aten.view.default, bias, [rows, 1, 1])
            result = _then(graph, node, _aten.add.Tensor, result, row)
    _replace(graph, node, result)


# Attention.

# The most products of queries and keys, over all heads, that Pyrite's kernel is faster at.
_MOST_SCORES = 1 << 20


def _replace_attention(graph, node, _):
    named = {argument.name: given for argument, given in zip(node.target._schema.arguments, node.args)} | dict(node.kwargs)
    query, key, value = named["query"], named["key"], named["value"]
    bias = named.get("attn_bias", named.get("attn_mask"))
    if any(each.target is not operator.getitem or each.args[1] != 0 for each in node.users) or not node.users:
        return
    if named.get("dropout_p", 0.0) != 0.0 or _may_use_tf32(torch.backends.cuda.matmul):
        return
    q, k = query.meta["val"], key.meta["val"]
    if q.dim() != 4 or q.shape[-1] % 16 or not 16 <= q.shape[-1] <= 128 or math.prod(q.shape[:3]) * k.shape[2] > _MOST_SCORES:
        return
    scale = named.get("scale")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    theirs, causal, results = node.target, bool(named.get("is_causal", False)), list(node.users)
    strides = results[0].meta["val"].stride()
    tensors = (query, key, value, bias) if bias is not None else (query, key, value)
    # What torch's operator takes where Pyrite's kernel refuses the operands: the tensor of a number, or a plain value.
    numbers = {each: number for number, each in enumerate(tensors)}
    taken = [(numbers.get(each), None if each in numbers else each) for each in (*node.args, *node.kwargs.values())]
    count, names = len(node.args), list(node.kwargs)

    def attention(*given):
        own = attentions(given[0].device.type == "cpu")
        result = own(*given[:3], given[3] if len(given) > 3 else None, causal=causal, scale=scale, strides=strides)
        if result is not None:
            return result
        values = [value if number is None else given[number] for number, value in taken]
        return theirs(*values[:count], **dict(zip(names, values[count:])))[0]

    with graph.inserting_before(node):
        call = _call(graph, attention, tensors, node, results[0].meta["val"], str(node.target))
    for each in results:
        _replace(graph, each, call)
    graph.erase_node(node)


def _only_user(node):
    """The one node that reads a value."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def _unfolded(node):
    """The tensor of batches and heads that matrices of a `bmm` come from, where it is nobody else's; else nothing."""
    shape = node.meta["val"].shape
    if node.target not in (_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default) or len(node.users) != 1:
        return None
    node = node.args[0]
    whole = node.meta["val"].shape
    if len(whole) != 4 or (whole[0] * whole[1], *whole[2:]) != tuple(shape):
        return None
    while node.target in (_aten.clone.default, _aten.expand.default):
        if len(node.users) != 1 or node.args[0].meta["val"].shape != whole:
            return None
        node = node.args[0]
    return node


def _scaled(node):
    """A tensor and the number that a node multiplies it with."""
    is_scaled = node is not None and node.target in (_aten.mul.Scalar, _aten.mul.Tensor) and len(node.users) == 1
    return (node.args[0], float(node.args[1])) if is_scaled and isinstance(node.args[1], (int, float)) else (node, 1.0)


def _erase(graph, node):
    """Takes out what nobody reads any more."""
    if node.op == "call_function" and not node.users:
        given = node.all_input_nodes
        graph.erase_node(node)
        for each in given:
            _erase(graph, each)


def attention_in_place(query, key, value, mask, scale, strides):
    """Attention whose result has these strides."""
    result = attentions(query.device.type == "cpu")(query, key, value, mask, causal=False, scale=scale, strides=strides)
    if result is None:
        theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)
        result = torch.empty_strided(theirs.shape, strides, dtype=theirs.dtype, device=theirs.device).copy_(theirs)
    return result


def _replace_written_attention(graph, node, is_gpu):
    """Attention that torch has written out, since none of its kernels takes the mask, around its softmax."""
    scores, mask = node.args[0], None
    if len(node.args) != 2 or node.kwargs or node.args[1] not in (-1, 3) or not is_gpu(node.meta["val"].device):
        return
    if scores.target is _aten.add.Tensor and not scores.kwargs and isinstance(scores.args[1], torch.fx.Node):
        scores, mask = scores.args
    products = scores.args[0] if scores.target is _aten.view.default else None
    weights, after = node, _only_user(node)
    while after is not None and after.target is _aten.expand.default and after.meta["val"].shape == node.meta["val"].shape:
        weights, after = after, _only_user(after)
    last = _only_user(after) if after is not None else None
    result = _only_user(last) if last is not None else None
    batched = _aten.bmm.default
    if products is None or products.target is not batched or result is None or last.target is not batched or last.args[0] is not after:
        return
    query, times = _scaled(_unfolded(products.args[0]))
    key, more = _scaled(_unfolded(products.args[1]))
    value = _unfolded(last.args[1])
    ends = [each for each in (query, key, value, mask) if each is not None]
    if _unfolded(after) is not node or len(ends) != 3 + (mask is not None) or result.target is not _aten.view.default:
        return
    if key.target is not _aten.transpose.int or sorted(dim % 4 for dim in key.args[1:]) != [2, 3]:
        return
    key = key.args[0]
    q, made = query.meta["val"], result.meta["val"]
    vals = [each.meta["val"] for each in ends]
    is_fit = all(each.dtype is torch.float32 and each.dim() == 4 and _has_sizes(each) for each in vals) and tuple(made.shape) == tuple(q.shape)
    if not is_fit or q.shape[-1] % 16 or not 16 <= q.shape[-1] <= 128 or _may_use_tf32(torch.backends.cuda.matmul):
        return
    shape = (*q.shape[:3], key.meta["val"].shape[2])
    if tuple(node.meta["val"].shape) != shape or tuple(scores.meta["val"].shape) != shape:
        return
    if node.meta["val"].numel() > _MOST_SCORES or len(scores.users) != 1 or len(products.users) != 1:
        return
    # Heads are joined again behind it: the result lies so that nothing has to be copied.
    joined = _only_user(result)
    dense = _only_user(joined) if joined is not None and joined.target is _aten.transpose.int and sorted(joined.args[1:]) == [1, 2] else None
    strides, replaced = made.stride(), result
    if dense is not None and dense.target is _aten.clone.default and dense.meta["val"].is_contiguous():
        batch, rows, heads, size = dense.meta["val"].shape
        strides, replaced = (rows * heads * size, size, heads * size, 1), dense
    with graph.inserting_before(replaced):
        args = (query, key, value, mask, times * more, tuple(strides))
        call = _call(graph, attention_in_place, args, node, made.new_empty_strided(made.shape, strides), str(node.target))
        call = _then(graph, dense, _aten.transpose.int, call, 1, 2) if replaced is dense else call
    replaced.replace_all_uses_with(call)
    _erase(graph, replaced)


_REPLACED = {
    _aten.mm.default: _replace_matmul,
    _aten.addmm.default: _replace_matmul,
    _aten.bmm.default: _replace_matmul,
    _aten.convolution.default: _replace_convolution,
    _aten._scaled_dot_product_efficient_attention.default: _replace_attention,
    _aten._scaled_dot_product_flash_attention_for_cpu.default: _replace_attention,
}
