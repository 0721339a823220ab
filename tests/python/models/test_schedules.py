"""The schedules of the five models after every pass of the native compiler, as `pyrite compile --print=after:PASS` prints them."""

import pathlib
import re

import pytest

from models import measured

PAGE = pathlib.Path(__file__).parents[3] / "docs/reference/passes.md"


def passes():
    """The names of the passes, from the table that `cargo xtask docs` writes."""
    table = PAGE.read_text().split("\n## ")[1]
    return re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)


def statements(text, kind):
    """How many statements of a kind a schedule has."""
    return len(re.findall(rf"^{kind}\b", text, re.MULTILINE))


@pytest.mark.parametrize("model", measured.MODELS)
def test_the_schedules_of_a_model_are_printed_after_every_pass(pyrite, dumps, model):
    path = dumps / model / "dynamo_repro.py"
    names = passes()
    assert names[0] == "lower" and names[-1] == "reuse-buffers" and len(names) > 10
    printed = {name: pyrite("compile", path, f"--print=after:{name}") for name in names}
    for name, text in printed.items():
        # Passes that are for one target only say so.
        assert re.findall(r"^# ([\w -]+)", text, re.MULTILINE) == [f"forward after {name}", f"backward after {name}"], name
        assert statements(text, "loop") > 5 and statements(text, "return") == 2, name
    assert statements(printed["fuse"], "loop") < statements(printed["lower"], "loop")
    assert " reuse " not in printed["fuse-prologue"] and "reuse" in printed["reuse-buffers"]
