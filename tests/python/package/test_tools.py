"""Explaining, profiling and timing what `pyrite.compile` does, and saying which code it leaves alone."""

import importlib
import logging
import sys

import pytest
import torch

import pyrite as package
from pyrite import config


@pytest.fixture(autouse=True)
def fresh():
    package.reset()
    yield
    package.reset()


def broken(x):
    y = x.sin()
    print(end="")
    return y * 2 + 1


def test_explaining_composes_with_another_backend():
    seen = []

    def backend(graph, example_inputs):
        seen.append((graph.op_count, len(example_inputs)))
        return package.backends.lookup("eager")(graph, example_inputs)

    explaining = package.ExplainWithBackend(backend)
    x = torch.randn(4)
    torch.testing.assert_close(package.compile(broken, backend=explaining)(x), broken(x))
    found = explaining.output()
    assert seen == [(1, 1), (2, 1)]
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 3)
    assert explaining.op_count == 3 and len(explaining.graphs) == 2
    assert found.ops_per_graph == [["aten.sin.default"], ["aten.mul.Tensor", "aten.add.Tensor"]]
    [reason] = found.break_reasons
    assert "print" in reason.reason
    assert (reason.user_stack[-1].name, reason.user_stack[-1].lineno) == ("broken", broken.__code__.co_firstlineno + 2)
    assert any(guard.startswith("x: is a tensor") for guard in found.out_guards)
    assert len(found.guards_per_graph) == 2 and sum(found.guards_per_graph, []) == found.out_guards
    assert [row[0] for row in found.compile_times] == ["broken", "broken"]
    for part in ("Graph Count: 2", "Break Reason 1", "aten.sin.default", "x: is a tensor", "backend 0."):
        assert part in str(found)


def scaled(x, factor):
    return x * factor


def test_the_profiler_names_the_guards_that_failed():
    profiler = package.CompileProfiler()
    compiled = package.compile(scaled, backend=profiler)
    for factor in (1, 2, 3):
        compiled(torch.ones(2), factor)
    package.compile(broken, backend=profiler)(torch.ones(2))
    assert (profiler.frame_count, profiler.op_count) == (4, 5)
    text = profiler.report()
    assert "scaled" in text and "1 time: factor: has the same value" in text
    assert f"{__file__}:{scaled.__code__.co_firstlineno + 1}" in text
    assert "print" in text and f":{broken.__code__.co_firstlineno + 2})" in text


def test_the_profiler_watches_a_block():
    compiled = package.compile(scaled, backend="eager")
    with package.CompileProfiler() as profiler:
        compiled(torch.ones(2), 1)
        compiled(torch.ones(2), 2)
    compiled(torch.ones(2), 3)
    assert profiler.frame_count == 2
    assert "1 time: factor" in profiler.report()


def test_a_profiler_that_is_backend_and_block_counts_once():
    with package.CompileProfiler() as profiler:
        package.compile(scaled, backend=profiler)(torch.ones(2), 1)
    assert profiler.frame_count == 1
    assert "none" in profiler.report()


def spelled(x, factor):
    return x * ord(factor)


def test_the_limit_names_the_guard_its_line_and_how_often_it_failed():
    with config.patch(cache_size_limit=3):
        profiler = package.CompileProfiler()
        compiled = package.compile(spelled, backend=profiler)
        with pytest.warns(RuntimeWarning) as warned:
            for factor in "abcde":
                compiled(torch.ones(2), factor)
    [text] = [str(each.message) for each in warned]
    line = spelled.__code__.co_firstlineno + 1
    assert f"factor: has the same value ({__file__}:{line})" in text
    assert "`factor` failed 3 times" in text and "compiled 3 times" in text and "cache_size_limit" in text
    assert "Run plain" in profiler.report()


def test_a_change_of_grad_mode_is_a_reason_too():
    profiler = package.CompileProfiler()
    compiled = package.compile(scaled, backend=profiler)
    compiled(torch.ones(2), 1)
    with torch.no_grad():
        compiled(torch.ones(2), 1)
    assert "grad mode" in profiler.report()


