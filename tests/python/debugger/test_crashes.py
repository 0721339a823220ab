"""A compiled call that crashes says where, leaves its program, and lets the process end as it would have."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crashes")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYRITE_DEBUG")}
    done = subprocess.run([sys.executable, HERE / "crashes.py", folder], env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    ends = json.loads((folder / "ends.json").read_text())
    return {name: (code, (folder / name / "stderr").read_text(errors="replace"), folder / name) for name, code in ends.items()}


TOLD = {
    "first_call": ["SIGSEGV in kernel `"],
    "short_call": ["SIGSEGV in kernel `"],
    "by_torch_compile": ["SIGSEGV in kernel `"],
    "backward": ["SIGSEGV in kernel `"],
    "in_many_threads": ["SIGSEGV in kernel `"],
    "in_threads_of_the_user": ["SIGSEGV in kernel `"],
    "beside_faulthandler": ["SIGSEGV in kernel `", "Fatal Python error: Segmentation fault"],
    "before_faulthandler": ["Fatal Python error: Segmentation fault", "SIGSEGV in kernel `"],
}


@pytest.mark.parametrize("name", TOLD)
def test_a_crash_names_the_kernel_and_leaves_the_program(crashed, name):
    code, said, folder = crashed[name]
    assert code == -signal.SIGSEGV, said
    places = [said.find(text) for text in TOLD[name]]
    assert -1 not in places and places == sorted(places), said
    [repro] = folder.glob("pyrite_debug/crash_*/repro.py")
    assert str(repro) in said, said
    text = repro.read_text()
    stage = "backward" if name == "backward" else "forward"
    assert "aten.sin" in text and f"signature = {stage}: segmentation fault (SIGSEGV)" in text, text
    shown = subprocess.run([os.environ["PYRITE_BIN"], "run", repro], capture_output=True, text=True, timeout=100)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(("name", "code"), [("elsewhere", -signal.SIGSEGV), ("switched_off", -signal.SIGSEGV)])
def test_nothing_is_said_of_what_is_not_pyrites_or_not_wanted(crashed, name, code):
    ended, said, folder = crashed[name]
    assert ended == code and "pyrite:" not in said, said
    assert not (folder / "pyrite_debug").exists()


def test_the_users_handler_gets_the_signal(crashed):
    code, said, _ = crashed["twice_handled"]
    assert code == 40 + signal.SIGSEGV and "SIGSEGV in kernel `" in said, said
