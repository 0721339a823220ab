"""Edges of autograd.Function and of functions that take functions: mixed precision, defaults, classes as results, effects, errors."""

import enum

import torch
from capture.cases import Message, Reuse, case, t
from torch import nn
from torch._higher_order_ops.wrap import wrap
from torch.utils.checkpoint import checkpoint


class Kind(enum.Enum):
    UP = 1
    DOWN = 2


class Linear(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, w, bias=None):
        ctx.save_for_backward(x, w, bias)
        result = x.mm(w.t())
        return result if bias is None else result + bias

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, w, bias = ctx.saved_tensors
        return grad.mm(w), grad.t().mm(x), grad.sum(0) if bias is not None else None


class ByKind(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        ctx.kind = kind
        return x + 1 if kind is Kind.UP else x - 1

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.kind.value, None


class Saying(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        print("backward")
        return grad * 2


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, x * 2)
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y + x * 0


class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y, None


class Unsaved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.shape = x, x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.shape) * ctx.x.sign()


class Pairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return [x * 2, y * 3][0], y * 3

    @staticmethod
    def backward(ctx, *grads):
        return grads[0] * 2, grads[1] * 3


class Converting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.dtype = x.dtype
        return x.double()

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.dtype)


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-ctx.limit, ctx.limit), None


class Reversed(torch.autograd.Function):
    """The gradient is negated."""

    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.scale = scale
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None


class Bound:
    def __init__(self, scale):
        self.scale = scale

        class Inner(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * scale

            @staticmethod
            def backward(ctx, grad):
                return grad * scale

        self.function = Inner

    def __call__(self, x):
        return self.function.apply(x) + self.scale


class Quantized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        scale = x.detach().abs().max() / levels
        ctx.save_for_backward(x, scale)
        return torch.round(x / scale) * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return torch.where(x.abs() <= scale * 10, grad, torch.zeros_like(grad)), None


class Static(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Static.calls += 1
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class WritesAttribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, holder):
        holder["seen"] = x * 10
        return x + 1

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@case(lambda: (t(2, 3, grad=True), t(4, 3, grad=True)))
def precision_of_a_function(x, w):
    return Linear.apply(x, w)


@case(lambda: (t(2, 3, grad=True), t(4, 3, grad=True), t(4, grad=True)), lambda: (t(2, 3, grad=True), t(4, 3), None))
def optional_argument(x, w, b):
    return Linear.apply(x, w, b)


@case(lambda: (t(3, grad=True), Kind.UP), lambda: (t(3, grad=True), Kind.DOWN))
def member_as_an_argument(x, kind):
    return ByKind.apply(x, kind)


@case(lambda: (t(3, grad=True),))
def prints_in_backward(x):
    return Saying.apply(x).sum()


@case(lambda: (t(3, grad=True),))
def saves_twice(x):
    return Again.apply(x)


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def no_gradient_for_one(x, y):
    return Nothing.apply(x, y) + y


@case(lambda: (t(3, grad=True),))
def tensor_on_the_context(x):
    return Unsaved.apply(x) * 2


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def gradients_by_stars(x, y):
    a, b = Pairs.apply(x, y)
    return a * b


@case(lambda: (t(3, grad=True),))
def result_of_another_type(x):
    return Converting.apply(x).sum()


@case(lambda: (t(3, grad=True), 0.1), lambda: (t(3, grad=True), 0.2))
def gradient_clipped(x, limit):
    return (Clipped.apply(x, limit) * 10).sum()


@case(lambda: (nn.Linear(3, 3), t(2, 3, grad=True)))
def gradient_reversed(layer, x):
    return Reversed.apply(layer(x), 0.5).sum() + Reversed.apply(x).sum()


@case(lambda: (t(3, grad=True), 3.0), reuse=Reuse.FREE)
def function_of_an_instance(x, scale):
    return Bound(scale)(x)


@case(lambda: (t(3, grad=True),))
def quantized(x):
    return Quantized.apply(x, 127).sum()


@case(lambda: (t(3, grad=True),), reuse=Reuse.FREE)
def counted_calls(x):
    before = Static.calls
    y = Static.apply(x)
    return y, Static.calls - before


@case(lambda: (t(3, grad=True),))
def effect_on_an_argument(x):
    holder = {}
    y = WritesAttribute.apply(x, holder)
    return y + holder["seen"].detach()


@case(lambda: (t(3, grad=True),))
def function_in_a_checkpoint(x):
    return checkpoint(lambda y: Again.apply(y).sin(), x, use_reentrant=False)


@case(lambda: (t(3, grad=True),))
def function_in_a_wrap(x):
    return wrap(lambda y: Reversed.apply(y) * 2, x)


@case(lambda: (t(3, grad=True),))
def function_in_a_branch(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,)) + Again.apply(x)


@case(lambda: (t(3, grad=True),))
def function_held_by_a_partial(x):
    import functools

    return functools.partial(Clipped.apply, limit=0.5) is not None, Clipped.apply(x, 0.5)


@case(lambda: (t(3, grad=True),))
def function_by_getattr(x):
    return getattr(Again, "apply")(x), Again.forward.__name__


@case(lambda: (t(3, grad=True),))
def functions_in_a_list(x):
    for function in (Again, Saying, Reversed):
        x = function.apply(x)
    return x


@case(lambda: (t(3, grad=True),))
def backward_inside_of_the_frame(x):
    y = Again.apply(x).sum()
    return torch.autograd.grad(y, x)[0]


@case(lambda: (t(3, grad=True),))
def requires_of_results(x):
    y = Again.apply(x)
    z = Again.apply(x.detach())
    return y.requires_grad, z.requires_grad, y.is_leaf, y


@case(lambda: (t(3, grad=True),), message=Message.ANY)
def wrong_number_of_gradients(x):
    return Clipped.apply(x)


@case(lambda: (t(3), t(3)))
def wrapped_with_an_effect_on_a_dictionary(x, y):
    seen = {}

    def body(z):
        seen["z"] = z * 2
        return z + y

    return wrap(body, x), seen["z"]


@case(lambda: (t(3),))
def wrapped_that_raises(x):
    def body(z):
        raise ValueError("inside")

    try:
        return wrap(body, x)
    except ValueError as error:
        return str(error), x + 1


@case(lambda: (t(3),))
def wrapped_that_breaks(x):
    def body(z):
        print("inside")
        return z * 2

    return wrap(body, x) + 1


@case(lambda: (t(3),))
def branch_whose_results_differ(x):
    return torch.cond(x.shape[0] > 2, lambda y: (y, y + 1), lambda y: (y, y - 1), (x,))[1]


@case(lambda: (t(3, grad=True), t(3)))
def checkpoint_with_a_tuple(x, y):
    a, b = checkpoint(lambda p, q: (p * q, p + q), x, y, use_reentrant=False)
    return a + b


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), t(4, 3, grad=True)))
def checkpoint_with_random_numbers(module, x):
    return checkpoint(module, x, use_reentrant=False)


@case(lambda: (t(3, grad=True),))
def checkpoint_in_a_checkpoint(x):
    def inner(y):
        return y.sin().exp()

    def outer(y):
        return checkpoint(inner, y, use_reentrant=False) * 2

    return checkpoint(outer, x, use_reentrant=False)


@case(lambda: (t(3, grad=True),))
def checkpoint_that_counts(x):
    seen = []

    def body(y):
        seen.append(1)
        return y * 2

    return checkpoint(body, x, use_reentrant=False), len(seen)
