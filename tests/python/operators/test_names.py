"""Functions of `torch.nn.functional` that are taken for the operator of their name have its parameters, in its order."""

import ast
import inspect
import pathlib
import types

import torch.nn.functional as F

from operators.conformance import opinfos  # noqa: F401  (torch's operators are loaded)

RULES = pathlib.Path(__file__).parents[3] / "crates/pyrite-reader/src/functional.py"

# What Python calls otherwise than the schema does.
SYNONYMS = {"input": "self", "training": "train"}


def ruled():
    """The functions of `torch.nn.functional` for which there is a rule."""
    classes = [node for node in ast.parse(RULES.read_text()).body if isinstance(node, ast.ClassDef)]
    functional = [node for node in classes if "torch.nn.functional" in (ast.get_docstring(node) or "")]
    return {node.name: node for each in functional for node in each.body if isinstance(node, ast.FunctionDef)}


def parameters(function):
    return [SYNONYMS.get(name, name) for name in inspect.signature(function).parameters]


def fits(function, schema):
    """Whether a call of the function is one of the operator: the operator's parameters begin with the function's."""
    wanted = [SYNONYMS.get(argument.name, argument.name) for argument in schema.arguments]
    given = [name for name in parameters(function) if name != "inplace"]
    return given == wanted[: len(given)]


def test_functions_without_a_rule_are_their_operators():
    import torch

    wrong = []
    for name, function in vars(F).items():
        packet = getattr(torch.ops.aten, name, None)
        if not isinstance(function, types.FunctionType) or name.startswith("_") or packet is None or name in ruled():
            continue
        schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
        if not any(fits(function, schema) for schema in schemas):
            wrong.append(f"{name}{inspect.signature(function)}")
    # These return indices too, whatever their last argument says, and are called by those that have rules.
    assert [text for text in wrong if "_with_indices" not in text] == []


def test_rules_take_what_the_functions_take():
    wrong = []
    for name, rule in ruled().items():
        function = getattr(F, name, None)
        if not isinstance(function, types.FunctionType):
            continue
        theirs = list(inspect.signature(function).parameters)
        ours = [argument.arg for argument in rule.args.args + rule.args.kwonlyargs]
        if theirs != ["args", "kwargs"] and ours[: len(theirs)] != theirs:
            wrong.append(f"{name}: {ours} instead of {theirs}")
    assert wrong == []
