"""Functions that say how something is compiled, scans along other dimensions, and what autograd.Function keeps."""

import functools

import torch
from capture.cases import Message, case, t
from torch import nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.wrap import wrap
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


@case(lambda: (t(3), t(3)))
def a_wrapped_function(x, y):
    return wrap(lambda a: (a.sin() + y, a), x)


@case(lambda: (t(2, 3), nn.Linear(3, 3)))
def a_wrapped_module(x, m):
    return wrap(lambda a, scale=1: m(a) * scale, x, scale=2)


@case(lambda: (t(3),))
def a_wrapped_function_with_an_effect(x):
    seen = []

    def inner(a):
        seen.append(a.shape[0])
        return a * 2

    return wrap(inner, x), seen


@torch.compiler.nested_compile_region
def region(x, y):
    return x.sin() * y


@case(lambda: (t(3, grad=True), t(3)))
def a_region(x, y):
    return region(x, y) + region(y, x)


@case(lambda: (t(3),))
def a_strict_function(x):
    return strict_mode(lambda a: a.sin(), (x,))


@case(lambda: (t(3), t(3, 5)))
def a_scan_along_another_dimension(init, xs):
    return scan(lambda c, x: (c + x, c * x), init, xs, dim=1)


@case(lambda: (t(3), t(3, 5)))
def a_scan_from_the_end(init, xs):
    return scan(lambda c, x: (c + x, c * x), init, xs, dim=1, reverse=True)


@case(lambda: (t(5, 3),))
def an_associative_scan_along_another_dimension(xs):
    return associative_scan(lambda a, b: a + b, xs, 1, combine_mode="generic")


@case(lambda: (t(5, 3),))
def an_associative_scan_from_the_end(xs):
    return associative_scan(lambda a, b: a * b, xs, 0, reverse=True, combine_mode="generic")


@case(lambda: (t(5, 3),))
def an_associative_scan_of_rows(xs):
    return associative_scan(lambda a, b: a.flip(0) + b, xs, 0, combine_mode="generic")


@case(lambda: (t(3),))
def a_loop_with_a_counter(x):
    return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 2), (0, x))


@case(lambda: (t(3, grad=True),))
def an_older_checkpoint(x):
    return checkpoint(lambda y: y.sin().cos(), x, use_reentrant=True)


def policy(context, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.sin.default else CheckpointPolicy.PREFER_RECOMPUTE


@case(lambda: (t(3, grad=True),))
def a_selective_checkpoint(x):
    choose = functools.partial(create_selective_checkpoint_contexts, policy)
    return checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False, context_fn=choose)


@case(lambda: (t(3, 4),), message=Message.ANY)
def in_dims_that_are_a_list(x):
    return torch.func.vmap(lambda a, b: a + b, in_dims=[0, None])(x, 3.0)


@case(lambda: (t(3),), message=Message.ANY)
def a_number_beside_a_gradient(x):
    return torch.func.grad(lambda a: ((a * a).sum(), 3), has_aux=True)(x)


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].exp()


@case(lambda: (t(3, grad=True),))
def a_function_that_is_differentiated_once(x):
    return Once.apply(x).sum() + x.sum()


class Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.kept = {"y": y, "factors": [1, 2], "shape": x.shape}
        return x * y

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return (gradient * ctx.kept["y"] * ctx.kept["factors"][1]).view(ctx.kept["shape"]), gradient * x


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def a_function_that_keeps_a_dictionary(x, y):
    return Keeping.apply(x, y)


@torch.jit.script
def scripted(x):
    return x * 2 + 1


@case(lambda: (t(2, 3),))
def a_scripted_function(x):
    return scripted(x) + 1


@case(lambda: (t(3, 3),))
def autocast_inside_of_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            y = x @ x
        z = x @ x
    return y, z, x @ x


@case(lambda: (t(3),))
def the_default_type_changed_for_a_while(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3), torch.tensor([1.5, 2.0]), torch.full((2,), 0.5), torch.arange(3), torch.zeros(2, dtype=torch.float32)
    torch.set_default_dtype(torch.float32)
    return y, torch.ones(2), x + 1


@case(lambda: (torch.arange(3),))
def integers_while_the_default_type_is_another(x):
    torch.set_default_dtype(torch.float64)
    y = x / 2, x * 1.5, x.float() / 2
    torch.set_default_dtype(torch.float32)
    return y


@case(lambda: (t(2, 3),))
def transposes_of_real_numbers(x):
    return x.H, x.mH, x.real, x.T
