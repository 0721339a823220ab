"""What Pyrite logs, and how to see it.

`pyrite.set_logs(capture=logging.INFO, graph_code=True)` or `PYRITE_LOGS="capture,+aot,-debug,graph_code"`: a name alone
shows information, `+` everything, `-` errors only. Every name is a logger `pyrite.NAME` of Python's logging.
"""

from __future__ import annotations

import logging
import os

from pyrite import _native

# Every name with what it shows: the table of the Rust half.
NAMES = {name: help for name, _, _, help in _native.log_table()}


def get(name):
    """The logger of a name."""
    return logging.getLogger(f"pyrite.{name}")


def set_logs(**levels):
    """Sets the level of each name: a level of `logging`, True for information, False for warnings only. `all` means all names."""
    for name, level in levels.items():
        if name != "all" and name not in NAMES:
            raise ValueError(_native.unknown_log(name))
        number = {True: logging.INFO, False: logging.WARNING}.get(level, level) if isinstance(level, bool) else level
        for each in NAMES if name == "all" else [name]:
            get(each).setLevel(number)
            _native.set_log_level(each, number)
    _show()


def _show():
    """Sends Pyrite's logs to standard error, unless the program has set up logging itself."""
    root = logging.getLogger("pyrite")
    if not root.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        root.addHandler(handler)


def from_environment(text):
    """Levels by name from the text of `PYRITE_LOGS`."""
    signs = {"+": logging.DEBUG, "-": logging.ERROR}
    levels = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        sign, name = (word[0], word[1:]) if word[0] in signs else ("", word)
        if name != "all" and name not in NAMES:
            raise ValueError(f"PYRITE_LOGS: {_native.unknown_log(name)}")
        levels[name] = signs.get(sign, logging.INFO)
    return levels


if text := os.environ.get("PYRITE_LOGS"):
    set_logs(**from_environment(text))
