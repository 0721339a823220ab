"""Classes derived from Tensor, `__torch_function__` of classes, objects and modes."""

import torch
from capture.cases import case, t
from torch.overrides import TorchFunctionMode


class Plain(torch.Tensor):
    pass


class Noted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Shifted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.add:
            return result + 10
        return result


class Named(torch.Tensor):
    @staticmethod
    def __new__(cls, data, name):
        self = data.as_subclass(cls)
        self.label = name
        return self

    def describe(self):
        return self.label + "!"

    @property
    def upper(self):
        return self.label.upper()


def plain(*shape):
    return t(*shape).as_subclass(Plain)


@case(lambda: (plain(3),))
def operator_of_a_plain_subclass(x):
    return x * 2


@case(lambda: (plain(3), t(3)))
def subclass_and_tensor(x, y):
    return x + y, y + x, type(x * 1) is Plain, isinstance(x, torch.Tensor), isinstance(y, Plain)


@case(lambda: (t(3).as_subclass(Noted),))
def subclass_that_calls_its_super(x):
    return torch.sin(x) + x.cos()


@case(lambda: (t(3).as_subclass(Shifted), t(3)))
def subclass_that_changes_a_function(x, y):
    return torch.add(x, y), x * y


@case(lambda: (t(3),))
def subclass_made_inside(x):
    y = x.as_subclass(Plain)
    return y * 2, type(y).__name__


@case(lambda: (Named(t(3), "n"),))
def subclass_with_attributes(x):
    return x.label, x.describe(), x.upper, x + 1


@case(lambda: (t(3).as_subclass(Noted),))
def subclass_methods(x):
    return x.sum(), x.shape, x.view(3, 1).size(), x[0], len(x), x.dtype


@case(lambda: (t(3).as_subclass(Noted),))
def subclass_without_torch_function(x):
    with torch._C.DisableTorchFunctionSubclass():
        return x * 2


@case(lambda: (torch.nn.Parameter(t(3)),))
def parameter_as_an_argument(x):
    return x * 2, isinstance(x, torch.nn.Parameter), type(x) is torch.nn.Parameter


@case(lambda: (torch.nn.Buffer(t(3)),))
def buffer_as_an_argument(x):
    return x * 2, isinstance(x, torch.nn.Buffer)


class Wrapper:
    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.data if isinstance(a, Wrapper) else a for a in args]
        return Wrapper(func(*args, **(kwargs or {})))


@case(lambda: (Wrapper(t(3)), t(3)))
def torch_function_of_an_object(x, y):
    return torch.add(x, y).data, torch.sin(x).data


class Doubling(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.sin:
            return result * 2
        return result


@case(lambda: (t(3),))
def mode_inside(x):
    with Doubling():
        y = torch.sin(x)
    return y, torch.sin(x)


class Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def mode_with_state(x):
    mode = Counting()
    with mode:
        y = torch.sin(x) + torch.cos(x)
    return y, mode.seen


@case(lambda: (t(3),))
def nested_modes(x):
    with Doubling(), Doubling():
        return torch.sin(x)


@case(lambda: (t(3),))
def default_device_mode(x):
    with torch.device("cpu"):
        return torch.zeros(3) + x


class Overloads:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Overloads(self.x + other)

    def __matmul__(self, other):
        return self.x @ other


@case(lambda: (t(3, 3),))
def operators_of_an_object_with_a_tensor(x):
    return (Overloads(x) + 1).x, Overloads(x) @ x


@case(lambda: (t(3),), lambda: (t(3, grad=True),))
def subclass_made_while_nothing_is_recorded(x):
    y = x + 1
    with torch.no_grad():
        z = y.as_subclass(Plain)
    return z, z.is_leaf, z.requires_grad, y
