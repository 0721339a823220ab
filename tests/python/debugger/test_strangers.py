"""Files of strangers in front of a real interpreter: nothing of them is executed, imported or written."""

import os
import subprocess
import sys

import pytest

HEAD = 'class Repro(torch.nn.Module):\n    def forward(self, x : "f32[4]"):\n'
GOOD = HEAD + "        y = torch.ops.aten.relu.default(x)\n        return (y,)\n"


def pyrite(folder, *words):
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def stranger(tmp_path):
    """A folder in which every module that an interpreter imports first leaves a file behind."""
    for name in ("torch", "json", "os", "re", "importlib", "numpy", "sitecustomize", "typing_extensions", "sympy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\n")
    return tmp_path


def test_no_module_is_imported_from_the_working_directory(stranger):
    (stranger / "repro.py").write_text(GOOD)
    done = pyrite(stranger, "run", "repro.py", "--backend", "torch:eager")
    assert done.returncode == 0, done.stderr
    assert not (stranger / "canary").exists()


def test_a_module_in_the_working_directory_is_imported_where_the_user_names_it(tmp_path):
    (tmp_path / "mine.py").write_text("open('canary', 'w').close()\n")
    (tmp_path / "repro.py").write_text(GOOD)
    done = pyrite(tmp_path, "--import", "mine", "run", "repro.py", "--backend", "torch:eager")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "call",
    [
        "torch.ops.aten.save(x, 'canary')",
        "torch.ops.aten.from_file.default('canary', True, 4)",
        "torch._VF.from_file('canary', True, 4)",
        "torch.save(x, 'canary')",
        "torch.Tensor.share_memory_(x)",
        "torch.set_default_tensor_type('canary.module')",
    ],
)
def test_no_call_that_reaches_beyond_the_graph_reaches_torch(tmp_path, call):
    (tmp_path / "repro.py").write_text(f"{HEAD}        y = {call}\n        z = x + y\n        return (z,)\n")
    done = pyrite(tmp_path, "run", "repro.py", "--backend", "torch:eager", "--reference", "torch:eager")
    assert done.returncode == 2 and "not a function that a graph can call" in done.stderr, done.stderr
    assert not (tmp_path / "canary").exists()
