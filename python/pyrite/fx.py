"""FX graphs, as torch.compile's capture makes them, as Pyrite's graphs.

The text that FX prints is what Pyrite reads. Tensors that belong to the FX module, whose values are in no text, become
further inputs; symbolic sizes keep their names.
"""

from __future__ import annotations

import torch

from pyrite._native import Graph


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
