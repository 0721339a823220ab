"""Functions, closures, arguments and the library of functions, as suites of other compilers probe them."""

import collections
import contextlib
import copy
import functools
import inspect
import itertools
import math
import operator
import random
import sys
import threading
import types
import typing
import weakref

import torch
import torch.nn.functional as F
from capture.cases import Reuse, call, case, t

LOCAL = threading.local()
LOCAL.scale = 3
LOCAL.items = [1, 2]
TABLE = {"sin": torch.sin, "cos": torch.cos}
WEIGHT = torch.ones(3)


@case(lambda: (t(3),))
def an_attribute_of_a_thread(x):
    return x * LOCAL.scale + len(LOCAL.items)


@case(lambda: (t(3),))
def a_missing_attribute_of_a_thread(x):
    if hasattr(LOCAL, "absent"):
        return x
    return x + getattr(LOCAL, "absent", 2)


@case(lambda: (t(3),))
def a_thread_local_of_its_own(x):
    kept = threading.local()
    kept.x = x
    kept.x = kept.x + 1
    return kept.x * 2


class Local(threading.local):
    depth = 0

    def __init__(self):
        self.seen = []


OF_CLASS = Local()


@case(lambda: (t(3),))
def a_thread_local_of_a_class(x):
    OF_CLASS.depth += 1
    try:
        return x + OF_CLASS.depth + len(OF_CLASS.seen)
    finally:
        OF_CLASS.depth -= 1


@case(lambda: (t(3), [3, 1, 2, 5]))
def shuffled_by_the_global_generator(x, items):
    random.shuffle(items)
    return x + items[0], items


@case(lambda: (t(3),))
def drawn_by_the_global_generator(x):
    a = random.random()
    b = random.randint(1, 9)
    c = random.uniform(0.0, 2.0)
    d = random.choice([1, 2, 3])
    return x * a + b - c + d


@case(lambda: (t(3),))
def sampled_by_the_global_generator(x):
    return x + sum(random.sample(range(10), 3)), random.choices([1, 2, 3], k=2)


@case(lambda: (t(3),))
def state_of_the_global_generator(x):
    state = random.getstate()
    a = random.random()
    random.setstate(state)
    return x * a, a == random.random()


@case(lambda: (t(2, 3),), lambda: (t(4, 3),))
def star_arguments_from_shapes(x):
    def inner(*sizes, **named):
        return x.new_zeros(*sizes) + named["a"]

    return inner(*x.shape, a=x.sum())


@case(lambda: (t(3),))
def keyword_defaults_of_lambdas(x):
    functions = [lambda y, k=k: y * k for k in range(3)]
    late = [lambda y: y + k for k in range(3)]
    return sum(f(x) for f in functions) + late[0](x)


@case(lambda: (t(3),))
def defaults_changed_in_the_frame(x):
    def scaled(y, k=2, *, shift=1):
        return y * k + shift

    scaled.__defaults__ = (5,)
    scaled.__kwdefaults__ = {"shift": 3}
    return scaled(x), scaled.__defaults__


@case(lambda: (t(3),))
def attributes_of_functions(x):
    def inner(y):
        inner.calls += 1
        return y + inner.calls

    inner.calls = 0
    inner(x)
    return inner(x), inner.calls, inner.__name__, inner.__qualname__


def outer_function(x, *, flag=True):
    """A text."""
    return x + 1 if flag else x


@case(lambda: (t(3),))
def what_a_function_says_of_itself(x):
    f = outer_function
    return x + len(f.__doc__), f.__name__, f.__module__.rpartition(".")[2], f.__code__.co_argcount, f.__code__.co_varnames[0], f.__kwdefaults__


@case(lambda: (t(3),))
def signature_bound_to_arguments(x):
    bound = inspect.signature(outer_function).bind(x, flag=False)
    bound.apply_defaults()
    return bound.args[0] + 1, list(bound.kwargs.items())


@case(lambda: (t(3),))
def source_of_a_function(x):
    return x + len(inspect.getsource(outer_function).splitlines())


@case(lambda: (t(3),))
def full_argument_specification(x):
    spec = inspect.getfullargspec(outer_function)
    return x + len(spec.args), spec.kwonlyargs


