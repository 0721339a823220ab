"""Compiled programs in torch's autograd.

A program that wants gradients runs as one autograd function: forward gives its new outputs, backward runs the compiled
backward half. Outputs that lie in the memory of an input are made outside of the function, as that input or a view of it,
so that torch knows them as such. Inputs that the program writes are marked as written; gradients flow through what was
written. Gradients that are to be differentiated in turn are computed by torch, from the inputs, where these are still
there.
"""

from __future__ import annotations

import contextlib
import operator
import weakref

import torch
from torch.autograd.function import once_differentiable

from pyrite import _native
from pyrite._tracers import in_older_vmap
from pyrite._views import viewed


def count_versions_up(tensors):
    """Tells autograd that tensors were written outside of torch."""
    tensors = [tensor for tensor in tensors if not tensor.is_inference()]
    if tensors:
        torch.autograd.graph.increment_version(tensors)


# The graphs of programs, for those who differentiate twice.
_graphs = weakref.WeakKeyDictionary()


def remember(program, graph):
    """Lets a program be differentiated twice: what it computes is known."""
    _graphs[program] = graph


def remember_as(program, other):
    """Lets a program be differentiated twice where another is that computes the same."""
    if other in _graphs:
        _graphs[program] = _graphs[other]


_PLAIN = {torch.Tensor, torch.nn.Parameter}
_version = operator.attrgetter("_version")
_hooks_of_saved_tensors = torch._C._autograd._top_saved_tensors_default_hooks
_functorch = torch._C._functorch
_OLDER_BATCHED = torch._C._parse_dispatch_key("Batched")


class _Call:
    """What a call has to say beside the tensors that go through autograd."""

    __slots__ = ("aliases", "differentiable", "fresh", "outcome", "values")


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, program, *arguments):
        if call.outcome is None:
            call.outcome = program.forward(*arguments)
        outcome = call.outcome
        ctx.program = program
        ctx.arguments = outcome.seen() or _seen(arguments)
        values = call.values = outcome.values()
        aliases = call.aliases = outcome.aliases()
        tape = ctx.tape = outcome.tape()
        wanted = tape.wanted if tape is not None else []
        differentiable = call.differentiable = set(wanted)

        appended = range(len(values) - len(program.returned), len(values))
        dirty = [leaf for leaf in appended if leaf in differentiable]
        written = {program.returned[leaf - appended.start]: leaf for leaf in dirty}
        ctx.mark_dirty(*(arguments[index] for index in written))
        count_versions_up([arguments[index] for index in program.written if index not in written])

        call.fresh = [leaf for leaf, value in enumerate(values) if isinstance(value, torch.Tensor)]
        ctx.mark_non_differentiable(*(values[leaf] for leaf in call.fresh if leaf not in differentiable))
        ctx.set_materialize_grads(False)
        ctx.order = [*written.values(), *call.fresh]
        # torch refuses to run backward when something that was saved has been written since.
        ctx.held = [index for index in outcome.held_inputs() if index not in written]
        held = [arguments[index] for index in ctx.held]
        ctx.save_for_backward(*held, *(values[leaf] for leaf in outcome.held() if values[leaf] is not None))
        return (*(arguments[index] for index in written), *(values[leaf] for leaf in call.fresh))

    @staticmethod
    def backward(ctx, *gradients):
        if not torch.is_grad_enabled():
            return _backward(ctx, *gradients)
        arguments = _arguments(ctx)
        return _backward_once(ctx, *gradients) if arguments is None else _differentiably(ctx, arguments, gradients)


class _Recorded(torch.autograd.Function):
    """A program that has run: it read its inputs, and all it gave are new tensors."""

    @staticmethod
    def forward(ctx, program, outcome, *arguments):
        ctx.program = program
        ctx.arguments = outcome.seen() or _seen(arguments)
        values = outcome.values()
        tape = ctx.tape = outcome.tape()
        wanted = tape.wanted if tape is not None else ()
        if len(wanted) != len(values):
            ctx.mark_non_differentiable(*(value for leaf, value in enumerate(values) if leaf not in wanted))
        ctx.set_materialize_grads(False)
        ctx.order = range(len(values))
        ctx.held = outcome.held_inputs()
        ctx.save_for_backward(*(arguments[index] for index in ctx.held), *(values[leaf] for leaf in outcome.held()))
        return tuple(values)

    backward = staticmethod(_Compiled.backward)


def _backward(ctx, *gradients):
    """The gradients by the compiled backward half."""
    saved = ctx.saved_tensors  # raises where a saved tensor was written since
    given = dict(zip(ctx.order, gradients))
    tangents = [given.get(leaf) for leaf in ctx.tape.wanted]
    if all(tangent is None for tangent in tangents):
        return (None,) * (len(ctx.needs_input_grad))
    retain = torch._C._autograd._get_current_graph_task_keep_graph()
    found = _run(ctx.tape, tangents, list(zip(ctx.held, saved)), retain)
    needed = ctx.needs_input_grad[2:]
    return (None, None, *(gradient if need else None for gradient, need in zip(found, needed)))


def _run(tape, tangents, saved, retain):
    """The gradients by a tape; those of several backward passes at once (`vmap`, `is_grads_batched`) are taken one by one."""
    if not in_older_vmap() and _functorch.peek_interpreter_stack() is None:
        return tape.run(tangents, saved, retain=retain)
    return _pass_by_pass(tape, tangents, saved, retain, _levels())


