"""What only torch computes, in the middle of compiled code: numbers and sizes that depend on data, operators of libraries, element types.

Each function is compiled by torch's capture with `strict` and by Pyrite's, with static and symbolic sizes, and called twice. Results are
eager's, or eager raises too; no region runs eagerly as a whole.
"""

import copy

import pytest
import torch
import torch.utils._pytree as pytree

import pyrite as package
from pyrite import aot


def by_torch(function, dynamic):
    return torch.compile(function, backend="pyrite", options={"strict": True}, dynamic=dynamic)


def by_pyrite(function, dynamic):
    return package.compile(function, dynamic=dynamic)


@torch.library.custom_op("subjects::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: int = 2) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x, factor=2):
    return torch.empty_like(x)


@torch.library.custom_op("subjects::add_to", mutates_args=("x",))
def add_to(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)


@torch.library.custom_op("subjects::places", mutates_args=())
def places(x: torch.Tensor) -> torch.Tensor:
    return x.nonzero()


@places.register_fake
def _(x):
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(), x.dim()), dtype=torch.int64)


@torch.library.custom_op("subjects::many", mutates_args=())
def many(tensors: list[torch.Tensor], name: str, factor: float, other: torch.Tensor | None = None) -> list[torch.Tensor]:
    return [each * factor for each in tensors]


@many.register_fake
def _(tensors, name, factor, other=None):
    return [torch.empty_like(each) for each in tensors]


def bounded(x, count):
    n = count.item()
    torch._check(n >= 1)
    torch._check(n <= 6)
    return x[:n] * 2, torch.zeros(n) + x[0, 0], n + 1


def split_by_data(x, sizes):
    numbers = sizes.tolist()
    for each in numbers:
        torch._check(each >= 0)
    return [part.sum() * 2 for part in x.split(numbers)]


def written(x):
    y = x + 1
    add_to(y, x)
    return y * 2


def vision(name):
    import torchvision

    return getattr(torchvision.ops, name)


X = torch.linspace(-2, 2, 48).view(6, 8).sin()
BOXES = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [6, 6, 9, 9], [0, 0, 4, 3.5]])
SCORES = torch.tensor([0.9, 0.8, 0.7, 0.6])
IMAGE = torch.arange(768.0).view(1, 3, 16, 16).cos()

