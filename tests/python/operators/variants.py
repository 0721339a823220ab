"""Every way in which torch's functions are written, eager against compiled: `python -m operators.variants --help`.

The samples of every OpInfo are called as a function, as a method, in place, by the operator, into `out=`, and with their arguments by name
where the function's schema tells the names. Values, element types, shapes and what is left in the arguments must be eager's. Each OpInfo
runs in a process of its own; all its calls go through one `pyrite.compile` each, so that names and the order of arguments are read as the
user wrote them.
"""

import argparse
import contextlib
import inspect
import io
import itertools
import logging
import sys
import warnings

import cpu  # noqa: F401  (before torch)

import torch
import torch.utils._pytree as pytree

import pyrite
from capture import isolation
from operators.harness import full_name, matching, opinfos
from operators.refusals import copied

DTYPES = (torch.float32, torch.bool, torch.int64, torch.complex64)

# What gives other numbers at every call, or nothing that could be compared.
LEFT_OUT = {
    "empty": "memory that nobody wrote",
    "empty_like": "memory that nobody wrote",
    "empty_permuted": "memory that nobody wrote",
    "empty_strided": "memory that nobody wrote",
    "new_empty": "memory that nobody wrote",
    "new_empty_strided": "memory that nobody wrote",
    "resize_": "memory that nobody wrote",
    "resize_as_": "memory that nobody wrote",
    "sparse.sampled_addmm": "of sparse tensors",
    "sparse.mm.reduce": "of sparse tensors",
    "torch._scaled_mm": "of float8",
    "torch._scaled_mm_v2": "of float8",
    "torch.ops.aten._flash_attention_forward": "for GPUs",
    "torch.ops.aten._efficient_attention_forward": "for GPUs",
    "nn.functional.batch_norm.without_cudnn": "for GPUs",
}

# Vectors and the like of which any multiple is as good: only that both are accepted is asked.
FREE = ("linalg.eig", "linalg.eigh", "linalg.svd", "svd", "svd_lowrank", "pca_lowrank", "geqrf", "linalg.ldl", "linalg.lobpcg", "linalg.matrix_rank", "linalg.lstsq", "lobpcg")


# Which of equal elements is named first is anybody's choice.
TIED = ("topk", "kthvalue", "sort", "argsort")


def by_name(function, args, kwargs):
    """The same call with all arguments but the first by name; nothing where names cannot be told."""
    try:
        names = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if len(args) > len(names) or any(each.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for each in names[: len(args)]):
        return None
    return args[:1], dict(zip([each.name for each in names[1:]], args[1:])) | kwargs


def variants(op):
    """The ways in which an OpInfo is called, by name."""
    yield "function", op.op
    for name in ("method", "inplace", "operator", "inplace_operator"):
        function = getattr(op, f"{name}_variant", None)
        if function is not None:
            yield name, function


def calls(op, dtype, count):
    """What is called, by name: a function of tensors and other arguments, and these."""
    for number, sample in enumerate(itertools.islice(op.sample_inputs("cpu", dtype), count)):
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        if any(each.layout != torch.strided for each in tensors):
            continue
        for name, function in variants(op):
            if "inplace" in name and (not isinstance(sample.input, torch.Tensor) or sample.broadcasts_input):
                continue
            yield f"{dtype}, sample {number}, {name}", function, args, kwargs
            named = by_name(function, args, kwargs)
            if named is not None and len(args) > 1:
                yield f"{dtype}, sample {number}, {name} by names", function, *named
        if op.supports_out and isinstance(sample.input, torch.Tensor) and number < 2:
            yield f"{dtype}, sample {number}, out", into_given(op.op), args, kwargs


def into_given(function):
    """The function, writing into memory that it is given."""

    def called(*args, **kwargs):
        with torch.no_grad():
            made = function(*args, **kwargs)
            out = tuple(torch.zeros_like(each) for each in made) if isinstance(made, tuple) else torch.zeros_like(made)
            function(*args, **kwargs, out=out)
        return out

    return called


def outcome(function, args, kwargs):
    """What a call gives and what it leaves of its arguments, or the type of its error."""
    args, kwargs = copied((args, kwargs))
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return None, pytree.tree_leaves((result, args, kwargs))


def difference(eager, compiled, free):
    """In what both differ, in a sentence."""
    if eager[0] is not None or compiled[0] is not None:
        # Which error it is, `refusals` asks.
        return None if eager[0] is not None else f"{compiled[0].__name__}: {compiled[1][:200]}"
    if len(eager[1]) != len(compiled[1]):
        return f"{len(eager[1])} values in eager, {len(compiled[1])} compiled"
    for want, have in zip(eager[1], compiled[1]):
        if not isinstance(want, torch.Tensor):
            if type(want) is not type(have) or (isinstance(want, (int, float, bool, str)) and want != have and want == want):
                return f"{want!r} in eager, {have!r} compiled"
        elif not isinstance(have, torch.Tensor) or (want.dtype, want.shape, want.layout) != (have.dtype, have.shape, have.layout):
            return f"{want.dtype}{list(want.shape)} in eager, {getattr(have, 'dtype', type(have))}{list(getattr(have, 'shape', []))} compiled"
        elif want.layout is torch.strided and not free and not near(want.detach(), have.detach()):
            return f"values differ: {want.flatten()[:4].tolist()} in eager, {have.flatten()[:4].tolist()} compiled"
    return None


def is_free(op, dtype):
    """Whether values may differ from eager's and be right."""
    return full_name(op).startswith(FREE) or (full_name(op) in TIED and not dtype.is_floating_point)


def near(want, have):
    """Whether values agree up to rounding."""
    tolerance = 1e-4 if want.is_floating_point() or want.is_complex() else 0
    return torch.allclose(want, have, equal_nan=True, rtol=tolerance, atol=tolerance)


def check(op, count, dtypes=DTYPES):
    """How many calls there were, and what differs."""
    differences, total = [], 0
    for dtype in dtypes:
        if op.sample_inputs_func is None or dtype not in op.supported_dtypes("cpu"):
            continue
        for said, function, args, kwargs in calls(op, dtype, count):

            def called(*args, **kwargs):
                return function(*args, **kwargs)

            total += 1
            found = difference(outcome(called, args, kwargs), outcome(pyrite.compile(called), args, kwargs), is_free(op, dtype))
            if found:
                differences.append(f"{full_name(op)}: {said}: {found}")
            pyrite.reset()
    return total, differences


def run(name, count, time_limit):
    op = opinfos()[name]

    def work():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return check(op, count)

    found, death = isolation.in_a_fork(work, time_limit)
    return found or (0, [f"{name}: {death}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only these OpInfos, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--samples", type=int, default=6, help="samples of each OpInfo and element type")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each OpInfo")
    given = parser.parse_args()
    isolation.prepare()
    total, differing = 0, 0
    names = [name for name in matching(opinfos(), given.only) if name not in LEFT_OUT]
    for name in names:
        calls, differences = run(name, given.samples, given.time_limit)
        total += calls
        differing += len(differences)
        for each in differences:
            print(each, flush=True)
    print(f"{len(names)} functions, {total} calls, {differing} differences")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
