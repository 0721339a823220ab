"""Numbers that a type of elements cannot hold, found in a captured graph.

Eager refuses `torch.full((2,), 2**40, dtype=torch.int32)` and `x.half().fill_(1e6)`. Tensors without data do not ask, so
torch.compile's capture accepts them, and the number would wrap around. Where a number does not fit a type among those of a call,
the call is shown to eager, on zeros and on ones.
"""

from __future__ import annotations

import torch
import torch.utils._pytree as pytree

from pyrite import _opaque


def refused(module):
    """The error that eager raises for a call of a captured graph because of a number; `None` where there is none."""
    for node in module.graph.nodes:
        if node.op in ("call_function", "call_method") and (error := _refusal(node)) is not None:
            return error
    return None


def _refusal(node):
    function = node.target if node.op == "call_function" else getattr(torch.Tensor, node.target, None)
    # Sizes are no elements.
    numbers = pytree.tree_leaves(node.args) if function is torch.tensor else (*node.args, *node.kwargs.values())
    numbers = [each for each in numbers if type(each) in (int, float, complex)]
    if not numbers or function is None:
        return None
    values = [each.meta.get("example_value") for each in node.all_input_nodes] + [node.meta.get("example_value")]
    types = {each.dtype for each in values if isinstance(each, torch.Tensor)} | {each for each in node.kwargs.values() if isinstance(each, torch.dtype)}
    if all(_fits(number, dtype) for number in numbers for dtype in types):
        return None
    try:
        args, kwargs = torch.fx.node.map_arg((tuple(node.args), dict(node.kwargs)), _without_data)
    except _Unknown:
        return None
    return _opaque.refusal(function, args, kwargs)


def _fits(number, dtype):
    """Whether torch can make a number an element of a type. Negative numbers wrap around in unsigned types."""
    if dtype is torch.bool:
        return True
    if isinstance(number, complex):
        return dtype.is_complex
    if dtype.is_floating_point or dtype.is_complex:
        return not abs(number) < float("inf") or abs(number) <= torch.finfo(dtype).max
    limits = torch.iinfo(dtype)
    return (limits.min or -limits.max) <= number <= limits.max


class _Unknown(Exception):
    """An argument that is known only when the graph runs."""


def _without_data(node):
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        raise _Unknown
    sizes = [_hint(each) for each in (*value.shape, *value.stride())]
    return torch.empty_strided(sizes[: value.dim()], sizes[value.dim() :], dtype=value.dtype, device="meta")


def _hint(size):
    """A size as it is in this call, without a guard."""
    if isinstance(size, int):
        return size
    if not size.node.has_hint():
        raise _Unknown
    return int(size.node.hint)
