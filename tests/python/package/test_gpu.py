"""Code for GPUs without a GPU: programs cut and compiled as for CUDA and interpreted, and the rules of recorded calls."""

import contextlib
import copy
import random

import pytest
import torch
from torch.nn import functional

from pyrite import _graphs, _gpu_calls, _native, _partition, aot

OPTIONS = {"gpu": "interpret", "strict": True}


def interpreted(function, **settings):
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite", options=OPTIONS, **settings)


def assert_alike(have, want):
    have, want = ([each] if isinstance(each, torch.Tensor) else list(each) for each in (have, want))
    assert len(have) == len(want)
    for one, other in zip(have, want):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-5)


def assert_trains_alike(model, *inputs):
    """Outputs, gradients and buffers are those of the eager model; gives the region."""
    other = copy.deepcopy(model)
    with aot.observed() as regions:
        have, want = interpreted(model)(*inputs), other(*inputs)
        assert_alike(have, want)
        have.square().sum().backward(), want.square().sum().backward()
    for one, two in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(one.grad, two.grad, rtol=2e-3, atol=2e-4)
    for one, two in zip(model.buffers(), other.buffers()):
        torch.testing.assert_close(one, two)
    assert not any(region.is_eager for region in regions)
    return regions[0]


def test_matmuls_and_convolutions_are_torchs_and_all_else_is_compiled():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 16), nn.GELU(), nn.LayerNorm(16))
    region = assert_trains_alike(model, torch.randn(4, 3, 16, 16))
    torchs = {each.name for each in region.opaque}
    assert torchs == {"aten.addmm.default", "aten.mm.default", "aten.convolution.default", "aten.convolution_backward.default"}
    assert region.segments == 5


def test_attention_and_dropout_are_torchs():
    torch.manual_seed(0)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.norm = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32), torch.nn.LayerNorm(32)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).view(2, 10, 3, 4, 8).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).reshape(2, 10, 32))

    region = assert_trains_alike(Block(), torch.randn(2, 10, 32))
    assert any("attention" in each.name for each in region.opaque)
    x = torch.randn(6, 64)
    dropped = interpreted(lambda x: functional.dropout(x.sin(), 0.5))
    torch.manual_seed(3)
    have = dropped(x)
    torch.manual_seed(3)
    assert_alike(have, functional.dropout(x.sin(), 0.5))


@pytest.mark.parametrize("columns", [64, 96, 1000, 1023, 4100])
def test_rows_of_any_length_are_reduced_right(columns):
    torch.manual_seed(columns)
    x = torch.randn(5, columns, requires_grad=True)
    w = torch.randn(columns, requires_grad=True)

    def program(x, w):
        y = functional.layer_norm(x, (columns,), w)
        return torch.softmax(y, -1), torch.log_softmax(x * 3, -1), y.amax(-1), x.argmax(-1), (x * w).sum(0), x.var(-1)

    have = interpreted(program)(x, w)
    gradients = torch.autograd.grad([each.sum() for each in have if each.is_floating_point()], (x, w))
    want = program(x, w)
    assert_alike(have, want)
    assert_alike(gradients, torch.autograd.grad([each.sum() for each in want if each.is_floating_point()], (x, w)))


@pytest.mark.parametrize(("rows", "columns"), [(300, 40), (17, 33), (1000, 3), (64, 257)])
def test_columns_of_any_length_are_reduced_right(rows, columns):
    torch.manual_seed(rows)
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)

    def program(x, y):
        centered = x - x.mean(0)
        return x.sum(0), (x * y).sum(0), x.amax(0), x.argmin(0), x.var(0), centered * y.sum(0), (x > 2).any(0)

    have, want = interpreted(program)(x, y), program(x, y)
    assert_alike(have, want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8])
def test_element_types_are_those_of_eager(dtype):
    x = (torch.randn(7, 128) * 3).to(dtype)

    def program(x):
        return x.float().softmax(-1).to(x.dtype), (x.float() * 2 + 1).to(x.dtype), x.float().sum(-1).to(x.dtype)

    have, want = interpreted(program)(x), program(x)
    for one, other in zip(have, want):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (37, 100), (64, 20), (16, 1000)])
def test_transposed_operands_are_read_by_tiles(rows, columns):
    torch.manual_seed(rows)
    x, y = torch.randn(rows, columns), torch.randn(columns, rows)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int8):

        def program(x, y):
            return x.t().contiguous(), (x.t() + y) * 2, x.t()[1:].clone() * y[1:]

        given = ((x * 5).to(dtype), (y * 5).to(dtype))
        assert_alike(interpreted(program)(*given), program(*given))
    cube = torch.randn(3, rows, 18)
    assert_alike(interpreted(lambda x: x.permute(2, 0, 1).contiguous())(cube), cube.permute(2, 0, 1).contiguous())


