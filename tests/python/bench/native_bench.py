"""The native compiler beside Inductor: rows for `bench.py --only native,kernels,matmul,convolutions`.

    native    the five models: compiling against Inductor with empty and with filled caches, one call forward, one call forward and backward,
              and the most memory that tensors of a call take at a time
    kernels   programs of one fused kernel each, small and with 64 MB of data; a call of a scalar add, measured in Rust, against 2 microseconds
    matmul  matmuls and of batches of them, against torch.mm and torch.bmm, and attention written out, against Inductor
    convolutions  single convolutions of well-known models, forward, and forward and backward, against torch eager

Both sides run the same text with the same number of threads in one run. Inductor compiles in this process, with a cache folder of its own; its
calls include the guards that torch.compile checks, as a user's calls do.
"""

import contextlib
import os
import pathlib
import tempfile
import time

import torch

from models.dumped import load_inputs, load_module

COMPILE_BAR = 1 / 100
WARM_COMPILE_BAR = 1 / 10
MEMORY_BAR = 1.0
MATMUL_BAR = 1.2
TRANSFORMER_BAR = 1.0
CONVOLUTION_BAR = 1.2
FUSED_BAR = 0.8
MOVING_BAR = 1.0
CALL_SECONDS = 2e-6
# What Inductor leaves running for a moment, its pool of compilers and threads that spin, must not count against who comes next.
SETTLE_SECONDS = 2

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
    "dropout": (["x: R,1024", "b: 1024", "y: R,1024"], "torch.nn.functional.dropout(x + b, 0.1) + y", FUSED_BAR),
    "normal noise": (["x: R,1024"], "x + torch.randn_like(x) * 0.1", FUSED_BAR),
    "embedding bag": (["w: 5000,64", "t: R,16 int"], "torch.nn.functional.embedding(t, w).sum(1)", FUSED_BAR),
    "transposed": (["x: R,1024", "y: 1024,R"], "x + y.t()", MOVING_BAR),
    "column sum": (["x: R,1024"], "x.sum(0)", MOVING_BAR),
    "short row sum": (["x: R,16,64"], "x.sum(-1)", MOVING_BAR),
    "short row softmax": (["x: R,16,64"], "torch.softmax(x, -1)", MOVING_BAR),
    "cat": (["x: R,512", "y: R,512"], "torch.cat((x * 2, y + 1), 1)", MOVING_BAR),
    "gather": (["x: R,1024", "t: R,1024 int"], "x.gather(1, t)", MOVING_BAR),
}

# Rows, columns and depth; "t" is a right operand that lies in columns, as weights do.
MATMULS = ["512,512,512", "1024,1024,1024", "2048,2048,2048", "32,4096,1024", "32,4096,1024 t", "64,256,256 t", "256,1024,1024 t"]

# Matrices, rows, columns and depth; the right operands lie in columns, as keys do.
BATCHES = ["12,128,128,64", "96,128,128,64", "12,512,512,64", "12,128,64,128"]
# Batch, heads, length and width of heads that lie side by side.
ATTENTIONS = ["1,12,128,64", "4,12,128,64", "2,12,256,64", "8,12,512,64"]

# Images, channels in, size, channels out, window, stride, groups; padded so that a stride of 1 keeps the size.
CONVOLUTIONS = {
    "resnet18 first": "4,3,128,64,7,2,1",
    "resnet18 layer 1": "4,64,32,64,3,1,1",
    "resnet18 layer 2": "4,128,16,128,3,1,1",
    "resnet18 layer 3": "4,256,8,256,3,1,1",
    "resnet18 layer 4": "4,512,4,512,3,1,1",
    "resnet50 56": "1,64,56,64,3,1,1",
    "resnet50 14": "1,256,14,256,3,1,1",
    "resnet50 stride 2": "1,128,56,128,3,2,1",
    "vgg 224": "1,64,224,64,3,1,1",
    "vgg 56": "1,256,56,256,3,1,1",
    "vgg 28": "1,512,28,512,3,1,1",
    "resnext 56": "1,128,56,128,3,1,32",
    "mobilenet 112": "1,64,112,64,3,2,64",
    "mobilenet 28": "1,120,28,120,5,1,120",
    "mobilenet 14": "1,480,14,480,3,1,480",
    "convnext 56": "1,96,56,96,7,1,96",
    "convnext 7": "1,768,7,768,7,1,768",
}


def source(inputs, body, rows, gradients=False):
    """A program of one line and its inputs, generated."""
    leaf = "is_leaf=True, requires_grad=True" if gradients else "is_leaf=True"
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
        lines.append(f"    reader.tensor(buf{k}, {tuple(shape)}, dtype={dtype}, {leaf})")
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


