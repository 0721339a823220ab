"""The conformance run on a subset of the samples, and proof that its harness finds what is wrong."""

import json
import pathlib
import subprocess
import sys

import pytest

from operators import conformance

TESTS = pathlib.Path(__file__).parents[1]

# OpInfos of which a sample is not supported or cannot be traced: those of sparse tensors, of memory that grows, of GPUs, and a few more.
LEFT_OUT = {
    "chalf",
    "dist",
    "hash_tensor",
    "item",
    "jiterator_2inputs_2outputs",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary",
    "jiterator_binary_return_by_ref",
    "jiterator_unary",
    "linalg.eig",
    "linalg.eigvals",
    "linalg.ldl_factor",
    "linalg.ldl_factor_ex",
    "linalg.ldl_solve",
    "linalg.lstsq",
    "linalg.lstsq.grad_oriented",
    "nn.functional.batch_norm.without_cudnn",
    "nn.functional.ctc_loss",
    "nn.functional.gaussian_nll_loss",
    "nn.functional.linear_cross_entropy.chunked",
    "nn.functional.linear_cross_entropy.chunked_none",
    "nn.functional.multi_margin_loss",
    "nn.functional.multilabel_margin_loss",
    "resize_",
    "resize_as_",
    "sparse.mm.reduce",
    "sparse.sampled_addmm",
    "to_sparse",
    "torch._scaled_mm",
    "torch._scaled_mm_v2",
    "torch.ops.aten._efficient_attention_forward",
    "torch.ops.aten._flash_attention_forward",
}

# How many tests share the OpInfos.
SHARES = 8

# OpInfos on which the harness is tried: views, a mutation, reductions, integers, randomness.
TRIED = ["add", "t", "nn.functional.batch_norm", "max.reduction_with_dim", "nn.functional.dropout", "unbind", "empty_like"]


def run_with_torch(fault=None, names=TRIED, **options):
    command = ["env", f"PYTHONPATH={TESTS}", sys.executable, "-m", "operators.torch_worker", *([fault] if fault else [])]
    options = conformance.Options(**{"dtypes": ["f32", "i64"], "samples": 4, "command": command, **options})
    return {report["name"]: report for report in conformance.run(names, options)}


@pytest.mark.parametrize("share", range(SHARES))
def test_every_answer_is_right_on_the_quick_subset(pyrite, tmp_path, share):
    out = tmp_path / "conformance.json"
    names = conformance.select(None)[share::SHARES]
    # In a process of its own: torch notes the stack wherever it traces, and that of a test is deep.
    command = [sys.executable, "-m", "operators.conformance", "--quick", "--mode", "crossref,native", "--ops", ",".join(names), "--json", str(out)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(out.read_text())
    assert found["summary"]["wrong"] == [], done.stdout
    # One that passes by now is no longer left out.
    assert {report["name"] for report in found["reports"] if report["status"] != "passed"} == LEFT_OUT & set(names)


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