@pytest.mark.parametrize("shape", [(8192, 64), (4100, 130), (3, 2048, 96), (1 << 20,), (1024, 600)])
def test_long_reductions_of_few_rows_have_two_kernels(shape):
    torch.manual_seed(len(shape))
    x = torch.randn(shape) + 1

    def program(x):
        dims = [0] if len(shape) < 3 else [0, 1]
        return x.sum(dims), x.amax(dims), (x * x).mean(dims), (x > 3).any(0), x.round().long().sum(dims)

    text = interpreted_text(lambda x: x.sum([0] if len(shape) < 3 else [0, 1]), x)
    assert text.count(".visible .entry") > 1, text
    have, want = interpreted(program)(x), program(x.double())
    for one, other in zip(have, want):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-6, atol=1e-5)


@contextlib.contextmanager
def seen_texts(texts):
    """Notes the PTX of the segments that are compiled meanwhile."""
    before = _native.compile_gpu

    def seen(*arguments, **named):
        segment = before(*arguments, **named)
        texts.append(segment.ptx)
        return segment

    _native.compile_gpu = seen
    try:
        yield
    finally:
        _native.compile_gpu = before


def interpreted_text(function, *inputs):
    """The PTX of a function that is one segment."""
    texts = []
    with seen_texts(texts):
        interpreted(function)(*inputs)
    (text,) = texts
    return text


def test_cheap_values_are_computed_where_they_are_read_and_not_written():
    torch.manual_seed(0)
    g, x, w = torch.randn(512, 1100), torch.randn(512, 1100), torch.randn(1100)
    mean, scale = x.mean(-1, keepdim=True), x.var(-1, keepdim=True).rsqrt()

    def program(g, x, mean, scale, w):
        normal = (x - mean) * scale
        return (g * normal).sum(0), g * w - normal * (g * w * normal).mean(-1, keepdim=True)

    text = interpreted_text(program, g, x, mean, scale, w)
    # The second kernel reads x, so nothing as large as it is written between the two.
    assert_alike(interpreted(program)(g, x, mean, scale, w), program(g, x, mean, scale, w))
    first = text[: text.index(".visible .entry", text.index(".visible .entry") + 1)]
    assert first.count("st.global") == 1, first


def test_rows_are_divided_by_one_number_as_elements_are_by_many():
    """By way of a reciprocal, but rounded the same, whatever the numbers are."""
    torch.manual_seed(0)
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-45, -3e-39, 1e-38, 3.4e38, -1.7e38, 1.0, -1.9999999])
    x = torch.randn(64, 1000) * torch.exp2(torch.randint(-30, 30, (64, 1000)).float())
    x[::4, :12] = odd

    def divided(x, by):
        return torch.where(x.amax(-1, keepdim=True) == 12345.0, 0.0, x / by)

    for divisor in (x.abs().amax(-1, keepdim=True), x[:, 100:101].contiguous(), torch.full((64, 1), 1.9999999), odd.repeat(6)[:64, None].contiguous()):
        have, want = interpreted(divided)(x, divisor), divided(x, divisor)
        assert torch.equal(have.isnan(), want.isnan())
        assert torch.equal(have.nan_to_num(7.0).view(torch.int32), want.nan_to_num(7.0).view(torch.int32))
    y = torch.randn(32, 768).abs() + 0.5

    def program(x):
        return x / x.amax(-1, keepdim=True)

    text = interpreted_text(program, y)
    assert "div.rn.f32" in text and torch.equal(interpreted(program)(y).view(torch.int32), program(y).view(torch.int32))


@pytest.mark.parametrize(("rows", "columns"), [(264, 4096), (600, 2048)])
def test_gradients_of_a_norm_read_their_matrices_once(rows, columns):
    torch.manual_seed(0)
    g, x, w, b = torch.randn(rows, columns), torch.randn(rows, columns) + 1, torch.randn(columns), torch.randn(columns)
    mean, scale = x.mean(-1, keepdim=True), (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()

    def program(*given):
        return torch.ops.aten.native_layer_norm_backward(*given[:2], [columns], *given[2:], [True, True, True])

    given = (g, x, mean, scale, w, b)
    texts, have = [], None
    with seen_texts(texts):
        have = interpreted(program)(*given)
    (text,) = texts
    rows_and_sums = next(part for part in text.split(".visible .entry")[1:] if "_v4(" in part and "red.global" in part)
    # The sums stay in registers until the rows of the block are done; matrices are loaded once, parameters once.
    assert rows_and_sums.index("red.global") > rows_and_sums.rindex("bra L0")
    runs = -(-columns // (4 * int(rows_and_sums.split(".maxntid ")[1].split(",")[0])))
    assert rows_and_sums.count("ld.global.v4.b32") == 2 * runs and rows_and_sums.count("ld.global.L1::evict_last.v4.b32") == runs
    want = program(*(each.double() for each in given))
    for one, other in zip(have, want):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=2e-5)
    again = interpreted(program)(*given)
    assert all(torch.equal(one, other) for one, other in zip(have, again)), "the order does not depend on chance"
    # Where vectors are not aligned, blocks add to memory.
    whole = torch.randn(rows * columns + 1)
    given = (whole[1:].view(rows, columns), *given[1:])
    for one, other in zip(interpreted(program)(*given), program(*(each.double() for each in given))):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("rows", "steps", "columns"), [(64, 64, 64), (33, 36, 20), (100, 260, 48)])
