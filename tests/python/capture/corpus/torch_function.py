"""`__torch_function__`: tensors of classes of the user's with methods, attributes and overrides; modes; objects that stand for tensors."""

import torch
from capture.cases import Reuse, case, t
from torch.overrides import TorchFunctionMode


class Scaled(torch.Tensor):
    factor = 2

    def grown(self, by=1):
        return self * self.factor + by

    @property
    def doubled(self):
        return self * 2

    @classmethod
    def ones_of(cls, n):
        return torch.ones(n).as_subclass(cls)

    @staticmethod
    def shift(x):
        return x + 1


class Overriding(torch.Tensor):
    def sigmoid(self):
        return self * 100

    def add(self, other):
        return super().add(other) * 2

    def __len__(self):
        return 7


class Quiet(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Recorded(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Unwrapping(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Labelled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls):
            result.label = "derived"
        return result


class Second(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs or {})


def scaled(*shape):
    return t(*shape).as_subclass(Scaled)


@case(lambda: (scaled(3),))
def method_of_the_subclass(x):
    return x.grown(), x.grown(by=3)


@case(lambda: (scaled(3),))
def property_of_the_subclass(x):
    return x.doubled + Scaled.shift(x)


@case(lambda: (scaled(3),))
def class_attribute_of_the_subclass(x):
    return x * x.factor, Scaled.factor


@case(lambda: (t(3).as_subclass(Overriding),))
def method_overridden(x):
    return x.sigmoid(), x.add(1), len(x)


@case(lambda: (t(3).as_subclass(Quiet),))
def torch_function_disabled(x):
    return x + 1, type(x + 1) is torch.Tensor, torch.sin(x)


@case(lambda: (t(3).as_subclass(Unwrapping),))
def torch_function_that_unwraps(x):
    y = x + 1
    return y * 2, type(y) is Unwrapping


@case(lambda: (t(3).as_subclass(Labelled),))
def attributes_of_results(x):
    y = x + 1
    return y, y.label


@case(lambda: (t(3).as_subclass(Second), t(3)))
def torch_function_that_looks_at_types(x, y):
    return torch.mul(x, y)


@case(lambda: (scaled(3), t(3)))
def type_of_results(x, y):
    z = torch.cat([x, y])
    return type(z) is Scaled, z, isinstance(x + y, Scaled), isinstance(x.shape, torch.Size), type(x.sum()) is Scaled


@case(lambda: (scaled(3),))
def comparisons_and_items(x):
    x[0] = 1
    return x > 0, x[1:], x.T if x.dim() == 2 else x, x.view(-1, 1).squeeze()


@case(lambda: (scaled(3),))
def in_place_operators(x):
    x += 1
    x.mul_(2)
    return x


@case(lambda: (t(3),))
def subclass_made_by_as_subclass(x):
    y = (x + 1).as_subclass(Scaled)
    return y.grown(), torch.sin(y)


@case(lambda: (t(3),))
def subclass_made_by_its_class_method(x):
    return Scaled.ones_of(3) * x


@case(lambda: (t(3),))
def subclass_made_by_make_subclass(x):
    return torch.Tensor._make_subclass(Scaled, x) * 2


@case(lambda: (t(3),))
def parameter_made_inside_is_a_parameter(x):
    p = torch.nn.Parameter(x)
    return isinstance(p, torch.nn.Parameter), (p * 2).detach()


@case(lambda: (scaled(3),))
def subclass_as_a_plain_tensor(x):
    y = x.as_subclass(torch.Tensor)
    return y + 1, type(y) is torch.Tensor


@case(lambda: (scaled(3),))
def overrides_switched_off_inside(x):
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
    return y, type(y) is Scaled, x + 1


@case(lambda: (scaled(3),), lambda: (t(3),))
def subclass_and_plain_in_turn(x):
    return x * 2


class Doubling(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.sin:
            return result * 2
        return result


class Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


class Replacing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.add:
            func = torch.Tensor.mul
        return func(*args, **(kwargs or {}))


@case(lambda: (t(3),))
def mode_around_functions(x):
    with Doubling():
        y = torch.sin(x)
    return y, torch.sin(x)


@case(lambda: (t(3),))
def mode_that_counts(x):
    with Counting() as mode:
        y = torch.sin(x) + x.cos()
    return y, mode.count > 1


@case(lambda: (t(3),))
def mode_around_methods(x):
    with Replacing():
        return x.add(3)


@case(lambda: (t(3),))
def modes_in_each_other(x):
    with Doubling(), Replacing():
        y = torch.sin(x).add(2)
    with Doubling(), Doubling():
        z = torch.sin(x)
    return y, z


@case(lambda: (t(3),))
def mode_around_a_call(x):
    def inner(v):
        return torch.sin(v)

    with Doubling():
        return inner(x)


@case(lambda: (t(3),))
def mode_and_a_break(x):
    with Doubling():
        y = torch.sin(x)
        torch._dynamo.graph_break()
        z = torch.sin(y)
    return y + z


@case(lambda: (t(3),))
def device_as_a_mode(x):
    with torch.device("cpu"):
        return x + torch.ones(3)


@case(lambda: (t(3),))
def modes_switched_off_inside(x):
    with Doubling():
        with torch._C.DisableTorchFunction():
            return torch.sin(x)


class Wrapper:
    def __init__(self, x):
        self.x = x

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [arg.x if isinstance(arg, cls) else arg for arg in args]
        return cls(func(*args, **(kwargs or {})))

    def __add__(self, other):
        return torch.add(self, other)


@case(lambda: (t(3),))
def object_that_stands_for_a_tensor(x):
    y = torch.sin(Wrapper(x)) + 1
    return y.x


@case(lambda: (Wrapper(t(3)), t(3)))
def object_that_stands_for_a_tensor_from_outside(held, x):
    return torch.mul(held, x).x


@case(lambda: (scaled(3), t(3)))
def asked_of_overrides(x, y):
    return torch.overrides.has_torch_function((x,)), torch.overrides.has_torch_function_unary(y), torch.is_tensor(x), torch.overrides.is_tensor_like(x)


@case(lambda: (t(3, grad=True),))
def gradients_of_a_subclass(x):
    return (x.as_subclass(Scaled) * 2).sum()


@case(lambda: (t(3),), reuse=Reuse.FREE)
def class_of_tensors_made_inside(x):
    class Local(torch.Tensor):
        pass

    return x.as_subclass(Local) + 1 is not None


@case(lambda: (t(3).as_subclass(Labelled),))
def attribute_set_on_a_subclass(x):
    x.note = 3
    return x * x.note


@case(lambda: (t(2, 3).as_subclass(Scaled),), lambda: (t(4, 3).as_subclass(Scaled),), lambda: (t(5, 3).as_subclass(Scaled),))
def sizes_of_a_subclass(x):
    return x.reshape(-1) * x.shape[0]


@case(lambda: (scaled(3),))
def subclass_in_containers(x):
    held = {"a": [x, x + 1]}
    return sum(held["a"]), [type(v).__name__ for v in held["a"]]


@case(lambda: (scaled(4, 4), scaled(4)))
def functions_of_nn(x, b):
    return torch.nn.functional.linear(x, x, b), torch.nn.functional.relu(x), torch.softmax(x, -1)


@case(lambda: (scaled(3),))
def repeated_results(x):
    values, places = x.sort()
    a, b, c = x.unbind()
    return values, places, a + b + c, x.max(0).values, x.split(1)[0]
