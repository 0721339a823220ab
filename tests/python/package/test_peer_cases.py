"""Small functions on the subjects of a peer's tests, compiled in every way, against eager.

Each is compiled by torch's capture with `strict`, in the same way for GPUs, whose kernels are interpreted, and by Pyrite's capture, with static
and with symbolic sizes, forward and with gradients: values, dtypes, strides, `requires_grad`, what inputs and buffers hold afterwards, the next random number, and errors are eager's. Numbers are as near
to eager's as `torch.testing.assert_close` asks, or as near to those of the same function in double precision as eager's are. What torch's
own tracing cannot do, whatever the backend, is not asked of Pyrite: `aot_eager` fails there too. By default one in a hundred runs;
`PYRITE_PEER_CASES=all` runs all of them, `PYRITE_PEER_CASES=3` the fourth of a hundred such samples. A function stays in its sample when others are added.
"""

import copy
import functools
import os
import zlib

import pytest
import torch
import torch.utils._pytree as pytree

import pyrite as package
import peer_border  # noqa: F401  (declares more)
import peer_calls  # noqa: F401
import peer_edges  # noqa: F401
import peer_families  # noqa: F401
import peer_kernels  # noqa: F401
import peer_layers  # noqa: F401
import peer_programs  # noqa: F401
import peer_subjects  # noqa: F401
import peer_suite  # noqa: F401
import peer_corners  # noqa: F401
from peer_cases import PEERS
from pyrite import aot

SAMPLES = 100
CHOICE = os.environ.get("PYRITE_PEER_CASES", "0")
NAMES = [name for name in PEERS if CHOICE == "all" or zlib.crc32(name.encode()) % SAMPLES == int(CHOICE)]


def by_torch(function, dynamic):
    return torch.compile(function, backend="pyrite", options={"strict": True}, dynamic=dynamic)


def for_gpus(function, dynamic):
    return torch.compile(function, backend="pyrite", options={"strict": True, "gpu": "interpret"}, dynamic=dynamic)


def by_pyrite(function, dynamic):
    return package.compile(function, dynamic=dynamic)


def torch_fails(function, arguments, gradients, dynamic):
    """Whether torch's own tracing fails, as that of antialiased upsampling to sizes that are symbols does, backward."""
    torch._dynamo.reset()
    try:
        observed(torch.compile(function, backend="aot_eager", dynamic=dynamic), arguments, gradients)
    except torch._dynamo.exc.TorchDynamoException:
        return True
    return False


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    package.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def leaves(value):
    return [each for each in pytree.tree_leaves(value) if each is not None]


def observed(function, arguments, gradients):
    """What a call leaves: outputs, inputs, buffers, gradients, and the next random number."""
    arguments = copy.deepcopy(arguments)
    tensors = [each for each in leaves(arguments) if isinstance(each, torch.Tensor)]
    wanted = [each for each in tensors if each.is_floating_point() or each.is_complex()] if gradients else []
    for each in wanted:
        each.requires_grad_()
    buffers = []
    if isinstance(function, torch.nn.Module):
        wanted += function.parameters()
        buffers = list(function.buffers())
    torch.manual_seed(5)
    with torch.set_grad_enabled(gradients):
        outputs = leaves(function(*arguments))
    following = torch.rand(())
    found = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
    if gradients and found:
        torch.manual_seed(6)
        # Drawn in one type, so that they are the same for the function in double precision.
        torch.autograd.backward(found, [torch.randn(each.shape, dtype=torch.complex64 if each.is_complex() else None).to(each.dtype) for each in found])
    return {"output": outputs, "input": tensors, "buffer": buffers, "gradient": [each.grad for each in wanted], "random number": [following]}


WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}


def widened(value):
    """A module, or arguments, in double precision."""
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).double()
    return pytree.tree_map(lambda each: each.to(WIDER.get(each.dtype, each.dtype)) if isinstance(each, torch.Tensor) else each, value)


