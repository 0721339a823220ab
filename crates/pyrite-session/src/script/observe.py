import io
import os
import random
import re
import sys

import torch
from torch._dynamo.eval_frame import OptimizedModule

# Backends that compute with the kernels of eager mode, and round as it does.
EXACT = ("eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "aot_eager")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def stable(text):
    """A text without what changes from run to run and from backend to backend: addresses, and the names of autograd's nodes."""
    return re.sub(r"grad_fn=<\w+>", "grad_fn", re.sub(r"\b0x[0-9a-fA-F]+", "0x", text))


def copied(value, depth=0, seen=()):
    """What a value comes to, in things that compare: tensors, numbers, texts, and containers of them."""
    if isinstance(value, torch.Tensor):
        kind = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} of {value.layout}"
        plain = value.detach().as_subclass(torch.Tensor).cpu()
        return (kind, plain.to_dense() if value.layout is not torch.strided else plain.clone())
    if isinstance(value, str):
        return stable(value)
    if value is None or isinstance(value, (bool, int, float, complex, bytes, torch.dtype, torch.Size)):
        return value
    if isinstance(value, OptimizedModule):
        return copied(value._orig_mod, depth, seen)
    if depth == 8 or id(value) in seen:
        return "..."
    seen = (*seen, id(value))
    if isinstance(value, dict):
        return [(copied(key, depth + 1, seen), copied(item, depth + 1, seen)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [copied(item, depth + 1, seen) for item in value])
    if isinstance(value, (set, frozenset)):
        return sorted(stable(repr(item)) for item in value)
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
        error = None if end.code in (None, 0) else ("SystemExit", str(end.code), "builtins")
    except BaseException as raised:
        error = (type(raised).__name__, stable(str(raised)), type(raised).__module__)
    finally:
        sys.stdout = standard
    skipped = (type(sys), type, type(copied), type(len))
    for name, value in sorted(vars(main).items()):
        if not name.startswith("__") and not isinstance(value, skipped):
            try:
                left[name] = copied(value)
            except Exception as unreadable:
                left[name] = f"cannot be read: {type(unreadable).__name__}"
    return {"printed": stable(printed.getvalue()), "error": error, "left": left}


def near(a, b, unit=0.0):
    """Whether two floats are equal but for rounding; a printed one, but for a unit of its last digit."""
    return a == b or a != a and b != b or abs(a - b) <= 1e-5 * max(abs(a), abs(b)) + unit


def same_text(a, b):
    """Whether two texts are equal but for the rounding of the floats in them."""
    if a == b:
        return True
    first, second = NUMBER.findall(a), NUMBER.findall(b)
    if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split() or len(first) != len(second):
        return False

    def same(x, y):
        if x == y or not re.search(r"[.eE]", x) and not re.search(r"[.eE]", y):
            return x == y
        digits = min(len(number.lower().partition("e")[0].partition(".")[2]) for number in (x, y))
        power = max(int(number.lower().partition("e")[2] or 0) for number in (x, y))
        # A tensor shows four digits; a number with fewer is whole, or written by hand.
        return near(float(x), float(y), 1.01 * 10.0 ** (power - digits) if digits >= 4 else 0.0)

    return all(map(same, first, second))


def differs(a, b, place):
    """Where two observed values differ; None where they do not."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        try:
            torch.testing.assert_close(b, a, equal_nan=True)
        except AssertionError as error:
            return f"{place}: " + " ".join(str(error).split())[:200]
        return None
    if isinstance(a, float) and isinstance(b, float):
        return None if near(a, b) else f"{place} is {a!r} eager, {b!r} compiled"
    if isinstance(a, complex) and isinstance(b, complex):
        return None if near(a.real, b.real) and near(a.imag, b.imag) else f"{place} is {a!r} eager, {b!r} compiled"
    if type(a) is not type(b):
        return f"{place} is {shown(a)} eager, {shown(b)} compiled"
    if isinstance(a, str):
        return None if same_text(a, b) else f"{place} is {shown(a)} eager, {shown(b)} compiled"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{place} has {len(a)} elements eager, {len(b)} compiled"
        return next((found for x, y in zip(a, b) if (found := differs(x, y, place))), None)
    return None if a == b else f"{place} is {shown(a)} eager, {shown(b)} compiled"


def shown(value):
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def first_line(text):
    return (text.strip().splitlines() or [""])[0][:300]


def judged(eager, compiled):
    """How a compiled run differs from an eager one: a word for the way, and a sentence; None where it does not.

    A script that raises an error of its own may raise another one compiled."""
    if eager["error"] and compiled["error"] and eager["error"][0] != "SystemExit":
        return None
    if compiled["error"] != eager["error"]:
        if compiled["error"]:
            kind, text, _ = compiled["error"]
            return f"error {kind}", f"only the compiled run raises {kind}: {first_line(text)}"
        kind, text, _ = eager["error"]
        return f"no error {kind}", f"only the eager run raises {kind}: {first_line(text)}"
    if not same_text(eager["printed"], compiled["printed"]):
        lines = zip((eager["printed"] + "\n").splitlines(), (compiled["printed"] + "\n").splitlines())
        first = next(((a, b) for a, b in lines if not same_text(a, b)), (eager["printed"], compiled["printed"]))
        return "result", f"it prints {shown(first[0])} eager, {shown(first[1])} compiled"
    if set(eager["left"]) != set(compiled["left"]):
        names = sorted(set(eager["left"]) ^ set(compiled["left"]))
        return "result", f"only one of the runs has the variable {names[0]}"
    for name, value in eager["left"].items():
        if found := differs(value, compiled["left"][name], name):
            return "result", found
    return None


def doubt(found, compiled, backend):
    """Why a difference says nothing: a backend that rounds otherwise may have a script print, store and raise other things."""
    raised = (compiled["error"] or ("", "", ""))[2]
    if backend in EXACT or not found[0].startswith(("result", "error", "no error")) or raised.startswith("torch."):
        return None
    return f"{found[1]}; {backend} may round otherwise than eager mode, which may explain it: `pyrite debug` judges the graphs"


def prepare(backend, mode):
    """Has torch.compile use a backend, whatever it is told, and compile nothing in the mode `eager`: what it returns is of the same
    kind in both."""
    original = torch.compile

    def compile(model=None, **settings):
        settings.pop("mode", None)
        # The other options are those of the backend that is replaced.
        kept = {name: value for name, value in (settings.pop("options", None) or {}).items() if name == "guard_filter_fn"}
        settings |= {"options": kept} if kept else {}
        return original(model, **{**settings, "backend": backend})

    torch.compile = compile
    if mode == "eager":
        torch.compiler.set_stance("force_eager")
