"""Calls on a GPU as one CUDA graph each.

A host (`_partition`) whose tensors are all on one GPU is recorded after a few calls: torch's kernels and Pyrite's become one
CUDA graph, which later calls replay with one launch. Who calls cannot tell:

- Results that the caller sees are new tensors each time. What a forward half saves for its backward half lies in the
  recording's memory as long as nobody else holds it: a call that finds something of the last one still in use runs without
  the recording, and where that happens again and again (gradients that are accumulated, two forward halves before their
  backward halves) there is a second recording with memory of its own.
- Inputs are copied into the recording's memory, except those whose address does not change from call to call: parameters,
  and what a recorded forward half has saved. When such an address changes, the call runs without the recording, and it is
  recorded anew when the address stays. What the program writes to an input that was copied is copied back.
- Other sizes are another recording.

A program is not recorded where an operator waits for the device; one that torch refuses to record runs as it did before.
Inside of a capture of the caller's everything runs plainly, and is captured.

A replay asks little of Python for each tensor, since a training step has hundreds of them: addresses are compared at once,
what a backward half reads is handed out as the same tensors each time, and parameters as they came.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import warnings

import torch

from pyrite import _native, logs
from pyrite._tracers import is_traced

# So many calls of a size run plainly before it is recorded: code is loaded, and libraries have chosen their kernels.
WARM = 2
# So many sizes of a program are recorded, and so many recordings are ever made of it.
MOST, AT_ALL = 8, 32
# After so many calls that find results of the last one in use there is another recording of the same size, up to so many.
BUSY, BESIDE = 3, 2
# So many sets of addresses are remembered of each size.
REMEMBERED = 4


def recording(run, module, half, checked):
    """A boxed function that records another one where that can be done; else that function. `checked` are the segments that
    compare indices with bounds, which has to be asked for."""
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    device = _device(module)
    if device is None:
        return run
    written = _written(module)
    fixed = _fixed(nodes, half)
    if written is None:
        return run
    seen = _seen_outputs(half)
    symbolic = [index for index, node in enumerate(nodes) if _is_symbolic(node.meta.get("val"))]
    recorder = Recorder(run, half, fixed, symbolic, seen, device, checked, written)

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
        return getattr(target, "is_recordable", False) or getattr(target, "__module__", None) in ("_operator", "math") or target is operator.getitem
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

    def __init__(self, run, half, fixed, symbolic, seen, device, checked, written=()):
        self.run, self.half, self.fixed, self.symbolic, self.seen, self.device = run, half, fixed, symbolic, seen, device
        self.checked, self.written = checked, frozenset(written)
        self.recordings = {}
        self.calls = {}
        self.replays = self.made = 0
        self.is_refused = False

    def __call__(self, arguments):
        if self.is_refused or is_traced() or torch.cuda.is_current_stream_capturing():
            return self.run(arguments)
        key = tuple(_size(arguments[index]) for index in self.symbolic) if self.symbolic else ()
        recordings = self.recordings.get(key, ())
        for recorded in recordings:
            if recorded.is_ready(arguments):
                self.replays += 1
                return recorded.replay(arguments)
        recorded = self._record(key, arguments, recordings)
        if recorded is None:
            return self.run(arguments)
        self.replays += 1
        return recorded.replay(arguments)

    def _record(self, key, arguments, recordings):
        """Records a call that no recording fits, if others like it have been seen; else nothing."""
        calls = self.calls.setdefault(key, _Calls())
        addresses = tuple(arguments[index].data_ptr() if isinstance(arguments[index], torch.Tensor) else None for index in self.fixed)
        here = [each for each in recordings if each.is_at(addresses)]
        if not calls.is_stable(addresses, is_busy=bool(here)) or len(here) >= BESIDE:
            return None
        if (not recordings and len(self.recordings) >= MOST) or self.made >= AT_ALL:
            return None
        try:
            recorded = Recording(self, arguments, addresses)
        except RuntimeError as error:
            logs.get("backend").warning("a program is not recorded as a CUDA graph: %s", str(error).splitlines()[0])
            self.is_refused = True
            return None
        # What was recorded for addresses that are no more makes room.
        elsewhere = [each for each in recordings if each not in here]
        self.recordings[key] = [*elsewhere[-BESIDE:], *here, recorded]
        self.made += 1
        return recorded


class _Calls:
    """The calls of one size that no recording fitted."""

    def __init__(self):
        self.count = self.busy = 0
        self.seen = []

    def is_stable(self, addresses, is_busy):
        """Takes a call down; whether there were enough like it. A recording for its addresses may be there, and in use."""
        known = addresses in self.seen
        is_stable = known and self.count >= WARM
        self.count += 1
        if not known:
            self.seen = [*self.seen[1 - REMEMBERED :], addresses]
        if is_busy:
            self.busy += 1
            is_stable = is_stable and self.busy >= BUSY
        return is_stable


def _size(argument):
    return (argument.shape, argument.stride()) if isinstance(argument, torch.Tensor) else argument


class Recording:
    """One CUDA graph, with the memory of its inputs and results."""

    def __init__(self, recorder, arguments, addresses):
        self.recorder = recorder
        self.addresses = addresses
        fixed = [index for index in recorder.fixed if isinstance(arguments[index], torch.Tensor)]
        self.own = [index for index, each in enumerate(arguments) if isinstance(each, torch.Tensor) and index not in recorder.fixed]
        self.places = _native.Places(arguments, fixed)
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
                    self.graph.capture_end()
                except BaseException:
                    _abandon(self.graph)
                    raise
            current.wait_stream(stream)
        # What is written to the copy of an input.
        self.written = [(index, copy) for index, copy in zip(self.own, self.inputs) if index in recorder.written]
        self.results = list(results)
        seen = len(self.results) if recorder.seen is None else recorder.seen
        tensors = [index for index, each in enumerate(self.results) if isinstance(each, torch.Tensor)]
        self.seen = [index for index in tensors if index < seen]
        held = [index for index in tensors if index >= seen]
        self.repeats = any(0 in self.results[index].stride() for index in self.seen)
        self.lent, self.viewed = [], []
        del given, results
        held = self._hold(held, {arguments[index].untyped_storage().data_ptr(): (index, arguments[index]) for index in fixed})
        # Gradients are new tensors over the same memory each time: only what nobody else has becomes a parameter's gradient
        # without a copy. What is saved for a backward half can be the same tensors, where torch counts who holds them.
        self.is_same = recorder.half == "forward" and hasattr(torch.Tensor, "_use_count")
        self.held = [] if self.is_same else held
        self.kept = [self.results[index] for index in held] if self.is_same else []
        self.storages = [(storage, _holders(storage)) for storage in {self.results[index].untyped_storage()._cdata for index in held}]
        self.counts = self._counted()

    def _hold(self, held, theirs):
        """Which of the results are the recording's; what lies in the memory of an input is not."""
        own = []
        for index in held:
            result = self.results[index]
            number, base = theirs.get(result.untyped_storage().data_ptr(), (None, None))
            if base is None:
                own.append(index)
                continue
            self.results[index] = None
            if _lies_as(result, base):
                self.lent.append((index, number))
            else:
                self.viewed.append((index, number, result.shape, result.stride(), result.storage_offset()))
        return own

    def is_at(self, addresses):
        """Whether it was recorded for these addresses."""
        return self.addresses == addresses

    def is_ready(self, arguments):
        """Whether inputs are where they were, and nobody holds results of the last call."""
        if not self.places.hold(arguments) or self._counted() != self.counts:
            return False
        return all(_holders(storage) == before for storage, before in self.storages)

    def _counted(self):
        """How often each tensor that is handed out is held, by Python and by torch."""
        references = sys.getrefcount
        return [references(each) + each._use_count() for each in self.kept]

    def replay(self, arguments):
        for segment in self.recorder.checked:
            segment.check()
        if self.own:
            _copy_all(self.inputs, [arguments[index] for index in self.own])
        results = list(self.results)
        for index, base in self.lent:
            results[index] = arguments[base]
        for index, base, shape, stride, offset in self.viewed:
            results[index] = arguments[base].as_strided(shape, stride, offset)
        written = [(arguments[index], copy) for index, copy in self.written]
        arguments.clear()
        self.graph.replay()
        if written:
            with torch.no_grad():
                _copy_all(*map(list, zip(*written)))
        for index in self.held:
            results[index] = self.results[index].detach()
        if len(self.seen) > 1 and not self.repeats:
            given = [self.results[index] for index in self.seen]
            fresh = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device) for each in given]
            _copy_all(fresh, given)
            for index, each in zip(self.seen, fresh):
                results[index] = each
        else:
            for index in self.seen:
                results[index] = _copied(self.results[index])
        return results


def _abandon(graph):
    """Ends a capture that failed. Torch's generator takes every draw for one of the capture until a capture ends well: one of nothing does."""
    with contextlib.suppress(RuntimeError):
        graph.capture_end()
    nothing = torch.cuda.CUDAGraph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of a graph that is empty
        nothing.capture_begin(capture_error_mode="thread_local")
        nothing.capture_end()


_holders = torch._C._storage_Use_Count
# One launch copies many small tensors, with few blocks for each: larger ones are faster alone.
SMALL = 1 << 15


def _copy_all(places, tensors):
    """Copies tensors to places of the same layout."""
    small = []
    for pair in zip(places, tensors):
        if pair[0].numel() > SMALL:
            pair[0].copy_(pair[1])
        else:
            small.append(pair)
    if small:
        torch._foreach_copy_(*map(list, zip(*small)))


def _lies_as(tensor, other):
    """Whether two tensors over one storage have the same elements in the same places."""
    same = (tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())
    return same == (other.dtype, other.shape, other.stride(), other.storage_offset())


def _copied(tensor):
    """A copy that lies as the tensor does; one whose elements share memory becomes dense."""
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride())):
        return tensor.clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(tensor)
