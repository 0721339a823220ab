"""What programs ask of torch around the computation: types, devices, sizes, constants, modules of torch, printing, copies, seeds."""

import copy
import math
import sys
import time
import types

import numpy as np
import torch
import torch.nn.functional as F
from capture.cases import Reuse, case, t
from torch import nn


@case(lambda: (t(3),))
def questions_of_types(x):
    return x + 1, torch.is_tensor(x), torch.is_floating_point(x), x.is_complex(), x.is_sparse, x.is_quantized, x.is_cuda, x.is_meta, x.is_nested, torch.is_storage(x)


@case(lambda: (t(3),))
def devices_asked(x):
    device = torch.device("cpu")
    return x.to(device) + 1, x.device == device, x.device.type, device.index, str(device), torch.device("cpu", 0).index


@case(lambda: (t(3),))
def types_as_values(x):
    dtype = x.dtype
    return x.to(torch.float64), dtype.is_floating_point, dtype.itemsize, str(dtype), dtype is torch.float32, torch.finfo(dtype).eps, torch.iinfo(torch.int8).max, dtype.to_complex()


@case(lambda: (t(3),))
def types_in_containers(x):
    kinds = {torch.float32: "single", torch.float64: "double"}
    return x + 1, kinds[x.dtype], x.dtype in (torch.float16, torch.float32), {torch.int8, torch.int16} == {torch.int16, torch.int8}


@case(lambda: (t(3),))
def the_default_type(x):
    return x + torch.ones(3, dtype=torch.get_default_dtype()), torch.tensor(1.0).dtype, torch.zeros(2).dtype is torch.get_default_dtype()


@case(lambda: (t(3, 4),))
def sizes_asked_in_many_ways(x):
    return x.size(), x.size(-1), x.shape[0], x.ndim, x.dim(), x.nelement(), len(x), x.element_size(), x.nbytes, x.numel(), x.stride(), x.stride(0), x.storage_offset()