@case(lambda: (t(3),))
def kinds_by_inspect(x):
    return x + sum(
        [
            inspect.isfunction(outer_function),
            inspect.isclass(Local),
            inspect.ismethod(x.add),
            inspect.isbuiltin(len),
            inspect.ismodule(torch),
            inspect.isgenerator(i for i in ()),
            inspect.isroutine(print),
            inspect.isgeneratorfunction(outer_function),
            callable(LOCAL),
        ]
    )


@case(lambda: (t(3),))
def partial_of_a_partial(x):
    first = functools.partial(torch.add, alpha=2)
    second = functools.partial(first, x)
    return second(x), second.func is torch.add, len(second.args), second.keywords["alpha"]


@case(lambda: (t(3),))
def partial_overridden_by_keywords(x):
    f = functools.partial(outer_function, flag=False)
    return f(x) + f(x, flag=True)


@functools.singledispatch
def described(value):
    return 0


@described.register
def _(value: int):
    return value + 1


@described.register(str)
def _(value):
    return len(value)


@described.register(list)
def _(value):
    return sum(described(each) for each in value)


@case(lambda: (t(3),))
def dispatch_by_type(x):
    return x + described(4) + described("abc") + described([1, "a", 2.0])


@case(lambda: (t(3),))
def dispatch_asked_for_its_function(x):
    return x + described.dispatch(str)("four") + len(described.registry)


class Counting:
    def __init__(self, base):
        self.base = base
        self.made = 0

    @functools.cached_property
    def doubled(self):
        self.made += 1
        return self.base * 2

    @functools.singledispatchmethod
    def apply(self, value):
        return value

    @apply.register
    def _(self, value: int):
        return value + self.base

    add = functools.partialmethod(lambda self, n, x: x + n, 5)


@case(lambda: (t(3),))
def property_computed_once(x):
    c = Counting(x)
    return c.doubled + c.doubled, c.made, "doubled" in c.__dict__


@case(lambda: (t(3), Counting(3)))
def methods_dispatched_by_type(x, c):
    return c.apply(x) + c.apply(2) + c.add(x)


@functools.lru_cache(maxsize=None)
def cached_square(n):
    return n * n


@case(lambda: (t(3),))
def cached_results(x):
    return x + cached_square(3) + cached_square(3)


@case(lambda: (t(3),))
def reduced_by_operators(x):
    return functools.reduce(operator.add, [x, x * 2, 3]) + functools.reduce(lambda a, b: a * b, range(1, 4))


@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@case(lambda: (t(3), Version(1), Version(2)))
def total_ordering_completed(x, a, b):
    return x + 1 if a <= b and b >= a and not a > b else x


@case(lambda: (t(3),))
def sorted_by_compared(x):
    items = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))
    return x + items[0], items


def logged(prefix):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            inner.log.append(prefix + f.__name__)
            return f(*args, **kwargs)

        inner.log = []
        return inner

    return wrap


@case(lambda: (t(3),))
def decorated_in_the_frame(x):
    @logged("a.")
    @logged("b.")
    def body(y):
        return y.sin()

    result = body(x) + body(x)
    return result, body.log, body.__wrapped__.log, body.__name__


@case(lambda: (t(3),))
def iterators_of_the_library(x):
    a = list(itertools.accumulate([1, 2, 3], operator.mul, initial=2))
    b = list(itertools.chain.from_iterable([[1], [2, 3]]))
    c = list(itertools.compress("abc", [1, 0, 1]))
    d = list(itertools.dropwhile(lambda n: n < 2, [1, 2, 1]))
    e = list(itertools.starmap(pow, [(2, 3), (3, 2)]))
    f = list(itertools.zip_longest([1], [2, 3], fillvalue=0))
    g = list(itertools.product([0, 1], repeat=2))
    h = list(itertools.permutations(range(3), 2))
    return x + sum(a) + sum(b) + sum(e), c, d, f, g, h


@case(lambda: (t(3),))
def two_iterators_of_one(x):
    a, b = itertools.tee(iter([1, 2, 3]))
    next(a)
    return x + sum(m * n for m, n in zip(a, b))


