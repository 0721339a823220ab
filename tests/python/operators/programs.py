"""Programs: functions of tensors traced by make_fx into graph modules, with the inputs they run with."""

import functools
import hashlib
from dataclasses import dataclass

import torch
import torch.utils._pytree as pytree
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from operators.compare import WIDER, Outcome
from operators.worker import DTYPE_NAMES, Encoder, Untransportable, storage_bytes, storage_of

SEED = 2025

# Operators that draw the same numbers in every precision.
SAME_DRAWS = {"aten.bernoulli.p", "aten.bernoulli_.float", "aten.native_dropout.default"}

# Operators that leave their result's memory as it was.
UNSET = {
    "aten::empty",
    "aten::empty_like",
    "aten::empty_permuted",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
}


@dataclass
class Program:
    """A graph module, its text, and the inputs it runs with."""

    module: torch.fx.GraphModule
    inputs: list

    def __post_init__(self):
        self.text = self.module.print_readable(print_output=False, include_stride=True)
        self.overloads = sorted({str(node.target) for node in self.calls()})
        drawing = {str(node.target) for node in self.calls() if draws_numbers(node)}
        self.random = bool(drawing)
        self.has_fp64 = drawing <= SAME_DRAWS

    def calls(self):
        for node in self.module.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                yield node

    def key(self):
        """Equal for programs whose run would be the same: text, input metadata and bytes."""
        encoder = Encoder()
        values = [encoder.value(value) for value in self.inputs]
        digest = hashlib.sha256(self.text.encode())
        digest.update(repr(values).encode())
        for storage in encoder.storages:
            digest.update(storage_bytes(storage))
        return digest.digest()

    def unset_outputs(self):
        """The positions of outputs that show uninitialised memory."""
        (output,) = [node for node in self.module.graph.nodes if node.op == "output"]
        return {k for k, node in enumerate(output.args[0]) if isinstance(node, torch.fx.Node) and is_unset(node)}

    def eager(self, inputs):
        """Runs in torch on copies of the inputs."""
        inputs = copy_inputs(inputs)
        storages = Encoder()
        for value in inputs:
            storages.value(value)
        if self.random:
            torch.manual_seed(SEED)
        return Outcome(self.module(*inputs), inputs, storages.storages)

    def fp64(self):
        """The same in double precision, or None where that has no meaning or no kernel."""
        if not self.has_fp64 or not any(isinstance(v, torch.Tensor) and v.dtype in WIDER for v in self.inputs):
            return None
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(self.module.graph, {}))
        for node in graph.nodes:
            node.args, node.kwargs = pytree.tree_map(widened, (node.args, node.kwargs))
        wide = Program(torch.fx.GraphModule(self.module, graph, "Repro"), [widened(value) for value in self.inputs])
        try:
            return wide.eager(wide.inputs)
        except Exception:
            return None


def draws_numbers(node):
    """Whether a call uses the generator. Attention does only where it drops something."""
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args)), **node.kwargs}
    return "attention" not in node.target._schema.name or given.get("dropout_p", 0.0) != 0.0


def is_unset(node):
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    written = any(isinstance(user.target, torch._ops.OpOverload) and user.target._schema.is_mutable for user in node.users)
    if node.target._schema.name in UNSET:
        return not written
    view = node.target.is_view and isinstance(node.args[0], torch.fx.Node)
    return view and not written and is_unset(node.args[0])


def widened(value):
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        # The whole storage, so that elements that lie at one place still do.
        storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        return storage.to(WIDER[value.dtype]).as_strided(value.shape, value.stride(), value.storage_offset())
    return value


def copy_inputs(inputs):
    """Copies whole storages, so that strides, offsets and sharing stay as they are."""
    copies = {}

    def copy(value):
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in copies:
            copies[storage._cdata] = storage_of(storage_bytes(storage))
        return torch.empty(0, dtype=value.dtype).set_(copies[storage._cdata], value.storage_offset(), value.shape, value.stride())

    return [copy(value) for value in inputs]


def plain_input(value):
    """A tensor that can travel: no autograd, no lazy bits, no subclass."""
    if value.layout != torch.strided or value.device.type != "cpu":
        raise Untransportable(f"a tensor with layout {value.layout} on {value.device}")
    if value.dtype not in DTYPE_NAMES:
        raise Untransportable(f"dtype {value.dtype}")
    return value.detach().resolve_conj().resolve_neg()


decompositions = functools.cache(core_aten_decompositions)


def trace(function, inputs, table):
    """The program of a function of tensors, with its results in one list and its constants as further inputs."""
    module = make_fx(
        lambda *tensors: pytree.tree_leaves(function(*tensors)),
        decomposition_table=table,
        tracing_mode="real",
        _error_on_data_dependent_ops=False,
    )(*copy_inputs(inputs))
    return lift_constants(module, inputs)


def lift_constants(module, inputs):
    graph, inputs = module.graph, list(inputs)
    last = [node for node in graph.nodes if node.op == "placeholder"]
    placeholders = {}
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            raise Untransportable(f"a constant of type {type(value).__name__}")
        if node.target not in placeholders:
            with graph.inserting_after(last[-1]) if last else graph.inserting_before(next(iter(graph.nodes))):
                placeholder = graph.placeholder(node.target)
            placeholder.meta = dict(node.meta)
            last.append(placeholder)
            placeholders[node.target] = placeholder
            inputs.append(plain_input(value))
        node.replace_all_uses_with(placeholders[node.target])
        graph.erase_node(node)
    graph.lint()
    return Program(torch.fx.GraphModule(module, graph, "Repro"), inputs)
