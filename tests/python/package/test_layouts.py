"""Results of captured code that are laid out as eager's, and that are the very tensors that eager returns."""

import pytest
import torch
import torch.nn.functional as F

import pyrite

WAYS = {"native": {}, "fx": {"backend": "eager"}, "dynamic": {"dynamic": True}}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def compiled(request):
    return lambda function: pyrite.compile(function, **request.param)


# Operators that allocate their results in order, whatever they are given; torch's own metadata says otherwise of some.
IN_ORDER = {
    "rrelu": lambda x: F.rrelu(x),
    "rrelu_of_other_slopes": lambda x: F.rrelu(x, 0.1, 0.9),
    "rrelu_in_training": lambda x: F.rrelu(x, training=True),
    "rrelu_in_place": lambda x: F.rrelu(x * 1, training=True, inplace=True),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "masked_fill_in_place": lambda x: (x * 1).masked_fill_(x > 0, 1.0),
    "masked_scatter_in_place": lambda x: (x * 1).masked_scatter_(x > 0, x.detach().flatten()),
}
LAYOUTS = {
    "channels_last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "transposed": lambda: torch.randn(2, 3, 4, 5).transpose(1, 2),
    "of_one": lambda: torch.randn(3, 1, 5).transpose(0, 1),
    "cut": lambda: torch.randn(4, 6)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("function", IN_ORDER.values(), ids=IN_ORDER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_results_are_laid_out_and_drawn_as_eagers(compiled, function, layout, dtype):
    x = layout().to(dtype)

    def run(called):
        torch.manual_seed(7)
        argument = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        result = called(argument)
        (gradient,) = torch.autograd.grad(result.float().square().sum(), argument)
        return result.detach(), gradient

    (expected, slope), (result, gradient) = run(function), run(compiled(function))
    assert result.stride() == expected.stride()
    assert torch.equal(result, expected)
    torch.testing.assert_close(gradient, slope)


def test_a_mapped_function_that_returns_its_argument_returns_the_tensor(compiled):
    def mapped(x, y):
        (first, second) = torch.vmap(lambda a, b: (b, a), in_dims=(0, 1), out_dims=(1, 0))(x, y)
        first.add_(1)
        return first, second, torch.vmap(lambda v: v, in_dims=1)(x), torch.vmap(lambda v: v, chunk_size=2)(x), torch.vmap(torch.vmap(lambda v: v))(x)

    def same(function):
        x, y = torch.arange(12.0).view(4, 3), torch.arange(12.0).view(3, 4)
        results = function(x, y)
        return [result is x or result is y for result in results], [result.data_ptr() in (x.data_ptr(), y.data_ptr()) for result in results], x, y, *results

    for expected, result in zip(same(mapped), same(compiled(mapped)), strict=True):
        assert torch.equal(result, expected) if isinstance(result, torch.Tensor) else result == expected


def test_sizes_that_are_repeated_are_sizes(compiled):
    def repeated(x):
        return x.shape * 2, 2 * x.shape, x.shape * 0, list(x.shape) * 2, tuple(x.shape) * 2

    x = torch.ones(2, 3)
    results = compiled(repeated)(x)
    assert results == repeated(x)
    assert [type(result) for result in results] == [type(result) for result in repeated(x)]
