"""Calls that graphs hold although Pyrite knows nothing of the function: what they give, told from metadata alone."""

import sys
import threading
import warnings

import torch

_RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


class _Refusal:
    """Lets one thread not import torch's own capture, which some of its functions do for tensors without data."""

    def __init__(self):
        self.thread = threading.get_ident()

    def find_spec(self, name, path=None, target=None):
        if name == "torch._dynamo" and threading.get_ident() == self.thread:
            raise ImportError("torch._dynamo is not imported to look at tensors without data")

    def __enter__(self):
        sys.meta_path.insert(0, self)

    def __exit__(self, *_):
        sys.meta_path.remove(self)


def describe(function, args, kwargs):
    """What a function of torch's gives for tensors without data."""
    if function is torch._weight_norm:
        return torch.empty_like(args[0], memory_format=torch.contiguous_format)
    if function in _RECURRENT and not kwargs and len(args) == 9:
        return _recurrent(*args)
    with _Refusal():
        return describe_allowed(function, args, kwargs)


def describe_allowed(function, args, kwargs):
    """What a function of the user's gives for tensors without data. Random numbers are as if it had not been called."""
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings(), torch.no_grad(), torch.device("meta"):
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    finally:
        torch.set_rng_state(state)


def _recurrent(inputs, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    states = state if isinstance(state, list) else [state]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    if batch_first:
        output = inputs.new_empty(inputs.shape[1], inputs.shape[0], width).transpose(0, 1)
    else:
        output = inputs.new_empty(*inputs.shape[:-1], width)
    return output, *(each.new_empty(each.shape) for each in states)


def laid_out(tensor, stride):
    """A tensor with the strides that were told of it."""
    if tensor.stride() == stride:
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)
