"""Backends made to be misjudged: what is wrong in one part of the contract is proven, what is right and looks wrong is not."""

import os
import subprocess
import sys

import pytest

from debugger import hostile_backends
from debugger.test_proof import HERE, Session, forward

ALL = os.environ.get("PYRITE_PROOFS")
# What every change is tried with; nightly runs try all.
RIGHT_SAMPLE = ["other_tie", "tips_by_rounding", "near_floor", "draws_another_size"]
SAMPLE = ["later_value", "no_gradient", "together", "number_for_nan"]


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def program(case):
    text = forward(case["parameters"], *case["lines"])
    if not case["gradients"]:
        return text
    lines = "".join(
        f"    buf{k} = reader.storage(None, 48)\n    reader.tensor(buf{k}, (3, 4), requires_grad=True, is_leaf=True)\n"
        for k, _ in enumerate(case["gradients"])
    )
    return f"{text}\ndef load_args(reader):\n{lines}load_args._version = 0\n"


@pytest.mark.parametrize("name", [name for name in hostile_backends.WRONG if ALL or name in SAMPLE])
def test_what_is_wrong_in_one_part_is_proven_by_plain_python(session, name):
    case = hostile_backends.WRONG[name]
    runs = 10 if name == "sometimes" else 1
    code, report, said = session.minify(program(case), "--backend", f"torch:hostile_{name}", imports=["hostile_backends"], runs=runs)
    assert (code, report.get("proven")) == (0, True), (report, said)
    signature = report["signature"]
    assert signature["class"] == case["class"], report
    # What fails only sometimes may fail in either call.
    assert signature.get("call") == case["call"] or name == "sometimes", report
    codes = [session.plain()[0] for _ in range(12 if name == "sometimes" else 1)]
    assert (-11 if case["class"] == {"signal": 11} else 1) in codes, codes
    assert session.plain("eager")[0] == 0


@pytest.mark.parametrize("name", [name for name in hostile_backends.RIGHT if ALL or name in RIGHT_SAMPLE])
def test_what_is_right_and_looks_wrong_is_not_proven(session, name):
    case = hostile_backends.RIGHT[name]
    code, report, said = session.minify(program(case), "--backend", f"torch:hostile_{name}", imports=["hostile_backends"])
    assert code == 1 and report["verdict"] in ("pass", "noise"), (report, said)
    if not ALL and name != "other_tie":
        return
    # One run of it says the same as a search.
    binary, modules = os.environ["PYRITE_BIN"], {**os.environ, "PYTHONPATH": str(HERE)}
    words = [binary, "--python", sys.executable, "--import", "hostile_backends", "run", "program.py", "--backend", f"torch:hostile_{name}"]
    done = subprocess.run(words, cwd=session.folder, env=modules, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
