"""Operators at sizes that no sample has, on each code generator. The whole runs in `cargo xtask nightly`; `PYRITE_SIZES=n` takes n cases of each."""

import os

import pytest
import torch

from operators import sizes
from operators.programs import trace
from operators.worker import Worker

# Operators whose loops differ most from one another; of the others every tenth is taken.
ALWAYS = ["argmax", "argmin", "max.dim", "min.dim", "sum.dim_IntList", "mean.dim", "amax", "cumsum", "_softmax", "cat", "index.Tensor"]

CASES = int(os.environ.get("PYRITE_SIZES", "1"))


def chosen(known):
    names = sorted(known)
    always = [f"aten.{name}" if "." in name else f"aten.{name}.default" for name in ALWAYS]
    return [known[name] for name in sorted({*always, *names[:: 1 if CASES > 1 else 10]})]


def test_every_answer_is_right_at_other_sizes(pyrite):
    summary = sizes.run(chosen(sizes.records(os.environ["PYRITE_BIN"])), CASES, 1, sizes.CODEGENS, turns=True)
    assert summary.failures == []
    assert summary.passed > 80 * CASES


PLACES = {
    "argmax": lambda x, dim: torch.argmax(x, dim),
    "argmin": lambda x, dim: torch.argmin(x, dim),
    "max": lambda x, dim: torch.max(x, dim),
    "min": lambda x, dim: torch.min(x, dim),
}


@pytest.mark.parametrize("codegen", sizes.CODEGENS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.bfloat16], ids=str)
def test_a_place_is_right_in_every_lane(pyrite, codegen, dtype):
    with Worker(["env", f"PYRITE_CODEGEN={codegen}", os.environ["PYRITE_BIN"], "worker"]) as worker:
        for width in (1, 7, 16, 31, 32, 33, 64, 65, 128, 130):
            x = torch.randint(-9, 9, (5, width, 3)).to(dtype)
            program = trace(lambda x: [pick(x, dim) for pick in PLACES.values() for dim in range(3)], [x], None)
            answer = worker.run(program.text, [x], mode="native")
            assert answer.ok, answer.message
            for have, want in zip(answer.output, program.eager([x]).outputs, strict=True):
                assert torch.equal(have, want), width


def test_the_sizes_find_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(sizes, "Worker", lambda command, limit: Worker(faulty("value"), limit))
    record = {"name": "aten.add.Tensor", "samples": ["f32[3, 4], f32[3, 4]"]}
    monkeypatch.setenv("PYRITE_BIN", "pyrite")
    assert sizes.run([record], 2, 0, ["x86"]).failures


def faulty(fault):
    import pathlib
    import sys

    return ["env", f"PYTHONPATH={pathlib.Path(__file__).parents[1]}", sys.executable, "-m", "operators.torch_worker", fault]


def test_a_sample_is_read():
    args, kwargs = sizes.Reader("f32[2, 3]<[1, 2], [i64[5]{0..3}, None], -2.5, dim=[0, -1], mode='max', dtype=f64").arguments()
    assert args[0] == sizes.Tensor("f32", [2, 3], [1, 2])
    assert args[1] == [sizes.Tensor("i64", [5], None, (0.0, 3.0)), None]
    assert args[2] == -2.5 and kwargs == {"dim": [0, -1], "mode": "max", "dtype": torch.float64}
