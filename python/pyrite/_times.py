"""How long the stages of compiling took since the start or the last `pyrite.reset()`."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Spent:
    """What a stage took: how often it ran, how many seconds in all, and the longest run."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0


_stages: dict[str, Spent] = {}


def add(stage, seconds):
    """Notes a run of a stage."""
    spent = _stages.setdefault(stage, Spent())
    spent.count += 1
    spent.seconds += seconds
    spent.longest = max(spent.longest, seconds)


def clear():
    """Forgets all runs."""
    _stages.clear()


def compile_times(repr="str"):
    """How long compiling took, stage by stage.

    `repr="str"` gives a table as text, `"csv"` the headers and the rows of that table, `"data"` a dictionary by stage with
    `count`, `seconds` and `longest`. The stage `capture` is Pyrite's evaluation of frames and `backend` all that the backend
    did; names such as `backend.joint` are parts of the latter, where it is one of Pyrite's.
    """
    headers = ("stage", "count", "seconds", "longest")
    if repr == "data":
        return {stage: dataclasses.asdict(spent) for stage, spent in _stages.items()}
    rows = [(stage, *dataclasses.astuple(spent)) for stage, spent in _stages.items()]
    if repr == "csv":
        return list(headers), [list(row) for row in rows]
    if repr != "str":
        raise ValueError(f"compile_times knows `str`, `csv` and `data`, not `{repr}`")
    lines = [f"{'stage':<24}{'count':>7}{'seconds':>12}{'longest':>12}"]
    lines += [f"{stage:<24}{count:>7}{seconds:>12.6f}{longest:>12.6f}" for stage, count, seconds, longest in rows]
    return "\n".join(lines)
