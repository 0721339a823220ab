"""Modules of torch: state, hooks, containers, calls and names, as suites of other compilers probe them."""

import collections
import contextlib
import copy
import functools
import types

import torch
import torch.nn as nn
import torch.nn.functional as F
from capture.cases import Reuse, case, t


class Basic(nn.Module):
    def __init__(self, k=2):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.k = k

    def forward(self, x):
        return F.relu(self.linear(x)) * self.k


@case(lambda: (Basic(), t(2, 3)), lambda: (Basic(3), t(2, 3)), lambda: (Basic(4), t(5, 3)))
def a_module_given(m, x):
    return m(x)


class Overridden(Basic):
    def __call__(self, x, *args):
        return super().__call__(x + 1, *args) * 2


@case(lambda: (Overridden(), t(2, 3)))
def a_call_overridden(m, x):
    return m(x)


class Forwarding(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Basic()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        return self.linear(x) * self.k + self.inner.k


@case(lambda: (Forwarding(), t(2, 3)))
def attributes_forwarded(m, x):
    return m(x)


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
        self.dict = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Linear(3, 3)})
        self.params = nn.ParameterList([nn.Parameter(torch.ones(3)), torch.zeros(3)])
        self.named = nn.ParameterDict({"w": nn.Parameter(torch.ones(3)), "v": nn.Parameter(torch.full((3,), 2.0))})
        self.seq = nn.Sequential(collections.OrderedDict(one=nn.Linear(3, 3), two=nn.GELU()))

    def forward(self, x):
        for layer in self.list:
            x = layer(x)
        for name, layer in self.dict.items():
            x = layer(x) + len(name)
        for n, p in enumerate(self.params):
            x = x + p * n
        for name in self.named:
            x = x * self.named[name]
        x = self.seq[1](self.seq.one(x)) + len(self.seq) + len(self.params)
        for layer in self.seq[:1]:
            x = layer(x)
        for layer in reversed(self.list):
            x = layer(x)
        return x, "a" in self.dict, list(self.dict.keys()), [type(m).__name__ for m in self.list]


@case(lambda: (Containers(), t(2, 3)))
def containers_of_modules(m, x):
    return m(x)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("absent", None)
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.calls = 0
        self.log = []
        self.last = None

    def forward(self, x):
        self.calls += 1
        self.total += x.sum(0)
        self.log.append(self.calls)
        self.last = x * 2
        if self.absent is None:
            x = x + self.hidden
        self.hidden = self.hidden + 1
        return x * self.calls


@case(lambda: (Stateful(), t(2, 3)))
def a_module_with_state(m, x):
    y = m(x)
    z = m(y)
    return z, m.calls, m.log, m.last


class Walking(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Basic()
        self.b = nn.Sequential(nn.Linear(3, 3), Basic())
        self.register_buffer("n", torch.tensor(2.0))

    def forward(self, x):
        for name, p in self.named_parameters():
            x = x + p.sum() * len(name)
        for name, b in self.named_buffers():
            x = x * b
        for name, m in self.named_modules():
            x = x + len(name)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                x = m(x)
        for name, m in self.named_children():
            x = x + len(name)
        return x + len(self._modules) + len(list(self.children())) + sum(1 for _ in self.parameters()) + len(self.state_dict())


@case(lambda: (Walking(), t(2, 3)))
def modules_walked(m, x):
    return m(x)


@case(lambda: (Walking(), t(2, 3)))
def parts_by_name(m, x):
    return m.get_submodule("b.0")(x) + m.get_parameter("a.linear.weight").sum() + m.get_buffer("n") + getattr(m.b, "1").linear.in_features


@case(lambda: (Basic(), t(2, 3)), lambda: (Basic().eval(), t(2, 3)))
def modes_of_modules(m, x):
    y = m(x) if m.training else x
    m.eval()
    z = F.dropout(y, 0.5, m.training)
    m.train()
    return z, m.training, m.linear.training


@case(lambda: (Basic(), t(2, 3)), reuse=Reuse.FREE)
def hooks_of_a_module(m, x):
    log = []
    handles = [
        m.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
        m.linear.register_forward_hook(lambda module, args, out: out * 2),
        m.register_forward_hook(lambda module, args, out: log.append(type(module).__name__)),
    ]
    y = m(x)
    for h in handles:
        h.remove()
    return y + m(x), log


class WithHooks(Basic):
    def __init__(self):
        super().__init__()
        self.seen = []
        self.register_forward_pre_hook(self.before, with_kwargs=True)
        self.linear.register_forward_hook(self.after)
        self.register_forward_hook(lambda m, a, k, out: out + k.get("shift", 0), with_kwargs=True)

    def before(self, module, args, kwargs):
        self.seen.append(len(args))
        return (args[0] * 2, *args[1:]), {"shift": 1}

    def after(self, module, args, out):
        return out.relu()

    def forward(self, x, shift=0):
        return super().forward(x) + shift


@case(lambda: (WithHooks(), t(2, 3)), reuse=Reuse.FREE)
def hooks_that_were_registered(m, x):
    return m(x), m.seen


@case(lambda: (Basic(), t(2, 3, grad=True)))
def hooks_of_backward(m, x):
    h = m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 2,))
    y = m(x)
    h.remove()
    return y


