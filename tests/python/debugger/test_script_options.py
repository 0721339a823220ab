"""`python -m pyrite debug [options] script.py args…`: whose words are whose, and what is refused before the script runs."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from pyrite import debug

SCRIPT = """import pathlib, sys, torch
pathlib.Path("ran").write_text(repr(sys.argv[1:]))
step = torch.compile(lambda x: torch.relu(x * 2).sum(), backend="aot_eager")
if "--read" in sys.argv:
    print("read", sys.stdin.read(), flush=True)
try:
    print("loss", step(torch.ones(8)).item(), flush=True)
except Exception:
    if "--wait" not in sys.argv:
        raise
    print("no loss", flush=True)
if "--wait" in sys.argv:
    import time
    time.sleep(120)
if "--exit" in sys.argv:
    sys.exit(5)
"""
WRONG = "relu_accuracy_error_TESTING_ONLY"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def run(folder, *words, **settings):
    command = [sys.executable, "-m", "pyrite", "debug", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, **settings)


@pytest.mark.parametrize(
    ("words", "options", "arguments"),
    [
        (["debug", "train.py", "--runs", "9"], [], ["--runs", "9"]),
        (["debug", "--jobs", "1", "--time-budget", "5", "train.py", "x"], ["--jobs", "1", "--time-budget", "5"], ["x"]),
        (["debug", "--jobs=1", "train.py"], ["--jobs=1"], []),
        (["debug", "--autocast", "bf16", "--storages", "a.py", "train.py"], ["--autocast", "bf16", "--storages", "a.py"], []),
        (["debug", "--cosine-similarity", "0.9", "train.py", "1"], ["--cosine-similarity", "0.9"], ["1"]),
        (["debug", "--cosine-similarity", "train.py"], ["--cosine-similarity"], []),
        (["--import", "mine", "debug", "--json", "train.py"], ["--import", "mine", "--json"], []),
        (["--trace", "debug", "train.py"], ["--trace"], []),
    ],
)
def test_every_option_of_debug_keeps_its_value_in_front_of_a_script(folder, monkeypatch, words, options, arguments):
    monkeypatch.chdir(folder)
    assert debug.script_asked_for(words) == {"path": "train.py", "arguments": arguments, "options": options}


def test_a_module_takes_the_words_behind_it():
    words = ["debug", "--jobs", "1", "-m", "mine.train", "--jobs", "2"]
    found = debug.script_asked_for(words)
    assert found == {"path": "mine.train", "arguments": ["--jobs", "2"], "options": ["--jobs", "1"], "module": True}


def test_other_commands_are_no_scripts(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for words in (["run", "debug", "train.py"], ["debug", "--", "train.py"], ["debug", "--jobs"], ["debug", "nowhere.py"], []):
        assert debug.script_asked_for(words) is None, words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--no-such-option"], "--no-such-option"),
        (["--bakend", "aot_eager"], "--backend"),
        (["--runs", "none"], "none"),
        (["--out", "taken"], "taken"),
        (["--out=taken"], "taken"),
        (["--out", "train.py"], "not a folder"),
    ],
)
def test_what_is_wrong_is_told_before_the_script_runs(folder, words, said):
    (folder / "taken").mkdir()
    (folder / "taken" / "repro.py").write_text("mine")
    done = run(folder, *words, "train.py")
    assert done.returncode == 2 and said in done.stderr, (done.stdout, done.stderr)
    assert not (folder / "ran").exists() and (folder / "taken" / "repro.py").read_text() == "mine"


def test_a_backend_joined_by_an_equals_sign_is_the_one_that_is_tested(folder):
    done = run(folder, f"--backend={WRONG}", "--out=found", "train.py", "--read", input="from outside")
    assert done.returncode == 1 and (folder / "found" / "repro.py").is_file(), (done.stdout, done.stderr)
    assert "read from outside" in done.stdout and (folder / "ran").read_text() == "['--read']"
    assert f"a region failed with {WRONG}" in done.stderr


def test_the_code_of_a_script_in_which_nothing_is_found_is_kept(folder):
    assert run(folder, "train.py", "--exit").returncode == 5
    done = run(folder, "train.py")
    assert done.returncode == 0 and "1 compiled region, no failure" in done.stderr, done.stderr


def test_an_interrupted_script_says_what_was_found_and_how_to_go_on(folder):
    command = [sys.executable, "-m", "pyrite", "debug", "--backend", WRONG, "train.py", "--wait"]
    # A shell that starts something in the background has it ignore the signal.
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # The line comes after the first call, whose failure is noted then.
    assert "no loss" in process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    line = next(line for line in said.splitlines() if "goes on" in line)
    words = line.strip().strip("`").split()
    assert words[:2] == ["pyrite", "debug"] and pathlib.Path(folder / words[2]).is_file(), said


def test_options_of_debug_are_those_of_its_help():
    binary = os.environ["PYRITE_BIN"]
    text = subprocess.run([binary, "debug", "--help"], capture_output=True, text=True, timeout=60).stdout
    from pyrite import _native

    told = {word.strip(",") for line in text.splitlines() for word in line.split()[:2] if word.startswith("--") and line.lstrip().startswith(("--", "-h"))}
    known = {name for name in _native.debug_options()}
    assert {word.partition("[")[0].partition("=")[0] for word in told} - {"--help"} <= known | {"--help"}, told - known
