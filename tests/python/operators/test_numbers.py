"""Numbers beside tensors, bit for bit as in eager: every value of half precision, infinite complex numbers, factors of bools."""

import itertools
import math

import pyrite
import pytest
import torch
import torch.nn.functional as F

inf, nan = math.inf, math.nan
NUMBERS = [2.3, 0.3333, -3, 2049, 0.1]

# Functions of a tensor and a number. A number is an element of the tensor's type first; a divisor stays in single precision.
WITH_NUMBER = {
    "power": lambda x, s: x**s,
    "remainder of the number": lambda x, s: s % x,
    "number divided and rounded down": lambda x, s: s // x,
    "divided and rounded down": lambda x, s: x // s,
    "divided and truncated": lambda x, s: torch.div(x, s, rounding_mode="trunc"),
    "difference from the number": lambda x, s: s - x,
    "sum with a factor": lambda x, s: torch.add(x, s, alpha=0.1),
    "difference with a factor": lambda x, s: torch.sub(x, s, alpha=0.1),
    "hardshrink": lambda x, s: F.hardshrink(x, abs(s)),
}
# Functions of two tensors.
OF_TWO = {
    "divided and rounded down": torch.floor_divide,
    "divided and truncated": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "difference with a factor": lambda a, b: torch.sub(a, b, alpha=0.3),
    "difference the other way": lambda a, b: torch.rsub(a, b, alpha=0.7),
    "times a logarithm": lambda a, b: torch.xlogy(a, b),
    "times a logarithm beside one": lambda a, b: torch.special.xlog1py(a, b),
}


def every(dtype):
    """Every value of a type of 16 bits that is neither huge nor tiny, in whole vectors: PyTorch's own vectors and scalars differ."""
    values = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)
    size = values.float().abs()
    values = values[(size > 1e-4) & (size < 1e4) | (size == 0)]
    return values[: len(values) // 1024 * 1024]


def expect_same(function, *inputs):
    pyrite.reset()
    want, have = function(*inputs), pyrite.compile(lambda *inputs: function(*inputs))(*inputs)
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    same = (have == want) | (have != have) & (want != want)
    assert same.all(), [(*(each[~same][0].item() for each in inputs), have[~same][0].item(), want[~same][0].item())]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", WITH_NUMBER)
def test_a_number_beside_half_precision_is_rounded_as_in_eager(name, dtype):
    for number in NUMBERS:
        if (name, number) != ("power", -3):  # a product of roundings
            expect_same(lambda x, number=number: WITH_NUMBER[name](x, number), every(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", OF_TWO)
def test_rounded_divisions_of_half_precision_are_as_in_eager(name, dtype):
    values = every(dtype)
    generator = torch.Generator().manual_seed(3)
    a, b = (values[torch.randint(len(values), (1 << 15,), generator=generator)] for _ in range(2))
    expect_same(OF_TWO[name], a, b[b != 0].repeat(2)[: len(a)])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("exponent", [0.5, 1, 2, 3, -1, -2])
def test_small_powers_of_half_precision_are_as_in_eager(exponent, dtype):
    expect_same(lambda x: x**exponent, every(dtype))


COMPLEX = ["sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "exp", "log", "abs", "reciprocal", "exp2", "log1p", "log2", "log10", "sigmoid", "square"]


def expect_same_parts(function, *inputs, **near):
    """Compares real and imaginary parts: of a complex number that is NaN in one part, the other counts."""
    pyrite.reset()
    want, have = function(*inputs), pyrite.compile(lambda *inputs: function(*inputs))(*inputs)
    want, have = (torch.view_as_real(each) if each.is_complex() else each for each in (want, have))
    torch.testing.assert_close(have, want, equal_nan=True, **near)


@pytest.mark.parametrize("name", COMPLEX)
def test_infinite_complex_numbers_are_as_in_eager(name):
    parts = [0.0, -0.0, 1.0, -2.0, inf, -inf, nan]
    numbers = torch.tensor([complex(*pair) for pair in itertools.product(parts, repeat=2)], dtype=torch.complex64)
    expect_same_parts(getattr(torch, name), numbers)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_powers_of_infinite_complex_numbers_are_as_in_eager(dtype):
    parts = [0.0, -0.0, 1.0, -2.5, inf, -inf, nan]
    numbers = torch.tensor([complex(*pair) for pair in itertools.product(parts, repeat=2)], dtype=dtype)
    # Eager computes the angle in single precision, and an angle can be large.
    near = {"rtol": 1e-4, "atol": 1e-2} if dtype is torch.complex64 else {}
    for exponent in (0, 1, 2, 3, -1, -2, -3, 0.5, -0.5, 1.5, 1j, 1 + 1j):
        expect_same_parts(lambda z, exponent=exponent: z**exponent, numbers, **near)
    for base in (0, 1, 2, -1, 1j, inf):
        expect_same_parts(lambda z, base=base: base**z, numbers, **near)
    expect_same_parts(torch.pow, numbers.repeat(len(numbers)), numbers.repeat_interleave(len(numbers)), **near)


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.mul, torch.div])
def test_arithmetic_of_infinite_complex_numbers_is_as_in_eager(function):
    numbers = torch.tensor([complex(a, b) for a in (0.0, 1.0, -2.0, inf, -inf, nan) for b in (0.0, 1.0, inf, nan)])
    expect_same_parts(function, numbers.repeat(24), numbers.repeat_interleave(24))


@pytest.mark.parametrize("alpha", [True, False, 2, -1, 0, 256])
def test_a_factor_of_bools_is_a_bool(alpha):
    a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    index = torch.tensor([0, 1, 1, 1])
    expect_same(lambda a, b: torch.add(a, b, alpha=alpha), a, b)
    expect_same(lambda a, b: a.clone().add_(b, alpha=alpha), a, b)
    expect_same(lambda a, b: a.index_add(0, index, b, alpha=alpha), a, b)


def slopes(function, *inputs):
    inputs = [each.clone().requires_grad_() for each in inputs]
    function(*inputs).sum().backward()
    return [each.grad for each in inputs]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [lambda a, b: torch.cdist(a, b, p=inf) ** 2, lambda a, b: torch.pdist(a - b, p=inf) ** 2], ids=["cdist", "pdist"])
def test_the_largest_difference_of_coordinates_has_the_gradient_in_every_type(function, dtype):
    generator = torch.Generator().manual_seed(2)
    points = [torch.randn(5, 4, generator=generator, dtype=dtype) for _ in range(2)]
    pyrite.reset()
    torch.testing.assert_close(slopes(pyrite.compile(lambda a, b: function(a, b)), *points), slopes(function, *points))


def test_the_slope_of_a_target_of_cross_entropy_has_no_floor():
    found = []
    for function in (F.binary_cross_entropy, pyrite.compile(lambda x, y: F.binary_cross_entropy(x, y))):
        x, y = torch.tensor([1.0, 0.0, 0.25]), torch.tensor([1.0, 0.5, 0.0], requires_grad=True)
        function(x, y).backward()
        found.append(y.grad)
    torch.testing.assert_close(*found)
