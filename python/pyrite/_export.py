"""Whole programs that outlive their Python: `export` captures a call as one graph, `load` reads what was saved.

An exported program is a graph, the tensors that it owns, how the arguments of a call become inputs and outputs become the result, and
what has to hold of the sizes. A call is checked against all of it before anything runs. What is saved is the file of a graph, which
every command of `pyrite` reads, with one line of JSON for what a graph does not say; tensors lie in `storages` beside it.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import hashlib
import inspect
import io
import json
import operator
import os
import pathlib
import re

import torch
import torch.utils._pytree as pytree

from pyrite import _native, backends
from pyrite._capture import compile
from pyrite._errors import PyriteError

_FORMAT = 1
_HEADER = "# pyrite.export: "


class ExportError(PyriteError):
    """A function cannot be exported, or an exported program cannot be called so; the message says why, and what to do."""


class Kind(enum.Enum):
    """What an input of an exported graph is."""

    USER_INPUT = "user input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    # A tensor that the function holds in another way: a global, an attribute that is neither.
    CONSTANT = "constant"


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """An input of the graph: its kind, its name in the graph, and the leaf of the arguments or the name of the tensor that it is."""

    kind: Kind
    name: str
    target: int | str


@dataclasses.dataclass(frozen=True)
class OutputSpec:
    """A leaf of the result: an output of the graph, an input of it, or a plain value."""

    kind: str
    value: object


@dataclasses.dataclass(frozen=True)
class Signature:
    """How the arguments of a call become inputs of the graph, and its outputs the result."""

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    # The outputs of the graph that have to be true.
    asserted: tuple[int, ...] = ()

    @property
    def parameters(self):
        """The names of the parameters."""
        return [spec.target for spec in self.inputs if spec.kind is Kind.PARAMETER]

    @property
    def buffers(self):
        """The names of the buffers."""
        return [spec.target for spec in self.inputs if spec.kind is Kind.BUFFER]

    @property
    def user_inputs(self):
        """The names of the inputs that the caller gives."""
        return [spec.name for spec in self.inputs if spec.kind is Kind.USER_INPUT]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """What is known of one leaf of the arguments: of a tensor its type and sizes, of anything else its value."""

    path: str
    dtype: str | None = None
    # A number for a size that is fixed, the name of a symbol for one that is not.
    shape: tuple[int | str, ...] = ()
    value: object = None


@dataclasses.dataclass(frozen=True)
class Range:
    """A symbol among the sizes: its name, and the sizes that it stands for."""

    low: int = 0
    high: int | None = None


class ExportedProgram:
    """A function as one graph; see `pyrite.export`."""

    def __init__(self, text, signature, leaves, in_spec, out_spec, tensors, ranges, constraints, hints):
        self.graph_signature = signature
        self.leaves = leaves
        self.in_spec = in_spec
        self.out_spec = out_spec
        # The parameters, buffers and constants, by their names.
        self.tensors = tensors
        self.ranges = ranges
        self.constraints = constraints
        self._text = text
        self._hints = hints
        self._programs = {}

    @property
    def graph(self):
        """The graph."""
        return _native.Graph.from_text(self._text, self._hints)

    @property
    def code(self):
        """The text of the graph."""
        return self._text

    @property
    def state_dict(self):
        """The parameters and buffers, by their names."""
        owned = {*self.graph_signature.parameters, *self.graph_signature.buffers}
        return {name: tensor for name, tensor in self.tensors.items() if name in owned}

    def __call__(self, *args, **kwargs):
        """Checks a call and runs it with the native backend."""
        return self.run(args, kwargs)

    def run(self, args, kwargs=None, *, backend="native"):
        """Checks a call and runs it with a backend."""
        leaves = self._checked(args, kwargs or {})
        inputs = [
            leaves[spec.target] if spec.kind is Kind.USER_INPUT else self.tensors[spec.target] for spec in self.graph_signature.inputs
        ]
        if backend not in self._programs:
            self._programs[backend] = backends.lookup(backend)(self.graph, list(inputs))
        outputs = self._programs[backend](*inputs)
        if not all(outputs[place] for place in self.graph_signature.asserted):
            raise AssertionError("the exported program asserts something of the data of its arguments that does not hold")
        result = [_made(spec, outputs, inputs) for spec in self.graph_signature.outputs]
        return pytree.tree_unflatten(result, self.out_spec)

    def _checked(self, args, kwargs):
        """The leaves of a call's arguments, which fit what was exported."""
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        if spec != self.in_spec:
            raise ExportError(
                f"the structure of the arguments differs from that of the exported call.\n  exported: {self.in_spec}\n  given: {spec}\nHelp: "
                "call with arguments of the same structure, keywords included, or export again."
            )
        sizes = {}
        for leaf, known in zip(leaves, self.leaves, strict=True):
            if known.dtype is None:
                if type(leaf) is not type(known.value) or leaf != known.value:
                    raise ExportError(
                        f"{known.path} is {leaf!r}, and the program was exported for {known.value!r}, which is part of it. Help: export "
                        "again with that value, or pass it as a tensor."
                    )
                continue
            _check_tensor(leaf, known, sizes)
        for name, (path, size) in sizes.items():
            allowed = self.ranges[name]
            if size < allowed.low or (allowed.high is not None and size > allowed.high):
                high = "" if allowed.high is None else f" and at most {allowed.high}"
                raise ExportError(
                    f"{path} is {size}, and `{name}` has to be at least {allowed.low}{high}. Help: call with another size, or export again "
                    "with examples and dynamic_shapes that allow it."
                )
        for constraint in self.constraints:
            if not _holds(constraint, {name: size for name, (_, size) in sizes.items()}):
                bound = ", ".join(f"{name} = {size} ({path})" for name, (path, size) in sizes.items() if re.search(rf"\b{name}\b", constraint))
                raise ExportError(
                    f"the program was exported for sizes where {constraint}, which {bound} are not. Help: call with sizes that fit, or "
                    "export again with an example of them."
                )
        return leaves

    def save(self, path):
        """Writes the program to a file, and its tensors to the folder `storages` beside it; see `pyrite.load`."""
        path = pathlib.Path(path)
        folder = path.parent / "storages"
        folder.mkdir(parents=True, exist_ok=True)
        lines, stored, owned = [], {}, {}
        for number, (spec, leaf) in enumerate(zip(self.graph_signature.inputs, self._examples(), strict=True)):
            storage = leaf.untyped_storage()
            if storage._cdata not in stored:
                stored[storage._cdata] = f"buf{number}"
                lines.append(f"    buf{number} = reader.storage({_store(folder, storage)!r}, {storage.nbytes()})")
            layout = f"{tuple(leaf.shape)}, {tuple(leaf.stride())}, storage_offset={leaf.storage_offset()}, dtype={leaf.dtype}"
            grad = f", requires_grad={leaf.requires_grad}, is_leaf=True"
            lines.append(f"    reader.tensor({stored[storage._cdata]}, {layout}{grad})  # {spec.name}")
            if spec.kind is not Kind.USER_INPUT:
                owned[spec.target] = number
        text = [
            '"""A program that pyrite.export wrote: pyrite.load and the command pyrite read it."""',
            _HEADER + json.dumps(self._described(), sort_keys=True),
            "import torch",
            "",
            "",
            self._text.rstrip(),
            "",
            "",
            "def load_args(reader):",
            *(lines or ["    pass"]),
            "load_args._version = 0",
            "",
        ]
        temporary = path.with_name(path.name + ".part")
        temporary.write_text("\n".join(text))
        os.replace(temporary, path)

    def _examples(self):
        """A tensor for every input: those that the program owns, and zeros for those that the caller gives."""
        for spec in self.graph_signature.inputs:
            if spec.kind is not Kind.USER_INPUT:
                yield self.tensors[spec.target]
                continue
            known = self.leaves[spec.target]
            sizes = [self._hints[size] if isinstance(size, str) else size for size in known.shape]
            yield torch.zeros(sizes, dtype=getattr(torch, known.dtype), device="cpu")

    def _described(self):
        return {
            "format": _FORMAT,
            "version": _native.__version__,
            "inputs": [[spec.kind.value, spec.name, spec.target] for spec in self.graph_signature.inputs],
            "outputs": [[spec.kind, spec.value] for spec in self.graph_signature.outputs],
            "asserted": list(self.graph_signature.asserted),
            "leaves": [[leaf.path, leaf.dtype, list(leaf.shape), leaf.value] for leaf in self.leaves],
            "in_spec": pytree.treespec_dumps(self.in_spec),
            "out_spec": pytree.treespec_dumps(self.out_spec),
            "ranges": {name: [known.low, known.high] for name, known in self.ranges.items()},
            "constraints": self.constraints,
            "hints": self._hints,
        }

    def __repr__(self):
        given = ", ".join(self.graph_signature.user_inputs)
        return f"<ExportedProgram ({given}): {self.graph.op_count} operators>"

    def __str__(self):
        lines = [self._text.rstrip(), "", "Sizes:"]
        lines += [f"  {name}: {known.low} to {'any' if known.high is None else known.high}" for name, known in self.ranges.items()]
        return "\n".join([*lines, *(f"  {constraint}" for constraint in self.constraints)])


