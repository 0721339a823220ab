"""Values that only the data of tensors tell: `item`, `tolist`, `nonzero`, `unique`, branches, assertions."""

import torch
from capture.cases import case, t


@case(lambda: (torch.tensor([3]),), lambda: (torch.tensor([5]),))
def an_item_in_arithmetic(x):
    n = x.item()
    return x + n, n


@case(lambda: (torch.tensor(3), t(5)), lambda: (torch.tensor(2), t(5)))
def an_item_as_a_size(n, x):
    return x + torch.ones(5) * n.item()


@case(lambda: (t(5), torch.tensor(2)), lambda: (t(5), torch.tensor(4)))
def an_item_as_a_bound(x, n):
    return x[: n.item()] * 2


@case(lambda: (torch.tensor([1, 2, 3]),), lambda: (torch.tensor([4, 5, 6]),))
def a_list_of_items(x):
    items = x.tolist()
    return sum(items) + x, items


@case(lambda: (t(4),))
def where_it_is_not_zero(x):
    return torch.nonzero(x > 0), torch.nonzero(x > 0).shape[1]


@case(lambda: (t(4),))
def picked_by_a_mask(x):
    y = x[x > 0]
    return y * 2


@case(lambda: (torch.tensor([1, 2, 2, 3]),))
def unique_values(x):
    y = torch.unique(x)
    return y + 1


@case(lambda: (t(4),))
def a_mask_then_a_sum(x):
    return torch.masked_select(x, x > 0).sum() + x


@case(lambda: (t(4),))
def a_branch_on_data(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@case(lambda: (t(4).abs() + 1,))
def an_assertion_on_data(x):
    assert x.sum() > 0
    return x + 1


@case(lambda: (t(4).abs() + 1,))
def an_assertion_with_a_message(x):
    assert (x > 0).all(), "positive"
    return x * 2


@case(lambda: (t(4),))
def numbers_of_tensors(x):
    return float(x[0]) + 1, int(torch.tensor(3)), bool(torch.tensor(True))


@case(lambda: (t(4),))
def where_with_one_argument(x):
    (places,) = torch.where(x > 0)
    return places + 1


@case(lambda: (t(4),))
def a_loop_over_data(x):
    n = 0
    while x.sum() < 10 and n < 3:
        x = x.abs() + 1
        n += 1
    return x, n


@case(lambda: (torch.tensor([2, 1]),))
def repeated_by_data(x):
    return torch.repeat_interleave(x, x)


@case(lambda: (t(4), 2), lambda: (t(4), 3))
def a_condition_of_torch(x, n):
    return torch.where(x > n, x, -x)


@case(lambda: (torch.tensor([0.5]),))
def an_item_as_a_python_float(x):
    return torch.sin(x) * x.item()


@case(lambda: (t(3),))
def comparisons_of_tensors(x):
    if torch.equal(x, x + 0):
        return x + 1
    return x


@case(lambda: (t(3),))
def close_to_itself(x):
    if torch.allclose(x, x):
        return x + 1
    return x


@case(lambda: (t(3), [t(3), t(3)]))
def a_tensor_among_others(x, items):
    if any(item is x for item in items):
        return x
    return x + len(items)


@case(lambda: (t(4).abs() + 1,), lambda: (-t(4).abs() - 1,))
def an_assertion_that_may_fail(x):
    assert x.sum() > 0, f"sum of {len(x)}"
    return x + 1


@case(lambda: (t(4).abs() + 1, []), lambda: (-t(4).abs() - 1, []))
def effects_around_an_assertion(x, log):
    log.append("before")
    try:
        assert x.min() > 0, "positive"
        log.append("after")
    except AssertionError as error:
        log.append(str(error))
    return x * 2


@case(lambda: (t(4), torch.tensor([1, 2])), lambda: (t(4), torch.tensor([1, 9])))
def an_assertion_before_an_error(x, i):
    assert i.max() < 4, "index"
    return x[i]


@case(lambda: (t(4).abs() + 1,), lambda: (-t(4).abs() - 1,))
def an_assertion_after_a_write(x):
    x.mul_(2)
    assert x.sum() > 0
    return x + 1


@case(lambda: (t(4).abs() + 1,), lambda: (-t(4).abs() - 1,))
def an_assertion_in_a_function(x):
    def checked(y):
        assert (y > 0).all()
        return y * 2

    return checked(x) + 1, torch.rand(1)


@case(lambda: (t(4).abs() + 1,))
def an_assertion_of_torch(x):
    torch._assert(x.sum() > 0, "positive")
    return x + 1
