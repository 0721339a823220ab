"""A sample of the tests of CPython and of packages, each inside of a captured frame; `python -m capture.suites` runs all of them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture import suites

# Modules whose tests take a second or two. CPython's own tests are not installed everywhere.
MODULES = ["test.test_list", "test.test_generators", "test.test_with", "sympy.core.tests.test_complex"]
TIME_LIMIT = 20.0


@pytest.mark.parametrize("name", MODULES)
def test_tests_of_others_pass_inside_of_captured_frames(name):
    if importlib.util.find_spec("test") is None or importlib.util.find_spec(name) is None:
        pytest.skip("tests of others are not installed")
    # In a process of its own: forks are sound only where torch has not started its threads.
    words = [sys.executable, "-m", "capture.suites", name, "--jobs", "1", "--time-limit", str(TIME_LIMIT)]
    done = subprocess.run(words, cwd=Path(suites.__file__).parent.parent, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert " 0 tests pass" not in done.stdout, done.stdout


def test_a_difference_is_told(tmp_path):
    """A backend that is wrong fails the tests that rely on it."""
    text = "import torch\n\ndef test_it():\n    assert torch.relu(torch.tensor([1.0, -1.0])).tolist() == [1.0, 0.0]\n\ndef test_other():\n    assert True\n"
    (tmp_path / "test_telling.py").write_text(text)
    words = [sys.executable, "-m", "capture.suites", "test_telling", "--jobs", "1", "--backend", "relu_accuracy_error_TESTING_ONLY"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, cwd=Path(suites.__file__).parent.parent, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "test_telling:test_it" in done.stdout and "1 tests pass captured, 1 differ" in done.stdout, done.stdout + done.stderr
