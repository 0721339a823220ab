"""Functions and modules whose frames are captured: `compile`, `disable`, `explain` and what they are made of."""

from __future__ import annotations

import copy
import functools
import logging
import warnings

import torch

from pyrite import _native, backends, config
from pyrite._errors import GraphBreakError

_log = logging.getLogger("pyrite.capture")


def _report(kind, message):
    """What capture has to say: what the user should act on is a warning, the rest is logged."""
    if kind == "limit":
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    else:
        _log.info("%s: %s", kind, message)


def _wrapped(backend):
    """A backend whose refusal lets the frame run plain."""

    def compiler(graph, example_inputs):
        try:
            return backend(graph, list(example_inputs))
        except NotImplementedError as error:
            _log.warning("the backend cannot compile a graph, it runs plain: %s", error)
            return None

    return compiler


def compile(model=None, *, backend="native", fullgraph=False, dynamic=None, options=None):
    """Compiles a function or a module; also a decorator, with and without parentheses.

    Frames are captured on the first call and whenever what was assumed of them no longer holds. `backend` is a name of
    `pyrite.list_backends()` or a function `(graph, example_inputs) -> callable`. With `fullgraph` a break is an error.
    `dynamic` makes all sizes symbols (True) or none (False); by default those that change become symbols.
    """
    if model is None:
        return functools.partial(compile, backend=backend, fullgraph=fullgraph, dynamic=dynamic, options=options)
    if not callable(model):
        raise TypeError(f"pyrite.compile takes a function or a module, not {type(model).__name__}")
    compiler = _native.Compiler(
        _wrapped(backends.lookup(backend, options)),
        _report,
        fullgraph=fullgraph,
        dynamic=dynamic,
        cache_size_limit=config.cache_size_limit,
    )
    if isinstance(model, torch.nn.Module):
        settings = {"backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "options": options}
        return CompiledModule(model, compiler, settings)
    if isinstance(model, type):
        raise TypeError("pyrite.compile takes a function or a module, not a class: compile its instances")
    return _compiled_function(model, compiler)


def _compiled_function(function, compiler):
    call = compiler.call

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        return call(function, args, kwargs)

    compiled._pyrite_original = function
    return compiled


class CompiledModule(torch.nn.Module):
    """A module whose `forward` is compiled. Everything else is the original's: parameters, state, hooks, mode."""

    def __init__(self, module, compiler, settings):
        super().__init__()
        self.__dict__["_orig_mod"] = module
        self.__dict__["_compiler"] = compiler
        self.__dict__["_settings"] = settings

    def __call__(self, *args, **kwargs):
        return self._compiler.call(_call_module, (self._orig_mod, args, kwargs), None)

    def forward(self, *args, **kwargs):
        return self(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name, value):
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __len__(self):
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __repr__(self):
        return f"compiled {self._orig_mod!r}"

    def __reduce__(self):
        return _compiled_again, (self._orig_mod, self._settings)

    def __deepcopy__(self, memo):
        return _compiled_again(copy.deepcopy(self._orig_mod, memo), self._settings)


def _compiled_again(module, settings):
    return compile(module, **settings)


for _name in (
    "train eval requires_grad_ zero_grad to cpu float double half bfloat16 apply state_dict load_state_dict parameters "
    "named_parameters buffers named_buffers children named_children modules named_modules register_forward_hook "
    "register_forward_pre_hook register_full_backward_hook register_buffer register_parameter add_module get_submodule "
    "get_parameter get_buffer extra_repr share_memory type"
).split():

    def _make(name):
        def method(self, *args, **kwargs):
            result = getattr(self._orig_mod, name)(*args, **kwargs)
            return self if result is self._orig_mod else result

        method.__name__ = name
        return method

    setattr(CompiledModule, _name, _make(_name))


from pyrite._call import call_module as _call_module  # noqa: E402  (a file of its own: its frame is captured)


def disable(function):
    """A function whose frames, and those of what it calls, are never captured."""

    @functools.wraps(function)
    def plain(*args, **kwargs):
        return _native.Compiler.call_plain(function, args, kwargs)

    return plain


def reset():
    """Forgets everything that was captured and compiled."""
    _native.forget_captures()


class Explanation:
    """What capturing a call found; see `explain`."""

    def __init__(self, records):
        captured = [record for record in records if record.outcome == "captured"]
        self.graphs = [record.graph for record in captured if record.graph is not None]
        self.graph_count = len(self.graphs)
        self.break_reasons = [BreakReason(record) for record in records if record.reason is not None]
        self.graph_break_count = len(self.break_reasons)
        self.ops_per_graph = [
            [node.target for node in graph.nodes if node.op == "call_function"] for graph in self.graphs
        ]
        self.op_count = sum(record.op_count for record in captured)
        self.out_guards = [guard for record in captured for guard in record.guards]
        self.compile_times = [
            (record.function, record.capture_seconds, record.compile_seconds) for record in captured
        ]

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, reason in enumerate(self.break_reasons, 1):
            lines.append(f"  Break Reason {number}:")
            lines.extend("    " + line for line in str(reason).splitlines())
        return "\n".join(lines)


class BreakReason:
    """Why a graph ended: the reason, the user's stack, a hint."""

    def __init__(self, record):
        self.reason = record.reason
        self.hint = record.hint
        self.user_stack = [StackEntry(*entry) for entry in record.user_stack]

    def __str__(self):
        lines = [f"Reason: {self.reason}", "User Stack:"]
        lines += [f"  {entry}" for entry in self.user_stack]
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    __repr__ = __str__


class StackEntry:
    """A line of the user's program."""

    def __init__(self, filename, lineno, name):
        self.filename, self.lineno, self.name = filename, lineno, name

    def __repr__(self):
        return f"<FrameSummary file {self.filename}, line {self.lineno} in {self.name}>"


def explain(function, *, backend="eager", dynamic=None):
    """Calls a function and tells what capturing it found: `pyrite.explain(f)(*args)`."""

    def explained(*args, **kwargs):
        _native.take_records(True)
        try:
            compile(function, backend=backend, dynamic=dynamic)(*args, **kwargs)
        finally:
            records = _native.take_records(False)
        return Explanation(records)

    return explained


__all__ = ["BreakReason", "CompiledModule", "Explanation", "GraphBreakError", "compile", "disable", "explain", "reset"]
