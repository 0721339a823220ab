"""Tests of the bridge with memory that ends at pages nobody may touch: inputs, outputs, parameters, gradients, what is saved between.

`memory/guard.c` is loaded before everything else and makes it so for the elements of all tensors, torch's and Pyrite's; what is freed cannot be
touched either. One byte too far is then a fault that ends the process. By default the tests of conversions run so; `PYRITE_GUARDED=all`
adds those of autograd, memory, lifetimes and regions.
"""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
FILES = ["test_bridge.py"]
MORE = ["test_memory.py", "test_lifetimes.py", "test_autograd.py", "test_attention.py", "test_random.py", "test_torch_backend.py", "test_tracers.py"]
# What is freed is kept, so memory does not stay flat.
LEFT_OUT = ["test_lifetimes.py::test_memory_stays_flat_over_many_compiles"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    library = tmp_path_factory.mktemp("guard") / "guard.so"
    source = HERE.parent / "memory" / "guard.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)

    def run(*words):
        environment = os.environ | {"LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, *map(str, words)], env=environment, cwd=HERE.parent, capture_output=True, text=True, timeout=1200)

    return run


READ = """
import ctypes, sys, torch, pyrite
x = torch.randn(7, 34)
y = pyrite.compile(lambda x: x * 2 + 1)(x)
for each in (x, torch.nn.Linear(34, 16).weight, y.view(-1)[:192].clone()):
    end = each.data_ptr() + each.nbytes
    assert end % 4096 == 0, (each.shape, end)
ctypes.string_at(y.data_ptr() + y.nbytes - 4, 4 if sys.argv[1] == "inside" else 64)
print("done")
"""


def test_one_byte_too_far_is_a_fault(guarded):
    inside, outside = guarded("-c", READ, "inside"), guarded("-c", READ, "outside")
    assert (inside.returncode, inside.stdout) == (0, "done\n"), inside.stderr
    assert outside.returncode < 0 and "done" not in outside.stdout


@pytest.mark.parametrize("file", FILES + (MORE if os.environ.get("PYRITE_GUARDED") == "all" else []))
def test_the_bridge_touches_no_byte_that_is_not_its_own(guarded, file):
    left_out = [f"--deselect=package/{each}" for each in LEFT_OUT if each.startswith(file)]
    done = guarded("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"package/{file}", *left_out)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
