"""Runs scripts for Pyrite, each in a process of its own: a line of JSON in, a line of JSON out.

A request names the script, its arguments, the backend, the time limit and a folder. The answer says how the compiled run differs from
the eager one, `{"way": ..., "text": ...}`, that it does not, `{}`, or why nobody can tell, `{"invalid": ...}`. The eager run is made
twice where there is a difference, the second time with other addresses: what differs from itself says nothing.
"""

import importlib
import json
import select
import signal
import time

import torch._dynamo


def threads():
    return len(os.listdir("/proc/self/task"))


# Importing torch starts some, which forks do without.
WITH_TORCH = threads()

# The exit code of a fork that cannot hand over what it saw.
UNSAVED = 247


def moved():
    """Memory that has what is made later lie elsewhere: a script may see where its objects are."""
    return [bytearray(size) for size in range(0, 1024, 16) for _ in range(100)] + [torch.empty(size) for size in range(1, 4096, 16)]


def forked(work, folder, limit):
    """What a fork of this process returns; how it ended where it does not return."""
    place = os.path.join(folder, "observed")
    if os.path.exists(place):
        os.remove(place)
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            seen = work()
            code = UNSAVED
            torch.save(seen, place)
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + limit
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL) if os.getpgid(child) == child else os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"ended": "hang"}
        select.select([], [], [], 0.01)
    if os.WIFSIGNALED(status):
        return {"ended": f"signal {os.WTERMSIG(status)}"}
    if os.waitstatus_to_exitcode(status) != 0 or not os.path.exists(place):
        return {"ended": f"exit code {os.waitstatus_to_exitcode(status)}"}
    return torch.load(place, weights_only=False)


def answer(asked):
    def run(mode, room=list):
        def work():
            held = room()
            prepare(asked["backend"], mode)
            seen = observed(asked["script"], asked["words"])
            del held
            return seen

        seen = forked(work, asked["folder"], asked["limit"])
        # Others than the system kill too: what it kills for its memory is killed again.
        if seen.get("ended") == f"signal {signal.SIGKILL.value}":
            seen = forked(work, asked["folder"], asked["limit"])
        return seen

    first = run("eager")
    if "ended" in first:
        return {"invalid": f"the script does not end without torch.compile: {first['ended']}"}
    other = run("compiled")
    if other.get("ended") == f"exit code {UNSAVED}":
        return {"invalid": "what the compiled run left cannot be kept"}
    if "ended" in other:
        found = other["ended"], f"the compiled run ends by {other['ended']}"
    else:
        found = judged(first, other)
    if found is None:
        return {}
    if "ended" not in other and (why := doubt(found, other, asked["backend"])):
        return {"invalid": why}
    again = run("eager", moved)
    if "ended" in again or judged(first, again) is not None:
        return {"invalid": "two runs without torch.compile differ from each other"}
    return {"way": found[0], "text": found[1]}


def serve():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for module in sys.argv[1:]:
        importlib.import_module(module)
    if threads() != WITH_TORCH:
        answers.write(json.dumps({"unfit": "a module that was imported started threads"}) + "\n")
        return
    answers.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:
            said = {"invalid": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(said) + "\n")


serve()
