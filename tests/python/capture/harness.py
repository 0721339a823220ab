"""Runs a case in plain Python and through a compiler, call by call, and says where the two part.

Both sides go through the same session of calls: with the inputs, again with fresh ones of the same kind, with other values, with every
change that the case declares, with the first inputs once more, and finally twice on the same objects. After each call everything that a
program could notice is compared: the result or the exception, the arguments, the watched globals, what went to stdout, where the random
generators stand, the grad mode, and the gradients wherever something requires one. The second call must not compile anything.
"""

import contextlib
import copy
import importlib
import io
import random
import sys
from dataclasses import dataclass

import numpy
import torch
from capture.cases import Call, Message, Reuse
from capture.snapshot import Part, Snapshots, difference, scrubbed
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


@dataclass(frozen=True)
class Step:
    """One call of a session."""

    label: str
    variant: int
    seed: int
    # Whether the arguments of the step before are used again.
    keeps: bool = False


def session(case):
    changes = [Step(f"changed inputs {variant}", variant, 0) for variant in range(1, len(case.makers))]
    return [
        Step("first call", 0, 0),
        Step("second call", 0, 0),
        Step("other values", 0, 1),
        *changes,
        Step("first inputs again", 0, 0),
        Step("same objects", 0, 0, keeps=True),
    ]


class Globals:
    """The watched globals of a case, and what they were at import. Caches of functions are emptied once for a session."""

    def __init__(self, case):
        self.module = sys.modules[case.function.__module__]
        watched = {name: getattr(self.module, name) for name in case.watch}
        for value in watched.values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
        self.initial = {name: copy.deepcopy(value) for name, value in watched.items() if not hasattr(value, "cache_clear")}

    def restore(self):
        for name, value in self.initial.items():
            setattr(self.module, name, copy.deepcopy(value))

    def now(self):
        return {name: getattr(self.module, name, None) for name in self.initial}


@dataclass(frozen=True)
class Outcome:
    """What is left of one call, as snapshots."""

    step: Step
    seen: Part
    compiled: int


def run(case, function, compilations=lambda: 0):
    """The outcomes of a session with `function` in the place of the case's own."""
    watched = Globals(case)
    outcomes = []
    made = Call((), {})
    for step in session(case):
        if not step.keeps:
            watched.restore()
            made = case.make(step.variant, step.seed)
        before = compilations()
        seen = observe(function, made, watched, case.message)
        outcomes.append(Outcome(step, seen, compilations() - before))
    watched.restore()
    return outcomes


def observe(function, made, watched, message):
    """Calls the function and takes a snapshot of everything it could have changed."""
    printed = io.StringIO()
    result = raised = None
    with contextlib.redirect_stdout(printed), settings_kept() as settings:
        try:
            result = function(*made.args, **made.kwargs)
        except Exception as error:
            raised = error
        settings.note()
    taken = Snapshots()
    parts = [
        ("exception", told(taken, raised, message)),
        ("result", taken.take(result)),
        ("arguments", taken.take(list(made.args))),
        ("keywords", taken.take(dict(made.kwargs))),
        ("globals", taken.take(watched.now())),
        ("stdout", scrubbed(printed.getvalue())),
        ("settings", settings.noted),
        ("random", (torch.rand(()).item(), random.random(), float(numpy.random.rand()))),
    ]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        parts += gradients(taken.tensors)
    parts.append(("stdout of backward", scrubbed(printed.getvalue())))
    return Part("run", tuple(parts))


def told(taken, raised, message):
    if raised is None or message is Message.EXACT:
        return taken.take(raised)
    return Part("exception", (("type", f"{type(raised).__module__}.{type(raised).__qualname__}"),))


def gradients(tensors):
    """The gradients of all leaves among the tensors, by a weighted sum of everything that was computed from them."""
    roots = [tensor for tensor in tensors if tensor.requires_grad and not tensor.is_leaf and not tensor.is_complex()]
    leaves = [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]
    if not roots:
        return
    try:
        weights = [weight(root) for root in roots]
        torch.autograd.backward(roots, weights)
    except RuntimeError as error:
        yield "backward", type(error).__name__
        return
    taken = Snapshots()
    yield from ((f"gradient {n}", taken.take(leaf.grad)) for n, leaf in enumerate(leaves))
    for leaf in leaves:
        leaf.grad = None


def weight(root):
    """The gradient that a result is given: of its class, where only that class can be added to it."""
    if is_traceable_wrapper_subclass(root):
        return torch.full_like(root.detach(), 0.5)
    return torch.cos(torch.arange(root.numel(), dtype=root.dtype)).reshape(root.shape)


@contextlib.contextmanager
def settings_kept():
    """Global settings of torch: noted after the call, and put back whatever it did to them."""
    state = Settings()
    kept = state.read()
    try:
        yield state
    finally:
        torch.set_grad_enabled(kept["grad mode"])
        torch.set_default_dtype(kept["default dtype"])


