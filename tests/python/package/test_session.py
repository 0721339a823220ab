"""Sessions and comparisons as a Python program meets them."""

import math
import pathlib
import subprocess
import sys
import types

import numpy
import pyrite
import pytest
import torch

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
BROKEN = "relu_accuracy_error_TESTING_ONLY"


def test_a_session_on_a_file_gives_what_the_command_prints(tmp_path):
    said = []
    found = pyrite.debug.session(EXAMPLES / "relu_chain.py", backend=BROKEN, out=tmp_path / "found", progress=said.append)
    assert found and found.outcome == "proven" and "proven in a fresh process" in found.proof
    assert "aten.relu" in found.program and found.folder == tmp_path / "found"
    assert found.repro.is_file() and found.report.is_file()
    assert found.data["minify"]["nodes_after"] == 3 and found.data["minify"]["nodes_before"] == 9
    assert [step for step, _ in found.steps][0] == "confirm" and any(line.startswith("bisect: ") for line in said)
    assert "proven" in repr(found) and str(found.folder) in repr(found)
    shown = found._repr_html_()
    assert shown.startswith("<iframe") and 'sandbox="allow-scripts"' in shown and "<script" not in shown
    assert "aten.relu" in shown and "proven" in shown and "How sure" in shown
    alone = pyrite.debug.Session({**found.data, "folder": None})._repr_html_()
    assert alone.startswith("<div>") and "aten.relu" in alone and "proven" in alone
    with pytest.raises(ValueError, match="the results of another run"):
        pyrite.debug.session(EXAMPLES / "relu_chain.py", backend=BROKEN, out=tmp_path / "found", progress=None)


def test_a_session_on_a_call_debugs_what_torch_compile_captures(tmp_path):
    def function(x, *, scale):
        return torch.relu(torch.sin(x) * scale).sum()

    with pyrite.config.patch(debug_dir=str(tmp_path / "regions")):
        found = pyrite.debug.session(
            function, args=(torch.randn(8),), kwargs={"scale": 2.0}, backend=BROKEN, out=tmp_path / "found", progress=None
        )
        assert found.outcome == "proven" and "aten.relu" in found.program
        fine = pyrite.debug.session(function, args=(torch.randn(8),), kwargs={"scale": 2.0}, backend="eager", progress=None)
    assert not fine and fine.outcome == "pass" and "no failure" in str(fine) and fine.folder is None
    with pytest.raises(ZeroDivisionError):
        pyrite.debug.session(lambda x: x / (1 // 0), args=(torch.ones(1),), backend="eager", progress=None)


def test_a_misspelt_option_is_refused_with_what_was_meant(tmp_path):
    with pytest.raises(TypeError, match="did you mean `time_budget`"):
        pyrite.debug.session(EXAMPLES / "relu_chain.py", time_buget=3)
    with pytest.raises(TypeError, match="a file has its own inputs"):
        pyrite.debug.session(EXAMPLES / "relu_chain.py", args=(1,))
    with pytest.raises(ValueError, match="there is no backend `naitve`"):
        pyrite.debug.session(EXAMPLES / "relu_chain.py", backend="naitve", progress=None)


def sparse(values, layout=torch.sparse_coo):
    return torch.tensor([[0.0, values], [3.0, 0.0]]).to_sparse(layout=layout)


SAME = [
    ({"n": 3}, {"n": 3}),
    ([1, 2.0, None, "text", True], [1, 2.0, None, "text", True]),
    ((torch.ones(3), {"a": [torch.zeros(2, dtype=torch.int64)]}), (torch.ones(3), {"a": [torch.zeros(2, dtype=torch.int64)]})),
    (sparse(2.0), sparse(2.0)),
    (torch.tensor([math.nan]), torch.tensor([math.nan])),
    (2**80, 2**80),
    (numpy.arange(4), numpy.arange(4)),
    (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 2j])),
    (torch.tensor([1, 2], dtype=torch.uint16), torch.tensor([1, 2], dtype=torch.uint16)),
    (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2).to(torch.float8_e4m3fn)),
]

