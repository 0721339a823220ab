"""The guilty kernel: named with its nodes, written alone, proven. Kernels are broken in Inductor's C++; no GPU is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECK = HERE.parents[2] / "crates/pyrite-debug/src/torch/kernel_check.py"

POINTWISE = """
import torch
import broken_kernels

torch.manual_seed(0)


def program(x, w):
    a = torch.sin(x)
    c = torch.relu(a)
    return c, c @ w


torch.compile(program)(torch.randn(32, 64), torch.randn(64, 64))
"""

TRAINING = """
import sys
import torch
import broken_kernels

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.ReLU(), torch.nn.Linear(32, 8), torch.nn.Softmax(-1))
compiled = torch.compile(model)
for step in range(int(sys.argv[1])):
    (compiled(torch.randn(12, 16)) ** 2).sum().backward()
"""

# Buffers that several kernels write, that are views of each other, that belong to no node, or that eager rounds in another way.
FINE = """
import torch

torch.manual_seed(0)


def scattered(x, i):
    return torch.zeros_like(x).scatter_add(1, i, x.sin()).cos()


def joined(x, i):
    s, _ = torch.sort(x.cos())
    return torch.cat([s, x.relu()]).sum(-1)


def long_sum(x, i):
    return (x.exp() * 2).sum() / x.var()


def in_place(x, i):
    x.add_(1).mul_(2)
    return x.softmax(-1)


def halves(x, i):
    return (x.bfloat16().sigmoid() * 40).long() + i


x, i = torch.randn(48, 48), torch.randint(0, 48, (48, 48))
for program in (scattered, joined, long_sum, in_place, halves):
    torch.compile(program)(x.clone(), i)
