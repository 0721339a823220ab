"""Modules that change while they run, and the ways to look into them; optimizers."""

import torch
from capture.cases import Reuse, case, t
from torch import nn


def seeded(make):
    torch.manual_seed(0)
    return make()


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(3), persistent=False)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.steps += 1
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        return self.linear(x) + self.mean


class Switching(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        if self.training:
            return self.norm(x)
        return self.drop(x) + 1


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.table = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.extra = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(3))})

    def forward(self, x, which="relu"):
        for layer, scale in zip(self.layers, self.scales):
            x = self.table[which](layer(x)) * scale
        return x + self.extra["bias"]


class Dynamic(nn.Module):
    def __getattr__(self, name):
        if name == "made_up":
            return 7
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "kept":
            super().__setattr__("kept_twice", value)

    def forward(self, x):
        self.kept = 4
        return x + self.made_up + self.kept_twice


class Callable(nn.Module):
    def forward(self, x):
        return x * 2

    def __call__(self, x):
        return super().__call__(x) + 1


@case(lambda: (seeded(Counting), t(2, 3)))
def buffers_and_counts(m, x):
    return m(x), m.calls, m.steps


@case(lambda: (seeded(Switching), t(4, 3)), lambda: (seeded(Switching).eval(), t(4, 3)))
def the_training_flag(m, x):
    return m(x)


@case(lambda: (seeded(Switching), t(4, 3)))
def the_training_flag_switched(m, x):
    y = m(x)
    m.eval()
    z = m(x)
    m.train()
    return y + z, m.training, m.norm.training


@case(lambda: (seeded(Holder), t(2, 3)), lambda: (seeded(Holder), t(2, 3), "tanh"))
def containers(m, x, which="relu"):
    return m(x, which)


@case(lambda: (seeded(Holder), t(2, 3)))
def names_of_everything(m, x):
    names = [name for name, _ in m.named_parameters()]
    modules = [name for name, _ in m.named_modules()]
    children = [type(child).__name__ for child in m.children()]
    total = sum(p.numel() for p in m.parameters())
    return x + total, names, modules, children, [n for n, _ in m.named_buffers()], list(m.table.keys())


@case(lambda: (seeded(Holder), t(2, 3)))
def squares_of_parameters(m, x):
    return sum((p**2).sum() for p in m.parameters()) + x


@case(lambda: (seeded(Holder), t(2, 3)))
def the_state_read(m, x):
    state = m.state_dict()
    return x + state["scales.0"], list(state)


@case(lambda: (seeded(Holder), t(2, 3)))
def frozen_in_the_frame(m, x):
    for p in m.parameters():
        p.requires_grad_(False)
    return m(x)


@case(lambda: (seeded(Holder), t(2, 3)))
def gradients_dropped(m, x):
    m.zero_grad()
    return m(x)


@case(lambda: (Dynamic(), t(3)))
def attributes_of_its_own(m, x):
    return m(x), m.kept


@case(lambda: (Callable(), t(3)))
def a_call_of_its_own(m, x):
    return m(x)


@case(lambda: (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), t(2, 3)))
def a_sequence_of_modules(m, x):
    return m[0](x) + m[-1](x) + len(m), [type(layer).__name__ for layer in m], m[:1](x)


def hooked():
    m = seeded(lambda: nn.Linear(3, 3))
    m.register_forward_hook(lambda module, args, out: out * 2)
    m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return m


@case(lambda: (hooked(), t(2, 3)), reuse=Reuse.FREE)
def hooks_of_forward(m, x):
    return m(x)


@case(lambda: (seeded(lambda: nn.Linear(3, 3)), t(2, 3), []), reuse=Reuse.FREE)
def a_hook_registered_and_removed(m, x, log):
    handle = m.register_forward_hook(lambda module, args, out: log.append(1))
    y = m(x)
    handle.remove()
    return y + m(x), log


@case(lambda: (seeded(lambda: nn.Linear(3, 3)), t(2, 3)))
def a_parameter_replaced(m, x):
    m.weight = nn.Parameter(torch.ones(3, 3))
    return m(x)


@case(lambda: (seeded(lambda: nn.Linear(3, 3)), t(2, 3)))
def a_module_added(m, x):
    m.extra = nn.ReLU()
    return m.extra(m(x)), "extra" in dict(m.named_children())


