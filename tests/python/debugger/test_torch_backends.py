"""Backends of torch.compile under Pyrite's debugger, through `torch:NAME`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

PROGRAM = """
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]", w : "f32[6, 6]"):
        a = torch.sin(x)
        b = a @ w
        c = torch.cos(b)
        d = torch.relu(c)
        e = torch.log1p(d)
        f = e.sum(-1)
        g = torch.tanh(f)
        return (g, a)
"""


@pytest.fixture
def debug(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*args, bug=None):
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        more = []
        if bug:
            environment["PYRITE_TEST_BUG"] = bug
            more = ["--import", "inductor_bug"]
        python = [] if "--python" in args else ["--python", sys.executable]
        command = [os.environ["PYRITE_BIN"], args[0], "program.py", "--json", *python, *args[1:], *more]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def test_torch_eager_agrees_with_ours(debug):
    code, report = debug("run", "--backend", "torch:eager")
    assert (code, report["verdict"]) == (0, "pass"), report


@pytest.mark.parametrize(
    ("bug", "stage", "class_", "operator"),
    [("relu:accuracy", "forward", "value", "relu"), ("relu:compile_error", "compile", "error", "relu")],
)
def test_a_bug_in_inductor_is_reduced_to_its_operator_and_proven(debug, tmp_path, bug, stage, class_, operator):
    code, report = debug("minify", "--backend", "torch:inductor", "--out", "found", bug=bug)
    assert code == 0 and report["proven"], report
    assert report["nodes_after"] == 3 and report["elements_after"] == 1
    assert (report["signature"]["stage"], report["signature"]["class"]) == (stage, class_)
    assert f"aten.{operator}" in (tmp_path / "found" / "repro.py").read_text()


def test_a_python_without_torch_is_told(debug):
    code, report = debug("run", "--backend", "torch:eager", "--python", "/bin/false")
    assert code == 2 and "torch" in json.dumps(report), report
    # It is no failure of the backend, so there is nothing to shrink.
    code, report = debug("minify", "--backend", "torch:eager", "--python", "/bin/false")
    assert (code, report["verdict"]) == (2, "invalid") and "--python" in json.dumps(report), report


def test_a_bug_in_inductor_is_bisected_to_every_lowering_that_has_it(debug, tmp_path):
    text = PROGRAM.replace("        return (g, a)", "        h = torch.relu(a)\n        return (g, h)")
    (tmp_path / "program.py").write_text(text)
    code, report = debug("bisect", "--backend", "torch:inductor", bug="relu:accuracy")
    assert code == 0, report
    assert (report["backend"], report["determinism"]) == ("torch:inductor", "same")
    assert "lowerings" in report["part"]
    assert [step.split(": ")[1] for step in report["culprits"]] == ["relu", "relu_1"]


def test_settings_are_taken_from_the_name_of_a_backend(debug):
    code, report = debug("run", "--backend", "torch:inductor?limit=lowerings:0", bug="relu:accuracy")
    assert (code, report["verdict"]) == (0, "pass"), report
    code, report = debug("run", "--backend", "torch:inductor?no_such_setting=1")
    # A setting that is not there says nothing of the backend.
    assert (code, report["verdict"]) == (2, "invalid")
    assert "no_such_setting" in json.dumps(report)


SPARSE = """
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]"):
        a = x * x
        b = a + 1
        c = torch.OPERATOR(b)
        d = torch.ops.aten._to_sparse.default(c)
        e = d + d
        return (e,)
"""


@pytest.mark.parametrize(("operator", "verdict"), [("sin", "pass"), ("relu", "fail")])
def test_sparse_results_are_compared_coalesced(debug, tmp_path, operator, verdict):
    (tmp_path / "program.py").write_text(SPARSE.replace("OPERATOR", operator))
    asked = ["--backend", "torch:relu_accuracy_error", "--reference", "torch:eager", "--import", "broken_backends"]
    code, report = debug("run", "--forward-only", *asked)
    assert report["verdict"] == verdict, report
    # The layout, two sizes, and of 24 elements that are none twice the places and the numbers.
    assert [output.get("shape") for output in report["outputs"] if "shape" in output] == [[2, 24], [24]], report
    if verdict == "fail":
        assert report["signature"]["class"] == "value", report


def test_rounding_is_noise_for_a_reference_of_torch_too(debug, tmp_path):
    lines = "".join(f"        y{k} = torch.ops.aten.add.Tensor({'x' if k == 1 else f'y{k - 1}'}, w)\n" for k in range(1, 41))
    ending = "        all = w * 40\n        z = torch.ops.aten.sub.Tensor(y40, all)\n        return (z,)\n"
    head = 'class Repro(torch.nn.Module):\n    def forward(self, x : "bf16[8]", w : "bf16[8]"):\n'
    (tmp_path / "program.py").write_text(head + lines + ending)
    code, report = debug("run", "--backend", "torch:once_rounded", "--reference", "torch:eager", "--import", "broken_backends")
    assert (code, report["verdict"]) == (0, "noise"), report


def test_fresh_caches_leave_nothing_in_the_cache(debug, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    graphs = tmp_path / "cache" / "fxgraph"
    code, report = debug("run", "--backend", "torch:inductor", "--forward-only", "--fresh-caches")
    assert (code, report["verdict"]) == (0, "pass"), report
    assert not graphs.exists()
    code, report = debug("run", "--backend", "torch:inductor", "--forward-only")
    assert (code, report["verdict"]) == (0, "pass"), report
    assert graphs.exists()
