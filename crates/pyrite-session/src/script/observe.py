import io
import os
import random
import sys

import torch


def copied(value, depth=0, seen=()):
    """What a value comes to, in things that compare: tensors, numbers, texts, and containers of them."""
    if isinstance(value, torch.Tensor):
        kind = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} of {value.layout}"
        plain = value.detach().as_subclass(torch.Tensor).cpu()
        return (kind, plain.to_dense() if value.layout is not torch.strided else plain.clone())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.Size)):
        return value
    if depth == 8 or id(value) in seen:
        return "..."
    seen = (*seen, id(value))
    if isinstance(value, dict):
        return [(copied(key, depth + 1, seen), copied(item, depth + 1, seen)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [copied(item, depth + 1, seen) for item in value])
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if type(value).__module__ == "__main__" or isinstance(value, torch.nn.Module):
        return (type(value).__qualname__, copied(vars(value) if hasattr(value, "__dict__") else {}, depth + 1, seen))
    return None


def observed(path, words):
    """Runs a script and returns what it prints, what it raises, and what its variables hold in the end."""
    torch.manual_seed(0)
    random.seed(0)
    printed, error, left = io.StringIO(), None, {}
    sys.argv, sys.path[0] = [path, *words], os.path.dirname(path)
    standard, sys.stdout = sys.stdout, printed
    main = type(sys)("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), vars(main))
    except SystemExit as end:
        error = None if end.code in (None, 0) else ("SystemExit", str(end.code))
    except BaseException as raised:
        error = (type(raised).__name__, str(raised))
    finally:
        sys.stdout = standard
    skipped = (type(sys), type, type(copied), type(len))
    for name, value in sorted(vars(main).items()):
        if not name.startswith("__") and not isinstance(value, skipped) and not hasattr(value, "_torchdynamo_orig_callable"):
            left[name] = copied(getattr(value, "_orig_mod", value))
    return {"printed": printed.getvalue(), "error": error, "left": left}


def differs(a, b, place):
    """Where two observed values differ; None where they do not."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        try:
            torch.testing.assert_close(b, a, equal_nan=True)
        except AssertionError as error:
            return f"{place}: " + " ".join(str(error).split())[:200]
        return None
    if isinstance(a, float) and isinstance(b, float):
        near = a == b or a != a and b != b or abs(a - b) <= 1e-5 * max(abs(a), abs(b))
        return None if near else f"{place} is {a!r} eager, {b!r} compiled"
    if type(a) is not type(b):
        return f"{place} is {shown(a)} eager, {shown(b)} compiled"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{place} has {len(a)} elements eager, {len(b)} compiled"
        return next((found for k, (x, y) in enumerate(zip(a, b)) if (found := differs(x, y, place))), None)
    return None if a == b else f"{place} is {shown(a)} eager, {shown(b)} compiled"


def shown(value):
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def first_line(text):
    return (text.strip().splitlines() or [""])[0][:300]


def judged(eager, compiled):
    """How a compiled run differs from an eager one: a word for the way, and a sentence; None where it does not."""
    if compiled["error"] != eager["error"]:
        if compiled["error"] and (eager["error"] is None or compiled["error"][0] != eager["error"][0]):
            kind, text = compiled["error"]
            return f"error {kind}", f"only the compiled run raises {kind}: {first_line(text)}"
        if compiled["error"] is None:
            kind, text = eager["error"]
            return f"no error {kind}", f"only the eager run raises {kind}: {first_line(text)}"
    if eager["error"]:
        return None
    if eager["printed"] != compiled["printed"]:
        lines = zip((eager["printed"] + "\n").splitlines(), (compiled["printed"] + "\n").splitlines())
        first = next(((a, b) for a, b in lines if a != b), (eager["printed"], compiled["printed"]))
        return "result", f"it prints {shown(first[0])} eager, {shown(first[1])} compiled"
    if set(eager["left"]) != set(compiled["left"]):
        names = sorted(set(eager["left"]) ^ set(compiled["left"]))
        return "result", f"only one of the runs has the variable {names[0]}"
    for name, value in eager["left"].items():
        if found := differs(value, compiled["left"][name], name):
            return "result", found
    return None


def with_backend(backend):
    """Has torch.compile use a backend, whatever it is told."""
    original = torch.compile

    def compile(model=None, **settings):
        settings.pop("mode", None)
        return original(model, **{**settings, "backend": backend})

    torch.compile = compile
