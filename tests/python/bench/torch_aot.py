"""What PyTorch's AOTAutograd makes of a dumped graph: how many bytes its min-cut partitioner saves, and how long it takes.

No compiler runs after it, and nothing is cached: the time is that of functionalization, the joint graph and the partition alone.
"""

import time
from dataclasses import dataclass

import torch
import torch._functorch.config
from functorch.compile import min_cut_rematerialization_partition, nop
from torch._decomp import core_aten_decompositions
from torch._functorch.aot_autograd import aot_module_simplified

from models.dumped import load_inputs, load_module

# The tables that Pyrite's `--decompositions` names.
DECOMPOSITIONS = {"composite": dict, "core": core_aten_decompositions}


@dataclass
class Halves:
    """Forward and backward graph, and which values the first saves for the second."""

    forward: torch.fx.GraphModule
    backward: torch.fx.GraphModule
    saved: list

    def saved_bytes(self):
        """The bytes of the saved tensors by their sizes, each counted once."""
        values = {node.name: node.meta["val"] for node in self.saved}
        return sum(v.numel() * v.element_size() for v in values.values() if isinstance(v, torch.Tensor))


def partition(path, table):
    """The two halves of a dumped program."""
    found = []

    def split(joint, inputs, *, num_fwd_outputs, **options):
        forward, backward = min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
        (output,) = forward.graph.find_nodes(op="output")
        found.append(Halves(forward, backward, list(output.args[0][num_fwd_outputs:])))
        return forward, backward

    compile_once(*traced(path), split, table)
    (halves,) = found
    return halves


def seconds(path, table, repeat):
    """The fastest of several compilations, after one that is not counted."""
    times = []
    for _ in range(repeat + 1):
        module, inputs = traced(path)
        start = time.perf_counter()
        compile_once(module, inputs, min_cut_rematerialization_partition, table)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def traced(path):
    """The graph module of a dump, as Dynamo hands it on, and its inputs."""
    module, load_args = load_module(path.read_text(), path.name)
    return torch.fx.symbolic_trace(module), load_inputs(load_args, path.parent)


def compile_once(module, inputs, split, table):
    with torch._functorch.config.patch(enable_autograd_cache=False):
        aot_module_simplified(
            module, inputs, fw_compiler=nop, bw_compiler=nop, partition_fn=split, decompositions=DECOMPOSITIONS[table]()
        )
