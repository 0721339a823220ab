"""Writes what PyTorch dumps of the five models, with PyTorch's own writers: `python -m models.dump_models DIRECTORY [MODEL...]`.

Per model one folder, with one `storages/` that its files share:

    dynamo_repro.py                what PyTorch writes after dynamo, with real inputs
    dynamo_minifier_launcher.py    the same for its minifier
    aot_{forward,backward}_repro.py, aot_forward_minifier_launcher.py
                                   after AOT autograd without decompositions, with real inputs
    {forward,backward}_fx_graph_runnable.py, {forward,backward}_fx_graph_readable.py
                                   what Inductor compiles, as TORCH_COMPILE_DEBUG writes it, with real inputs; Inductor itself does not run
    {dynamo,aot_forward,aot_backward,inductor_forward,inductor_backward}.pt
                                   what torch eager gives for the graph of that stage, tensors in order

`dumps.json` in DIRECTORY lists them. `dumps()` makes them once and keeps them in the user's cache folder.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import sys

import torch
import torch._inductor.compile_fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.repro.after_aot import save_graph_repro
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string

from models import measured

# The files of one model, with the stage whose graph they hold.
FILES = {
    "dynamo_repro.py": "dynamo",
    "dynamo_minifier_launcher.py": "dynamo",
    "aot_forward_repro.py": "aot_forward",
    "aot_forward_minifier_launcher.py": "aot_forward",
    "aot_backward_repro.py": "aot_backward",
    "forward_fx_graph_runnable.py": "inductor_forward",
    "forward_fx_graph_readable.py": "inductor_forward",
    "backward_fx_graph_runnable.py": "inductor_backward",
    "backward_fx_graph_readable.py": "inductor_backward",
}


def tensors(outputs):
    """The tensors among the results of a graph, in order."""
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    return [value.detach() for value in outputs if isinstance(value, torch.Tensor)]


class Dumper:
    """Collects the files of one model. A dump is written at the first call of its graph, when the inputs are real."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.entries = []

    def backend(self, stage, write):
        """A compiler that calls `write(module, inputs)` before the module first runs, and runs it eagerly."""

        def compiler(module, _example_inputs, **_options):
            done = []

            def run(arguments):
                if not done:
                    done.append(True)
                    inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in arguments]
                    for value, argument in zip(inputs, arguments):
                        if isinstance(value, torch.Tensor):
                            value.requires_grad_(argument.requires_grad)
                    write(stage, module, inputs)
                    self.write_outputs(stage, module, inputs)
                return module.forward(*arguments)

            run._boxed_call = True
            return run

        return compiler

    def write(self, file, stage, module, text):
        (self.folder / file).write_text(text)
        self.entries.append({"model": self.name, "stage": stage, "file": f"{self.name}/{file}", "nodes": len(module.graph.nodes)})

    def write_outputs(self, stage, module, inputs):
        """The expected outputs, computed on copies because graphs may write to their inputs."""
        with torch.no_grad():
            outputs = module.forward(*[v.detach().clone() if isinstance(v, torch.Tensor) else v for v in inputs])
        torch.save(tensors(outputs), self.folder / f"{stage}.pt")

    def dynamo(self, stage, module, inputs):
        for file, command in (("dynamo_repro.py", "run"), ("dynamo_minifier_launcher.py", "minify")):
            text = generate_dynamo_fx_repro_string(module, inputs, "inductor", save_dir=str(self.folder), command=command)
            self.write(file, stage, module, text)

    def aot(self, stage, module, inputs):
        self.write(f"{stage}_repro.py", stage, module, self.aot_text(module, inputs, "run"))
        if stage == "aot_forward":
            self.write(f"{stage}_minifier_launcher.py", stage, module, self.aot_text(module, inputs, "minify"))

    def inductor(self, stage, module, inputs):
        direction = stage.removeprefix("inductor_")
        self.write(f"{direction}_fx_graph_runnable.py", stage, module, self.aot_text(module, inputs, "run"))
        self.write(f"{direction}_fx_graph_readable.py", stage, module, module.print_readable(print_output=False))

    def aot_text(self, module, inputs, command):
        path = self.folder / "text"
        with open(path, "w") as file:
            save_graph_repro(file, module, inputs, "inductor", save_dir=str(self.folder), command=command, stable_hash=True)
        text = path.read_text()
        path.unlink()
        return text

    def inductor_backend(self, module, example_inputs):
        """Inductor's passes, decompositions and partitioner, with our compiler in place of its code generator."""
        forward, backward = self.backend("inductor_forward", self.inductor), self.backend("inductor_backward", self.inductor)

        def inner(graph, inputs, **options):
            return (backward if options.get("is_backward") else forward)(graph, inputs)

        return torch._inductor.compile_fx.compile_fx(module, example_inputs, inner_compile=inner)


def dump(name, directory):
    """Writes the files of one model and returns their entries for the list."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    dumper = Dumper(name, folder)

    def dynamo(module, example_inputs):
        compiled = dumper.backend("dynamo", dumper.dynamo)(module, example_inputs)
        return lambda *arguments: compiled(list(arguments))

    aot = aot_autograd(
        fw_compiler=dumper.backend("aot_forward", dumper.aot),
        bw_compiler=dumper.backend("aot_backward", dumper.aot),
    )
    for backend in (dynamo, aot, dumper.inductor_backend):
        torch._dynamo.reset()
        model, inputs = measured.build(name)
        output = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)(*inputs)
        if backend is not dynamo:
            output.backward(torch.randn_like(output))
    written = {entry["file"].rpartition("/")[2]: entry["stage"] for entry in dumper.entries}
    if written != FILES:
        raise RuntimeError(f"{name}: the files {sorted(set(FILES) ^ set(written))} were not expected or are missing")
    return dumper.entries


def dump_all(directory, names=tuple(measured.MODELS)):
    entries = []
    for name in names:
        print(f"dumping {name}", file=sys.stderr, flush=True)
        entries += dump(name, directory)
    fresh = directory / f"dumps.json.{os.getpid()}"
    fresh.write_text(json.dumps(entries, indent=1) + "\n")
    fresh.replace(directory / "dumps.json")


def cached_directory():
    """Where the dumps of exactly these scripts and this torch lie."""
    if chosen := os.environ.get("PYRITE_DUMPS"):
        return pathlib.Path(chosen)
    digest = hashlib.sha256(torch.__version__.encode())
    for script in (__file__, measured.__file__):
        digest.update(pathlib.Path(script).read_bytes())
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "pyrite" / f"dumps-{digest.hexdigest()[:16]}"


def dumps():
    """The directory of the dumps; makes them if they are not there. Processes that ask at the same time wait for the first."""
    directory = cached_directory()
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "dumps.json").exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            # The list is written last, so an interrupted run is taken up again from the start.
            dump_all(directory)
    return directory


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    dump_all(target.resolve(), sys.argv[2:] or tuple(measured.MODELS))
