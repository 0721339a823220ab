"""Models without kinks: the same architecture with activations and pools that have a derivative everywhere.

The derivative of relu jumps at zero, and that of a maximum where two elements are equal. An input that is there but for rounding takes one side in
eager and the other in compiled code: both are right, and all gradients below differ. A network in training mode, with small images, has tens of
thousands of such places. Where its gradients differ, the smooth one is asked: a mistake of the compiler stays, a kink is gone.
"""

import contextlib
from unittest import mock

import torch
from torch.nn import functional as F


def relu(input, inplace=False):
    return F.silu(input, inplace=inplace)


def relu6(input, inplace=False):
    return F.silu(input, inplace=inplace)


def hardswish(input, inplace=False):
    return F.silu(input, inplace=inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return F.silu(input, inplace=inplace)


def hardsigmoid(input, inplace=False):
    return torch.sigmoid(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return torch.tanh(input)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if return_indices or dilation not in (1, (1, 1)):
        raise NotImplementedError("a smooth maximum has no indices and no dilation")
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode)


SMOOTH = {each.__name__: each for each in (relu, relu6, hardswish, leaky_relu, hardsigmoid, hardtanh, max_pool2d)}


@contextlib.contextmanager
def smooth():
    """Inside of it `torch.nn.functional`, and with it the modules, have no kinks."""
    with contextlib.ExitStack() as stack:
        for name, function in SMOOTH.items():
            stack.enter_context(mock.patch.object(F, name, function))
        stack.enter_context(mock.patch.object(torch, "relu", relu))
        yield
