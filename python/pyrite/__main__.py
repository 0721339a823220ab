"""The command `pyrite`: as the binary, and `pyrite debug script.py args…` for whole scripts."""

import signal
import sys


def main(words=None):
    """Does what the words say, by default those of the command line, and returns the exit code."""
    from pyrite import debug

    if words is None and hasattr(signal, "SIGPIPE"):
        # A closed pipe ends the command quietly, as it ends others.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    words = list(sys.argv[1:] if words is None else words)
    if len(words) > 1 and words[0] == "debug" and words[1].endswith(".py") and not debug.is_program(words[1]):
        return debug.script(words[1], words[2:])
    return debug.main(words)


if __name__ == "__main__":
    sys.exit(main())
