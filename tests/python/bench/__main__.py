"""Ratios that Pyrite promises, each from one run on one machine: `python -m bench [--json FILE] [--only NAME,...]`, with PYRITE_BIN set.

    read     Pyrite reads a dump of 5,000 nodes, against Python executing the same text with torch already imported: at most 1/4
    run      Pyrite's interpreter, against torch eager with the same number of threads, on the dumps of the five models: at most 4
    save     bytes kept for the backward half by Pyrite's min-cut partitioner, against PyTorch's on the same graph: at most 1
    compile  functionalization, joint graph and partition, against AOTAutograd's on the same graph: at most 1/20
    growth   the same in Pyrite for a program of 100 times as many blocks, against 100 times the time: at most 3
    minify   Pyrite's minifier against PyTorch's on resnet18 with a bug put into Inductor (see race.py): three nodes after at most 1/8 of its
             time, the proven end after at most 1/4; and a bug in a graph of 150 nodes with a backend that compiles at once, against half
             a second. Only when asked for: PyTorch's takes minutes
    native   the native compiler against Inductor on the five models, kernels on programs of one kernel each, matmuls against
             torch.mm (see native_bench.py). Only when asked for: Inductor takes minutes
    convolutions  single convolutions against torch eager (see native_bench.py). Only when asked for
    models   models at users' sizes from Python: eager, Inductor, torch.compile(backend="pyrite"), pyrite.compile; inference and training
             (see model_bench.py, whose arguments follow `--`). Only when asked for: Inductor takes an hour
    operators  170 single operators and small fusions from Python, forward and with backward, against eager and Inductor (see
             operator_bench.py, whose arguments follow `--`). Only when asked for
    calls    a call of a module with 100 small parameters: at most 20 microseconds (see call_bench.py). Only when asked for
    trace    compiling with a trace, against without: at most 2; a compiled call likewise: at most 1.05 (see trace_bench.py)

Times are the smallest of several, which is the one that other work on the machine disturbs least. The exit code is 1 when a bar is missed.
"""

import argparse
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch._dynamo.repro.after_aot import save_graph_repro
from torch.fx.experimental.proxy_tensor import make_fx

from bench import call_bench, model_bench, native_bench, operator_bench, race, torch_aot, trace_bench
from bench.native_bench import fastest
from models import dump_models, measured
from models.dumped import load_inputs, load_module

NODES = 5000
READ_BAR = 0.25
RUN_BAR = 4.0
SAVE_BAR = 1.0
COMPILE_BAR = 1 / 20
GROWTH_BAR = 3.0
THREE_NODES_BAR = 1 / 8
END_BAR = 1 / 4
SMALL_SECONDS = 0.5
MEASURES = ["read", "run", "save", "compile", "growth", "trace"]
FILES = ["dynamo_repro.py", "aot_forward_repro.py", "aot_backward_repro.py"]


def pyrite_json(*arguments, threads):
    environment = {**os.environ, "PYRITE_NUM_THREADS": str(threads)}
    command = [os.environ["PYRITE_BIN"], *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True, text=True)
    return json.loads(done.stdout)


