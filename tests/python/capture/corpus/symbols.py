"""Numbers and sizes from the data of tensors in the middle of a graph: computed with, asserted about, returned, branched on."""

import random
import types

import torch
from capture.cases import case, t


def ints(*values):
    return torch.tensor(values)


@case(lambda: (ints(3), t(5)), lambda: (ints(-2), t(5)), lambda: (ints(0), t(4)))
def an_integer_scales(n, x):
    k = n.item()
    return x * k + (k - 1), k * 2, -k


@case(lambda: (ints(3), t(5)), lambda: (ints(4), t(5)))
def an_integer_is_a_size(n, x):
    y = torch.zeros(n.item()) + 1
    return y, y.shape, x + y.sum()


@case(lambda: (t(6), ints(2)), lambda: (t(6), ints(-2)), lambda: (t(6), ints(99)), lambda: (t(6), ints(0)))
def a_bound_that_is_cut_off(x, n):
    k = n.item()
    y = x[:k]
    return y * 2, y.shape[0], y.shape[0] == k, x[k:].sum()


@case(lambda: (t(6, 3), ints(2)), lambda: (t(6, 3), ints(-1)))
def a_row_by_an_integer(x, n):
    return x[n.item()] * 2


@case(lambda: (t(6, 3), ints(99)))
def a_row_that_is_not_there(x, n):
    try:
        return x[n.item()] * 2
    except IndexError as error:
        return str(error)


@case(lambda: (ints(7), ints(2)), lambda: (ints(-7), ints(2)), lambda: (ints(7), ints(0)))
def integers_divided(a, b):
    a, b = a.item(), b.item()
    try:
        return a // 2, a % 3, a // b, a % b
    except ZeroDivisionError as error:
        return str(error)


@case(lambda: (t(4),), lambda: (t(4) * 100,))
def a_float_scales(x):
    m = x.max().item()
    return x / 2 * m + 1, m, m * 2 + 1


@case(lambda: (t(4).double().requires_grad_(),))
def a_float_has_no_gradient(x):
    return x * x.sum().item()


@case(lambda: (t(4),))
def a_float_before_a_write(x):
    x = x.double().clone()
    first = x[0].item()
    x.add_(1)
    return first, x * first


@case(lambda: (t(1).half(), t(3).half()))
def a_half_float(s, x):
    return x * s.item(), s.item()


@case(lambda: (t(4),))
def a_float_decides(x):
    m = x.sum().item()
    if m > 0:
        return x * m
    return x - m


@case(lambda: (ints(3), t(4)), lambda: (ints(5), t(4)))
def an_integer_decides(n, x):
    k = n.item()
    y = x * k
    if k > 4:
        return y + 1
    return y - 1


@case(lambda: (ints(3), t(4)))
def a_loop_of_so_many_turns(n, x):
    for i in range(n.item()):
        x = x + i
    return x


@case(lambda: (ints(1, 2, 3), t(6)), lambda: (ints(2, 2, 2), t(6)))
def sizes_from_a_list(sizes, x):
    a, b, c = sizes.tolist()
    return [part.sum() for part in torch.split(x, [a, b, c])]


@case(lambda: (t(2, 3), ints(1, 2)))
def lists_of_lists(x, n):
    return x.tolist(), n.tolist(), (x > 0).tolist()


@case(lambda: (t(5),), lambda: (t(7),))
def coordinates(x):
    where = torch.nonzero(x > 0)
    return where * 2, where.shape, where.numel(), len(where), where.size(0) + 1


@case(lambda: (t(4, 3).requires_grad_(),))
def a_mask_with_gradients(x):
    y = x[x > 0]
    return (y * 2).sum(), y


@case(lambda: (t(4, 3), t(3, 2)))
def a_mask_then_a_matmul(x, w):
    rows = x[x.sum(1) > 0]
    return (rows @ w).relu().sum(0), x @ w


@case(lambda: (t(4, 3),))
def two_masks(x):
    a, b = x[x > 0], x[x < 0]
    return a.sum() + b.sum(), a.numel() + b.numel(), torch.cat([a, b])


@case(lambda: (t(5),), lambda: (torch.ones(5),))
def two_masks_of_one_size(x):
    a, b = x[x > 0], x[x > -100]
    try:
        return a + b
    except RuntimeError:
        return "sizes differ"


@case(lambda: (ints(3, 1, 3, 2),))
def values_and_their_places(x):
    values, places, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return values * 2, places + 1, counts.sum()


@case(lambda: (t(3), ints(1, 0, 2)), lambda: (t(3), ints(0, 0, 0)))
def repeated_by_counts(x, counts):
    return torch.repeat_interleave(x, counts) * 2


@case(lambda: (t(3, 4),))
def places_by_where(x):
    rows, columns = torch.where(x > 0)
    return x[rows, columns] * 2, rows.shape == columns.shape


@case(lambda: (t(3, 4),))
def written_through_a_mask(x):
    x = x.clone()
    x[x > 0] *= 2
    x[x < 0] = 0
    return x


@case(lambda: (t(5),), lambda: (-torch.ones(5),))
def a_size_decides(x):
    y = x[x > 0]
    if y.shape[0] == 0:
        return x
    return y * 2


@case(lambda: (t(1, 5),), lambda: (torch.tensor([[1.0, -1.0, -1.0, -1.0, -1.0]]),))
def squeezed_by_chance(x):
    y = torch.masked_select(x, x > 0)
    return y.squeeze().shape, (y[:, None] * torch.ones(1, 3)).sum(0)


@case(lambda: (ints(3), t(5)), lambda: (ints(7), t(5)), lambda: (ints(-1), t(5)))
def what_is_checked(n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0], lambda: f"at most {x.shape[0]}")
    return x[:k].sum(), k >= 0


@case(lambda: (ints(3), t(5)), lambda: (ints(7), t(5)))
def what_is_asserted(n, x):
    k = n.item()
    assert k < 5, "too many"
    return x * k


@case(lambda: (torch.tensor(True), t(3)), lambda: (torch.tensor(False), t(3)))
def a_bool_is_returned(flag, x):
    return x + 1, flag.item(), not flag.item()


@case(lambda: (t(3),), lambda: (t(3).abs(),))
def a_bool_of_a_reduction(x):
    y = x * 2
    if bool((x > 0).all()):
        return y + 1
    return y


@case(lambda: (ints(3), t(3)))
def an_integer_printed(n, x):
    k = n.item()
    print(k, float(x[0].item() > 100))
    return x + k


@case(lambda: (ints(3), {}))
def an_integer_is_a_key(n, counts):
    k = int(n)
    counts[k] = n + 1
    return counts


@case(lambda: (ints(2), t(3)))
def an_integer_in_an_object(n, x):
    box = types.SimpleNamespace()
    box.count = n.item()
    box.parts = [box.count + 1, {"n": box.count}]
    return x * box.count, box.parts


@case(lambda: (ints(2), t(3)))
def an_integer_over_a_break(n, x):
    k, m = n.item(), x.sum().item()
    y = x * k
    print("break")
    return y + k, m


@case(lambda: (ints(4), t(3)))
def converted(n, x):
    return float(n), int(n), x * float(n), complex(n.item()).real


@case(lambda: (t(3),))
def a_random_integer(x):
    k = random.randint(1, 6)
    return x * k, k, random.randrange(10), random.gauss(0, 1) * x


@case(lambda: (t(6),))
def a_random_integer_decides(x):
    if random.randint(0, 1) == 1:
        return x + 1
    return x - 1


@case(lambda: (t(6),))
def a_random_size(x):
    return x[: random.randint(1, 5)] * 2
