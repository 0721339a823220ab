"""Edges of tensor subclasses: constructors, state of `__torch_function__`, overridden names, attributes that change, inference, views, wrappers in wrappers."""

import torch
from capture.cases import Message, Reuse, case, t
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree


class NoNew(torch.Tensor):
    def __new__(cls, *args, **kwargs):
        raise RuntimeError("not to be made")

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Plain(torch.Tensor):
    pass


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.add:
            return torch.Tensor.mul(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)


class OwnSizes(torch.Tensor):
    @property
    def shape(self):
        return (1, 2)

    def to(self, *args, **kwargs):
        return "moved"

    def size(self):
        return "sized"


class OwnAttribute(torch.Tensor):
    ndim = 10

    @property
    def data(self):
        return 7


class Slotted(torch.Tensor):
    __slots__ = ("kept",)


class Holder:
    """Stands for a tensor, and is none."""

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(Holder, lambda held: held.inner, (args, kwargs or {}))
        return Holder(func(*args, **kwargs))


class Old(nn.Parameter):
    """A parameter that sees functions."""

    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data, True)

    def __init__(self, data):
        self.extra = 3

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

    def grown(self):
        return self + self.extra


class Changing(torch.Tensor):
    @staticmethod
    def __new__(cls, elem, mark):
        made = torch.Tensor._make_subclass(cls, elem, elem.requires_grad)
        made.mark = mark
        return made


class Marked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            return torch.nn.functional.linear(args[0].as_subclass(torch.Tensor), args[1], *args[2:]) * 2
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def marked(cls, *shape, **attributes):
    made = t(*shape).as_subclass(cls)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@case(lambda: (t(3).as_subclass(NoNew),))
def constructor_is_not_called(x):
    return torch.add(x, 1.0)


@case(lambda: (t(3).as_subclass(Logged),))
def other_function_instead(x):
    return x.add(3), torch.add(x, 3), x.sub(1)


@case(lambda: (t(3).as_subclass(Logged),))
def state_inside_of_contexts(x):
    states = [torch._C._is_torch_function_enabled()]
    with torch._C.DisableTorchFunctionSubclass():
        states.append(torch._C._is_torch_function_enabled())
        y = x.add(2)
        with torch._C.DisableTorchFunction():
            states.append(torch._C._is_torch_function_all_disabled())
    states.append(torch._C._is_torch_function_enabled())
    return states, y, x.add(2)


@case(lambda: (t(3).as_subclass(OwnSizes),))
def own_shape_and_to(x):
    return x.shape, x.to(torch.float64), x.size(), x * 2


@case(lambda: (t(3).as_subclass(OwnAttribute),))
def own_attribute_and_data(x):
    return x.ndim, x.data, x + 1


@case(lambda: (marked(Slotted, 3),))
def slots(x):
    x.kept = 4
    return x * x.kept


@case(lambda: (Holder(t(3)), t(3)))
def stands_for_a_tensor(x, y):
    return torch.add(x, y).inner, torch.cat([x, y]).inner, torch.sum(x, dim=0).inner


@case(lambda: (t(3),))
def stands_for_a_tensor_made_inside(x):
    held = Holder(x)
    return torch.mul(torch.sin(held), 2).inner


@case(lambda: (Old(torch.ones(3)), t(3)))
def parameter_that_sees_functions(w, x):
    return w.grown() * x, type(w * 2).__name__


@case(lambda: (Old(torch.ones(3)),))
def parameter_whose_attribute_changes(w):
    w.extra = w.extra + 1
    return w.grown()


@case(lambda: (t(3),))
def attribute_of_one_just_made(x):
    y = Changing(x * 2, "a")
    y.mark = y.mark + "b"
    y.more = 1
    return y, y.mark, y.more


@case(lambda: (t(3),))
def attribute_through_as_subclass(x):
    y = x.as_subclass(Plain)
    y.mark = 5
    z = y.as_subclass(Plain)
    return hasattr(z, "mark"), y.mark, z


@case(lambda: (t(3),))
def class_in_a_class(x):
    y = x.as_subclass(Plain).as_subclass(Logged)
    return type(y).__name__, y.add(2), y.as_subclass(torch.Tensor) + 1


@case(lambda: (t(3).as_subclass(Plain),))
def bases_and_names(x):
    return x.__class__.__bases__ == (torch.Tensor,), x.__class__.__name__, x.__class__ is Plain


@case(lambda: (t(3).as_subclass(Plain), t(3)))
def types_compared(x, y):
    return type(x) == type(y), type(x) != Plain, type(y) is torch.Tensor, x + y


@case(lambda: (t(3).as_subclass(Plain),), lambda: (t(3),))
def class_decides(x):
    return x + 1 if type(x) is Plain else x - 1


@case(lambda: (marked(Plain, 3, mode="a"),), lambda: (marked(Plain, 3, mode="b"),), lambda: (marked(Plain, 3),))
def attribute_decides(x):
    mode = getattr(x, "mode", "none")
    return x * {"a": 1, "b": 2, "none": 3}[mode]


@case(lambda: (t(2, 3).as_subclass(Marked), t(4, 3)))
def layer_replaced(x, w):
    return torch.nn.functional.linear(x, w), torch.nn.functional.relu(x)


