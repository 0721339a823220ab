"""torch.compile rebuilt in Rust: every stage can be stopped, dumped, replayed, compared and shrunk.

`torch.compile(m, backend="pyrite")` compiles what torch captured; `backend="pyrite_debug"` checks any backend as it runs.
"""

import importlib

from pyrite import _register
from pyrite._native import AccuracyError, CompileError, Graph, Node, Program, __version__

# Names that need torch are imported when they are first used: the command `pyrite` and its workers start without it.
_LAZY = {
    "CompileProfiler": "pyrite._explain",
    "ExplainWithBackend": "pyrite._explain",
    "ExportError": "pyrite._export",
    "ExportedProgram": "pyrite._export",
    "GraphBreakError": "pyrite._errors",
    "PyriteError": "pyrite._errors",
    "VerifyError": "pyrite._verify",
    "allow_in_graph": "pyrite._capture",
    "compile": "pyrite._capture",
    "compile_times": "pyrite._times",
    "disable": "pyrite._capture",
    "explain": "pyrite._explain",
    "export": "pyrite._export",
    "load": "pyrite._export",
    "record": "pyrite._replay",
    "replay": "pyrite._replay",
    "reset": "pyrite._capture",
    "skip_files": "pyrite._capture",
    "FallbackWarning": "pyrite.aot",
    "list_backends": "pyrite.backends",
    "register_backend": "pyrite.backends",
    "set_logs": "pyrite.logs",
    "trace": "pyrite._trace",
}

__all__ = ["AccuracyError", "CompileError", "Graph", "Node", "Program", "__version__", "load_ipython_extension", *_LAZY]

_register.register()


# The oldest torch that Pyrite is tested with.
_OLDEST_TORCH = (2, 11)


def _import(module, name):
    """Imports a module that needs torch, and says so where torch is missing or too old."""
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"pyrite.{name} needs PyTorch {_OLDEST_TORCH[0]}.{_OLDEST_TORCH[1]} or newer, which is not installed. "
            "Install the build for your device (https://pytorch.org/get-started), or run: pip install 'pyrite[torch]'"
        ) from None
    except ImportError as error:
        import torch

        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        if version >= _OLDEST_TORCH:
            raise
        raise ImportError(
            f"pyrite.{name} needs PyTorch {_OLDEST_TORCH[0]}.{_OLDEST_TORCH[1]} or newer; this is {torch.__version__}"
        ) from error
    return imported


def __getattr__(name):
    if name in _LAZY:
        return getattr(_import(_LAZY[name], name), name)
    if name in ("aot", "autograd", "backends", "config", "debug", "fx", "logs", "ranks", "torch_backend"):
        return _import(f"pyrite.{name}", name)
    raise AttributeError(f"module `pyrite` has no attribute `{name}`")


def load_ipython_extension(shell):
    """`%load_ext pyrite` in a notebook: gives it the cell magic `%%pyrite_debug`."""
    from pyrite import _session

    shell.register_magic_function(_session.magic(shell), "cell", "pyrite_debug")


def __dir__():
    return sorted(__all__)
