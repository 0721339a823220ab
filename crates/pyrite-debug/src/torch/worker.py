"""Runs Pyrite's programs in PyTorch, each in a process of its own.

Started by Pyrite; the word `inductor` among the arguments asks for Inductor's modules. A request is a line of JSON: the folder of a
program (`program.py` as Pyrite prints it, and its storages), the backend, the modules to import first, the seed, whether gradients are
left out, and a time limit. The answer is a line too:

- `{"ok": true}`: the results lie in the folder's file `results`;
- `{"error": ...}`: what the program raised, `{"died": ...}`: how its process ended without an answer;
- `{"unknown": ..., "known": ...}`: torch has no backend of that name;
- `{"worker": ...}`: something failed that is no part of the program. It says nothing about the backend.

This process imports torch and nothing else, runs no operator, starts no thread and does not touch CUDA, so that programs run in forks of
it; the modules of a request are imported in its fork. Where this process is not that clean, every program gets a fresh interpreter.
"""

import os


def threads():
    return len(os.listdir("/proc/self/task"))


BEFORE_TORCH = threads()
# Asking the driver how many devices there are would initialise CUDA here and spoil it for forks; NVML does not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

import importlib
import json
import re
import select
import signal
import subprocess
import sys
import time
import traceback

import torch

WITH_TORCH = threads()

import torch._dynamo
import torch._dynamo.debug_utils

# How long an interpreter may take until its program starts.
START = 120

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
            empty = torch.empty(0, dtype=torch.uint8, device=storage.device)
            raw = empty.set_(storage).cpu().numpy().tobytes() if storage.nbytes() else b""
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


def function_of(name):
    """The function of a name `MODULE:FUNCTION`."""
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


class Program:
    """A program of a request, ready to be called. What goes wrong until then is not its fault."""

    def __init__(self, request):
        self.request, folder = request, request["folder"]
        for module in request["imports"]:
            importlib.import_module(module)
        self.settings = request.get("settings") or {"config": {}}
        self.kept = apply_settings(self.settings) if request.get("settings") else {}
        if request["fallback_random"]:
            importlib.import_module("torch._inductor.config").fallback_random = True
        with open(os.path.join(folder, "program.py")) as file:
            text = file.read()
        scope = {"__name__": "program", "__file__": os.path.join(folder, "program.py")}
        exec(compile(text, "program.py", "exec"), scope)
        reader = SeparateStorages(save_dir=folder)
        scope["load_args"](reader)
        self.module, self.inputs = scope["Repro"](), reader.args
        self.encoder = Encoder()
        for value in self.inputs:
            if isinstance(value, torch.Tensor):
                self.encoder.storage(value)
                if value.requires_grad and not value.is_leaf:
                    value.retain_grad()
        torch.manual_seed(request["seed"])
        backend, options = request["backend"], request.get("options") or None
        if ":" in backend:
            backend = function_of(backend)
        self.called = self.module if backend == "eager" else torch.compile(self.module, backend=backend, options=options)

    def run(self, tell):
        """Calls the program, and differentiates it where that is asked for."""
        request, inputs = self.request, self.inputs
        tell({"stage": "forward"})
        with torch.set_grad_enabled(not request["forward_only"]):
            self.outputs = self.called(*inputs)
        self.gradients = [None] * len(inputs)
        if not request["forward_only"] and requires_grad(self.outputs):
            tell({"stage": "backward"})
            loss = loss_of(self.outputs)
            if loss is not None and loss.requires_grad:
                loss.backward()
            self.gradients = [dense(value.grad) if isinstance(value, torch.Tensor) else None for value in inputs]

    def write(self):
        """Writes down what the run left behind."""
        encoder, module = self.encoder, self.module
        answer = {
            "outputs": encoder.value(self.outputs),
            "gradients": encoder.value(self.gradients),
            "parameters": {name: encoder.value(dense(p.grad)) for name, p in module.named_parameters()},
            "buffers": {name: encoder.value(b) for name, b in module.state_dict(keep_vars=True).items()},
        }
        encoder.write(os.path.join(self.request["folder"], "results"), answer)

    def write_steps(self):
        for name, lines in self.kept.items():
            if name in self.settings:
                with open(self.settings[name], "w") as file:
                    json.dump(lines, file)


def file_of(frame):
    """A file's name that is the same for every program: generated files are named by a hash or numbered."""
    name = os.path.basename(frame.filename)
    if name == "program.py":
        return "the program"
    if name.startswith("<") or re.fullmatch(r"c[a-z2-7]{40,}\.py", name):
        return "generated code"
    return name


def describe(error):
    """The type, the place and the text of what torch raised, without lines and sizes in the place."""
    compiling = any(cls.__name__ in ("BackendCompilerFailed", "InductorError") for cls in type(error).__mro__)
    inner = getattr(error, "inner_exception", None) or error
    frames = traceback.extract_tb(inner.__traceback__) or traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name} in {file_of(frames[-1])}" if frames else None
    memory = isinstance(inner, MemoryError) or "can't allocate memory" in str(inner)
    message = str(inner) or str(error)
    return {"compiling": compiling, "kind": type(inner).__name__, "place": place, "memory": memory, "message": message[:4000]}


def was_forked_too_late(error):
    """Whether a fork cannot use CUDA because its parent did: the program is not asked at all."""
    return "Cannot re-initialize CUDA in forked subprocess" in str(error)