@case(lambda: (seeded(lambda: nn.Linear(3, 3)), t(2, 3)))
def a_buffer_registered(m, x):
    m.register_buffer("seen", x.sum(0))
    return m(x) + m.seen


@case(lambda: (t(2, 3),))
def a_module_without_parameters_made(x):
    return nn.Sequential(nn.ReLU(), nn.Softmax(dim=-1))(x)


@case(lambda: (t(2, 3),))
def a_parameter_made(x):
    p = nn.Parameter(torch.ones(3))
    return (x * p).sum(), p.requires_grad, isinstance(p, nn.Parameter)


@case(lambda: (t(2, 3),))
def a_module_with_parameters_made(x):
    torch.manual_seed(0)
    return nn.Linear(3, 2)(x)


@case(lambda: (nn.LazyLinear(2), t(2, 3)), reuse=Reuse.FREE)
def a_lazy_module(m, x):
    return m(x).shape


def optimizer_of(kind, **options):
    def make():
        m = seeded(lambda: nn.Linear(3, 1))
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        return m, kind(m.parameters(), **options)

    return make


@case(optimizer_of(torch.optim.SGD, lr=0.1))
def a_step_of_sgd(m, optimizer):
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True))
def a_step_with_momentum(m, optimizer):
    optimizer.step()
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.Adam, lr=0.1))
def a_step_of_adam(m, optimizer):
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.AdamW, lr=0.1, foreach=False))
def a_step_of_adamw(m, optimizer):
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.RMSprop, lr=0.1))
def a_step_of_rmsprop(m, optimizer):
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.Adagrad, lr=0.1), reuse=Reuse.FREE)
def a_step_of_adagrad(m, optimizer):
    optimizer.step()
    return m.weight * 1


@case(optimizer_of(torch.optim.SGD, lr=0.1))
def gradients_dropped_by_the_optimizer(m, optimizer):
    optimizer.zero_grad()
    return m.weight * 2, m.weight.grad


@case(lambda: (seeded(lambda: nn.Linear(3, 1)), t(2, 3)))
def a_step_by_hand(m, x):
    with torch.no_grad():
        for p in m.parameters():
            p -= 0.1 * p
    return m(x)


@case(lambda: (seeded(lambda: nn.Linear(3, 1)), t(2, 3)))
def functional_calls(m, x):
    state = {name: p * 2 for name, p in m.named_parameters()}
    return torch.func.functional_call(m, state, (x,))


@case(lambda: (seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True)), t(2, 3, 4)))
def attention_of_the_library(m, x):
    return m(x, x, x)[0]


@case(lambda: (seeded(lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)).eval(), t(2, 3, 4)))
def a_transformer_layer(m, x):
    return m(x)


@case(lambda: (seeded(lambda: nn.LSTM(3, 4)), t(5, 2, 3)))
def a_recurrent_module(m, x):
    out, (h, c) = m(x)
    return out.sum() + h.sum() + c.sum()


@case(lambda: (seeded(lambda: nn.Embedding(10, 3)), torch.tensor([1, 2])))
def an_embedding(m, i):
    return m(i) * m.embedding_dim, m.num_embeddings


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.other = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale + self.other


@case(lambda: (Frozen(), t(3)))
def written_without_gradients_then_used(m, x):
    y = m(x)
    with torch.no_grad():
        m.scale.mul_(3)
        m.other[0] = 7
    return y + m(x)


@case(lambda: (Frozen(), t(3)))
def written_without_gradients_and_returned(m, x):
    with torch.no_grad():
        m.scale.add_(x)
        held = m.scale * 2
    return held, m.scale, m.other * 1


@case(lambda: (Frozen(), t(3)))
def a_view_written_without_gradients(m, x):
    with torch.no_grad():
        m.scale[1:].mul_(x[1:])
        m.scale.view(3, 1).add_(1)
    return m(x)


@case(lambda: (t(3, grad=True), t(3)))
def a_result_written_without_gradients(p, x):
    y = p * 2
    with torch.no_grad():
        y.mul_(3)
    return y * x


@case(lambda: (t(3, grad=True), t(3)))
def a_view_of_a_result_written_without_gradients(p, x):
    y = p * 2
    with torch.no_grad():
        y[1:].add_(x[1:])
    return y + x
