"""The rows of the operators' benchmark give eager's results and gradients, at the sizes that are measured."""

import pytest
import torch

import pyrite
from bench.operator_bench import OPERATORS, tensor_of, tensors

# Two calls draw other numbers; of several writes to one place any may count, also in two calls of eager with two threads.
FREE = {"dropout", "randn", "index put"}


def close(have, want):
    """Sums of many terms, in another order."""
    scale = max(1.0, want.abs().max().item()) if want.numel() else 1.0
    torch.testing.assert_close(have, want, rtol=1e-3, atol=2e-4 * scale, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in FREE])
def test_a_row_gives_the_results_and_gradients_of_eager(name):
    torch.manual_seed(0)
    function, *specs = OPERATORS[name]
    inputs = [tensor_of(spec, torch.float32, "training") for spec in specs]
    wanted, found = tensors(function(*inputs)), tensors(pyrite.compile(function)(*inputs))
    assert [(x.shape, x.dtype, x.requires_grad) for x in found] == [(x.shape, x.dtype, x.requires_grad) for x in wanted]
    for have, want in zip(found, wanted, strict=True):
        if want.is_floating_point():
            close(have, want)
    places = [(have, want) for have, want in zip(found, wanted, strict=True) if not want.is_floating_point()]
    # Equal elements may be found at either place, and their gradients go there.
    if any(not torch.equal(have, want) for have, want in places):
        values = inputs[0].detach()
        assert values.unique().numel() < values.numel()
        return
    recorded = [(have, want) for have, want in zip(found, wanted, strict=True) if want.requires_grad]
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    if not recorded or not leaves:
        return
    gradients = [torch.randn_like(want) for _, want in recorded]
    expected = torch.autograd.grad([want for _, want in recorded], leaves, gradients)
    for have, want in zip(torch.autograd.grad([have for have, _ in recorded], leaves, gradients), expected, strict=True):
        close(have, want)
