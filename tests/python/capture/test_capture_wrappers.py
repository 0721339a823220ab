"""Wrapper subclasses in graphs: what backends are given, what is guarded, which sizes share a graph, and what errors are."""

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

pyrite = pytest.importorskip("pyrite")


class Counted:
    """A backend written for torch.compile that keeps the graphs that it is given."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, _inputs):
        self.graphs.append(module)
        return module.forward


def pair(*shape):
    return TwoTensor(torch.randn(*shape), torch.randn(*shape))


def jagged(*lengths):
    return torch.nested.nested_tensor([torch.randn(length, 4) for length in lengths], layout=torch.jagged)


def same(have, want):
    assert type(have) is type(want)
    if isinstance(have, TwoTensor):
        return torch.equal(have.a, want.a) and torch.equal(have.b, want.b)
    if isinstance(have, torch.Tensor) and have.is_nested:
        return torch.equal(have.values(), want.values())
    return torch.equal(have, want) if isinstance(have, torch.Tensor) else have == want


def graphs_for(function, inputs):
    backend = Counted()
    compiled = pyrite.compile(function, backend=backend, fullgraph=True)
    for given in inputs:
        assert same(compiled(given), function(given))
    return backend.graphs


def test_a_backend_is_given_the_functions_that_the_user_called():
    (graph,) = graphs_for(lambda x: torch.sin(x) + 1, [pair(3)])
    assert [node.op for node in graph.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert graph.graph.find_nodes(op="call_function", target=torch.sin)


def test_a_graph_of_wrappers_serves_any_size():
    assert len(graphs_for(lambda x: x.sin() * 2, [pair(3), pair(4), pair(1), pair(2, 3), pair(5)])) == 2
    assert len(graphs_for(lambda x: x.sin() * 2, [jagged(2, 3), jagged(4, 1, 2), jagged(5)])) == 1


def test_a_size_that_is_asked_for_is_guarded():
    assert len(graphs_for(lambda x: x * x.shape[0], [pair(3), pair(4), pair(3)])) == 2


def test_classes_contexts_and_gradients_are_guarded():
    class Derived(TwoTensor):
        pass

    inputs = [pair(3), pair(3).double(), pair(3).requires_grad_(), Derived(torch.ones(3), torch.ones(3))]
    assert len(graphs_for(lambda x: x * 2, inputs)) == 4


def test_the_lengths_of_sequences_are_not_taken_for_constants():
    function = pyrite.compile(lambda x: x._max_seqlen, backend=Counted())
    for lengths in [(2, 3), (1, 4), (5,), (2, 2, 1)]:
        assert function(jagged(*lengths)) == max(lengths)


@pytest.mark.parametrize("backend", ["native", "eager", "aot_eager"])
def test_gradients_reach_what_a_wrapper_holds(backend):
    import torch._dynamo  # noqa: F401  (its backends are known by name)

    def function(x, y):
        return (x * y.exp()).sum()

    wants, given = [], []
    for run, results in ((function, wants), (pyrite.compile(function, backend=backend), given)):
        torch.manual_seed(0)
        x, y = pair(3).requires_grad_(), torch.randn(3, requires_grad=True)
        run(x, y).backward()
        results.extend([x.grad.a, x.grad.b])
    for want, have in zip(wants, given, strict=True):
        torch.testing.assert_close(have, want)


def test_a_branch_that_is_not_captured_is_torchs_own_error():
    from torch._dynamo.exc import UncapturedHigherOrderOpError

    def taken(x):
        print("inside")
        return x * 2

    def function(x):
        return torch.cond(x.sum() > 0, taken, lambda y: y + 1, (x,))

    with pytest.raises(UncapturedHigherOrderOpError, match="captured completely with torch.compile"):
        pyrite.compile(function, backend="eager", fullgraph=True)(torch.ones(3))
