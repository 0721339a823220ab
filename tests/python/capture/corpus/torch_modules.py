"""What is special to modules of torch."""

import torch
from capture.cases import Reuse, case, t
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Tanh()})
        self.params = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))])
        self.table = nn.ParameterDict({"x": nn.Parameter(torch.ones(4))})
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        return self.first(x)


def net():
    return Net()


@case(lambda: (net(), t(2, 4)))
def module_lists(m, x):
    for layer in m.layers:
        x = layer(x)
    for i, layer in enumerate(m.layers):
        x = layer(x) * i
    return m.layers[0](x), m.layers[-1](x), len(m.layers), m.layers[:1][0](x)


@case(lambda: (net(), t(2, 4)))
def module_dicts(m, x):
    for name, layer in m.named.items():
        x = layer(x)
    for key in m.named:
        x = m.named[key](x)
    return x, list(m.named.keys()), "a" in m.named, len(m.named), [type(v) for v in m.named.values()]


@case(lambda: (net(), t(2, 4)))
def parameter_lists(m, x):
    for p in m.params:
        x = x * p
    return x + m.params[1], len(m.params), x * m.table["x"], list(m.table.keys())


@case(lambda: (net(), t(2, 4)))
def parameters_of_a_module(m, x):
    total = x.sum()
    for p in m.parameters():
        total = total + p.sum()
    return total


@case(lambda: (net(), t(2, 4)))
def names_of_a_module(m, x):
    return [n for n, _ in m.named_parameters()], [n for n, _ in m.named_modules()], [n for n, _ in m.named_children()], [n for n, _ in m.named_buffers()], x + 1


@case(lambda: (net(), t(2, 4)))
def children_and_modules(m, x):
    kinds = [type(c).__name__ for c in m.children()]
    count = sum(1 for _ in m.modules())
    return kinds, count, x * 2, m.get_submodule("named.a")(x), m.get_parameter("first.weight").sum()


@case(lambda: (net(), t(2, 4)))
def state_dict_inside(m, x):
    return list(m.state_dict().keys()), x + 1


@case(lambda: (net(), t(2, 4)))
def buffer_is_updated(m, x):
    m.count += 1
    m.count.add_(2)
    return x * m.count


@case(lambda: (net(), t(2, 4)))
def buffer_is_replaced(m, x):
    m.count = m.count + 1
    return x * m.count


@case(lambda: (net(), t(2, 4)))
def training_flag(m, x):
    if m.training:
        return x * 2
    return x


@case(lambda: (net(), t(2, 4)))
def mode_is_switched_inside(m, x):
    m.eval()
    y = m(x)
    m.train()
    return y


def hooked(kind):
    m = nn.Linear(4, 4)
    if kind == "forward":
        m.register_forward_hook(lambda module, args, out: out * 2)
    elif kind == "pre":
        m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    elif kind == "kwargs":
        m.register_forward_hook(lambda module, args, kwargs, out: out + 1, with_kwargs=True)
    elif kind == "backward":
        m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 2 if gi[0] is not None else None,))
    elif kind == "backward_pre":
        m.register_full_backward_pre_hook(lambda module, go: (go[0] * 2,))
    elif kind == "always":
        m.register_forward_hook(lambda module, args, out: out * 3, always_call=True)
    return m


@case(lambda: (hooked("forward"), t(2, 4)), reuse=Reuse.FREE)
def forward_hook(m, x):
    return m(x)


@case(lambda: (hooked("pre"), t(2, 4)), reuse=Reuse.FREE)
def forward_pre_hook(m, x):
    return m(x)


@case(lambda: (hooked("kwargs"), t(2, 4)), reuse=Reuse.FREE)
def forward_hook_with_keywords(m, x):
    return m(x)


@case(lambda: (hooked("always"), t(2, 4)), reuse=Reuse.FREE)
def forward_hook_that_is_always_called(m, x):
    return m(x)


@case(lambda: (hooked("backward"), t(2, 4, grad=True)), reuse=Reuse.FREE)
def backward_hook(m, x):
    return m(x)


@case(lambda: (hooked("backward_pre"), t(2, 4, grad=True)), reuse=Reuse.FREE)
def backward_pre_hook(m, x):
    return m(x)


def lazy():
    return nn.Sequential(nn.LazyLinear(3), nn.ReLU())