@case(lambda: (t(3, 4),))
def memory_formats(x):
    y = x.view(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    return y * 2, y.is_contiguous(), y.is_contiguous(memory_format=torch.channels_last), x.t().is_contiguous()


@case(lambda: (t(3),))
def constants_of_torch(x):
    return x * torch.pi, x + torch.e, torch.inf, x * math.pi, torch.tensor(float("nan")).isnan(), math.isinf(torch.inf)


@case(lambda: (t(3),))
def constructors_like_this(x):
    return x.new_zeros(2), x.new_ones((2, 2)), x.new_full((2,), 3.0), x.new_empty(0), torch.zeros_like(x), torch.full_like(x, 2), torch.ones_like(x, dtype=torch.int32), x.new_tensor([1, 2])


@case(lambda: (t(3),))
def tensors_from_python(x):
    return torch.tensor([1, 2]), torch.tensor([[1.0], [2.0]]), torch.tensor(True), torch.tensor([x.shape[0], 2]), torch.as_tensor(3), torch.tensor([]), torch.tensor((1, 2), dtype=torch.float64)


@case(lambda: (t(3),))
def tensors_from_tensors(x):
    return torch.stack([x[0], x[1]]), torch.cat([x, x]), torch.hstack((x, x)), torch.atleast_2d(x), torch.block_diag(x), torch.cartesian_prod(x, x), torch.combinations(x)


@case(lambda: (t(3, 3),))
def items_picked(x):
    return x[0], x[..., 1], x[:, None], x[[0, 1]], x[x > 0].sum(), x[torch.tensor([0, 2])], x[1, 2], x[-1:], x[:, ::2], x[True].shape


@case(lambda: (t(3, 3),))
def items_set(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = y[:, 2]
    y[y > 1] = 0
    y[[1, 2], [0, 1]] = 5.0
    y[..., -1] += 2
    return y


@case(lambda: (t(3),))
def operators_of_tensors(x):
    return x**2, 2**x, x // 2, x % 2, -x, +x, abs(x), x @ x, 1 / (x + 5), 3 - x, x > 0, ~(x > 0), (x > 0) & (x < 1), (x > 0) | (x < -1), (x > 0) ^ True


@case(lambda: (t(3),))
def operators_in_place(x):
    y = x.clone()
    y += 1
    y -= x
    y *= 2
    y /= 3
    y **= 2
    y //= 1
    return y


@case(lambda: (torch.tensor([3, 5, 6]),))
def operators_of_integers(x):
    return x << 1, x >> 1, x & 3, x | 1, x ^ 2, ~x, x // 2, x % 4, -x, x / 2, x == 5


@case(lambda: (t(3),))
def comparisons_as_python(x):
    return x is x, x is not None, x == x, id(x) == id(x), isinstance(x, (int, torch.Tensor)), type(x) is torch.Tensor, x.__class__.__name__


@case(lambda: (t(2, 3),))
def unpacked_rows(x):
    a, b = x
    (c, d, e), f = x
    return a + b, c * d + e, f, [row.sum() for row in x], list(zip(a, b, strict=True))[0][0]


@case(lambda: (t(4),))
def results_with_names(x):
    top = torch.topk(x, 2)
    ordered = x.sort(descending=True)
    values, places = x.max(dim=0)
    return top.values, top.indices, ordered[0], values + places, torch.std_mean(x)[0], x.min(0).indices, type(ordered).__name__


@case(lambda: (t(2, 3),))
def functions_by_methods_and_back(x):
    return torch.Tensor.sin(x), torch.sum(x, dim=1), torch.Tensor.view(x, 6), x.sum(-1, keepdim=True), torch.transpose(x, 0, 1), F.relu(x), F.softmax(x, dim=-1), x.softmax(-1)


@case(lambda: (t(2, 3),))
def functions_of_ops(x):
    return torch.ops.aten.sin(x), torch.ops.aten.add.Tensor(x, x), torch.ops.aten.sum.dim_IntList(x, [1]), torch.ops.aten.relu.default(x)


@case(lambda: (t(3),))
def a_copy_of_everything(x):
    held = {"a": [x, 1], "b": (x,)}
    deep, shallow = copy.deepcopy(held), copy.copy(held)
    return deep["a"][0] + shallow["a"][0], shallow["a"] is held["a"], deep["a"] is held["a"], deep["b"][0] is deep["a"][0]


@case(lambda: (nn.Linear(3, 2), t(2, 3)))
def a_module_copied_and_run(module, x):
    return copy.deepcopy(module)(x)


@case(lambda: (t(3),))
def gradients_asked(x):
    y = x.detach().requires_grad_(True)
    z = (y * y).sum()
    (gradient,) = torch.autograd.grad(z, y)
    return gradient, y.requires_grad, z.requires_grad


@case(lambda: (t(3, grad=True),))
def modes_asked(x):
    inside = []
    with torch.no_grad():
        inside.append(torch.is_grad_enabled())
        y = x * 2
    inside.append(torch.is_grad_enabled())
    return y.requires_grad, inside, x * 2, torch.is_inference_mode_enabled(), torch.is_autocast_enabled()


@case(lambda: (t(3),))
def versions_and_platforms(x):
    if sys.version_info >= (3, 8) and torch.__version__ >= "2":
        x = x + 1
    return x, sys.platform == "linux", sys.byteorder, sys.maxsize > 2**32, isinstance(torch.version.cuda, (str, type(None)))


@case(lambda: (t(3),))
def availability_asked(x):
    return x + torch.cuda.is_available(), torch.backends.mkldnn.is_available() in (True, False), torch.distributed.is_available() in (True, False), torch.cuda.device_count() >= 0


@case(lambda: (t(3),), reuse=Reuse.FREE)
def time_is_measured(x):
    start = time.time()
    y = x + 1
    took = time.time() - start
    return y * 2, took >= 0


@case(lambda: (t(3),))
def numbers_of_tensors(x):
    n = x.shape[0]
    return x.sum().item() is not None, float(n), int(2.7), x[0].tolist() == float(x[0]), bool(torch.tensor(1))


@case(lambda: (t(3),))
def through_numpy(x):
    a = x.numpy()
    b = np.sin(a) + np.ones_like(a)
    return torch.from_numpy(b), a.shape, b.dtype == np.float32, a.sum() < 1e9


@case(lambda: (np.arange(6.0).reshape(2, 3),))
def an_array_given(a):
    return a.T @ a, np.mean(a, axis=0), a[0], a.reshape(-1)[::2], np.where(a > 2, a, 0), a.astype(np.float32)


@case(lambda: (t(3),))
def printing_by_a_format(x):
    return f"{x.shape} {x.dtype} {tuple(x.shape)} {x.dim()}", str(x.size()), repr(x.dtype), "{}".format(x.device), x + 1


@case(lambda: (t(3),), reuse=Reuse.FREE)
def modules_as_namespaces(x):
    space = types.SimpleNamespace(scale=2, name="q")
    space.scale += 1
    module = types.ModuleType("made")
    return x * space.scale, vars(space), space == types.SimpleNamespace(scale=3, name="q"), module.__name__


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.norms = nn.ModuleDict({"a": nn.LayerNorm(width), "b": nn.Identity()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width))])
        self.table = nn.ParameterDict({"shift": nn.Parameter(torch.zeros(width))})

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            x = layer(x) if index % 2 == 0 else torch.relu(layer(x))
        for name in self.norms:
            x = self.norms[name](x)
        return x * self.scales[0] + self.table["shift"]