FUNCTIONS = {
    "item": (lambda x: x * x.sum().item(), X),
    "integer_item": (lambda x, i: x[:, : i.item()].sum(), X, torch.tensor(3)),
    "bounded_item": (bounded, X, torch.tensor(3)),
    "item_in_clamp": (lambda x: x.clamp(max=x.mean().item()), X),
    "item_in_arange": (lambda x, n: torch.arange(n.item()) * x.sum(), X, torch.tensor(5)),
    "bool_item": (lambda x: torch.where(torch.tensor((x.sum() > -9).item()), x, -x), X),
    "list_of_items": (lambda x: torch.full((2,), sum(x.tolist())), torch.tensor([1, 2, 3])),
    "nonzero": (lambda x: (x[(x > 0).nonzero()[:, 0]] * 2, (x > 0).nonzero().shape[0]), X),
    "nonzero_tuple": (lambda x: [each + 1 for each in torch.nonzero(x > 0, as_tuple=True)], X),
    "masked": (lambda x: (x[x > 0] * 2 + 1, torch.masked_select(x, x < 0).cumsum(0), x[x > 0].sin().sum()), X),
    "unique": (lambda x: torch.unique(x.round(), return_counts=True), X),
    "split_by_data": (split_by_data, X, torch.tensor([1, 2, 3])),
    "repeated_by_data": (lambda x, n: x.repeat_interleave(n, 0) * 2, X, torch.tensor([1, 0, 2, 1, 1, 1])),
    "library": (lambda x: scaled(x.sin(), 3).cos(), X),
    "library_writes": (written, X),
    "library_sizes": (lambda x: places(x > 0)[:, 0] * 2, X),
    "library_lists": (lambda x: [each + 1 for each in many([x, x * 2], "name", 0.5)], X),
    "nms": (lambda b, s: b[vision("nms")(b * 1.0, s, 0.5)] * 2, BOXES, SCORES),
    "batched_nms": (lambda b, s: vision("batched_nms")(b, s, torch.tensor([0, 1, 0, 0]), 0.5) + 1, BOXES, SCORES),
    "roi_align": (lambda x, b: vision("roi_align")(x * 2, [b], (3, 3)).sum(1), IMAGE, BOXES),
    "roi_pool": (lambda x, b: vision("roi_pool")(x, [b], (3, 3)) + 1, IMAGE, BOXES),
    "deformed": (lambda x: vision("deform_conv2d")(x[:, :, :8, :8], x.new_ones(1, 18, 6, 6), x.new_ones(2, 3, 3, 3)) * 2, IMAGE),
    "quantized_between": (lambda x: torch.quantize_per_tensor(x * 2, 0.1, 3, torch.quint8).dequantize() + 1, X),
    "quantized_output": (lambda x: torch.quantize_per_tensor(x * 2, 0.1, 3, torch.quint8), X),
    "quantized_input": (lambda q: q.dequantize() * 2, torch.quantize_per_tensor(X, 0.1, 3, torch.quint8)),
    "fake_quantized": (lambda x: torch.fake_quantize_per_tensor_affine(x * 2, 0.1, 3, 0, 255) + 1, X),
    "int8_product": (lambda a, b: torch._int_mm(a, b) + 1, torch.arange(512).view(32, 16).to(torch.int8), torch.arange(128).view(16, 8).to(torch.int8)),
    "sparse": (lambda x: x.to_sparse().to_dense() * 2, X),
}
for _dtype, _same in {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}.items():
    _given = torch.tensor([1, 2, 60000], dtype=_dtype)
    _name = str(_dtype).removeprefix("torch.")
    FUNCTIONS |= {
        f"{_name}_read": (lambda x, same=_same: (x.clone(), x.to(torch.int64) * 2, x.float() + 1, x.view(same)), _given),
        f"{_name}_computed": (lambda x: (x + x, x * 2, x == x), _given),
        f"{_name}_made": (lambda x, d=_dtype: (x.abs().to(d), torch.zeros(2, dtype=d), torch.full((2,), 7, dtype=d)), X),
        f"{_name}_moved": (lambda x: (x[1:], x[torch.tensor([0, 2])], torch.cat([x, x]), x.reshape(3, 1)), _given),
    }
for _dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
    _name = str(_dtype).removeprefix("torch.")
    FUNCTIONS |= {
        f"{_name}_read": (lambda x: (x.float() * 2, x.clone(), x.view(torch.uint8), x.t().contiguous(), x[1:].bfloat16()), X.to(_dtype)),
        f"{_name}_made": (lambda x, d=_dtype: ((x * 2).to(d), (x * 3).to(d).float() + 1, x.half().to(d)), X),
        f"{_name}_computed": (lambda x: x + x, X.to(_dtype)),
        f"{_name}_moved": (lambda x: (torch.cat([x, x]), x.reshape(-1), torch.stack([x, x])), X.to(_dtype)),
    }


def plain(value):
    """A value that `assert_close` can compare."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_quantized:
        return value.int_repr()
    odd = value.is_floating_point() and value.dtype.itemsize == 1 or value.dtype in (torch.uint16, torch.uint32, torch.uint64)
    return value.double() if odd else value


def agree(have, want):
    have, want = pytree.tree_leaves(have), pytree.tree_leaves(want)
    assert len(have) == len(want)
    for mine, theirs in zip(have, want):
        if isinstance(theirs, torch.Tensor):
            assert (mine.dtype, mine.shape, mine.is_quantized) == (theirs.dtype, theirs.shape, theirs.is_quantized)
        torch.testing.assert_close(plain(mine), plain(theirs), equal_nan=True)


@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("way", [by_torch, by_pyrite])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_torch_computes_is_one_call_in_compiled_code(name, way, dynamic):
    torch._dynamo.reset()
    package.reset()
    function, *arguments = FUNCTIONS[name]
    compiled = way(function, dynamic)
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True), aot.observed() as regions:
        try:
            want = function(*copy.deepcopy(arguments))
        except Exception:
            with pytest.raises(Exception):  # noqa: B017  (torch's capture wraps eager's errors)
                compiled(*copy.deepcopy(arguments))
            return
        for _ in range(2):
            agree(compiled(*copy.deepcopy(arguments)), want)
    assert not any(region.is_eager for region in regions), regions