@case(lambda: (t(3),))
def grouped_and_counted(x):
    groups = {k: list(v) for k, v in itertools.groupby("aabbc")}
    counted = collections.Counter("aabbc")
    return x + len(groups["a"]) + counted["b"], counted.most_common(1), counted.total()


@case(lambda: (t(4), 2))
def cycled_for_a_while(x, n):
    c = itertools.cycle([1, 2, 3])
    return x + sum(next(c) for _ in range(n + 3))


@case(lambda: (t(3),))
def operators_of_the_library(x):
    get = operator.itemgetter(1, 2)
    attribute = operator.attrgetter("shape", "dtype")
    call_sum = operator.methodcaller("sum", dim=0)
    a, b = get([x, x + 1, x + 2])
    shape, dtype = attribute(x)
    return operator.matmul(a, b) + call_sum(x) + operator.length_hint([1, 2]) + operator.index(3), dtype, operator.concat([1], [2])


@case(lambda: (t(3),))
def in_place_operators_of_the_library(x):
    y = x.clone()
    z = operator.iadd(y, 2)
    items = [1]
    operator.setitem(items, 0, 4)
    operator.iconcat(items, [5])
    return z, z is y, items, operator.countOf([1, 1, 2], 1), operator.contains(items, 5)


@case(lambda: (t(3),))
def function_made_from_code(x):
    def inner(y):
        return y + 1

    made = types.FunctionType(inner.__code__, globals(), "other")
    return made(x), made.__name__


@case(lambda: (t(3),))
def method_bound_by_hand(x):
    def scaled(self, y):
        return y * self.n

    v = Version(3)
    v.scaled = types.MethodType(scaled, v)
    return v.scaled(x), v.scaled.__self__ is v


@case(lambda: (t(3),))
def function_bound_by_descriptor(x):
    def scaled(self, y):
        return y * self.n

    return scaled.__get__(Version(2))(x)


@case(lambda: (t(3),))
def frame_of_the_caller(x):
    return x + 1, inspect.currentframe().f_code.co_name


@case(lambda: (t(3),))
def recursion_in_a_closure(x):
    def power(n):
        return x if n == 0 else power(n - 1) * 2

    return power(4)


