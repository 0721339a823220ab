"""Functions that no operator stands for: single nodes of a graph, which torch runs between what a backend compiles."""

import subprocess
import sys

import pytest
import torch
from capture import harness

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")
package = pytest.importorskip("pyrite")

CALLS = []


@package.allow_in_graph
def opaque(x, factor=2.0):
    CALLS.append(x.device.type)
    return x.sin() * factor, x.cos()


def user(x):
    sine, cosine = opaque(x + 1, factor=3.0)
    return (sine * cosine).relu() + torch.linalg.vector_norm(x)


@pytest.fixture
def graphs():
    """The graphs that a backend of its own sees, which runs them with torch."""
    package.reset()
    CALLS.clear()
    return []


def seen_by(graphs):
    def backend(graph, inputs):
        graphs.append(graph)
        return package.backends.lookup("eager")(graph, inputs)

    return backend


def test_an_allowed_function_is_one_node_and_is_not_followed(graphs):
    x = torch.randn(3)
    found = package.compile(user, backend=seen_by(graphs))(x)
    assert CALLS == ["meta", "cpu"]
    assert torch.equal(found, user(x))
    (graph,) = graphs
    assert graph.opaque_ops == [f"{__name__}.opaque"]
    assert "sin" not in graph.code.replace("opaque", "") and "factor = 3.0" in graph.code


def test_two_allowed_functions_of_one_name_stay_apart(graphs):
    def make(amount):
        @package.allow_in_graph
        def shifted(x):
            return x + amount

        return shifted

    one, two = make(1), make(2)
    x = torch.zeros(2)
    called = package.compile(lambda function, x: function(x) * 10, backend="eager")
    assert [called(function, x).tolist() for function in (one, two)] == [[10.0, 10.0], [20.0, 20.0]]
    assert package.compile(lambda x: one(x) * 10 + two(x), backend=seen_by(graphs))(x).tolist() == [12.0, 12.0]
    assert len(graphs[0].opaque_ops) == 2


def test_what_an_allowed_function_gives_has_to_be_tensors(graphs):
    @package.allow_in_graph
    def described(x):
        return str(x)

    found = package.explain(lambda x: (described(x * 2), x + 1))(torch.ones(2))
    assert "it returns a value that is not a tensor" in found.break_reasons[0].reason


@pytest.mark.parametrize("backend", ["eager", "native", "aot_eager"])
def test_gradients_flow_through_compiled_parts_and_opaque_calls(graphs, backend):
    grads = []
    for function in (user, package.compile(user, backend=backend)):
        x = torch.linspace(0, 1, 5).requires_grad_()
        y = function(x)
        y.sum().backward()
        grads += [y.detach(), x.grad]
    torch.testing.assert_close(grads[:2], grads[2:])


def test_a_backend_compiles_what_lies_between_opaque_calls():
    captured = []
    package.reset()
    package.compile(user, backend=seen_by(captured))(torch.randn(3))
    program = package._native.compile_mixed(captured[0], "native", None, (torch.randn(3),))
    assert program.parts == (2, 1)


def test_a_graph_that_writes_is_left_to_torch_as_a_whole():
    def writes(x):
        y = x.clone()
        y += opaque(y)[0]
        return y * 2

    x = torch.randn(3)
    torch.testing.assert_close(package.compile(writes)(x), writes(x))


@pytest.fixture(scope="module")
def custom():
    library = torch.library.Library("capture_tests", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    library.impl("twice", torch.empty_like, "Meta")
    yield torch.ops.capture_tests.twice
    library._destroy()


def test_a_custom_operator_is_part_of_the_graph(graphs, custom):
    x = torch.randn(3)
    found = package.compile(lambda x: custom(x + 1) * 3, backend=seen_by(graphs))(x)
    assert torch.equal(found, (x + 1) * 2 * 3)
    assert "torch.ops.capture_tests.twice" in graphs[0].code


def test_an_operator_with_a_fake_implementation_is_part_of_the_graph(graphs):
    @torch.library.custom_op("capture_tests_fake::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @thrice.register_fake
    def _(x):
        return torch.empty_like(x)

    x = torch.randn(3)
    found = package.compile(lambda x: thrice(x + 1) - 1, backend=seen_by(graphs))(x)
    assert torch.equal(found, (x + 1) * 3 - 1)
    assert len(graphs) == 1 and "capture_tests_fake.thrice" in graphs[0].code


def test_a_function_of_torch_that_has_effects_is_not_called_to_describe_it(tmp_path):
    def saves(x):
        y = x * 2
        torch.save(y, tmp_path / "y.pt")
        return y + 1

    x = torch.randn(3)
    assert torch.equal(package.compile(saves, backend="eager")(x), x * 2 + 1)
    assert torch.equal(torch.load(tmp_path / "y.pt"), x * 2)


PROGRAM = """
import sys, torch, pyrite
model = torch.nn.LSTM(4, 3)
pyrite.compile(model, backend="native")(torch.randn(2, 5, 4))
pyrite.compile(lambda x: torch.fft.rfft(x * 2), backend="eager")(torch.randn(4))
assert "torch._dynamo" not in sys.modules
"""


def test_functions_of_torch_are_described_without_its_own_capture():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


FRESH = """
import sys
import torch
import pyrite
from torch.utils.checkpoint import checkpoint

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

functions = [
    Square.apply,
    lambda x: torch.vmap(lambda y: y * y + 1)(x),
    lambda x: torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y / 3, (x,)),
    lambda x: checkpoint(lambda y: (y * y).sin(), x, use_reentrant=False),
]
assert "torch._dynamo" not in sys.modules
for function in functions:
    def called(x):
        return function(x)
    told = pyrite.explain(called)(torch.ones(2, 3, requires_grad=True))
    assert told.graph_break_count == 0 and told.graph_count == 1, told
told = pyrite.explain(lambda x: torch.func.grad(lambda y: (y * y).sum())(x))(torch.ones(3))
assert told.graph_break_count == 0 and told.graph_count == 1, told
# Functions that waited for it are decorated by torch as always.
import torch._dynamo
assert torch.equal(torch.compile(lambda x: torch._refs.mul(x, x), backend="eager")(torch.ones(2)), torch.ones(2))
"""


def test_nested_graphs_are_captured_before_torchs_own_capture_is_imported():
    subprocess.run([sys.executable, "-c", FRESH], check=True, timeout=120)
