"""Functions in every shape: parameters, defaults that change, decorators, closures, recursion, introspection, caches."""

import functools
import inspect
import operator
import types

import torch
from capture.cases import Reuse, case, t

CALLS = []


def scaled(x, by=2, /, *, plus=0):
    return x * by + plus


@case(lambda: (t(3),))
def positional_only_and_keyword_only(x):
    return scaled(x), scaled(x, 3), scaled(x, 3, plus=1)


@case(lambda: (t(3),))
def a_positional_only_name_given_by_keyword(x):
    try:
        return scaled(x, by=3)
    except TypeError as error:
        return x, "positional-only" in str(error)


def halved(x, by=2):
    return x / by


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_default_shared_by_calls(x):
    def inner(a, seen=[]):  # noqa: B006  (what a shared default does is the point)
        seen.append(1)
        return a + len(seen)

    return inner(x), inner(x), inner(x)


@case(lambda: (t(3), 2), lambda: (t(3), 5))
def defaults_replaced(x, n):
    def inner(a, by=1):
        return a * by

    inner.__defaults__ = (n,)
    return inner(x)


@case(lambda: (t(3),))
def keyword_defaults_replaced(x):
    def inner(a, *, by=1):
        return a * by

    inner.__kwdefaults__ = {"by": 4}
    return inner(x), inner.__kwdefaults__


@case(lambda: (t(3),))
def names_and_documents(x):
    def inner(a: int, b: str = "q") -> float:
        """Says something."""
        return a

    return x + 1, inner.__name__, inner.__qualname__, inner.__doc__, sorted(inner.__annotations__), inner.__module__


@case(lambda: (t(3),))
def code_of_a_function(x):
    def inner(a, b=1, *c, d, **e):
        z = a
        return z

    code = inner.__code__
    return x + code.co_argcount, code.co_varnames[:2], code.co_kwonlyargcount, code.co_name


@case(lambda: (t(3),))
def signatures_bound(x):
    def inner(a, b=2, *rest, c=3, **more):
        return a * b + c

    bound = inspect.signature(inner).bind(x, 4, c=5)
    bound.apply_defaults()
    return inner(*bound.args, **bound.kwargs), list(bound.arguments)


@case(lambda: (t(3),))
def parameters_listed(x):
    signature = inspect.signature(scaled)
    return x + len(signature.parameters), [str(p.kind) for p in signature.parameters.values()], str(signature)


@case(lambda: (t(3),))
def kinds_asked_of_inspect(x):
    return x + 1, inspect.isfunction(scaled), inspect.isclass(int), inspect.ismethod(x.sum), inspect.isbuiltin(len), inspect.ismodule(torch)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def attributes_by_inspect(x):
    class Held:
        value = 3

        @property
        def computed(self):
            return 4

    return x + inspect.getattr_static(Held(), "value"), type(inspect.getattr_static(Held, "computed")).__name__


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        CALLS.append(function.__name__)
        return function(*args, **kwargs)

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


@logged
@repeated(3)
def increment(x):
    return x + 1


@case(lambda: (t(3),), watch=("CALLS",))
def decorators_upon_decorators(x):
    return increment(x), increment.__name__, increment.__wrapped__.__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_decorator_class(x):
    class Twice:
        def __init__(self, function):
            self.function = function
            functools.update_wrapper(self, function)

        def __call__(self, *args):
            return self.function(self.function(*args))

    @Twice
    def inner(a):
        return a * 3

    return inner(x), inner.__name__


@case(lambda: (t(3),))
def a_counter_in_a_closure(x):
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    return x + bump() * bump(), count


@case(lambda: (t(3),))
def two_closures_of_one_cell(x):
    total = x

    def add(by):
        nonlocal total
        total = total + by

    def read():
        return total

    add(1)
    add(x)
    return read()


@case(lambda: (t(3),))
def cells_looked_at(x):
    n = 3

    def inner(a):
        return a + n

    cell = inner.__closure__[0]
    return inner(x), cell.cell_contents, len(inner.__closure__), inner.__code__.co_freevars


