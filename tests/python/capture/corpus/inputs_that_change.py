"""Arguments that change from call to call, one kind at a time and several at once."""

import dataclasses
import functools

import torch
from capture.cases import Reuse, case, t
from torch import nn


@case(lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 3), lambda: (t(3), 40))
def int_varies(x, n):
    return x * n


@case(lambda: (t(3), 1.5), lambda: (t(3), 2.5), lambda: (t(3), 3.5), lambda: (t(3), -1.0))
def float_varies(x, f):
    return x * f


@case(lambda: (t(3), 1.5, 2), lambda: (t(4), 2.5, 3), lambda: (t(5), 3.5, 4))
def all_vary(x, f, n):
    return x * f + n


@case(lambda: (t(3, 4),), lambda: (t(5, 4),), lambda: (t(5, 6),), lambda: (t(7, 8),))
def two_dims_in_turn(x):
    return x.sum(0) * x.shape[0]


@case(lambda: ([t(3), t(4)],), lambda: ([t(3), t(4), t(5)],), lambda: ([t(3)],))
def list_length_varies(xs):
    return sum(x.sum() for x in xs)


@case(lambda: (t(3), "a"), lambda: (t(3), "b"), lambda: (t(3), "c"))
def text_varies(x, s):
    return x * len(s)


@case(lambda: (t(3), {"n": 1}), lambda: (t(3), {"n": 2}), lambda: (t(3), {"n": 3}))
def int_in_dict_varies(x, d):
    return x * d["n"]


@case(lambda: (t(3), (1, 2)), lambda: (t(3), (2, 3)), lambda: (t(3), (4, 5)))
def ints_in_tuple_vary(x, p):
    return x * p[0] + p[1]


class Holder:
    def __init__(self, n):
        self.n = n
        self.step = 0


@case(lambda: (t(3), Holder(1)), lambda: (t(3), Holder(2)), lambda: (t(3), Holder(3)))
def int_attribute_varies(x, h):
    return x * h.n


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.scale = 1.0
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        self.calls += 1
        self.scale *= 2
        return self.lin(x) * self.calls + self.scale


SHARED = Counting()


@case(lambda: (t(2, 3),), lambda: (t(2, 3),), lambda: (t(2, 3),), lambda: (t(2, 3),), reuse=Reuse.FREE, watch=("SHARED",))
def module_counter(x):
    return SHARED(x)


STEP = 0


@case(lambda: (t(3), nn.Linear(3, 3)), lambda: (t(3), nn.Linear(3, 3)), lambda: (t(3), nn.Linear(3, 3)))
def fresh_modules(x, m):
    return m(x)


@case(lambda: (t(3), None), lambda: (t(3), t(3)), lambda: (t(3), None))
def optional_tensor(x, y):
    return x if y is None else x + y


@case(lambda: (t(3), True), lambda: (t(3), False))
def bool_varies(x, b):
    return x + 1 if b else x - 1


@case(lambda: (t(3), 3), lambda: (t(4), 4), lambda: (t(6), 6), lambda: (t(6), 2))
def int_equal_to_size(x, n):
    return x.new_zeros(n) + n


@case(lambda: (t(6), 2), lambda: (t(6), 3), lambda: (t(6), 6))
def int_as_shape(x, n):
    return x.view(n, -1)


@case(lambda: (t(3, 4), 0), lambda: (t(3, 4), 1), lambda: (t(3, 4), -1))
def dim_varies(x, d):
    return x.sum(d)


@case(lambda: (t(1, 4),), lambda: (t(2, 4),), lambda: (t(3, 4),))
def size_one_first(x):
    return x + 1


@case(lambda: (t(4), t(4)), lambda: (t(5), t(5)), lambda: (t(6), t(6)), lambda: (t(6), t(1)))
def two_equal_sizes(x, y):
    return x + y


@case(lambda: (t(4), range(2)), lambda: (t(4), range(3)), lambda: (t(4), range(4)))
def range_varies(x, r):
    for i in r:
        x = x + i
    return x


@case(lambda: (t(4), 10), lambda: (t(4), 20), lambda: (t(4), 30), lambda: (t(4), 3))
def int_compared(x, n):
    if n > 5:
        return x * n
    return x - n


@case(lambda: (t(4), torch.float32), lambda: (t(4), torch.float64))
def dtype_varies(x, d):
    return x.to(d)


@case(lambda: (t(4).requires_grad_(),), lambda: (t(4),), lambda: (t(4).requires_grad_(),))
def requires_grad_varies(x):
    return x * 2


@case(lambda: (t(4, 5),), lambda: (t(5, 4).t(),), lambda: (t(8, 5)[::2],))
def strides_vary(x):
    return x * 2


@case(lambda: (t(4), lambda v: v + 1), lambda: (t(4), lambda v: v + 2), reuse=Reuse.FREE)
def function_varies(x, f):
    return f(x)


@case(lambda: (t(4), functools.partial(torch.add, other=1)), lambda: (t(4), functools.partial(torch.add, other=2)), lambda: (t(4), functools.partial(torch.add, other=3)), reuse=Reuse.FREE)
def partial_varies(x, f):
    return f(x)


@dataclasses.dataclass
class Config:
    n: int = 1
    f: float = 1.0
    s: str = "a"


@case(lambda: (t(4), Config()), lambda: (t(4), Config(n=2, f=2.0)), lambda: (t(4), Config(n=3, f=3.0)), lambda: (t(4), Config(s="b")))
def config_varies(x, c):
    return x * c.n + c.f if c.s == "a" else x


@case(lambda: (t(3), [1, 2, 3]), lambda: (t(3), [4, 5, 6]), lambda: (t(3), [7, 8, 9]))
def ints_in_list(x, l):
    return x * l[0] + l[1] + l[2]


@case(lambda: (t(3), 2**40), lambda: (t(3), 2**41), lambda: (t(3), -5))
def large_ints(x, n):
    return x + n


@case(lambda: (t(3), 0), lambda: (t(3), 1), lambda: (t(3), 2), lambda: (t(3), 3))
def int_from_zero(x, n):
    return x + n


@case(lambda: (t(3), float("inf")), lambda: (t(3), 1.0), lambda: (t(3), float("nan")), lambda: (t(3), 0.0))
def special_floats(x, f):
    return x + f


@case(lambda: (t(2, 3), t(3, 4)), lambda: (t(4, 5), t(5, 6)), lambda: (t(6, 7), t(7, 8)))
def matmul_sizes(x, y):
    return x @ y


@case(lambda: (torch.arange(3),), lambda: (torch.arange(4),), lambda: (torch.arange(5),))
def iterate_over_rows(x):
    s = 0
    for v in x:
        s = s + v
    return s


@case(lambda: (t(8), 2), lambda: (t(8), 4), lambda: (t(8), 3))
def chunks_vary(x, n):
    return x.chunk(n)[0]


@case(lambda: (t(4), 0.1, "gelu"), lambda: (t(4), 0.2, "gelu"), lambda: (t(4), 0.3, "relu"), lambda: (t(4), 0.4, "relu"))
def float_and_text(x, p, act):
    return getattr(torch.nn.functional, act)(x) * p


@case(lambda: (t(4), 3, 4.0), lambda: (t(4), 4, 5.0), lambda: (t(4), 5, 6.0), lambda: (t(4), 6, 7.0))
def int_and_float_arith(x, n, f):
    return x * (n * f + n // 2) + max(n, 2) + min(f, 100.0) + abs(-f)
