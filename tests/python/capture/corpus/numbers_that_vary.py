"""Integers, floats and sizes that differ from call to call: arithmetic, `math`, rounding, text, containers, branches."""

import math

import torch
from capture.cases import Reuse, case, t

SIZES = (lambda: (t(4, 3),), lambda: (t(6, 3),), lambda: (t(9, 3),))
INTEGERS = (lambda: (t(3), 4), lambda: (t(3), 6), lambda: (t(3), 9))
FLOATS = (lambda: (t(3), 0.5), lambda: (t(3), 1.25), lambda: (t(3), 2.75))


@case(*SIZES)
def half_of_a_size_rounded(x):
    return x[: round(x.shape[0] / 2)].sum()


@case(*INTEGERS)
def half_of_a_number_rounded(x, n):
    return x * round(n / 2)


@case(*SIZES)
def a_root_of_a_size(x):
    return x * x.shape[0] ** 0.5


@case(*INTEGERS)
def a_root_of_a_number(x, n):
    return x / n**0.5, x * n**-0.5


@case(*SIZES)
def an_integer_root_of_a_size(x):
    return x.new_zeros(int(math.sqrt(x.shape[0])))


@case(*SIZES)
def functions_of_math_of_a_size(x):
    n = x.shape[0]
    return x * math.sqrt(n), x * math.log(n), x + math.exp(-n), x + math.pow(n, 2)


@case(*INTEGERS)
def functions_of_math_of_a_number(x, n):
    return x * math.sqrt(n), x * math.log2(n), x + math.sin(n), x + math.atan(n), x * math.cosh(n / 10)


@case(*FLOATS)
def functions_of_math_of_a_float(x, f):
    return x * math.sqrt(f), x * math.exp(f), x + math.floor(f), x + math.ceil(f), x * math.tanh(f)


@case(*SIZES)
def floors_and_ceilings(x):
    n = x.shape[0]
    return x[: math.ceil(n / 2)] * 2, x[: math.floor(n / 3)], x + math.trunc(n / 2)


@case(*SIZES)
def whole_numbers_of_math(x):
    n = x.shape[0]
    return x + math.gcd(n, 6), x + math.prod([n, 2]), x * math.isqrt(n)


@case(*INTEGERS)
def digits_of_a_number(x, n):
    return x * n.bit_length(), x + len(str(n)), f"{n:03d}"


@case(*FLOATS)
def text_of_a_float(x, f):
    return x * f, f"{f:.3f}"


@case(*FLOATS)
def a_float_in_a_list(x, f):
    return torch.tensor([f, f * 2]) + x.sum()


@case(*INTEGERS)
def a_number_in_a_list(x, n):
    return torch.tensor([n, n + 1]) + x.sum()


@case(*INTEGERS)
def a_number_in_a_dict(x, n):
    options = {"scale": n, "shift": n * 2}
    return x * options["scale"] + options["shift"]


@case(*INTEGERS)
def a_number_as_a_key(x, n):
    table = {4: "four", 6: "six", 9: "nine"}
    return x + 1, table[n]


@case(*INTEGERS)
def a_number_in_a_range(x, n):
    for k in range(n):
        x = x + k
    return x


