"""Two ratios that part 1 promises, each from one run on one machine: `python bench.py [--json FILE]`, with PYRITE_BIN set.

    read    Pyrite reads a dump of 5,000 nodes, against Python executing the same text with torch already imported: at most 1/4
    run     Pyrite's interpreter, against torch eager with the same number of threads, on the dumps of the five models: at most 4

Times are the smallest of several, which is the one that other work on the machine disturbs least. The exit code is 1 when a bar is missed.
"""

import argparse
import io
import json
import os
import pathlib
import subprocess
import sys
import time

import dump_models
import models
import torch
from dumped import load_inputs, load_module
from torch._dynamo.repro.after_aot import save_graph_repro
from torch.fx.experimental.proxy_tensor import make_fx

NODES = 5000
READ_BAR = 0.25
RUN_BAR = 4.0
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


def smallest(function, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def bench_read(directory, threads, repeat):
    path = large_dump(directory)
    text = path.read_text()
    python = smallest(lambda: load_module(text, path.name), repeat)
    pyrite = pyrite_json("show", path, "--repeat", repeat, threads=threads)["timings"]["read_seconds"]
    return {"name": f"read {path.name}", "pyrite": pyrite, "torch": python, "ratio": pyrite / python, "bar": READ_BAR}


def bench_run(directory, model, file, threads, repeat):
    path = directory / model / file
    module, load_args = load_module(path.read_text(), file)
    inputs = load_inputs(load_args, path.parent)
    with torch.no_grad():
        eager = smallest(lambda: module(*inputs), repeat + 3)
    pyrite = pyrite_json("run", path, "--repeat", repeat + 3, threads=threads)["run_seconds"]
    # The promise is about the five models themselves; the AOT graphs are there to be watched.
    bar = RUN_BAR if file == FILES[0] else None
    return {"name": f"run {model} {file}", "pyrite": pyrite, "torch": eager, "ratio": pyrite / eager, "bar": bar}


def main():
    parser = argparse.ArgumentParser(description="Compare Pyrite's reader with Python and its interpreter with torch eager.")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("--models", default=",".join(models.MODELS))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    if "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    torch.set_num_threads(chosen.threads)
    directory = dump_models.dumps()

    rows = []

    def add(row):
        rows.append(row)
        bar = f"at most {row['bar']:g}" if row["bar"] else ""
        print(f"{row['name']:40} {row['pyrite'] * 1e3:10.2f} ms {row['torch'] * 1e3:10.2f} ms  ×{row['ratio']:.3f} {bar}", flush=True)

    print(f"{'':40} {'Pyrite':>13} {'torch':>13}")
    add(bench_read(directory, chosen.threads, chosen.repeat))
    for model in chosen.models.split(","):
        for file in FILES:
            add(bench_run(directory, model, file, chosen.threads, chosen.repeat))
    missed = [row["name"] for row in rows if row["bar"] and row["ratio"] > row["bar"]]
    for name in missed:
        print(f"bar missed: {name}")
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps({"rows": rows, "missed": missed}, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