@case(lambda: (t(3),))
def a_cell_made_by_hand(x):
    cell = types.CellType(5)
    before = cell.cell_contents
    cell.cell_contents = 7
    return x * before + cell.cell_contents


@case(lambda: (t(3),))
def a_cell_that_is_empty(x):
    def inner():
        return later

    try:
        inner()
    except NameError as error:
        text = str(error)
    later = x + 1
    return inner(), "later" in text


def outer_counter(start):
    count = start

    def step(x):
        nonlocal count
        count += 1
        return x + count

    return step


@case(lambda: (t(3), outer_counter(2)), reuse=Reuse.FREE)
def a_counter_of_the_caller(x, step):
    return step(step(x))


@case(lambda: (t(3),))
def a_factory_of_closures(x):
    steps = [lambda a, n=n: a + n for n in range(3)]
    late = [lambda a: a * n for n in range(3)]
    return [step(x) for step in steps], [each(x) for each in late]


@case(lambda: (t(3),))
def a_function_built_by_hand(x):
    def inner(a):
        return a * factor

    factor = 2
    built = types.FunctionType(inner.__code__, inner.__globals__, "built", None, inner.__closure__)
    return built(x), built.__name__


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_method_bound_by_hand(x):
    class Holder:
        n = 4

    def method(self, a):
        return a * self.n

    return types.MethodType(method, Holder())(x), method.__get__(Holder(), Holder)(x)


@case(lambda: (t(3), 5), lambda: (t(3), 3))
def a_recursion_on_a_number(x, n):
    def down(a, k):
        return a if k == 0 else down(a + k, k - 1)

    return down(x, n)


@case(lambda: (t(3),))
def a_recursion_on_a_tree(x):
    def total(tree):
        if isinstance(tree, (list, tuple)):
            return sum(total(each) for each in tree)
        if isinstance(tree, dict):
            return sum(total(each) for each in tree.values())
        return tree

    return total([x, (x * 2, {"a": x, "b": [x + 1]}), 3])


@functools.lru_cache(maxsize=None)
def cached_number(n):
    return n * 2


@functools.cache
def cached_text(text):
    return text.upper()


@case(lambda: (t(3),))
def cached_functions_called(x):
    return x * cached_number(3) + cached_number(3), cached_text("ab"), cached_number.__wrapped__(4)


class Shape:
    def __init__(self, sides):
        self.sides = sides
        self.asked = 0

    @functools.cached_property
    def area(self):
        self.asked += 1
        return self.sides[0] * self.sides[1]


@case(lambda: (t(3), Shape((2, 3))))
def a_cached_property_asked_twice(x, shape):
    return x * shape.area + shape.area, shape.asked, "area" in vars(shape)


@case(lambda: (t(3),))
def a_cached_property_of_a_new_object(x):
    shape = Shape((x, 2))
    return shape.area + shape.area, shape.asked


@functools.singledispatch
def described(value):
    return "something"


@described.register
def _(value: int):
    return f"int {value}"


@described.register(list)
def _(value):
    return f"list {len(value)}"


@case(lambda: (t(3),))
def dispatched_by_the_first_argument(x):
    return x + 1, described(3), described([1, 2]), described("text"), described.dispatch(int)(4)


class Formatter:
    @functools.singledispatchmethod
    def show(self, value):
        return 1

    @show.register
    def _(self, value: str):
        return 2

    @show.register
    def _(self, value: torch.Tensor):
        return 3


@case(lambda: (t(3), Formatter()))
def a_dispatched_method(x, formatter):
    return x * formatter.show(x) + formatter.show("a") + formatter.show(None)


@case(lambda: (t(3),))
def reduced_in_many_ways(x):
    return functools.reduce(operator.add, [x, x, x]), functools.reduce(lambda a, b: a * b, [x, 2], 3), functools.reduce(torch.maximum, x.unbind())


