"""When what a compiled operator gives on a GPU is right: eager's, or as near to double precision as eager is."""

import torch


def tensors(value):
    return [each for each in torch.utils._pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def difference(op, sample, have, want):
    """How results differ from eager's by more than eager differs from double precision; nothing if they do not."""
    if [(each.shape, each.dtype) for each in have] != [(each.shape, each.dtype) for each in want]:
        return f"{[tuple(each.shape) for each in have]} instead of {[tuple(each.shape) for each in want]}"
    alike = True
    for one, other in zip(have, want):
        tolerance = {"rtol": 1.6e-2, "atol": 1e-2} if other.dtype in (torch.bfloat16, torch.float16) else {"rtol": 1e-4, "atol": 1e-5}
        alike &= torch.allclose(one, other, equal_nan=True, **tolerance) if other.is_floating_point() or other.is_complex() else torch.equal(one, other)
    if alike:
        return None

    def double(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    exact = tensors(op(*torch.utils._pytree.tree_map(double, (sample.input, *sample.args)), **torch.utils._pytree.tree_map(double, sample.kwargs)))
    for one, other, third in zip(have, want, exact):
        if not other.is_floating_point():
            if not torch.equal(one, other):
                return f"{int((one != other).sum())} elements of {other.dtype} differ"
            continue
        ours, theirs = ((each.double() - third.double()).abs().nan_to_num(0.0).max() for each in (one, other))
        if float(ours) > 8 * float(theirs) + 1e-5 * float(third.double().abs().nan_to_num(0.0, 0.0, 0.0).max()):
            return f"an error of {float(ours):.2e}, eager's is {float(theirs):.2e}"
    return None
