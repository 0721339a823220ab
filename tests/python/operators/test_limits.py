"""Numbers at the ends of their types: zeros with a sign, and the least integers."""

import pyrite
import pytest
import torch
import torch.nn.functional as F

KEEP_THE_SIGN = {
    "relu": torch.relu,
    "relu6": F.relu6,
    "clamp_min": lambda x: x.clamp(min=0.0),
    "clamp_max": lambda x: x.clamp(max=-0.0),
    "clamp": lambda x: torch.clamp(x, -0.0, 0.0),
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
}


@pytest.fixture(autouse=True)
def fresh():
    yield
    pyrite.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", KEEP_THE_SIGN)
def test_a_bound_keeps_the_sign_of_zero(name, dtype):
    function = KEEP_THE_SIGN[name]
    for zero in (0.0, -0.0):
        x = torch.full((37,), zero, dtype=dtype)
        assert torch.equal(torch.signbit(pyrite.compile(function)(x)), torch.signbit(function(x))), zero


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_greatest_common_divisor_of_the_least_integer_has_torchs_sign(dtype):
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    values = torch.tensor([least, least + 1, -6, -1, 0, 1, 4, most - 1, most], dtype=dtype)
    x, y = values.repeat_interleave(len(values)), values.repeat(len(values))
    assert torch.equal(pyrite.compile(torch.gcd)(x, y), torch.gcd(x, y))