@case(lambda: (t(3),))
def mutual_recursion_with_cells(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x + 1 if even(6) else x


@case(lambda: (t(3),))
def cell_contents_of_a_closure(x):
    n = 3

    def inner(y):
        return y * n

    found = inner.__closure__[0].cell_contents
    n = 4
    return inner(x) + found, inner.__closure__[0].cell_contents, inner.__code__.co_freevars


@case(lambda: (t(3),))
def a_counter_with_nonlocal(x):
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    add(1)
    y = x + add(2)
    print("between")
    return y * total, add(3)


@case(lambda: (t(3), TABLE))
def functions_chosen_from_a_table(x, table):
    return table["sin"](x) + getattr(torch, "cos")(x) + F.__dict__["relu"](x)


@case(lambda: (t(3),))
def sums_and_extremes_by_key(x):
    pairs = [("a", 3), ("b", 1)]
    low = min(pairs, key=lambda p: p[1])
    high = max(pairs, key=operator.itemgetter(1), default=None)
    return x + low[1] + high[1] + max([], default=2) + sum([1, 2], start=3) + sum([[1], [2]], [])[1]


@case(lambda: (t(3),))
def any_and_all_of_generators(x):
    seen = []

    def note(n):
        seen.append(n)
        return n

    return x + any(note(n) for n in [0, 1, 2]) + all(note(n) for n in [1, 0, 3]), seen


@case(lambda: (t(3),))
def numbers_of_python(x):
    return x + divmod(7, 3)[1] + pow(2, 5, 7) + round(2.567, 1) + abs(-3) + int("12") + float("1.5") + math.prod([1, 2, 3]), math.isclose(0.1 + 0.2, 0.3), (7).bit_length(), (2.5).as_integer_ratio(), math.inf > 3, complex(1, 2).real


@case(lambda: (t(3),))
def positional_only_and_keyword_only(x):
    def f(a, b=2, /, c=3, *, d=4, **rest):
        return x + a + b + c + d + rest.get("a", 0)

    return f(1) + f(1, 5, d=0, a=9)


@case(lambda: (t(3),))
def wrong_arguments_are_errors(x):
    def f(a, *, b):
        return a + b

    told = []
    for args, kwargs in [((), {}), ((1,), {}), ((1, 2), {"b": 1}), ((1,), {"b": 1, "c": 2})]:
        try:
            f(*args, **kwargs)
        except TypeError as error:
            told.append(str(error))
    return x + len(told), told


@case(lambda: (t(3), t(3)))
def maps_over_several(x, y):
    return list(map(torch.add, [x, y], [y, x])) + [*map(lambda a, b: a * b, (x,), (y,))], list(filter(None, [0, 1, 2])), [*zip([1, 2], "ab", strict=True)]


@case(lambda: (t(3),))
def unequal_zips_are_errors(x):
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def copies_shallow_and_deep(x):
    nested = {"a": [1, 2], "b": (x,)}
    shallow, deep = copy.copy(nested), copy.deepcopy({"a": [1, 2]})
    nested["a"].append(3)
    return x + len(shallow["a"]) + len(deep["a"]), shallow["b"][0] is x


@case(lambda: (t(3),))
def a_typed_function(x):
    def f(y: torch.Tensor, n: "int" = 2) -> typing.Optional[torch.Tensor]:
        local: int = n
        return y * local

    return typing.cast(torch.Tensor, f(x)), f.__annotations__["return"] == typing.Optional[torch.Tensor]


@case(lambda: (t(3),))
def interned_and_sized_names(x):
    name = sys.intern("na" + "me")
    return x + len(name), name is sys.intern("name"), sys.maxsize > 2**31, sys.version_info >= (3, 8), sys.byteorder


@case(lambda: (t(3), t(3)), reuse=Reuse.FREE)
def a_weak_reference_made_in_the_frame(x, y):
    r = weakref.ref(y)
    return r() + x, r() is y


@case(lambda: (t(3),))
def a_weak_dictionary(x):
    kept = Version(3)
    table = weakref.WeakKeyDictionary()
    table[kept] = 4
    return x + table[kept], len(table)


@case(lambda: call(t(3), out=[1]), lambda: call(t(3), out=[1, 2]))
def keywords_that_change(x, *, out):
    out.append(len(out))
    return x + out[-1]


@case(lambda: (t(3),))
def an_awaitable_run_by_hand(x):
    async def inner(y):
        return y + 1

    coroutine = inner(x)
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value * 2


@case(lambda: (t(3),), reuse=Reuse.FREE)
def suppressed_and_closed(x):
    class Closing:
        closed = False

        def close(self):
            self.closed = True

    c = Closing()
    with contextlib.suppress(KeyError), contextlib.closing(c) as same:
        x = x + 1
        {}["a"]
    return x, c.closed, same is c


@case(lambda: (t(3),))
def compared_by_identity_of_functions(x):
    f = x.sin
    return f(), torch.sin is TABLE["sin"], F.relu is torch.relu, x.add.__name__, torch.add.__name__


@case(lambda: (t(3), torch.nn.ReLU(), "relu"), lambda: (t(3), torch.nn.ReLU(), "gelu"))
def activation_by_name(x, module, name):
    return module(x) + getattr(F, name)(x)


@case(lambda: (t(2, 3),), lambda: (t(2, 5),))
def sizes_in_texts(x):
    return x + 1, f"{x.shape}", "%d by %d" % tuple(x.shape), str(x.size(1)), f"{x.shape[1]:>4}", repr(x.shape[0])


@case(lambda: (t(3),))
def text_methods(x):
    s = "Hello, World"
    return (
        x + s.count("o") + s.find("W"),
        s.partition(", "),
        s.swapcase(),
        s.translate(str.maketrans("lo", "01")),
        s.casefold().center(20, "*"),
        "a,b,,c".split(","),
        " x ".strip().zfill(3),
        s.removeprefix("Hello"),
        "{0!r:>5} {name}".format("a", name=1),
        "%-5s|%03d|%.2e" % ("a", 7, 12345.678),
        s.encode()[0],
        b"ab".hex(),
        f"{math.pi:.3f} {255:#x} {1e6:,.0f} {'x'!s:^5}",
        "ß".upper(),
        "a\tb".expandtabs(4),
        "abc".isalpha() and "1".isdigit() and not "a b".isidentifier(),
    )
