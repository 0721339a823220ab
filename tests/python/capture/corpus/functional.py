"""functools, operator, itertools and friends; functions as objects: attributes, closures, partial functions."""

import copy
import functools
import inspect
import itertools
import math
import operator
import string
import sys
import types

import torch
from capture.cases import Reuse, case, t

SCALE = functools.partial(torch.mul, other=2)


def weighted(x, a, b=1, *, c=0):
    """Weights."""
    return x * a + b + c


HALVED = functools.partial(weighted, a=0.5)
HALVED.label = "half"


@functools.lru_cache
def remembered(n):
    return n * n


@functools.cache
def slow(a, b=1):
    return a + b


def noted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


def repeated(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(x):
            for _ in range(times):
                x = function(x)
            return x

        return wrapper

    return decorate


@repeated(3)
def increment(x):
    """Adds one."""
    return x + 1


@functools.singledispatch
def described(value):
    return "other"


@described.register(int)
def _(value):
    return "int"


@described.register(list)
def _(value):
    return "list"


class Holder:
    def __init__(self, value):
        self.value = value

    def scaled(self, x, by=2):
        return x * self.value * by

    twice = functools.partialmethod(scaled, by=4)

    @functools.cached_property
    def square(self):
        return self.value**2


@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@case(lambda: (t(3),))
def partial_attributes(x):
    p = functools.partial(weighted, x, 2, c=3)
    return p(b=1), p.func is weighted, p.args[1], p.keywords["c"], len(p.args)


@case(lambda: (t(3),))
def partial_from_outside(x):
    return HALVED(x), HALVED.keywords["a"], HALVED.func.__name__, HALVED.label, HALVED.args


@case(lambda: (t(3),))
def partial_of_a_partial(x):
    p = functools.partial(functools.partial(weighted, a=2), b=5)
    return p(x), p.keywords, p.func is weighted


@case(lambda: (t(3),))
def partial_returned(x):
    return functools.partial(weighted, x, a=2)


@case(lambda: (t(3),))
def partial_of_torch(x):
    return SCALE(x), functools.partial(torch.add, alpha=2)(x, x)


@case(lambda: (t(3),))
def partial_with_an_attribute(x):
    p = functools.partial(weighted, a=1)
    p.note = 3
    return p(x) + p.note, hasattr(p, "absent"), p.__doc__ is not None


@case(lambda: (t(3), functools.partial(weighted, a=1)), lambda: (t(3), functools.partial(weighted, a=2)))
def partial_given(x, p):
    return p(x), p(x, b=2)


@case(lambda: (t(3),))
def partial_as_key(x):
    table = {weighted: 1, torch.sin: 2}
    return x * table[weighted] + table[torch.sin]


@case(lambda: (t(3), Holder(2)))
def partial_method(x, h):
    return h.twice(x), h.square


@case(lambda: (t(3), Holder(2)))
def bound_method_in_a_partial(x, h):
    return functools.partial(h.scaled, by=3)(x), h.scaled.__name__, h.scaled.__self__ is h


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def cached_function(x, n):
    return x * remembered(n) + slow(n, b=2)


@case(lambda: (t(3),))
def cached_function_info(x):
    return x + remembered.__wrapped__(3), remembered.__name__


@case(lambda: (t(3),))
def wrapped(x):
    return increment(x), increment.__name__, increment.__doc__


@case(lambda: (t(3),))
def decorated_inside(x):
    @repeated(2)
    def f(y):
        return y * 3

    return f(x), f.__name__


@case(lambda: (t(3),))
def decorator_with_an_attribute(x):
    @noted
    def f(y):
        return y + 1

    f(x)
    return f(x), f.calls


@case(lambda: (t(3),))
def reduced(x):
    return functools.reduce(operator.add, [x, x, x]), functools.reduce(lambda a, b: a * b, [1, 2, 3], 2)


@case(lambda: (t(3),))
def dispatched(x):
    return x + len(described(1)) + len(described([])), described("s")


@case(lambda: (t(3),))
def sorted_by_comparison(x):
    order = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))
    return x * order[0], order


@case(lambda: (t(3), Version(1), Version(2)))
def totally_ordered(x, a, b):
    return x * 2, a < b, a >= b, a != b, max(a, b).n


