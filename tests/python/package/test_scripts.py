"""Whole scripts under the debugger: training, regions of both compilers, custom operators."""

import subprocess
import sys

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
