"""nn.Module: containers, parameters, buffers, hooks, modes, sharing."""

import torch
import torch.nn.functional as F
from capture.cases import Reuse, case, t
from torch import nn


class Block(nn.Module):
    def __init__(self, width=4, residual=True):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.residual = residual

    def forward(self, x):
        y = F.relu(self.linear(self.norm(x)))
        return x + y if self.residual else y


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.full((4,), 0.5))

    def forward(self, x, head="a"):
        for block in self.blocks:
            x = block(x)
        return self.heads[head](x * self.scale + self.offset)


@case(lambda: (nn.Linear(4, 2), t(3, 4)), lambda: (nn.Linear(4, 2), t(5, 4)))
def linear(module, x):
    return module(x)


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), t(3, 4)), lambda: (nn.Sequential(nn.Linear(4, 2)), t(3, 4)))
def sequential(module, x):
    return module(x)


@case(lambda: (Net(), t(3, 4), "a"), lambda: (Net(), t(3, 4), "b"), lambda: (Net(3), t(3, 4), "a"))
def nested_modules(module, x, head):
    return module(x, head=head)


@case(lambda: (Block(), t(3, 4)), lambda: (Block(residual=False), t(3, 4)))
def branch_on_an_attribute(module, x):
    return module(x)


@case(lambda: (Net(), t(3, 4)))
def modules_iterated(module, x):
    names = [name for name, _ in module.named_children()]
    for block in module.blocks:
        x = block(x)
    return x, names, len(module.blocks), list(module.heads), "a" in module.heads


@case(lambda: (Net(), t(3, 4)))
def parameters_iterated(module, x):
    total = sum(p.numel() for p in module.parameters())
    squares = sum((p**2).sum() for p in module.parameters())
    return x * squares, total, [name for name, _ in module.named_parameters()]


@case(lambda: (Net(), t(3, 4)))
def buffers_and_modules(module, x):
    return x + sum(b.sum() for b in module.buffers()), [type(m).__name__ for m in module.modules()], [n for n, _ in module.named_buffers()]


@case(lambda: (nn.Dropout(0.5), t(8, 8)), lambda: (nn.Dropout(0.5).eval(), t(8, 8)))
def dropout_in_both_modes(module, x):
    return module(x)


@case(lambda: (nn.BatchNorm1d(4), t(8, 4)), lambda: (nn.BatchNorm1d(4).eval(), t(8, 4)))
def batch_norm_keeps_statistics(module, x):
    return module(x)


@case(lambda: (Block(), t(3, 4)))
def mode_switched_inside(module, x):
    module.eval()
    y = module(x)
    module.train()
    return y, module.training


@case(lambda: (Block(), t(3, 4)), lambda: (Block().eval(), t(3, 4)))
def training_flag_read(module, x):
    return module(x) * 2 if module.training else module(x)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = []
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.calls += 1
        self.seen.append(x.shape[0])
        self.total += x
        self.last = x * 2
        return x + self.calls


@case(lambda: (Counting(), t(3)))
def module_that_counts(module, x):
    return module(x) + module(x)


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * x
        return x - self.mean


