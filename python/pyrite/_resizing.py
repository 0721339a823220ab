"""Resizing of images of bytes.

Eager interpolates bytes in fixed point and rounds them after each dimension. The decomposition that torch's tracing applies to
bilinear interpolation computes floats and rounds once, and an element in ten is off by one. A call on bytes is therefore kept as
one operator, which torch runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

_MODES = ("bilinear", "bicubic")


@torch.library.custom_op("pyrite::interpolate_bytes", mutates_args=())
def interpolate_bytes(
    image: torch.Tensor, size: Sequence[int] | None, scale_factor: Sequence[float] | None, mode: str, align_corners: bool | None, recompute: bool | None, antialias: bool
) -> torch.Tensor:
    return F.interpolate(image, size, scale_factor, mode, align_corners, recompute, antialias)


@interpolate_bytes.register_fake
def _(image, size, scale_factor, mode, align_corners, recompute, antialias):
    resized = F.interpolate(image.float(), size, scale_factor, mode, align_corners, recompute, antialias)
    return torch.empty_like(resized, dtype=image.dtype)


def _interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    several = [each if each is None or isinstance(each, (list, tuple)) else [each] * (input.dim() - 2) for each in (size, scale_factor)]
    return interpolate_bytes(input, *several, mode, align_corners, recompute_scale_factor, antialias)


def keep(module):
    """Keeps the calls of a captured graph that interpolate bytes."""
    found = [node for node in module.graph.nodes if node.op == "call_function" and node.target is F.interpolate and _is_of_bytes(node)]
    for node in found:
        node.target = _interpolate
    if found:
        module.recompile()


def _is_of_bytes(node):
    image = node.args[0] if node.args else node.kwargs.get("input")
    value = image.meta.get("example_value") if isinstance(image, torch.fx.Node) else None
    mode = node.args[3] if len(node.args) > 3 else node.kwargs.get("mode", "nearest")
    return isinstance(value, torch.Tensor) and value.dtype is torch.uint8 and value.dim() == 4 and mode in _MODES
