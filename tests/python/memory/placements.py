"""Where the inputs of a call lie: views of one storage, overlaps, memory of others, memory that ends at a guard page.

A placement is data, so that the same one can be laid out twice: once for eager, once for what is compiled.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field

import numpy
import torch

PAGE = mmap.PAGESIZE
KINDS = ("torch", "torch", "numpy", "guarded", "guarded", "shared")
DTYPES = {torch.float32: numpy.float32, torch.float64: numpy.float64, torch.int64: numpy.int64}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """Memory whose last byte lies before a page that nobody may touch."""

    def __init__(self, nbytes):
        pages = -(-max(nbytes, 1) // PAGE)
        self.map = mmap.mmap(-1, (pages + 1) * PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if _libc.mprotect(address + pages * PAGE, PAGE, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        self.begin = pages * PAGE - nbytes

    def bytes(self):
        """The memory as NumPy sees it."""
        return numpy.frombuffer(self.map, dtype=numpy.uint8)[self.begin : self.begin + self.nbytes()]

    def nbytes(self):
        return len(self.map) - PAGE - self.begin


@dataclass
class Base:
    """Memory, by whom it is had, and what is in it."""

    kind: str
    dtype: torch.dtype
    elements: int
    # Bytes before the first element: memory that is not torch's may begin anywhere.
    skew: int
    seed: int


@dataclass
class Input:
    """A tensor in a base."""

    base: int
    offset: int
    shape: tuple
    stride: tuple
    wants_gradient: bool = False


@dataclass
class Placement:
    """Bases, and the inputs that lie in them."""

    bases: list
    inputs: list


@dataclass
class World:
    """A placement that was laid out."""

    tensors: list
    contents: list
    kept: list = field(default_factory=list)

    def state(self):
        """What is in all memory."""
        return [content.copy() for content in self.contents]


def lay_out(placement):
    """Makes memory and tensors."""
    world = World([], [])
    views = []
    for base in placement.bases:
        kind, size = DTYPES[base.dtype], torch.empty(0, dtype=base.dtype).element_size()
        numbers = numpy.random.default_rng(base.seed).integers(-8, 9, base.elements)
        numbers = (numbers if kind is numpy.int64 else numbers / 4).astype(kind)
        if base.kind in ("torch", "shared"):
            whole = torch.from_numpy(numbers.copy()).clone()
            if base.kind == "shared":
                whole.share_memory_()
            world.contents.append(_bytes_of(whole))
            views.append(lambda offset, whole=whole: whole[offset:] if offset < len(whole) else whole[:0])
            world.kept.append(whole)
            continue
        if base.kind == "guarded":
            memory = Guarded(base.skew + numbers.nbytes)
            content = memory.bytes()
        else:
            memory = content = numpy.zeros(base.skew + numbers.nbytes + 64, dtype=numpy.uint8)
            content = content[: base.skew + numbers.nbytes]
        content[base.skew :] = numbers.view(numpy.uint8)
        world.contents.append(content)
        world.kept.append(memory)

        def view(offset, content=content, base=base, size=size):
            begin = base.skew + offset * size
            if begin >= len(content):
                return torch.empty(0, dtype=base.dtype)
            # A torch storage of its own over the same bytes.
            return torch.frombuffer(memoryview(content), dtype=base.dtype, offset=begin)

        views.append(view)
    for given in placement.inputs:
        numel = 1
        for size in given.shape:
            numel *= size
        if numel == 0:
            tensor = torch.empty_strided(given.shape, given.stride, dtype=placement.bases[given.base].dtype)
        else:
            begun = views[given.base](given.offset)
            tensor = begun.as_strided(given.shape, given.stride, begun.storage_offset())
        tensor = tensor.detach()
        world.tensors.append(tensor.requires_grad_() if given.wants_gradient else tensor)
    return world


def is_shared(placement, index):
    """Whether another input lies in the bytes around an input, in a storage of its own."""
    home = placement.inputs[index].base
    return placement.bases[home].kind not in ("torch", "shared") and sum(given.base == home for given in placement.inputs) > 1


def _bytes_of(tensor):
    """A torch tensor's memory as NumPy sees it."""
    return tensor.numpy().view(numpy.uint8)


def placed(rng, shapes, dtype, gradients):
    """A random placement of tensors of these shapes."""
    strides = [_strides(rng, shape) for shape in shapes]
    spans = [1 + sum((size - 1) * step for size, step in zip(shape, stride)) for shape, stride in zip(shapes, strides)]
    spans = [0 if 0 in shape else span for shape, span in zip(shapes, spans)]
    homes = [0] * len(shapes) if rng.random() < 0.6 else [rng.randrange(len(shapes)) for _ in shapes]
    bases, inputs, sizes = [], [], {}
    apart = rng.random() < 0.5
    ends = {}
    offsets = []
    for home, span in zip(homes, spans):
        offset = ends.get(home, rng.randrange(4)) if apart else rng.randrange(0, 12)
        ends[home] = offset + span + rng.randrange(2)
        sizes[home] = max(sizes.get(home, 1), offset + span)
        offsets.append(offset)
    order = sorted(sizes)
    for home in order:
        kind = rng.choice(KINDS)
        skew = rng.choice((0, 0, 0, 1, 2, 4, 8, 12, 32, 64)) if kind in ("numpy", "guarded") else 0
        # What ends at the guard page is the last element of an input.
        extra = 0 if kind == "guarded" else rng.randrange(3)
        bases.append(Base(kind, dtype, sizes[home] + extra, skew, rng.randrange(1 << 30)))
    for index, (shape, stride) in enumerate(zip(shapes, strides)):
        inputs.append(Input(order.index(homes[index]), offsets[index], shape, stride, gradients[index]))
    return Placement(bases, inputs)


def _strides(rng, shape):
    order = list(range(len(shape)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    stride, step = [0] * len(shape), rng.choice((1, 1, 1, 1, 2))
    for dim in reversed(order):
        stride[dim] = step
        step *= max(shape[dim], 1) + (rng.randrange(3) if rng.random() < 0.2 else 0)
    if rng.random() < 0.15 and shape:
        stride[rng.randrange(len(shape))] = 0
    return tuple(stride)
