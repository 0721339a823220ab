"""Pyrite's code on a GPU, right and fast: `python -m gpu.speed --out FOLDER [PART…]`, with a pyrite that this interpreter imports.

`kernels`: pointwise, softmax, layer norm, their gradients and a few more at 16384 x 4096, against double precision, copies
and Inductor. `models`: the five models, forward and one training step, against eager, with times beside eager's and
Inductor's. `faults`: an index out of bounds, outputs that are kept, sizes that change. `matmuls`: small ones against torch's. `large`:
larger models in bf16, beside Inductor's. A line of JSON each, all of them in FOLDER/speed.json; the exit code is 1 where something is wrong. Without a
GPU it says so and ends with 0. What is compared in numbers, operators and small functions and public models, is `gpu.sweep`.
"""

import argparse
import copy
import json
import sys
import time
import traceback
from pathlib import Path

import torch

import pyrite  # noqa: F401  (registers the backend)

sys.path.insert(0, str(Path(__file__).parent.parent))
RESULTS = []
ROWS, COLUMNS = 16384, 4096


def tell(part, name, **facts):
    RESULTS.append({"part": part, "name": name, **facts})
    print(json.dumps(RESULTS[-1]), flush=True)


def milliseconds(function, least=0.15, rounds=5):
    """The median time of a call on the device, over rounds of as many calls as take a while."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    function()
    torch.cuda.synchronize()
    count = max(3, min(400, int(least / max(time.perf_counter() - begun, 1e-6))))
    times = []
    for _ in range(rounds):
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        for _ in range(count):
            function()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after) / count)
    return sorted(times)[rounds // 2]


def compiled(function, backend, **options):
    torch._dynamo.reset()
    if backend == "pyrite":
        return torch.compile(function, backend="pyrite", dynamic=False, options={"strict": True, **options})
    return torch.compile(function, mode=options.get("mode"), dynamic=False)


def largest_error(have, want, scale=None):
    """The largest difference over the largest number."""
    want = want.double()
    scale = float(want.abs().max()) or 1.0
    return float((have.double() - want).abs().max()) / scale


def kernels(inductor):
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    y = torch.randn(ROWS, COLUMNS, device="cuda")
    w, b = torch.randn(COLUMNS, device="cuda"), torch.randn(COLUMNS, device="cuda")
    index = torch.randint(0, COLUMNS, (ROWS,), device="cuda")
    out = torch.empty_like(x)
    copy_time = milliseconds(lambda: out.copy_(x))
    bytes_moved = 2 * x.numel() * 4
    tell("kernels", "copy", ms=copy_time, tb_s=bytes_moved / copy_time / 1e9)
    functional = torch.nn.functional
    softmax_saved = torch.softmax(x, -1)
    mean, rstd = x.mean(-1, keepdim=True), (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
    aten = torch.ops.aten
    cases = {
        "pointwise": (lambda x, y: functional.gelu(x) * y + 1, (x, y), 3),
        "relu": (lambda x: torch.relu(x) * 2, (x,), 2),
        "softmax": (lambda x: torch.softmax(x, -1), (x,), 2),
        "log_softmax": (lambda x: torch.log_softmax(x, -1), (x,), 2),
        "layer_norm": (lambda x, w, b: functional.layer_norm(x, (COLUMNS,), w, b), (x, w, b), 2),
        "softmax_backward": (lambda g, s: aten._softmax_backward_data(g, s, -1, torch.float32), (y, softmax_saved), 3),
        "layer_norm_backward": (
            lambda g, x, mean, rstd, w, b: aten.native_layer_norm_backward(g, x, [COLUMNS], mean, rstd, w, b, [True, True, True]),
            (y, x, mean, rstd, w, b),
            3,
        ),
        "cross_entropy": (lambda x, index: functional.cross_entropy(x, index), (x, index), 1),
        "sum_columns": (lambda x: x.sum(0), (x,), 1),
        "sum_all": (lambda x: x.sum(), (x,), 1),
        "transpose": (lambda x: x.t().contiguous(), (x,), 2),
        "bf16_softmax": (lambda x: torch.softmax(x, -1), (x.bfloat16(),), 1),
    }
    for name, (function, arguments, times) in cases.items():
        moved = times * x.numel() * 4
        facts = {}
        try:
            double = [each.double() if each.is_floating_point() else each for each in arguments]
            if name == "softmax_backward":
                want = double[1] * (double[0] - (double[0] * double[1]).sum(-1, keepdim=True))
            else:
                want = function(*double)
            del double
            run = compiled(function, "pyrite", graphs=False)
            begun = time.perf_counter()
            have = run(*arguments)
            torch.cuda.synchronize()
            facts["compile_s"] = time.perf_counter() - begun
            pairs = zip(have, want) if isinstance(have, (tuple, list)) else [(have, want)]
            facts["error"] = max(largest_error(one, other) for one, other in pairs)
            facts["right"] = facts["error"] < (1e-2 if name.startswith("bf16") else 1e-5)
            del have, want
            facts["ms"] = milliseconds(lambda: run(*arguments))
            facts["of_copy"] = moved / facts["ms"] / (bytes_moved / copy_time)
            if inductor:
                run = compiled(function, "inductor")
                facts["inductor_ms"] = milliseconds(lambda: run(*arguments))
                facts["ratio"] = facts["ms"] / facts["inductor_ms"]
            facts["eager_ms"] = milliseconds(lambda: function(*arguments))
        except Exception as error:  # noqa: BLE001  (a case that fails is a result)
            traceback.print_exc()
            facts["right"], facts["failed"] = False, str(error)[:400]
        tell("kernels", name, **facts)
        torch.cuda.empty_cache()


def results_of(model, inputs, train):
    """The output and, in training, the gradients."""
    if not train:
        with torch.no_grad():
            return [model(*inputs)]
    model.zero_grad(set_to_none=True)
    output = model(*inputs)
    output.float().square().mean().backward()
    return [output.detach(), *(each.grad for each in model.parameters() if each.grad is not None)]


def resnet50():
    from torchvision.models import resnet50 as build

    return build(weights=None), (torch.randn(16, 3, 224, 224),)


def gpt2_of_12():
    from models.measured import Outputs
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    return Outputs(model), (torch.randint(0, 50257, (16, 512)),)


# Models of a size that people train, in half precision.
LARGE = {"resnet50": resnet50, "gpt2_of_12": gpt2_of_12}


def built(name):
    """A model and its inputs on the GPU."""
    from models.measured import build

    if name not in LARGE:
        model, inputs = build(name)
        return model.cuda(), tuple(each.cuda() for each in inputs)
    torch.manual_seed(0)
    model, inputs = LARGE[name]()
    return model.cuda().bfloat16().train(), tuple(each.cuda().bfloat16() if each.is_floating_point() else each.cuda() for each in inputs)


def models(names, inductor):
    from pyrite import aot

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name in names:
        for train in (False, True):
            facts = {"train": train}
            try:
                model, inputs = built(name)
                if not train:
                    model = model.eval()
                want64 = results_of(copy.deepcopy(model).double(), tuple(e.double() if e.is_floating_point() else e for e in inputs), train)
                eager = copy.deepcopy(model)
                want = results_of(eager, inputs, train)
                own = copy.deepcopy(model)
                with aot.observed() as regions:
                    run = compiled(own, "pyrite")
                    begun = time.perf_counter()
                    have = results_of(run, inputs, train)
                    torch.cuda.synchronize()
                    facts["compile_s"] = time.perf_counter() - begun
                facts["regions"], facts["segments"] = len(regions), sum(each.segments for each in regions)
                facts["is_eager"] = [each.reason for each in regions if each.is_eager]
                facts["opaque"] = sorted({each.name for region in regions for each in region.opaque})
                errors, theirs = 0.0, 0.0
                for step in range(6):  # the first ones run plainly, then one is recorded, then it is replayed
                    errors = max(errors, *(largest_error(one, exact) for one, exact in zip(have, want64)))
                    if not (train and name.startswith("resnet")):
                        have = results_of(run, inputs, train)
                theirs = max(largest_error(one, exact) for one, exact in zip(want, want64))
                facts["error"], facts["eager_error"] = errors, theirs
                facts["right"] = len(have) == len(want) and errors < max(20 * theirs, 1e-5)
                facts["ms"] = milliseconds(lambda: results_of(run, inputs, train))
                recorders = _recorders()
                facts["recorded"] = [(each.half, each.replays, each.is_refused) for each in recorders]
                facts["eager_ms"] = milliseconds(lambda: results_of(eager, inputs, train))
                plain = compiled(copy.deepcopy(model), "pyrite", graphs=False)
                facts["plain_ms"] = milliseconds(lambda: results_of(plain, inputs, train))
                if inductor:
                    for key, mode in (("inductor", None), ("reduce_overhead", "reduce-overhead")):
                        run = compiled(copy.deepcopy(model), "inductor", mode=mode)
                        begun = time.perf_counter()
                        results_of(run, inputs, train)
                        torch.cuda.synchronize()
                        facts[key + "_compile_s"] = time.perf_counter() - begun
                        facts[key + "_ms"] = milliseconds(lambda: results_of(run, inputs, train))
            except Exception as error:  # noqa: BLE001  (a model that fails is a result)
                traceback.print_exc()
                facts["right"], facts["failed"] = False, str(error)[:400]
            tell("models", name, **facts)
            torch._dynamo.reset()
            torch.cuda.empty_cache()


def _recorders():
    import gc

    from pyrite._graphs import Recorder

    return [each for each in gc.get_objects() if type(each) is Recorder and (each.replays or each.is_refused)]


def faults():
    """What must hold of calls: outputs are kept, sizes change, an index out of bounds is survived, captures work."""
    table = torch.randn(100, 8, device="cuda")

    def look_up(table, index):
        return table[index] * 2

    run = compiled(look_up, "pyrite")
    good, bad = torch.arange(5, device="cuda"), torch.tensor([1, 2, 300, 4, 5], device="cuda")
    outputs = [run(table, good) for _ in range(6)]
    right = all(torch.equal(each, look_up(table, good)) for each in outputs)
    tell("faults", "look_up", right=right)
    run(table, bad)
    torch.cuda.synchronize()
    try:
        run(table, good)
        named = "no error"
    except IndexError as error:
        named = str(error)
    again = run(table, good)
    tell("faults", "out_of_bounds", right="out of bounds" in named and torch.equal(again, look_up(table, good)), error=named)

    def normalized(x):
        return torch.softmax(x, -1) + x.mean()

    run = torch.compile(normalized, backend="pyrite", options={"strict": True})
    kept, right = [], True
    for size in (64, 96, 64, 33, 96, 64, 33, 200, 200, 200, 200, 64):
        x = torch.randn(17, size, device="cuda")
        kept.append((run(x), normalized(x)))
    right = all(torch.allclose(have, want, rtol=1e-5, atol=1e-6) for have, want in kept)
    tell("faults", "sizes_and_kept_outputs", right=right)

    def waits(x):  # for the device, which a capture refuses
        return torch.linalg.eigvals(x).abs() * 2

    run, x = compiled(waits, "pyrite"), torch.randn(5, 5, device="cuda")
    try:
        right = all(torch.allclose(run(x), waits(x), rtol=1e-4) for _ in range(5))
        torch.rand(3, device="cuda"), torch.nn.functional.dropout(x)
        tell("faults", "refused_capture", right=right, refused=[each.is_refused for each in _recorders()])
    except RuntimeError as error:
        tell("faults", "refused_capture", right=False, error=str(error))

    linear = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)).cuda()
    other = copy.deepcopy(linear)
    run = compiled(linear, "pyrite")
    right = True
    for step in range(10):  # gradients are accumulated over two calls, and two forwards come before their backwards
        x, y = torch.randn(8, 64, device="cuda"), torch.randn(8, 64, device="cuda")
        a, b = run(x), run(y)
        (a.sum() + b.square().sum()).backward()
        run(x).square().sum().backward()
        c, d = other(x), other(y)
        (c.sum() + d.square().sum()).backward()
        other(x).square().sum().backward()
        for one, two in zip(linear.parameters(), other.parameters()):
            right &= torch.allclose(one.grad, two.grad, rtol=1e-3, atol=1e-3)
        if step % 3 == 0:
            linear.zero_grad(), other.zero_grad()
    tell("faults", "accumulated_gradients", right=right)
    for model in (linear, other):
        model.zero_grad()
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (linear, other)]
    right = True
    for step in range(10):
        x = torch.randn(8, 64, device="cuda")
        for model, optimizer in ((run, optimizers[0]), (other, optimizers[1])):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
        right &= all(torch.allclose(one, two, rtol=1e-3, atol=1e-4) for one, two in zip(linear.parameters(), other.parameters()))
    tell("faults", "training_steps", right=right)
    with torch.no_grad():
        x = torch.randn(8, 64, device="cuda")
        for _ in range(5):
            run(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = run(x)
        x.copy_(torch.randn(8, 64, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        tell("faults", "captured_by_the_user", right=torch.allclose(out, linear(x), rtol=1e-4, atol=1e-5))
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            have = [run(x) for _ in range(4)][-1]
        side.synchronize()
        tell("faults", "another_stream", right=torch.allclose(have, linear(x), rtol=1e-4, atol=1e-5))


def captured(function, calls=20):
    """The time of a call among others in a CUDA graph."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    return milliseconds(graph.replay) / calls


