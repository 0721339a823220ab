"""What a compiled call costs beside its kernels: rows for `python -m bench --only calls`.

A module of 100 parameters of eight numbers each, whose forward adds them up: one small kernel. The call of the compiled module is measured by
`pyrite.compile` and by `torch.compile`, with Pyrite and with Inductor, without gradients, while they are recorded, and with the backward pass.
`pyrite.compile` without gradients has a bar; while gradients are recorded, Inductor's time is the bar.
"""

import time

import torch

PARAMETERS = 100
CALL_BAR = 20e-6
ROUNDS, CALLS = 30, 100


class Sum(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        self.terms = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(8)) for _ in range(count)])

    def forward(self, x):
        for term in self.terms:
            x = x + term
        return x


def seconds(call):
    """The time of one call: the smallest mean of many rounds of calls."""
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - start) / CALLS)
    return best


def measure(count=PARAMETERS):
    """Seconds of a call, by way and by whether gradients are recorded."""
    import pyrite

    x, gradient = torch.randn(4, 8), torch.ones(4, 8)
    ways = {
        "pyrite.compile": pyrite.compile,
        "torch.compile(pyrite)": lambda model: torch.compile(model, backend="pyrite"),
        "inductor": torch.compile,
        "eager": lambda model: model,
    }
    rows = {}
    for name, compiled in ways.items():
        torch._dynamo.reset()
        program = compiled(Sum(count).eval())
        with torch.no_grad():
            rows[name, "inference"] = seconds(lambda: program(x))
        rows[name, "recorded"] = seconds(lambda: program(x))
        rows[name, "training"] = seconds(lambda: program(x).backward(gradient))
    return rows


def rows():
    """Rows of the report: against the bar for `pyrite.compile` without gradients, against Inductor for the others."""
    found = measure()
    for (name, mode), taken in found.items():
        if name == "inductor":
            continue
        theirs = found["inductor", mode]
        ratio, bar = taken / theirs, 1.0 if (name, mode) == ("pyrite.compile", "recorded") else None
        if (name, mode) == ("pyrite.compile", "inference"):
            ratio, bar = taken / CALL_BAR, 1.0
        yield {"name": f"call, {PARAMETERS} parameters, {name}, {mode}", "pyrite": taken, "torch": theirs, "ratio": ratio, "bar": bar}
