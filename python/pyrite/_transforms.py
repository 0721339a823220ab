"""Transforms and control flow of torch in terms of `call_nested`: capture follows these instead of torch's own.

They take apart what the user gives into tensors and the rest, and put together again what comes back. What they do for real
objects, when one of the functions that they make is called outside of capture, is the same.
"""

import inspect
import math

import torch
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from pyrite import higher_order


def call_nested(name, bodies, examples, operands, options):
    """Calls a function of `pyrite.higher_order`. Capture traces the bodies on tensors like the examples."""
    inputs = [operands] if isinstance(operands, torch.Tensor) else operands
    return getattr(higher_order, name)(*bodies, inputs, (), *options)


def transforms_around():
    """The names of the transforms that call what is being run; capture knows those that it traces."""
    return ()


def refuse(reason):
    """Ends the graph here."""
    raise NotImplementedError(reason)


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


class _Tree:
    """A structure of tensors and other values, whose tensors can be replaced."""

    def __init__(self, value):
        leaves, self.spec = pytree.tree_flatten(value)
        self.leaves = leaves
        self.places = [place for place, leaf in enumerate(leaves) if _is_tensor(leaf)]
        self.tensors = [leaf for leaf in leaves if _is_tensor(leaf)]

    def filled(self, tensors):
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        return pytree.tree_unflatten(leaves, self.spec)


class _Traced:
    """A function of tensors around one of structures. It remembers what the last call gave."""

    def __init__(self, function, arguments):
        self.function = function
        self.arguments = arguments
        self.result = None
        self.aux = None

    def __call__(self, *tensors):
        args, kwargs = self.arguments.filled(tensors)
        self.result = _Tree(self.function(*args, **kwargs))
        return list(self.result.tensors)


def _with_aux(traced, has_aux):
    """A body that gives the tensors of the result and then those beside it."""
    if not has_aux:
        return traced

    def body(*tensors):
        args, kwargs = traced.arguments.filled(tensors)
        output = traced.function(*args, **kwargs)
        if not (isinstance(output, tuple) and len(output) == 2):
            refuse("a function with has_aux that does not return two values")
        traced.result, traced.aux = _Tree(output[0]), _Tree(output[1])
        if len(traced.aux.tensors) != len(traced.aux.leaves):
            refuse("a function with has_aux that gives a value that is not a tensor beside")
        return [*traced.result.tensors, *traced.aux.tensors]

    return body


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    if not isinstance(in_dims, (int, tuple)):
        refuse("in_dims of vmap that are neither a number nor a tuple")
    arguments = _Tree((args, kwargs))
    dims = _broadcast(in_dims, args) + [None] * len(pytree.tree_leaves(kwargs))
    if len(dims) != len(arguments.leaves):
        refuse("in_dims that do not match the arguments of vmap")
    mapped, places = [], []
    for place, (leaf, dim) in enumerate(zip(arguments.leaves, dims)):
        if dim is None:
            continue
        if not _is_tensor(leaf) or leaf.dim() == 0:
            refuse("vmap over an argument that is not a tensor")
        mapped.append(leaf)
        places.append(place)
    if not mapped:
        refuse("vmap over nothing")
    numbers = [dim % arguments.leaves[place].dim() for place, dim in zip(places, [d for d in dims if d is not None])]
    if len({tensor.shape[dim] for tensor, dim in zip(mapped, numbers)}) != 1:
        refuse("vmap over dimensions of different sizes")
    outputs = []

    def body(*tensors):
        leaves = list(arguments.leaves)
        for place, tensor in zip(places, tensors):
            leaves[place] = tensor
        inner_args, inner_kwargs = pytree.tree_unflatten(leaves, arguments.spec)
        output = _Tree(func(*inner_args, **inner_kwargs))
        if len(output.tensors) != len(output.leaves) or not output.leaves:
            refuse("a function called by vmap that returns a value that is not a tensor")
        outputs.append(output)
        options[1] = _broadcast(out_dims, pytree.tree_unflatten(output.tensors, output.spec))
        returned[:] = [[at for at, tensor in enumerate(tensors) if leaf is tensor] for leaf in output.tensors]
        return output.tensors

    returned = []
    options = [numbers, [], randomness, chunk_size]
    examples = [tensor.select(dim, 0) for tensor, dim in zip(mapped, numbers)]
    results = list(call_nested("vmap", (body,), (examples,), mapped, options))
    # An argument that comes back along the dimension it was given by is that argument, not a tensor like it.
    for place, (found, dim) in enumerate(zip(returned, options[1])):
        if found and chunk_size is None and dim is not None and dim % mapped[found[0]].dim() == numbers[found[0]]:
            results[place] = mapped[found[0]]
    return outputs[-1].filled(results)


