"""The examples in the documentation of installed packages, at every entry point: `python -m border.examples torch torchmetrics --help`.

Nobody here chose these programs: they are what the docstrings of packages show, after `>>>` and in blocks of code, and they are read from where the
packages are installed. The statements of a docstring that eager takes become a function: imports and definitions go before it, and what the others
evaluate to is returned beside the names that they bind. It is compiled as it stands (`whole`), with the tensors, modules and optimizers that it makes
first as its arguments (`given`), and cut off after a statement that eager refuses (`raising`). It is called again with the same numbers, with others, and
where eager takes them with other sizes. Results, arguments, gradients, errors, printed text, settings and the next random number must be eager's.
What differs between two runs of eager is not asked for. Each example runs in a process of its own.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import copy
import ctypes
import importlib
import importlib.util
import io
import itertools
import linecache
import logging
import os
import pathlib
import random
import re
import signal
import socket
import sys
import tempfile
import textwrap
import time
import types
import warnings
import zlib

import cpu  # noqa: F401  (before torch)

import numpy
import torch
import torch._dynamo  # Once, before forks.
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor

import pyrite
from border.observe import WAYS
from capture import isolation
from capture.cases import seed_everything
from capture.harness import gradients, settings_kept
from capture.snapshot import ATOMS, Part, Snapshots, Values, difference, scrubbed

# Folders and files of packages whose examples need more than one process on a CPU, or test the packages themselves.
LEFT_OUT = re.compile(
    r"(^|/)(distributed|_vendor|testing|test|tests|cuda|xpu|mps|mtia|accelerator|backends|onnx|_inductor|_dynamo|multiprocessing|datapipes|datasets"
    r"|include|bin|profiler|monitor|hub\.py|_lobpcg\.py|futures|package|_strobelight|headeronly|cpp_extension\.py|neuron|plot\.py)(/|\.py$|$)"
)

# Statements that are taken out: they reach other machines, devices or processes, or end this one.
OUTSIDE = re.compile(
    r"from_pretrained|hub\.|download|urlopen|requests\.|multiprocessing|subprocess|os\.environ|sys\.exit|num_workers|\bdist\.|distributed|\brpc\b|\.xpu|"
    r"torch\.cuda|mps|fork|threading|time\.sleep|\binput\(\)|while True|torch\.utils\.data|record_memory|\.gds|onnx|dlpack|pipeline\(|load_url|breakpoint|pdb"
)

# What differs from eager's whatever the compiler does: where a docstring's code shows the first, and a difference the second; and why.
KNOWN = [
    (r"\.sort\(", r"values: Tensor-likes are not equal", "sort that is not stable leaves the order of equal numbers open"),
    (r"allclose\(|torch\.dist\(", r"value is (True|False) instead|Scalars are not close", "it is rounding errors alone that are shown"),
    (r"\b(svd|eig|eigh|qr)\(", r"not close! .* relative difference: 2\.0000", "signs of singular vectors and eigenvectors are open"),
    (r"nn\.Transformer\(", r"gradient \d+, values", "eager's gradients are farther from those in double precision: ReLUs of numbers near zero"),
    (r"mark_step_begin\(", r"random is", "eager compiles a part itself, by Inductor, which draws other random numbers"),
    (r"grad_fn|node_creation_hook", r"stdout is .*CompiledBackward|value is .*CompiledBackward", "a compiled program is one node of autograd, with a name of its own"),
]

# So many statements that eager refuses are tried in a docstring, each at the end of what comes before it.
RAISING = 3

# Names that documentation does not introduce.
USUAL = {
    "torch": "torch", "np": "numpy", "numpy": "numpy", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim", "math": "math", "Tensor": "torch:Tensor",
    "init": "torch.nn.init", "fx": "torch.fx", "functools": "functools", "itertools": "itertools", "copy": "copy", "random": "random", "partial": "functools:partial",
    "torchvision": "torchvision", "transforms": "torchvision.transforms", "vmap": "torch.func:vmap", "grad": "torch.func:grad", "pprint": "pprint:pprint",
}  # fmt: skip

# Functions whose results become arguments: tensors that are made of numbers.
MAKERS = set(
    "randn rand randint tensor arange zeros ones full eye linspace logspace randperm as_tensor complex polar normal Tensor FloatTensor LongTensor DoubleTensor "
    "IntTensor BoolTensor randn_like rand_like ones_like zeros_like requires_grad_ Parameter".split()
)


class Docstring:
    """A text with examples: where it stands, the module that it is of, and the code that it shows."""

    def __init__(self, name, module, code):
        self.name, self.module, self.code = name, module, code


def files(package):
    """The sources of a package or a module, with the names by which they are imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return
    origin = pathlib.Path(spec.origin)
    if origin.name != "__init__.py":
        yield origin, package, f"{package.replace('.', '/')}.py"
        return
    for path in sorted(origin.parent.rglob("*.py")):
        below = path.relative_to(origin.parent)
        if not LEFT_OUT.search(str(below)):
            parts = below.with_suffix("").parts
            module = ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)])
            yield path, module, f"{package.replace('.', '/')}/{below}"


