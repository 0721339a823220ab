"""Random programs: text of a function of several tensors, with views, writes to arguments and views of arguments returned."""

from __future__ import annotations

import re

import torch

POINTWISE = ("{a} * 2", "{a} + 1", "-{a}", "{a} * {a}", "{a}.abs()", "torch.relu({a})", "{a} - 3")
FLOATING = ("torch.sin({a})", "torch.sigmoid({a})", "torch.tanh({a})", "{a}.exp()", "{a} / 3")
BINARY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "torch.maximum({a}, {b})", "torch.where({a} > {b}, {a}, {b})", "{a} - 2 * {b}")
VIEWS = ("{a}[1:]", "{a}[:-1]", "{a}[::2]", "{a}.t()", "{a}.reshape(-1)", "{a}[..., 0]", "{a}.unsqueeze(0)", "{a}[:, 1:]", "{a}.flip(0)", "{a}.expand(2, *{a}.shape)", "{a}.view_as({a})", "{a}.detach()")
PLACES = ("{a}.as_strided(({n},), (1,), {o})", "{a}.as_strided(({n},), (1,))")
REDUCTIONS = ("{a}.sum()", "{a}.sum(0)", "{a}.sum(-1)", "{a}.amax(-1)", "{a}.mean(0)")
WRITES = ("{x}.add_(1)", "{x}.mul_(2)", "{x}.copy_({b})", "{x}.add_({b})", "{x}[1:].add_(1)", "{x}[..., 0].zero_()", "{x}.sub_({b})", "{x}.t().mul_(3)", "{x}[:-1].copy_({x}[1:])")


def program(rng, examples, *, writes):
    """The text of a function that runs on the examples; `None` where chance made none."""
    names = [f"x{index}" for index in range(len(examples))]
    space = dict(zip(names, (example.clone() for example in examples)))
    space["torch"] = torch
    lines = []
    floating = examples[0].dtype.is_floating_point
    for number in range(rng.randrange(1, 6)):
        known = [name for name, value in space.items() if isinstance(value, torch.Tensor)]
        target = f"v{number}"
        kind = rng.random()
        if kind < 0.3:
            form = rng.choice(POINTWISE + (FLOATING if floating else ()))
        elif kind < 0.55:
            form = rng.choice(BINARY)
        elif kind < 0.8:
            form = rng.choice(VIEWS)
        elif kind < 0.84:
            form = rng.choice(PLACES)
        elif kind < 0.92 or not writes:
            form = rng.choice(REDUCTIONS)
        else:
            form = rng.choice(WRITES)
        written = form in WRITES
        a, b = rng.choice(known), rng.choice(known)
        x = rng.choice(names)
        # Torch takes a tensor whose elements share cells for its own copy; nobody writes that.
        b = rng.choice([name for name in known if name != x] or [b]) if written else b
        chosen = {"a": a, "b": b, "x": x, "n": rng.randrange(1, 4), "o": rng.randrange(0, 3)}
        line = form.format(**chosen)
        line = line if written else f"{target} = {line}"
        try:
            exec(line, space)
        except Exception:
            continue
        lines.append(line)
    if not lines:
        return None
    made = [name for name in space if name.startswith("v") and isinstance(space[name], torch.Tensor)]
    given = rng.sample(made, min(len(made), rng.randrange(1, 4))) if made else []
    if rng.random() < 0.15 or not given:
        given.append(rng.choice(names))
    return "\n    ".join([f"def program({', '.join(names)}):", *lines, f"return {', '.join(given)},"]) + "\n"


def function(text, name):
    """The function of a text."""
    space = {"torch": torch}
    exec(compile(text, name, "exec"), space)
    return space["program"]


def reading_first(text):
    """The same program, in which every write reads all of its operand before it writes."""
    return re.sub(r"\.(copy_|add_|sub_)\(([vx].*)\)$", r".\1((\2).clone())", text, flags=re.MULTILINE)