def agree(have, want, case, what, reference):
    """Compares one value. `reference()` is the same value of the function in double precision, `None` where it has none."""
    if not isinstance(want, torch.Tensor):
        assert have == want or have != have and want != want or isinstance(want, float) and have == pytest.approx(want), what
        return
    assert (have.shape, have.dtype, have.requires_grad) == (want.shape, want.dtype, want.requires_grad), what
    assert have.stride() == want.stride() or have.numel() < 2 or what.startswith("gradient"), f"{what}: strides {have.stride()}, not {want.stride()}"
    if have.dtype.itemsize == 1 and have.is_floating_point() or have.dtype in (torch.uint16, torch.uint32, torch.uint64):
        have, want = have.double(), want.double()
    try:
        close(have, want, case, what)
    except AssertionError:
        exact = reference() if have.is_floating_point() or have.is_complex() else None
        if not isinstance(exact, torch.Tensor) or exact.shape != have.shape or not (exact.is_floating_point() or exact.is_complex()):
            raise
        try:
            close(have, exact.to(have.dtype), case, what)
        except AssertionError:
            if not distance(have, exact) <= 1.5 * distance(want, exact):
                raise


def distance(value, exact):
    """How far a value is from another, over all elements; NaN where one of both is not finite."""
    return torch.linalg.vector_norm(value.to(torch.complex128) - exact.to(torch.complex128)).item()


def close(have, want, case, what):
    near = {} if case.rtol is None else {"rtol": case.rtol, "atol": case.atol}
    torch.testing.assert_close(have, want, equal_nan=True, check_stride=False, msg=lambda text: f"{what}: {text}", **near)


@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("way", [by_torch, for_gpus, by_pyrite])
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_as_in_eager(name, gradients, way, dynamic):
    case = PEERS[name]
    if gradients and not case.gradients:
        return
    plain, other = (copy.deepcopy(case.function) if isinstance(case.function, torch.nn.Module) else case.function for _ in range(2))
    compiled = way(other, dynamic)
    # A module's own call is what is compiled.
    called = compiled if not isinstance(other, torch.nn.Module) else Called(compiled, other)
    for make in (case.arguments, *case.then):
        torch.manual_seed(1)
        arguments = make()
        try:
            compare_call(name, case, plain, called, arguments, gradients)
        except torch._dynamo.exc.BackendCompilerFailed:
            if not torch_fails(plain, arguments, gradients, dynamic):
                raise
            return


def compare_call(name, case, plain, compiled, arguments, gradients):
    """Calls a function plain and compiled, and compares what both leave."""
    state = copy.deepcopy(plain) if isinstance(plain, torch.nn.Module) else None
    try:
        want = observed(plain, arguments, gradients)
    except Exception:
        with pytest.raises(Exception):  # noqa: B017  (torch's capture wraps eager's errors)
            observed(compiled, arguments, gradients)
        return
    assert not name.startswith("refused"), "eager accepts it"
    wide = None

    def reference(what, number):
        nonlocal wide
        if wide is None:
            try:
                wide = observed(widened(state) if state is not None else plain, widened(arguments), gradients)
            except Exception:  # the function has no other types than its own
                wide = {}
        found = wide.get(what, [])
        return found[number] if number < len(found) else None

    with aot.observed() as regions:
        have = observed(compiled, arguments, gradients)
    for what, found in have.items():
        assert len(found) == len(want[what]), what
        for number, (mine, theirs) in enumerate(zip(found, want[what])):
            assert (mine is None) == (theirs is None), f"{what} {number}"
            if theirs is not None:
                agree(mine, theirs, case, f"{what} {number}", functools.partial(reference, what, number))
    assert not any(region.is_eager for region in regions), regions


class Called(torch.nn.Module):
    """A compiled module with the parameters and buffers of the plain one."""

    def __init__(self, compiled, plain):
        super().__init__()
        self.plain = plain
        self.call = [compiled]

    def forward(self, *arguments):
        return self.call[0](*arguments)
