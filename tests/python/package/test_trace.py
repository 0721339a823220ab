"""Traces and logs of captured programs."""

import json
import logging
import os
import subprocess
import sys

import pytest
import torch

import pyrite as package

MODEL = """
import torch
import pyrite

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x).relu()
        print("between")
        return y.softmax(-1)

net = pyrite.compile(Net())
net(torch.ones(2, 4)).sum().backward()
net(torch.ones(3, 4))
"""


def run(folder, **variables):
    (folder / "model.py").write_text(MODEL)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYRITE_")}
    done = subprocess.run([sys.executable, "model.py"], cwd=folder, env=own | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def records(folder):
    lines = (folder / "trace.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    run(folder, PYRITE_COMPILE_DEBUG="1")
    (trace,) = (folder / "pyrite_debug").iterdir()
    return trace


def test_a_captured_module_leaves_all_of_its_artifacts(traced):
    names = {path.name for path in traced.rglob("*") if path.is_file()}
    wanted = "graph_readable.py graph_runnable.py graph_transformed.py ir_pre_fusion.txt ir_post_fusion.txt output_code.txt"
    wanted += " joint.py forward.py backward.py guards.txt bytecode.txt timings.txt compile_profile.json debug.log"
    wanted += " graph_breaks.txt recompiles.txt trace.jsonl"
    assert set(wanted.split()) <= names
    first = min((traced / "capture").glob("forward_*"), key=lambda path: int(path.name.rpartition("_")[2]))
    text = (first / "bytecode.txt").read_text()
    assert "before:" in text and "LOAD_FAST" in text.split("after:")[0] and "go on at instruction" in text.split("after:")[1]
    assert "is a tensor of type f32" in (first / "guards.txt").read_text()
    assert 'print("between")' in (traced / "graph_breaks.txt").read_text()
    assert (traced / "native" / f"{first.name}_forward" / "output_code.txt").exists()


def test_breaks_and_recompiles_say_where_and_why(traced):
    events = records(traced)
    assert {"python", "torch", "pyrite"} <= set(events[0]["versions"])
    broken = next(event for event in events if event["event"] == "break")
    assert broken["file"].endswith("model.py") and broken["line"] == 12 and "print" in broken["source"]
    again = next(event for event in events if event["event"] == "recompile")
    assert "shape" in again["guard"] and again["source"] and again["times"] >= 1


def test_graphs_of_a_trace_run_in_pytorch_and_in_pyrite(traced):
    runnable = sorted(traced.rglob("graph_runnable.py"))
    assert len(runnable) >= 4
    for path in (runnable[0], runnable[-1]):
        done = subprocess.run([sys.executable, path], capture_output=True, text=True)
        assert done.returncode == 0 and "tensor(" in done.stdout, done.stderr
    for path in runnable:
        words = [sys.executable, "-m", "pyrite", "run", path, "--backend", "native", "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "pass", done.stdout + done.stderr


def test_a_block_is_traced_and_artifacts_are_left_out(tmp_path):
    with package.trace("-output_code,-bytecode", folder=tmp_path / "here") as folder:
        package.compile(lambda x: x.sin() * 2)(torch.ones(3))
    package.compile(lambda x: x.cos() * 2)(torch.ones(3))
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert str(folder) == str(tmp_path / "here")
    assert "graph_readable.py" in names and not {"output_code.txt", "bytecode.txt"} & names
    assert "cos" not in (tmp_path / "here" / "trace.jsonl").read_text()
    with pytest.raises(ValueError, match="did you mean output_code"):
        with package.trace("output_kode"):
            pass


def test_a_block_that_fails_ends_its_trace(tmp_path):
    with pytest.raises(KeyError), package.trace(folder=tmp_path / "here"):
        raise KeyError("its own")
    package.compile(lambda x: x.tan() * 2)(torch.ones(3))
    assert "tan" not in (tmp_path / "here" / "trace.jsonl").read_text()


def test_artifacts_of_the_rust_half_are_logged_by_python(caplog):
    package.set_logs(aot_graphs=True, output_code=True)
    try:
        package.compile(lambda x: x.sinh() * 2)(torch.ones(3, requires_grad=True))
    finally:
        package.set_logs(aot_graphs=False, output_code=False)
    by_name = {record.name: record.getMessage() for record in caplog.records if record.levelno == logging.INFO}
    assert "joint.py" in " ".join(record.getMessage() for record in caplog.records)
    assert "for (long i" in by_name["pyrite.output_code"]
    caplog.clear()
    package.compile(lambda x: x.cosh() * 2)(torch.ones(3))
    assert not [record for record in caplog.records if record.name == "pyrite.output_code"]


def test_nothing_is_written_or_said_unasked(tmp_path):
    done = run(tmp_path)
    assert done.stdout == "between\nbetween\n" and done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]
