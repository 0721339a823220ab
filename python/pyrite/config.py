"""The settings of Pyrite, each with its meaning.

Set them as attributes, or for the length of a block with `pyrite.config.patch(name=value)`, which is a decorator too.
An unknown name is an `AttributeError`, a value that a setting cannot have a `TypeError` or `ValueError` that names it.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import types

# The environment: every variable that the package reads, and what it is for. Unset and empty are the same.
ENVIRONMENT = {
    "PYRITE_LOGS": 'what is logged: "capture,+aot,graph_code"; see pyrite.logs',
    "PYRITE_COMPILE_DEBUG": '1 leaves a trace of every compilation below config.debug_dir; "1,-output_code" leaves one artifact out',
    "PYRITE_REPRO_AFTER": "config.repro_after: capture (or dynamo) or aot",
    "PYRITE_REPRO_LEVEL": "config.repro_level: 1 to 4",
    "PYRITE_DEBUG_DIR": "config.debug_dir: where repros and records are left",
    "PYRITE_DEBUG_FUNCTION": "config.debug_function: the only function whose frames are captured",
    "PYRITE_VERBOSE": "config.verbose: 1 for errors with both stacks",
    "PYRITE_VERIFY": "config.verify: 1 to also run every compiled call in plain Python and compare",
    "PYRITE_CRASH_REPORTS": "config.crash_reports: 0 to disable reports of crashes in compiled calls",
    "PYRITE_REPLAY_RECORD": "config.replay_record_enabled: 1 to save frames that cannot be captured",
    "PYRITE_NUM_THREADS": "how many threads compiled programs use; by default torch.get_num_threads()",
    "PYRITE_CACHE_DIR": "the code cache: a folder that only its owner can access, or off",
    "PYRITE_FALLBACK_RANDOM": "config.fallback_random: 0 for the fast stream of random numbers",
    "PYRITE_CODEGEN": "how loops run: x86, avx2, tiles or ptx-interp",
}


def _text(name):
    return os.environ.get(name) or None


def _switch(name, unset="0"):
    return (_text(name) or unset).lower() not in ("0", "false", "off", "no")


def _one_of(name, allowed):
    text = _text(name)
    if text is not None and text not in allowed:
        raise ValueError(f"{name} is `{text}`, expected {', '.join(allowed)}")
    return text


def _level():
    text = _one_of("PYRITE_REPRO_LEVEL", ("1", "2", "3", "4"))
    return int(text) if text else None


# What `pyrite_debug` is told.
DEBUG_SETTINGS = ("repro_after", "repro_level", "debug_dir", "reference", "accuracy")

_DEFAULTS = {
    # Whether what cannot be compiled is an error instead of a warning and an eager run.
    "strict": False,
    # How often the code of a function is compiled for other assumptions before its frames run plain.
    "cache_size_limit": 8,
    # Whether compiled regions are checked against the reference as they run.
    "debug": False,
    # How many calls of each region are checked; further ones run eagerly. 0 stands for all.
    "debug_calls": 0,
    # Whether a failing backend leaves a program behind, and which: the captured one (capture), each half after autograd
    # (aot), or none (None).
    "repro_after": _one_of("PYRITE_REPRO_AFTER", ("capture", "dynamo", "aot")) or (_level() and "capture"),
    # When: 1 on an error, 2 on an error and minified, 3 before every run, 4 also when results differ.
    "repro_level": _level() or (2 if _text("PYRITE_REPRO_AFTER") else 4),
    # Where repros and records are left.
    "debug_dir": _text("PYRITE_DEBUG_DIR") or "pyrite_debug",
    # The backend that says what is right.
    "reference": "eager",
    # How closely results are compared: off, fp or strict.
    "accuracy": "fp",
    # Whether compiled programs draw the random numbers that an eager run draws, instead of a fast stream of their own.
    "fallback_random": _switch("PYRITE_FALLBACK_RANDOM", unset="1"),
    # The name of the only function whose frames are captured; None for all.
    "debug_function": _text("PYRITE_DEBUG_FUNCTION"),
    # Whether errors show the stack of the user's code beside Pyrite's own, and frames that run plain are warned about.
    "verbose": _switch("PYRITE_VERBOSE"),
    # Whether every call of a compiled function is made in plain Python as well, on copies, and results and effects are
    # compared: a difference is a `pyrite.VerifyError`. Slow; see `pyrite._verify` for what is not compared.
    "verify": _switch("PYRITE_VERIFY"),
    # Whether a signal that ends the process inside of a compiled call is told with the kernel that ran, and the program written
    # down below `debug_dir`. Read when the first program is compiled.
    "crash_reports": _switch("PYRITE_CRASH_REPORTS", unset="1"),
    # Whether an exception of a backend is logged, and the frame run plain, instead of raised.
    "suppress_errors": False,
    # Whether a frame that cannot be captured or compiled is kept in a file for `pyrite.replay`.
    "replay_record_enabled": _switch("PYRITE_REPLAY_RECORD"),
    # Whether the ranks of a torch.distributed job agree on which sizes are dynamic before they compile.
    "enable_compiler_collectives": True,
    # How many seconds a rank waits for the others to do so.
    "collective_timeout": 30.0,
}


def debugs():
    """Whether compiled programs run under the debugger."""
    module = sys.modules[__name__]
    return module.debug or module.repro_after is not None


def debug_settings():
    """What the debugger is told."""
    module = sys.modules[__name__]
    settings = {name: getattr(module, name) for name in DEBUG_SETTINGS}
    return {**settings, "repro_after": settings["repro_after"] or "capture"}


# What settings can be beside values of their default's type.
_CHOICES = {
    "repro_after": (None, "capture", "dynamo", "aot"),
    "repro_level": (1, 2, 3, 4),
    "accuracy": ("off", "fp", "strict"),
}
_OPTIONAL = ("debug_function",)
_NAMES = {bool: "True or False", int: "an integer of at least 0", float: "a number of at least 0", str: "a string"}


def _unknown(name):
    near = difflib.get_close_matches(name, _DEFAULTS, 1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    return AttributeError(f"pyrite.config has no setting `{name}`; {meant}it has {', '.join(sorted(_DEFAULTS))}")


def _check(name, value):
    """Raises where a setting is unknown or cannot have a value."""
    if name not in _DEFAULTS:
        raise _unknown(name)
    if name in _CHOICES:
        if value not in _CHOICES[name] or isinstance(value, bool):
            raise ValueError(f"pyrite.config.{name} is one of {', '.join(map(repr, _CHOICES[name]))}, not {value!r}")
        return
    kind = str if name in _OPTIONAL else type(_DEFAULTS[name])
    if name in _OPTIONAL and value is None:
        return
    fits = isinstance(value, (int, float) if kind is float else (str, os.PathLike) if kind is str else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"pyrite.config.{name} is {_NAMES[kind]}, not {value!r}")
    if kind in (int, float) and not value >= 0:
        raise ValueError(f"pyrite.config.{name} is {_NAMES[kind]}, not {value!r}")


class _Settings(types.ModuleType):
    def __setattr__(self, name, value):
        if not name.startswith("__"):
            _check(name, value)
        super().__setattr__(name, value)


def patch(**settings):
    """Changes settings for the length of a block or of a decorated function."""
    return _Patch(settings)


class _Patch(contextlib.ContextDecorator):
    def __init__(self, settings):
        self.settings = settings
        self.before = []

    def __enter__(self):
        module = sys.modules[__name__]
        for name, value in self.settings.items():
            _check(name, value)
        self.before.append({name: getattr(module, name) for name in self.settings})
        for name, value in self.settings.items():
            setattr(module, name, value)
        return module

    def __exit__(self, *failure):
        for name, value in self.before.pop().items():
            setattr(sys.modules[__name__], name, value)
        return False


def reset():
    """Gives every setting the value it had at the start."""
    for name, value in _DEFAULTS.items():
        setattr(sys.modules[__name__], name, value)


globals().update(_DEFAULTS)
sys.modules[__name__].__class__ = _Settings