@case(lambda: (Basic(), t(2, 3)))
def a_forward_replaced(m, x):
    old = m.forward
    m.forward = types.MethodType(lambda self, y: old(y) + self.k, m)
    return m(x)


@case(lambda: (Basic(), t(2, 3)))
def a_method_of_a_module_by_name(m, x):
    return getattr(m, "forward")(x) + m.__class__.forward(m, x) + nn.Module.__call__(m, x) + type(m)._call_impl(m, x)


@case(lambda: (t(2, 3),))
def modules_made_in_the_frame(x):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    return m(x)


@case(lambda: (t(2, 3),))
def modules_without_weights_made_in_the_frame(x):
    return nn.Softmax(dim=-1)(nn.Tanh()(x)) + nn.Dropout(0.0)(x) + nn.Flatten(0)(x).sum() + nn.Identity()(x)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LazyLinear(4)
        self.b = nn.LazyBatchNorm1d()

    def forward(self, x):
        return self.b(self.a(x)).shape


@case(lambda: (Lazy(), t(2, 3)), reuse=Reuse.FREE)
def lazy_modules(m, x):
    return m(x), m(x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = self.a
        self.tied = self.a.weight

    def forward(self, x):
        return self.b(self.a(x)) @ self.tied


@case(lambda: (Shared(), t(2, 3)))
def shared_modules(m, x):
    return m(x), m.a is m.b, len(list(m.parameters()))


class Choosing(nn.Module):
    layers = 2

    def __init__(self):
        super().__init__()
        for n in range(self.layers):
            setattr(self, f"layer{n}", nn.Linear(3, 3))
        self.activation = F.gelu
        self.scale = lambda x: x * 2
        self.norm = functools.partial(F.layer_norm, normalized_shape=(3,))

    @property
    def first(self):
        return self.layer0

    @staticmethod
    def shift(x):
        return x + 1

    @classmethod
    def count(cls):
        return cls.layers

    def forward(self, x, *, deep: bool = True):
        for n in range(self.layers):
            x = getattr(self, f"layer{n}")(x)
        return self.norm(self.scale(self.activation(self.shift(x)))) + self.count() + self.first(x)


@case(lambda: (Choosing(), t(2, 3)))
def members_of_many_kinds(m, x):
    return m(x, deep=False)


@case(lambda: (Basic(), t(2, 3)))
def parameters_frozen_in_a_loop(m, x):
    for p in m.parameters():
        p.requires_grad = False
    m.linear.bias.requires_grad_(True)
    return m(x), [p.requires_grad for p in m.parameters()]


@case(lambda: (Basic(), t(2, 3)))
def parameters_all_at_once(m, x):
    m.requires_grad_(False)
    return m(x), any(p.requires_grad for p in m.parameters())


@case(lambda: (Basic(), t(2, 3)))
def parameters_written(m, x):
    with torch.no_grad():
        m.linear.weight.mul_(2)
        m.linear.bias.copy_(torch.ones(3))
        for p in m.parameters():
            p.add_(1)
    return m(x)


@case(lambda: (Basic(), t(2, 3)))
def parameters_replaced(m, x):
    m.linear.weight = nn.Parameter(torch.ones(3, 3))
    m.extra = nn.Parameter(torch.zeros(3))
    y = m(x) + m.extra
    del m.extra
    return y, hasattr(m, "extra"), len(list(m.parameters()))


@case(lambda: (Basic(), t(2, 3)))
def a_step_by_hand(m, x):
    loss = m(x).sum()
    loss.backward()
    with torch.no_grad():
        for p in m.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.detach()


@case(lambda: (nn.LSTM(3, 4, batch_first=True), nn.GRUCell(3, 4), t(2, 5, 3)))
def recurrent_modules(lstm, cell, x):
    out, (h, c) = lstm(x)
    s = torch.zeros(2, 4)
    for n in range(x.shape[1]):
        s = cell(x[:, n], s)
    return out, h + c, s


@case(lambda: (nn.MultiheadAttention(4, 2, batch_first=True), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), t(2, 3, 4)))
def attention_modules(attention, layer, x):
    return attention(x, x, x)[0] + layer(x)


