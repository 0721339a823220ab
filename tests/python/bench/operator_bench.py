"""Single operators and small fusions as an outsider's micro-benchmark measures them: rows for `python -m bench --only operators`.

Every row is a function of tensors at sizes that people use, forward and with its backward pass, called from Python: eager, `pyrite.compile` and
Inductor, in one process. The contenders take turns in short rounds, and the smallest time of each counts, so that what else happens on the
machine meets all of them alike. Rows that the file already has are not measured again, contenders that a row lacks are.

    python -m bench.operator_bench [--file FILE] [--only PATTERN,...] [--modes forward,training] [--contenders NAME,...] [--threads N]
                                   [--dtype f32|bf16] [--again]

A row is a finding when Pyrite takes more than 1.05 times as long as each of the others.
"""

import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import sys
import tempfile
import time

import torch
from torch.nn import functional as F

from bench.model_bench import processor

CONTENDERS = ["eager", "inductor", "pyrite"]
MODES = ["forward", "training"]
BAR = 1.05
ROUNDS, ROUND_SECONDS = 12, 0.03
# A timer is read around at least this long a batch of calls.
BATCH_SECONDS = 2e-4
# Sizes of the inputs that most rows share.
ROWS, IMAGE, HEADS = (512, 1024), (4, 64, 56, 56), (4, 8, 128, 64)


class Index:
    """Random integers below a number, as indices are."""

    def __init__(self, below, *shape):
        self.below, self.shape = below, shape


class Fixed:
    """A number that the row's function gets as a tensor without gradient."""

    def __init__(self, *shape, low=None):
        self.shape, self.low = shape, low


