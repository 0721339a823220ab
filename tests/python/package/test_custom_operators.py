"""Backends that check look at operators of `torch.library`: what they write, where their results lie, and what their fakes say."""

import pytest
import torch

import pyrite


def defined(name, run, fake, mutates=()):
    """An operator of one tensor."""
    operator = torch.library.custom_op(f"pyrite_checked::{name}", run, mutates_args=mutates, schema="(Tensor x) -> Tensor" if not mutates else None)
    operator.register_fake(fake)
    return operator


def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def writing(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t() * 1


# What an operator does, what its fake says, and what is found.
OPERATORS = {
    "good": (twice, torch.empty_like, None),
    "writes": (writing, torch.empty_like, "writes to its argument `x`"),
    "shape": (twice, lambda x: x.new_empty(x.shape[0], 1), "has the shape (3, 4), by its fake (3, 1)"),
    "dtype": (twice, lambda x: torch.empty_like(x, dtype=torch.float64), "has the dtype torch.float32, by its fake torch.float64"),
    "strides": (transposed, torch.empty_like, "has the strides (1, 3), by its fake (4, 1)"),
}
FOUND = {name: (defined(name, run, fake), message) for name, (run, fake, message) in OPERATORS.items()}


def compilers(backend):
    yield lambda function: pyrite.compile(function, backend=backend)
    yield lambda function: torch.compile(function, backend="pyrite", options={"backend": backend})


@pytest.mark.parametrize("backend", ["eager_debug", "aot_eager_decomp_partition_crossref"])
@pytest.mark.parametrize("name", FOUND)
def test_a_custom_operator_is_compared_with_what_is_declared_of_it(name, backend):
    operator, message = FOUND[name]
    for compiled in compilers(backend):
        torch._dynamo.reset()
        function = compiled(lambda x: torch.relu(operator(x)) + 1)
        x = torch.randn(3, 4)
        if message is None:
            torch.testing.assert_close(function(x), torch.relu(x * 2) + 1)
            continue
        with pytest.raises(RuntimeError, match="pyrite_checked") as raised:
            function(x)
        assert message in str(raised.value), raised.value


def test_other_backends_believe_what_is_declared():
    operator, _ = FOUND["dtype"]
    assert pyrite.compile(lambda x: operator(x), backend="eager")(torch.ones(3, 4)).dtype == torch.float32


def test_a_function_is_told_of_every_call():
    calls = []
    told = {"mode": lambda node, operator, value: calls.append((operator, value))}
    function = pyrite.compile(lambda x: torch.relu(x.sin()), backend="aot_eager_decomp_partition_with_mode", options=told)
    x = torch.randn(4)
    y = function(x)
    operators = [operator for operator, _ in calls]
    assert operators == ["aten.sin.default", "aten.relu.default"], operators
    torch.testing.assert_close(calls[0][1], x.sin())
    torch.testing.assert_close(y, calls[1][1])


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("by_torch", [False, True])
def test_a_mode_of_torchs_is_entered_around_the_calls(by_torch):
    mode = Counting()
    options, backend = {"mode": mode}, "aot_eager_decomp_partition_with_mode"
    if by_torch:
        torch._dynamo.reset()
        function = torch.compile(lambda x: torch.relu(x.sin()), backend="pyrite", options={"backend": backend, **options})
    else:
        function = pyrite.compile(lambda x: torch.relu(x.sin()), backend=backend, options=options)
    x = torch.randn(4)
    torch.testing.assert_close(function(x), torch.relu(x.sin()))
    assert "aten.sin.default" in mode.seen and "aten.relu.default" in mode.seen, mode.seen


def test_what_is_no_mode_is_refused():
    with pytest.raises(TypeError, match="the option `mode` is a function"):
        pyrite.compile(lambda x: x.sin(), backend="aot_eager_decomp_partition_with_mode", options={"mode": 3})(torch.ones(2))


def test_pre_dispatch_eager_shows_its_graph(capsys):
    pyrite.compile(lambda x: torch.nn.functional.silu(x), backend="pre_dispatch_eager")(torch.ones(2))
    assert "aten.silu" in capsys.readouterr().out


LIBRARY = torch.library.Library("pyrite_writing", "DEF")
LIBRARY.define("scale_(Tensor(a!) x, float by) -> ()")
LIBRARY.impl("scale_", lambda x, by: [x.mul_(by)].clear(), "CPU")
LIBRARY.define("add_into(Tensor x, *, Tensor(a!) out) -> Tensor")
LIBRARY.impl("add_into", lambda x, *, out: out.add_(x) * 2, "CPU")
LIBRARY.impl("add_into", lambda x, *, out: torch.empty_like(out), "Meta")


add_into, scale_ = torch.ops.pyrite_writing.add_into, torch.ops.pyrite_writing.scale_


@torch.library.custom_op("pyrite_writing::increment", mutates_args=("x",))
def increment(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("pyrite_writing::increment_all", mutates_args=("xs",))
def increment_all(xs: list[torch.Tensor], by: float) -> None:
    for x in xs:
        x.add_(by)


def between_equal_calls(x):
    y = x.sin()
    before = y * 1.0
    result = add_into(x, out=y)
    return before, y * 1.0, result


def through_a_view(x):
    y = x.cos()
    row = y[1]
    increment(row)
    scale_(y, 3.0)
    return row + 1, y


def unrecorded(x):
    with torch.no_grad():
        increment(x)
    return x * 3


WRITING = {
    "input": lambda x: (increment(x), x * 2)[1],
    "intermediate": lambda x: (y := x.sin(), increment(y), y.cos())[2],
    "between_equal_calls": between_equal_calls,
    "through_a_view": through_a_view,
    "list": lambda x: (ys := [x.sin(), x], increment_all(ys, 0.5), ys[0] + ys[1])[2],
    "unrecorded": unrecorded,
}


@pytest.mark.parametrize("settings", [{"backend": "native"}, {"backend": "eager"}, {"backend": "aot_eager"}, {"dynamic": True}], ids=str)
@pytest.mark.parametrize("name", WRITING)
def test_a_custom_operator_that_writes_is_a_call_of_the_graph(name, settings):
    function = WRITING[name]
    compiled = pyrite.compile(function, fullgraph=True, **settings)
    for rows in (3, 4, 5):
        x = torch.randn(rows, 4)
        y = x.clone()
        torch.testing.assert_close(compiled(x), function(y), rtol=0, atol=0)
        torch.testing.assert_close(x, y, rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["native", "eager"])
def test_gradients_around_a_custom_operator_that_writes_are_eagers(backend):
    def function(x):
        y = x.detach().clone()
        increment(y)
        return (x * y).sum()

    def refused(x):
        y = x * 2
        try:
            increment(y)
        except RuntimeError:
            return y.sum() * 3
        return y.sum()

    for each in (function, refused):
        x = torch.randn(3, 4, requires_grad=True)
        want, have = each(x), pyrite.compile(each, backend=backend)(x)
        torch.testing.assert_close(have, want)
        assert have.requires_grad == want.requires_grad
        torch.testing.assert_close(torch.autograd.grad(have, x), torch.autograd.grad(want, x))


def test_a_refused_argument_of_an_operator_that_writes_is_caught_where_it_is_passed():
    def function(x):
        try:
            scale_(x, "no number")
        except RuntimeError:
            return x + 1
        return x

    x = torch.randn(3)
    torch.testing.assert_close(pyrite.compile(function)(x), x + 1)