y = torch.randn(48, 48, requires_grad=True)
torch.compile(lambda y: torch.nn.functional.gelu(torch.nn.functional.layer_norm(y, (48,))).cumsum(0))(y).sum().backward()
"""


def environment(way):
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    # A graph that Inductor takes from its cache has the kernels of whoever compiled it.
    without_cache = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
    return {**os.environ, **without_cache, "PYTHONPATH": path, "PYRITE_TEST_KERNEL": way}


def checked(folder, text, way, *options, words=()):
    """What the check finds in a script, and what the file that it wrote says alone, where nothing is broken any more."""
    script, out = folder / "script.py", folder / "out"
    script.write_text(text)
    command = [sys.executable, CHECK, "--out", out, *options, script, *words]
    done = subprocess.run(command, env=environment(way), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((out / "kernels.json").read_text())
    if found["kind"] is None:
        return found, None
    alone = subprocess.run([sys.executable, out / "kernel.py"], env=environment(""), capture_output=True, text=True, timeout=300)
    return found, (alone.returncode, alone.stdout.strip().splitlines()[-1] if alone.stdout else alone.stderr[-500:])


@pytest.mark.parametrize(
    ("way", "kind", "says"),
    [
        ("value", "value", "eager computes"),
        ("overrun", "overrun", "beyond the end of buf0"),
        ("unwritten", "unwritten", "16 of 2048 elements of buf0"),
        ("nan", "value", "leaves nan at [0, 0] of buf0"),
    ],
)
def test_a_broken_kernel_is_named_and_fails_alone(tmp_path, way, kind, says):
    found, (code, line) = checked(tmp_path, POINTWISE, way)
    assert (found["kind"], found["kernel"]) == (kind, "cpp_fused_relu_sin_0"), found
    assert found["nodes"] == ["sin", "relu"] and "relu: c = torch.relu(a)" in found["source"]
    assert says in found["text"]
    assert code == 1 and line.startswith(f"bug: {kind}: cpp_fused_relu_sin_0"), line
    text = (tmp_path / "out/kernel.py").read_text()
    assert "call_function[target=torch.ops.aten.relu.default]" in text and "broken_kernels" not in text


def test_good_kernels_are_not_blamed(tmp_path):
    found, _ = checked(tmp_path, FINE, "")
    assert found["kind"] is None and found["graphs"] >= 7 and found["checked"] >= 8, found


def test_the_first_nan_of_a_training_script_is_found_with_the_inputs_of_its_step(tmp_path):
    script, out = tmp_path / "train.py", tmp_path / "out"
    script.write_text(TRAINING)
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable, "debug", "--first-nan", "--out", str(out), "--json", str(script), "--", "2"]
    done = subprocess.run(command, env=environment("nan"), capture_output=True, text=True, timeout=400)
    assert done.returncode == 1, done.stderr[-2000:]
    kernel = next(step["result"] for step in map(json.loads, done.stdout.splitlines()) if step.get("step") == "kernel")
    assert kernel["kind"] == "nonfinite" and kernel["proven"] and "eager computes a finite number" in kernel["text"]
    assert kernel["kernel"] == "cpp_fused_native_layer_norm_relu_0" and "relu" in kernel["nodes"]
    read = subprocess.run([os.environ["PYRITE_BIN"], "run", kernel["program"], "--backend", "eager"], capture_output=True, text=True, timeout=200)
    assert read.returncode == 0, read.stdout + read.stderr


def test_what_memory_holds_before_a_kernel_writes_it_hides_no_nan(tmp_path):
    """Kernels keep sums in memory that they are given afresh, which holds anything."""
    script, out = tmp_path / "train.py", tmp_path / "out"
    empty = "guards._empty_strided_cpu = lambda *words: empty(*words).fill_(float('nan'))"
    script.write_text(f"from torch._C._dynamo import guards\nempty = guards._empty_strided_cpu\n{empty}\n{TRAINING}")
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable, "debug", "--first-nan", "--out", str(out), "--json", str(script), "--", "1"]
    done = subprocess.run(command, env=environment("nan"), capture_output=True, text=True, timeout=400)
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    kernel = next(step["result"] for step in map(json.loads, done.stdout.splitlines()) if step.get("step") == "kernel")
    assert kernel["kernel"] == "cpp_fused_native_layer_norm_relu_0" and kernel["proven"]


def test_a_training_script_that_fails_keeps_its_exit_code(tmp_path):
    script = tmp_path / "train.py"
    for text, code, said in (("import sys\nsys.exit(3)\n", 3, "exit code 3"), ("import a_module_that_is_not_there\n", 1, "ModuleNotFoundError")):
        script.write_text(text)
        command = [os.environ["PYRITE_BIN"], "--python", sys.executable, "debug", "--first-nan", str(script)]
        done = subprocess.run(command, env=environment(""), capture_output=True, text=True, timeout=400)
        assert done.returncode == code and said in done.stdout + done.stderr, done.stdout + done.stderr[-2000:]


def test_a_training_script_without_nan_is_said_to_have_none(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable, "debug", "--first-nan", str(script), "--", "2"]
    done = subprocess.run(command, env=environment(""), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0 and "no kernel makes NaN or infinity" in done.stdout + done.stderr, done.stderr[-2000:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


# Speaks as compute-sanitizer does of an access three elements behind the end of the buffer that the kernel writes.
SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@" | tee said
base=$(sed -n 's/^address: buf0 \\(0x[0-9a-f]*\\) .*/\\1/p' said)
printf '========= Invalid __global__ write of size 4 bytes\\n'
printf '=========     at cpp_fused_relu_0+0x90 in /tmp/x.py:2\\n'
printf '=========     by thread (3,0,0) in block (0,0,0)\\n'
printf '=========     Access to 0x%x is out of bounds\\n' $(($base + 4 * 19))
"""


def test_a_session_writes_the_kernel_beside_the_repro_and_reads_the_sanitizer(tmp_path):
    program, out, tools = tmp_path / "p.py", tmp_path / "out", tmp_path / "tools"
    program.write_text('class Repro(torch.nn.Module):\n    def forward(self, x : "f32[4, 4]"):\n        c = torch.relu(x)\n        return (c,)\n')
    tools.mkdir()
    (tools / "compute-sanitizer").write_text(SANITIZER)
    (tools / "compute-sanitizer").chmod(0o755)
    named = environment("value,overrun")
    named["PATH"] = os.pathsep.join([str(tools), named["PATH"]])
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable, "debug", str(program), "--backend", "torch:inductor", "--import", "broken_kernels"]
    command += ["--out", str(out), "--runs", "1", "--time-budget", "0.1", "--json"]
    done = subprocess.run(command, env=named, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    steps = {step["step"]: step["result"] for step in map(json.loads, done.stdout.splitlines()) if "step" in step}
    kernel = steps["kernel"]
    assert kernel["kind"] == "overrun" and kernel["proven"] and kernel["nodes"] == ["relu"], kernel
    said = kernel["sanitizer"]
    assert (said["buffer"], said["element"], said["elements"]) == ("buf0", "19", 16), said
    assert said["statement"] == "#include <torch/csrc/inductor/cpp_prefix.h>"
    report = (out / "report.md").read_text()
    assert "## The guilty kernel" in report and "cpp_fused_relu_0 = async_compile" in report and "compute-sanitizer" in report
