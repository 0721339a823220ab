"""Names of the functions, classes and modules that capture knows, and which code it never follows."""

import bisect
import builtins
import collections
import copy
import dataclasses
import functools
import heapq
import importlib
import inspect
import itertools
import math
import operator
import os
import random
import sys
import sysconfig
import types
import warnings

import numpy
import torch
import torch.nn.functional
import torch._functorch.eager_transforms
import torch._higher_order_ops
import torch.func
import torch.fx.node
import torch.nn.attention
import torch.utils._device
import torch.utils.checkpoint

from pyrite import _arrays, _overrides, _transforms

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_SITE = [path + os.sep for path in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}]

# The first name that an object is met under stays.
_MODULES = [
    ("torch.nn.functional", torch.nn.functional),
    ("torch", torch),
    ("torch._C._nn", torch._C._nn),
    ("torch.special", torch.special),
    ("torch.linalg", torch.linalg),
    ("torch.fft", torch.fft),
    ("torch.functional", torch.functional),
    ("torch._VF", torch._VF),
    ("torch.overrides", torch.overrides),
    ("torch.compiler", torch.compiler),
    ("torch.jit", torch.jit),
    ("torch._jit_internal", torch._jit_internal),
    ("torch._utils", torch._utils),
    ("torch.onnx", torch.onnx),
    ("torch.distributed", torch.distributed),
    ("torch.cuda", torch.cuda),
    ("torch.backends.mps", torch.backends.mps),
    ("torch.backends.mha", torch.backends.mha),
    ("torch._C", torch._C),
    ("torch._C._autograd", torch._C._autograd),
    ("torch.func", torch.func),
    ("torch._functorch.vmap", torch._functorch.vmap),
    ("torch._functorch.eager_transforms", torch._functorch.eager_transforms),
    ("torch._higher_order_ops", torch._higher_order_ops),
    ("torch.utils.checkpoint", torch.utils.checkpoint),
    ("torch.fx.node", torch.fx.node),
    ("torch.autograd.graph", torch.autograd.graph),
    ("torch.nn.attention", torch.nn.attention),
    ("pyrite._transforms", _transforms),
    ("builtins", builtins),
    ("math", math),
    ("operator", operator),
    ("functools", functools),
    ("itertools", itertools),
    ("collections", collections),
    ("types", types),
    ("copy", copy),
    ("dataclasses", dataclasses),
    ("inspect", inspect),
    ("warnings", warnings),
    ("heapq", heapq),
    ("bisect", bisect),
    ("sys", sys),
]

_CALLABLE = (types.FunctionType, types.BuiltinFunctionType, type, types.MethodDescriptorType)


def table():
    """Names by the addresses of what they name, and a list that keeps it alive."""
    names, kept = {}, []

    def add(name, value):
        if id(value) not in names:
            names[id(value)] = name
            kept.append(value)

    add("torch.Tensor", torch.Tensor)
    add("torch.Tensor._make_subclass", torch.Tensor._make_subclass)
    # Modules of torch have it under their own names.
    add("warnings.warn", warnings.warn)
    for module_name, module in _MODULES:
        for name, value in list(vars(module).items()):
            # Asking some objects for their class warns.
            if issubclass(type(value), _CALLABLE):
                if isinstance(value, type) and not _is_of(value, module_name):
                    continue
                if isinstance(value, types.FunctionType) and not _is_of(value, module_name):
                    continue
                add(f"{module_name}.{name}", value)
    # Some of torch's functions exist only once they are asked for.
    for name in (name for name in dir(torch._C._VariableFunctions) if not name.startswith("__")):
        for module_name, holder in (("torch", torch), ("torch._VF", torch._VF)):
            value = getattr(holder, name, None)
            if isinstance(value, types.BuiltinFunctionType):
                # Where `torch` has a function of the same name in Python, this one is another.
                add(f"{module_name}.{name}", value)
    for name, value in _arrays.functions():
        add(name, value)
    for name, value in _higher_order():
        add(f"torch._higher_order_ops.{name}", value)
    for owner in torch.Tensor.__mro__[:-1]:
        for name, value in vars(owner).items():
            if isinstance(value, types.FunctionType) and not _is_of(value, "torch"):
                continue
            if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType, types.FunctionType)):
                add(f"torch.Tensor.{name}", value)
    add("torch.Tensor.__torch_function__", torch.Tensor.__torch_function__.__func__)
    for name, getter in _overrides.GETTERS.items():
        add(f"torch.Tensor.{name}.__get__", getter)
    for class_ in (list, dict, set, frozenset, tuple, str, int, float, bool, complex, bytes, object, range, slice, type):
        for name in dir(class_):
            value = inspect.getattr_static(class_, name)
            if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
                add(f"builtins.{class_.__name__}.{name}", value)
        add(f"builtins.{class_.__name__}.__new__", class_.__new__)
    add("builtins.str.maketrans", str.maketrans)
    add("functools.partial", functools.partial)
    for name in ("fspath", "getcwd", "getpid"):
        add(f"posix.{name}", getattr(os, name))
    add("random.random", random.random)
    for name in ("uniform", "gauss", "normalvariate", "lognormvariate", "triangular", "randint", "randrange", "seed"):
        add(f"random.Random.{name}", getattr(random.Random, name))
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and is_library(getattr(module, "__file__", None) or ""):
            add(name, module)
    return names, kept


