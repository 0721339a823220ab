"""Runs a script with every kernel of Inductor's checked, and writes the first guilty one as a file of its own.

`python kernel_check.py --out FOLDER [options] SCRIPT [arguments]`. The script runs as it would alone, except that:

- memory that generated code allocates begins with a pattern, which is a NaN where the type has one, and is followed by a red zone;
- around each launch of a kernel, generated or not, its arguments are looked at.

The first of these that is seen is a finding, in the order of the table `KINDS`. FOLDER then has `kernels.json` with what was found, and
`kernel.py`, which launches that kernel alone with the arguments it had, and compares what it leaves with what eager kernels compute for
the same nodes of the graph: exit code 1 and a line that begins with `bug: ` where the kernel is wrong. Arguments are in the file where they are
few, else in `kernel.pt` beside it.

A kernel is compared with eager on the values that the kernel itself was given, so an error is blamed on the kernel that made it and not on
those that received it. A value in a buffer is compared with the node that Inductor says it belongs to; a kernel whose outputs belong to no
node (a partial sum) is compared together with the one that uses them, and both are in the file.
"""

import argparse
import ast
import contextlib
import json
import linecache
import os
import re
import runpy
import sys
import time

import torch

# What can be found, with the word that the line of `kernel.py` has after `bug: `.
KINDS = {
    "fault": "a kernel faults on its device",
    "crash": "the process ends in a kernel",
    "overrun": "a kernel writes beyond the end of a buffer",
    "unwritten": "elements of a buffer are read or returned, and no kernel has written them",
    "nonfinite": "a kernel makes NaN or infinity of finite numbers",
    "value": "a kernel computes another value than eager",
}

# How many bytes of pattern follow each buffer.
ZONE = 4096

# A byte of pattern, for red zones and for types without NaN.
BYTE = 0xAB

# What the pattern is in a float: a signaling NaN that no arithmetic returns, so that what is left of it was never written.
PATTERNS = {
    torch.float64: (torch.int64, 0x7FF4ABABABABABAB),
    torch.float32: (torch.int32, 0x7FABABAB),
    torch.bfloat16: (torch.int16, 0x7FAB),
    torch.float16: (torch.int16, 0x7DAB),
}

# The arguments of a kernel are in its file where they have no more elements than this.
IN_FILE = 256

TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-5, 1e-5)}

# As in worker.py: this file runs alone.
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


class Found(BaseException):
    """Ends the script when the first guilty kernel is known."""


class Unknown(Exception):
    """Eager cannot say what a value should be."""


def words_of(dtype):
    """The type of integers that have the pattern of a type, and the pattern."""
    if dtype in PATTERNS:
        return PATTERNS[dtype]
    if dtype in (torch.complex64, torch.complex128):
        return words_of(torch.float32 if dtype is torch.complex64 else torch.float64)
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    whole = int.from_bytes(bytes([BYTE] * dtype.itemsize), "little")
    return size, whole if size is torch.uint8 or whole < 1 << (8 * dtype.itemsize - 1) else whole - (1 << 8 * dtype.itemsize)


def is_pattern(tensor):
    """Where a tensor still has the pattern that its memory began with."""
    kind, pattern = words_of(tensor.dtype)
    if tensor.is_complex():
        return (torch.view_as_real(tensor).view(kind) == pattern).all(-1)
    return tensor.view(kind) == pattern


def extent(size, stride):
    """How many elements of memory a tensor spans."""
    return 0 if 0 in size else 1 + sum((n - 1) * step for n, step in zip(size, stride))


def patterned(size, stride, dtype, device, zone=ZONE):
    """A tensor of pattern with a red zone behind it, and the zone."""
    used = extent(size, stride) * dtype.itemsize
    room = torch.full((used + zone,), BYTE, dtype=torch.uint8, device=device)
    kind, pattern = words_of(dtype)
    room[:used].view(kind).fill_(pattern)
    tensor = torch.empty(0, dtype=dtype, device=device).set_(room.untyped_storage(), 0, tuple(size), tuple(stride))
    return tensor, room[used:]


def overrun(zone):
    """The first and the last byte of a red zone that was written, if one was."""
    written = (zone != BYTE).nonzero()
    return (int(written[0]), int(written[-1])) if len(written) else None


