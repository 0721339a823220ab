"""Functions of Python and torch that are written in C, in Python: capture follows these instead."""

import _string
import collections
import functools
import gc
import inspect
import itertools
import random
import re
import types

import numpy
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from pyrite import _arrays, _transforms


def order(keys):
    """The places of keys in ascending order; equal ones stay as they are."""
    return sorted(range(len(keys)), key=keys.__getitem__)


def keys_view(keys):
    """A view of the keys of a dict that has them in this order."""
    return dict.fromkeys(keys).keys()


def items_view(pairs):
    """A view of the pairs of a dict that has them in this order."""
    return dict(pairs).items()


def base_value(value):
    """The number or text of Python's own that an object of a derived class is; nobody is asked."""
    if isinstance(value, int):
        return int.__index__(value)
    return float.__float__(value) if isinstance(value, float) else str.__str__(value)


@functools.lru_cache(maxsize=4096)
def accepts(function, count, keywords):
    """Whether a function or method written in C takes so many arguments besides its object, and these keywords, as far as its signature says."""
    if isinstance(function, types.ClassMethodDescriptorType):
        return True
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * (count + hasattr(function, "__objclass__")), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


_EXAMPLES = {type(each): each for each in ({}.keys(), {}.values(), {}.items(), range(0), slice(None), (_ for _ in ()), types.MappingProxyType({}))}


def call_with_nothing(function, count, keywords):
    """Calls a function or method written in C with as many arguments as it does not take: they are counted before anything else is done."""
    owner = getattr(function, "__objclass__", None)
    if owner is None:
        receiver = ()
    elif owner in _EXAMPLES:
        receiver = (_EXAMPLES[owner],)
    else:
        try:
            receiver = (owner(),)
        except TypeError:
            # The call is left to Python.
            return None
    return function(*receiver, *[()] * count, **dict.fromkeys(keywords, ()))


def call_with_bare_object(function, name, *others):
    """Calls a function with an object of a class of this name that has no method of its own."""
    return function(type(name, (), {})(), *others)


def next_count(counter):
    """The number that an `itertools.count` gives out next; nothing where it counts something other than integers."""
    return _count_parts(counter)[0]


def count_step(counter):
    """By how much an `itertools.count` of integers grows."""
    return _count_parts(counter)[1]


def _count_parts(counter):
    # Its text says it without a change: pickling it is deprecated from CPython 3.12 on.
    numbers = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(counter))
    return (int(numbers[1]), int(numbers[2] or 1)) if numbers else (None, None)


def generator_from(state):
    """A generator of random numbers that stands where another stood."""
    made = random.Random()
    made.setstate(state)
    return made


def shuffled_places(generator, count):
    places = list(range(count))
    generator.shuffle(places)
    return places


def new_deque(class_, limit):
    """An empty deque of a class of the user's, which is not asked."""
    made = collections.deque.__new__(class_)
    collections.deque.__init__(made, (), limit)
    return made


def heappush(heap, item):
    heap.append(item)
    _towards_root(heap, 0, len(heap) - 1)


def heappop(heap):
    last = heap.pop()
    if not heap:
        return last
    first, heap[0] = heap[0], last
    _towards_leaves(heap, 0)
    return first