def test_small_matmuls_are_pyrites_and_right(rows, steps, columns, monkeypatch):
    torch.manual_seed(rows)
    calls = []
    before = _gpu_calls.matmuls(True)
    monkeypatch.setattr(_gpu_calls, "matmuls", lambda interpret: lambda *given, tile: calls.append(given) or before(*given, tile=tile))
    x, w, v, bias = torch.randn(rows, steps), torch.randn(steps, columns), torch.randn(columns, steps), torch.randn(columns)
    assert_alike(interpreted(lambda x, w: torch.relu(x @ w))(x, w), torch.relu(x @ w))
    assert_alike(interpreted(lambda x, v, b: functional.linear(x, v, b).sin())(x, v, bias), functional.linear(x, v, bias).sin())
    a, b = torch.randn(3, rows, steps), torch.randn(3, steps, columns)
    assert_alike(interpreted(lambda a, b: torch.bmm(a, b) + 1)(a, b), torch.bmm(a, b) + 1)
    assert len(calls) == 3 and all(before(*given) is not None for given in calls)
    model = torch.nn.Sequential(torch.nn.Linear(steps, columns), torch.nn.GELU(), torch.nn.Linear(columns, 16))
    assert_trains_alike(model, x)


def test_matmuls_whose_operands_vectors_cannot_read_are_torchs():
    whole = torch.randn(64, 67)
    x, w = whole[:, 1:65], torch.randn(64, 64)
    assert _native.GpuMatmul(interpret=True)(x, w) is None
    assert_alike(interpreted(lambda x, w: torch.relu(x @ w))(x, w), torch.relu(x @ w))
    assert _native.GpuMatmul(interpret=True)(w.double(), w.double()) is None
    assert _native.GpuMatmul(interpret=True)(w, w.to(torch.bfloat16)) is None


def test_the_bias_of_a_large_matmul_is_added_by_the_kernel_that_reads_it(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(_gpu_calls, "_library_matmul", lambda *sizes: 0.0)
    linear = torch.nn.Linear(1024, 64)
    x = torch.randn(600, 1024)
    with torch.no_grad(), aot.observed() as regions:
        have = interpreted(lambda x: linear(x).relu())(x)
    assert {each.name for each in regions[0].opaque} == {"aten.mm.default"}
    torch.testing.assert_close(have, linear(x).relu(), rtol=1e-4, atol=1e-5)


def own_calls(monkeypatch):
    """What is asked of Pyrite's kernels from now on, and whether they computed it."""
    calls = []

    class Seen:
        def __init__(self, kernels):
            self.kernels = kernels

        def note(self, result):
            calls.append(None if result is None else result.shape)
            return result

        def __call__(self, *given, **named):
            return self.note(self.kernels(*given, **named))

        def convolve(self, *given, **named):
            return self.note(self.kernels.convolve(*given, **named))

    for name in ("matmuls", "attentions"):
        seen = Seen(getattr(_gpu_calls, name)(True))
        monkeypatch.setattr(_gpu_calls, name, lambda interpret, seen=seen: seen)
    return calls


@pytest.mark.parametrize("bias", [False, True])
def test_the_parts_of_a_matmul_are_added_up_by_the_kernel_that_reads_them(bias, monkeypatch):
    torch.manual_seed(0)
    calls = own_calls(monkeypatch)
    linear = torch.nn.Linear(512, 32, bias=bias)
    x, y = torch.randn(48, 512), torch.randn(48, 32)
    with torch.no_grad(), aot.observed() as regions:
        have = interpreted(lambda x, y: functional.layer_norm(linear(x) + y, (32,)))(x, y)
    ((parts, rows, columns),) = calls
    assert parts > 1 and (rows, columns) == (48, 32)
    assert {each.name for each in regions[0].opaque} <= {"aten.mm.default", "aten.addmm.default"}
    torch.testing.assert_close(have, functional.layer_norm(linear(x) + y, (32,)), rtol=1e-4, atol=1e-5)
    model = torch.nn.Sequential(torch.nn.Linear(512, 32, bias=bias), torch.nn.GELU(), torch.nn.Linear(32, 16))
    assert_trains_alike(model, x)


CONVOLUTIONS = [
    # images, channels made, window, stride, padding, bias
    ((2, 32, 8, 8), 32, (3, 3), (1, 1), (1, 1), False),
    ((2, 16, 7, 12), 20, (3, 3), (2, 2), (1, 1), True),
    ((1, 64, 8, 8), 48, (1, 1), (2, 2), (0, 0), False),
    ((2, 3, 32, 32), 24, (8, 8), (8, 8), (0, 0), True),
    ((1, 16, 8, 7), 16, (2, 4), (1, 1), (0, 2), False),
]


def tf32_in_convolutions(allowed):
    """Other tests may have frozen the flag, for good but for this way."""
    return torch.backends.cudnn.flags(enabled=torch.backends.cudnn.enabled, allow_tf32=allowed)


@pytest.mark.parametrize(("shape", "made", "window", "stride", "padding", "bias"), CONVOLUTIONS)
def test_convolutions_are_pyrites_and_right(shape, made, window, stride, padding, bias, monkeypatch):
    torch.manual_seed(0)
    calls = own_calls(monkeypatch)
    model = torch.nn.Conv2d(shape[1], made, window, stride, padding, bias=bias)
    x = torch.randn(shape)
    with torch.no_grad(), tf32_in_convolutions(False), aot.observed() as regions:
        have = interpreted(lambda x: model(x).relu())(x)
        want = model(x).relu()
    assert len(calls) == 1 and calls[0][1:] == want.shape
    assert {each.name for each in regions[0].opaque} == {"aten.convolution.default"}
    torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)


