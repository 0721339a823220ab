"""Pyrite's first use under settings of torch that are somebody else's business: defaults, modes, switches.

What Pyrite finds out about torch it finds out once, at its first use. A script may have changed torch's defaults before, or make its first
compiled call inside of a context. Each case is a fresh interpreter.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import contextlib, sys
import torch

@contextlib.contextmanager
def default(set_default, value, before):
    set_default(value)
    yield
    set_default(before)

class Counting(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

class Dispatching(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

SETTINGS = {
    "nothing": contextlib.nullcontext,
    "default device": lambda: default(torch.set_default_device, "meta", None),
    "default double": lambda: default(torch.set_default_dtype, torch.float64, torch.float32),
    "default half": lambda: default(torch.set_default_dtype, torch.bfloat16, torch.float32),
    "device context": lambda: torch.device("meta"),
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "deterministic": lambda: default(torch.use_deterministic_algorithms, True, False),
    "anomaly": torch.autograd.detect_anomaly,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "function mode": Counting,
    "dispatch mode": Dispatching,
}

def function(x, y):
    x = torch.nn.functional.silu(x @ y)
    return x.sum(1), x[1:].t() * 2

def check(compiled, gradients):
    torch.manual_seed(0)
    x, y = torch.randn(4, 3, device="cpu", dtype=torch.float32), torch.randn(3, 5, device="cpu", dtype=torch.float32)
    x, y = x.requires_grad_(gradients), y.requires_grad_(gradients)
    want, have = function(x, y), compiled(x, y)
    for one, other in zip(want, have, strict=True):
        assert (one.dtype, one.device, one.stride(), one.requires_grad) == (other.dtype, other.device, other.stride(), other.requires_grad)
        torch.testing.assert_close(other, one)
    if gradients and want[0].requires_grad:
        found = [torch.autograd.grad([each.sum() for each in results], (x, y)) for results in (want, have)]
        for one, other in zip(*found):
            torch.testing.assert_close(other, one)

setting, *ways = sys.argv[1:]
WAYS = {"pyrite": lambda each: pyrite.compile(each), "torch": lambda each: torch.compile(each, backend="pyrite", options={"strict": True})}
with SETTINGS[setting]():
    import pyrite
    compiled = [WAYS[way](function) for way in ways]
    for each in compiled:
        for gradients in (False, True):
            check(each, gradients)
for each in compiled:
    for gradients in (False, True):
        check(each, gradients)
print("as eager")
"""

SETTINGS = [
    "nothing", "default device", "default double", "default half", "device context", "inference", "no gradients", "deterministic", "anomaly",
    "autocast", "function mode", "dispatch mode",
]  # fmt: skip


@pytest.mark.parametrize(("number", "setting"), enumerate(SETTINGS), ids=SETTINGS)
def test_a_first_call_under_a_setting_is_as_in_eager(number, setting, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # Either capture is the first to ask torch in half of the cases.
    ways = ["pyrite", "torch"] if number % 2 else ["torch", "pyrite"]
    done = subprocess.run([sys.executable, "-W", "ignore", str(script), setting, *ways], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip().endswith("as eager"), done.stderr[-3000:]
