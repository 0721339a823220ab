"""The typed stubs name what the package has."""

import ast
import inspect
import pathlib

import pyrite as package
from pyrite import config

PLACE = pathlib.Path(package.__file__).parent


def names(stub):
    """The names that a stub makes public, with the parameters of functions."""
    found = {}
    for node in ast.parse((PLACE / stub).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname: node for each in node.names if each.asname == each.name}
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def test_every_public_name_is_in_the_stub_and_the_other_way_round():
    modules = {"autograd", "backends", "config", "debug", "fx", "logs", "ranks", "torch_backend"}
    beside = {"BreakReason", "Explanation", "InputSpec", "OutputSpec", "Signature"}
    assert set(names("__init__.pyi")) == set(package.__all__) | modules | beside


def test_functions_take_what_the_stub_says():
    for name, node in names("__init__.pyi").items():
        if isinstance(node, ast.FunctionDef):
            code = inspect.unwrap(getattr(package, name)).__code__
            arguments = node.args
            told = [each.arg for each in [*arguments.args, *arguments.kwonlyargs]]
            assert told == list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]), name


def test_every_setting_has_a_type():
    assert set(config._DEFAULTS) <= set(names("config.pyi"))