def test_convolutions_that_pyrites_kernel_cannot_have_are_torchs(monkeypatch):
    calls = own_calls(monkeypatch)
    x = torch.randn(2, 16, 8, 8)
    for model in (
        torch.nn.Conv2d(16, 16, 3, groups=2, padding=1),
        torch.nn.Conv2d(16, 16, 3, dilation=2, padding=2),
        torch.nn.ConvTranspose2d(16, 16, 3),
        torch.nn.Conv2d(16, 16, 3, padding=1, padding_mode="circular"),
    ):
        with torch.no_grad(), tf32_in_convolutions(False):
            torch.testing.assert_close(interpreted(lambda x, model=model: model(x).relu())(x), model(x).relu(), rtol=1e-4, atol=1e-5)
    model = torch.nn.Conv2d(16, 16, 3, padding=1)
    with torch.no_grad(), tf32_in_convolutions(True):
        torch.testing.assert_close(interpreted(lambda x: model(x).relu())(x), model(x).relu(), rtol=1e-4, atol=1e-5)
    with torch.no_grad(), tf32_in_convolutions(False):
        other = x.to(memory_format=torch.channels_last)
        torch.testing.assert_close(interpreted(lambda x: model(x).relu())(other), model(other).relu(), rtol=1e-4, atol=1e-5)
    # Kernels were asked for the convolution of padded images alone.
    assert len(calls) == 1


def test_a_convolution_whose_operands_do_not_lie_as_the_kernel_wants_is_torchs_in_parts(monkeypatch):
    x, w = torch.randn(2, 16, 8, 8).transpose(2, 3), torch.randn(8, 16, 3, 3)
    assert _gpu_calls.matmuls(True).convolve(x, w, stride=(1, 1), padding=(1, 1), parts=4) is None
    parts = _gpu_calls.split_convolution(x, w, (1, 1), (1, 1), 4, 0)
    assert parts.shape == (4, 2, 8, 8, 8)
    torch.testing.assert_close(parts.sum(0), functional.conv2d(x, w, None, 1, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(("batch", "heads", "queries", "keys", "size"), [(2, 2, 33, 33, 32), (1, 3, 7, 70, 64), (1, 1, 20, 20, 80)])
def test_attention_is_pyrites_and_right(causal, masked, batch, heads, queries, keys, size, monkeypatch):
    torch.manual_seed(0)
    calls = own_calls(monkeypatch)
    q, k, v = (torch.randn(batch, count, heads, size).transpose(1, 2) for count in (queries, keys, keys))
    mask = torch.randn(batch, 1, queries, keys).masked_fill(torch.rand(batch, 1, queries, keys) < 0.2, float("-inf")) if masked else None

    def program(q, k, v, mask=None):
        return functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal) * 2

    given = (q, k, v, mask) if masked else (q, k, v)
    with torch.no_grad():
        have, want = interpreted(program)(*given), program(*(each.double() for each in given))
    assert calls == [want.shape]
    torch.testing.assert_close(have.double(), want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_whose_tensors_vectors_cannot_read_is_torchs(masked, monkeypatch):
    torch.manual_seed(0)
    calls = own_calls(monkeypatch)
    x = torch.randn(1, 2, 9, 35)[..., 1:33]
    mask = torch.randn(1, 1, 9, 9)

    def program(x, mask):
        return functional.scaled_dot_product_attention(x, x, x, mask if masked else None, scale=0.5) * 2

    with torch.no_grad():
        torch.testing.assert_close(interpreted(program)(x, mask), program(x, mask), rtol=1e-4, atol=1e-5)
    assert calls == [None]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("joined", [False, True])
def test_attention_that_torch_writes_out_is_one_kernel(masked, joined, monkeypatch):
    torch.manual_seed(0)
    calls = own_calls(monkeypatch)
    x, w = torch.randn(2, 18, 64), torch.randn(192, 64) / 8
    mask = torch.rand(2, 1, 18, 18) < 0.7
    mask[0, 0, 3] = False

    def program(x, w, mask):
        q, k, v = (each.view(2, 18, 2, 32).transpose(1, 2) for each in functional.linear(x, w).split(64, -1))
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask if masked else None)
        return (out.transpose(1, 2).reshape(2, 18, 64) if joined else out) * 2

    with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), aot.observed() as regions:
        have, want = interpreted(program)(x, w, mask), program(x.double(), w.double(), mask)
    assert calls[1:] == [(2, 2, 18, 32)]
    assert "aten.bmm.default" not in {each.name for each in regions[0].opaque}
    torch.testing.assert_close(have.double(), want, rtol=1e-5, atol=2e-5)
    # What the backward half reads of it is computed as before.
    monkeypatch.undo()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        leaves = [each.clone().requires_grad_() for each in (x, w)]
        interpreted(program)(*leaves, mask).square().sum().backward()
        others = [each.double().requires_grad_() for each in (x, w)]
        program(*others, mask).square().sum().backward()
    for one, other in zip(leaves, others):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-4)


