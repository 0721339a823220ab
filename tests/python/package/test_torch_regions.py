"""Backends of torch.compile behind Pyrite's capture."""

import pytest
import torch

import pyrite as package
from pyrite import config


@pytest.fixture(autouse=True)
def fresh():
    package.reset()
    yield
    package.reset()


def layer(x, w):
    return (torch.nn.functional.linear(x, w).relu() * x.shape[0]).sum()


@pytest.mark.parametrize("backend", ["torch:eager", "torch:aot_eager"])
def test_gradients_go_through_a_backend_of_torchs(backend):
    compiled = package.compile(layer, backend=backend)
    for batch in (3, 5, 7):
        x, w = torch.randn(batch, 4), torch.randn(4, 4, requires_grad=True)
        expected = torch.autograd.grad(layer(x, w), w)
        torch.testing.assert_close(torch.autograd.grad(compiled(x, w), w), expected)


def test_a_graph_that_fx_cannot_say_runs_plain():
    def switching(x):
        with torch.no_grad():
            y = x * 2
        return (x * y).sum()

    x = torch.ones(3, requires_grad=True)
    compiled = package.compile(switching, backend="torch:aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(switching(x), x))


def test_explaining_composes_with_a_backend_of_torchs():
    explaining = package.ExplainWithBackend("torch:aot_eager")
    package.compile(layer, backend=explaining)(torch.ones(3, 4), torch.ones(4, 4))
    assert explaining.output().op_count == 4


def test_gradients_go_through_a_checked_backend_of_torchs_too(tmp_path):
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    expected = torch.autograd.grad(layer(x, w), w)
    with config.patch(repro_after="capture", repro_level=4, debug_dir=str(tmp_path / "debug")):
        torch.testing.assert_close(torch.autograd.grad(package.compile(layer, backend="torch:aot_eager")(x, w), w), expected)
    assert not (tmp_path / "debug").exists()
