"""Wrapper subclasses: tensors without memory of their own that hold others and see operators in `__torch_dispatch__`."""

import torch
import torch.nn.functional as F
from capture.cases import Message, Reuse, case, t
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing


class Scaled(torch.Tensor):
    """Numbers times a factor that is kept apart."""

    @staticmethod
    def __new__(cls, inner, factor, *, unit="m"):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
        )

    def __init__(self, inner, factor, *, unit="m"):
        self.inner = inner
        self.factor = factor
        self.unit = unit

    def __tensor_flatten__(self):
        return ["inner", "factor"], {"unit": self.unit}

    @staticmethod
    def __tensor_unflatten__(inner_tensors, context, outer_size, outer_stride):
        return Scaled(inner_tensors["inner"], inner_tensors["factor"], unit=context["unit"])

    def value(self):
        return self.inner * self.factor

    @property
    def doubled(self):
        return self * 2

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain_args, plain_kwargs = pytree.tree_map_only(Scaled, lambda x: x.inner * x.factor, (args, kwargs or {}))
        first = next(leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Scaled))
        out = func(*plain_args, **plain_kwargs)
        return pytree.tree_map_only(torch.Tensor, lambda x: Scaled(x / first.factor, first.factor, unit=first.unit), out)


class Plainly(torch.Tensor):
    """A wrapper whose operators give plain tensors."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors, context, outer_size, outer_stride):
        return Plainly(inner_tensors["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(Plainly, lambda x: x.inner, (args, kwargs or {}))
        return func(*args, **kwargs)


class Counting(TwoTensor):
    """Sees functions as well as operators."""

    shown = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.shown.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Compressed(torch.Tensor):
    """A matrix that keeps its last column only, and looks as large as the whole."""

    @staticmethod
    def __new__(cls, column, width):
        return torch.Tensor._make_wrapper_subclass(cls, (column.shape[0], width), dtype=column.dtype, device=column.device)

    def __init__(self, column, width):
        self.column = column
        self.width = width

    def __tensor_flatten__(self):
        return ["column"], self.width

    @staticmethod
    def __tensor_unflatten__(inner_tensors, width, outer_size, outer_stride):
        return Compressed(inner_tensors["column"], width)

    def whole(self):
        return self.column[:, None].expand(-1, self.width)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(Compressed, lambda x: x.whole(), (args, kwargs or {}))
        return func(*args, **kwargs)


def two(*shape, grad=False):
    pair = TwoTensor(t(*shape), t(*shape))
    return pair.requires_grad_() if grad else pair


def scaled(*shape, unit="m", grad=False):
    made = Scaled(t(*shape), torch.tensor(2.0), unit=unit)
    return made.requires_grad_() if grad else made


@case(lambda: (two(3),), lambda: (two(4),), lambda: (t(3),))
def a_pair_through_functions(x):
    return torch.sin(x) + x.cos()


@case(lambda: (two(3), t(3)))
def a_pair_and_a_tensor(x, y):
    return x * y + 1, y * 2


@case(lambda: (two(3), two(3)))
def two_pairs(x, y):
    return torch.add(x, y, alpha=2), x - y


@case(lambda: (two(3, grad=True),))
def gradient_of_a_pair(x):
    return (x * x).sum()


@case(lambda: (two(3, grad=True), t(3, grad=True)))
def gradient_of_a_pair_and_a_tensor(x, y):
    return (x * y.exp()).sin()


@case(lambda: (two(2, 3),), lambda: (two(3, 2),))
def views_of_a_pair(x):
    return x.view(-1) + 1, x.t().clone(), x.unsqueeze(0)


@case(lambda: (two(4),))
def items_of_a_pair(x):
    return x[1:] * 2, x[0]


@case(lambda: (two(3),))
def sizes_of_a_pair(x):
    return x * x.shape[0] + x.size(0) + x.dim() + x.numel() + len(x)


@case(lambda: (two(3),))
def types_of_a_pair(x):
    y = x + 1
    return isinstance(x, TwoTensor), isinstance(y, TwoTensor), type(y) is TwoTensor, isinstance(y, torch.Tensor), type(x).__name__


@case(lambda: (two(3),), lambda: (t(3),))
def branch_on_the_class(x):
    if isinstance(x, TwoTensor):
        return x.a + x.b
    return x + 10


@case(lambda: (two(3),))
def inner_tensors_of_an_argument(x):
    return x.a.sin() + x.b


@case(lambda: (two(3),))
def inner_tensors_of_a_result(x):
    y = x * 2
    return y.a + 1, y.b - 1


@case(lambda: (two(3),))
def a_method_of_a_pair(x):
    return x.get_elem_a() * 2, (x + 1).get_elem_a()


@case(lambda: (scaled(3),), lambda: (scaled(3, unit="km"),), lambda: (scaled(5),))
def context_of_a_wrapper(x):
    if x.unit == "km":
        return x * 1000
    return x + 1


@case(lambda: (scaled(3),))
def a_method_of_a_wrapper(x):
    return x.value() + 1


@case(lambda: (scaled(3),))
def a_method_of_a_result(x):
    return (x * 2).value() + 1


@case(lambda: (scaled(3),))
def a_property_of_a_wrapper(x):
    return x.doubled + x


@case(lambda: (scaled(3),))
def context_of_a_result(x):
    y = x + 1
    return y.unit, y.factor * 2, y


@case(lambda: (scaled(3, grad=True),))
def gradient_of_a_wrapper(x):
    return (x * x).mean()


@case(lambda: (Plainly(t(3)),), lambda: (Plainly(t(4)),))
def a_wrapper_that_unwraps(x):
    y = x * 2
    return y + 1, type(y) is torch.Tensor


@case(lambda: (Plainly(t(3)), t(3)))
def a_wrapper_that_unwraps_beside_a_tensor(x, y):
    z = torch.relu(y)
    return (x + z).sum() + y.exp()


@case(lambda: (Compressed(t(3), 4),), lambda: (Compressed(t(3), 5),))
def a_wrapper_larger_than_what_it_holds(x):
    return x.sum(1), x.shape


@case(lambda: (Compressed(t(3), 4), t(4, 2)))
def a_product_with_a_wrapper(x, y):
    return x @ y + x.column[:, None]


@case(lambda: (t(3), t(3)))
def a_pair_made_inside(x, y):
    return TwoTensor(x, y) * 2


@case(lambda: (t(3), t(3)))
def a_pair_made_and_taken_apart(x, y):
    pair = TwoTensor(x.sin(), y.cos())
    pair = pair + 1
    return pair.a * pair.b


@case(lambda: (t(3), torch.tensor(2.0)))
def a_wrapper_made_inside(x, factor):
    return Scaled(x, factor, unit="s") + 1


@case(lambda: (two(3), two(3)))
def pairs_in_a_list(x, y):
    return torch.cat([x, y]), torch.stack((x, y))


@case(lambda: ({"a": two(3), "b": [two(2), t(2)]},))
def pairs_in_containers(data):
    first, second = data["b"]
    return {"sum": data["a"].sum(), "rest": first * second}


@case(lambda: (two(3),))
def a_pair_returned_as_it_is(x):
    y = x * 2
    return x, y, x


@case(lambda: (two(3),))
def a_pair_in_place(x):
    y = x.clone()
    y.add_(1)
    y.mul_(2)
    return y


@case(lambda: (two(3),))
def an_argument_in_place(x):
    x.add_(1)
    return x * 2


@case(lambda: (two(3),))
def operators_in_place(x):
    y = x + 0
    y += 1
    y *= x
    return y


@case(lambda: (two(3),))
def a_pair_over_a_break(x):
    y = x + 1
    print("between")
    return y * x


@case(lambda: (two(3),))
def attributes_of_a_pair(x):
    return x.dtype, x.device, x.requires_grad, x.is_leaf, x.ndim, x.layout, (x + 1).dtype


@case(lambda: (two(2, 3),))
def functions_of_nn(x):
    return F.softmax(x, dim=-1), F.relu(x), F.gelu(x), F.layer_norm(x, (3,))


@case(lambda: (two(2, 3), t(4, 3), t(4)))
def linear_of_a_pair(x, w, b):
    return F.linear(x, w, b)


class WithPair(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(TwoTensor(torch.randn(3, 3), torch.randn(3, 3)))
        self.register_buffer("shift", TwoTensor(torch.randn(3), torch.randn(3)))

    def forward(self, x):
        return x @ self.weight + self.shift


@case(lambda: (WithPair(), t(2, 3)))
def a_parameter_that_is_a_pair(module, x):
    return module(x)


@case(lambda: (nn.Linear(3, 2), two(4, 3)))
def a_layer_on_a_pair(layer, x):
    return layer(x).relu()


@case(lambda: (two(3),), reuse=Reuse.FREE)
def a_pair_in_a_closure(x):
    def inner(y):
        return x + y

    return inner(x.sin())


@case(lambda: (two(3),))
def a_pair_without_gradients(x):
    with torch.no_grad():
        y = x * 2
    return y.requires_grad, y


@case(lambda: (two(3),), lambda: (two(3, grad=True),))
def a_pair_detached(x):
    return x.detach() * 2


@case(lambda: (Counting(t(3), t(3)),), reuse=Reuse.FREE)
def a_pair_that_sees_functions(x):
    return torch.sin(x) + 1


@case(lambda: (TwoTensor(two(3), two(3)),), lambda: (TwoTensor(two(4), two(4)),))
def pairs_of_pairs(x):
    return (x * 2).sin()


@case(lambda: (TwoTensor(two(3), two(3)),))
def inner_of_a_pair_of_pairs(x):
    return x.a.a + x.b.b


@case(lambda: (two(3), 2), lambda: (two(3), 3), lambda: (two(3), 2.5))
def a_pair_and_a_number(x, n):
    return x * n - n


@case(lambda: (two(3),))
def comparisons_of_a_pair(x):
    return x > 0, torch.where(x > 0, x, -x), x == x


@case(lambda: (two(4),))
def pieces_of_a_pair(x):
    first, second = x.chunk(2)
    values, places = x.sort()
    return first + second, values, places


@case(lambda: (two(3),))
def a_pair_of_another_type(x):
    return x.to(torch.float64), x.half().float(), x.long()


@case(lambda: (two(3),))
def tensors_like_a_pair(x):
    return torch.zeros_like(x), x.new_ones(3), torch.ones_like(x) + x


@case(lambda: (two(3),))
def a_pair_with_an_attribute(x):
    y = x * 2
    y.tag = "mine"
    return y.tag, y


@case(lambda: (two(2, 3),))
def keywords_of_a_pair(x):
    return x.sum(dim=1, keepdim=True), torch.mean(x, dim=0), x.max(dim=1).values


@case(lambda: (two(3),))
def a_function_of_a_pair(x):
    return pytree.tree_map(lambda y: y + 1, {"x": x, "n": 1})


@case(lambda: ([two(3), two(3)],))
def a_loop_over_pairs(pairs):
    total = 0
    for pair in pairs:
        total = total + pair * 2
    return total


@case(lambda: (two(3), t(3)), message=Message.ANY)
def a_pair_that_does_not_fit(x, y):
    return x + torch.cat([y, y])


@case(lambda: (two(3, grad=True),))
def gradient_of_a_view_of_a_pair(x):
    return x.view(3, 1).expand(3, 2) * 2


@case(lambda: (two(3),), lambda: (two(3, grad=True),))
def requires_a_gradient(x):
    if x.requires_grad:
        return x * 2
    return x * 3
