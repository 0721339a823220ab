"""PyTorch's own minifier scenarios, with its backends: the same results or smaller ones, and proven."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def chain(length, middle="relu"):
    """So many sines and cosines with another operator in the middle."""
    names = [middle if k == length // 2 else ("sin" if k % 2 else "cos") for k in range(length)]
    return "".join(f"        v{k + 1} = torch.{name}(v{k})\n" for k, name in enumerate(names)) + f"        return (v{length},)\n"


@pytest.fixture
def minify(tmp_path):
    def run(parameters, body, *args, bug=None, imports=(), out="found"):
        (tmp_path / "program.py").write_text(f"class Repro(torch.nn.Module):\n    def forward(self, {parameters}):\n{body}")
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        if bug:
            environment["PYRITE_TEST_BUG"] = bug
            imports = ["inductor_bug", *imports]
        more = [word for module in imports for word in ("--import", module)]
        # One query at a time: a second process with torch in it would start for longer than these searches last.
        options = ["--json", "--out", out, "--python", sys.executable, "--jobs", "1", *args, *more]
        command = [os.environ["PYRITE_BIN"], "minify", "program.py", *options]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout, done.stderr
        repro = tmp_path / out / "repro.py"
        return done.returncode, json.loads(done.stdout), repro.read_text() if repro.exists() else ""

    return run


@pytest.mark.parametrize(
    ("kind", "length", "class_"), [("compile", 10, "error"), ("runtime", 20, "error"), ("accuracy", 20, "value")]
)
def test_relu_among_sines_and_cosines_is_left_alone(minify, kind, length, class_):
    backend = f"torch:relu_{kind}_error"
    code, report, repro = minify('v0 : "f32[10]"', chain(length), "--backend", backend, imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert (report["nodes_after"], report["inputs_after"], report["elements_after"]) == (3, 1, 1)
    assert report["signature"]["class"] == class_
    assert "aten.relu" in repro


def test_without_relu_there_is_nothing_to_shrink(minify):
    backend = "torch:relu_accuracy_error"
    code, report, _ = minify('v0 : "f32[10]"', chain(10, "sinh"), "--backend", backend, "--runs", "1", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "pass"), report


def test_elements_that_are_never_written_show_where_memory_is_poisoned(minify):
    code, report, _ = minify('v0 : "f32[10]"', chain(6), "--backend", "torch:relu_unwritten", "--forward-only", "--runs", "1", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "pass"), report
    backend = "torch:relu_unwritten?poison=true"
    code, report, repro = minify('v0 : "f32[10]"', chain(6), "--backend", backend, "--forward-only", imports=["broken_backends"], out="poisoned")
    assert code == 0 and report["proven"], report
    assert (report["nodes_after"], report["elements_after"], report["backend"]) == (3, 1, backend), report
    assert "poisoned(" in repro and "torch._inductor.config" not in repro


@pytest.mark.parametrize(("bug", "class_"), [("relu:runtime_error", None), ("log1p:accuracy", "value")])
def test_a_bug_put_into_inductor_is_reduced_to_its_operator(minify, bug, class_):
    operator = bug.partition(":")[0]
    code, report, repro = minify('v0 : "f32[10]"', chain(10, operator), "--backend", "torch:inductor", bug=bug)
    assert code == 0 and report["proven"], report
    assert (report["nodes_after"], report["elements_after"]) == (3, 1)
    assert class_ is None or report["signature"]["class"] == class_
    assert f"aten.{operator}" in repro


HIDDEN = """        y = torch.log1p(x)
        b = y > 0
        c = torch.logical_not(b)
        d = torch.logical_not(c)
        z = torch.relu(x)
        w = torch.where(d, z, z)
        return (w,)
