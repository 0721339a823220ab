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
    _, said = python("-m", "pyrite", "debug", "script.py", "relu_accuracy_error_TESTING_ONLY", cwd=tmp_path, code=0)
    assert "a region failed with relu_accuracy_error_TESTING_ONLY" in said and "report.md" in said
    assert any("relu" in path.read_text() and "mul" not in path.read_text() for path in tmp_path.rglob("repro.py"))
