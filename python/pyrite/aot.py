"""Regions of torch.compile as ATen graphs that Pyrite compiles.

AOTAutograd traces a region with fake tensors: torch's own dispatcher names the operators, symbolic sizes are kept, writes,
views, gradients, autocast and random numbers become plain data flow, and a forward and a backward graph come out. Each is
cut (`_partition`): Pyrite compiles the operators that it knows, torch runs the others, which are *opaque*. Operators that
Pyrite does not know but torch can decompose are decomposed while tracing.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from pyrite import _graphs, _native, _numbers, _overlaps, _partition, _resizing, _times, backends, config, logs
from pyrite._native import CompileError
from pyrite._tracers import is_traced


class FallbackWarning(UserWarning):
    """A region runs eagerly because Pyrite cannot compile it."""


class Region:
    """What became of one region: how many segments Pyrite compiled, and the operators that torch runs."""

    def __init__(self):
        self.segments = 0
        self.opaque = []
        self.is_eager = False
        self.reason = None

    def __repr__(self):
        state = f"eager: {self.reason}" if self.is_eager else f"{self.segments} segments"
        return f"<region, {state}, opaque: {sorted({each.name for each in self.opaque})}>"


_observers = []


@contextlib.contextmanager
def observed():
    """The regions that are compiled meanwhile, as a list of `Region`."""
    regions = []
    _observers.append(regions)
    try:
        yield regions
    finally:
        _observers.remove(regions)


def new_region():
    """A region, reported to observers."""
    region = Region()
    for regions in _observers:
        regions.append(region)
    return region


class Settings:
    """How regions are compiled: with which backend and options of it, and what is an error."""

    def __init__(self, backend="native", options=None, *, opaque="allow", strict=False, gpu="run", graphs=True):
        if opaque not in ("allow", "error"):
            raise ValueError(f'the option `opaque` is "allow" or "error", not {opaque!r}')
        if gpu not in ("run", "interpret"):
            raise ValueError(f'the option `gpu` is "run" or "interpret", not {gpu!r}')
        self.backend, self.options, self.opaque, self.strict = backend, options, opaque, strict
        # Whether code for GPUs runs there, or what is on the CPU is compiled for a GPU and interpreted.
        self.gpu = gpu
        # Whether calls on a GPU are recorded as CUDA graphs.
        self.graphs = graphs


def compile_region(module, example_inputs, settings):
    """Compiles what torch.compile captured. Where that fails and is no error, torch runs the region as it was captured."""
    region = new_region()
    if settings.backend == backends.WITH_MODE and backends.is_entered(mode := (settings.options or {}).get("mode")):
        region.is_eager, region.reason = True, "torch runs it inside of a mode"
        return torch._dynamo.lookup_backend(backends.WITH_MODE)(module, example_inputs, mode=mode)
    if odd := _overlaps.odd_write(module):
        # Torch does what it can, or says why not.
        _runs_eagerly(region, odd)
        return module.forward
    if refused := _numbers.refused(module):
        # Eager's error is raised where eager raises it.
        _runs_eagerly(region, refused)
        return module.forward
    _resizing.keep(module)
    viewed = _overlaps.viewed_inputs(module)
    if not all(_overlaps.is_whole(example_inputs[number]) for number in viewed):
        _runs_eagerly(region, "it views the storage of an input that begins later or has gaps")
        return module.forward
    drawn = _return_draws(module)
    plain = _without_last(module.forward, drawn)
    compiler = functools.partial(_compile, region, settings)
    run = aot_autograd(
        fw_compiler=functools.partial(compiler, "forward"),
        bw_compiler=functools.partial(compiler, "backward"),
        inference_compiler=functools.partial(compiler, "inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
        # What is written to inputs on GPUs is a part of the graph, so that it is recorded with it.
        keep_inference_input_mutations=_is_on_gpus(example_inputs, settings),
    )
    try:
        compiled = _without_last(run(module, example_inputs), drawn)
        _keep_saved()
        if viewed:
            compiled = _from_the_start(compiled, plain, viewed)
        compiled = backends.checking(compiled, settings.backend)
        written = _written(module)
        return compiled if written == () else _apart(compiled, plain, written)
    except torch._dynamo.exc.TorchDynamoException:
        raise
    except Exception as error:
        if settings.strict:
            raise
        _runs_eagerly(region, error)
        return plain


def _is_on_gpus(example_inputs, settings):
    """Whether all tensors that a region is given are compiled for GPUs."""
    kinds = {each.device.type for each in example_inputs if isinstance(each, torch.Tensor)}
    return kinds == {"cuda"} or (kinds == {"cpu"} and settings.gpu == "interpret")


def _return_draws(module):
    """Returns from a region the random numbers that it draws and does not use, behind its own results, and says how many these are.
    AOTAutograd would not draw them, and whoever draws next would get others than in eager."""
    calls = (node for node in module.graph.nodes if node.op == "call_function" and not node.users)
    drawn = [node for node in calls if isinstance(node.meta.get("example_value"), torch.Tensor) and _draws(node.target)]
    if drawn:
        output = next(iter(reversed(module.graph.nodes)))
        output.args = ((*output.args[0], *drawn),)
        module.recompile()
    return len(drawn)


_RANDOM = {
    torch.rand, torch.randn, torch.randint, torch.randperm, torch.rand_like, torch.randn_like, torch.randint_like,
    torch.normal, torch.poisson, torch.bernoulli, torch.multinomial,
}  # fmt: skip


def _draws(function):
    tags = getattr(function, "tags", ())
    return function in _RANDOM or torch.Tag.nondeterministic_seeded in tags


def _without_last(run, count):
    """A region that returns so many results less."""
    return run if count == 0 else lambda *arguments: run(*arguments)[:-count]


def _metadata():
    """What AOTAutograd found out about the region that was traced last; `None` where that is not known."""
    context = torch._guards.TracingContext.try_get()
    return context.fw_metadata if context is not None else None


def _keep_saved():
    """Says that backward takes no memory over from what was saved, so that it may run again."""
    if getattr(_metadata(), "bw_donated_idxs", None):
        _metadata().bw_donated_idxs = []


def _written(module):
    """Which arguments the region that was traced last writes to; `None` where that is not known."""
    if (metadata := _metadata()) is None:
        return None
    # The parameters and buffers of a region come before its arguments.
    own = len(list(module.parameters())) + len(list(module.buffers()))
    return tuple(index - own for index, info in enumerate(metadata.input_info) if info.mutates_data)


def _apart(compiled, plain, written):
    """A region that writes to inputs. AOTAutograd traces it for the memory that inputs have in its first call, and does not
    look again: where some share a storage, it takes their places in it for granted. And it writes by copying, which torch
    refuses where elements share memory. Calls with inputs that overlap, or with a written one that overlaps itself, run as they
    were captured; so do calls whose inputs share storages otherwise than in the first call."""
    first = None
    known = None if written is None else [index for index in written if index >= 0]

    def run(*arguments):
        nonlocal first
        if first == () and known is not None and _native.lie_apart(arguments, known):
            return compiled(*arguments)
        tensors = [each for each in _strided(arguments) if each.numel()]
        places = _places(tensors)
        first = places if first is None else first
        given = tensors if known is None else [arguments[index] for index in known]
        is_plain = places != first or _overlap(tensors) or any(map(_repeats, given))
        return (plain if is_plain else compiled)(*arguments)

    return run


def _from_the_start(compiled, plain, viewed):
    """A region that views the storages of some inputs. AOTAutograd takes an input for the start of its storage when it makes
    gradients and results that share memory. Calls where one of these begins elsewhere, or has other elements than its storage from
    there on, run as they were captured."""

    def run(*arguments):
        return (compiled if all(_overlaps.is_whole(arguments[number]) for number in viewed) else plain)(*arguments)

    return run


def _strided(arguments):
    return [each for each in arguments if isinstance(each, torch.Tensor) and each.layout is torch.strided]


def _places(tensors):
    """Which tensors share a storage, and where they lie in it."""
    numbers = {}
    for tensor in tensors:
        numbers.setdefault(tensor.untyped_storage()._cdata, []).append(tensor)
    if all(len(each) == 1 for each in numbers.values()):
        return ()
    order = {storage: number for number, storage in enumerate(numbers)}
    return tuple((order[each.untyped_storage()._cdata], each.storage_offset(), each.shape, each.stride()) for each in tensors)


def _overlap(tensors):
    """Whether the memory of two tensors overlaps."""
    ends = sorted(map(_extent, tensors))
    return any(start < end for (_, end), (start, _) in zip(ends, ends[1:]))


def _repeats(given):
    """Whether elements of a tensor share memory."""
    if not isinstance(given, torch.Tensor) or given.layout is not torch.strided:
        return False
    return any(stride == 0 and size > 1 for size, stride in zip(given.shape, given.stride()))


def _extent(tensor):
    """The first byte of a tensor and the one behind its last."""
    if tensor.device.type == "meta":
        return (0, 0)
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _runs_eagerly(region, error):
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    region.is_eager, region.reason = True, reason
    warnings.warn(f"a region runs eagerly, Pyrite cannot compile it: {reason}", FallbackWarning, stacklevel=2)


def _compile(region, settings, half, module, example_inputs):
    """Compiles one ATen graph of a region: its forward half, its backward half, or all of it where nobody wants gradients."""
    logs.get("graph_code").info("%s", module.code)
    try:
        host = _host(region, settings, module)
    except CompileError as error:
        if settings.strict or settings.opaque == "error":
            raise
        _runs_eagerly(region, error)
        return boxed(module, module)
    region.segments += host.meta["segments"]
    run = boxed(host, module)
    if not settings.graphs or settings.gpu != "run":
        return run
    programs = [getattr(node.target, "program", None) for node in host.graph.nodes]
    checked = [each for each in programs if getattr(each, "checks_indices", False)]
    return _graphs.recording(run, module, half, checked)


def _host(region, settings, module):
    log = logs.get("aot")

    def compile_segment(graph, name, device):
        log.info("%s on %s: %d operators", name, device, graph.op_count)
        if _partition.is_gpu(device):
            options = backends.with_config(settings.options)
            return _native.compile_gpu(graph, options, interpret=device.type == "cpu")
        return segment_program(graph, settings)

    def on_opaque(operator):
        log.info("torch runs %s: %s", operator.name, operator.reason)
        if settings.opaque == "error":
            raise CompileError(
                f"torch would have to run {operator.name}: {operator.reason}\nHelp: options={{\"opaque\": \"allow\"}} lets it."
            )
        region.opaque.append(operator)

    with _partition.as_on_gpu(settings.gpu == "interpret"):
        return _partition.cut(module, compile_segment, on_opaque)


def segment_program(graph, settings):
    """A program of a segment. Under the debugger it is compiled at its first call, when there are inputs to look at."""
    if config.debugs() or ":" in settings.backend:
        return _Late(graph, settings)
    log = logs.get("backend")
    log.info("Step 2: calling compiler function %s", settings.backend)
    program = _native.compile(graph, settings.backend, backends.with_config(settings.options), None)
    for stage, seconds in program.stage_times:
        _times.add(f"backend.{stage}", seconds)
    log.info("Step 2: done compiler function %s in %.3f s", settings.backend, sum(seconds for _, seconds in program.stage_times))
    return program


class _Late:
    """A program that is compiled at its first call."""

    def __init__(self, graph, settings):
        self.graph, self.settings = graph, settings
        self.program = None

    def __call__(self, *arguments):
        if self.program is None:
            self.program = backends.compiled(self.graph, self.settings.backend, self.settings.options, arguments)
        return self.program(*arguments)


# What programs take as it is. A tensor of another class is one whose class torch's dispatcher does not ask: its memory counts.
_TAKEN = frozenset({torch.Tensor, torch.nn.Parameter, int, float, bool, type(None)})


def boxed(host, module):
    """A host that takes a list of arguments, which it empties. Tracers see the operators, not the programs."""
    compiled, plain = _whole(host) or host.forward, module.forward

    def run(arguments):
        given = tuple(arguments)
        arguments.clear()
        if is_traced():
            return plain(*given)
        if not _TAKEN.issuperset(map(type, given)):
            given = [each.as_subclass(torch.Tensor) if isinstance(each, torch.Tensor) else each for each in given]
        return compiled(*given)

    run._boxed_call = True
    return run


def _whole(host):
    """The program that is all of a host, if there is one: it takes the host's inputs and gives its outputs."""
    nodes = list(host.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if getattr(node.target, "is_segment", False)]
    output = nodes[-1].args[0]
    items = nodes[len(inputs) + 1 : -1]
    results = [(operator.getitem, (calls[0], place)) for place in range(len(items))] if len(calls) == 1 else None
    if results is None or list(calls[0].args) != inputs or list(output) != items or [(node.target, node.args) for node in items] != results:
        return None
    return calls[0].target.program