@case(lambda: (lazy(), t(2, 4)), reuse=Reuse.FREE)
def lazy_module(m, x):
    return m(x)


def normed():
    torch.manual_seed(0)
    return nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))


@case(lambda: (normed(), t(2, 4)), reuse=Reuse.FREE)
def parametrized(m, x):
    return m(x)


class Doubled(nn.Module):
    def forward(self, w):
        return w * 2


def own_parametrization():
    m = nn.Linear(4, 4)
    nn.utils.parametrize.register_parametrization(m, "weight", Doubled())
    return m


@case(lambda: (own_parametrization(), t(2, 4)), reuse=Reuse.FREE)
def own_parametrized(m, x):
    return m(x) + m.weight.sum()


class Falls(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __getattr__(self, name):
        if name == "extra":
            return 3
        return super().__getattr__(name)

    def forward(self, x):
        return self.inner(x) * self.extra


@case(lambda: (Falls(), t(2, 4)))
def module_with_getattr(m, x):
    return m(x)


class Calls(nn.Module):
    def __call__(self, x):
        return super().__call__(x) + 1

    def forward(self, x):
        return x * 2


@case(lambda: (Calls(), t(2, 4)))
def module_with_its_own_call(m, x):
    return m(x)


@case(lambda: (nn.LSTM(4, 4), t(2, 4)))
def recurrent(m, x):
    return m(x[None])[0]


@case(lambda: (nn.GRUCell(4, 4), t(2, 4)))
def recurrent_cell(m, x):
    return m(x)


@case(lambda: (nn.MultiheadAttention(4, 2), t(2, 4)))
def multihead_attention(m, x):
    return m(x, x, x)


@case(lambda: (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), t(3, 2, 4)))
def transformer_layer(m, x):
    return m(x)


@case(lambda: (nn.BatchNorm1d(4), t(3, 4)))
def batch_norm(m, x):
    return m(x), m.running_mean


@case(lambda: (nn.Embedding(5, 3), torch.tensor([1, 2])))
def embedding(m, i):
    return m(i)


@case(lambda: (nn.EmbeddingBag(5, 3), torch.tensor([1, 2, 3]), torch.tensor([0, 2])))
def embedding_bag(m, i, o):
    return m(i, o)


@case(lambda: (net(), t(2, 4)))
def module_made_inside(m, x):
    layer = nn.ReLU()
    return layer(m(x)), nn.Dropout(0.0)(x), nn.Identity()(x), nn.Flatten()(x)


@case(lambda: (net(), t(2, 4)))
def linear_made_inside(m, x):
    return nn.Linear(4, 2)(x).shape


@case(lambda: (net(), t(2, 4)))
def parameter_made_inside(m, x):
    return nn.Parameter(torch.ones(4)) * x


@case(lambda: (net(), t(2, 4)))
def zero_grad_inside(m, x):
    m.zero_grad()
    return m(x)


@case(lambda: (net(), t(2, 4)))
def requires_grad_of_parameters(m, x):
    for p in m.parameters():
        p.requires_grad_(False)
    return m(x)


@case(lambda: (net(), t(2, 4)))
def conversion_inside(m, x):
    return m.to(torch.float32)(x), m.first.weight.dtype


class Optimized(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return (self.w * x).sum()


def optimizer(kind, **options):
    m = Optimized()
    m.w.grad = torch.full((3,), 0.5)
    return m, kind(m.parameters(), **options)


@case(lambda: optimizer(torch.optim.SGD, lr=0.1))
def sgd_step(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.SGD, lr=0.1, momentum=0.9))
def sgd_step_with_momentum(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.Adam, lr=0.1))
def adam_step(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.AdamW, lr=0.1))
def adamw_step(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.RMSprop, lr=0.1))
def rmsprop_step(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.Adagrad, lr=0.1), reuse=Reuse.FREE)
def adagrad_step(m, o):
    o.step()
    return m.w + 0


@case(lambda: optimizer(torch.optim.SGD, lr=0.1))
def zero_grad_of_an_optimizer(m, o):
    o.zero_grad()
    return m.w + 0


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), t(2, 4)))
def sequential(m, x):
    y = m[:2](x)
    return m(x), m[0](x), m[-1](y), len(m), [type(l).__name__ for l in m]


@case(lambda: (net(), t(2, 4)))
def apply_and_repr(m, x):
    return m.first.extra_repr(), m._get_name(), m.first.in_features, x
