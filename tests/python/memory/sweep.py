"""Random programs × placements of inputs × sequences of calls × what users do between forward and backward, against eager.

`python -m memory.sweep --count 1000 --seed 0` runs so many sequences and prints every difference with its seed; `--only SEED` runs one.
A sequence is one program, compiled once and called several times with inputs that lie otherwise each time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import random
import sys
import threading
import time
import warnings

import numpy
import torch

import pyrite
from pyrite import _observer, aot

from memory import placements, programs

# What a compiled program saves may differ from what eager saves, so it may have to refuse what was changed since where
# eager need not: with torch's error of a tensor that was written, or with its own of one that was given other data.
REFUSALS = ("modified by an inplace operation", "was modified after the forward call")
# Eager's error of a place outside of a storage: where nobody uses it, a compiled program does not look there.
UNUSED = "out of bounds for storage"
# Torch's capture runs operators on tensors without data, which refuse some writes that operators allow.
TRACED = "RuntimeError when making fake tensor call"
# What gives a tensor other data: around a region of torch.compile, which of it backward reads is torch's own affair.
GIVEN = ("data", "set")
ACTIONS = ("nothing", "nothing", "write", "write_data", "data", "set", "resize", "delete", "thread")


class Difference(Exception):
    """The compiled function differs from eager."""


def act(action, world, index, rng):
    """What a user does to an input between forward and backward."""
    tensor = world.tensors[index]
    if action == "write":
        with torch.no_grad():
            tensor.mul_(2)
    elif action == "write_data":
        tensor.data.add_(1)
    elif action == "data":
        tensor.data = torch.full(tensor.shape, 0.5, dtype=tensor.dtype)
    elif action == "set":
        with torch.no_grad():
            tensor.set_(torch.full(tensor.shape, 0.5, dtype=tensor.dtype))
    elif action == "resize":
        storage = tensor.untyped_storage()
        if storage.resizable():
            content = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
            storage.resize_(0)
            scratch = torch.full((4096,), 7.0)
            storage.resize_(len(content))
            torch.empty(0, dtype=torch.uint8).set_(storage).copy_(content)
            del scratch
    elif action == "delete":
        world.tensors[index] = None
        del tensor
        world.kept.clear()


def outcome(function, world, action, index, seed):
    """What a call gives and leaves, or the error it ends with."""
    tensors = list(world.tensors)
    wants = [tensor for tensor in tensors if tensor.requires_grad]
    try:
        outputs = function(*tensors)
        shown = [described(output, tensors) for output in outputs]
        gradients = None
        total = sum(output.double().sum() for output in outputs if output.requires_grad)
        if wants and isinstance(total, torch.Tensor):
            del outputs
            act(action, world, index, random.Random(seed))
            if action == "delete":
                tensors[index] = None
            if action == "thread":
                thread = threading.Thread(target=total.backward)
                thread.start()
                thread.join()
            else:
                total.backward()
            gradients = [tensor.grad for tensor in wants]
    except Exception as error:
        return error, None, None
    return None, shown, [None if gradient is None else gradient.clone() for gradient in gradients or ()]


def described(output, tensors):
    """An output: its numbers, its shape, and which input's memory it lies in, and where."""
    place = None
    for number, tensor in enumerate(tensors):
        own = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
        if own and output.numel() and output.untyped_storage().data_ptr() == own:
            steps = (step for step, size in zip(output.stride(), output.shape) if size > 1)
            place = (output.data_ptr() - own, *steps)
            break
    return output.detach().clone(), tuple(output.shape), place, output.requires_grad


def compare(eager, compiled, others):
    """Raises where an outcome differs from eager's and from every other that is as good.

    What a compiled program does not need any more may be changed, where eager refuses it or reads what it has become: then the
    outcome is that of nothing having been done.
    """
    try:
        compare_exactly(eager, compiled)
    except Difference:
        for other in others:
            with contextlib.suppress(Difference):
                compare_exactly(other(), compiled)
                return
        raise


def by_torch_alone(function, placement, action, index, seed):
    """The outcome by torch's own autograd and partition of a captured function, whatever the backend: they save the tensors."""
    torch._dynamo.reset()
    return outcome(torch.compile(function, backend="aot_eager_decomp_partition"), placements.lay_out(placement), action, index, seed)


def compare_exactly(eager, compiled):
    error, shown, gradients = eager
    other_error, other_shown, other_gradients = compiled
    if error is not None and UNUSED in str(error):
        return
    if other_error is not None:
        if TRACED in str(other_error):
            return
        if error is None and not any(refusal in str(other_error) for refusal in REFUSALS):
            raise Difference(f"raises {type(other_error).__name__}: {other_error}")
        return
    if error is not None:
        raise Difference(f"eager raises {type(error).__name__}: {error}")
    for number, (mine, theirs) in enumerate(zip(shown, other_shown)):
        if mine[1:] != theirs[1:]:
            raise Difference(f"output {number} is {theirs[1:]}, eager's is {mine[1:]}")
        agree(mine[0], theirs[0], f"output {number}")
    for number, (mine, theirs) in enumerate(zip(gradients, other_gradients)):
        if (mine is None) != (theirs is None):
            raise Difference(f"gradient {number} is {theirs}, eager's is {mine}")
        if mine is not None:
            agree(mine, theirs, f"gradient {number}")


