"""Random numbers of compiled programs: those of an eager run by default, a fast stream of their own with `fallback_random` off."""

import os
import subprocess
import sys

import pytest
import torch

import pyrite


@pytest.fixture(autouse=True)
def afresh():
    yield
    pyrite.reset()


def noisy(x):
    return torch.nn.functional.dropout(x * 2, 0.25) + torch.randn_like(x) * 0


def draw(function, *args, seed=3):
    torch.manual_seed(seed)
    return function(*args)


def test_a_compiled_program_draws_what_an_eager_run_draws():
    x = torch.ones(40, 50)
    assert torch.equal(draw(pyrite.compile(noisy), x), draw(noisy, x))


@pytest.mark.parametrize("by", ["options", "config"])
def test_with_fallback_random_off_the_stream_is_drawn_from_and_torch_s_seed_decides(by):
    x = torch.ones(400, 50)
    if by == "options":
        compiled = pyrite.compile(noisy, options={"fallback_random": False})
        results = [draw(compiled, x), draw(compiled, x), draw(compiled, x, seed=4), compiled(x)]
    else:
        with pyrite.config.patch(fallback_random=False):
            compiled = pyrite.compile(noisy)
            results = [draw(compiled, x), draw(compiled, x), draw(compiled, x, seed=4), compiled(x)]
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert not torch.equal(results[2], results[3]), "the next call draws on"
    assert not torch.equal(results[0], draw(noisy, x))
    for result in results:
        assert abs((result != 0).float().mean().item() - 0.75) < 0.02
        assert torch.allclose(result[result != 0], torch.tensor(2 / 0.75))


def test_the_gradient_of_a_dropout_is_that_of_what_was_kept():
    compiled = pyrite.compile(lambda x: torch.nn.functional.dropout(x * 2, 0.5), options={"fallback_random": False})
    x = torch.ones(300, 70, requires_grad=True)
    out = compiled(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_torch_compile_with_pyrite_takes_the_option():
    x = torch.ones(1000)
    compiled = torch.compile(lambda x: torch.rand_like(x), backend="pyrite", options={"fallback_random": False})
    drawn = draw(compiled, x)
    assert not torch.equal(drawn, draw(torch.rand_like, x))
    assert 0 <= drawn.min() and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.05


def test_the_debugger_compares_with_an_eager_run_s_numbers():
    compiled = torch.compile(noisy, backend="pyrite_debug", options={"backend": "native", "fallback_random": False})
    x = torch.ones(40, 50)
    assert torch.equal(draw(compiled, x), draw(noisy, x))


@pytest.mark.parametrize(("value", "expected"), [("0", "False"), ("1", "True"), ("", "True")])
def test_the_environment_sets_it(value, expected):
    environment = {**os.environ, "PYRITE_FALLBACK_RANDOM": value}
    command = [sys.executable, "-c", "import pyrite; print(pyrite.config.fallback_random)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == expected