def _check_tensor(leaf, known, sizes):
    remedy = "Help: call with a tensor like the one that was exported, or export again."
    if not isinstance(leaf, torch.Tensor):
        raise ExportError(f"{known.path} is a {type(leaf).__name__}, expected a tensor. {remedy}")
    if str(leaf.dtype) != f"torch.{known.dtype}":
        raise ExportError(f"{known.path} has dtype {leaf.dtype}, expected torch.{known.dtype}. {remedy}")
    if leaf.dim() != len(known.shape):
        raise ExportError(f"{known.path} has {leaf.dim()} dimensions, and has to have {len(known.shape)}. {remedy}")
    for dim, (size, wanted) in enumerate(zip(leaf.shape, known.shape, strict=True)):
        place = f"the size {dim} of {known.path}"
        if isinstance(wanted, int):
            if size != wanted:
                raise ExportError(
                    f"{place} is {size}, expected {wanted}. Help: name the dimension in dynamic_shapes when you export, or call with that size."
                )
            continue
        first = sizes.setdefault(wanted, (place, size))
        if first[1] != size:
            raise ExportError(f"{place} is {size} and {first[0]} is {first[1]}, and both are `{wanted}`. Help: call with equal sizes.")


def _made(spec, outputs, inputs):
    if spec.kind == "output":
        return outputs[spec.value]
    return inputs[spec.value] if spec.kind == "input" else spec.value


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS = {"min": min, "max": max, "Min": min, "Max": max}