def test_long_rows_that_cannot_be_split_are_torchs_to_reduce():
    x, prime = torch.randn(2, 1 << 17), torch.randn(131101)
    with aot.observed() as regions:
        have = interpreted(lambda x, prime: (x.sum(-1) * 2, x.mean(), prime.amax()))(x, prime)
    assert_alike(have, (x.sum(-1) * 2, x.mean(), prime.amax()))
    assert {each.name for each in regions[0].opaque} == {"aten.sum.dim_IntList", "aten.amax.default"}


def test_symbolic_sizes_are_arguments_of_one_segment():
    function = interpreted(lambda x: torch.softmax(x, -1) * x.shape[0] + x.mean(), dynamic=True)
    with aot.observed() as regions:
        for rows, columns in ((3, 70), (4, 64), (9, 129), (2, 1030)):
            x = torch.randn(rows, columns)
            assert_alike(function(x), torch.softmax(x, -1) * x.shape[0] + x.mean())
    assert len(regions) == 1


def test_views_and_inputs_that_lie_otherwise_are_read_where_they_are():
    def program(x):
        return x[::2, 3:] * 2, x.t().exp(), x.reshape(4, 3, 40).sum(1), x.t()

    for given in (torch.randn(12, 40), torch.randn(40, 12).t(), torch.randn(24, 80)[::2, ::2], torch.randn(40).expand(12, 40)):
        assert_alike(interpreted(program)(given), program(given))


def test_results_that_are_parts_of_what_is_computed_leave_room_for_all_of_it():
    def program(x):
        y, z, w = x.exp() + 1, x.sin() * 2, x.cos() * 3
        return y[:, 0], z[:2], w[1:, ::3], y.t(), (x * 5).view(-1)[7:]

    x = torch.randn(6, 1000)
    assert_alike(interpreted(program)(x), program(x))


def test_an_index_out_of_bounds_is_an_index_error_that_names_the_node():
    table = torch.randn(10, 4)
    function = interpreted(lambda table, index: functional.embedding(index, table) + 1)
    assert_alike(function(table, torch.tensor([1, 9])), table[[1, 9]] + 1)
    with pytest.raises(IndexError, match="out of bounds in embedding_add: 10, where there are 10 elements"):
        function(table, torch.tensor([1, 10]))
    assert_alike(function(table, torch.tensor([2, 3])), table[[2, 3]] + 1)


def test_what_is_no_loop_is_told_by_its_operators():
    text = """
class Segment(torch.nn.Module):
    def forward(self, x: "f32[4, 4][4, 1]cpu"):
        a = torch.ops.aten.mm.default(x, x)
        b = torch.ops.aten.relu.default(a)
        return (b, )
"""
    with pytest.raises(_native.CompileError, match="aten.mm.default at mm") as raised:
        _native.compile_gpu(_native.Graph.from_text(text), interpret=True)
    assert raised.value.operators == ["aten.mm.default"]


def test_a_segment_refuses_tensors_of_other_sizes_and_other_counts():
    text = """
class Segment(torch.nn.Module):
    def forward(self, x: "f32[4, 4][4, 1]cpu"):
        b = torch.ops.aten.relu.default(x)
        return (b, )
"""
    segment = _native.compile_gpu(_native.Graph.from_text(text), interpret=True)
    assert segment.kernels == ["relu"] or len(segment.kernels) == 1
    assert ".entry" in segment.ptx
    assert_alike(segment(torch.full((4, 4), -1.0)), [torch.zeros(4, 4)])
    assert_alike(segment(torch.arange(16.0).view(4, 4).t() - 5), [torch.relu(torch.arange(16.0).view(4, 4).t() - 5).contiguous()])
    with pytest.raises(ValueError, match="compiled for"):
        segment(torch.ones(4, 5))
    with pytest.raises(ValueError, match="compiled for"):
        segment(torch.ones(4, 4, dtype=torch.float64))
    with pytest.raises(TypeError, match="1 arguments"):
        segment()


UNARY = [torch.sin, torch.tanh, torch.relu, torch.exp, functional.gelu, torch.sigmoid, lambda x: torch.softmax(x, -1), lambda x: x - x.mean(-1, keepdim=True)]
BINARY = [torch.add, torch.mul, torch.maximum, lambda x, y: x @ y.transpose(-1, -2) @ y * 0.01, lambda x, y: torch.where(x > y, x, y * 0.5)]


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_train_alike(seed):
    choose = random.Random(seed)
    steps = [(choose.choice(UNARY), choose.choice(BINARY), choose.random()) for _ in range(choose.randint(3, 7))]
    torch.manual_seed(seed)
    x, y = torch.randn(6, choose.choice([64, 33, 128])), None
    y = torch.randn_like(x)

    def program(x, y):
        for unary, binary, odds in steps:
            x = unary(binary(x, y) if odds < 0.5 else x) * 0.5
            y = binary(y, x) if odds > 0.7 else y
        return x, y.sum(-1)

    inputs = [(x.clone().requires_grad_(), y.clone().requires_grad_()) for _ in range(2)]
    have, want = interpreted(program)(*inputs[0]), program(*inputs[1])
    assert_alike(have, want)
    for one, given in ((have, inputs[0]), (want, inputs[1])):
        sum(each.sum() for each in one).backward()
    for one, two in zip(*inputs):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-3, atol=1e-4)


