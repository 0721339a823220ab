"""Gradients go through compiled programs as they go through eager ones."""

import gc
import weakref

import pytest
import torch

import pyrite
from pyrite import _native

HEAD = "class Repro(torch.nn.Module):\n    def forward(self, {inputs}):\n"
BACKENDS = ["eager", "aot_eager", "native"]


def program(inputs, body, *examples, backend="native"):
    """The program of a forward function, compiled for example inputs."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    graph = pyrite.Graph.from_text(HEAD.format(inputs=inputs) + lines)
    return _native.compile(graph, backend, None, examples)


LINEAR = """linear = torch.ops.aten.linear.default(x, w, b)
gelu = torch.ops.aten.gelu.default(linear)
argmax = torch.ops.aten.argmax.default(gelu, 1)
return (gelu, argmax)"""


def inputs():
    torch.manual_seed(0)
    return torch.randn(4, 3, requires_grad=True), torch.nn.Parameter(torch.randn(5, 3)), torch.nn.Parameter(torch.randn(5))


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_reach_inputs_and_parameters(backend):
    x, w, b = inputs()
    run = program("x, w, b", LINEAR, x, w, b, backend=backend)
    out, index = run(x, w, b)
    assert out.requires_grad and not index.requires_grad
    out.square().sum().backward()
    found = [t.grad for t in (x, w, b)]
    for t in (x, w, b):
        t.grad = None
    torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b)).square().sum().backward()
    for tensor, gradient in zip((x, w, b), found):
        torch.testing.assert_close(gradient, tensor.grad)


def test_gradients_accumulate_and_never_share_memory():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    run = program("x, y", "add = torch.ops.aten.add.Tensor(x, y)\nreturn (add,)", x, y)
    given = torch.full((3,), 2.0)
    for _ in range(2):
        [out] = run(x, y)
        out.backward(given)
    assert x.grad.tolist() == [4, 4, 4] and y.grad.tolist() == [4, 4, 4] and given.tolist() == [2, 2, 2]
    assert len({t.data_ptr() for t in (x.grad, y.grad, given)}) == 3


def test_without_grad_mode_results_have_no_history():
    x, w, b = inputs()
    run = program("x, w, b", LINEAR, x, w, b)
    with torch.no_grad():
        assert not run(x, w, b)[0].requires_grad
    with torch.inference_mode():
        assert not run(x, w, b)[0].requires_grad
    assert run(x, w, b)[0].grad_fn is not None


def test_a_graph_that_is_retained_runs_backward_again():
    x = torch.ones(3, requires_grad=True)
    run = program("x", "exp = torch.ops.aten.exp.default(x)\nsin = torch.ops.aten.sin.default(exp)\nreturn (sin,)", x)
    [out] = run(x)
    [first] = torch.autograd.grad(out.sum(), x, retain_graph=True)
    [second] = torch.autograd.grad((out * 3).sum(), x, retain_graph=True)
    [third] = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(first, x.detach().exp() * x.detach().exp().cos())
    torch.testing.assert_close(second, first * 3)
    torch.testing.assert_close(third, first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(out.sum(), x)


def test_a_second_derivative_is_an_error_that_says_so():
    x = torch.ones(3, requires_grad=True)
    run = program("x", "sin = torch.ops.aten.sin.default(x)\nreturn (sin,)", x)
    [out] = run(x)
    [first] = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        first.sum().backward()


def power(x, w):
    y = (x * w).sin() ** 3
    return y, (y.sum() * w).detach()


def second_derivative(function, x, w):
    out, _ = function(x, w)
    first = torch.autograd.grad(out.sum(), (x, w), create_graph=True)
    sum(gradient.square().sum() for gradient in first).backward()
    return [*first, x.grad, w.grad]


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_of_compiled_functions_are_those_of_torch(backend):
    def leaves():
        return torch.linspace(0.1, 1, 4, requires_grad=True), torch.nn.Parameter(torch.full((4,), 0.5))

    have = second_derivative(pyrite.compile(power, backend=backend), *leaves())
    torch.testing.assert_close(have, second_derivative(power, *leaves()))


def test_second_derivatives_of_short_calls_are_of_the_arguments_that_they_had():
    compiled = pyrite.compile(power)
    w = torch.nn.Parameter(torch.full((4,), 0.5))
    for step in range(6):
        # A tensor of another place in some calls, the same object in others; both were written in between.
        x = torch.linspace(0.1, 1, 4).requires_grad_() if step % 3 == 0 else x
        x.grad = w.grad = None
        have = second_derivative(compiled, x, w)
        x.grad = w.grad = None
        torch.testing.assert_close(have, second_derivative(power, x, w))
        with torch.no_grad():
            (x if step % 2 else w).add_(0.1)


@pytest.mark.parametrize("gone", ["written", "dropped"])
def test_a_second_derivative_of_a_short_call_whose_argument_is_gone_is_an_error(gone):
    compiled = pyrite.compile(lambda x, y: x * y.sum())
    x = torch.ones(4, requires_grad=True)
    for _ in range(4):
        y = torch.ones(3)
        out = compiled(x, y)
    if gone == "written":
        y.add_(1)
    else:
        del y
    [first] = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        first.sum().backward()


def test_a_short_call_of_tensors_of_inference_mode_has_gradients():
    with torch.inference_mode():
        y = torch.full((4,), 2.0)
    compiled = pyrite.compile(lambda x, y: x.sin() + y)
    for _ in range(4):
        x = torch.ones(4, requires_grad=True)
        compiled(x, y).sum().backward()
        torch.testing.assert_close(x.grad, x.detach().cos())


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_by_an_argument_that_others_were_computed_from_count_once(backend):
    def both(function):
        x = torch.linspace(0.1, 1, 4, requires_grad=True)
        y = x.sin()
        out = function(x, y)
        first = torch.autograd.grad(out.sum(), x, create_graph=True, retain_graph=True)[0]
        second = torch.autograd.grad(first.square().sum(), x)[0]
        return first.detach(), second

    function = lambda x, y: x * y * y
    torch.testing.assert_close(both(pyrite.compile(function, backend=backend)), both(function))


def by_intermediate_values(x, w):
    h = x * w
    y = h.sin() * w
    return torch.autograd.grad(y.sum(), h, allow_unused=True)[0]


def by_a_retained_gradient(x, w):
    h = x * w
    y = (h.sin() * w).sum()
    h.retain_grad()
    y.backward()
    return h.grad


def by_a_hook_that_comes_later(x, w):
    h = x * w
    y = (h.sin() * w).sum()
    h.register_hook(lambda gradient: gradient * 3)
    return torch.autograd.grad(y, x)[0]


@pytest.mark.parametrize("function", [by_intermediate_values, by_a_retained_gradient, by_a_hook_that_comes_later])
@pytest.mark.parametrize("backend", BACKENDS)
def test_autograd_sees_how_values_of_one_graph_were_computed_from_one_another(backend, function):
    def leaves():
        return torch.linspace(0.1, 1, 4, requires_grad=True), torch.nn.Parameter(torch.full((4,), 0.5))

    have, want = pyrite.compile(function, backend=backend)(*leaves()), function(*leaves())
    assert want is not None
    torch.testing.assert_close(have, want)


def test_a_second_derivative_of_what_draws_random_numbers_is_an_error_where_it_is_taken():
    x = torch.ones(8, requires_grad=True)
    compiled = pyrite.compile(lambda x: torch.nn.functional.dropout(x.sin(), 0.5))
    [first] = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        first.sum().backward()


def test_what_is_saved_is_freed_after_backward_and_without_it():
    x = torch.ones(1000, requires_grad=True)
    run = program("x", "exp = torch.ops.aten.exp.default(x)\nsin = torch.ops.aten.sin.default(exp)\nreturn (sin,)", x)
    for backward in (True, False):
        inner = torch.ones(1000, requires_grad=True)
        seen = weakref.ref(inner)
        [out] = run(inner)
        if backward:
            out.sum().backward()
        del inner, out
        gc.collect()
        assert seen() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_flow_through_writes_to_inputs(backend):
    w = torch.tensor([3.0], requires_grad=True)
    body = "mul = torch.ops.aten.mul.Tensor(x, w)\ncopy_ = torch.ops.aten.copy_.default(x, mul)\nreturn (mul,)"
    run = program("x, w", body, torch.ones(1), w, backend=backend)
    x = torch.tensor([2.0])
    version = x._version
    [out] = run(x, w)
    assert x.item() == 6 and x._version > version and x.requires_grad
    (x * 10 + out).sum().backward()
    assert w.grad.item() == 22


def test_a_leaf_that_wants_a_gradient_is_not_written():
    x = torch.ones(2, requires_grad=True)
    run = program("x", "add_ = torch.ops.aten.add_.Tensor(x, 1)\nreturn (add_,)", x.detach().requires_grad_())
    with pytest.raises(RuntimeError, match="leaf"):
        run(x)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_inputs_stay_differentiable_views(backend):
    x = torch.arange(6.0, requires_grad=True)
    body = "view = torch.ops.aten.view.default(x, [2, 3])\nmul = torch.ops.aten.mul.Tensor(view, 2)\nreturn (x, view, mul)"
    same, view, mul = program("x", body, x, backend=backend)(x)
    assert same is x and view._base is x
    (view.sum() + mul.sum() + same.sum()).backward()
    assert x.grad.tolist() == [4] * 6


def test_a_saved_value_that_is_written_before_backward_is_an_error():
    x = torch.ones(3, requires_grad=True)
    run = program("x", "exp = torch.ops.aten.exp.default(x)\nreturn (exp,)", x)
    [out] = run(x)
    out.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    y = torch.ones(3, requires_grad=True)
    run = program("x", "mul = torch.ops.aten.mul.Tensor(x, x)\nreturn (mul,)", y)
    [out] = run(y)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_hooks_and_partial_gradients_work():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    body = "sin = torch.ops.aten.sin.default(x)\nmul = torch.ops.aten.mul.Tensor(sin, y)\nreturn (sin, mul)"
    run = program("x, y", body, x, y)
    sin, mul = run(x, y)
    seen = []
    sin.register_hook(lambda gradient: seen.append(gradient.tolist()))
    sin.sum().backward()
    assert seen == [[1, 1]] and y.grad is None or not y.grad.any()
    torch.testing.assert_close(x.grad, torch.ones(2).cos())
    [gradient] = torch.autograd.grad(run(x, y)[1].sum(), y)
    torch.testing.assert_close(gradient, torch.ones(2).sin())


def test_dropout_draws_once_and_its_gradient_has_the_same_mask():
    x = torch.ones(100, requires_grad=True)
    run = program("x", "d = torch.ops.aten.dropout.default(x, 0.5, True)\nreturn (d,)", x)
    torch.manual_seed(5)
    [out] = run(x)
    out.sum().backward()
    torch.manual_seed(5)
    assert torch.equal(out, torch.nn.functional.dropout(x, 0.5)) and torch.equal(out, x.grad)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_detached_view_of_an_input_wants_no_gradient(backend):
    x = torch.randn(4, requires_grad=True)
    body = """y = torch.ops.aten.detach.default(x)