def is_rounded(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def is_finite(value):
    return not is_rounded(value) or value.dtype.itemsize < 2 or bool(torch.isfinite(value).all())


def place_of(wrong):
    """The first index at which a mask is true."""
    return [int(index) for index in wrong.nonzero()[0]]


def compared(want, have, exact):
    """Where a value differs from eager's by more than rounding explains, and which tolerance said so."""
    if not is_rounded(want):
        # An integer may be made of floats that round in another way: what double precision says is right too.
        also = exact if exact is not None and exact.shape == want.shape and exact.dtype == want.dtype else want
        return (want != have) & (also != have), (0.0, 0.0)
    wide = torch.complex128 if want.is_complex() else torch.float64
    rtol, atol = TOLERANCES.get(want.dtype, (1e-7, 1e-7))
    want, have = want.to(wide), have.to(wide)
    noise = 0.0
    if exact is not None and exact.shape == want.shape:
        own = (want - exact.to(wide)).abs()
        own = own[torch.isfinite(own)]
        noise = 8 * float(own.max()) if own.numel() else 0.0
    atol += noise
    return ~torch.isclose(have, want, rtol=rtol, atol=atol, equal_nan=True), (rtol, atol)


def each_tensor(value):
    """The tensors in a structure of arguments."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from each_tensor(item)
    elif isinstance(value, dict):
        yield from each_tensor(list(value.values()))


def key_of(tensor):
    """What tells a storage from others that live at the same time."""
    return tensor.untyped_storage()._cdata


class Graph:
    """A graph that Inductor has compiled: its nodes, the node that each buffer holds, and how its kernels are defined."""

    def __init__(self, lowering, module):
        self.module, self.nodes = lowering.module, list(lowering.module.graph.nodes)
        self.placeholders = [node for node in self.nodes if node.op == "placeholder"]
        self.names = list(lowering.graph_input_names)
        self.node_of, self.origins, self.calls = {}, {}, 0
        self.inputs = dict(zip(self.names, self.placeholders))
        for buffer in list(lowering.buffers):
            with contextlib.suppress(Exception):
                name, node = buffer.get_name(), buffer.get_origin_node()
                if node is not None and isinstance(node.meta.get("val"), torch.Tensor):
                    self.node_of[name] = node
        scheduled = getattr(getattr(lowering, "scheduler", None), "nodes", [])
        for fused in scheduled:
            with contextlib.suppress(Exception):
                origins = [node for each in fused.get_nodes() if each.node is not None for node in each.node.get_origins()]
                ordered = [node for node in self.nodes if node in set(origins)]
                for each in fused.get_nodes():
                    for output in each.get_outputs():
                        self.origins[output.get_name()] = ordered
        # Buffers that a later kernel changes: what the first leaves there is no node's value yet.
        self.mutated = set(lowering.mutated_inputs)
        for operation in list(lowering.operations):
            with contextlib.suppress(Exception):
                self.mutated.update(operation.get_mutation_names())
        self.tainted = self.overwritten()
        self.path = module.__file__
        self.definitions, self.preamble = definitions_in(open(module.__file__).read())

    def overwritten(self):
        """Nodes whose memory is written by a later one, so that the value in a buffer may not be theirs. The copies into inputs at the
        end are known for what they are."""
        tainted = set()
        for node in self.nodes:
            schema = getattr(node.target, "_schema", None)
            if node.op != "call_function" or schema is None or not schema.is_mutable:
                if node.op == "call_function" and "triton_kernel_wrapper" in str(node.target):
                    tainted.update(node.all_input_nodes)
                continue
            into = node.args[0] if node.args else None
            if node.target is torch.ops.aten.copy_.default and into in self.placeholders:
                self.node_of[into.name] = node.args[1]
                continue
            tainted.update(node.all_input_nodes)
        for node in self.nodes:
            # Views of what is overwritten are overwritten too.
            if any(each in tainted for each in node.all_input_nodes):
                tainted.add(node)
        return tainted


def definitions_in(text):
    """The kernels that a generated module defines, each with the lines of its definition and the comment above it, and the lines that
    the definitions rely on."""
    lines, kernels, preamble = text.splitlines(), {}, []
    for statement in ast.parse(text).body:
        # A generated comment belongs to the statement below it.
        body = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        if isinstance(statement, ast.Assign) and body.partition(" = ")[2].startswith("async_compile."):
            start = statement.lineno - 1
            while start and lines[start - 1].startswith("#"):
                start -= 1
            kernels[statement.targets[0].id] = (body, lines[start : statement.lineno - 1])
        elif isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assign)) and not body.startswith(("call = ", "runner = ", "recursively_")):
            preamble.append(body)
    return kernels, preamble


def needed(preamble, text):
    """The lines of a preamble that a text relies on."""
    used, kept = set(re.findall(r"\w+", text)), []
    for line in reversed(preamble):
        statement = ast.parse(line).body[0]
        if isinstance(statement, ast.Assign):
            bound = {name.id for target in statement.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        else:
            bound = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        if bound & used and line not in ("import torch", "import os", "import sys"):
            used |= set(re.findall(r"\w+", line))
            kept.append(line)
    return kept[::-1]


class Launch:
    """One launch of a kernel: what it was given, and what it left."""

    def __init__(self, name, kind, graph, parameters, words, named):
        self.name, self.kind, self.graph = name, kind, graph
        # Pairs of a parameter and its value, positional first; `named` has the words that were given by name.
        self.parameters, self.words, self.named = parameters, words, named
        self.buffers, self.before, self.known, self.written = {}, {}, {}, []

    def arguments(self):
        return list(zip(self.parameters, self.words)) + list(self.named.items())

    def tensors(self):
        """Pairs of a parameter and a tensor, also of those inside of lists."""
        for name, value in self.arguments():
            found = list(each_tensor(value))
            for number, tensor in enumerate(found):
                yield (name if len(found) == 1 and value is tensor else f"{name}[{number}]"), tensor

    def may_write(self, parameter):
        """Whether a parameter may be written, by its name where Inductor chose it."""
        return not re.fullmatch(r"in_ptr\d+", parameter)


    def is_output(self, parameter):
        """Whether a parameter is written and not read, as far as its name says so."""
        return self.kind != "extern" and re.fullmatch(r"out_ptr\d+", parameter) is not None


class Memory:
    """Storages as a launch found them: on the host, since a device that faults gives nothing back."""

    def __init__(self):
        self.kept = {}

    def keep(self, tensor, device=None):
        key = key_of(tensor)
        if key not in self.kept:
            storage = tensor.untyped_storage()
            raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            self.kept[key] = raw.cpu().clone() if device is None else raw.to(device, copy=True)
        return self.kept[key]


def seen_through(tensor, raw):
    """A tensor over other memory."""
    return torch.empty(0, dtype=tensor.dtype, device=raw.device).set_(raw.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


class Checker:
    """Looks at every launch; see the module's text."""

    def __init__(self, out, imports=(), watch="values", announce=False):
        self.out, self.imports, self.watch, self.announce = out, list(imports), watch, announce
        self.zones, self.fresh = {}, {}
        self.calls = []
        self.launches = 0
        self.times = {}
        self.finding, self.busy = None, False
        self.graphs = 0
        self.checked = 0

    # Allocation.

    def allocate(self, allocated, device):
        """What generated code allocates memory with, in the place of the allocator `allocated`."""

        def allocate(size, stride, dtype):
            if self.calls and self.watch == "nan":
                # A long run for the first NaN frees its memory as it would alone.
                tensor = allocated(size, stride, dtype)
                self.calls[-1].unwritten.add(key_of(tensor))
                return tensor
            if not self.calls or any(not isinstance(n, int) for n in (*size, *stride)):
                return allocated(size, stride, dtype)
            where = torch.device("cuda", torch.cuda.current_device()) if device == "cuda" else torch.device(device)
            before, self.busy = self.busy, True
            try:
                tensor, zone = patterned(size, stride, dtype, where)
            except (KeyError, RuntimeError):
                return allocated(size, stride, dtype)
            finally:
                self.busy = before
            call = self.calls[-1]
            call.zones[key_of(tensor)] = (zone, tensor)
            return tensor

        return allocate

    # Installation.

    def install(self):
        import torch._functorch.config
        import torch._inductor.config
        from torch._inductor.graph import GraphLowering

        # Graphs from a cache would have been compiled without being looked at.
        torch._inductor.config.fx_graph_cache = False
        torch._functorch.config.enable_autograd_cache = False
        compile_to_module = GraphLowering.compile_to_module

        def compiled(lowering, *words, **named):
            module = compile_to_module(lowering, *words, **named)
            try:
                self.instrument(lowering, module)
            except Found:
                raise
            except Exception as error:
                print(f"a compiled graph is not checked: {type(error).__name__}: {error}", file=sys.stderr)
            return module

        GraphLowering.compile_to_module = compiled

    def instrument(self, lowering, module):
        graph = Graph(lowering, module)
        scope = vars(module)
        for name in graph.definitions:
            if name in scope:
                scope[name] = Kernel(self, graph, name, scope[name])
        for device in ("cpu", "cuda"):
            if f"empty_strided_{device}" in scope:
                scope[f"empty_strided_{device}"] = self.allocate(scope[f"empty_strided_{device}"], device)
        call = scope["call"]
        self.graphs += 1

        def checked(args):
            return self.run(graph, call, args)

        module.call = checked

    def run(self, graph, call, args):
        if torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            return call(args)
        current = Call(graph, list(args), self.watch)
        self.calls.append(current)
        try:
            with Operators(self) if self.watch == "values" else contextlib.nullcontext():
                results = call(args)
            self.busy = True
            for key in list(current.deferred):
                self.flush(current, key)
            self.check_results(current, results)
            return results
        finally:
            self.busy = False
            self.calls.pop()

    # Looking.

    def launched(self, launch, run, frame):
        """Runs a launch, and looks at what it was given and what it left. Operators that this takes are nobody's launches."""
        if self.busy:
            return run()
        self.busy = True
        try:
            with torch.no_grad():
                return self.looked_at(launch, run, frame)
        finally:
            self.busy = False

    def looked_at(self, launch, run, frame):
        call = self.calls[-1]
        call.name_buffers(launch, frame)
        before = Memory()
        on_device = any(tensor.is_cuda for _, tensor in launch.tensors())
        for parameter, tensor in launch.tensors():
            if self.watch == "values" or launch.may_write(parameter) and not launch.is_output(parameter):
                before.keep(tensor, None if self.watch == "values" else tensor.device)
        launch.before = before.kept
        call.held.extend(tensor for _, tensor in launch.tensors()) if self.watch == "values" else None
        read = [tensor for parameter, tensor in launch.tensors() if not self.is_fresh(call, tensor)]
        if self.watch == "nan":
            read = [tensor for parameter, tensor in launch.tensors() if not (launch.is_output(parameter) or key_of(tensor) in call.unwritten)]
        finite = all(map(is_finite, read))
        if self.watch == "values":
            for parameter, tensor in launch.tensors():
                if not launch.may_write(parameter):
                    self.flush(call, key_of(tensor))
            self.check_reads(call, launch)
            call.learn(launch)
        if self.announce:
            self.write(call, [launch], "crash", {"text": f"the process ends in {launch.name}"})
        begun = time.perf_counter()
        try:
            result = run()
            if on_device:
                torch.cuda.synchronize()
            self.count_time(launch, time.perf_counter() - begun)
        except Exception as error:
            fault = next((FAULTS[said] for said in FAULTS if said in str(error)), None)
            if fault:
                self.found(call, [launch], "fault", {"text": f"{fault} in {launch.name}", "fault": fault})
            raise
        self.launches += 1
        for parameter, tensor in launch.tensors():
            if launch.may_write(parameter):
                launch.written.append((parameter, tensor))
                call.writer[key_of(tensor)] = launch
                call.unwritten.discard(key_of(tensor))
        call.launches.append(launch)
        if launch.kind == "extern":
            launch.written += [(f"result {number}", tensor) for number, tensor in enumerate(each_tensor(result))]
        self.check_zones(call, launch)
        if finite:
            self.check_finite(call, launch)
        if self.watch == "values":
            if launch.kind != "extern":
                self.check_values(call, launch)
            call.learn_tensors([tensor for _, tensor in launch.written if not call.is_changed_later(tensor)])
        return result

    def count_time(self, launch, seconds):
        """Keeps the shortest time of a kernel's launches."""
        known = self.times.setdefault(launch.name, {"name": launch.name, "seconds": seconds, "launches": 0, "extern": launch.kind == "extern"})
        known["seconds"] = min(known["seconds"], seconds)
        known["launches"] += 1
        if launch.kind != "extern" and "code" not in known:
            known["code"] = launch.graph.definitions.get(launch.name, ("",))[0]

    def is_fresh(self, call, tensor):
        """Whether nothing was written to a tensor's memory since it was allocated."""
        return key_of(tensor) in call.zones and key_of(tensor) not in call.writer

    def check_zones(self, call, launch):
        for zone, tensor in list(call.zones.values()):
            touched = overrun(zone)
            if touched:
                name = call.buffer_name(tensor) or "a buffer"
                text = f"{launch.name} writes bytes {touched[0]} to {touched[1]} beyond the end of {name}"
                self.found(call, [launch], "overrun", {"text": text, "buffer": name, "bytes": touched})

    def check_reads(self, call, launch):
        """Elements that a kernel reads and none has written."""
        writes = {key_of(tensor) for parameter, tensor in launch.tensors() if launch.may_write(parameter)}
        for parameter, tensor in launch.tensors():
            if re.fullmatch(r"in_ptr\d+", parameter) and key_of(tensor) in call.zones and key_of(tensor) not in writes:
                self.check_written(call, tensor, f"{launch.name} reads them as {parameter}", launch)

    def check_results(self, call, results):
        for number, tensor in enumerate(results):
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and key_of(tensor) in call.zones:
                self.check_written(call, tensor, f"they are returned as result {number}", None)

    def check_written(self, call, tensor, use, reader):
        if not tensor.numel():
            return
        try:
            missing = is_pattern(tensor.detach())
        except Exception:
            return
        count = int(missing.sum())
        # A byte may be the pattern by chance.
        if not count or tensor.dtype.itemsize == 1 and tensor.dtype is not torch.bool and count < 8:
            return
        name, writer = call.buffer_name(tensor) or "a buffer", call.writer.get(key_of(tensor))
        by = writer.name if writer else "no kernel"
        first = place_of(missing)
        text = f"{count} of {tensor.numel()} elements of {name} are never written, the first at {first}: {by} writes that buffer, {use}"
        launches = [writer] if writer else [reader] if reader else []
        self.found(call, launches, "unwritten", {"text": text, "buffer": name, "count": count, "first": first})

    def check_finite(self, call, launch):
        for parameter, tensor in launch.written:
            if not is_rounded(tensor) or tensor.dtype.itemsize < 2 or self.is_fresh(call, tensor):
                continue
            bad = ~torch.isfinite(tensor.detach())
            try:
                bad &= ~is_pattern(tensor.detach())
            except Exception:
                pass
            if not bool(bad.any()):
                continue
            first = place_of(bad)
            value = tensor[tuple(first)].item()
            name = call.buffer_name(tensor) or parameter
            if self.watch == "values":
                # Whether eager does so too is what the comparison of values says.
                call.nonfinite.append((launch, name, first, value))
                continue
            eager = self.eager_says(call, launch, tensor)
            agrees = eager is not None and not bool(torch.isfinite(eager[tuple(first)]).all()) if eager is not None and eager.shape == tensor.shape else None
            if value == value and agrees:
                # A mask of infinities that the program asks for.
                continue
            who = {None: "eager was not asked", True: "eager computes the same: the program does so, not the compiler", False: "eager computes a finite number"}[agrees]
            text = f"{launch.name} makes {value} of finite inputs at {first} of {name}; {who}"
            self.found(call, [launch], "nonfinite", {"text": text, "buffer": name, "first": first, "eager_agrees": agrees})

    def eager_says(self, call, launch, tensor):
        """What eager computes for what a kernel wrote, of the values it was given."""
        call.learn(launch, live=True)
        node = call.node_in(tensor)
        try:
            return None if node is None else call.evaluate(node, {})
        except Exception:
            return None

    def flush(self, call, key):
        """Compares a buffer that several kernels have changed, now that they are done with it."""
        if key in call.deferred:
            tensor = call.deferred.pop(key)
            writers = [launch for launch in call.launches if any(key_of(other) == key for _, other in launch.written)]
            if any(launch.kind != "extern" for launch in writers):
                self.check_tensors(call, writers, [tensor])
            call.learn_tensors([tensor])

    def check_values(self, call, launch):
        now = []
        for _, tensor in launch.written:
            if call.is_changed_later(tensor):
                call.deferred[key_of(tensor)] = tensor
            else:
                now.append(tensor)
        self.check_tensors(call, [launch], now)

    def check_tensors(self, call, launches, tensors):
        launch = launches[-1]
        for tensor in tensors:
            node = call.node_in(tensor)
            if node is None or node in call.graph.tainted:
                continue
            try:
                want = call.evaluate(node, {})
            except Exception:
                continue
            if not isinstance(want, torch.Tensor) or want.shape != tensor.shape or want.dtype != tensor.dtype or not want.numel():
                continue
            try:
                exact = call.evaluate(node, {}, wide=True)
            except Exception:
                exact = None
            have = tensor.detach()
            wrong, tolerance = compared(want, have, exact)
            self.checked += 1
            if bool(wrong.any()):
                if key_of(tensor) in call.zones:
                    self.check_written(call, tensor, f"and they are the value of {node.name}", launch)
                first = place_of(wrong)
                name, index = call.buffer_name(tensor), tuple(first)
                text = f"{launch.name} leaves {have[index].item()} at {first} of {name}, eager computes {want[index].item()} for {node.name}"
                what = {"text": text, "buffer": name, "first": first, "node": node.name, "tolerance": tolerance}
                self.found(call, call.feeding(launches), "value", what)

    # Telling.

    def found(self, call, launches, kind, what):
        self.finding = self.write(call, launches, kind, what)
        raise Found

    def write(self, call, launches, kind, what):
        os.makedirs(self.out, exist_ok=True)
        guilty = launches[-1] if launches else None
        buffers = [name for _, tensor in (guilty.written or guilty.tensors()) if (name := call.buffer_name(tensor))] if guilty else []
        nodes = []
        for name in buffers if guilty and guilty.kind != "extern" else []:
            nodes += [node for node in call.graph.origins.get(name, []) if node not in nodes]
        if guilty and not nodes and guilty.name in call.graph.definitions:
            # The comment above a kernel of Triton's has them too.
            named = set(re.findall(r"%(\w+) .*= call_function", "\n".join(call.graph.definitions[guilty.name][1])))
            nodes = [node for node in call.graph.nodes if node.name in named]
        record = {
            "kind": kind,
            **what,
            "kernel": guilty.name if guilty else None,
            "generated": bool(guilty and guilty.kind != "extern"),
            "nodes": [node.name for node in nodes],
            "source": [line for node in nodes if (line := line_of(node))],
            "launches": self.launches,
            "checked": self.checked,
            "call": call.number,
            "file": None,
            "times": list(self.times.values()),
        }
        if call.nonfinite:
            launch, name, first, value = call.nonfinite[0]
            record["first_nonfinite"] = {"kernel": launch.name, "buffer": name, "first": first, "value": str(value)}
        if guilty:
            try:
                record["file"] = File(self, call, launches, kind, what, nodes).write()
            except Exception as error:
                record["why"] = f"the kernel cannot be written down: {type(error).__name__}: {error}"
        if self.watch == "nan":
            record["program"] = call.save_program(self.out)
        with open(os.path.join(self.out, "kernels.json"), "w") as file:
            json.dump(record, file, indent=1)
        return record

    def nothing(self):
        os.makedirs(self.out, exist_ok=True)
        record = {"kind": None, "launches": self.launches, "checked": self.checked, "graphs": self.graphs, "times": list(self.times.values())}
        with open(os.path.join(self.out, "kernels.json"), "w") as file:
            json.dump(record, file, indent=1)


def line_of(node):
    """The user's line that a node comes from, where torch has kept it."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.strip().splitlines() if line.strip(" ^~")]
    return f"{node.name}: {lines[-1]}" if lines else None


class Call:
    """A call of a compiled graph: the values that its nodes are known to have, and the memory of its buffers."""

    def __init__(self, graph, args, watch):
        self.graph, self.watch = graph, watch
        graph.calls += 1
        self.number = graph.calls
        self.zones, self.writer, self.launches, self.names, self.held, self.nonfinite = {}, {}, [], {}, [], []
        self.deferred = {}
        # Storages that were allocated and that no kernel wrote to yet, where what they hold is not looked at.
        self.unwritten = set()
        self.args = args
        copies = {}

        def copy(value):
            if not isinstance(value, torch.Tensor) or watch != "values" or value.layout is not torch.strided:
                return value
            raw = copies.get(key_of(value))
            if raw is None:
                storage = value.untyped_storage()
                raw = copies[key_of(value)] = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage).clone()
            return seen_through(value, raw)

        self.known = {graph.inputs[name]: copy(value) for name, value in zip(graph.names, args) if name in graph.inputs}
        self.first = dict(self.known)
        self.overwritten = {}

    def values(self):
        """The arguments as they were, as far as they are kept."""
        return [self.overwritten.get(number, value) for number, value in enumerate(self.args)]

    def save_program(self, folder):
        """Writes the graph with the inputs of this call, as torch's own dumps are written; nothing where torch cannot."""
        try:
            from torch._dynamo.repro.after_aot import save_graph_repro

            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                save_graph_repro(file, self.graph.module, self.values(), "inductor", save_dir=folder)
            return path
        except Exception as error:
            print(f"the graph cannot be written down: {type(error).__name__}: {error}", file=sys.stderr)
            return None

    def name_buffers(self, launch, frame):
        """Which variables of the generated code hold the arguments of a launch."""
        named = {}
        for name, value in frame.f_locals.items():
            if isinstance(value, torch.Tensor):
                named.setdefault(key_of(value), []).append((name, value))
        self.names.update(named)

    def buffer_name(self, tensor):
        """The variable that holds a tensor: the same view of the same memory, else any view of it."""
        found = self.names.get(key_of(tensor), [])
        same = [name for name, value in found if value.shape == tensor.shape and value.stride() == tensor.stride() and value.storage_offset() == tensor.storage_offset()]
        # A buffer that another took over has the later name.
        return (same or [name for name, _ in found] or [None])[-1]

    def node_in(self, tensor):
        """The node whose value a tensor holds, if Inductor says so."""
        found = self.names.get(key_of(tensor), [])
        for name, value in reversed(found):
            if name in self.graph.node_of and value.shape == tensor.shape and value.storage_offset() == tensor.storage_offset() and value.stride() == tensor.stride():
                return self.graph.node_of[name]
        return None

    def is_changed_later(self, tensor):
        """Whether Inductor has kernels change a buffer after the first has written it."""
        return any(name in self.graph.mutated for name, _ in self.names.get(key_of(tensor), []))

    def learn_tensors(self, tensors):
        """Keeps the values of nodes that were just written: a buffer that is reused has another node's later."""
        for tensor in tensors:
            node = self.node_in(tensor)
            if node is not None and node not in self.graph.tainted and node not in self.graph.placeholders:
                self.known[node] = tensor.detach().clone()

    def learn(self, launch, live=False):
        """Keeps the values of nodes that a launch is given and that no launch was seen to write: results of operators, or all where
        nothing was kept so far. A buffer that the launch writes holds another node's value until then."""
        writes = {key_of(tensor) for parameter, tensor in launch.tensors() if launch.may_write(parameter)}
        for parameter, tensor in launch.tensors():
            before = launch.before.get(key_of(tensor))
            # What the launch itself completes, such as a part of a cat, is not there yet.
            node = self.node_in(tensor) if key_of(tensor) not in writes and not self.is_unwritten(tensor) else None
            if node is not None and node not in self.known and node not in self.graph.placeholders:
                if tuple(tensor.shape) == tuple(node.meta["val"].shape) and node not in self.graph.tainted:
                    self.known[node] = seen_through(tensor, before).to(tensor.device, copy=True) if before is not None else tensor
            if live and before is not None:
                for number, value in enumerate(self.args):
                    if isinstance(value, torch.Tensor) and key_of(value) == key_of(tensor):
                        self.overwritten.setdefault(number, seen_through(value, before))
                        name = self.graph.names[number]
                        self.known[self.graph.inputs[name]] = self.overwritten[number]

    def is_unwritten(self, tensor):
        return key_of(tensor) in self.zones and key_of(tensor) not in self.writer

    def feeding(self, launches):
        """Launches, after those whose outputs they use and that belong to no node."""
        chain, open_ = list(launches), list(launches)
        while open_:
            current = open_.pop()
            reads = [tensor for parameter, tensor in current.tensors() if not parameter.startswith("out_ptr")]
            for tensor in reads:
                if any(name in self.graph.node_of or name in self.graph.inputs for name, _ in self.names.get(key_of(tensor), [])):
                    continue
                before = [each for each in self.launches if each is not current and any(key_of(other) == key_of(tensor) for _, other in each.written)]
                for each in before:
                    if each.kind != "extern" and each not in chain and self.launches.index(each) < self.launches.index(current):
                        chain.append(each)
                        open_.append(each)
        return sorted(chain, key=lambda each: self.launches.index(each) if each in self.launches else len(self.launches))

    def evaluate(self, node, memo, wide=False):
        """What eager kernels compute for a node from the nearest known values; in double precision where `wide`."""
        if node in memo:
            return memo[node]
        if node in self.known and memo:
            value = self.known[node]
        elif node.op == "placeholder":
            value = self.first.get(node) if node not in self.known else self.known[node]
        elif node.op == "get_attr":
            value = attribute(self.graph.module, node.target)
        elif node.op == "call_function" and not is_random(node.target):
            memo[node] = None
            given = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: self.evaluate(each, memo, wide))
            words, named = widened(copied(given)) if wide else copied(given)
            value = node.target(*words, **named)
        else:
            raise Unknown(node.name)
        value = widened(value) if wide else value
        memo[node] = value
        return value


