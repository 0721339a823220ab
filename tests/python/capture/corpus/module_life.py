"""Modules through their lives: containers that change, hooks of all kinds, names, buffers, lazy and parametrized ones, optimizers."""

import collections
import copy

import torch
from capture.cases import Reuse, case, t
from torch import nn


class Block(nn.Module):
    def __init__(self, n=4, scale=2):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(n, n)
        self.register_buffer("seen", torch.zeros(()))
        self.scale = scale
        self.table = {"a": 1}

    def forward(self, x, *, extra=None):
        y = self.linear(x) * self.scale
        return y if extra is None else y + extra

    def helper(self, x):
        return torch.relu(x)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block(), Block(scale=3)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Identity()})
        self.params = nn.ParameterList([torch.ones(4), torch.zeros(4)])
        self.pdict = nn.ParameterDict({"w": torch.ones(4)})

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        for name, module in self.named.items():
            x = module(x) + len(name)
        for p in self.params:
            x = x + p
        return x * self.pdict["w"]


@case(lambda: (Outer(), t(2, 4)))
def containers_of_modules(m, x):
    return m(x), len(m.blocks), list(m.named), m.blocks[0].scale, m.blocks[-1](x), "w" in m.pdict


@case(lambda: (Outer(), t(2, 4)))
def slices_of_module_lists(m, x):
    for block in m.blocks[:1]:
        x = block(x)
    for n, block in enumerate(reversed(m.blocks)):
        x = block(x) + n
    return x


@case(lambda: (Outer(), t(2, 4)))
def names_of_everything(m, x):
    return (
        x + 1,
        [name for name, _ in m.named_parameters()],
        [name for name, _ in m.named_buffers()],
        [name for name, _ in m.named_children()],
        [type(module).__name__ for module in m.modules()],
        [name for name, _ in m.blocks[0].named_modules(prefix="p")],
    )


@case(lambda: (Outer(), t(2, 4)))
def sums_of_parameters(m, x):
    return x.sum() + sum(p.sum() for p in m.parameters()), sum(p.numel() for p in m.parameters() if p.requires_grad)


@case(lambda: (Block(), t(2, 4)))
def state_dict_read(m, x):
    state = m.state_dict()
    return x @ state["linear.weight"].t(), sorted(state)


@case(lambda: (Block(), t(2, 4)))
def submodule_by_name(m, x):
    return m.get_submodule("linear")(x) + m.get_parameter("linear.bias") + m.get_buffer("seen"), m._modules["linear"] is m.linear


@case(lambda: (Block(), t(2, 4)))
def buffer_counted(m, x):
    m.seen += 1
    return m(x) + m.seen


@case(lambda: (Block(), t(2, 4)))
def buffer_set(m, x):
    m.seen = m.seen + 2
    return x + m.seen


@case(lambda: (Block(), t(2, 4)))
def attribute_set(m, x):
    m.scale = m.scale + 1
    m.extra = x
    return m(x) * m.scale


@case(lambda: (Block(), t(2, 4)))
def keyword_argument(m, x):
    return m(x, extra=x) + m(x=x)


@case(lambda: (Block().eval(), t(2, 4)), lambda: (Block(), t(2, 4)))
def mode_asked(m, x):
    return x * 2 if m.training else x * 3


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU()), t(2, 4)))
def mode_set_inside(m, x):
    m.eval()
    y = m(x)
    m.train()
    return y, m.training


@case(lambda: (Block(), t(2, 4)))
def method_called_directly(m, x):
    return m.helper(m.forward(x)), Block.helper(m, x), m.__call__(x)


def pre_hooked(x_shape=4):
    m = Block()
    m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    m.register_forward_hook(lambda module, args, output: output * 2)
    return m


def keyword_hooked():
    m = Block()
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"extra": args[0] * 2}), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, output: output + kwargs["extra"], with_kwargs=True)
    return m