def docstrings(packages):
    """All texts of packages that show code, each code once."""
    seen = set()
    for package in packages:
        for path, module, shown in files(package):
            try:
                tree = ast.parse(path.read_text())
            except (SyntaxError, UnicodeDecodeError):
                continue
            # Parts of an f-string are not whole texts.
            inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
            for node in ast.walk(tree):
                if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in inside:
                    continue
                if "\n" in node.value and (code := shown_code(node.value)) and code not in seen:
                    seen.add(code)
                    yield Docstring(f"{shown}:{node.lineno}", module, code)


def shown_code(text):
    """The statements that a text shows, as one piece of Python."""
    chunks = prompted(text.expandtabs()) or blocks(text.expandtabs())
    kept = [chunk for chunk in chunks if chunk.strip()]
    code = "\n".join(kept)
    code = re.sub(r"(['\"])cuda(:\d)?\1", r"\1cpu\1", code).replace(".cuda()", ".cpu()")
    return code if any(not isinstance(each, (ast.Import, ast.ImportFrom)) for each in parsed(code) or ()) else ""


def parsed(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code).body
        except (SyntaxError, ValueError):
            return None


def prompted(text):
    """What stands after prompts, in pieces that parse."""
    found, chunk = [], []
    for line in [*text.splitlines(), ""]:
        if match := re.match(r"\s*(>>>|\.\.\.)( (.*)|)$", line):
            if match[1] == ">>>" or chunk:
                chunk.append((match[1], match[3] or ""))
                continue
        if chunk:
            found += pieces(chunk)
            chunk = []
    return found


def pieces(chunk):
    """The lines of a chunk, as a whole where that parses, else statement by statement."""
    whole = textwrap.dedent("\n".join(line for _, line in chunk))
    if parsed(whole) is not None:
        return [whole]
    single = []
    for prompt, line in chunk:
        if prompt == ">>>" or not single:
            single.append([])
        single[-1].append(line)
    texts = (textwrap.dedent("\n".join(lines)) for lines in single)
    return [text for text in texts if parsed(text) is not None]


def blocks(text):
    """Blocks of code without prompts: after `Example::` and `.. code-block:: python`, and between fences."""
    found = [textwrap.dedent(each) for each in re.findall(r"```(?:python|py)\n(.*?)```", text, re.DOTALL)]
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not re.search(r"(\.\. code-block:: *(python|py3?)|\.\. code:: *python|[Ee]xamples?.*::)\s*$", line):
            continue
        depth, block = len(line) - len(line.lstrip()), []
        for each in lines[number + 1 :]:
            if each.strip() and len(each) - len(each.lstrip()) <= depth:
                break
            block.append(each)
        found.append(textwrap.dedent("\n".join(each for each in block if not re.match(r"\s*:[\w-]+:", each))))
    return [each for each in found if parsed(each) is not None]


class Network(Exception):
    pass


def no_network(*_args, **_kwargs):
    raise Network("examples stay on this machine")


@contextlib.contextmanager
def within(seconds):
    def late(_number, _frame):
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def names_of(node, kind=ast.Load):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, kind)}