@contextlib.contextmanager
def inductor(module, inputs, gradients, calls=("empty",)):
    """A compiled module, and how long its first call took: one time for each of `calls`, the caches empty at the first and full at others."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        times = []
        for _ in calls:
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="inductor")
            start = time.perf_counter()
            call(compiled, inputs, gradients)
            times.append(time.perf_counter() - start)
        yield compiled, times


def peak_bytes(function):
    """The most bytes that tensors made during a call take at a time."""
    function()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


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
        what = "train" if gradients else "forward"
        mode = [] if gradients else ["--forward-only"]
        with inductor(module, inputs, gradients, calls=("empty", "full")) as (compiled, (cold, warm)):
            theirs = fastest(lambda: call(compiled, inputs, gradients), repeat)
            memory = peak_bytes(lambda: call(compiled, inputs, gradients))
        time.sleep(SETTLE_SECONDS)
        ours = pyrite_json("run", path, "--backend", "native", "--accuracy", "off", "--repeat", repeat, *mode, threads=threads)
        yield row(f"native {model} compile {what}", ours["compile_seconds"], cold, COMPILE_BAR)
        yield row(f"native {model} compile {what}, caches full", ours["compile_seconds"], warm, WARM_COMPILE_BAR)
        yield row(f"native {model} {what}", ours["run_seconds"], theirs, bar)
        yield row(f"native {model} memory {what}", ours["peak_bytes"], memory, MEMORY_BAR) | {"unit": "MB"}


def kernel_rows(pyrite_json, threads, repeat):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "call.py"
        path.write_text(source(["x: 1", "y: 1"], "x + y", 0))
        ours = pyrite_json("run", path, "--backend", "native", "--accuracy", "off", "--forward-only", "--repeat", 2000, threads=threads)
        seconds = ours["run_seconds"]
        yield {"name": "call of a scalar add", "pyrite": seconds, "torch": None, "ratio": seconds / CALL_SECONDS, "bar": 1.0}
        for name, (inputs, body, bar) in KERNELS.items():
            for size, rows in ROWS.items():
                path = pathlib.Path(place) / "kernel.py"
                text = source(inputs, body, rows)
                path.write_text(text)
                module, load_args = load_module(text, path.name)
                values = load_inputs(load_args, path.parent)
                with inductor(module, values, False) as (compiled, _):
                    theirs = fastest(lambda: call(compiled, values, False), repeat)
                # Both draw random numbers of their own.
                options = ["--accuracy", "off", "--forward-only", "--fallback-random", "false", "--repeat", repeat]
                ours = pyrite_json("run", path, "--backend", "native", *options, threads=threads)
                yield row(f"kernel {name} {size}", ours["run_seconds"], theirs, bar)


def product_rows(pyrite_json, threads, repeat):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "matmul.py"

        def made(inputs, body):
            program = source(inputs, body, 0)
            path.write_text(program)
            module, load_args = load_module(program, path.name)
            return module, load_inputs(load_args, path.parent)

        def timed():
            command = ["run", path, "--backend", "native", "--accuracy", "off", "--forward-only", "--repeat", repeat]
            return pyrite_json(*command, threads=threads)["run_seconds"]

        for text in MATMULS:
            sizes, _, transposed = text.partition(" ")
            m, n, k = map(int, sizes.split(","))
            right, body = (f"{n},{k}", "torch.mm(x, y.t())") if transposed else (f"{k},{n}", "torch.mm(x, y)")
            _, (x, y) = made([f"x: {m},{k}", f"y: {right}"], body)
            out = torch.empty(m, n)
            theirs = fastest(lambda: torch.mm(x, y.t() if transposed else y, out=out), repeat)
            yield row(f"matmul {text}", timed(), theirs, MATMUL_BAR)
        for text in BATCHES:
            count, m, n, k = map(int, text.split(","))
            _, (x, y) = made([f"x: {count},{m},{k}", f"y: {count},{n},{k}"], "torch.bmm(x, y.transpose(1, 2))")
            out = torch.empty(count, m, n)
            theirs = fastest(lambda: torch.bmm(x, y.transpose(1, 2), out=out), repeat)
            yield row(f"batched matmul {text}", timed(), theirs, MATMUL_BAR)
        for text in ATTENTIONS:
            module, inputs = made(*attention(*map(int, text.split(","))))
            with inductor(module, inputs, False) as (compiled, _):
                theirs = fastest(lambda: call(compiled, inputs, False), repeat)
            time.sleep(SETTLE_SECONDS)
            yield row(f"attention written out {text}", timed(), theirs, MOVING_BAR)


def attention(batch, heads, length, width):
    """The inputs and the body of attention by its operators, one by one."""
    side = f"{batch},{length},{heads * width}"
    split = f".view({batch}, {length}, {heads}, {width}).transpose(1, 2)"
    weights = f"torch.softmax(q{split} @ k{split}.transpose(2, 3) * {width**-0.5} + m, -1)"
    body = f"({weights} @ v{split}).transpose(1, 2).reshape({batch}, {length}, {heads * width})"
    return [f"q: {side}", f"k: {side}", f"v: {side}", f"m: {batch},1,1,{length}"], body


def convolution_rows(pyrite_json, threads, repeat):
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "convolution.py"
        for name, text in CONVOLUTIONS.items():
            images, inner, size, outer, window, stride, groups = map(int, text.split(","))
            shapes = [f"x: {images},{inner},{size},{size}", f"w: {outer},{inner // groups},{window},{window}"]
            body = f"torch.conv2d(x, w, None, ({stride}, {stride}), ({window // 2}, {window // 2}), (1, 1), {groups})"
            for gradients in (False, True):
                program = source(shapes, body, 0, gradients)
                path.write_text(program)
                module, load_args = load_module(program, path.name)
                inputs = load_inputs(load_args, path.parent)
                theirs = fastest(lambda: call(module, inputs, gradients), repeat)
                mode = [] if gradients else ["--forward-only"]
                ours = pyrite_json("run", path, "--backend", "native", "--accuracy", "off", "--repeat", repeat, *mode, threads=threads)
                what = "train" if gradients else "forward"
                yield row(f"convolution {name} {what}", ours["run_seconds"], theirs, None)


def row(name, ours, theirs, bar):
    return {"name": name, "pyrite": ours, "torch": theirs, "ratio": ours / theirs, "bar": bar}
