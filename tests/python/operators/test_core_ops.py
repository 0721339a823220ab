"""Pyrite's core operators are the ones that torch tags as core."""

import json

from operators.conformance import core_overloads


def test_the_core_operators_are_those_that_torch_tags(pyrite):
    names = [entry["name"] for entry in json.loads(pyrite("ops", "--core", "--json"))]
    assert sorted(names) == core_overloads()


def test_torch_tags_193_overloads():
    assert len(core_overloads()) == 193