class Settings:
    noted = ()

    @staticmethod
    def read():
        return {
            "grad mode": torch.is_grad_enabled(),
            "default dtype": torch.get_default_dtype(),
            "autocast": torch.is_autocast_enabled("cpu"),
            "inference mode": torch.is_inference_mode_enabled(),
        }

    def note(self):
        self.noted = tuple(self.read().items())


@dataclass(frozen=True)
class Counts:
    """What a compiler says of one call."""

    graphs: int
    breaks: int


def check(case, compiler):
    """The first difference between plain Python and the compiler, as a sentence, or `None`."""
    compiler.reset()
    want = run(case, case.function)
    have = run(case, compiler.compile(case.function), compiler.compilations)
    for expected, found in zip(want, have, strict=True):
        parting = difference(expected.seen, found.seen, found.step.label)
        if parting:
            return parting
    if case.reuse is Reuse.REQUIRED and have[1].compiled:
        return f"second call: compiled {have[1].compiled} graphs again"
    return None


def count(case, compiler):
    """How many graphs and breaks the first inputs give, or `None` where the function raises."""
    compiler.reset()
    watched = Globals(case)
    watched.restore()
    made = case.make(0, 0)
    try:
        with contextlib.redirect_stdout(io.StringIO()), settings_kept():
            return compiler.explain(case.function, made)
    except Exception:
        return None
    finally:
        watched.restore()


def remembering(run):
    """A program that runs once and returns the same from then on: what is left of a call is the way to it."""
    kept = []

    def call(*args):
        if not kept:
            kept.append(run(*args))
        return kept[0]

    return call


class Plain:
    """No compiler at all: a case that differs from itself is a mistake in the corpus."""

    name = "plain"

    def reset(self):
        pass

    def compile(self, function):
        return function

    def compilations(self):
        return 0

    def explain(self, function, made):
        function(*made.args, **made.kwargs)
        return Counts(0, 0)


class Dynamo:
    """TorchDynamo with its eager backend."""

    name = "dynamo"

    def __init__(self):
        self.graphs = 0
        # Forks of this process find everything imported.
        self.compile(torch.sin)(torch.ones(1))

    def reset(self):
        torch._dynamo.reset()

    def backend(self, graph, _inputs):
        self.graphs += 1
        return graph.forward

    def compile(self, function):
        return torch.compile(function, backend=self.backend)

    def compile_remembering(self, function):
        return torch.compile(function, backend=lambda graph, _inputs: remembering(graph.forward))

    def compilations(self):
        return self.graphs

    def explain(self, function, made):
        counters = torch._dynamo.utils.counters
        counters.clear()
        told = torch._dynamo.explain(function)(*made.args, **made.kwargs)
        # Neither figure has them all: one misses breaks with no operator before or after them, the other those at branches on data.
        return Counts(told.graph_count, max(told.graph_break_count, sum(counters["graph_break"].values())))


class Pyrite:
    """Pyrite's own capture, with the eager backend."""

    name = "pyrite"

    def __init__(self):
        self.package = importlib.import_module("pyrite")
        self.eager = self.package.backends.lookup("eager")
        self.graphs = 0

    @staticmethod
    def is_installed():
        try:
            return hasattr(importlib.import_module("pyrite"), "compile")
        except ImportError:
            return False

    def reset(self):
        self.package.reset()

    def backend(self, graph, inputs):
        self.graphs += 1
        return self.eager(graph, inputs)

    # No FX module is made of a graph that is run as it is.
    backend._takes_graph = True

    def compile(self, function):
        return self.package.compile(function, backend=self.backend)

    def compile_remembering(self, function):
        return self.package.compile(function, backend=lambda graph, inputs: remembering(self.eager(graph, inputs)))

    def compilations(self):
        return self.graphs

    def explain(self, function, made):
        told = self.package.explain(function)(*made.args, **made.kwargs)
        return Counts(told.graph_count, told.graph_break_count)


class Native(Pyrite):
    """The same with Pyrite's own programs, which take torch's tensors in and out."""

    name = "native"

    def __init__(self):
        super().__init__()
        self.eager = self.package.backends.lookup("native")


class Fx(Pyrite):
    """The same with a backend written for torch.compile, which runs the FX graph that it is given."""

    name = "fx"

    def backend(self, module, _inputs):
        self.graphs += 1
        return module.forward


class Dynamic(Fx):
    """The same with every size as a symbol from the start."""

    name = "dynamic"

    def compile(self, function):
        return self.package.compile(function, backend=self.backend, dynamic=True)


COMPILERS = {compiler.name: compiler for compiler in (Plain, Dynamo, Pyrite, Native, Fx, Dynamic)}
