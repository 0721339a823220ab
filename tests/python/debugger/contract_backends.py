"""Backends of torch.compile for proofs, for `--import contract_backends`.

`wrong_*` are wrong in one part of the contract each, where a graph has a relu. `free_*` are right, and differ from eager by what the
operators leave open. `lenient` gives zeros where eager raises an error. `planted_KIND_OPERATOR` gives a wrong result, raises an error, crashes or
hangs where a graph has the operator.
"""

import os
import signal
import time

import torch
from torch._dynamo import register_backend

# A module that runs a large operator when it is imported starts the threads of a pool.
torch.ones(1 << 20).sin_().sum()


def has(module, name):
    return any(name in str(node.target) for node in module.graph.nodes if node.op == "call_function")


def changed(name, operator, change):
    """Registers a backend that changes what a graph with the operator does: `change` gets its function and its arguments."""

    @register_backend(name=name)
    def compiler(module, _example_inputs, **_options):
        if not has(module, operator):
            return module.forward
        return lambda *arguments: change(module.forward, arguments)

    return compiler


def of_first(spoil):
    def change(function, arguments):
        first, *rest = function(*arguments)
        return (spoil(first), *rest)

    return change


class Spoiled(torch.autograd.Function):
    @staticmethod
    def forward(_context, value):
        return value.clone()

    @staticmethod
    def backward(_context, gradient):
        return gradient * 2


def lost_write(function, arguments):
    kept = [value.clone() if isinstance(value, torch.Tensor) else value for value in arguments]
    return function(*kept)


@register_backend(name="lenient")
def lenient(module, _example_inputs, **_options):
    """Gives zeros where eager raises an error."""
    values = [node.meta.get("example_value") for node in next(iter(module.graph.find_nodes(op="output"))).args[0]]

    def call(*arguments):
        try:
            return module.forward(*arguments)
        except Exception:
            return tuple(torch.zeros(value.shape, dtype=value.dtype) for value in values)

    return call


changed("wrong_value", "relu", of_first(lambda value: value + 1))
changed("wrong_shape", "relu", of_first(lambda value: value[None]))
changed("wrong_dtype", "relu", of_first(torch.Tensor.double))
changed("wrong_stride", "relu", of_first(lambda value: value.mT.contiguous().mT))
changed("wrong_structure", "relu", of_first(lambda value: None))
changed("wrong_alias", "aten.t.", of_first(torch.clone))
changed("wrong_mutation", "relu_", lost_write)
changed("wrong_gradient", "relu", of_first(Spoiled.apply))


def ties(function, arguments):
    """Names the last of equal elements."""
    values, indices, *rest = function(*arguments)
    flipped = arguments[0].shape[-1] - 1 - arguments[0].flip(-1).topk(values.shape[-1]).indices
    return (values, flipped, *rest)


def negated(*places):
    def change(function, arguments):
        return tuple(-value if place in places else value for place, value in enumerate(function(*arguments)))

    return change


def in_another_basis(values, vectors):
    """Other vectors that span the space, where all eigenvalues are equal. They lie as the operator's do."""
    if values.unique().numel() > 1:
        return values, vectors
    basis = torch.linalg.qr(torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [5.0, 6.0, 0.0]])).Q
    return values, (vectors @ basis).mT.contiguous().mT


def redrawn(function, arguments):
    torch.rand(7)
    return function(*arguments)


def last_first(function, arguments):
    """Writes in another order: the index and what is written reversed."""
    target, index, source = arguments
    return function(target, index.flip(0), source.flip(0))


def pooled_from_the_end(function, arguments):
    """Has the gradient of a pooling go to the last of equal elements."""
    first, *rest = arguments
    return [value.flip(-1, -2) for value in function(first.flip(-1, -2), *rest)]


changed("free_pool", "max_pool", lambda function, arguments: [v if v.is_floating_point() else v + 5 for v in function(*arguments)])
changed("free_cummax", "cummax", lambda function, arguments: [v if v.is_floating_point() else v * 0 for v in function(*arguments)])
changed("free_pool_gradient", "max_pool", pooled_from_the_end)
changed("wrong_pool_gradient", "max_pool", of_first(Spoiled.apply))
changed("free_topk", "topk", ties)
changed("free_sort", "sort", lambda function, arguments: (function(*arguments)[0], arguments[0].shape[-1] - 1 - arguments[0].flip(-1).sort().indices))
changed("free_topk_unsorted", "topk", lambda function, arguments: [value.flip(-1) for value in function(*arguments)])
changed("free_eigh", "eigh", negated(1))
changed("free_eigh_equal", "eigh", lambda function, arguments: in_another_basis(*function(*arguments)))
changed("free_svd", "svd", negated(0, 2))
changed("free_qr", "qr", negated(0, 1))
changed("free_angle", "angle", negated(0))
changed("free_atan2", "atan2", negated(0))
changed("free_order", "index_put", last_first)
changed("free_scatter", "scatter", last_first)
changed("free_random", "rand", redrawn)
changed("free_dropout", "dropout", redrawn)
changed("free_threads", "relu", lambda function, arguments: function(*arguments))


def refused():
    raise RuntimeError("the operator of 3 elements is refused")


def crashed():
    os.kill(os.getpid(), signal.SIGSEGV)


def hung():
    while True:
        time.sleep(1)


def first(happens):
    def change(function, arguments):
        happens()
        return function(*arguments)

    return change


def shifted(function, arguments):
    return tuple(v + 1 if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in function(*arguments))


KINDS = {"wrong": shifted, "error": first(refused), "crash": first(crashed), "hang": first(hung)}
OPERATORS = ["relu", "cos", "sum", "mm", "sigmoid", "gelu", "layer_norm", "convolution", "embedding", "tanh"]

for kind, change in KINDS.items():
    for operator in OPERATORS:
        changed(f"planted_{kind}_{operator}", operator, change)