def bound(statement):
    """Names that a statement of a body binds, but for those in functions, classes and comprehensions."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    found, below = set(), [statement]
    while below:
        node = below.pop()
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        below += ast.iter_child_nodes(node)
    return found


def is_plain(value):
    """Whether a value can be returned and compared: numbers, texts, tensors, and containers of them."""
    kinds = (torch.Tensor, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, numpy.ndarray, numpy.generic, slice, range)
    return all(isinstance(each, kinds) for each in pytree.tree_leaves(value))


class Example:
    """What a docstring shows, tried once by eager: a module's namespace, the statements that eager takes and those that it refuses."""

    def __init__(self, docstring):
        self.name = docstring.name
        statements = [each for each in parsed(docstring.code) if not OUTSIDE.search(ast.unparse(each))]
        self.namespace = self.globals_of(docstring.module, statements)
        later = set().union(*(bound(each) for each in statements if not isinstance(each, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))))
        self.before, self.body, self.refused = [], [], []
        tried = []
        for each in statements:
            is_definition = isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not (names_of(each) & later)
            if isinstance(each, (ast.Import, ast.ImportFrom)) or is_definition:
                with contextlib.suppress(Exception):
                    self.execute([each], self.namespace)
                    self.before.append(each)
            else:
                tried.append(each)
        self.found = dict(self.namespace)
        for each in tried:
            names = names_of(each)
            try:
                seed_everything(0)
                if isinstance(each, ast.Expr):
                    each.is_kept = is_plain(eval(compile(ast.Expression(each.value), "<example>", "eval"), self.found))
                else:
                    self.execute([each], self.found)
                self.body.append(each)
            except (NameError, ImportError, OSError, Network, TimeoutError, SyntaxError, KeyboardInterrupt):
                continue
            except Exception:
                # What is missing because of a statement that was left out is no error of the example.
                if names <= set(self.found) | set(dir(builtins)) and len(self.refused) < RAISING:
                    self.refused.append((list(self.body), each))

    @staticmethod
    def globals_of(module, statements):
        """The names that examples use and do not bind: of the module that is documented, and the usual ones."""
        names = set().union(*(names_of(each) for each in statements)) if statements else set()
        around = {}
        with contextlib.suppress(Exception):
            around = vars(importlib.import_module(module))
        found = {"__name__": "example", "__builtins__": builtins}
        for name in names - set(dir(builtins)) | (names & {"input"} - names):
            if name in around:
                found[name] = around[name]
            elif name in USUAL:
                source, _, attribute = USUAL[name].partition(":")
                with contextlib.suppress(ImportError):
                    value = importlib.import_module(source)
                    found[name] = getattr(value, attribute) if attribute else value
        return found

    @staticmethod
    def execute(statements, namespace):
        exec(compile(ast.Module(statements, []), "<example>", "exec"), namespace)

    def programs(self):
        """The functions that come of the example."""
        if any(not isinstance(each, ast.Pass) for each in self.body):
            yield Program(self, "whole", self.body, [])
            body, first = self.first()
            if body and first:
                yield Program(self, "given", body, first)
        for number, (before, statement) in enumerate(self.refused):
            yield Program(self, f"raising {number}", [*before, statement], [])

    def first(self):
        """The body in two: what makes tensors, modules and optimizers of numbers and of one another, and the rest."""
        body, first, made, known, names = [], [], set(), set(), {}
        for each in copy.deepcopy(self.body):
            is_first = isinstance(each, ast.Assign) and self.makes(each)
            targets = bound(each)
            for node in ast.walk(each):
                if isinstance(node, ast.Name) and not (is_first and isinstance(node.ctx, ast.Store)):
                    node.id = names.get(node.id, node.id)
            if is_first:
                # What is bound again is another argument.
                for node in ast.walk(each):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in known:
                        names[node.id] = node.id = f"{node.id}_{len(first)}"
                targets = bound(each)
            if is_first and not names_of(each) & (known - made):
                first.append(each)
                made |= targets
            else:
                body.append(each)
            known |= targets
            self.found.update({new: self.found[old] for old, new in names.items() if old in self.found})
        return body, first

    def makes(self, statement):
        if not isinstance(statement.value, ast.Call):
            return False
        called = statement.value.func
        values = [self.found.get(name) for name in bound(statement)]
        return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in MAKERS or all(
            isinstance(value, (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)) for value in values
        )