# The function, and what its inputs are: a tuple is the shape of a random tensor that wants a gradient.
OPERATORS = {
    # Pointwise chains.
    "add small": (lambda x, y: x + y, (64, 64), (64, 64)),
    "add": (lambda x, y: x + y, ROWS, ROWS),
    "gelu bias residual": (lambda x, b, y: F.gelu(x + b) + y, ROWS, (1024,), ROWS),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), ROWS),
    "silu mul": (lambda x, y: F.silu(x) * y, ROWS, ROWS),
    "sigmoid tanh": (lambda x, y: torch.sigmoid(x) * torch.tanh(y), ROWS, ROWS),
    "sin cos": (lambda x: x.sin() + x.cos(), ROWS),
    "pow sqrt": (lambda x: (x**2 + 1).sqrt() / 3, ROWS),
    "exp log": (lambda x: torch.log1p(torch.exp(x)), ROWS),
    "where clamp": (lambda x, y: torch.where(x > 0, x, y).clamp(-1, 1), ROWS, ROWS),
    "broadcast column": (lambda x, c: x * c + 1, ROWS, (512, 1)),
    "broadcast channel": (lambda x, c: x * c + 1, IMAGE, (64, 1, 1)),
    "leaky relu": (lambda x: F.leaky_relu(x, 0.1) + F.elu(x), ROWS),
    "add transposed": (lambda x, y: x + y.t(), (1024, 512), ROWS),
    "add permuted": (lambda x, y: x + y.permute(0, 2, 3, 1), (4, 56, 56, 64), IMAGE),
    "mul channels-last": (
        lambda x: (x.contiguous(memory_format=torch.channels_last) * 2).relu(),
        IMAGE,
    ),
    # Reductions along each dimension.
    "sum all": (lambda x: x.sum(), ROWS),
    "sum last": (lambda x: x.sum(-1), ROWS),
    "sum first": (lambda x: x.sum(0), ROWS),
    "sum middle": (lambda x: x.sum(1), (16, 128, 256)),
    "sum middle short": (lambda x: x.sum(1), (512, 8, 128)),
    "sum images": (lambda x: x.sum((0, 2, 3)), IMAGE),
    "sum short rows": (lambda x: x.sum(-1), (2688, 64)),
    "sum tiny rows": (lambda x: x.sum(-1), (65536, 4)),
    "mean images": (lambda x: x.mean((2, 3)), IMAGE),
    "amax last": (lambda x: x.amax(-1), ROWS),
    "amax short rows": (lambda x: x.amax(-1), (2688, 64)),
    "amax first": (lambda x: x.amax(0), ROWS),
    "max last": (lambda x: x.max(-1)[0], ROWS),
    "max with index": (lambda x: x.max(-1), ROWS),
    "argmax last": (lambda x: x.argmax(-1), ROWS),
    "argmax first": (lambda x: x.argmax(0), ROWS),
    "var last": (lambda x: x.var(-1), ROWS),
    "var first": (lambda x: x.var(0), ROWS),
    "std mean": (lambda x: torch.std_mean(x, -1), ROWS),
    "norm last": (lambda x: x.norm(dim=-1), ROWS),
    "logsumexp": (lambda x: x.logsumexp(-1), ROWS),
    "logsumexp first": (lambda x: x.logsumexp(0), ROWS),
    "prod last": (lambda x: x.prod(-1), (512, 64)),
    "any last": (lambda x: (x > 3).any(-1), ROWS),
    "mean square": (lambda x: (x * x).mean(), ROWS),
    "cosine similarity": (lambda x, y: F.cosine_similarity(x, y), ROWS, ROWS),
    "normalize": (lambda x: F.normalize(x, dim=-1), ROWS),
    # Norms and softmax.
    "softmax last": (lambda x: x.softmax(-1), ROWS),
    "softmax short rows": (lambda x: x.softmax(-1), (2688, 64)),
    "softmax first": (lambda x: x.softmax(0), ROWS),
    "softmax middle": (lambda x: x.softmax(1), (16, 128, 256)),
    "softmax long": (lambda x: x.softmax(-1), (16, 32000)),
    "log softmax": (lambda x: x.log_softmax(-1), ROWS),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (1024,), w, b), ROWS, (1024,), (1024,)),
    "layer norm short": (lambda x, w, b: F.layer_norm(x, (64,), w, b), (8192, 64), (64,), (64,)),
    "rms norm": (lambda x, w: F.rms_norm(x, (1024,), w), ROWS, (1024,)),
    "group norm": (lambda x, w, b: F.group_norm(x, 8, w, b), IMAGE, (64,), (64,)),
    "instance norm": (lambda x: F.instance_norm(x), IMAGE),
    "batch norm train": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), IMAGE, (64,), (64,)),
    "batch norm eval": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b).relu(),
        IMAGE,
        Fixed(64),
        Fixed(64, low=0.5),
        (64,),
        (64,),
    ),
    # Pooling and interpolation.
    "max pool 3/2": (lambda x: F.max_pool2d(x, 3, 2, 1), (4, 64, 112, 112)),
    "max pool 2/2": (lambda x: F.max_pool2d(x, 2), IMAGE),
    "avg pool 2/2": (lambda x: F.avg_pool2d(x, 2), IMAGE),
    "avg pool 3/1": (lambda x: F.avg_pool2d(x, 3, 1, 1), IMAGE),
    "adaptive pool 1": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    "adaptive pool 7": (lambda x: F.adaptive_avg_pool2d(x, 7), IMAGE),
    "avg pool 1d": (lambda x: F.avg_pool1d(x, 4), (16, 64, 1024)),
    "nearest x2": (lambda x: F.interpolate(x, scale_factor=2), (4, 64, 28, 28)),
    "bilinear x2": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (4, 64, 28, 28)),
    "bicubic x2": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (4, 16, 28, 28)),
    "grid sample": (lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (4, 16, 56, 56), (4, 56, 56, 2)),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    # Gather, scatter, index.
    "embedding": (lambda w, t: F.embedding(t, w), (32000, 512), Index(32000, 4, 128)),
    "embedding small": (lambda w, t: F.embedding(t, w), (1000, 64), Index(1000, 64, 128)),
    "gather": (lambda x, t: x.gather(1, t), ROWS, Index(1024, 512, 1024)),
    "index select": (lambda x, t: x.index_select(0, t), ROWS, Index(512, 1024)),
    "index rows": (lambda x, t: x[t], ROWS, Index(512, 1024)),
    "index pairs": (lambda x, s, t: x[s, t], ROWS, Index(512, 8192), Index(1024, 8192)),
    "index columns": (lambda x, t: x[:, t], ROWS, Index(1024, 256)),
    "scatter add": (lambda x, t, y: x.scatter_add(0, t, y), ROWS, Index(512, 512, 1024), ROWS),
    "scatter": (lambda x, t: torch.zeros_like(x).scatter(1, t, 1.0), ROWS, Index(1024, 512, 1)),
    "index add": (lambda x, t, y: x.index_add(0, t, y), ROWS, Index(512, 512), ROWS),
    "index put": (lambda x, t, y: x.index_put((t,), y), ROWS, Index(512, 256), (256, 1024)),
    "index put add": (lambda x, t, y: x.index_put((t,), y, accumulate=True), ROWS, Index(512, 256), (256, 1024)),
    "one hot": (lambda t: F.one_hot(t, 128), Index(128, 4096)),
    "masked fill": (lambda x, t: x.masked_fill(t > 0, -1e9), ROWS, Index(2, 512, 1024)),
    "take along": (lambda x, t: torch.take_along_dim(x, t, 0), ROWS, Index(512, 16, 1024)),
    # Sorting and scans.
    "sort": (lambda x: x.sort(-1), ROWS),
    "sort short rows": (lambda x: x.sort(-1), (4096, 16)),
    "sort first": (lambda x: x.sort(0), (512, 64)),
    "sort long": (lambda x: x.sort(), (200000,)),
    "argsort": (lambda x: x.argsort(-1), ROWS),
    "topk": (lambda x: x.topk(10, -1), ROWS),
    "topk vocabulary": (lambda x: x.topk(50, -1), (4, 32000)),
    "topk of few": (lambda x: x.topk(2, -1), (4096, 8)),
    "median": (lambda x: x.median(-1)[0], (512, 256)),
    "cumsum last": (lambda x: x.cumsum(-1), ROWS),
    "cumsum first": (lambda x: x.cumsum(0), ROWS),
    "cumsum long": (lambda x: x.cumsum(0), (500000,)),
    "cumprod": (lambda x: x.cumprod(-1), (512, 64)),
    "cummax": (lambda x: x.cummax(-1)[0], ROWS),
    "searchsorted": (lambda x: torch.bucketize(x, torch.linspace(-3, 3, 100)), ROWS),
    "nonzero": (lambda x: (x > 2).nonzero(), ROWS),
    # Copies.
    "cat last": (lambda x, y: torch.cat((x, y), -1), ROWS, ROWS),
    "cat first": (lambda x, y: torch.cat((x, y), 0), ROWS, ROWS),
    "cat channels": (lambda x, y: torch.cat((x, y), 1).relu(), IMAGE, IMAGE),
    "stack": (lambda x, y, z: torch.stack((x, y, z), -1), ROWS, ROWS, ROWS),
    "stack first": (lambda x, y, z: torch.stack((x, y, z)), ROWS, ROWS, ROWS),
    "pad constant": (lambda x: F.pad(x, (1, 1, 1, 1)), IMAGE),
    "pad reflect": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), IMAGE),
    "transpose copy": (lambda x: x.t().contiguous(), (1024, 1024)),
    "permute copy": (lambda x: x.permute(0, 2, 1, 3).contiguous(), (4, 128, 8, 64)),
    "channels last copy": (lambda x: x.permute(0, 2, 3, 1).contiguous(), IMAGE),
    "flip": (lambda x: x.flip(-1), ROWS),
    "roll": (lambda x: x.roll(5, -1), ROWS),
    "repeat": (lambda x: x.repeat(1, 4), (512, 256)),
    "repeat interleave": (lambda x: x.repeat_interleave(4, 1), (4, 2, 128, 64)),
    "split mul": (lambda x: (lambda a, b: a * b)(*x.chunk(2, -1)), ROWS),
    "tril": (lambda x: x.tril(), (8, 256, 256)),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), (4, 16, 28, 28)),
    "to bf16": (lambda x: x.to(torch.bfloat16), ROWS),
    "rotary": (
        lambda x, c, s: x * c + torch.cat((-x[..., 32:], x[..., :32]), -1) * s,
        HEADS,
        Fixed(128, 64),
        Fixed(128, 64),
    ),
    # Matmuls.
    "mm 512": (lambda x, y: x @ y, (512, 512), (512, 512)),
    "mm small": (lambda x, y: x @ y, (32, 32), (32, 32)),
    "mm tall": (lambda x, y: x @ y, (4096, 64), (64, 64)),
    "mm deep": (lambda x, y: x @ y, (64, 4096), (4096, 64)),
    "mv": (lambda x, y: x @ y, (1024, 1024), (1024,)),
    "bmm": (lambda x, y: x @ y, (32, 128, 64), (32, 64, 128)),
    "bmm many small": (lambda x, y: x @ y, (1024, 16, 16), (1024, 16, 16)),
    "einsum": (lambda x, y: torch.einsum("bhqd,bkhd->bhqk", x, y), HEADS, (4, 128, 8, 64)),
    "linear": (lambda x, w, b: F.linear(x, w, b), (128, 768), (768, 768), (768,)),
    "linear gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), (512, 768), (3072, 768), (3072,)),
    "linear residual": (lambda x, w, b, y: F.linear(x, w, b) + y, (512, 3072), (768, 3072), (768,), (512, 768)),
    "linear small batch": (lambda x, w, b: F.linear(x, w, b).relu(), (4, 1024), (1024, 1024), (1024,)),
    "linear one row": (lambda x, w, b: F.linear(x, w, b), (1, 1024), (1024, 1024), (1024,)),
    "bilinear layer": (lambda x, y, w: F.bilinear(x, y, w), (128, 64), (128, 64), (32, 64, 64)),
    "cdist": (lambda x, y: torch.cdist(x, y), (256, 64), (256, 64)),
    "outer": (lambda x, y: torch.outer(x, y), (1024,), (1024,)),
    # Convolutions.
    "conv 3x3": (lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), IMAGE, (64, 64, 3, 3), (64,)),
    "conv 3x3 /2": (lambda x, w: F.conv2d(x, w, None, 2, 1), IMAGE, (128, 64, 3, 3)),
    "conv 3x3 deep": (lambda x, w: F.conv2d(x, w, None, 1, 1), (4, 256, 14, 14), (256, 256, 3, 3)),
    "conv 3x3 deep /2": (lambda x, w: F.conv2d(x, w, None, 2, 1), (4, 256, 14, 14), (512, 256, 3, 3)),
    "conv 3x3 few": (lambda x, w: F.conv2d(x, w, None, 1, 1), (4, 16, 56, 56), (16, 16, 3, 3)),
    "conv 3x3 few /2": (lambda x, w: F.conv2d(x, w, None, 2, 1), (4, 16, 28, 28), (16, 16, 3, 3)),
    "conv 1x1": (lambda x, w: F.conv2d(x, w), (4, 256, 28, 28), (128, 256, 1, 1)),
    "conv 1x1 /2": (lambda x, w: F.conv2d(x, w, None, 2), (4, 256, 28, 28), (512, 256, 1, 1)),
    "conv 7x7 /2": (lambda x, w: F.conv2d(x, w, None, 2, 3), (4, 3, 160, 160), (64, 3, 7, 7)),
    "conv 16x16 /16": (lambda x, w, b: F.conv2d(x, w, b, 16), (2, 3, 224, 224), (768, 3, 16, 16), (768,)),
    "conv depthwise": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 64), IMAGE, (64, 1, 3, 3)),
    "conv depthwise /2": (lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 64), IMAGE, (64, 1, 3, 3)),
    "conv depthwise 7x7": (lambda x, w: F.conv2d(x, w, None, 1, 3, 1, 96), (4, 96, 28, 28), (96, 1, 7, 7)),
    "conv grouped": (lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 8), (4, 128, 28, 28), (128, 16, 3, 3)),
    "conv grouped /2": (lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 8), (4, 128, 28, 28), (128, 16, 3, 3)),
    "conv grouped wide /2": (lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 4), (4, 256, 28, 28), (256, 64, 3, 3)),
    "conv dilated": (lambda x, w: F.conv2d(x, w, None, 1, 2, 2), IMAGE, (64, 64, 3, 3)),
    "conv transposed": (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1), (4, 64, 28, 28), (64, 32, 4, 4)),
    "conv 1d": (lambda x, w, b: F.conv1d(x, w, b, padding=1), (8, 128, 256), (128, 128, 3), (128,)),
    "conv 1d causal depthwise": (lambda x, w: F.conv1d(x, w, None, padding=3, groups=256)[..., :-3], (2, 256, 512), (256, 1, 4)),
    "conv 3d": (lambda x, w: F.conv3d(x, w, None, padding=1), (1, 16, 8, 28, 28), (32, 16, 3, 3, 3)),
    "conv batch norm relu": (
        lambda x, w, m, v, g, b: F.batch_norm(F.conv2d(x, w, None, 1, 1), m, v, g, b).relu(),
        (4, 128, 28, 28),
        (128, 128, 3, 3),
        Fixed(128),
        Fixed(128, low=0.5),
        (128,),
        (128,),
    ),
    # Attention.
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), HEADS, HEADS, HEADS),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (1, 12, 512, 64),
        (1, 12, 512, 64),
        (1, 12, 512, 64),
    ),
    "attention masked": (
        lambda q, k, v, t: F.scaled_dot_product_attention(q, k, v, t > 0),
        HEADS,
        HEADS,
        HEADS,
        Index(4, 4, 1, 128, 128),
    ),
    "attention written out": (lambda q, k, v: (q @ k.transpose(-1, -2) * 0.125).softmax(-1) @ v, HEADS, HEADS, HEADS),
    "attention decoding": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        (4, 8, 1, 64),
        (4, 8, 512, 64),
        (4, 8, 512, 64),
    ),
    # Losses.
    "cross entropy": (lambda x, t: F.cross_entropy(x, t), (512, 32000), Index(32000, 512)),
    "cross entropy small": (lambda x, t: F.cross_entropy(x, t), (128, 10), Index(10, 128)),
    "cross entropy images": (lambda x, t: F.cross_entropy(x, t), (4, 21, 64, 64), Index(21, 4, 64, 64)),
    "nll loss": (lambda x, t: F.nll_loss(x, t), ROWS, Index(1024, 512)),
    "mse loss": (lambda x, y: F.mse_loss(x, y), ROWS, ROWS),
    "smooth l1": (lambda x, y: F.smooth_l1_loss(x, y), ROWS, ROWS),
    "bce logits": (lambda x, t: F.binary_cross_entropy_with_logits(x, t.float()), ROWS, Index(2, 512, 1024)),
    "kl div": (lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), ROWS, ROWS),
    "cosine embedding": (lambda x, y, t: F.cosine_embedding_loss(x, y, 2 * t - 1), (512, 256), (512, 256), Index(2, 512)),
    "triplet": (lambda x, y, z: F.triplet_margin_loss(x, y, z), (512, 256), (512, 256), (512, 256)),
    # Random numbers.
    "dropout": (lambda x: F.dropout(x, 0.1), ROWS),
    "randn": (lambda x: x + torch.randn_like(x), ROWS),
}


