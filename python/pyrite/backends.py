"""Who compiles graphs.

A backend is one function: it takes a `pyrite.Graph` and example inputs and returns a callable that takes one argument per
placeholder and returns the list of the graph's outputs. Pyrite's own are known by their names; `register_backend` gives a
name to one of yours.
"""

from __future__ import annotations

from pyrite import _native, config

_registered = {}


def register_backend(function, name=None):
    """Makes a backend known by its name; also a decorator."""
    _registered[name or function.__name__] = function
    return function


def list_backends():
    """The names of all backends: Pyrite's own, then registered ones."""
    return [*(name for name, _ in _native.backends()), *_registered]


def lookup(backend, options=None):
    """The function behind a backend's name; a function is itself. Where `config.debug` is set, its programs are checked."""
    if callable(backend):
        return backend
    if backend in _registered:
        return _registered[backend]
    known = list_backends()
    if backend not in known and ":" not in backend:
        raise ValueError(f"there is no backend `{backend}`; there are {', '.join(known)}")

    def compiler(graph, example_inputs):
        if config.debug:
            settings = {name: getattr(config, name) for name in config.DEBUG_SETTINGS}
            return _native.compile_debugged(graph, backend, options, tuple(example_inputs), **settings)
        return _native.compile(graph, backend, options, tuple(example_inputs))

    return compiler