def heapify(heap):
    for place in reversed(range(len(heap) // 2)):
        _towards_leaves(heap, place)


def heapreplace(heap, item):
    first = heap[0]
    heap[0] = item
    _towards_leaves(heap, 0)
    return first


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _towards_leaves(heap, 0)
    return item


def _towards_root(heap, start, place):
    """Lets an item of a heap rise past larger ones."""
    item = heap[place]
    while place > start:
        above = (place - 1) >> 1
        if not item < heap[above]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def _towards_leaves(heap, place):
    """Lets an item of a heap sink to a leaf, then rise to where it belongs: the order of comparisons is that of CPython."""
    start, item, end = place, heap[place], len(heap)
    child = 2 * place + 1
    while child < end:
        if child + 1 < end and not heap[child] < heap[child + 1]:
            child += 1
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _towards_root(heap, start, place)


def heapify_max(heap):
    for place in reversed(range(len(heap) // 2)):
        _largest_towards_leaves(heap, place)


def heapreplace_max(heap, item):
    first = heap[0]
    heap[0] = item
    _largest_towards_leaves(heap, 0)
    return first


def _largest_towards_leaves(heap, place):
    """As `_towards_leaves`, for a heap whose root is the largest item."""
    start, item, end = place, heap[place], len(heap)
    child = 2 * place + 1
    while child < end:
        if child + 1 < end and not heap[child + 1] < heap[child]:
            child += 1
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    while place > start:
        above = (place - 1) >> 1
        if not heap[above] < item:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


def bisect_left(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if item < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        item = a[middle] if key is None else key(a[middle])
        if x < item:
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def sequence_iterator(sequence):
    index = 0
    while True:
        try:
            item = sequence[index]
        except IndexError:
            return
        yield item
        index += 1


def module_call(module, args, kwargs):
    """A module of torch with hooks, as ``Module.__call__`` runs them."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            result = hook(module, args, kwargs)
            if result is not None:
                args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    output = module.forward(*args, **kwargs)
    for key, hook in list(module._forward_hooks.items()):
        if key in module._forward_hooks_with_kwargs:
            result = hook(module, args, kwargs, output)
        else:
            result = hook(module, args, output)
        if result is not None:
            output = result
    return output


def import_from(package, name):
    """``from package import name``, for what it raises."""
    exec(f"from {package} import {name}", {})


def format_fields(text):
    """The fields of a format string: the text before each, its argument, what is looked up there, its conversion and the fields of its specification.

    Called for real: the format string is known."""
    numbering = itertools.count()
    kinds = set()

    def parse(text):
        fields = []
        for literal, name, specification, conversion in _string.formatter_parser(text):
            if name is None:
                fields.append((literal, None, (), None, ()))
                continue
            is_numbered_here = name == "" or name[0] in ".["
            first, rest = _string.formatter_field_name_split(f"{next(numbering)}{name}" if is_numbered_here else name)
            if isinstance(first, int):
                kinds.add(is_numbered_here)
                if len(kinds) > 1:
                    raise ValueError(
                        "cannot switch from manual field specification to automatic field numbering"
                        if is_numbered_here
                        else "cannot switch from automatic field numbering to manual field specification"
                    )
            fields.append((literal, first, tuple(rest), conversion, parse(specification)))
        return tuple(fields)

    return parse(text)


def format_by_fields(fields, args, kwargs):
    """``text.format(*args, **kwargs)``, by the fields of the text."""
    made = ""
    for literal, first, rest, conversion, specification in fields:
        made += literal
        if first is None:
            continue
        if isinstance(first, str):
            value = kwargs[first]
        elif first < len(args):
            value = args[first]
        else:
            raise IndexError(f"Replacement index {first} out of range for positional args tuple")
        for is_attribute, key in rest:
            value = getattr(value, key) if is_attribute else value[key]
        if conversion == "r":
            value = repr(value)
        elif conversion == "s":
            value = str(value)
        elif conversion == "a":
            value = ascii(value)
        made += format(value, format_by_fields(specification, args, kwargs))
    return made


def is_kept(call):
    """Whether a function that keeps its results, `functools.lru_cache` of one, has one for these arguments. It runs none of the function's code."""
    function, args = call
    if function.cache_parameters()["maxsize"] == 0:
        return False
    typed = function.cache_parameters()["typed"]
    key = args[0] if len(args) == 1 and not typed and type(args[0]) in (int, str) else args + tuple(map(type, args)) * typed
    kept = [each for each in gc.get_referents(function) if type(each) is dict and each is not function.__dict__]
    return any(key in each for each in kept)


def enter_once(manager):
    """Lets a context manager note what it notes when it is entered. Called for real, where the mode is as it was there."""
    manager.__enter__()
    manager.__exit__(None, None, None)


def initialize_lazy(module, examples):
    """Gives a module the parameters that its first call would give it; whether it had none. Called for real."""
    if not module.has_uninitialized_params():
        return False
    inputs = tuple([torch.zeros(shape, dtype=dtype) for shape, dtype in examples])
    module._infer_parameters(module, inputs)
    return True


def reduce(function, items, *initial):
    iterator = iter(items)
    if initial:
        result = initial[0]
    else:
        try:
            result = next(iterator)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    for item in iterator:
        result = function(result, item)
    return result


# How often `itertools.repeat` gives its item where nothing is said.
_ENDLESS = object()

# What iterates takes its iterators when it is called, and its items when it is asked for them, as the library does.


def chain(*iterables):
    return _chained(iter(iterables))


def chain_from_iterable(iterables):
    return _chained(iter(iterables))


def _chained(iterator):
    for iterable in iterator:
        yield from iter(iterable)


def islice(iterable, *bounds):
    numbers = slice(*bounds)
    start, stop, step = numbers.start, numbers.stop, numbers.step
    start, step = 0 if start is None else start, 1 if step is None else step
    for number in (start, 0 if stop is None else stop):
        if not isinstance(number, int) or number < 0:
            raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if not isinstance(step, int) or step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    return _sliced(iter(iterable), start, stop, step)


def _sliced(iterator, wanted, stop, step):
    index = 0
    while True:
        while index < wanted:
            try:
                next(iterator)
            except StopIteration:
                return
            index += 1
        if stop is not None and index >= stop:
            return
        try:
            item = next(iterator)
        except StopIteration:
            return
        index += 1
        wanted += step
        if stop is not None and wanted > stop:
            wanted = stop
        yield item


def repeat(object, times=_ENDLESS):
    return _repeated(object, times if times is _ENDLESS else range(times))


def _repeated(item, times):
    if times is not _ENDLESS:
        for _ in times:
            yield item
    else:
        while True:
            yield item


def accumulate(iterable, func=None, *, initial=None):
    return _accumulated(iter(iterable), func, initial)


def _accumulated(iterator, function, initial):
    total = initial
    if initial is None:
        try:
            total = next(iterator)
        except StopIteration:
            return
    yield total
    for item in iterator:
        total = total + item if function is None else function(total, item)
        yield total


def product(*iterables, repeat=1):
    if repeat < 0:
        raise ValueError("repeat argument cannot be negative")
    return _products([tuple(pool) for pool in iterables] * repeat)


def _products(pools):
    result = [()]
    for pool in pools:
        result = [x + (y,) for x in result for y in pool]
    yield from result


def starmap(function, iterable):
    return _starmapped(function, iter(iterable))


def _starmapped(function, iterator):
    for args in iterator:
        yield function(*args)


def pairwise(iterable):
    return _paired(iter(iterable))


def _paired(iterator):
    try:
        before = next(iterator)
    except StopIteration:
        return
    for item in iterator:
        yield before, item
        before = item


def zip_longest(*iterables, fillvalue=None):
    return _zipped([iter(iterable) for iterable in iterables], fillvalue)


def _zipped(iterators, fillvalue):
    alive = [True for _ in iterators]
    while True:
        items = []
        for place, iterator in enumerate(iterators):
            if alive[place]:
                try:
                    items.append(next(iterator))
                    continue
                except StopIteration:
                    alive[place] = False
                    if not any(alive):
                        return
            items.append(fillvalue)
        if not items:
            return
        yield tuple(items)


def _check_length(length):
    if length < 0:
        raise ValueError("r must be non-negative")


def combinations(iterable, r):
    pool = tuple(iterable)
    _check_length(r)
    return _combined(pool, r)


def _combined(pool, length):
    count = len(pool)
    places = list(range(length))
    if length > count:
        return
    yield tuple([pool[i] for i in places])
    while True:
        for index in reversed(range(length)):
            if places[index] != index + count - length:
                break
        else:
            return
        places[index] += 1
        for later in range(index + 1, length):
            places[later] = places[later - 1] + 1
        yield tuple([pool[i] for i in places])


def combinations_with_replacement(iterable, r):
    pool = tuple(iterable)
    _check_length(r)
    return _combined_again(pool, r)


def _combined_again(pool, length):
    for places in product(range(len(pool)), repeat=length):
        if sorted(places) == list(places):
            yield tuple([pool[i] for i in places])


def filterfalse(predicate, iterable):
    return _filtered_out(predicate, iter(iterable))


def _filtered_out(predicate, iterator):
    for item in iterator:
        if not (item if predicate is None else predicate(item)):
            yield item


class Compared:
    """What `functools.cmp_to_key` makes of a value."""

    def __init__(self, value, compare):
        self.obj, self.compare = value, compare

    def __lt__(self, other):
        return self.compare(self.obj, other.obj) < 0

    def __gt__(self, other):
        return self.compare(self.obj, other.obj) > 0

    def __eq__(self, other):
        return self.compare(self.obj, other.obj) == 0

    def __le__(self, other):
        return self.compare(self.obj, other.obj) <= 0

    def __ge__(self, other):
        return self.compare(self.obj, other.obj) >= 0

    __hash__ = None


def update_wrapper(wrapper, wrapped, assigned=functools.WRAPPER_ASSIGNMENTS, updated=functools.WRAPPER_UPDATES):
    for name in assigned:
        try:
            value = getattr(wrapped, name)
        except AttributeError:
            pass
        else:
            setattr(wrapper, name, value)
    for name in updated:
        for key, value in getattr(wrapped, name, {}).items():
            setattr(wrapper, key, value)
    wrapper.__wrapped__ = wrapped
    return wrapper


def decorated(context, function):
    """A function that runs in a context of torch's, which is made anew for every call."""

    def wrapper(*args, **kwargs):
        with context.clone():
            return function(*args, **kwargs)

    return update_wrapper(wrapper, function)


def decorated_by_itself(context, function):
    """A function that runs in a context of torch's, which every call enters again."""

    def wrapper(*args, **kwargs):
        with context:
            return function(*args, **kwargs)

    return update_wrapper(wrapper, function)


# Whether autocast is on for devices other than the CPU and CUDA's: questions without arguments, as guards ask them.
is_autocast_enabled_mps = functools.partial(torch.is_autocast_enabled, "mps")
is_autocast_enabled_mtia = functools.partial(torch.is_autocast_enabled, "mtia")
is_autocast_enabled_xla = functools.partial(torch.is_autocast_enabled, "xla")
is_autocast_enabled_xpu = functools.partial(torch.is_autocast_enabled, "xpu")


def call_with_arrays(function, *args, **kwargs):
    """A function of arrays, on tensors."""
    arrays = [arg.numpy() if isinstance(arg, torch.Tensor) else arg for arg in args]
    named = {name: arg.numpy() if isinstance(arg, torch.Tensor) else arg for name, arg in kwargs.items()}
    return _as_tensors(function(*arrays, **named))


def _as_tensors(value):
    if type(value) in (list, tuple):
        return type(value)([_as_tensors(item) for item in value])
    if type(value) is dict:
        return {key: _as_tensors(item) for key, item in value.items()}
    return value.tensor if type(value).__name__ == "ndarray" else value


def cmp_to_key(mycmp):
    return lambda obj: Compared(obj, mycmp)


def takewhile(predicate, iterable):
    return _taken(predicate, iter(iterable))


def _taken(predicate, iterator):
    for item in iterator:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable):
    return _dropped(predicate, iter(iterable))


def _dropped(predicate, iterator):
    dropping = True
    for item in iterator:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def permutations(iterable, r=None):
    pool = tuple(iterable)
    length = len(pool) if r is None else r
    _check_length(length)
    return _permuted(pool, length)


def _permuted(pool, length):
    for places in product(range(len(pool)), repeat=length):
        if len(set(places)) == length:
            yield tuple([pool[i] for i in places])


def cycle(iterable):
    return _cycled(iter(iterable))


def _cycled(iterator):
    saved = []
    for item in iterator:
        saved.append(item)
        yield item
    while saved:
        yield from saved


def compress(data, selectors):
    return _compressed(iter(data), iter(selectors))


def _compressed(data, selectors):
    for item, selected in zip(data, selectors):
        if selected:
            yield item


def tee(iterable, count=2):
    """Copies that share what was taken already."""
    if count < 0:
        raise ValueError("n must be >= 0")
    iterator, taken = iter(iterable), []
    return tuple([_copied(iterator, taken) for _ in range(count)])


def _copied(iterator, taken):
    place = 0
    while True:
        if place == len(taken):
            try:
                taken.append(next(iterator))
            except StopIteration:
                return
        yield taken[place]
        place += 1


def groupby(iterable, key=None):
    return _grouped(iter(iterable), key)


def _grouped(iterator, key):
    """A group ends when the next one is asked for: both take their items from the same iterator."""
    state = {"item": None, "by": None, "has": False, "ended": False, "group": 0}

    def advance():
        try:
            state["item"] = next(iterator)
        except StopIteration:
            state["ended"], state["has"] = True, False
            return
        state["by"] = state["item"] if key is None else key(state["item"])
        state["has"] = True

    def group(number, by):
        while state["group"] == number and state["has"] and state["by"] == by:
            item, state["has"] = state["item"], False
            yield item
            if state["group"] == number and not state["has"]:
                advance()

    advance()
    while not state["ended"]:
        by = state["by"]
        state["group"] += 1
        number = state["group"]
        yield by, group(number, by)
        while not state["ended"] and (not state["has"] or state["by"] == by):
            advance()


def call_until(function, sentinel):
    while True:
        value = function()
        if value is sentinel or sentinel == value:
            return
        yield value


def itemgetter(*items):
    if len(items) == 1:
        return lambda holder: holder[items[0]]
    return lambda holder: tuple([holder[item] for item in items])


def attrgetter(*names):
    def one(holder, name):
        for part in name.split("."):
            holder = getattr(holder, part)
        return holder

    if len(names) == 1:
        return lambda holder: one(holder, names[0])
    return lambda holder: tuple([one(holder, name) for name in names])


def methodcaller(name, /, *args, **kwargs):
    return lambda holder: getattr(holder, name)(*args, **kwargs)


def count_elements(mapping, iterable):
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


def einsum(equation, *operands):
    """Permutes, multiplies pairs as batches of matrices and sums, in the order that torch does."""
    if not isinstance(equation, str):
        tensors, labels = (equation, *operands[1::2]), operands[::2]
        terms = [[n for n in term] for term in labels[: len(tensors)]]
        result = list(labels[len(tensors)]) if len(labels) > len(tensors) else None
    else:
        tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        left, arrow, right = equation.replace(" ", "").partition("->")
        terms = [_labels(term) for term in left.split(",")]
        result = _labels(right) if arrow else None
    hidden = max([tensor.dim() - len(term) + 1 for tensor, term in zip(tensors, terms, strict=True) if ... in term], default=0)
    dots = [("...", n) for n in range(hidden)]
    spread = []
    for tensor, term in zip(tensors, terms):
        if ... in term:
            place, own = term.index(...), tensor.dim() - len(term) + 1
            term = term[:place] + dots[hidden - own :] + term[place + 1 :]
        if len(term) != tensor.dim():
            raise RuntimeError("einsum(): the number of subscripts in the equation does not match the number of dimensions for an operand")
        spread.append(term)
    named = [label for term in spread for label in term if label not in dots]
    if result is None:
        result = dots + sorted([label for label in named if named.count(label) == 1])
    elif ... in result:
        place = result.index(...)
        result = result[:place] + dots + result[place + 1 :]
    summed = sorted([label for label in set(named) if label not in result]) + [label for label in dots if label not in result]
    order = result + summed
    whole = [_laid_out(tensor, term, order) for tensor, term in zip(tensors, spread)]
    last = [max([n for n, term in enumerate(spread) if label in term], default=0) for label in order]
    total = whole[0]
    own = [dim for dim in range(len(result), len(order)) if last[dim] == 0]
    if own:
        total = total.sum(own, keepdim=True)
    for place in range(1, len(whole)):
        total = _multiplied(total, whole[place], [dim for dim in range(len(result), len(order)) if last[dim] == place])
    for _ in summed:
        total = total.squeeze(-1)
    return total


def _labels(term):
    place = term.find("...")
    if place < 0:
        return list(term)
    return [*term[:place], ..., *term[place + 3 :]]


def _laid_out(tensor, term, order):
    """A tensor with one dimension for each label, in order; those that it lacks are of size one."""
    term = list(term)
    for label in list(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            tensor = tensor.diagonal(0, first, second)
            term = [*term[:first], *term[first + 1 : second], *term[second + 1 :], label]
    tensor = tensor.permute([term.index(label) for label in order if label in term])
    for place, label in enumerate(order):
        if label not in term:
            tensor = tensor.unsqueeze(place)
    return tensor


def _multiplied(left, right, dims):
    """The product of two tensors of as many dimensions, summed over some, which stay with size one."""
    both = []
    for dim in dims:
        if left.size(dim) != 1 and right.size(dim) != 1:
            both.append(dim)
        elif left.size(dim) != 1:
            left = left.sum(dim, keepdim=True)
        elif right.size(dim) != 1:
            right = right.sum(dim, keepdim=True)
    if not both:
        return left * right
    shared, of_left, of_right = [], [], []
    for dim in range(left.dim()):
        if dim in both:
            continue
        if left.size(dim) != 1 and right.size(dim) != 1:
            if left.size(dim) != right.size(dim):
                raise RuntimeError("einsum(): operands do not broadcast with remapped shapes")
            shared.append(dim)
        elif left.size(dim) != 1:
            of_left.append(dim)
        else:
            of_right.append(dim)
    # Torch multiplies the other way round where that gives the result in order.
    if of_left and of_right and of_left[0] > of_right[-1]:
        left, right, of_left, of_right = right, left, of_right, of_left
    batch = _product([left.size(dim) for dim in shared])
    inner = _product([left.size(dim) for dim in both])
    rows = left.permute([*shared, *of_left, *both, *of_right])
    rows = rows.reshape(batch, _product([left.size(dim) for dim in of_left]), inner)
    columns = right.permute([*shared, *both, *of_right, *of_left])
    columns = columns.reshape(batch, inner, _product([right.size(dim) for dim in of_right]))
    result = rows.bmm(columns)
    sizes = [left.size(dim) for dim in [*shared, *of_left]] + [1 for _ in both] + [right.size(dim) for dim in of_right]
    held = [*shared, *of_left, *both, *of_right]
    return result.view(sizes).permute([held.index(dim) for dim in range(left.dim())])


def _product(sizes):
    result = 1
    for size in sizes:
        result = result * size
    return result


def one_hot(tensor, num_classes=-1):
    if num_classes < 0:
        num_classes = int(tensor.max().item()) + 1
    zeros = torch.zeros((*tensor.shape, num_classes), dtype=torch.int64)
    return zeros.scatter(-1, tensor.unsqueeze(-1), 1)


def gru_cell(inputs, hidden, w_ih, w_hh, b_ih=None, b_hh=None):
    from_input = torch.nn.functional.linear(inputs, w_ih, b_ih).chunk(3, 1)
    from_hidden = torch.nn.functional.linear(hidden, w_hh, b_hh).chunk(3, 1)
    reset = (from_hidden[0] + from_input[0]).sigmoid()
    update = (from_hidden[1] + from_input[1]).sigmoid()
    new = (from_input[2] + from_hidden[2] * reset).tanh()
    return (hidden - new) * update + new


def lstm_cell(inputs, state, w_ih, w_hh, b_ih=None, b_hh=None):
    hidden, cell = state
    gates = torch.nn.functional.linear(inputs, w_ih, b_ih) + torch.nn.functional.linear(hidden, w_hh, b_hh)
    enter, forget, new, leave = gates.chunk(4, 1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


def linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    if ord is None or isinstance(dim, int) or (dim is None and A.dim() == 1):
        return torch.linalg.vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if ord == "fro":
        return torch.linalg.vector_norm(A, 2, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return torch.linalg.matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)


def divmod_(left, right):
    return left // right, left % right


def foreach(name, first, *rest, **options):
    """`torch._foreach_NAME`: one call for each tensor of the lists."""
    in_place = name.endswith("_")
    stem = name.rstrip("_")
    given = [first, *rest]
    count = len([each for each in given if isinstance(each, (list, tuple))][0])
    rows = [[each[index] if isinstance(each, (list, tuple)) else each for each in given] for index in range(count)]
    if stem == "norm":
        return tuple([torch.linalg.vector_norm(*row, **options) for row in rows])
    if stem in ("addcmul", "addcdiv"):
        # The factor has a name where there is one tensor for each argument.
        rows, factors = [row[:3] for row in rows], [row[3] if len(row) > 3 else options.get("value", 1) for row in rows]
        options = {key: value for key, value in options.items() if key != "value"}
        if any([isinstance(factor, torch.Tensor) for factor in factors]):
            results = _with_factors(stem, in_place, rows, factors)
        else:
            results = [getattr(row[0], name)(*row[1:], value=factor) for row, factor in zip(rows, factors)]
    elif in_place and not hasattr(torch.Tensor, name):
        results = [row[0].copy_(_pairwise(stem, row, options)) for row in rows]
    elif stem in _PAIRWISE:
        results = [_pairwise(stem, row, options) for row in rows]
    elif in_place:
        results = [getattr(row[0], name)(*row[1:], **options) for row in rows]
    else:
        results = [getattr(torch, stem)(*row, **options) for row in rows]
    return None if in_place else tuple(results)


# Functions of pairs of tensors that foreach takes numbers for, too.
_PAIRWISE = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _pairwise(stem, row, options):
    if stem in _PAIRWISE and not isinstance(row[1], torch.Tensor):
        return getattr(torch, _PAIRWISE[stem])(*row, **options)
    return getattr(torch, stem)(*row, **options)


def _with_factors(stem, in_place, rows, factors):
    """`addcmul` and `addcdiv` with factors in one tensor, which is as long as the lists, or with a tensor of one number for each."""
    if any([not isinstance(factor, torch.Tensor) for factor in factors]):
        return _transforms.refuse(f"torch._foreach_{stem} with tensors among its factors")
    if any([factor.dim() and (factor.dim() != 1 or factor.shape[0] != len(rows)) for factor in factors]):
        return _transforms.refuse(f"torch._foreach_{stem} with a factor that is a tensor")
    results = []
    for index, row in enumerate(rows):
        factor = factors[index][index] if factors[index].dim() else factors[index]
        scaled = factor.to(row[0].dtype) * row[1]
        change = scaled * row[2] if stem == "addcmul" else scaled / row[2]
        results.append(row[0].add_(change) if in_place else row[0] + change)
    return results


def group_tensors(lists, with_indices=False):
    """`torch._C._group_tensors_by_device_and_dtype`, where all are of one device and type."""
    first = lists[0]
    if not first or any([tensor.dtype != first[0].dtype or tensor.device != first[0].device for tensor in first]):
        return _transforms.refuse("tensors of several types or devices in one list")
    indices = list(range(len(first))) if with_indices else []
    return {(first[0].device, first[0].dtype): ([list(each) for each in lists], indices)}


def tensor_add_(tensor, other, *, alpha=1):
    """`x.add_(y, alpha=tensor)`."""
    if not isinstance(alpha, torch.Tensor) or not isinstance(other, torch.Tensor) or alpha.dim():
        return _transforms.refuse("a call of add_ of a tensor")
    return tensor.add_(other * alpha.to(tensor.dtype))


def tensor_square_(tensor):
    return tensor.mul_(tensor)


def write_result(name, tensor, *args, **kwargs):
    """A method that writes what the method of this name computes."""
    made = getattr(tensor, name)(*args, **kwargs)
    if made.dtype != tensor.dtype or made.shape != tensor.shape:
        return _transforms.refuse(f"a call of {name}_ of a tensor, whose result has another type or shape")
    return tensor.copy_(made)


def tensor_fill_diagonal_(tensor, fill_value, wrap=False):
    if tensor.dim() != 2 or wrap:
        return _transforms.refuse("a call of fill_diagonal_ of a tensor that is not a matrix, or that goes on at its top")
    tensor.diagonal().fill_(fill_value)
    return tensor


def tensor_sum_to_size(tensor, *size):
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    missing = tensor.dim() - len(size)
    wanted = (1,) * missing + size
    if missing < 0 or any([size != 1 and size != of for size, of in zip(wanted, tensor.shape)]):
        return _transforms.refuse("a call of sum_to_size of a tensor with a size that it cannot be expanded from")
    summed = [dim for dim in range(tensor.dim()) if dim < missing or wanted[dim] == 1 and tensor.shape[dim] != 1]
    return tensor.sum(summed, keepdim=True).view(size) if summed else tensor


def _conversion(dtype):
    """A method that converts tensors to a type."""

    def convert(tensor, memory_format=torch.preserve_format):
        return tensor.to(dtype, memory_format=memory_format)

    return convert


_CONVERSIONS = {
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "byte": torch.uint8,
    "cdouble": torch.complex128,
    "cfloat": torch.complex64,
    "char": torch.int8,
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "int": torch.int32,
    "long": torch.int64,
    "short": torch.int16,
}


def _as_operand(value):
    """A tensor of as many dimensions as torch's choice of a type depends on, or a number."""
    if isinstance(value, torch.Tensor):
        return value.new_empty(()) if value.dim() == 0 else value.new_empty((1,))
    return value


def result_type(tensor1, tensor2):
    if not isinstance(tensor1, torch.Tensor) and not isinstance(tensor2, torch.Tensor):
        return _transforms.refuse("torch.result_type of numbers")
    return torch.add(_as_operand(tensor1), _as_operand(tensor2)).dtype


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    if requires_grad or not isinstance(obj, (torch.Tensor, list, tuple, int, float)):
        return _transforms.refuse("a call of torch.asarray with other data than numbers and tensors")
    made = as_tensor(obj, dtype)
    if copy and made is obj:
        made = made.clone()
    if requires_grad is False and made.requires_grad:
        return _transforms.refuse("torch.asarray of a leaf, which lets it require no gradient") if made.is_leaf else made.detach()
    return made


# What follows is called with floats that change from call to call, which `torch.scalar_tensor` makes tensors of.


def clamp_by_numbers(input, min=None, max=None):
    if min is None and max is None:
        return _transforms.refuse("torch.clamp without a bound")
    input = input if min is None else input.clamp_min(min)
    return input if max is None else input.clamp_max(max)


def full_of_numbers(size, fill_value, *, dtype=None, device=None):
    made = torch.scalar_tensor(fill_value, dtype=dtype or torch.get_default_dtype())
    return made.expand(size).clone(memory_format=torch.contiguous_format)


def tensor_of_numbers(data, *, dtype=None, device=None):
    if not _holds_numbers(data):
        return _transforms.refuse("a tensor of something other than numbers")
    return _stacked_numbers(data, dtype or torch.get_default_dtype())


def _stacked_numbers(data, dtype):
    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked_numbers(item, dtype) for item in data])
    return torch.scalar_tensor(data, dtype=dtype)


def positive(input):
    return +input


def feature_alpha_dropout(input, p, train):
    if train and p != 0:
        return _transforms.refuse("a call of torch.feature_alpha_dropout that drops something")
    return input


def nonzero(input, *, as_tuple=False):
    return places(input) if as_tuple else torch.nonzero(input)


def context_decorator(manager, function):
    """A context manager of torch's that decorates a function."""

    def decorated(*args, **kwargs):
        with manager.clone():
            return function(*args, **kwargs)

    return decorated


_TYPES = {
    "torch.FloatTensor": torch.float32,
    "torch.DoubleTensor": torch.float64,
    "torch.HalfTensor": torch.float16,
    "torch.BFloat16Tensor": torch.bfloat16,
    "torch.ByteTensor": torch.uint8,
    "torch.CharTensor": torch.int8,
    "torch.ShortTensor": torch.int16,
    "torch.IntTensor": torch.int32,
    "torch.LongTensor": torch.int64,
    "torch.BoolTensor": torch.bool,
}
_TYPE_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def places(condition):
    return torch.nonzero(torch.atleast_1d(condition)).unbind(1)


def tensor_tolist(x):
    return x.item() if x.dim() == 0 else [tensor_tolist(row) for row in x]


def tensor_type(tensor, dtype=None, non_blocking=False):
    if dtype is None:
        return _TYPE_NAMES[tensor.dtype]
    return tensor.to(_TYPES[dtype] if isinstance(dtype, str) else dtype)


def tensor_new(tensor, *sizes):
    if not sizes:
        return tensor.new_empty(0)
    if len(sizes) == 1 and isinstance(sizes[0], torch.Size):
        return tensor.new_empty(sizes[0])
    if all(isinstance(size, int) for size in sizes):
        return tensor.new_empty(sizes)
    if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)):
        return torch.tensor(sizes[0], dtype=tensor.dtype)
    return _transforms.refuse("a call of new of a tensor with values that are not sizes or numbers")


def _make(data, dtype):
    """A tensor of a list that may hold tensors."""
    return make_tensor(data, dtype=dtype) if _holds_tensor(data) else torch.tensor(data, dtype=dtype)


def tensor_new_tensor(tensor, data, *, dtype=None, device=None, requires_grad=False):
    if requires_grad:
        return _transforms.refuse("new_tensor with requires_grad")
    if isinstance(data, torch.Tensor):
        return data.detach().clone().to(tensor.dtype if dtype is None else dtype)
    return _make(data, tensor.dtype if dtype is None else dtype)


def _holds_tensor(data):
    if isinstance(data, (list, tuple)):
        return any([_holds_tensor(item) for item in data])
    return isinstance(data, torch.Tensor)


def _stacked(data):
    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(item) for item in data])
    return data.reshape(()) if isinstance(data, torch.Tensor) else torch.tensor(data)


