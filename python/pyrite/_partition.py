"""ATen graphs cut into what Pyrite compiles and what torch runs.

A functional ATen graph, as AOTAutograd makes it, becomes another FX graph, the *host*. In it, the operators that Pyrite
knows are calls of *segments*, one compiled program each; *opaque* operators stand as they are and are run by torch; numbers
are computed by Python. Segments and opaque operators alternate in as few stages as the data flow allows.

Tensors may be on the CPU or on GPUs; a segment has those of one device. On a GPU a segment is loops alone: matmuls,
convolutions and attention are opaque there. Those that torch's libraries are slow at have kernels of their own (`_gpu_calls`).

Invariants:
- nothing in the graph writes to what another node sees, so that data flow alone orders it; effects and random draws keep
  their order all the same, and what is written to inputs (`copy_`, which AOTAutograd leaves on GPUs) is written last;
- a segment gets every size that it cannot read off its tensors as a number;
- sizes that depend on data (`nonzero`, `item`) are made by opaque operators only, so that a segment knows its symbols
  before it runs;
- an operator that Pyrite refuses to compile becomes opaque, and the graph is cut again.
"""

from __future__ import annotations

import contextlib
import functools
import operator

import torch

from pyrite import _native
from pyrite._gpu_calls import TILE, own_matmul, use_own_kernels
from pyrite._opaque import laid_out
from pyrite._native import CompileError, Graph
from pyrite._sizes import Sizes, is_symbolic

_DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
    torch.complex64: "c64",
    torch.complex128: "c128",
}

# The types of parameters that take any number: exponents, bounds, factors.
_NUMBERS = ("number", "Optional[number]")

# Operators under a second name.
_SAME = {"aten.true_divide.Tensor": "aten.div.Tensor"}

# Operators with a number, and those that take a tensor in its place.
_aten = torch.ops.aten
_WITH_TENSORS = {
    _aten.add.Tensor: _aten.add.Tensor,
    _aten.sub.Tensor: _aten.sub.Tensor,
    _aten.mul.Tensor: _aten.mul.Tensor,
    _aten.div.Tensor: _aten.div.Tensor,
    _aten.add.Scalar: _aten.add.Tensor,
    _aten.sub.Scalar: _aten.sub.Tensor,
    _aten.mul.Scalar: _aten.mul.Tensor,
    _aten.div.Scalar: _aten.div.Tensor,
    _aten.pow.Tensor_Scalar: _aten.pow.Tensor_Tensor,
    _aten.eq.Scalar: _aten.eq.Tensor,
    _aten.ne.Scalar: _aten.ne.Tensor,
    _aten.lt.Scalar: _aten.lt.Tensor,
    _aten.le.Scalar: _aten.le.Tensor,
    _aten.gt.Scalar: _aten.gt.Tensor,
    _aten.ge.Scalar: _aten.ge.Tensor,
}
# Operators that fill a tensor with a number, and which argument that is.
_FILLED = {
    _aten.full.default: 1,
    _aten.scalar_tensor.default: 0,
    _aten.new_full.default: 2,
    _aten.full_like.default: 1,
    _aten.masked_fill.Scalar: 2,
}
# Checks that hold by construction once sizes and metadata are known.
_DROPPED = {"aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default", "aten._assert_tensor_metadata.default"}


@functools.cache
def extern_operators():
    """The names of the operators that are never loops."""
    return frozenset(_native.extern_operators())


@functools.cache
def known_operators():
    """The names of the operators that Pyrite compiles."""
    return frozenset(_native.operators())


class Refusal(Exception):
    """Why an operator is opaque."""


class Opaque:
    """An operator that torch runs: its name, and why."""

    def __init__(self, name, reason):
        self.name, self.reason = name, reason

    def __repr__(self):
        return f"{self.name}: {self.reason}"