@case(lambda: (t(3),))
def operator_functions(x):
    y = operator.iadd([1], [2])
    return (
        operator.mul(x, 2),
        operator.itemgetter(1)([4, 5]),
        operator.attrgetter("shape")(x)[0],
        operator.methodcaller("sum")(x),
        operator.matmul(x, x),
        operator.index(3),
        operator.concat([1], [2]),
        operator.countOf([1, 1, 2], 1),
        operator.indexOf([1, 2], 2),
        operator.length_hint([1, 2]),
        operator.fp64([]),
        operator.pow(2, 3),
        operator.xor(5, 1),
        y,
    )


@case(lambda: (t(3),))
def operator_on_containers(x):
    d = {"a": 1}
    operator.setitem(d, "b", 2)
    operator.delitem(d, "a")
    return x * operator.getitem(d, "b"), d, operator.contains(d, "b"), operator.is_(d, d), operator.not_(d)


@case(lambda: (t(3),))
def math_functions(x):
    return x * math.sqrt(4) + math.floor(2.5) + math.gcd(12, 8) + math.factorial(4), math.isclose(0.1 + 0.2, 0.3), math.comb(4, 2), math.hypot(3, 4)


@case(lambda: (t(3, 5),), lambda: (t(3, 7),))
def math_of_sizes(x):
    return x * math.ceil(x.shape[1] / 2) + math.sqrt(x.shape[0]), math.log2(x.size(1)), math.prod(x.shape)


@case(lambda: (t(3),))
def itertools_functions(x):
    chained = list(itertools.chain([1], (2, 3)))
    return (
        x * sum(chained),
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.product("ab", [1, 2])),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
        list(itertools.zip_longest([1, 2], [3])),
        list(itertools.islice(itertools.count(3), 2)),
        list(itertools.islice(itertools.cycle("ab"), 5)),
        [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])],
        list(itertools.filterfalse(lambda v: v % 2, range(5))),
        list(itertools.starmap(pow, [(2, 3)])),
        list(itertools.repeat(1, 3)),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.pairwise([1, 2, 3])),
    )


@case(lambda: (t(3),))
def itertools_tee(x):
    a, b = itertools.tee([1, 2, 3])
    next(a)
    return x * sum(a) + sum(b)


@case(lambda: (t(3),))
def itertools_with_tensors(x):
    total = 0
    for a, b in itertools.product([x, x + 1], repeat=2):
        total = total + a * b
    return total, [y for y in itertools.accumulate([x, x, x], torch.add)]


@case(lambda: (t(3),))
def function_attributes(x):
    def f(y, a=1, *args, b=2, **kwargs):
        "Says."
        return y

    f.note = 4
    return x * f.note, f.__name__, f.__defaults__, f.__kwdefaults__, f.__doc__, f.__code__.co_argcount, f.__module__, f.__qualname__


@case(lambda: (t(3),))
def function_attributes_from_outside(x):
    return weighted(x, 2), weighted.__name__, weighted.__doc__, weighted.__code__.co_varnames[0], weighted.__kwdefaults__, weighted.__defaults__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def function_attribute_set_from_outside(x):
    weighted.count = getattr(weighted, "count", 0) + 1
    del weighted.count
    return x + 1, hasattr(weighted, "count")


@case(lambda: (t(3),))
def closures(x):
    def counter():
        n = 0

        def step(by=1):
            nonlocal n
            n += by
            return n

        return step

    a, b = counter(), counter()
    a()
    a(2)
    return x * a() + b(), a.__closure__[0].cell_contents


@case(lambda: (t(3),))
def lambdas_in_a_loop(x):
    late = [lambda: i for i in range(3)]
    early = [lambda i=i: i for i in range(3)]
    return x * sum(f() for f in late) + sum(f() for f in early)


@case(lambda: (t(3),))
def function_returned_naming_itself(x):
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return x * fact(4), fact


@case(lambda: (t(3),))
def method_type(x):
    h = Holder(3)
    m = types.MethodType(lambda self, y: y * self.value, h)
    return m(x), m.__func__ is not None


@case(lambda: (t(3),))
def interned_text(x):
    return x + len(sys.intern("abc")), sys.intern("ab") is sys.intern("ab")


@case(lambda: (t(3),))
def signatures(x):
    names = list(inspect.signature(weighted).parameters)
    return x * len(names), names, inspect.signature(weighted).parameters["b"].default


