"""Exceptions that the package raises."""

import sys


class PyriteError(RuntimeError):
    """Something that the user gave Pyrite cannot be used; the message says what, why, and what to do."""


class GraphBreakError(PyriteError):
    """A function that must be one graph cannot be; the message says where and why."""


def graph_break(message):
    """The error of a function that must be one graph. Where torch's own compiler is loaded it is one of its errors, too: a program that
    was written for torch.compile catches those."""
    theirs = sys.modules.get("torch._dynamo.exc")
    if theirs is None:
        return GraphBreakError(message)
    if not _as_torch:
        _as_torch.append(type("GraphBreakError", (GraphBreakError, theirs.Unsupported), {"__module__": __name__}))
    return _as_torch[0](message)


_as_torch = []


class OutOfRangeError(IndexError, RuntimeError):
    """An index among the data of a compiled program points outside; torch's operators raise one of both types."""