class Program:
    """A function made of statements, and what makes its arguments."""

    def __init__(self, example, kind, body, first):
        self.name, self.namespace = f"{example.name} {kind}", example.namespace
        self.first = first
        self.parameters = sorted(set().union(*(bound(each) for each in first))) if first else []
        # Names that the function binds itself are not its globals.
        returned = sorted(
            name for name in set().union(*(bound(each) for each in body)) - set(self.parameters) if name in example.found and is_plain(example.found[name])
        )
        statements = []
        for each in body:
            if isinstance(each, ast.Expr) and getattr(each, "is_kept", True):
                each = ast.Expr(ast.Call(ast.Attribute(ast.Name("kept", ast.Load()), "append", ast.Load()), [each.value], []))
            statements.append(each)
        deleted = set().union(*(names_of(each, ast.Del) for each in body))
        shown = ", ".join(f"{name!r}: {name}" for name in returned if name not in deleted)
        text = "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in statements)
        text = f"kept = []\n{text}\nreturn kept, {{{shown}}}"
        self.text = f"def example({', '.join(self.parameters)}):\n{textwrap.indent(text, '    ')}\n"
        self.before = "\n".join(map(ast.unparse, example.before))
        self.making = self.maker(first)
        self.number = zlib.crc32(self.name.encode())

    def maker(self, first):
        return "\n".join(map(ast.unparse, first))

    def function(self, folder):
        """The function, in a file of its own."""
        path = os.path.join(folder, f"example_{self.number}.py")
        pathlib.Path(path).write_text(self.text)
        linecache.checkcache(path)
        namespace = dict(self.namespace) if not self.before else self.namespace
        exec(compile(self.text, path, "exec"), namespace)
        return namespace["example"]

    def makings(self):
        """What makes arguments for each call: the same twice, with other numbers, and with other sizes where eager takes those."""
        yield "first call", self.making, 0
        yield "second call", self.making, 0
        yield "other values", self.making, 1
        yield from ((f"{old} is {old + 1}", making, 0) for old, making in self.other_sizes())

    def other_sizes(self):
        """The making with one whole number replaced wherever it stands."""
        numbers = {each.value for statement in self.first for each in ast.walk(statement) if isinstance(each, ast.Constant) and type(each.value) is int}
        for old in sorted(number for number in numbers if 2 <= number < 1000):
            changed = copy.deepcopy(self.first)
            for statement in changed:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Constant) and type(each.value) is int and each.value == old:
                        each.value = old + 1
            yield old, self.maker(changed)

    def arguments(self, making, seed):
        seed_everything(seed)
        made = dict(self.namespace)
        exec(making, made)
        seed_everything(seed + 100)
        return [made[name] for name in self.parameters]


class Seen(Snapshots):
    """Snapshots that leave out what nobody can rely on: steps of dimensions of size one, where memory of one's own begins, and which tuples of plain values are
    one object."""

    def __init__(self):
        super().__init__()
        self.begins = {}

    def take(self, value):
        if type(value) is tuple and all(isinstance(each, ATOMS) for each in value):
            return Part("builtins.tuple", tuple((f"[{n}]", super(Seen, self).take(each)) for n, each in enumerate(value)))
        return super().take(value)

    def tensor(self, value):
        self.tensors.append(value)
        yield "dtype", value.dtype
        yield "device", value.device.type
        yield "layout", value.layout
        yield "requires_grad", value.requires_grad
        yield "leaf", value.is_leaf
        if isinstance(value, FakeTensor):
            yield "shape", tuple(map(str, value.shape))
            return
        if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            yield from self.attributes(value)
            return
        plain = value.detach()
        if plain.is_nested:
            yield "parts", tuple(Values(each.clone()) for each in plain.unbind())
            return
        yield "shape", tuple(value.shape)
        if value.is_meta:
            return
        if plain.layout is torch.strided:
            yield "stride", tuple(step for step, size in zip(plain.stride(), plain.shape) if size > 1) if plain.numel() else ()
            yield "bits", (plain.is_conj(), plain.is_neg())
            if plain.numel() and plain.untyped_storage().nbytes():
                home = plain.untyped_storage()._cdata
                begin = self.begins.setdefault(home, plain.storage_offset() * plain.itemsize)
                yield "storage", (self.storages.setdefault(home, len(self.tensors)), plain.storage_offset() * plain.itemsize - begin)
            plain = plain.dequantize() if plain.is_quantized else plain
        else:
            yield "coalesced", plain.is_coalesced() if plain.layout is torch.sparse_coo else None
            plain = plain.to_dense()
        yield "values", Values(plain.resolve_conj().resolve_neg().clone())
        if value.is_leaf and value.requires_grad:
            yield "grad", self.take(value.grad)


