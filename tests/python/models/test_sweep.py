"""The sweep over public architectures on one of them, and proof that it finds what is wrong. The whole runs in `cargo xtask nightly`."""

import types

import pytest
import torch

from capture.models import parting
from models import kinks, sweep


def test_an_architecture_is_as_in_eager():
    row = sweep.check("distilbert", "train")
    assert (row.differs, row.doubt, row.graphs, row.breaks) == (None, None, 1, 0)


def test_what_differs_is_excused_where_the_smooth_network_does_not(monkeypatch):
    monkeypatch.setattr(sweep.pyrite, "explain", lambda model: lambda **arguments: types.SimpleNamespace(graph_count=1, graph_break_count=0))
    cases = [("train", "kink", False), ("train", "mistake", True), ("eval", "kink", True)]
    for mode, cause, differs in cases:

        def compared(model, arguments, seen):
            is_smooth = torch.nn.functional.relu.__module__ == "models.kinks"
            return (None if cause == "kink" and is_smooth else "it differs"), 1.0

        monkeypatch.setattr(sweep, "compared", compared)
        row = sweep.check("distilbert", mode)
        assert (row.differs is not None, row.doubt is not None) == (differs, not differs)


class Small(torch.nn.Module):
    """A network with a kink in every place that `kinks` replaces."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 2)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.nn.functional.relu(self.first(x)), 2)
        x = torch.nn.functional.hardswish(x).mean((2, 3))
        return self.last(torch.relu(x))


def test_a_smooth_network_is_another_network_and_as_in_eager():
    torch.manual_seed(0)
    model, x = Small(), torch.randn(2, 3, 8, 8)
    plain = model(x)
    with kinks.smooth():
        assert not torch.allclose(model(x), plain)
        assert sweep.compared(model, {"x": x})[0] is None
    assert torch.equal(model(x), plain)


def with_another_output(result):
    result["last_hidden_state"] = result["last_hidden_state"] * 1.001
    return result


def with_another_gradient(result):
    result["last_hidden_state"].register_hook(lambda gradient: gradient * 1.001)
    return result


def with_one_random_number_more(result):
    torch.rand(())
    return result


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (with_another_output, "seed 0, call 1: output 0 is off by"),
        (with_another_gradient, "seed 0, call 1: gradient of"),
        (with_one_random_number_more, "seed 0, call 1: next random number"),
    ],
)
def test_the_sweep_finds_a_result(monkeypatch, mistake, told):
    monkeypatch.setattr(sweep.pyrite, "compile", lambda model: lambda **arguments: mistake(model(**arguments)))
    assert sweep.check("distilbert", "train").differs.startswith(told)


def test_only_what_is_not_near_to_eager_has_to_be_as_near_to_double_precision():
    fp64 = {"gradient of w": torch.ones(4, dtype=torch.float64), "buffer mean": torch.ones(4, dtype=torch.float64)}
    eager = {"gradient of w": torch.full((4,), 1.001), "buffer mean": torch.ones(4)}
    # The gradient is as far from double precision as eager's, on the other side; the buffer is off by rounding.
    assert parting(eager, {"gradient of w": torch.full((4,), 0.999), "buffer mean": torch.full((4,), 1.00005)}, lambda: fp64) is None
    assert parting(eager, {"gradient of w": torch.full((4,), 0.99), "buffer mean": torch.ones(4)}, lambda: fp64).startswith("gradient")
    assert parting(eager, {"gradient of w": torch.full((4,), 0.999), "buffer mean": torch.full((4,), 1.001)}, lambda: fp64).startswith("gradient")