def large_dump(directory):
    """A dump of at least 5,000 nodes, as PyTorch writes it after AOT: blocks of a small transformer's operators, repeated."""
    path = directory / f"large_{NODES}.py"
    if not path.exists():

        def function(x, weight, bias):
            for _ in range(NODES // 13 + 1):
                hidden = torch.nn.functional.gelu(torch.addmm(bias, x, weight))
                hidden = torch.nn.functional.layer_norm(hidden, (16,), bias, bias)
                x = (x + hidden.view(2, 4, 16).transpose(0, 1).reshape(8, 16).softmax(-1)).clamp(-3, 3)
            return (x,)

        inputs = [torch.randn(8, 16), torch.randn(16, 16), torch.randn(16)]
        module = make_fx(function, tracing_mode="fake")(*inputs)
        text = io.StringIO()
        save_graph_repro(text, module, inputs, "inductor")
        path.write_text(text.getvalue())
    return path


def bench_read(directory, threads, repeat):
    path = large_dump(directory)
    text = path.read_text()
    python = fastest(lambda: load_module(text, path.name), repeat)
    pyrite = pyrite_json("show", path, "--repeat", repeat, threads=threads)["timings"]["read_seconds"]
    return {"name": f"read {path.name}", "pyrite": pyrite, "torch": python, "ratio": pyrite / python, "bar": READ_BAR}


def bench_run(directory, model, file, threads, repeat):
    path = directory / model / file
    module, load_args = load_module(path.read_text(), file)
    inputs = load_inputs(load_args, path.parent)
    with torch.no_grad():
        eager = fastest(lambda: module(*inputs), repeat + 3)
    pyrite = pyrite_json("run", path, "--forward-only", "--repeat", repeat + 3, threads=threads)["run_seconds"]
    # The promise is about the five models themselves; the AOT graphs are there to be watched.
    bar = RUN_BAR if file == FILES[0] else None
    return {"name": f"run {model} {file}", "pyrite": pyrite, "torch": eager, "ratio": pyrite / eager, "bar": bar}


def bench_save(directory, model, table, threads):
    path = directory / model / FILES[0]
    theirs = torch_aot.partition(path, table).saved_bytes()
    ours = pyrite_json("compile", path, "--decompositions", table, threads=threads)["saved_bytes"]
    return {"name": f"save {model} {table}", "unit": "MB", "pyrite": ours, "torch": theirs, "ratio": ours / theirs, "bar": SAVE_BAR}


def bench_compile(directory, model, table, threads):
    path = directory / model / FILES[0]
    theirs = torch_aot.seconds(path, table, repeat=3)
    ours = pyrite_json("compile", path, "--decompositions", table, "--repeat", 20, threads=threads)["total_seconds"]
    return {"name": f"compile {model} {table}", "pyrite": ours, "torch": theirs, "ratio": ours / theirs, "bar": COMPILE_BAR}


BLOCK = """
        product_{k} = torch.ops.aten.addmm.default(bias, x_{k}, weight)
        hidden_{k} = torch.ops.aten.gelu.default(product_{k})
        norm_{k} = torch.ops.aten.native_layer_norm.default(hidden_{k}, [16], bias, bias, 1e-05)
        item_{k} = norm_{k}[0]
        view_{k} = torch.ops.aten.view.default(item_{k}, [2, 4, 16])
        turned_{k} = torch.ops.aten.transpose.int(view_{k}, 0, 1)
        flat_{k} = torch.ops.aten.reshape.default(turned_{k}, [8, 16])
        soft_{k} = torch.ops.aten._softmax.default(flat_{k}, -1, False)
        sum_{k} = torch.ops.aten.add.Tensor(x_{k}, soft_{k})
        x_{next} = torch.ops.aten.clamp.default(sum_{k}, -3, 3)"""


def blocks(directory, count):
    """A program of so many blocks, whose inputs all want gradients."""
    body = "".join(BLOCK.format(k=k, next=k + 1) for k in range(count))
    lines = []
    for k, (shape, size) in enumerate([((8, 16), 512), ((16, 16), 1024), ((16,), 64)]):
        lines.append(f"    buf{k} = reader.storage(None, {size})")
        lines.append(f"    reader.tensor(buf{k}, {shape}, requires_grad=True, is_leaf=True)")
    path = directory / f"blocks_{count}.py"
    path.write_text(
        f"""import torch

class Repro(torch.nn.Module):
    def forward(self, x_0, weight, bias):{body}
        return (x_{count},)

def load_args(reader):
{chr(10).join(lines)}
load_args._version = 0
"""
    )
    return path


def bench_growth(directory, factor, threads):
    def measured(count):
        return pyrite_json("compile", blocks(directory, count), "--repeat", max(5, 1000 // count), threads=threads)["total_seconds"]

    small, large = measured(10), measured(10 * factor)
    return {"name": f"growth {factor} times as large", "pyrite": large, "torch": None, "ratio": large / (factor * small), "bar": GROWTH_BAR}


def bench_minify():
    """Rows of the race on resnet18, and of a chain of 150 nodes."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        small = min(race.minify_chain(folder / f"chain_{k}") for k in range(3))
        yield {"name": "minify 150 nodes", "pyrite": small, "torch": None, "ratio": small / SMALL_SECONDS, "bar": 1.0}
        program, _ = race.write_program(folder)
        warm = race.warm_cache(folder)
        ours = race.race_pyrite(program, folder, warm)
        theirs = race.race_torch(program, folder, warm)["wall_seconds"]
        for name, key, bar in (("three nodes", "three_nodes_seconds", THREE_NODES_BAR), ("end", "wall_seconds", END_BAR)):
            yield {"name": f"minify resnet18 {name}", "pyrite": ours[key], "torch": theirs, "ratio": ours[key] / theirs, "bar": bar}


def shown(value, unit):
    return f"{value / 1e6:10.2f} MB" if unit == "MB" else f"{value * 1e3:10.3f} ms"


def main():
    parser = argparse.ArgumentParser(description="Compare Pyrite's reader, interpreter and ahead-of-time autograd with torch.")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("--models", default=",".join(measured.MODELS))
    parser.add_argument("--only", default=",".join(MEASURES), help="what to measure")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="for both sides; the promises are for 1 and for 2")
    parser.add_argument("rest", nargs="*", help="arguments of model_bench.py or operator_bench.py, after `--`")
    chosen = parser.parse_args()
    alone = {"models": model_bench, "operators": operator_bench}
    if chosen.rest and chosen.only not in alone:
        parser.error(f"arguments after `--` belong to `--only {'` or `--only '.join(alone)}`")
    if chosen.only in alone:
        return alone[chosen.only].main(chosen.rest)
    if "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    torch.set_num_threads(chosen.threads)
    directory = dump_models.dumps()

    rows = []

    def add(row):
        rows.append(row)
        bar = f"at most {row['bar']:g}" if row["bar"] else ""
        ours, theirs = (" " * 13 if value is None else shown(value, row.get("unit")) for value in (row["pyrite"], row["torch"]))
        print(f"{row['name']:40} {ours} {theirs}  ×{row['ratio']:.3f} {bar}", flush=True)

    only = chosen.only.split(",")
    names = chosen.models.split(",")
    print(f"{'':40} {'Pyrite':>13} {'torch':>13}")
    if "read" in only:
        add(bench_read(directory, chosen.threads, chosen.repeat))
    if "run" in only:
        for model in names:
            for file in FILES:
                add(bench_run(directory, model, file, chosen.threads, chosen.repeat))
    for model in names:
        for table in torch_aot.DECOMPOSITIONS:
            if "save" in only:
                add(bench_save(directory, model, table, chosen.threads))
            if "compile" in only:
                add(bench_compile(directory, model, table, chosen.threads))
    if "growth" in only:
        for factor in (10, 100):
            add(bench_growth(directory, factor, chosen.threads))
    if "minify" in only:
        for row in bench_minify():
            add(row)
    if "native" in only:
        for model in names:
            for row in native_bench.model_rows(pyrite_json, directory, model, chosen.threads, chosen.repeat + 8):
                add(row)
    if "kernels" in only:
        for row in native_bench.kernel_rows(pyrite_json, chosen.threads, chosen.repeat + 8):
            add(row)
    if "matmul" in only:
        for row in native_bench.product_rows(pyrite_json, chosen.threads, chosen.repeat + 30):
            add(row)
    if "convolutions" in only:
        for row in native_bench.convolution_rows(pyrite_json, chosen.threads, chosen.repeat + 8):
            add(row)
    if "calls" in only:
        for row in call_bench.rows():
            add(row)
    if "trace" in only:
        for row in trace_bench.rows(directory, names, chosen.threads, chosen.repeat):
            add(row)
    missed = [row["name"] for row in rows if row["bar"] and row["ratio"] > row["bar"]]
    for name in missed:
        print(f"bar missed: {name}")
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps({"rows": rows, "missed": missed}, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
