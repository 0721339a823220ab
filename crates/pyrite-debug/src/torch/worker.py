"""Runs Pyrite's programs in PyTorch, one forked process for each.

Started by Pyrite with the modules to import as arguments. Imports torch once and runs no operator itself, so that forking is safe. A
request is a line of JSON: the folder of a program (`program.py` as Pyrite prints it, and its storages), the backend, the seed, whether
gradients are left out, and a time limit. The answer is a line too: `{"ok": true}` when the results lie in the folder's file `results`,
`{"error": ...}` for what torch raised, `{"died": ...}` when the process did not answer.
"""

import importlib
import json
import os
import re
import signal
import sys
import time
import traceback

import torch
import torch._dynamo
import torch._dynamo.debug_utils

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
}


class SeparateStorages(torch._dynamo.debug_utils.InputReader):
    """torch's reader gives storages of equal bytes the same memory; here each storage is one of its own."""

    def storage(self, *args, **kwargs):
        return super().storage(*args, **kwargs).clone()


def parts_of(tensor):
    """A sparse tensor as its layout, its sizes, and the tensors that make it up, coalesced where places may repeat."""
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        parts = [tensor.indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    else:
        parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [str(tensor.layout), list(tensor.shape), *parts]


def dense(value):
    return value.to_dense() if isinstance(value, torch.Tensor) and value.layout != torch.strided else value


class Encoder:
    """Values as JSON over numbered storages."""

    def __init__(self):
        self.storages = []

    def storage(self, tensor):
        storage = tensor.untyped_storage()
        for index, known in enumerate(self.storages):
            if known._cdata == storage._cdata:
                return index
        self.storages.append(storage)
        return len(self.storages) - 1

    def value(self, value):
        if isinstance(value, torch.Tensor) and value.layout != torch.strided:
            return self.value(parts_of(value.detach()))
        if isinstance(value, torch.Tensor):
            value = value.detach().resolve_conj().resolve_neg()
            return {
                "tensor": {
                    "dtype": DTYPES[value.dtype],
                    "shape": list(value.shape),
                    "stride": list(value.stride()),
                    "offset": value.storage_offset(),
                    "storage": self.storage(value),
                }
            }
        if value is None:
            return None
        if isinstance(value, bool):
            return {"bool": value}
        if isinstance(value, int):
            return {"int": value}
        if isinstance(value, float):
            return {"float": value if value == value and abs(value) != float("inf") else str(value)}
        if isinstance(value, dict):
            return {"list": [self.value(item) for item in value.values()]}
        if isinstance(value, (list, tuple)):
            return {"list": [self.value(item) for item in value]}
        return {"str": str(value)}

    def write(self, path, answer):
        table, parts, offset = [], [], 0
        for storage in self.storages:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes() if storage.nbytes() else b""
            table.append({"offset": offset, "nbytes": len(raw)})
            parts.append(raw)
            offset += len(raw)
        with open(path, "wb") as file:
            file.write(json.dumps({**answer, "storages": table}).encode() + b"\n" + b"".join(parts))


def loss_of(value):
    """The mean of means, as Pyrite has it; None where nothing counts."""
    if isinstance(value, torch.Tensor):
        if not (value.is_floating_point() or value.is_complex()):
            return None
        mean = dense(value).mean()
        return mean.real if mean.is_complex() else mean
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        parts = [part for part in (loss_of(item) for item in value) if part is not None]
        return sum(parts) / len(parts) if parts else None
    return None


def requires_grad(value):
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, (list, tuple)) and any(requires_grad(item) for item in value)


def mark(folder, stage):
    with open(os.path.join(folder, "stage"), "w") as file:
        file.write(stage)


def number_steps(settings):
    """Decides in the place of torch's own bisector which steps of a subsystem are taken, and keeps their names."""
    from torch._inductor.compiler_bisector import CompilerBisector

    limit, skip, steps = settings.get("limit"), settings.get("skip", []), []

    def disabled(backend, subsystem, debug_info=None):
        if subsystem != settings["subsystem"]:
            return False
        number = len(steps)
        steps.append(str(debug_info()) if debug_info else f"step {number}")
        return number in skip or (limit is not None and number >= limit[0])

    CompilerBisector.disable_subsystem = disabled
    return steps


def apply_settings(settings):
    """Settings of the compiler for this program alone; returns what is to be written down when it has run."""
    import torch._functorch.config
    import torch._inductor.config

    for name, value in settings["config"].items():
        *path, last = name.split(".")
        place = torch._inductor.config
        for part in path:
            place = getattr(place, part)
        if not hasattr(place, last):
            raise ValueError(f"torch._inductor.config has no setting {name}")
        setattr(place, last, value)
    kept = {}
    if "subsystem" in settings or "code" in settings:
        # A graph that is taken from a cache was made with other steps. Kernels are found by their source.
        torch._inductor.config.fx_graph_cache = False
        torch._functorch.config.enable_autograd_cache = False
    if "subsystem" in settings:
        kept["steps"] = number_steps(settings)
    if "code" in settings:
        from torch._inductor.graph import GraphLowering

        kept["code"] = []
        GraphLowering.save_output_code = staticmethod(kept["code"].append)
    return kept


