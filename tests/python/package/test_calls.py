"""Calls of small programs again and again: arguments that come again are not taken in anew, and nobody can tell."""

import random
import weakref

import numpy
import pytest
import torch

import pyrite as package


def native(function):
    return package.compile(function)


def by_torch(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite", options={"strict": True})


ways = pytest.mark.parametrize("compiled", [native, by_torch])


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.randn(6)), torch.nn.Parameter(torch.randn(6))

    def forward(self, x):
        return x * self.weight + self.bias


# What may happen to a parameter between two calls.
def write(parameter):
    parameter.data.mul_(2)


def write_through_numpy(parameter):
    # NumPy has no array that is negated when it is read.
    if not parameter.is_neg():
        parameter.detach().numpy()[1:3] += 1


def replace(parameter):
    parameter.data = torch.randn(6)


def replace_by_columns(parameter):
    parameter.data = torch.randn(6, 2)[:, 0]


def replace_storage(parameter):
    parameter.data.set_(torch.randn(9).untyped_storage(), 2, (6,), (1,))


def replace_by_negated(parameter):
    parameter.data = torch.complex(torch.zeros(6), torch.randn(6)).conj().imag


def resize(parameter):
    parameter.data.resize_(0)
    parameter.data = torch.randn(300).resize_(6)


def nothing(parameter):
    pass


CHANGES = [write, write_through_numpy, replace, replace_by_columns, replace_storage, replace_by_negated, resize, nothing]


@ways
@pytest.mark.parametrize("seed", range(4))
def test_a_parameter_is_what_it_is_at_each_call(compiled, seed):
    chosen = random.Random(seed)
    torch.manual_seed(seed)
    model = Scaled()
    program = compiled(model)
    for step in range(40):
        change = chosen.choice(CHANGES)
        with torch.no_grad():
            change(chosen.choice([model.weight, model.bias]))
            x = torch.randn(3, 6)
            found = program(x)
        assert torch.equal(found, x * model.weight.detach() + model.bias.detach()), (step, change.__name__)


@ways
def test_a_module_that_ran_without_gradients_has_them_when_they_are_recorded(compiled):
    model = Scaled()
    program, x = compiled(model), torch.randn(3, 6)
    for _ in range(5):
        with torch.no_grad():
            assert not program(x).requires_grad
    program(x).sum().backward()
    assert torch.allclose(model.weight.grad, x.sum(0)) and torch.equal(model.bias.grad, torch.full((6,), 3.0))
    with torch.no_grad():
        assert torch.equal(program(x), x * model.weight + model.bias)


@ways
def test_a_graph_compiled_without_gradients_gives_them_once_they_are_recorded(compiled):
    def step(a, b):
        return (a * b).exp()

    program = compiled(step)
    a, b = torch.randn(5, requires_grad=True), torch.randn(5)
    with torch.no_grad():
        for _ in range(4):
            program(a, b)
    result = program(a, b)
    (gradient,) = torch.autograd.grad(result.sum(), a)
    assert torch.allclose(gradient, (b * (a * b).exp()).detach())


@ways
def test_what_a_call_was_given_is_free_when_its_caller_lets_it_go(compiled):
    program = compiled(lambda x, y: x + y)
    y = torch.randn(4)
    for _ in range(5):
        array = numpy.ones(4, dtype=numpy.float32)
        gone = weakref.ref(array)
        x = torch.from_numpy(array)
        del array
        assert torch.equal(program(x, y), y + 1)
        del x
        assert gone() is None


@ways
def test_an_argument_in_memory_that_was_another_s_is_itself(compiled):
    program = compiled(lambda x: x * 2)
    memory = torch.arange(64.0)
    views = [memory[:8], memory[8:16], memory[0:16:2], memory[:16].view(8, 2)[:, 1], memory.view(8, 8)[:, 3], memory[:8]]
    for view in views * 3:
        assert torch.equal(program(view), view * 2)


@ways
def test_a_result_that_lies_in_an_argument_shares_its_memory_in_every_call(compiled):
    program = compiled(lambda x: (x[1:3], x * 1))
    for _ in range(6):
        x = torch.arange(4.0)
        view, _ = program(x)
        view.zero_()
        assert torch.equal(x, torch.tensor([0.0, 0.0, 0.0, 3.0]))


def test_threads_call_one_program_at_the_same_time():
    import threading

    program = package.compile(Scaled())
    model = program
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(300):
            x = torch.randn(3, 6, generator=generator)
            with torch.no_grad():
                if not torch.equal(model(x), x * model.weight + model.bias):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
