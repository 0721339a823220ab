"""Python's library in the frame: functools, itertools, operator, contextlib, re, math, copy, inspect."""

import contextlib
import functools
import heapq
import inspect
import itertools
import math
import operator
import re
import statistics
import textwrap
import types

import torch
from capture.cases import Reuse, case, t

PATTERN = re.compile(r"(\w)(\d+)")


def scaled(x, by, *, plus=0):
    """Scales."""
    return x * by + plus


HALF = functools.partial(scaled, by=0.5)


@functools.lru_cache(maxsize=None)
def squared(n):
    return n * n


@functools.lru_cache
def doubled(x):
    return x * 2


@functools.singledispatch
def sized(value):
    return 0


@sized.register
def _(value: int):
    return value


@sized.register
def _(value: torch.Tensor):
    return value.shape[0]


class Dispatching:
    @functools.singledispatchmethod
    def apply(self, value):
        return -1

    @apply.register
    def _(self, value: str):
        return len(value)

    @functools.cached_property
    def once(self):
        return 5

    half = functools.partialmethod(lambda self, x, by: x * by, by=0.5)


@case(lambda: (t(3),))
def partial_and_its_parts(x):
    partial = functools.partial(scaled, x, plus=1)
    return partial(2), partial.func is scaled, partial.args[0] + 1, partial.keywords, HALF.keywords["by"]


@case(lambda: (t(3), functools.partial(scaled, by=2)), lambda: (t(3), functools.partial(scaled, by=3)))
def partial_given(x, partial):
    return partial(x) + partial.keywords["by"], isinstance(partial, functools.partial), callable(partial)


@case(lambda: (t(3),))
def partials_compared(x):
    first = functools.partial(scaled, by=2)
    second = functools.partial(first, plus=3)
    return second(x), first == second, first is first, second.keywords


@case(lambda: (t(3),))
def cached(x):
    return x * squared(3) + squared(3), squared.cache_info().maxsize, squared.__wrapped__(2)


@case(lambda: (t(3),))
def cached_with_a_tensor(x):
    return doubled(x) + 1


@case(lambda: (t(3),))
def dispatched_by_type(x):
    return x + sized(3) + sized(x) + sized("a"), sized.dispatch(int) is sized.registry[int]


@case(lambda: (t(3), Dispatching()))
def dispatched_methods(x, holder):
    return x + holder.apply("abc") + holder.apply(1) + holder.once, holder.half(x)


@case(lambda: (t(3),))
def reduced(x):
    return functools.reduce(operator.add, [x, x, x]), functools.reduce(lambda a, b: a * b, [1, 2, 3], x)


@case(lambda: (t(3), ["b", "a", "c"]))
def sorted_by_comparison(x, items):
    return x, sorted(items, key=functools.cmp_to_key(lambda a, b: (a < b) - (a > b))), sorted(items, reverse=True)


@case(lambda: (t(3),))
def wrapped(x):
    def decorate(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs) + 1

        return inner

    made = decorate(scaled)
    return made(x, 2), made.__name__, made.__doc__, made.__wrapped__ is scaled


@case(lambda: (t(3),))
def every_iterator_of_itertools(x):
    numbers = [1, 2, 3, 4]
    return (
        x + sum(itertools.islice(itertools.count(2, 3), 3)),
        list(itertools.chain(numbers, "ab")),
        list(itertools.chain.from_iterable([[1], [2]])),
        list(itertools.product([1, 2], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations(numbers, 2)),
        list(itertools.combinations_with_replacement([1, 2], 2)),
        list(itertools.accumulate(numbers, operator.mul)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.takewhile(lambda n: n < 3, numbers)),
        list(itertools.dropwhile(lambda n: n < 3, numbers)),
        list(itertools.filterfalse(lambda n: n % 2, numbers)),
        list(itertools.compress(numbers, [1, 0, 1, 0])),
        list(itertools.pairwise(numbers)),
        list(itertools.zip_longest([1], [2, 3], fillvalue=0)),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])],
        [list(i) for i in itertools.tee(numbers, 2)],
        list(itertools.islice(itertools.cycle([1, 2]), 5)),
        list(itertools.repeat(3, 2)),
    )


@case(lambda: (t(3),))
def iterators_of_tensors(x):
    total = x
    for a, b in itertools.product([x, x + 1], [2, 3]):
        total = total + a * b
    for item in itertools.accumulate([x, x, x]):
        total = total + item
    return total, list(itertools.chain([x], [total]))


