"""Floats that change from call to call: one more program serves them all, and results are as with constants."""

import math
import types

import pyrite
import pytest
import torch
from capture import harness
from torch._dynamo.testing import CompileCounter

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")

VALUES = [0.5, 0.25, -3.0, 1e-8, 1e300]


@pytest.fixture
def compiler():
    compiler = harness.Pyrite()
    compiler.reset()
    return compiler


def graphs_for(compiler, function, tensor, values=VALUES):
    compiled = compiler.compile(function)
    for value in values:
        torch.testing.assert_close(compiled(tensor, value), function(tensor, value), rtol=0, atol=0, equal_nan=True)
    return compiler.compilations()


def scaled(x, f):
    return (x - f) * f + x.div(f)


def computed(x, f):
    return x * (1.0 / f * 2) - (f + 1)


def compared(x, f):
    return torch.where(x < f, x, -x) if f != 0.125 else x


def written(x, f):
    y = x.clone()
    y *= f
    return y.add_(f)


def stepped_over(x, f):
    y = x * f
    print(end="")
    return y + f


@pytest.mark.parametrize("function", [scaled, computed, compared, written])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_float_argument_compiles_twice_and_no_more(compiler, function, dtype):
    assert graphs_for(compiler, function, torch.randn(4, dtype=dtype)) == 2


@pytest.mark.parametrize("tensor", [torch.arange(4), torch.tensor([True, False]), torch.tensor(1.5), torch.tensor(3)])
def test_a_float_is_promoted_as_a_number_and_not_as_a_tensor(compiler, tensor):
    assert graphs_for(compiler, lambda x, f: x * f, tensor) == 2


def test_a_float_that_lives_over_a_break_stays_an_input(compiler):
    assert graphs_for(compiler, stepped_over, torch.randn(4)) == 4


def test_what_takes_only_a_constant_compiles_again_and_names_the_number(compiler):
    assert graphs_for(compiler, lambda x, f: x.abs().pow(f), torch.randn(4)) == len(VALUES)


def test_several_floats_become_inputs_together(compiler):
    def between(x, low, high):
        return (x - low) / (high - low)

    compiled = compiler.compile(between)
    x = torch.randn(3)
    for low, high in [(0.0, 1.0), (0.5, 2.5), (0.25, 7.5)]:
        assert torch.equal(compiled(x, low, high), between(x, low, high))
    assert compiler.compilations() == 2


def test_an_outcome_of_a_comparison_is_guarded_and_not_the_number(compiler):
    def branch(x, f):
        return x * f if f < 1.0 else x + f

    compiled = compiler.compile(branch)
    x = torch.randn(3)
    for f in [0.1, 0.2, 0.3, 5.0, 6.0, float("nan"), 0.4]:
        assert torch.equal(compiled(x, f).nan_to_num(), branch(x, f).nan_to_num())
    assert compiler.compilations() == 3


def test_gradients_flow_past_a_float_that_changes():
    pyrite = pytest.importorskip("pyrite")
    compiled = pyrite.compile(scaled)
    for f in VALUES[:4]:
        grads = []
        for function in (scaled, compiled):
            x = torch.linspace(0, 1, 4).requires_grad_()
            function(x, f).sum().backward()
            grads.append(x.grad)
        torch.testing.assert_close(*grads)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 + self.calls


class Steps:
    count = 0


STEPS = Steps()
TOTAL = 5


def counted(x):
    global TOTAL
    STEPS.count += 1
    TOTAL += 2
    return x * TOTAL + STEPS.count


def test_a_counter_of_a_module_stops_compiling_again(compiler):
    module, plain = Counting(), Counting()
    compiled = compiler.compile(module)
    x = torch.randn(3)
    for _ in range(20):
        assert torch.equal(compiled(x), plain(x)) and module.calls == plain.calls
    assert compiler.compilations() <= 6


def test_counters_of_objects_and_modules_of_python_stop_compiling_again(compiler):
    global TOTAL
    compiled = compiler.compile(counted)
    x = torch.randn(3)
    for call in range(1, 20):
        total = TOTAL + 2
        assert torch.equal(compiled(x), x * total + call) and (TOTAL, STEPS.count) == (total, call)
    assert compiler.compilations() <= 6


def texts(x):
    return x * 2, str(x.shape[0]), f"{x.shape[1]:>4}", repr(tuple(x.shape))