def cut(module, compile_segment, on_opaque):
    """The host of an ATen graph, a module that computes the same.

    `compile_segment(graph, name, device)` makes a program of a `pyrite.Graph`; `on_opaque` is told of every operator that
    torch runs.
    """
    refused = {}
    compile_bodies(module, compile_segment, on_opaque)
    use_own_kernels(module, is_gpu, _is_loop)
    for _ in range(len(module.graph.nodes) + 1):
        attempt = _Cut(module, refused)
        try:
            host = attempt.host(compile_segment)
        except _Refused as refusal:
            for node, reason in refusal.nodes.items():
                if not _with_known_numbers(node):
                    refused[node] = reason
            continue
        # On a GPU calls are torch's: a program of nothing else is recorded like others.
        if refused and not host.meta["segments"] and not all(is_gpu(_device(node)) for node in refused):
            raise CompileError(f"none of its operators can be compiled: {next(iter(refused.values()))}")
        for node, reason in attempt.opaque.items():
            on_opaque(Opaque(name_of(node.target), reason))
        return host
    raise CompileError("no cut of the graph can be compiled")


def _with_known_numbers(node):
    """Replaces the numbers of a call that are symbols by the values that they have, whether there are some: torch guards these.
    Sizes stay what they are."""
    known = {}
    for value, parameter in zip(node.args, getattr(node.target, "_schema").arguments):
        number = value.meta.get("val") if isinstance(value, torch.fx.Node) else None
        if isinstance(number, torch.SymInt) and str(parameter.type) in _NUMBERS and number.node.has_hint():
            known[value] = int(number)
    node.args = tuple(known.get(each, each) if isinstance(each, torch.fx.Node) else each for each in node.args)
    return bool(known)


