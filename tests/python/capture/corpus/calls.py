"""Calls: how arguments reach parameters, closures, lambdas, partials, decorators, recursion."""

import functools

import torch
from capture.cases import Reuse, call, case, t


def shift(x, by=1, *, scale=2):
    return x * scale + by


@case(lambda: (t(3),))
def defaults(x):
    return shift(x)


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def positional_and_keyword(x, n):
    return shift(x, n, scale=n + 1)


@case(lambda: call(t(3), by=3), lambda: call(t(3), scale=1), lambda: call(t(3)))
def keywords_from_the_caller(x, by=1, *, scale=2):
    return x * scale + by


@case(lambda: (t(3), t(3), t(3)), lambda: (t(3),), lambda: ())
def star_args(*tensors):
    total = 0
    for tensor in tensors:
        total = total + tensor
    return total


@case(lambda: call(a=t(3), b=t(3)), lambda: call(b=t(3)), lambda: call())
def star_kwargs(**named):
    return {name: tensor * 2 for name, tensor in named.items()}


@case(lambda: call(t(3), 1, 2, k=3, z=4))
def every_kind_of_parameter(first, second=0, /, third=0, *rest, k, **others):
    return first * second + third + sum(rest) + k, others


@case(lambda: (t(3), (1,), {"scale": 5}), lambda: (t(3), (), {"by": 2, "scale": 3}))
def spread_at_a_call(x, args, kwargs):
    return shift(x, *args, **kwargs)


@case(lambda: (t(3),))
def spread_twice(x):
    def collect(*args, **kwargs):
        return args, kwargs

    return collect(*[x, 1], *(2, 3), a=1, **{"b": x}, **{"c": 3})


@case(lambda: (t(3),))
def duplicate_keyword_raises(x):
    return shift(x, scale=1, **{"scale": 2})


@case(lambda: (t(3),))
def missing_argument_raises(x):
    def two(a, b):
        return a + b

    return two(x)


@case(lambda: (t(3),))
def unknown_keyword_raises(x):
    return shift(x, colour=1)


@case(lambda: (t(3),))
def too_many_arguments_raises(x):
    return shift(x, 1, 2, 3)


@case(lambda: (t(3),))
def lambda_called_here(x):
    double = lambda y: y * 2  # noqa: E731
    return double(x) + (lambda y, z=3: y + z)(x)


@case(lambda: (t(3), torch.sin), lambda: (t(3), torch.cos))
def function_as_an_argument(x, f):
    return f(x) + f(x * 2)


@case(lambda: (t(3), lambda y: y + 1), reuse=Reuse.FREE)
def lambda_as_an_argument(x, f):
    return f(x)


@case(lambda: (t(3), 2), lambda: (t(3), 3))
def closure_over_a_local(x, n):
    def scaled(y):
        return y * n

    return scaled(x)


@case(lambda: (t(3),))
def closure_over_a_tensor(x):
    y = x.sin()

    def both(z):
        return z + y

    return both(x) * both(y)


@case(lambda: (t(3),))
def nonlocal_is_written(x):
    count = 0

    def step(y):
        nonlocal count
        count += 1
        return y + count

    return step(step(step(x))), count


@case(lambda: (t(3),))
def closure_sees_a_later_value(x):
    n = 1

    def scaled():
        return x * n

    first = scaled()
    n = 5
    return first, scaled()


@case(lambda: (t(3),))
def closures_made_in_a_loop(x):
    steps = [lambda y: y + i for i in range(3)]
    return [step(x) for step in steps]


@case(lambda: (t(3),))
def closures_with_a_bound_default(x):
    steps = [lambda y, i=i: y + i for i in range(3)]
    return [step(x) for step in steps]


def adder(n):
    def add(x):
        return x + n

    return add


add_three = adder(3)


@case(lambda: (t(3),))
def closure_made_outside(x):
    return add_three(x)


@case(lambda: (t(3), 2), lambda: (t(3), 6))
def closure_returned(x, n):
    y = x * 2

    def later(z):
        return z + y + n

    return later(x), later


@case(lambda: (t(3),))
def partial_made_here(x):
    return functools.partial(shift, by=5)(x, scale=3)


doubled = functools.partial(shift, scale=2, by=0)


@case(lambda: (t(3),))
def partial_made_outside(x):
    return doubled(x) + functools.partial(doubled, by=1)(x)


@case(lambda: (t(2, 3),))
def partial_of_a_torch_function(x):
    return functools.partial(torch.sum, dim=1)(x)