# Recorded calls, with a graph that runs its function again into the memory of the recording.


class FakeGraph:
    """A fake CUDA graph: a replay computes again and writes where the recording has its results."""

    def capture_begin(self, capture_error_mode):
        self.mode = capture_error_mode

    def capture_end(self):
        pass

    def replay(self):
        with torch.no_grad():
            results = self.function(list(self.given))
            for old, new in zip(self.results, results):
                if isinstance(old, torch.Tensor) and old.data_ptr() not in {each.data_ptr() for each in self.given}:
                    old.copy_(new)


@pytest.fixture
def recorder(monkeypatch):
    """Makes recorders of functions of lists on the CPU."""
    graphs = []

    class Stream:
        def wait_stream(self, other):
            pass

    def make_graph():
        graphs.append(FakeGraph())
        return graphs[-1]

    monkeypatch.setattr(torch.cuda, "CUDAGraph", make_graph)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    def make(function, half, fixed, seen, symbolic=(), written=()):
        def run(arguments):
            given = list(arguments)
            arguments.clear()
            if not graphs or hasattr(graphs[-1], "function"):
                return function(given)
            # What is recorded is not carried out.
            before = [each.detach().clone() for each in given]
            results = function(given)
            with torch.no_grad():
                for each, value in zip(given, before):
                    each.copy_(value)
            graphs[-1].function, graphs[-1].given, graphs[-1].results = function, given, results
            return results

        return _graphs.Recorder(run, half, frozenset(fixed), list(symbolic), seen, None, [], written)

    make.graphs = graphs
    return make


def test_results_that_the_caller_keeps_are_never_overwritten(recorder):
    weight = torch.randn(4)
    record = recorder(lambda given: [given[0] * given[1], given[0].sum()], "inference", {1}, None)
    kept = []
    for step in range(8):
        x = torch.full((4,), float(step))
        kept.append((record([x, weight]), x))
    assert record.replays == 6 and len(recorder.graphs) == 1
    for (product, total), x in kept:
        assert_alike([product, total], [x * weight, x.sum()])


def test_what_backward_still_holds_is_not_overwritten(recorder):
    record = recorder(lambda given: [given[0].sum(), given[0] * 2], "forward", set(), 1)
    results = [record([torch.full((3,), float(step))]) for step in range(8)]
    for step, (total, saved) in enumerate(results):
        assert_alike([total, saved], [torch.tensor(3.0 * step), torch.full((3,), 2.0 * step)])
    assert record.replays == 2, "recorded calls find the results of others in use, and the third one to do so is recorded as well"
    del results, total, saved
    for step in range(4):
        total, saved = record([torch.full((3,), float(step))])
        assert_alike([total, saved], [torch.tensor(3.0 * step), torch.full((3,), 2.0 * step)])
        del total, saved
    assert record.replays == 6 and len(recorder.graphs) == 2


@pytest.mark.parametrize("half", ["forward", "backward"])
def test_results_that_are_kept_from_call_to_call_are_not_overwritten(recorder, half):
    """As gradients are that are accumulated, and what saves for a backward half that is yet to come."""
    seen = 0 if half == "backward" else 1
    record = recorder(lambda given: [given[0].sum(), given[0] * 2, given[0] + 1], half, set(), seen)
    kept = []
    for step in range(30):
        _, twice, more = record([torch.full((3,), float(step))])
        kept = [*kept[-1:], (step, twice, more)]
        for number, saved, other in kept:
            assert_alike([saved, other], [torch.full((3,), 2.0 * number), torch.full((3,), number + 1.0)])
        del twice, more, saved, other
    assert record.replays > 15 and len(recorder.graphs) == 2
    # A view holds its memory as well.
    view = kept[0][1][1:]
    kept.clear()
    for step in range(6):
        record([torch.full((3,), float(step))])
    assert_alike(view, torch.full((2,), 56.0))


def test_parameters_that_a_backward_half_reads_are_handed_on_as_they_came(recorder):
    weight = torch.nn.Parameter(torch.randn(4, 3))
    record = recorder(lambda given: [given[0] @ given[1], given[1], given[1].t()], "forward", {1}, 1)
    for step in range(5):
        x = torch.full((2, 4), float(step))
        with torch.no_grad():
            out, same, transposed = record([x, weight])
            assert_alike([out, transposed], [x @ weight, weight.t()])
        assert same is weight and transposed.data_ptr() == weight.data_ptr()
        del out, same, transposed
    assert record.replays == 3


