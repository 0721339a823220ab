"""`__torch_function__`: which function torch shows for each operator and attribute, and tensors of classes of the user's as plain ones.

Torch itself is asked: each operator is applied once to a tensor that notes the function that it is shown. Capture finds the functions
as `operator_NAME`, `reflected_NAME` and `getter_NAME`.
"""

import operator

import torch
from torch.overrides import get_default_nowrap_functions, get_testing_overrides
from torch.utils._device import _device_constructors


class _Shown(Exception):
    """Carries the function that was shown."""


class _Asking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise _Shown(func)


def _shown_for(function, *args):
    try:
        function(*args)
    except _Shown as shown:
        return shown.args[0]
    except TypeError:
        return None
    return None


_UNARY = ("neg", "pos", "invert", "abs")
_BINARY = (
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt le gt ge "
    "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift"
).split()


def _functions():
    asking = torch.ones(1, device="cpu").as_subclass(_Asking)
    for name in _UNARY:
        yield f"operator_{name}", _shown_for(getattr(operator, name), asking)
    for name in _BINARY:
        yield f"operator_{name}", _shown_for(getattr(operator, name), asking, asking)
        yield f"reflected_{name}", _shown_for(getattr(operator, name), 2, asking)
    yield "operator_getitem", _shown_for(operator.getitem, asking, 0)
    yield "operator_setitem", _shown_for(operator.setitem, asking, 0, 1)
    yield "operator_len", _shown_for(len, asking)
    yield "operator_reversed", _shown_for(reversed, asking)
    for name in dir(torch.Tensor):
        # What is computed of a tensor when it is read, and only then.
        if type(getattr(torch.Tensor, name, None)).__name__ in ("getset_descriptor", "property"):
            yield f"getter_{name}", _shown_for(getattr, asking, name)


globals().update({name: function for name, function in _functions() if function is not None})
GETTERS = {name.removeprefix("getter_"): function for name, function in list(globals().items()) if name.startswith("getter_")}

# Methods that torch's own list of what can be overridden leaves out.
_UNLISTED = (
    "new new_empty new_empty_strided new_full new_ones new_tensor new_zeros stride unflatten to_padded_tensor to_sparse_bsc to_sparse_bsr "
    "to_sparse_coo to_sparse_csc to_sparse_csr _conj _conj_physical _is_all_true _is_any_true _is_zerotensor _lazy_clone _neg_view"
).split()
_OVERRIDABLE = {id(function) for function in get_testing_overrides()}
_OVERRIDABLE |= {id(getattr(torch.Tensor, name)) for name in _UNLISTED if hasattr(torch.Tensor, name)}
_CONSTRUCTORS = {id(function) for function in _device_constructors()}
_UNWRAPPED = get_default_nowrap_functions()


def is_overridable(function):
    """Whether torch asks the arguments of a function for `__torch_function__`."""
    return id(function) in _OVERRIDABLE


def is_shown_to_modes(function):
    """Whether torch shows calls of a function to modes."""
    return id(function) in _OVERRIDABLE or id(function) in _CONSTRUCTORS


def keeps_class(function):
    """Whether what a function gives does not take the class of its argument."""
    return function in _UNWRAPPED


# A tensor that wants a gradient does so whatever is recorded where it is looked at.


def to_plain(tensor):
    """A tensor of a class of the user's as one of torch's own, over the same memory and with the same gradient."""
    with torch._C.DisableTorchFunction(), torch.enable_grad():
        plain = tensor.as_subclass(torch.Tensor)
    marks = {name: value for name, value in tensor.__dict__.items() if name.startswith("_dynamo_")}
    if marks:
        plain.__dict__.update(marks)
    return plain


def is_leaf(tensor):
    with torch._C.DisableTorchFunction():
        return tensor.is_leaf


def as_subclass(tensor, cls):
    with torch._C.DisableTorchFunction(), torch.enable_grad():
        return tensor.as_subclass(cls)


def unrecorded(tensor):
    """A view that was made while nothing was recorded, of something that requires a gradient: a leaf that requires one, too."""
    return tensor if tensor.requires_grad else tensor.requires_grad_()


def as_unrecorded_subclass(tensor, cls):
    """The same of a class of the user's."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        return unrecorded(tensor.as_subclass(cls))


def is_captured(cls):
    """Whether tensors of a class are described: the class is the user's, and its tensors have memory and no dispatch of their own."""
    plain_dispatch = cls.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    known_kind = type(cls) is type(torch.Tensor) or issubclass(cls, torch.nn.Parameter)
    return plain_dispatch and known_kind and not cls.__module__.startswith("torch.")
