"""The command `pyrite` from Python, and whole scripts under the debugger."""

import subprocess
import sys
import textwrap

import pytest

from pyrite import debug, logs

REPRO = """
class Repro(torch.nn.Module):
    def forward(self, x: "f32[4]"):
        relu = torch.ops.aten.relu.default(x)
        sin = torch.ops.aten.sin.default(relu)
        return (sin,)
"""


def python(*words, cwd, code):
    """Runs `python -m pyrite` and returns what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pyrite", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_command_is_that_of_the_binary(tmp_path):
    (tmp_path / "repro.py").write_text(REPRO)
    assert "aten.relu" in python("show", "repro.py", cwd=tmp_path, code=0)
    python("run", "repro.py", "--backend", "relu_accuracy_error_TESTING_ONLY", cwd=tmp_path, code=1)
    assert "no_such.py" in python("run", "no_such.py", cwd=tmp_path, code=2)
    assert "Usage" in python("nonsense", cwd=tmp_path, code=2)


@pytest.mark.parametrize(
    ("header", "first"),
    [
        ("", "backend: aot_eager_decomp_partition, because the file names none"),
        ("# pyrite: backend = aot_eager\n", "backend: aot_eager, which the file names"),
    ],
    ids=["default", "named"],
)
def test_a_session_without_a_backend_says_first_which_it_tests(tmp_path, header, first):
    (tmp_path / "repro.py").write_text(header + REPRO)
    assert python("debug", "repro.py", cwd=tmp_path, code=1).startswith(first)
    assert not python("debug", "repro.py", "--backend", "aot_eager", cwd=tmp_path, code=1).startswith("backend:")


def test_a_repro_is_minified_by_workers_of_this_python(tmp_path, monkeypatch):
    (tmp_path / "repro.py").write_text(REPRO)
    monkeypatch.chdir(tmp_path)
    assert debug.minify("repro.py", "relu_accuracy_error_TESTING_ONLY", "--out", "small") == 0
    text = next((tmp_path / "small").rglob("repro.py")).read_text()
    assert "aten.relu" in text and "aten.sin" not in text


SCRIPT = """
import sys
import torch

def loss(x):
    return torch.relu(x * 2).sum()

step = torch.compile(loss, backend=sys.argv[1])
for _ in range(5):
    print("loss", step(torch.randn(8)).item())
"""


def test_a_script_whose_regions_are_right_runs_to_its_end(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    said = python("debug", "train.py", "aot_eager_decomp_partition", cwd=tmp_path, code=0)
    assert said.count("loss") == 5 and "1 compiled region, no failure" in said


def test_options_of_a_backend_reach_it_in_workers(tmp_path):
    """An option that is no setting of Inductor's, of a backend that takes it."""
    (tmp_path / "train.py").write_text(SCRIPT.replace("backend=sys.argv[1]", 'backend="pyrite", options={"strict": True}'))
    said = python("debug", "train.py", cwd=tmp_path, code=0)
    assert said.count("loss") == 5 and "1 compiled region, no failure" in said
    (tmp_path / "repro.py").write_text(REPRO)
    python("run", "repro.py", "--backend", "torch:pyrite?strict=true", cwd=tmp_path, code=0)
    said = python("run", "repro.py", "--backend", "torch:pyrite?backend=relu_accuracy_error_TESTING_ONLY", cwd=tmp_path, code=1)
    assert "elements differ" in said


def test_a_script_with_a_wrong_backend_ends_with_a_report_and_a_proven_repro(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    said = python("debug", "train.py", "relu_accuracy_error_TESTING_ONLY", cwd=tmp_path, code=1)
    assert "a region failed with relu_accuracy_error_TESTING_ONLY" in said and "report.md" in said
    repros = [path.read_text() for path in tmp_path.rglob("repro.py")]
    assert any("aten.relu" in text and "aten.sum" not in text for text in repros)


def test_a_script_that_fails_by_itself_fails_as_without_pyrite(tmp_path):
    (tmp_path / "broken.py").write_text("import torch\nf = torch.compile(torch.sin)\nraise KeyError('its own')\n")
    assert "KeyError: 'its own'" in python("debug", "broken.py", cwd=tmp_path, code=1)


def test_programs_and_scripts_are_told_apart(tmp_path):
    path = tmp_path / "file.py"
    for text, program in [
        (REPRO, True),
        ("# pyrite: backend = native\n" + REPRO + "torch.compile(Repro())\n", True),
        (SCRIPT, False),
        ("print('hello')\n", False),
    ]:
        path.write_text(textwrap.dedent(text))
        assert debug.is_program(path) == program
    assert debug.is_program(tmp_path / "missing.py")


def test_logs_are_set_by_name():
    logs.set_logs(backend=True, aot=10)
    assert logs.get("backend").level == 20 and logs.get("aot").level == 10
    assert logs.from_environment("capture,+aot,-debug") == {"capture": 20, "aot": 10, "debug": 40}
    with pytest.raises(ValueError, match="there is no log `captur`"):
        logs.set_logs(captur=True)
    logs.set_logs(all=False)


def test_what_needs_torch_says_so_where_it_is_missing():
    program = "import sys; sys.modules['torch'] = None; import pyrite; print(pyrite.Graph); pyrite.compile"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: pyrite.compile needs PyTorch 2.11 or newer, which is not installed" in done.stderr
