"""Debugging from Python: the command `pyrite` as functions, and whole scripts under the debugger."""

from __future__ import annotations

import os
import pathlib
import runpy
import sys

from pyrite import _native


def main(arguments):
    """Does what a command line of `pyrite` says and returns its exit code."""
    return _native.main([str(argument) for argument in arguments])


def run(file, backend="native", *arguments):
    """Runs a repro with a backend and compares it with the reference; 0 where they agree."""
    return main(["run", file, "--backend", backend, *arguments])


def minify(file, backend="native", *arguments):
    """Finds the smallest program that fails as a repro does; 0 where that is done and proven."""
    return main(["minify", file, "--backend", backend, *arguments])


def bisect(file, backend="native", *arguments):
    """Finds the stage, pass and single rewrite that a failure begins with."""
    return main(["bisect", file, "--backend", backend, *arguments])


def is_program(path):
    """Whether a file is a program that Pyrite reads, and not a script."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # The command says what is wrong with the file.
        return True
    if text.startswith("# pyrite:"):
        return True
    if "torch.compile" in text or "pyrite.compile" in text or ".compile(" in text:
        return False
    try:
        _native.Graph.from_text(text)
    except ValueError:
        return "load_args" in text
    return True


# How many calls of each region of a script are checked.
CALLS = 3


def script(path, arguments=()):
    """Runs a script with every compiled region under the debugger; returns the exit code.

    The first calls of each region are checked, the others run eagerly. The first failure or difference is confirmed,
    bisected, minimised and reported as `pyrite debug` does it.
    """
    from pyrite import config, torch_backend

    with config.patch(debug=True, debug_calls=CALLS, strict=False), torch_backend.watched() as watch:
        argv, before = sys.argv, sys.path[0]
        folder = str(pathlib.Path(path).resolve().parent)
        sys.argv, sys.path[0] = [str(path), *arguments], folder
        # Workers find what the script imports.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit:
            if not watch.failures:
                raise
        except Exception:
            # A failure that a region has recorded ends the script in whatever way; any other is the script's own.
            if not watch.failures:
                raise
        finally:
            sys.argv, sys.path[0] = argv, before
    for reason in watch.unchecked:
        print(f"not checked: {reason}", file=sys.stderr)
    if not watch.failures:
        print(f"{watch.regions} compiled regions, no failure", file=sys.stderr)
        return 0
    failure = watch.failures[0]
    print(f"a region failed with {failure.backend}: {failure.message}", file=sys.stderr)
    if failure.repro is None:
        return 1
    words = ["debug", failure.repro, "--backend", failure.backend]
    for module in watch.imports:
        words += ["--import", module]
    return main([*words, *(["--reference", "torch:eager"] if watch.imports else [])])
