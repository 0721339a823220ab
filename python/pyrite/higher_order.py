"""Functions that take functions, as graphs call them: `(*bodies, operands, captured, *options) -> list of tensors`.

A body is a nested graph: it takes the tensors that a transform gives it and then `captured`, and returns a list of tensors.
Everything is torch's own: gradients, batching and random numbers are what they are in plain Python. Tensors without data are
taken too, which tells what a call gives.
"""

from __future__ import annotations

import torch

__all__ = [
    "associative_scan", "checkpoint", "cond", "data", "flex_attention", "function", "grad", "jacfwd", "jacrev", "jvp", "jvp_again", "map", "parameter",
    "register_hook", "scan", "set_data", "vjp", "vmap", "while_loop",
]  # fmt: skip


def _closed(body, captured):
    """A body that has what it captured."""
    return lambda *inputs: tuple(body(*inputs, *captured))


def _split(body, captured, count):
    """A body whose results after the first `count` are passed through a transform as they are."""

    def split(*inputs):
        results = body(*inputs, *captured)
        return tuple(results[:count]), tuple(results[count:])

    return split


def enter_inference(on):
    """Switches inference mode; what `exit_inference` takes."""
    mode = torch.inference_mode(on)
    mode.__enter__()
    return mode


def exit_inference(mode):
    """Leaves a mode of a graph: inference mode, or autocast."""
    mode.__exit__(None, None, None)


def data(tensor):
    """The memory of a tensor, through which it is written without autograd's knowledge."""
    return tensor.data


def set_data(tensor, new):
    """Lets a tensor lie in the memory of another."""
    tensor.data = new


def parameter(tensor):
    """A parameter in the memory of a tensor."""
    return torch.nn.Parameter(tensor)


def version(tensor):
    """How often a tensor was written to."""
    return tensor._version


def vmap(body, operands, captured, in_dims, out_dims, randomness, chunk_size):
    mapped = torch.func.vmap(
        _closed(body, captured), in_dims=tuple(in_dims), out_dims=tuple(out_dims), randomness=randomness, chunk_size=chunk_size
    )
    return list(mapped(*operands))


def grad(body, operands, captured, argnums):
    """The gradients of the first result with respect to some operands, then all results."""

    def loss(*inputs):
        first, *rest = body(*inputs, *captured)
        return first, tuple(rest)

    gradients, (value, rest) = torch.func.grad_and_value(loss, argnums=tuple(argnums), has_aux=True)(*operands)
    return [*gradients, value, *rest]


def vjp(body, operands, captured, cotangents, count):
    """The gradients of the operands for the gradients of the first `count` results."""
    _, pull, _ = torch.func.vjp(_split(body, captured, count), *operands, has_aux=True)
    return list(pull(tuple(cotangents)))


def jvp(body, operands, captured, tangents, count):
    """The first `count` results, their tangents, then the other results."""
    results, pushed, rest = torch.func.jvp(_split(body, captured, count), tuple(operands), tuple(tangents), has_aux=True)
    return [*results, *pushed, *rest]


def jvp_again(body, operands, captured, tangents):
    """The tangents of all results."""
    return list(torch.func.jvp(_closed(body, captured), tuple(operands), tuple(tangents))[1])


def _jacobian(transform, body, operands, captured, argnums, count, **options):
    rows, rest = transform(_split(body, captured, count), argnums=tuple(argnums), has_aux=True, **options)(*operands)
    return [block for row in rows for block in row] + list(rest)


def jacrev(body, operands, captured, argnums, chunk_size, count):
    """For each of the first `count` results its derivative with respect to each of some operands, then the other results."""
    return _jacobian(torch.func.jacrev, body, operands, captured, argnums, count, chunk_size=chunk_size)


def jacfwd(body, operands, captured, argnums, randomness, count):
    return _jacobian(torch.func.jacfwd, body, operands, captured, argnums, count, randomness=randomness)


def cond(taken, other, operands, captured):
    """The first operand decides which body is called."""
    decision, *inputs = operands
    if decision.is_meta:
        results, others = taken(*inputs, *captured), other(*inputs, *captured)
        if [_looks(tensor) for tensor in results] != [_looks(tensor) for tensor in others]:
            raise TypeError("the branches give tensors of different shapes or types")
        return results
    results = _apart((taken if decision.item() else other)(*inputs, *captured), (*inputs, *captured))
    return list(_Touched.apply(len(results), *results, *inputs, *captured)) if torch.is_grad_enabled() else results