def tensor_of(spec, dtype, mode):
    if isinstance(spec, Index):
        return torch.randint(0, spec.below, spec.shape)
    if isinstance(spec, Fixed):
        made = torch.randn(spec.shape) if spec.low is None else torch.rand(spec.shape) + spec.low
        return made.to(dtype)
    return torch.randn(spec).to(dtype).requires_grad_(mode == "training")


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def prepared(name, contender, mode, dtype):
    """A function without arguments that makes one call; None if the row has no backward pass."""
    function, *specs = OPERATORS[name]
    torch.manual_seed(0)
    inputs = [tensor_of(spec, dtype, mode) for spec in specs]
    if contender == "pyrite":
        import pyrite

        compiled = pyrite.compile(function)
    else:
        compiled = torch.compile(function) if contender == "inductor" else function
    if mode == "forward":

        def call():
            with torch.no_grad():
                compiled(*inputs)

        return call
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    outputs = [output for output in tensors(function(*inputs)) if output.requires_grad] if wanted else []
    if not outputs:
        return None
    gradients = [torch.randn_like(output) for output in outputs]

    def step():
        for tensor in wanted:
            tensor.grad = None
        recorded = [output for output in tensors(compiled(*inputs)) if output.requires_grad]
        torch.autograd.backward(recorded, gradients)

    return step


