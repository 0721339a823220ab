"""The sweep over public architectures on one of them, and proof that it finds what is wrong. The whole runs in `cargo xtask nightly`."""

import types

import pytest
import torch

from models import sweep


def test_an_architecture_is_as_in_eager():
    row = sweep.check("distilbert", "train")
    assert (row.differs, row.doubt, row.graphs, row.breaks) == (None, None, 1, 0)


def test_one_seed_may_differ_and_two_may_not(monkeypatch):
    monkeypatch.setattr(sweep.pyrite, "explain", lambda model: lambda **arguments: types.SimpleNamespace(graph_count=1, graph_break_count=0))
    for wrong, differs in ({0}, False), ({0, 2}, True), ({0, 1, 2}, True):
        answers = iter(range(sweep.SEEDS))
        monkeypatch.setattr(sweep, "compared", lambda model, arguments, seen: ("it differs" if next(answers) in wrong else None, 1.0))
        row = sweep.check("distilbert", "eval")
        assert (row.differs is not None, row.doubt is not None) == (differs, not differs)


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