def _holds(constraint, sizes):
    """Whether a constraint holds for sizes; nothing else than arithmetic is evaluated."""

    def value(node):
        match node:
            case ast.Expression(body=body):
                return value(body)
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return sizes[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value, args))
        raise ExportError(f"the constraint `{constraint}` is not understood. Help: export the program again with this version of Pyrite.")

    return value(ast.parse(constraint, mode="eval"))


def _store(folder, storage):
    """Writes a storage under a name that its bytes give it."""
    content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy().tobytes()
    name = hashlib.sha256(content).hexdigest()[:40]
    if not (folder / name).exists():
        torch.save(storage, folder / name)
    return name


class _Size(int):
    """A size among the outputs of a graph: it is told from a plain number by its class."""

    place = 0


class _Recorder:
    """A backend that keeps the one graph of a call, and runs it on copies: exporting changes nothing."""

    _takes_graph = True
    wants_guards = False
    __name__ = "export"

    def __init__(self):
        self.graph = None
        self.inputs = []
        self.outputs = []
        self.record = None

    def observe(self, record):
        """Told of each captured frame before it runs."""
        self.record = record
        if record.changes:
            raise ExportError(
                f"{record.function} changes {record.changes} objects of Python (attributes, lists, globals or the like), and an exported "
                "program only computes. Help: return what changes, or write to tensors and buffers in place."
            )
        if record.draws:
            raise ExportError(
                f"{record.function} draws Python random numbers, which an exported program cannot do. Help: use torch.rand, or pass the numbers."
            )

    def __call__(self, graph, example_inputs):
        if self.graph is not None:
            raise ExportError("the function is more than one graph. Help: pyrite.explain(function)(...) names the breaks.")
        self.graph, self.inputs = graph, list(example_inputs)
        eager = backends.lookup("eager")(graph, self.inputs)

        def program(*inputs):
            copies, memory = [], {}
            for value in inputs:
                if isinstance(value, torch.Tensor):
                    storage = memory.setdefault(value.untyped_storage()._cdata, value.untyped_storage().clone())
                    copy = torch.empty(0, dtype=value.dtype, device="cpu").set_(storage, value.storage_offset(), value.shape, value.stride())
                    value = copy.requires_grad_(value.requires_grad)
                copies.append(value)
            self.outputs = [self._marked(place, output) for place, output in enumerate(eager(*copies))]
            return self.outputs

        return program

    @staticmethod
    def _marked(place, output):
        if type(output) is not int:
            return output
        size = _Size(output)
        size.place = place
        return size


