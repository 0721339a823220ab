"""Wide unsigned integers and floats of 8 bits, which have hardly more than storage and conversions, in programs, data, comparisons and repros."""

import json
import os
import subprocess
import sys

import pytest
import torch

import pyrite

BAREBONES = ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]

# Every element is converted to a type, moved, compared, and converted back.
PROGRAM = """import torch
class Repro(torch.nn.Module):
    def forward(self, x):
        made = torch.ops.aten._to_copy.default(x, dtype=torch.{dtype})
        moved = torch.ops.aten.flip.default(made, [0])
        both = torch.ops.aten.cat.default([made, moved])
        equal = torch.ops.aten.eq.Tensor(made, moved)
        chosen = torch.ops.aten.where.self(equal, made, moved)
        wide = torch.ops.aten._to_copy.default(both, dtype=torch.float32)
        return (made, both, equal, chosen, wide)
def load_args(reader):
    data = reader.storage('data', {bytes})
    reader.tensor(data, ({count},))
"""


def command(folder, *words):
    words = [os.environ["PYRITE_BIN"], *words]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)


def numbers(dtype):
    if not dtype.startswith("float8"):
        return torch.cat([torch.arange(0.0, 300.0), torch.tensor([65535.0, 4096.5])])
    # All numbers of half precision that fit: ties, numbers below the least, NaN.
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.float16).float()
    # Releases of torch differ in what becomes of numbers that are too large.
    return every[(every.abs() <= torch.finfo(getattr(torch, dtype)).max) | every.isnan()]


@pytest.mark.parametrize("dtype", BAREBONES)
def test_conversions_and_moves_are_those_of_torch_bit_for_bit(tmp_path, dtype):
    data = numbers(dtype)
    (tmp_path / "storages").mkdir()
    torch.save(data.untyped_storage(), tmp_path / "storages/data")
    (tmp_path / "program.py").write_text(PROGRAM.format(dtype=dtype, bytes=data.nbytes, count=data.numel()))
    done = command(tmp_path, "run", "program.py", "--backend", "eager", "--save-outputs", "out.npz")
    assert done.returncode == 0, done.stderr
    import numpy

    ours = numpy.load(tmp_path / "out.npz")
    made = data.to(getattr(torch, dtype))
    # Torch refuses to reverse some of them, but not their bytes.
    moved = made.reshape(-1, 1).view(torch.uint8).flip(0).view(made.dtype).reshape(-1)
    equal, both = made == moved, torch.cat([made, moved])
    expected = [made, both, equal, torch.where(equal, made, moved), both.float()]
    for index, value in enumerate(expected):
        mine = torch.from_numpy(ours[f"arr_{index}"])
        # numpy has no floats of 8 bits; they are kept in single precision.
        value = value.float() if value.dtype.is_floating_point else value
        assert mine.dtype == value.dtype
        same = (mine == value) | (mine.isnan() & value.isnan()) if value.dtype.is_floating_point else mine == value
        assert same.all(), index


@pytest.mark.parametrize("dtype", BAREBONES)
def test_values_are_compared_as_what_they_are(tmp_path, dtype):
    value = torch.tensor([1.0, 2.0, 8.0]).to(getattr(torch, dtype))
    other = torch.tensor([1.0, 2.0, 16.0]).to(getattr(torch, dtype))
    assert pyrite.debug.same(value, value.clone())
    assert not pyrite.debug.same(value, other)
    assert not pyrite.debug.same(value, value.float())
    torch.save({"v": value}, tmp_path / "a.pt")
    torch.save({"v": other}, tmp_path / "b.pt")
    assert command(tmp_path, "compare", "a.pt", "a.pt").returncode == 0
    told = command(tmp_path, "compare", "a.pt", "b.pt")
    assert told.returncode == 1 and "8" in told.stdout and "16" in told.stdout, told.stdout + told.stderr


def test_the_largest_unsigned_integer_is_told_from_another(tmp_path):
    value = torch.tensor([2**64 - 1, 5], dtype=torch.uint64)
    assert pyrite.debug.same(value, value.clone())
    found = pyrite.debug.same(value, torch.tensor([2**64 - 2, 5], dtype=torch.uint64))
    assert not found and "18446744073709551615" in str(found)


MIXED = """import torch
class Repro(torch.nn.Module):
    def forward(self, x : "u16[6]", y : "f8e4m3fn[6]"):
        a = torch.ops.aten._to_copy.default(x, dtype=torch.float32)
        b = torch.ops.aten._to_copy.default(y, dtype=torch.float32)
        c = torch.ops.aten.add.Tensor(a, b)
        d = torch.ops.aten.relu.default(c)
        e = torch.ops.aten.cos.default(d)
        f = torch.ops.aten._to_copy.default(e, dtype=torch.float8_e5m2)
        return (f, e)
def load_args(reader):
    first = reader.storage(None, 12, dtype_hint=torch.uint16)
    reader.tensor(first, (6,), dtype=torch.uint16)
    second = reader.storage(None, 6, dtype_hint=torch.float8_e4m3fn)
    reader.tensor(second, (6,), dtype=torch.float8_e4m3fn)
"""


def test_a_program_with_such_types_is_reduced_and_proven(tmp_path):
    (tmp_path / "program.py").write_text(MIXED)
    done = command(tmp_path, "minify", "program.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--out", "found", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["proven"], done.stderr
    text = (tmp_path / "found/repro.py").read_text()
    assert "aten.relu" in text and "aten.cos" not in text


def test_operators_that_only_torch_has_for_them_are_left_to_it(tmp_path):
    # `mul` of unsigned integers is torch's own; what follows it is known again by its type.
    program = MIXED.replace("a = torch.ops.aten._to_copy.default(x, dtype=torch.float32)", "m = torch.ops.aten.mul.Tensor(x, x)\n        a = torch.ops.aten._to_copy.default(m, dtype=torch.float32)")
    (tmp_path / "program.py").write_text(program)
    alone = command(tmp_path, "run", "program.py", "--backend", "eager")
    assert alone.returncode == 2 and "uint16" in alone.stderr and "torch:eager" in alone.stderr, alone.stderr
    done = command(tmp_path, "run", "program.py", "--backend", "torch:inductor", "--reference", "torch:eager", "--python", sys.executable, "--forward-only")
    assert done.returncode == 0, done.stdout + done.stderr


def test_compiled_code_hands_them_to_torch():
    def quantized(x, scale):
        y = (x / scale).to(torch.float8_e4m3fn)
        counts = x.shape[0] * torch.ones(3, dtype=torch.uint16)
        return y.float() * scale, counts

    x, scale = torch.linspace(-4, 4, 33), torch.tensor(0.25)
    expected = quantized(x, scale)
    for compiled in (pyrite.compile(quantized), torch.compile(quantized, backend="pyrite")):
        for value, right in zip(compiled(x, scale), expected):
            assert value.dtype == right.dtype and torch.equal(value, right)
