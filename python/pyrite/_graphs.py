"""Calls on a GPU as one CUDA graph each.

A host (`_partition`) whose tensors are all on one GPU is recorded after a few calls: torch's kernels and Pyrite's become one
CUDA graph, which later calls replay with one launch. Who calls cannot tell:

- Results that the caller sees are new tensors each time. What a forward half saves for its backward half lies in the
  recording's memory as long as nobody else holds it: a call that finds something of the last one still in use runs without
  the recording. The same goes for gradients, which die before the next backward half unless they are accumulated.
- Inputs are copied into the recording's memory, except those whose address does not change from call to call: parameters,
  and what a recorded forward half has saved. When such an address changes, the call runs without the recording, and it is
  recorded anew when the address stays.
- Other sizes are another recording.

A program is not recorded where an operator waits for the device, or where inputs that are copied are written to; one that
torch refuses to record runs as it did before. Inside of a capture of the caller's everything runs plainly, and is captured.
"""

from __future__ import annotations

import operator

import torch

from pyrite import logs
from pyrite._tracers import is_traced

# So many calls of a size run plainly before it is recorded: code is loaded, and libraries have chosen their kernels.
WARM = 2
# So many recordings of a program are kept.
MOST = 8


def recording(run, module, half, checked):
    """A boxed function that records another one where that can be done; else that function. `checked` are the segments that
    compare indices with bounds, which has to be asked for."""
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    device = _device(module)
    if device is None:
        return run
    written = _written(module)
    fixed = _fixed(nodes, half)
    if written is None or any(index not in fixed for index in written):
        return run
    seen = _seen_outputs(half)
    symbolic = [index for index, node in enumerate(nodes) if _is_symbolic(node.meta.get("val"))]
    recorder = Recorder(run, half, fixed, symbolic, seen, device, checked)

    def boxed(arguments):
        return recorder(arguments)

    boxed._boxed_call = True
    boxed.recorder = recorder
    return boxed


def _device(module):
    """The one GPU that all tensors of a graph are on; `None` where that cannot be recorded."""
    devices = set()
    for node in module.graph.nodes:
        if node.op not in ("placeholder", "call_function"):
            if node.op == "get_attr":
                return None
            continue
        if node.op == "call_function" and not _is_recordable(node):
            return None
        values = node.meta.get("val")
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, torch.Tensor):
                devices.add(value.device)
    device = next(iter(devices)) if len(devices) == 1 else None
    return device if device is not None and device.type == "cuda" else None