def _apart(results, inputs):
    """Results with memory of their own: a body may return what it is given, and what it writes."""
    places = [_place(each) for each in inputs]
    return [each.clone() if _place(each) in places else each for each in results]


def _place(tensor):
    """What two tensors in the same memory have in common."""
    return tensor.untyped_storage()._cdata if torch._C._has_storage(tensor) else id(tensor)


class _Touched(torch.autograd.Function):
    """Lets results depend on all tensors that might have been used: those that were not have gradients of zero."""

    @staticmethod
    def forward(ctx, count, *tensors):
        ctx.others = [(each.shape, each.dtype, each.device) for each in tensors[count:]]
        results = tensors[:count]
        ctx.mark_non_differentiable(*(each for each in results if not each.is_floating_point()))
        return tuple(each.view_as(each) for each in results)

    @staticmethod
    def backward(ctx, *gradients):
        others = (torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.others)
        return None, *gradients, *(each if needed else None for each, needed in zip(others, ctx.needs_input_grad[1 + len(gradients) :]))


class _Function(torch.autograd.Function):
    """An autograd.Function whose forward half, and one backward half for each set of gradients that are there, are nested graphs."""

    @staticmethod
    def forward(ctx, halves, captured, options, *operands):
        count, constant, materialize, _, dirty, _ = options
        results = halves[0](*operands, *captured)
        ctx.save_for_backward(*results[count:])
        ctx.halves, ctx.captured, ctx.options = halves, captured, options
        ctx.mark_non_differentiable(*(result for result, is_constant in zip(results, constant) if is_constant))
        ctx.mark_dirty(*(tensor for tensor, is_dirty in zip(operands, dirty) if is_dirty))
        ctx.set_materialize_grads(materialize)
        return tuple(results[:count])

    @staticmethod
    def backward(ctx, *gradients):
        _, constant, materialize, given, _, choices = ctx.options
        there = [materialize or (gradient is not None and not is_constant) for gradient, is_constant in zip(gradients, constant)]
        if not any(there):
            return (None,) * (3 + len(given[0]))
        half = choices.index(there)
        wanted = [gradient for gradient, is_there in zip(gradients, there) if is_there]
        found = iter(ctx.halves[1 + half](*ctx.saved_tensors, *wanted, *ctx.captured))
        return None, None, None, *(next(found) if is_given else None for is_given in given[half])


class _Halves:
    """What `_Transformed` is made from; one leaf for torch, which takes structures apart."""

    def __init__(self, halves, options, origins, operands):
        self.halves, self.options, self.origins, self.operands = halves, options, origins, operands


class _Transformed(torch.autograd.Function):
    """The same inside of transforms, which look at everything that is kept: inputs and results, not what lies between."""

    generate_vmap_rule = True

    @staticmethod
    def forward(parts, *tensors):
        return tuple(parts.halves[0](*tensors)[: parts.options[0]])

    @staticmethod
    def setup_context(ctx, inputs, output):
        parts, *tensors = inputs
        known = [*tensors[: parts.operands], *output]
        ctx.parts = parts
        ctx.save_for_backward(*(known[place] for place in parts.origins), *tensors[parts.operands :])
        ctx.mark_non_differentiable(*(result for result, is_constant in zip(output, parts.options[1]) if is_constant))

    @staticmethod
    def backward(ctx, *gradients):
        parts = ctx.parts
        kept, captured = ctx.saved_tensors[: len(parts.origins)], ctx.saved_tensors[len(parts.origins) :]
        found = iter(parts.halves[1](*kept, *gradients, *captured))
        return None, *(next(found) if is_given else None for is_given in parts.options[3][0]), *(None for _ in captured)


def function(*arguments):
    """An autograd.Function: the first half gives results and what is kept, the others take what was kept and gradients.

    The arguments are these halves, the operands, what was captured, and the options: how many results there are, which of them are
    constant, whether missing gradients are zeros, which gradients each backward half gives, which operands are written to, the
    gradients that each backward half takes, and inside of a transform which operand or result each tensor is that is kept.
    """
    *halves, operands, captured, count, constant, materialize, given, dirty, choices, origins = arguments
    options = (count, constant, materialize, given, dirty, [list(choice) for choice in choices])
    if origins is not None and any(tensor.is_meta for tensor in operands):
        return halves[0](*operands, *captured)[:count]
    if origins is not None:
        return list(_Transformed.apply(_Halves(halves, options, origins, len(operands)), *operands, *captured))
    return list(_Function.apply(tuple(halves), captured, options, *operands))