class Recorder:
    def __init__(self):
        self.shapes = []

    def __call__(self, module, args, output):
        self.shapes.append(tuple(output.shape))


def recording():
    m = Block()
    m.recorder = Recorder()
    m.register_forward_hook(m.recorder)
    return m


@case(lambda: (pre_hooked(), t(2, 4)), reuse=Reuse.FREE)
def hooks_of_forward(m, x):
    return m(x)


@case(lambda: (keyword_hooked(), t(2, 4)), reuse=Reuse.FREE)
def hooks_with_keywords(m, x):
    return m(x)


@case(lambda: (recording(), t(2, 4)), reuse=Reuse.FREE)
def hook_that_records(m, x):
    return m(x), len(m.recorder.shapes)


@case(lambda: (Block(), t(2, 4)), reuse=Reuse.FREE)
def hook_registered_inside(m, x):
    handle = m.register_forward_hook(lambda module, args, output: output + 1)
    y = m(x)
    handle.remove()
    return y + m(x)


def backward_hooked():
    m = Block()
    m.register_full_backward_hook(lambda module, inputs, outputs: tuple(None if g is None else g * 2 for g in inputs))
    return m


@case(lambda: (backward_hooked(), t(2, 4, grad=True)))
def hook_of_backward(m, x):
    return m(x).sum()


class Normed(nn.Module):
    def forward(self, x):
        return x / x.norm()


def parametrized():
    torch.manual_seed(0)
    m = nn.Linear(4, 4)
    nn.utils.parametrize.register_parametrization(m, "weight", Normed())
    return m


@case(lambda: (parametrized(), t(2, 4)), reuse=Reuse.FREE)
def parametrization(m, x):
    return m(x)


@case(lambda: (nn.utils.weight_norm(nn.Linear(4, 4)), t(2, 4)), reuse=Reuse.FREE)
def weight_norm_of_old(m, x):
    return m(x).shape


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cells = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.history = []

    def forward(self, x):
        self.history.clear()
        for n, cell in enumerate(self.cells):
            x = torch.tanh(cell(x))
            self.history.append(x)
        return x, len(self.history)


