"""A backend of `pyrite.compile` that fails, or computes a different result, leaves a repro: levels 1 to 4, after capture and after autograd."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import pyrite as package
from pyrite import AccuracyError, config

HERE = pathlib.Path(__file__).parent


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    package.reset()
    with config.patch(debug_dir=str(tmp_path / "debug")):
        yield
    package.reset()


def model(x, w):
    return ((x @ w).relu() * 2).sum(1) + x.mean(1)


def inputs():
    return torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)


def files(tmp_path):
    return sorted(str(path.relative_to(tmp_path / "debug")) for path in (tmp_path / "debug").rglob("*.py") if path.parent.name != "trace")


def failing_on_relu(graph, example_inputs):
    if any("relu" in node.target for node in graph.nodes if node.op == "call_function"):
        raise KeyError("no relu here")
    return package.backends.lookup("eager")(graph, example_inputs)


def wrong_on_relu(graph, example_inputs):
    eager = package._native.compile(graph, "eager", None, tuple(example_inputs))
    wrong = any("relu" in node.target for node in graph.nodes if node.op == "call_function")
    return lambda *arguments: [out + 1 if wrong else out for out in eager(*arguments)]


@pytest.mark.parametrize(
    ("level", "names"),
    [
        (1, ["graph_1/repro.py"]),
        (2, ["graph_1/minified/repro.py", "graph_1/minifier_launcher.py"]),
        (3, ["graph_1/minified/repro.py", "graph_1/repro.py"]),
        (4, ["graph_1/minified/repro.py", "graph_1/minifier_launcher.py"]),
    ],
)
def test_an_error_leaves_what_its_level_says(tmp_path, level, names):
    with config.patch(repro_after="capture", repro_level=level), pytest.raises(RuntimeError) as failure:
        package.compile(model, backend="relu_runtime_error_TESTING_ONLY")(*inputs())
    assert files(tmp_path) == names
    last = pathlib.Path(str(failure.value).splitlines()[-1])
    assert last == tmp_path / "debug" / names[0]
    text = last.read_text()
    assert "aten.relu" in text and ("aten.mean" in text) == (level == 1)


def test_after_autograd_each_half_is_a_program_of_its_own(tmp_path):
    with config.patch(repro_after="aot", repro_level=2), pytest.raises(RuntimeError):
        package.compile(model, backend="relu_runtime_error_TESTING_ONLY")(*inputs())
    small, whole = files(tmp_path)
    text = (tmp_path / "debug" / whole).read_text()
    assert "aten.mm." in text and "matmul" not in text
    assert "aten.mm." not in (tmp_path / "debug" / small).read_text()


def test_a_difference_is_found_at_level_four_only(tmp_path):
    x, w = inputs()
    with config.patch(repro_after="capture", repro_level=2):
        package.compile(model, backend="relu_accuracy_error_TESTING_ONLY")(x, w)
    assert not (tmp_path / "debug").exists()
    package.reset()
    with config.patch(repro_after="capture", repro_level=4), pytest.raises(AccuracyError, match="differs from eager"):
        package.compile(model, backend="relu_accuracy_error_TESTING_ONLY")(x, w)
    assert files(tmp_path) == ["graph_1/minified/repro.py", "graph_1/repro.py"]


def test_a_function_as_backend_is_minified_too(tmp_path):
    with config.patch(repro_after="dynamo", repro_level=2), pytest.raises(RuntimeError, match="no relu here"):
        package.compile(model, backend=failing_on_relu)(*inputs())
    text = (tmp_path / "debug" / "graph_1/minified/repro.py").read_text()
    assert "aten.relu" in text and "aten.sum" not in text and "aten.mm" not in text
    assert f"python:{__name__}:failing_on_relu" in text


def test_a_function_that_computes_something_else_is_found(tmp_path):
    with config.patch(repro_after="capture", repro_level=4), pytest.raises(AccuracyError):
        package.compile(model, backend=wrong_on_relu)(*inputs())
    text = (tmp_path / "debug" / "graph_1/minified/repro.py").read_text()
    assert "aten.relu" in text and "aten.sum" not in text


@pytest.mark.parametrize("level", [2, 4])
def test_a_right_function_trains_under_the_debugger(tmp_path, level):
    x, w = inputs()
    right = w.detach().clone().requires_grad_()
    model(x, right).sum().backward()
    with config.patch(repro_after="capture", repro_level=level):
        package.compile(model, backend=lambda graph, inputs: package.backends.lookup("eager")(graph, inputs))(x, w).sum().backward()
    torch.testing.assert_close(w.grad, right.grad)
    assert not (tmp_path / "debug").exists()


SCRIPT = """
import torch, pyrite
f = pyrite.compile(lambda x: x.relu().sum() + x.mean(), backend="relu_compile_error_TESTING_ONLY")
try:
    f(torch.randn(4))
except RuntimeError as error:
    print(str(error).splitlines()[-1])
"""


def test_the_environment_switches_it_on_and_the_command_runs_what_is_left(tmp_path):
    environment = os.environ | {"PYRITE_REPRO_AFTER": "dynamo", "PYRITE_DEBUG_DIR": "left"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.stdout.strip() == "left/graph_1/minified/repro.py", done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert package.debug.run(done.stdout.strip(), "relu_compile_error_TESTING_ONLY") == 1


def test_the_command_finds_functions_by_their_names(tmp_path, monkeypatch):
    with config.patch(repro_after="capture", repro_level=1), pytest.raises(RuntimeError):
        package.compile(model, backend=failing_on_relu)(*inputs())
    path = tmp_path / "debug" / "graph_1/repro.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    words = [sys.executable, "-m", "pyrite", "run", str(path), "--backend", f"python:{__name__}:failing_on_relu"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "no relu here" in done.stdout + done.stderr
