"""Programs put functions of their own in the place of torch's: what stands there when a frame runs is what is called.

Each case replaces one name and uses it, once between the calls of a compiled function, and once before Pyrite is imported (this file is then
the program).
"""

import functools
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F


def counted(function):
    """A wrapper that looks like what it wraps."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        return result + 100 if isinstance(result, torch.Tensor) else result

    return wrapper


LINEAR = torch.nn.Linear(6, 2)

# Name: owner, attribute, what is put there, a use of it.
CASES = {
    "a function": (torch, "relu", counted(torch.relu), lambda x: torch.relu(x)),
    "a function in Python": (F, "gelu", counted(F.gelu), lambda x: F.gelu(x)),
    "a function that modules call": (F, "linear", counted(F.linear), lambda x: LINEAR(x)),
    "a function without the same name": (F, "softmax", lambda x, dim: x - dim, lambda x: F.softmax(x, 0)),
    "a module's forward": (torch.nn.Linear, "forward", counted(torch.nn.Linear.forward), lambda x: LINEAR(x)),
    "a method": (torch.Tensor, "sin", counted(torch.Tensor.sin), lambda x: x.sin()),
    "a method in Python": (torch.Tensor, "norm", counted(torch.Tensor.norm), lambda x: x.norm()),
    "a method that is new": (torch.Tensor, "scaled_by", lambda self, k=3: self * k, lambda x: x.scaled_by(k=4)),
    "an attribute": (torch.Tensor, "mT", property(lambda self: self + 7), lambda x: x.reshape(2, 3).mT),
    "an operator": (torch.Tensor, "__mul__", counted(torch.Tensor.__mul__), lambda x: x * 2),
    "a reflected operator": (torch.Tensor, "__rsub__", lambda self, other: self + other, lambda x: 2 - x),
    "an operator of one operand": (torch.Tensor, "__neg__", lambda self: self + 1, lambda x: -x),
    "a comparison": (torch.Tensor, "__lt__", lambda self, other: self - other, lambda x: x < 2),
    "an item": (torch.Tensor, "__getitem__", counted(torch.Tensor.__getitem__), lambda x: x[1]),
    "a length": (torch.Tensor, "__len__", lambda self: 77, lambda x: x + len(x)),
    "a method of parameters": (torch.Tensor, "abs", counted(torch.Tensor.abs), lambda x: LINEAR.weight.abs() + x),
}


def agree(compiled, plain):
    x = torch.arange(6.0)
    torch.testing.assert_close(compiled(x), plain(x))


@pytest.mark.parametrize("name", CASES)
def test_what_is_replaced_between_calls_is_called(name, monkeypatch):
    import pyrite

    owner, attribute, replacement, use = CASES[name]
    compiled = pyrite.compile(use)
    if hasattr(owner, attribute):
        agree(compiled, use)
    before = use(torch.arange(6.0)) if hasattr(owner, attribute) else None
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, replacement, raising=False)
        agree(compiled, use)
        if before is not None:
            changed = compiled(torch.arange(6.0))
            assert changed.shape != before.shape or changed.dtype != before.dtype or not torch.equal(changed, before)
    if hasattr(owner, attribute):
        agree(compiled, use)


def test_what_was_replaced_before_pyrite_is_imported_is_called():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [str(len(CASES)), "agree"], done.stdout


def main():
    for owner, attribute, replacement, _ in CASES.values():
        setattr(owner, attribute, replacement)
    import pyrite

    for _, _, _, use in CASES.values():
        agree(pyrite.compile(use), use)
    print(len(CASES), "agree")


if __name__ == "__main__":
    main()
