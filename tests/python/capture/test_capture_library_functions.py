"""Functions of torch and C code, compiled themselves: they have no frame of the user's, and are one graph all the same."""

import functools

import pyrite
import pytest
import torch
import torch.nn.functional as F
from torch import nn, optim

FUNCTIONS = {
    "a function written in C": (torch.sin, ()),
    "a method of tensors": (torch.Tensor.cos, ()),
    "an operator": (torch.ops.aten.tanh, ()),
    "a function of torch": (F.gelu, ()),
    "a partial function": (functools.partial(F.softmax, dim=0), ()),
    "with another argument": (F.leaky_relu, (0.3,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_library_is_one_graph(name):
    function, rest = FUNCTIONS[name]
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = pyrite.compile(function, backend=backend)
    for size in (3, 4, 5):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x, *rest), function(x, *rest))
    assert 1 <= len(graphs) <= 2, "one for the first size, one for the others"


OPTIMIZERS = [
    (optim.SGD, {}),
    (optim.SGD, {"foreach": True, "momentum": 0.9}),
    (optim.Adam, {}),
    (optim.Adam, {"foreach": True}),
    (optim.AdamW, {"foreach": True, "amsgrad": True}),
    (optim.NAdam, {"foreach": True}),
    (optim.Adamax, {"foreach": True}),
    (optim.Adadelta, {"foreach": True}),
    (optim.Adagrad, {"foreach": True}),
    (optim.RMSprop, {"foreach": True, "centered": True}),
    (optim.Rprop, {"foreach": True}),
]


def prepared(kind, options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    return model, kind(model.parameters(), **options)


def trained(model, step, zero):
    torch.manual_seed(1)
    for _ in range(4):
        zero()
        model(torch.randn(5, 3)).square().sum().backward()
        step()
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS, ids=lambda it: getattr(it, "__name__", None) or "-".join(it) or "plain")
def test_the_step_of_an_optimizer_is_one_graph(kind, options):
    model, optimizer = prepared(kind, options)
    want = trained(model, optimizer.step, optimizer.zero_grad)
    model, optimizer = prepared(kind, options)
    step = pyrite.compile(optimizer.step, backend="eager", fullgraph=True)
    torch.testing.assert_close(trained(model, step, optimizer.zero_grad), want, rtol=1e-5, atol=1e-6)


def test_a_step_with_a_closure_breaks_at_the_gradient_and_is_right():
    def run(compiler):
        model, optimizer = prepared(optim.LBFGS, {"max_iter": 3})
        x = torch.ones(4, 3)

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        compiler(optimizer.step)(closure)
        return [parameter.detach().clone() for parameter in model.parameters()]

    want = run(lambda step: step)
    torch.testing.assert_close(run(functools.partial(pyrite.compile, backend="eager")), want)


def test_what_a_compiled_program_saves_is_packed_and_unpacked():
    def function(x):
        return x.sin() * x

    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor * 1

    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        pyrite.compile(function)(x).sum().backward()
    assert packed
    torch.testing.assert_close(x.grad, torch.autograd.grad(function(x).sum(), x)[0])
