"""Nested tensors of the jagged layout: batches of sequences of several lengths."""

import torch
import torch.nn.functional as F
from capture.cases import case, t
from torch import nn


def batch(*lengths, width=4, grad=False):
    return torch.nested.nested_tensor([torch.randn(length, width) for length in lengths], layout=torch.jagged, requires_grad=grad)


def alike(*lengths, width=4):
    """Two batches over the same offsets."""
    first = batch(*lengths, width=width)
    return first, torch.nested.nested_tensor_from_jagged(torch.randn(sum(lengths), width), first.offsets())


@case(lambda: (batch(2, 3, 1),), lambda: (batch(4, 1),), lambda: (t(3, 4),))
def pointwise(x):
    return torch.sin(x) * 2 + 1


@case(lambda: (batch(2, 3),))
def unary_in_turn(x):
    return x.relu().exp().neg()


@case(lambda: alike(2, 3))
def two_over_the_same_offsets(x, y):
    return x * y + x


@case(lambda: (batch(2, 3), t(4)))
def beside_a_dense_tensor(x, y):
    return x * y


@case(lambda: (batch(2, 3), t(5, 4), t(5)))
def linear(x, w, b):
    return F.linear(x, w, b)


@case(lambda: (nn.Linear(4, 2), batch(2, 3)))
def layer(module, x):
    return module(x).relu()


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4)), batch(2, 3, 2)))
def layers(module, x):
    return module(x)


@case(lambda: (batch(2, 3),))
def values_and_offsets(x):
    return x.values() * 2, x.offsets()


@case(lambda: (batch(2, 3),))
def questions(x):
    return x.is_nested, x.layout, x.dim(), x.size(0), x.size(-1), x.dtype


@case(lambda: (batch(2, 3),))
def values_of_a_result(x):
    y = x * 2
    return y.values() + 1


@case(lambda: (batch(2, 3, grad=True),))
def gradient(x):
    return (x * x).values().sum()


@case(lambda: (batch(2, 3),))
def through_a_break(x):
    y = x * 2
    print("between")
    return y + 1


@case(lambda: (batch(2, 3),))
def made_dense(x):
    return torch.nested.to_padded_tensor(x, 0.0, output_size=(2, 4, 4))


@case(lambda: (t(5, 4), torch.tensor([0, 2, 5])))
def made_inside(values, offsets):
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    return x * 2


@case(lambda: (batch(2, 3),))
def returned_as_it_is(x):
    return x, x + 0


@case(lambda: (batch(2, 3),))
def of_another_type(x):
    return x.to(torch.float64), x.half()


@case(lambda: (batch(2, 3),))
def summed_over_the_width(x):
    return x.sum(-1), x.mean(dim=-1)


@case(lambda: (batch(2, 3),))
def softmax_over_the_width(x):
    return F.softmax(x, dim=-1)


@case(lambda: (batch(2, 3),))
def like_it(x):
    return torch.zeros_like(x) + 1, torch.ones_like(x)


@case(lambda: (batch(2, 3),))
def dropped(x):
    return F.dropout(x, 0.5, training=False)


@case(lambda: ([batch(2, 3), batch(1, 2)],))
def several(xs):
    return [x.cos() for x in xs]


@case(lambda: (batch(2, 3),))
def asked_for_its_class(x):
    return isinstance(x, torch.Tensor), type(x).__name__, (x + 1).is_nested
