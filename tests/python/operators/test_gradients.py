"""Gradients against torch autograd on the first sample of every OpInfo, and proof that the harness finds what is wrong."""

import json
import pathlib
import subprocess
import sys

import pytest

from operators import gradients

TESTS = pathlib.Path(__file__).parents[1]

# OpInfos whose gradients are right on the first sample. Raise it when more are.
FLOOR = 530

# OpInfos on which the harness is tried: broadcasting, a view, several results, randomness, an integer result.
TRIED = ["mul", "t", "svd", "nn.functional.dropout", "max.reduction_with_dim"]


def run_with_torch(fault=None, names=TRIED):
    command = ["env", f"PYTHONPATH={TESTS}", sys.executable, "-m", "operators.torch_worker", *([fault] if fault else [])]
    options = gradients.Options(dtypes=["f64", "c128"], samples=3, command=command)
    return {report["name"]: report for report in gradients.run(names, options)}


def test_no_gradient_is_wrong_on_the_first_sample(pyrite, tmp_path):
    out = tmp_path / "gradients.json"
    command = [sys.executable, "-m", "operators.gradients", "--samples", "1", "--json", str(out)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    summary = json.loads(out.read_text())["summary"]
    assert summary["wrong"] == [], done.stdout
    assert summary["passed"] >= FLOOR, done.stdout


def test_torch_agrees_with_itself():
    assert {report["status"] for report in run_with_torch().values()} == {"passed"}


@pytest.mark.parametrize("fault", ["gradient", "lost", "tiny", "missing", "crash"])
def test_the_harness_finds(fault):
    assert run_with_torch(fault, ["mul"])["mul"]["failed"]