def _looks(tensor):
    return tensor.dtype, tuple(tensor.shape), tensor.stride()


def while_loop(condition, body, operands, captured, carried):
    """Calls `body` as long as `condition` holds; the first `carried` operands change, the others stay."""
    state, fixed = list(operands[:carried]), [*operands[carried:], *captured]
    if any(tensor.is_meta for tensor in state):
        results = body(*state, *fixed)
        if [(t.dtype, t.shape) for t in results] != [(t.dtype, t.shape) for t in state]:
            raise TypeError("the body of a loop returns tensors with other shapes or dtypes than it takes")
        return [torch.empty_like(tensor) for tensor in results]
    while condition(*state, *fixed)[0].item():
        state = body(*state, *fixed)
    return [tensor.clone() for tensor in state]


def map(body, operands, captured, mapped):
    """Calls the body for each row of the first `mapped` operands and stacks what it gives."""
    rows, fixed = operands[:mapped], [*operands[mapped:], *captured]
    results = [body(*(tensor[index] for tensor in rows), *fixed) for index in range(rows[0].shape[0])]
    return [torch.stack(column) for column in zip(*results)]


def scan(body, operands, captured, carried, reverse):
    """Carries the first operands through a body that is called for each row of the others; stacks what it gives beside."""
    state, rows = list(operands[:carried]), operands[carried:]
    places = range(rows[0].shape[0])
    outputs = []
    for index in reversed(places) if reverse else places:
        results = body(*state, *(tensor.select(0, index) for tensor in rows), *captured)
        state = results[:carried]
        outputs.append(results[carried:])
    if reverse:
        outputs.reverse()
    return [*(tensor.clone() for tensor in state), *(torch.stack(column) for column in zip(*outputs))]


def associative_scan(body, operands, captured):
    from torch._higher_order_ops.associative_scan import generic_associative_scan

    return list(generic_associative_scan(_closed(body, captured), list(operands), 0))


def flex_attention(scored, masked, operands, captured, scale):
    """Attention whose scores and mask are functions of the batch, the head, the row and the column; its output and normalizer."""
    query, key, value = operands
    working = torch.float64 if query.dtype == torch.float64 else torch.float32
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scores = query.to(working) @ key.to(working).transpose(-2, -1) * scale
    places = [torch.arange(size, device=scores.device) for size in scores.shape]
    mapped = _over_places(lambda *inputs: scored(*inputs, *captured)[0], (0,))(scores, *places)
    shown = _over_places(lambda *inputs: masked(*inputs, *captured)[0], ())(*places)
    scores = torch.where(shown, mapped, torch.tensor(-float("inf"), dtype=working, device=scores.device))
    empty = torch.all(scores == -float("inf"), dim=-1)
    normalizer = torch.where(empty, -float("inf"), scores.logsumexp(dim=-1))
    output = torch._safe_softmax(scores, dim=-1).to(query.dtype) @ value.to(query.dtype)
    return [_laid_out_like(output, query), normalizer]


def _over_places(function, prefix):
    """A function of scalars as one of tensors with the dimensions batch, head, row, column."""
    for place in (3, 2, 1, 0):
        function = torch.vmap(function, in_dims=(*prefix, *(0 if number == place else None for number in range(4))))
    return function


def _laid_out_like(tensor, other):
    """A tensor whose dimensions lie in memory in the order of another's."""
    strides, step = [0] * tensor.dim(), 1
    for dim in sorted(range(other.dim()), key=other.stride):
        strides[dim] = step
        step *= tensor.shape[dim]
    if tensor.stride() == tuple(strides):
        return tensor
    return tensor.new_empty_strided(tensor.shape, strides).copy_(tensor)


def register_hook(body, operands, captured):
    """Calls the body on the gradient of the operand, which becomes what the body gives."""
    (tensor,) = operands
    if not tensor.is_meta:
        tensor.register_hook(lambda gradient: body(gradient, *captured)[0])
    return []


def checkpoint(body, operands, captured, preserve_rng_state, determinism_check):
    """Keeps nothing of the body for the backward half, which computes it again."""
    if any(tensor.is_meta for tensor in operands):
        return body(*operands, *captured)
    results = torch.utils.checkpoint.checkpoint(
        lambda *inputs: tuple(body(*inputs)),
        *operands,
        *captured,
        use_reentrant=False,
        preserve_rng_state=preserve_rng_state,
        determinism_check=determinism_check,
    )
    return list(results)
