"""What capture says while it works: logged, timed, and handed to whoever listens.

Every compiler has one `Observer`; the Rust half calls its methods. A listener has `observe(record)` and the attribute
`wants_guards`; it listens to the compilers whose backend it is, or, inside of `listening`, to all of them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
import warnings

from pyrite import _times, config, logs, ranks

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_everywhere = []


@contextlib.contextmanager
def listening(listener):
    """Hands every record of every compiler to a listener."""
    _everywhere.append(listener)
    try:
        yield listener
    finally:
        _everywhere.remove(listener)


class Observer:
    """Told by capture of the frames of one compiler."""

    def __init__(self, backend, settings):
        self.own = backend if hasattr(backend, "observe") else None
        self.settings = settings
        self.frame = None

    def listeners(self):
        """Who listens, each once."""
        if self.own is None or any(listener is self.own for listener in _everywhere):
            return _everywhere
        return [self.own, *_everywhere]

    def begins(self, function, file, line):
        """A capture begins. Returns whether it is wanted."""
        only = config.debug_function
        if only and only not in (function, function.rpartition(".")[2]):
            return False
        logs.get("capture").info("Step 1: capture of %s starts (%s:%d)", function, file, line)
        self.frame = (file, line, function)
        return True

    def traced(self, function, seconds):
        """A frame has been evaluated symbolically."""
        logs.get("capture").info("Step 1: capture of %s done in %.6f s", function, seconds)
        _times.add("capture", seconds)

    def differing(self, function, file, line, sizes):
        """The sizes, by input and dimension, that differ between the ranks of a distributed job."""
        if not config.enable_compiler_collectives:
            return []
        return ranks.run_compiler_collective(f"{function} {file}:{line}", sizes)

    def wants_guards(self):
        """Whether somebody wants guards as text."""
        return logs.get("guards").isEnabledFor(logging.INFO) or any(each.wants_guards for each in self.listeners())

    def captured(self, record):
        """A frame was captured, or runs plain."""
        _count(record)
        if record.outcome == "skipped":
            level = logging.WARNING if config.verbose else logging.INFO
            if logs.get("capture").isEnabledFor(level):
                text = f"{record.function} runs plain: {record.reason}"
                logs.get("capture").log(level, "%s%s", text, f"\n{user_stack(record)}" if config.verbose else "")
        else:
            _times.add("backend", record.compile_seconds)
            _log_captured(record)
        for listener in self.listeners():
            listener.observe(record)

    def limited(self, record, message):
        """A code is captured no more."""
        try:
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:
            # The program lets warnings be errors. This one is none of its own.
            logs.get("capture").warning(message)
        for listener in self.listeners():
            listener.observe(record)

    def failed(self, frame, reason):
        """A frame, as its function and arguments, could not be captured or compiled."""
        if config.replay_record_enabled:
            from pyrite import _replay

            function, arguments = frame
            _replay.keep(function, arguments, reason, self.settings)

    def backend_failed(self, name, error):
        """Says in an exception of a backend which of the user's code it is about."""
        if self.frame is None:
            return
        file, line, function = self.frame
        if config.verbose:
            own = [entry for entry in traceback.extract_stack() if not entry.filename.startswith(_PACKAGE)]
            stack = "".join(traceback.format_list(own)) + f'  File "{file}", line {line}, in {function}'
            error.add_note(f"the backend `{name}` failed above, on this code of the user's, most recent call last:\n{stack}")
        else:
            error.add_note(
                f'the backend `{name}` failed on the graph of {function} ("{file}", line {line}); pyrite.config.verbose = True, or '
                "PYRITE_VERBOSE=1, shows the whole stack of the user's code"
            )


def _count(record):
    """Counts as torch's own compiler does, where it is loaded: programs look at its counters."""
    theirs = sys.modules.get("torch._dynamo.utils")
    if theirs is None:
        return
    counters = theirs.counters
    counters["frames"]["total"] += 1
    if record.outcome == "skipped":
        return
    counters["frames"]["ok"] += 1
    if record.op_count:
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += record.op_count
    if record.reason is not None:
        counters["graph_break"][record.reason] += 1


def user_stack(record):
    """The user's stack of a record as Python prints stacks."""
    return "\n".join(f'  File "{file}", line {line}, in {function}' for file, line, function in record.user_stack)


def _log_captured(record):
    if record.failed_guard is not None:
        logs.get("recompiles").info("%s (%s:%d) again: %s", record.function, record.file, record.line, record.failed_guard)
    if record.reason is not None and logs.get("graph_breaks").isEnabledFor(logging.INFO):
        hint = f"\n  Help: {record.hint}" if record.hint else ""
        logs.get("graph_breaks").info("%s: %s%s\n%s", record.function, record.reason, hint, user_stack(record))
    for guard in record.guards:
        logs.get("guards").info("%s: %s", record.function, guard)
    if record.graph is not None:
        logs.get("graph_code").info("%s:\n%s", record.function, record.graph)
        if logs.get("graph").isEnabledFor(logging.INFO):
            rows = [f"  {node.op:<14} {node.name:<24} {node.target}" for node in record.graph.nodes]
            logs.get("graph").info("%s:\n%s", record.function, "\n".join(rows))
