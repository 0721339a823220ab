"""`pyrite.config.verify`: every call of a compiled function beside the same call in plain Python.

The plain run comes first, on deep copies of the arguments, of the function's cells and defaults and of the globals that it names; the
compiled run gets the originals. Both start from the same random numbers and settings of torch. Afterwards everything that the caller
could notice is compared: the result or the exception with its chain, the arguments, the cells and globals, which parts are one object,
which tensors share memory, what was printed, where the random generators stand, the grad mode. A difference is a `VerifyError`.

What is not compared: objects that cannot be copied (locks, files, sockets, modules, tensors inside of an autograd graph), which both
runs share and which therefore see every effect twice; globals of other modules than the function's own; classes and functions, which
are shared as they are; attributes of extension types; gradients, which `pyrite.config.debug` checks. A call whose arguments cannot be
copied at all runs compiled without a comparison, and a warning of the log `guards` says so.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import math
import random
import sys
import types

import torch

from pyrite import _native, logs

_SHARED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
_ATOMS = (bool, int, str, bytes, type(None), type(Ellipsis), range, slice, torch.dtype, torch.device, torch.layout, torch.memory_format)
# Differences below these are the rounding of a program that computes in another order.
_RELATIVE, _ABSOLUTE = 1e-3, 1e-4


class VerifyError(AssertionError):
    """A compiled call and the same call in plain Python have parted."""


class _Memo(dict):
    """A memo of `copy.deepcopy` that lets what cannot be copied be shared."""


def _copied(value, memo):
    """A deep copy of everything that can be copied; the rest is the same object."""
    try:
        if isinstance(value, torch.Tensor):
            return _copied_tensor(value, memo)
        if isinstance(value, _SHARED) or isinstance(value, _ATOMS):
            return value
        if type(value) in (list, tuple, set, frozenset, dict, collections.OrderedDict, collections.deque, collections.defaultdict):
            return _copied_container(value, memo)
        for tensor in _tensors_below(value):
            _copied_tensor(tensor, memo)
        return _copied_by_parts(value, memo) if _says_how_it_is_copied(type(value)) else copy.deepcopy(value, memo)
    except Exception:
        memo[id(value)] = value
        return value


def _copied_container(value, memo):
    if id(value) in memo:
        return memo[id(value)]
    kind = type(value)
    if kind in (tuple, frozenset):
        made = kind([_copied(item, memo) for item in value])
    elif kind is collections.deque:
        made = collections.deque(maxlen=value.maxlen)
    elif kind is collections.defaultdict:
        made = collections.defaultdict(value.default_factory)
    else:
        made = kind()
    memo[id(value)] = made
    if kind is list:
        made.extend([_copied(item, memo) for item in value])
    elif kind is set:
        made.update([_copied(item, memo) for item in value])
    elif kind is collections.deque:
        made.extend([_copied(item, memo) for item in value])
    elif isinstance(value, dict):
        for key, item in value.items():
            made[_copied(key, memo)] = _copied(item, memo)
    return made


_CONTAINERS = (collections.OrderedDict, collections.defaultdict, dict, list, set, collections.deque)


def _says_how_it_is_copied(kind):
    """Whether a class of the user's may make copies that are not like the original: only its parts are asked."""
    if "__deepcopy__" in dir(kind) or any(vars(base).get("__slots__") for base in kind.__mro__):
        return False
    base = next((base for base in _CONTAINERS if issubclass(kind, base)), object)
    own = any(getattr(kind, name) is not getattr(base, name) for name in ("__reduce_ex__", "__reduce__", "__getstate__") if hasattr(base, name))
    return kind.__new__ is base.__new__ and (own or base is not object) and "__dict__" in dir(kind)


def _copied_by_parts(value, memo):
    """An object of the same class with copies of the same items and attributes, whatever its class says of copies."""
    if id(value) in memo:
        return memo[id(value)]
    kind = type(value)
    base = next((base for base in _CONTAINERS if isinstance(value, base)), object)
    made = memo[id(value)] = base.__new__(kind)
    if base is collections.deque:
        base.__init__(made, (), value.maxlen)
    elif base is collections.defaultdict:
        base.__init__(made, value.default_factory)
    if issubclass(base, dict):
        for key in list(base.__iter__(value)):
            base.__setitem__(made, _copied(key, memo), _copied(base.__getitem__(value, key), memo))
    elif base is not object:
        items = [_copied(item, memo) for item in base.__iter__(value)]
        base.update(made, items) if base is set else base.extend(made, items)
    for name, held in object.__getattribute__(value, "__dict__").items():
        object.__getattribute__(made, "__dict__")[name] = _copied(held, memo)
    memo.setdefault("kept", []).append(value)
    return made


