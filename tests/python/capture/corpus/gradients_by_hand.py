"""Functions with gradients of their own, hooks, saved tensors, optimizers of several kinds, results that are written where the caller says."""

import torch
import torch.nn.functional as F
from capture.cases import Message, Reuse, case, t
from torch import nn, optim


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor + x * 0, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.shapes = (x.shape, y.shape)
        return x.sin(), y.cos()

    @staticmethod
    def backward(ctx, gx, gy):
        return (None if gx is None else gx * 2), (None if gy is None else gy * 3)


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.sort()
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    @staticmethod
    def backward(ctx, gv, gp):
        (places,) = ctx.saved_tensors
        return torch.zeros_like(gv).scatter(0, places, gv)


class Separate(torch.autograd.Function):
    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, n = inputs
        ctx.save_for_backward(x)
        ctx.n = n

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.n * x ** (ctx.n - 1), None


class Asking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = grad @ w.t()
        if ctx.needs_input_grad[1]:
            gw = x.t() @ grad
        return gx, gw


@case(lambda: (t(3, grad=True), 2.0), lambda: (t(3, grad=True), 3.0))
def a_function_with_a_gradient(x, n):
    return Scale.apply(x, n) + 1


@case(lambda: (t(3, grad=True),))
def a_function_that_writes(x):
    return InPlace.apply(x * 1) + 1


@case(lambda: (t(3),))
def a_function_that_writes_its_argument(x):
    y = InPlace.apply(x)
    return y + 1, x


@case(lambda: (t(3, grad=True), t(2, grad=True)))
def a_function_with_two_results(x, y):
    a, b = Two.apply(x, y)
    return a.sum() + b.sum()


@case(lambda: (t(3, grad=True), t(2, grad=True)))
def one_of_two_results(x, y):
    a, _ = Two.apply(x, y)
    return a


@case(lambda: (t(4, grad=True),))
def a_result_without_a_gradient(x):
    values, places = Marked.apply(x)
    return values * 2, places


@case(lambda: (t(3, grad=True), 2), lambda: (t(3, grad=True), 3))
def a_function_with_its_context_set_up_apart(x, n):
    return Separate.apply(x, n)


@case(lambda: (t(2, 3), t(3, 2, grad=True)), lambda: (t(2, 3, grad=True), t(3, 2)))
def a_function_that_asks_what_is_needed(x, w):
    return Asking.apply(x, w)


@case(lambda: (t(3, grad=True),), reuse=Reuse.FREE)
def a_function_inside_of_a_module(x):
    class Wrapped(nn.Module):
        def forward(self, v):
            return Scale.apply(v, 4.0)

    return Wrapped()(x)


@case(lambda: (t(3, grad=True),))
def a_function_of_itself(x):
    return Scale.apply(Scale.apply(x, 2.0), 3.0)


@case(lambda: (t(3, grad=True),))
def a_hook_on_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y + 1


@case(lambda: (t(3, grad=True),))
def a_hook_that_is_removed(x):
    y = x * 2
    handle = y.register_hook(lambda g: g * 3)
    handle.remove()
    return y + 1


def scaled_hook(g):
    return g * 5


@case(lambda: (t(3, grad=True),))
def a_hook_by_name_on_an_argument(x):
    x.register_hook(scaled_hook)
    return x * 2


