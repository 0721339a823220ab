"""Tracers and transforms that meet a compiled function see its operators, or are refused; results are never frozen."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import pyrite


def function(x):
    return x.sin() * 3 + x.sum()


MODULE = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())


def by_capture(f):
    return pyrite.compile(f)


def by_torch(f):
    return torch.compile(f, backend="pyrite")


@pytest.fixture(autouse=True)
def fresh():
    pyrite.reset()
    torch._dynamo.reset()


@pytest.fixture(params=[by_capture, by_torch], ids=["pyrite.compile", "torch.compile"])
def compile(request):
    return request.param


@pytest.fixture(params=["cold", "warm"])
def compiled(request, compile):
    """A compiled function, before and after its first call."""
    made = compile(function)
    if request.param == "warm":
        made(torch.randn(4))
    return made


def no_wrong_answer(make, expected):
    """What a tracer gives for a compiled function is right for other inputs too; being refused is fine."""
    try:
        made = make()
    except Exception as error:
        assert not isinstance(error, AssertionError), error
        return
    for _ in range(3):
        x = torch.randn(4)
        torch.testing.assert_close(made(x), expected(x))


def test_make_fx_records_the_operators(compiled):
    for mode in ("real", "fake", "symbolic"):
        no_wrong_answer(lambda mode=mode: make_fx(lambda x: compiled(x) * 2, tracing_mode=mode)(torch.randn(4)), lambda x: function(x) * 2)


def test_make_fx_of_a_captured_function_is_not_refused():
    compiled = pyrite.compile(function)
    compiled(torch.randn(4))
    traced = make_fx(lambda x: compiled(x) * 2)(torch.randn(4))
    x = torch.randn(4)
    torch.testing.assert_close(traced(x), function(x) * 2)
    assert "sin" in traced.code


def test_symbolic_trace_records_the_operators(compiled):
    no_wrong_answer(lambda: torch.fx.symbolic_trace(lambda x: compiled(x) * 2), lambda x: function(x) * 2)


def test_jit_trace_records_the_operators(compiled):
    no_wrong_answer(lambda: torch.jit.trace(lambda x: compiled(x) * 2, (torch.randn(4),), check_trace=False), lambda x: function(x) * 2)


def test_export_records_the_operators(compiled):
    class Holder(torch.nn.Module):
        def forward(self, x):
            return compiled(x) * 2

    no_wrong_answer(lambda: torch.export.export(Holder(), (torch.randn(4),)).module(), lambda x: function(x) * 2)


def test_transforms_of_functions_go_through(compiled):
    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.vmap(compiled)(x), torch.vmap(function)(x))
    gradient = torch.func.grad(lambda t: compiled(t).sum())
    torch.testing.assert_close(gradient(x[0]), torch.func.grad(lambda t: function(t).sum())(x[0]))
    torch.testing.assert_close(torch.func.jacrev(compiled)(x[0]), torch.func.jacrev(function)(x[0]))
    found, tangent = torch.func.jvp(compiled, (x[0],), (x[1],))
    expected, reference = torch.func.jvp(function, (x[0],), (x[1],))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(tangent, reference)


def test_forward_mode_tangents_are_kept_or_refused(compiled):
    import torch.autograd.forward_ad as forward

    x, v = torch.randn(4), torch.randn(4)
    with forward.dual_level():
        expected = forward.unpack_dual(function(forward.make_dual(x, v))).tangent
        try:
            found = compiled(forward.make_dual(x, v))
        except Exception:
            return
        torch.testing.assert_close(forward.unpack_dual(found).tangent, expected)


def test_fake_tensors_stay_fake(compiled):
    with FakeTensorMode() as mode:
        inside = compiled(torch.empty(4))
        given = mode.from_tensor(torch.randn(4))
    assert isinstance(inside, FakeTensor) and inside.shape == (4,)
    try:
        outside = compiled(given)
    except Exception:
        return
    assert isinstance(outside, FakeTensor)


def test_meta_tensors_stay_meta(compiled):
    found = compiled(torch.empty(4, device="meta"))
    assert found.device.type == "meta" and found.shape == (4,)
    x = torch.randn(4)
    torch.testing.assert_close(compiled(x), function(x))


def test_dispatch_modes_see_every_operator(compiled):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            seen.append(str(op))
            return op(*args, **(kwargs or {}))

    seen = []
    x = torch.randn(4)
    with Seen():
        found = compiled(x)
    torch.testing.assert_close(found, function(x))
    assert "aten.sin.default" in seen


def test_modules_that_are_compiled_are_traced_too(compile):
    compiled = compile(MODULE)
    x = torch.randn(3, 4)
    compiled(x)
    torch.testing.assert_close(torch.vmap(compiled)(x), MODULE(x))
    torch.testing.assert_close(torch.func.jacrev(compiled)(x[0]), torch.func.jacrev(MODULE)(x[0]))


def test_tensor_subclasses_run_as_they_are_or_are_refused(compile):
    class Tagged(torch.Tensor):
        pass

    x = torch.randn(4).as_subclass(Tagged)
    compiled = compile(function)
    found = compiled(x)
    torch.testing.assert_close(found.as_subclass(torch.Tensor), function(x).as_subclass(torch.Tensor))