def twice(f):
    @functools.wraps(f)
    def run(x, *args, **kwargs):
        return f(f(x, *args, **kwargs), *args, **kwargs)

    return run


def times(n):
    def decorate(f):
        @functools.wraps(f)
        def run(x):
            for _ in range(n):
                x = f(x)
            return x

        return run

    return decorate


@twice
def halved(x, by=2):
    return x / by


@times(3)
@twice
def grown(x):
    return x * 1.5


@case(lambda: (t(3),))
def decorated_function(x):
    return halved(x), halved(x, by=4)


@case(lambda: (t(3),))
def decorator_with_arguments(x):
    return grown(x), grown.__name__


@case(lambda: (t(3),))
@twice
def decorated_case(x):
    return x + 1


@case(lambda: (t(3), 4), lambda: (t(3), 0))
def recursion(x, n):
    return x if n == 0 else recursion(x * 2 + n, n - 1)


def is_even(x, n):
    return x + 1 if n == 0 else is_odd(x, n - 1)


def is_odd(x, n):
    return x - 1 if n == 0 else is_even(x, n - 1)


@case(lambda: (t(3), 4), lambda: (t(3), 5))
def mutual_recursion(x, n):
    return is_even(x, n)


@case(lambda: (t(3), 5))
def local_recursion(x, n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return x * fib(n)


def remember(x, seen=[]):  # noqa: B006
    seen.append(x.shape[0])
    return x + len(seen)


@case(lambda: (t(3),))
def mutable_default(x):
    def keep(n, kept=[]):  # noqa: B006
        kept.append(n)
        return len(kept)

    keep(1)
    return x + keep(2)


@case(lambda: (t(3),))
def mutable_default_of_a_global(x):
    remember.__defaults__[0].clear()
    return remember(x) + remember(x), list(remember.__defaults__[0])


@case(lambda: (t(3),))
def function_attributes(x):
    def f(y):
        return y * f.factor

    f.factor = 3
    return f(x)


@case(lambda: (t(3),))
def call_through_a_dict(x):
    table = {"sin": torch.sin, "double": lambda y: y * 2}
    return table["double"](table["sin"](x))


@functools.lru_cache(maxsize=None)
def cached_factor(n):
    return n * n


@case(lambda: (t(3), 3))
def lru_cache_of_a_number(x, n):
    return x * cached_factor(n) + cached_factor(n)


@case(lambda: (t(3),))
def nested_functions_three_deep(x):
    a = 1

    def outer(y):
        b = 2

        def middle(z):
            def inner(w):
                return w + a + b

            return inner(z) * 2

        return middle(y) + b

    return outer(x)


@case(lambda: (t(3),))
def reduce_with_a_lambda(x):
    return functools.reduce(lambda a, b: a * b + 1, [x, x + 1, x + 2])


@case(lambda: (t(3),))
def annotated_and_documented(x: torch.Tensor, n: "int" = 2) -> torch.Tensor:
    """Has a docstring and annotations."""
    y: torch.Tensor = x * n
    return y


@case(lambda: (t(3),))
def compose(x):
    def chain(*functions):
        return functools.reduce(lambda f, g: lambda y: g(f(y)), functions)

    return chain(torch.sin, torch.cos, lambda y: y + 1)(x)


@case(lambda: (t(3),))
def not_callable_raises(x):
    f = 3
    return f(x)


@case(lambda: (t(3),))
def keyword_order_is_kept(x):
    def names(**kwargs):
        return list(kwargs)

    return x + 1, names(z=1, a=2, m=3)


@functools.singledispatch
def described(value):
    return 0


@described.register
def _(value: int):
    return 1


@described.register
def _(value: list):
    return 2


@case(lambda: (t(3), 5), lambda: (t(3), [5]), lambda: (t(3), "s"))
def singledispatch(x, value):
    return x + described(value)


def renamed():
    """A function as decorators make them that give each its own name: with a copy of the code."""

    def doubled(x):
        return x * 2

    doubled.__code__ = doubled.__code__.replace(co_name="doubled by two")
    return doubled


@case(lambda: (renamed(), t(3)))
def code_that_is_equal_in_every_call(function, x):
    return function(x) + 1


@case(lambda: (t(3),))
def decorated_in_the_frame(x):
    @torch.no_grad()
    def doubled(y):
        return y * 2

    return doubled(x), doubled.__name__
