"""Wrapper subclasses: tensors that hold tensors, and see operators in `__torch_dispatch__`.

A wrapper is described by an *example*: an object of its class whose inner tensors have no data. What a function makes of a wrapper is
told by calling it on examples, so that the class itself says what comes out.
"""

import functools
import warnings

import torch
from torch.utils.weak import WeakIdKeyDictionary

# Classes that stand for tensors of a trace, or whose operators talk to other processes.
_OTHERS = ("torch._subclasses.", "torch.distributed.")


def is_wrapper(cls):
    """Whether tensors of a class are wrappers that can be taken apart and put together again."""
    if cls.__torch_dispatch__ is torch.Tensor.__torch_dispatch__ or cls.__module__.startswith(_OTHERS):
        return False
    return hasattr(cls, "__tensor_flatten__") and hasattr(cls, "__tensor_unflatten__")


def signature(tensor):
    """All that is relied on of a wrapper, as a text: its class, its context, and the metadata of it and of what it holds."""
    with torch._C.DisableTorchFunctionSubclass():
        return repr(_told(tensor, lambda each: (_sizes(each.shape), _strides(each))))


def signature_of_any_size(tensor):
    """The same without sizes and strides."""
    with torch._C.DisableTorchFunctionSubclass():
        return repr(_told(tensor, torch.Tensor.dim))


def _told(tensor, sized):
    cls = type(tensor)
    told = cls.__qualname__, id(cls), sized(tensor), tensor.dtype, tensor.device, tensor.layout, tensor.requires_grad, tensor.is_leaf
    if not is_wrapper(cls):
        return told
    names, context = tensor.__tensor_flatten__()
    return *told, context, [(name, _told(getattr(tensor, name), sized)) for name in names]


def _sizes(sizes):
    """Sizes as numbers; -1 for one that depends on a jagged size."""
    return [size if type(size) is int else -1 for size in sizes]


def _numbered(sizes):
    """The same, where jagged sizes have numbers: smaller ones than -1."""
    return [size if type(size) is int else _number(size) for size in sizes]


def _number(size):
    return -2 - size.node.nested_int() if size.node.is_nested_int() and size.node.nested_int_coeff() == 1 else -1


def _strides(tensor):
    return _sizes(tensor.stride()) if tensor.layout in (torch.strided, torch.jagged) else []


_EXAMPLES = WeakIdKeyDictionary()


def plain(sizes, strides, dtype):
    """A tensor without data."""
    return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")


def example(tensor):
    """A wrapper of the same class and context whose inner tensors have no data. What two wrappers share, their examples share."""
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        return _example(tensor)


def _example(tensor):
    if not is_wrapper(type(tensor)):
        made = _EXAMPLES.get(tensor)
        if made is None or (made.shape, made.stride(), made.dtype) != (tensor.shape, tensor.stride(), tensor.dtype):
            made = _EXAMPLES[tensor] = plain(tensor.shape, tensor.stride(), tensor.dtype)
        return made
    names, context = tensor.__tensor_flatten__()
    inner = {name: _example(getattr(tensor, name)) for name in names}
    return type(tensor).__tensor_unflatten__(inner, context, tensor.shape, tensor.stride())


def held(tensor):
    """The plain tensors that a wrapper holds."""
    if not is_wrapper(type(tensor)):
        return (tensor,)
    names, _ = tensor.__tensor_flatten__()
    return tuple(inner for name in names for inner in held(getattr(tensor, name)))


def describe(function, args, kwargs):
    """What a function gives for examples: see `described`. Random numbers are as if it had not been called."""
    args, kwargs = tuple(_without_device(arg) for arg in args), {name: _without_device(arg) for name, arg in kwargs.items()}
    if function is torch.Tensor.cpu:
        function, args = torch.Tensor.to, (*args, torch.device("meta"))
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings(), torch.no_grad(), torch.device("meta"):
            warnings.simplefilter("ignore")
            return described(function(*args, **kwargs))
    finally:
        torch.set_rng_state(state)


def _without_device(value):
    """An argument as it is for tensors without data, which lie on a device of their own."""
    is_device = isinstance(value, torch.device) or (type(value) is str and value == "cpu")
    return torch.device("meta") if is_device else value


def described(value):
    """A value as a tuple of its kind and its parts."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            wraps = is_wrapper(type(value))
            if not wraps and type(value) is not torch.Tensor:
                raise TypeError(f"it returns a {type(value).__name__}, whose class is not captured here")
            if not wraps and value.device.type != "meta":
                raise TypeError("it returns a tensor with data")
            return "tensor", value if wraps else None, tuple(_numbered(value.shape)), tuple(_strides(value)), value.dtype
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return "sequence", type(value), tuple(described(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.Size)):
        return "plain", value
    raise TypeError(f"it returns a {type(value).__name__}")


def outer(tensor):
    """What a wrapper is to autograd: whether it requires a gradient, is a leaf, and is a parameter."""
    with torch._C.DisableTorchFunctionSubclass():
        return bool(tensor.requires_grad), bool(tensor.is_leaf), bool(getattr(tensor, "_is_param", False))


def attribute(tensor, name):
    """What an example holds under a name; `(False,)` where it holds nothing of its own."""
    kept = tensor.__dict__
    return (True, described(kept[name])) if name in kept else (False,)


def question(tensor, name):
    """What an example says of its kind: its layout, whether it is nested."""
    with torch._C.DisableTorchFunctionSubclass():
        return getattr(tensor, name)


@functools.cache
def undispatched(function):
    """A function that no `__torch_function__` of its arguments sees."""

    @functools.wraps(function, updated=())
    def call(*args, **kwargs):
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return call


def has_own_function(cls):
    """Whether a class looks at functions with code of the user's."""
    shown = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    return shown is not torch._C._disabled_torch_function_impl and not shown.__module__.startswith("torch.")


@functools.cache
def constructor(cls):
    """A function that makes an object of a class."""

    def make(*args, **kwargs):
        return cls(*args, **kwargs)

    make.__name__ = make.__qualname__ = cls.__name__
    return make