def observed(function, arguments, *, backward=True):
    """All that a call leaves, as a snapshot; whether it raised."""
    printed = io.StringIO()
    result = raised = None
    state = Global()
    with contextlib.redirect_stdout(printed), settings_kept() as settings:
        try:
            result = function(*arguments)
        except Exception as error:
            raised = error
        settings.note()
    taken = Seen()
    parts = [
        ("exception", type(raised).__name__ if raised else None),
        ("said", scrubbed(str(raised))),
        ("result", taken.take(result)),
        ("arguments", taken.take(list(arguments))),
        ("stdout", said(printed.getvalue())),
        ("settings", settings.noted),
        ("random", (torch.rand(()).item(), random.random(), float(numpy.random.rand()))),
    ]
    try:
        if backward:
            parts += gradients(taken.tensors)
    except Exception as error:
        parts.append(("backward", type(error).__name__))
    state.restore()
    return Part("run", tuple(parts)), raised


class Global:
    """Settings of torch that examples change."""

    def __init__(self):
        self.kept = torch.are_deterministic_algorithms_enabled(), torch.is_anomaly_enabled(), copy.copy(torch._tensor_str.PRINT_OPTS), torch.get_num_threads()

    def restore(self):
        deterministic, anomaly, torch._tensor_str.PRINT_OPTS, threads = self.kept
        torch.use_deterministic_algorithms(deterministic)
        torch.autograd.set_detect_anomaly(anomaly)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        torch.set_default_device(None)


def said(text):
    """Printed text, without what names the nodes of autograd, and places."""
    return re.sub(r"grad_fn=<\w+>|line \d+", "", scrubbed(text))


def parting(want, have, raised, by_torch):
    """In what a call differs from eager's; compilers may say errors in their own words, and save other things than eager for backward."""
    mine, theirs = dict(have.parts), dict(want.parts)
    if "backward" in theirs or theirs["exception"]:
        for each in (mine, theirs):
            for name in [name for name in each if name.startswith(("gradient ", "backward"))]:
                each.pop(name)
    if theirs["exception"]:
        if mine["exception"] is None:
            return f"no error: eager raises {theirs['exception']}: {theirs['said'][:200]}"
        # What is left of a call that failed halfway depends on what was fused.
        if by_torch or mine["exception"] == theirs["exception"]:
            return None
        return f"raises {mine['exception']}: {first_line(mine['said'])}, in eager {theirs['exception']}: {first_line(theirs['said'])}"
    if mine["exception"]:
        return f"raises {mine['exception']}: {first_line(raised)}"
    want, have = Part("run", tuple(theirs.items())), Part("run", tuple(mine.items()))
    return difference(want, have, "the call") and difference(want, rounded(want, have), "the call")


# So many times what eager's results change with the last bits of arguments may those of compiled code differ: it rounds at every step.
NOISE = 10

