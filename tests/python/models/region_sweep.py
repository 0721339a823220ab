"""Runs public architectures through `torch.compile(backend="pyrite", options={"strict": True})`: `python -m models.region_sweep --help`.

As `sweep.py` does for Pyrite's own capture: outputs, gradients, buffers and the state of the random generator must be eager's, or as near to a
run in double precision as eager's are. A relu whose input is zero but for rounding can turn over: where gradients differ, the same network with
smooth activations is asked (`kinks.py`), which must not differ, and the row says so. A second call has another batch size. No region may run eagerly, and the operators that torch runs
(opaque ones) must stand in `OPAQUE`, each with its reason. The exit code is 1 when something differs, 2 when there is nothing to run.
"""

import argparse
import collections
import contextlib
import copy
import functools
import io
import logging
import os
import sys
import time
import warnings
from dataclasses import dataclass, field

import torch

from capture import isolation
from capture.models import perturbed, parting
from models.architectures import ARCHITECTURES
from models.kinks import smooth
from models.sweep import DIFFERENTIATED, MODES, build, exact, observed, trained
from operators.harness import matching

# Operators that torch may run, and why Pyrite does not.
OPAQUE = {
    "aten._assert_scalar.default": "a check of a size, made by Python",
    "aten._assert_async.msg": "a check of data that gives no tensor",
    "aten._local_scalar_dense.default": "a number that depends on data",
    "aten.nonzero.default": "a size that depends on data",
    "aten.unique_consecutive.default": "a size that depends on data",
    "aten._unique2.default": "a size that depends on data",
    "transformers.grouped_mm_fallback.default": "an operator that transformers registers: Python that slices by the data of its offsets",
}

# Architectures that torch's capture changes in training, whatever the backend: it draws NumPy's random numbers from torch's generator. They are
# compared with what it runs eagerly.
CAPTURED = {"wav2vec2", "hubert"}


@dataclass
class Row:
    """What came of an architecture in one mode."""

    name: str
    mode: str
    differs: str | None = None
    # What differed, but not without kinks.
    doubt: str | None = None
    regions: int = 0
    eager: int = 0
    opaque: dict = field(default_factory=dict)
    seconds: float | None = None


def larger(arguments):
    """The arguments with one row more, where all tensors have as many."""
    rows = {each.shape[0] for each in arguments.values() if isinstance(each, torch.Tensor) and each.dim()}
    if len(rows) != 1:
        return arguments
    return {name: torch.cat([each, each[:1]]) if isinstance(each, torch.Tensor) and each.dim() else each for name, each in arguments.items()}


def check(name, mode, device="cpu"):
    """The row of an architecture in one mode. On a GPU any operator may be torch's, and torch's capture may choose others than eager: what
    differs then is no fault of a backend's where it differs for `aot_eager` as well."""
    row = checked(name, mode, device)
    if row.differs and device != "cpu" and checked(name, mode, device, "aot_eager").differs:
        row.doubt, row.differs = f"as by aot_eager: {row.differs}", None
    if row.differs and mode in DIFFERENTIATED:
        with smooth():
            if checked(name, mode, device).differs is None:
                row.doubt, row.differs = row.differs, None
    return row


def checked(name, mode, device, backend="pyrite"):
    """The same with the activations that stand in `torch.nn.functional`."""
    from pyrite import aot

    torch._dynamo.reset()
    row = Row(name, mode)
    with torch.device(device):
        model, arguments = build(name, mode)
    other, double = copy.deepcopy(model), copy.deepcopy(model)
    is_captured = name in CAPTURED and model.training

    def reference(module):
        return torch.compile(module, backend="eager") if is_captured else module

    def exactly(given, call, copied=double):
        return exact(seen, model, copied, given, call, reference)

    def again(given, call, before):
        for near, precise in perturbed(model, before):
            yield seen(reference(near), near, given, call), exactly(given, call, precise)

    compiled = torch.compile(other, backend=backend, options={"strict": True} if backend == "pyrite" else None)
    seen, calls = (trained, [arguments]) if mode == "steps" else (observed, [arguments, arguments, larger(arguments)])
    with aot.observed() as regions:
        for call, given in enumerate(calls):
            before = copy.deepcopy(model.state_dict())
            want = seen(reference(model), model, given, call)
            start = time.perf_counter()
            have = seen(compiled, other, given, call)
            row.seconds = row.seconds or time.perf_counter() - start
            if found := parting(want, have, functools.partial(exactly, given, call), functools.partial(again, given, call, before)):
                row.differs = f"call {call + 1}: {found}"
                break
            double.load_state_dict(model.state_dict())
    row.regions, row.eager = len(regions), sum(region.is_eager for region in regions)
    row.opaque = collections.Counter(each.name for region in regions for each in region.opaque)
    if row.differs is None and row.eager:
        row.differs = f"{row.eager} regions run eagerly: {next(region.reason for region in regions if region.is_eager)}"
    if device == "cpu" and row.differs is None and (unlisted := sorted(set(row.opaque) - set(OPAQUE))):
        row.differs = f"torch runs {', '.join(unlisted)}"
    return row


def run(name, mode, time_limit):
    """The row of an architecture, whatever happens to the process that makes it."""

    def work():
        with contextlib.redirect_stdout(io.StringIO()):
            return check(name, mode)

    row, death = isolation.in_a_fork(work, time_limit)
    return row or Row(name, mode, differs=death)


def main():
    parser = argparse.ArgumentParser(description="Compare public architectures, captured by torch and compiled by Pyrite, with torch eager.")
    parser.add_argument("--only", help="only these architectures, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--modes", default=",".join(MODES), help="which of " + ",".join(MODES))
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds per architecture and mode")
    options = parser.parse_args()
    names, modes = matching(ARCHITECTURES, options.only), options.modes.split(",")
    if not names:
        parser.error(f"no architecture has that name; known are {', '.join(ARCHITECTURES)}")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["HF_HUB_OFFLINE"] = "1"
    isolation.prepare()
    rows = []
    print(f"{'architecture':<20} {'mode':<5} {'regions':>7} {'eager':>5} {'opaque':>6} {'first call':>10}  differs")
    for name in names:
        for mode in modes:
            row = run(name, mode, options.time_limit)
            rows.append(row)
            seconds = "-" if row.seconds is None else f"{row.seconds:.2f} s"
            opaque = sum(row.opaque.values())
            print(f"{name:<20} {mode:<5} {row.regions:>7} {row.eager:>5} {opaque:>6} {seconds:>10}  {row.differs or (row.doubt and f'({row.doubt})') or ''}"[:300].rstrip(), flush=True)
    wrong = sum(row.differs is not None for row in rows)
    print(f"{len(names)} architectures in {len(rows)} runs: {len(rows) - wrong} as in eager, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
