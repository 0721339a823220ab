"""Two processes of one torch.distributed job agree on which sizes are dynamic."""

import subprocess
import sys

from pyrite import ranks

JOB = """
import sys, warnings
import torch, torch.distributed
import pyrite

rank, place, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.distributed.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=2)
pyrite.config.collective_timeout = 1.0 if mode == "alone" else 60.0

def step(x, w):
    return (x @ w).relu().sum()

profiler = pyrite.CompileProfiler()
compiled = pyrite.compile(step, backend=profiler)
w = torch.ones(3, 3)
if mode == "together" or rank == 0:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batch in (4 + rank, 9 - rank, 6):
            assert compiled(torch.ones(batch, 3), w).item() == batch * 9
    print("frames", profiler.frame_count, "warned", len(said), said[0].message if said else "")
torch.distributed.barrier()
"""


def job(tmp_path, mode):
    """What the two ranks print."""
    (tmp_path / "job.py").write_text(JOB)
    words = [[sys.executable, "job.py", str(rank), str(tmp_path / "store"), mode] for rank in range(2)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    processes = [subprocess.Popen(each, **pipes) for each in words]
    results = [process.communicate(timeout=120) for process in processes]
    for process, (_, said) in zip(processes, results):
        assert process.returncode == 0, said
    return [text for text, _ in results]


def test_what_differs_between_ranks_is_dynamic_from_the_start(tmp_path):
    for said in job(tmp_path, "together"):
        assert said.startswith("frames 1 warned 0")


def test_a_rank_that_compiles_alone_says_so_and_goes_on(tmp_path):
    said, _ = job(tmp_path, "alone")
    assert said.startswith("frames 2 warned 1") and "enable_compiler_collectives" in said


def test_only_dimensions_that_differ_are_named():
    mine = [("x", [4, 3]), ("w", [3, 3]), ("y", [2])]
    theirs = [("w", [3, 3]), ("x", [5, 3]), ("y", [2, 2])]
    assert ranks.differing(mine, [mine, theirs]) == [(0, 0)]