"""


@pytest.mark.parametrize(("accuracy", "culprit"), [("strict", "log1p"), ("fp", "relu")])
def test_a_bug_behind_a_bool_counts_only_when_strict(minify, accuracy, culprit):
    bug = "relu:accuracy,log1p:accuracy"
    code, report, repro = minify('x : "f32[20]"', HIDDEN, "--backend", "torch:inductor", "--accuracy", accuracy, bug=bug)
    assert code == 0 and report["proven"], report
    assert report["nodes_after"] == 3 and f"aten.{culprit}" in repro, repro


def test_a_constant_tensor_is_kept_or_fed(minify):
    body = "        k = torch.tensor([2.0, 3.0])\n        a = x * k\n        b = torch.relu(a)\n        return (b,)\n"
    code, report, repro = minify('x : "f32[2]"', body, "--backend", "torch:relu_compile_error", imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["nodes_after"] == 3 and "aten.relu" in repro


def test_an_input_that_is_no_leaf_is_kept_as_one(minify):
    loading = (
        "\ndef load_args(reader):\n    buf0 = reader.storage(None, 40)\n    reader.tensor(buf0, (10,), requires_grad=True, is_leaf=False)\n"
        "load_args._version = 0\n"
    )
    code, report, repro = minify("v0", chain(10, "sinh") + loading, "--backend", "torch:non_leaf_compile_error_TESTING_ONLY")
    assert code == 0 and report["proven"], report
    assert report["nodes_after"] <= 3 and "is_leaf=True" not in repro


@pytest.mark.parametrize(
    ("backend", "class_"),
    [("silent_exit", {"exit": 0}), ("segfault", {"signal": 11}), ("divide", {"signal": 8}), ("hungry", "out-of-memory")],
)
def test_a_backend_that_ends_the_process_is_reduced_and_proven(minify, backend, class_):
    code, report, repro = minify('v0 : "f32[4]"', chain(5), "--backend", f"torch:{backend}", "--runs", "1", imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["signature"]["class"] == class_
    assert report["nodes_after"] == 3 and "aten.relu" in repro


def test_what_a_backend_prints_is_no_answer(minify):
    code, report, _ = minify('v0 : "f32[4]"', chain(5), "--backend", "torch:garbage", "--runs", "1", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "pass"), report


def test_an_abort_where_eager_raises_is_reduced_and_proven(minify):
    body = (
        "        far = torch.ops.aten.full.default([1], 99, dtype=torch.int64)\n"
        "        a = torch.relu(x)\n        b = torch.ops.aten.index_select.default(a, 0, far)\n        return (b,)\n"
    )
    code, report, repro = minify('x : "f32[4]"', body, "--backend", "torch:abort", "--runs", "1", imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["signature"]["class"] == {"signal": 6} and "aten.relu" in repro


# 655 times 100 is no number of half precision: the compiler, which computes in single precision, is right about it and eager is not.
HALF = """        zero = x * 0
        k = zero + 655
        m = k * 100
        big = zero + 65504
        y = big - m
        return (y,)
"""


@pytest.mark.parametrize("backend", ["torch:inductor", "torch:in_single"])
def test_half_precision_is_judged_fine_with_fp64(minify, backend):
    code, report, _ = minify('x : "f16[4]"', HALF, "--backend", backend, "--runs", "1", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "noise"), report


def test_half_precision_is_reduced_without_fp64(minify):
    code, report, _ = minify('x : "f16[4]"', HALF, "--backend", "torch:in_single", "--no-fp64", imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["nodes_after"] <= 5 and report["inputs_after"] <= 2
    assert report["elements_after"] == report["inputs_after"]


LOADING = """
def load_args(reader):
    buf0 = reader.storage(None, 40)
    reader.tensor(buf0, (10,), requires_grad=True, is_leaf=True)
load_args._version = 0
"""


def test_a_bug_in_the_gradient_counts_unless_only_the_forward_half_does(minify):
    backend = ["--backend", "torch:relu_backward_error"]
    code, report, _ = minify("v0", chain(10) + LOADING, *backend, "--forward-only", "--runs", "1", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "pass"), report
    code, report, repro = minify("v0", chain(10) + LOADING, *backend, imports=["broken_backends"], out="backward")
    assert code == 0 and report["proven"], report
    assert (report["signature"]["stage"], report["nodes_after"], report["inputs_after"]) == ("backward", 3, 1)
    assert "aten.relu" in repro and "requires_grad=True" in repro


def test_a_bug_in_the_forward_half_is_reduced_without_gradients(minify):
    backend = ["--backend", "torch:relu_accuracy_error", "--forward-only"]
    code, report, repro = minify("v0", chain(10) + LOADING, *backend, imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert (report["signature"]["stage"], report["nodes_after"], report["inputs_after"]) == ("forward", 3, 1)


def test_values_offloaded_to_disk_lead_to_the_same_end(minify):
    body = "        a = torch.sin(x)\n        b = torch.sin(a)\n        c = torch.cos(b)\n        d = torch.relu(c)\n        return (d,)\n"
    backend = ["--backend", "torch:relu_accuracy_error", "--offload-to-disk"]
    code, report, repro = minify('x : "f32[20]"', body, *backend, imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert (report["nodes_after"], report["inputs_after"], report["elements_after"]) == (3, 1, 1)
    assert "aten.relu" in repro


def test_only_settings_that_matter_are_left_in_the_name_of_the_backend(minify):
    backend = "torch:relu_error_unfused?epilogue_fusion=false&max_fusion_size=1&cpp.simdlen=0"
    code, report, repro = minify('v0 : "f32[4]"', chain(4), "--backend", backend, "--runs", "1", imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["backend"] == "torch:relu_error_unfused?max_fusion_size=1"
    assert "# pyrite: backend = torch:relu_error_unfused?max_fusion_size=1\n" in repro


@pytest.mark.serial
def test_a_hang_is_ended_in_time_and_proven(minify):
    body = "        y = torch.relu(x)\n        return (y,)\n"
    args = ["--backend", "torch:hang", "--runs", "1", "--time-limit", "6", "--time-budget", "1"]
    code, report, _ = minify('x : "f32[1]"', body, *args, imports=["broken_backends"])
    assert code == 0 and report["proven"], report
    assert report["signature"]["class"] == "hang"
