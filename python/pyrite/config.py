"""The settings of Pyrite, each with its meaning.

Set them as attributes, or for the length of a block with `pyrite.config.patch(name=value)`, which is a decorator too.
An unknown name is an `AttributeError`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types

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
    # Which program a failure leaves behind: the captured one (capture) or each half after autograd (aot).
    "repro_after": os.environ.get("PYRITE_REPRO_AFTER") or "capture",
    # When: 1 on an error, 2 on an error and ready to be minified, 3 before every run, 4 when results differ.
    "repro_level": int(os.environ.get("PYRITE_REPRO_LEVEL") or 4),
    # Where repros are left.
    "debug_dir": os.environ.get("PYRITE_DEBUG_DIR") or "pyrite_debug",
    # The backend that says what is right.
    "reference": "eager",
    # How closely results are compared: off, fp or strict.
    "accuracy": "fp",
}


class _Settings(types.ModuleType):
    def __setattr__(self, name, value):
        if name not in self._DEFAULTS and not name.startswith("__"):
            raise AttributeError(f"pyrite.config has no setting `{name}`; it has {', '.join(sorted(self._DEFAULTS))}")
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
        for name in self.settings:
            if name not in _DEFAULTS:
                raise AttributeError(f"pyrite.config has no setting `{name}`; it has {', '.join(sorted(_DEFAULTS))}")
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
