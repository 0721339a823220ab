"""What `pyrite.compile` leaves behind: nothing when code goes, threads that survive a fork, a warning where frames are not captured."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import weakref

import pytest
import torch

import pyrite as package

GENERATED = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x).relu()
        print(end="")
        return y.sum() * {number}
"""


def trained(number):
    """A model of a new class, compiled and run both ways; a weak reference to the class."""
    space = {}
    exec(GENERATED.replace("{number}", str(number)), space)
    model = package.compile(space["Model"]())
    model(torch.ones(2, 4)).backward()
    return weakref.ref(space["Model"])


def resident():
    """The kilobytes of memory that this process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_code_that_goes_takes_what_was_compiled_for_it_along():
    seen = trained(0)
    gc.collect()
    assert seen() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read where Linux has it")
def test_memory_stays_flat_over_many_compiles():
    for number in range(60):
        trained(number)
    gc.collect()
    before = resident()
    for number in range(200):
        trained(number)
    gc.collect()
    # What was kept for each of them would be more than 20 MB.
    assert resident() - before < 4000


def busy(x, w):
    return torch.softmax(x @ w, -1).sin().sum(0)


def test_compiled_programs_run_and_are_made_in_a_fork():
    compiled = package.compile(busy)
    x, w = torch.randn(512, 256), torch.randn(256, 256)
    expected = compiled(x, w)
    child = os.fork()
    if child == 0:
        code = 3
        try:
            signal.alarm(30)
            again = package.compile(lambda x: (x * 2).relu().sum(1))
            code = 0 if torch.equal(compiled(x, w), expected) and again(x).shape == (512,) else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert torch.equal(compiled(x, w), expected)


def test_a_compiled_function_keeps_its_graph_where_it_is_retained():
    x = torch.ones(3, requires_grad=True)
    out = package.compile(lambda x: x.exp().sin().sum())(x)
    out.backward(retain_graph=True)
    first = x.grad.clone()
    out.backward()
    torch.testing.assert_close(x.grad, first * 2)


def test_where_frames_are_not_captured_functions_run_plain_with_a_warning(monkeypatch):
    monkeypatch.setattr(package._native, "captures", lambda: False)
    with pytest.warns(RuntimeWarning, match="does not capture frames of CPython 3.*busy runs plain.*torch.compile"):
        assert package.compile(busy) is busy


def test_an_import_of_pyrite_registers_its_backends_and_leaves_dynamo_alone():
    text = """if True:
        import torch, sys
        import pyrite
        assert "torch" in sys.modules and "torch._dynamo" not in sys.modules
        f = torch.compile(lambda x: x.sin() + 1, backend="pyrite")
        torch.testing.assert_close(f(torch.ones(2)), torch.ones(2).sin() + 1)
        assert {"pyrite", "pyrite_debug"} <= set(torch._dynamo.list_backends())
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_ends_the_command_quietly():
    command = f"{sys.executable} -m pyrite ops | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=100)
    assert done.stdout.count("\n") == 1 and done.stderr == ""
