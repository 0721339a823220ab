"""Builtin functions, numbers and the math module."""

import copy
import dataclasses
import math
import random

import numpy
import torch
from capture.cases import Reuse, case, t


@case(lambda: (t(3), 5), lambda: (t(3), 2.5), lambda: (t(3), [1]))
def isinstance_of_many(x, value):
    if isinstance(value, (int, float)):
        return x * value
    return x, isinstance(value, list), isinstance(x, torch.Tensor), isinstance(x, int | torch.Tensor)


@case(lambda: (t(3), "sum"), lambda: (t(3), "mean"))
def getattr_by_name(x, name):
    return getattr(x, name)(), getattr(torch, name)(x), getattr(x, "nothing", 3), hasattr(x, name)


@case(lambda: (t(3), "missing"))
def getattr_missing_raises(x, name):
    return getattr(x, name)


@case(lambda: (t(2, 3), [1, 2]))
def len_of_many(x, items):
    return x + len(x) + len(items) + len("abc") + len({}) + len(x.shape)


@case(lambda: (t(3), 3, -4), lambda: (t(3), -3, 4))
def numbers_by_builtins(x, a, b):
    return x * abs(b), min(a, b), max(a, b, 0), sum([a, b]), pow(a, 2), pow(2, 5, 7), divmod(b, 3), round(2.567, 1), round(2.5)


@case(lambda: (t(3), 7, 2), lambda: (t(3), -7, 2))
def integer_arithmetic(x, a, b):
    return x + a // b, a % b, a / b, a**b, -a, +b, ~a, a << b, a >> b, a & b, a | b, a ^ b


@case(lambda: (t(3), 2**62), lambda: (t(3), 2**70))
def big_integers(x, n):
    return x * 1, n * n, n + 1, n >> 60, (n * 4).bit_length()


@case(lambda: (t(3), 2.5), lambda: (t(3), -0.0), lambda: (t(3), float("inf")), lambda: (t(3), float("nan")))
def float_arithmetic(x, f):
    return x + f, f * 2, f == f, f > 0, math.isnan(f), math.copysign(1, f), str(f)


@case(lambda: (t(3), 5, 2.0), lambda: (t(3), 6, 3.0))
def conversions(x, n, f):
    return x * int(f), float(n), bool(n), str(n), int(True), complex(n, f), bool([]), int(-2.7), list("ab"), tuple([1])


@case(lambda: (t(3), True), lambda: (t(3), False))
def booleans_as_numbers(x, flag):
    return x * flag, flag + 1, flag & True, not flag, flag is True, isinstance(flag, int)


@case(lambda: (t(3), 3), lambda: (t(3), 4.0))
def type_as_a_value(x, value):
    kind = type(value)
    return x * kind(2), kind, kind.__name__, type(x) is torch.Tensor


@case(lambda: (t(3),))
def math_functions(x):
    return x * math.sqrt(2), math.floor(2.7), math.ceil(2.1), math.log(8, 2), math.pi, math.prod([1, 2, 3]), math.gcd(12, 18)


@case(lambda: (t(4, 6),), lambda: (t(8, 2),))
def math_of_sizes(x):
    return x / math.sqrt(x.shape[-1]), math.ceil(x.shape[0] / 3), math.log2(x.shape[0])


@case(lambda: (t(3),))
def any_all_of_plain_values(x):
    return x, any([0, 1]), all([]), any(()), all([1, "a"])


@case(lambda: (t(3), 3))
def callable_and_hash(x, n):
    return x, callable(n), callable(torch.sin), hash(n) == hash(3), hash("a") == hash("a")


@case(lambda: (t(3),))
def bases_and_text(x):
    return x, bin(5), hex(255), oct(8), ascii("é"), format(3.14159, ".2f"), repr("a"), chr(65)


@case(lambda: (t(3),), reuse=Reuse.FREE)
def attributes_by_vars(x):
    class Thing:
        pass

    thing = Thing()
    thing.a = 1
    vars(thing)["b"] = 2
    return x * thing.b, vars(thing), sorted(name for name in dir(thing) if not name.startswith("_"))


@case(lambda: (t(3), numpy.float32(2.5)), lambda: (t(3), numpy.float64(1.5)))
def numpy_float(x, value):
    return x * float(value), value * 2


@case(lambda: (t(3), numpy.int64(4)), lambda: (t(3), numpy.int64(2)))
def numpy_int(x, value):
    return x * int(value), value + 1, int(value) // 3


@case(lambda: (t(3),))
def numpy_constants(x):
    return x * numpy.pi, x + numpy.sqrt(4.0), numpy.prod([2, 3])


@case(lambda: (t(3), numpy.arange(3.0)), lambda: (t(3), numpy.ones(3)))
def numpy_array_to_tensor(x, array):
    return x + torch.from_numpy(array), torch.as_tensor(array).sum()


@case(lambda: (t(3),))
def tensor_to_numpy(x):
    array = x.numpy()
    return array + 1, x * 2


@case(lambda: (t(3),))
def python_random(x):
    return x * random.random(), random.randint(0, 100), random.choice([1, 2, 3])


@case(lambda: (t(3),))
def numpy_random(x):
    return x * float(numpy.random.rand())


@case(lambda: (t(3), 10))
def integer_methods(x, n):
    return x * n.bit_length(), n.to_bytes(2, "big"), (0.5).as_integer_ratio(), (3.0).is_integer(), n.real


@case(lambda: (t(3),))
def complex_numbers(x):
    z = 3 + 4j
    return x * abs(z), z.conjugate(), z * 1j, z.real


@case(lambda: (t(3),))
def identity_by_is(x):
    y = x
    z = x + 0
    return y is x, z is x, None is None, x is not None


@case(lambda: (t(3),), reuse=Reuse.FREE)
def identity_by_id(x):
    y = x
    return id(x) == id(y), id(x) == id([]), x + 1


@case(lambda: (t(3), lambda: 3), reuse=Reuse.FREE)
def callback(x, make):
    return x * make()


@case(lambda: (t(3), 2))
def eval_and_exec(x, n):
    return x * eval("n + 1")


@case(lambda: (t(3),))
def locals_here(x):
    a = 1
    return sorted(locals()), x + a


@case(lambda: (t(3),))
def sorted_stability_and_keys(x):
    words = ["bb", "a", "cc", "d"]
    return x, sorted(words, key=len), max(words, key=len), min(words, default=None), max([], default=0)


@case(lambda: (t(3),))
def sum_of_lists_and_floats(x):
    return x, sum([[1], [2]], []), sum([0.1] * 3), sum(range(4), 10)


@case(lambda: (t(3), 3), lambda: (t(3), 10))
def input_checked(x, n):
    if not isinstance(n, int) or n > 5:
        raise TypeError(f"expected a small int, got {n!r}")
    return x[:n]


@case(lambda: (t(2, 3),), lambda: (t(4, 3),), lambda: (t(5, 3),))
def products_of_sizes(x):
    return math.prod(x.shape), math.prod(x.shape[1:], start=2) * x, math.prod([0.5, 4]), math.prod(())


@case(lambda: (t(3), 2.5))
def copies_of_plain_values(x, scale):
    return x * copy.deepcopy(scale), copy.deepcopy((1, "a", None)), copy.copy("text"), dataclasses.asdict(Point(1, 2.0))


@dataclasses.dataclass
class Point:
    x: int
    y: float


@case(lambda: (t(3),))
def numbers_of_numpy_made(x):
    return x * numpy.float32(3), float(numpy.float64(0.5)) + int(numpy.int32(2)), numpy.float32(1) + 1
