"""A worker that speaks the protocol of `pyrite worker` with torch as its engine: `python -m operators.torch_worker [FAULT]`.

It shows that the conformance harness itself is right: without a fault nothing may be reported, and each fault must be found.
"""

import json
import sys
import warnings

import torch
import torch.utils._pytree as pytree

from operators.worker import Encoder, Untransportable, decode_storages, decode_value

FAULTS = {
    "value": "adds 1 to the first floating-point output",
    "tiny": "changes the first floating-point output by 1 part in 10,000",
    "dtype": "returns the first floating-point output in another dtype",
    "shape": "gives the first tensor output one more dimension",
    "stride": "returns the first matrix transposed in memory",
    "alias": "returns a copy where a view of an input is due",
    "mutation": "loses what the graph did to its inputs",
    "missing": "drops the last output",
    "gradient": "changes the first gradient by 1 part in 10,000",
    "lost": "has no first gradient",
    "crash": "ends without an answer",
    "hang": "never answers",
}


def spoil(fault, output):
    """Plants the fault in the list of outputs, where it applies."""
    if fault == "missing":
        return output[:-1]
    for k, value in enumerate(output):
        if not isinstance(value, torch.Tensor):
            continue
        if fault in ("value", "tiny", "dtype") and not value.is_floating_point():
            continue
        if fault == "stride" and (value.dim() < 2 or min(value.shape[-2:]) < 2):
            continue
        changed = {
            "value": lambda: value + 1,
            "tiny": lambda: value * 1.0001,
            "dtype": lambda: value.to(torch.float64 if value.dtype != torch.float64 else torch.float32),
            "shape": lambda: value[None],
            "stride": lambda: value.mT.contiguous().mT,
            "alias": lambda: value.clone(),
        }.get(fault)
        if changed is not None:
            return [*output[:k], changed(), *output[k + 1 :]]
    return output


def differentiate(function, inputs, wants, tangents, fault):
    """The outputs and the gradients of the inputs, None where there is none."""
    inputs = [value.detach().requires_grad_() if want else value for value, want in zip(inputs, wants)]
    outputs = list(function(*inputs))
    pairs = [(value, tangent) for value, tangent in zip(outputs, tangents) if tangent is not None and value.requires_grad]
    wanted = [value for value, want in zip(inputs, wants) if want]
    found = torch.autograd.grad([v for v, _ in pairs], wanted, [t for _, t in pairs], allow_unused=True)
    if fault in ("gradient", "lost"):
        first = next(k for k, gradient in enumerate(found) if gradient is not None)
        found = [*found[:first], found[first] * 1.0001 if fault == "gradient" else None, *found[first + 1 :]]
    # A gradient may be zeros without memory, which cannot travel.
    gradients = iter([gradient if gradient is None else gradient.clone() for gradient in found])
    return [spoil(fault, outputs), [next(gradients) if want else None for want in wants]]


def answer(request, blob, fault):
    storages = decode_storages(request["storages"], blob)
    inputs = [decode_value(value, storages) for value in request["inputs"]]
    scope = {"torch": torch, "inf": float("inf"), "nan": float("nan"), "device": torch.device}
    exec(request["graph"], scope)
    if "seed" in request:
        torch.manual_seed(request["seed"])
    function = scope["Repro"]()
    if request["cmd"] == "grad":
        output = differentiate(function, inputs, request["wants"], [decode_value(value, storages) for value in request["tangents"]], fault)
    else:
        output = spoil(fault, function(*inputs))
    output = pytree.tree_map(lambda v: v.detach().resolve_conj().resolve_neg() if isinstance(v, torch.Tensor) else v, output)
    if fault == "mutation":
        for storage, before in zip(storages, decode_storages(request["storages"], blob)):
            storage.copy_(before)
    encoder = Encoder(storages)
    value = encoder.value(output)
    table, blob = encoder.blob()
    return {"ok": True, "output": value, "storages": table, "blob": len(blob)}, blob


def main():
    fault = sys.argv[1] if len(sys.argv) > 1 else None
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while line := stdin.readline():
        request = json.loads(line)
        blob = stdin.read(request["blob"])
        if fault == "crash":
            sys.exit(3)
        if fault == "hang":
            stdin.read()
        try:
            reply, blob = answer(request, blob, fault)
        except Exception as error:
            kind = "unsupported" if isinstance(error, Untransportable) or "_OpNamespace" in str(error) else "error"
            reply, blob = {"ok": False, "kind": kind, "message": f"{type(error).__name__}: {error}", "op": None, "blob": 0}, b""
        stdout.write(json.dumps({"id": request["id"], **reply}).encode() + b"\n" + blob)
        stdout.flush()


if __name__ == "__main__":
    main()
