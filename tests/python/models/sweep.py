"""Runs public architectures through `pyrite.compile` and compares with torch eager: `python -m models.sweep --help`.

Every architecture of `architectures.py` is compiled by the native backend and called twice, without gradients in evaluation mode and with them
in training mode; in mode `bf16` with weights and inputs of that type, in mode `steps` by five steps of an optimizer. Outputs, gradients, buffers and the state of the random generator must be eager's, or as near to a run in double precision
as eager's are, with each of three seeds for weights and inputs. A relu whose input is zero but for rounding can turn over, and then gradients are
others: where they differ, the same network with smooth activations is asked (`kinks.py`), which must not differ, and the row says so. Each architecture runs in a process of its own, so a crash is a line of the table. The exit code is 1 when one differs or fails, 2 when
there is nothing to run.
"""

import argparse
import contextlib
import copy
import io
import json
import logging
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from unittest import mock

import cpu  # noqa: F401  (before torch)

import pyrite
import torch

from capture import isolation
from capture.cases import seed_everything
from capture.models import doubled, perturbed, parting
from models.architectures import ARCHITECTURES
from models.kinks import smooth
from operators.harness import matching

MODES = ["eval", "train", "bf16", "steps"]
# The modes with gradients.
DIFFERENTIATED = ("train", "steps")
# How many steps an optimizer makes in mode `steps`.
STEPS = 5
CALLS = 2
SEEDS = 3


@dataclass
class Row:
    """What came of an architecture in one mode. `differs` says in a sentence where it parts from eager, or how it failed."""

    name: str
    mode: str
    differs: str | None = None
    # What differed, but not without kinks.
    doubt: str | None = None
    graphs: int | None = None
    breaks: int | None = None
    # What the first compiled call took.
    seconds: float | None = None


def build(name, mode, seed=0):
    seed_everything(seed)
    model, arguments = ARCHITECTURES[name]()
    if mode == "bf16":
        model = model.bfloat16()
        arguments = {name: each.bfloat16() if each.is_floating_point() else each for name, each in arguments.items()}
    return model.train(mode in ("train", "steps")), arguments


def check(name, mode):
    """The row of an architecture in one mode."""
    row = Row(name, mode)
    seen = trained if mode == "steps" else observed
    for seed in range(SEEDS):
        differs, seconds = compared(*build(name, mode, seed), seen=seen)
        row.seconds = row.seconds or seconds
        if differs is None:
            continue
        if is_a_kink(name, mode, seed, seen):
            row.doubt = f"seed {seed}, {differs}"
        else:
            row.differs = f"seed {seed}, {differs}"
            break
    model, arguments = build(name, mode)
    explained = pyrite.explain(model)(**arguments)
    row.graphs, row.breaks = explained.graph_count, explained.graph_break_count
    return row


def is_a_kink(name, mode, seed, seen):
    """Whether the same network with smooth activations does not differ."""
    if mode not in DIFFERENTIATED:
        return False
    with smooth():
        return compared(*build(name, mode, seed), seen=seen)[0] is None


def compared(model, arguments, seen=None):
    """Where the compiled model differs from eager, if it does, and what its first call took."""
    seen = seen or observed
    other, double = copy.deepcopy(model), copy.deepcopy(model)
    compiled = pyrite.compile(other)
    times = []
    for call in range(1 if seen is trained else CALLS):
        before = copy.deepcopy(model.state_dict())
        want = seen(model, model, arguments, call)
        start = time.perf_counter()
        have = seen(compiled, other, arguments, call)
        times.append(time.perf_counter() - start)
        def again(call=call, before=before):
            for near, precise in perturbed(model, before):
                yield seen(near, near, arguments, call), exact(seen, model, precise, arguments, call)

        if found := parting(want, have, lambda: exact(seen, model, double, arguments, call), again):
            return f"call {call + 1}: {found}", times[0]
        double.load_state_dict(model.state_dict())
    return None, times[0]


