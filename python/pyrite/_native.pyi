"""The Rust half of the package."""

import os
import types
from collections.abc import Callable
from typing import Any

import torch

__version__: str

def log_table() -> list[tuple[str, str, str, str]]:
    """The table of logs: name, component or artifact, file of the debug directory, what it shows."""

def unknown_log(name: str) -> str:
    """What is wrong with a name that the table does not have."""

def set_log_level(name: str, level: int) -> None:
    """Logs a name from a level of `logging` on."""

def start_trace(
    artifacts: str,
    *,
    below: str | None = None,
    exact: str | None = None,
    argv: list[str] = ...,
    versions: list[tuple[str, str]] = ...,
) -> Any:
    """Begins a trace and returns its folder; None where no artifact is wanted."""

def stop_trace() -> Any:
    """Ends the trace that is going on and returns its folder."""

class CompileError(RuntimeError):
    """A backend could not compile a program."""

    node: str | None

class AccuracyError(RuntimeError):
    """A compiled program computed a different result than the reference; the last line is the path of a repro."""

class Node:
    """A node of a graph: what FX calls its name, op and target."""

    name: str
    op: str
    target: str

class Graph:
    """A graph of tensor operators. Its text is Python that PyTorch runs too."""

    @staticmethod
    def from_text(text: str, hints: dict[str, int] | None = None) -> Graph:
        """Reads a graph from its text: Pyrite's, or what FX prints. Hints are values of symbolic sizes."""

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Graph:
        """Reads a graph from a file: a repro, what FX prints, or a program of torch.export (`.pt2`)."""

    code: str
    nodes: list[Node]
    op_count: int
    opaque_ops: list[str]
    types: dict[str, tuple[str, list[int | None]]]
    writes_behind_autograd: bool

    def print_readable(self) -> str:
        """The text with the type, shape and strides of every value, and the user's stacks."""

    def __call__(self, *arguments: Any) -> list[Any]:
        """Runs the graph eagerly."""

    def _repr_html_(self) -> str:
        """What a notebook shows: the text with types and shapes."""

class GpuSegment:
    """A functional graph of loops alone on a GPU: call it with one argument per placeholder, and it returns the list of the graph's outputs."""

    ptx: str
    kernels: list[str]
    assembled: int
    checks_indices: bool

    def __call__(self, *arguments: Any) -> list[Any]: ...
    def check(self) -> None:
        """Raises an `IndexError` if a kernel has met an index out of bounds since it was last asked."""

def compile_gpu(graph: Any, options: dict[str, Any] | None = None, *, interpret: bool = False) -> GpuSegment:
    """Compiles a functional graph for a GPU. What is no loop is a `CompileError`, whose attribute `operators` names the operators."""

class GpuMatmul:
    """Small matmuls in single precision on a GPU. A call gives `None` where operands do not lie as its kernel wants them."""

    def __init__(self, *, interpret: bool = False) -> None: ...
    def __call__(self, lhs: Any, rhs: Any, bias: Any = None) -> Any | None: ...

class Places:
    """The addresses of some arguments of a call."""

    def __init__(self, arguments: list[Any], numbers: list[int]) -> None: ...
    def hold(self, arguments: list[Any]) -> bool:
        """Whether the tensors of another call are where those were."""

def lie_apart(arguments: tuple[Any, ...], written: list[int]) -> bool:
    """Whether each tensor has a storage of its own, and no element of those with these numbers shares its memory with another."""

def extern_operators() -> list[str]:
    """The names of the operators that are never loops: matmuls, convolutions and other calls."""

class Program:
    """A compiled program: call it with one argument per placeholder, and it returns the list of the graph's outputs."""

    backend: str
    written: list[int]
    unrecorded: list[int]
    returned: list[int]
    draws: bool
    rewrites: list[str]
    others: int

    def __call__(self, *arguments: Any) -> list[Any]: ...
    def forward(self, *arguments: Any) -> Outcome:
        """Runs the program and returns what autograd needs to know."""

    def forward_short(self, *arguments: Any) -> Outcome | None:
        """The same for a program whose last call was short; `None` where this one has to go the longer way."""

    def graphs(self) -> list[tuple[str, Graph]]:
        """The graphs that the backend runs, with their names."""

    stage_times: list[tuple[str, float]]

class Outcome:
    """The leaves of a program's outputs, which of them lie in the memory of inputs, and the backward half."""

    def values(self) -> list[Any]: ...
    def several(self) -> list[int]:
        """The leaves that are one of several views which one operator made."""

    def aliases(self) -> list[tuple[int, tuple[list[int], list[int], int, str | None] | None] | None]: ...
    def held(self) -> list[int]: ...
    def held_inputs(self) -> list[int]: ...
    def is_fresh(self) -> bool:
        """Whether every leaf is a tensor with memory and a version of its own."""

    def seen(self) -> Seen | None:
        """What the program ran with, where that is known."""

    def nest(self, leaves: list[Any]) -> list[Any]: ...
    def tape(self) -> Tape | None: ...