OTHER = [
    ({"n": 3}, {"n": 4}),
    ({"n": 3}, {"m": 3}),
    ([1, 2], [1, 2, 3]),
    ([], {}),
    ("a", "b"),
    (None, 0),
    (1.0, 1.5),
    (2**80, 2**80 + 1),
    (True, False),
    (sparse(2.0), sparse(2.5)),
    (sparse(2.0), sparse(2.0, torch.sparse_csr)),
    (sparse(2.0), sparse(2.0).to_dense()),
    (torch.ones(3), torch.ones(3, dtype=torch.float64)),
    (torch.ones(2, 3), torch.ones(3, 2)),
    ({"a": {"b": [torch.ones(2)]}}, {"a": {"b": [torch.zeros(2)]}}),
    (torch.tensor([1, 2], dtype=torch.uint16), torch.tensor([1, 3], dtype=torch.uint16)),
    (torch.ones(2).to(torch.float8_e4m3fn), torch.zeros(2).to(torch.float8_e4m3fn)),
    (torch.zeros(2, dtype=torch.uint64), torch.ones(2, dtype=torch.uint64)),
]


def test_everything_that_is_given_is_compared():
    for expected, actual in SAME:
        found = pyrite.debug.same(expected, actual)
        assert found and found.verdict == "pass", (expected, actual, str(found))
    for expected, actual in OTHER:
        found = pyrite.debug.same(expected, actual)
        assert not found and found.verdict == "fail" and found.lines, (expected, actual, str(found))
        assert "<pre>" in found._repr_html_() and repr(found).startswith("<Comparison: ")


def test_a_comparison_overlooks_what_it_is_told_to():
    near, exact = torch.tensor([1.0]), torch.tensor([1.0005])
    assert not pyrite.debug.same(near, exact) and pyrite.debug.same(near, exact, tol=1e-2)
    assert pyrite.debug.same(torch.ones(2), torch.ones(2, dtype=torch.float64), check_dtype=False)
    assert pyrite.debug.same({"n": 3}, {"n": 4}, check_non_float=False) or pyrite.debug.same(3, 3, relaxed_numbers=True)
    assert not pyrite.debug.same(torch.tensor([math.nan]), torch.tensor([math.nan]), equal_nan=False)
    assert not pyrite.debug.same(torch.tensor([1.0]), torch.tensor([1.0000001]), accuracy="strict")


class Shell:
    """As much of IPython's shell as a cell magic needs."""

    def __init__(self):
        self.magics, self.namespace = {}, {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, cell):
        error = None
        try:
            exec(cell, self.namespace)
        except Exception as raised:
            error = raised

        def raise_error():
            if error is not None:
                raise error

        return types.SimpleNamespace(raise_error=raise_error)


CELL = """
import torch
function = torch.compile(lambda x: torch.relu(x.sin()).sum())
function(torch.arange(6.0) - 3)
"""


def test_a_cell_of_a_notebook_is_debugged(tmp_path):
    shell = Shell()
    pyrite.load_ipython_extension(shell)
    debug = shell.magics["cell", "pyrite_debug"]
    with pyrite.config.patch(debug_dir=str(tmp_path / "regions")):
        found = debug(f"--backend {BROKEN} --out={tmp_path / 'found'}", CELL)
        assert found.outcome == "proven" and "aten.relu" in found.program
        assert debug("--backend eager", CELL).outcome == "pass"
        with pytest.raises(TypeError, match="did you mean `backend`"):
            debug("--backnd eager", CELL)
        with pytest.raises(NameError):
            debug("--backend eager", "nobody")


def test_the_example_in_python_runs(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLES / "debug_a_function.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "<Session: proven" in done.stdout and "aten.relu" in done.stdout
    assert "1 of 2 values compared differ" in done.stdout


def test_graphs_and_explanations_show_themselves():
    explanation = pyrite.explain(lambda x: torch.relu(x) * 2)(torch.ones(2))
    assert "relu" in explanation._repr_html_() and "1 graphs" in repr(explanation)
    shown = explanation.graphs[0]._repr_html_()
    assert shown.startswith("<pre>") and "relu" in shown and "-&gt;" not in repr(explanation.graphs[0])