def _tensors_below(value, depth=3):
    """Tensors among the attributes of an object: those that share memory are to share it in the copy."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and not isinstance(value, _SHARED):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else vars(value).values() if hasattr(value, "__dict__") else ()
        for part in list(parts):
            yield from _tensors_below(part, depth - 1)


def _copied_tensor(tensor, memo):
    """A tensor over a copy of its storage; tensors of one storage get one copy."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        made = tensor.detach().clone().requires_grad_(tensor.requires_grad) if type(tensor) is torch.Tensor else tensor
    else:
        storage = tensor.untyped_storage()
        key = ("storage", storage.data_ptr(), storage.nbytes())
        if key not in memo:
            memo[key] = storage.clone()
        made = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(memo[key], tensor.storage_offset(), tensor.shape, tensor.stride())
        made = torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made.requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            made.grad = tensor.grad.clone()
    memo[id(tensor)] = made
    memo.setdefault("kept", []).append(tensor)
    return made


class _World:
    """What a function can reach beside its arguments: its cells, its defaults, the globals that its code names."""

    def __init__(self, function):
        self.function = function
        names = set(_names_in(function.__code__))
        self.globals = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
        self.absent = [name for name in sorted(names) if name not in function.__globals__]
        self.cells = [cell for cell in function.__closure__ or ()]

    def contents(self):
        return [_Empty if _is_empty(cell) else cell.cell_contents for cell in self.cells]

    def now(self):
        """What it is at this moment, for a snapshot."""
        space = self.function.__globals__
        names = [*self.globals, *self.absent]
        return {"globals": {name: space.get(name, _Empty) for name in names}, "cells": self.contents()}

    @contextlib.contextmanager
    def replaced(self, memo):
        """Copies in the places of everything, for the length of a block."""
        space, held = self.function.__globals__, self.contents()
        for name, value in self.globals.items():
            space[name] = _copied(value, memo)
        for cell, value in zip(self.cells, held):
            if value is not _Empty:
                cell.cell_contents = _copied(value, memo)
        try:
            yield
        finally:
            for name in self.absent:
                space.pop(name, None)
            space.update(self.globals)
            for cell, value in zip(self.cells, held):
                if value is _Empty:
                    with contextlib.suppress(ValueError):
                        del cell.cell_contents
                else:
                    cell.cell_contents = value


class _Empty:
    """Stands for nothing."""


def _is_empty(cell):
    try:
        cell.cell_contents  # noqa: B018  (an empty cell raises)
    except ValueError:
        return True
    return False


