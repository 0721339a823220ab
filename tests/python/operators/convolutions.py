"""Runs random convolutions and their gradients through Pyrite and compares with torch eager: `python -m operators.convolutions --help`.

The operator database has few convolutions, all of them dense. Here one to three dimensions, strides, paddings, dilations, groups, transposition,
dtypes and memory layouts are drawn at random, from a seed that is printed. The exit code is 1 when an answer was wrong.
"""

import argparse
import os
import random
import sys

import cpu  # noqa: F401  (before torch)

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from operators.conformance import check
from operators.harness import Case
from operators.programs import Program
from operators.worker import DTYPES, Worker

LAYOUTS = ["dense", "channels last", "spread", "transposed"]


def laid_out(tensor, layout):
    """The same values in another place in memory."""
    if layout == "channels last":
        order = [0, *range(2, tensor.dim()), 1]
    elif layout == "transposed":
        order = list(reversed(range(tensor.dim())))
    elif layout == "spread":
        wide = torch.zeros([*tensor.shape[:-1], 2 * tensor.shape[-1] + 1], dtype=tensor.dtype)
        return wide[..., 1::2].copy_(tensor)
    else:
        return tensor.contiguous()
    back = sorted(range(tensor.dim()), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


def draw(rng, dtype):
    """The arguments of one convolution: input, weight, bias, and the options."""
    dims = rng.randint(1, 3)
    each = lambda low, high: [rng.randint(low, high) for _ in range(dims)]  # noqa: E731
    groups = rng.choice([1, 1, 2, 3, rng.randint(8, 40)])
    transposed = rng.random() < 0.5
    kernel, stride, dilation = each(1, 3), each(1, 3), each(1, 3)
    padding = [rng.randint(0, reach) for reach in kernel]
    most = 1 if groups > 3 else 4
    inward, outward = groups * rng.randint(1, most), groups * rng.randint(1, most)
    size = [rng.randint(d * (k - 1) + 1, d * (k - 1) + 9) for k, d in zip(kernel, dilation)]
    output_padding = [rng.randint(0, max(s, d) - 1) if transposed else 0 for s, d in zip(stride, dilation)]
    weight = [inward, outward // groups] if transposed else [outward, inward // groups]
    normal = lambda *shape: torch.randn(shape, dtype=torch.float64).to(dtype)  # noqa: E731
    x = laid_out(normal(rng.randint(1, 4), inward, *size), rng.choice(LAYOUTS))
    weight = laid_out(normal(*weight, *kernel), rng.choice(LAYOUTS))
    bias = normal(outward) if rng.random() < 0.5 else None
    return x, weight, bias, stride, padding, dilation, transposed, output_padding, groups


def program(rng, dtype):
    """A graph of one convolution and its gradients, or None where the draw is of none."""
    x, weight, bias, *options = draw(rng, dtype)
    try:
        y = torch.ops.aten.convolution.default(x, weight, bias, *options)
    except RuntimeError:
        return None
    # Whether torch refuses a result without elements depends on the kernel that it picks.
    if y.numel() == 0:
        return None
    grad = laid_out(torch.randn(y.shape, dtype=torch.float64).to(dtype), rng.choice(LAYOUTS))
    sizes = None if bias is None else [bias.shape[0]]

    def function(grad, x, weight, *bias):
        y = torch.ops.aten.convolution.default(x, weight, *(bias or [None]), *options)
        wanted = [True, True, bool(bias)]
        grads = torch.ops.aten.convolution_backward.default(grad, x, weight, sizes, *options, wanted)
        return [y, *(g for g in grads if g is not None)]

    inputs = [grad, x, weight, *([] if bias is None else [bias])]
    return Program(make_fx(function)(*inputs), inputs)


def main():
    parser = argparse.ArgumentParser(description="Compare random convolutions and their gradients with torch eager.")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtypes", default="f32,f64,bf16")
    chosen = parser.parse_args()
    if "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    # On one thread PyTorch picks other kernels for windows of one element, with other strides.
    torch.set_num_threads(2)
    worker = Worker(None, 30.0)
    counts = {"passed": 0, "failed": 0, "unsupported": 0, "unstable": 0}
    for number in range(chosen.count):
        seed = chosen.seed * 1_000_003 + number
        torch.manual_seed(seed)
        dtype = chosen.dtypes.split(",")[number % len(chosen.dtypes.split(","))]
        drawn = program(random.Random(seed), DTYPES[dtype])
        if drawn is None:
            continue
        verdict, why = check(Case(dtype, number, "traced", drawn), worker, "crossref")
        counts[verdict] += 1
        if verdict in ("failed", "unsupported"):
            print(f"--- {dtype} number {number} of seed {chosen.seed}: {why}\n{drawn.text}")
    print(f"seed {chosen.seed}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