def _broadcast(dims, tree):
    """One number for each leaf of a structure."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(pytree.tree_leaves(tree))
    if isinstance(dims, (tuple, list)) and not isinstance(tree, (tuple, list)) and len(dims) == 1:
        return _broadcast(dims[0], tree)
    if isinstance(dims, dict):
        if not isinstance(tree, dict) or list(dims) != list(tree):
            refuse("dimensions of vmap that do not match its arguments")
        return [dim for key in tree for dim in _broadcast(dims[key], tree[key])]
    if not isinstance(tree, (tuple, list)) or len(dims) != len(tree):
        refuse("dimensions of vmap that do not match its arguments")
    return [dim for part, leaf in zip(dims, tree) for dim in _broadcast(part, leaf)]


class _Chosen:
    """The arguments that are differentiated: which tensors they are, and their structure."""

    def __init__(self, args, argnums):
        self.one = isinstance(argnums, int)
        numbers = (argnums,) if self.one else tuple(argnums)
        numbers = [number + len(args) if number < 0 else number for number in numbers]
        starts, total = [], 0
        for arg in args:
            starts.append(total)
            total += len([leaf for leaf in pytree.tree_leaves(arg) if _is_tensor(leaf)])
        self.trees = [_Tree(args[number]) for number in numbers]
        for tree in self.trees:
            if len(tree.tensors) != len(tree.leaves) or not tree.tensors:
                refuse("a derivative with respect to an object that is not a tensor")
        self.places = [starts[n] + i for n, tree in zip(numbers, self.trees) for i in range(len(tree.tensors))]

    def filled(self, tensors):
        parts, taken = [], 0
        for tree in self.trees:
            count = len(tree.tensors)
            parts.append(tree.filled(tensors[taken : taken + count]))
            taken += count
        return parts[0] if self.one else tuple(parts)


def grad_and_value_impl(func, argnums, has_aux, args, kwargs):
    arguments, chosen = _Tree((args, kwargs)), _Chosen(args, argnums)
    traced = _Traced(func, arguments)
    results = call_nested("grad", (_with_aux(traced, has_aux),), (arguments.tensors,), arguments.tensors, [chosen.places])
    count = len(chosen.places)
    if len(traced.result.tensors) != 1:
        refuse("a gradient of a value that is not one tensor")
    gradients, value = chosen.filled(results[:count]), traced.result.filled(results[count : count + 1])
    if has_aux:
        return gradients, (value, traced.aux.filled(results[count + 1 :]))
    return gradients, value


def grad_impl(func, argnums, has_aux, args, kwargs):
    gradients, value = grad_and_value_impl(func, argnums, has_aux, args, kwargs)
    return (gradients, value[1]) if has_aux else gradients


def vjp(func, *primals, has_aux=False):
    arguments = _Tree((primals, {}))
    outer = _Traced(func, arguments)
    values = _with_aux(outer, has_aux)(*arguments.tensors)
    result, aux = outer.result, outer.aux
    if len(result.tensors) != len(result.leaves):
        refuse("vjp of a function that returns a value that is not a tensor")

    def pull(cotangents, retain_graph=True, create_graph=None):
        given = pytree.tree_leaves(cotangents)
        if len(given) != len(result.tensors):
            refuse("cotangents that do not match the result of the function")
        traced = _Traced(func, arguments)
        options = [given, len(given)]
        gradients = call_nested("vjp", (_with_aux(traced, has_aux),), (arguments.tensors,), arguments.tensors, options)
        return arguments.filled(gradients)[0]

    output = result.filled(values)
    return (output, pull, aux.filled(values[len(result.tensors) :])) if has_aux else (output, pull)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    arguments, pushed = _Tree((primals, {})), _Tree(tangents)
    if len(pushed.tensors) != len(arguments.tensors) or len(arguments.leaves) != len(arguments.tensors):
        refuse("tangents that do not match the arguments")
    traced = _Traced(func, arguments)
    inner = _with_aux(traced, has_aux)

    def body(*tensors):
        results = inner(*tensors)
        options[1] = len(traced.result.tensors)
        return results

    options = [pushed.tensors, 0]
    results = call_nested("jvp", (body,), (arguments.tensors,), arguments.tensors, options)
    count = options[1]
    output, tangent = traced.result.filled(results[:count]), traced.result.filled(results[count : 2 * count])
    return (output, tangent, traced.aux.filled(results[2 * count :])) if has_aux else (output, tangent)


def linearize(func, *primals):
    arguments = _Tree((primals, {}))
    outer = _Traced(func, arguments)
    values = outer(*arguments.tensors)
    result = outer.result

    def push(*tangents):
        traced = _Traced(func, arguments)
        pushed = call_nested("jvp_again", (traced,), (arguments.tensors,), arguments.tensors, [pytree.tree_leaves(tangents)])
        return result.filled(pushed)

    return result.filled(values), push


def _jacobian(name, func, argnums, has_aux, *options):
    def transformed(*args, **kwargs):
        arguments, chosen = _Tree((args, kwargs)), _Chosen(args, argnums)
        traced = _Traced(func, arguments)
        inner = _with_aux(traced, has_aux)

        def body(*tensors):
            results = inner(*tensors)
            given[-1] = len(traced.result.tensors)
            return results

        given = [chosen.places, *options, 0]
        results = call_nested(name, (body,), (arguments.tensors,), arguments.tensors, given)
        count, width = given[-1], len(chosen.places)
        rows = [chosen.filled(results[row * width : (row + 1) * width]) for row in range(count)]
        jacobian = pytree.tree_unflatten(rows, traced.result.spec)
        return (jacobian, traced.aux.filled(results[count * width :])) if has_aux else jacobian

    return transformed


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    return _jacobian("jacrev", func, argnums, has_aux, chunk_size)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    return _jacobian("jacfwd", func, argnums, has_aux, randomness)


def hessian(func, argnums=0):
    return jacfwd(jacrev(func, argnums), argnums)


def cond(pred, true_fn, false_fn, operands=()):
    if not _is_tensor(pred):
        return true_fn(*operands) if pred else false_fn(*operands)
    arguments = _Tree((tuple(operands), {}))
    taken, other = _Traced(true_fn, arguments), _Traced(false_fn, arguments)
    results = call_nested("cond", (taken, other), (arguments.tensors, arguments.tensors), [pred, *arguments.tensors], [])
    if taken.result.spec != other.result.spec or len(taken.result.leaves) != len(taken.result.tensors):
        refuse("branches of cond that return different structures, or a value that is not a tensor")
    return taken.result.filled(results)


def while_loop(cond_fn, body_fn, carried_inputs):
    # Integers are carried as tensors of one number.
    numbers = [type(value) is int for value in carried_inputs]
    if any(numbers):
        carried = [torch.tensor(value) if is_number else value for value, is_number in zip(carried_inputs, numbers)]
        results = while_loop(cond_fn, body_fn, tuple(carried))
        return tuple([value.item() if is_number else value for value, is_number in zip(results, numbers)])
    state = _Tree((tuple(carried_inputs), {}))
    if len(state.leaves) != len(state.tensors):
        refuse("while_loop over a value that is not a tensor")
    condition, body = _Traced(cond_fn, state), _Traced(body_fn, state)
    results = call_nested("while_loop", (condition, body), (state.tensors, state.tensors), state.tensors, [len(state.tensors)])
    return body.result.filled(results)


def control_map(f, xs, *args):
    rows, arguments = _Tree(xs), _Tree((args, {}))
    if not rows.tensors or len(rows.tensors) != len(rows.leaves):
        refuse("map over a value that is not a tensor")
    outputs = []

    def body(*tensors):
        count = len(rows.tensors)
        rest, _ = arguments.filled(tensors[count:])
        outputs.append(_Tree(f(rows.filled(tensors[:count]), *rest)))
        return outputs[-1].tensors

    examples = [*(tensor.select(0, 0) for tensor in rows.tensors), *arguments.tensors]
    results = call_nested("map", (body,), (examples,), [*rows.tensors, *arguments.tensors], [len(rows.tensors)])
    return outputs[-1].filled(results)


def _moved(tree, start, end):
    """A structure of tensors with one dimension elsewhere; torch leaves those alone that do not have so many."""
    return tree.filled([torch.movedim(tensor, start, end) if max(start, end) < tensor.dim() else tensor for tensor in tree.tensors])


def scan(combine_fn, init, xs, *, dim=0, reverse=False, length=None):
    if length is not None:
        refuse("scan of a number of steps")
    if dim != 0:
        rows = _Tree(xs)
        if dim < 0 or len(rows.leaves) != len(rows.tensors):
            refuse("scan over a value that is not a tensor, or a dimension counted from the end")
        carry, outputs = scan(combine_fn, init, _moved(rows, dim, 0), reverse=reverse)
        return carry, _moved(_Tree(outputs), 0, dim)
    state, rows = _Tree(init), _Tree(xs)
    if len(state.leaves) != len(state.tensors) or not rows.tensors or len(rows.leaves) != len(rows.tensors):
        refuse("scan over a value that is not a tensor")
    outputs = []

    def body(*tensors):
        count = len(state.tensors)
        carry, output = combine_fn(state.filled(tensors[:count]), rows.filled(tensors[count:]))
        outputs.append(_Tree(output))
        return [*_Tree(carry).tensors, *outputs[-1].tensors]

    count = len(state.tensors)
    examples = [*state.tensors, *(tensor.select(0, 0) for tensor in rows.tensors)]
    results = call_nested("scan", (body,), (examples,), [*state.tensors, *rows.tensors], [count, reverse])
    return state.filled(results[:count]), outputs[-1].filled(results[count:])


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    rows = _Tree(xs)
    if dim < 0 or not rows.tensors or len(rows.leaves) != len(rows.tensors):
        refuse("associative_scan over a value that is not a tensor, or a dimension counted from the end")
    if dim != 0 or reverse:
        given = _Tree(_moved(rows, dim, 0))
        given = given.filled([tensor.flip([0]) for tensor in given.tensors]) if reverse else given.filled(given.tensors)
        found = _Tree(associative_scan(combine_fn, given, 0, False, combine_mode))
        if reverse:
            found = _Tree(found.filled([tensor.flip([0]) for tensor in found.tensors]))
        return _moved(found, 0, dim)
    count = len(rows.tensors)
    if combine_mode == "generic":
        combine_fn = torch.func.vmap(combine_fn)

    def body(*tensors):
        return _Tree(combine_fn(rows.filled(tensors[:count]), rows.filled(tensors[count:]))).tensors

    results = call_nested("associative_scan", (body,), ([*rows.tensors, *rows.tensors],), rows.tensors, [])
    return rows.filled(results)


def checkpoint(function, *args, use_reentrant=None, context_fn=None, determinism_check="default", debug=False, **kwargs):
    preserve = kwargs.pop("preserve_rng_state", True)
    kwargs.pop("early_stop", None)
    arguments = _Tree((args, kwargs))
    # The older way gives no gradients where no argument wants one, and takes no keywords.
    if use_reentrant is not False and (kwargs or not any([tensor.requires_grad for tensor in arguments.tensors])):
        refuse("checkpoint with use_reentrant of arguments that require no gradient")
    if debug or not _only_chooses(context_fn):
        refuse("checkpoint with context_fn or debug")
    traced = _Traced(function, arguments)
    results = call_nested("checkpoint", (traced,), (arguments.tensors,), arguments.tensors, [preserve, determinism_check])
    return traced.result.filled(results)


def _only_chooses(context_fn):
    """Whether the contexts of a checkpoint only choose what is kept, which is nothing to what is computed."""
    if context_fn is None or getattr(context_fn, "func", None) is create_selective_checkpoint_contexts:
        return True
    code = getattr(context_fn, "__code__", None)
    return code is not None and "create_selective_checkpoint_contexts" in code.co_names


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *, return_aux=None
):
    """Attention whose scores and mask are functions of places, which become nested graphs."""
    if return_aux is not None or [tensor.dim() for tensor in (query, key, value)] != [4, 4, 4]:
        refuse("flex_attention with return_aux, or of tensors that do not have four dimensions")
    (batch, heads, rows, width), (other, groups, columns, depth) = query.shape, key.shape
    if torch.is_grad_enabled() and any([tensor.requires_grad for tensor in (query, key, value)]):
        refuse("flex_attention whose gradient is recorded, which torch refuses on the CPU")
    fits = (groups == heads or (enable_gqa and heads % groups == 0)) and batch == other and width == depth
    if not fits or query.dtype != key.dtype or query.dtype != value.dtype or value.shape[:3] != key.shape[:3]:
        refuse("flex_attention of tensors that do not fit")
    mask_mod = None
    if block_mask is not None:
        mask_mod, blocks = block_mask.mask_mod, block_mask.kv_num_blocks
        if tuple(block_mask.seq_lengths) != (rows, columns) or blocks.shape[0] not in (1, batch) or blocks.shape[1] not in (1, heads):
            refuse("flex_attention with a mask that does not fit")

    def scored(score, b, h, i, j):
        return [score if score_mod is None else score_mod(score, b, h, i, j)]

    def masked(b, h, i, j):
        return [b.new_ones((), dtype=torch.bool) if mask_mod is None else mask_mod(b, h, i, j)]

    working = torch.float64 if query.dtype == torch.float64 else torch.float32
    places = [torch.zeros((), dtype=torch.int64) for _ in range(4)]
    examples = ([torch.zeros((), dtype=working), *places], places)
    scale = 1.0 / math.sqrt(width) if scale is None else scale
    output, normalizer = call_nested("flex_attention", (scored, masked), examples, [query, key, value], [scale])
    return (output, normalizer) if return_lse else output


def wrap(operator, function, *args, **kwargs):
    return function(*args, **kwargs)


def call(function, *args, **kwargs):
    """What says how a function is compiled, and nothing of what it computes."""
    return function(*args, **kwargs)


def strict_mode(function, operands):
    return function(*operands)


def hints_wrapper(operator, function, args, kwargs, hints):
    return function(*args, **kwargs)


class _Context:
    """What `forward` and `backward` of an autograd.Function see as `ctx`."""

    def __init__(self, inputs):
        self._inputs = inputs
        self.saved_tensors = ()
        self._constant = []
        self._dirty = []
        self._materialize = True

    @property
    def needs_input_grad(self):
        return tuple(_is_tensor(value) and value.requires_grad for value in self._inputs)

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors):
        pass

    def mark_non_differentiable(self, *tensors):
        self._constant = list(tensors)

    def mark_dirty(self, *tensors):
        self._dirty = list(tensors)

    def set_materialize_grads(self, value):
        self._materialize = value


_OWN = ("_inputs", "saved_tensors", "_constant", "_dirty", "_materialize")

# So many results of an autograd.Function may lack a gradient, each set of them with a backward half of its own.
_MOST_MISSING = 3



def _gradients_of(cls):
    """`cls.backward`, without what lets it be differentiated once only."""
    backward = cls.backward
    if backward.__code__.co_qualname == "once_differentiable.<locals>.wrapper":
        return backward.__wrapped__
    return backward


def function_apply(cls, *args, **kwargs):
    """`cls.apply` of an autograd.Function."""
    prepares = cls.setup_context is not torch.autograd.Function.setup_context
    around = transforms_around()
    if prepares:
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args = bound.args
    elif kwargs:
        refuse("keyword arguments of an autograd.Function without setup_context")
    if around:
        _check_transformed(cls, prepares, around)
    context = _Context(args)

    def run(given):
        result = cls.forward(*given) if prepares else cls.forward(context, *given)
        if prepares:
            cls.setup_context(context, given, result)
        results = list(result) if isinstance(result, tuple) else [result]
        return result, results

    operands = [value for value in args if _is_tensor(value)]
    places = [place for place, value in enumerate(args) if _is_tensor(value)]
    # Whether a transform asks for gradients is not known here.
    if not around and not (torch.is_grad_enabled() and any([tensor.requires_grad for tensor in operands])):
        result, results = run(args)
        # What is returned as it is comes out as a view, unless it was written.
        kept = [tensor for tensor in operands if not any([tensor is dirty for dirty in context._dirty])]
        fresh = [value.view_as(value) if any([value is tensor for tensor in kept]) else value for value in results]
        return tuple(fresh) if isinstance(result, tuple) else fresh[0]

    outer, kept, saved, names, bodies, examples = [], [], [], [], [], [operands]

    def forward(*tensors):
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        result, results = run(tuple(given))
        outer.append(result)
        present = [value for value in results if _is_tensor(value)]
        constant = [any([value is other for other in context._constant]) for value in present]
        dirty = [any([tensor is other for other in context._dirty]) for tensor in tensors]
        if dirty.count(True) != len(context._dirty):
            refuse("mark_dirty of a tensor that is not an argument")
        written = [[number for number, tensor in enumerate(tensors) if dirty[number] and tensor is value] for value in present]
        if len([value for value in written if value]) != len(context._dirty):
            refuse("an argument that is marked as written and not returned")
        origins.extend([value[0] if value else None for value in written])
        options[0], options[1], options[2], options[4] = len(present), constant, context._materialize, dirty
        for value in context.saved_tensors:
            kept.append(value is not None)
            if value is not None:
                saved.append(value)
        if around:
            if context._dirty or not context._materialize:
                refuse("mark_dirty or set_materialize_grads of an autograd.Function inside of a transform")
            options[6] = [_origin(value, tensors, present) for value in saved]
        for name, value in list(context.__dict__.items()):
            if name not in _OWN and (_is_tensor(value) or type(value) in (list, tuple, dict)):
                held = _Tree(value)
                if held.tensors and around:
                    refuse("a tensor as an attribute of the context of an autograd.Function inside of a transform")
                if held.tensors:
                    names.append((name, held))
                    saved.extend(held.tensors)
        # Gradients that are missing are zeros, unless the function asks for them as they are.
        if context._materialize:
            choices = [[True] * len(present)]
        else:
            choices = _choices([not value for value in constant])
        for wanted in choices:
            bodies.append(_half(backward, wanted))
            examples.append([*saved, *[value.detach() for value, is_wanted in zip(present, wanted) if is_wanted]])
        options[3], options[5] = [[] for _ in choices], choices
        return [*present, *saved]

    def backward(wanted, *tensors):
        again = _Context(args)
        for name, value in list(context.__dict__.items()):
            if name not in _OWN:
                setattr(again, name, value)
        given = list(tensors[: len(saved)])
        again.saved_tensors = tuple([given.pop(0) if is_kept else None for is_kept in kept])
        for name, held in names:
            setattr(again, name, held.filled([given.pop(0) for _ in held.tensors]))
        pushed, gradients, number = list(tensors[len(saved) :]), [], 0
        result = outer[0] if isinstance(outer[0], tuple) else (outer[0],)
        for value in result:
            if not _is_tensor(value):
                gradients.append(None)
                continue
            gradients.append(pushed.pop(0) if wanted[number] else None)
            number += 1
        found = _gradients_of(cls)(again, *gradients)
        found = list(found) if isinstance(found, tuple) else [found]
        while len(found) > len(args) and found[-1] is None:
            found.pop()
        if len(found) != len(args):
            refuse("an autograd.Function whose backward returns the wrong number of gradients")
        chosen = [found[place] for place in places]
        options[3][options[5].index(wanted)] = [value is not None for value in chosen]
        return [value for value in chosen if value is not None]

    origins, options = [], [0, [], True, [], [], [], None]
    bodies.append(forward)
    results = call_nested("function", bodies, examples, operands, options)
    result = outer[0]
    # Nothing that is computed from these asks for a gradient.
    results = [value.detach() if is_constant else value for value, is_constant in zip(results, options[1])]
    # What was written is the argument itself.
    results = [value if origin is None else operands[origin] for value, origin in zip(results, origins)]
    if not isinstance(result, tuple):
        return results[0]
    return tuple([results.pop(0) if _is_tensor(value) else value for value in result])


def _check_transformed(cls, prepares, around):
    """Leaves to torch the functions that it refuses inside of a transform, and those with rules of their own."""
    if not prepares:
        refuse("an autograd.Function without setup_context inside of a transform")
    if any([name not in ("grad", "vjp", "jacrev", "vmap") for name in around]):
        refuse("an autograd.Function inside of a transform that pushes tangents forward")
    if "vmap" in around and not cls.generate_vmap_rule:
        refuse("an autograd.Function that says itself what vmap does")
    if _gradients_of(cls) is not cls.backward:
        refuse("an autograd.Function that is differentiable once, inside of a transform")


def _origin(value, inputs, results):
    """Which input, or which result after the inputs, a saved tensor is."""
    for place, tensor in enumerate([*inputs, *results]):
        if tensor is value:
            return place
    refuse("an autograd.Function inside of a transform that saves a tensor that is neither an input nor a result")


def _half(backward, wanted):
    return lambda *tensors: backward(wanted, *tensors)


def _choices(possible):
    """Which of the results that may have a gradient have one: all of them first, each set but the empty one."""
    if possible.count(True) > _MOST_MISSING:
        refuse("an autograd.Function with many results and set_materialize_grads(False)")
    choices = [[]]
    for may in possible:
        choices = [[*choice, has] for choice in choices for has in ((True, False) if may else (False,))]
    return [choice for choice in choices if True in choice]


def annotate(values):
    """`torch.fx.traceback.annotate`: a note for who traces the code inside, who is not here."""
    yield


def has_free_unbacked_symbols(value):
    """Sizes that depend on data are not asked about: whoever branches on one ends the graph."""
    return False


def is_fx_tracing():
    """Nobody traces a frame that is captured."""
    return False


def indexed_by_tensors(mode, function, types, args=(), kwargs=None):
    """`TransformGetItemToIndex`: an index that is a tensor of one number picks a copy, as it does in graphs anyway."""
    return function(*args, **(kwargs or {}))


def latest_hook():
    """The number of the hook that capture has registered last."""
    raise NotImplementedError("hooks are numbered by capture")


def remove_hook(number):
    """Takes a hook back that no gradient has gone through yet."""
    raise NotImplementedError("hooks are numbered by capture")


class Handle:
    """What registers a hook returns."""

    def __init__(self, number):
        self.number = number

    def remove(self):
        if self.number is not None:
            remove_hook(self.number)
        self.number = None


def tensor_register_hook(tensor, hook):
    def body(gradient):
        result = hook(gradient)
        return [gradient if result is None else result]

    call_nested("register_hook", (body,), ([tensor.detach()],), [tensor], [])
    return Handle(latest_hook())


def compile(model=None, **options):
    """`torch.compile` of what is called in a graph anyway."""
    if model is None:
        return lambda given: given
    return model


TABLE = {
    "torch.compile": compile,
    "torch.Tensor.register_hook": tensor_register_hook,
    "torch.autograd.Function.apply": function_apply,
    "torch._functorch.vmap.vmap_impl": vmap_impl,
    "torch._functorch.eager_transforms.grad_impl": grad_impl,
    "torch._functorch.eager_transforms.grad_and_value_impl": grad_and_value_impl,
    "torch.func.vjp": vjp,
    "torch.func.jvp": jvp,
    "torch.func.linearize": linearize,
    "torch.func.jacrev": jacrev,
    "torch.func.jacfwd": jacfwd,
    "torch.func.hessian": hessian,
    "torch.cond": cond,
    "torch._higher_order_ops.while_loop": while_loop,
    "torch.while_loop": while_loop,
    "torch._higher_order_ops.map": control_map,
    "torch._higher_order_ops.scan": scan,
    "torch._higher_order_ops.associative_scan": associative_scan,
    "torch.fx.traceback.annotate": annotate,
    "torch.fx.is_fx_tracing": is_fx_tracing,
    "torch.fx.has_free_unbacked_symbols": has_free_unbacked_symbols,
    "torch._dynamo.TransformGetItemToIndex.__torch_function__": indexed_by_tensors,
    "torch.nn.attention.flex_attention.flex_attention": flex_attention,
    "torch.utils.checkpoint.checkpoint": checkpoint,
    "torch._higher_order_ops.wrap.Wrap.__call__": wrap,
    "torch._higher_order_ops.invoke_subgraph.invoke_subgraph_placeholder": call,
    "torch._higher_order_ops.strict_mode": strict_mode,
    "torch._higher_order_ops.hints_wrap.HintsWrapper.__call__": hints_wrapper,
}

