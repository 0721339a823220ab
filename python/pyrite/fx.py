"""FX graphs as Pyrite's graphs, and Pyrite's as FX graphs.

To FX a graph goes node by node (`Graph.to_fx`); `CapturedModule` is one that a backend written for torch.compile takes, and one
written for Pyrite too. From FX it comes as text: the text that FX prints is what Pyrite reads. Tensors that belong to the FX module, whose values are in no text, become
further inputs; symbolic sizes keep their names.
"""

from __future__ import annotations

import types

import torch

from pyrite._native import Graph


class CapturedModule(torch.fx.GraphModule):
    """A captured graph as backends see it: FX's module, with what `pyrite.Graph` has beside."""

    _OF_GRAPH = ("nodes", "op_count", "opaque_ops", "data_dependent_ops", "to_fx")

    @classmethod
    def of(cls, graph):
        """The module of a graph; the graph itself where FX cannot hold it."""
        try:
            module = graph.to_fx()
        except NotImplementedError:
            return graph
        sizes = _sizes_as_inputs(module.graph)
        made = cls(module, module.graph)
        made.__dict__["pyrite_graph"] = graph
        made.__dict__["pyrite_sizes"] = sizes
        return made

    def __getattr__(self, name):
        if name in CapturedModule._OF_GRAPH and "pyrite_graph" in self.__dict__:
            return getattr(self.__dict__["pyrite_graph"], name)
        return super().__getattr__(name)


def _sizes_as_inputs(graph):
    """Makes the symbols among sizes inputs of their own, the first ones, as backends for torch.compile know them; see `sizes_of`."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    sizes = []
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in (size_of, torch.ops.aten.sym_size.int) and node.args[0] in inputs:
            with graph.inserting_before(inputs[0]):
                made = graph.placeholder(f"s{len(sizes)}")
            sizes.append((inputs.index(node.args[0]), node.args[1]))
            node.replace_all_uses_with(made)
            graph.erase_node(node)
    return sizes


def sizes_of(module):
    """The sizes that a `CapturedModule` takes before the inputs of its graph: the input and the dimension that each is read from."""
    return module.__dict__.get("pyrite_sizes", ()) if isinstance(module, CapturedModule) else ()


def with_sizes(module, arguments):
    """The arguments of a `CapturedModule`: the sizes that it takes, and those of its graph."""
    return [*(arguments[place].shape[dim] for place, dim in sizes_of(module)), *arguments]


def unwrapped(graph):
    """The graph of a `CapturedModule`; a graph is itself."""
    return graph.__dict__["pyrite_graph"] if isinstance(graph, CapturedModule) else graph


def described(shape, stride, dtype, requires_grad):
    """A tensor without data that says what is known of a value."""
    tensor = torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device="meta")
    return tensor.requires_grad_() if requires_grad and tensor.dtype.is_floating_point else tensor


def as_function(function, name):
    """What FX can name in the code of a module: for objects that are called, and where FX would take the name for that of another
    function of torch, a function that calls it."""
    if isinstance(function, types.FunctionType | torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return function
    found = torch
    for part in getattr(function, "__name__", "").split("."):
        found = getattr(found, part, function)
    if isinstance(function, types.BuiltinFunctionType) and found is function:
        return function

    def called(*args, **kwargs):
        return function(*args, **kwargs)

    called.__name__ = called.__qualname__ = name.rpartition(".")[2]
    return called


def size_of(tensor, dim):
    """A size that is a symbol."""
    return tensor.shape[dim]


def evaluated(expression, names, *values):
    """A size that is computed from symbols."""
    functions = {"Min": min, "Max": max, "min": min, "max": max}
    return eval(expression, {"__builtins__": {}, **functions}, dict(zip(names, values)))


def from_fx(module, example_inputs=None):
    """A graph from a `torch.fx.GraphModule`. Its own tensors become constants."""
    if isinstance(module, CapturedModule):
        return module.__dict__["pyrite_graph"]
    imported = Imported(module, example_inputs or [])
    if imported.attributes:
        raise NotImplementedError("the module owns tensors: pass them as inputs, as pyrite.fx.Imported does")
    return imported.graph


class Imported:
    """A graph and the tensors of the FX module that it takes after its own inputs."""

    def __init__(self, module: torch.fx.GraphModule, example_inputs):
        module, self.attributes = _lifted(module)
        text = module.print_readable(print_output=False, include_stride=True)
        self.graph = Graph.from_text(text, hints(example_inputs))


def hints(example_inputs):
    """The values of symbolic sizes, by their names."""
    found = {}
    for value in example_inputs:
        sizes = (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,)
        for size in sizes:
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol and size.node.hint is not None:
                found[str(size.node.expr)] = int(size.node.hint)
    return found


def _lifted(module):
    """The module with its own tensors as further placeholders, and these tensors."""
    reads = [node for node in module.graph.nodes if node.op == "get_attr"]
    tensors = {}
    for node in reads:
        value = module
        for part in node.target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            tensors[node.target] = value
    if not tensors:
        return module, []
    graph = torch.fx.Graph()
    copies = {}
    graph_inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in graph_inputs:
        copies[node] = graph.node_copy(node)
    lifted = {}
    for index, (target, value) in enumerate(tensors.items()):
        lifted[target] = graph.placeholder(f"attribute_{index}")
        lifted[target].meta["val"] = lifted[target].meta["example_value"] = value.detach()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "get_attr" and node.target in lifted:
            copies[node] = lifted[node.target]
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return torch.fx.GraphModule(module, graph), list(tensors.values())