@functools.cache
def decompositions():
    """Decompositions by torch of operators that Pyrite does not know. Random operators stay: their numbers are torch's."""
    from torch._decomp import core_aten_decompositions

    known = _partition.known_operators()
    table = {}
    for op, function in core_aten_decompositions().items():
        if isinstance(op, torch._ops.OpOverload) and str(op) not in known and torch.Tag.nondeterministic_seeded not in op.tags:
            table[op] = function
    for op, function in _OWN.items():
        if str(op) not in known:
            table[op] = function
    table[torch.ops.aten.native_dropout.default] = _dropout
    for op in _NORMS:
        table[op] = functools.partial(_norm, op)
    return table


# Norms that save statistics for their gradients.
_NORMS = (
    torch.ops.aten.native_layer_norm.default,
    torch.ops.aten.native_group_norm.default,
    torch.ops.aten._native_batch_norm_legit_functional.default,
    torch.ops.aten._native_batch_norm_legit.no_stats,
)


def _norm(op, input, *others):
    """A norm of halves that saves its statistics in single precision. GPUs do so, but for group norm; so do norms whose parameters or
    running means are in single precision, as under autocast: torch's CPU kernels do, but tell tracers otherwise."""
    halves = (torch.float16, torch.bfloat16)
    is_mixed = any(isinstance(each, torch.Tensor) and each.dtype is torch.float32 for each in others)
    is_wide = input.device.type == "cuda" and op is not torch.ops.aten.native_group_norm.default
    if input.dtype not in halves or not (is_mixed or is_wide):
        return NotImplemented
    if op is torch.ops.aten.native_layer_norm.default:
        # Written out, conversions of the parameters are part of the kernel that reads them.
        return _layer_norm(input, *others)
    others = [each.float() if isinstance(each, torch.Tensor) and each.dtype in halves else each for each in others]
    output, *saved = op(input.float(), *others)
    return output.to(input.dtype), *saved