def export(function, args, kwargs=None, *, dynamic_shapes=None):
    """Captures a call of a function or module as one graph, an `ExportedProgram`.

    `dynamic_shapes` says which sizes of the arguments may differ in later calls, as for `torch.export`: a dict by parameter name, or a
    sequence in the order of the arguments, of dicts from dimensions to `torch.export.Dim` objects, names, or `None`; nested as the
    arguments are. All other sizes, and all arguments that are no tensors, are part of the program. What would break the graph is an
    error that says where and how to avoid it. Nothing is changed: neither the arguments nor the tensors of the module.
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    if not leaves:
        raise ExportError("pyrite.export needs example arguments: args=(x, ...). Help: pass those of a typical call.")
    paths = [_path(keys, args, kwargs, function) for keys, _ in pytree.tree_flatten_with_path((args, kwargs))[0]]
    dims = _dynamic(function, args, kwargs, dynamic_shapes, leaves)
    recorder = _Recorder()
    with _marked_dynamic(leaves, dims):
        result = compile(function, backend=recorder, fullgraph=True, dynamic=False)(*args, **kwargs)
    if recorder.graph is None:
        raise ExportError(f"{backends.name_of(function)} computes nothing with tensors. Help: pass tensors, and return what is computed.")
    symbols = {(place, dim): name for name, place, dim in recorder.record.symbols}
    return _program(function, recorder, leaves, paths, in_spec, dims, symbols, result)


def _program(function, recorder, leaves, paths, in_spec, dims, symbols, result):
    names, owned = re.findall(r"(\w+)(?:: \"[^\"]*\")?(?=[,)])", _signature(recorder.graph.code)), _owned(function)
    by_identity = {id(leaf): place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    inputs, tensors, shapes, renamed = [], {}, {}, {}
    for place, (name, tensor) in enumerate(zip(names, recorder.inputs, strict=True)):
        if id(tensor) in by_identity:
            target = by_identity[id(tensor)]
            inputs.append(InputSpec(Kind.USER_INPUT, name, target))
            shape = list(tensor.shape)
            for dim, given in dims.get(target, {}).items():
                symbol = symbols.get((place, dim))
                if symbol is not None:
                    shape[dim] = renamed.setdefault(symbol, given[0])
            shapes[target] = tuple(shape)
            continue
        kind, target = owned.get(id(tensor), (Kind.CONSTANT, name))
        inputs.append(InputSpec(kind, name, target))
        tensors[target] = tensor
    constraints = _renamed(recorder.record.constraints, renamed)
    ranges = {name: Range(low, high) for known in dims.values() for name, low, high in known.values() if name in renamed.values()}
    hints = {renamed[name]: recorder.inputs[place].shape[dim] for (place, dim), name in symbols.items() if name in renamed}
    _check_free(dims, ranges, constraints, hints, leaves, paths)
    known = []
    for place, (leaf, path) in enumerate(zip(leaves, paths, strict=True)):
        if isinstance(leaf, torch.Tensor):
            shape = shapes.get(place, tuple(_free(size, dims.get(place, {}).get(dim)) for dim, size in enumerate(leaf.shape)))
            ranges.update({size: Range(0, None) for size in shape if isinstance(size, str) and size not in ranges})
            known.append(Leaf(path, str(leaf.dtype).removeprefix("torch."), shape))
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            known.append(Leaf(path, value=leaf))
        else:
            raise ExportError(
                f"{path} is an object of {type(leaf).__name__}, which an exported program cannot compare. Help: export a function of tensors "
                "and plain values that closes over it."
            )
    results, out_spec = pytree.tree_flatten(result)
    outputs = tuple(_output(leaf, recorder, inputs) for leaf in results)
    text = _typed(recorder.graph, inputs, recorder.inputs, symbols, renamed)
    signature = Signature(tuple(inputs), outputs, tuple(recorder.record.asserted))
    return ExportedProgram(text, signature, tuple(known), in_spec, out_spec, tensors, ranges, constraints, hints)


def _free(size, given):
    return size if given is None else given[0]


def _renamed(constraints, names):
    """Constraints in the user's names."""
    texts = [re.sub(r"\bs\d+\b", lambda found: names.get(found[0], found[0]), constraint) for constraint in constraints]
    return [text for text in texts if not re.fullmatch(r"(\w+) == \1", text)]


