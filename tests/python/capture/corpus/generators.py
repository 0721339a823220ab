"""Generators: consumed, sent to, thrown into, closed, returned, delegated, alive over a break."""

import itertools

import torch
from capture.cases import Reuse, case, t


def rows(x):
    for row in x:
        yield row


def counted(n):
    for i in range(n):
        yield i


def logged(log, n):
    try:
        for i in range(n):
            log.append(i)
            yield i
    finally:
        log.append("closed")


def echo():
    got = None
    while True:
        got = yield got


def averager():
    total, count = 0, 0
    while True:
        value = yield total
        if value is None:
            return total / count
        total, count = total + value, count + 1


def guarded():
    try:
        yield 1
    except ValueError as error:
        yield str(error)
    finally:
        pass


def delegating(x):
    first = yield from counted(2)
    second = yield from [x, x + 1]
    return first, second


def outer():
    result = yield from averager()
    yield ("result", result)


def nested(depth):
    if depth:
        yield depth
        yield from nested(depth - 1)


@case(lambda: (t(3, 2),))
def summed(x):
    return sum(rows(x))


@case(lambda: (t(3),))
def listed(x):
    return [x * i for i in counted(3)], tuple(counted(2)), set(counted(3)), dict(zip("ab", counted(2)))


@case(lambda: (t(3),))
def expression(x):
    return sum(x * i for i in range(3) if i), any(i > 1 for i in range(3)), max(i * i for i in range(-2, 2))


@case(lambda: (t(3),))
def taken_by_next(x):
    g = counted(2)
    a, b = next(g), next(g)
    c = next(g, 7)
    try:
        next(g)
    except StopIteration as stop:
        x = x + 1
        assert stop.value is None
    return x * a + b + c


@case(lambda: (t(3),))
def sent(x):
    g = echo()
    next(g)
    return g.send(x + 1) * 2, g.send(3)


@case(lambda: (t(3),))
def returned_value(x):
    g = averager()
    next(g)
    g.send(2)
    g.send(4)
    try:
        g.send(None)
    except StopIteration as stop:
        return x * stop.value


@case(lambda: (t(3),))
def thrown(x):
    g = guarded()
    next(g)
    text = g.throw(ValueError("oops"))
    return x + len(text), text


@case(lambda: (t(3),))
def thrown_class(x):
    g = guarded()
    next(g)
    text = g.throw(ValueError)
    return x + 1, text


@case(lambda: (t(3),))
def thrown_before_it_began(x):
    g = counted(2)
    try:
        g.throw(KeyError("k"))
    except KeyError:
        x = x * 2
    return x, list(g)


@case(lambda: (t(3),))
def thrown_and_not_caught(x):
    g = counted(3)
    next(g)
    try:
        g.throw(ValueError("out"))
    except ValueError as error:
        return x * 2, str(error), list(g)


@case(lambda: (t(3), []))
def closed(x, log):
    g = logged(log, 5)
    next(g)
    g.close()
    return x + len(log), list(g)


@case(lambda: (t(3), []))
def closed_before_it_began(x, log):
    g = logged(log, 5)
    g.close()
    return x + len(log)


@case(lambda: (t(3),))
def delegated(x):
    g = delegating(x)
    return [item for item in g]


@case(lambda: (t(3),))
def sent_through_a_delegate(x):
    g = outer()
    next(g)
    g.send(2)
    g.send(6)
    tag, result = g.send(None)
    return x * result, tag


@case(lambda: (t(3),))
def thrown_through_a_delegate(x):
    def through():
        value = yield from guarded()
        yield ("after", value)

    g = through()
    next(g)
    return x * 2, g.throw(ValueError("deep")), next(g)


@case(lambda: (t(3),))
def recursive(x):
    return x * sum(nested(4))


@case(lambda: (t(3),))
def returned(x):
    def make():
        for i in range(3):
            yield x * i

    return make()


@case(lambda: (t(3),))
def returned_begun(x):
    def make():
        yield x
        yield x + 1
        yield x + 2

    g = make()
    next(g)
    return g, x * 2


@case(lambda: (t(3),))
def alive_over_a_break(x):
    g = counted(4)
    a = next(g)
    torch._dynamo.graph_break() if False else None
    b = next(g)
    print("between")
    c = next(g)
    return x * (a + b + c)


@case(lambda: (t(3, 2),))
def given_from_outside(x):
    def consume(g):
        return sum(g)

    return consume(rows(x)) * 2


@case(lambda: (t(3),))
def infinite_cut_short(x):
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    return x * sum(itertools.islice(naturals(), 4)), list(itertools.takewhile(lambda n: n < 3, naturals()))


@case(lambda: (t(3),))
def closure_over_a_list(x):
    out = []

    def producer():
        for i in range(3):
            out.append(i)
            yield x + i

    for y in producer():
        x = x + y
    return x, out


@case(lambda: (t(3),))
def left_by_a_return(x):
    log = []
    for i in logged(log, 5):
        if i == 2:
            break
    return x + i, log


@case(lambda: (t(3),))
def zip_and_map_over_generators(x):
    pairs = list(zip(counted(3), map(lambda i: i * 2, counted(4))))
    return x * len(pairs), pairs, list(enumerate(counted(2), 5)), list(filter(None, counted(3)))


@case(lambda: (t(3),))
def raising_inside(x):
    def bad():
        yield 1
        raise KeyError("inside")

    try:
        for i in bad():
            x = x * i
    except KeyError as error:
        return x, error.args


@case(lambda: (t(3),))
def stop_iteration_inside(x):
    def bad():
        yield 1
        raise StopIteration

    try:
        list(bad())
    except RuntimeError as error:
        return x * 2, str(error), type(error.__cause__).__name__


@case(lambda: (t(3),))
def ignoring_exit(x):
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    g = stubborn()
    next(g)
    try:
        g.close()
    except RuntimeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def star_args_from_a_generator(x):
    def add(a, b, c):
        return a + b + c

    first, *rest = counted(4)
    return x + add(*counted(3)), first, rest, [*counted(2), *counted(2)]


@case(lambda: (t(3),))
def membership_in_a_generator(x):
    g = counted(5)
    found = 2 in g
    return x * 2, found, list(g)


@case(lambda: (t(3), iter([1, 2, 3])))
def iterator_from_outside(x, it):
    a = next(it)
    return x * a + sum(it)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def yields_inside_a_with(x):
    class Enter:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *args):
            log.append("out")

    def inner():
        with Enter():
            yield 1
            yield 2

    log = []
    total = sum(inner())
    return x * total, log


@case(lambda: (t(3),))
def conditional_expression_in_a_comprehension(x):
    return [[x * (i + j) for j in range(i)] for i in range(3)], {i: x + i for i in range(2)}, {i % 2 for i in range(4)}


@case(lambda: (t(3), 2))
def ended_where_its_loop_is_left_after_a_break(x, n):
    log = ["p", "q"]

    def steps():
        try:
            int(x.sum().item())
            log.append((yield n))
            yield n + 1
        finally:
            log.append("end")

    for step in steps():
        if step > 2:
            break
    log.append("after")
    return x * 2, log
