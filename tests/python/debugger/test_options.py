"""Options and readers that PyTorch's minifier launcher has a counterpart of."""

import json
import os
import runpy
import subprocess

import numpy
import pytest

from pyrite.debug import InputCounter

PROGRAM = """import torch
class Repro(torch.nn.Module):
    def forward(self, x):
        a = torch.ops.aten.sin.default(x)
        b = torch.ops.aten.cos.default(a)
        c = torch.ops.aten.add.Tensor(a, b)
        d = torch.ops.aten.relu.default(c)
        e = torch.ops.aten.tanh.default(d)
        f = torch.ops.aten.mul.Tensor(e, a)
        return (f,)
def load_args(reader):
    data = reader.storage(None, 400)
    reader.tensor(data, (10, 10))
"""


@pytest.fixture
def pyrite(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*words):
        return subprocess.run([os.environ["PYRITE_BIN"], *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)

    return run


WRONG = ["--backend", "relu_accuracy_error_TESTING_ONLY", "--out", "found"]


def test_every_improvement_is_a_program_of_its_own_that_fails(pyrite, tmp_path):
    done = pyrite("minify", "program.py", *WRONG, "--checkpoints", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["proven"], done.stderr
    kept = sorted((tmp_path / "found/checkpoints").glob("*.py"), key=lambda path: int(path.stem))
    assert kept and int(kept[0].stem) == found["nodes_after"]
    for path in kept:
        assert pyrite("run", str(path), "--backend", "relu_accuracy_error_TESTING_ONLY").returncode == 1, path


def test_no_checkpoints_are_left_unless_they_are_asked_for(pyrite, tmp_path):
    assert pyrite("minify", "program.py", *WRONG).returncode == 0
    assert not (tmp_path / "found/checkpoints").exists()


def test_a_search_that_saves_no_values_ends_in_a_proven_repro(pyrite, tmp_path):
    done = pyrite("minify", "program.py", *WRONG, "--skip-saving-eager-intermediates", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["proven"] and found["nodes_after"] < found["nodes_before"], done.stderr
    assert "aten.relu" in (tmp_path / "found/repro.py").read_text()
    assert pyrite("minify", "program.py", *WRONG, "--skip-saving-eager-intermediates", "--offload-to-disk").returncode == 2


def test_an_analysis_saves_the_values_of_all_nodes_but_those_that_are_not_wanted(pyrite, tmp_path):
    analyze = ["analyze", "program.py", *WRONG[:3], "seen"]
    assert pyrite(*analyze, "--skip-saving-float64-intermediates").returncode == 1
    kept = {path.name: numpy.load(path) for path in (tmp_path / "seen/intermediates").iterdir()}
    assert set(kept) == {"reference.npz", "backend.npz"}
    assert set(kept["backend.npz"]) == {"a", "b", "c", "d", "e", "f"}
    differ = [name for name in "abcdef" if not numpy.array_equal(kept["backend.npz"][name], kept["reference.npz"][name])]
    assert differ[0] == "d"
    assert pyrite("analyze", "program.py", *WRONG[:2], "--skip-saving-backend-intermediates").returncode == 2


def test_a_dump_that_torch_did_not_write_says_why(pyrite, tmp_path):
    (tmp_path / "dump.py").write_text("Repro is not generated due to existence of BackwardState in graph input")
    done = pyrite("debug", "dump.py", "--backend", "native")
    assert done.returncode == 2 and "BackwardState" in done.stderr and "pyrite debug script.py" in done.stderr


def test_inputs_are_counted_without_being_loaded(pyrite, tmp_path):
    assert pyrite("minify", "program.py", *WRONG).returncode == 0
    for path, at_least in ((tmp_path / "program.py", 400), (tmp_path / "found/repro.py", 0)):
        counter = InputCounter()
        runpy.run_path(str(path), run_name="repro")["load_args"](counter)
        assert counter.arguments == 1 and counter.bytes >= at_least


def test_integers_count_in_the_loss_as_torchs_do(pyrite, tmp_path):
    import torch
    from torch._dynamo.testing import reduce_to_scalar_loss

    # The gradient of the mean over a float and an integer result is half of that over the float alone.
    (tmp_path / "program.py").write_text(
        """import torch
class Repro(torch.nn.Module):
    def forward(self, x):
        y = torch.ops.aten.mul.Tensor(x, 3.0)
        n = torch.ops.aten.argmax.default(x)
        return (y, n)
def load_args(reader):
    data = reader.storage(None, 16)
    reader.tensor(data, (4,), requires_grad=True)
"""
    )
    x = torch.ones(4, requires_grad=True)
    reduce_to_scalar_loss((x * 3.0, x.argmax())).backward()
    done = pyrite("run", "program.py", "--backend", "aot_eager", "--json")
    assert done.returncode == 0, done.stderr
    (gradient,) = json.loads(done.stdout)["gradients"]
    assert gradient["statistics"]["mean"] == pytest.approx(x.grad.mean().item())