def _holds_numbers(data):
    """Whether data is a number or lists of numbers, as sizes are; not bools, which have a type of their own."""
    if isinstance(data, (list, tuple)):
        return len(data) > 0 and all([_holds_numbers(item) for item in data])
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def _holds_float(data):
    if isinstance(data, (list, tuple)):
        return any([_holds_float(item) for item in data])
    return isinstance(data, float)


def _filled(data, dtype):
    """A tensor of numbers that are known when it is made."""
    if isinstance(data, (list, tuple)):
        return torch.stack([_filled(item, dtype) for item in data])
    return torch.full((), data, dtype=dtype)


def make_tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """`torch.tensor` of data that holds tensors of one number."""
    if isinstance(data, numpy.ndarray):
        data = data.tensor
    if not requires_grad and _holds_numbers(data):
        return _filled(data, dtype or (torch.get_default_dtype() if _holds_float(data) else torch.int64))
    if requires_grad or not _holds_tensor(data):
        return _transforms.refuse("a call of torch.tensor with values that are neither numbers nor tensors")
    if isinstance(data, torch.Tensor):
        made = data.detach().clone()
        return made if dtype is None else made.to(dtype)
    made = _stacked(data).detach()
    if dtype is not None:
        return made.to(dtype)
    kinds = {item.dtype for item in _leaves(data)}
    # The numbers of tensors count as Python's: they have the default types.
    if kinds <= {torch.bool}:
        return made.to(torch.bool)
    if any([kind.is_complex for kind in kinds]):
        return _transforms.refuse("a call of torch.tensor with complex numbers")
    return made.to(torch.get_default_dtype() if any([kind.is_floating_point for kind in kinds]) else torch.int64)