z = torch.ops.aten.slice.Tensor(y, 0, 1, 3)
w = torch.ops.aten.mul.Tensor(x, 2)
return (y, z, w)"""
    y, z, w = program("x", body, x, backend=backend)(x)
    assert [tensor.requires_grad for tensor in (y, z, w)] == [False, False, True]
    assert y.is_leaf and y.data_ptr() == x.data_ptr() and z.storage_offset() == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_switches_gradients_on_computes_them_without_grad_mode(backend):
    x = torch.randn(4, requires_grad=True)
    body = """y = torch.ops.aten.mul.Tensor(x, 2)
_set_grad_enabled = torch._C._set_grad_enabled(True);  _set_grad_enabled = None
z = torch.ops.aten.mul.Tensor(x, 3)
return (y, z)"""
    run = program("x", body, x, backend=backend)
    with torch.no_grad():
        y, z = run(x)
        assert not torch.is_grad_enabled()
    assert (y.requires_grad, z.requires_grad) == (False, True)
    z.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4,), 3.0))


@pytest.mark.parametrize("backend", ["aot_eager", "native"])
def test_an_output_that_backward_does_not_need_may_be_written(backend):
    divided = pyrite.compile(lambda x, by: x / by, backend=backend)
    x = torch.randn(3, requires_grad=True)
    y = divided(x, torch.tensor(2.0))
    y += 1
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 0.5))


@pytest.mark.parametrize("backend", ["aot_eager", "native"])
def test_an_output_that_backward_needs_must_not_be_written(backend):
    exponential = pyrite.compile(lambda x: x.exp(), backend=backend)
    x = torch.randn(3, requires_grad=True)
    y = exponential(x)
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_view_of_an_input_has_the_gradient_of_that_input_and_not_of_one_beside_it(backend):
    whole = torch.randn(2, 7, 9, requires_grad=True)
    left, right = whole.split([4, 5], -1)
    body = """t = torch.ops.aten.transpose.int(right, 1, 2)