def matmuls():
    """Small matmuls of linear layers (`nt`) and of plain matrices (`nn`): Pyrite's kernel, torch's with and without bias."""
    from pyrite import _native

    torch.backends.cuda.matmul.allow_tf32 = False
    multiply = _native.GpuMatmul()
    sizes = [(64, 256, 256), (256, 256, 256), (256, 256, 768), (256, 256, 1024), (256, 1024, 256), (260, 128, 384), (260, 512, 128), (512, 512, 512)]
    for rows, steps, columns in sizes:
        for layout in ("nn", "nt"):
            x, bias = torch.randn(rows, steps, device="cuda"), torch.randn(columns, device="cuda")
            w = torch.randn(steps, columns, device="cuda") if layout == "nn" else torch.randn(columns, steps, device="cuda").t()
            error = largest_error(multiply(x, w, bias), x.double() @ w.double() + bias.double())
            times = [captured(each) for each in (lambda: multiply(x, w, bias), lambda: torch.addmm(bias, x, w), lambda: torch.mm(x, w))]
            facts = dict(zip(("ms", "addmm_ms", "mm_ms"), times), error=error, right=error < 2e-6)
            tell("matmuls", f"{rows}x{steps}x{columns} {layout}", **facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--models", default="mlp,resnet18,vit,bert,gpt2")
    parser.add_argument("--without-inductor", action="store_true")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no GPU here: nothing is measured")
        return 0
    parts = given.parts or ["faults", "kernels", "matmuls", "models", "large"]
    for part in parts:
        try:
            if part == "faults":
                faults()
            elif part == "kernels":
                kernels(not given.without_inductor)
            elif part == "matmuls":
                matmuls()
            elif part == "models":
                models(given.models.split(","), not given.without_inductor)
            elif part == "large":
                models(list(LARGE), not given.without_inductor)
        except Exception as error:  # noqa: BLE001  (a part that fails is a result)
            traceback.print_exc()
            tell(part, "all", right=False, failed=str(error)[:400])
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "speed.json").write_text(json.dumps(RESULTS, indent=1))
    return int(any(each.get("right") is False for each in RESULTS))


if __name__ == "__main__":
    sys.exit(main())
