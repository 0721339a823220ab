"""Backends written for torch.compile, which take FX graphs, under `pyrite.compile`."""

import warnings

import torch
from capture import harness
from torch import nn

import pytest

pyrite = pytest.importorskip("pyrite")

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")


class Counter:
    """Counts graphs and calls as backends for torch.compile do."""

    def __init__(self):
        self.frame_count = 0
        self.op_count = 0
        self.modules = []

    def __call__(self, module, example_inputs):
        assert isinstance(module, torch.fx.GraphModule)
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call") for node in module.graph.nodes)
        self.modules.append(module)
        return module.forward


def test_a_counting_backend_sees_graphs_and_calls():
    counter = Counter()

    @pyrite.compile(backend=counter)
    def function(x, y):
        a = x.sin() + y
        print(end="")
        return torch.cos(a) * 2

    x, y = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(function(x, y), torch.cos(x.sin() + y) * 2)
    assert (counter.frame_count, counter.op_count) == (2, 4)
    assert [node.op for node in counter.modules[0].graph.nodes] == ["placeholder", "placeholder", "call_function", "call_function", "output"]


def test_nodes_keep_their_names_metadata_and_stacks():
    counter = Counter()
    pyrite.compile(lambda x: x.relu().sum(0), backend=counter)(torch.randn(3, 4, requires_grad=True))
    module = counter.modules[0]
    graph = module.pyrite_graph
    assert [node.name for node in module.graph.nodes] == [node.name for node in graph.nodes]
    values = {node.name: node.meta["val"] for node in module.graph.nodes if "val" in node.meta}
    assert [tuple(value.shape) for value in values.values()] == [(3, 4), (3, 4), (4,)]
    assert all("test_capture_fx.py" in node.meta["stack_trace"] for node in module.graph.nodes if node.op == "call_function")
    assert (module.op_count, module.opaque_ops) == (2, [])


@pytest.mark.parametrize("function", [lambda x: torch.func.vmap(lambda row: row.sum())(x), lambda x: torch.tensor([1.0, 2.0, 3.0]) * x.sum()])
def test_nested_graphs_and_constants_belong_to_the_module(function):
    counter = Counter()
    x = torch.randn(3, 4)
    torch.testing.assert_close(pyrite.compile(function, backend=counter, fullgraph=True)(x), function(x))
    assert [node.op for node in counter.modules[0].graph.nodes].count("get_attr") == 1


