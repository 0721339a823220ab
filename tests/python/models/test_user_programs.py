"""Programs as users write them, compiled whole, against eager: values, gradients, random numbers, states of models and optimizers."""

import os

import cpu  # noqa: F401  (before torch)
import pytest
import torch

import pyrite
from models import more_programs  # noqa: F401  (adds to PROGRAMS)
from models.user_programs import PROGRAMS

WAYS = {
    "pyrite": pyrite.compile,
    "dynamic": lambda step: pyrite.compile(step, dynamic=True),
    "torch": lambda step: torch.compile(step, backend="pyrite"),
}
CALLS = 3
# In everyday runs each program takes one of the ways, in turn.
RUNS = [
    (way, name)
    for place, name in enumerate(PROGRAMS)
    for number, way in enumerate(WAYS)
    if "PYRITE_USER_PROGRAMS" in os.environ or place % len(WAYS) == number
]


def results(name, compiled=None):
    torch.manual_seed(0)
    step = PROGRAMS[name]()
    step = step if compiled is None else compiled(step)
    return [[each.clone() for each in step(call)] for call in range(CALLS)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("way", "name"), RUNS)
def test_a_program_computes_what_eager_computes(way, name):
    if way == "torch":
        torch._dynamo.reset()
    pyrite.reset()
    want, have = results(name), results(name, WAYS[way])
    for call, (mine, theirs) in enumerate(zip(want, have, strict=True)):
        assert len(mine) == len(theirs)
        for place, (expected, found) in enumerate(zip(mine, theirs)):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), f"call {call}, result {place}"
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4, equal_nan=True, check_stride=False, msg=lambda text: f"call {call}, result {place}: {text}")
