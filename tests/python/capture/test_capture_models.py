"""Whole models through Pyrite's capture: right in both modes, with no more breaks than TorchDynamo makes; and the documentation's example."""

import json
import subprocess
import sys

import pytest
import torch

from capture import harness, models
from capture.corpus.breaks import example_of_the_documentation
from models.measured import MODELS as MEASURED

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")


@pytest.fixture(scope="module")
def compiler():
    return harness.Pyrite()


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", models.MODELS)
def test_a_captured_model_gives_the_outputs_and_gradients_of_eager(compiler, name):
    assert models.check(name, compiler) is None


@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_has_no_more_breaks_than_in_dynamo(compiler, name):
    counts = models.count(name, compiler)
    assert counts.breaks <= models.recorded()[name].breaks
    if name in MEASURED:
        assert counts == harness.Counts(graphs=1, breaks=0)


def test_the_example_of_the_documentation_has_three_graphs_and_two_breaks(compiler):
    explained = compiler.package.explain(example_of_the_documentation)(torch.randn(10), torch.ones(10))
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (3, 2, 6)
    first = example_of_the_documentation.__code__.co_firstlineno
    stacks = [str(broken.user_stack[-1]) for broken in explained.break_reasons]
    for stack, line in zip(stacks, (first + 3, first + 4), strict=True):
        assert "breaks.py" in stack and str(line) in stack


WITHOUT_DYNAMO = """
import json, sys
import torch
before = [name for name in sys.modules if name.startswith("torch._dynamo")]
import pyrite
compiled = pyrite.compile(lambda x: x.sin() + 1, backend="eager")
compiled(torch.ones(3, requires_grad=True)).sum().backward()
print(json.dumps([before, [name for name in sys.modules if name.startswith("torch._dynamo")]]))
"""


def test_capture_does_not_import_dynamo():
    done = subprocess.run([sys.executable, "-c", WITHOUT_DYNAMO], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert after == before