def attribute(module, path):
    for part in path.split("."):
        module = getattr(module, part)
    return module


def is_random(target):
    tags = getattr(target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags or "seed" in str(target) or "triton_kernel_wrapper" in str(target)


def copied(value):
    """Arguments whose tensors may be written without anybody noticing."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), value)


def widened(value):
    """Arguments in double precision: floats, and the types that operators are told to return."""

    def wide(each):
        if isinstance(each, torch.Tensor):
            return each.to(torch.float64) if each.is_floating_point() else each.to(torch.complex128) if each.is_complex() else each
        return torch.float64 if isinstance(each, torch.dtype) and each.is_floating_point else each

    return torch.utils._pytree.tree_map(wide, value)


class Kernel:
    """A kernel in a generated module."""

    def __init__(self, checker, graph, name, kernel):
        self.__dict__.update(checker=checker, graph=graph, name=name, kernel=kernel)
        self.__dict__["parameters"] = parameters_of(name, graph.definitions[name][0])

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def launch(self, run, words, named, frame):
        if not self.checker.calls:
            return run(*words, **named)
        names = [self.parameters[k] if k < len(self.parameters) else f"argument {k}" for k in range(len(words))]
        launch = Launch(self.name, "triton" if hasattr(self.kernel, "run") else "cpp", self.graph, names, words, named)
        return self.checker.launched(launch, lambda: run(*words, **named), frame)

    def __call__(self, *words, **named):
        return self.launch(self.kernel, words, named, sys._getframe(1))

    def run(self, *words, **named):
        return self.launch(self.kernel.run, words, named, sys._getframe(1))


def parameters_of(name, text):
    """The names of a kernel's parameters, in the text that defines it."""
    found = re.search(rf"def {re.escape(name)}\((.*?)\):", text, re.S) or re.search(r"def \w+\((.*?)\):", text, re.S)
    if found:
        return [word.split(":")[0].split("=")[0].strip() for word in found[1].split(",") if "constexpr" not in word]
    found = re.search(r'extern "C"[^(]*\((.*?)\)', text, re.S)
    return [re.split(r"[\s*&]+", word.strip())[-1] for word in found[1].split(",")] if found else []


class Operators(torch.utils._python_dispatch.TorchDispatchMode):
    """Looks at the operators that generated code calls in the place of kernels of its own."""

    def __init__(self, checker):
        super().__init__()
        self.checker = checker

    def __torch_dispatch__(self, function, types, words=(), named=None):
        named = named or {}
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.checker.calls[-1].graph.path:
            frame = frame.f_back
        if frame is None or function.is_view or function.namespace == "prim":
            return function(*words, **named)
        schema = [argument.name for argument in function._schema.arguments]
        launch = Launch(str(function), "extern", self.checker.calls[-1].graph, schema[: len(words)], words, named)
        mutated = {argument.name for argument in function._schema.arguments if argument.is_write}
        launch.may_write = lambda parameter: parameter.partition("[")[0] in mutated
        return self.checker.launched(launch, lambda: function(*words, **named), frame)


class File:
    """`kernel.py`: launches with their arguments, and a check of what they leave."""

    def __init__(self, checker, call, launches, kind, what, nodes):
        self.checker, self.call, self.launches, self.kind, self.what, self.nodes = checker, call, launches, kind, what, nodes
        self.memory, self.tensors, self.texts = {}, {}, []

    def write(self):
        calls = [self.launch_text(launch) for launch in self.launches]
        expected = self.reference() if self.kind in ("value", "nonfinite") else None
        elements = sum(raw.numel() for raw in self.memory.values() if raw is not None)
        text = self.header() + "\n"
        generated = [launch for launch in self.launches if launch.kind != "extern"]
        text += "import os\nimport sys\n\nimport torch\n"
        known = ("aten", "prims", "inductor", "inductor_prims", "quantized")
        operators = re.findall(r"torch\.ops\.(\w+)", "\n".join([*calls, expected or ""]))
        if any(namespace not in known for namespace in operators):
            # A module of the user's defines that operator.
            text += "".join(f"import {module}\n" for module in self.checker.imports)
        if generated:
            defined = ""
            for name in dict.fromkeys(launch.name for launch in generated):
                body, comment = self.call.graph.definitions[name]
                defined += "\n\n" + "\n".join([*comment, body]) + "\n"
            text += "\n".join([*needed(self.call.graph.preamble, defined), defined, "async_compile.wait(globals())", ""])
        text += self.arguments(elements)
        body = "\n".join(f"    {line}" for line in calls)
        text += f'\n\ndef launch(t):\n    """Launches the kernel as the compiled program does."""\n{body}\n'
        if expected:
            text += "\n\n" + expected
        else:
            text += "\n\nreference = None\n"
        first = self.what.get("first")
        rtol, atol = self.what.get("tolerance") or (0.0, 0.0)
        text += f"\nKIND, FIRST, TOLERANCE, FAULT = {self.kind!r}, {first!r}, ({rtol!r}, {atol!r}), {self.what.get('fault')!r}\n"
        text += f"BUFFER, KERNEL, ZONE, BYTE = {self.guilty_buffer()!r}, {self.launches[-1].name!r}, {ZONE}, {BYTE:#x}\n"
        text += CHECK
        path = os.path.join(self.checker.out, "kernel.py")
        with open(path, "w") as file:
            file.write(text)
        return path

    def guilty_buffer(self):
        return self.result if self.kind in ("value", "nonfinite") and self.result else self.what.get("buffer")

    result = None

    def header(self):
        guilty = self.launches[-1]
        lines = [f"# pyrite: kernel = {guilty.name}", f"# pyrite: found = {self.kind}: {self.what['text']}", f"# pyrite: torch = {torch.__version__}"]
        if self.nodes:
            lines.append("# It was generated from these nodes of the graph:")
            lines += [f"#   {node.format_node()}" for node in self.nodes]
            lines += [f"#   {line}" for line in dict.fromkeys(filter(None, map(line_of, self.nodes)))]
        if len(self.launches) > 1:
            lines.append(f"# What {' and '.join(each.name for each in self.launches[:-1])} leaves is a part of its result, so it is launched before.")
        lines.append("# Exit code 1 and a line that begins with `bug: ` where the kernel is wrong, 0 where it is not, 2 where that cannot be told.")
        return "\n".join(lines) + "\n"

    # Tensors by name.

    def name_for(self, tensor, raw):
        """A name for a view of a storage whose bytes are known; equal views share one."""
        key = (key_of(tensor), tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), tensor.dtype)
        if key not in self.tensors:
            name = self.call.buffer_name(tensor) or "t"
            taken = {other for other, *_ in self.tensors.values()}
            number = 1
            unique = name
            while unique in taken:
                number += 1
                unique = f"{name}_{number}"
            self.tensors[key] = (unique, tensor)
        if key_of(tensor) not in self.memory:
            self.memory[key_of(tensor)] = raw
        return self.tensors[key][0]

    def launch_text(self, launch):
        guilty_by = []

        def shown(value):
            if isinstance(value, torch.Tensor):
                raw = launch.before.get(key_of(value))
                if raw is None and any(tensor is value and launch.is_output(parameter) for parameter, tensor in launch.tensors()):
                    # What was there is of no use to the kernel.
                    kind, pattern = words_of(value.dtype)
                    raw = torch.full((value.untyped_storage().nbytes() // kind.itemsize,), pattern, dtype=kind).view(torch.uint8)
                if raw is None:
                    raw = torch.empty(0, dtype=torch.uint8, device=value.device).set_(value.untyped_storage()).cpu()
                return f"t[{self.name_for(value, raw.cpu())!r}]"
            if isinstance(value, (list, tuple)):
                inner = ", ".join(shown(item) for item in value)
                return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if value else "()"
            if value is None or isinstance(value, (bool, int, float, str)):
                return repr(value) if not isinstance(value, float) or value == value and abs(value) != float("inf") else f"float('{value}')"
            if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
                return str(value)
            if isinstance(value, torch.device):
                return f"torch.device({str(value)!r})"
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                return repr(value.node.guard_int("", 0) if isinstance(value, torch.SymInt) else float(value))
            raise Unknown(f"an argument is a {type(value).__name__}")

        words = [shown(value) for value in launch.words]
        for name, value in launch.named.items():
            if name == "stream":
                device = next((tensor.device.index for _, tensor in launch.tensors() if tensor.is_cuda), 0)
                words.append(f"stream=torch._C._cuda_getCurrentRawStream({device or 0})")
            else:
                words.append(f"{name}={shown(value)}")
        guilty_by.append(launch.name)
        called = f"torch.ops.{launch.name}" if launch.kind == "extern" else f"{launch.name}.run" if launch.kind == "triton" else launch.name
        return f"{'return ' if launch.kind == 'extern' else ''}{called}({', '.join(words)})"

    def arguments(self, elements):
        """The function that makes the tensors."""
        fresh = {key for key, raw in self.memory.items() if self.is_all_pattern(key, raw)}
        numbers = {key: number for number, key in enumerate(self.memory)}
        saved, lines = {}, []
        few = sum(self.extent_of(key) for key in self.memory if key not in fresh) <= IN_FILE
        for key, raw in self.memory.items():
            number, tensor = numbers[key], next(tensor for (each, *_), (_, tensor) in self.tensors.items() if each == key)
            size = self.bytes_of(key)
            device = f"torch.device({str(tensor.device)!r})"
            if key in fresh:
                kind, pattern = words_of(tensor.dtype)
                lines.append(f"    m{number} = memory({size}, {device}, torch.full(({size // kind.itemsize},), {pattern}, dtype={kind}))  # never written before")
            elif few:
                count = size // tensor.dtype.itemsize
                typed = raw[: count * tensor.dtype.itemsize].view(tensor.dtype)
                if typed.dtype in (torch.bool,):
                    typed = typed.view(torch.uint8)
                values = repr(typed.tolist())
                lines.append(f"    m{number} = memory({size}, {device}, torch.tensor({values}, dtype={typed.dtype}))")
            else:
                saved[f"m{number}"] = raw[:size].clone()
                lines.append(f"    m{number} = memory({size}, {device}, saved['m{number}'])")
        for (key, shape, stride, offset, dtype), (name, _) in self.tensors.items():
            lines.append(f"    t[{name!r}] = torch.empty(0, dtype={dtype}, device=m{numbers[key]}.device).set_(m{numbers[key]}.untyped_storage(), {offset}, {shape}, {stride})")
        text = "\n\nnan, inf = float('nan'), float('inf')\nzones = {}\n" + MEMORY.replace("ZONE", str(ZONE)).replace("BYTE", hex(BYTE))
        text += '\n\ndef arguments():\n    """The tensors that the kernel was launched with, each followed by a red zone."""\n    t = {}\n'
        if saved:
            torch.save(saved, os.path.join(self.checker.out, "kernel.pt"))
            text += "    here = os.path.dirname(os.path.abspath(__file__))\n    saved = torch.load(os.path.join(here, 'kernel.pt'), weights_only=True)\n"
        text += "\n".join(lines) + "\n"
        names = {key: next(name for (each, *_), (name, _) in self.tensors.items() if each == key) for key in self.memory}
        text += "".join(f"    zones[{names[key]!r}] = m{number}\n" for key, number in numbers.items())
        return text + "    return t\n"

    def extent_of(self, key):
        tensor = next(tensor for (each, *_), (_, tensor) in self.tensors.items() if each == key)
        return self.bytes_of(key) // tensor.dtype.itemsize

    def bytes_of(self, key):
        """How many bytes of a storage its tensors reach."""
        own = self.call.zones.get(key)
        if own is not None:
            return extent(own[1].shape, own[1].stride()) * own[1].dtype.itemsize
        ends = [(offset + extent(shape, stride)) * dtype.itemsize for each, shape, stride, offset, dtype in self.tensors if each == key]
        return max(ends)

    def is_all_pattern(self, key, raw):
        tensor = next(tensor for (each, *_), (_, tensor) in self.tensors.items() if each == key)
        size, (kind, pattern) = self.bytes_of(key), words_of(tensor.dtype)
        if not size or size % kind.itemsize or raw.numel() < size:
            return False
        return bool((raw[:size].view(kind) == pattern).all())

    # The nodes as Python.

    def reference(self):
        """The nodes between the values that the kernel was given and what it leaves, as a function over eager's kernels."""
        name = self.what["buffer"]
        guilty = self.launches[-1]
        tensor = next((tensor for _, tensor in guilty.written if self.call.buffer_name(tensor) == name), None)
        node = self.call.node_in(tensor) if tensor is not None else None
        if node is None:
            return None
        self.result = self.name_for(tensor, guilty.before.get(key_of(tensor), torch.empty(0, dtype=torch.uint8)).cpu())
        graph, copies, leaves = torch.fx.Graph(), {}, []

        def copy(each):
            if each in copies:
                return copies[each]
            known = self.call.known.get(each) if each is not node or each.op == "placeholder" else None
            if each.op == "get_attr":
                known = attribute(self.call.graph.module, each.target)
            if known is not None or each.op == "placeholder":
                leaves.append((each, known))
                with graph.inserting_before(next(iter(graph.nodes))) if len(graph.nodes) else contextlib.nullcontext():
                    copies[each] = graph.placeholder(each.name.replace(".", "_"))
            else:
                for other in each.all_input_nodes:
                    copy(other)
                copies[each] = graph.node_copy(each, lambda other: copies[other])
            return copies[each]

        graph.output(copy(node))
        code = graph.python_code("self").src
        code = re.sub(r"def forward\(self,?\s*", "def reference(", code)
        code = re.sub(r"^.*?(?=def reference)", "", code, flags=re.S)
        code = re.sub(r";  \w+ = (?:\w+ = )*None", "", code)
        words = []
        for each in [placeholder.target for placeholder in graph.nodes if placeholder.op == "placeholder"]:
            leaf, value = next((leaf, value) for leaf, value in leaves if leaf.name.replace(".", "_") == each)
            if not isinstance(value, torch.Tensor):
                words.append(repr(value))
                continue
            words.append(f"t[{self.leaf_name(leaf, value)!r}]")
        text = code.rstrip() + "\n"
        return text + f"\n\ndef expected(t):\n    return reference({', '.join(words)})\n"

    def leaf_name(self, leaf, value):
        """The tensor of a known node: the kernel's argument where it is that, else a tensor of its own."""
        for (key, shape, stride, offset, dtype), (name, tensor) in self.tensors.items():
            if shape == tuple(value.shape) and dtype == value.dtype and any(self.call.graph.node_of.get(other) is leaf or self.call.graph.inputs.get(other) is leaf for other, _ in self.call.names.get(key, [])):
                raw = self.memory[key]
                if torch.equal(seen_through(tensor, raw).contiguous().view(torch.uint8), value.detach().cpu().contiguous().view(torch.uint8)):
                    return name
        own = value.detach().contiguous().clone()
        raw = torch.empty(0, dtype=torch.uint8).set_(own.cpu().untyped_storage())
        self.call.held.append(own)
        self.call.names[key_of(own)] = [(leaf.name, own)]
        return self.name_for(own, raw)


MEMORY = '''

def memory(size, device, content):
    """Memory with this content, a red zone behind it."""
    room = torch.full((size + ZONE,), BYTE, dtype=torch.uint8)
    room[:size] = content.contiguous().view(torch.uint8)[:size]
    return room.to(device)
'''

CHECK = '''

def said(what):
    print(f'bug: {KIND}: {what}', flush=True)
    os._exit(1)


if __name__ == '__main__':
    t = arguments()
    devices = {tensor.device.type for tensor in t.values()}
    if 'cuda' in devices:
        torch.cuda.synchronize()
    for name, tensor in t.items():
        if '--addresses' in sys.argv:
            print(f'address: {name} {tensor.data_ptr():#x} {tensor.element_size()} {zones[name].numel() - ZONE if name in zones else tensor.nbytes}', flush=True)
    want = expected({name: tensor.clone() for name, tensor in t.items()}) if reference else None
    if KIND == 'crash':
        print(f'where the bug is there, {KERNEL} ends this process', flush=True)
    try:
        result = launch(t)
        if 'cuda' in devices:
            torch.cuda.synchronize()
    except Exception as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        if KIND == 'fault':
            said(f'{FAULT} in {KERNEL}: {line}')
        print(f'another failure: {line}', flush=True)
        os._exit(2)
    for name, room in zones.items():
        beyond = (room[-ZONE:] != BYTE).nonzero()
        if KIND == 'overrun' and len(beyond):
            said(f'{KERNEL} writes bytes {int(beyond[0])} to {int(beyond[-1])} beyond the end of {name}')
    if KIND == 'unwritten':
        tensor, fresh = t[BUFFER], arguments()[BUFFER]
        words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
        left = tensor.contiguous().view(words) == fresh.contiguous().view(words)
        if left.reshape(tensor.shape)[tuple(FIRST)]:
            said(f'{KERNEL} leaves {int(left.sum())} of {tensor.numel()} elements of {BUFFER} unwritten, among them {FIRST}')
    if KIND == 'nonfinite':
        bad = ~torch.isfinite(t[BUFFER])
        if bad.any():
            place = tuple(int(index) for index in bad.nonzero()[0])
            eager = f', eager computes {want[place].item()}' if want is not None else ''
            said(f'{KERNEL} makes {t[BUFFER][place].item()} of finite inputs at {list(place)} of {BUFFER}{eager}')
    if KIND == 'value':
        have, (rtol, atol) = t[BUFFER], TOLERANCE
        if want.is_floating_point() or want.is_complex():
            wide = torch.complex128 if want.is_complex() else torch.float64
            wrong = ~torch.isclose(have.to(wide), want.to(wide), rtol=rtol, atol=atol, equal_nan=True)
        else:
            wrong = have != want
        if wrong.any():
            place = tuple(int(index) for index in wrong.nonzero()[0])
            said(f'{KERNEL} leaves {have[place].item()} at {list(place)} of {BUFFER}, eager computes {want[place].item()}')
    print('no bug: the kernel does what it should')
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the folder of the result")
    parser.add_argument("--import", dest="imports", action="append", default=[], help="a module that kernel.py imports first")
    parser.add_argument("--watch", choices=("values", "nan"), default="values", help="compare every kernel with eager, or look for the first NaN alone")
    parser.add_argument("--no-reuse", action="store_true", help="give every buffer memory of its own, so that elements never written show")
    parser.add_argument("--announce", action="store_true", help="write each kernel before it is launched: the last one ended the process")
    parser.add_argument("script")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    checker = Checker(asked.out, asked.imports, asked.watch, asked.announce)
    checker.install()
    if asked.no_reuse:
        torch._inductor.config.allow_buffer_reuse = False
    sys.argv, sys.path[0] = [asked.script, *asked.words], os.path.dirname(os.path.abspath(asked.script))
    try:
        runpy.run_path(asked.script, run_name="__main__")
    except Found:
        pass
    except SystemExit as end:
        if asked.watch == "nan" and checker.finding is None and end.code not in (None, 0):
            checker.nothing()
            raise
    except Exception:
        if checker.finding is None:
            checker.nothing()
            raise
    if checker.finding is None:
        checker.nothing()
    sys.stdout.flush()
    # A device that faulted lets no interpreter end in order.
    os._exit(0)


if __name__ == "__main__":
    main()
