"""What eager refuses, compiled functions refuse: error inputs of OpInfos, and types that torch has no kernel for.

`PYRITE_REFUSALS=all` takes every OpInfo and not only some.
"""

import logging
import os
import warnings

import pyrite
import pytest
import torch
import torch.nn.functional as F

from operators import refusals
from operators.conformance import opinfos

# Refusals that depend on what is in a tensor, on more dimensions than anybody has, or on numbers that wrap around.
KNOWN = {"only tensors with up to 64 dims", "without overflow"}

FAILING = [name for name, op in opinfos().items() if op.error_inputs_func is not None]


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)
    pyrite.reset()


def refusal(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", FAILING if os.environ.get("PYRITE_REFUSALS") else FAILING[::6])
def test_error_inputs_are_refused(name):
    op = opinfos()[name]
    accepted = []
    for number, error_input in enumerate(op.error_inputs("cpu")):
        sample = error_input.sample_input

        def function(first, args, kwargs):
            return op.op(first, *args, **kwargs)

        arguments = (sample.input, sample.args, sample.kwargs)
        want = refusal(function, *arguments)
        # Python's functions take numbers for tensors in fewer places than operators do.
        if want is None or isinstance(want, TypeError) or any(text in str(want) for text in KNOWN):
            continue
        if refusal(pyrite.compile(function), *arguments) is None:
            accepted.append(f"{number}: {want}")
    assert accepted == []


# Every sixtieth, so that all kinds of functions are among them.
CHANGED = [name for name in opinfos() if name not in refusals.LEFT_OUT][::60]


@pytest.mark.parametrize("name", CHANGED)
def test_wrong_calls_are_refused_as_in_eager_mode(name):
    calls, differences = refusals.check(opinfos()[name], 1, "pyrite")
    assert differences == [] and calls


@pytest.mark.parametrize("name", ["nn.functional.relu", "tile", "nn.functional.layer_norm", "gather"])
def test_wrong_calls_are_refused_in_regions_of_torchs_capture(name):
    calls, differences = refusals.check(opinfos()[name], 1, "torch.compile")
    assert differences == [] and calls


def test_a_reduction_by_scatter_that_torch_does_not_differentiate_is_refused():
    x, index = torch.randn(3, requires_grad=True), torch.tensor([0, 1, 1])
    result = pyrite.compile(lambda x: torch.scatter(x, 0, index, x.detach(), reduce="multiply"))(x)
    with pytest.raises(RuntimeError, match="derivative"):
        result.sum().backward()


@pytest.mark.parametrize("function", [lambda x, i: x[i], lambda x, i: x.index_select(0, i), lambda x, i: x.gather(0, i), lambda x, i: F.embedding(i, x[:, None])])
def test_an_index_out_of_range_is_caught_as_in_eager_mode(function):
    # Only plain indexing counts from the end.
    for place in (9, -1, -6):
        x, index = torch.randn(5), torch.tensor([2, place])
        want, have = refusal(function, x, index), refusal(pyrite.compile(function), x, index)
        assert want is None and have is None or isinstance(have, type(want)), f"{place}: {want} in eager, {have} compiled"


TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bfloat16, torch.float32, torch.float64, torch.complex64]

FUNCTIONS = {
    "max_pool1d": (3, lambda x: F.max_pool1d(x, 2)),
    "max_pool2d": (4, lambda x: F.max_pool2d(x, 2)),
    "avg_pool1d": (3, lambda x: F.avg_pool1d(x, 2)),
    "avg_pool2d": (4, lambda x: F.avg_pool2d(x, 2)),
    "adaptive_avg_pool1d": (3, lambda x: F.adaptive_avg_pool1d(x, 2)),
    "adaptive_avg_pool2d": (4, lambda x: F.adaptive_avg_pool2d(x, 2)),
    "adaptive_max_pool2d": (4, lambda x: F.adaptive_max_pool2d(x, 2)),
    "softmax": (3, lambda x: F.softmax(x, 1)),
    "layer_norm": (3, lambda x: F.layer_norm(x, (4,))),
    "group_norm": (3, lambda x: F.group_norm(x, 2)),
    "batch_norm": (3, lambda x: F.batch_norm(x, None, None, training=True)),
    "mean": (3, torch.mean),
    "var": (3, torch.var),
    "norm": (3, torch.norm),
    "gelu": (3, F.gelu),
    "silu": (3, F.silu),
    "relu": (3, F.relu),
    "elu": (3, F.elu),
    "softplus": (3, F.softplus),
    "dropout": (3, lambda x: F.dropout(x, 0.5)),
    "kl_div": (3, lambda x: F.kl_div(x, x)),
    "unfold": (4, lambda x: F.unfold(x, 2)),
    "conv": (3, lambda x: F.conv1d(x, x)),
    "conv_transpose": (3, lambda x: F.conv_transpose1d(x, x)),
    "hypot": (3, lambda x: torch.hypot(x, x)),
    "logaddexp": (3, lambda x: torch.logaddexp(x, x)),
    "interpolate": (4, lambda x: F.interpolate(x, scale_factor=2)),
    "neg": (3, torch.neg),
    "sub": (3, lambda x: x - x),
    "bitwise_not": (3, torch.bitwise_not),
    "argmax": (3, torch.argmax),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_without_a_kernel_are_refused(name):
    rank, function = FUNCTIONS[name]
    wrong = []
    for dtype in TYPES:
        x = (torch.rand([4] * rank) * 3).to(dtype)
        eager, compiled = refusal(function, x), refusal(pyrite.compile(function), x)
        if (eager is None) != (compiled is None):
            wrong.append(f"{dtype}: {eager} in eager, {compiled} compiled")
    assert wrong == []


@pytest.mark.parametrize("padding", [1, 2])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_transposed_convolution_without_a_result_is_refused(dims, padding):
    convolution = getattr(F, f"conv_transpose{dims}d")
    compiled = pyrite.compile(lambda x, w: convolution(x, w, padding=padding))
    with pytest.raises(RuntimeError, match="too small"):
        compiled(torch.randn([1, 2] + [1] * dims), torch.randn([2, 2] + [2] * dims))
