"""The conformance run on a subset of the samples, and proof that its harness finds what is wrong."""

import json
import pathlib
import subprocess
import sys

import conformance
import pytest

FOLDER = pathlib.Path(__file__).parent

# OpInfos that pass on the quick subset. Raise it when more do.
FLOOR = 640

# OpInfos on which the harness is tried: views, a mutation, reductions, integers, randomness.
TRIED = ["add", "t", "nn.functional.batch_norm", "max.reduction_with_dim", "nn.functional.dropout", "unbind", "empty_like"]


def run_with_torch(fault=None, names=TRIED, **options):
    command = [sys.executable, str(FOLDER / "torch_worker.py"), *([fault] if fault else [])]
    options = conformance.Options(**{"dtypes": ["f32", "i64"], "samples": 4, "command": command, **options})
    return {report["name"]: report for report in conformance.run(names, options)}


def test_no_answer_is_wrong_on_the_quick_subset(pyrite, tmp_path):
    out = tmp_path / "conformance.json"
    command = [sys.executable, str(FOLDER / "conformance.py"), "--quick", "--jobs", "2", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    summary = json.loads(out.read_text())["summary"]
    assert summary["wrong"] == [], done.stdout
    assert summary["passed"] >= FLOOR, done.stdout


def test_torch_agrees_with_itself():
    reports = list(run_with_torch().values())
    assert {report["status"] for report in reports} == {"passed"}
    summary = conformance.summarize(reports)
    assert summary["opinfos"] == summary["passed"] == len(TRIED)
    assert summary["cases"] == summary["cases_passed"]
    assert "aten.add.Tensor" not in summary["core_not_exercised"]


@pytest.mark.parametrize("fault", ["dtype", "missing", "shape", "stride", "tiny", "value"])
def test_the_harness_finds_a_wrong_output(fault):
    assert run_with_torch(fault, ["add"])["add"]["failed"]


def test_the_harness_finds_a_lost_alias():
    reports = run_with_torch("alias")
    assert reports["t"]["failed"] and reports["unbind"]["failed"] and not reports["add"]["failed"]


def test_the_harness_finds_a_lost_mutation():
    failed = [name for name, report in run_with_torch("mutation").items() if report["failed"]]
    assert failed == ["nn.functional.batch_norm"]


@pytest.mark.parametrize(("fault", "kind", "seconds"), [("crash", "crashed", 30.0), ("hang", "hung", 8.0)])
def test_the_harness_survives_a_worker_that(fault, kind, seconds):
    report = run_with_torch(fault, ["add"], dtypes=["f32"], samples=1, time_limit=seconds)["add"]
    assert report["failed"] == report["cases"]
    assert report["failures"][0]["message"].startswith(kind)
