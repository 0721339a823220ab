"""One piece of work in a process of its own: what it returned, or how it died.

The child is a fork, so it starts warm. That is sound only while this process has not started torch's threads: `prepare` comes before the
first operator.
"""

import faulthandler
import os
import pickle
import select
import signal
import sys
import time
import traceback

import torch


def prepare():
    """Keeps torch to one thread, so that forks do not wait for threads they do not have."""
    torch.set_num_threads(1)
    faulthandler.enable(all_threads=False)


def in_a_fork(work, time_limit):
    """`(value, None)` if the work came back with a value, else `(None, reason)`."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        answer(work, writer)
    os.close(writer)
    received = receive(reader, child, time_limit)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        died = signal.Signals(number).name
        return None, f"no end after {time_limit} s" if received is None else f"died by {died}"
    if not received:
        return None, f"ended with code {os.WEXITSTATUS(status)} and no answer"
    value, reason = pickle.loads(received)
    return value, reason


def answer(work, writer):
    """Runs the work in the child and never returns."""
    # The first call after a fork renews torch's pool; two threads of autograd doing so at once would abort.
    torch.set_num_threads(1)
    try:
        told = (work(), None)
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = (None, f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})")
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(pickle.dumps(told))
    sys.stdout.flush()
    os._exit(0)


def receive(reader, child, time_limit):
    """Everything the child writes, or `None` after it was killed for taking too long."""
    end = time.monotonic() + time_limit
    chunks = []
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                return None
            chunk = pipe.read(1 << 16)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
