"""A sample of the methods of Python's own classes inside of captured frames; `python -m capture.methods` calls all of them."""

import subprocess
import sys
from pathlib import Path

from capture import methods

# One call of so many.
EVERY = 12


def test_methods_of_pythons_classes_do_what_they_do_in_plain_python():
    words = [sys.executable, "-m", "capture.methods", "--every", str(EVERY)]
    done = subprocess.run(words, cwd=Path(methods.__file__).parent.parent, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-4]) > 1000, done.stdout


def test_a_method_that_gives_something_else_is_told(monkeypatch):
    frame = methods.frame_of("list", "index", "(1)")
    monkeypatch.setattr(methods, "calls", lambda names: [("list", "index", "(1)")])
    monkeypatch.setattr(methods.pyrite, "compile", lambda frame, backend: lambda x: (x + 1, 7, []))
    (call, want, have), (_, count, _) = methods.differing(["list"], 1)
    assert (call, count) == (("list", "index", "(1)"), 1)
    assert want == methods.outcome(frame) != have