def _layer_norm(input, shape, weight, bias, eps):
    """A layer norm in single precision, and its mean and the reciprocal of its deviation."""
    wide, dims = input.float(), [-each - 1 for each in range(len(shape))]
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = (centered.square().mean(dims, keepdim=True) + eps).rsqrt()
    output = centered * rstd
    output = output if weight is None else output * weight
    output = output if bias is None else output + bias
    return output.to(input.dtype), mean, rstd


def _weight_norm_backward(gradient, v, g, norms, dim):
    """The gradients of a weight that is given by its direction and its length."""
    others = [each for each in range(v.dim()) if each != dim]
    along = (gradient * v).sum(others, keepdim=True) / norms
    return (g / norms) * (gradient - v * (along / norms)), along


def _embedding_bag_backward(
    gradient, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx=-1
):
    """The gradient of the table that bags of rows were taken from."""
    if sparse or scale_grad_by_freq or mode not in (0, 1):
        return NotImplemented
    bags = torch.searchsorted(offsets, torch.arange(indices.shape[0], dtype=offsets.dtype, device=offsets.device), right=True) - 1
    rows = gradient.index_select(0, bags)
    if mode == 1:
        rows = rows / bag_size.index_select(0, bags)[:, None].to(rows.dtype)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx)[:, None], 0.0)
    return gradient.new_zeros((num_weights, gradient.shape[1])).index_add(0, indices, rows)


def _dropout(input, p, train):
    """Dropout of everything: as `torch.dropout` does, without random numbers."""
    if p != 1 or train is False:
        return NotImplemented
    return input * input.new_zeros(()), torch.zeros_like(input, dtype=torch.bool)


# Decompositions that torch does not have.
_OWN = {
    torch.ops.aten._embedding_bag_backward.default: _embedding_bag_backward,
    torch.ops.aten._weight_norm_interface_backward.default: _weight_norm_backward,
}