def _leaves(data):
    if isinstance(data, (list, tuple)):
        return [leaf for item in data for leaf in _leaves(item)]
    return [data if isinstance(data, torch.Tensor) else torch.tensor(data)]


def as_tensor(data, dtype=None, device=None):
    if isinstance(data, numpy.ndarray):
        data = data.tensor
    if isinstance(data, torch.Tensor):
        return data if dtype is None else data.to(dtype)
    return _make(data, dtype)


def map_aggregate(a, fn):
    """As FX maps the arguments of a node."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(item, fn) for item in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(item, fn) for key, item in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def _legacy(dtype):
    """A constructor of tensors of a type: of sizes, not initialised, or of a list."""

    def constructor(*args):
        if not args:
            return torch.empty(0, dtype=dtype)
        if all(isinstance(size, int) for size in args):
            return torch.empty(args, dtype=dtype)
        if len(args) == 1 and isinstance(args[0], torch.Size):
            return torch.empty(args[0], dtype=dtype)
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            return _make(args[0], dtype)
        return _transforms.refuse("a tensor made from a tensor by its class")

    return constructor


_CONSTRUCTORS = {name: _legacy(dtype) for name, dtype in _TYPES.items()}

TABLE = {
    "torch._C._group_tensors_by_device_and_dtype": group_tensors,
    "torch.Tensor.add_": tensor_add_,
    "torch.Tensor.square_": tensor_square_,
    "torch.Tensor.fill_diagonal_": tensor_fill_diagonal_,
    "torch.Tensor.sum_to_size": tensor_sum_to_size,
    "torch.Tensor.nonzero": nonzero,
    **{f"torch.Tensor.{name}": _conversion(dtype) for name, dtype in _CONVERSIONS.items()},
    "torch.nonzero": nonzero,
    "torch.result_type": result_type,
    "torch.asarray": asarray,
    "torch.clamp of numbers": clamp_by_numbers,
    "torch.clip of numbers": clamp_by_numbers,
    "torch.full of numbers": full_of_numbers,
    "torch.tensor of numbers": tensor_of_numbers,
    "torch.feature_alpha_dropout": feature_alpha_dropout,
    "torch.positive": positive,
    "write_result": write_result,
    "shuffled_places": shuffled_places,
    "base_value": base_value,
    "next_count": next_count,
    "count_step": count_step,
    "foreach": foreach,
    "context_decorator": context_decorator,
    "torch.Tensor.tolist": tensor_tolist,
    "torch.where": places,
    "torch.Tensor.type": tensor_type,
    "torch.Tensor.new": tensor_new,
    "torch.Tensor.new_tensor": tensor_new_tensor,
    "torch.tensor": make_tensor,
    "torch.as_tensor": as_tensor,
    "torch.fx.node.map_aggregate": map_aggregate,
    "order": order,
    "dict_of_keys": dict.fromkeys,
    "keys_view": keys_view,
    "items_view": items_view,
    "sequence_iterator": sequence_iterator,
    "module_call": module_call,
    "import_from": import_from,
    "enter_once": enter_once,
    "is_kept": is_kept,
    "format_fields": format_fields,
    "format_by_fields": format_by_fields,
    "initialize_lazy": initialize_lazy,
    "heapq.heappush": heappush,
    "heapq.heappop": heappop,
    "heapq.heapify": heapify,
    "heapq.heapreplace": heapreplace,
    "heapq.heappushpop": heappushpop,
    "heapq._heapify_max": heapify_max,
    "heapq._heapreplace_max": heapreplace_max,
    "bisect.bisect": bisect_right,
    "bisect.bisect_left": bisect_left,
    "bisect.bisect_right": bisect_right,
    "bisect.insort": insort_right,
    "bisect.insort_left": insort_left,
    "bisect.insort_right": insort_right,
    "functools.reduce": reduce,
    "itertools.chain": chain,
    "itertools.islice": islice,
    "itertools.repeat": repeat,
    "itertools.accumulate": accumulate,
    "itertools.product": product,
    "itertools.starmap": starmap,
    "itertools.pairwise": pairwise,
    "itertools.zip_longest": zip_longest,
    "itertools.combinations": combinations,
    "itertools.permutations": permutations,
    "itertools.combinations_with_replacement": combinations_with_replacement,
    "itertools.filterfalse": filterfalse,
    "functools.cmp_to_key": cmp_to_key,
    "decorated": decorated,
    "decorated_by_itself": decorated_by_itself,
    "call_with_arrays": call_with_arrays,
    "functools.update_wrapper": update_wrapper,
    "itertools.cycle": cycle,
    "itertools.takewhile": takewhile,
    "itertools.dropwhile": dropwhile,
    "itertools.chain.from_iterable": chain_from_iterable,
    "itertools.compress": compress,
    "itertools.tee": tee,
    "itertools.groupby": groupby,
    "iter": call_until,
    "operator.itemgetter": itemgetter,
    "operator.attrgetter": attrgetter,
    "operator.methodcaller": methodcaller,
    "collections._count_elements": count_elements,
    "torch.einsum": einsum,
    "torch.linalg.norm": linalg_norm,
    "torch.nn.functional.one_hot": one_hot,
    "torch.gru_cell": gru_cell,
    "torch.lstm_cell": lstm_cell,
    "builtins.divmod": divmod_,
    "torch.Tensor": _CONSTRUCTORS["torch.FloatTensor"],
    **_CONSTRUCTORS,
    **_transforms.TABLE,
    **_arrays.TABLE,
}