def observed(function, model, arguments, seed):
    """Everything that one call leaves, by name; in training mode after a step back."""
    seed_everything(seed)
    with torch.set_grad_enabled(model.training):
        outputs = list(tensors(function(**arguments)))
    if model.training:
        sum(weighed(output) for output in outputs if output.requires_grad).backward()
    left = {f"output {k}": output.detach() for k, output in enumerate(outputs)}
    left |= {f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    wanted = {name: each for name, each in arguments.items() if isinstance(each, torch.Tensor) and each.is_leaf and each.requires_grad}
    left |= {f"gradient of {name}": each.grad for name, each in wanted.items() if each.grad is not None}
    left |= {f"buffer {name}": buffer.clone() for name, buffer in model.named_buffers()}
    left["next random number"] = drawn(model)
    for each in (*model.parameters(), *wanted.values()):
        each.grad = None
    return left


def trained(function, model, arguments, seed):
    """What steps of an optimizer leave of the parameters and buffers."""
    seed_everything(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs = [output for output in tensors(function(**arguments)) if output.requires_grad]
        sum(weighed(output) / output.numel() for output in outputs).backward()
        optimizer.step()
    optimizer.zero_grad()
    left = {f"buffer {name}": each.detach().clone() for name, each in model.state_dict().items()}
    left["next random number"] = torch.rand(())
    return left


def drawn(model):
    """The next random number where a model is."""
    return torch.rand((), device=next((each.device for each in model.parameters()), None))


def weighed(output):
    """A number that every element of an output counts in differently."""
    weights = torch.cos(torch.arange(output.numel(), dtype=output.dtype, device=output.device)).reshape(output.shape)
    return (output * weights).sum()


def tensors(value):
    """The tensors of a result in order, those of a cache too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)
    elif hasattr(value, "layers"):
        for layer in value.layers:
            yield from tensors([part for part in vars(layer).values() if isinstance(part, torch.Tensor)])


def exact(seen, model, copied, arguments, call, run=lambda module: module):
    """What a copy of a model leaves in double precision. Where an operator has none, single is enough for half precision."""
    try:
        return seen(run(copied.double()), copied, dict(zip(arguments, doubled(arguments.values()))), call)
    except RuntimeError:
        if all(parameter.dtype is not torch.bfloat16 for parameter in model.parameters()):
            # A model that asks for single precision by name gets double here, too.
            with mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
                return seen(run(copied.double()), copied, dict(zip(arguments, doubled(arguments.values()))), call)
        single = {name: each.float() if each.is_floating_point() else each for name, each in arguments.items()}
        return seen(run(copied.float()), copied, single, call)


def run(name, mode, time_limit):
    """The row of an architecture, whatever happens to the process that makes it."""

    def work():
        # What the libraries print as they go is no row of the table.
        with contextlib.redirect_stdout(io.StringIO()):
            return check(name, mode)

    row, death = isolation.in_a_fork(work, time_limit)
    return row or Row(name, mode, differs=death)


HEADING = f"{'architecture':<20} {'mode':<5} {'graphs':>6} {'breaks':>6} {'first call':>10}  differs"


def print_row(row):
    figures = [row.graphs, row.breaks, row.seconds and f"{row.seconds:.2f} s"]
    graphs, breaks, seconds = ("-" if figure is None else figure for figure in figures)
    print(f"{row.name:<20} {row.mode:<5} {graphs:>6} {breaks:>6} {seconds:>10}  {row.differs or (row.doubt and f'({row.doubt})') or ''}"[:300].rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Compare public architectures, compiled by Pyrite, with torch eager.")
    parser.add_argument("--only", help="only these architectures, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--modes", default=",".join(MODES), help="which of " + ",".join(MODES))
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds per architecture and mode")
    parser.add_argument("--json", metavar="FILE", help="write every row there")
    options = parser.parse_args()
    names, modes = matching(ARCHITECTURES, options.only), options.modes.split(",")
    if unknown := [mode for mode in modes if mode not in MODES]:
        parser.error(f"unknown mode {unknown[0]}; known are {', '.join(MODES)}")
    if not names:
        parser.error(f"no architecture has that name; known are {', '.join(ARCHITECTURES)}")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["HF_HUB_OFFLINE"] = "1"
    isolation.prepare()
    rows = []
    print(HEADING)
    for name in names:
        for mode in modes:
            rows.append(run(name, mode, options.time_limit))
            print_row(rows[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)
    wrong = sum(row.differs is not None for row in rows)
    breaks = sum(row.breaks or 0 for row in rows)
    print(f"{len(names)} architectures in {len(rows)} runs: {len(rows) - wrong} as in eager, {wrong} not, {breaks} graph breaks")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