def _check_free(dims, ranges, constraints, hints, leaves, paths):
    """Refuses sizes that the user wants free and the program does not."""
    for constraint in constraints:
        fixed = re.fullmatch(r"(\w+) == (\d+)|(\d+) == (\w+)", constraint)
        if fixed:
            name = fixed[1] or fixed[4]
            raise ExportError(
                f"the size `{name}` should be dynamic, but the program requires it to be {hints.get(name)}. Help: leave the dimension out of "
                "dynamic_shapes, or do not use the size as a plain number (a loop over it, int(), an operator that wants a fixed size)."
            )
    for place, known in dims.items():
        for dim, (name, _, _) in known.items():
            size = leaves[place].shape[dim]
            if size < 2:
                raise ExportError(
                    f"the size {dim} of {paths[place]}, `{name}`, is {size} in the example: sizes of 0 and 1 are always part of a program. "
                    "Help: export with an example of a larger size."
                )


def _output(leaf, recorder, inputs):
    if isinstance(leaf, _Size):
        return OutputSpec("output", leaf.place)
    if isinstance(leaf, torch.Tensor):
        for kind, values in (("output", recorder.outputs), ("input", recorder.inputs)):
            for place, value in enumerate(values):
                if value is leaf:
                    return OutputSpec(kind, place)
        raise ExportError("the function returns a tensor that it does not compute. Help: return `tensor.clone()`.")
    if leaf is None or isinstance(leaf, (bool, int, float, str)):
        return OutputSpec("value", leaf)
    raise ExportError(
        f"the function returns an object of {type(leaf).__name__}, which an exported program cannot make. Help: return tensors and plain "
        "values in lists, tuples and dicts, or register the class with torch.utils._pytree."
    )


def _signature(code):
    """The parameters of the text of a graph."""
    return re.search(r"def forward\(self,?\s*([^\n]*)\):", code)[1] + ")"


def _typed(graph, inputs, examples, symbols, renamed):
    """The text of a graph whose inputs say their types and sizes; symbols among them have the user's names."""
    with contextlib.redirect_stdout(io.StringIO()):
        types = dict(re.findall(r"(\w+): \"([^\"]*)\"", _signature(graph.print_readable())))
    typed = []
    for place, spec in enumerate(inputs):
        type_ = types[spec.name]
        sizes = re.match(r"(\w+)\[([^\]]*)\](.*)", type_)
        shape = [size for size in sizes[2].split(", ") if size]
        for dim in range(len(shape)):
            name = symbols.get((place, dim))
            if name is not None:
                shape[dim] = renamed.get(name, name)
        if any(size.isidentifier() for size in shape) and not examples[place].is_contiguous():
            raise ExportError(
                f"{spec.name} has sizes that are free, and is not contiguous. Help: call .contiguous() on the example, and on the arguments of calls."
            )
        typed.append(f'{spec.name}: "{sizes[1]}[{", ".join(shape)}]{sizes[3]}"')
    body = graph.code[graph.code.index("):\n", graph.code.index("def forward")) + 3 :]
    lines = body.rstrip().splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    lines = [" " * 8 + line[indent:] if line.strip() else "" for line in lines]
    return "\n".join(["class GraphModule(torch.nn.Module):", f"    def forward(self, {', '.join(typed)}):", *lines, ""])