def compare_memory(placement, worlds):
    """Raises where calls left the memory of their inputs in two ways."""
    for base, mine, theirs in zip(placement.bases, *(world.state() for world in worlds)):
        kind = placements.DTYPES[base.dtype]
        mine, theirs = (content[base.skew :].copy().view(kind) for content in (mine, theirs))
        if not numpy.allclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise Difference("memory was left otherwise than by eager")


def agree(mine, theirs, what):
    if mine.dtype != theirs.dtype or not torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise Difference(f"{what} is\n{theirs}\neager's is\n{mine}")


def sequence(seed, backend):
    """Runs one sequence; returns how many calls it had, or raises what differs."""
    rng = random.Random(seed)
    dtype = rng.choice((torch.float32, torch.float32, torch.float32, torch.float64, torch.int64))
    count = rng.randrange(1, 4)
    shape = tuple(rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33)) for _ in range(rng.randrange(1, 3)))
    shapes = [shape if rng.random() < 0.8 else tuple(rng.choice((size, 1)) for size in shape) for _ in range(count)]
    differentiable = dtype.is_floating_point and rng.random() < 0.5
    gradients = [differentiable and rng.random() < 0.7 for _ in shapes]
    writes = not any(gradients) and rng.random() < 0.5
    examples = [torch.ones(shape, dtype=dtype) for shape in shapes]
    text = programs.program(rng, examples, writes=writes)
    if text is None:
        return 0, text
    function = programs.function(text, f"memory_{seed}.py")
    compiled = compiled_by(backend, function)
    calls = rng.randrange(2, 5)
    for call in range(calls):
        placement = placements.placed(rng, shapes, dtype, gradients)
        action, index = rng.choice(ACTIONS), rng.randrange(count)
        worlds = [placements.lay_out(placement) for _ in range(2)]
        def untouched(placement=placement, index=index):
            return outcome(function, placements.lay_out(placement), "nothing", index, seed)

        results = [outcome(each, world, action, index, seed) for each, world in zip((function, compiled), worlds)]

        def judge(results, worlds, placement=placement, action=action, index=index, untouched=untouched):
            # Torch does not count writes through `.data` or through another storage over the same bytes: which of the values
            # that were saved they reach is nobody's promise.
            if any(gradients) and (action == "write_data" or action == "write" and placements.is_shared(placement, index)):
                results = [(error, shown, []) for error, shown, _ in results]
            others = [untouched] if any(gradients) and action != "nothing" else []
            if others and action in GIVEN and backend != "pyrite":
                others.append(lambda placement=placement, action=action, index=index: by_torch_alone(function, placement, action, index, seed))
            compare(*results, others)
            if results[0][0] is None and results[1][0] is None:
                compare_memory(placement, worlds)

        try:
            judge(results, worlds)
        except Difference as difference:
            try:
                # Where torch cannot tell that a write and its operand overlap, the order in which it reads and writes elements
                # is nobody's promise: reading all of them first is right too.
                world = placements.lay_out(placement)
                first = programs.function(programs.reading_first(text), f"memory_{seed}_first.py")
                judge([outcome(first, world, action, index, seed), results[1]], [world, worlds[1]])
            except Difference:
                lines = [f"seed {seed}, call {call}, {action} on input {index}: {difference}", text, f"{placement}"]
                raise Difference("\n".join(lines)) from None
        del worlds, results
    return calls, text


class Captures:
    """Counts the programs that were compiled, and not run as they are: a sweep of plain functions would show nothing."""

    wants_guards = False

    def __init__(self, backend):
        self.backend = backend
        self.compiled = self.plain = 0
        self.outcomes = []

    def observe(self, record):
        self.outcomes.append(record.outcome)

    @contextlib.contextmanager
    def one(self):
        """Looks at one program."""
        self.outcomes.clear()
        with _observer.listening(self), aot.observed() as regions:
            yield
        if self.backend == "pyrite":
            captured = "captured" in self.outcomes
        else:
            captured = any(not region.is_eager for region in regions)
        self.compiled += captured
        self.plain += not captured


def compiled_by(backend, function):
    if backend == "pyrite":
        return pyrite.compile(function)
    torch._dynamo.reset()
    return torch.compile(function, backend="pyrite")


def run(seeds, backend, say=print):
    """Runs sequences; returns the share of programs that were compiled, how many calls there were, and the differences."""
    found, calls = [], 0
    captures = Captures(backend)
    for number, seed in enumerate(seeds):
        try:
            with captures.one():
                calls += sequence(seed, backend)[0]
        except Difference as difference:
            found.append(str(difference))
            say(f"{difference}\n")
        if number % 500 == 499:
            gc.collect()
    return captures.compiled / max(captures.compiled + captures.plain, 1), calls, found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int)
    options.add_argument("--backend", choices=("pyrite", "torch.compile"), default="pyrite")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = [given.only] if given.only is not None else range(given.seed, given.seed + given.count)
    gc.collect()
    gc.freeze()
    begun = time.perf_counter()
    share, calls, found = run(seeds, given.backend, lambda text: print(text, flush=True))
    seconds = time.perf_counter() - begun
    print(f"{len(seeds)} sequences, {share:.1%} compiled, {calls} calls, {len(found)} differences, {seconds:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