def test_gradients_and_writes_go_through_a_module():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    peer = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    peer.load_state_dict(model.state_dict())
    x = torch.randn(5, 4)
    pyrite.compile(model, backend=Counter(), fullgraph=True)(x).sum().backward()
    peer(x).sum().backward()
    for mine, theirs in zip(model.parameters(), peer.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(dict(model.named_buffers()), dict(peer.named_buffers()))


def test_sizes_that_change_are_read_from_the_inputs():
    counter = Counter()
    compiled = pyrite.compile(lambda x: x.reshape(x.shape[0] * 2, 2) + x.shape[0], backend=counter, dynamic=True)
    for size in (3, 5, 7):
        x = torch.randn(size, 4)
        torch.testing.assert_close(compiled(x), x.reshape(size * 2, 2) + size)
    assert counter.frame_count == 1


def test_a_backend_registered_with_torch_is_found():
    import torch._dynamo

    seen = []

    @torch._dynamo.register_backend
    def corpus_test_backend(module, example_inputs):
        seen.append(module)
        return module

    x = torch.randn(3)
    torch.testing.assert_close(pyrite.compile(lambda x: x + 1, backend="corpus_test_backend")(x), x + 1)
    assert len(seen) == 1


def test_a_backend_of_ahead_of_time_autograd_works():
    from torch._dynamo.backends.common import aot_autograd
    from functorch.compile import make_boxed_func

    halves = []

    def keep(module, example_inputs):
        halves.append(module)
        return make_boxed_func(module.forward)

    x = torch.randn(3, requires_grad=True)
    compiled = pyrite.compile(lambda x: (x.sin() * x).sum(), backend=aot_autograd(fw_compiler=keep), fullgraph=True)
    compiled(x).backward()
    torch.testing.assert_close(x.grad, x.cos() * x + x.sin())
    assert len(halves) == 2


def test_a_graph_goes_to_fx_and_back():
    counter = Counter()
    pyrite.compile(lambda x, y: (x @ y).softmax(-1).cumsum(0), backend=counter)(torch.randn(3, 4), torch.randn(4, 5))
    graph = counter.modules[0].pyrite_graph
    again = pyrite.Graph.from_fx(graph.to_fx())
    assert again.code == graph.code


@pytest.mark.parametrize("outside", [None, torch.bfloat16, torch.float16])
def test_a_module_leaves_autocast_as_it_finds_it(outside):
    def inside(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        with torch.autocast("cpu", enabled=False):
            z = x @ x
        return y, z, x @ x

    def over_a_break(x):
        with torch.autocast("cpu"):
            y = x @ x
            print(end="")
            return y, x @ x

    x = torch.randn(3, 3)
    with torch.autocast("cpu", dtype=outside, enabled=outside is not None):
        for function in (inside, over_a_break, lambda x: (x @ x,)):
            compiled = pyrite.compile(function, backend=Counter())
            for _ in range(2):
                assert [each.dtype for each in compiled(x)] == [each.dtype for each in function(x)]
                assert torch.is_autocast_enabled("cpu") == (outside is not None)
    assert not torch.is_autocast_enabled("cpu")


def test_sizes_that_are_symbols_are_inputs_and_no_calls():
    counter = Counter()
    compiled = pyrite.compile(lambda x: x + x.shape[0], backend=counter)
    for size in (3, 4, 5):
        torch.testing.assert_close(compiled(torch.ones(size)), torch.ones(size) + size)
    assert (counter.frame_count, counter.op_count) == (2, 2)
    assert [node.op for node in counter.modules[1].graph.nodes] == ["placeholder", "placeholder", "call_function", "output"]


def test_a_module_of_symbols_is_compiled_by_pyrites_own_backends():
    compiled = pyrite.compile(lambda x: x * x.shape[0], backend=lambda module, inputs: pyrite.backends.lookup("native")(module, inputs))
    for size in (3, 4, 5):
        torch.testing.assert_close(compiled(torch.ones(size)), torch.ones(size) * size)


def test_functions_that_torch_knows_under_another_name_are_called_themselves():
    @torch.jit.script
    def scripted(x):
        return x * 2 + 1

    x = torch.randn(3, 3)
    for function in (lambda x: torch.tensordot(x, x, dims=1), lambda x: scripted(x) + 1):
        torch.testing.assert_close(pyrite.compile(function, backend=Counter(), fullgraph=True)(x), function(x))


def test_a_module_leaves_autocast_and_grad_mode_as_they_were():
    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            y = x @ x
            print(end="")
            z = x @ x
        return y, z, x @ x

    x = torch.randn(3, 3, requires_grad=True)
    for backend in (lambda module, _: module.forward, Counter()):
        results = pyrite.compile(function, backend=backend)(x)
        assert [result.dtype for result in results] == [torch.bfloat16, torch.bfloat16, torch.float32]
        assert [result.requires_grad for result in results] == [False, False, True]
        assert not torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()


def test_a_module_calls_scripted_functions_and_reads_numbers_from_tensors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(lambda_of_script)
    x, factor = torch.randn(3), torch.tensor(0.5)
    function = pyrite.compile(lambda x, factor: torch.addcdiv(scripted(x), x, x, value=factor), backend=lambda module, _: module.forward)
    torch.testing.assert_close(function(x, factor), x * 2 + 0.5)


def lambda_of_script(x):
    return x * 2