def _owned(function):
    """The parameters and buffers of a module, or of the module that a method belongs to, by identity."""
    module = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    if not isinstance(module, torch.nn.Module):
        return {}
    owned = {id(tensor): (Kind.BUFFER, name) for name, tensor in module.named_buffers()}
    owned.update({id(tensor): (Kind.PARAMETER, name) for name, tensor in module.named_parameters()})
    return owned


def _path(keys, args, kwargs, function):
    """How a leaf of the arguments is named to the user."""
    side, first, *rest = keys
    named = _parameters(function)
    name = first.key if side.idx == 1 else named[first.idx] if first.idx < len(named) else f"args[{first.idx}]"
    return name + "".join(map(str, rest))


def _parameters(function):
    function = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


def _dynamic(function, args, kwargs, shapes, leaves):
    """Which dimensions of which leaves are free: by leaf and dimension the name of the size, and its bounds."""
    found = {}
    if shapes is None:
        return found
    if isinstance(shapes, dict):
        names = _parameters(function)
        known = {**dict(zip(names, args)), **kwargs}
        unknown = sorted(set(shapes) - set(known))
        if unknown:
            raise ExportError(f"dynamic_shapes names {unknown[0]!r}, which is not an argument; the arguments are {', '.join(known)}.")
        pairs = [(known[name], shapes[name], name) for name in shapes]
    else:
        if len(shapes) != len(args):
            raise ExportError(f"dynamic_shapes has {len(shapes)} entries for {len(args)} positional arguments. Help: one for each, or a dict.")
        pairs = [(arg, shape, f"args[{place}]") for place, (arg, shape) in enumerate(zip(args, shapes))]
    places = {id(leaf): place for place, leaf in enumerate(leaves)}
    for value, shape, path in pairs:
        _walk(value, shape, path, places, found)
    return found


def _walk(value, shape, path, places, found):
    if shape is None:
        return
    if isinstance(value, torch.Tensor):
        given = shape.items() if isinstance(shape, dict) else enumerate(shape)
        for dim, size in given:
            if size is None or isinstance(size, int):
                continue
            dim = dim % value.dim() if -value.dim() <= dim < value.dim() else dim
            if not 0 <= dim < value.dim():
                raise ExportError(f"dynamic_shapes names the dimension {dim} of {path}, which has {value.dim()}.")
            place = places[id(value)]
            default = re.sub(r"\W+", "_", path).strip("_")
            found.setdefault(place, {})[dim] = _named(size, f"{default}_{dim}")
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else None
    if inside is None:
        raise ExportError(f"dynamic_shapes describes {path}, which is neither a tensor nor a list, tuple or dict of tensors. Help: use None there.")
    for key, item in inside:
        described = shape.get(key) if isinstance(shape, dict) else shape[key]
        _walk(item, described, f"{path}[{key!r}]", places, found)


def _named(size, default):
    """The name and the bounds of a size."""
    if isinstance(size, str):
        return size, 2, None
    name = getattr(size, "__name__", None)
    # `Dim.AUTO` and `Dim.DYNAMIC` have no name.
    if not isinstance(name, str) or not name.isidentifier():
        return default, 2, None
    low, high = getattr(size, "min", 0), getattr(size, "max", None)
    return name, max(int(low), 2), None if high is None or int(high) >= 2**31 else int(high)


class _marked_dynamic:
    """Marks dimensions of tensors as changing, as `torch._dynamo.maybe_mark_dynamic` does, for one capture."""

    # Sizes that become constants all the same are told by their names in `dynamic_shapes`.
    _ATTRIBUTE = "_dynamo_weak_dynamic_indices"

    def __init__(self, leaves, dims):
        self.tensors = [(leaves[place], set(known)) for place, known in dims.items()]
        self.before = []

    def __enter__(self):
        for tensor, dims in self.tensors:
            self.before.append((tensor, getattr(tensor, self._ATTRIBUTE, None)))
            setattr(tensor, self._ATTRIBUTE, dims)

    def __exit__(self, *_):
        for tensor, before in self.before:
            if before is None:
                delattr(tensor, self._ATTRIBUTE)
            else:
                setattr(tensor, self._ATTRIBUTE, before)


