"""Functions and modules whose frames are captured: `compile`, and what is not: `disable`, `skip_files`, `allow_in_graph`."""

from __future__ import annotations

import copy
import functools
import importlib.util
import itertools
import os
import sys
import time
import types
import warnings

import torch

from pyrite import _errors, _names, _native, _switches, _times, _trace, _verify, backends, config, logs  # noqa: F401  (_trace begins a trace)
from pyrite._observer import Observer
from pyrite._switches import is_off
from pyrite._tracers import is_traced


def _wrapped(backend, name, observer, fullgraph):
    """A backend that says what it does, and whose refusal lets the frame run plain; with `fullgraph` that is an error."""
    log = logs.get("backend")

    def compiler(graph, example_inputs):
        log.info("Step 2: calling compiler function %s", name)
        start = time.perf_counter()
        try:
            program = backend(graph, list(example_inputs))
        except NotImplementedError as error:
            log.warning("the backend `%s` cannot compile a graph, it runs plain: %s", name, error)
            return None
        except Exception as error:
            observer.backend_failed(name, error)
            if isinstance(error, _native.CompileError) and name == "native" and not fullgraph:
                log.warning("the backend `%s` cannot compile a graph, it runs plain: %s", name, error)
                return None
            if not _switches.suppresses_errors():
                told = _errors.backend_failed(name, error)
                if told is error:
                    raise
                raise told from told.__cause__
            log.warning("the backend `%s` failed, the frame runs plain", name, exc_info=True)
            return None
        log.info("Step 2: done compiler function %s in %.6f s", name, time.perf_counter() - start)
        return program

    return compiler


# The modes of torch.compile. Pyrite tunes nothing, and records CUDA graphs in all of them: they all mean the same.
MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def check_mode(mode):
    """Refuses a mode that torch.compile does not have either."""
    if mode not in MODES:
        raise ValueError(f"there is no mode {mode!r}; choose one of {', '.join(MODES[1:])}")


def compile(model=None, *, backend="native", fullgraph=False, dynamic=None, mode=None, options=None, disable=False):
    """Compiles a function or a module; also a decorator, with and without parentheses.

    Frames are captured on the first call and whenever what was assumed of them no longer holds. `backend` is a name of
    `pyrite.list_backends()` or a function `(graph, example_inputs) -> callable`. With `fullgraph` a break is an error.
    `dynamic` makes all sizes symbols (True) or none (False); by default those that change become symbols. `mode` is one of
    torch.compile's, which all mean the same here. With `disable` nothing is compiled.
    """
    check_mode(mode)
    if model is None:
        return functools.partial(compile, backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options, disable=disable)
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"pyrite.compile takes a function or a module, not {type(model).__name__}")
    if not _native.captures():
        version = ".".join(map(str, sys.version_info[:2]))
        warnings.warn(
            f"pyrite.compile does not capture frames of CPython {version}: {backends.name_of(model)} runs plain. Help: "
            'torch.compile(..., backend="pyrite"), or CPython 3.11, 3.12 or 3.13.',
            RuntimeWarning,
            stacklevel=2,
        )
        return model
    settings = {"backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "mode": mode, "options": options}
    function, observer = backends.lookup(backend, options), Observer(backend, settings)
    compiler = _native.Compiler(
        _wrapped(function, backends.name_of(backend), observer, fullgraph),
        observer,
        fullgraph=fullgraph,
        dynamic=dynamic,
        cache_size_limit=config.cache_size_limit,
    )
    if isinstance(model, torch.nn.Module):
        return CompiledModule(model, compiler, settings)
    if isinstance(model, type):
        raise TypeError("pyrite.compile takes a function or a module, not a class: compile its instances")
    return _compiled_function(model, compiler, settings)


def _by_torch(model, settings):
    """A function or a module as torch.compile captures it for Pyrite: that is how programs on GPUs are captured."""
    chosen = {name: settings[name] for name in ("fullgraph", "dynamic", "options")}
    return torch.compile(model, backend="pyrite", **chosen)


def _is_on_gpu(settings, args, kwargs, module=None):
    """Whether a call has tensors on a GPU, and the backend is the one that compiles for GPUs."""
    if settings["backend"] != "native" or not torch.cuda.is_initialized():
        return False
    given = [*args, *kwargs.values()]
    given += [each for value in given if isinstance(value, (list, tuple)) for each in value]
    if module is not None:
        given += itertools.islice(module.parameters(), 1)
    return any(isinstance(each, torch.Tensor) and each.is_cuda for each in given)


def _compiled_function(function, compiler, settings):
    call, call_plain = compiler.call, _native.Compiler.call_plain
    followed = _names.is_followed_from_outside(function)
    by_torch = functools.cache(lambda: _by_torch(function, settings))

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        if is_traced() or is_off():
            return call_plain(function, args, kwargs)
        if _is_on_gpu(settings, args, kwargs):
            return by_torch()(*args, **kwargs)
        if followed:
            target, given, named = _call_function, (function, args, kwargs), None
        else:
            target, given, named = function, args, kwargs
        if config.verify:
            return _verify.verified(call, target, given, named)
        return call(target, given, named)

    compiled._pyrite_original = function
    return compiled


class CompiledModule(torch.nn.Module):
    """A module whose `forward` is compiled. Everything else is the original's: parameters, state, hooks, mode."""

    def __init__(self, module, compiler, settings):
        super().__init__()
        # What a module keeps, its mode among it, is the original's.
        self.__dict__.clear()
        self.__dict__["_orig_mod"] = module
        self.__dict__["_compiler"] = compiler
        self.__dict__["_settings"] = settings
        self.__dict__["_by_torch"] = None

    def __call__(self, *args, **kwargs):
        if is_traced() or is_off():
            return _native.Compiler.call_plain(self._orig_mod, args, kwargs)
        if _is_on_gpu(self._settings, args, kwargs, self._orig_mod):
            if self._by_torch is None:
                self.__dict__["_by_torch"] = _by_torch(self._orig_mod, self._settings)
            return self._by_torch(*args, **kwargs)
        if config.verify:
            return _verify.verified(self._compiler.call, _call_module, (self._orig_mod, args, kwargs), None)
        return self._compiler.call(_call_module, (self._orig_mod, args, kwargs), None)

    def forward(self, *args, **kwargs):
        return self(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name, value):
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*dir(type(self)), *dir(self._orig_mod), *self.__dict__})

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


