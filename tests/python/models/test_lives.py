"""What users do with compiled functions and modules over time: what they see is what the plain ones show."""

import cpu  # noqa: F401  (before torch)
import pytest
import torch
import torch.utils._pytree as pytree

import pyrite
from models.lives import LIVES

WAYS = {
    "pyrite": pyrite.compile,
    "dynamic": lambda function: pyrite.compile(function, dynamic=True),
    "torch": lambda function: torch.compile(function, backend="pyrite"),
}
# What torch's capture itself does not see, or what its modules do not have, whatever the backend.
TORCHS = {
    "default_type_switched": "it does not look at the default type again",
    "classes_changed": "it does not look at the attributes of a module's class again",
    "hooks_come_and_go": "it does not look for hooks again",
    "attributes_of_the_module": "its modules have no items",
}
RUNS = [(way, name) for way in WAYS for name in LIVES if way != "torch" or name not in TORCHS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way, name", RUNS)
def test_a_compiled_function_shows_what_the_plain_one_shows(way, name):
    if way == "torch":
        torch._dynamo.reset()
    pyrite.reset()
    want, have = LIVES[name](lambda function: function), LIVES[name](WAYS[way])
    mine, shape = pytree.tree_flatten(want)
    theirs, other = pytree.tree_flatten(have)
    assert shape == other
    for place, (expected, found) in enumerate(zip(mine, theirs)):
        if isinstance(expected, torch.Tensor):
            assert isinstance(found, torch.Tensor), f"{place}: {found!r}"
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if expected.dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
            torch.testing.assert_close(found, expected, **tolerance, equal_nan=True, check_stride=False, msg=lambda text: f"result {place}: {text}")
        else:
            assert found == expected or (found != found and expected != expected), f"result {place} is {found!r} instead of {expected!r}"
