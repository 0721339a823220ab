"""Runs Pyrite's programs in PyTorch, each in a process of its own.

Started by Pyrite; the word `inductor` among the arguments asks for Inductor's modules, and `--probe=FOLDER` says where to keep what
Inductor finds out about the processor. A request is a line of JSON: the folder of a
program (`program.py` as Pyrite prints it, and its storages), the backend, the modules to import first, the seed, whether gradients are
left out, and a time limit. The answer is a line too:

- `{"ok": true}`: the results lie in the folder's file `results`; `"changes": true` beside it says that a second call on the same inputs
  gives other results, raises or does not return;
- `{"error": ...}`: what the program raised, `{"died": ...}`: how its process ended without an answer;
- `{"fault": ...}`: what the driver says of a kernel that faulted, and which kernel it was;
- `{"unknown": ..., "known": ...}`: torch has no backend of that name;
- `{"worker": ...}`: something failed that is no part of the program. It says nothing about the backend.

This process imports torch and nothing else, runs no operator, starts no thread and does not touch CUDA, so that programs run in forks of
it; the modules of a request are imported in its fork. Where this process is not that clean, every program gets a fresh interpreter.

A kernel that faults is noticed by a later call, and nothing runs in its process after that. So a program that faults is run once more in
another process, with launches that wait for their kernels: there the call that raises is the one that launched it.
"""

import os


def threads():
    return len(os.listdir("/proc/self/task"))


BEFORE_TORCH = threads()
# Asking the driver how many devices there are would initialise CUDA here and spoil it for forks; NVML does not.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
# Importing Inductor would start processes that compile, and a thread that listens to them; forks could not use them.
os.environ["TORCH_WARM_POOL"] = "0"

import ctypes
import glob
import importlib
import json
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import torch
import torch._dynamo
import torch._dynamo.debug_utils

if "inductor" in sys.argv[1:]:
    import torch._inductor.compile_fx

WITH_TORCH = threads()

# From how many bytes of inputs on a program is called once.
LARGE = 1 << 30

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
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
}


# What the driver says of kernels that fault, and which fault that is: nothing runs in the process after that. An address far outside of
# all memory may lie where addresses of another kind begin.
FAULTS = {
    "an illegal memory access was encountered": "illegal memory access",
    "operation not supported on global/shared address space": "illegal memory access",
    "misaligned address": "misaligned address",
    "device-side assert triggered": "device-side assert",
    "unspecified launch failure": "launch failure",
    "an illegal instruction was encountered": "illegal instruction",
    "invalid program counter": "invalid program counter",
    "hardware stack error": "stack error",
    "the launch timed out and was terminated": "launch timeout",
}

# What it says where the machine is at fault: no program could run.
MACHINE = (
    "driver version is insufficient",
    "forward compatibility was attempted on non supported HW",
    "no kernel image is available for execution on the device",
    "the provided PTX was compiled with an unsupported toolchain",
    "no CUDA-capable device is detected",
    "CUDA-capable device(s) is/are busy or unavailable",
    "uncorrectable ECC error encountered",
    "system not yet initialized",
    "system has unsupported display driver / cuda driver combination",
    "Found no NVIDIA driver on your system",
    "The NVIDIA driver on your system is too old",
    "CUDA driver initialization failed",
    "Torch not compiled with CUDA enabled",
    "invalid device ordinal",
)

# What it says in forks of a process that has used it.
FORKED_TOO_LATE = ("Cannot re-initialize CUDA in forked subprocess", "CUDA error: initialization error")


def driver_is_initialised():
    """Whether CUDA's driver was initialised in this process, asked of the driver itself; a fork cannot use it then."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    not_initialised = 3
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != not_initialised


def is_fork_too_late():
    """Whether this process was forked from one that has used CUDA. Torch says so of every fork whose parent has counted devices, which
    importing Inductor does; where there is no driver, nothing can have been initialised."""
    if not torch.cuda._is_in_bad_fork():
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return torch.version.hip is not None
    return True


def wait_for_device():
    """Lets what was launched end, so that what goes wrong there is noticed here."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def limit_device_memory(nbytes):
    for index in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(index).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, nbytes / total), index)


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
        if isinstance(value, torch.Tensor) and value.is_meta:
            return {"str": "a tensor without data, on meta"}
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


def copied(inputs):
    """The same inputs in memory of their own."""
    storages = {}

    def copy(value):
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        own = storages.setdefault(storage._cdata, storage.clone())
        fresh = torch.empty(0, dtype=value.dtype, device=value.device).set_(own, value.storage_offset(), value.shape, value.stride())
        fresh.requires_grad_(value.requires_grad)
        if not value.is_leaf:
            # The reader gives inputs that are no leaves a history in this way.
            with torch.enable_grad():
                made = fresh.clone()
            with torch.no_grad():
                fresh = made.set_(own, value.storage_offset(), value.shape, value.stride())
            fresh.retain_grad()
        return fresh

    return [copy(value) for value in inputs]