@case(lambda: (Loop(), t(2, 4)))
def history_kept(m, x):
    return m(x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(4, 4)
        self.b = self.a
        self.c = nn.Linear(4, 4)
        self.c.weight = self.a.weight

    def forward(self, x):
        return self.c(self.b(self.a(x)))


@case(lambda: (Shared(), t(2, 4)))
def weights_shared(m, x):
    return m(x), len(list(m.parameters())), m.a is m.b


class Dynamic(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __getattr__(self, name):
        if name == "magic":
            return 5
        return super().__getattr__(name)

    def forward(self, x):
        return getattr(self, f"run_{self.kind}")(x) * self.magic

    def run_a(self, x):
        return x + 1

    def run_b(self, x):
        return x - 1


@case(lambda: (Dynamic("a"), t(2, 4)), lambda: (Dynamic("b"), t(2, 4)))
def methods_by_name(m, x):
    return m(x)


class WithProperty(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3

    @property
    def doubled(self):
        return self.n * 2

    @classmethod
    def make(cls):
        return cls()

    @staticmethod
    def shift(x, by):
        return x + by

    def forward(self, x):
        return self.shift(x, self.doubled) + isinstance(self, nn.Module)


@case(lambda: (WithProperty(), t(2, 4)))
def properties_of_modules(m, x):
    return m(x), WithProperty.make().doubled


@case(lambda: (nn.Sequential(collections.OrderedDict(a=nn.Linear(4, 4), b=nn.ReLU())), t(2, 4)))
def named_sequential(m, x):
    return m.a(x) + m[1](x) + m[:1](x) + len(m), [name for name, _ in m.named_children()]


class Lazily(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        if self.cache is None:
            self.cache = torch.arange(x.shape[-1], dtype=x.dtype)
        return x + self.cache


@case(lambda: (Lazily(), t(2, 4)))
def cache_made_once(m, x):
    return m(x) + m(x)


@case(lambda: (Block(), t(2, 4)))
def copied_module(m, x):
    return copy.copy(m).scale * x


@case(lambda: (Block(), t(2, 4)))
def requires_grad_asked(m, x):
    return m(x), m.linear.weight.requires_grad, all(p.is_leaf for p in m.parameters()), next(m.parameters()).dtype


@case(lambda: (Block(), t(2, 4)))
def functional_forms(m, x):
    F = nn.functional
    return F.linear(x, m.linear.weight, m.linear.bias), F.dropout(x, training=False), F.softmax(x, dim=-1), F.mse_loss(x, x), F.normalize(x), F.pad(x, (1, 1)), F.one_hot(torch.tensor([1]), 3), F.gelu(x), F.layer_norm(x, (4,)), F.interpolate(x[None], scale_factor=2).shape, F.cosine_similarity(x, x), F.cross_entropy(x, torch.tensor([1, 2])), F.leaky_relu(x), F.silu(x), F.hardtanh(x), F.glu(x)


class Early(nn.Module):
    def forward(self, x, mask=None, *rest, flag=False, **more):
        if mask is None and not rest:
            return x * (2 if flag else 3) + len(more)
        return x


@case(lambda: (Early(), t(2, 4)))
def signatures_of_forward(m, x):
    return m(x), m(x, flag=True, a=1), m(x, None), m(x, x, 1)


@case(lambda: (nn.Linear(4, 4), t(2, 4)))
def gradient_step_by_hand(m, x):
    loss = m(x).pow(2).mean()
    grads = torch.autograd.grad(loss, list(m.parameters()))
    return [g * 0.1 for g in grads]


@case(lambda: (nn.ModuleList([nn.Linear(4, 4)]), t(2, 4)), reuse=Reuse.FREE)
def module_list_grows(m, x):
    m.append(nn.Identity())
    return m[1](m[0](x)), len(m)


class Counting(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.own = 0

    def forward(self, x):
        self.own += 1
        return x + self.own


@case(lambda: (Counting(), t(2, 4)), reuse=Reuse.FREE)
def counter_of_calls(m, x):
    return m(m(x)), m.own


@case(lambda: (nn.BatchNorm1d(4), t(3, 4)))
def running_statistics(m, x):
    y = m(x)
    return y, m.num_batches_tracked + 0


@case(lambda: (nn.LSTM(4, 3, batch_first=True), t(2, 5, 4)))
def recurrent(m, x):
    y, (h, c) = m(x)
    return y, h, c


@case(lambda: (nn.MultiheadAttention(4, 2, batch_first=True), t(2, 3, 4)))
def attention_layer(m, x):
    return m(x, x, x, need_weights=False)[0]


@case(lambda: (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), t(2, 3, 4)))
def encoder_layer(m, x):
    return m(x)


@case(lambda: (nn.Embedding(5, 4), torch.tensor([[1, 2]])))
def embeddings(m, ids):
    return m(ids) + m.weight[0], m.num_embeddings


@case(lambda: (nn.Conv2d(2, 3, 3, padding=1), t(1, 2, 4, 4)))
def convolutions(m, x):
    return m(x), m.kernel_size, m.weight.shape


@case(lambda: (Block(), t(2, 4)))
def no_grad_inside(m, x):
    with torch.no_grad():
        y = m(x)
    return y, y.requires_grad, m(x).requires_grad


@case(lambda: (Block(), t(2, 4)))
def hasattr_of_modules(m, x):
    return x + hasattr(m, "linear") + hasattr(m, "absent") + getattr(m, "absent", 3), "linear" in dict(m.named_children()), isinstance(m.linear, nn.Linear), type(m).__name__


@case(lambda: (Block(), t(2, 4)))
def dict_in_a_module(m, x):
    m.table["b"] = m.table["a"] + 1
    return x * m.table["b"], sorted(m.table)
