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


# Functions that make a number an element, or compute with it in the elements' type.
OF_NUMBERS = {
    "full": lambda x, number: torch.full((2,), number, dtype=x.dtype),
    "full_like": lambda x, number: torch.full_like(x, number),
    "new_full": lambda x, number: x.new_full((2,), number),
    "scalar_tensor": lambda x, number: torch.scalar_tensor(number, dtype=x.dtype),
    "tensor": lambda x, number: torch.tensor([number, 1], dtype=x.dtype),
    "fill_": lambda x, number: x.clone().fill_(number),
    "setitem": lambda x, number: (lambda y: (y.__setitem__(0, number), y)[1])(x.clone()),
    "masked_fill": lambda x, number: x.masked_fill(x == 1, number),
    "pad": lambda x, number: F.pad(x, (1, 1), value=number),
    "where": lambda x, number: torch.where(x == 1, x, number),
    "alpha": lambda x, number: torch.add(x, x, alpha=number),
    "addcmul": lambda x, number: torch.addcmul(x, x, x, value=number),
    "threshold": lambda x, number: F.threshold(x, number, number),
    "clamp": lambda x, number: x.clamp(max=number),
    "pow": lambda x, number: x**number,
    "linspace": lambda x, number: torch.linspace(0, number, 3, dtype=x.dtype),
    "bucketize": lambda x, number: torch.bucketize(number, x),
    "maximum": lambda x, number: torch.maximum(x, torch.tensor(number)),
    "less": lambda x, number: x < torch.tensor(number),
}
NUMBERS = [300, -129, -1, 2**40, 2**63 - 1, 1e5, 1e39, float("inf"), 1.5, 1 + 2j]


def by_torch(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite", options={"strict": True})


def outcome(function, x):
    try:
        return function(x)
    except Exception as error:
        return error


def check_like_eager(name, dtype, numbers, compiled):
    for number in numbers:
        x = torch.tensor([1, 2, 3]).to(dtype)
        want, have = (outcome(way(lambda x, number=number: OF_NUMBERS[name](x, number)), x) for way in (lambda function: function, compiled))
        assert isinstance(want, Exception) == isinstance(have, Exception), f"{number}: {have!r}, not {want!r}"
        if not isinstance(want, Exception):
            assert want.dtype == have.dtype, number
            torch.testing.assert_close(have, want, equal_nan=True, msg=lambda text, number=number: f"{number}: {text}")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.float16, torch.bfloat16, torch.float32, torch.bool])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_fits_a_type_where_it_does_in_eager(name, dtype):
    numbers = [each for each in NUMBERS if name != "alpha" or dtype is not torch.bool]
    check_like_eager(name, dtype, numbers, pyrite.compile)


@pytest.mark.parametrize("name", ["full", "full_like", "fill_", "setitem", "pad", "alpha", "linspace", "maximum"])
def test_a_region_takes_no_number_that_eager_refuses(name):
    for dtype, number in [(torch.uint8, 300), (torch.int8, 100), (torch.int32, 2**40), (torch.float16, 1e5), (torch.float32, 1e39)]:
        check_like_eager(name, dtype, [number], by_torch)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("number", [7e4, 1e6, 2049, 1.001, torch.tensor(1e6)])
def test_a_number_is_rounded_to_a_half_precision_where_eager_rounds_it(dtype, number):
    x = torch.tensor([0.5, -3.0, 100.0, 6e4, float("inf"), -float("inf"), 2048.0], dtype=dtype)
    for function in (lambda x: x + number, lambda x: x - number, lambda x: number - x, lambda x: x * number, lambda x: x < number):
        torch.testing.assert_close(pyrite.compile(function)(x), function(x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("way", [pyrite.compile, by_torch])
@pytest.mark.parametrize("settings", [{}, {"antialias": True}, {"align_corners": True}], ids=["plain", "antialias", "corners"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_in_torchs_fixed_point(mode, settings, way):
    torch.manual_seed(0)
    for shape, size in [((2, 3, 9, 11), (17, 5)), ((1, 6, 20, 7), (20, 30)), ((1, 1, 33, 40), (8, 9))]:
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randint(0, 256, shape, dtype=torch.uint8).contiguous(memory_format=layout)
            function = lambda x, size=size: F.interpolate(x, size, mode=mode, **settings)  # noqa: E731
            have, want = way(function)(x), function(x)
            assert torch.equal(have, want) and have.stride() == want.stride(), (shape, size, layout)
