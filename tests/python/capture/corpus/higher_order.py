"""Control flow and checkpoints as operators, autograd.Function: functions that take functions."""

import torch
from capture.cases import case, t
from torch._higher_order_ops import associative_scan, map as control_map, scan, while_loop
from torch.utils.checkpoint import checkpoint


@case(lambda: (t(3) + 5,), lambda: (t(3) - 5,))
def cond_on_data(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))


@case(lambda: (t(3) + 5, t(3)))
def cond_with_free_tensors(x, y):
    return torch.cond(x.sum() > 0, lambda a: a * y, lambda a: a + y + 1, [x])


@case(lambda: (t(3),))
def cond_without_operands(x):
    return torch.cond(x.sum() > 0, lambda: x.sin(), lambda: x.cos())


@case(lambda: (t(3), True), lambda: (t(3), False))
def cond_on_a_bool(x, flag):
    return torch.cond(flag, lambda y: y.sin(), lambda y: y.cos(), (x,))


@case(lambda: (t(3), ), lambda: (t(5),))
def cond_on_a_size(x):
    return torch.cond(x.shape[0] > 4, lambda y: y.sin(), lambda y: y.cos(), (x,))


@case(lambda: (t(3),))
def nested_cond(x):
    def positive(y):
        return torch.cond(y.max() > 1, lambda z: z * 2, lambda z: z * 3, (y,))

    return torch.cond(x.sum() > 0, positive, lambda y: y - 1, (x,))


@case(lambda: (t(3),))
def cond_that_returns_a_tuple(x):
    return torch.cond(x.sum() > 0, lambda y: (y.sin(), y + 1), lambda y: (y.cos(), y - 1), (x,))


@case(lambda: (t(3, grad=True),))
def cond_with_gradients(x):
    return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,)).sum()


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left = torch.nn.Linear(4, 4)
        self.right = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.left, self.right, (x,))


@case(lambda: (Branches(), t(2, 4)))
def cond_of_modules(module, x):
    return module(x)


@case(lambda: (torch.tensor(0), t(3)))
def loop_while(n, x):
    return while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * 2), (n, x))


@case(lambda: (torch.tensor(0), t(3), t(3)))
def loop_while_with_a_free_tensor(n, x, y):
    return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), (n, x))


@case(lambda: (t(3, 4), t(4)))
def mapped(x, y):
    return control_map(lambda row, other: row * other, x, y)


@case(lambda: (t(4), t(3, 4)))
def scanned(init, xs):
    return scan(lambda carry, x: (carry + x, carry * x), init, xs)


@case(lambda: (t(3, 4),))
def scanned_in_a_tree(xs):
    return associative_scan(lambda a, b: a + b, xs, 0, combine_mode="generic")


@case(lambda: (t(3, grad=True),))
def checkpointed(x):
    return checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False)


@case(lambda: (t(3, grad=True), t(3)))
def checkpointed_with_two_inputs(x, y):
    def inner(a, b):
        return torch.sigmoid(a) * b

    return checkpoint(inner, x, y, use_reentrant=False) + 1


@case(lambda: (torch.nn.Linear(4, 4), t(2, 4)))
def checkpointed_module(module, x):
    return checkpoint(module, x.relu(), use_reentrant=False)


@case(lambda: (t(3, grad=True),))
def checkpointed_with_keywords(x):
    return checkpoint(lambda y, *, scale: y * scale, x, use_reentrant=False, scale=2.0)


@case(lambda: (t(8, grad=True),))
def checkpointed_dropout(x):
    return checkpoint(lambda y: torch.nn.functional.dropout(y.sin(), 0.5), x, use_reentrant=False)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


@case(lambda: (t(3, grad=True),))
def function_with_saved_tensors(x):
    return Exp.apply(x) * 2


@case(lambda: (t(3),))
def function_without_gradients(x):
    return Exp.apply(x.sin())


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, name=None):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * 10, None, None


@case(lambda: (t(3, grad=True), 2.0), lambda: (t(3, grad=True), 3.0))
def function_with_attributes_of_the_context(x, factor):
    return Scale.apply(x, factor)


@case(lambda: (t(3, grad=True),))
def function_with_a_text(x):
    return Scale.apply(x, 3, "text").sum()


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        return first * y + second, first * x + second


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def function_with_two_results(x, y):
    a, b = Two.apply(x, y)
    return a - b


class Later(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x.sin() * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, factor = inputs
        ctx.save_for_backward(x)
        ctx.factor = factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.factor, None


@case(lambda: (t(3, grad=True),))
def function_with_setup_context(x):
    return Later.apply(x, 2.0)


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x > 0
        ctx.mark_non_differentiable(y)
        ctx.set_materialize_grads(False)
        return x * 2, y

    @staticmethod
    def backward(ctx, grad, _):
        return grad * 2


@case(lambda: (t(3, grad=True),))
def function_with_marks(x):
    return Marked.apply(x)


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        left = grad * y if ctx.needs_input_grad[0] else None
        right = grad * x if ctx.needs_input_grad[1] else None
        return left, right


@case(lambda: (t(3, grad=True), t(3)))
def function_that_asks_what_is_needed(x, y):
    return Needs.apply(x, y)


class Inside(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return Exp.apply(x * self.weight) + Scale.apply(x, 2.0)


@case(lambda: (Inside(), t(3)))
def functions_in_a_module(module, x):
    return module(x)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad):
        return torch.nn.functional.hardtanh(grad)


@case(lambda: (t(3, grad=True),))
def straight_through_estimator(x):
    return Straight.apply(x)


@case(lambda: (t(3, grad=True),))
def function_held_in_a_local(x):
    apply = Exp.apply
    return apply(x)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Exp.apply(x) + 1

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


@case(lambda: (t(3, grad=True),))
def function_inside_of_a_function(x):
    return Twice.apply(x)


class Base(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class Derived(Base):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def helper(x):
        return x


@case(lambda: (t(3, grad=True),))
def derived_function(x):
    return Derived.apply(x) + Derived.helper(x)


@case(lambda: (t(2, 2, 4, 8), t(2, 2, 4, 8), t(2, 2, 4, 8)))
def flex_attention_with_a_score(q, k, v):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v, score_mod=lambda score, b, h, m, n: score * 2)
