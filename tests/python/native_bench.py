"""The native compiler beside Inductor: rows for `bench.py --only native,kernels`.

    native   the five models: compiling against Inductor with empty caches, one call forward, one call forward and backward
    kernels  programs of one fused kernel each, small and with 64 MB of data

Both sides run the same text with the same number of threads in one run. Inductor compiles in this process, with a cache folder of its own; its
calls include the guards that torch.compile checks, as a user's calls do.
"""

import os
import pathlib
import tempfile
import time

import torch
from dumped import load_inputs, load_module

COMPILE_BAR = 1 / 100
TRANSFORMER_BAR = 1.0
CONVOLUTION_BAR = 1.2
FUSED_BAR = 0.8
MOVING_BAR = 1.0

# One kernel each: the names and shapes of the inputs (for a small and a large size), the body, and the bar.
ROWS = {"small": 64, "large": 16384}
KERNELS = {
    "gelu": (["x: R,1024", "b: 1024", "y: R,1024"], "torch.nn.functional.gelu(x + b) + y", FUSED_BAR),
    "softmax": (["x: R,1024"], "torch.softmax(x, -1)", FUSED_BAR),
    "layer norm": (["x: R,1024", "w: 1024", "b: 1024"], "torch.nn.functional.layer_norm(x, (1024,), w, b)", FUSED_BAR),
    "rms norm": (["x: R,1024", "w: 1024"], "x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-06) * w", FUSED_BAR),
    "cross entropy": (
        ["x: R,1024", "t: R int"],
        "-torch.log_softmax(x, -1).gather(1, t.unsqueeze(1)).mean()",
        FUSED_BAR,
    ),
    "rotary": (
        ["x: R,16,64", "c: R,1,64", "s: R,1,64"],
        "x * c + torch.cat((-x[..., 32:], x[..., :32]), -1) * s",
        FUSED_BAR,
    ),
    "embedding bag": (["w: 5000,64", "t: R,16 int"], "torch.nn.functional.embedding(t, w).sum(1)", FUSED_BAR),
    "transposed": (["x: R,1024", "y: 1024,R"], "x + y.t()", MOVING_BAR),
    "column sum": (["x: R,1024"], "x.sum(0)", MOVING_BAR),
    "cat": (["x: R,512", "y: R,512"], "torch.cat((x * 2, y + 1), 1)", MOVING_BAR),
    "gather": (["x: R,1024", "t: R,1024 int"], "x.gather(1, t)", MOVING_BAR),
}


def source(inputs, body, rows):
    """A program of one line and its inputs, generated."""
    names, lines = [], []
    for k, text in enumerate(inputs):
        name, spec = text.split(": ")
        dtype = "torch.int64" if spec.endswith("int") else "torch.float32"
        shape = [rows if size == "R" else int(size) for size in spec.removesuffix(" int").split(",")]
        count = 1
        for size in shape:
            count *= size
        width = 8 if dtype == "torch.int64" else 4
        names.append(name)
        lines.append(f"    buf{k} = reader.storage(None, {count * width}, dtype_hint={dtype})")
        lines.append(f"    reader.tensor(buf{k}, {tuple(shape)}, dtype={dtype}, is_leaf=True)")
    arguments = ", ".join(names)
    return (
        f"import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, {arguments}):\n        return ({body},)\n\n"
        f"def load_args(reader):\n" + "\n".join(lines) + "\nload_args._version = 0\n"
    )


def fastest(function, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def inductor(module, inputs, gradients):
    """A compiled module, and how long its first call took; its caches are empty."""
    torch._dynamo.reset()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        compiled = torch.compile(module, backend="inductor")
        start = time.perf_counter()
        call(compiled, inputs, gradients)
        return compiled, time.perf_counter() - start


def outputs_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in outputs_of(item)] if isinstance(value, (list, tuple)) else []


def call(compiled, inputs, gradients):
    if not gradients:
        with torch.no_grad():
            compiled(*inputs)
        return
    outputs = [output for output in outputs_of(compiled(*inputs)) if output.requires_grad]
    torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])


def model_rows(pyrite_json, directory, model, threads, repeat):
    path = directory / model / "dynamo_repro.py"
    module, load_args = load_module(path.read_text(), path.name)
    inputs = load_inputs(load_args, path.parent)
    bar = CONVOLUTION_BAR if model == "resnet18" else TRANSFORMER_BAR
    for gradients in (False, True):
        compiled, cold = inductor(module, inputs, gradients)
        theirs = fastest(lambda: call(compiled, inputs, gradients), repeat)
        mode = [] if gradients else ["--forward-only"]
        ours = pyrite_json("run", path, "--backend", "native", "--accuracy", "off", "--repeat", repeat, *mode, threads=threads)
        what = "train" if gradients else "forward"
        yield row(f"native {model} compile {what}", ours["compile_seconds"], cold, COMPILE_BAR)
        yield row(f"native {model} {what}", ours["run_seconds"], theirs, bar)


def kernel_rows(pyrite_json, threads, repeat):
    with tempfile.TemporaryDirectory() as place:
        for name, (inputs, body, bar) in KERNELS.items():
            for size, rows in ROWS.items():
                path = pathlib.Path(place) / "kernel.py"
                text = source(inputs, body, rows)
                path.write_text(text)
                module, load_args = load_module(text, path.name)
                values = load_inputs(load_args, path.parent)
                compiled, _ = inductor(module, values, False)
                theirs = fastest(lambda: call(compiled, values, False), repeat)
                ours = pyrite_json(
                    "run", path, "--backend", "native", "--accuracy", "off", "--forward-only", "--repeat", repeat, threads=threads
                )
                yield row(f"kernel {name} {size}", ours["run_seconds"], theirs, bar)


def row(name, ours, theirs, bar):
    return {"name": name, "pyrite": ours, "torch": theirs, "ratio": ours / theirs, "bar": bar}
