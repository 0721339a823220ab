"""Graphs of Pyrite's capture compiled by backends of torch.compile, in this process: `pyrite.compile(f, backend="torch:inductor")`.

Such a backend takes an FX graph and inputs, and compiles for their sizes: a region is compiled once for each set of sizes.
Under the debugger, and by commands, torch's backends run in processes of their own instead.
"""

from __future__ import annotations

import functools
import math

import torch

# What cannot be said in an FX graph that is traced from a text: it would happen while tracing.
_SWITCHES = ("_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_enter_inference", "_exit_inference")


class Region:
    """A graph and the programs that a backend of torch's made of it."""

    def __init__(self, graph, backend, **options):
        from torch._dynamo.backends.registry import lookup_backend

        text = graph.code
        if any(node.op == "get_attr" for node in graph.nodes) or any(word in text for word in _SWITCHES):
            raise NotImplementedError(
                f"torch:{backend} takes no graph with constants, or with switches of grad mode or autocast: move them out of what is "
                'compiled, or compile it with backend="native"'
            )
        if strange := [name for name in graph.opaque_ops if not name.startswith("torch.")]:
            raise NotImplementedError(f"torch:{backend} is not told of {', '.join(strange)}: call it outside of what is compiled")
        space = {"torch": torch, "device": torch.device, "inf": math.inf, "nan": math.nan}
        exec(compile(text, "<graph>", "exec"), space)
        self.module = torch.fx.symbolic_trace(space["Repro"]())
        self.backend = functools.partial(lookup_backend(backend), **options)
        self.programs = {}

    def __call__(self, *arguments):
        key = tuple(_shape(argument) for argument in arguments)
        if key not in self.programs:
            self.programs[key] = self.backend(self.module, list(arguments))
        return self.programs[key](*arguments)


def _shape(argument):
    if not isinstance(argument, torch.Tensor):
        return argument
    return argument.dtype, argument.requires_grad, tuple(argument.shape), argument.stride()