@case(*INTEGERS)
def a_number_and_its_parts(x, n):
    q, r = divmod(n, 4)
    return x * q + r, x - (n % 3), x + (-n // 2), x + (n << 1), x + (n >> 1), x + (n & 3), x + (n | 1), x + (n ^ 5)


@case(*FLOATS)
def a_float_and_its_parts(x, f):
    return x * (f // 1), x + f % 1, x - abs(-f), x + int(f), x * round(f), x * round(f, 1)


@case(*FLOATS)
def a_float_compared(x, f):
    if f > 1:
        return x * f
    return x + f


@case(*FLOATS, reuse=Reuse.FREE)
def a_float_kept_in_an_object(x, f):
    class Holder:
        pass

    holder = Holder()
    holder.value = f * 2
    return x * holder.value


@case(*INTEGERS)
def a_number_as_a_default(x, n):
    def inner(a, by=n):
        return a * by

    return inner(x) + inner(x, 2)


@case(*INTEGERS)
def a_number_in_a_closure(x, n):
    def inner(a):
        return a + n

    return inner(x)


@case(*SIZES)
def a_size_returned(x):
    return x + 1, x.shape[0], x.size(0) * 2, x.numel()


@case(*SIZES)
def a_size_in_a_dict(x):
    return {"n": x.shape[0], "m": x.shape[0] + 1, "t": x * 2}


@case(*SIZES)
def a_size_as_a_number_type(x):
    return x + isinstance(x.shape[0], int), type(x.shape[0]) is int


@case(*SIZES)
def extremes_of_sizes(x):
    n, m = x.shape
    return x.new_ones(max(n, m)), x.new_ones(min(n, 5)), x + max([n, m, 2])


@case(*SIZES)
def a_size_that_decides(x):
    if x.shape[0] % 2 == 0:
        return x.view(2, -1)
    return x.view(-1)


@case(*SIZES)
def a_view_by_sizes(x):
    b, d = x.shape
    return x.view(b * d), x.reshape(1, b, d).transpose(0, 1), x.expand(2, b, d)


@case(*SIZES)
def a_product_of_sizes(x):
    return x.reshape(math.prod(x.shape)), x.sum() / math.prod(x.shape[:1])


@case(*SIZES)
def ranges_by_sizes(x):
    n = x.shape[0]
    return torch.arange(n), torch.arange(0, n, 2), torch.linspace(0, 1, n), torch.eye(n)


@case(*SIZES)
def slices_counted_from_the_end(x):
    n = x.shape[0]
    return x[-2:], x[: n - 1], x[n // 2 :], x[1 : n : 2]


@case(*SIZES)
def a_loop_of_halves(x):
    n = x.shape[0]
    while n > 1:
        x = x + n
        n = n // 2
    return x


@case(*SIZES)
def padding_by_a_size(x):
    target = 8 * ((x.shape[0] + 7) // 8)
    return torch.nn.functional.pad(x, (0, 0, 0, target - x.shape[0]))


@case(lambda: (t(4), t(4)), lambda: (t(6), t(6)), lambda: (t(6), t(1)))
def sizes_that_are_equal_or_not(a, b):
    if a.shape == b.shape:
        return a * b
    return a - b


@case(lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 0), lambda: (t(3), -1))
def a_dimension_or_a_power(x, n):
    return x**n, x * n


@case(lambda: (t(3), True), lambda: (t(3), False))
def a_flag(x, flag):
    return x + 1 if flag else x - 1


@case(lambda: (t(3), 2), lambda: (t(3), 2.0), lambda: (t(3), True))
def a_number_of_several_types(x, n):
    return x * n, type(n).__name__


@case(lambda: (t(3), float("inf")), lambda: (t(3), float("nan")), lambda: (t(3), -0.0))
def odd_floats(x, f):
    return torch.full_like(x, f), x + 1


@case(lambda: (t(3), 2**40), lambda: (t(3), 2**70 % 1000))
def large_numbers(x, n):
    return x.double() * n, torch.tensor(n)


@case(*FLOATS)
def a_float_and_a_break(x, f):
    y = x * f
    print("break")
    return y + f


@case(*INTEGERS)
def a_number_and_a_break(x, n):
    y = x * n
    print("break")
    return y + n


@case(lambda: (t(3), [2, 3]), lambda: (t(3), [4, 5]), lambda: (t(3), [6, 7]))
def numbers_in_a_list_given(x, items):
    return x * items[0] + items[1]


@case(lambda: (t(3), {"a": 2.5}), lambda: (t(3), {"a": 3.5}), lambda: (t(3), {"a": 4.5}))
def a_float_in_a_dict_given(x, table):
    return x * table["a"]


@case(lambda: (t(3), (2, 3)), lambda: (t(3), (4, 5)), lambda: (t(3), (6, 7)))
def a_shape_given(x, shape):
    return torch.zeros(shape) + x.sum(), torch.ones(*shape)


@case(*INTEGERS)
def a_number_made_a_tensor(x, n):
    return torch.tensor(n) + x, torch.full((2,), n), torch.scalar_tensor(n)


@case(*INTEGERS)
def a_number_made_a_float(x, n):
    return x * float(n), x / n, x + n * 0.5, x * complex(n).real


@case(*INTEGERS)
def sums_of_numbers(x, n):
    return x + sum([n, n + 1, 2]), x * sum(k for k in (n, 1)), x + min(n, 5) + max(n, 5)


@case(*INTEGERS)
def repeated_lists(x, n):
    return [x] * n, (1,) * n, "ab" * n


@case(*SIZES)
def a_size_sent_to_a_function_with_defaults(x):
    def pad(a, to=x.shape[0] + 2):
        return torch.nn.functional.pad(a, (0, 0, 0, to - a.shape[0]))

    return pad(x)


@case(*SIZES)
def sizes_zipped_and_enumerated(x):
    return [n * (k + 1) for k, n in enumerate(x.shape)], dict(zip("ab", x.shape, strict=True)), x + 1


@case(*SIZES)
def strides_and_offsets(x):
    y = x.t()
    return y.stride(), y.is_contiguous(), x[1:].storage_offset(), y + 1


@case(*SIZES)
def a_list_of_so_many_tensors(x):
    parts = list(x.unbind(0))
    return sum(parts), len(parts)


@case(*SIZES)
def statistics_by_a_size(x):
    n = x.size(0)
    mean = x.sum(0) / n
    return mean, ((x - mean) ** 2).sum(0) / (n - 1)


@case(*SIZES)
def a_comparison_chain_of_sizes(x):
    n = x.shape[0]
    if 3 < n < 7 and not n == 5:
        return x * 2
    return x * 3


@case(*SIZES)
def torch_functions_of_sizes(x):
    n = x.shape[0]
    return x + torch.sym_max(n, 5), x + torch.sym_min(n, 5), x * torch.sym_int(n / 2), x + torch.sym_float(n), x * torch.sym_sqrt(n)


@case(lambda: (t(3), 3), lambda: (t(3), -4), lambda: (t(3), 0), lambda: (t(3), -9))
def an_integer_of_either_sign(x, n):
    return x * n + n // 2, n % 3, n - 7, -n, n > 2


@case(lambda: (t(9), 3), lambda: (t(9), 4), lambda: (t(9), -2), lambda: (t(9), -3))
def a_bound_of_either_sign(x, n):
    return x[:n], x[n:], x.roll(n)


@case(lambda: (t(3), 3), lambda: (t(3), 5), lambda: (t(3), -2), lambda: (t(3), 2**62), lambda: (t(3), 2**70))
def an_integer_that_becomes_large(x, n):
    return x + 1, n - 1, n > 4


@case(lambda: ([t(3)], 2, 0.5), lambda: ([t(4), t(4)], 3, 0.25), lambda: ([t(5), t(5)], 7, 0.125), lambda: ([t(6), t(6)], 9, 0.75))
def a_length_and_numbers_that_change_together(xs, n, f):
    return sum(x.sum() for x in xs) * n + f


@case(lambda: (t(3), 2, "a"), lambda: (t(4), 3, "b"), lambda: (t(5), 4, "b"), lambda: (t(6), 5, "a"), lambda: (t(7), 6, "b"))
def a_text_and_numbers_that_change_together(x, n, mode):
    return x * n if mode == "a" else x + n


@case(*[lambda f=f: (t(4, grad=True), torch.arange(4), f) for f in (0.5, 0.25, -0.125, float("nan"), -0.0, float("inf"))])
def bounds_by_a_float(x, n, f):
    return x.clamp(max=f), torch.clamp(x, -1, f), x.clip(f, 2.0), n.clamp(min=f), x.clamp_min(f), x.detach().clone().clamp_max_(f), x.double().clamp(min=-1, max=f)


@case(*[lambda f=f: (t(4), torch.arange(4), f) for f in (0.5, 0.25, 1e-3, 7.75)])
def tensors_filled_with_a_float(x, n, f):
    y, z = x.clone(), x.double()
    y[0] = f
    y[x > 0] = f * 2
    z[1:3] = f
    n = n.clone()
    n[0] = f
    return x.clone().fill_(f), torch.full((2, 3), f), torch.full((2,), f, dtype=torch.float64), torch.full((), f), y, z, n


@case(*[lambda f=f: (t(4), f) for f in (0.1, 0.2, 0.3, -1e30)])
def tensors_made_of_a_float(x, f):
    made = torch.tensor(f), torch.tensor([f, f * 2]), torch.tensor([[1, f], [2.5, 3]]), torch.tensor(f, dtype=torch.float64), torch.tensor((f, 1), dtype=torch.float16), torch.scalar_tensor(f)
    made[0].add_(1)
    return made, made[0].dtype, x + made[1].sum()


@case(*[lambda f=f: (t(4), f) for f in (0.5, -0.25, -0.0, 2.5)])
def the_size_of_a_float(x, f):
    return x * abs(f), x + abs(-f), x * abs(f - 1.0), abs(f)


@case(*[lambda n=n: (t(3), n) for n in (3, 4, -5, 6, 1023, -1024)])
def bits_of_an_integer_of_either_sign(x, n):
    return x * (n & 5), n & 8, n | 9, n ^ 5, n ^ 0, ~n, n & 0, n << 3, n >> 2, 5 & n, n & 7, n | 7


@case(*[lambda n=n: (t(n, 2), n) for n in (4, 7, 8, 12)])
def bits_of_a_size(x, n):
    return x.new_zeros(x.shape[0] & 5), x.new_zeros(x.shape[0] ^ 3), x.new_zeros(x.shape[0] | 9), ~x.shape[0]