@case(lambda: (t(3),))
def partials_of_partials(x):
    base = functools.partial(scaled, x)
    more = functools.partial(base, 3, plus=1)
    return more(), more.args[1:], more.keywords, more.func is scaled


@case(lambda: (t(3),), reuse=Reuse.FREE)
def a_partial_of_a_method(x):
    class Holder:
        def method(self, a, b):
            return a - b

        later = functools.partialmethod(method, b=2)

    holder = Holder()
    return functools.partial(holder.method, x)(1), holder.later(x)


@functools.total_ordering
class Version:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@case(lambda: (t(3), Version(1), Version(2)))
def ordered_by_two_methods(x, a, b):
    return x + (a < b) + (a >= b), a <= b, b > a, max(a, b).n, sorted([b, a])[0].n


@case(lambda: (t(3),))
def keys_of_comparison(x):
    items = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))
    return x * items[0], items


@case(lambda: (t(3),))
def arguments_spread_in_odd_ways(x):
    def gather(*args, **kwargs):
        return len(args), sorted(kwargs)

    return x + 1, gather(*[1, 2], 3, *(4,), a=1, **{"b": 2}, **{"c": 3}), gather(*"ab", *range(2))


@case(lambda: (t(3),))
def too_many_values_for_a_keyword(x):
    def inner(a, **kwargs):
        return a

    try:
        return inner(x, **{"a": 1})
    except TypeError as error:
        return x, "multiple values" in str(error)


@case(lambda: (t(3),))
def an_attribute_of_a_function_counts(x):
    def inner(a):
        inner.calls += 1
        return a + inner.calls

    inner.calls = 0
    return inner(inner(x)), inner.calls


@case(lambda: (t(3),))
def a_lambda_called_at_once(x):
    return (lambda a, b=x * 2: a + b)(x), (lambda *a: a[-1])(1, 2, x)


@case(lambda: (t(3),))
def a_generator_function_asked(x):
    def inner():
        yield x

    return next(inner()) + 1, inspect.isgeneratorfunction(inner), inspect.isgenerator(inner())


@case(lambda: (t(3),))
def names_of_the_frame(x):
    y = x + 1
    return y, sorted(locals()), "CALLS" in globals()


@case(lambda: (t(3),))
def operators_as_functions(x):
    pick = operator.itemgetter(0, -1)
    return pick([x, 1, x * 2]), operator.attrgetter("shape")(x), operator.methodcaller("sum", 0)(x), operator.attrgetter("real.imag")(3)


@case(lambda: (t(3),))
def operators_in_place(x):
    a = [1]
    operator.iadd(a, [2])
    operator.setitem(a, 0, 5)
    operator.delitem(a, 1)
    return x + a[0], operator.imul(x.clone(), 2), operator.index(3), operator.concat([1], [2]), operator.countOf([1, 1, 2], 1)


@case(lambda: (t(3),))
def operators_of_truth(x):
    return x + operator.truth([1]), operator.not_([]), operator.is_(x, x), operator.is_not(x, None), operator.contains([1, 2], 2), operator.length_hint([1, 2])


@case(lambda: (t(3), "sin"), lambda: (t(3), "cos"))
def a_function_by_its_name(x, name):
    return getattr(torch, name)(x), getattr(x, name)()


@case(lambda: (t(3), [torch.sin, torch.cos]), lambda: (t(3), [torch.tanh]))
def functions_in_a_list_given(x, functions):
    for function in functions:
        x = function(x)
    return x


@case(lambda: (t(3), scaled), lambda: (t(3), halved))
def a_function_that_is_given(x, function):
    return function(x) + 1, function.__name__


@case(lambda: (t(3),))
def assigned_in_expressions(x):
    if (n := x.shape[0]) > 2 and (y := x * n) is not None:
        return y, [z := n, z + 1], n
    return x


@case(lambda: (t(3),))
def text_with_everything(x):
    name, value = "size", x.shape[0]
    return x, f"{name!r:>8}|{value:04d}|{value / 3:.2f}|{name:^9}|{value=}|{{}}|{'nested' if value else 'no'}"
