"""The debug directory of this process: `PYRITE_COMPILE_DEBUG=1`, or `with pyrite.trace() as folder`."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys

from pyrite import _native, config


def _start(artifacts, folder=None):
    import torch

    versions = [("python", platform.python_version()), ("torch", torch.__version__)]
    return _native.start_trace(
        artifacts, below=config.debug_dir, exact=folder, argv=[sys.executable, *sys.argv], versions=versions
    )


@contextlib.contextmanager
def trace(artifacts="all", folder=None):
    """Traces what is captured and compiled in a block; gives the folder.

    `artifacts` names what is kept, with `-` what is not, with commas between: "guards,timings", "-output_code". The folder
    is one of its own below `pyrite.config.debug_dir`, unless one is given. `docs/trace-format.md` describes its files.
    """
    started = _start(artifacts, folder)
    try:
        yield started
    finally:
        _native.stop_trace()


def begin():
    """Begins the trace that the environment asks for; it ends with the process."""
    if (artifacts := os.environ.get("PYRITE_COMPILE_DEBUG")) and _start(artifacts):
        atexit.register(_native.stop_trace)


begin()
