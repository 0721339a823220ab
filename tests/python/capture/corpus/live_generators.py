"""Generators that live longer than one piece of a frame: over breaks, as results, driven by hand."""

import contextlib

import torch
from capture.cases import case, t


def halves(x):
    yield x / 2
    yield x / 4


def tagged(x, log):
    log.append("in")
    try:
        yield x + 1
        log.append("mid")
        yield x + 2
    except ValueError as error:
        log.append(str(error))
        yield x - 1
    finally:
        log.append("out")


def totals():
    total = 0
    while True:
        got = yield total
        if got is None:
            return total
        total = total + got


@contextlib.contextmanager
def noted(log, x):
    log.append("enter")
    try:
        yield x * 2
    finally:
        log.append("exit")


class Steps:
    def __init__(self, limit):
        self.limit = limit
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == self.limit:
            raise StopIteration
        self.n += 1
        return self.n


class Reiterable:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        yield from self.items

    def __len__(self):
        return len(self.items)


@case(lambda: (t(3),))
def first_half_before_a_break(x):
    generator = halves(x)
    first = next(generator)
    print("break")
    return first + next(generator)


@case(lambda: (t(3),))
def not_begun_before_a_break(x):
    generator = halves(x * 2)
    print("break")
    return sum(generator)


@case(lambda: (t(3),))
def in_a_loop_with_a_break(x):
    for part in halves(x):
        print("part")
        x = x + part
    return x


@case(lambda: (t(3),))
def returned_before_it_began(x):
    return halves(x + 1)


@case(lambda: (t(3),))
def a_generator_expression_returned(x):
    return (part * 2 for part in [x, x + 1])


@case(lambda: (t(3), []))
def thrown_into(x, log):
    generator = tagged(x, log)
    y = next(generator)
    z = generator.throw(ValueError("no"))
    return y + z, list(generator)


@case(lambda: (t(3), []))
def closed_in_the_middle(x, log):
    generator = tagged(x, log)
    y = next(generator)
    generator.close()
    return y, log


@case(lambda: (t(3),))
def sent_values(x):
    generator = totals()
    next(generator)
    for n in range(3):
        y = generator.send(x + n)
    try:
        generator.send(None)
    except StopIteration as stop:
        return stop.value + y


@case(lambda: (t(3), []))
def a_manager_over_a_break(x, log):
    with noted(log, x) as y:
        y = y + 1
        print("break")
        y = y * 2
    return y, log


@case(lambda: (t(3), []))
def two_managers_over_a_break(x, log):
    with noted(log, x) as y, noted(log, y) as z:
        z = z + 1
        print("break")
    return z, log


@case(lambda: (t(3), []))
def an_exception_through_a_manager(x, log):
    try:
        with noted(log, x) as y:
            y = y + 1
            raise KeyError("k")
    except KeyError as error:
        return y, error.args


@case(lambda: (t(3), Steps(3)), lambda: (t(3), Steps(5)))
def an_iterator_of_the_user(x, steps):
    for n in steps:
        x = x + n
    return x, steps.n


@case(lambda: (t(3),))
def an_iterator_made_in_the_frame(x):
    return sum(Steps(3)) + x, list(Steps(2)), next(iter(Steps(1)), None)


@case(lambda: (t(3),))
def an_object_that_iterates_by_a_generator(x):
    held = Reiterable(x, x + 1)
    total = x
    for item in held:
        total = total + item
    first, second = held
    return total + first * second, len(held), list(zip(held, held))


@case(lambda: (t(3), Reiterable(1, 2)))
def an_object_from_outside_that_iterates_by_a_generator(x, held):
    return x + sum(held), max(held)


@case(lambda: (t(3),))
def a_zip_over_a_break(x):
    pairs = zip([x, x + 1], [1, 2])
    a, n = next(pairs)
    print("break")
    b, m = next(pairs)
    return a * n + b * m


@case(lambda: (t(3),))
def a_map_over_a_break(x):
    mapped = map(torch.sin, [x, x + 1])
    first = next(mapped)
    print("break")
    return first + next(mapped)


@case(lambda: (t(3),))
def an_enumeration_over_a_break(x):
    pairs = enumerate([x, x + 1], 5)
    next(pairs)
    print("break")
    n, item = next(pairs)
    return item * n


@case(lambda: (t(3),))
def delegation_over_a_break(x):
    def outer():
        yield from halves(x)
        yield x

    generator = outer()
    first = next(generator)
    print("break")
    return first + sum(generator)


@case(lambda: (t(3),))
def items_of_a_generator_unpacked(x):
    first, *rest = (x + n for n in range(4))
    return first + len(rest), [*halves(x)], {**dict(enumerate(halves(x)))}


@case(lambda: (t(3),))
def a_generator_that_returns(x):
    def inner():
        yield x
        return x + 10

    def outer():
        kept = yield from inner()
        yield kept

    return list(outer())


@case(lambda: (t(3),))
def a_generator_as_a_method(x):
    class_ = Reiterable
    return [item + 1 for item in class_(x, x * 2) if item is not None]


@case(lambda: (t(3), halves(t(3))))
def a_generator_given(x, generator):
    return x + next(generator)


@case(lambda: (t(3), iter([1, 2, 3])))
def an_iterator_given(x, iterator):
    return x + next(iterator), next(iterator, None)


@case(lambda: (t(3),))
def a_generator_in_a_list(x):
    held = [halves(x), halves(x + 1)]
    return next(held[0]) + next(held[1]) + next(held[0])


@case(lambda: (t(3),))
def any_and_all_of_generators(x):
    if any(n > 2 for n in range(5)) and all(isinstance(item, torch.Tensor) for item in halves(x)):
        return x + 1
    return x
