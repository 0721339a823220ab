"""Wrong calls of torch's functions, eager against compiled: `python -m operators.refusals --help`.

From samples of every OpInfo, calls are made that an author of tests would write first to see errors: an argument too many, one of a wrong type, a
dimension that is not there, another element type, another size, an unknown word. What eager refuses, the compiled function refuses with the
same type of error; what eager accepts gives the same shapes and types. Each function runs in a process of its own.
"""

import argparse
import collections
import contextlib
import copy
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

DTYPES = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex64)


class Call:
    """A call of a function with arguments by position and by name."""

    def __init__(self, args, kwargs, said):
        self.args, self.kwargs, self.said = args, kwargs, said

    def with_argument(self, place, value, said):
        args, kwargs = list(self.args), dict(self.kwargs)
        (args if isinstance(place, int) else kwargs)[place] = value
        return Call(args, kwargs, said)

    def places(self):
        return [*enumerate(self.args), *self.kwargs.items()]


# Functions that end the process for wrong arguments in eager mode, or that no CPU has.
LEFT_OUT = {
    "native_batch_norm": "eager reads memory that is not there",
    "_native_batch_norm_legit": "eager reads memory that is not there",
    "_batch_norm_with_update": "eager reads memory that is not there",
    "_segment_reduce.offsets": "eager reads memory that is not there",
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "eager reads memory that is not there",
    "torch.ops.aten._flash_attention_forward": "for GPUs",
    "torch.ops.aten._efficient_attention_forward": "for GPUs",
    "nn.functional.batch_norm.without_cudnn": "for GPUs",
}

# Differences that stay, by what begins them.
KNOWN = {
    "index_put: argument 1: one item less": "an assertion of torch's own fails",
    "index_put.method: argument 1: one item less": "an assertion of torch's own fails",
    "to: argument 1: a number for a text": "a GPU by its number, in a process that has none",
    "to.method: argument 1: a number for a text": "a GPU by its number, in a process that has none",
}


def samples(op, count):
    """Some calls that eager accepts, with small tensors, as different as they are."""
    dtypes = op.supported_dtypes("cpu")
    dtype = next((each for each in (torch.float32, torch.int64, torch.complex64, torch.bool) if each in dtypes), next(iter(dtypes)))
    found = {}
    for sample in itertools.islice(op.sample_inputs("cpu", dtype), 60):
        if not isinstance(sample.input, (torch.Tensor, list, tuple)):
            continue
        args = [sample.input, *sample.args]
        tensors = [each for each in pytree.tree_leaves((args, sample.kwargs)) if isinstance(each, torch.Tensor)]
        if any(each.layout != torch.strided or each.numel() > 4096 for each in tensors):
            continue
        kind = tuple(type(each) for each in args), tuple(sorted(sample.kwargs))
        found.setdefault(kind, Call(args, dict(sample.kwargs), "as it is"))
        if len(found) == count:
            break
    return list(found.values())


def wrong_calls(call):
    """The call with one thing changed at a time."""
    yield call
    yield Call([*call.args, 2], call.kwargs, "a number too many")
    yield Call([*call.args, "x"], call.kwargs, "a text too many")
    yield Call([*call.args, torch.ones(2)], call.kwargs, "a tensor too many")
    yield Call(call.args, call.kwargs | {"no_such_word": 1}, "an unknown word")
    if len(call.args) > 1:
        yield Call(call.args[:-1], call.kwargs, "the last argument left out")
    for place, value in call.places():
        for said, other in others(value):
            yield call.with_argument(place, other, f"argument {place}: {said}")