m = torch.ops.aten.mul.Tensor(left, 2)
return (t, m)"""
    t, m = program("left, right", body, left, right, backend=backend)(left, right)
    weight = torch.randn(2, 5, 7)
    ((t * weight).sum() + m.sum()).backward()
    expected = torch.cat([torch.full((2, 7, 4), 2.0), weight.transpose(1, 2)], -1)
    torch.testing.assert_close(whole.grad, expected)


@pytest.mark.parametrize("dynamic", [None, True])
def test_backward_knows_sizes_that_no_saved_tensor_has(dynamic):
    compiled = pyrite.compile(lambda x: (x * 2).mean(), dynamic=dynamic)
    for rows in (4, 6, 9):
        x = torch.randn(rows, 3, requires_grad=True)
        compiled(x).backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 2 / x.numel()))


@pytest.mark.parametrize(
    "module",
    [
        lambda: torch.nn.Linear(5, 3),
        lambda: torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 2)),
        lambda: torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()),
    ],
    ids=["linear", "norm", "batch norm"],
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_modules_are_trained_with_symbolic_sizes(module, dynamic):
    torch.manual_seed(0)
    eager = module()
    other = module()
    other.load_state_dict(eager.state_dict())
    compiled = pyrite.compile(other, dynamic=dynamic)
    for rows in (4, 6, 9):
        x = torch.randn(rows, 5)
        for model in (eager, compiled):
            model.zero_grad()
            model(x).square().mean().backward()
        for want, have in zip(eager.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(have.grad, want.grad)


def write_chunk(x):
    y = x * 1
    y.chunk(2)[0].add_(1)
    return y


def write_part_of_split(x):
    y = x * 1
    y.split([1, 3])[1][0].mul_(2)
    return y


def write_unbound(x):
    y = x * 1
    y.unbind()[2].copy_(x[0])
    return y


@pytest.mark.parametrize("write", [write_chunk, write_part_of_split, write_unbound])
def test_one_of_several_views_is_not_written_while_gradients_are_recorded(write):
    x = torch.randn(4, 3, requires_grad=True)
    for function in (write, pyrite.compile(write)):
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            function(x)
    compiled = pyrite.compile(write, fullgraph=True)
    assert torch.equal(compiled(x.detach()), write(x.detach()))
    with torch.no_grad():
        assert torch.equal(compiled(x), write(x))


def test_statistics_of_norms_are_constants_where_they_are_in_eager():
    def norms(x):
        layer = torch.native_layer_norm(x, (4,), None, None, 1e-5)
        group = torch.native_group_norm(x, None, None, 2, 6, 4, 3, 1e-5)
        batch = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
        return *layer, *group, *batch, layer[1] * 2

    x = torch.randn(2, 6, 4, requires_grad=True)
    want, have = norms(x), pyrite.compile(norms)(x)
    assert [each.requires_grad for each in have] == [each.requires_grad for each in want]
    wanted = [each for each in want if each.requires_grad]
    tangents = [torch.randn_like(each) for each in wanted]
    (expected,) = torch.autograd.grad(wanted, x, tangents)
    (found,) = torch.autograd.grad([each for each in have if each.requires_grad], x, tangents)
    assert torch.allclose(found, expected, atol=1e-5)


def test_norms_are_differentiated_twice_through_their_statistics():
    def second(x):
        return torch.func.grad(lambda x: torch.func.grad(lambda x: torch.nn.functional.layer_norm(x, (4,)).pow(3).sum())(x).sin().sum())(x)

    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.allclose(pyrite.compile(second)(x), second(x))
