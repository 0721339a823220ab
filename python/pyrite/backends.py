"""Who compiles graphs.

A backend is one function: it takes a graph and example inputs and returns a callable that takes one argument per placeholder
and returns the list of the graph's outputs. The graph is a `torch.fx.GraphModule`, so that backends written for torch.compile
work as they are, and has the attributes of `pyrite.Graph`. Pyrite's own backends are known by their names; `register_backend`
gives a name to one of yours, and those registered with torch._dynamo are found. `eager` compiles nothing: torch runs the captured operators one by one.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys

import torch

from pyrite import _native, _times, _watch, config, logs

_registered = {}

# The backend whose option `mode` is told of every call, or entered around all of them.
WITH_MODE = "aot_eager_decomp_partition_with_mode"


def register_backend(function, name=None):
    """Makes a backend known by its name; also a decorator."""
    _registered[name or function.__name__] = function
    return function


def list_backends():
    """The names of all backends: Pyrite's own, then registered ones."""
    return [*(name for name, _ in _native.backends()), *_registered]


def name_of(backend):
    """What a backend is called."""
    return backend if isinstance(backend, str) else getattr(backend, "__name__", type(backend).__name__)


def lookup(backend, options=None):
    """The function behind a backend's name; a function is itself. Where `config` says so, its programs are checked."""
    if function := backend if callable(backend) else _registered.get(backend):
        return functools.partial(_called, _adapted(function))
    known = list_backends()
    if backend not in known and (function := _registered_with_torch(backend)):
        return functools.partial(_called, _adapted(function))
    if backend not in known and ":" not in backend:
        raise ValueError(f"there is no backend `{backend}`; there are {', '.join(known)}")

    @takes_graph
    def compiler(graph, example_inputs):
        return compiled(graph, backend, options, example_inputs)

    return compiler


def takes_graph(function):
    """Says of a backend that it takes a `pyrite.Graph`, where others get an FX module; also a decorator."""
    function._takes_graph = True
    return function


def _adapted(function):
    """A backend that gets the graph as a `torch.fx.GraphModule`, as those of torch.compile expect it."""
    if getattr(function, "_takes_graph", False):
        return function

    @functools.wraps(function, updated=())
    def adapted(graph, example_inputs):
        from pyrite.fx import CapturedModule, sizes_of, with_sizes

        module = CapturedModule.of(graph)
        if sizes_of(module):
            sized = function(module, with_sizes(module, example_inputs))
            program = None if sized is None else lambda *arguments: sized(*with_sizes(module, arguments))
        else:
            program = function(module, example_inputs)
        return _restoring(program) if program is not None and _switches_modes(graph) else program

    return adapted


def _switches_modes(graph):
    """Whether a graph switches grad mode or autocast."""
    return any(node.target.rpartition(".")[2] in _SWITCHES for node in graph.nodes)


_SWITCHES = ("_set_grad_enabled", "_enter_autocast", "_exit_autocast")


def _restoring(program):
    """A program that leaves grad mode as it was, however it ends: the graph says what holds inside of it, and the frame what holds
    after it."""

    def run(*arguments):
        recording = torch.is_grad_enabled()
        try:
            return program(*arguments)
        finally:
            torch._C._set_grad_enabled(recording)

    return run


def _registered_with_torch(name):
    """A backend that was registered with `torch._dynamo.register_backend`, if that has been imported."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    if registry is None or ":" in name or name not in registry.list_backends(()):
        return None
    return registry.lookup_backend(name)


def _called(function, graph, example_inputs):
    if not config.debugs():
        return function(graph, example_inputs)
    return _debugged(graph, _full_name(inspect.unwrap(function)), None, example_inputs, function)


def _debugged(graph, backend, options, example_inputs, function=None):
    settings = {**config.debug_settings(), "minify": _watch.current() is None}
    program = _native.compile_debugged(graph, backend, options, tuple(example_inputs), function=function, **settings)
    is_watched = _watch.current() or config.debug_calls or backend.startswith("torch:")
    return _watch.Checked(program, graph, backend) if is_watched else program


def _full_name(function):
    """The name under which the command finds a function too, where it can be imported."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"python:{module}:{name}" if found is function and module != "__main__" else name_of(function)


def _by_torch(graph):
    """The graph run by torch's own operators, one by one, which its autograd sees; `None` where Pyrite has to run it."""
    try:
        return _native.run_by_torch(graph)
    except NotImplementedError:
        return None


def checking(program, backend):
    """A program whose custom operators are looked at, where the backend is one that checks."""
    if backend not in ("eager_debug", "aot_eager_decomp_partition_crossref"):
        return program
    return importlib.import_module("pyrite._operators").checked(program)


def is_entered(mode):
    """Whether a mode is one of torch's, which is entered, and not a function that is told."""
    return hasattr(mode, "__enter__")


def with_config(options):
    return {"fallback_random": config.fallback_random, **(options or {})}


def _gives_wrapped_gradients(inputs):
    """Whether gradients may be wrapper subclasses, which only torch adds up and hands on."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    return any(hasattr(type(each), "__tensor_flatten__") for each in tensors) and any(each.requires_grad for each in tensors)


def compiled(graph, backend, options, example_inputs):
    """Compiles a graph with a backend by name, under the debugger where `config` says so."""
    if not isinstance(graph, _native.Graph):
        # A module that a backend was given; its graph reads sizes from the tensors.
        fx = importlib.import_module("pyrite.fx")
        # Not by `len`, which the program may have replaced.
        sizes = fx.sizes_of(graph).__len__()
        program = compiled(fx.unwrapped(graph), backend, options, example_inputs[sizes:])
        return (lambda *arguments: program(*arguments[sizes:])) if sizes else program
    log = logs.get("aot")
    log.info("Step 3: %s compiles a graph of %d operators", backend, graph.op_count)
    if graph.needs_autograd and ":" not in backend and not config.debugs() and (run := _by_torch(graph)):
        return run
    if ":" not in backend and _gives_wrapped_gradients(example_inputs) and (run := _by_torch(graph)):
        return run
    opaque = graph.opaque_ops + graph.data_dependent_ops
    if (opaque or graph.writes_behind_autograd) and ":" not in backend and backend != "eager":
        log.info("Step 3: torch runs %s", ", ".join(opaque) or "a graph that writes behind autograd's back")
        program = _native.compile_mixed(graph, backend, with_config(options), tuple(example_inputs))
        return checking(program, backend)
    if config.debugs():
        return _debugged(graph, backend, options, example_inputs)
    if backend == WITH_MODE and is_entered(mode := (options or {}).get("mode")):
        from pyrite._torch_region import Region

        return Region(graph, backend, mode=mode)
    if (name := backend.removeprefix("torch:")) != backend and not options and "?" not in name:
        from pyrite._torch_region import Region

        return Region(graph, name)
    # What `eager` is where torch is.
    if backend == "eager" and not options and (run := _by_torch(graph)):
        return run
    program = _native.compile(graph, backend, with_config(options), tuple(example_inputs))
    if backend == "pre_dispatch_eager":
        print(dict(program.graphs())["forward"].code)
    importlib.import_module("pyrite.autograd").remember(program, graph)
    times = program.stage_times
    for stage, seconds in times:
        _times.add(f"backend.{stage}", seconds)
    log.info("Step 3: %s done%s", backend, "".join(f", {stage} {seconds:.6f} s" for stage, seconds in times))
    return program
