"""Compares what Pyrite computed with what torch eager computed: the whole contract of a graph, not only its values.

`difference` returns None or one sentence about the first thing that differs: the number and kinds of outputs, dtype, shape, stride, which
storages outputs share with inputs and with each other, values, and the inputs after the run. Integers and bools are equal or wrong. Floats
are right when `torch.testing.assert_close` accepts them with the default tolerances of their dtype; an element that it refuses is right too
when its distance from a float64 run is at most twice eager's own, also in float64 where something narrower went into it.
"""

import torch
from torch.testing._comparison import default_tolerances

from operators.worker import DTYPE_NAMES

WIDER = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.complex64: torch.complex128}


def difference(expected, actual, *, fp64, unset):
    """Both sides are `Outcome`s. `fp64()` gives one in double precision, or None. The values of outputs in `unset` mean nothing."""
    if len(expected.outputs) != len(actual.outputs):
        return f"structure: {len(actual.outputs)} outputs instead of {len(expected.outputs)}"
    pairs = list(zip(expected.outputs, actual.outputs))
    for k, (want, have) in enumerate(pairs):
        if found := metadata_difference(want, have):
            return f"output {k}: {found}"
    if found := alias_difference(expected, actual):
        return found
    for k, (want, have) in enumerate(pairs):
        if k not in unset and (found := value_difference(want, have, lambda: fp64() and fp64().outputs[k])):
            return f"output {k}: {found}"
    for k, (want, have) in enumerate(zip(expected.inputs, actual.inputs)):
        if found := value_difference(want, have, lambda: fp64() and fp64().inputs[k]):
            return f"input {k} after the run: {found}"
    return None


class Outcome:
    """Outputs of a run, the inputs after it, and the storages of the inputs, which identify aliases."""

    def __init__(self, outputs, inputs, storages):
        self.outputs = outputs
        self.inputs = inputs
        self.storages = storages

    def aliases(self):
        """For each output the storage it lies in, numbered from the inputs' storages on, and the offset where the storage is shared."""
        numbers = {storage._cdata: k for k, storage in enumerate(self.storages)}
        shared = set(numbers)
        seen = set()
        for value in self.outputs:
            if isinstance(value, torch.Tensor):
                cdata = value.untyped_storage()._cdata
                if cdata in seen:
                    shared.add(cdata)
                seen.add(cdata)
        rows = []
        for value in self.outputs:
            if not isinstance(value, torch.Tensor):
                rows.append(None)
                continue
            cdata = value.untyped_storage()._cdata
            number = numbers.setdefault(cdata, len(numbers))
            rows.append((number, value.storage_offset() if cdata in shared else None))
        return rows


def metadata_difference(want, have):
    if not isinstance(want, torch.Tensor):
        if type(want) is not type(have):
            return f"a value of type {type(have).__name__} instead of {type(want).__name__}"
        return None
    if not isinstance(have, torch.Tensor):
        return f"a value of type {type(have).__name__} instead of a tensor"
    if want.dtype != have.dtype:
        return f"dtype: {have.dtype} instead of {want.dtype}"
    if want.shape != have.shape:
        return f"shape: {list(have.shape)} instead of {list(want.shape)}"
    if significant_stride(want) != significant_stride(have):
        return f"stride: {list(have.stride())} instead of {list(want.stride())} for shape {list(want.shape)}"
    return None


def significant_stride(tensor):
    """The strides that can be observed: those of dimensions with more than one element, in tensors with any."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1] if tensor.numel() else []


def alias_difference(expected, actual):
    for k, (want, have) in enumerate(zip(expected.aliases(), actual.aliases())):
        # torch marks a conjugate as a bit on a view; Pyrite has no such bit, and a copy is the only other way to return one.
        value = expected.outputs[k]
        if want == have or (isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg())):
            continue
        count = len(expected.storages)
        return f"output {k}: aliasing: {describe_alias(have, count)} instead of {describe_alias(want, count)}"
    return None


def describe_alias(row, inputs):
    number, offset = row
    place = f"the storage of input storage {number}" if number < inputs else f"fresh storage {number - inputs}"
    return place if offset is None else f"{place} at offset {offset}"


def value_difference(want, have, fp64):
    if not isinstance(want, torch.Tensor):
        return scalar_difference(want, have)
    if not want.dtype.is_floating_point and not want.dtype.is_complex:
        if torch.equal(want, have):
            return None
        wrong = (want != have).nonzero()[0].tolist() if want.dim() else []
        return f"value: {have[tuple(wrong)].item()} instead of {want[tuple(wrong)].item()} at {wrong}"
    want, have = want.resolve_conj().resolve_neg(), have.resolve_conj().resolve_neg()
    try:
        torch.testing.assert_close(have, want, equal_nan=True)
        return None
    except AssertionError as error:
        message = str(error)
    exact = fp64()
    if isinstance(exact, torch.Tensor) and exact.dtype == WIDER.get(want.dtype, want.dtype) and exact.shape == want.shape:
        if near_fp64(want, have, exact.resolve_conj().resolve_neg()):
            return None
        message += f" float64 gives errors {errors(have, exact):.3g} against eager's {errors(want, exact):.3g}."
    return "value: " + " ".join(message.split())


def scalar_difference(want, have):
    if isinstance(want, float):
        return value_difference(torch.tensor(want, dtype=torch.float64), torch.tensor(have, dtype=torch.float64), lambda: None)
    return None if want == have else f"value: {have} instead of {want}"


def errors(values, exact):
    """The largest distance from the exact values, over the elements where both are finite."""
    distance = (values.to(exact.dtype) - exact).abs()
    distance = distance[distance.isfinite()]
    return distance.max().item() if distance.numel() else 0.0


def near_fp64(want, have, exact):
    """Whether every element is close to eager's, or the rounded exact one, or at most twice as far from the exact one as eager gets."""
    rounded = exact.to(want.dtype)
    distance = (have.to(exact.dtype) - exact).abs()
    rtol, atol = default_tolerances(want.dtype)
    close = torch.isclose(have, want, rtol=rtol, atol=atol, equal_nan=True)
    return bool((close | same(have, rounded) | (distance <= 2 * errors(want, exact))).all())


def same(a, b):
    return (a == b) | (a.isnan() & b.isnan())


def describe_inputs(inputs):
    """One line per input, for reports."""
    rows = []
    for value in inputs:
        if isinstance(value, torch.Tensor):
            rows.append(f"{DTYPE_NAMES.get(value.dtype, value.dtype)}{list(value.shape)}{list(value.stride())}")
        else:
            rows.append(repr(value))
    return rows
