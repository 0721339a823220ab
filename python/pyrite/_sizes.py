"""Symbolic sizes of torch as Pyrite's text has them.

A size is written over symbols where Pyrite's arithmetic can say it: sums, products, powers, floor division, remainders,
minima and maxima of integers. Any other size (a rounded float, a square root) is a symbol of its own, the same for the
same expression, whose value is read off a tensor or computed by Python.

Invariant: a symbol whose name begins with `s` is at least 2, as Pyrite's reader assumes; the others may be 0 and 1.
"""

from __future__ import annotations

import sympy
import torch
from torch.utils._sympy import functions


class Sizes:
    """The symbols of one graph: their names and values that they had while it was traced."""

    def __init__(self):
        self.names = {}
        self.hints = {}
        self._texts = {}

    def text(self, size):
        """A size as text."""
        if isinstance(size, int):
            return str(size)
        return self._written(size.node.shape_env, size.node.expr)

    def argument(self, size):
        """A number as an argument of an operator: an expression of Python."""
        if isinstance(size, int):
            return str(size)
        env, expr = size.node.shape_env, size.node.expr
        return self._named(env, expr) if expr.has(*_EXTREMA) else self._written(env, expr)

    def symbols_of_argument(self, size):
        """The names of the symbols that a number is written with as an argument."""
        if isinstance(size, torch.SymInt) and size.node.expr.has(*_EXTREMA):
            return frozenset([self._named(size.node.shape_env, size.node.expr)])
        return self.symbols(size)

    def symbols(self, size):
        """The names of the symbols in a size."""
        if isinstance(size, int):
            return frozenset()
        env, expr = size.node.shape_env, size.node.expr
        if not isinstance(expr, sympy.Basic):
            return frozenset()
        if _is_sayable(expr):
            return frozenset(self._named(env, symbol) for symbol in expr.free_symbols)
        return frozenset([self._named(env, expr)])

    def symbol(self, size):
        """The name of a size that is one symbol, else `None`."""
        names = self.symbols(size)
        return next(iter(names)) if len(names) == 1 and self.text(size) in names else None

    def is_known(self, size):
        """Whether arithmetic over symbols says the size."""
        return isinstance(size, int) or _is_sayable(size.node.expr)

    def _written(self, env, expr):
        if expr not in self._texts:
            self._texts[expr] = self._said(env, expr) if _is_sayable(expr) else self._named(env, expr)
        return self._texts[expr]

    def _named(self, env, expr):
        """The name of a symbol, or of an expression that stands as one."""
        if expr not in self.names:
            if expr.is_symbol:
                name = str(expr)
                bounds = env.var_to_range.get(expr)
                if name.startswith("s") and (bounds is None or not bounds.lower >= 2):
                    name = "u" + name
            else:
                name = f"h{len(self.names)}"
            self.names[expr] = name
            hint = _hint(env, expr)
            if hint is not None:
                self.hints[name] = hint
        return self.names[expr]

    def _said(self, env, expr):
        if expr.is_Integer:
            return str(int(expr))
        if expr.is_symbol:
            return self._named(env, expr)
        parts = [self._said(env, part) for part in expr.args]
        if expr.is_Add:
            return "(" + " + ".join(parts) + ")"
        if expr.is_Mul:
            return "*".join(f"({part})" if part.startswith("-") else part for part in parts)
        if expr.is_Pow:
            return "*".join([parts[0]] * int(expr.exp))
        if isinstance(expr, _DIVISIONS):
            return f"(({parts[0]})//({parts[1]}))"
        if isinstance(expr, _REMAINDERS):
            return f"(({parts[0]}) % ({parts[1]}))"
        function = "Max" if isinstance(expr, _MAXIMA) else "Min"
        text = parts[0]
        for part in parts[1:]:
            text = f"{function}({text}, {part})"
        return text


_DIVISIONS = (functions.FloorDiv, functions.CleanDiv)
_REMAINDERS = (functions.Mod, functions.PythonMod)
_MAXIMA = (sympy.Max, functions.Max)
_MINIMA = (sympy.Min, functions.Min)
_EXTREMA = _MAXIMA + _MINIMA


def _is_sayable(expr):
    """Whether Pyrite's arithmetic can say an expression."""
    if expr.is_Integer:
        return True
    if expr.is_symbol:
        return expr.is_integer is not False
    if expr.is_Pow and not (expr.exp.is_Integer and 1 <= expr.exp <= 8):
        return False
    if not (expr.is_Add or expr.is_Mul or expr.is_Pow or isinstance(expr, _DIVISIONS + _REMAINDERS + _MAXIMA + _MINIMA)):
        return False
    return all(_is_sayable(part) for part in expr.args)


def _hint(env, expr):
    """The value that an expression had while it was traced; `None` where it depends on data."""
    values = {symbol: env.backed_var_to_val.get(symbol) for symbol in expr.free_symbols}
    if any(value is None for value in values.values()):
        return None
    value = expr.xreplace(values)
    return int(value) if value.is_number and value.is_integer else None


def is_symbolic(value):
    """Whether a value is a number that is known at run time only."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
