"""Small functions by `pyrite.compile`, with the sizes of the call and with symbolic sizes: results, gradients and writes are eager's."""

import pyrite
import pytest
import torch
import torch.utils._pytree as pytree

from operators import functions

# The sizes of two calls. The second one makes a symbol of what was a number.
SIZES = [6, 11]


def observed(function, inputs):
    """What one call leaves: outputs, the inputs after it, gradients of inputs, and the next random number."""
    torch.manual_seed(7)
    leaves = [x.detach().clone() for x in inputs]
    wants = [x.is_floating_point() and not isinstance(x, Mutated) for x in inputs]
    for leaf, wanted in zip(leaves, wants):
        leaf.requires_grad_(wanted)
    outputs = [out for out in pytree.tree_leaves(function(*leaves)) if out is not None]
    following = torch.rand(())
    total = [weighed(out) for out in outputs if isinstance(out, torch.Tensor) and out.requires_grad]
    gradients = [None] * len(leaves)
    if total:
        gradients = torch.autograd.grad(sum(total), [leaf for leaf, wanted in zip(leaves, wants) if wanted], allow_unused=True)
    return outputs, [leaf.detach() for leaf in leaves], gradients, following


class Mutated(torch.Tensor):
    """Marks an input that is written, and whose gradient nobody wants."""


def weighed(out):
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)
    return (out.abs() if out.is_complex() else out).mul(weights.to(out.dtype if not out.is_complex() else torch.float64)).sum().double()


def inputs_of(subject, make, size):
    torch.manual_seed(size)
    inputs = make(size)
    return [x.as_subclass(Mutated) for x in inputs] if subject == "mutation" else list(inputs)


def agree(have, want):
    assert len(have) == len(want)
    for k, (h, w) in enumerate(zip(have, want)):
        if not isinstance(w, torch.Tensor):
            assert type(h) is type(w) and h == w, k
            continue
        assert (h.dtype, h.shape, h.requires_grad) == (w.dtype, w.shape, w.requires_grad), k
        torch.testing.assert_close(h, w, equal_nan=True, **TOLERANCES.get(w.dtype, {}))


# Sums are made in another order, and kernels that torch computes in half precision round more often than ours.
TOLERANCES = {torch.float32: {"rtol": 1e-5, "atol": 3e-5}, torch.float16: {"rtol": 2e-3, "atol": 2e-3}, torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2}}


@pytest.mark.parametrize("dynamic", [None, True], ids=["sizes", "symbols"])
@pytest.mark.parametrize("subject, name", [pytest.param(*key, id="-".join(key)) for key in functions.FUNCTIONS])
def test_a_function_is_as_in_eager(subject, name, dynamic):
    function, make = functions.FUNCTIONS[subject, name]
    compiled = pyrite.compile(function, dynamic=dynamic)
    for size in SIZES:
        inputs = inputs_of(subject, make, size)
        try:
            want = observed(function, inputs)
        except Exception as error:
            with pytest.raises(type(error)):
                observed(compiled, inputs)
            continue
        have = observed(compiled, inputs)
        for part, h, w in zip(("outputs", "inputs", "gradients"), have, want):
            agree(h, w)
        assert have[3] == want[3], "the next random number"
    pyrite.reset()


def test_an_assertion_about_a_size_from_data_holds_where_it_does():
    def places(x):
        found = x.nonzero()
        torch._check(found.size(0) >= 0)
        return found + 1

    x = torch.tensor([0, 1, 1])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(places, backend="pyrite", fullgraph=True)
        torch.testing.assert_close(compiled(x), places(x))
    torch.testing.assert_close(pyrite.compile(places)(x), places(x))


def test_functions_of_torchs_own_modules_are_captured():
    """`torch._VF` computes its attributes by its class."""
    x = torch.randn(3, 4)
    for function in (lambda x: torch.tensordot(x, x, dims=([1], [1])), lambda x: torch.functional.einsum("ij,kj->ik", x, x)):
        explained = pyrite.explain(function)(x)
        assert explained.graph_break_count == 0, explained.break_reasons
        torch.testing.assert_close(pyrite.compile(function)(x), function(x))


def test_a_bool_of_two_tensors_is_a_bool():
    def compared(x, y):
        return torch.allclose(x, y), torch.equal(x, x), x + 1

    x, y = torch.zeros(3), torch.ones(3)
    assert pyrite.compile(compared)(x, y)[:2] == (False, True)


def test_statistics_of_instance_norm_move_once():
    found = []
    for way in (lambda module: module, pyrite.compile):
        module = torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
        x = torch.arange(36.0).reshape(2, 3, 6)
        found.append((way(module)(x), module.running_mean, module.running_var))
    for have, want in zip(found[1], found[0]):
        torch.testing.assert_close(have, want)