@case(lambda: (t(3, grad=True),))
def a_hook_with_a_closure(x):
    factor = x.shape[0]
    y = x.sin()
    y.register_hook(lambda g: g + factor)
    return y * 2


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def a_hook_of_a_module(m, x):
    seen = []
    handle = m.register_forward_hook(lambda module, args, out: seen.append(out.shape) or out * 2)
    y = m(x)
    handle.remove()
    return y, m(x), seen


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def a_hook_before_a_module(m, x):
    m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return m(x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def a_hook_with_keywords(m, x):
    m.register_forward_pre_hook(lambda module, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, out: out + 1, with_kwargs=True)
    return m(x)


def hooked():
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    m[0].register_forward_hook(lambda module, args, out: out * 2)
    m.register_full_backward_hook(lambda module, gi, go: None)
    return m, t(2, 3)


@case(hooked, reuse=Reuse.FREE)
def a_module_with_hooks(m, x):
    return m(x)


@case(lambda: (t(3, grad=True),))
def saved_tensors_packed(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v * 1, lambda v: v):
        y = x.sin() * x
    return y


@case(lambda: (t(3, grad=True),))
def saved_on_the_cpu(x):
    with torch.autograd.graph.save_on_cpu():
        y = x.sin() * x
    return y


@case(lambda: (t(3, grad=True),))
def saved_tensors_refused(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks"):
        y = x * x
    return y


@case(lambda: (t(3, grad=True),))
def a_gradient_inside(x):
    y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * 2


@case(lambda: (t(3, grad=True),))
def backward_inside(x):
    y = (x**2).sum()
    y.backward()
    return x.grad * 2


@case(lambda: (t(3),))
def made_to_require_a_gradient(x):
    y = x.detach().clone().requires_grad_()
    z = (y * y).sum()
    z.backward()
    return y.grad


@case(lambda: (t(3, grad=True),))
def detached_in_the_middle(x):
    y = x * 2
    return y.detach() + y, y.requires_grad, y.is_leaf, y.grad_fn is None


@case(lambda: (t(4, 4), torch.empty(4, 4), torch.empty(4, 4)))
def results_where_the_caller_says(x, q, r):
    torch.linalg.qr(x, out=(q, r))
    return q @ r


@case(lambda: (t(4), torch.empty(4), torch.empty(4, dtype=torch.long)))
def a_tuple_of_results_where_the_caller_says(x, v, i):
    torch.sort(x, out=(v, i))
    return v + 1, i


@case(lambda: (t(3, 4), torch.empty(3), torch.empty(3, dtype=torch.long)))
def a_maximum_where_the_caller_says(x, v, i):
    torch.max(x, 1, out=(v, i))
    torch.add(v, 1, out=v)
    return v, i


@case(lambda: (t(3), torch.empty(0)))
def a_result_that_grows(x, out):
    torch.sin(x, out=out)
    return out * 2


def stepped(kind, **options):
    model = nn.Linear(3, 2)
    optimizer = kind(model.parameters(), **options)
    model(torch.randn(4, 3)).sum().backward()
    return model, optimizer


def step(model, optimizer):
    optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@case(lambda: stepped(optim.Adam, lr=0.1, fused=True), reuse=Reuse.FREE)
def adam_fused(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.AdamW, lr=0.1, fused=True), reuse=Reuse.FREE)
def adamw_fused(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.SGD, lr=0.1, fused=True), reuse=Reuse.FREE)
def sgd_fused(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Adagrad, lr=0.1, fused=True), reuse=Reuse.FREE)
def adagrad_fused(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.RAdam, lr=0.1), reuse=Reuse.FREE)
def radam(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.RAdam, lr=0.1, foreach=True), reuse=Reuse.FREE)
def radam_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.NAdam, lr=0.1), reuse=Reuse.FREE)
def nadam(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.NAdam, lr=0.1, foreach=True), reuse=Reuse.FREE)
def nadam_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.ASGD, lr=0.1), reuse=Reuse.FREE)
def asgd(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.ASGD, lr=0.1, foreach=True), reuse=Reuse.FREE)
def asgd_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Adamax, lr=0.1, foreach=True), reuse=Reuse.FREE)
def adamax_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Adadelta, lr=0.1, foreach=True), reuse=Reuse.FREE)
def adadelta_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.RMSprop, lr=0.1, foreach=True, centered=True, momentum=0.5), reuse=Reuse.FREE)
def rmsprop_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Rprop, lr=0.1, foreach=True), reuse=Reuse.FREE)
def rprop_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Rprop, lr=0.1), reuse=Reuse.FREE)
def rprop(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.AdamW, lr=0.1, foreach=True, amsgrad=True), reuse=Reuse.FREE)
def adamw_over_lists(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.Adafactor, lr=0.1), reuse=Reuse.FREE)
def adafactor(model, optimizer):
    return step(model, optimizer)


@case(lambda: stepped(optim.SGD, lr=0.1, momentum=0.5, foreach=True, weight_decay=0.1), reuse=Reuse.FREE)
def zeroed_and_stepped(model, optimizer):
    optimizer.zero_grad()
    F.mse_loss(model(torch.ones(2, 3)), torch.zeros(2, 2)).backward()
    optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def scheduled():
    model, optimizer = stepped(optim.SGD, lr=0.5)
    return model, optimizer, optim.lr_scheduler.StepLR(optimizer, 1, 0.5)


@case(scheduled, reuse=Reuse.FREE)
def a_schedule(model, optimizer, scheduler):
    optimizer.step()
    scheduler.step()
    return optimizer.param_groups[0]["lr"], [p.detach().clone() for p in model.parameters()]


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def clipped(m, x):
    m(x).sum().backward()
    norm = nn.utils.clip_grad_norm_(m.parameters(), 0.1)
    return norm, [p.grad.clone() for p in m.parameters()]


@case(lambda: (nn.Linear(3, 3), t(2, 3)), reuse=Reuse.FREE)
def clipped_by_value(m, x):
    m(x).sum().backward()
    nn.utils.clip_grad_value_(m.parameters(), 0.1)
    return [p.grad.clone() for p in m.parameters()]


@case(lambda: (t(3),))
def the_function_of_a_gradient(x):
    y = x.requires_grad_() * 2 if x.dim() > 5 else x
    return y.grad_fn is None, y * 2
