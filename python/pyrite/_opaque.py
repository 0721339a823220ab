"""Calls that graphs hold although Pyrite knows nothing of the function: what they give, told from metadata alone."""

import functools
import sys
import threading
import warnings

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


class _Refusal:
    """Lets one thread not import torch's own capture, which takes seconds.

    Functions of torch that compute for tensors without data import it when they are first called, to be left out of its graphs. Such a
    function is told to wait with that (see `_undecorated`), which lets the next call of it go through.
    """

    def __init__(self):
        self.thread = threading.get_ident()
        self.told = 0

    def find_spec(self, name, path=None, target=None):
        if name == "torch._dynamo" and threading.get_ident() == self.thread:
            self.told += _tell_to_wait(sys._getframe())
            raise ImportError("torch._dynamo is not imported to look at tensors without data")

    def __enter__(self):
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_):
        sys.meta_path.remove(self)

    def describe(self, function, args, kwargs):
        """What a function gives; it is called again when one that it calls was told to wait."""
        while True:
            told = self.told
            try:
                return describe_allowed(function, args, kwargs)
            except Exception:
                if self.told == told:
                    raise


def _tell_to_wait(frame):
    """Finds the function that `torch._disable_dynamo` is about to decorate; how many there are."""
    while frame is not None and frame.f_globals.get("__name__") != "torch._compile":
        frame = frame.f_back
    function = frame and frame.f_locals.get("fn")
    if not callable(function) or hasattr(function, "__dynamo_disable"):
        return 0
    function.__dynamo_disable = _undecorated(function)
    return 1


def _undecorated(function):
    """A function as it is. Once torch's own capture is there, torch decorates it when it is called again."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if "torch._dynamo" in sys.modules and getattr(function, "__dynamo_disable", None) is call:
            del function.__dynamo_disable
        return function(*args, **kwargs)

    return call


# Functions that draw a number for each element of their first argument, and that torch does not run without data.
_DRAWING = (torch._standard_gamma, torch._sample_dirichlet, torch.binomial)
# Decompositions whose factors lie by columns; torch's rules for tensors without data say by rows.
_BY_COLUMNS = frozenset(("svd", "linalg_svd", "linalg_eig"))


def describe(function, args, kwargs):
    """What a function of torch's gives for tensors without data."""
    if function is torch._weight_norm:
        return torch.empty_like(args[0], memory_format=torch.contiguous_format)
    if function in _DRAWING:
        return torch.empty(args[0].shape, dtype=args[0].dtype, device="meta")
    name = getattr(function, "__name__", "")
    if name.startswith("fft_") or name in _BY_COLUMNS:
        return _measured(function, args, kwargs)
    if function in _RECURRENT and not kwargs and len(args) == 9:
        return _recurrent(*args) if isinstance(args[3], bool) else _recurrent_packed(*args)
    with _Refusal() as refusal:
        return refusal.describe(function, args, kwargs)


def describe_allowed(function, args, kwargs):
    """What a function of the user's gives for tensors without data. Random numbers are as if it had not been called."""
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings(), torch.no_grad(), torch.device("meta"):
            warnings.simplefilter("ignore")
            if _only_writes(function):
                with _Parsed():
                    return function(*args, **kwargs)
            return function(*args, **kwargs)
    finally:
        torch.set_rng_state(state)


class _Parsed(TorchDispatchMode):
    """Ends calls of operators that give nothing once their arguments are parsed: they need no fake."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return None


def _schemas(function):
    """The schemas of an operator of `torch.library`, one per overload."""
    names = getattr(function, "overloads", None)
    overloads = [function] if names is None else [getattr(function, name) for name in names()]
    return [overload._schema for overload in overloads if hasattr(overload, "_schema")]


def _only_writes(function):
    schemas = _schemas(function)
    return len(schemas) == 1 and schemas[0].is_mutable and not schemas[0].returns


def written(function):
    """For each parameter of an operator its name where the schema lets it be written, else an empty text; nothing for operators that do
    not write, `None` where a result is what was written, or where several overloads leave open what is."""
    schemas = _schemas(function)
    if not any(schema.is_mutable for schema in schemas):
        return ()
    if len(schemas) > 1 or any(_is_written(result) for result in schemas[0].returns):
        return None
    return tuple(each.name if _is_written(each) else "" for each in schemas[0].arguments)


def _is_written(argument):
    return argument.alias_info is not None and argument.alias_info.is_write


class _OnMeta(torch.overrides.TorchFunctionMode):
    """Lets functions compute without data, whatever device they name."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("device"), (str, torch.device)):
            kwargs["device"] = torch.device("meta")
        return function(*_without_data(args), **_without_data(kwargs))


