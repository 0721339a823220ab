"""`pyrite.config.verify` lets right calls through, and notices wrong results and wrong effects of every kind."""

import random

import pytest
import torch
from capture import harness

pytestmark = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")

LOG = []


class Holder:
    def __init__(self):
        self.count = 0
        self.weight = torch.ones(2)
        self.alias = self.weight[:1]


def busy(x, items, table, holder):
    items.append(x + 1)
    table["n"] = table.get("n", 0) + 1
    holder.count += 1
    holder.weight.mul_(2)
    LOG.append(len(items))
    print("called", len(items))
    return x * holder.weight.sum() + torch.rand(1), items


@pytest.fixture
def package():
    import pyrite

    pyrite.reset()
    LOG.clear()
    with pyrite.config.patch(verify=True):
        yield pyrite
    pyrite.reset()


def test_a_right_call_is_let_through_and_its_effects_happen_once(package, capsys):
    items, table, holder = [], {}, Holder()
    compiled = package.compile(busy, backend="eager")
    for _ in range(3):
        compiled(torch.ones(2), items, table, holder)
    assert len(items) == table["n"] == holder.count == 3 and LOG == [1, 2, 3]
    assert holder.weight.tolist() == [8.0, 8.0] and holder.alias.tolist() == [8.0]
    assert capsys.readouterr().out.splitlines() == ["called 1", "called 2", "called 3"]


def test_an_exception_comes_through_with_its_chain(package):
    def fails(x):
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("v") from error

    with pytest.raises(ValueError) as caught:
        package.compile(fails, backend="eager")(torch.ones(2))
    assert isinstance(caught.value.__cause__, KeyError)


def test_modules_and_methods_are_verified(package):
    layer = torch.nn.Linear(3, 2)
    assert package.compile(layer, backend="eager")(torch.ones(1, 3)).shape == (1, 2)


def scaled(factor):
    """A backend whose programs compute something else."""

    def backend(graph, inputs):
        import pyrite

        program = pyrite.backends.lookup("eager")(graph, inputs)
        return lambda *args: [out * factor if isinstance(out, torch.Tensor) else out for out in program(*args)]

    return backend


def test_a_wrong_result_is_noticed(package):
    compiled = package.compile(lambda x: x + 1, backend=scaled(1.5))
    with pytest.raises(package.VerifyError, match="the result"):
        compiled(torch.ones(2))


def test_a_wrong_effect_is_noticed(package):
    def keeps(x, items):
        items.append(x + 1)

    with pytest.raises(package.VerifyError, match="the arguments"):
        package.compile(keeps, backend=scaled(1.5))(torch.ones(2), [])


def test_a_missing_guard_is_noticed(package):
    def lengthy(x, items):
        return x * len(items)

    package._native.drop_guards("length")
    try:
        compiled = package.compile(lengthy, backend="eager")
        compiled(torch.ones(2), [1])
        with pytest.raises(package.VerifyError, match="the result"):
            compiled(torch.ones(2), [1, 2])
    finally:
        package._native.drop_guards(None)


def test_random_numbers_are_drawn_once(package):
    def draws(x):
        return x + torch.rand(2), random.random()

    torch.manual_seed(0)
    random.seed(0)
    compiled = package.compile(draws, backend="eager")(torch.zeros(2))
    torch.manual_seed(0)
    random.seed(0)
    plain = draws(torch.zeros(2))
    assert torch.equal(compiled[0], plain[0]) and compiled[1] == plain[1]
