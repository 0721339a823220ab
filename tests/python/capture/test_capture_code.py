"""Code objects through the decoder and the assembler, and what `pyrite.compile` promises apart from results."""

import inspect
import sys
import types
import warnings

import pyrite
import pytest
import torch
from pyrite import _native


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def loaded_code():
    for name in ("argparse", "ast", "collections", "dataclasses", "inspect", "json.decoder", "typing", "torch.nn.functional"):
        __import__(name)
        yield from code_objects(compile(inspect.getsource(sys.modules[name]), name, "exec"))


def rebuilt(code):
    """The code and all code inside it, decoded and assembled again."""
    made, exceptions = _native.reassembled(code)
    constants = tuple(rebuilt(constant) if isinstance(constant, types.CodeType) else constant for constant in code.co_consts)
    return code.replace(co_code=made, co_exceptiontable=exceptions, co_consts=constants)


def test_decoding_and_assembling_gives_the_same_code():
    seen = 0
    for code in loaded_code():
        # From 3.12 on some instructions are taken apart, and stay so.
        expected = code if sys.version_info < (3, 12) else rebuilt(code)
        assert _native.reassembled(expected) == (expected.co_code, expected.co_exceptiontable), code
        seen += 1
    assert seen > 1000


def test_assembled_code_does_what_the_original_did():
    import json.decoder
    import textwrap

    for module, ask in (
        (json.decoder, lambda names: names["JSONDecoder"]().decode('{"a": [1, 2.5, {"b": null}], "c": "\\u00e4"}')),
        (textwrap, lambda names: names["fill"]("one two three four five six seven eight nine ten", width=12)),
    ):
        names = {"__name__": "assembled"}
        exec(rebuilt(compile(inspect.getsource(module), module.__name__, "exec")), names)
        assert ask(names) == ask(vars(module))


def example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_the_example_of_the_documentation_is_three_graphs_with_two_breaks(capsys):
    explanation = pyrite.explain(example)(torch.randn(10), torch.ones(10))
    assert capsys.readouterr().out == "woo\n"
    counts = (explanation.graph_count, explanation.graph_break_count, explanation.op_count)
    assert counts == (3, 2, 6)
    first, second = explanation.break_reasons
    lines, start = inspect.getsourcelines(example)
    place = {text.strip(): start + index for index, text in enumerate(lines)}
    assert "print" in first.reason and first.user_stack[-1].lineno == place['print("woo")']
    assert "data" in second.reason and second.user_stack[-1].lineno == place["if b.sum() < 0:"]
    assert first.user_stack[-1].filename == __file__
    assert [len(ops) for ops in explanation.ops_per_graph] == [3, 2, 1]


def test_a_break_is_an_error_where_one_graph_is_wanted():
    with pytest.raises(pyrite.GraphBreakError, match="a call of print") as raised:
        pyrite.compile(example, fullgraph=True)(torch.randn(10), torch.ones(10))
    assert __file__ in str(raised.value) and "Help" in str(raised.value)


def test_a_function_that_is_compiled_too_often_says_so_and_runs_plain():
    @pyrite.compile(backend="eager")
    def scaled(x, factor):
        return x * len(factor)

    with pyrite.config.patch(cache_size_limit=2), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = pyrite.compile(scaled._pyrite_original, backend="eager")
        for factor in range(5):
            assert torch.equal(compiled(torch.ones(3), "f" * factor), torch.full((3,), float(factor)))
    messages = [str(warning.message) for warning in caught]
    assert any("factor" in message and "cache_size_limit" in message and "test_capture_code.py" in message for message in messages)


def test_a_size_that_changes_becomes_a_symbol():
    compiled_sizes = []

    def backend(graph, inputs):
        compiled_sizes.append(tuple(inputs[0].shape))
        return _native.compile(graph, "eager", None, tuple(inputs))

    compiled = pyrite.compile(lambda x: (x * 2).sum(0), backend=backend)
    for rows in (3, 4, 5, 6, 7):
        x = torch.randn(rows, 2)
        assert torch.allclose(compiled(x), (x * 2).sum(0))
    assert compiled_sizes == [(3, 2), (4, 2)]


def test_a_backend_is_one_function():
    seen = []

    def backend(graph, inputs):
        seen.append((graph.op_count, len(inputs)))
        return lambda *args: [args[0] + 1]

    assert torch.equal(pyrite.compile(lambda x: x * 2, backend=backend)(torch.ones(2)), torch.full((2,), 2.0))
    assert seen == [(1, 1)]


def test_the_default_backend_compiles_and_differentiates():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    compiled = pyrite.compile(model)
    x = torch.randn(3, 4)
    loss = compiled(x).square().sum()
    loss.backward()
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    for have, parameter in zip(found, model.parameters()):
        torch.testing.assert_close(have, parameter.grad)
    assert compiled.state_dict().keys() == model.state_dict().keys()
    assert compiled.train(False) is compiled and not model.training


def test_disabled_functions_run_plain():
    plain = pyrite.disable(lambda x: x + 1)
    explanation = pyrite.explain(lambda x: plain(x * 2) * 3)(torch.ones(2))
    assert explanation.graph_break_count >= 1
    assert explanation.op_count == 2


def test_capture_and_torch_compile_live_side_by_side():
    def double(x):
        return x * 2 + 1

    ours, theirs = pyrite.compile(double, backend="eager"), torch.compile(double, backend="eager")
    x = torch.ones(3)
    for _ in range(2):
        assert torch.equal(ours(x), theirs(x))
        # A further compiler puts its hook in place while torch's is there too.
        assert torch.equal(theirs(x), pyrite.compile(double, backend="eager")(x))
        assert torch.equal(torch.compile(lambda y: ours(y) + 1, backend="eager")(x), double(x) + 1)