def _levels():
    """The levels of `vmap` that are entered, the innermost last, and what takes a tensor's dimension of a level away and gives it back."""
    older = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    levels = [(_functorch._remove_batch_dim, _functorch._add_batch_dim, level + 1) for level in range(_functorch.maybe_current_level() or 0)]
    return levels + [(torch._remove_batch_dim, torch._add_batch_dim, level + 1) for level in range(older)]


def _pass_by_pass(tape, tangents, saved, retain, levels):
    if not any(tangent is not None and (_functorch.is_batchedtensor(tangent) or torch._C._dispatch_keys(tangent).has(_OLDER_BATCHED)) for tangent in tangents):
        return tape.run(tangents, saved, retain=retain)
    *outer, (remove, add, level) = levels
    # A tensor that has no dimension of this level is the same in every pass.
    parts = [tangent if tangent is None else remove(tangent, level, 1, 0) for tangent in tangents]
    size = max(part.shape[0] for part in parts if part is not None)
    passes = [[part if part is None else part[index % part.shape[0]] for part in parts] for index in range(size)]
    rows = [_pass_by_pass(tape, each, saved, retain or index + 1 < size, outer) for index, each in enumerate(passes)]
    if size == 1:
        return rows[0]
    return [None if row[0] is None else add(torch.stack(row), 0, level) for row in zip(*rows)]


# Its results raise an error where they are differentiated in turn.
_backward_once = once_differentiable(_backward)


def _seen(arguments):
    """The arguments of a call, as long as somebody else has them, and how often each was written before."""
    try:
        if _PLAIN.issuperset(map(type, arguments)):
            return list(zip(map(weakref.ref, arguments), map(_version, arguments)))
        return [(weakref.ref(each), each._version) if isinstance(each, torch.Tensor) else each for each in arguments]
    except RuntimeError:  # of inference mode: nobody counts how often these are written
        return None


def _arguments(ctx):
    """What a program was called with; `None` where running it again would not do the same."""
    if ctx.arguments is None or ctx.program.written or ctx.program.draws or ctx.program not in _graphs:
        return None
    if isinstance(ctx.arguments, _native.Seen):
        return ctx.arguments.arguments()
    arguments = []
    for seen in ctx.arguments:
        if isinstance(seen, tuple):
            reference, version = seen
            seen = reference()
            if seen is None or seen._version != version:
                return None
        arguments.append(seen)
    return arguments


def _differentiably(ctx, arguments, gradients):
    """The gradients as torch computes them, operator by operator, so that they have gradients in turn."""
    needed = ctx.needs_input_grad[2:]
    # An argument may have been computed from another: through a view of its own each is differentiated by this call alone.
    arguments = [argument.view_as(argument) if need else argument for argument, need in zip(arguments, needed)]
    wanted = [argument for argument, need in zip(arguments, needed) if need]
    outputs = _native.run_by_torch(_graphs[ctx.program])(*arguments)
    pairs = [(ctx.program.as_it_lies(leaf, outputs[leaf]), gradient) for leaf, gradient in zip(ctx.order, gradients) if gradient is not None]
    pairs = [(output, gradient) for output, gradient in pairs if output.requires_grad]
    if not pairs:
        return (None,) * len(ctx.needs_input_grad)
    outputs, tangents = zip(*pairs)
    found = iter(torch.autograd.grad(outputs, wanted, tangents, create_graph=True, allow_unused=True))
    return (None, None, *(next(found) if need else None for need in needed))


def apply(program, arguments):
    """Calls a program with gradients."""
    # What is saved is packed and unpacked by the user: torch computes what it would have saved. Checkpoints give back what they took.
    hooks = _hooks_of_saved_tensors(True)
    if hooks is not None and program in _graphs and getattr(hooks[0], "__module__", None) != "torch.utils.checkpoint":
        return _native.run_by_torch(_graphs[program])(*arguments)
    outcome = program.forward_short(*arguments)
    if outcome is not None and outcome.is_fresh():
        return outcome.nest(list(_Recorded.apply(program, outcome, *arguments)))
    for index in set(program.written).difference(program.unrecorded):
        argument = arguments[index]
        if argument.requires_grad and argument.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    call = _Call()
    call.outcome = outcome
    with torch.set_grad_enabled(True) if program.switches_on else contextlib.nullcontext():
        results = _Compiled.apply(call, program, *arguments)
    leaves = call.values
    for leaf, tensor in zip(call.fresh, results[len(results) - len(call.fresh) :]):
        leaves[leaf] = tensor
    for leaf, alias in enumerate(call.aliases):
        if alias is not None:
            index, view = alias
            base = arguments[index]
            if base.requires_grad and leaf not in call.differentiable:
                base = base.detach()
            if view is not None:
                base = viewed(base, *view)
            leaves[leaf] = base
    for leaf in call.outcome.several():
        # torch marks what `unbind` returns, and refuses to write to it while it records gradients.
        if leaves[leaf].requires_grad:
            (leaves[leaf],) = leaves[leaf].unsqueeze(0).unbind(0)
    return call.outcome.nest(leaves)
