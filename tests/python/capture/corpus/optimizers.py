"""Steps of torch's optimizers as graphs: state made and found, groups, options, closures, schedules, and optimizers of the user's."""

import torch
from capture.cases import Reuse, case, t
from torch import nn, optim


def prepared(kind, **options):
    """A model with gradients, and its optimizer."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = kind(model.parameters(), **options)
    model(torch.randn(4, 3)).sum().backward()
    return model, optimizer


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


@case(lambda: prepared(optim.SGD, lr=0.1, momentum=0.9, nesterov=True), reuse=Reuse.FREE)
def sgd_with_momentum(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.SGD, lr=0.1, foreach=True), reuse=Reuse.FREE)
def sgd_over_lists(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adam, lr=0.1), reuse=Reuse.FREE)
def adam(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adam, lr=0.1, foreach=True), reuse=Reuse.FREE)
def adam_over_lists(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adam, amsgrad=True, weight_decay=0.1, maximize=True), reuse=Reuse.FREE)
def adam_with_options(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adam, lr=torch.tensor(0.1), foreach=False), reuse=Reuse.FREE)
def adam_with_a_rate_that_is_a_tensor(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.AdamW), reuse=Reuse.FREE)
def adamw_twice(model, optimizer):
    optimizer.step()
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adadelta), reuse=Reuse.FREE)
def adadelta(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Adamax), reuse=Reuse.FREE)
def adamax(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.NAdam), reuse=Reuse.FREE)
def nadam(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.RAdam), reuse=Reuse.FREE)
def radam(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.Rprop), reuse=Reuse.FREE)
def rprop(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.RMSprop, momentum=0.1, centered=True), reuse=Reuse.FREE)
def rmsprop_centered(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.SGD, lr=0.1), reuse=Reuse.FREE)
def gradients_set_to_zero(model, optimizer):
    optimizer.zero_grad(set_to_none=False)
    return [p.grad + 0 for p in model.parameters()]


@case(lambda: prepared(optim.SGD, lr=0.1), reuse=Reuse.FREE)
def rates_changed_before_a_step(model, optimizer):
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * 0.5
    optimizer.step()
    return weights(model)


@case(lambda: prepared(optim.SGD, lr=0.1), reuse=Reuse.FREE)
def a_schedule(model, optimizer):
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.step()
    schedule.step()
    optimizer.step()
    return optimizer.param_groups[0]["lr"], weights(model)


@case(lambda: (*prepared(optim.SGD, lr=0.1), t(4, 3)), reuse=Reuse.FREE)
def a_closure(model, optimizer, x):
    def closure():
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss

    return optimizer.step(closure).detach()


@case(lambda: (*prepared(optim.Adam), t(4, 3)), reuse=Reuse.FREE)
def a_step_of_training(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


class Own(optim.Optimizer):
    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["steps"], state["sum"] = 0, torch.zeros_like(p)
                state["steps"] += 1
                state["sum"].add_(p.grad)
                p.add_(state["sum"], alpha=-group["lr"] / state["steps"])


@case(lambda: prepared(Own), reuse=Reuse.FREE)
def an_optimizer_of_the_users(model, optimizer):
    optimizer.step()
    return weights(model)


@case(lambda: ([t(3), t(2)], [t(3), t(2)]))
def lists_with_a_number_first(left, right):
    torch._foreach_copy_(right, left)
    return torch._foreach_maximum(left, 0.0), torch._foreach_neg(right), torch._foreach_clamp_min(left, 0.0)


@case(lambda: ([t(3), t(2)], [t(3), t(2)]))
def lists_with_factors(left, right):
    torch._foreach_addcmul_(left, right, right, [0.5, 2.0])
    return torch._foreach_pow(2.0, left)