def run(request):
    settings = request.get("settings") or {"config": {}}
    kept = apply_settings(settings) if request.get("settings") else {}
    try:
        run_program(request)
    finally:
        for name, lines in kept.items():
            if name in settings:
                with open(settings[name], "w") as file:
                    json.dump(lines, file)


def run_program(request):
    folder = request["folder"]
    with open(os.path.join(folder, "program.py")) as file:
        text = file.read()
    scope = {"__name__": "program", "__file__": os.path.join(folder, "program.py")}
    exec(compile(text, "program.py", "exec"), scope)
    reader = SeparateStorages(save_dir=folder)
    scope["load_args"](reader)
    module, inputs = scope["Repro"](), reader.args
    encoder = Encoder()
    for value in inputs:
        if isinstance(value, torch.Tensor):
            encoder.storage(value)
    wanted = [value for value in inputs if isinstance(value, torch.Tensor) and value.requires_grad]
    for value in wanted:
        if not value.is_leaf:
            value.retain_grad()
    torch.manual_seed(request["seed"])
    backend = request["backend"]
    called = module if backend == "eager" else torch.compile(module, backend=backend, options=request.get("options") or None)
    mark(folder, "forward")
    with torch.set_grad_enabled(not request["forward_only"]):
        outputs = called(*inputs)
    gradients = [None] * len(inputs)
    if not request["forward_only"] and requires_grad(outputs):
        mark(folder, "backward")
        loss = loss_of(outputs)
        if loss is not None and loss.requires_grad:
            loss.backward()
        gradients = [dense(value.grad) if isinstance(value, torch.Tensor) else None for value in inputs]
    answer = {
        "outputs": encoder.value(outputs),
        "gradients": encoder.value(gradients),
        "parameters": {name: encoder.value(dense(p.grad)) for name, p in module.named_parameters()},
        "buffers": {name: encoder.value(b) for name, b in module.state_dict(keep_vars=True).items()},
    }
    encoder.write(os.path.join(folder, "results"), answer)


def file_of(frame):
    """A file's name that is the same for every program: generated files are named by a hash or numbered."""
    name = os.path.basename(frame.filename)
    if name.startswith("<") or re.fullmatch(r"c[a-z2-7]{40,}\.py", name):
        return "generated code"
    return name


def describe(error):
    """The type and the place of what torch raised, without lines and sizes."""
    compiling = any(cls.__name__ in ("BackendCompilerFailed", "InductorError") for cls in type(error).__mro__)
    inner = getattr(error, "inner_exception", None) or error
    frames = traceback.extract_tb(inner.__traceback__) or traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name} in {file_of(frames[-1])}" if frames else None
    memory = isinstance(inner, MemoryError) or "can't allocate memory" in str(inner)
    return {"compiling": compiling, "kind": type(inner).__name__, "place": place, "memory": memory, "message": str(error)[:4000]}


def child(request):
    code = 1
    try:
        try:
            run(request)
        except BaseException as error:
            with open(os.path.join(request["folder"], "error"), "w") as file:
                json.dump(describe(error), file)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def answer(request):
    folder = request["folder"]
    mark(folder, "compile")
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        # What a backend prints is no answer.
        os.dup2(2, 1)
        child(request)
    deadline = time.monotonic() + request["time_limit"]
    pause = 0.0005
    parent = os.getppid()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline or os.getppid() != parent:
            for kill in (lambda: os.killpg(pid, signal.SIGKILL), lambda: os.kill(pid, signal.SIGKILL)):
                try:
                    kill()
                except OSError:
                    pass
            os.waitpid(pid, 0)
            return {"died": {"hang": True}, "stage": stage_of(folder)}
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    if os.WIFSIGNALED(status):
        return {"died": {"signal": os.WTERMSIG(status)}, "stage": stage_of(folder)}
    error = os.path.join(folder, "error")
    if os.path.exists(error):
        with open(error) as file:
            return {"error": json.load(file), "stage": stage_of(folder)}
    if os.path.exists(os.path.join(folder, "results")):
        return {"ok": True}
    return {"died": {"exit": os.WEXITSTATUS(status)}, "stage": stage_of(folder)}


def stage_of(folder):
    with open(os.path.join(folder, "stage")) as file:
        return file.read()


def prepare_inductor():
    """What Inductor does before its first program, once for all forks: it imports, hashes torch's sources, and traces its
    patterns with fake tensors, so no operator runs. Where a version of torch has none of this, each fork does it for itself."""
    from torch._inductor import codecache
    from torch._inductor.codegen import common
    from torch._inductor.fx_passes import joint_graph, post_grad

    for step in (
        codecache.torch_key,
        codecache.CacheBase.get_system,
        common.init_backend_registration,
        joint_graph.lazy_init,
        post_grad.lazy_init,
        torch._dynamo.list_backends,
        lambda: importlib.import_module("torch.utils.cpp_extension"),
        lambda: importlib.import_module("sympy.tensor.tensor"),
    ):
        try:
            step()
        except Exception:
            pass


def main():
    for module in sys.argv[1:]:
        if module != "inductor":
            importlib.import_module(module)
        else:
            importlib.import_module("torch._inductor.compile_fx")
            prepare_inductor()
    print(json.dumps({"ready": torch.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
