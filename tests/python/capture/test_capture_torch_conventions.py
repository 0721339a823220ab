"""What programs that were written for torch.compile rely on beside results: its counters, its errors, its marks."""

import pyrite
import pytest
import torch
import torch._dynamo
import torch._dynamo.utils
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError


def test_counters_of_torch_count_graphs_and_breaks():
    counters = torch._dynamo.utils.counters

    def function(x):
        y = x + 1
        print("between")
        return y * 2

    counters.clear()
    pyrite.compile(function, backend="eager")(torch.ones(3))
    assert counters["stats"]["unique_graphs"] == 2
    assert counters["stats"]["calls_captured"] == 2
    assert sum(counters["graph_break"].values()) == 1
    counters.clear()
    pyrite.compile(lambda x: x.sin(), backend="eager")(torch.ones(3))
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]


class Own(ValueError):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def test_a_backend_that_fails_raises_what_torch_compile_raises_and_its_own_class():
    def backend(graph, inputs):
        raise Own("the backend is out of order", 7)

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="out of order") as caught:
        pyrite.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    assert isinstance(caught.value, Own) and caught.value.code == 7
    assert type(caught.value.inner_exception) is Own


def marked(size, dim=0):
    x = torch.ones(size, 3)
    torch._dynamo.mark_dynamic(x, dim)
    return x


def test_a_marked_size_that_becomes_a_constant_is_an_error():
    def function(x):
        return x * 2 if x.shape[0] == 5 else x

    compiled = pyrite.compile(function, backend="eager")
    with pytest.raises(ConstraintViolationError, match=r"x\.shape\[0\] was marked as dynamic, but .* fixes it to 5"):
        compiled(marked(5))


def test_a_marked_size_that_stays_free_serves_all_sizes():
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = pyrite.compile(lambda x: x.sum(0) / x.shape[0] if x.shape[0] > 2 else x.sum(0), backend=backend)
    for size in (5, 7, 4):
        assert torch.equal(compiled(marked(size)), torch.ones(3))
    assert len(graphs) == 1


def test_a_size_that_may_be_dynamic_may_become_a_constant():
    x = torch.ones(5, 3)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    assert torch.equal(pyrite.compile(lambda x: x * 2 if x.shape[0] == 5 else x, backend="eager")(x), x * 2)


NAMED = {
    "qr": lambda a: torch.linalg.qr(a),
    "lu": lambda a: torch.linalg.lu(a),
    "inv_ex": lambda a: torch.linalg.inv_ex(a),
    "cholesky_ex": lambda a: torch.linalg.cholesky_ex(a),
    "svd": lambda a: torch.linalg.svd(a),
    "eigh": lambda a: torch.linalg.eigh(a),
    "slogdet": lambda a: torch.linalg.slogdet(a),
    "max": lambda a: torch.max(a, 1),
    "sort": lambda a: a.sort(),
}


@pytest.mark.parametrize("name", NAMED)
def test_results_of_algebra_have_torchs_names(name):
    a = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    want, have = NAMED[name](a), pyrite.compile(NAMED[name])(a)
    assert type(have) is type(want)
    field = [field for field in dir(want) if isinstance(getattr(want, field), torch.Tensor)][0]
    first = pyrite.compile(lambda a: getattr(NAMED[name](a), field))(a)
    torch.testing.assert_close(first, getattr(want, field))
