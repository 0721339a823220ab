"""How a case of the corpus is declared.

    @case(lambda: (t(3), 2), lambda: (t(5), 2), lambda: (t(3), 7))
    def scaled(x, factor):
        return x * factor

The first maker gives the inputs, each further one inputs that have changed: other shapes, dtypes, Python values. The harness seeds every
generator before it calls a maker and calls it for every run: no input is used twice unless a run is meant to. A maker returns the positional
arguments, or `call(...)` where there are keywords.

A function of the corpus is pure up to its inputs, its output on stdout, and the globals of its module that `watch` names. Those are put back
to what they were at import before every run with fresh inputs.
"""

import enum
import importlib
import pkgutil
import random
from dataclasses import dataclass

import numpy
import torch


class Message(enum.Enum):
    """Whether the text of an exception belongs to what is compared."""

    EXACT = enum.auto()
    # The text comes out of the depths of an operator, where a compiler may say it in its own words.
    ANY = enum.auto()


class Reuse(enum.Enum):
    """Whether a second call with fresh inputs of the same kind has to be served by what the first one compiled."""

    REQUIRED = enum.auto()
    # The function looks at something that is new in every call, such as a function object made by the inputs.
    FREE = enum.auto()


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    args: tuple
    kwargs: dict


def call(*args, **kwargs):
    return Call(args, kwargs)


@dataclass(frozen=True)
class Case:
    """One function of the corpus with the inputs it is tried on."""

    name: str
    function: object
    makers: tuple
    watch: tuple
    message: Message
    reuse: Reuse

    def make(self, variant, seed):
        """Fresh arguments; every generator stands where `seed` puts it when this returns."""
        seed_everything(seed)
        made = self.makers[variant]()
        seed_everything(seed + 1000)
        return made if isinstance(made, Call) else Call(made, {})


def seed_everything(seed):
    # `torch.manual_seed` also keeps a call with its traceback for every device that is not there yet.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def case(*makers, watch=(), message=Message.EXACT, reuse=Reuse.REQUIRED):
    """Puts the decorated function into the corpus and leaves it as it is."""

    def declare(function):
        family = function.__module__.rpartition(".")[2]
        name = f"{family}.{function.__name__}"
        if name in CASES:
            raise ValueError(f"{name} is declared twice")
        CASES[name] = Case(name, function, makers, tuple(watch), message, reuse)
        return function

    return declare


def t(*shape, grad=False):
    """A tensor of normal random numbers."""
    return torch.randn(*shape, requires_grad=grad)


CASES = {}
# A global that functions of other files set and read.
REMEMBERED = None


def remember(value):
    global REMEMBERED
    REMEMBERED = value



def corpus():
    """Every case by name, in the order of files and declarations."""
    from capture import corpus as package

    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return CASES
