"""What a call leaves behind, and in what the calls of a plain and a compiled function differ.

A call is *observed*: its outputs with all that a user can ask of them (values, dtype, strides, whose memory they lie in, what autograd knows), what
its inputs hold afterwards, gradients, and the next random number. `Judge` calls a function plain and at one entry point, and says in one
sentence what differs. What torch's own capture does whatever the backend, `aot_eager` shows: it is not asked of Pyrite.
"""

from __future__ import annotations

import dataclasses
import warnings

import torch
import torch.utils._pytree as pytree

import pyrite
from operators.compare import WIDER, value_difference


def by_torch(dynamic):
    def way(function):
        torch._dynamo.reset()
        return torch.compile(function, backend="pyrite", options={"strict": True}, dynamic=dynamic)

    return way


def by_pyrite(dynamic):
    def way(function):
        pyrite.reset()
        return pyrite.compile(function, dynamic=dynamic)

    return way


def by_others(dynamic):
    def way(function):
        torch._dynamo.reset()
        return torch.compile(function, backend="aot_eager", dynamic=dynamic)

    return way


# The entry points, each with what else captures as it does.
WAYS = {
    "torch": (by_torch(None), by_others(None)),
    "torch, dynamic": (by_torch(True), by_others(True)),
    "pyrite": (by_pyrite(None), None),
    "pyrite, dynamic": (by_pyrite(True), None),
}


# What is said of a panic: an error all the same, but never the right one.
PANIC = "a bug in Pyrite"


# Errors of eager's backward for tensors that it saved and somebody wrote, and for gradients that it lacks: compiled code saves what it likes.
LATER = ("modified by an inplace operation", "derivative for aten::")


@dataclasses.dataclass
class Shown:
    """A tensor, as a user sees it."""

    value: torch.Tensor
    kind: tuple
    strides: tuple
    place: tuple | None
    autograd: tuple
    bits: tuple


@dataclasses.dataclass
class Observed:
    """What a call left, or the error that it ended with."""

    error: Exception | None = None
    outputs: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)
    gradients: list = dataclasses.field(default_factory=list)
    following: float = 0.0


def copied(arguments):
    """Arguments with storages of their own, in which tensors lie as in those of the originals."""
    storages = {}

    def copy(value):
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return value
        storage = value.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = storage.clone()
        made = torch.empty(0, dtype=value.dtype).set_(storages[storage._cdata], value.storage_offset(), value.shape, value.stride())
        made = torch._neg_view(made) if value.is_neg() else made
        made = made.conj() if value.is_conj() else made
        return made.requires_grad_() if value.requires_grad else made

    return pytree.tree_map(copy, arguments)


def observed(function, arguments, backward=True, state=()):
    """Calls a function with copies of arguments, and differentiates what can be; `state` is what it uses and may write beside them."""
    arguments = copied(arguments)
    given = [each for each in pytree.tree_leaves(arguments) if isinstance(each, torch.Tensor)] + list(state)
    wanted = [each for each in given if each.requires_grad]
    torch.manual_seed(5)
    try:
        with torch.set_grad_enabled(bool(wanted)):
            outputs = [each for each in pytree.tree_leaves(function(*arguments)) if each is not None]
        following = torch.rand(()).item()
        shown = shown_all(outputs, given)
        gradients = []
        able = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
        if backward and wanted and able:
            torch.manual_seed(6)
            # Drawn in one type, so that they are the same for the function in double precision.
            towards = [torch.randn(each.shape, dtype=torch.complex64 if each.is_complex() else None).to(each.dtype) for each in able]
            gradients = torch.autograd.grad(able, wanted, towards, allow_unused=True)
    except Exception as error:
        return Observed(error)
    inputs = [each.detach().clone() for each in given]
    return Observed(None, shown, inputs, list(gradients), following)


def shown_all(outputs, given):
    """What a user sees of outputs; memory is named by the first input or output that lies in it."""
    homes = {}
    for number, each in enumerate(given):
        if each.layout is torch.strided and each.untyped_storage().nbytes():
            homes.setdefault(each.untyped_storage()._cdata, (f"input {number}", 0))
    found = []
    for number, each in enumerate(outputs):
        if not isinstance(each, torch.Tensor):
            found.append(each)
            continue
        place = None
        if each.layout is torch.strided and each.numel():
            begin = each.storage_offset() * each.itemsize
            # Where an output lies in memory of its own is nobody's business: others count from there.
            home, first = homes.setdefault(each.untyped_storage()._cdata, (f"output {number}", begin))
            place = home, begin - first
        same = next((index for index, other in enumerate(given) if other is each), None)
        kind = (each.dtype, tuple(each.shape), each.layout, type(each).__name__, same)
        strides = tuple(each.stride()) if each.layout is torch.strided else ()
        autograd = (each.requires_grad, each.is_leaf, each.grad_fn is None)
        found.append(Shown(each.detach().clone(), kind, strides, place, autograd, (each.is_conj(), each.is_neg())))
    return found