# Errors of tensors, by the largest number in them. Gradients are sums of more numbers, which cancel out.
ROUNDING = {torch.float64: 1e-12, torch.complex128: 1e-12, torch.float32: 1e-5, torch.complex64: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def rounded(want, have, slack=1):
    """A snapshot in which tensors that are eager's but for rounding are eager's."""
    if isinstance(want, Part) and isinstance(have, Part):
        # A tensor whose place eager does not tell may have any.
        kept = [part for part in have if part[0] != "storage" or "storage" in dict(want.parts)]
        if len(want.parts) != len(kept):
            return have
        slacks = (10 if name.startswith("gradient ") else slack for name, _ in kept)
        return Part(have.kind, tuple((name, rounded(left, right, slack)) for (_, left), (name, right), slack in zip(want, kept, slacks)))
    if not isinstance(want, Values) or not isinstance(have, Values) or want.data.shape != have.data.shape or want.data.dtype != have.data.dtype:
        return have
    allowed, finite = ROUNDING.get(want.data.dtype), want.data.isfinite()
    if allowed is None or not torch.equal(finite, have.data.isfinite()) or not finite.any():
        return have
    left, right = want.data[finite], have.data[finite]
    return want if (left - right).abs().max() <= slack * allowed * left.abs().max() else have


def noisy(call):
    """What eager gives for arguments that are others in their last bits, as snapshots: `call` takes a generator of the noise."""
    for seed in range(3):
        with contextlib.suppress(Exception):
            yield call(torch.Generator().manual_seed(seed))


def within_noise(want, have, others):
    """A snapshot in which tensors are eager's that differ from it by no more than eager itself does for arguments that are others in their last bits."""
    found = list(others)

    def compared(want, have, others):
        if isinstance(want, Part) and isinstance(have, Part) and len(want.parts) == len(have.parts):
            below = [[dict(other.parts).get(name) for other in others if isinstance(other, Part)] for name, _ in want]
            parts = zip(want, have, below)
            return Part(have.kind, tuple((name, compared(left, right, theirs)) for (_, left), (name, right), theirs in parts))
        if not isinstance(want, Values) or not isinstance(have, Values) or want.data.shape != have.data.shape or want.data.dtype != have.data.dtype:
            return have
        spread = [farthest(want.data, other.data) for other in others if isinstance(other, Values) and other.data.shape == want.data.shape]
        return want if spread and farthest(want.data, have.data) <= NOISE * max(spread) else have

    return compared(want, have, found)


def farthest(left, right):
    """The largest difference of two tensors' elements; infinite where one has a number and the other none."""
    if not left.is_floating_point() and not left.is_complex():
        return float("inf") if not torch.equal(left, right) else 0.0
    distance = (left - right).abs().nan_to_num(nan=float("inf"))
    same = (left == right) | (left.isnan() & right.isnan())
    return distance.masked_fill(same, 0).max().item() if left.numel() else 0.0


def duplicate(given, noise=None):
    """A copy of arguments, in which results of operators are leaves. With a generator of noise, floats are others in their last bits."""
    plain, memo = torch.Tensor.__deepcopy__, {}

    def as_leaf(value, memo):
        if value.is_leaf or type(value) is not torch.Tensor or id(value) in memo:
            return plain(value, memo)
        memo[id(value)] = plain(value.detach(), {}).requires_grad_()
        return memo[id(value)]

    torch.Tensor.__deepcopy__ = as_leaf
    try:
        copied = copy.deepcopy(given, memo)
    finally:
        torch.Tensor.__deepcopy__ = plain
    for each in memo.values() if noise is not None else ():
        if isinstance(each, torch.Tensor) and each.is_floating_point() and each.layout is torch.strided:
            signs = torch.randint(-1, 2, each.shape, generator=noise, dtype=each.dtype)
            with contextlib.suppress(RuntimeError):
                each.detach().mul_(1 + signs * torch.finfo(each.dtype).eps)
    return copied


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:2])[:300]


PERTURB = -6
# Negative and positive as whole numbers.
FILLED = (0x55, 0xAA)
# Seconds of eager after which a program is called with no other arguments.
ENOUGH = 10