@case(lambda: (Block(3), t(2, 3)))
def containers_of_modules(block, x):
    return block(x), len(block.layers), list(block.norms.keys()), "a" in block.norms, block.layers[-1] is block.layers[1]


@case(lambda: (Block(3), t(2, 3)))
def members_of_modules(block, x):
    total = sum(p.sum() for p in block.parameters())
    names = [name for name, _ in block.named_modules()]
    return x * total, names, [name for name, _ in block.named_children()], sorted(block.state_dict())[:2]


@case(lambda: (Block(3), t(2, 3)), lambda: (Block(3).eval(), t(2, 3)))
def a_mode_that_is_asked(block, x):
    return block(x) * (2 if block.training else 3)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.calls += 1
        self.total.add_(x.detach())
        return x * self.calls


@case(lambda: (Counting(), t(3)))
def a_module_that_changes_itself(module, x):
    return module(x), module(x), module.calls, module.total.clone()


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.activation = F.gelu
        self.options = {"approximate": "tanh"}

    def forward(self, x, scale=1.0, *extra, mask=None, **kwargs):
        y = self.activation(self.linear(x), **self.options) * scale
        if mask is not None:
            y = y.masked_fill(mask, 0)
        return y + sum(extra) + kwargs.get("bias", 0)


@case(lambda: (Partly(), t(2, 3)))
def every_way_to_call_a_module(module, x):
    return module(x), module(x, 2.0), module(x, 2.0, 1, 2), module(x, mask=x > 0), module(x, bias=3), module.forward(x)


@case(lambda: (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), t(2, 3)))
def parts_of_a_sequence(model, x):
    head, tail = model[:2], model[2]
    for layer in model:
        x = layer(x)
    return x, len(head), type(tail).__name__, [type(layer).__name__ for layer in model]


@case(lambda: (nn.BatchNorm1d(3), t(4, 3)))
def statistics_while_training(norm, x):
    y = norm(x)
    return y, norm.running_mean.clone(), norm.num_batches_tracked.clone()


@case(lambda: (nn.Dropout(0.5), t(4, 3)), lambda: (nn.Dropout(0.5).eval(), t(4, 3)))
def dropped_while_training(dropout, x):
    return dropout(x)


@case(lambda: (nn.LSTM(3, 4, batch_first=True), t(2, 5, 3)))
def a_recurrent_network(network, x):
    result, (hidden, cell) = network(x)
    return result.sum(1), hidden, cell


@case(lambda: (nn.MultiheadAttention(4, 2, batch_first=True), t(2, 3, 4)))
def attention_of_a_module(attention, x):
    result, weights = attention(x, x, x)
    return result, weights


@case(lambda: (nn.Embedding(10, 4), torch.tensor([[1, 2], [3, 4]])))
def embedded_and_summed(embedding, places):
    return embedding(places).sum(1), embedding.weight.shape


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def a_step_of_training(module, x):
    loss = F.mse_loss(module(x), torch.zeros(2, 3))
    loss.backward()
    with torch.no_grad():
        for p in module.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.detach(), module.weight.detach().clone()


