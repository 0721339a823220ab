"""Pyrite as a backend of torch.compile: `backend="pyrite"` and `backend="pyrite_debug"`.

`pyrite` compiles what torch.compile captured with one of Pyrite's backends, by default `native`. What Pyrite cannot read
or compile runs as it was captured, eagerly, with a warning that says why; `options={"strict": True}` makes that an error.

`pyrite_debug` compiles it with any backend, by default Inductor, in a process of its own, and compares what comes out
with the reference. A crash, an error or a difference raises an exception whose last line is the path of a repro.
"""

from __future__ import annotations

import warnings

import torch

from pyrite import config
from pyrite._native import CompileError, compile, compile_debugged
from pyrite.fx import Imported


class FallbackWarning(UserWarning):
    """A region runs eagerly because Pyrite cannot compile it."""


def pyrite(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with a backend of Pyrite's; options: `backend`, `strict`, and those of the backend."""
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = options.pop("backend", "native")

    def make(graph, arguments):
        return compile(graph, backend, options, arguments)

    return _Region(module, example_inputs, make, strict)


def pyrite_debug(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with the backend in `options`, and checks every run of it against the reference."""
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = options.pop("backend", "inductor")
    settings = {name: options.pop(name, getattr(config, name)) for name in config.DEBUG_SETTINGS}

    def make(graph, arguments):
        return compile_debugged(graph, named(backend), options, arguments, **settings)

    return _Region(module, example_inputs, make, strict)


def named(backend):
    """The name that Pyrite has for a backend: its own as they are, those of torch.compile with `torch:`."""
    from pyrite._native import backends

    known = {name for name, _ in backends()}
    return backend if backend in known or ":" in backend else f"torch:{backend}"


class _Region:
    """A captured region. It is compiled at its first call, when there are inputs to look at."""

    def __init__(self, module, example_inputs, make, strict):
        self.module, self.make, self.strict = module, make, strict
        self.program = None
        self.imported = None
        try:
            self.imported = Imported(module, example_inputs)
            if unknown := self.imported.unknown():
                raise CompileError(f"Pyrite does not know {', '.join(unknown)}")
        except (CompileError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error):
        if self.strict:
            raise error
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        warnings.warn(f"a region runs eagerly, Pyrite cannot compile it: {first}", FallbackWarning, stacklevel=3)
        self.program = self.module.forward

    @torch._dynamo.disable
    def __call__(self, *arguments):
        if self.program is None:
            self._compile(arguments)
        return self.program(*arguments)

    def _compile(self, arguments):
        attributes = self.imported.attributes
        try:
            program = self.make(self.imported.graph, (*arguments, *attributes))
        except (CompileError, TypeError) as error:
            self._give_up(error)
            return
        if attributes:
            self.program = lambda *arguments: program(*arguments, *attributes)
        else:
            self.program = program
        self.imported = None


def register():
    """Makes both known to torch.compile without entry points."""
    from torch._dynamo.backends import registry

    for function in (pyrite, pyrite_debug):
        if function.__name__ not in registry._COMPILER_FNS:
            registry.register_backend(function, name=function.__name__)
