"""Runs the text of a dump in torch as training does: forward, the loss that Pyrite takes, backward."""

import contextlib
import json
import pathlib
from dataclasses import dataclass

import numpy
import torch
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string

from models.dumped import load_inputs, load_module
from operators.compare import value_difference

# A gradient is compared by the largest element of its tensor, but not more closely than this part of the program's largest: what is zero
# but for rounding has no scale of its own.
SMALLEST_SCALE = 1e-3


def capture(folder, function, *inputs):
    """Writes what Dynamo captures of a function, with its inputs, as PyTorch's debugger does. Returns the file."""
    path = pathlib.Path(folder) / "repro.py"

    def backend(module, _example_inputs):
        def run(*arguments):
            path.write_text(generate_dynamo_fx_repro_string(module, arguments, "inductor", save_dir=str(folder)))
            return module(*arguments)

        return run

    torch._dynamo.reset()
    torch.manual_seed(0)
    torch.compile(function, backend=backend, fullgraph=True, dynamic=False)(*inputs)
    return path


@dataclass
class Trained:
    """What a run gives: outputs in order, the gradient of each input by its position, and the inputs after the run."""

    outputs: list
    gradients: dict
    inputs: list

    def largest_gradient(self):
        return max((g.abs().max().item() for g in self.gradients.values() if g.numel()), default=0.0)

    def scale(self, position):
        """By what the gradient of an input is measured."""
        own = self.gradients[position].abs()
        return max(own.max().item() if own.numel() else 0.0, SMALLEST_SCALE * self.largest_gradient()) or 1.0


class Dump:
    """A dump and what torch makes of it."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text()

    def train(self, *, precision=torch.float32, autocast=None, seed=0):
        """Forward and, where anything wants a gradient, backward; in double precision if that is asked for."""
        text = self.text.replace("torch.float32", "torch.float64") if precision == torch.float64 else self.text
        module, load_args = load_module(text, self.path.name)
        leaves, arguments = [], []
        for value in load_inputs(load_args, self.path.parent):
            leaf, argument = prepared(value, precision)
            leaves.append(leaf)
            arguments.append(argument)
        torch.manual_seed(seed)
        with torch.autocast("cpu", autocast) if autocast else contextlib.nullcontext():
            outputs = module(*arguments)
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
        gradients = {}
        wanted = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        loss = mean_of_means(outputs)
        if wanted and loss is not None and loss.requires_grad:
            found = torch.autograd.grad(loss, [leaves[k] for k in wanted], allow_unused=True)
            gradients = {k: gradient for k, gradient in zip(wanted, found) if gradient is not None}
        detached = [v.detach() if isinstance(v, torch.Tensor) else v for v in arguments]
        return Trained([v.detach() for v in outputs if isinstance(v, torch.Tensor)], gradients, detached)


def prepared(value, precision):
    """An input, as the tensor whose gradient is wanted and as what the program gets: the program may write to the second if the dump says
    that it is no leaf."""
    if not isinstance(value, torch.Tensor):
        return value, value
    inner = value.detach()
    if value.dtype == torch.float32 and precision == torch.float64:
        inner = inner.double()
    if not value.requires_grad:
        return inner, inner
    leaf = inner.requires_grad_()
    return leaf, leaf if value.is_leaf else leaf.clone()


def mean_of_means(value):
    """The loss: a tensor counts by the mean of its elements, a list by the mean of what its members count by; None where nothing does."""
    if isinstance(value, torch.Tensor):
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            return value.double().mean()
        return (value.real if value.dtype.is_complex else value).mean()
    if isinstance(value, (list, tuple)):
        parts = [part for part in map(mean_of_means, value) if part is not None]
        return sum(parts) / len(parts) if parts else None
    return None


def run(pyrite, path, folder, *options, code=0):
    """Pyrite's run of a dump: what it gives, and its report."""
    files = {name: folder / f"{name}.npz" for name in ("outputs", "gradients", "inputs")}
    saving = [part for name, file in files.items() for part in (f"--save-{name}", file)]
    report = json.loads(pyrite("run", path, *saving, *options, "--accuracy", "off", "--json", code=code))
    arrays = {name: load(file) for name, file in files.items()}
    places = [int(row["of"].removeprefix("input ")) for row in report["gradients"]]
    return Trained(arrays["outputs"], dict(zip(places, arrays["gradients"])), arrays["inputs"]), report


def load(file):
    with numpy.load(file) as arrays:
        return [torch.from_numpy(arrays[name]) for name in arrays.files]


def gradient_difference(want, have, exact):
    """None, or a sentence about the first gradient that is not torch's."""
    if want.gradients.keys() != have.gradients.keys():
        return f"gradients of the inputs {sorted(have.gradients)} instead of {sorted(want.gradients)}"
    for k, expected in want.gradients.items():
        scale = exact.scale(k)
        actual = have.gradients[k]
        if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
            return f"gradient of input {k}: {actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
        if found := value_difference(expected / scale, actual / scale, lambda k=k, scale=scale: exact.gradients[k] / scale):
            return f"gradient of input {k}: {found}"
    return None
