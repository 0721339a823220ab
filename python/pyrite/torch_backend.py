"""Pyrite as a backend of torch.compile: `backend="pyrite"` and `backend="pyrite_debug"`.

`pyrite` compiles what torch.compile captured with one of Pyrite's backends, by default `native`. What Pyrite cannot read
or compile runs as it was captured, eagerly, with a warning that says why; `options={"strict": True}` makes that an error.

`pyrite_debug` compiles it with any backend, by default Inductor, in a process of its own, and compares what comes out
with the reference. A crash, an error or a difference raises an exception whose last line is the path of a repro.

`watched()` puts every call of torch.compile by name under `pyrite_debug`, for scripts that are debugged as a whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import time
import warnings

import torch

from pyrite import _trace, config, logs  # noqa: F401  (_trace begins a trace)
from pyrite._native import AccuracyError, CompileError, backends, compile_debugged
from pyrite.backends import compiled
from pyrite.fx import Imported


class FallbackWarning(UserWarning):
    """A region runs eagerly because Pyrite cannot compile it."""


def pyrite(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with a backend of Pyrite's; options: `backend`, `strict`, and those of the backend."""
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = options.pop("backend", "native")
    return _Region(module, example_inputs, backend, functools.partial(_compiled, backend, options), strict)


def pyrite_debug(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with the backend in `options`, and checks every run of it against the reference."""
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = named(options.pop("backend", "inductor"))
    settings = {name: options.pop(name, value) for name, value in config.debug_settings().items()}
    make = functools.partial(_debugged, backend, options, settings)
    return _Checked(module, example_inputs, backend, make, strict)


def _compiled(backend, options, graph, arguments):
    return compiled(graph, backend, options, arguments)


def _debugged(backend, options, settings, graph, arguments):
    return compile_debugged(graph, backend, options, arguments, **settings)


def named(backend):
    """The name that Pyrite has for a backend: its own as they are, those of torch.compile with `torch:`."""
    known = {name for name, _ in backends()}
    return backend if backend in known or ":" in backend else f"torch:{backend}"


class _Region:
    """A captured region. It is compiled at its first call, when there are inputs to look at."""

    def __init__(self, module, example_inputs, backend, make, strict):
        self.module, self.backend, self.make, self.strict = module, backend, make, strict
        self.program = None
        self.imported = None
        try:
            self.imported = Imported(module, example_inputs)
            if unknown := self.imported.graph.foreign:
                raise CompileError(f"Pyrite does not know {', '.join(unknown)}")
            logs.get("graph_code").info("%s", self.imported.graph)
        except (CompileError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error):
        if self.strict:
            raise error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if watch := _watches[-1] if _watches else None:
            watch.unchecked.append(lines[0])
        else:
            text = f"a region runs eagerly, Pyrite cannot compile it: {lines[0]}"
            warnings.warn(text, FallbackWarning, stacklevel=4)
        self.program = self.module.forward

    @torch._dynamo.disable
    def __call__(self, *arguments):
        if self.program is None:
            self._compile(arguments)
        return self.program(*arguments)

    def _compile(self, arguments):
        attributes = self.imported.attributes
        log = logs.get("backend")
        log.info("Step 2: calling compiler function %s", self.backend)
        start = time.perf_counter()
        try:
            program = self.make(self.imported.graph, (*arguments, *attributes))
        except (CompileError, TypeError) as error:
            self._give_up(error)
            return
        log.info("Step 2: done compiler function %s in %.3f s", self.backend, time.perf_counter() - start)
        if attributes:
            self.program = lambda *arguments: program(*arguments, *attributes)
        else:
            self.program = program
        self.imported = None


class _Checked(_Region):
    """A region under the debugger."""

    def __init__(self, *arguments):
        self.calls = 0
        super().__init__(*arguments)
        if _watches:
            _watches[-1].regions += 1

    @torch._dynamo.disable
    def __call__(self, *arguments):
        limit = config.debug_calls
        if limit and self.calls >= limit:
            return self.module.forward(*arguments)
        self.calls += 1
        try:
            return super().__call__(*arguments)
        except (AccuracyError, RuntimeError, NotImplementedError) as error:
            if _watches:
                _watches[-1].failures.append(Failure.of(self.backend, error))
            raise


@dataclasses.dataclass
class Failure:
    """A region that failed: with which backend, what was said, and the program as it was before it was minified."""

    backend: str
    message: str
    repro: str | None

    @staticmethod
    def of(backend, error):
        """What an exception of a checked region says."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        path = pathlib.Path(lines[-1])
        if not (path.suffix == ".py" and path.is_file()):
            return Failure(backend, lines[0], None)
        if path.parent.name == "minified":
            whole = [path.parent.parent / name for name in ("repro.py", "minifier_launcher.py")]
            path = next((each for each in whole if each.is_file()), path)
        return Failure(backend, lines[0], str(path))


@dataclasses.dataclass
class Watch:
    """What happened to the regions of a script."""

    regions: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    unchecked: list[str] = dataclasses.field(default_factory=list)


_watches: list[Watch] = []


@contextlib.contextmanager
def watched():
    """Puts every call of torch.compile that names its backend under the debugger."""
    original = torch.compile

    @functools.wraps(original)
    def compile(model=None, *, backend="inductor", options=None, mode=None, **settings):
        if not isinstance(backend, str):
            watch.unchecked.append(f"a backend that is a function: {backend!r}")
            return original(model, backend=backend, options=options, mode=mode, **settings)
        name = named(backend)
        if options and name.startswith("torch:"):
            name += "?" + "&".join(f"{key}={str(value).lower()}" for key, value in sorted(options.items()))
        return original(model, backend="pyrite_debug", options={"backend": name}, **settings)

    watch = Watch()
    _watches.append(watch)
    torch.compile = compile
    try:
        yield watch
    finally:
        torch.compile = original
        _watches.remove(watch)
