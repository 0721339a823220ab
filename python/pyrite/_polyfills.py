"""Python's own functions that are written in C, in Python: capture follows these instead."""


def order(keys):
    """The places of keys in ascending order; equal ones stay as they are."""
    return sorted(range(len(keys)), key=keys.__getitem__)


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


def chain(*iterables):
    for iterable in iterables:
        yield from iterable


def islice(iterable, *bounds):
    numbers = slice(*bounds)
    start, stop, step = numbers.start or 0, numbers.stop, numbers.step or 1
    index, wanted = 0, start
    for item in iterable:
        if stop is not None and index >= stop:
            return
        if index == wanted:
            yield item
            wanted += step
        index += 1


def repeat(item, *times):
    if times:
        for _ in range(times[0]):
            yield item
    else:
        while True:
            yield item


def accumulate(iterable, function=None, *, initial=None):
    iterator = iter(iterable)
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
    pools = [tuple(pool) for pool in iterables] * repeat
    result = [()]
    for pool in pools:
        result = [x + (y,) for x in result for y in pool]
    yield from result


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def pairwise(iterable):
    iterator = iter(iterable)
    before = next(iterator, None)
    for item in iterator:
        yield before, item
        before = item


def zip_longest(*iterables, fillvalue=None):
    lists = [list(items) for items in iterables]
    for index in range(max([len(items) for items in lists], default=0)):
        yield tuple([items[index] if index < len(items) else fillvalue for items in lists])


def combinations(iterable, length):
    pool = tuple(iterable)
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


def takewhile(predicate, iterable):
    for item in iterable:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable):
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def permutations(iterable, length=None):
    pool = tuple(iterable)
    length = len(pool) if length is None else length
    for places in product(range(len(pool)), repeat=length):
        if len(set(places)) == length:
            yield tuple([pool[i] for i in places])


def cycle(iterable):
    saved = list(iterable)
    while saved:
        yield from saved


def divmod_(left, right):
    return left // right, left % right


TABLE = {
    "order": order,
    "sequence_iterator": sequence_iterator,
    "module_call": module_call,
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
    "itertools.cycle": cycle,
    "itertools.takewhile": takewhile,
    "itertools.dropwhile": dropwhile,
    "builtins.divmod": divmod_,
}
