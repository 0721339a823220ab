"""A value as comparable data, and the first difference between two of them.

A snapshot keeps what a program can tell about a value: exact types, structure, numbers, the metadata of tensors, which parts are the same
object and which tensors share memory. It does not keep addresses. Everything that belongs to one run goes through one `Snapshots`, so that
identity is seen across results, arguments and globals.
"""

import collections
import functools
import inspect
import logging
import math
import re
import types
import weakref
from dataclasses import dataclass

import numpy
import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

ATOMS = (bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice)
ATOMS += (torch.dtype, torch.device, torch.layout, torch.memory_format, numpy.dtype, types.ModuleType)
# `slice` and the like compare by value; a class is the same object on both sides.
NAMED = (type, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
ITERATORS = (types.GeneratorType, type(iter([])), type(iter(())), type(iter({})), zip, map, filter, enumerate, reversed)


@dataclass(frozen=True)
class Part:
    """A value taken apart: what it is, and its parts by name."""

    kind: str
    parts: tuple

    def __iter__(self):
        return iter(self.parts)


@dataclass(frozen=True)
class Same:
    """The object that was met as number `index` in this run."""

    index: int


@dataclass(frozen=True, eq=False)
class Values:
    """The elements of a tensor or an array, detached."""

    data: torch.Tensor


class Snapshots:
    """Takes snapshots for one run and remembers every object and every tensor it met."""

    def __init__(self):
        self.met = {}
        self.alive = []
        self.storages = {}
        self.tensors = []

    def take(self, value):
        if isinstance(value, ATOMS):
            return Part(kind(value), (("value", value),))
        if isinstance(value, (float, complex)) and type(value) in (float, complex):
            return Part(kind(value), (("value", value),))
        if isinstance(value, NAMED):
            return Part("object", (("name", qualified(value)),))
        if isinstance(value, logging.Logger):
            # It knows all others, of whatever was imported meanwhile.
            return Part(kind(value), (("name", value.name),))
        if id(value) in self.met:
            return Same(self.met[id(value)])
        self.met[id(value)] = len(self.met)
        self.alive.append(value)
        return Part(kind(value), tuple(self.parts(value)))

    def parts(self, value):
        """The parts of a value that is met for the first time."""
        if isinstance(value, torch.Tensor):
            yield from self.tensor(value)
        elif isinstance(value, numpy.ndarray | numpy.generic):
            yield "dtype", str(value.dtype)
            yield "values", Values(torch.from_numpy(numpy.array(value)))
        elif isinstance(value, torch.nn.Module):
            yield from self.module(value)
        elif isinstance(value, dict):
            yield from ((f"key {n}", self.take(key)) for n, key in enumerate(value))
            yield from ((f"[{key!r}]" if isinstance(key, str | int) else "[...]", self.take(item)) for key, item in value.items())
            yield from self.attributes(value)
        elif isinstance(value, set | frozenset):
            yield from ((f"element {n}", item) for n, item in enumerate(sorted(map(self.take, value), key=repr)))
        elif isinstance(value, list | tuple | collections.deque):
            yield from ((f"[{n}]", self.take(item)) for n, item in enumerate(value))
            yield "maxlen", getattr(value, "maxlen", None)
            yield from self.attributes(value)
        elif isinstance(value, ITERATORS):
            yield from ((f"item {n}", self.take(item)) for n, item in enumerate(value))
        elif isinstance(value, BaseException):
            yield from self.exception(value)
        elif isinstance(value, types.FunctionType):
            yield "name", value.__qualname__
            yield from ((f"cell {name}", self.take(item)) for name, item in inspect.getclosurevars(value).nonlocals.items())
            yield "defaults", self.take(value.__defaults__)
        elif isinstance(value, types.MethodType):
            yield "function", self.take(value.__func__)
            yield "self", self.take(value.__self__)
        elif isinstance(value, functools.partial):
            yield "function", self.take(value.func)
            yield "args", self.take(value.args)
            yield "keywords", self.take(value.keywords)
        elif isinstance(value, weakref.ref):
            yield "referent", self.take(value())
        else:
            yield from self.attributes(value)

    def tensor(self, value):
        self.tensors.append(value)
        yield "dtype", value.dtype
        # A jagged dimension has another name in every run.
        yield "shape", tuple(size if isinstance(size, int) else "jagged" for size in value.shape)
        yield "device", value.device
        yield "requires_grad", value.requires_grad
        yield "leaf", value.is_leaf
        if is_traceable_wrapper_subclass(value):
            names, context = value.__tensor_flatten__()
            yield "context", scrubbed(re.sub(r"\bj\d+\b", "j", repr(context)))
            yield from ((f".{name}", self.take(getattr(value, name))) for name in names)
            return
        if value.layout == torch.strided:
            yield "stride", value.stride()
            yield "offset", value.storage_offset()
            if value.untyped_storage().nbytes():
                storage = value.untyped_storage().data_ptr()
                yield "storage", self.storages.setdefault(storage, len(self.storages))
        yield "values", Values(value.detach().clone())

    def module(self, value):
        yield "training", value.training
        for field in ("_parameters", "_buffers", "_modules"):
            yield from ((f".{name}", self.take(item)) for name, item in getattr(value, field).items())
        yield from self.attributes(value, lambda name: not name.startswith("_") and name != "training")

    def attributes(self, value, wanted=lambda name: True):
        held = dict(getattr(value, "__dict__", {}))
        for owner in type(value).__mro__:
            slots = owner.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                    held[slot] = getattr(value, slot)
        yield from ((f".{name}", self.take(held[name])) for name in held if wanted(name))

    def exception(self, value):
        yield "message", scrubbed(str(value))
        yield "cause", self.take(value.__cause__)
        if not value.__suppress_context__:
            yield "context", self.take(value.__context__)
        yield from self.attributes(value)


def kind(value):
    return qualified(type(value))


def qualified(value):
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', repr(value))}"


def scrubbed(text):
    """The text without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def difference(want, have, path="result"):
    """Where two snapshots part, in a sentence, or `None`."""
    if isinstance(want, Part) and isinstance(have, Part):
        if want.kind != have.kind:
            return f"{path} is a {have.kind} instead of a {want.kind}{message(have)}"
        names = [[name for name, _ in side] for side in (want, have)]
        for (name, left), (other, right) in zip(want, have):
            if name != other:
                return f"{path} has {other} in place of {name}"
            found = difference(left, right, path + (name if name[0] in ".[" else f", {name}"))
            if found:
                return found
        if len(names[0]) != len(names[1]):
            return f"{path} has {len(names[1])} parts instead of {len(names[0])}: {names[1]} instead of {names[0]}"
        return None
    if isinstance(want, Values) and isinstance(have, Values):
        return values_difference(want.data, have.data, path)
    if isinstance(want, Same) or isinstance(have, Same):
        return None if want == have else f"{path} is {identity(have)} instead of {identity(want)}"
    if type(want) is not type(have):
        return f"{path} is {have!r} instead of {want!r}"
    if isinstance(want, float | complex):
        return None if close(want, have) else f"{path} is {have!r} instead of {want!r}"
    return None if want == have else f"{path} is {have!r} instead of {want!r}"


def message(part):
    """What an exception says, to be put after its type."""
    return next((f": {text}" for name, text in part if name == "message"), "")


def identity(side):
    return f"object {side.index} again" if isinstance(side, Same) else "an object of its own"


def close(want, have):
    if isinstance(want, complex):
        return close(want.real, have.real) and close(want.imag, have.imag)
    return math.isclose(want, have, rel_tol=1e-5, abs_tol=1e-6) or (math.isnan(want) and math.isnan(have))


def values_difference(want, have, path):
    if want.dtype == have.dtype and torch.equal(want, have):
        return None
    try:
        torch.testing.assert_close(have, want, equal_nan=True, check_stride=False)
    except (AssertionError, ValueError) as error:
        return f"{path}: {' '.join(str(error).split())}"
    return None