def filled(byte):
    """Fills fresh memory with a byte, where glibc does so: what examples read without having written differs between runs."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(PERTURB, byte)


def eager_calls(program, function):
    """The calls that eager makes alike twice: what makes their arguments, and what they leave."""
    found, begun = [], time.monotonic()
    for label, making, seed in program.makings():
        if time.monotonic() - begun > ENOUGH:
            break
        try:
            with within(20):
                seen = []
                for byte in FILLED:
                    filled(byte)
                    left, raised = observed(function, program.arguments(making, seed))
                    # What torch.compile refuses where an example calls it is no error of eager's.
                    if isinstance(raised, torch._dynamo.exc.TorchDynamoException):
                        return found
                    seen.append(left)
        except (Exception, TimeoutError):
            if found:
                continue
            return []
        if dict(seen[0].parts)["exception"] and found and not dict(found[0][3].parts)["exception"]:
            continue
        if difference(seen[0], seen[1]):
            return []
        found.append((label, making, seed, seen[0]))
        if len(found) == 5:
            break
    filled(0)
    return found


def check(docstring, way, folder):
    """How many calls were compared, and what differs, program by program."""
    count, programs, texts = 0, 0, []
    for program in prepared(docstring, folder):
        function = program.function(folder)
        calls = eager_calls(program, function)
        programs += bool(calls)
        ours, others = WAYS[way]
        compared, text = run(program, calls, ours, function, others is not None)
        count += compared
        if text and others is not None:
            _, told = run(program, calls, others, function, True)
            if told and told.split(":")[:2] == text.split(":")[:2]:
                text = None
        if text and not any(re.search(code, docstring.code) and re.search(shown, text) for code, shown, _ in KNOWN):
            texts.append(f"{program.name.removeprefix(docstring.name).strip()}: {text}")
    return count, programs, texts


def prepared(docstring, folder):
    """The programs of a docstring, in a process that reaches nothing outside of a folder."""
    os.chdir(folder)
    socket.socket.connect = no_network
    with contextlib.redirect_stdout(io.StringIO()), within(30), Global_kept():
        example = Example(docstring)
        return list(example.programs())


@contextlib.contextmanager
def Global_kept():
    state = Global()
    with settings_kept():
        yield
    state.restore()


def run(program, calls, way, function, by_torch):
    count = 0
    try:
        compiled = way(function)
        for label, making, seed, want in calls:
            arguments = program.arguments(making, seed)
            have, raised = observed(compiled, arguments)
            if text := parting(want, have, raised, by_torch):
                others = noisy(lambda noise, making=making, seed=seed: observed(function, duplicate(program.arguments(making, seed), noise))[0])
                if "not close" in text and not parting(want, within_noise(want, have, others), raised, by_torch):
                    continue
                return count, f"{label}: {text}"
            count += 1
    finally:
        torch._dynamo.reset()
        pyrite.reset()
    return count, None


def breaks(docstring, folder):
    """How many breaks Pyrite and Dynamo have in each program, where Pyrite has more, and why."""
    found = []
    for program in prepared(docstring, folder):
        function = program.function(folder)
        if not eager_calls(program, function):
            continue
        with contextlib.redirect_stdout(io.StringIO()), Global_kept():
            try:
                ours = pyrite.explain(function)(*program.arguments(program.making, 0))
            except Exception:
                continue
        if not ours.graph_break_count:
            continue
        with contextlib.redirect_stdout(io.StringIO()), Global_kept():
            try:
                counters = torch._dynamo.utils.counters
                counters.clear()
                theirs = torch._dynamo.explain(function)(*program.arguments(program.making, 0))
                number = max(theirs.graph_break_count, sum(counters["graph_break"].values()))
            except Exception:
                continue
        if theirs.graph_count and ours.graph_break_count > number:
            reasons = "; ".join(dict.fromkeys(str(each.reason)[:200] for each in ours.break_reasons))
            found.append(f"{program.name.removeprefix(docstring.name).strip()}: {ours.graph_break_count} breaks, Dynamo {number}: {reasons}")
    return 0, 0, found


def quietly(work):
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        return work()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="*", default=["torch", "torchvision"], help="packages, or modules of packages, that are installed")
    parser.add_argument("--only", help="only docstrings whose file and line have this text")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this entry point; may be given again")
    parser.add_argument("--part", default="1/1", help="only one part of the docstrings, such as 2/4")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for a docstring at an entry point")
    parser.add_argument("--show", action="store_true", help="print the programs and compare nothing")
    parser.add_argument("--breaks", action="store_true", help="count graph breaks by Pyrite and by TorchDynamo, and compare nothing")
    given = parser.parse_args()
    isolation.prepare()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    part, parts = map(int, given.part.split("/"))
    begun, total, programs, differing = time.monotonic(), 0, 0, 0
    chosen = [each for each in docstrings(given.package) if not given.only or given.only in each.name][part - 1 :: parts]
    with tempfile.TemporaryDirectory() as folder:
        if given.show:
            for docstring in chosen:
                for program in prepared(docstring, folder):
                    print(f"# {program.name}\n{program.before}\n{textwrap.indent(program.making, '# ')}\n{program.text}")
            return 0
        for docstring in chosen:
            ways = ["breaks"] if given.breaks else given.way or list(WAYS)
            works = [lambda way=way: quietly(lambda: breaks(docstring, folder) if way == "breaks" else check(docstring, way, folder)) for way in ways]
            for way, work in zip(ways, works):
                answer, death = isolation.in_a_fork(work, given.time_limit)
                count, number, texts = answer or (0, 0, [death])
                total += count
                programs += number
                differing += len(texts)
                for text in texts:
                    print(f"{docstring.name}, {way}: {text}", flush=True)
    seconds = time.monotonic() - begun
    print(f"{len(chosen)} docstrings, {programs} programs: {total} calls compared, {differing} differences, {seconds:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
