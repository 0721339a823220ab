"""`torch.compile(m, backend="pyrite")`: torch captures, Pyrite compiles."""

import warnings

import pyrite
import pytest
import torch
import torch.nn.functional as F
from pyrite import aot

from models import measured


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(fn, dynamic=None, **options):
    return torch.compile(fn, backend="pyrite", options={"strict": True, **options}, dynamic=dynamic)


def step(call, module, inputs):
    """Output and gradients of one training step."""
    module.zero_grad(set_to_none=True)
    out = call(*inputs)
    out.float().square().mean().backward()
    return [out.detach(), *(p.grad for p in module.parameters())]


def far(found, expected):
    """How far apart two tensors are, against the size of the second; two that are missing are equal."""
    if found is None and expected is None:
        return 0
    return ((found - expected).norm() / (expected.norm() + 1e-6)).item()


def test_both_backends_are_found_by_their_entry_points():
    assert {"pyrite", "pyrite_debug"} <= set(torch._dynamo.list_backends(None))


@pytest.mark.parametrize("name", measured.MODELS)
def test_a_model_trains_and_infers_as_in_eager(name):
    module, inputs = measured.build(name)
    call = compiled(module)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    expected = step(module, module, inputs)
    after = {key: value.clone() for key, value in module.state_dict().items()}
    module.load_state_dict(state)
    found = step(call, module, inputs)
    assert all(far(a, b) < 2e-2 for a, b in zip(found, expected, strict=True))
    assert far(found[0], expected[0]) < 1e-4
    assert all(far(value.double(), after[key].double()) < 1e-4 for key, value in module.state_dict().items())
    module.eval()
    with torch.no_grad():
        assert far(call(*inputs), module(*inputs)) < 1e-4


def test_sizes_that_are_marked_dynamic_stay_symbolic():
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    graphs = []

    def counting(graph, example_inputs, **settings):
        from pyrite import torch_backend

        graphs.append(graph)
        return torch_backend.pyrite(graph, example_inputs, options={"strict": True})

    call = torch.compile(module, backend=counting)
    for batch in (5, 7, 64):
        x = torch.randn(batch, 8)
        torch._dynamo.mark_dynamic(x, 0)
        found, expected = step(call, module, (x,)), step(module, module, (x,))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert len(graphs) == 1


def test_views_and_sizes_of_dynamic_inputs_are_outputs():
    def views(x):
        return x.t(), x.view(-1), x * 2, x.shape[0] * 3

    call = compiled(views, dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 4)
        found, expected = call(x), views(x)
        assert found[3] == expected[3] and found[0]._base is x
        torch.testing.assert_close(found[:3], expected[:3])