def keys(x):
    sizes = {x.shape[0]: 1, x.shape[0] * 2: 2, x.shape: 3}
    return x * sizes[x.shape[0] * 2], x.shape[1] in {x.shape[1]}, sizes[x.shape], sorted(x.shape), round(x.shape[0])


def offsets(x):
    inner = x[1:, 2:]
    return inner + inner.storage_offset(), torch.as_strided(inner, (2, 2), (1, 1), inner.storage_offset())


@pytest.mark.parametrize("function", [texts, keys, offsets])
def test_a_symbolic_size_is_a_number_where_python_needs_one(function):
    import pyrite

    pyrite.reset()
    compiled = pyrite.compile(function, dynamic=True, fullgraph=True)
    for rows in (6, 9):
        x = torch.arange(rows * 8.0).reshape(rows, 8)
        for have, want in zip(compiled(x), function(x)):
            assert torch.equal(have, want) if isinstance(want, torch.Tensor) else have == want


def adding(n):
    return lambda x: x + n


COUNTED = {
    "zero and one": (lambda x, n: x * n, [(n,) for n in (3, 4, 5, 0, 1)]),
    "quotients": (lambda x, n: x * (n / 2) + 1 / (n + 1), [(n,) for n in (3, 4, 5)]),
    "roots": (lambda x, n: x / math.sqrt(n), [(n,) for n in (3, 4, 5)]),
    "powers": (lambda x, n: x + n**2, [(n,) for n in (3, 4, 5)]),
    "rounded": (lambda x, n: x + math.floor(n / 2) + math.ceil(n / 2) + int(n * 0.5), [(n,) for n in (3, 4, 5)]),
    "rounded to even": (lambda x, n: x + round(n / 2), [(n,) for n in (3, 4, 5, 6, 7)]),
    "broken powers": (lambda x, n: x / n**0.5 + n**-0.5 + math.pow(n, 1.5), [(n,) for n in (3, 4, 5)]),
    "functions": (lambda x, n: x * math.log(n) + math.sin(n) + math.exp(-n) + math.tanh(n / 2), [(n,) for n in (3, 4, 5)]),
    "functions of floats": (lambda x, f: x * math.sqrt(f) + math.cos(f), [(f,) for f in (1.5, 2.5, 3.5)]),
    "compared": (lambda x, n: x + 1 if n / 2 > 1 else x, [(n,) for n in (3, 4, 5)]),
    "smallest": (lambda x, n: x + min(n, 4) + max(n, 4), [(n,) for n in (3, 4, 5)]),
    "several": (lambda x, n, a: x * (a / n), [(3, 1.5), (4, 2.5), (5, 3.5)]),
    "attributes of objects": (lambda x, held: x + held.n, [(types.SimpleNamespace(n=n, other=n),) for n in (3, 4, 5)]),
    "closures": (lambda x, function: function(x), [(adding(n),) for n in (3, 4, 5)]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_numbers_that_change_compile_twice_and_no_more(compiler, name):
    function, calls = COUNTED[name]
    compiled, x = compiler.compile(function), torch.randn(4)
    for args in calls:
        torch.testing.assert_close(compiled(x, *args), function(x, *args))
    assert compiler.compilations() == 2


def test_sizes_that_change_together_compile_twice_and_no_more(compiler):
    compiled = compiler.compile(lambda x, y, n: x[:n] + y[:n] + x.shape[0])
    for size in (3, 4, 5):
        torch.testing.assert_close(compiled(torch.ones(size), torch.ones(size), size - 1), torch.ones(size - 1) * (2 + size))
    assert compiler.compilations() == 2


def into_one(x, out, _):
    return torch.add(x, 1, out=out) * 2


def into_two(x, values, places):
    torch.sort(x, out=(values, places))
    return values + places


def data_replaced(x, other, _):
    y = x + 1
    y.data = other
    return y * 2


@pytest.mark.parametrize("function", [into_one, into_two, data_replaced])
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_of_several_tensors_that_have_to_agree_do_not_break_the_graph(function, dynamic):
    pyrite.reset()
    counter = CompileCounter()
    compiled = pyrite.compile(function, backend=counter, fullgraph=True, dynamic=dynamic)
    for size in (3, 4, 5, 6):
        x = torch.randn(size)
        torch.testing.assert_close(
            compiled(x, torch.zeros(size), torch.zeros(size, dtype=torch.long)),
            function(x, torch.zeros(size), torch.zeros(size, dtype=torch.long)),
        )
    assert counter.frame_count == (1 if dynamic else 2)
