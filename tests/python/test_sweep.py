"""The sweep over public architectures on one of them, and proof that it finds what is wrong. The whole runs in `cargo xtask nightly`."""

import pytest
import sweep
import torch


def test_an_architecture_is_as_in_eager():
    row = sweep.check("distilbert", "train")
    assert (row.differs, row.graphs, row.breaks) == (None, 1, 0)


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
        (with_another_output, "call 1: output 0 is off by"),
        (with_another_gradient, "call 1: gradient of"),
        (with_one_random_number_more, "call 1: next random number"),
    ],
)
def test_the_sweep_finds_a_result(monkeypatch, mistake, told):
    monkeypatch.setattr(sweep.pyrite, "compile", lambda model: lambda **arguments: mistake(model(**arguments)))
    assert sweep.check("distilbert", "train").differs.startswith(told)
