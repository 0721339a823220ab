"""Exceptions that the package raises."""


class GraphBreakError(RuntimeError):
    """A function that must be one graph cannot be; the message says where and why."""