def test_what_is_written_to_an_input_that_was_copied_is_copied_back(recorder):
    def program(given):
        total = given[0] + given[1]
        given[0].copy_(total)
        given[1].copy_(given[1] + 1)
        return [total * 2]

    buffer = torch.zeros(3)
    record = recorder(program, "inference", {1}, None, written={0, 1})
    for step in range(6):
        x = torch.full((3,), 10.0 * step)
        (twice,) = record([x, buffer])
        assert_alike([twice, x, buffer], [torch.full((3,), 22.0 * step), torch.full((3,), 11.0 * step), torch.full((3,), step + 1.0)])
    assert record.replays == 4


def test_where_tensors_lie_is_asked_of_all_at_once():
    whole, other, table = torch.randn(8, 8), torch.randn(8), torch.randn(5).expand(3, 5)
    arguments = [whole, 3, other, None]
    places = _native.Places(arguments, [0, 2])
    assert places.hold([whole, 4, other, None]) and places.hold([whole.view(-1), 4, other[:3], None])
    assert not places.hold([whole[1:], 4, other, None]) and not places.hold([whole, 4, other[1:], None])
    assert _native.lie_apart((whole, other, 3, 2.0, None, True), [0])
    assert _native.lie_apart((whole, torch.nn.Parameter(other), torch.empty(0)), [])
    assert not _native.lie_apart((whole, whole[2:]), []), "they overlap"
    assert not _native.lie_apart((whole[:2], whole[4:]), []), "they share a storage"
    assert _native.lie_apart((whole, table), [0]) and not _native.lie_apart((whole, table), [1])
    assert not _native.lie_apart((whole, "a word"), [])
    assert not _native.lie_apart((whole, torch.eye(3).to_sparse()), [])


def test_what_a_model_writes_to_its_buffers_is_a_part_of_the_program():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))
    other = copy.deepcopy(model)
    with aot.observed() as regions:
        run = interpreted(model)
        for step in range(3):
            x = torch.randn(2, 3, 8, 8)
            have, want = run(x), other(x)
            assert_alike(have, want)
            have.square().sum().backward(), want.square().sum().backward()
            for one, two in zip(model.buffers(), other.buffers()):
                torch.testing.assert_close(one, two)
                assert one._version >= step + 1
    assert not any("copy" in each.name for region in regions for each in region.opaque)


