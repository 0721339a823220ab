"""Writes that torch's operators refuse or that AOTAutograd gets wrong, found in a captured graph.

An operator that goes through its operands element by element refuses to write where elements of the written tensor share
memory, and where it shares some of its memory with another operand; one that writes by an index refuses any operand that
shares memory with what it writes. AOTAutograd turns writes into data flow and asks no such question; what is written to an
expanded tensor, as `fill_` may, it adds up. So it is asked here, of the tensors without data that torch.compile captured with.
"""

from __future__ import annotations

import functools
import operator

import torch

_BY_OPERATOR = {
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
    operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
}  # fmt: skip


# Methods that change what a tensor is, and none of its elements.
_SHAPES = {"squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "detach_", "requires_grad_", "resize_", "set_", "rename_"}
_BY_INDEX = {"scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_", "index_reduce_"}


def odd_write(module):
    """What a graph does with written memory that AOTAutograd would get wrong, as a sentence; `None` where it does nothing of it."""
    nodes = module.graph.nodes
    if odd := next((node for node in nodes if _is_odd(node)), None):
        return f"{odd.target} writes to memory that it shares"
    if any(isinstance(_written(node), torch.Tensor) for node in nodes) and any(map(_reads_between, nodes)):
        return "as_strided reads between the elements of a tensor, in a region that writes"
    return None


_PLACED = {
    "as_strided", torch.as_strided, torch.as_strided_copy, torch.as_strided_scatter,
    torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default, torch.ops.aten.as_strided_scatter.default,
}  # fmt: skip


def viewed_inputs(module):
    """The numbers of the inputs whose storages a graph views: they may begin elsewhere than the tensors that lie in them. A tensor of
    which nothing is known may lie in any."""
    inputs = [node.meta.get("example_value") for node in module.graph.nodes if node.op == "placeholder"]
    strided = {number: each for number, each in enumerate(inputs) if isinstance(each, torch.Tensor) and each.layout is torch.strided}
    found = set()
    for node in module.graph.nodes:
        if node.target not in _PLACED:
            continue
        viewed = node.args[0].meta.get("example_value") if node.args and isinstance(node.args[0], torch.fx.Node) else None
        if not isinstance(viewed, torch.Tensor):
            return sorted(strided)
        storage = viewed.untyped_storage()._cdata
        found.update(number for number, each in strided.items() if each.untyped_storage()._cdata == storage)
    return sorted(found)


def _reads_between(node):
    """Whether a node views memory that may lie between the elements of its tensor."""
    if node.target not in _PLACED:
        return False
    viewed = node.args[0].meta.get("example_value") if node.args and isinstance(node.args[0], torch.fx.Node) else None
    try:
        return isinstance(viewed, torch.Tensor) and not _is_dense(viewed)
    except _Unknown:
        return False


def _is_odd(node):
    written = _written(node)
    if not isinstance(written, torch.Tensor):
        return False
    by_index = node.target in _BY_INDEX
    given = [each for each in (*node.args[1:], *node.kwargs.values()) if isinstance(each, torch.fx.Node)]
    # One that goes by elements may read what it writes.
    others = [each.meta.get("example_value") for each in given if by_index or each is not node.args[0]]
    others = [each for each in others if isinstance(each, torch.Tensor)]
    asks = node.op == "call_function" or by_index or _goes_by_elements(node.target)
    try:
        return _repeats(written) or asks and any(_share(written, other, by_index) for other in others)
    except _Unknown:
        return False


def _written(node):
    """The tensor that a node writes to; `None` where it writes to none."""
    if not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    first = node.args[0].meta.get("example_value")
    if node.op == "call_method":
        return first if node.target.endswith("_") and not node.target.endswith("__") and node.target not in _SHAPES else None
    if node.op != "call_function":
        return None
    if node.target in _BY_OPERATOR:
        return first
    if node.target is operator.setitem and isinstance(first, torch.Tensor):
        index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
        if all(each is None or each is ... or isinstance(each, (int, slice)) and not _symbolic(each) for each in index):
            with first.fake_mode if hasattr(first, "fake_mode") else torch.no_grad():
                return first.detach()[node.args[1]]
    return None


def _symbolic(index):
    return isinstance(index, slice) and any(isinstance(each, torch.fx.Node) for each in (index.start, index.stop, index.step))


@functools.cache
def _goes_by_elements(method):
    """Whether a method that writes goes through its operands element by element."""
    packet = getattr(torch.ops.aten, method, None)
    overloads = [getattr(packet, name) for name in packet.overloads()] if packet is not None else []
    return method == "copy_" or any(torch.Tag.pointwise in overload.tags for overload in overloads)


class _Unknown(Exception):
    """A size is not known while compiling."""


def _known(number):
    if isinstance(number, int):
        return number
    hint = number.node.hint
    if hint is None:
        raise _Unknown
    return int(hint)


def _layout(tensor):
    return [(_known(size), _known(stride)) for size, stride in zip(tensor.shape, tensor.stride())]


def _repeats(tensor):
    """Whether elements of a tensor share memory for certain."""
    return all(size for size, _ in _layout(tensor)) and any(stride == 0 and size > 1 for size, stride in _layout(tensor))


def _share(one, other, whole):
    """Whether two dense tensors have memory in common; without `whole` not where it is all of it, in the same order."""
    if not _is_dense(one) or not _is_dense(other) or one.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False
    (a, b), (c, d) = _extent(one), _extent(other)
    if (a, b) == (c, d):
        return whole or _layout(one) != _layout(other)
    return a < d and c < b


def is_whole(tensor):
    """Whether a tensor begins where its storage begins and has no gaps; not where that is not known."""
    try:
        return _known(tensor.storage_offset()) == 0 and _is_dense(tensor)
    except _Unknown:
        return False


def _is_dense(tensor):
    """Whether a tensor's elements fill its memory, each in a place of its own."""
    expected = 1
    for size, stride in sorted((pair for pair in _layout(tensor) if pair[0] != 1), key=lambda pair: pair[1]):
        if stride != expected:
            return False
        expected *= size
    return expected > 0


def _extent(tensor):
    begin = _known(tensor.storage_offset()) * tensor.element_size()
    count = 1
    for size, _ in _layout(tensor):
        count *= size
    return begin, begin + count * tensor.element_size()
