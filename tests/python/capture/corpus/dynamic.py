"""Sizes that change from call to call, and Python arithmetic on them."""

import torch
import torch.nn.functional as F
from capture.cases import case, t


@case(lambda: (t(2, 3),), lambda: (t(3, 3),), lambda: (t(4, 3),), lambda: (t(9, 3),))
def first_size(x):
    return x.sum(0) / x.shape[0]


@case(lambda: (t(2, 8),), lambda: (t(3, 6),), lambda: (t(5, 4),))
def both_sizes(x):
    a, b = x.shape
    return x.reshape(b, a) * (a + b), a * b - 1


@case(lambda: (t(4),), lambda: (t(5),), lambda: (t(6),))
def parity_of_a_size(x):
    if x.shape[0] % 2 == 0:
        return x[::2]
    return x * 2


@case(lambda: (t(4),), lambda: (t(5),), lambda: (t(7),))
def loop_by_a_size(x):
    total = 0
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@case(lambda: (t(4, 2),), lambda: (t(8, 2),), lambda: (t(6, 2),))
def slices_by_a_size(x):
    n = x.size(0)
    return x[: n // 2], x[n // 2 :], x[n - 1], x[-(n - 1) :]


@case(lambda: (t(3),), lambda: (t(4),), lambda: (t(5),))
def creation_by_a_size(x):
    n = x.numel()
    return torch.arange(n) + x, torch.ones(n, n), torch.zeros(n + 1), torch.full((n * 2,), float(n))


@case(lambda: (t(2, 3), t(2, 4)), lambda: (t(3, 3), t(3, 4)), lambda: (t(3, 5), t(3, 1)))
def cat_of_sizes(x, y):
    z = torch.cat([x, y], dim=1)
    return z, z.shape[1] == x.shape[1] + y.shape[1]


@case(lambda: (t(2, 3), t(3)), lambda: (t(4, 3), t(4, 3)), lambda: (t(5, 3), t(1, 3)))
def broadcasting_of_sizes(x, y):
    return x + y, (x * y).shape


@case(lambda: (t(2, 4, 8),), lambda: (t(2, 5, 8),), lambda: (t(3, 6, 8),))
def heads_of_attention(x):
    batch, length, width = x.shape
    q = x.view(batch, length, 2, width // 2).transpose(1, 2)
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    return y.transpose(1, 2).reshape(batch, length, width)


@case(lambda: (t(5), 2), lambda: (t(5), 3), lambda: (t(5), 4), lambda: (t(6), 5))
def python_number_as_a_size(x, n):
    return x[:n] * n, torch.zeros(n).shape


@case(lambda: (t(3), 10), lambda: (t(3), 20), lambda: (t(3), -7))
def python_number_in_a_condition(x, n):
    return x + n if n > 5 else x - n


@case(lambda: (t(2),), lambda: (t(5),), lambda: (t(20),))
def maximum_of_sizes(x):
    return x.repeat(2)[: max(x.shape[0], 4)], min(x.shape[0], 3)


@case(lambda: (t(6, 2),), lambda: (t(4, 2),), lambda: (t(8, 2),))
def size_in_a_dictionary(x):
    table = {"rows": x.shape[0], "columns": x.shape[1]}
    return x.view(-1, table["rows"]), table


@case(lambda: (t(3, 4),), lambda: (t(5, 4),), lambda: (t(7, 4),))
def size_in_text(x):
    return x + 1, f"{x.shape[0]} by {x.size(1)}", str(x.shape)


@case(lambda: (t(3, grad=True),), lambda: (t(4, grad=True),), lambda: (t(5, grad=True),))
def gradients_with_sizes(x):
    return (x * x.shape[0]).sin().sum() / x.numel()


@case(lambda: (t(2, 3),), lambda: (t(1, 3),), lambda: (t(0, 3),), lambda: (t(5, 3),))
def sizes_zero_and_one(x):
    return x.sum(0), x * 2, x.shape[0] == 0


@case(lambda: (t(3),), lambda: (t(3, 3),), lambda: (t(3, 3, 3),))
def rank_that_changes(x):
    return x.sum(-1), x.dim(), x.flatten()


@case(lambda: ([t(2), t(2)],), lambda: ([t(2), t(2), t(2)],), lambda: ([t(3)],))
def number_of_tensors_that_changes(tensors):
    return torch.stack(tensors).sum(0)


@case(lambda: (t(4, 3),), lambda: (t(6, 3),), lambda: (t(8, 3),))
def size_kept_across_a_break(x):
    n = x.shape[0]
    y = x * n
    print("break")
    return y[: n // 2].sum() + n


@case(lambda: (t(4), t(4)), lambda: (t(5), t(5)), lambda: (t(6), t(6)))
def sizes_compared(x, y):
    if x.shape == y.shape and x.shape[0] < 100:
        return x + y
    return x


@case(lambda: (t(12),), lambda: (t(18),), lambda: (t(24),))
def division_of_sizes(x):
    n = x.shape[0]
    return x.view(3, n // 3), n / 4, n % 5, -n, n**2, float(n), x * (n // 6)


@case(lambda: (t(2, 3, 8, 8),), lambda: (t(2, 3, 10, 12),), lambda: (t(1, 3, 6, 6),))
def interpolation_to_a_size(x):
    return F.interpolate(F.avg_pool2d(x, 2), size=x.shape[-2:], mode="nearest")


@case(lambda: (t(3).double(),), lambda: (t(3),), lambda: (t(3).to(torch.int64),))
def dtype_that_changes(x):
    return x * 2, x.dtype


@case(lambda: (t(3, 4),), lambda: (t(4, 3).t(),), lambda: (t(3, 8)[:, ::2],))
def stride_that_changes(x):
    return x * 2, x.stride(), x.contiguous()


@case(lambda: (t(3),), lambda: (t(3, grad=True),))
def requires_grad_that_changes(x):
    return x * 2, x.requires_grad


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25), lambda: (t(3), -3.0), lambda: (t(3), float("inf")), lambda: (t(3), 2))
def float_that_changes(x, scale):
    return x * scale + scale, scale - x, x / scale, 1.5 / x * scale, x > scale


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25), lambda: (t(3), 4.0), lambda: (t(3), 0.0))
def arithmetic_on_a_float_that_changes(x, scale):
    try:
        inverse = 1.0 / scale
    except ZeroDivisionError:
        inverse = -1.0
    return x * inverse, -scale * 2 - 1, {"half": scale / 2, scale: scale**2}, f"{scale:.1f}"


@case(lambda: (torch.arange(3), 0.5), lambda: (torch.arange(3), 0.25), lambda: (torch.arange(3), 4.0))
def types_of_a_float_that_changes(n, scale):
    zero = torch.tensor(2.0)
    return n * scale, zero + scale, n.double() - scale, n.to(torch.bfloat16) * scale, (n > 1) * scale, n.clamp(max=scale)


@case(lambda: (t(3), 0.5), lambda: (t(3), 0.25), lambda: (t(3), 4.0), lambda: (t(3), 0.0))
def branch_on_a_float_that_changes(x, threshold):
    if threshold > 1.0:
        return x.clamp(max=threshold)
    y = x.clone()
    y += threshold
    y.mul_(threshold)
    return y if threshold else x - 1


class Decaying(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 1.0

    def forward(self, x):
        self.rate = self.rate * 0.5
        return x * self.rate


@case(lambda: (Decaying(), t(3)))
def float_of_a_module_that_changes(module, x):
    return module(x) + module(x), module.rate
