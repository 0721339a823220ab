"""Arrays of numpy under capture: tensors inside of objects of `torch._numpy`, whose functions are written in terms of torch.

An array that comes in shares its memory with a tensor; one that goes out is made from a tensor. Functions of numpy have a twin
of the same name in `torch._numpy`, which capture follows instead.
"""

import importlib
import sys

import numpy
import torch
import torch._numpy as _numpy

_TYPES = frozenset(map(numpy.dtype, "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()))


def shares_memory(array):
    """Whether a tensor can share the memory of an array, and write to it."""
    size = array.itemsize
    return array.dtype in _TYPES and array.flags.writeable and all(stride >= 0 and stride % size == 0 for stride in array.strides)


def to_tensor(array):
    _settle_types()
    return torch.from_numpy(array)


def to_array(tensor):
    """An array; a number where there are no dimensions, as functions of numpy give it."""
    array = tensor.resolve_conj().resolve_neg().numpy()
    return array if array.ndim else array[()]


def type_of(dtype):
    """The type of numpy's for one of torch's."""
    return torch.empty((), dtype=dtype, device="cpu").numpy().dtype


def type_of_number(number):
    """The type of a tensor that is made of one of numpy's numbers."""
    return torch.as_tensor(number).dtype if isinstance(number, numpy.number | numpy.bool_) else None


def scalar_type(given):
    """A type of numpy's as the class of `torch._numpy` for it; others as they are."""
    if not (isinstance(given, numpy.dtype) or (isinstance(given, type) and issubclass(given, numpy.generic))):
        return given
    found = getattr(importlib.import_module("torch._numpy"), numpy.dtype(given).name, None)
    return found if isinstance(found, type) else given


def split(ary, indices_or_sections, axis=0):
    return list(_numpy.split(ary, indices_or_sections, axis))


def array_split(ary, indices_or_sections, axis=0):
    return list(_numpy.array_split(ary, indices_or_sections, axis))


def hsplit(ary, indices_or_sections):
    return list(_numpy.hsplit(ary, indices_or_sections))


def vsplit(ary, indices_or_sections):
    return list(_numpy.vsplit(ary, indices_or_sections))


def dsplit(ary, indices_or_sections):
    return list(_numpy.dsplit(ary, indices_or_sections))


# Where `torch._numpy` gives a tuple, numpy gives a list.
_LISTS = {function.__name__: function for function in (split, array_split, hsplit, vsplit, dsplit)}

_SPACES = {"linalg": "torch._numpy.linalg", "fft": "torch._numpy.fft"}


def _settle_types():
    """Lets `torch._numpy` choose its default types now: later it would change a global that captured code reads."""
    impl = _numpy._dtypes_impl
    if impl._default_dtypes is None:
        if "torch._dynamo.config" in sys.modules:
            impl.default_dtypes()
        else:
            # The defaults of torch's own compiler, which nobody has imported.
            impl._default_dtypes = impl.DefaultDTypes(float_dtype=torch.float64, complex_dtype=torch.complex128, int_dtype=torch.int64)


def twin(name):
    """The function of `torch._numpy` for one of numpy, by its dotted name."""
    _settle_types()
    *space, stem = name.split(".")[1:]
    if space and space[0] not in _SPACES:
        return None
    if not space and stem in _LISTS:
        return _LISTS[stem]
    module = importlib.import_module(_SPACES[space[0]] if space else "torch._numpy")
    # Some functions have several names.
    original = getattr(getattr(numpy, space[0]) if space else numpy, stem, None)
    found = getattr(module, stem, None) or getattr(module, getattr(original, "__name__", stem), None)
    return found if callable(found) and not isinstance(found, type) else None


def functions():
    """The functions of numpy with their names."""
    for space, module in (("numpy", numpy), ("numpy.linalg", numpy.linalg), ("numpy.fft", numpy.fft)):
        for name, value in vars(module).items():
            if callable(value) and not isinstance(value, type) and not name.startswith("_"):
                yield f"{space}.{name}", value


def tensor_numpy(tensor, *, force=False):
    """`tensor.numpy()`."""
    from torch._numpy import ndarray

    if tensor.requires_grad:
        if not force:
            return _transforms.refuse("the array of a tensor that requires a gradient")
        tensor = tensor.detach()
    return ndarray(tensor)


def tensor_array(tensor, dtype=None):
    array = tensor_numpy(tensor)
    return array if dtype is None else array.astype(dtype)


def from_numpy(array):
    return array.tensor


from pyrite import _transforms  # noqa: E402

TABLE = {
    "torch.Tensor.numpy": tensor_numpy,
    "torch.Tensor.__array__": tensor_array,
    "torch.from_numpy": from_numpy,
}