def load(path):
    """Reads a program that `ExportedProgram.save` wrote. The file is parsed; no code in it runs, and nothing in it is unpickled freely."""
    path = pathlib.Path(path)

    def bad(cause):
        remedy = "export and save the program again; the folder `storages` belongs to the file"
        return ExportError(f"{path} cannot be loaded: {cause}. Help: {remedy}.")

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise bad(f"it cannot be read ({error})") from None
    header = next((line for line in text.splitlines() if line.startswith(_HEADER)), None)
    if header is None:
        raise bad("it was not written by pyrite.export")
    try:
        said = json.loads(header.removeprefix(_HEADER))
        if said["format"] != _FORMAT:
            raise bad(f"it has format {said['format']}, but this version of Pyrite reads format {_FORMAT}")
        graph = text[text.index("class GraphModule") : text.index("def load_args")].rstrip() + "\n"
        inputs = tuple(InputSpec(Kind(kind), name, target) for kind, name, target in said["inputs"])
        signature = Signature(inputs, tuple(OutputSpec(kind, value) for kind, value in said["outputs"]), tuple(said["asserted"]))
        leaves = tuple(Leaf(where, dtype, tuple(shape), value) for where, dtype, shape, value in said["leaves"])
        ranges = {name: Range(*bounds) for name, bounds in said["ranges"].items()}
        in_spec, out_spec = (pytree.treespec_loads(said[name]) for name in ("in_spec", "out_spec"))
    except (ValueError, KeyError, TypeError) as error:
        raise bad(f"its description is damaged ({error})") from None
    loaded = _Reader(path.parent / "storages", bad).read(text)
    tensors = {spec.target: loaded[place] for place, spec in enumerate(inputs) if spec.kind is not Kind.USER_INPUT}
    return ExportedProgram(graph, signature, leaves, in_spec, out_spec, tensors, ranges, said["constraints"], said["hints"])


class _Reader:
    """Reads the tensors that `load_args` names, without executing it."""

    def __init__(self, folder, bad):
        self.folder = folder
        self.bad = bad

    def read(self, text):
        storages, tensors = {}, []
        for statement in ast.parse(text[text.index("def load_args") :]).body[0].body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Constant(value=str(stored)), _])):
                    storages[name] = self._storage(stored)
                case ast.Expr(value=ast.Call(args=[ast.Name(id=name), shape, stride], keywords=keywords)):
                    said = {each.arg: each.value for each in keywords}
                    tensors.append(self._tensor(storages[name], shape, stride, said))
                case ast.Pass():
                    pass
                case _:
                    raise self.bad("it has an argument that is not understood")
        return tensors

    def _storage(self, name):
        if not re.fullmatch(r"[0-9a-f]{40}", name):
            raise self.bad(f"it names the storage {name!r}")
        try:
            storage = torch.load(self.folder / name, weights_only=True)
            storage = getattr(storage, "_untyped_storage", storage)
        except Exception as error:
            raise self.bad(f"the storage {name} cannot be read ({error})") from None
        content = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy().tobytes()
        if hashlib.sha256(content).hexdigest()[:40] != name:
            raise self.bad(f"the storage {name} is damaged")
        return storage

    @staticmethod
    def _tensor(storage, shape, stride, said):
        dtype = getattr(torch, said["dtype"].attr)
        offset = ast.literal_eval(said["storage_offset"])
        tensor = torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, ast.literal_eval(shape), ast.literal_eval(stride))
        wants = ast.literal_eval(said["requires_grad"])
        return torch.nn.Parameter(tensor) if wants else tensor


__all__ = ["ExportError", "ExportedProgram", "InputSpec", "Kind", "OutputSpec", "Signature", "export", "load"]