def _without_data(value):
    if isinstance(value, torch.Tensor) and value.device.type != "meta":
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_without_data(item) for item in value)
    if isinstance(value, dict):
        return {key: _without_data(item) for key, item in value.items()}
    return value


def describe_nested(function, args, kwargs):
    """What a function of `pyrite.higher_order` gives for nested graphs and tensors without data."""
    with _OnMeta():
        try:
            with _Refusal() as refusal:
                return refusal.describe(function, args, kwargs)
        except ImportError:
            # Gradients by torch.func import it whenever they run.
            return describe_allowed(function, args, kwargs)


def _measured(function, args, kwargs):
    """What a function gives, told by calling it on zeros: torch's rules for tensors without data differ in the strides."""
    args, kwargs = pytree.tree_map(_zeros, (args, kwargs))
    with torch.no_grad():
        found = function(*args, **kwargs)
    return _without_data(found)


def _zeros(value):
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu").zero_()


# Larger arguments are not made for a question alone.
_LARGEST = 1 << 20
# Functions that trust the numbers that they are given as places in memory.
_TRUSTING = (torch.segment_reduce,)
# What these refuse depends on the storage behind a view, which a stand-in of the view alone does not have.
_PLACING = (torch.as_strided, torch.Tensor.as_strided, torch.as_strided_copy, torch.as_strided_scatter, torch.Tensor.as_strided_scatter)


class _StandIn(torch.Tensor):
    """A tensor whose calls end once their arguments are parsed."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return None


@functools.cache
def stand_in(dtype, is_scalar):
    """A tensor for torch's parser of arguments, which looks at the type of its elements and at whether it has dimensions."""
    return torch.zeros(() if is_scalar else (1,), dtype=dtype, device="cpu").as_subclass(_StandIn)


def refusal(function, args, kwargs):
    """What a function of torch's raises for arguments of these shapes and types, whatever their data; else `None`."""
    leaves = pytree.tree_leaves((args, kwargs))
    if function in _TRUSTING + _PLACING or sum(leaf.untyped_storage().nbytes() for leaf in leaves if isinstance(leaf, torch.Tensor)) > _LARGEST:
        return None
    told = [_raised(function, *pytree.tree_map(fill, (args, kwargs))) for fill in (_zeros, _ones)]
    same = len({(type(error), str(error)) for error in told}) == 1
    return told[0] if same and type(told[0]) in (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) else None


def _raised(function, args, kwargs):
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            function(*args, **kwargs)
    except Exception as error:
        return error.with_traceback(None)
    finally:
        torch.set_rng_state(state)
    return None


def _ones(value):
    return _zeros(value).fill_(1) if isinstance(value, torch.Tensor) else value


def _recurrent(inputs, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    states = state if isinstance(state, list) else [state]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    if batch_first:
        output = inputs.new_empty(inputs.shape[1], inputs.shape[0], width).transpose(0, 1)
    else:
        output = inputs.new_empty(*inputs.shape[:-1], width)
    return output, *(each.new_empty(each.shape) for each in states)


def _recurrent_packed(data, batch_sizes, state, weights, has_biases, layers, dropout, train, bidirectional):
    """The same over sequences of several lengths, one row a step."""
    return _recurrent(data, state, weights, has_biases, layers, dropout, train, bidirectional, False)


def laid_out(tensor, stride, dtype=None):
    """A tensor with the strides, and the element type, that were told of it."""
    dtype = tensor.dtype if dtype is None else dtype
    if tensor.stride() == stride and tensor.dtype == dtype or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=dtype, device=tensor.device).copy_(tensor)
