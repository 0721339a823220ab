"""What capturing a call found: `explain`, `ExplainWithBackend`, `CompileProfiler`."""

from __future__ import annotations

import collections
import html
import traceback

from pyrite import _observer, backends
from pyrite._capture import compile


class BreakReason:
    """Why a graph ended: the reason, the user's stack (innermost last), a hint how to avoid it."""

    def __init__(self, record):
        self.reason = record.reason
        self.hint = record.hint
        self.user_stack = [
            traceback.FrameSummary(file, line, function, lookup_line=False) for file, line, function in record.user_stack
        ]

    def __str__(self):
        lines = [f"Reason: {self.reason}", "User Stack:"]
        lines += [f"  {entry}" for entry in self.user_stack]
        if self.hint:
            lines.append(f"Help: {self.hint}")
        return "\n".join(lines)

    __repr__ = __str__


class Explanation:
    """What capture found.

    `graphs`, `graph_count`, `graph_break_count`, `break_reasons` (each with `reason`, `user_stack`, `hint`), `op_count` (calls of
    operators in all graphs), `ops_per_graph`, `opaque_ops` (what Pyrite does not know and torch runs), `out_guards` (what was
    assumed, as text), `guards_per_graph` (the same for each graph) and `compile_times` (function, seconds of capture, seconds of the backend, for each graph). `str` gives all
    of it as text.
    """

    def __init__(self, records):
        captured = [record for record in records if record.outcome == "captured"]
        self.graphs = [record.graph for record in captured if record.graph is not None]
        self.graph_count = len(self.graphs)
        self.break_reasons = [BreakReason(record) for record in records if record.reason is not None]
        self.graph_break_count = len(self.break_reasons)
        self.ops_per_graph = [
            [node.target for node in graph.nodes if node.op == "call_function"] for graph in self.graphs
        ]
        self.opaque_ops = sorted({name for graph in self.graphs for name in graph.opaque_ops})
        self.op_count = sum(record.op_count for record in captured)
        self.out_guards = [guard for record in captured for guard in record.guards]
        self.guards_per_graph = [list(record.guards) for record in captured if record.graph is not None]
        self.compile_times = [(record.function, record.capture_seconds, record.compile_seconds) for record in captured]

    def __repr__(self):
        return f"<Explanation: {self.graph_count} graphs, {self.graph_break_count} breaks, {self.op_count} operators>"

    def _repr_html_(self):
        """What a notebook shows: the counts, why graphs broke, and the operators of each graph."""
        rows = [("graphs", self.graph_count), ("graph breaks", self.graph_break_count), ("operators", self.op_count)]
        rows += [(f"break {number}", reason) for number, reason in enumerate(self.break_reasons, 1)]
        rows += [(f"graph {number}", ", ".join(map(str, ops))) for number, ops in enumerate(self.ops_per_graph, 1)]
        cells = (f"<tr><th>{html.escape(str(name))}</th><td><pre>{html.escape(str(value))}</pre></td></tr>" for name, value in rows)
        return f"<table>{''.join(cells)}</table>"

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
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *(f"    {op}" for op in ops)]
        if self.opaque_ops:
            lines += ["Opaque Ops:", *(f"  {name}" for name in self.opaque_ops)]
        lines.append("Out Guards:")
        lines += [f"  {guard}" for guard in self.out_guards]
        lines.append("Compile Times:")
        lines += [f"  {name}: capture {first:.6f} s, backend {second:.6f} s" for name, first, second in self.compile_times]
        return "\n".join(lines)


class ExplainWithBackend:
    """A backend that hands graphs on to another one, and keeps what capture found.

    `eb = pyrite.ExplainWithBackend("native"); pyrite.compile(f, backend=eb)(x); print(eb.output())`. The other backend is a
    name or a function.
    """

    wants_guards = True
    _takes_graph = True

    def __init__(self, backend="eager"):
        self.backend = backends.lookup(backend)
        self.__name__ = f"explain with {backends.name_of(backend)}"
        self.records = []

    def __call__(self, graph, example_inputs):
        return self.backend(graph, example_inputs)

    def observe(self, record):
        """Keeps what is known of a frame."""
        if record.outcome != "limit":
            self.records.append(record)

    @property
    def graphs(self):
        """The graphs so far."""
        return self.output().graphs

    @property
    def op_count(self):
        """How many operators the graphs call."""
        return self.output().op_count

    @property
    def break_reasons(self):
        """Why graphs ended."""
        return self.output().break_reasons

    def output(self):
        """What capture found so far, as an `Explanation`."""
        return Explanation(self.records)


def explain(function, *, backend="eager", dynamic=None):
    """Calls a function and tells what capturing it found: `pyrite.explain(f)(*args)` is an `Explanation`."""

    def explained(*args, **kwargs):
        explaining = ExplainWithBackend(backend)
        compile(function, backend=explaining, dynamic=dynamic)(*args, **kwargs)
        return explaining.output()

    return explained


def _times(count):
    return "1 time" if count == 1 else f"{count} times"


class CompileProfiler:
    """Why functions are compiled again and where graphs break, over the length of a program.

    As a backend it watches what is compiled with it (graphs go on to `backend`, by default `eager`); in a `with` block it
    watches everything that is compiled there. `report()` says what it saw.
    """

    wants_guards = False
    _takes_graph = True

    def __init__(self, backend="eager"):
        self.backend = backends.lookup(backend)
        self.__name__ = f"profile with {backends.name_of(backend)}"
        self.frame_count = 0
        self.op_count = 0
        self.recompilations = collections.defaultdict(collections.Counter)
        self.breaks = collections.Counter()
        self.limits = []
        self._listening = []

    def __enter__(self):
        listening = _observer.listening(self)
        listening.__enter__()
        self._listening.append(listening)
        return self

    def __exit__(self, *failure):
        return self._listening.pop().__exit__(*failure)

    def __call__(self, graph, example_inputs):
        return self.backend(graph, example_inputs)

    def observe(self, record):
        """Counts a frame."""
        place = (record.function, record.file, record.line)
        if record.failed_guard is not None:
            self.recompilations[place][record.failed_guard] += 1
        if record.outcome == "limit":
            self.limits.append(place)
            return
        if record.outcome == "captured":
            self.frame_count += 1
            self.op_count += record.op_count
        if record.reason is not None:
            file, line, _ = record.user_stack[-1] if record.user_stack else (record.file, record.line, record.function)
            self.breaks[record.reason, file, line] += 1

    def report(self):
        """What was seen, as text."""
        lines = [f"Compile profile: {self.frame_count} frames captured, {self.op_count} operators", "", "Graph breaks:"]
        for (reason, file, line), count in self.breaks.most_common():
            lines.append(f"  {_times(count)}: {reason} ({file}:{line})")
        lines += [] if self.breaks else ["  none"]
        lines += ["", "Recompilations, by the guard that failed:"]
        for (function, file, line), guards in self.recompilations.items():
            lines.append(f"  {function} ({file}:{line}):")
            lines += [f"    {_times(count)}: {guard}" for guard, count in guards.most_common()]
        lines += [] if self.recompilations else ["  none"]
        if self.limits:
            lines += ["", "Run plain, because of pyrite.config.cache_size_limit:"]
            lines += [f"  {function} ({file}:{line})" for function, file, line in self.limits]
        return "\n".join(lines)
