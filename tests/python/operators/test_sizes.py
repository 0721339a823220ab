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


# Functions of a tensor, rows, columns for each row, and values. Where elements are replaced, equal places get equal values.
WRITES = {
    "rows added": lambda x, rows, columns, values: x.index_put((rows,), values, accumulate=True),
    "rows written": lambda x, rows, columns, values: x.index_put((rows,), x[rows] + 1),
    "columns added": lambda x, rows, columns, values: x.index_add(1, columns[0], values[:, : columns.shape[1]]),
    "pairs added": lambda x, rows, columns, values: x.index_put((rows[:, None], columns), values[:, : columns.shape[1]], accumulate=True),
    "along rows": lambda x, rows, columns, values: x.scatter_add(1, columns, values),
    "along columns": lambda x, rows, columns, values: x.scatter_add(0, rows[:, None].expand_as(values), values),
    "transposed": lambda x, rows, columns, values: x.t().index_add(1, rows, values.t()),
    "a number": lambda x, rows, columns, values: x.scatter(1, columns, 3),
    "elements": lambda x, rows, columns, values: x.scatter(1, columns, columns.to(x.dtype)),
}


@pytest.mark.parametrize("codegen", sizes.CODEGENS)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.int8, torch.uint8, torch.bfloat16, torch.float16], ids=str
)
def test_what_is_written_by_indices_reaches_its_place_in_every_lane(pyrite, codegen, dtype):
    torch.manual_seed(0)
    with Worker(["env", f"PYRITE_CODEGEN={codegen}", os.environ["PYRITE_BIN"], "worker"]) as worker:
        for width in (1, 3, 8, 16, 17, 33, 130):
            # Few rows, so that indices repeat; small whole numbers, so that no order of sums is rounded differently.
            x, values = torch.randint(-3, 4, (5, width)).to(dtype), torch.randint(-3, 4, (5, width)).to(dtype)
            rows, columns = torch.randint(0, 5, (5,)), torch.randint(0, width, (5, max(1, width - 1)))
            for name, write in WRITES.items():
                inputs = [x, rows, columns, values]
                program = trace(write, inputs, None)
                answer = worker.run(program.text, inputs, mode="native")
                assert answer.ok, (name, width, answer.message)
                assert torch.equal(answer.output[0], program.eager(inputs).outputs[0]), (name, width)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64], ids=str
)
def test_an_order_is_that_of_eager_whatever_is_equal_or_no_number(pyrite, dtype):
    torch.manual_seed(0)
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -1e-45])
    limits = [] if dtype.is_floating_point or dtype == torch.bool else [torch.iinfo(dtype).min, torch.iinfo(dtype).max]
    with Worker([os.environ["PYRITE_BIN"], "worker"]) as worker:
        for width in (1, 2, 15, 64, 65, 300):
            x = torch.randint(-4, 4, (3, width, 2)).to(dtype)
            if dtype.is_floating_point:
                x = torch.where(torch.rand(x.shape) < 0.3, special[torch.randint(0, 7, x.shape)].to(dtype), x)
            elif limits:
                x = torch.where(torch.rand(x.shape) < 0.3, torch.tensor(limits, dtype=dtype)[torch.randint(0, 2, x.shape)], x)
            for dim in range(3):
                for descending in (False, True):
                    program = trace(lambda x: torch.sort(x, dim=dim, stable=True, descending=descending), [x], None)
                    answer = worker.run(program.text, [x], mode="native")
                    assert answer.ok, answer.message
                    for have, want in zip(answer.output, program.eager([x]).outputs, strict=True):
                        assert torch.equal(have.nan_to_num(7), want.nan_to_num(7)), (width, dim, descending)
                    if dtype == torch.bool:
                        continue
                    count = min(x.shape[dim], 3)
                    program = trace(lambda x: torch.topk(x, count, dim, descending)[0], [x], None)
                    answer = worker.run(program.text, [x], mode="native")
                    assert answer.ok, answer.message
                    assert torch.equal(answer.output[0].nan_to_num(7), program.eager([x]).outputs[0].nan_to_num(7)), (width, dim)


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