class Tied(torch.nn.Module):
    """Halves and single precision in one model: what autocast leaves of an embedding, norms, a recurrence and a loss."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.table, self.recurrent, self.norm = nn.Embedding(20, 16), nn.GRU(16, 16, batch_first=True), nn.BatchNorm1d(16)
        self.rows, self.instance, self.out = nn.LayerNorm(16), nn.InstanceNorm1d(16, affine=True), nn.Linear(16, 20, bias=False)

    def forward(self, tokens):
        x = self.table(tokens)
        x = self.rows(self.recurrent(x)[0] @ self.out.weight.t() @ self.out.weight * 0.1)
        x = self.instance(self.norm(functional.linear(x, self.out.weight[:16]).transpose(1, 2)))
        return self.out(torch.nn.functional.dropout(x.transpose(1, 2), 0.1, self.training)).float().log_softmax(-1)


AUTOCAST = {
    "images": (lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)), (4, 3, 8, 8)),
    "layers": (lambda: torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32), torch.nn.GELU(), torch.nn.LayerNorm(32)), (8, 32)),
    "attention": (lambda: torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), (2, 5, 32)),
    "tied": (Tied, None),
}


@pytest.mark.parametrize("options", [OPTIONS, {"strict": True}], ids=["gpu", "cpu"])
@pytest.mark.parametrize("name", AUTOCAST)
def test_models_train_under_autocast_as_in_eager(name, options):
    torch.manual_seed(0)
    make, shape = AUTOCAST[name]
    model = make()
    other = copy.deepcopy(model)
    torch._dynamo.reset()
    run = torch.compile(model, backend="pyrite", options=options)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (model, other)]
    for step in range(2):
        torch.manual_seed(step)
        x = torch.randint(0, 20, (3, 6)) if shape is None else torch.randn(shape)
        outputs = []
        for each, optimizer in ((run, optimizers[0]), (other, optimizers[1])):
            torch.manual_seed(step)
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                outputs.append(each(x))
            outputs[-1].float().square().mean().backward()
            optimizer.step()
        assert outputs[0].dtype == outputs[1].dtype
        torch.testing.assert_close(outputs[0].float(), outputs[1].float(), rtol=4e-2, atol=4e-2)
    for one, two in (*zip(model.parameters(), other.parameters()), *zip(model.buffers(), other.buffers())):
        torch.testing.assert_close(one, two, rtol=1e-2, atol=1e-2)


WRITES = {
    "adds": lambda x, y: (x.add_(1), x * 2)[1],
    "returns what it wrote": lambda x, y: x.mul_(y),
    "returns a view of it": lambda x, y: x.mul_(2).t(),
    "writes one input to another": lambda x, y: (x.copy_(y), y.sin())[1],
    "turns an input": lambda x, y: (x.copy_(x.t().clone()), x + y)[1],
    "writes a view": lambda x, y: (x.copy_(y.t()), y.exp_())[1].sum(),
    "exchanges": lambda x, y: [x, y, (z := x.clone(), x.copy_(y), y.copy_(z))[0].sum()][2],
    "writes a part": lambda x, y: (x[1:3].zero_(), x[:, 0].fill_(5.0), x @ y)[2],
    "reads before and after": lambda x, y: [(a := x @ y), x.add_(a), x @ y + a][2],
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_to_inputs_is_what_eager_writes(name):
    torch.manual_seed(0)
    run = interpreted(WRITES[name])
    for _ in range(3):
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        given, wanted = (x.clone(), y.clone()), (x, y)
        assert_alike(run(*given), WRITES[name](*wanted))
        assert_alike(given, wanted)


def test_a_parameter_that_moves_is_recorded_anew(recorder):
    record = recorder(lambda given: [given[0] + given[1]], "inference", {1}, None)
    first, second = torch.ones(2), torch.full((2,), 5.0)
    for _ in range(4):
        record([torch.zeros(2), first])
    assert record.replays == 2
    for _ in range(5):
        assert_alike(record([torch.zeros(2), second]), [second])
    assert len(recorder.graphs) == 2 and record.replays == 6


def test_other_sizes_are_other_recordings_and_a_refusal_is_final(recorder):
    record = recorder(lambda given: [given[0] * 2], "inference", set(), None, symbolic=[0])
    for size in (2, 3, 2, 3, 2, 3, 2, 3):
        x = torch.randn(size)
        assert_alike(record([x]), [x * 2])
    assert len(recorder.graphs) == 2 and record.replays == 4

    def refuses(given):
        if recorder.graphs and not hasattr(recorder.graphs[-1], "function"):
            raise RuntimeError("operation not permitted when stream is capturing")
        return [given[0]]

    record = recorder(refuses, "inference", set(), None)
    for _ in range(3):
        with contextlib.suppress(RuntimeError):
            record([torch.ones(1)])
    assert record.is_refused and record.replays == 0


def test_a_capture_that_fails_is_followed_by_one_that_ends_well(recorder, monkeypatch):
    seen = []

    def begin(graph, capture_error_mode):
        seen.append(f"begin {recorder.graphs.index(graph)}")

    def end(graph):
        seen.append(f"end {recorder.graphs.index(graph)}")
        if graph is recorder.graphs[0]:
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(FakeGraph, "capture_begin", begin)
    monkeypatch.setattr(FakeGraph, "capture_end", end)
    record = recorder(lambda given: [given[0] * 2], "inference", set(), None)
    for step in range(6):
        x = torch.full((4,), float(step))
        assert_alike(record([x]), [x * 2])
    assert record.is_refused and record.replays == 0
    # Torch's generator leaves a capture only where one ends without an error.
    assert seen == ["begin 0", "end 0", "end 0", "begin 1", "end 1"]


# What is on a GPU has other types than on the CPU in places: torch's fake tensors say so on any machine.

aten = torch.ops.aten
HALVES_ON_GPUS = {
    "layer norm": lambda x, w: aten.native_layer_norm(x, [16], w, w, 1e-5),
    "layer norm, plain": lambda x, w: aten.native_layer_norm(x, [16], None, None, 1e-5),
    "layer norm, backward": lambda x, w: aten.native_layer_norm_backward(
        x, x, [16], x.float().mean(-1, keepdim=True), x.float().mean(-1, keepdim=True), w, w, [True, True, True]
    ),
    "batch norm": lambda x, w: aten._native_batch_norm_legit.no_stats(x.mT, w, w, True, 0.1, 1e-5),
    "batch norm, running": lambda x, w: aten._native_batch_norm_legit_functional(x.mT, w, w, w, w, True, 0.1, 1e-5),
    "batch norm, backward": lambda x, w: aten.native_batch_norm_backward(
        x.mT, x.mT, w, w, w, w.float(), w.float(), True, 1e-5, [True, True, True]
    ),
    "group norm": lambda x, w: aten.native_group_norm(x.mT, w, w, 4, 16, 8, 4, 1e-5),
    "softmax": lambda x, w: aten._softmax(x, -1, False),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("name", HALVES_ON_GPUS)
def test_a_segment_for_a_gpu_has_the_types_that_torch_has_there(name, dtype, monkeypatch):
    native = _native.compile_gpu
    monkeypatch.setattr(_native, "compile_gpu", lambda graph, options, interpret: native(graph, options, interpret=True))

    def compiler(module, examples):
        aot.compile_region(module, examples, aot.Settings(strict=True, graphs=False))
        return module.forward

    torch._dynamo.reset()
    with torch._subclasses.FakeTensorMode(), torch.no_grad(), aot.observed() as regions:
        x, w = torch.empty(4, 8, 16, dtype=dtype, device="cuda"), torch.empty(16, dtype=dtype, device="cuda")
        results = torch.compile(HALVES_ON_GPUS[name], backend=compiler)(x, w)
    assert all(each.device.type == "cuda" for each in torch.utils._pytree.tree_leaves(results))
    assert [(region.segments, region.opaque, region.is_eager) for region in regions] == [(1, [], False)]
