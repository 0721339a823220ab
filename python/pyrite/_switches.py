"""The switches of torch.compile, as far as Pyrite has what they switch.

A program that sets `torch._dynamo.config` or a stance, or calls `torch._dynamo.reset()`, means every compiler that it uses. Nothing here
imports torch's own compiler: where nobody has, its switches are as they were. What stands in `pyrite.config` or is given to
`pyrite.compile` comes first; a switch that torch has as it was says nothing.
"""

from __future__ import annotations

import sys

from pyrite import _native, config


def is_off():
    """Whether compiled functions run plain."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    return frames is not None and (frames._stance.stance == "force_eager" or frames.config.disable)


def suppresses_errors():
    """Whether a backend that fails lets the frame run plain."""
    theirs = sys.modules.get("torch._dynamo.config")
    return config.suppress_errors or (theirs is not None and theirs.suppress_errors)


class Missed:
    """What becomes of a frame that no program fits."""

    __slots__ = ("dynamic", "fixes_floats", "fixes_integers", "limit", "runs_plain")

    def __init__(self, limit):
        # How many programs a code may have.
        self.limit = limit
        # Whether this frame runs plain, and the next one is looked at again.
        self.runs_plain = False
        # Whether all sizes are symbols, or none; `None` lets those that change become symbols.
        self.dynamic = None
        # Whether numbers stay constants although they change.
        self.fixes_integers = self.fixes_floats = False


def missed(limit, programs, function):
    """Asked when no program of a code fits a frame; `programs` is how many it has. Raises where that is an error."""
    result = Missed(limit)
    frames = sys.modules.get("torch._dynamo.eval_frame")
    if frames is None:
        return result
    _follow_resets(frames)
    stance, theirs, errors = frames._stance.stance, frames.config, sys.modules["torch._dynamo.exc"]
    if programs and stance == "fail_on_recompile":
        raise RuntimeError(f"{function} would be compiled again, and the stance of torch.compile is fail_on_recompile")
    if programs and theirs.error_on_recompile:
        raise errors.RecompileError(f"{function} would be compiled again, and torch._dynamo.config.error_on_recompile is set")
    result.runs_plain = bool(programs) and stance == "eager_on_recompile"
    # Where it was patched for a while it counts as set, although it is what it was.
    if theirs.recompile_limit != theirs._config["recompile_limit"].default:
        result.limit = theirs.recompile_limit
    if programs >= result.limit and theirs.fail_on_recompile_limit_hit:
        raise errors.FailOnRecompileLimitHit(f"{function} was compiled {programs} times, which is the limit")
    if not theirs.assume_static_by_default:
        result.dynamic = True
    elif not theirs.automatic_dynamic_shapes:
        result.dynamic = False
    result.fixes_integers = theirs.specialize_int
    result.fixes_floats = theirs.specialize_float
    return result


class _Resets:
    """Looks like a backend to torch's own compiler, which tells it when everything is to be forgotten."""

    @staticmethod
    def reset():
        _native.forget_captures()


def _follow_resets(frames):
    frames.cached_backends.setdefault(id(_Resets), _Resets)