def answer_in(request, tell):
    """Answers a request in this process, and tells how far it came. Each part runs under a guard of its own."""
    try:
        program = Program(request)
    except torch._dynamo.exc.InvalidBackend:
        return {"unknown": request["backend"], "known": sorted(torch._dynamo.list_backends(()))}
    except BaseException as error:
        return {"worker": f"before the program started: {type(error).__name__}: {error}", "again": was_forked_too_late(error)}
    try:
        program.run(tell)
    except BaseException as error:
        if was_forked_too_late(error):
            return {"worker": str(error), "again": True}
        answer = {"error": describe(error)}
    else:
        tell({"stage": "done"})
        try:
            program.write()
        except BaseException as error:
            return {"worker": f"the results cannot be written down: {type(error).__name__}: {error}"}
        answer = {"ok": True}
    try:
        program.write_steps()
    except BaseException as error:
        return {"worker": f"the steps cannot be written down: {type(error).__name__}: {error}"}
    return answer


def serve_one(request, channel):
    """Answers one request through a pipe, and ends this process."""

    def tell(message):
        os.write(channel, json.dumps(message).encode() + b"\n")

    # What a backend prints is no answer.
    os.dup2(2, 1)
    if torch.cuda._is_in_bad_fork():
        tell({"worker": "this process was forked after CUDA was initialised", "again": True})
        os._exit(0)
    try:
        tell(answer_in(request, tell))
    finally:
        os._exit(0)


class Child:
    """A process that answers one request, and what it has told so far."""

    def __init__(self, pid, channel, request):
        self.pid, self.channel, self.request = pid, channel, request
        self.stage, self.said, self.rest = None, None, b""
        # When the process, and then each stage of the program, began: time limits count from here.
        self.began = time.monotonic()
        self.is_reaped = False

    def hear(self, wait):
        """Reads what the process has told, for which it waits a moment; whether there was something."""
        if not select.select([self.channel], [], [], wait)[0]:
            return False
        data = os.read(self.channel, 65536)
        if not data:
            # It has closed its end; what is left is to see how it ends.
            time.sleep(wait)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for message in map(json.loads, lines):
            if "stage" in message:
                self.stage, self.began = message["stage"], time.monotonic()
            else:
                self.said = message
        return bool(data)

    def runs(self):
        """Whether it is the program that runs now, and not what is around it."""
        return self.stage not in (None, "done")

    def answer(self):
        """The answer, or how the process ended without one."""
        parent, pause, status = os.getppid(), 0.0005, None
        try:
            while self.said is None:
                done, status = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    self.is_reaped = True
                    while self.hear(0):
                        pass
                    break
                limit = self.request["time_limit"] if self.runs() else START
                if time.monotonic() > self.began + limit or os.getppid() != parent:
                    return {"died": {"hang": True}, "stage": self.stage} if self.runs() else self.around(f"no answer within {limit} s")
                self.hear(pause)
                pause = min(pause * 1.5, 0.02)
        finally:
            self.end()
        if self.said is not None:
            return {**self.said, "stage": self.stage or "forward"}
        ending = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exit": os.WEXITSTATUS(status)}
        return {"died": ending, "stage": self.stage} if self.runs() else self.around(f"the process ended, {ending}")

    def around(self, what):
        return {"worker": f"{'before the program started' if self.stage is None else 'after the program ran'}: {what}"}

    def end(self):
        """Ends the process, where it has not ended, and all that it has started."""
        os.close(self.channel)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        if not self.is_reaped:
            # It may not have come to lead a group yet.
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Forks:
    """Programs in forks of this process."""

    def start(self, request):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.close(reading)
            serve_one(request, writing)
        os.close(writing)
        return Child(pid, reading, request)


class Spawned:
    """Programs in fresh interpreters. The next one starts while a program runs."""

    def __init__(self):
        self.next = self.started()

    def started(self):
        reading, writing = os.pipe()
        source = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        words = [sys.executable, "-c", source, *sys.argv[1:], f"--once={writing}"]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=2, pass_fds=[writing], process_group=0)
        os.close(writing)
        return process, reading

    def start(self, request):
        (process, reading), self.next = self.next, None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.close()
        except OSError:
            # It ended while it started, which its answer tells.
            pass
        child = Child(process.pid, reading, request)
        self.next = self.started()
        return child


def is_clean():
    """Whether forks of this process are as good as fresh ones: no thread but those that importing torch starts, no CUDA."""
    return BEFORE_TORCH == 1 and threads() == WITH_TORCH and not torch.cuda.is_initialized()


def prepare_inductor():
    """What Inductor does before its first program, once for all forks: it imports, hashes torch's sources, and traces its
    patterns with fake tensors, so no operator runs. Where a version of torch has none of this, each fork does it for itself. Patterns look
    at CUDA devices where there are any, so they are left to forks there."""
    import tqdm
    from torch._inductor import codecache
    from torch._inductor.codegen import common
    from torch._inductor.fx_passes import joint_graph, post_grad

    # Progress bars would start a thread.
    tqdm.tqdm.monitor_interval = 0
    steps = [
        codecache.torch_key,
        torch._dynamo.list_backends,
        lambda: importlib.import_module("torch.utils.cpp_extension"),
        lambda: importlib.import_module("sympy.tensor.tensor"),
    ]
    if not os.path.exists("/dev/nvidiactl"):
        steps += [codecache.CacheBase.get_system, common.init_backend_registration, joint_graph.lazy_init, post_grad.lazy_init]
    for step in steps:
        try:
            step()
        except Exception:
            pass


def main():
    once = next((word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--once=")), None)
    if "inductor" in sys.argv[1:]:
        importlib.import_module("torch._inductor.compile_fx")
        if not once:
            prepare_inductor()
    if once:
        line = sys.stdin.readline()
        if line:
            serve_one(json.loads(line), int(once))
        return
    way = Forks() if is_clean() else Spawned()
    print(json.dumps({"ready": torch.__version__, "forks": isinstance(way, Forks)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = way.start(request).answer()
        if answer.get("again") and isinstance(way, Forks):
            way = Spawned()
            answer = way.start(request).answer()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