def same(one, other):
    """Whether two calls gave the same, bit for bit, in the same layout."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.layout != torch.strided or other.layout != torch.strided:
            return one.layout == other.layout and same(parts_of(one), parts_of(other))
        if (one.dtype, one.shape, one.stride(), one.requires_grad) != (other.dtype, other.shape, other.stride(), other.requires_grad):
            return False
        raw = [value.detach().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8) for value in (one, other)]
        return torch.equal(*raw)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)


def kept(value):
    """What a call returned, looked at after another call."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: kept(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [kept(item) for item in value]
    return value


def forbid_rounded_operands(allowed):
    """Has matrix multiplications and convolutions of a GPU compute in the precision of their operands: torch lets cuDNN round
    those of convolutions to ten bits otherwise, and sums of halves be kept in halves."""
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def poison_fresh_memory():
    """Has memory that generated code allocates begin as NaN, or as the largest number of types that have none."""

    def poisoned(allocate):
        def allocated(*args):
            fresh = allocate(*args)
            rounds = fresh.is_floating_point() or fresh.is_complex()
            return fresh.fill_(float("nan") if rounds else True if fresh.dtype is torch.bool else torch.iinfo(fresh.dtype).max)

        return allocated

    for device in ("cpu", "cuda", "xpu"):
        name = f"_empty_strided_{device}"
        if hasattr(torch._C._dynamo.guards, name):
            setattr(torch._C._dynamo.guards, name, poisoned(getattr(torch._C._dynamo.guards, name)))


def limit_ptxas(level):
    """Has Triton's assembler optimise no more than this level, 0 to 3; what was assembled before is not taken."""
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    if level == 0:
        os.environ["DISABLE_PTXAS_OPT"] = "1"
    import torch._functorch.config
    import torch._inductor.config
    from triton.backends.nvidia.compiler import CUDABackend

    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    # Kernels are compiled here, and not by a process that knows nothing of this.
    torch._inductor.config.compile_threads = 1
    parse = CUDABackend.parse_options
    # Triton reads its own variable for these options only when it is imported.
    CUDABackend.parse_options = lambda self, options: parse(self, {**options, "ptx_options": f"--opt-level {level}"} if level else options)


def loss_of(value):
    """The mean of means, as Pyrite has it; None where nothing counts."""
    if isinstance(value, torch.Tensor):
        value = dense(value)
        if not (value.is_floating_point() or value.is_complex()) or value.dtype.itemsize == 1:
            return value.detach().to(torch.float64).mean()
        mean = value.mean()
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
        if request.get("device_memory") and torch.cuda.is_available():
            limit_device_memory(request["device_memory"])
        for module in request["imports"]:
            importlib.import_module(module)
        self.settings = request.get("settings") or {"config": {}, "around": {}}
        around = self.settings["around"]
        self.calls, self.look = around.get("calls", 1), around.get("look", 1)
        forbid_rounded_operands(around.get("tf32", False))
        if around.get("poison"):
            poison_fresh_memory()
        if around.get("ptxas") is not None:
            limit_ptxas(int(around["ptxas"]))
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
        backend, options = request["backend"], self.settings.get("options") or None
        if ":" in backend:
            backend = function_of(backend)
        mode, dynamic = around.get("mode"), around.get("dynamic")
        how = {"backend": backend, "options": options, "mode": mode, "dynamic": dynamic}
        self.called = self.module if backend == "eager" else torch.compile(self.module, **how)

    def run(self, tell):
        """Calls the program, and differentiates it where that is asked for; `look` calls, of which the last counts."""
        self.state = {name: value.detach().clone() for name, value in self.module.state_dict(keep_vars=True).items()}
        fits = sum(value.untyped_storage().nbytes() for value in self.inputs if isinstance(value, torch.Tensor)) < LARGE
        tries = self.request["backend"] != "eager" and self.calls == 1 and self.look == 1 and fits
        self.untouched = copied(self.inputs) if tries else None
        earlier = [copied(self.inputs) for _ in range(self.look - 1)]
        for inputs in earlier:
            self.call(inputs, tell)
            self.begin_again()
        self.outputs, self.gradients = self.call(self.inputs, tell)

    def begin_again(self):
        """Makes the module as it was before its first call."""
        with torch.no_grad():
            for name, value in self.module.state_dict(keep_vars=True).items():
                if not torch.equal(value, self.state[name]):
                    value.copy_(self.state[name])
                value.grad = None
        torch.manual_seed(self.request["seed"])

    def changes(self, tell):
        """Whether a second call gives a different result than the first."""
        if self.untouched is None:
            return False
        left = {name: (value.detach().clone(), value.grad) for name, value in self.module.state_dict(keep_vars=True).items()}
        try:
            self.begin_again()
            outputs, gradients = self.call(self.untouched, tell)
            again = {name: (value.detach(), value.grad) for name, value in self.module.state_dict(keep_vars=True).items()}
            first = (self.outputs, self.gradients, [dense(value) for value in self.inputs], left)
            return not same(first, (outputs, gradients, [dense(value) for value in self.untouched], again))
        except Exception:
            return True

    def call(self, inputs, tell):
        request = self.request
        tell({"stage": "forward"})
        copies = [copied(inputs) for _ in range(self.calls - 1)]
        with torch.set_grad_enabled(not request["forward_only"]):
            for copy in copies[1:]:
                self.called(*copy)
            outputs = self.called(*inputs)
            if copies:
                self.called(*copies[0])
                outputs = kept(outputs)
        wait_for_device()
        gradients = [None] * len(inputs)
        if not request["forward_only"] and requires_grad(outputs):
            tell({"stage": "backward"})
            loss = loss_of(outputs)
            if loss is not None and loss.requires_grad:
                loss.backward()
            wait_for_device()
            gradients = [dense(value.grad) if isinstance(value, torch.Tensor) else None for value in inputs]
        return outputs, gradients

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
    if name == "program.py" or frame.name == "kept":
        return "the program"
    if name.startswith("<") or re.fullmatch(r"c[a-z2-7]{40,}\.py", name):
        return "generated code"
    return name


