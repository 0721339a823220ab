"""The switches of torch.compile hold for functions that Pyrite compiles, and its counting backends count them."""

import pyrite
import pytest
import torch
import torch._dynamo
from torch._dynamo.testing import AotEagerAndRecordGraphs, CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs


def scaled(x, n):
    return x * n


def long(x, text):
    return x * len(text)


def called(function, calls, **options):
    """How many graphs some calls lead to."""
    counter = CompileCounter()
    compiled = pyrite.compile(function, backend=counter, **options)
    for arguments in calls:
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return counter.frame_count


TEXTS = [(torch.ones(3), "a" * n) for n in range(1, 6)]
NUMBERS = [(torch.ones(3), n) for n in range(2, 6)]
FLOATS = [(torch.ones(3), n + 0.5) for n in range(2, 6)]
SIZES = [(torch.ones(n), 2) for n in range(2, 6)]


@pytest.mark.parametrize(
    ("settings", "function", "calls", "graphs"),
    [
        ({"recompile_limit": 2}, long, TEXTS, 2),
        ({"cache_size_limit": 1}, long, TEXTS, 1),
        ({}, long, TEXTS, 5),
        ({"specialize_int": True}, scaled, NUMBERS, 4),
        ({}, scaled, NUMBERS, 2),
        ({"specialize_float": True}, scaled, FLOATS, 4),
        ({"automatic_dynamic_shapes": False}, scaled, SIZES, 4),
        ({"assume_static_by_default": False}, scaled, SIZES, 1),
        ({}, scaled, SIZES, 2),
        ({"disable": True}, scaled, SIZES, 0),
    ],
)
def test_settings_of_torch_decide_what_is_compiled(settings, function, calls, graphs):
    pyrite.reset()
    with torch._dynamo.config.patch(**settings):
        assert called(function, calls) == graphs


def test_settings_of_torch_make_a_second_compilation_an_error():
    pyrite.reset()
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(torch._dynamo.exc.RecompileError, match="long"):
        called(long, TEXTS)
    pyrite.reset()
    limited = torch._dynamo.config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True)
    with limited, pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="2 times"):
        called(long, TEXTS)


def test_stances_hold_for_compiled_functions():
    counter = CompileCounter()
    function = pyrite.compile(scaled, backend=counter)
    with torch.compiler.set_stance("force_eager"):
        function(torch.ones(3), 2)
    assert counter.frame_count == 0
    function(torch.ones(3), 2)
    with torch.compiler.set_stance("eager_on_recompile"):
        torch.testing.assert_close(function(torch.ones(3, 3), 2), torch.full((3, 3), 2.0))
    assert counter.frame_count == 1
    with torch.compiler.set_stance("fail_on_recompile"):
        function(torch.ones(3), 2)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            function(torch.ones(3, 3), 2)


@pytest.mark.parametrize("reset", [torch._dynamo.reset, torch.compiler.reset, pyrite.reset])
def test_a_reset_forgets_what_was_compiled(reset):
    counter = CompileCounter()
    function = pyrite.compile(scaled, backend=counter)
    for _ in range(2):
        function(torch.ones(3), 2)
        reset()
    assert counter.frame_count == 2


def test_a_failing_backend_is_suppressed_where_torch_is_told_to():
    def failing(module, example_inputs):
        raise RuntimeError("no")

    with torch._dynamo.config.patch(suppress_errors=True):
        assert pyrite.compile(scaled, backend=failing)(torch.ones(3), 2).sum() == 6
    with pytest.raises(RuntimeError, match="no"):
        pyrite.compile(scaled, backend=failing)(torch.ones(2), 2)


def test_a_break_is_an_error_of_both_compilers():
    def breaking(x):
        print(end="")
        return x + 1

    for kind in (pyrite.GraphBreakError, torch._dynamo.exc.Unsupported):
        with pytest.raises(kind, match="print"):
            pyrite.compile(breaking, backend="eager", fullgraph=True)(torch.ones(3))


def test_nothing_is_compiled_where_it_is_disabled():
    assert pyrite.compile(scaled, disable=True) is scaled
    assert pyrite.compile(disable=True)(scaled) is scaled


@pytest.mark.parametrize("backend", [lambda: CompileCounterWithBackend("aot_eager"), EagerAndRecordGraphs, AotEagerAndRecordGraphs])
def test_recording_backends_get_a_graph_with_gradients(backend):
    recording = backend()
    x = torch.ones(3, requires_grad=True)
    pyrite.compile(lambda x: x.sin() + x.cos(), backend=recording)(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(3).cos() - torch.ones(3).sin())
    assert len(recording.graphs) == 1
