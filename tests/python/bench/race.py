"""Pyrite's minifier against PyTorch's: `python -m bench.race [--torch] [--repeat N]`, with PYRITE_BIN set.

The program is torchvision's resnet18 for inference as Inductor gets it, after AOT autograd and decomposition, and Inductor is told to
add one to every relu. PyTorch's minifier runs its own launcher; Pyrite reads the same file. Each starts with empty caches of compiled code,
but with Inductor's header compiled, which happens once on a machine.

For Pyrite two times are taken: until a file of three nodes lies in the result folder, and until the end, when the result is proven.
"""

import argparse
import ast
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import torch
import torch._inductor.compile_fx
import torch._inductor.config
from torch._dynamo.repro.after_aot import save_graph_repro

HERE = pathlib.Path(__file__).parent
BUG = "relu:accuracy"


def write_program(folder):
    """Writes the launcher of PyTorch's minifier for the broken model, with its storages, and returns its path and its number of nodes."""
    from torchvision.models import resnet18

    written = []

    def write(module, _example_inputs, **_options):
        def run(arguments):
            text = io.StringIO()
            save_graph_repro(text, module, arguments, "inductor_accuracy", save_dir=str(folder), command="minify", is_inference=True)
            path = folder / "launcher.py"
            # The launcher would go on with the cache of the process that wrote it.
            lines = [line for line in text.getvalue().splitlines() if "TORCHINDUCTOR_CACHE_DIR" not in line]
            path.write_text("\n".join(lines) + "\n")
            written.append((path, len(module.graph.nodes)))
            return module.forward(*arguments)

        run._boxed_call = True
        return run

    def backend(module, example_inputs):
        return torch._inductor.compile_fx.compile_fx(module, example_inputs, inner_compile=write)

    torch.manual_seed(0)
    model, image = resnet18(weights=None).eval(), torch.randn(2, 3, 64, 64)
    with torch.no_grad(), torch._inductor.config.patch("cpp.inject_relu_bug_TESTING_ONLY", BUG.partition(":")[2]):
        torch.compile(model, backend=backend, fullgraph=True)(image)
    return written[0]


def nodes_of(path):
    """How many nodes the `forward` of a repro has, as FX counts them; None while there is no such file."""
    if not path.exists():
        return None
    module = next(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
    forward = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "forward")
    lines = [line for line in forward.body if isinstance(line, (ast.Assign, ast.AnnAssign))]
    calls = [line for line in lines if not isinstance(line.value, (ast.Constant, ast.Name))]
    return len(forward.args.args) - 1 + len(calls) + 1


def environment(cache):
    return {**os.environ, "PYTHONPATH": str(HERE.parent / "debugger"), "PYRITE_TEST_BUG": BUG, "TORCHINDUCTOR_CACHE_DIR": str(cache)}


def warm_cache(folder):
    """A cache folder that holds Inductor's compiled header and nothing of the model."""
    cache = folder / "warm"
    script = "import torch; torch.compile(lambda x: x.relu() + 1)(torch.ones(3))"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}, check=True)
    return cache


def fresh_cache(folder, warm):
    cache = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "cache"
    shutil.copytree(warm, cache)
    return cache


def race_pyrite(program, folder, warm):
    """Pyrite's report, with the seconds until the file of three nodes."""
    out = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "found"
    command = [os.environ["PYRITE_BIN"], "minify", str(program), "--backend", "torch:inductor", "--python", sys.executable]
    command += ["--import", "inductor_bug", "--out", str(out), "--json"]
    start = time.perf_counter()
    running = subprocess.Popen(command, env=environment(fresh_cache(folder, warm)), stdout=subprocess.PIPE, text=True)
    three = None
    while running.poll() is None:
        time.sleep(0.05)
        if three is None and nodes_of(out / "repro.py") == 3:
            three = time.perf_counter() - start
    seconds = time.perf_counter() - start
    return {**json.loads(running.stdout.read()), "wall_seconds": seconds, "three_nodes_seconds": three}


def race_torch(program, folder, warm):
    """The seconds that PyTorch's minifier takes, and how many nodes it ends with."""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(program), "minify"], cwd=place, env=environment(fresh_cache(folder, warm)), capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"PyTorch's minifier failed:\n{done.stderr[-2000:]}")
    return {"wall_seconds": seconds, "nodes_after": nodes_of(place / "repro.py")}


def minify_chain(folder, nodes=150):
    """The seconds that Pyrite takes for a relu among sines, with a backend that adds one to every relu and compiles at once."""
    folder.mkdir()
    calls = ["relu" if k == nodes // 2 else "sin" for k in range(nodes - 2)]
    lines = [f"        v{k + 1} = torch.ops.aten.{name}.default(v{k})" for k, name in enumerate(calls)]
    header = "import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, v0 : \"f32[16, 16]\"):\n"
    (folder / "chain.py").write_text(header + "\n".join(lines) + f"\n        return (v{len(calls)},)\n")
    command = [os.environ["PYRITE_BIN"], "minify", "chain.py", "--backend", "relu_accuracy_error_TESTING_ONLY", "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    seconds = time.perf_counter() - start
    report = json.loads(done.stdout)
    assert report["proven"] and report["nodes_after"] == 3, report
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="store_true", help="run PyTorch's minifier too, which takes minutes")
    parser.add_argument("--repeat", type=int, default=1, help="how often Pyrite runs")
    chosen = parser.parse_args()
    if "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        program, nodes = write_program(folder)
        warm = warm_cache(folder)
        print(f"{nodes} nodes", file=sys.stderr)
        for _ in range(chosen.repeat):
            print(json.dumps({"pyrite": race_pyrite(program, folder, warm)}), flush=True)
        if chosen.torch:
            print(json.dumps({"torch": race_torch(program, folder, warm)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