def seconds(call, batch):
    start = time.perf_counter()
    for _ in range(batch):
        call()
    return (time.perf_counter() - start) / batch


def measure(name, mode, dtype, contenders):
    """Seconds of a call for every contender, or why there is none; None if the row has no backward pass."""
    calls, found = {}, {}
    for contender in contenders:
        torch._dynamo.reset()
        try:
            call = prepared(name, contender, mode, dtype)
            if call is None:
                return None
            for _ in range(3):
                call()
            calls[contender] = call, max(1, round(BATCH_SECONDS / seconds(call, 1)))
        except Exception as error:  # noqa: BLE001 - a contender that cannot is part of the row
            found[contender] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]}
    for contender in calls:
        found[contender] = {"seconds": float("inf")}
    for _ in range(ROUNDS):
        for contender, (call, batch) in calls.items():
            end = time.perf_counter() + ROUND_SECONDS
            while time.perf_counter() < end:
                found[contender]["seconds"] = min(found[contender]["seconds"], seconds(call, batch))
    return found


def shown(row):
    ours = row["contenders"].get("pyrite", {}).get("seconds")
    cells = [f"{row['name']:26} {row['mode']:8} {row['threads']} {row['dtype']:4}"]
    for contender, got in row["contenders"].items():
        if "error" in got:
            cells.append(f"{contender} {got['error'][:60]}")
        elif contender == "pyrite" or ours is None:
            cells.append(f"{contender} {got['seconds'] * 1e6:9.1f} µs")
        else:
            cells.append(f"{contender} {got['seconds'] * 1e6:9.1f} µs ×{ours / got['seconds']:5.2f}")
    return " | ".join(cells)


