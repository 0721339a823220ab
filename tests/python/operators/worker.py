"""Client of `pyrite worker`: runs an FX graph with torch tensors in a Pyrite process and brings the results back as torch tensors.

A message in either direction is one line of JSON, followed by as many raw bytes as its field `blob` says. Tensors travel as metadata over
numbered storages, so that aliasing and mutation stay visible: the first storages of an answer are the input storages after the run, in the
order in which they were sent. `torch_worker.py` speaks the same protocol with torch as the engine.
"""

import json
import math
import os
import select
import subprocess
import time
from dataclasses import dataclass, field

import torch

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "b8": torch.bool,
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Untransportable(Exception):
    """A value that the protocol has no form for (a sparse tensor, a generator, a dtype Pyrite does not have)."""


def storage_bytes(storage):
    return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes()


def storage_of(raw):
    """A storage of its own with the given bytes; empty ones too."""
    storage = torch.UntypedStorage(len(raw))
    if raw:
        torch.empty(0, dtype=torch.uint8).set_(storage).copy_(torch.frombuffer(bytearray(raw), dtype=torch.uint8))
    return storage


class Encoder:
    """Turns values into JSON and collects the storages they lie in."""

    def __init__(self, storages=()):
        self.storages = list(storages)
        self.index = {storage._cdata: k for k, storage in enumerate(self.storages)}

    def storage(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.index:
            self.index[storage._cdata] = len(self.storages)
            self.storages.append(storage)
        return self.index[storage._cdata]

    def value(self, value):
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
                raise Untransportable(f"a tensor with layout {value.layout} on {value.device}")
            if value.is_conj() or value.is_neg():
                raise Untransportable("a tensor with a lazy conjugate or negative bit")
            return {
                "tensor": {
                    "dtype": self.dtype(value.dtype),
                    "shape": list(value.shape),
                    "stride": list(value.stride()),
                    "offset": value.storage_offset(),
                    "storage": self.storage(value),
                }
            }
        if isinstance(value, bool):
            return {"bool": value}
        if isinstance(value, int):
            return {"int": value}
        if isinstance(value, float):
            return {"float": encode_float(value)}
        if isinstance(value, complex):
            return {"complex": [encode_float(value.real), encode_float(value.imag)]}
        if isinstance(value, str):
            return {"str": value}
        if isinstance(value, torch.dtype):
            return {"dtype": self.dtype(value)}
        if isinstance(value, (list, tuple)):
            return {"list": [self.value(item) for item in value]}
        raise Untransportable(f"a value of type {type(value).__name__}")

    def dtype(self, dtype):
        if dtype not in DTYPE_NAMES:
            raise Untransportable(f"dtype {dtype}")
        return DTYPE_NAMES[dtype]

    def blob(self):
        """The table of storages and the bytes it points into."""
        table, parts, offset = [], [], 0
        for storage in self.storages:
            raw = storage_bytes(storage)
            table.append({"offset": offset, "nbytes": len(raw)})
            parts.append(raw)
            offset += len(raw)
        return table, b"".join(parts)


def encode_float(value):
    return value if math.isfinite(value) else str(value)


def decode_value(value, storages):
    if value is None:
        return None
    (kind, item), *rest = value.items()
    if rest:
        raise ValueError(f"a value with more than one kind: {value}")
    if kind == "tensor":
        tensor = torch.empty(0, dtype=DTYPES[item["dtype"]])
        return tensor.set_(storages[item["storage"]], item["offset"], item["shape"], item["stride"])
    if kind == "list":
        return [decode_value(entry, storages) for entry in item]
    if kind == "complex":
        return complex(float(item[0]), float(item[1]))
    if kind == "dtype":
        return DTYPES[item]
    return {"int": int, "float": float, "bool": bool, "str": str}[kind](item)


def decode_storages(table, blob):
    return [storage_of(blob[entry["offset"] : entry["offset"] + entry["nbytes"]]) for entry in table]


@dataclass
class Answer:
    """What came back. `kind` is "ok", what the worker said ("unsupported", "invalid", "error"), or "crashed" or "hung"."""

    kind: str
    message: str = ""
    op: str | None = None
    output: object = None
    storages: list = field(default_factory=list)

    @property
    def ok(self):
        return self.kind == "ok"


class Worker:
    """A Pyrite process that is started on first use and started again after it died or was killed for taking too long."""

    def __init__(self, command=None, time_limit=60.0):
        self.command = command or [os.environ["PYRITE_BIN"], "worker"]
        self.time_limit = time_limit
        self.process = None
        self.buffer = bytearray()
        self.next_id = 0

    def run(self, graph, inputs, seed=None, mode="eager"):
        """Runs the text of an FX module. The inputs are only read; what a run did to them is in the answer's storages."""
        encoder = Encoder()
        request = {"cmd": "run", "graph": graph, "inputs": [encoder.value(value) for value in inputs], "mode": mode}
        return self.ask_with(encoder, request, seed)

    def grad(self, graph, inputs, wants, tangents, seed=None, mode="eager"):
        """The outputs of an FX module and the gradients of its inputs: `wants` says of which, `tangents` has one per output or None."""
        encoder = Encoder()
        request = {
            "cmd": "grad",
            "graph": graph,
            "inputs": [encoder.value(value) for value in inputs],
            "wants": wants,
            "tangents": [encoder.value(value) for value in tangents],
            "mode": mode,
        }
        return self.ask_with(encoder, request, seed)

    def ask_with(self, encoder, request, seed):
        table, blob = encoder.blob()
        seeded = {} if seed is None else {"seed": seed}
        return self.ask({**request, **seeded, "storages": table}, blob)

    def ask(self, request, blob=b""):
        self.next_id += 1
        request = {"id": self.next_id, **request, "blob": len(blob)}
        try:
            self.start()
            self.send(json.dumps(request).encode() + b"\n" + blob)
            answer, blob = self.receive()
        except TimeoutError:
            self.stop()
            return Answer("hung", f"no answer within {self.time_limit:g} s")
        except (EOFError, OSError):
            code = self.stop()
            return Answer("crashed", f"the worker ended with code {code}")
        except ValueError as error:
            self.stop()
            return Answer("crashed", f"the worker's answer is not JSON: {error}")
        if answer.get("id") != self.next_id:
            self.stop()
            return Answer("crashed", f"the worker answered request {answer.get('id')} instead of {self.next_id}")
        if not answer["ok"]:
            return Answer(answer.get("kind", "error"), answer.get("message", ""), answer.get("op"))
        storages = decode_storages(answer["storages"], blob)
        return Answer("ok", output=decode_value(answer["output"], storages), storages=storages)

    def start(self):
        if self.process is None:
            self.buffer.clear()
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            os.set_blocking(self.process.stdin.fileno(), False)

    def stop(self):
        """Ends the process and returns its exit code."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.stdin.close()
        try:
            # A worker that crashed is about to end by itself, and its code is worth waiting for.
            return process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdout.close()

    def send(self, data):
        deadline = time.monotonic() + self.time_limit
        view = memoryview(data)
        while view:
            _, ready, _ = select.select([], [self.process.stdin], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            view = view[os.write(self.process.stdin.fileno(), view[: 1 << 16]) :]

    def receive(self):
        deadline = time.monotonic() + self.time_limit
        while b"\n" not in self.buffer:
            self.fill(deadline)
        line, _, rest = bytes(self.buffer).partition(b"\n")
        self.buffer = bytearray(rest)
        answer = json.loads(line)
        size = answer.get("blob", 0)
        while len(self.buffer) < size:
            self.fill(deadline)
        blob, self.buffer = bytes(self.buffer[:size]), self.buffer[size:]
        return answer, blob

    def fill(self, deadline):
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            raise EOFError
        self.buffer += data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