def significant(shown):
    """Strides of dimensions that have several elements."""
    return tuple(step for step, size in zip(shown.strides, shown.kind[1]) if size > 1) if 0 not in shown.kind[1] else ()


def difference(want, have, exact=lambda: None, all_strides=False):
    """In what two observations differ, in a sentence; `exact()` is the plain one in double precision."""
    if PANIC in str(have.error):
        return f"panics: {first_line(have.error)}"
    if any(each in str(want.error) for each in LATER):
        return None
    if want.error is not None:
        return None if have.error is not None else f"eager raises {type(want.error).__name__}: {first_line(want.error)}"
    if have.error is not None:
        return f"raises {type(have.error).__name__}: {first_line(have.error)}"
    if len(want.outputs) != len(have.outputs):
        return f"{len(have.outputs)} outputs, {len(want.outputs)} in eager"
    for number, (mine, theirs) in enumerate(zip(have.outputs, want.outputs)):
        if not isinstance(theirs, Shown):
            if type(mine) is not type(theirs) or (text := value_difference(theirs, mine, lambda: None)):
                return f"output {number}: {mine!r}, {theirs!r} in eager"
            continue
        if not isinstance(mine, Shown):
            return f"output {number}: {mine!r}, a tensor in eager"
        for what in ("kind", "bits", "place", "autograd"):
            if getattr(mine, what) != getattr(theirs, what):
                return f"output {number}: {what}: {getattr(mine, what)}, {getattr(theirs, what)} in eager"
        if (mine.strides != theirs.strides) if all_strides else (significant(mine) != significant(theirs)):
            return f"output {number}: strides: {mine.strides}, {theirs.strides} in eager, of {theirs.kind[1]}"
    for what in ("outputs", "inputs", "gradients"):
        for number, (mine, theirs) in enumerate(zip(getattr(have, what), getattr(want, what))):
            if (mine is None) != (theirs is None):
                return f"{what} {number}: {mine}, {theirs} in eager"
            if not isinstance(theirs, (Shown, torch.Tensor)):
                continue
            mine, theirs = (each.value if isinstance(each, Shown) else each for each in (mine, theirs))
            if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
                return f"{what} {number}: {mine.dtype}{list(mine.shape)}, {theirs.dtype}{list(theirs.shape)} in eager"
            if theirs.layout is not torch.strided:
                continue

            def reference(what=what, number=number):
                wide = exact()
                found = getattr(wide, what) if wide is not None and wide.error is None else []
                value = found[number] if number < len(found) else None
                return value.value if isinstance(value, Shown) else value

            if text := value_difference(theirs, mine, reference):
                return f"{what} {number}: {text}"
    if want.following != have.following:
        return "the next random number is another"
    return None


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:2])[:300]


def widened(arguments):
    """Arguments in double precision; others as they are."""

    def wide(value):
        if not isinstance(value, torch.Tensor) or value.dtype not in WIDER:
            return value
        made = value.detach().to(WIDER[value.dtype])
        return made.requires_grad_() if value.requires_grad else made

    return pytree.tree_map(wide, arguments)


class Judge:
    """Compares a function at one entry point with the plain one, call by call; `module` is one whose state belongs to it."""

    def __init__(self, function, way, *, backward=True, module=None):
        self.function, self.backward = function, backward
        self.state = [] if module is None else [*module.parameters(), *module.buffers()]
        self.first_state = [each.detach().clone() for each in self.state]
        ours, self.others = WAYS[way]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.compiled = ours(function)
        self.calls = []

    def difference(self, arguments):
        """In what a call differs from eager's; what the capture does alone is no difference."""
        self.calls.append(arguments)
        want = self.observed(self.function, arguments)
        have = self.observed(self.compiled, arguments)
        self.accepted = want.error is None
        text = difference(want, have, lambda: self.exact(arguments))
        if text is None or self.others is None:
            return text
        other = self.others(self.function)
        for each in self.calls[:-1]:
            self.observed(other, each)
        told = difference(want, self.observed(other, arguments))
        return None if told and alike(told, text) else text

    def observed(self, function, arguments):
        """A call that finds the module as it was at first."""
        with torch.no_grad():
            for each, first in zip(self.state, self.first_state):
                each.copy_(first)
        return observed(function, arguments, self.backward, self.state)

    def exact(self, arguments):
        """What the plain function leaves in double precision."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return observed(self.function, widened(arguments), self.backward)
        finally:
            torch.set_default_dtype(before)


def alike(one, other):
    """Whether two differences are the same but for numbers in messages."""
    return one.split(":")[0] == other.split(":")[0]