def _names_in(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


class _Seen:
    """A value as comparable data. Objects are numbered as they are met, so that identity is compared and addresses are not."""

    def __init__(self):
        self.met, self.alive, self.storages = {}, [], {}

    def take(self, value, depth=0):
        if isinstance(value, _ATOMS):
            return (type(value), value)
        if isinstance(value, float):
            return (type(value), "nan" if math.isnan(value) else value)
        if isinstance(value, _SHARED) or value is _Empty:
            return ("object", getattr(value, "__qualname__", repr(value)))
        if id(value) in self.met:
            return ("same", self.met[id(value)])
        self.met[id(value)] = len(self.met)
        self.alive.append(value)
        if depth > 60:
            return ("deep",)
        return (type(value), *self.parts(value, depth + 1))

    def parts(self, value, depth):
        if isinstance(value, torch.Tensor):
            yield from self.tensor(value)
        elif isinstance(value, dict):
            yield from ((self.take(key, depth), self.take(item, depth)) for key, item in value.items())
        elif isinstance(value, (set, frozenset)):
            yield from sorted((self.take(item, depth) for item in value), key=repr)
        elif isinstance(value, (list, tuple, collections.deque)):
            yield from (self.take(item, depth) for item in value)
        elif isinstance(value, BaseException):
            yield str(value)
            yield self.take(value.args, depth)
            yield self.take(value.__cause__, depth)
            yield self.take(None if value.__suppress_context__ else value.__context__, depth)
        for name, item in sorted(getattr(value, "__dict__", {}).items()):
            if not isinstance(value, (types.FunctionType, torch.Tensor)):
                yield (name, self.take(item, depth))

    def tensor(self, value):
        yield from (value.dtype, tuple(value.shape), value.device, value.requires_grad)
        if value.layout is torch.strided and value.device.type == "cpu":
            yield value.stride()
            if value.untyped_storage().nbytes():
                yield self.storages.setdefault(value.untyped_storage().data_ptr(), len(self.storages))
        yield _Numbers(value)


class _Numbers:
    """The elements of a tensor. Those of two programs may round differently."""

    def __init__(self, tensor):
        self.data = tensor.detach().clone()

    def __eq__(self, other):
        if self.data.shape != other.data.shape or self.data.dtype != other.data.dtype:
            return False
        if self.data.is_floating_point() or self.data.is_complex():
            return torch.allclose(self.data, other.data, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
        return torch.equal(self.data, other.data)

    __hash__ = None

    def __repr__(self):
        return f"{self.data.flatten()[:4].tolist()}"


def _difference(want, have, path):
    """Where two snapshots part, in words; nothing where they agree."""
    if isinstance(want, tuple) and isinstance(have, tuple):
        if want[:1] != have[:1]:
            return f"{path} is {_named(have)} instead of {_named(want)}"
        if len(want) != len(have):
            return f"{path} has {len(have) - 1} parts instead of {len(want) - 1}"
        for place, (one, other) in enumerate(zip(want, have)):
            found = _difference(one, other, path if place == 0 else f"{path}[{place - 1}]")
            if found:
                return found
        return None
    return None if want == have else f"{path} is {have!r} instead of {want!r}"


def _named(part):
    return getattr(part[0], "__qualname__", None) or " ".join(map(str, part[:2])) if part else "nothing"


def _run(call):
    """What a call leaves: its result, its exception, what it printed."""
    printed = io.StringIO()
    result = raised = None
    out = sys.stdout
    sys.stdout = printed
    try:
        result = call()
    except Exception as error:
        raised = error
    finally:
        sys.stdout = out
    return result, raised, printed.getvalue()


def _state():
    return torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu")


def verified(call, function, args, kwargs):
    """Calls the compiled function beside the plain one and compares what they leave."""
    plain = getattr(function, "__func__", function)
    plain = getattr(type(function), "__call__", plain) if not isinstance(plain, types.FunctionType) else plain
    world = _World(plain if isinstance(plain, types.FunctionType) else _nothing)
    memo = _Memo()
    seeds = torch.get_rng_state(), random.getstate()
    before = _state()
    copies = _copied((args, kwargs or {}), memo)
    if args and copies[0] is args and not all(isinstance(arg, _ATOMS) for arg in args):
        logs.get("guards").warning("verify: the arguments of %s cannot be copied, the call is not compared", function)
        return call(function, args, kwargs)
    receiver = getattr(function, "__self__", None)
    called = function
    if isinstance(function, types.MethodType):
        called = types.MethodType(function.__func__, _copied(receiver, memo))
    elif not isinstance(function, _SHARED):
        called = _copied(function, memo)
    with world.replaced(memo):
        outcome = _run(lambda: _native.Compiler.call_plain(called, copies[0], copies[1]))
        want = _taken(outcome, copies, world, getattr(called, "__self__", called))
    after = _state()
    torch.set_rng_state(seeds[0])
    random.setstate(seeds[1])
    torch.set_grad_enabled(before[0])
    torch.set_default_dtype(before[1])
    outcome = _run(lambda: call(function, args, kwargs))
    sys.stdout.write(outcome[2])
    have = _taken(outcome, (args, kwargs or {}), world, receiver if receiver is not None else function)
    if after != _state():
        raise VerifyError(f"{_title(function)}: torch's settings are {_state()} after the compiled call, {after} after the plain one")
    for (part, one), (_, other) in zip(want, have, strict=True):
        found = _difference(one, other, part)
        if found:
            raise VerifyError(
                f"{_title(function)}: {found}, where the plain call has the latter. Help: report it with the function; "
                "pyrite.disable(function) runs it plain."
            ) from outcome[1]
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def _taken(outcome, arguments, world, receiver):
    result, raised, printed = outcome
    seen = _Seen()
    draws = torch.get_rng_state(), random.getstate()
    return [
        ("the exception", seen.take(raised)),
        ("the result", seen.take(result)),
        ("the arguments", seen.take(arguments)),
        ("the receiver", seen.take(receiver)),
        ("the world", seen.take(world.now())),
        ("what is printed", printed),
        ("the random generators", (hash(bytes(draws[0].tolist())), hash(draws[1]))),
    ]


def _title(function):
    return f"verify: {getattr(function, '__qualname__', type(function).__qualname__)}"


def _nothing():
    pass
