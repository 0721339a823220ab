"""`pyrite compare` compares everything that files of torch.save hold, not their tensors alone."""

import os
import subprocess

import pytest
import torch


def compare(folder, expected, actual):
    torch.save(expected, folder / "a.pt")
    torch.save(actual, folder / "b.pt")
    return subprocess.run([os.environ["PYRITE_BIN"], "compare", "a.pt", "b.pt"], cwd=folder, capture_output=True, text=True, timeout=100)


VALUES = [
    {"n": 3},
    {"n": 4},
    {"n": 3.5},
    {"n": None},
    {"n": True},
    {"n": "three"},
    {"n": "four"},
    {"n": torch.float32},
    {"n": []},
    {"n": {}},
    {"n": [1, [2, {"m": 3}]]},
    {"n": [1, [2, {"m": 4}]]},
    {"n": [1, [2]]},
    {"n": torch.ones(2)},
    {"n": 3, "m": 3},
    {},
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_a_value_agrees_with_itself_and_with_no_other(tmp_path, number):
    done = compare(tmp_path, VALUES[number], VALUES[number])
    assert done.returncode == 0, done.stdout + done.stderr
    other = VALUES[(number + 1) % len(VALUES)]
    done = compare(tmp_path, VALUES[number], other)
    assert done.returncode == 1 and "differ" in done.stdout, f"{VALUES[number]} {other}: {done.stdout}{done.stderr}"


def test_no_tolerance_is_named_where_a_nan_differs(tmp_path):
    done = compare(tmp_path, torch.ones(2), torch.tensor([1.0, float("nan")]))
    assert done.returncode == 1 and "no tolerance passes" in done.stdout, done.stdout