@case(lambda: (nn.BatchNorm1d(3), nn.Embedding(5, 3), t(4, 3), torch.tensor([0, 2, 4, 1])))
def norms_and_embeddings(norm, embedding, x, i):
    return norm(x + embedding(i)), norm.num_batches_tracked, norm.running_mean


@case(lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), t(2, 3)), reuse=Reuse.FREE)
def parametrized_modules(m, x):
    return m(x)


@case(lambda: (Basic(), t(2, 3)))
def copies_of_modules(m, x):
    n = copy.deepcopy(m)
    return m(x) + n(x)


@case(lambda: (Basic(), t(2, 3)))
def what_a_module_is(m, x):
    return m(x), isinstance(m, (nn.Linear, Basic)), type(m) is Basic, m.__class__.__name__, hasattr(m, "linear"), hasattr(m, "nothing"), "linear" in m._modules, m.linear.out_features, m.linear.extra_repr(), callable(m), bool(m)


@case(lambda: (nn.ModuleList([Basic(), Basic()]), t(2, 3)))
def lists_of_modules_changed(layers, x):
    layers.append(nn.ReLU())
    layers.extend([nn.Tanh()])
    layers[0] = nn.Identity()
    for layer in layers[1:]:
        x = layer(x)
    return layers[-1](x), len(layers)


class Recursive(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.child = Recursive(depth - 1) if depth else None
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.child(x * self.w) if self.child is not None else x


@case(lambda: (Recursive(3), t(2, 3)))
def recursive_modules(m, x):
    return m(x)


class Manager(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    @contextlib.contextmanager
    def doubled(self):
        old = self.w
        self.w = nn.Parameter(old.detach() * 2)
        try:
            yield
        finally:
            self.w = old

    def forward(self, x):
        with self.doubled():
            y = x * self.w
        return y + self.w


@case(lambda: (Manager(), t(2, 3)))
def modules_with_managers(m, x):
    return m(x)


GLOBAL = Basic()


@case(lambda: (t(2, 3),))
def a_module_of_the_file(x):
    return GLOBAL(x) + GLOBAL.k


@case(lambda: ([Basic(), Basic(5)], {"a": Basic()}, t(2, 3)))
def modules_in_containers(layers, table, x):
    return functools.reduce(lambda y, m: m(y), layers, x) + table["a"](x)


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def initialized_again(m, x):
    nn.init.ones_(m.weight)
    nn.init.constant_(m.bias, 0.5)
    return m(x)


@case(lambda: (nn.Linear(3, 3), torch.tensor([1, 0]), t(2, 3)))
def losses(m, y, x):
    return nn.CrossEntropyLoss()(m(x), y) + F.mse_loss(m(x), x, reduction="sum") + nn.HuberLoss(delta=0.5)(m(x), x) + F.nll_loss(F.log_softmax(m(x), -1), y) + F.cross_entropy(m(x), y, label_smoothing=0.1)