def test_compile_times_know_every_stage():
    package.compile(scaled)(torch.ones(4, requires_grad=True), 2).sum().backward()
    times = package.compile_times("data")
    assert times["capture"]["count"] == times["backend"]["count"] == 1
    parts = [stage for stage in times if stage.startswith("backend.")]
    assert {"backend.functionalize", "backend.joint", "backend.partition", "backend.forward", "backend.backward"} <= set(parts)
    assert 0 < sum(times[stage]["seconds"] for stage in parts) <= times["backend"]["seconds"]
    headers, rows = package.compile_times("csv")
    assert headers == ["stage", "count", "seconds", "longest"] and [row[0] for row in rows] == list(times)
    assert "backend.joint" in package.compile_times()
    package.reset()
    assert package.compile_times("data") == {}
    with pytest.raises(ValueError, match="`yaml`"):
        package.compile_times("yaml")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library of one module, freshly imported."""
    (tmp_path / "far_away.py").write_text("def twice(x):\n    return x * 2\n\n\ndef thrice(x):\n    return x * 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("far_away")
    del sys.modules["far_away"]


def test_skipped_files_are_not_followed_unless_a_function_is_allowed(library):
    def user(x):
        return library.twice(x) + library.thrice(x)

    assert package.explain(user)(torch.ones(2)).graph_break_count == 0
    package.skip_files(library)
    found = package.explain(user)(torch.ones(2))
    assert found.graph_break_count == 2
    assert "twice" in found.break_reasons[0].reason and "not followed" in found.break_reasons[0].reason
    assert package.allow_in_graph(library.twice) is library.twice
    package.allow_in_graph([library.thrice])
    package.reset()
    assert package.explain(user)(torch.ones(2)).graph_break_count == 0


def test_skip_rules_refuse_what_they_do_not_understand():
    with pytest.raises(ValueError, match="no_such_module"):
        package.skip_files("no_such_module")
    with pytest.raises(TypeError, match="written in Python"):
        package.allow_in_graph(len)


@package.disable()
def left_alone(x):
    return x + 1


def test_disable_is_a_decorator_with_parentheses_too():
    found = package.explain(lambda x: left_alone(x * 2))(torch.ones(2))
    assert found.graph_break_count == 1
    assert left_alone(torch.zeros(1)).item() == 1


def test_each_step_is_logged_at_its_start_and_its_end(caplog):
    package.set_logs(all=True)
    try:
        package.compile(scaled)(torch.ones(2), 2)
    finally:
        package.set_logs(all=logging.NOTSET)
    said = [record.getMessage() for record in caplog.records]
    order = ["Step 1: capture of scaled starts", "Step 1: capture of scaled done", "Step 2: calling compiler function native"]
    order += ["Step 3: native compiles a graph of 1 operators", "Step 3: native done", "Step 2: done compiler function native"]
    assert [next(index for index, text in enumerate(said) if text.startswith(start)) for start in order] == sorted(
        next(index for index, text in enumerate(said) if text.startswith(start)) for start in order
    )
    assert any("aten.mul" in text for text in said)


def test_a_debug_function_is_the_only_one_that_is_captured():
    def inner(x):
        return x * 2

    def outer(x):
        return inner(x) + 1

    with config.patch(debug_function="inner"):
        found = package.explain(outer)(torch.ones(2))
    assert found.ops_per_graph == [["aten.mul.Tensor"]]
    with config.patch(debug_function="no_such_function"):
        package.reset()
        assert package.explain(outer)(torch.ones(2)).graph_count == 0


def failing(graph, example_inputs):
    raise KeyError("no kernel for you")


def test_an_error_of_a_backend_names_the_code_it_is_about():
    with pytest.raises(KeyError) as failure:
        package.compile(scaled, backend=failing)(torch.ones(2), 2)
    [note] = failure.value.__notes__
    assert "`failing`" in note and "scaled" in note and __file__ in note and "PYRITE_VERBOSE" in note
    with config.patch(verbose=True), pytest.raises(KeyError) as failure:
        package.compile(scaled, backend=failing)(torch.ones(2), 2)
    [note] = failure.value.__notes__
    assert "most recent call last" in note and "test_an_error_of_a_backend_names_the_code_it_is_about" in note
    assert "_capture.py" not in note
    with config.patch(suppress_errors=True):
        assert package.compile(scaled, backend=failing)(torch.ones(2), 2).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("cache_size_limit", "many", TypeError),
        ("cache_size_limit", -1, ValueError),
        ("cache_size_limit", True, TypeError),
        ("strict", "yes", TypeError),
        ("strict", 1, TypeError),
        ("debug_dir", 3, TypeError),
        ("accuracy", "exact", ValueError),
        ("repro_level", 5, ValueError),
        ("repro_after", "inductor", ValueError),
        ("collective_timeout", "long", TypeError),
        ("debug_function", 3, TypeError),
    ],
)
def test_a_setting_says_which_values_it_takes(name, value, error):
    for change in (lambda: setattr(package.config, name, value), lambda: package.config.patch(**{name: value}).__enter__()):
        with pytest.raises(error, match=f"pyrite.config.{name} .*{value!r}"):
            change()
    before = getattr(package.config, name)
    setattr(package.config, name, before)


def test_a_misspelt_setting_gets_the_name_that_was_meant():
    with pytest.raises(AttributeError, match="did you mean `cache_size_limit`"):
        package.config.cache_size_limt = 3


def test_what_was_explained_has_a_short_form_and_one_for_notebooks():
    found = package.explain(lambda x: x.sin() + 1)(torch.ones(2))
    assert repr(found) == "<Explanation: 1 graphs, 0 breaks, 2 operators>"
    assert "<table>" in found._repr_html_() and "aten.sin" in found._repr_html_()


def test_a_misspelt_option_of_the_debugger_gets_the_name_that_was_meant():
    from pyrite import torch_backend

    with pytest.raises(ValueError, match="no option `repro_levl`; did you mean `repro_level`"):
        torch_backend.pyrite_debug(torch.nn.Identity(), [], options={"repro_levl": 3})