class _Refused(Exception):
    """Nodes that a segment cannot have, and why."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes


def name_of(target):
    """An operator's name: `aten.add.Tensor`."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    if hasattr(target, "operator"):
        return target.operator
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _tensors(value, see):
    """Shows the tensors in what a node gives."""
    if isinstance(value, torch.Tensor):
        see(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _tensors(item, see)


def _has_tensor(value):
    found = []
    _tensors(value, found.append)
    return bool(found)


class _Cut:
    """One attempt to cut a graph."""

    def __init__(self, module, refused):
        self.module, self.refused = module, refused
        self.sizes = Sizes()
        self.opaque = {}
        self.kinds = {}
        self.stages = {}
        # Where the value of a symbol comes from: a node that is the number, or a tensor and its dimension.
        self.sources = {}
        last = {}
        for node in module.graph.nodes:
            self._place(node, last)

    # Which node goes where.

    def _place(self, node, last):
        if node.op in ("placeholder", "get_attr"):
            self.kinds[node], self.stages[node] = "input", -1
            self._note_sources(node)
            return
        if node.op == "output":
            return
        kind = self.kinds[node] = self._kind(node)
        before = [self.stages[each] + (self.kinds[each] != "compiled") for each in node.all_input_nodes if self._counts(node, each)]
        if kind == "compiled":
            names = self._symbols_of_arguments(node)
            sources = [self.sources[name][0] for name in names]
            before += [self.stages[each] + 1 for each in sources]
        else:
            before = [self.stages[each] for each in node.all_input_nodes]
        chain = _chain(node)
        if chain and chain in last:
            before.append(self.stages[last[chain]] + (kind == "compiled" and self.kinds[last[chain]] != "compiled"))
        self.stages[node] = max(before, default=0)
        if self.stages[node] < 0:
            self.stages[node] = 0
        if chain:
            last[chain] = node
        if kind != "compiled":
            self._note_sources(node)

    def _counts(self, node, each):
        """Whether a node waits for another: numbers that are written out as expressions are not waited for."""
        return self.kinds[node] != "compiled" or not self._is_number(each) or _is_late(each)

    def _is_number(self, node):
        value = node.meta.get("val")
        return is_symbolic(value) or isinstance(value, (int, float, bool))

    def _note_sources(self, node):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            for name in {self.sizes.symbol(value), self.sizes.argument(value)} - {None}:
                self.sources.setdefault(name, (node, None))
        elif isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt) and (name := self.sizes.symbol(size)):
                    self.sources.setdefault(name, (node, dim))

    def _kind(self, node):
        if node.target is operator.getitem and node.args[0] in self.kinds:
            kind = self.kinds[node.args[0]]
            if kind != "input":
                return kind
        if self._is_number(node) or (node.target is operator.getitem and not _has_tensor(node.meta.get("val"))):
            if node.target is not torch.ops.aten._local_scalar_dense.default:
                return "number"
        try:
            self._compilable(node)
        except Refusal as refusal:
            if name_of(node.target) not in _DROPPED and not _is_write(node):
                self.opaque[node] = str(refusal)
            return "opaque"
        return "compiled"

    def _compilable(self, node):
        """Refuses what a segment cannot have."""
        if node in self.refused:
            raise Refusal(self.refused[node])
        target = node.target
        if not isinstance(target, torch._ops.OpOverload) or _SAME.get(str(target), str(target)) not in known_operators():
            raise Refusal("Pyrite does not know it")
        if target._schema.is_mutable:
            raise Refusal("it writes")
        if self._depends_on_data(node):
            raise Refusal("its output's size depends on data")
        self._on_one_device(node)
        value = node.meta.get("val")
        if not _has_tensor(value):
            raise Refusal("it returns no tensor")
        _tensors(value, _supported)
        for each in node.all_input_nodes:
            given = each.meta.get("val")
            if isinstance(given, torch.SymBool) or (_is_late(each) and not self._takes_tensor(node, each)):
                raise Refusal("a number that is computed at run time is an argument")
            if each.op == "get_attr" and not isinstance(given, torch.Tensor):
                raise Refusal("a graph is an argument")
            _tensors(given, _supported)
        if any(isinstance(argument, torch.Generator) for argument in (*node.args, *node.kwargs.values())):
            raise Refusal("it draws from an explicit generator")
        if missing := [name for name in self._symbols_of_arguments(node) if name not in self.sources]:
            raise Refusal(f"the sizes {', '.join(missing)} are not known before it runs")

    def _on_one_device(self, node):
        """Refuses tensors of several devices, and on a GPU what is not a loop or draws random numbers: the GPU's are torch's."""
        devices = _devices(node)
        if len(devices) > 1:
            raise Refusal("its tensors are on several devices")
        if is_gpu(next(iter(devices), None)):
            if str(node.target) in extern_operators():
                raise Refusal("torch's own kernel is used on GPUs")
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                raise Refusal("random numbers on GPUs are torch's")
            if _is_one_long_row(node):
                raise Refusal("one long row would be one block of threads")

    def _takes_tensor(self, node, number):
        """Whether a tensor without dimensions can stand for a number: it is converted to the type that is computed in."""
        if node.target in _FILLED:
            return not node.meta["val"].is_complex()
        operand = node.args[0] if node.args else None
        return (
            node.target in _WITH_TENSORS
            and len(node.args) == 2
            and node.args[1] is number
            and not node.kwargs
            and isinstance(operand, torch.fx.Node)
            and isinstance(operand.meta.get("val"), torch.Tensor)
            and not operand.meta["val"].is_complex()
        )

    def _late_numbers(self, node):
        """The numbers of a node that tensors stand for, with the element types of these."""
        if node.target is operator.getitem:
            return {}
        late = [each for each in node.all_input_nodes if _is_late(each)]
        if late and node.target in _FILLED:
            dtype = node.meta["val"].dtype
        elif late:
            # A tensor without dimensions is promoted as a number is, and computed with in single precision at least.
            dtype = torch.float64 if node.args[0].meta["val"].dtype is torch.float64 else torch.float32
        return {each: dtype for each in late}

    def _depends_on_data(self, node):
        tags = node.target.tags
        if torch.Tag.dynamic_output_shape not in tags and torch.Tag.data_dependent_output not in tags:
            return False
        # An index by numbers gives as many elements as there are numbers.
        masks = [each for each in node.all_input_nodes if each.meta["val"].dtype in (torch.bool, torch.uint8)]
        return node.target is not torch.ops.aten.index.Tensor or any(mask is not node.args[0] for mask in masks)

    def _symbols_of_arguments(self, node):
        """The symbols that a compiled node's arguments are written with."""
        found = set()
        for each in node.all_input_nodes:
            value = each.meta.get("val")
            if isinstance(value, torch.SymInt):
                found |= self.sizes.symbols_of_argument(value)
        return sorted(found)

    # The host.

    def host(self, compile_segment):
        """The graph in which segments are calls."""
        self.graph = torch.fx.Graph()
        self.copies = {}
        wanted = self._wanted()
        stages = {}
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.copies[node] = self.graph.node_copy(node)
            elif node.op == "get_attr":
                name = _compiled_name(node) if _body(self.module, node) else node.target
                self.copies[node] = self.graph.get_attr(name)
            elif node.op == "output":
                end = node
            else:
                stages.setdefault(self.stages[node], []).append(node)
        count = 0
        for stage in sorted(stages):
            compiled = [node for node in stages[stage] if self.kinds[node] == "compiled"]
            for device in dict.fromkeys(map(_device, compiled)):
                self._add_segment([node for node in compiled if _device(node) == device], wanted, compile_segment, count)
                count += 1
            for node in stages[stage]:
                if node in wanted and self.kinds[node] != "compiled" and not _is_write(node):
                    self.copies[node] = self._matmul(node) if TILE in node.meta else self.graph.node_copy(node, self._copy)
        self._write_inputs([node for node, kind in self.kinds.items() if kind == "opaque" and _is_write(node)])
        kept = {node.target for node, kind in self.kinds.items() if kind == "opaque" and _chain(node)}
        self.graph.output(torch.fx.map_arg(end.args[0], self._copy))
        self.graph.eliminate_dead_code(lambda node: node.is_impure() or node.target in kept)
        host = torch.fx.GraphModule(self.module, self.graph, class_name="Host")
        host.meta["segments"] = count
        return host

    def _write_inputs(self, writes):
        """Writes to inputs, those of a kind at once. What lies in the memory of an input itself is copied first."""
        groups = {}
        for node in writes:
            place, value = node.args
            given = self._copy(value)
            if _is_in_input(value):
                given = self.graph.call_function(_aten.clone.default, (given,))
            like = (place.meta["val"].device, place.meta["val"].dtype, value.meta["val"].device, value.meta["val"].dtype)
            groups.setdefault(like, []).append((self._copy(place), given))
            self.copies[node] = self._copy(place)
        for pairs in groups.values():
            self.graph.call_function(_aten._foreach_copy_.default, tuple(map(list, zip(*pairs))))

    def _matmul(self, node):
        """A matmul of Pyrite's own on the host."""
        call = self.graph.call_function(own_matmul(node), tuple(map(self._copy, node.args)))
        call.meta["val"] = node.meta.get("val")
        return call

    def _copy(self, node):
        """A node on the host."""
        return self.copies[node]

    def _wanted(self):
        """The nodes whose values are needed outside of the segments that make them."""
        wanted = set()
        todo = []

        def want(node):
            if node not in wanted:
                wanted.add(node)
                todo.append(node)

        for node in self.module.graph.nodes:
            kind = self.kinds.get(node)
            if node.op == "output":
                for each in node.all_input_nodes:
                    want(each)
            elif kind == "opaque" and name_of(node.target) not in _DROPPED:
                want(node)
            elif kind == "compiled":
                for each in node.all_input_nodes:
                    crosses = self.kinds[each] != "compiled" or self.stages[each] != self.stages[node]
                    if crosses and (not self._is_number(each) or _is_late(each)):
                        want(each)
        # Segments take the values of symbols; those that none takes are dead code of the host.
        for node, _ in self.sources.values():
            want(node)
        while todo:
            node = todo.pop()
            if self.kinds[node] in ("opaque", "number"):
                for each in node.all_input_nodes:
                    want(each)
        return wanted

    def _add_segment(self, nodes, wanted, compile_segment, count):
        gives = [node for node in nodes if node in wanted and _is_tensor(node)]
        live = _live(nodes, gives)
        if not live:
            return
        inside = set(live)
        outside = dict.fromkeys(each for node in live for each in node.all_input_nodes if each not in inside)
        takes = [each for each in outside if _has_tensor(each.meta.get("val"))]
        late = dict.fromkeys(pair for node in live for pair in self._late_numbers(node).items())
        text, numbers = self._text(live, takes, gives)
        name, device = f"segment_{count}", _device(live[0])
        try:
            graph = Graph.from_text(text, self.sizes.hints)
        except ValueError as error:
            raise _Refused(self._guilty(live, error, lambda graph: None)) from None
        if unknown := graph.opaque_ops:
            raise CompileError(f"Pyrite does not know {', '.join(unknown)}")
        if unlike := _first_unlike(live, graph.types):
            raise _Refused(unlike)
        try:
            program = compile_segment(graph, name, device)
        except CompileError as error:
            raise _Refused(self._guilty(live, error, lambda graph: compile_segment(graph, name, device))) from None

        def segment(*arguments):
            return program(*arguments)

        segment.__name__ = segment.__qualname__ = name
        segment.program, segment.is_segment = program, True
        arguments = [self._laid_out(each) for each in takes]
        arguments += [self._number(number) for number in numbers]
        arguments += [self.graph.call_function(as_tensor, (self._copy(number), dtype, device)) for number, dtype in late]
        call = self.graph.call_function(segment, tuple(arguments))
        for index, node in enumerate(gives):
            self.copies[node] = self.graph.call_function(operator.getitem, (call, index))
            self.copies[node].meta["val"] = node.meta.get("val")

    def _laid_out(self, node):
        """A tensor on the host with the strides and the type that a segment is compiled for. Opaque operators may give others than told."""
        strides = node.meta["val"].stride()
        if self.kinds[node] != "opaque" or not all(isinstance(each, int) for each in strides):
            return self._copy(node)
        return self.graph.call_function(laid_out, (self._copy(node), strides, node.meta["val"].dtype))

    def _number(self, name):
        node, dim = self.sources[name]
        if dim is None:
            return self._copy(node)
        return self.graph.call_function(size_of, (self._copy(node), dim))

    def _guilty(self, nodes, error, compile):
        """The nodes that cannot be compiled, and why: the one that an error names, or each that fails alone."""
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        named = [node for node in nodes if node.name == getattr(error, "node", None)]
        named = named or [node for node in nodes if str(node.target) in getattr(error, "operators", ())]
        if named:
            return {_producer(node): reason for node in named}
        guilty = {}
        for node in nodes:
            if node.target is operator.getitem:
                continue
            family = [node, *(user for user in node.users if user.target is operator.getitem and user in nodes)]
            takes = [each for each in dict.fromkeys(node.all_input_nodes) if _has_tensor(each.meta.get("val"))]
            gives = [each for each in family if _is_tensor(each)]
            try:
                compile(Graph.from_text(self._text(family, takes, gives)[0], self.sizes.hints))
            except (CompileError, ValueError) as alone:
                guilty[node] = next(iter(str(alone).strip().splitlines()), type(alone).__name__)
        if not guilty:
            raise CompileError(str(error))
        return guilty

    # Text.

    def _text(self, nodes, takes, gives):
        """Nodes as the text of a graph, and the symbols that it takes after its tensors."""
        wanted, bound, shapes = set(), set(), {}
        stage = self.stages[nodes[0]]
        sourced = {name for name, (node, _) in self.sources.items() if self.stages[node] < stage}
        for node in nodes:
            wanted.update(self._symbols_of_arguments(node))
        for each in takes:
            value = each.meta["val"]
            for size in value.shape:
                if name := self.sizes.symbol(size):
                    bound.add(name)
        for index, each in enumerate(takes):
            value = each.meta["val"]
            texts = []
            for dims in (value.shape, value.stride()):
                part = []
                for dim, size in enumerate(dims):
                    if self.sizes.symbols(size) <= bound | sourced:
                        part.append(self.sizes.text(size))
                        wanted.update(self.sizes.symbols(size) - bound)
                    else:
                        part.append(f"d{index}_{dim}")
                texts.append(", ".join(part))
            shapes[each] = f"{_DTYPES[value.dtype]}[{texts[0]}][{texts[1]}]cpu"
        numbers = sorted(wanted)
        places = [f'{each.name}: "{shapes[each]}"' for each in takes]
        places += [f'{name}: "Sym({name})"' for name in numbers]
        late = dict.fromkeys(pair for node in nodes for pair in self._late_numbers(node).items())
        places += [f'{_late_name(*pair)}: "{_DTYPES[pair[1]]}[][]cpu"' for pair in late]
        lines = [f"def forward(self{''.join(', ' + place for place in places)}):"]
        for node in nodes:
            if node.target is operator.getitem:
                lines.append(f"    {node.name} = {node.args[0].name}[{node.args[1]}]")
                continue
            if late := self._late_numbers(node):
                lines.append(f"    {node.name} = {self._with_tensor(node, late)}")
                continue
            given = [self._argument(each) for each in node.args]
            given += [f"{key} = {self._argument(each)}" for key, each in node.kwargs.items() if key != "pin_memory"]
            lines.append(f"    {node.name} = torch.ops.{_SAME.get(str(node.target), node.target)}({', '.join(given)})")
        lines.append(f"    return ({''.join(node.name + ', ' for node in gives)})")
        text = "class Segment(torch.nn.Module):\n" + "".join(f"    {line}\n" for line in lines)
        return text, numbers

    def _with_tensor(self, node, late):
        """A call in which a tensor stands for a number."""
        ((number, dtype),) = late.items()
        tensor = _late_name(number, dtype)
        if node.target is torch.ops.aten.scalar_tensor.default:
            return f"torch.ops.aten.clone.default({tensor})"
        if node.target is torch.ops.aten.masked_fill.Scalar:
            return f"torch.ops.aten.masked_fill.Tensor({node.args[0].name}, {node.args[1].name}, {tensor})"
        if node.target is torch.ops.aten.full_like.default:
            layout = "".join(f", {key} = {self._argument(each)}" for key, each in node.kwargs.items() if key == "memory_format")
            ones = f"torch.ops.aten.full_like.default({node.args[0].name}, 1, dtype = {dtype}{layout})"
            return f"torch.ops.aten.mul.Tensor({ones}, {tensor})"
        if node.target in _FILLED:
            size = node.args[_FILLED[node.target] - 1]
            ones = f"torch.ops.aten.full.default({self._argument(size)}, 1, dtype = {dtype})"
            return f"torch.ops.aten.mul.Tensor({ones}, {tensor})"
        return f"torch.ops.{_WITH_TENSORS[node.target]}({node.args[0].name}, {tensor})"

    def _argument(self, value):
        if isinstance(value, torch.fx.Node):
            known = value.meta.get("val")
            if isinstance(known, torch.SymInt):
                return self.sizes.argument(known)
            if isinstance(known, (int, float, bool)):
                return repr(known)
            return value.name
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self._argument, value)) + "]"
        if isinstance(value, torch.device):
            return "device(type='cpu')"
        if isinstance(value, torch.SymInt):
            return self.sizes.argument(value)
        return repr(value)