@case(lambda: (nn.Linear(3, 3), t(2, 3)))
def a_weight_replaced_for_a_while(module, x):
    from torch.func import functional_call

    weights = {name: p * 2 for name, p in module.named_parameters()}
    return functional_call(module, weights, (x,)), module(x)


@case(lambda: (t(3), nn.Parameter(torch.ones(3))))
def a_parameter_given(x, p):
    return x * p, isinstance(p, nn.Parameter), p.requires_grad, type(p).__name__


@case(lambda: (t(4, 4),))
def results_into_places(x):
    out = torch.empty(4, 4)
    torch.add(x, 1, out=out)
    torch.mul(x, 2, out=out)
    values, places = torch.empty(4), torch.empty(4, dtype=torch.long)
    torch.max(x, 0, out=(values, places))
    return out, values, places


@case(lambda: (t(2, 3),))
def data_in_trees(x):
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten({"a": [x, 1], "b": (x * 2,)})
    doubled = pytree.tree_map(lambda v: v * 2, {"a": x, "b": [3]})
    return pytree.tree_unflatten([leaf * 2 for leaf in leaves], spec), doubled, len(leaves)


@case(lambda: (t(3), [t(3), t(3)], {"k": t(3)}))
def lists_of_tensors_for_each(x, items, table):
    summed = torch._foreach_add(items, 1.0)
    torch._foreach_mul_(summed, 2.0)
    return summed, torch._foreach_norm(items), [a - b for a, b in zip(items, summed, strict=True)], table["k"] + x


@case(lambda: (t(8),))
def windows_and_pieces(x):
    return x.unfold(0, 4, 2), x.chunk(3), x.split([3, 5]), torch.tensor_split(x, 3), x.view(2, 4).unbind(1), x.narrow(0, 2, 3), x.roll(2), x.flip(0)


@case(lambda: (t(3, 3),))
def a_subscript_of_equations(x):
    return torch.einsum("ij,jk->ik", x, x), torch.einsum("ii->i", x), torch.tensordot(x, x, 1), torch.bmm(x[None], x[None]), torch.outer(x[0], x[1]), x.mT


@case(lambda: (t(3),))
def assertions_about_shapes(x):
    assert x.shape == (3,), "three"
    assert x.dim() == 1 and x.dtype == torch.float32
    if x.shape[0] != 3:
        raise ValueError(f"unexpected {x.shape}")
    return x * 2


@case(lambda: (t(3),))
def no_operators_at_all(x):
    return 3, "text", [x.shape[0]]


@case(lambda: (t(3),))
def an_input_given_back(x):
    return x, [x, x], {"x": x}


@case(lambda: (t(3), None), lambda: (t(3), t(3)))
def an_optional_tensor(x, y):
    return x + (y if y is not None else 1)


@case(lambda: ([t(3), t(3)],), lambda: ([t(3), t(3), t(3)],))
def a_list_that_is_longer(items):
    return sum(items) / len(items)


@case(lambda: ({"a": t(3), "b": t(3)},), lambda: ({"b": t(3), "a": t(3)},))
def a_dict_in_another_order(table):
    return table["a"] - table["b"]


@case(lambda: (t(3), t(3)), lambda: (t(3), t(3, grad=True)))
def one_that_requires_a_gradient(x, y):
    return (x * y).sum()


@case(lambda: (lambda x: (x, x))(t(3)), lambda: (t(3), t(3)))
def one_tensor_twice(x, y):
    x.add_(1)
    return x + y


@case(lambda: (t(3).double(),), lambda: (t(3),), lambda: (t(3).long(),))
def a_type_that_changes(x):
    return x * 2 if x.is_floating_point() else x + 1


@case(lambda: (t(4, 3),), lambda: (t(3, 4).t(),), lambda: (t(4, 6)[:, ::2],))
def a_layout_that_changes(x):
    return x + 1, x.is_contiguous(), (x * 2).stride()
