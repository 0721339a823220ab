"""Functions of torch and Python that are compiled themselves, and objects that are called."""

import functools

import torch
import torch.nn.functional as F
from capture.cases import case, t


def compiled(function):
    """What the harness compiles calls what it is given: the function itself is looked up in the frame."""

    def run(*args, **kwargs):
        return function(*args, **kwargs)

    return run


class Doubling:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


@case(lambda: (t(3), Doubling(2)), lambda: (t(3), Doubling(3)))
def an_object_that_is_called(x, f):
    return f(x) + 1


@case(lambda: (t(3), functools.partial(F.softmax, dim=0)))
def a_partial_function_of_torch(x, f):
    return f(x)


@case(lambda: (t(3), torch.sin), lambda: (t(3), F.gelu), lambda: (t(3), torch.Tensor.cos))
def a_function_that_is_given(x, f):
    return f(x) + 1, compiled(f)(x)
