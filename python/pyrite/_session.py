"""Sessions of the debugger and comparisons of values, as objects that notebooks show."""

from __future__ import annotations

import collections.abc
import dataclasses
import difflib
import html
import json
import os
import pathlib
import shlex
import sys

from pyrite import _native

# How many calls of each region of a function or script are checked.
CALLS = 3


class Session:
    """What a session found.

    `outcome` is `proven` (there is a repro that was seen to fail as announced), `seen` (it failed, and is not proven), `noise`,
    `invalid` (the question has no answer) or `pass`. `signature` says how it fails, `program` is the smallest program that does,
    `proof` the line that proves it, `folder` holds the repro, the report and the trace, `steps` are what each step found. `data`
    is all of it.
    """

    def __init__(self, data):
        self.data = data
        self.outcome = data["outcome"]
        self.backend = data.get("backend")
        self.signature = data.get("signature")
        self.program = data.get("program")
        self.proof = data.get("proof")
        self.folder = pathlib.Path(data["folder"]) if data.get("folder") else None
        self.repro = pathlib.Path(data["repro"]) if data.get("repro") else None
        self.report = pathlib.Path(data["report"]) if data.get("report") else None
        self.steps = [(step["step"], step["text"]) for step in data.get("steps", [])]

    def __bool__(self):
        """Whether something was found."""
        return self.outcome in ("proven", "seen")

    def __str__(self):
        lines = [f"{step}: {text}" for step, text in self.steps]
        if self.program:
            lines += [self.proof or "", self.program]
        return "\n".join([f"outcome: {self.outcome}", *lines])

    def __repr__(self):
        where = f", {self.folder}" if self.folder else ""
        return f"<Session: {self.outcome}{': ' + self.signature if self.signature else ''}{where}>"

    def _repr_html_(self):
        """What a notebook shows: the report of the session in a frame of its own, or what is known without its folder."""
        try:
            page = _native.report_page(self.folder) if self.folder else None
        except OSError:
            page = None
        if page is None:
            return self._summary()
        frame = 'sandbox="allow-scripts" style="width: 100%; height: 640px; border: 1px solid #8888; border-radius: 7px"'
        return f'<iframe title="Report of the session" {frame} srcdoc="{html.escape(page)}"></iframe>'

    def _summary(self):
        """The outcome, the smallest program, its proof, and what each step found."""
        escaped = html.escape
        parts = [f"<h3>{escaped(self.signature or 'no failure was found')}</h3>", f"<p><b>{escaped(self.outcome)}</b>"]
        parts.append(f" with <code>{escaped(self.backend)}</code></p>" if self.backend else "</p>")
        if self.program:
            parts.append(f"<pre>{escaped(self.program)}</pre><p>{escaped(self.proof or '')}</p>")
        rows = "".join(f"<tr><th>{escaped(step)}</th><td>{escaped(text)}</td></tr>" for step, text in self.steps)
        parts.append(f"<table>{rows}</table>")
        if self.folder:
            parts.append(f"<p><code>{escaped(str(self.folder))}</code></p>")
        return f"<div>{''.join(parts)}</div>"


def tell(text):
    """Says what a session does, on standard error."""
    print(text, file=sys.stderr, flush=True)


def session(
    program, *, args=None, kwargs=None, backend=None, out=None, time_budget=None, imports=(), progress=tell, **options
):
    """Debugs a file, or a call of a function or module, and returns a `Session`.

    A file is a repro or a dump of PyTorch's; a function is compiled by `torch.compile` with the backend, by default Inductor, and
    called with `args` and `kwargs`. The failure is confirmed, reduced to the smallest program that shows it, proven, bisected and
    reported. `out` is the folder of the result, `time_budget` how many seconds a search may take, `imports` are modules that
    workers import, `progress` hears of every step (None: nobody). Further options are those of `pyrite debug`, with underscores.
    """
    given = {"backend": backend, "out": out, "time_budget": time_budget, **options}
    _refuse_unknown(given)
    if callable(program):
        return _of_call(program, args or (), kwargs or {}, given, list(imports), progress)
    if args is not None or kwargs is not None:
        raise TypeError("a file has its own inputs; args and kwargs are for functions and modules")
    return _of_file(program, given, list(imports), progress)


def _refuse_unknown(options):
    known = _native.session_options()
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(known)}"
            raise TypeError(f"a session has no option `{name}`{hint}")


def _of_file(path, options, imports, progress):
    given = {name: _plain(value) for name, value in options.items() if value is not None}
    found = _native.debug_session(os.fspath(path), json.dumps(given), imports, progress)
    return Session(json.loads(found))


def _plain(value):
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _of_call(function, args, kwargs, options, imports, progress):
    import torch

    from pyrite import config, torch_backend

    function = getattr(function, "_orig_mod", None) or getattr(function, "_torchdynamo_orig_callable", function)
    backend = options.pop("backend", None) or "inductor"
    with config.patch(debug=True, debug_calls=CALLS, strict=False), torch_backend.watched() as watch:
        torch._dynamo.reset()
        try:
            torch.compile(function, backend=backend)(*args, **kwargs)
        except Exception:
            # A failure that a region has recorded ends the call in whatever way; any other is the function's own.
            if not watch.failures:
                raise
    return of_watch(watch, options, imports, progress)