def others(value):
    """Other values for an argument."""
    if isinstance(value, torch.Tensor):
        for dtype in DTYPES:
            if dtype != value.dtype and not (value.is_complex() and not dtype.is_complex):
                yield f"of {dtype}", value.to(dtype)
        yield "a dimension more", value.unsqueeze(0)
        if value.dim():
            yield "a row more", torch.cat([value, value[:1]]) if len(value) else value.new_ones(1, *value.shape[1:])
            yield "a column more", torch.cat([value, value[..., :1]], -1) if value.numel() else value.transpose(0, -1)
            yield "a dimension less", value[0] if len(value) else value.sum(0)
            yield "empty", value[:0]
        yield "a number for a tensor", 2
        yield "None for a tensor", None
        yield "a list for a tensor", [1.0, 2.0]
        yield "a text for a tensor", "x"
    elif isinstance(value, bool):
        yield "2 for a bool", 2
        yield "a text for a bool", "x"
        yield "None for a bool", None
        yield "the other bool", not value
    elif isinstance(value, int):
        yield "100", 100
        yield "-100", -100
        yield "0", 0
        yield "-1", -1
        yield "a fraction for a whole number", 1.5
        yield "a text for a number", "x"
        yield "None for a number", None
        yield "a tuple for a number", (value, value)
        yield "a tensor for a number", torch.ones(2)
        yield "True for a number", True
    elif isinstance(value, float):
        yield "-1.0", -1.0
        yield "2.5", 2.5
        yield "a text for a number", "x"
        yield "None for a number", None
        yield "a tuple for a number", (value, value)
        yield "a complex number", 1j
    elif isinstance(value, complex):
        yield "a text for a number", "x"
    elif isinstance(value, str):
        yield "an unknown word", "no_such_word"
        yield "a number for a text", 2
    elif isinstance(value, torch.dtype):
        yield "bool for a dtype", torch.bool
        yield "int64 for a dtype", torch.int64
        yield "complex64 for a dtype", torch.complex64
        yield "a number for a dtype", 2
    elif isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        if value:
            yield "one item more", kind([*value, value[-1]])
            yield "one item less", kind(value[:-1])
            yield "a text among the items", kind(["x", *value[1:]])
            yield "its first item alone", value[0]
            if all(isinstance(each, int) for each in value):
                yield "items of 100", kind([100] * len(value))
                yield "items of -2", kind([-2] * len(value))
                yield "items of 0", kind([0] * len(value))
        yield "a number for a list", 2
        yield "a text for a list", "x"
        yield "None for a list", None
    elif value is None:
        yield "a number for None", 2
        yield "a text for None", "x"
        yield "a tensor for None", torch.ones(2)


def outcome(function, call):
    """The type of the error and its text, or the shapes and types of results."""
    args, kwargs = copied((call.args, call.kwargs))
    torch.manual_seed(0)
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error).splitlines()[0] if str(error) else ""
    return None, [(each.shape, each.dtype) if isinstance(each, torch.Tensor) else type(each) for each in pytree.tree_leaves(result)]


def copied(value):
    return pytree.tree_map(lambda each: each.detach().clone().requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) else copy.copy(each), value)


def by_pyrite(function):
    return pyrite.compile(function)


def by_torch(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite")


BACKENDS = {"pyrite": by_pyrite, "torch.compile": by_torch}


def variants(op):
    """The function and the method of an OpInfo, by name."""
    yield "", op.op
    if op.method_variant is not None:
        yield ".method", op.method_variant


def check(op, count, backend):
    """How many calls there were, and what differs."""
    differences, calls = [], 0
    if op.sample_inputs_func is None:
        return 0, []
    for suffix, function in variants(op):

        def called(*args, **kwargs):
            return function(*args, **kwargs)

        for sample in samples(op, count):
            seen = set()
            for call in wrong_calls(sample):
                eager = outcome(called, call)
                compiled = outcome(BACKENDS[backend](called), call)
                calls += 1
                if agree(eager, compiled):
                    continue
                said = f"{full_name(op)}{suffix}: {call.said}: {shown(eager)} in eager, {shown(compiled)} compiled"
                if said not in seen and not any(said.startswith(known) for known in KNOWN):
                    seen.add(said)
                    differences.append(said)
                pyrite.reset()
    return calls, differences


def agree(eager, compiled):
    """Whether both refuse so that the same `except` catches it, or both accept with results of the same shapes and types."""
    if eager[0] is None or compiled[0] is None:
        return eager == compiled
    return issubclass(compiled[0], eager[0])


def shown(found):
    error, text = found
    return f"{error.__name__} ({text[:110]})" if error else f"accepted {str(text)[:60]}"


def run(name, count, backend, time_limit):
    op = opinfos()[name]

    def work():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return check(op, count, backend)

    found, death = isolation.in_a_fork(work, time_limit)
    return found or (0, [f"{name}: {death}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only these OpInfos, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--samples", type=int, default=2, help="calls of each OpInfo that are changed")
    parser.add_argument("--backend", choices=list(BACKENDS), default="pyrite")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each OpInfo")
    given = parser.parse_args()
    isolation.prepare()
    total, kinds = 0, collections.Counter()
    names = [name for name in matching(opinfos(), given.only) if name not in LEFT_OUT]
    for name in names:
        calls, differences = run(name, given.samples, given.backend, given.time_limit)
        total += calls
        kinds["differ"] += len(differences)
        for each in differences:
            print(each, flush=True)
    print(f"{len(names)} functions, {total} calls, {kinds['differ']} differences")
    return 1 if kinds["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
