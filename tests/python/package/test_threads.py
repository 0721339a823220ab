"""Compiled calls use as many threads as torch's own operators do."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, time
import torch, pyrite

def workers():
    tasks = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sum(name.startswith("pyrite-") for name in tasks)

def named_workers():
    # A thread names itself once it runs, which takes a while where others are busy.
    for _ in range(20):
        if count := workers():
            return count
        time.sleep(0.1)
    return 0

x = torch.randn(600, 600, requires_grad=True)
step = pyrite.compile(lambda x: (x @ x).relu() + x.exp())
torch.set_num_threads(1)
for _ in range(3):
    step(x).sum().backward()
found = [named_workers()]
torch.set_num_threads(2)
step(x).sum().backward()
found.append(named_workers())
print(*found)
"""


def workers(**environment):
    clean = {name: value for name, value in os.environ.items() if name not in ("PYRITE_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env={**clean, **environment}, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="threads are counted in /proc, on two processors"
)


def test_a_call_uses_no_more_threads_than_torch():
    assert workers() == [0, 1]


def test_the_number_that_pyrite_is_told_comes_first():
    assert workers(PYRITE_NUM_THREADS="2") == [1, 1]
    assert workers(PYRITE_NUM_THREADS="1") == [0, 0]
