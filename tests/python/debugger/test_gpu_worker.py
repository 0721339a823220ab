"""What workers make of GPUs, shown without one: a driver that is not there, and errors that it would raise."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "crates/pyrite-debug/src/torch/worker.py"


@pytest.fixture(scope="module")
def worker():
    spec = importlib.util.spec_from_file_location("pyrite_torch_worker", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("code", "forks"), [(3, True), (0, False)], ids=["not initialised", "initialised"])
def test_a_process_whose_driver_is_initialised_forks_nothing(tmp_path, code, forks):
    compiler = shutil.which("cc") or shutil.which("gcc")
    source, library = tmp_path / "driver.c", tmp_path / "libcuda.so.1"
    source.write_text(f"int cuDeviceGetCount(int *count) {{ *count = 1; return {code}; }}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    words = [sys.executable, "-c", SOURCE.read_text()]
    started = subprocess.run(words, input="", env=environment, capture_output=True, text=True, timeout=120)
    assert json.loads(started.stdout.splitlines()[0])["forks"] is forks, started.stderr[-500:]


PROGRAM = """
import torch

class Repro(torch.nn.Module):
    def forward(self, x):
        return (torch.ops.aten.neg.default(x),)

def load_args(reader):
    storage = torch.tensor([1.0, -2.0]).untyped_storage()
    reader.tensor(storage, (2,), is_leaf=True)
load_args._version = 0
"""


def test_programs_of_inductor_run_in_forks_whether_or_not_there_is_a_driver(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    # Eager needs no compiler; what Inductor's imports do to forks is done by then.
    request = {"folder": str(tmp_path), "backend": "eager", "imports": [], "fallback_random": False, "seed": 0, "forward_only": True, "time_limit": 60}
    words = [sys.executable, "-c", SOURCE.read_text(), "inductor"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(process.stdout.readline())["forks"] is True
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["ok"] is True
        # Interpreters for programs that cannot fork start ahead of their program.
        assert Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text() == ""
    finally:
        process.stdin.close()
        process.wait(timeout=60)


@pytest.mark.parametrize(("driver", "too_late"), [(True, True), (False, False)], ids=["a driver", "no driver"])
def test_a_fork_comes_too_late_only_where_there_is_a_driver(worker, monkeypatch, driver, too_late):
    def load(name, *args, **kwargs):
        if not driver:
            raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(worker.torch.cuda, "_is_in_bad_fork", lambda: True)
    monkeypatch.setattr(worker.ctypes, "CDLL", load)
    assert worker.is_fork_too_late() is too_late


def answer(worker, monkeypatch, error):
    class Program:
        def __init__(self, request):
            pass

        def run(self, tell):
            raise error

        def write_steps(self):
            pass

    monkeypatch.setattr(worker, "Program", Program)
    return worker.answer_in({"backend": "inductor"}, lambda message: None)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("CUDA error: an illegal memory access was encountered", "illegal memory access"),
        ("Triton Error [CUDA]: operation not supported on global/shared address space", "illegal memory access"),
        ("CUDA error: misaligned address\nSearch for `cudaErrorMisalignedAddress'", "misaligned address"),
        ("CUDA driver error: device-side assert triggered", "device-side assert"),
        ("CUDA error: unspecified launch failure", "launch failure"),
        ("CUDA error: an illegal instruction was encountered", "illegal instruction"),
    ],
)
def test_what_the_driver_says_of_a_kernel_is_a_fault(worker, monkeypatch, said, fault):
    assert answer(worker, monkeypatch, RuntimeError(said))["fault"] == fault
    # What Inductor makes of an error while it compiles is the same fault.
    try:
        try:
            raise RuntimeError(said)
        except RuntimeError as inner:
            raise ValueError("tuning failed") from inner
    except ValueError as outer:
        assert answer(worker, monkeypatch, outer)["fault"] == fault


@pytest.mark.parametrize(
    "said",
    [
        "CUDA error: no kernel image is available for execution on the device",
        "The NVIDIA driver on your system is too old (found version 11040)",
        "CUDA error: uncorrectable ECC error encountered",
        "CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "Torch not compiled with CUDA enabled",
    ],
)
def test_a_machine_that_cannot_run_programs_blames_nobody(worker, monkeypatch, said):
    found = answer(worker, monkeypatch, RuntimeError(said))
    assert said in found["worker"] and "again" not in found


@pytest.mark.parametrize("said", ["Cannot re-initialize CUDA in forked subprocess. To use CUDA", "CUDA error: initialization error"])
def test_a_fork_that_came_too_late_is_asked_again_elsewhere(worker, monkeypatch, said):
    assert answer(worker, monkeypatch, RuntimeError(said))["again"] is True


def test_the_memory_of_a_device_is_told_from_the_hosts(worker, monkeypatch):
    found = answer(worker, monkeypatch, worker.torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4 GiB"))
    assert found["error"]["memory"] == "device"
    assert answer(worker, monkeypatch, MemoryError())["error"]["memory"] == "host"
    assert answer(worker, monkeypatch, RuntimeError("CUDA error: invalid argument"))["error"]["memory"] is None


def test_a_fault_names_who_launched_the_kernel(worker):
    def triton_launcher():
        raise RuntimeError("CUDA error: misaligned address")

    source = "def call():\n    triton_poi_fused_add_0.run(1, stream=0)\n"
    path = "/tmp/x/c" + "a" * 51 + ".py"
    import linecache

    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    scope = {"triton_poi_fused_add_0": type("Kernel", (), {"run": staticmethod(lambda *_, **__: triton_launcher())})}
    exec(compile(source, path, "exec"), scope)
    try:
        scope["call"]()
    except RuntimeError as error:
        assert worker.launched_by(error) == "triton_poi_fused_add_0"


def test_what_an_assertion_on_a_device_says_is_heard(worker, tmp_path):
    said = tmp_path / "said"
    said.write_text("noise\n/tmp/c.py:31: unknown: block: [0,0,0], thread: [29,0,0] Assertion `index out of bounds: 0 <= tmp4 < 10` failed.\n")
    assert worker.asserted(said) == "index out of bounds: 0 <= tmp4 < 10"


def test_calls_work_on_inputs_of_their_own_that_share_memory_as_before(worker):
    torch = worker.torch
    base = torch.arange(6.0)
    inputs = [base[1:], base.view(2, 3), 3]
    first, second, number = worker.copied(inputs)
    assert number == 3 and torch.equal(first, inputs[0]) and second.stride() == (3, 1)
    first[0] = 9
    assert second[0, 1] == 9 and base[1] == 1


ASSEMBLED = """
import importlib.util, sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