def _body(module, node):
    """The graph that an operator calls, by the node that names it; `None` where it names something else."""
    value = functools.reduce(getattr, node.target.split("."), module)
    return value if isinstance(value, torch.fx.GraphModule) else None


def _compiled_name(node):
    return f"compiled_{node.target.replace('.', '_')}"


def compile_bodies(module, compile_segment, on_opaque):
    """Cuts the graphs that higher-order operators call, and puts them beside the originals."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and (body := _body(module, node)) and not hasattr(module, _compiled_name(node)):
            setattr(module, _compiled_name(node), cut(body, compile_segment, on_opaque))


def as_tensor(number, dtype, device):
    """A number as a tensor without dimensions."""
    if is_gpu(device):
        return torch.full((), number, dtype=dtype, device=device)  # which waits for nothing
    return torch.tensor(number, dtype=dtype, device=device)


def _late_name(number, dtype):
    return f"late_{number.name}_{_DTYPES[dtype]}"


def size_of(tensor, dim):
    """A size of a tensor."""
    return tensor.shape[dim]


def _is_late(number):
    """Whether a number is known at run time only and is no size."""
    return isinstance(number.meta.get("val"), torch.SymFloat)


def _is_tensor(node):
    return isinstance(node.meta.get("val"), torch.Tensor)


def _is_write(node):
    """Whether a node writes all of an input, which nothing else in the graph is to see."""
    return node.target is _aten.copy_.default and node.args[0].op == "placeholder" and len(node.args) == 2 and not node.kwargs


def _is_in_input(node):
    """Whether a tensor may lie in the memory of an input: it is one, or a view."""
    while node.op == "call_function":
        views = isinstance(node.target, torch._ops.OpOverload) and any(each.alias_info for each in node.target._schema.returns)
        if not views and node.target is not operator.getitem:
            return False
        node = node.args[0]
    return True


def _first_unlike(nodes, types):
    """The first node that has another type or other sizes for Pyrite than for torch, and what they are. Some depend on the device."""
    for node in nodes:
        if _is_tensor(node) and (found := types.get(node.name)):
            value, (dtype, sizes) = node.meta["val"], found
            is_alike = len(sizes) == value.dim() and all(a is None or not isinstance(b, int) or a == b for a, b in zip(sizes, value.shape))
            if dtype != _DTYPES[value.dtype] or not is_alike:
                return {_producer(node): f"Pyrite computes {dtype}{sizes}, torch {_DTYPES[value.dtype]}{list(value.shape)}"}
    return {}


def _producer(node):
    return node.args[0] if node.target is operator.getitem else node


# Whether segments of the CPU are compiled and cut as those of GPUs are.
_as_gpu = False


def is_gpu(device):
    """Whether what is on a device is compiled for a GPU."""
    return device is not None and (device.type == "cuda" or _as_gpu)


@contextlib.contextmanager
def as_on_gpu(on):
    """Treats the CPU as a GPU meanwhile, if it is on."""
    global _as_gpu
    before, _as_gpu = _as_gpu, on
    try:
        yield
    finally:
        _as_gpu = before


def _devices(node):
    """The devices of a node's tensors."""
    found = set()
    for each in (node, *node.all_input_nodes):
        _tensors(each.meta.get("val"), lambda tensor: found.add(tensor.device))
    return found