@case(lambda: (Running(), t(3)))
def buffer_replaced(module, x):
    module(x)
    return module(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


@case(lambda: (Tied(), t(3, 4)))
def parameter_sharing(module, x):
    return module(x), module.a.weight is module.b.weight, len(list(module.parameters()))


def same_module_twice():
    block = Block()
    return nn.Sequential(block, block), t(3, 4)


@case(same_module_twice)
def module_sharing(module, x):
    return module(x)


def hooked():
    module = nn.Linear(4, 4)
    module.register_forward_hook(lambda m, args, out: out * 2)
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    return module, t(3, 4)


@case(hooked, reuse=Reuse.FREE)
def forward_hooks(module, x):
    return module(x)


def with_backward_hook():
    module = nn.Linear(4, 4)
    module.register_full_backward_hook(lambda m, grads, outs: (grads[0] * 2,))
    return module, t(3, 4, grad=True)


@case(with_backward_hook, reuse=Reuse.FREE)
def backward_hooks(module, x):
    return module(x)


class Mixed(nn.Module):
    """A forward that calls helpers and properties of its own."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 8)
        self.config = {"heads": 2}

    @property
    def heads(self):
        return self.config["heads"]

    def split(self, x):
        return x.view(x.shape[0], self.heads, -1).transpose(0, 1)

    def forward(self, x, mask=None, **kwargs):
        y = self.split(self.proj(x))
        if mask is not None:
            y = y.masked_fill(mask, 0.0)
        return y, kwargs


@case(lambda: (Mixed(), t(3, 4), None), lambda: (Mixed(), t(3, 4), torch.tensor([[True], [False], [True]])))
def helpers_and_optional_arguments(module, x, mask):
    return module(x, mask, extra=1)


class Child(Block):
    def __init__(self):
        super().__init__()
        self.extra = nn.Linear(4, 4)

    def forward(self, x):
        return super().forward(self.extra(x))


@case(lambda: (Child(), t(3, 4)))
def super_forward(module, x):
    return module(x)


@case(lambda: (t(3, 4),))
def module_made_inside(x):
    torch.manual_seed(0)
    module = nn.Linear(4, 2)
    return module(x)


@case(lambda: (nn.Embedding(10, 4), torch.tensor([1, 2, 3])), lambda: (nn.Embedding(10, 4), torch.tensor([[1], [2]])))
def embedding(module, index):
    return module(index)


@case(lambda: (nn.Conv2d(3, 4, 3, padding=1), t(2, 3, 6, 6)))
def convolution(module, x):
    return module(x).relu_()


@case(lambda: (nn.MultiheadAttention(8, 2, batch_first=True), t(2, 3, 8)))
def attention(module, x):
    return module(x, x, x, need_weights=False)[0]


@case(lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), t(2, 3, 8)))
def encoder_layer(module, x):
    return module(x)


@case(lambda: (nn.LSTM(4, 5, batch_first=True), t(2, 3, 4)))
def lstm(module, x):
    output, (hidden, cell) = module(x)
    return output, hidden, cell


@case(lambda: (nn.GRUCell(4, 5), t(2, 4)))
def recurrent_cell_in_a_loop(cell, x):
    hidden = torch.zeros(2, 5)
    for _ in range(3):
        hidden = cell(x, hidden)
    return hidden


@case(lambda: (Net(), t(3, 4)))
def submodule_by_path(module, x):
    return module.get_submodule("blocks.0.linear")(x), module.blocks[0:1][0](x), module.blocks[-1].norm(x)


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.ReLU()), t(3, 4)))
def sequential_by_index(module, x):
    return module[1](module[0](x)), len(module)


@case(lambda: (nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))]), t(3)))
def parameter_list(parameters, x):
    for p in parameters:
        x = x * 2 + p
    return x


@case(lambda: (Net(), t(3, 4)))
def state_dict_inside(module, x):
    return module(x), sorted(module.state_dict())


@case(lambda: (Net(), t(3, 4)))
def attribute_of_a_module_changes(module, x):
    module.blocks[0].residual = False
    module.note = "set"
    return module(x)


@case(lambda: (nn.Linear(4, 4), t(3, 4)))
def gradient_step_inside(module, x):
    loss = module(x).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in module.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.detach()


@case(lambda: (Net(), t(3, 4)))
def frozen_parameters(module, x):
    for p in module.heads.parameters():
        p.requires_grad_(False)
    return module(x)


@case(lambda: (nn.Identity(), nn.Flatten(), nn.Softmax(dim=-1), t(2, 3, 4)))
def modules_as_arguments(a, b, c, x):
    return c(b(a(x)))


class Checked(nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError(f"expected two dimensions, got {x.dim()}")
        return x * 2


@case(lambda: (Checked(), t(2, 2)), lambda: (Checked(), t(2)))
def forward_that_raises(module, x):
    return module(x)


@case(lambda: (nn.Linear(4, 4).double(), t(3, 4).double()), lambda: (nn.Linear(4, 4).bfloat16(), t(3, 4).bfloat16()))
def dtype_of_a_module(module, x):
    return module(x), next(module.parameters()).dtype


@case(lambda: (nn.Linear(4, 4), t(3, 4)))
def functional_call(module, x):
    parameters = {name: p * 2 for name, p in module.named_parameters()}
    return torch.func.functional_call(module, parameters, (x,))


@case(lambda: (nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.ReLU()), t(6, 4)))
def training_block(module, x):
    return module(x)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.before = nn.Linear(4, 4)
        self.cells = kind(4, 3, **options)
        self.after = nn.Linear(self.cells.hidden_size * (2 if self.cells.bidirectional else 1), 2)

    def forward(self, x):
        y, state = self.cells(self.before(x).relu())
        return self.after(y * 2).softmax(-1), state


@case(
    lambda: (Recurrent(nn.LSTM), t(2, 5, 4)),
    lambda: (Recurrent(nn.LSTM, batch_first=True, num_layers=2, bidirectional=True), t(2, 5, 4)),
    lambda: (Recurrent(nn.GRU, batch_first=True), t(2, 5, 4, grad=True)),
    lambda: (Recurrent(nn.RNN), t(2, 5, 4)),
)
def recurrent_networks(module, x):
    return module(x)


@case(
    lambda: (nn.MultiheadAttention(8, 2, batch_first=True), t(2, 4, 8), torch.tensor([[False, False, True, True], [False] * 4])),
    lambda: (nn.MultiheadAttention(8, 2, batch_first=True), t(3, 5, 8), torch.zeros(3, 5, dtype=torch.bool)),
    lambda: (nn.MultiheadAttention(8, 2, batch_first=True), t(2, 4, 8), torch.zeros(1, 4, dtype=torch.bool)),
)
def attention_with_padding(attention, x, padding):
    y, weights = attention(x, x, x, key_padding_mask=padding)
    return y + 1, weights


# Every such module has a class of its own.
@case(lambda: (nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), t(2, 3)), reuse=Reuse.FREE)
def weight_norm(module, x):
    return module(x) * 2


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.activation = nn.ReLU()
        self.register_buffer("shift", None)

    def forward(self, x):
        return self.activation(x) * self.factor


@case(
    lambda: (t(3, 4), torch.tensor([0, 1, 3])),
    lambda: (t(5, 4), torch.tensor([0, 1, 3, 2, 2])),
    lambda: (t(3, 4, grad=True), torch.tensor([0, 1, 3])),
)
def losses_made_in_the_frame(x, target):
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
    return smooth(x, target), nn.MSELoss()(x, x * 2), nn.BCEWithLogitsLoss()(x, x.sigmoid())


@case(lambda: (t(3, 4), 2), lambda: (t(3, 4), 3))
def module_made_in_the_frame(x, factor):
    module = Scaled(factor).eval()
    children = [name for name, _ in module.named_children()]
    return module(x), module.training, children, "activation" in module.__dict__, list(module.state_dict())


@case(lambda: (t(3, 4),))
def module_made_and_returned(x):
    module = nn.Sequential(nn.Tanh(), Scaled(2.0))
    return module(x), len(module), module[1].factor, module


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def attributes_of_a_module(module, x):
    held = sorted(name for name in module.__dict__ if not name.startswith("_"))
    return module(x), held, "weight" in module.__dict__, "_parameters" in vars_of(module)


def vars_of(module):
    return module.__dict__
