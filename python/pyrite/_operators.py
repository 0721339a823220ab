"""Custom operators under the backends that check: `eager_debug` and `aot_eager_decomp_partition_crossref`.

Pyrite knows nothing of an operator of `torch.library` but its schema and its fake, and compilers believe both. So each call is compared with
what they say: arguments that the schema does not let it write are as before, results lie in memory of their own unless the schema says
otherwise, and the fake gives the shapes, strides and types of the results. What differs is an `OperatorError` that names the operator, what it
does, and what to declare.
"""

from __future__ import annotations

import functools

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode, UnsupportedOperatorException
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

CHECKING = ("eager_debug", "aot_eager_decomp_partition_crossref")
# Operators of torch itself, whose records Pyrite has.
_BUILT_IN = ("aten", "prim", "prims", "profiler", "inductor", "higher_order", "quantized", "mkldnn", "onednn", "c10d", "_c10d_functional", "debugprims", "rngprims")


class OperatorError(RuntimeError):
    """A custom operator does not do what its schema and its fake say."""


def checked(program):
    """The same program, whose calls of custom operators are compared with what is declared of them."""

    @functools.wraps(program, updated=())
    def run(*arguments):
        with _Checking():
            return program(*arguments)

    return run


class _Checking(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(function, "namespace", "aten") in _BUILT_IN:
            return function(*args, **kwargs)
        given = list(_arguments(function, args, kwargs))
        before = [(name, tensor, tensor.clone()) for name, tensor, writes in given if not writes]
        # Inputs are as they were when the fake sees them: it may not look at their numbers, and sizes may change.
        promised = _promised(function, args, kwargs)
        results = function(*args, **kwargs)
        for name, tensor, clone in before:
            if not _same(tensor, clone):
                raise OperatorError(f"{function} writes to its argument `{name}`, which its schema does not say: name it in `mutates_args`")
        _check_memory(function, given, results)
        if promised is not None:
            _check_fake(function, promised, results)
        return results


def _arguments(function, args, kwargs):
    """The tensors among arguments, with the name of their parameter and whether the schema lets it be written."""
    parameters = function._schema.arguments
    named = [*zip(parameters, args), *((each, kwargs[each.name]) for each in parameters if each.name in kwargs)]
    for parameter, value in named:
        writes = parameter.alias_info is not None and parameter.alias_info.is_write
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, torch.Tensor):
                yield parameter.name, leaf, writes


def _promised(function, args, kwargs):
    """What the fake gives for tensors without data; None where there is none, or where it depends on data."""
    with FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()) as mode:
        fake = functools.partial(pytree.tree_map_only, torch.Tensor, functools.partial(mode.from_tensor, static_shapes=True))
        try:
            return pytree.tree_leaves(function(*fake(args), **fake(kwargs)))
        except (UnsupportedOperatorException, DynamicOutputShapeException, NotImplementedError):
            return None
        except Exception as error:
            raise OperatorError(f"the fake of {function} raises {type(error).__name__}: {error}") from error


def _same(one, other):
    return one.shape == other.shape and torch.equal(torch.nan_to_num(one), torch.nan_to_num(other)) and torch.equal(one.isnan(), other.isnan())


def _check_memory(function, given, results):
    aliases = any(result.alias_info is not None for result in function._schema.returns)
    memory = {tensor.untyped_storage().data_ptr(): name for name, tensor, _ in given if tensor.numel()}
    for number, result in enumerate(pytree.tree_leaves(results)):
        if aliases or not isinstance(result, torch.Tensor) or not result.numel():
            continue
        if (name := memory.get(result.untyped_storage().data_ptr())) is not None:
            raise OperatorError(f"result {number} of {function} lies in the memory of its argument `{name}`, which its schema does not say: return a copy")


def _check_fake(function, promised, results):
    results = pytree.tree_leaves(results)
    if len(promised) != len(results):
        raise OperatorError(f"the fake of {function} gives {len(promised)} results, the operator {len(results)}")
    for number, (fake, real) in enumerate(zip(promised, results)):
        if isinstance(fake, torch.Tensor) != isinstance(real, torch.Tensor):
            raise OperatorError(f"result {number} of {function} is a {type(real).__name__}, by its fake a {type(fake).__name__}")
        if not isinstance(real, torch.Tensor):
            continue
        parts = {"dtype": (fake.dtype, real.dtype), "shape": (_known(fake.shape), tuple(real.shape)), "strides": (_steps(fake), _steps(real))}
        parts["device"] = (fake.device, real.device)
        for part, (said, found) in parts.items():
            if said is not None and said != found:
                raise OperatorError(f"result {number} of {function} has the {part} {found}, by its fake {said}: correct what `register_fake` names")


def _known(sizes):
    """Sizes, where all of them are numbers."""
    return tuple(sizes) if all(isinstance(size, int) for size in sizes) else None


def _steps(tensor):
    """The strides of dimensions in which steps are taken, where they are numbers."""
    if _known(tensor.shape) is None or _known(tensor.stride()) is None or not tensor.numel():
        return None
    return tuple(stride for stride, size in zip(tensor.stride(), tensor.shape) if size > 1)
