"""Small functions through `torch.compile(backend="pyrite", options={"strict": True})`, against eager.

Each is run with static and with symbolic sizes, forward and with gradients. By default a sample of every fortieth runs;
`PYRITE_REGION_CASES=all` runs all of them, `PYRITE_REGION_CASES=3` every fortieth from the fourth on.
"""

import copy
import os

import pytest
import torch
import torch.utils._pytree as pytree

from pyrite import aot
from region_cases import CASES

STEP = 40
CHOICE = os.environ.get("PYRITE_REGION_CASES", "0")
NAMES = list(CASES) if CHOICE == "all" else list(CASES)[int(CHOICE) :: STEP]

# Operators that torch runs in these cases, each with its reason. Everything else is compiled.
OPAQUE = {
    "aten._assert_async.msg": "a check of data that gives no tensor",
    "aten._assert_scalar.default": "a check of a size, made by Python",
    "aten._ctc_loss.default": "Pyrite has no such operator",
    "aten._ctc_loss_backward.default": "Pyrite has no such operator",
    "aten._embedding_bag_backward.default": "Pyrite has no such operator for maxima and for gradients that are scaled by frequency",
    "aten._local_scalar_dense.default": "a number that depends on data",
    "aten._unique2.default": "a size that depends on data",
    "aten.arange.start_step": "a step that is a symbolic size",
    "aten.bincount.default": "a size that depends on data",
    "aten.index.Tensor": "a size that depends on data, where the index is a mask",
    "aten.masked_scatter_backward.default": "Pyrite has no such operator",
    "aten.masked_select.default": "a size that depends on data",
    "aten.new_full.default": "a float that is computed at run time",
    "aten.nonzero.default": "a size that depends on data",
    "higher_order.cond": "the branch depends on data; both are compiled",
    "higher_order.with_effects": "an effect that keeps its place",
}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def leaves(value):
    return [each for each in pytree.tree_leaves(value) if each is not None]


def run(function, arguments, gradients):
    """The outputs of a call, the arguments as they are afterwards, and the gradients of all of them."""
    arguments = copy.deepcopy(arguments)
    differentiable = [each for each in leaves(arguments) if isinstance(each, torch.Tensor) and each.is_floating_point()]
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    wanted = [*differentiable, *parameters] if gradients else []
    for each in differentiable if gradients else ():
        each.requires_grad_()
    for each in parameters:
        each.grad = None
    torch.manual_seed(5)
    with torch.set_grad_enabled(gradients):
        outputs = function(*arguments)
    found = [each for each in leaves(outputs) if isinstance(each, torch.Tensor) and each.requires_grad]
    if gradients and found:
        torch.manual_seed(6)
        torch.autograd.backward(found, [torch.randn_like(each) for each in found])
    state = [each.detach().clone() for each in function.buffers()] if isinstance(function, torch.nn.Module) else []
    return leaves(outputs), [each for each in leaves(arguments) if isinstance(each, torch.Tensor)], state, [each.grad for each in wanted]


def same(found, expected, case):
    assert type(found) is type(expected) or not isinstance(expected, torch.Tensor), (type(found), type(expected))
    if isinstance(expected, torch.Tensor):
        assert found.shape == expected.shape and found.dtype == expected.dtype, (found.shape, found.dtype, expected.shape, expected.dtype)
        assert found.requires_grad == expected.requires_grad
        assert found.stride() == expected.stride() or found.numel() < 2, (found.stride(), expected.stride())
        torch.testing.assert_close(found, expected, rtol=case.rtol, atol=case.atol, equal_nan=True, check_stride=False)
    else:
        assert found == expected


def check(name, dynamic, gradients):
    """Runs a case compiled and eagerly and compares everything; returns the regions."""
    case = CASES[name]
    torch.manual_seed(1)
    arguments = case.arguments()
    function = copy.deepcopy(case.function) if isinstance(case.function, torch.nn.Module) else case.function
    expected = run(function, arguments, gradients)
    function = copy.deepcopy(case.function) if isinstance(case.function, torch.nn.Module) else case.function
    with aot.observed() as regions:
        compiled = torch.compile(function, backend="pyrite", options={"strict": True}, dynamic=dynamic)
        found = run(compiled, arguments, gradients)
    for got, want in zip(found, expected, strict=True):
        for each, reference in zip(got, want, strict=True):
            same(each, reference, case)
    return regions


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "gradients"])
@pytest.mark.parametrize("name", NAMES)
def test_a_function_computes_what_eager_does(name, gradients, dynamic):
    case = CASES[name]
    if gradients and not case.gradients or dynamic and not case.dynamic:
        return
    for region in check(name, dynamic or None, gradients):
        assert not region.is_eager
        assert {each.name for each in region.opaque} <= set(OPAQUE), region.opaque