def of_watch(watch, options, imports, progress):
    """The session on the first failure that was noted while regions were watched."""
    unchecked = [{"step": "unchecked", "text": reason} for reason in watch.unchecked]
    if not watch.failures:
        return Session({"outcome": "pass", "steps": [*unchecked, {"step": "confirm", "text": watch.without_failure()}]})
    failure = watch.failures[0]
    if progress:
        progress(f"a region failed with {failure.backend}: {failure.message}")
    if failure.repro is None:
        step = {"step": "confirm", "text": failure.message}
        return Session({"outcome": "seen", "backend": failure.backend, "signature": failure.message, "steps": [*unchecked, step]})
    given = {**options, "backend": failure.backend}
    # The failure was seen once, and the minifier looks again whether it comes every time.
    if given.get("runs") is None:
        given["runs"] = 1
    if watch.unknown_operators and given.get("reference") is None:
        given["reference"] = "torch:eager"
    return _of_file(failure.repro, given, [*imports, *watch.imports], progress)


@dataclasses.dataclass
class Comparison:
    """Whether two results are the same: true where they agree; `lines` say how they differ, `data` is all of it."""

    agrees: bool
    verdict: str
    sentence: str
    lines: list[str]
    data: dict

    def __bool__(self):
        return self.agrees

    def __str__(self):
        return "\n".join([self.sentence, *self.lines])

    def __repr__(self):
        return f"<Comparison: {self.sentence.rstrip(':')}>"

    def _repr_html_(self):
        return f"<pre>{html.escape(str(self))}</pre>"


def same(
    expected,
    actual,
    *,
    exact=None,
    accuracy="fp",
    tol=None,
    equal_nan=True,
    check_dtype=True,
    check_non_float=True,
    relaxed_numbers=False,
    cosine=None,
):
    """Compares two results as `pyrite compare` does: tensors (dense and sparse), numbers, strings, None, and containers of them.

    `exact` is the same in double precision, which judges what is not close; `accuracy` is `fp`, `strict` (every bit) or `off`;
    `tol` is the tolerance, relative and absolute, of all floats. The result is true where both agree.
    """
    weight = {True: "difference", False: "note"}
    switches = {
        "tolerance": tol,
        "nans": "equal" if equal_nan else "unequal",
        "dtypes": weight[check_dtype],
        "non_floats": weight[check_non_float],
        "kinds": weight[not relaxed_numbers],
        "cosine": cosine,
    }
    sides = [leaves(side) for side in (expected, actual)]
    judge = None if exact is None else leaves(exact)
    agrees, verdict, sentence, lines, data = _native.compare_values(*sides, judge, accuracy, json.dumps(switches))
    return Comparison(agrees, verdict, sentence, lines, json.loads(data))


def leaves(value, path=""):
    """The values in nested containers with their names, keys and positions joined by dots. Empty containers are values."""
    import torch

    def inside(pairs):
        return [leaf for key, item in pairs for leaf in leaves(item, f"{path}.{key}" if path else str(key))]

    name = path or "0"
    if isinstance(value, torch.Tensor):
        return _tensor(value, name)
    if type(value).__module__ == "numpy" and hasattr(value, "__array__"):
        return _tensor(torch.as_tensor(value), name)
    if isinstance(value, collections.abc.Mapping):
        return inside(value.items()) if value else [(name, "{}")]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return inside((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, tuple | list):
        return inside(enumerate(value)) if value else [(name, "[]")]
    if isinstance(value, set | frozenset):
        return [(name, f"set of {sorted(map(repr, value))}")]
    if value is None or isinstance(value, bool | float | complex | str):
        return [(name, value)]
    if isinstance(value, int):
        return [(name, value if -(2**63) <= value < 2**63 else f"integer {value}")]
    return [(name, f"{type(value).__qualname__}: {value!r}")]


def _tensor(tensor, name):
    import torch

    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_quantized:
        parts = {"int_repr": tensor.int_repr(), "qscheme": str(tensor.qscheme()), "dequantized": tensor.dequantize()}
        return [leaf for part, value in parts.items() for leaf in leaves(value, f"{name}.{part}")]
    if tensor.layout is torch.strided:
        return [(name, tensor.as_subclass(torch.Tensor).resolve_conj().resolve_neg())]
    parts = {"layout": str(tensor.layout), "shape": str(tuple(tensor.shape))}
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        parts |= {"indices": tensor.indices(), "values": tensor.values()}
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts |= {"crow_indices": tensor.crow_indices(), "col_indices": tensor.col_indices(), "values": tensor.values()}
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts |= {"ccol_indices": tensor.ccol_indices(), "row_indices": tensor.row_indices(), "values": tensor.values()}
    elif tensor.is_nested:
        parts |= {str(index): item for index, item in enumerate(tensor.unbind())}
    else:
        parts["values"] = tensor.to_dense()
    return [leaf for part, value in parts.items() for leaf in leaves(value, f"{name}.{part}")]


def magic(shell):
    """The cell magic `%%pyrite_debug [--backend NAME] [--out FOLDER] [--time-budget SECONDS] …` of a shell of IPython's."""

    def pyrite_debug(line, cell):
        """Runs a cell with every compiled region under the debugger; the result is the `Session` on the first failure."""
        from pyrite import config, torch_backend

        options, imports = _words(shlex.split(line))
        _refuse_unknown(options)
        with config.patch(debug=True, debug_calls=CALLS, strict=False), torch_backend.watched(options.pop("backend", None)) as watch:
            ran = shell.run_cell(cell)
        if ran is not None and not watch.failures:
            ran.raise_error()
        return of_watch(watch, options, imports, tell)

    return pyrite_debug


def _words(words):
    """The options of a line, by their names, and the modules to import."""
    options, imports = {}, []
    while words:
        word = words.pop(0)
        name, joined, text = word.partition("=")
        if not name.startswith("--"):
            raise ValueError(f"`{word}` is not an option; write options as --name VALUE")
        name = name.removeprefix("--").replace("-", "_")
        if not joined:
            text = words.pop(0) if words and not words[0].startswith("--") else "true"
        if name == "import":
            imports.append(text)
            continue
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options, imports
