"""Values that only the data of tensors tell: one graph, whose parts with known sizes a backend compiles."""

import pytest
import torch
from capture import harness

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")
package = pytest.importorskip("pyrite")


def scaled(x, n):
    return x * n.item()


def sized(x, n):
    return torch.ones(n.item()).sum() + x


def cut(x, n):
    return x[: n.item()].relu()


def converted(x, n):
    return x * float(n) + int(n)


def listed(x, n):
    (k,) = n.tolist()
    return x + k


def masked(x, _):
    return x[x > 0].sum() + x.exp()


def selected(x, _):
    return torch.masked_select(x, x > 0) * 2


def found(x, _):
    return torch.nonzero(x > 0).float() * 2


def distinct(x, n):
    return torch.unique(x) * n


def repeated(x, n):
    return torch.repeat_interleave(x, n.expand(4)).cos()


def averaged(x, _):
    return x / x.sum().item()


def checked(x, n):
    k = n.item()
    torch._check(k >= 0)
    return x * k if k >= 0 else x


def returned(x, n):
    return x + 1, n.item(), x[x > 0].shape[0]


FUNCTIONS = [scaled, sized, cut, converted, listed, masked, selected, found, distinct, repeated, averaged, checked, returned]


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_depends_on_data_is_one_graph_for_all_data(function, backend):
    package.reset()
    graphs = []

    def counted(graph, inputs):
        graphs.append(graph)
        return package.backends.lookup(backend)(graph, inputs)

    compiled = package.compile(function, backend=counted, fullgraph=True)
    for seed, n in enumerate([2, 3, 0, 1]):
        torch.manual_seed(seed)
        x = torch.randn(4, requires_grad=function not in (found, distinct))
        want, have = function(x, torch.tensor([n])), compiled(x, torch.tensor([n]))
        assert torch.utils._pytree.tree_all(lambda pair: pair, torch.utils._pytree.tree_map(same, want, have))
        if isinstance(want, torch.Tensor) and want.requires_grad:
            gradients = [torch.autograd.grad(result.sum(), x, retain_graph=True)[0] for result in (want, have)]
            torch.testing.assert_close(*gradients)
    assert len(graphs) == 1


def same(want, have):
    if isinstance(want, torch.Tensor):
        return want.shape == have.shape and torch.allclose(want, have)
    return type(want) is type(have) and want == have


def test_what_has_known_sizes_is_compiled():
    package.reset()
    graph = package.explain(masked)(torch.randn(4), None).graphs[0]
    assert graph.data_dependent_ops == ["aten.index.Tensor"]
    compiled = package._native.compile_mixed(graph, "native", {}, (torch.randn(4),))
    assert compiled.parts == (2, 1) and isinstance(compiled, package._native.MixedProgram)


@pytest.mark.parametrize("function", [lambda x: x * 2 if x.sum().item() > 0 else x, lambda x: [x] * x.long().sum().item()])
def test_a_decision_by_data_is_a_break_that_says_so(function):
    package.reset()
    with pytest.raises(Exception, match="depends on (the )?data|random|not known"):
        package.compile(function, backend="eager", fullgraph=True)(torch.ones(3))
