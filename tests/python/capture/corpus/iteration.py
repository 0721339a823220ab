"""Iterators: zip, enumerate, map, filter, sorted, generators consumed inside, itertools."""

import itertools
import operator

import torch
from capture.cases import case, t


@case(lambda: ([t(3), t(3)], [1, 2]), lambda: ([t(3)], [1, 2]))
def zip_two(tensors, factors):
    return [tensor * factor for tensor, factor in zip(tensors, factors)]


@case(lambda: (t(3),))
def zip_strict_raises(x):
    return [x * a + b for a, b in zip([1, 2], [3], strict=True)]


@case(lambda: (t(3),))
def zip_transposes(x):
    rows = [(1, x), (2, x + 1)]
    numbers, tensors = zip(*rows)
    return numbers, tensors


@case(lambda: ([t(3), t(3)],), lambda: ([],))
def enumerate_from(tensors):
    return {i: tensor + i for i, tensor in enumerate(tensors, start=5)}


@case(lambda: (t(3),))
def map_with_a_lambda(x):
    return list(map(lambda n: x * n, [1, 2, 3])), tuple(map(operator.add, [1, 2], [10, 20]))


@case(lambda: (t(3),))
def map_with_str(x):
    return x + 1, ",".join(map(str, [1, 2.5, None]))


@case(lambda: (t(3),))
def filter_numbers(x):
    return x * sum(filter(lambda n: n % 2, range(6))), list(filter(None, [0, 1, "", "a"]))


@case(lambda: ([(2, t(3)), (1, t(3))],))
def sorted_by_key(pairs):
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return [tensor for _, tensor in ordered], sorted("bca", reverse=True)


@case(lambda: ([t(1), t(2), t(3)],))
def reversed_list(tensors):
    return [tensor * 2 for tensor in reversed(tensors)], list(reversed(range(3)))


@case(lambda: (t(3),))
def ranges(x):
    return x + sum(range(2, 10, 3)), list(range(5, 0, -2)), len(range(7)), 3 in range(0, 9, 3), range(4)[1:3]


def counted(x, n):
    for i in range(n):
        yield x + i


@case(lambda: (t(3), 3), lambda: (t(3), 0))
def generator_in_a_loop(x, n):
    total = torch.zeros(3)
    for y in counted(x, n):
        total = total + y
    return total


@case(lambda: (t(3),))
def generator_expression(x):
    return sum(x * n for n in range(3)), tuple(x + n for n in range(2))


@case(lambda: (t(3),))
def generator_left_early(x):
    for y in counted(x, 100):
        if y.shape[0] == 3:
            return y
    return x


@case(lambda: (t(3),))
def generator_with_send(x):
    def running():
        total = 0
        while True:
            got = yield total
            if got is None:
                return
            total = total + got

    steps = running()
    next(steps)
    first = steps.send(x)
    second = steps.send(x)
    return first, second


@case(lambda: (t(3),))
def yield_from(x):
    def both():
        count = yield from inner()
        yield x * count

    def inner():
        yield x
        yield x + 1
        return 2

    return list(both())


@case(lambda: (t(3),))
def generator_with_finally(x):
    log = []

    def guarded():
        try:
            yield x
            yield x + 1
        finally:
            log.append("closed")

    g = guarded()
    first = next(g)
    g.close()
    return first, log


@case(lambda: (t(3),))
def generator_returned(x):
    def later():
        for n in range(3):
            yield x * n

    return later()


@case(lambda: (counted(t(3), 3),))
def generator_of_the_caller(items):
    total = 0
    for item in items:
        total = total + item
    return total


@case(lambda: (t(3),))
def next_with_a_default(x):
    items = iter([x, x + 1])
    return next(items), next(items), next(items, None), next(iter([]), 5)


@case(lambda: (t(3),))
def next_of_nothing_raises(x):
    next(iter([]))
    return x


@case(lambda: (t(3),))
def iter_shared_by_two_loops(x):
    items = iter(range(5))
    for n in items:
        x = x + n
        if n == 1:
            break
    return x, list(items)


@case(lambda: (t(4, 2),), lambda: (t(1, 2),))
def loop_over_a_tensor(x):
    total = 0
    for row in x:
        total = total + row
    return total


@case(lambda: (t(3, 2),))
def unpack_a_tensor(x):
    a, b, c = x
    return a + b * c


@case(lambda: (t(3, 2),))
def zip_over_tensors(x):
    return [a * b for a, b in zip(x, x.flip(0))]


@case(lambda: (t(3),))
def itertools_chain(x):
    return x * sum(itertools.chain([1, 2], (3,))), list(itertools.chain.from_iterable([[1], [2, 3]]))


@case(lambda: (t(3),))
def itertools_product(x):
    return [x * a + b for a, b in itertools.product([1, 2], [3, 4])]


@case(lambda: (t(3),))
def itertools_combinatorics(x):
    return x + len(list(itertools.permutations(range(3)))), list(itertools.combinations("abc", 2))


@case(lambda: (t(3),))
def itertools_accumulate(x):
    return list(itertools.accumulate([1, 2, 3])), list(itertools.accumulate([x, x, x], operator.mul))


@case(lambda: (t(3),))
def itertools_islice_count(x):
    return x * sum(itertools.islice(itertools.count(3), 4)), list(itertools.islice(range(9), 1, 8, 3))


@case(lambda: (t(3),))
def itertools_repeat_cycle(x):
    doubled = x
    for factor in itertools.repeat(2, 3):
        doubled = doubled * factor
    return doubled, list(zip(range(4), itertools.cycle("ab")))


@case(lambda: (t(3),))
def itertools_grouping(x):
    groups = {key: list(items) for key, items in itertools.groupby([1, 3, 2, 4, 5], key=lambda n: n % 2)}
    return x * len(groups), groups


@case(lambda: (t(3),))
def itertools_selection(x):
    below = list(itertools.takewhile(lambda n: n < 3, range(9)))
    above = list(itertools.dropwhile(lambda n: n < 3, range(5)))
    return x + len(below), above, list(itertools.compress("abc", [1, 0, 1])), list(itertools.starmap(pow, [(2, 3), (3, 2)]))


@case(lambda: (t(3),))
def itertools_pairs(x):
    return [x * (b - a) for a, b in itertools.pairwise([1, 4, 9])], list(itertools.zip_longest([1, 2], [3], fillvalue=0))


@case(lambda: (t(3),))
def any_and_all(x):
    tensors = [x, x + 1]
    return any(tensor.dim() > 1 for tensor in tensors), all(tensor.shape == (3,) for tensor in tensors), x * 2


@case(lambda: (t(3),))
def sum_of_generators(x):
    return sum((x * n for n in range(3)), start=x), max(n % 4 for n in range(10)), min([3, 1], key=lambda n: -n)


@case(lambda: (t(3),))
def iter_with_a_sentinel(x):
    items = [1, 2, 3, 0, 5]
    return x + sum(iter(lambda: items.pop(0), 0)), items


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_views(x, table):
    return [x * value for value in table.values()], [key.upper() for key in table], dict(sorted(table.items(), reverse=True))


@case(lambda: (t(3),))
def operator_functions(x):
    pick = operator.itemgetter(1, 0)
    return pick([x, x + 1]), operator.attrgetter("shape")(x), operator.methodcaller("sum")(x), operator.mul(x, 2)
