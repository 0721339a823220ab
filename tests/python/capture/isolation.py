"""Pieces of work in processes of their own: what they returned, or how they died.

A child is a fork, so it starts warm. That is sound only while this process has not started torch's threads: `prepare` comes before the
first operator. An answer is `(value, None)` if the work came back with a value, else `(None, reason)`.
"""

import faulthandler
import multiprocessing
import os
import signal
import re
import sys
import tempfile
import traceback

import torch

# Where a child says in which Python function it died.
LAST_WORDS = tempfile.TemporaryFile("w+")


def prepare():
    """Keeps torch to one thread, so that forks do not wait for threads they do not have."""
    torch.set_num_threads(1)
    faulthandler.enable(file=LAST_WORDS, all_threads=False)


def in_a_fork(work, time_limit):
    """The answer of one piece of work in a process of its own."""
    child = Fork([work])
    told, death = child.answer(time_limit)
    child.end()
    return (None, death) if death else told


def together(works, time_limit):
    """The answers of all works, one after the other in one process.

    A work that ends the process is done again in one of its own, which says how it dies alone; the works after it go on in a new process.
    """
    answers = []
    while len(answers) < len(works):
        child = Fork(works[len(answers) :])
        death = None
        while len(answers) < len(works) and not death:
            told, death = child.answer(time_limit)
            if death:
                _, alone = in_a_fork(works[len(answers)], time_limit)
                told = None, alone or f"{death} in one process with others, not alone"
            answers.append(told)
        child.end()
    return answers


class Fork:
    """A child that carries out works in order and sends the answer to each."""

    def __init__(self, works):
        self.reader, writer = multiprocessing.Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self.child = os.fork()
        if self.child == 0:
            self.reader.close()
            carry_out(works, writer)
        writer.close()

    def answer(self, time_limit):
        """`(answer, None)`, or `(None, reason)` if the child died or had to be killed over this work."""
        if not self.reader.poll(time_limit):
            os.kill(self.child, signal.SIGKILL)
            return None, f"no end after {time_limit} s"
        try:
            return self.reader.recv(), None
        except EOFError:
            return None, self.death()

    def death(self):
        status = self.end()
        if os.WIFSIGNALED(status):
            return f"died by {signal.Signals(os.WTERMSIG(status)).name}{last_place()}"
        return f"ended with code {os.WEXITSTATUS(status)} and no answer"

    def end(self):
        """Waits for the child's end, once."""
        status = 0
        if self.child:
            _, status = os.waitpid(self.child, 0)
            self.child = None
            self.reader.close()
        return status


def last_place():
    """The innermost functions of the child that died last, as faulthandler named them."""
    LAST_WORDS.seek(0)
    places = re.findall(r'File ".*?([^/"]+)", line (\d+) in (\S+)', LAST_WORDS.read())
    LAST_WORDS.seek(0)
    LAST_WORDS.truncate()
    return " in " + " < ".join(f"{name} ({file}:{line})" for file, line, name in places[:6]) if places else ""


def carry_out(works, writer):
    """Does the works in the child and never returns."""
    # The first call after a fork renews torch's pool; two threads of autograd doing so at once would abort.
    torch.set_num_threads(1)
    for work in works:
        try:
            told = (work(), None)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            told = (None, f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})")
        writer.send(told)
    sys.stdout.flush()
    os._exit(0)
