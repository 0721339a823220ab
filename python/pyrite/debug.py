"""Debugging from Python: the command `pyrite` as functions, and whole scripts under the debugger."""

from __future__ import annotations

import os
import pathlib
import runpy
import shlex
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


def script_asked_for(words):
    """What `script` is called with, where the words of a command ask for a script and not for a program; else None."""
    if "debug" not in words:
        return None
    before, options = words[: words.index("debug")], words[words.index("debug") + 1 :]
    if any(not is_option for is_option, _ in _in_turn(before)):
        return None
    place = 0
    for is_option, taken in _in_turn(options):
        word = taken[0]
        if word == "-m" and place + 1 < len(options):
            return {"path": options[place + 1], "arguments": options[place + 2 :], "options": before + options[:place], "module": True}
        if word == "--":
            return None
        if not is_option:
            if not word.endswith(".py") or is_program(word):
                return None
            return {"path": word, "arguments": options[place + 1 :], "options": before + options[:place]}
        place += len(taken)
    return None


def _in_turn(words):
    """Words with those that belong to them, each with whether it is an option. Behind a script, options are the script's."""
    known = _native.debug_options()
    place = 0
    while place < len(words):
        word = words[place]
        least, most = known.get(word, (0, 0))
        end = place + 1 + least
        # What may follow an option is a number.
        while end - place <= most and end < len(words) and _is_number(words[end]):
            end += 1
        yield word.startswith("-"), words[place:end]
        place = end


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True


def _given(options, name):
    """The value that an option has among words, as `--name VALUE` or `--name=VALUE`; None where it is not there."""
    found = None
    for _, (word, *values) in _in_turn(options):
        if word == name and values:
            found = values[0]
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def script(path, arguments=(), options=(), module=False):
    """Runs a script, or a module by its name, with every compiled region under the debugger; returns the exit code.

    The first calls of each region are checked, the others run eagerly. The first failure or difference is confirmed,
    minimised, proven, bisected and reported as `pyrite debug` does it, with the options given. The code is 1 where something was found and
    0 where not; a failure of the script's own is raised as without Pyrite. Options that are wrong, and a folder that cannot take the
    result, are refused before the script runs, with the code 2.
    """
    from pyrite import config, torch_backend

    options = list(options)
    if "--first-nan" in options and module:
        print("--first-nan takes the path of a script: name the file in the place of -m MODULE", file=sys.stderr)
        return 2
    if "--first-nan" in options:
        return main(["debug", *options, path, "--", *arguments])
    refused = _native.refused(["debug", *options, str(path)])
    if refused is not None:
        return refused
    out = _given(options, "--out")
    if out is not None and (why := _native.unusable_folder(out)):
        print(why, file=sys.stderr)
        return 2
    with config.patch(debug=True, debug_calls=CALLS, strict=False), torch_backend.watched(_given(options, "--backend")) as watch:
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
                _tell_of_none(watch)
                raise
        except KeyboardInterrupt:
            if not watch.failures:
                raise
            print("interrupted; what was found until then:", file=sys.stderr)
            _tell(watch.failures[0], watch)
            return 130
        except Exception:
            # A failure that a region has recorded ends the script in whatever way; any other is the script's own.
            if not watch.failures:
                raise
        finally:
            sys.argv, sys.path[0] = argv, before
    if not watch.failures:
        _tell_of_none(watch)
        if not module:
            text = f"if the compiled script still behaves differently, `pyrite minify-script {shlex.quote(str(path))}` reduces its source"
            print(text, file=sys.stderr)
        return 0
    _tell_unchecked(watch)
    failure = watch.failures[0]
    if failure.repro is None:
        _tell(failure, watch)
        return 1
    print(f"a region failed with {failure.backend}: {failure.message}", file=sys.stderr, flush=True)
    # The script has shown the failure once, and the minifier looks again whether it comes every time.
    runs = [] if _given(options, "--runs") else ["--runs", "1"]
    code = main([*_command(failure, watch, options), *without(options, "--backend"), *runs])
    # The script failed, whatever the session makes of it, unless there was none.
    return code if code in (2, 3, 130) else 1


def _command(failure, watch, options=()):
    """The words that debug the program of a failure."""
    words = ["debug", failure.repro, "--backend", failure.backend]
    for name in watch.imports:
        words += ["--import", name]
    if watch.unknown_operators and _given(options, "--reference") is None:
        words += ["--reference", "torch:eager"]
    return words


def _tell_unchecked(watch):
    """Says why regions were not checked."""
    for reason in watch.unchecked:
        print(f"not checked: {reason}", file=sys.stderr)


def _tell_of_none(watch):
    """Says what was checked of a script in which nothing failed."""
    _tell_unchecked(watch)
    print(watch.without_failure(), file=sys.stderr, flush=True)


def _tell(failure, watch):
    """Says how a region failed, and what can be done."""
    print(f"a region failed with {failure.backend}: {failure.message}", file=sys.stderr)
    if failure.repro is None and not failure.is_local:
        text = "no repro is written, because the region failed before its program could be"
    elif failure.repro is None:
        text = f"no repro is written, because {failure.backend} cannot be imported elsewhere: move it from the script into a module that the script imports"
    else:
        text = f"`{shlex.join(['pyrite', *_command(failure, watch)])}` goes on"
    print(text, file=sys.stderr, flush=True)


def without(options, name):
    """The options but for one that takes a value."""
    return [word for _, taken in _in_turn(options) if taken[0] != name and not taken[0].startswith(f"{name}=") for word in taken]