def _is_recordable(node):
    """Whether a function does not wait for the device: its sizes and numbers do not depend on data."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "__module__", None) in ("_operator", "math") or target is operator.getitem
    if target is torch.ops.aten.index.Tensor:
        # An index by numbers gives as many elements as there are numbers.
        indices = [each for each in node.args[1] if each is not None]
        return all(each.meta["val"].dtype not in (torch.bool, torch.uint8) for each in indices)
    waits = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
    return target.namespace in ("aten", "prims") and not waits & set(target.tags)


def _written(module):
    """The inputs that a graph writes to; `None` where it writes to something else."""
    nodes = list(module.graph.nodes)
    places = {node: index for index, node in enumerate(node for node in nodes if node.op == "placeholder")}
    written = set()
    for node in nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
            continue
        for argument, given in zip(node.target._schema.arguments, node.args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if given not in places:
                    return None
                written.add(places[given])
    return written


def _fixed(nodes, half):
    """The inputs whose addresses do not change from call to call, as far as anybody can tell."""
    if half == "backward":
        return frozenset(index for index, node in enumerate(nodes) if not node.name.startswith("tangents"))
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return frozenset(getattr(metadata, "static_input_indices", None) or ())


def _seen_outputs(half):
    """How many of the first results the caller sees; `None` for all. The others are held by the backward half alone."""
    if half != "forward":
        return None if half == "inference" else 0
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return getattr(metadata, "num_forward", None)


def _is_symbolic(value):
    if isinstance(value, torch.Tensor):
        return any(not isinstance(size, int) for size in (*value.shape, *value.stride()))
    return not isinstance(value, torch.Tensor)


class Recorder:
    """A program and its recordings, by the sizes that may differ."""

    def __init__(self, run, half, fixed, symbolic, seen, device, checked):
        self.run, self.half, self.fixed, self.symbolic, self.seen, self.device = run, half, fixed, symbolic, seen, device
        self.checked = checked
        self.recordings = {}
        self.calls = {}
        self.replays = 0
        self.is_refused = False

    def __call__(self, arguments):
        if self.is_refused or is_traced() or torch.cuda.is_current_stream_capturing():
            return self.run(arguments)
        key = tuple(_size(arguments[index]) for index in self.symbolic)
        recorded = self.recordings.get(key)
        if recorded is not None and recorded.is_ready(arguments):
            self.replays += 1
            return recorded.replay(arguments)
        addresses = [arguments[index].data_ptr() if isinstance(arguments[index], torch.Tensor) else None for index in self.fixed]
        count, before = self.calls.get(key, (0, None))
        self.calls[key] = (count + 1, addresses)
        is_stable = count >= WARM and addresses == before
        if not is_stable or (recorded is None and len(self.recordings) >= MOST) or (recorded is not None and recorded.is_at(addresses)):
            return self.run(arguments)
        try:
            recorded = Recording(self, arguments, addresses)
        except RuntimeError as error:
            logs.get("backend").warning("a program is not recorded as a CUDA graph: %s", str(error).splitlines()[0])
            self.is_refused = True
            return self.run(arguments)
        self.recordings[key] = recorded
        self.replays += 1
        return recorded.replay(arguments)


def _size(argument):
    return (argument.shape, argument.stride()) if isinstance(argument, torch.Tensor) else argument


class Recording:
    """One CUDA graph, with the memory of its inputs and results."""

    def __init__(self, recorder, arguments, addresses):
        self.recorder = recorder
        self.addresses = addresses
        self.fixed = [index for index in recorder.fixed if isinstance(arguments[index], torch.Tensor)]
        self.own = [index for index, each in enumerate(arguments) if isinstance(each, torch.Tensor) and index not in recorder.fixed]
        self.expected = [arguments[index].data_ptr() for index in self.fixed]
        given = list(arguments)
        with torch.cuda.device(recorder.device):
            for index in self.own:
                each = arguments[index]
                given[index] = torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device).copy_(each)
            self.inputs = [given[index] for index in self.own]
            self.graph = torch.cuda.CUDAGraph()
            stream, current = torch.cuda.Stream(), torch.cuda.current_stream()
            stream.wait_stream(current)
            with torch.no_grad(), torch.cuda.stream(stream):
                self.graph.capture_begin(capture_error_mode="thread_local")
                try:
                    results = recorder.run(given)
                finally:
                    self.graph.capture_end()
            current.wait_stream(stream)
        self.results = list(results)
        seen = len(self.results) if recorder.seen is None else recorder.seen
        tensors = [index for index, each in enumerate(self.results) if isinstance(each, torch.Tensor)]
        self.seen = [index for index in tensors if index < seen]
        self.held = [index for index in tensors if index >= seen]
        self.repeats = any(0 in self.results[index].stride() for index in self.seen)
        # What lies in the memory of an input is not the recording's.
        theirs = {arguments[index].untyped_storage().data_ptr(): index for index in self.fixed}
        self.lent = {}
        for index in list(self.held):
            at = self.results[index].untyped_storage().data_ptr()
            if at in theirs:
                self.held.remove(index)
                result = self.results[index]
                self.lent[index] = (theirs[at], result.shape, result.stride(), result.storage_offset())
                self.results[index] = None
        del given, results
        self.storages = {self.results[index].untyped_storage()._cdata for index in self.held}
        self.counts = {storage: torch._C._storage_Use_Count(storage) for storage in self.storages}

    def is_at(self, addresses):
        """Whether it was recorded for these addresses."""
        return self.addresses == addresses

    def is_ready(self, arguments):
        """Whether inputs are where they were, and nobody holds results of the last call."""
        for index, expected in zip(self.fixed, self.expected):
            if arguments[index].data_ptr() != expected:
                return False
        count = torch._C._storage_Use_Count
        return all(count(storage) == before for storage, before in self.counts.items())

    def replay(self, arguments):
        for segment in self.recorder.checked:
            segment.check()
        if self.own:
            torch._foreach_copy_(self.inputs, [arguments[index] for index in self.own])
        results = list(self.results)
        for index, (base, shape, stride, offset) in self.lent.items():
            results[index] = arguments[base].as_strided(shape, stride, offset)
        arguments.clear()
        self.graph.replay()
        for index in self.held:
            results[index] = self.results[index].detach()
        if len(self.seen) > 1 and not self.repeats:
            given = [self.results[index] for index in self.seen]
            fresh = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device) for each in given]
            torch._foreach_copy_(fresh, given)
            for index, each in zip(self.seen, fresh):
                results[index] = each
        else:
            for index in self.seen:
                results[index] = _copied(self.results[index])
        return results


def _copied(tensor):
    """A copy that lies as the tensor does; one whose elements share memory becomes dense."""
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride())):
        return tensor.clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)
