"""Comparisons that are written over what they compare, which torch records, and frames that are called where classes of tensors are not asked."""

import torch
from capture.cases import case, t


class Marked(torch.Tensor):
    """Gives what is computed from it its own class."""


def compared(x, y, name):
    written = x.clone()
    getattr(written, name)(y)
    return written, written * x


MAKERS = [lambda x=x, y=y: (t(3, grad=x), t(3, grad=y)) for x, y in [(True, False), (False, True), (True, True), (False, False)]]


@case(*MAKERS)
def greater_or_less(x, y):
    return compared(x, y, "gt_"), compared(x, y, "lt_"), compared(x, y, "ge_"), compared(x, y, "le_")


@case(*MAKERS)
def equal_or_not(x, y):
    return compared(x, y, "eq_"), compared(x, y, "ne_"), compared(x, y, "greater_"), compared(x, y, "not_equal_")


@case(*MAKERS)
def compared_with_a_number(x, y):
    return compared(x, 0.5, "gt_"), compared(y, 0, "le_")


@case(*MAKERS)
def a_view_compared(x, y):
    written = x.clone()
    written[0].gt_(y[0])
    return written * 2, written.requires_grad


@case(lambda: (t(3),))
def bools_and_integers_compared(x):
    return (x > 0).eq_(x > 1), x.to(torch.int64).gt_(1)


def marked(x):
    y = x.as_subclass(Marked)
    return torch.sin(y) - 1, y * 2


@case(lambda: (t(3),))
def frame_called_where_classes_are_not_asked(x):
    with torch._C.DisableTorchFunctionSubclass():
        print("break")
        plain = marked(x)
    return plain, marked(x)
