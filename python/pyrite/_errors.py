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
    # A function such as torch.cond, whose bodies torch's own compiler insists on.
    kind = theirs.UncapturedHigherOrderOpError if "captured completely with torch.compile" in message else theirs.Unsupported
    if kind not in _as_torch:
        _as_torch[kind] = type("GraphBreakError", (GraphBreakError, kind), {"__module__": __name__})
    return _as_torch[kind](message)


_as_torch = {}


def violated_marks(function, sizes):
    """The error of sizes that were marked as dynamic and that a function needs to be constants: torch.compile's own."""
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    rows = [f"  - {name} was marked as dynamic, but {function} fixes it to {value}" for name, value in sizes]
    advice = "Help: do not ask for its value (a comparison, a text, an index), or mark it with torch._dynamo.maybe_mark_dynamic"
    return ConstraintViolationError("\n".join([f"Constraints violated ({', '.join(name for name, _ in sizes)})!", *rows, advice]))


def backend_failed(name, error):
    """The exception of a backend as torch.compile raises it, and still one of its own class; itself where that cannot be."""
    theirs = sys.modules.get("torch._dynamo.exc")
    if theirs is None or isinstance(error, (PyriteError, theirs.TorchDynamoException)) or not isinstance(error, Exception):
        return error
    kind = type(error)
    try:
        if kind not in _failures:
            body = {"__module__": __name__, "__str__": kind.__str__}
            _failures[kind] = type("BackendFailedError", (kind, theirs.BackendCompilerFailed), body)
        made = _failures[kind].__new__(_failures[kind], *error.args)
        made.args = error.args
        made.__dict__.update(error.__dict__)
        made.backend_name, made.inner_exception, made.msg = name, error, str(error)
        made.__traceback__, made.__cause__, made.__context__ = error.__traceback__, error.__cause__, error.__context__
        made.__suppress_context__ = error.__suppress_context__
    except TypeError:
        return error
    return made


_failures = {}


class OutOfRangeError(IndexError, RuntimeError):
    """An index among the data of a compiled program points outside; torch's operators raise one of both types."""