@case(lambda: (t(3),))
def inspected(x):
    return x * 2, inspect.isfunction(weighted), inspect.isclass(Holder), callable(x), inspect.ismethod(Holder(1).scaled), inspect.isbuiltin(len)


@case(lambda: (t(3),))
def copies(x):
    d = {"a": [1, x]}
    e, f = copy.copy(d), copy.deepcopy({"a": [1, 2]})
    e["b"] = 1
    f["a"].append(3)
    return d, len(e), f


@case(lambda: (t(3), Holder(3)))
def copy_of_an_object(x, h):
    c = copy.copy(h)
    c.value = 5
    return x * h.value + c.value


@case(lambda: (t(3),))
def identity_of_objects(x):
    a, b = [1], [1]
    return x * 2, id(a) == id(a), id(a) == id(b), id(weighted) == id(weighted), id(x) == id(x)


@case(lambda: (t(3), Holder(1)))
def identity_as_key(x, h):
    table = {id(h): 3, id(x): 4}
    return x * table[id(h)] + table[id(x)]


@case(lambda: (t(3),))
def string_functions(x):
    table = str.maketrans("ab", "xy")
    return (
        x + len("a-b".split("-")),
        "abc".translate(table),
        string.ascii_lowercase[:3],
        "{:>5}|{:^5}|{!r}".format("a", "b", "c"),
        "%s-%03d-%.2f" % ("a", 5, 1.234),
        f"{3.14159:.2f} {'a':*^5} {x.shape[0]:>3}",
        "a,b".partition(","),
        "{a}{b[0]}".format(a=1, b=[2]),
        "abc".startswith(("a", "b")),
        "a b".title().swapcase(),
        "-".join(str(i) for i in range(3)),
        ascii("é"),
        "x".encode(),
        string.Template("$a!").substitute(a=1),
    )


@case(lambda: (t(3),))
def builtin_functions(x):
    return (
        x * divmod(7, 2)[1],
        round(2.567, 1),
        abs(-3),
        pow(2, 5, 7),
        bin(5),
        hex(255),
        ord("a"),
        chr(98),
        min("b", "a"),
        max([1, 3, 2], key=lambda v: -v),
        sorted({"b": 1, "a": 2}.items(), key=lambda kv: kv[1], reverse=True),
        list(map(lambda a, b: a + b, [1, 2], [3, 4])),
        all([]),
        hash("a") == hash("a"),
        isinstance(True, int),
        complex(1, 2).imag,
        bytes([1, 2]),
        list(reversed(range(3))),
        slice(1, 2).start,
        float("1.5"),
        int("11", 2),
        repr([1, "a"]),
        format(3, "04d"),
        type(1) is int,
        sum([[1], [2]], []),
    )


@case(lambda: (t(3),))
def sorted_with_keys(x):
    words = ["bb", "a", "ccc"]
    words.sort(key=len, reverse=True)
    tensors = sorted([(2, x), (1, x + 1)], key=lambda pair: pair[0])
    return tensors[0][1], words, sorted([(1, "b"), (1, "a")]), sorted("hello", key=str.upper), min(words, key=len)


@case(lambda: (t(3),))
def map_over_methods(x):
    return x + 1, list(map(str.upper, "ab")), list(map(len, ["a", "bb"])), list(filter(str.isdigit, "a1b2"))


@case(lambda: (t(3),))
def simple_namespace(x):
    n = types.SimpleNamespace(a=1, b=x)
    n.c = 2
    return n.b * n.a + n.c, vars(n)["a"]


@case(lambda: (t(3),))
def getattr_and_friends(x):
    h = Holder(2)
    setattr(h, "extra", 5)
    value = getattr(h, "extra") + getattr(h, "nothing", 1)
    delattr(h, "extra")
    return x * value, hasattr(h, "extra"), getattr(x, "shape")[0], h.__dict__


@case(lambda: (t(3),))
def unpacking_calls(x):
    args, kwargs = (2,), {"b": 3, "c": 1}
    return weighted(x, *args, **kwargs), weighted(*[x, 1], **{"b": 2}, c=3), [*range(2), *"ab"], {**kwargs, "b": 9}


@case(lambda: (t(3),))
def walrus_and_chains(x):
    if (n := x.shape[0]) > 2 and 0 < n <= 3 != 4:
        x = x * n
    values = [y := 1, y + 1, y**2]
    return x, values, [last := i for i in range(3)], last
