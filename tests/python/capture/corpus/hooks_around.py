"""Hooks of tensors and of modules: registered inside and outside of the frame, removed, held, changing and reading gradients."""

import functools

import torch
from capture.cases import Reuse, case, t
from torch import nn


def doubled(gradient):
    return gradient * 2


@case(lambda: (t(3, grad=True),))
def a_hook_on_a_value(x):
    y = x * 2
    y.register_hook(doubled)
    return y.sin()


@case(lambda: (t(3, grad=True),))
def a_hook_that_is_a_lambda(x):
    y = x * 2
    y.register_hook(lambda gradient: gradient + 1)
    return y * y


@case(lambda: (t(3, grad=True),))
def a_hook_that_closes_over_a_tensor(x):
    y, w = x * 2, x.detach().cos()
    y.register_hook(lambda gradient: gradient * w)
    return y.exp()


@case(lambda: (t(3, grad=True),))
def a_hook_on_an_argument(x):
    x.register_hook(doubled)
    return x * 3


@case(lambda: (t(3, grad=True),))
def a_hook_removed_again(x):
    y = x * 2
    handle = y.register_hook(doubled)
    handle.remove()
    return y.sin()


@case(lambda: (t(3, grad=True),))
def a_handle_returned(x):
    y = x * 2
    handle = y.register_hook(doubled)
    return y.sin(), handle is not None


@case(lambda: (t(3, grad=True), []))
def a_hook_that_notes(x, log):
    y = x.sin()
    y.register_hook(lambda gradient: log.append(tuple(gradient.shape)))
    y.sum().backward()
    return y.detach() + 1, log


@case(lambda: (t(3, grad=True),))
def two_hooks_in_order(x):
    y = x * 2
    y.register_hook(doubled)
    y.register_hook(functools.partial(torch.add, other=1))
    return y.cos()


@case(lambda: (t(3, grad=True),))
def a_hook_and_backward_in_the_frame(x):
    y = x * 2
    y.register_hook(doubled)
    y.sum().backward()
    gradient = x.grad.clone()
    x.grad = None
    return gradient


@case(lambda: (t(3, grad=True),))
def a_hook_before_a_break(x):
    y = x * 2
    y.register_hook(doubled)
    print("break")
    return y.sin()


@case(lambda: (t(3, grad=True),))
def a_hook_after_accumulation(x):
    log = []
    x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
    (x * 3).sum().backward()
    x.grad = None
    return log


def hooked(hook, register="register_full_backward_hook"):
    module = nn.Linear(3, 2)
    getattr(module, register)(hook)
    return module


def scale_first(module, gradients, outputs):
    return (gradients[0] * 2,) if gradients[0] is not None else None


def scale_outputs(module, gradients):
    return (gradients[0] * 3,)


@case(lambda: (hooked(scale_first), t(4, 3, grad=True)))
def a_module_with_a_backward_hook(module, x):
    return module(x).sin()


@case(lambda: (hooked(scale_outputs, "register_full_backward_pre_hook"), t(4, 3, grad=True)))
def a_module_with_a_backward_pre_hook(module, x):
    return module(x).sin()


@case(lambda: (nn.Linear(3, 2), t(4, 3, grad=True)), reuse=Reuse.FREE)
def a_backward_hook_registered_here(module, x):
    handle = module.register_full_backward_hook(scale_first)
    y = module(x)
    handle.remove()
    return y * 2


@case(lambda: (nn.Linear(3, 2), t(4, 3)), reuse=Reuse.FREE)
def a_forward_hook_registered_here(module, x):
    handle = module.register_forward_hook(lambda module, args, result: result * 2)
    y = module(x)
    handle.remove()
    return y, module(x)


@case(lambda: (nn.Linear(3, 2), t(4, 3)), reuse=Reuse.FREE)
def a_forward_pre_hook_registered_here(module, x):
    handle = module.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    y = module(x)
    handle.remove()
    return y, len(module._forward_pre_hooks)


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), t(4, 3), []), reuse=Reuse.FREE)
def results_collected_by_hooks(module, x, seen):
    handles = [child.register_forward_hook(lambda m, a, r: seen.append(r.mean())) for child in module]
    y = module(x)
    for handle in handles:
        handle.remove()
    return y, len(seen)


def keyworded(module, args, kwargs, result):
    return result + kwargs.get("bonus", 0)


class Bonus(nn.Module):
    def forward(self, x, bonus=0):
        return x * 2


def with_keywords():
    module = Bonus()
    module.register_forward_hook(keyworded, with_kwargs=True)
    return module


@case(lambda: (with_keywords(), t(3)), reuse=Reuse.FREE)
def a_hook_that_reads_keywords(module, x):
    return module(x, bonus=3), module(x)


def with_prepended():
    module = nn.Identity()
    module.register_forward_hook(lambda m, a, r: r + 1)
    module.register_forward_hook(lambda m, a, r: r * 2, prepend=True)
    return module


@case(lambda: (with_prepended(), t(3)), reuse=Reuse.FREE)
def hooks_in_another_order(module, x):
    return module(x)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.kept = {}
        self.linear.register_forward_hook(self.keep)

    def keep(self, module, args, result):
        self.kept["linear"] = result.detach()

    def forward(self, x):
        y = self.linear(x)
        return y + self.kept["linear"]


@case(lambda: (Remembering(), t(2, 3)), reuse=Reuse.FREE)
def a_hook_that_is_a_method(module, x):
    return module(x)


@case(lambda: (hooked(scale_first), t(4, 3, grad=True)))
def a_backward_hook_and_backward(module, x):
    module(x).sum().backward()
    gradient = x.grad.clone()
    x.grad = None
    module.zero_grad()
    return gradient


@case(lambda: (t(3, grad=True),))
def a_retained_gradient(x):
    y = x * 2
    y.retain_grad()
    y.sin().sum().backward()
    kept = y.grad.clone()
    x.grad = None
    return kept


@case(lambda: (t(3, grad=True),))
def a_multi_gradient_hook(x):
    a, b = x * 2, x * 3
    seen = []
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda gradients: seen.append(len(gradients)))
    (a + b).sum().backward()
    x.grad = None
    return seen


@case(lambda: (t(3, grad=True),))
def one_of_two_hooks_removed(x):
    y = x * 2
    first = y.register_hook(doubled)
    y.register_hook(lambda gradient: gradient + 1)
    z = y.sin()
    first.remove()
    first.remove()
    return z


@case(lambda: (t(3, grad=True),))
def a_hook_removed_after_a_gradient(x):
    y = x * 2
    handle = y.register_hook(doubled)
    (first,) = torch.autograd.grad(y.sin().sum(), x, retain_graph=True)
    handle.remove()
    return first, y.cos()


@case(lambda: (t(3, grad=True),))
def a_hook_of_an_argument_removed_before_backward(x):
    handle = x.register_hook(doubled)
    loss = (x * x).sum()
    handle.remove()
    loss.backward()
    return x.grad
