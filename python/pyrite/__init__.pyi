"""torch.compile rebuilt in Rust: every stage can be stopped, dumped, replayed, compared and shrunk."""

import os
import types
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from traceback import FrameSummary
from typing import Any, Literal, ParamSpec, TypeVar, overload

from pyrite import autograd as autograd
from pyrite import backends as backends
from pyrite import config as config
from pyrite import debug as debug
from pyrite import fx as fx
from pyrite import logs as logs
from pyrite import ranks as ranks
from pyrite import torch_backend as torch_backend
from pyrite._native import AccuracyError as AccuracyError
from pyrite._native import CompileError as CompileError
from pyrite._native import Graph as Graph
from pyrite._native import Node as Node
from pyrite._native import Program as Program
from pyrite._native import __version__ as __version__

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Model = TypeVar("_Model", bound=Callable[..., Any])
_BackendFunction = Callable[[Graph, list[Any]], Callable[..., Any] | None]
_Backend = str | _BackendFunction

def load_ipython_extension(shell: Any) -> None: ...

class PyriteError(RuntimeError): ...
class GraphBreakError(PyriteError): ...
class VerifyError(AssertionError): ...
class FallbackWarning(UserWarning): ...

class ExportError(PyriteError): ...

class InputSpec:
    kind: Any
    name: str
    target: int | str

class OutputSpec:
    kind: str
    value: object

class Signature:
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    asserted: tuple[int, ...]
    @property
    def parameters(self) -> list[str]: ...
    @property
    def buffers(self) -> list[str]: ...
    @property
    def user_inputs(self) -> list[str]: ...

class ExportedProgram:
    graph_signature: Signature
    tensors: dict[str, Any]
    constraints: list[str]
    ranges: dict[str, Any]
    @property
    def graph(self) -> Graph: ...
    @property
    def code(self) -> str: ...
    @property
    def state_dict(self) -> dict[str, Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def run(self, args: Sequence[Any], kwargs: dict[str, Any] | None = None, *, backend: _Backend = "native") -> Any: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...

def export(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: dict[str, Any] | Sequence[Any] | None = None,
) -> ExportedProgram:
    """Captures a call of a function or module as one graph."""

def load(path: str | os.PathLike[str]) -> ExportedProgram:
    """Reads a program that `ExportedProgram.save` wrote; no code in it runs."""

class BreakReason:
    reason: str
    hint: str | None
    user_stack: list[FrameSummary]

class Explanation:
    graphs: list[Graph]
    graph_count: int
    graph_break_count: int
    break_reasons: list[BreakReason]
    op_count: int
    ops_per_graph: list[list[str]]
    opaque_ops: list[str]
    out_guards: list[str]
    guards_per_graph: list[list[str]]
    compile_times: list[tuple[str, float, float]]

class ExplainWithBackend:
    def __init__(self, backend: _Backend = "eager") -> None: ...
    def __call__(self, graph: Graph, example_inputs: list[Any]) -> Callable[..., Any] | None: ...
    @property
    def graphs(self) -> list[Graph]: ...
    @property
    def op_count(self) -> int: ...
    @property
    def break_reasons(self) -> list[BreakReason]: ...
    def output(self) -> Explanation: ...

class CompileProfiler:
    frame_count: int
    op_count: int
    recompilations: dict[tuple[str, str, int], Counter[str]]
    breaks: Counter[tuple[str, str, int]]
    limits: list[tuple[str, str, int]]

    def __init__(self, backend: _Backend = "eager") -> None: ...
    def __enter__(self) -> CompileProfiler: ...
    def __exit__(self, *failure: Any) -> bool | None: ...
    def __call__(self, graph: Graph, example_inputs: list[Any]) -> Callable[..., Any] | None: ...
    def report(self) -> str: ...

@overload
def compile(
    model: _Model,
    *,
    backend: _Backend = "native",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> _Model: ...
@overload
def compile(
    model: None = None,
    *,
    backend: _Backend = "native",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Callable[[_Model], _Model]: ...
def explain(
    function: Callable[_Arguments, Any], *, backend: _Backend = "eager", dynamic: bool | None = None
) -> Callable[_Arguments, Explanation]: ...
@overload
def disable(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]: ...
@overload
def disable(function: None = None) -> Callable[[_Model], _Model]: ...
@overload
def allow_in_graph(function: _Model) -> _Model: ...
@overload
def allow_in_graph(function: Sequence[_Model]) -> list[_Model]: ...
def skip_files(*places: str | os.PathLike[str] | types.ModuleType) -> None: ...
def reset() -> None: ...
@overload
def compile_times(repr: Literal["str"] = "str") -> str: ...
@overload
def compile_times(repr: Literal["csv"]) -> tuple[list[str], list[list[Any]]]: ...
@overload
def compile_times(repr: Literal["data"]) -> dict[str, dict[str, float]]: ...
def record(path: str | os.PathLike[str], function: Callable[..., Any], *args: Any, **kwargs: Any) -> str | os.PathLike[str]: ...
def replay(path: str | os.PathLike[str], *, trust: bool = False) -> Explanation: ...
def list_backends() -> list[str]: ...
def register_backend(function: _BackendFunction, name: str | None = None) -> _BackendFunction: ...
def set_logs(**levels: int | bool) -> None: ...
def trace(artifacts: str = "all", folder: str | None = None) -> AbstractContextManager[str]: ...