class Seen:
    """The arguments of a call, as long as somebody else has them, and how often each had been written."""

    def arguments(self) -> list[Any] | None:
        """The arguments; `None` where one is gone or was written since."""

class Tape:
    """The backward half of one run. What it needs is freed on the way, unless it is retained."""

    wanted: list[int]

    def run(
        self, gradients: list[torch.Tensor | None], held: list[tuple[int, torch.Tensor]] = ..., *, retain: bool = False
    ) -> list[torch.Tensor | None]: ...

def compile(
    graph: Graph,
    backend: str = "native",
    options: dict[str, Any] | None = None,
    example_inputs: tuple[Any, ...] | None = None,
) -> Program:
    """Compiles a graph with a backend of Pyrite's."""

def compile_debugged(
    graph: Graph,
    backend: str,
    options: dict[str, Any] | None = None,
    example_inputs: tuple[Any, ...] | None = None,
    *,
    repro_after: str = "capture",
    repro_level: int = 4,
    debug_dir: str = "pyrite_debug",
    reference: str = "eager",
    accuracy: str = "fp",
    minify: bool = True,
    function: Callable[..., Any] | None = None,
) -> Program:
    """Compiles a graph with a backend, by its name or a function with a name, so that a failure leaves a repro in a folder."""

def import_for_torch(modules: list[str]) -> None:
    """Lets the processes in which torch's backends run import modules, for the operators that they define."""

def operators() -> list[str]:
    """The names of the operators that Pyrite knows."""

def backends() -> list[tuple[str, str]]:
    """Names and help of the backends of Pyrite's."""

def main(words: list[str]) -> int:
    """Does what the words of a command line say, without the program's name, and returns the exit code."""

def session_options() -> list[str]:
    """The names of the options of a session."""

def report_page(folder: str | os.PathLike[str]) -> str:
    """The report of a session's folder, as one HTML page."""

def debug_session(
    file: str, options: str, imports: list[str] = ..., say: Callable[[str], object] | None = None
) -> str:
    """Debugs a file as options say, which are JSON; returns what was found, as JSON. `say` hears of every step."""

def compare_values(
    expected: list[tuple[str, Any]],
    actual: list[tuple[str, Any]],
    exact: list[tuple[str, Any]] | None = None,
    accuracy: str = "fp",
    switches: str = "{}",
) -> tuple[bool, str, str, list[str], str]:
    """Compares named values: whether they agree, the verdict, a sentence, lines, and everything as JSON."""

class Captured:
    """A captured frame."""

    function: str
    file: str
    line: int
    graph: Graph | None
    op_count: int
    reason: str | None
    hint: str | None
    user_stack: list[tuple[str, int, str]]
    guards: list[str]
    symbols: list[tuple[str, int, int]]
    constraints: list[str]
    changes: int
    asserted: list[int]
    draws: int
    capture_seconds: float
    compile_seconds: float
    outcome: str
    failed_guard: str | None

class Compiler:
    """A function that compiles what it calls."""

    def __init__(
        self,
        backend: Callable[[Graph, tuple[Any, ...]], Callable[..., Any] | None],
        observer: Any,
        *,
        fullgraph: bool,
        dynamic: bool | None,
        cache_size_limit: int,
    ) -> None: ...
    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any: ...
    @staticmethod
    def call_plain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any: ...

def captures() -> bool:
    """Whether frames of this version of CPython are captured."""

def install() -> None:
    """Puts the hook in place where CPython evaluates frames."""

def skip_code(code: types.CodeType) -> None:
    """Lets frames of a code run plain for good."""

class MixedProgram:
    """A graph with opaque calls: parts that a backend compiled, and parts that torch runs."""

    parts: tuple[int, int]
    def __call__(self, *arguments: object) -> list[object]: ...

def compile_mixed(
    graph: Graph, backend: str, options: dict[str, object] | None, example_inputs: tuple[object, ...]
) -> Callable[..., list[object]]:
    """Compiles a graph with opaque calls: by a backend of Pyrite's where that is possible, else all of it is torch's."""

def drop_guards(kind: str | None) -> list[str]:
    """Leaves out all guards of a kind, for tests of the tests; `None` puts them back. Returns the kinds."""

def allow_function(function: types.FunctionType, name: str) -> None:
    """Lets calls of a function written in Python be single nodes of graphs, under a dotted name."""

def skip_files(prefix: str) -> None:
    """Lets calls into files whose names begin so not be followed."""

def copy_set(set: set[object], cls: type | None = None) -> set[object]:
    """A copy of a set that Python iterates over and changes as it does the set."""

def set_layout(set: set[object] | frozenset[object]) -> tuple[int, ...]:
    """Where a set has its members: the size of its table, where `pop` begins, the slots that are taken with their hashes."""

def forget_captures() -> None:
    """Forgets everything that was captured."""

def reassembled(code: types.CodeType) -> tuple[bytes, bytes] | None:
    """The code and the exception table of a code object, decoded and assembled again."""
