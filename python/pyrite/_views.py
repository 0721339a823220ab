"""Outputs that are views of inputs, made by torch, so that it knows them as such."""

from __future__ import annotations

import torch


def viewed(base, size, stride, begin, dtype):
    """A view that begins so many bytes behind its base. With the name of a dtype, it takes the base's memory for elements of that."""
    begin += base.storage_offset() * base.itemsize
    if dtype is None:
        return base.as_strided(size, stride, begin // base.itemsize)
    dtype = getattr(torch, dtype)
    first = begin // dtype.itemsize
    # These two have gradients.
    if base.is_complex() and dtype == base.dtype.to_real():
        return torch.view_as_real(base).as_strided(size, stride, first)
    if dtype.is_complex and base.dtype == dtype.to_real():
        parts = [step * 2 for step in stride]
        return torch.view_as_complex(base.as_strided((*size, 2), (*parts, 1), first * 2))
    several = max(dtype.itemsize // base.itemsize, 1)
    count = base.untyped_storage().nbytes() // base.itemsize // several * several
    return base.as_strided((count,), (1,), 0).view(dtype).as_strided(size, stride, first)
