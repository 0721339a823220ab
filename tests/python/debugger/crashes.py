"""Calls of compiled programs that crash, each in a fork of its own: `python crashes.py FOLDER`.

What a case says on standard error lies in `FOLDER/CASE/stderr`, and how it ended in `FOLDER/ends.json`. Memory that nobody may read stands for
whatever makes a kernel fault.
"""

import ctypes
import faulthandler
import json
import mmap
import os
import pathlib
import signal
import sys
import threading

import torch

import pyrite

CASES = {}
libc = ctypes.CDLL(None, use_errno=True)


def case(function):
    CASES[function.__name__] = function
    return function


def mapped(*shape):
    """A tensor in pages of its own."""
    count = torch.Size(shape).numel()
    memory = mmap.mmap(-1, max(count * 4, mmap.PAGESIZE))
    return torch.frombuffer(memory, dtype=torch.float32, count=count).view(shape).fill_(0.5)


def forbid(tensor):
    """Takes the memory of a tensor away from the process."""
    length = -(-tensor.untyped_storage().nbytes() // mmap.PAGESIZE) * mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(tensor.data_ptr()), length, 0) == 0


def program(x, y):
    return torch.relu(torch.sin(x) + y) * 2


@case
def first_call():
    x, y = mapped(64, 64), torch.ones(64, 64)
    compiled = pyrite.compile(program)
    compiled(torch.ones(64, 64), y)
    forbid(x)
    compiled(x, y)


@case
def short_call():
    x, y = mapped(64, 64), torch.ones(64, 64)
    compiled = pyrite.compile(program)
    for _ in range(5):
        compiled(x, y)
    forbid(x)
    compiled(x, y)


@case
def by_torch_compile():
    x, y = mapped(64, 64), torch.ones(64, 64)
    compiled = torch.compile(program, backend="pyrite")
    compiled(x, y)
    forbid(x)
    compiled(x, y)


@case
def backward():
    x, y = torch.ones(64, 64, requires_grad=True), mapped(64, 64)
    compiled = pyrite.compile(lambda x, y: torch.sin(x * y))
    loss = compiled(x, y).sum()
    forbid(y)
    loss.backward()


@case
def in_many_threads():
    x, y = mapped(2048, 2048), torch.ones(2048, 2048)
    compiled = pyrite.compile(program)
    compiled(x, y)
    forbid(x)
    compiled(x, y)


@case
def in_threads_of_the_user():
    """Several threads fault at the same time; the first one's program is written down before any of them ends the process."""
    inputs = [mapped(256, 256) for _ in range(4)]
    y = torch.ones(256, 256)
    compiled = pyrite.compile(program)
    for x in inputs:
        compiled(x, y)
    together = threading.Barrier(len(inputs))
    for x in inputs:
        forbid(x)

    def fault(x):
        together.wait()
        compiled(x, y)

    threads = [threading.Thread(target=fault, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@case
def beside_faulthandler():
    faulthandler.enable()
    first_call()


@case
def before_faulthandler():
    pyrite.compile(program)(torch.ones(4), torch.ones(4))
    faulthandler.enable()
    first_call()


@case
def elsewhere():
    """A crash outside of Pyrite, after compiled calls."""
    pyrite.compile(program)(torch.ones(4), torch.ones(4))
    ctypes.string_at(0)


@case
def switched_off():
    pyrite.config.crash_reports = False
    first_call()


@case
def twice_handled():
    """A handler that ends the process with a code of its own."""
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: os._exit(40 + number))
    libc.signal(signal.SIGSEGV, handler)
    first_call()


def main(folder):
    ends = {}
    for name, run in CASES.items():
        place = folder / name
        place.mkdir(parents=True)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.chdir(place)
            said = os.open("stderr", os.O_CREAT | os.O_WRONLY)
            os.dup2(said, 2)
            try:
                run()
            finally:
                os._exit(0)
        ends[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    (folder / "ends.json").write_text(json.dumps(ends))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
