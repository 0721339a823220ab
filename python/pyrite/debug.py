"""Debugging from Python: the command `pyrite` as functions, and whole scripts under the debugger."""

from __future__ import annotations

import os
import pathlib
import runpy
import sys

from pyrite import _native
from pyrite._inputs import InputCounter
from pyrite._session import CALLS, Comparison, Session, same, session

__all__ = ["Comparison", "InputCounter", "Session", "bisect", "main", "minify", "run", "same", "script", "session"]


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


# The options of `pyrite debug` that take a value; in front of a script they are Pyrite's, behind it the script's.
WITH_VALUE = (
    "--accuracy --backend --cosine --import --out --python --reference --runs --seed --target --time-budget --time-limit --tol"
).split()


def script_asked_for(words):
    """What `script` is called with, where the words of a command ask for a script and not for a program; else None."""
    if "debug" not in words:
        return None
    before, options = words[: words.index("debug")], words[words.index("debug") + 1 :]
    if any(not word.startswith("-") for word in before[::2]):
        return None
    for place, word in enumerate(options):
        if place and options[place - 1] in WITH_VALUE:
            continue
        if word == "-m" and place + 1 < len(options):
            return {"path": options[place + 1], "arguments": options[place + 2 :], "options": before + options[:place], "module": True}
        if not word.startswith("-"):
            if not word.endswith(".py") or is_program(word):
                return None
            return {"path": word, "arguments": options[place + 1 :], "options": before + options[:place]}
    return None


def script(path, arguments=(), options=(), module=False):
    """Runs a script, or a module by its name, with every compiled region under the debugger; returns the exit code.

    The first calls of each region are checked, the others run eagerly. The first failure or difference is confirmed,
    minimised, proven, bisected and reported as `pyrite debug` does it, with the options given. The code is 1 where something was found and
    0 where not; a failure of the script's own is raised as without Pyrite.
    """
    from pyrite import config, torch_backend

    options = list(options)
    if "--first-nan" in options and module:
        print("--first-nan takes the path of a script: name the file in the place of -m MODULE", file=sys.stderr)
        return 2
    if "--first-nan" in options:
        return main(["debug", *options, path, "--", *arguments])
    backend = next((options[k + 1] for k, word in enumerate(options[:-1]) if word == "--backend"), None)
    with config.patch(debug=True, debug_calls=CALLS, strict=False), torch_backend.watched(backend) as watch:
        argv, before = sys.argv, sys.path[0]
        folder = os.getcwd() if module else str(pathlib.Path(path).resolve().parent)
        sys.argv, sys.path[0] = [str(path), *arguments], folder
        # Workers find what the script imports.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        try:
            if module:
                runpy.run_module(str(path), run_name="__main__", alter_sys=True)
            else:
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
        print(watch.without_failure(), file=sys.stderr)
        if not module:
            text = f"if the compiled script still behaves differently, `pyrite minify-script {path}` reduces its source"
            print(text, file=sys.stderr)
        return 0
    failure = watch.failures[0]
    print(f"a region failed with {failure.backend}: {failure.message}", file=sys.stderr, flush=True)
    if failure.repro is None:
        text = f"no repro is written, because {failure.backend} cannot be imported elsewhere: move it from the script into a module that the script imports"
        print(text, file=sys.stderr)
        return 1
    words = ["debug", failure.repro, *without(options, "--backend"), "--backend", failure.backend]
    # The script has shown the failure once, and the minifier looks again whether it comes every time.
    words += [] if "--runs" in options else ["--runs", "1"]
    for name in watch.imports:
        words += ["--import", name]
    reference = ["--reference", "torch:eager"] if watch.unknown_operators and "--reference" not in options else []
    main([*words, *reference])
    return 1


def without(options, name):
    """The options but for one that takes a value."""
    kept = list(options)
    while name in kept:
        place = kept.index(name)
        del kept[place : place + 2]
    return kept
