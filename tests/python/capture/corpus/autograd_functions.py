"""`torch.autograd.Function` as users write it: contexts, marks, missing gradients, setup_context, functions in modules and in each other."""

import torch
from capture.cases import Message, Reuse, case, t
from torch import nn
from torch.autograd.function import once_differentiable


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Doubled(torch.autograd.Function):
    """Writes to its argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class DirtyAndFresh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        x.add_(y)
        return x, y * 3

    @staticmethod
    def backward(ctx, gx, gy):
        return gx, gx + 3 * gy


class Sparse(torch.autograd.Function):
    """Two results, whose missing gradients stay missing."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, gx, gy):
        return None if gx is None else gx * 2, None if gy is None else gy * 3


class SparseThree(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x.sin(), x.cos(), x.exp()

    @staticmethod
    def backward(ctx, *grads):
        total = None
        for place, grad in enumerate(grads):
            if grad is not None:
                total = grad * (place + 1) if total is None else total + grad * (place + 1)
        return total


class Apart(torch.autograd.Function):
    """In the newer form: the context is set up apart."""

    @staticmethod
    def forward(x, w, power):
        return x**power * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, power = inputs
        ctx.save_for_backward(x, w)
        ctx.power = power

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w * ctx.power * x ** (ctx.power - 1), grad * x**ctx.power, None


class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.wanted = ctx.needs_input_grad
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        gx = grad * y if ctx.needs_input_grad[0] else None
        gy = grad * x if ctx.needs_input_grad[1] else None
        return gx, gy


class Holding(torch.autograd.Function):
    """Keeps a number, a text, a tuple and a tensor on its context."""

    @staticmethod
    def forward(ctx, x, scale, mode, dims):
        ctx.scale, ctx.mode, ctx.dims = scale, mode, dims
        ctx.mask = x > 0
        return x.sum(dims) * scale if mode == "sum" else x.mean(dims) * scale

    @staticmethod
    def backward(ctx, grad):
        for dim in sorted(ctx.dims):
            grad = grad.unsqueeze(dim)
        return grad.expand(ctx.mask.shape) * ctx.mask * ctx.scale, None, None, None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.exp()


class Batched(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()

    @staticmethod
    def vmap(info, in_dims, x):
        return Batched.apply(x), in_dims[0]


class Generated(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


class Powers(torch.autograd.Function):
    """Two results, of which one is saved, and an argument with a default."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y, n=2):
        return (x * y).exp(), x + n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.n = inputs
        ctx.save_for_backward(x, y, output[0])

    @staticmethod
    def backward(ctx, grad, more):
        x, y, result = ctx.saved_tensors
        return grad * result * y + more, grad * result * x * ctx.n, None


class Prepared(torch.autograd.Function):
    """One that vmap knows nothing of."""

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos()


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = Square.apply(x)
        ctx.save_for_backward(x)
        return y + 1

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return Square.apply(grad) * x


class Integers(torch.autograd.Function):
    """A result that gradients do not reach."""

    @staticmethod
    def forward(ctx, x):
        values, places = x.sort()
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    @staticmethod
    def backward(ctx, grad, _):
        (places,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(0, places, grad)


class Base(torch.autograd.Function):
    factor = 2

    @classmethod
    def scaled(cls, x):
        return x * cls.factor

    @staticmethod
    def forward(ctx, x):
        return Base.scaled(x)

    @staticmethod
    def backward(ctx, grad):
        return Base.scaled(grad)


class Derived(Base):
    @staticmethod
    def backward(ctx, grad):
        return Base.backward(ctx, grad) + 1


class Same(torch.autograd.Function):
    """Gives its argument back."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


class Viewing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.view(ctx.shape)


class Keyed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.scale = options["scale"]
        return x * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


class Listed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, count, *tensors):
        ctx.count = count
        return sum(tensors) * count

    @staticmethod
    def backward(ctx, grad):
        return (None, *[grad * ctx.count for _ in ctx.needs_input_grad[1:]])


class SavesResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class SavesNone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x, bias)
        return x * 2 if bias is None else x * 2 + bias

    @staticmethod
    def backward(ctx, grad):
        _, bias = ctx.saved_tensors
        return grad * 2, None if bias is None else grad


class Grows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        return torch.cat([x, x])

    @staticmethod
    def backward(ctx, grad):
        return grad[: ctx.rows] + grad[ctx.rows :]


@case(lambda: (t(3, grad=True),), lambda: (t(3),), lambda: (t(4, grad=True),))
def squared(x):
    return Square.apply(x) + 1


@case(lambda: (t(3, grad=True),))
def written_with_a_gradient(x):
    y = x * 3
    z = Doubled.apply(y)
    return z + y


@case(lambda: (t(3),))
def written_without_a_gradient(x):
    y = Doubled.apply(x)
    return y is x, y + 1


@case(lambda: (t(3, grad=True),))
def written_and_returned(x):
    y = x.clone()
    return Doubled.apply(y), y


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def one_written_and_one_fresh(x, y):
    z = x * 2
    a, b = DirtyAndFresh.apply(z, y)
    return a * z + b


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def both_gradients_of_two(x, y):
    a, b = Sparse.apply(x, y)
    return a + b


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def one_gradient_of_two(x, y):
    a, _ = Sparse.apply(x, y)
    return a * 2


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def the_other_gradient_of_two(x, y):
    _, b = Sparse.apply(x, y)
    return b.sin()


@case(lambda: (t(3, grad=True),))
def two_gradients_of_three(x):
    a, _, c = SparseThree.apply(x)
    return a + c


@case(lambda: (t(3, grad=True),))
def each_gradient_returned(x):
    return SparseThree.apply(x)


@case(lambda: (t(3, grad=True), t(3, grad=True), 3), lambda: (t(3, grad=True), t(3), 2))
def context_set_up_apart(x, w, power):
    return Apart.apply(x, w, power).sum()


@case(lambda: (t(3, grad=True), t(3)), lambda: (t(3), t(3, grad=True)), lambda: (t(3, grad=True), t(3, grad=True)))
def asks_what_is_needed(x, y):
    return Asking.apply(x, y) * 2


@case(lambda: (t(2, 3, grad=True),))
def values_on_the_context(x):
    return Holding.apply(x, 2.5, "sum", (0,)), Holding.apply(x, 3, "mean", (0, 1))


@case(lambda: (t(3, grad=True),))
def differentiable_once(x):
    return Once.apply(x) * x


@case(lambda: (t(3, grad=True),))
def a_function_with_a_rule_for_vmap(x):
    return Batched.apply(x) + 1


@case(lambda: (t(2, 3),))
def a_function_under_vmap(x):
    return torch.vmap(Generated.apply)(x)


@case(lambda: (t(3),))
def a_function_under_grad(x):
    return torch.func.grad(lambda y: Generated.apply(y).sum())(x)


@case(lambda: (t(3, grad=True),))
def a_function_that_applies_another(x):
    return Outer.apply(x)


@case(lambda: (t(3, grad=True),))
def a_result_without_a_gradient(x):
    values, places = Integers.apply(x)
    return values * 2, places, places.requires_grad


@case(lambda: (t(3, grad=True),))
def a_derived_function(x):
    return Derived.apply(x)


@case(lambda: (t(3, grad=True),))
def an_argument_given_back(x):
    y = Same.apply(x)
    return y * 2, y is x


@case(lambda: (t(2, 3, grad=True),))
def a_view_of_the_argument(x):
    return Viewing.apply(x) * 2


@case(lambda: (t(3, grad=True), {"scale": 3.0}), lambda: (t(3, grad=True), {"scale": 4.0}))
def a_dictionary_as_an_argument(x, options):
    return Keyed.apply(x, options)


@case(lambda: (t(3, grad=True), t(3, grad=True), t(3)))
def any_number_of_arguments(x, y, z):
    return Listed.apply(2, x, y, z) + Listed.apply(3, x)


@case(lambda: (t(3, grad=True),))
def a_result_is_saved(x):
    return SavesResult.apply(x).sum()


@case(lambda: (t(3, grad=True), t(3, grad=True)), lambda: (t(3, grad=True), None))
def nothing_is_saved(x, bias):
    return SavesNone.apply(x, bias)


@case(lambda: (t(2, 3, grad=True),), lambda: (t(4, 3, grad=True),))
def a_result_of_another_size(x):
    return Grows.apply(x).sin()


class Squaring(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.function = Square.apply

    def forward(self, x):
        return self.function(self.linear(x)) + Square.apply(x)


# A method is made anew whenever it is looked at.
@case(lambda: (Squaring(), t(2, 3)), reuse=Reuse.FREE)
def functions_in_a_module(module, x):
    return module(x)


@case(lambda: (t(3, grad=True),))
def a_function_in_a_loop(x):
    for _ in range(3):
        x = Square.apply(x) * 0.5
    return x


@case(lambda: (t(3, grad=True),), reuse=Reuse.FREE)
def a_function_made_inside(x):
    class Local(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    return Local.apply(x)


@case(lambda: (t(3, grad=True),))
def a_function_without_recording(x):
    with torch.no_grad():
        y = Square.apply(x)
    return y, y.requires_grad


@case(lambda: (t(3, grad=True),))
def a_function_over_a_break(x):
    y = Square.apply(x)
    print("between")
    return Square.apply(y)


class Printing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@case(lambda: (t(3, grad=True),))
def a_function_that_breaks(x):
    return Printing.apply(x + 1) + 1


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("no such function")

    @staticmethod
    def backward(ctx, grad):
        return grad


@case(lambda: (t(3, grad=True),))
def a_function_that_raises(x):
    try:
        return Wrong.apply(x)
    except ValueError as error:
        return str(error), x + 1


@case(lambda: (t(3, grad=True),))
def packed_and_unpacked(x):
    def pack(y):
        return y * 2

    def unpack(y):
        return y / 2

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    return y.sum()


@case(lambda: (t(3, grad=True),))
def kept_on_the_cpu(x):
    with torch.autograd.graph.save_on_cpu():
        y = x.exp() * x
    return y


@case(lambda: (t(3, grad=True),), message=Message.ANY)
def keyword_to_apply(x):
    return Square.apply(x=x)


@case(lambda: (t(3, grad=True), 2), lambda: (t(3, grad=True), 3))
def a_number_decides(x, n):
    return Square.apply(x) if n == 2 else Outer.apply(x)


class Numbers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return x * n, n + 1

    @staticmethod
    def backward(ctx, grad, _):
        return grad * ctx.n, None


@case(lambda: (t(3, grad=True),))
def a_number_beside_a_result(x):
    y, n = Numbers.apply(x, 3)
    return y * n


class Structured(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, pair):
        ctx.save_for_backward(x)
        return x * pair[0] + pair[1]

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x, None


@case(lambda: (t(3, grad=True), (2.0, 3.0)))
def a_tuple_as_an_argument(x, pair):
    return Structured.apply(x, pair)


class HoldsTensors(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.kept = [x, y]
        ctx.total = (x + y).sum()
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.kept
        return grad * y + ctx.total, grad * x


@case(lambda: (t(3, grad=True), t(3, grad=True)))
def tensors_on_the_context(x, y):
    return HoldsTensors.apply(x, y)


class Global(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * SCALE

    @staticmethod
    def backward(ctx, grad):
        return grad * SCALE


SCALE = torch.tensor(3.0)


@case(lambda: (t(3, grad=True),))
def a_global_in_a_function(x):
    return Global.apply(x)


@case(lambda: (t(2, 3),))
def a_function_under_grad_under_vmap(x):
    return torch.func.vmap(torch.func.grad(lambda y: Generated.apply(y).sum()))(x)


@case(lambda: (t(3),))
def a_function_differentiated_twice(x):
    return torch.func.grad(lambda z: torch.func.grad(lambda y: (Generated.apply(y) * y).sum())(z).sum())(x)


@case(lambda: (t(2, 3),))
def the_gradient_of_a_mapped_function(x):
    return torch.func.grad(lambda z: torch.func.vmap(Generated.apply)(z).sum())(x)


@case(lambda: (t(3),))
def the_jacobian_of_a_function(x):
    return torch.func.jacrev(Generated.apply)(x)


@case(lambda: (t(3),))
def two_results_under_grad(x):
    return torch.func.grad(lambda y: sum(part.sum() for part in Powers.apply(y, y.cos())))(x)


@case(lambda: (t(2, 3), t(3)))
def a_function_of_a_mapped_and_a_captured_tensor(x, k):
    return torch.func.vmap(torch.func.grad(lambda y: Powers.apply(y, k, n=4)[0].sum()))(x), torch.func.vmap(Powers.apply, in_dims=(0, None))(x, k)


@case(lambda: (t(3, grad=True),))
def a_function_that_requires_gradients_captured_by_another(x):
    return torch.func.grad(lambda y: (Generated.apply(y) * Generated.apply(x)).sum())(x.detach())


@case(lambda: (t(2, 3),), message=Message.ANY)
def a_function_without_a_rule_under_vmap(x):
    return torch.func.vmap(Prepared.apply)(x)


@case(lambda: (t(3),))
def a_function_without_a_rule_under_grad(x):
    return torch.func.grad(lambda y: Prepared.apply(y).sum())(x)


@case(lambda: (t(3),), message=Message.ANY)
def a_function_without_setup_under_grad(x):
    return torch.func.grad(lambda y: Square.apply(y).sum())(x)


@case(lambda: (t(3, grad=True),))
def keywords_and_defaults_of_a_prepared_function(x):
    return Prepared.apply(x=x) + 1, Powers.apply(x, y=x)[0], Powers.apply(x, x)[1]


@case(lambda: (t(3, grad=True),), message=Message.ANY)
def a_keyword_that_the_function_does_not_have(x):
    return Prepared.apply(x, z=3)
