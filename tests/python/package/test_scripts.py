"""Whole scripts under the debugger: training, regions of both compilers, custom operators."""

import subprocess
import sys

import pytest

LIBRARY = """
import torch

@torch.library.custom_op("faraway::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@double.register_fake
def _(x):
    return torch.empty_like(x)

double.register_autograd(lambda ctx, grad: grad * 2)
"""

TRAINING = """
import torch, pyrite, library

@torch.library.custom_op("nearby::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3

@triple.register_fake
def _(x):
    return torch.empty_like(x)

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
step = torch.compile(model, backend="aot_eager")
loss = pyrite.compile(lambda y: (y - 1).square().mean())
scaled = torch.compile(lambda x: torch.ops.faraway.double(x).sin(), backend="eager")
own = torch.compile(lambda x: torch.ops.nearby.triple(x).sin(), backend="eager")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    value = loss(step(x))
    value.backward()
    optimizer.step()
    print("loss", value.item())
print("scaled", scaled(torch.ones(2)).tolist(), own(torch.ones(2)).tolist())
"""


def python(*words, cwd, code):
    """What a command of this Python said: on standard output, and on both."""
    done = subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stdout + done.stderr


def test_a_script_trains_as_without_the_debugger_and_every_region_is_checked(tmp_path):
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "train.py").write_text(TRAINING)
    plain, _ = python("train.py", cwd=tmp_path, code=0)
    debugged, said = python("-m", "pyrite", "debug", "train.py", cwd=tmp_path, code=0)
    assert debugged.splitlines()[:2] == plain.splitlines()[:2]
    assert debugged.count("loss") == 5 and "scaled" in debugged
    assert "compiled regions, no failure" in said
    assert [line for line in said.splitlines() if "not checked" in line] == ["not checked: Pyrite does not know torch.ops.nearby.triple"]


CAPTURED = """
import sys
import torch, pyrite

@pyrite.compile(backend=sys.argv[1])
def step(x):
    y = x * 2 + 1
    print("between")
    return torch.relu(y).sum()

for _ in range(3):
    step(torch.randn(8)).item()
"""


def test_a_wrong_region_of_pyrites_capture_is_minimised_and_reported(tmp_path):
    (tmp_path / "script.py").write_text(CAPTURED)
    _, said = python("-m", "pyrite", "debug", "script.py", "relu_accuracy_error_TESTING_ONLY", cwd=tmp_path, code=1)
    assert "a region failed with relu_accuracy_error_TESTING_ONLY" in said and "report.md" in said
    assert any("relu" in path.read_text() and "mul" not in path.read_text() for path in tmp_path.rglob("repro.py"))


BACKENDS = """
from torch._dynamo import register_backend

def compiler(module, example_inputs):
    def run(*arguments):
        wrong = any("relu" in str(node.target) for node in module.graph.nodes)
        return tuple(value + 1 if wrong else value for value in module.forward(*arguments))
    return run

register_backend(compiler, name="registered")
"""

USER = """
import sys
import torch
import compilers

def own(module, example_inputs):
    return compilers.compiler(module, example_inputs)

backends = {"name": "registered", "function": compilers.compiler, "own": own, "right": lambda module, inputs: module.forward}
step = torch.compile(lambda x: torch.relu(x * 2).sin(), backend=backends[sys.argv[1]])
print("got", step(torch.randn(8)).shape, sys.stdin.read())
"""


def user(tmp_path, *words, code):
    (tmp_path / "compilers.py").write_text(BACKENDS)
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "pyrite", "debug", *words], cwd=tmp_path, capture_output=True, text=True, timeout=600, input="from stdin"
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_backend_that_a_script_registers_is_debugged_in_workers_that_import_it(tmp_path):
    said = user(tmp_path, "--time-budget", "60", "--out", "found", "user.py", "name", code=1)
    assert "proven by plain PyTorch: bug: forward: values differ" in said
    assert "import compilers" in (tmp_path / "found" / "repro.py").read_text()


def test_a_backend_that_is_a_function_of_a_module_is_debugged_in_workers(tmp_path):
    said = user(tmp_path, "--out", "found", "-m", "user", "function", code=1)
    assert "proven by plain PyTorch" in said
    assert "backend=compilers.compiler" in (tmp_path / "found" / "repro.py").read_text()


def test_a_backend_of_the_script_itself_is_judged_where_it_is(tmp_path):
    said = user(tmp_path, "user.py", "own", code=1)
    assert "tested in this process" in said and "from stdin" in said
    assert "into a module that the script imports" in said and "elements differ worst" not in said
    said = user(tmp_path, "user.py", "right", code=0)
    assert "no failure" in said


OPTIMIZER = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
step = torch.compile(optimizer.step, backend="aot_eager" if sys.argv[1] == "by_name" else lambda module, inputs: module.forward)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    step()
print("weight", model.weight.tolist())
sys.exit(7)
"""


@pytest.mark.parametrize("backend", ["by_name", "own"])
def test_a_compiled_optimizer_step_is_checked_and_writes_its_parameters_once(tmp_path, backend):
    (tmp_path / "script.py").write_text(OPTIMIZER)
    plain, _ = python("script.py", backend, cwd=tmp_path, code=7)
    debugged, said = python("-m", "pyrite", "debug", "script.py", backend, cwd=tmp_path, code=7)
    assert debugged == plain and "1 compiled region, no failure\n" in said, said


# The weight is a leaf: that it may be written is up to the mode of gradients, which a check must not change.
UNCHECKED = """
import torch

@torch.library.custom_op("nearby::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3

@triple.register_fake
def _(x):
    return torch.empty_like(x)

weight = torch.nn.Parameter(torch.ones(3))

@torch.compile(backend="aot_eager")
def step(gradient):
    weight.sub_(triple(gradient))

with torch.no_grad():
    step(torch.ones(3))
print("weight", weight.tolist())
"""


def test_a_region_that_cannot_be_checked_runs_as_it_does_without_the_debugger(tmp_path):
    (tmp_path / "script.py").write_text(UNCHECKED)
    printed, said = python("-m", "pyrite", "debug", "script.py", cwd=tmp_path, code=0)
    assert "weight [-2.0, -2.0, -2.0]" in printed
    assert "not checked: Pyrite does not know torch.ops.nearby.triple" in said and "1 of them could not be checked" in said


LAYERS = """
import sys
import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Hardtanh(-0.5, 0.5), torch.nn.RReLU(), torch.nn.Dropout2d(0.3),
    torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(144, 2),
)
step = torch.compile(model, backend="aot_eager", dynamic=sys.argv[1] == "dynamic")
for n in (2, 3):
    step(torch.randn(n, 3, 8, 8)).sum().backward()
"""


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
def test_a_model_whose_layers_torch_defines_in_python_is_checked(tmp_path, sizes):
    (tmp_path / "script.py").write_text(LAYERS)
    _, said = python("-m", "pyrite", "debug", "script.py", sizes, cwd=tmp_path, code=0)
    assert "no failure\n" in said and "not checked" not in said, said


PARENT = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n"


def test_a_script_that_leaves_its_work_to_another_process_is_told_that_nobody_watched(tmp_path):
    (tmp_path / "script.py").write_text(PARENT)
    (tmp_path / "child.py").write_text("import torch\ntorch.compile(torch.sin, backend='eager')(torch.ones(2))\n")
    _, said = python("-m", "pyrite", "debug", "script.py", cwd=tmp_path, code=0)
    assert "0 compiled regions, no failure; processes that the script starts are not watched" in said
