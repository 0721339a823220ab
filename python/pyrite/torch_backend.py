"""Pyrite as a backend of torch.compile: `backend="pyrite"` and `backend="pyrite_debug"`.

`pyrite` compiles what torch.compile captured with one of Pyrite's backends, by default `native`. The region is traced to ATen
(`pyrite.aot`); operators that Pyrite does not know are run by torch, which `options={"opaque": "error"}` refuses. A region that
cannot be compiled at all runs eagerly, with a warning that says why; `options={"strict": True}` makes that an error.

`pyrite_debug` compiles it with any backend, by default Inductor, in a process of its own, and compares what comes out
with the reference. A crash, an error or a difference raises an exception whose last line is the path of a repro.

`watched()` puts every call of torch.compile by name under `pyrite_debug`, for scripts that are debugged as a whole.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import json
import time
import warnings

import torch

from pyrite import _trace, _watch, config, logs  # noqa: F401  (_trace begins a trace)
from pyrite._capture import check_mode
from pyrite._native import CompileError, backends, compile_debugged, import_for_torch
from pyrite.aot import FallbackWarning, Settings, compile_region
from pyrite.backends import compiled
from pyrite.fx import Imported


def pyrite(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with a backend of Pyrite's; options: `backend`, `strict`, `opaque`, `gpu`, `graphs`, and those of
    the backend."""
    check_mode(mode)
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = options.pop("backend", "native")
    opaque = options.pop("opaque", "allow")
    gpu, graphs = options.pop("gpu", "run"), options.pop("graphs", True)
    if not config.debugs():
        settings = Settings(backend, options, opaque=opaque, strict=strict, gpu=gpu, graphs=graphs)
        return compile_region(module, example_inputs, settings)
    return _Region(module, example_inputs, backend, functools.partial(_compiled, backend, options), strict)


def pyrite_debug(module, example_inputs, *, options=None, mode=None):
    """Compiles an FX graph with the backend in `options`, and checks every run of it against the reference."""
    options = dict(options or {})
    strict = options.pop("strict", config.strict)
    backend = _as_set_here(named(options.pop("backend", "inductor")))
    settings = {name: options.pop(name, value) for name, value in config.debug_settings().items()}
    _refuse_slips(options, ("strict", "backend", *settings))
    # What a script fails on is minimised once, when it is known.
    settings["minify"] = _watch.current() is None
    make = functools.partial(_debugged, backend=backend, options=options, **settings)
    return _Checked(module, example_inputs, backend, make, strict)


def _refuse_slips(options, known):
    """Raises where an option is one letter or two away from one of the debugger's: a backend would only warn of it."""
    for name in options:
        if near := difflib.get_close_matches(name, known, 1, cutoff=0.75):
            raise ValueError(f"pyrite_debug has no option `{name}`; did you mean `{near[0]}`? It has {', '.join(known)}.")


def _compiled(backend, options, graph, arguments):
    return compiled(graph, backend, options, arguments)


def _debugged(graph, arguments, *, backend, options, **settings):
    return compile_debugged(graph, backend, options, arguments, **settings)


def named(backend):
    """The name that Pyrite has for a backend: its own as they are, those of torch.compile with `torch:`."""
    known = {name for name, _ in backends()}
    return backend if backend in known or ":" in backend else f"torch:{backend}"


def _as_torch_means(backend):
    """The backend that a call of torch.compile names: torch's, even where Pyrite has one of the same name.

    Torch's backends that fail on purpose look for functions that captured graphs no longer have, so Pyrite's stand for them.
    """
    theirs = backend in torch._dynamo.list_backends(()) and not backend.endswith("_TESTING_ONLY")
    return f"torch:{backend}" if theirs else named(backend)


def _as_set_here(backend):
    """Inductor with the settings that this process has changed, since it compiles in another one."""
    name, _, given = backend.partition("?")
    if name != "torch:inductor":
        return backend
    from torch._inductor import config as inductor

    pairs = dict(pair.partition("=")[::2] for pair in given.split("&") if pair)
    for line in inductor.codegen_config().splitlines():
        setting, _, text = line.removeprefix("torch._inductor.config.").partition(" = ")
        with contextlib.suppress(ValueError, SyntaxError, TypeError):
            value = json.dumps(ast.literal_eval(text))
            if "&" not in value:
                pairs.setdefault(setting, value)
    return name + ("?" + "&".join(f"{setting}={value}" for setting, value in sorted(pairs.items())) if pairs else "")