def test_switches_of_gradients_and_autocast_are_no_opaque_calls():
    def switched(x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x, y

    x = torch.randn(4, 4, requires_grad=True)
    found, expected = compiled(switched)(x), switched(x)
    assert found[0].dtype == torch.bfloat16 and found[0].requires_grad and not found[1].requires_grad
    torch.testing.assert_close(found, expected)


def test_a_training_loop_learns():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))
    call = compiled(module)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    x = torch.randn(256, 4)
    y = x.prod(1, keepdim=True).tanh()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (call(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_seeds_rule_what_is_drawn():
    def noisy(x):
        return torch.nn.functional.dropout(x, 0.3) + torch.rand_like(x)

    x = torch.randn(50)
    call = compiled(noisy)
    call(x)
    torch.manual_seed(11)
    expected = noisy(x)
    torch.manual_seed(11)
    assert torch.equal(call(x), expected)


def test_tensors_of_the_module_that_no_text_has_are_inputs():
    table = torch.randn(5, 3)
    torch._dynamo.reset()

    def look_up(x):
        return x + torch.tensor([1.0, 2.0, 3.0]) + table.sum(0)

    x = torch.randn(4, 3)
    torch.testing.assert_close(compiled(look_up)(x), look_up(x))


@torch.library.custom_op("pyrite_tests::odd", mutates_args=())
def odd(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@odd.register_fake
def _(x):
    return torch.empty_like(x)


odd.register_autograd(lambda ctx, gradient: gradient * 2)


@torch.library.custom_op("pyrite_tests::counted", mutates_args={"count"})
def counted(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    count.add_(1)
    return x * 3


@counted.register_fake
def _(x, count):
    return torch.empty_like(x)


@pytest.mark.parametrize("dynamic", [None, True])
def test_operators_that_pyrite_does_not_know_are_run_by_torch(dynamic):
    def strange(x):
        return odd(x * 2).sin() * 2

    x = torch.ones(3, requires_grad=True)
    expected = torch.autograd.grad(strange(x).sum(), x)
    with aot.observed() as regions:
        found = compiled(strange, dynamic)(x)
        torch.testing.assert_close(found, strange(x))
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x), expected)
    assert [each.name for each in regions[0].opaque] == ["pyrite_tests.odd.default"]
    assert regions[0].segments == 3 and not regions[0].is_eager
    torch._dynamo.reset()
    with pytest.raises(Exception, match="pyrite_tests.odd"):
        compiled(strange, dynamic, opaque="error")(x)


@pytest.mark.parametrize("dynamic", [None, True])
def test_operators_of_the_user_write_to_their_arguments(dynamic):
    def strange(x, count):
        return counted(x + 1, count) * count, count * 2

    count, other = torch.zeros(()), torch.zeros(())
    call = compiled(strange, dynamic)
    for rows in (3, 5):
        x = torch.randn(rows, 2)
        torch.testing.assert_close(call(x, count), strange(x, other))
        assert count == other


def test_a_region_that_cannot_be_compiled_runs_eagerly_with_a_warning(monkeypatch):
    def refuse(*arguments):
        raise pyrite.CompileError("not today")

    monkeypatch.setattr(aot, "segment_program", refuse)
    x = torch.ones(3)
    with pytest.warns(pyrite.FallbackWarning, match="not today"):
        assert torch.compile(torch.sin, backend="pyrite")(x).tolist() == x.sin().tolist()
    torch._dynamo.reset()
    with pytest.raises(Exception, match="not today"):
        compiled(torch.sin)(x)


def test_branches_and_loops_of_higher_order_operators_are_compiled():
    def branching(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() - 1, (x,)) * 2

    with aot.observed() as regions:
        call = compiled(branching)
        for x in (torch.ones(3), -torch.ones(3)):
            torch.testing.assert_close(call(x), branching(x))
    assert [each.name for each in regions[0].opaque] == ["higher_order.cond"]


def test_modes_of_torch_compile_are_accepted():
    for mode in ("default", "reduce-overhead", "max-autotune"):
        torch._dynamo.reset()
        assert torch.compile(torch.sin, backend="pyrite", mode=mode)(torch.zeros(3)).tolist() == [0, 0, 0]
    torch._dynamo.reset()
    with pytest.raises(Exception, match="there is no mode"):
        torch.compile(torch.sin, backend="pyrite", mode="fastest")(torch.zeros(3))


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_of_where_all_goes_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error", pyrite.FallbackWarning)
        x = torch.randn(4)
        torch.testing.assert_close(compiled(lambda x: x.sin() @ x)(x), x.sin() @ x)


def test_another_backend_of_pyrites_is_chosen_by_options():
    x = torch.randn(4)
    torch.testing.assert_close(compiled(torch.sin, backend="aot_eager")(x), x.sin())


def test_a_slice_that_is_written_after_a_copy_stays_in_fused_kernels():
    def both(x, y):
        return torch.slice_scatter(x, y, 1, 0, 2) + torch.select_scatter(x, y[:, 0], 1, 3)

    x, y = torch.randn(4, 6), torch.randn(4, 2)
    assert torch.equal(compiled(both)(x, y), both(x, y))


def test_an_exported_program_is_compiled(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.PReLU()).eval()
    program = torch.export.export(module, (torch.randn(5, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, tmp_path / "model.pt2")
    call = compiled(torch.export.load(tmp_path / "model.pt2").module())
    for rows in (5, 7):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(call(x), module(x))


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_depend_on_data_may_be_none_and_one(dynamic):
    def positive(x):
        y = x[x > 0]
        return y * 2, y.sum(), y[None] * torch.ones(3, 1), torch.cat([y, y]), y.view(-1, 1) + y

    def cut(x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k] * 2, torch.zeros(k).sum(), torch.arange(k), x * k

    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        call = compiled(positive, dynamic)
        for values in ([1.0, 2, -1, 3], [-1.0, -2, -1, 3], [-1.0, -2, -1, -3], [1.0, 2, 1, 3]):
            x = torch.tensor(values)
            torch.testing.assert_close(call(x), positive(x))
        call = compiled(cut, dynamic)
        for count in (3, 1, 0, 5):
            given = torch.ones(5, 2), torch.tensor(count)
            torch.testing.assert_close(call(*given), cut(*given))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8, torch.bool, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("way", ["torch.compile", "pyrite.compile"])
def test_a_size_is_a_number_to_compute_with_in_every_type(dtype, way):
    def numbers(x):
        n = x.shape[0]
        filled = torch.full((3,), n, dtype=dtype), torch.full_like(x, n, dtype=dtype), torch.ones(2, dtype=dtype).fill_(n)
        return *filled, torch.ones(2, dtype=dtype) * n, torch.arange(n, 3 * n, n // 2), torch.arange(n, 0, -2), torch.tensor([n, x.shape[1]]), torch.tensor([[n], [0.5]]), x.new_tensor(n), torch.tensor(n, dtype=dtype), x**n, torch.add(x, x, alpha=n)

    if way == "torch.compile":
        compiled = torch.compile(numbers, backend="pyrite", options={"strict": True}, dynamic=True)
    else:
        compiled = pyrite.compile(numbers, dynamic=True, fullgraph=True)
    for size in (4, 7):
        x = torch.randn(size, 2)
        for have, want in zip(compiled(x), numbers(x)):
            torch.testing.assert_close(have, want)


def test_dropout_of_everything_draws_no_random_numbers():
    def drop(x):
        return F.dropout(x, 1.0), F.dropout(x, 0.5), torch.rand(2)

    x = torch.randn(8, 8)
    torch.manual_seed(0)
    want = drop(x)
    torch.manual_seed(0)
    have = torch.compile(drop, backend="pyrite", options={"strict": True})(x)
    assert all(torch.equal(a, b) for a, b in zip(have, want))
