"""What tracing costs: rows for `bench.py --only trace`.

    compile   the native compiler on a program with a trace and without one: at most 2
    call      a scalar add, compiled and called 2,000 times, with a trace set up and without one: at most 1.05, so that a trace that is off,
              of which a call sees even less, costs nothing

Every run is a process of its own without a cache of code, the two kinds take turns, and the smallest times count. The whole command, which
also waits until the trace is on disk, is there to be watched.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

from bench.native_bench import source

COMPILE_BAR = 2.0
CALL_BAR = 1.05


def run(path, threads, trace, *arguments):
    """What `pyrite run` says of itself, and its time from start to end."""
    with tempfile.TemporaryDirectory() as place:
        own = {"PYRITE_NUM_THREADS": str(threads), "PYRITE_CACHE_DIR": "off", "PYRITE_DEBUG_DIR": place}
        command = [os.environ["PYRITE_BIN"], "run", str(path), "--backend", "native", "--accuracy", "off", "--json", *arguments]
        start = time.perf_counter()
        done = subprocess.run(command + ["--trace"] * trace, capture_output=True, env={**os.environ, **own}, check=True, text=True)
        seconds = time.perf_counter() - start
        assert any(pathlib.Path(place).rglob("trace.jsonl")) == trace, done.stderr
    return {**json.loads(done.stdout), "command_seconds": seconds}


def in_turns(repeat, path, threads, *arguments):
    """The smallest of every time, with a trace and without."""
    found = {True: [], False: []}
    for _ in range(repeat):
        for trace in (False, True):
            found[trace].append(run(path, threads, trace, *arguments))
    times = ["compile_seconds", "run_seconds", "command_seconds"]
    return [{name: min(report[name] for report in found[trace]) for name in times} for trace in (True, False)]


def row(name, on, off, bar):
    return {"name": name, "pyrite": on, "torch": None, "ratio": on / off, "bar": bar}


def rows(directory, models, threads, repeat):
    for model in models:
        on, off = in_turns(repeat, directory / model / "dynamo_repro.py", threads)
        yield row(f"trace {model} compile", on["compile_seconds"], off["compile_seconds"], COMPILE_BAR)
        yield row(f"trace {model} command", on["command_seconds"], off["command_seconds"], None)
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "call.py"
        path.write_text(source(["x: 1", "y: 1"], "x + y", 0))
        on, off = in_turns(repeat, path, threads, "--forward-only", "--repeat", "2000")
        yield row("trace call of a scalar add", on["run_seconds"], off["run_seconds"], CALL_BAR)