class _Region:
    """A captured region. It is compiled at its first call, when there are inputs to look at."""

    def __init__(self, module, example_inputs, backend, make, strict):
        self.module, self.backend, self.make, self.strict = module, backend, make, strict
        self.program = None
        self.is_eager = False
        self.imported, self.attributes = None, ()
        try:
            self.imported = Imported(module, example_inputs)
            self.attributes = self.imported.attributes
            self._known()
            logs.get("graph_code").info("%s", self.imported.graph)
        except (CompileError, ValueError) as error:
            self._give_up(error)

    def _known(self):
        """Refuses operators that nobody here can run."""
        if unknown := self.imported.graph.opaque_ops:
            raise CompileError(
                f"Pyrite does not know {', '.join(unknown)}\nHelp: call it outside of what is compiled; without `strict` the region runs eagerly."
            )

    def _give_up(self, error):
        if self.strict:
            raise error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if watch := _watch.current():
            watch.unchecked.append(lines[0])
        else:
            text = f"a region runs eagerly, Pyrite cannot compile it: {lines[0]}"
            warnings.warn(text, FallbackWarning, stacklevel=4)
        self.is_eager = True

    @torch._dynamo.disable
    def __call__(self, *arguments):
        whole = (*arguments, *self.attributes)
        if not self.is_eager:
            self._compile(whole)
        return self.module.forward(*arguments) if self.is_eager else self.program(*whole)

    def _compile(self, whole):
        """Compiles the region at its first call, for the arguments and the tensors of the module behind them."""
        if self.program is not None:
            return
        log = logs.get("backend")
        log.info("Step 2: calling compiler function %s", self.backend)
        start = time.perf_counter()
        try:
            self.program = self.make(self.imported.graph, whole)
        except (CompileError, TypeError) as error:
            self._give_up(error)
            return
        log.info("Step 2: done compiler function %s in %.3f s", self.backend, time.perf_counter() - start)
        self.imported = None


class _Checked(_Region):
    """A region under the debugger.

    Backends of torch's run in processes of their own, where nobody can record gradients: they are given copies, and the
    results are those of the eager module.
    """

    def __init__(self, *arguments):
        self.calls = 0
        super().__init__(*arguments)
        if watch := _watch.current():
            watch.regions += 1

    @torch._dynamo.disable
    def __call__(self, *arguments):
        self.calls += 1
        if not self.is_eager and (not config.debug_calls or self.calls <= config.debug_calls):
            with _watch.noted(self.backend):
                if not self.backend.startswith("torch:"):
                    return super().__call__(*arguments)
                _watch.beside(self._judge, (*arguments, *self.attributes))
        return self.module.forward(*arguments)

    def _judge(self, *whole):
        """Runs the program in a process of its own, where there is one."""
        self._compile(whole)
        if not self.is_eager:
            self.program(*whole)

    def _known(self):
        """Leaves operators that Pyrite does not know to torch, where it is known who defines them."""
        unknown = self.imported.graph.opaque_ops
        if not unknown:
            return
        of_others = _watch.not_of_torch(unknown)
        modules = _watch.modules_defining(of_others) if of_others else []
        theirs = self.backend if ":" in self.backend else f"torch:{self.backend}"
        if (of_others and not modules) or theirs.removeprefix("torch:").split("?")[0] not in torch._dynamo.list_backends(()):
            return super()._known()
        self.backend = theirs
        self.make.keywords.update(backend=theirs, reference="torch:eager")
        if watch := _watch.current():
            modules, watch.unknown_operators = watch.import_all(modules), True
        import_for_torch(modules)


def _named_for_workers(backend):
    """The name under which workers find a backend that is a function, or that the script registered; None where they cannot."""
    function = backend
    if isinstance(backend, str):
        theirs = getattr(torch._dynamo.backends.registry, "_COMPILER_FNS", {})
        function = theirs.get(backend)
        if function is None or str(getattr(function, "__module__", "")).startswith("torch."):
            return _as_torch_means(backend)
    module = _watch.module_of(function)
    if module is None and isinstance(backend, str):
        # Who imports the module that registers it finds it by its name, wherever its function is.
        module = _watch.module_registering(function)
    if module is None:
        return None
    import_for_torch(_watch.current().import_all([module]))
    return f"torch:{backend}" if isinstance(backend, str) else f"torch:{module}:{function.__qualname__}"


@contextlib.contextmanager
def watched(instead=None):
    """Puts every call of torch.compile under the debugger; with another backend than it names where one is given."""
    original = torch.compile

    @functools.wraps(original)
    def compile(model=None, *, backend="inductor", options=None, mode=None, **settings):
        backend = instead or backend
        name = _named_for_workers(backend.removeprefix("torch:") if isinstance(backend, str) else backend)
        if name is None:
            called = getattr(backend, "__name__", backend)
            function = backend if callable(backend) else torch._dynamo.lookup_backend(backend)
            judged = _watch.judged_here(function, str(called))
            return original(model, backend=judged, options=options, mode=mode, **settings)
        if mode and name == "torch:inductor":
            options = torch._inductor.list_mode_options(mode) | (options or {})
        if options and name.startswith("torch:"):
            name += "?" + "&".join(f"{key}={json.dumps(value)}" for key, value in sorted(options.items()))
        return original(model, backend="pyrite_debug", options={"backend": name}, **settings)

    torch.compile = compile
    try:
        # Where sizes are symbolic, floats are tensors to Dynamo, which a region reads numbers from; no tracer can follow that.
        with _watch.watching() as watch, torch._dynamo.config.patch(specialize_float=True):
            yield watch
    finally:
        torch.compile = original
