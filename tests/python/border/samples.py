"""Samples of torch's operators at every entry point, with inputs that lie otherwise: `python -m border.samples --help`.

A case is a sample of an OpInfo in one of the dtypes that torch has for it, called as a function, as a method, in place or into `out=`. Its tensors are
laid out anew: permuted, with steps, behind an offset, expanded, channels last, as views that share storage, empty, with another dtype. What comes
of that and of gradients is compared with eager in all that `observe` sees. A second call may have other sizes.

A case is drawn from a seed and its number alone: `--seed` and `--first` repeat it.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import random
import sys
import time
import warnings

import cpu  # noqa: F401  (before torch)

import numpy
import torch
import torch.utils._pytree as pytree

from border.observe import WAYS, Judge
from capture import isolation
from operators.harness import full_name, matching, opinfos
from operators.variants import FREE, LEFT_OUT, TIED

LEFT_OUT = LEFT_OUT | {
    "native_batch_norm": "eager reads memory that is not there",
    "_native_batch_norm_legit": "eager reads memory that is not there",
    "_batch_norm_with_update": "eager reads memory that is not there",
    "_segment_reduce.offsets": "eager reads memory that is not there",
    "_segment_reduce.lengths": "eager reads memory that is not there",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "eager reads memory that is not there",
    "sparse.mm.reduce": "of sparse tensors",
    "to_sparse": "of sparse tensors",
    "matrix_exp": "its gradient in half precision is NaN now and then, in eager too",
    "narrow_copy": "eager writes to its result as if that were contiguous",
    "median": "eager reads memory that is not there, where elements share memory",
    "nanmedian": "eager reads memory that is not there, where elements share memory",
    "lu_unpack": "eager reads memory that is not there for wrong pivots",
}

# How often samples, dtypes and layouts are drawn again until eager accepts the call.
TRIES = 6
# Samples of an OpInfo among which one is drawn.
MOST = 40


def permuted(rng, tensor):
    order = list(range(tensor.dim()))
    rng.shuffle(order)
    back = [order.index(dim) for dim in range(tensor.dim())]
    return tensor.permute(order).contiguous().permute(back)


def stepped(rng, tensor):
    if tensor.dim() == 0:
        return behind(rng, tensor)
    dim = rng.randrange(tensor.dim())
    shape = list(tensor.shape)
    shape[dim] = shape[dim] * 2 + 1
    wide = tensor.new_zeros(shape)
    place = (slice(None),) * dim + (slice(1, None, 2),)
    wide[place] = tensor
    return wide[place]


def behind(rng, tensor):
    first = rng.choice((1, 2, 3, 5, 8))
    room = tensor.new_zeros(tensor.numel() + first)
    made = room[first:].view(tensor.shape)
    return made.copy_(tensor)


def expanded(rng, tensor):
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    dim = rng.randrange(tensor.dim())
    return tensor.narrow(dim, 0, 1).contiguous().expand(tensor.shape)


def repeats(tensor):
    """Whether elements share memory."""
    return any(size > 1 and step == 0 for size, step in zip(tensor.shape, tensor.stride()))


def channels_last(rng, tensor):
    if tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    if tensor.dim() == 5:
        return tensor.contiguous(memory_format=torch.channels_last_3d)
    return permuted(rng, tensor)


def dense(rng, tensor):
    return tensor


LAYOUTS = (dense, dense, permuted, stepped, behind, expanded, channels_last)


def drawn_layouts(rng, arguments):
    """Arguments whose tensors lie as chance wants it."""
    kept = rng.random() < 0.2

    def laid(value):
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or kept:
            return value
        plain = value.detach().resolve_conj().resolve_neg().clone()
        made = rng.choice(LAYOUTS)(rng, plain)
        if plain.is_complex() and rng.random() < 0.1:
            made = made.conj().resolve_conj().conj()
        return made

    return pytree.tree_map(laid, arguments)


def smaller(rng, arguments):
    """Arguments with fewer or no elements in the dimensions of one size, consistently."""
    tensors = [each for each in pytree.tree_leaves(arguments) if isinstance(each, torch.Tensor) and each.layout is torch.strided]
    sizes = sorted({size for each in tensors for size in each.shape if size > 1})
    if not sizes:
        return arguments
    old, new = rng.choice(sizes), rng.choice((0, 1, 1, 2, 3))
    if new >= old:
        return arguments

    def cut(value):
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return value
        for dim, size in enumerate(value.shape):
            value = value.narrow(dim, 0, new) if size == old else value
        return value

    return pytree.tree_map(cut, arguments)


def with_other_dtype(rng, arguments):
    """Arguments of which one tensor is of another dtype."""
    leaves, spec = pytree.tree_flatten(arguments)
    places = [index for index, each in enumerate(leaves) if isinstance(each, torch.Tensor) and each.layout is torch.strided]
    if len(places) > 1:
        index = rng.choice(places)
        if not leaves[index].is_complex():
            dtype = rng.choice((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool))
            leaves[index] = leaves[index].to(dtype)
    return pytree.tree_unflatten(leaves, spec)


NUMBERS = (2, 0, -1, 3, True, False, 0.5, -0.0, 2.5, math.inf, math.nan, -math.inf, 1e10, 1e-40, 2**31, 2**40, -(2**63), 255, -128, 1j)
FOREIGN = (numpy.float32(2.5), numpy.float64(-1.5), numpy.int64(3), numpy.bool_(True))


def with_other_number(rng, arguments):
    """Arguments of which a number, or a tensor that is not the first, is an unusual number or a tensor without dimensions."""
    leaves, spec = pytree.tree_flatten(arguments)
    numbers = [index for index, each in enumerate(leaves) if isinstance(each, (int, float, complex))]
    tensors = [index for index, each in enumerate(leaves) if index and isinstance(each, torch.Tensor)]
    if places := numbers + tensors:
        index, number = rng.choice(places), rng.choice(FOREIGN) if rng.random() < 0.1 else rng.choice(NUMBERS)
        leaves[index] = torch.tensor(number) if index in tensors and rng.random() < 0.5 else number
    return pytree.tree_unflatten(leaves, spec)


def with_gradients(rng, op, arguments):
    if not op.supports_autograd or rng.random() < 0.4:
        return arguments
    some = rng.random() < 0.3

    def wants(value):
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()) and not repeats(value):
            return value.detach().requires_grad_(not some or rng.random() < 0.5)
        return value

    return pytree.tree_map(wants, arguments)


class Case:
    """A function of tensors, the arguments of its calls, and what is said of it."""

    def __init__(self, function, calls, said):
        self.function, self.calls, self.said = function, calls, said


def into_given(function, like):
    """The function, writing into memory that the caller gives."""

    def called(out, *args, **kwargs):
        given = function(*args, **kwargs, out=tuple(out) if isinstance(out, (list, tuple)) else out)
        return given

    return called


def draw(rng, op):
    """A case of an OpInfo; `None` where eager accepts none of those drawn."""
    dtypes = sorted(op.supported_dtypes("cpu"), key=str)
    # Half of all cases have the dtype that most have.
    dtype = torch.float32 if torch.float32 in dtypes and rng.random() < 0.35 else rng.choice(dtypes)
    torch.manual_seed(rng.randrange(1 << 30))
    try:
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype), MOST))
    except Exception:
        return None
    if not samples:
        return None
    sample = rng.choice(samples)
    ways = {"function": op.op}
    for name in ("method", "inplace", "operator", "inplace_operator"):
        if getattr(op, f"{name}_variant", None) is not None:
            ways[name] = getattr(op, f"{name}_variant")
    name = "function" if rng.random() < 0.6 else rng.choice(list(ways))
    function = ways[name]
    writes = "inplace" in name
    arguments = [sample.input, *sample.args], dict(sample.kwargs)
    leaves = [each for each in pytree.tree_leaves(arguments) if isinstance(each, torch.Tensor)]
    if any(each.layout is not torch.strided or each.dtype not in KNOWN for each in leaves) or (writes and sample.broadcasts_input):
        return None

    def varied(arguments):
        if rng.random() < 0.15:
            arguments = smaller(rng, arguments)
        if rng.random() < 0.12:
            arguments = with_other_dtype(rng, arguments)
        if rng.random() < 0.12:
            arguments = with_other_number(rng, arguments)
        arguments = drawn_layouts(rng, arguments)
        return arguments if writes or into else with_gradients(rng, op, arguments)

    into = name == "function" and op.supports_out and rng.random() < 0.12 and leaves
    if into:
        with torch.no_grad():
            made = op.op(*arguments[0], **arguments[1])
        if not all(isinstance(each, torch.Tensor) for each in pytree.tree_leaves(made)):
            return None
        out = pytree.tree_map(torch.zeros_like, made)
        arguments, function, name = ([out, *arguments[0]], arguments[1]), into_given(op.op, made), "out"
    calls = [varied(arguments) for _ in range(rng.choice((1, 1, 2)))]

    def called(args, kwargs):
        return function(*args, **kwargs)

    return Case(called, calls, f"{full_name(op)}, {dtype}, {name}")


KNOWN = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool,
}  # fmt: skip


def described(arguments):
    def one(value):
        if not isinstance(value, torch.Tensor):
            return value
        grad = ", grad" if value.requires_grad else ""
        return f"<{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{list(value.stride())}+{value.storage_offset()}{grad}>"

    return str(pytree.tree_map(one, arguments))[:400]


def check(seed, number, names, way=None):
    """What differs in one case, and whether there was one."""
    rng = random.Random(f"{seed}/{number}")
    op = opinfos()[rng.choice(names)]
    chosen = rng.choice(list(WAYS))
    way = way or chosen
    try:
        case = draw(rng, op)
    except Exception:  # eager refuses what was drawn
        case = None
    if case is None:
        return 0, None
    free = full_name(op).startswith(FREE) or full_name(op).startswith(TIED)
    judge = Judge(case.function, way, backward=not free)
    for call, arguments in enumerate(case.calls):
        found = judge.difference(arguments)
        if found and not (free and ("value" in found)):
            return 1, f"--first {number}: {case.said}, {way}, call {call}: {found}\n    {'; '.join(map(described, case.calls[: call + 1]))}"
    return 1, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only these OpInfos, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, help="end after so long")
    parser.add_argument("--way", choices=WAYS, help="only this entry point")
    given = parser.parse_args()
    isolation.prepare()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    names = [name for name in matching(opinfos(), given.only) if name not in LEFT_OUT]
    begun, total, found = time.monotonic(), 0, 0
    batch = 25
    for first in range(given.first, given.first + given.count, batch):
        if given.seconds and time.monotonic() - begun > given.seconds:
            break
        numbers = range(first, min(first + batch, given.first + given.count))
        works = [lambda number=number: check(given.seed, number, names, given.way) for number in numbers]
        for number, (answer, death) in zip(numbers, isolation.together(works, 120)):
            count, text = answer or (1, f"--first {number}: {death}")
            total += count
            if text:
                found += 1
                print(text, flush=True)
    print(f"seed {given.seed}: {total} cases, {found} differences, {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