def _higher_order():
    """Operators of torch's that take functions, and are objects or hidden in modules of their own."""
    for name in ("wrap.Wrap.__call__", "hints_wrap.HintsWrapper.__call__", "invoke_subgraph.invoke_subgraph_placeholder"):
        file, *path = name.split(".")
        # The package has operators of the same names.
        value = importlib.import_module(f"torch._higher_order_ops.{file}")
        for part in path:
            value = getattr(value, part)
        yield name, value


# Where packages that torch needs define decorators.
_DECORATING = ("typing_extensions",)


def _is_of(value, module_name):
    owner = getattr(value, "__module__", None) or ""
    if isinstance(value, types.FunctionType) and not is_library(value.__code__.co_filename):
        # `functools.wraps` gives what a program wraps around a function that function's module, but not its globals.
        wrapper = value.__globals__.get("__name__") or ""
        owner = owner if wrapper in _DECORATING else wrapper
    return owner.split(".")[0] == module_name.split(".")[0] or owner.lstrip("_") == module_name or owner == "_collections"


# Files of torch.func and torch.jit that only prepare what others do.
_FOLLOWED = ("apis.py", "vmap.py", "_trace.py", "functional_call.py", "__pycache__", "__init__.py")


def never_followed():
    """Where calls are not followed into: what reaches beyond the tensors, and Pyrite itself."""
    inside_torch = [
        "_dynamo",
        "_inductor",
        *(os.path.join("_functorch", name) for name in os.listdir(_TORCH + "_functorch") if name not in _FOLLOWED),
        "autograd" + os.sep + "function.py",
        "autograd" + os.sep + "__init__.py",
        "distributed",
        "export",
        "fx",
        *(os.path.join("jit", name) for name in os.listdir(_TORCH + "jit") if name not in _FOLLOWED),
        "multiprocessing",
        "profiler",
        "random.py",
        "serialization.py",
        "utils" + os.sep + "data",
        "utils" + os.sep + "checkpoint.py",
    ]
    standard = ["logging", "random.py", "threading.py", "subprocess.py", "asyncio", "importlib", "pickle.py", "warnings.py"]
    pyrite = [_PACKAGE + name for name in ("_capture.py", "_observer.py", "autograd.py", "backends.py", "config.py", "debug")]
    return pyrite + [_TORCH + part for part in inside_torch] + [_STANDARD + part for part in standard] + [_NUMPY]


def modes_are_harmless():
    """Whether all modes that are shown the calls of torch's functions only put new tensors on the CPU."""
    modes = torch.overrides._get_current_function_mode_stack()
    return all(type(mode) is torch.utils._device.DeviceContext and mode.device.type == "cpu" for mode in modes)


# Modules of torch whose frames are captured on their own, as the user's would be.
_OWN = _TORCH + "nn" + os.sep + "modules" + os.sep


# How the names of files begin that the user has excluded.
_SKIPPED = []


def skip(prefix):
    """Lets files whose names begin so be libraries whose frames are not captured."""
    _SKIPPED.append(prefix)
    is_library.cache_clear()


@functools.cache
def is_library(file):
    """Whether code of this file belongs to a library whose frames are not captured on their own."""
    if file.startswith(tuple(_SKIPPED)):
        return True
    if file.startswith("<"):
        return not file.startswith(("<string>", "<stdin>", "<ipython", "<pyrite"))
    if file.startswith(_OWN):
        return file in (_OWN + "module.py", _OWN + "_functions.py")
    if file == _PACKAGE + "_call.py":
        return False
    if file.startswith((_PACKAGE, _TORCH, _NUMPY)):
        return True
    if file.startswith(tuple(_SITE)):
        return False
    return file.startswith(_STANDARD) or file == ""


# What only enters a context around a function of the user's has no part in what is captured.
_DECORATORS = _TORCH + "utils" + os.sep + "_contextlib.py"


def is_followed_from_outside(function):
    """Whether a function is C code or torch's own: it is captured as a part of a frame that calls it."""
    if isinstance(function, functools.partial):
        return is_followed_from_outside(function.func)
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    if not isinstance(code, types.CodeType):
        return isinstance(plain, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)) or type(function) in _OPERATORS
    return code.co_filename.startswith(_TORCH) and code.co_filename != _DECORATORS and not is_compiler(code.co_filename)


_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


def is_compiler(file):
    """Whether code of this file belongs to a compiler of torch's: what it runs is its own business."""
    return file.startswith(tuple(_TORCH + part + os.sep for part in ("_dynamo", "_inductor", "_functorch", "fx")))