def slowness(row):
    """Pyrite's time in that of the slowest of the others; None if one side is missing."""
    times = {contender: got["seconds"] for contender, got in row["contenders"].items() if "seconds" in got}
    ours = times.pop("pyrite", None)
    return ours / max(times.values()) if ours and times else None


def key(row):
    return row["name"], row["mode"], row["threads"], row["dtype"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path("target/bench/operators.jsonl"), help="rows are kept there")
    parser.add_argument("--only", default="*", help="patterns of names")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--again", action="store_true", help="measure also what the file has")
    chosen = parser.parse_args(arguments)
    patterns = chosen.only.split(",")
    names = [name for name in OPERATORS if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    if not names:
        parser.error(f"no row is called {chosen.only}; there are {', '.join(OPERATORS)}")
    torch.set_num_threads(chosen.threads)
    os.environ["PYRITE_NUM_THREADS"] = str(chosen.threads)
    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in chosen.file.read_text().splitlines() if line] if chosen.file.exists() else []
    rows = {key(row): row for row in kept}
    contenders = chosen.contenders.split(",")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[chosen.dtype]
    shown_rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        for name in names:
            for mode in chosen.modes.split(","):
                place = (name, mode, chosen.threads, chosen.dtype)
                if chosen.again or place not in rows or not set(contenders) <= set(rows[place]["contenders"]):
                    found = measure(name, mode, dtype, contenders)
                    if found is None:
                        continue
                    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")
                    rows[place] = dict(zip(("name", "mode", "threads", "dtype"), place)) | {"date": date, "cpu": processor(), "contenders": found}
                    with chosen.file.open("a") as out:
                        out.write(json.dumps(rows[place]) + "\n")
                    print(shown(rows[place]), flush=True)
                shown_rows.append(rows[place])
    findings = sorted(
        ((ratio, row) for row in shown_rows if (ratio := slowness(row)) is not None and ratio > BAR), key=lambda found: -found[0]
    )
    for ratio, row in findings:
        print(f"slower ×{ratio:.2f}: {shown(row)}")
    print(f"{len(findings)} of {len(shown_rows)} rows take more than {BAR} times as long as each of the others")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