def text_of(error):
    """What an exception says; nothing where asking for it raises another one."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:
        return ""


def describe(error):
    """The type, the place and the text of what torch raised, without lines and sizes in the place."""
    compiling = any(cls.__name__ in ("BackendCompilerFailed", "InductorError") for cls in type(error).__mro__)
    inner = getattr(error, "inner_exception", None) or error
    frames = traceback.extract_tb(inner.__traceback__) or traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name} in {file_of(frames[-1])}" if frames else None
    memory = "host" if isinstance(inner, MemoryError) or "can't allocate memory" in text_of(inner) else None
    if any(isinstance(each, torch.OutOfMemoryError) for each in (inner, error)):
        memory = "device"
    message = text_of(inner) or text_of(error)
    return {"compiling": compiling, "kind": type(inner).__name__, "place": place, "memory": memory, "message": message[:4000]}


def was_forked_too_late(error):
    """Whether a fork cannot use CUDA because its parent did: the program is not asked at all."""
    return any(text in text_of(error) for text in FORKED_TOO_LATE)


def said_by_driver(error, phrases):
    """Which of these phrases the driver has said in an error or in one that it was raised from."""
    while error is not None:
        text = text_of(error)
        found = next((phrase for phrase in phrases if phrase in text), None)
        if found:
            return found
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return None


def launched_by(error):
    """Who launched a kernel, by the calls that led to an error: a kernel or operator of generated code, else the last call outside of
    torch and Triton."""
    frames = traceback.extract_tb((getattr(error, "inner_exception", None) or error).__traceback__)
    for frame in reversed(frames):
        called = re.match(r"\s*(?:[\w, ]+ = )?([\w.]+?)(?:\.run)?[(\[]", frame.line or "")
        if called and file_of(frame) == "generated code":
            return called[1]
    for frame in reversed(frames):
        called = re.match(r"\s*(?:[\w, ]+ = )?([\w.]+)[(\[]", frame.line or "")
        if called and not re.search(r"/(torch|triton)/", frame.filename):
            return f"{called[1]}, called by {frame.name} in {file_of(frame)}"
    return None


def asserted(path):
    """What the first assertion that failed on a device says, among what a process has said."""
    with open(path, errors="replace") as file:
        for line in file:
            found = re.search(r"Assertion `(.*)` failed", line)
            if found:
                return found[1]
    return None


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
        if said_by_driver(error, MACHINE):
            return {"worker": f"the machine cannot run the program: {str(error).splitlines()[0]}"}
        answer = {"error": describe(error)}
        fault = said_by_driver(error, FAULTS)
        if fault:
            answer = {"fault": FAULTS[fault], "compiling": answer["error"]["compiling"], "kernel": launched_by(error)}
            # The process is of no more use.
            return answer
    else:
        tell({"stage": "done"})
        try:
            program.write()
        except BaseException as error:
            return {"worker": f"the results cannot be written down: {type(error).__name__}: {error}"}
        answer = {"ok": True}
        # From here on the first call has its results, whatever becomes of the second.
        tell({"stage": "again"})
        if program.changes(lambda message: None):
            answer["changes"] = True
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
    if request.get("waiting"):
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        heard = os.open(request["waiting"], os.O_WRONLY)
        os.dup2(heard, 2)
    if is_fork_too_late():
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
        return self.stage not in (None, "done", "again")

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
                limit = self.request["time_limit"] if self.runs() or self.stage == "again" else START
                if time.monotonic() > self.began + limit or os.getppid() != parent:
                    if self.stage == "again":
                        return {"ok": True, "changes": True, "stage": "forward"}
                    return {"died": {"hang": True}, "stage": self.stage} if self.runs() else self.around(f"no answer within {limit} s")
                self.hear(pause)
                pause = min(pause * 1.5, 0.02)
        finally:
            self.end()
        if self.said is not None:
            return {**self.said, "stage": self.stage or "forward"}
        if self.stage == "again":
            return {"ok": True, "changes": True, "stage": "forward"}
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


def named_fault(way, request, noticed):
    """What is known of a fault when every launch waits for its kernel; of no worth where it does not come again so."""
    with tempfile.NamedTemporaryFile() as heard:
        again = way.start({**request, "waiting": heard.name}).answer()
        if again.get("fault") != noticed["fault"]:
            return {"kernel": None, "late": True}
        return {"kernel": again["kernel"], "assertion": asserted(heard.name)}


def is_clean():
    """Whether forks of this process are as good as fresh ones: no thread but those that importing torch's modules starts, no CUDA."""
    return BEFORE_TORCH == 1 and threads() == WITH_TORCH and not driver_is_initialised()


