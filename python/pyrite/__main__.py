"""The command `pyrite`: as the binary, and `pyrite debug [options] script.py args…`, also `-m module`, for whole scripts."""

import signal
import sys


def main(words=None):
    """Does what the words say, by default those of the command line, and returns the exit code."""
    from pyrite import debug

    if words is None and hasattr(signal, "SIGPIPE"):
        # A closed pipe ends the command quietly, as it ends others.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    words = list(sys.argv[1:] if words is None else words)
    if asked := debug.script_asked_for(words):
        return debug.script(**asked)
    return debug.main(words)


if __name__ == "__main__":
    sys.exit(main())