from pyrite._call import call_function as _call_function  # noqa: E402  (a file of its own: its frames are captured)
from pyrite._call import call_module as _call_module  # noqa: E402


def disable(function=None):
    """A function whose frames, and those of what it calls, are never captured; also a decorator, with parentheses too."""
    if function is None:
        return disable

    @functools.wraps(function)
    def plain(*args, **kwargs):
        return _native.Compiler.call_plain(function, args, kwargs)

    return plain


def allow_in_graph(function):
    """Lets calls of a function be part of graphs as they are, each as one node that torch runs; also a decorator.

    Capture does not look into the function: it must compute tensors from tensors and plain values and do nothing else. What
    it gives is found by calling it on tensors without data. Returns the function; a list or tuple of functions is allowed
    one by one.
    """
    if isinstance(function, (list, tuple)):
        return [allow_in_graph(each) for each in function]
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType):
        raise TypeError(f"pyrite.allow_in_graph takes functions written in Python, not {function!r}")
    _native.allow_function(plain, f"{plain.__module__}.{plain.__qualname__}".replace("<locals>.", ""))
    return function


def skip_files(*places):
    """Lets code of files, folders or modules (objects or names) run plain: it is neither captured nor followed.

    Libraries that reach beyond tensors, such as `logging`, are skipped from the start. A function of a skipped file can be
    allowed again with `pyrite.allow_in_graph`.
    """
    for place in places:
        prefix = _place(place)
        _native.skip_files(prefix)
        _names.skip(prefix)
    reset()


def _place(place):
    """How the names of the files of a module, or of a path, begin."""
    if isinstance(place, types.ModuleType):
        found = getattr(place, "__file__", None)
    elif os.path.exists(place):
        return os.path.abspath(place) + (os.sep if os.path.isdir(place) else "")
    else:
        name = os.fspath(place)
        spec = importlib.util.find_spec(name) if all(part.isidentifier() for part in name.split(".")) else None
        found = spec and spec.origin
    if not found or not os.path.exists(found):
        raise ValueError(f"pyrite.skip_files takes files, folders and modules, not {place!r}")
    folder, file = os.path.split(os.path.abspath(found))
    return folder + os.sep if file == "__init__.py" else os.path.join(folder, file)


def reset():
    """Forgets everything that was captured and compiled, and the times that it took."""
    _native.forget_captures()
    _times.clear()


__all__ = ["CompiledModule", "allow_in_graph", "compile", "disable", "reset", "skip_files"]
