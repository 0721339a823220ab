"""Exceptions that the package raises."""


class PyriteError(RuntimeError):
    """Something that the user gave Pyrite cannot be used; the message says what, why, and what to do."""


class GraphBreakError(PyriteError):
    """A function that must be one graph cannot be; the message says where and why."""


class OutOfRangeError(IndexError, RuntimeError):
    """An index among the data of a compiled program points outside; torch's operators raise one of both types."""