spec = importlib.util.spec_from_file_location("pyrite_torch_worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
if sys.argv[2] != "usual":
    worker.limit_ptxas(int(sys.argv[2]))


@triton.jit
def add(x, y, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place) + 1)


source = ASTSource(add, signature={"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}, constexprs={(2,): 64})
triton.compile(source, target=GPUTarget("cuda", 80, 32))
"""


@pytest.mark.parametrize(("level", "given"), [("usual", None), ("0", "0"), ("1", "1"), ("2", "2")])
def test_a_level_of_optimisation_reaches_the_assembler(tmp_path, level, given):
    """An assembler that notes its arguments assembles a kernel for a GPU that is not here."""
    knobs = pytest.importorskip("triton").knobs
    assembler, noted, script = tmp_path / "ptxas", tmp_path / "noted", tmp_path / "script.py"
    assembler.write_text(f'#!/bin/sh\necho "$@" >> {noted}\nexec {knobs.nvidia.ptxas.path} "$@"\n')
    assembler.chmod(0o755)
    script.write_text(ASSEMBLED)
    environment = {**os.environ, "TRITON_PTXAS_PATH": str(assembler), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, script, SOURCE, level], env=environment, check=True, timeout=200)
    words = next(line for line in noted.read_text().splitlines() if ".ptx" in line).split()
    assert (words[words.index("--opt-level") + 1] if "--opt-level" in words else None) == given