def prepare_inductor():
    """What Inductor does before its first program, once for all forks: it imports, hashes torch's sources, and traces its
    patterns with fake tensors, so no operator runs. Where a version of torch has none of this, each fork does it for itself. Patterns look
    at CUDA devices where there are any, so they are left to forks there."""
    from torch._inductor import codecache
    from torch._inductor.codegen import common
    from torch._inductor.fx_passes import joint_graph, post_grad

    try:
        import tqdm
    except ImportError:
        pass
    else:
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


def probe_processor(folder):
    """Which vector instructions Inductor's code may use, found out once for all forks: Inductor compiles and loads a small library for
    each kind, which takes many times as long as a small program. The libraries stay in a folder of their own, so that the next session
    and the fresh caches of proofs have them; a file `probed` there says that they are complete. What the user's own runs left of them is
    taken over."""
    from torch._inductor import cpu_vec_isa
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    own, probed = os.environ["TORCHINDUCTOR_CACHE_DIR"], os.path.join(folder, "probed")
    known = os.path.exists(probed) and open(probed).read() == torch.__version__
    if not known and os.path.exists(probed):
        os.remove(probed)
    os.makedirs(folder, exist_ok=True)
    if not known:
        for place in (own, default_cache_dir()):
            copy_probes(place, folder)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    try:
        cpu_vec_isa.pick_vec_isa()
    finally:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = own
    if not known:
        with open(f"{probed}.{os.getpid()}", "w") as file:
            file.write(torch.__version__)
        os.replace(file.name, probed)
    copy_probes(folder, own)


def probed(folder):
    """Probes the processor, once; where that fails, each program does so for itself."""
    try:
        probe_processor(folder)
    except Exception:
        pass


def copy_probes(place, folder):
    """Copies libraries that Inductor has found to load, with their sources; a mark beside a library says that it does."""
    for mark in glob.glob(os.path.join(glob.escape(place), "*", "*.so.load_ok")):
        library = mark.removesuffix(".load_ok")
        target = os.path.join(folder, os.path.basename(os.path.dirname(mark)))
        os.makedirs(target, exist_ok=True)
        for path in (library.removesuffix(".so") + ".cpp", library, mark):
            copy = os.path.join(target, os.path.basename(path))
            if os.path.exists(path) and not os.path.exists(copy):
                shutil.copy2(path, f"{copy}.{os.getpid()}")
                os.replace(f"{copy}.{os.getpid()}", copy)


def main():
    probe = next((word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--probe=")), None)
    once = next((word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--once=")), None)
    if "inductor" in sys.argv[1:] and not once:
        prepare_inductor()
        # Where there is a GPU, most programs need none of it: the first that does asks.
        if probe and not os.path.exists("/dev/nvidiactl"):
            probe = probed(probe)
    if once:
        line = sys.stdin.readline()
        if line:
            serve_one(json.loads(line), int(once))
        return
    way = Forks() if is_clean() else Spawned()
    print(json.dumps({"ready": torch.__version__, "forks": isinstance(way, Forks)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if probe and request.get("needs_probe"):
            probe = probed(probe)
        answer = way.start(request).answer()
        if answer.get("again") and isinstance(way, Forks):
            way = Spawned()
            answer = way.start(request).answer()
        if "fault" in answer:
            answer = {**answer, **named_fault(way, request, answer)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