@case(lambda: (t(3).as_subclass(Plain),))
def in_a_comprehension(x):
    return sum(part * 2 for part in [x, x + 1]), max((x[0], x[1]), key=lambda part: 0)


@case(lambda: (t(3).as_subclass(Plain),))
def in_inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return type(y).__name__, y.is_inference()


@case(lambda: (t(4, 2).as_subclass(Plain),))
def iterated(x):
    total = 0
    for row in x:
        total = total + row
    return total, [type(row).__name__ for row in x]


@case(lambda: (t(4).as_subclass(Plain),))
def written_items(x):
    x[0] = 5
    x[1:] += 1
    return x


@case(lambda: (t(4).as_subclass(Plain), t(4)))
def compared_and_chosen(x, y):
    return (x > y).sum(), torch.where(x > 0, x, y), torch.maximum(x, y)


@case(lambda: (t(4).as_subclass(Plain),))
def with_an_output(x):
    out = torch.empty(4)
    torch.add(x, 1, out=out)
    return out


@case(lambda: (t(3).as_subclass(Plain), nn.Linear(3, 2)))
def through_a_layer(x, layer):
    return layer(x), type(layer(x)).__name__


@case(lambda: (t(3).as_subclass(Plain),), reuse=Reuse.FREE)
def with_a_function_as_argument(x):
    return torch.func.vmap(lambda y: y * 2)(x.as_subclass(torch.Tensor))


@case(lambda: (t(3, grad=True),))
def gradient_through_classes(x):
    y = x.as_subclass(Plain) * 2
    return (y.as_subclass(torch.Tensor) * x).sum()


@case(lambda: (t(3).as_subclass(Plain),))
def copied(x):
    return x.clone(), x.detach(), x.contiguous(), x.new_zeros(2), torch.zeros_like(x)


@case(lambda: (t(3).as_subclass(Plain),), message=Message.ANY)
def unknown_attribute(x):
    return x.nothing_of_this_name


def pair(*shape, grad=False):
    made = TwoTensor(t(*shape), t(*shape))
    return made.requires_grad_() if grad else made


@case(lambda: (pair(3),))
def pair_made_of_a_pairs_parts(x):
    return TwoTensor(x.a + 1, x.b * 2) * x


@case(lambda: (pair(3), pair(3)))
def pair_made_of_pairs(x, y):
    both = TwoTensor(x * 2, y)
    return both.sin().a


@case(lambda: (t(3),))
def pair_in_a_helper(x):
    def made(n):
        return TwoTensor(x * n, x + n)

    return made(2) + made(3)


@case(lambda: (pair(3),))
def pair_taken_apart_by_its_own_method(x):
    names, context = x.__tensor_flatten__()
    return names, context, [getattr(x, name) * 2 for name in names]


@case(lambda: (pair(3),), reuse=Reuse.FREE)
def pair_in_attributes(x):
    class Box:
        pass

    box = Box()
    box.value = x * 2
    return box.value + 1


@case(lambda: (pair(4),))
def pair_written_items(x):
    y = x.clone()
    y[0] = 1.0
    return y


@case(lambda: (pair(2, 3),))
def pair_transposed(x):
    return x.T, x.mT.contiguous(), x.transpose(0, 1) @ x


@case(lambda: (pair(3),))
def pair_asked_for_questions(x):
    return torch.is_tensor(x), torch.is_floating_point(x), x.is_contiguous(), torch.numel(x), x.element_size(), torch.is_complex(x)


@case(lambda: (pair(3, grad=True),))
def pair_gradient_inside(x):
    return torch.autograd.grad((x * x).sum(), x)[0]


@case(lambda: (pair(3),))
def pair_with_defaults(x, scale=2.0, *, shift=1):
    return x * scale + shift


@case(lambda: (nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.LayerNorm(3)]), pair(2, 3)))
def pair_through_layers(layers, x):
    for layer in layers:
        x = layer(x)
    return x


@case(lambda: (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval(), pair(1, 1, 5, 5)))
def pair_through_convolution(layers, x):
    return layers(x)


@case(lambda: (pair(3), t(3)))
def pair_on_either_side(x, y):
    return y + x, 2 - x, y @ x, x @ y, 2**x


@case(lambda: (pair(3),))
def pair_in_a_dictionary_comprehension(x):
    return {name: getattr(x, name) for name in ("a", "b")}


@case(lambda: (pair(3),))
def pair_random(x):
    return torch.rand_like(x) * 0 + x, torch.nn.functional.dropout(x, 0.0)


@case(lambda: (pair(3),))
def pair_returned_from_a_branch(x):
    if x.shape[0] > 2:
        return x.a
    return x


@case(lambda: (pair(3),))
def pair_as_a_string(x):
    return str(type(x)), x * 1


@case(lambda: (pair(3),))
def pair_under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x * 2
    return y


@case(lambda: (pair(3, grad=True),))
def pair_switches(x):
    with torch.no_grad():
        y = x * 2
    z = x * 3
    return y.requires_grad, z.requires_grad, z


@case(lambda: (pair(3),), watch=("KEPT",))
def pair_kept(x):
    KEPT.append(x * 2)
    return len(KEPT)


KEPT = []