@case(lambda: (t(3), {"a": [1, 2]}))
def every_operator(x, table):
    return (
        operator.add(x, 1),
        operator.itemgetter("a")(table),
        operator.itemgetter(0, 1)([5, 6]),
        operator.attrgetter("shape")(x),
        operator.attrgetter("dtype.itemsize")(x),
        operator.methodcaller("sum")(x),
        operator.matmul(x, x),
        operator.truediv(x, 2),
        operator.floordiv(7, 2),
        operator.index(3),
        operator.length_hint([1, 2]),
        operator.contains([1], 1),
        operator.countOf([1, 1], 1),
        operator.not_(0),
        operator.pos(x),
        operator.neg(3),
        operator.xor(5, 1),
        operator.lshift(1, 3),
        operator.concat([1], [2]),
        operator.is_not(x, None),
        operator.iadd([1], [2]),
    )


@case(lambda: (t(3), []))
def every_manager_of_contextlib(x, log):
    with contextlib.suppress(KeyError):
        x = x + 1
        {}["a"]
    with contextlib.nullcontext(x) as y:
        y = y * 2
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(contextlib.nullcontext())
        stack.push(lambda *error: log.append(error[0]))
        z = y + 1
    with contextlib.closing(types.SimpleNamespace(close=lambda: log.append("closed"))):
        z = z + 1
    return z, log


@case(lambda: (t(3), []), reuse=Reuse.FREE)
def an_exit_stack_over_a_break(x, log):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "done")
        x = x + 1
        print("break")
        x = x * 2
    return x, log


@contextlib.contextmanager
def doubling(log):
    log.append(1)
    yield 2
    log.append(2)


@case(lambda: (t(3), []))
def a_manager_as_a_decorator(x, log):
    @doubling(log)
    def inner(y):
        return y * 3

    return inner(x), inner(x), log


@case(lambda: (t(3), "a12b3"))
def regular_expressions(x, text):
    found = re.match(r"(\w)(\d+)", text)
    return x + int(found.group(2)), PATTERN.findall(text), PATTERN.sub("-", text), re.split(r"\d+", text), found.groups(), bool(re.search("z", text))


@case(lambda: (t(3), 2.5), lambda: (t(3), 3.5))
def functions_of_math(x, value):
    return (
        x * math.sqrt(value) + math.floor(value),
        math.isclose(value, 2.5),
        math.gcd(12, 18),
        math.comb(5, 2),
        math.hypot(3, 4),
        math.isnan(value),
        math.ceil(value),
        math.log2(8),
        math.copysign(1, -value),
        math.prod([1, 2, 3]),
        math.dist([0, 0], [3, 4]),
        math.fsum([0.1] * 3),
    )


@case(lambda: (t(4, 6),), lambda: (t(5, 6),))
def math_of_sizes(x):
    rows, columns = x.shape
    return x.reshape(-1) * math.sqrt(columns) + math.ceil(rows / 2), math.log(columns), round(columns / 4), divmod(columns, 4)


@case(lambda: (t(3),))
def heaps(x):
    heap = [5, 1, 4]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    return x + heapq.heappop(heap), heapq.nlargest(2, heap), heap


@case(lambda: (t(3),))
def signatures(x):
    signature = inspect.signature(scaled)
    bound = signature.bind(x, 2)
    bound.apply_defaults()
    return scaled(*bound.args, **bound.kwargs), list(signature.parameters)


@case(lambda: (t(3), [1, 2, 3, 4]))
def other_libraries(x, numbers):
    return x + statistics.mean(numbers), textwrap.dedent("  a"), types.MappingProxyType({"a": 1})["a"]


@case(lambda: (t(3),))
def attributes_of_functions(x):
    def inner(a, b=2):
        """Doc."""
        return a + b

    inner.mark = 3
    return inner(x) + inner.mark, inner.__name__, inner.__doc__, inner.__defaults__, inner.__code__.co_argcount, inner.__qualname__.split(".")[-1]


@case(lambda: (t(3),))
def builtins_on_everything(x):
    return (
        x + max(1, 2) + min([3, 4]) + abs(-1) + pow(2, 3) + round(2.6),
        divmod(7, 3),
        list(map(lambda a, b: a + b, [1], [2])),
        list(filter(None, [0, 1, ""])),
        sorted([(2, "a"), (1, "b")]),
        sum([[1], [2]], []),
        all([]),
        any([0, 1]),
        list(zip([1, 2], "ab", strict=True)),
        bin(5),
        hex(255),
        chr(97),
        ord("a"),
        isinstance(x, (int, torch.Tensor)),
        issubclass(bool, int),
        callable(len),
        list(range(5))[::2],
        tuple(reversed([1, 2])),
        max([1, 2], key=lambda n: -n),
        max([], default=4),
        int("12", 8),
        float("1.5"),
        complex(1, 2).imag,
        bytes([65]),
        str(1.0),
        repr("a"),
        hash("a") == hash("a"),
        type(x) is torch.Tensor,
        id(x) == id(x),
        slice(1, 2).indices(5),
        len("abc"),
        bool([]),
        next(iter([7])),
        list(enumerate("ab", 1)),
    )