# A row of so many elements is torch's to reduce, where there are fewer than so many rows.
_LONG_ROW, _FEW_ROWS = 1 << 17, 64


# Views, which compute nothing.
_VIEWS = {
    _aten.view.default,
    _aten._unsafe_view.default,
    _aten.reshape.default,
    _aten.transpose.int,
    _aten.permute.default,
    _aten.unsqueeze.default,
    _aten.squeeze.dim,
    _aten.t.default,
    _aten.expand.default,
    _aten.split.Tensor,
    _aten.split_with_sizes.default,
    _aten.slice.Tensor,
    _aten.select.int,
    _aten.squeeze.dims,
    operator.getitem,
}


def _is_loop(node):
    """Whether a kernel of loops computes a node, or all that read a view."""
    if node.target in _VIEWS:
        return all(map(_is_loop, node.users))
    return node.op == "call_function" and str(node.target) in known_operators() and str(node.target) not in extern_operators()


def _is_one_long_row(node):
    """Whether a few long rows are reduced: a segment has a block of threads for each, unless it can split the only one."""
    given, made = [], []
    for each in node.all_input_nodes:
        _tensors(each.meta.get("val"), lambda tensor: given.append(tensor.numel()))
    _tensors(node.meta.get("val"), lambda tensor: made.append(tensor.numel()))
    if not given or not made or not all(isinstance(count, int) for count in (*given, *made)):
        return False
    if max(made) >= _FEW_ROWS or max(given) < _LONG_ROW * max(1, max(made)):
        return False
    return max(made) > 1 or all(max(given) % parts for parts in range(64, 4097))


def _device(node):
    """The device of a node that has one."""
    return next(iter(_devices(node)))


def _supported(tensor):
    """Refuses a tensor that Pyrite cannot have."""
    if tensor.device.type not in ("cpu", "cuda"):
        raise Refusal(f"its device is {tensor.device.type}")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        raise Refusal("a tensor is not strided")
    if tensor.dtype not in _DTYPES:
        raise Refusal(f"a tensor is of {str(tensor.dtype).removeprefix('torch.')}")
    if torch._C._has_storage(tensor) and (tensor.is_conj() or tensor.is_neg()):
        raise Refusal("a tensor is conjugated or negated when it is read")


def _chain(node):
    """What keeps its order among others of its kind: random draws, and effects."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags:
        return "random"
    return "effect" if node.op == "call_function" and node.is_impure() and not name_of(target).startswith("aten._assert") else None


def _live(nodes, gives):
    """The nodes that results depend on, and those that draw random numbers."""
    needed = set(gives)
    live = []
    for node in reversed(nodes):
        if node in needed or _chain(node) == "random":
            live.append(node)
            needed.update(node.all_input_nodes)
    live.reverse()
    return live
