"""Compares compiled operators with torch eager at sizes that no sample has: `python -m operators.sizes --help`.

Every record of an operator has samples, and all of them are small. Here the sizes of a sample are replaced by others, equal ones by equal ones: a
width around a multiple of the lanes of a vector, few or many rows, sometimes as much as several threads share. Its tensors get other layouts
(transposed, with steps, with an offset, expanded), its dimensions are drawn anew, and a kernel is put before and behind it. Where torch refuses
what comes of that, the next is drawn. The graph runs on each code generator, and `conformance.py` says what a right answer is.

A case is drawn from a seed and its number alone: `--seed`, `--ops` and `--first` repeat it.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field

import cpu  # noqa: F401  (before torch)

import torch
import torch.utils._pytree as pytree

from operators import conformance
from operators.harness import Case, Options, Report, describe_error, matching, time_limit
from operators.programs import trace
from operators.worker import DTYPES, Untransportable, Worker

CODEGENS = ["x86", "avx2", "tiles"]

# Around the multiples of 4, 8, 16 and 32 lanes, and of a few vectors at a time.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 47, 48, 49, 56, 63, 64, 65, 72, 95, 96, 97, 113, 127, 128, 129, 130]
ROWS = [2, 3, 4, 5, 6, 7, 9, 11, 13, 17]
# Enough elements for several threads.
MANY = [(1031, 67), (130, 523), (4099, 17), (33001, 2)]
# No result has more elements than this.
MOST = 1 << 21
# How often a case is drawn again when torch refuses it.
TRIES = 12

# Operators that are not resized, with the reason.
NOT_RESIZED = {
    "aten.empty.memory_format": "its memory is not set",
    "aten.empty_like.default": "its memory is not set",
    "aten.empty_permuted.default": "its memory is not set",
    "aten.empty_strided.default": "its memory is not set",
    "aten.new_empty.default": "its memory is not set",
    "aten.new_empty_strided.default": "its memory is not set",
}

# Eager reads the indices of these as if they were contiguous, so that equal indices give other gradients.
READ_AS_CONTIGUOUS = {"aten.fractional_max_pool2d_backward.default", "aten.fractional_max_pool3d_backward.default"}


@dataclass
class Tensor:
    """A tensor of a sample: what it is, not what is in it."""

    dtype: str
    shape: list
    stride: list | None = None
    bounds: tuple | None = None


@dataclass
class Name:
    """A memory format or another word that is no value of Python's."""

    text: str


TOKEN = re.compile(r"\s*(?:(?P<text>'[^']*')|(?P<word>[A-Za-z0-9_.+-]+)|(?P<mark><\[|[\[\]{},=<]))")


class Reader:
    """Reads the samples of records; the syntax is explained in `crates/pyrite-ops/src/samples.rs`."""

    def __init__(self, text):
        self.tokens = [match.group().strip() for match in TOKEN.finditer(text)]
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def eat(self, token):
        found = self.peek() == token
        self.at += found
        return found

    def arguments(self):
        args, kwargs = [], {}
        while self.peek() is not None:
            if self.peek(1) == "=":
                name, self.at = self.peek(), self.at + 2
                kwargs[name] = self.value()
            else:
                args.append(self.value())
            self.eat(",")
        return args, kwargs

    def items(self, read):
        found = []
        while not self.eat("]"):
            found.append(read())
            self.eat(",")
        return found

    def word(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def value(self):
        if self.eat("["):
            return self.items(self.value)
        word = self.word()
        if word.startswith("'"):
            return word[1:-1]
        if word in DTYPES and self.eat("["):
            return self.tensor(word)
        if word in DTYPES:
            return DTYPES[word]
        known = {"None": None, "True": True, "False": False}
        if word in known:
            return known[word]
        try:
            return int(word)
        except ValueError:
            pass
        try:
            return float(word)
        except ValueError:
            return Name(word)

    def tensor(self, dtype):
        shape = self.items(lambda: int(self.word()))
        stride = self.items(lambda: int(self.word())) if self.eat("<[") else None
        bounds = None
        if self.eat("{"):
            low, high = self.word().split("..")
            bounds = (float(low), float(high))
            self.eat("}")
        return Tensor(dtype, shape, stride, bounds)


class Draw:
    """One sample with other sizes. All that is random about it comes from `rng`, the contents of tensors from `generator`."""

    def __init__(self, rng, written):
        self.rng = rng
        # What is written to has a place for each element.
        self.ways = [*["contiguous"] * 3, "permuted", "stepped", "offset", "channels", *([] if written else ["expanded"])]
        self.generator = torch.Generator().manual_seed(rng.getrandbits(31))

    def resized(self, args, kwargs):
        """The arguments with tensors in place of their descriptions."""
        leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        sizes = sorted({size for leaf in leaves for size in leaf.shape if size > 1})
        self.sizes = dict(zip(sizes, self.new_sizes(sizes, max((len(leaf.shape) for leaf in leaves), default=0))))
        return pytree.tree_map(self.leaf, (args, kwargs))

    def new_sizes(self, sizes, rank):
        """Another size for each. Images and volumes stay small: what is computed for a pixel grows with the window too."""
        if len(sizes) >= 2 and rank <= 2 and self.rng.random() < 0.06:
            pair = self.rng.sample(self.rng.choice(MANY), 2)
            places = self.rng.sample(range(len(sizes)), 2)
            return [pair[places.index(k)] if k in places else 2 for k in range(len(sizes))]
        widths, rows = (WIDTHS, ROWS) if rank <= 3 else ([w for w in WIDTHS if w <= (66 if rank == 4 else 33)], ROWS[: 5 if rank == 4 else 3])
        wide = self.rng.randrange(len(sizes)) if sizes else 0
        rest = self.rng.sample(rows, len(rows))
        return [self.rng.choice(widths) if k == wide else rest[k % len(rest)] for k in range(len(sizes))]

    def leaf(self, value):
        if isinstance(value, Name):
            return getattr(torch, value.text)
        if not isinstance(value, Tensor):
            return value
        return self.laid_out([self.sizes.get(size, size) for size in value.shape], value)

    def laid_out(self, shape, value):
        """A tensor of a shape whose memory lies in one of several ways."""
        way = self.rng.choice(self.ways)
        rank = len(shape)
        if value.stride is not None and way == "contiguous":
            way = "permuted"
        if way == "permuted" and rank > 1:
            order = self.rng.sample(range(rank), rank)
            filled = self.filled([shape[d] for d in order], value)
            return filled.permute([order.index(d) for d in range(rank)])
        if way == "stepped" and rank > 0:
            dim = self.rng.randrange(rank)
            filled = self.filled([size * 2 if d == dim else size for d, size in enumerate(shape)], value)
            return filled.narrow(dim, 0, shape[dim] * 2)[(slice(None),) * dim + (slice(None, None, 2),)]
        if way == "offset" and rank > 0:
            return self.filled([shape[0] + 1, *shape[1:]], value)[1:]
        if way == "expanded" and rank > 1:
            dim = self.rng.randrange(rank)
            return self.filled([1 if d == dim else size for d, size in enumerate(shape)], value).expand(shape)
        if way == "channels" and rank == 4:
            return self.filled(shape, value).contiguous(memory_format=torch.channels_last)
        return self.filled(shape, value)

    def filled(self, shape, value):
        dtype = DTYPES[value.dtype]
        if value.bounds:
            low, high = value.bounds
            numbers = low + torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low)
            return (numbers if dtype.is_floating_point or dtype.is_complex else numbers.floor()).to(dtype)
        if dtype == torch.bool:
            return torch.rand(shape, generator=self.generator) < 0.5
        if not dtype.is_floating_point and not dtype.is_complex:
            return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, generator=self.generator).to(dtype)
        numbers = torch.randn(shape, generator=self.generator, dtype=torch.complex128 if dtype.is_complex else torch.float64)
        # Halves make ties, which operators that pick one of several have to break as torch does.
        return (numbers if self.rng.random() < 0.5 or dtype.is_complex else (numbers * 2).round() / 2).to(dtype)


def other_dims(rng, schema, args, kwargs):
    """The arguments with a dimension drawn anew where the operator takes one."""
    ranks = [leaf.dim() for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    rank = ranks[0] if ranks else 0
    args, kwargs = list(args), dict(kwargs)
    if rank == 0 or rng.random() < 0.3:
        return args, kwargs
    for place, argument in enumerate(schema.arguments):
        if argument.name not in ("dim", "dims"):
            continue
        given = kwargs.get(argument.name, args[place] if place < len(args) else None)
        if isinstance(given, int) and not isinstance(given, bool):
            drawn = rng.randrange(-rank, rank)
        elif isinstance(given, list) and given and all(isinstance(dim, int) for dim in given) and len(given) <= rank:
            drawn = rng.sample(range(rank), len(given))
        else:
            continue
        if argument.name in kwargs:
            kwargs[argument.name] = drawn
        else:
            args[place] = drawn
    return args, kwargs


def overload(name):
    namespace, packet, variant = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), variant)


class Sizes:
    """The cases of one operator."""

    def __init__(self, record, seed):
        self.record = record
        self.seed = seed
        self.refusals = collections.Counter()

    def case(self, number):
        """The case of a number, or None where torch refuses all that is drawn for it."""
        for attempt in range(TRIES):
            rng = random.Random(f"{self.seed} {self.record['name']} {number} {attempt}")
            sample = rng.choice(self.record["samples"])
            case = Case(sample, number, f"attempt {attempt}")
            try:
                with time_limit(30.0):
                    case.program = self.program(rng, sample)
                return case
            except (Untransportable, TimeoutError) as error:
                self.refusals[describe_error(error)] += 1
            except Exception as error:
                self.refusals[describe_error(error)] += 1
        return None

    def program(self, rng, sample):
        op = overload(self.record["name"])
        draw = Draw(rng, op._schema.is_mutable)
        if self.record["name"] in READ_AS_CONTIGUOUS:
            draw.ways = ["contiguous", "offset"]
        args, kwargs = draw.resized(*Reader(sample).arguments())
        args, kwargs = other_dims(rng, op._schema, args, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        inputs = [leaves[k] for k in places]
        if max((x.numel() for x in inputs), default=0) > 20_000:
            expect_moderate(op, leaves, spec)
        before, behind = rng.random() < 0.3, rng.random() < 0.3
        free = "{" not in sample and not op._schema.is_mutable

        def function(*tensors):
            filled = list(leaves)
            for k, tensor in zip(places, tensors):
                filled[k] = -tensor if before and free and tensor.dtype.is_floating_point else tensor
            args, kwargs = pytree.tree_unflatten(filled, spec)
            result = op(*args, **kwargs)
            return pytree.tree_map(lambda out: out * 2 if behind and is_float(out) else out, result)

        torch.manual_seed(self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return trace(function, inputs, None)


def expect_moderate(op, leaves, spec):
    """Refuses a call whose results are too large, or cannot be foretold."""
    args, kwargs = pytree.tree_unflatten([leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
    results = pytree.tree_leaves(op(*args, **kwargs))
    if sum(result.numel() for result in results if isinstance(result, torch.Tensor)) > MOST:
        raise ValueError("too large")


def is_float(value):
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


@dataclass
class Summary:
    """What came of all cases."""

    cases: int = 0
    passed: int = 0
    failures: list = field(default_factory=list)
    unsupported: collections.Counter = field(default_factory=collections.Counter)
    unstable: collections.Counter = field(default_factory=collections.Counter)
    # Operators of which no case could be drawn, with what torch said most often.
    undrawn: dict = field(default_factory=dict)


def records(binary):
    """The operators by name."""
    listed = json.loads(subprocess.run([binary, "ops", "--json"], capture_output=True, check=True).stdout)
    return {
        row["name"]: row
        for row in listed
        if row["samples"] and row["name"] not in NOT_RESIZED and row["name"].startswith("aten.")
    }


def run(chosen, count, seed, codegens, first=0, turns=False, progress=lambda name: None):
    """Runs `count` cases of each operator. With `turns` each case runs on one code generator, in turn."""
    summary = Summary()
    workers = {codegen: Worker(["env", f"PYRITE_CODEGEN={codegen}", os.environ["PYRITE_BIN"], "worker"], 60.0) for codegen in codegens}
    try:
        for place, record in enumerate(chosen):
            sizes = Sizes(record, seed)
            drawn = 0
            for number in range(first, first + count):
                case = sizes.case(number)
                if case is None:
                    continue
                drawn += 1
                on = [codegens[(place + number) % len(codegens)]] if turns else codegens
                for codegen in on:
                    judge(summary, record["name"], case, codegen, workers[codegen])
            if not drawn:
                summary.undrawn[record["name"]] = sizes.refusals.most_common(1)[0][0]
            progress(record["name"])
    finally:
        for worker in workers.values():
            worker.stop()
    return summary


def judge(summary, name, case, codegen, worker):
    summary.cases += 1
    report = Report(name, Options(dtypes=[], modes=["native"]), conformance.check)
    report.add(case, worker)
    summary.passed += report.passed
    for reason in report.unsupported:
        summary.unsupported[f"{name}: {reason}"] += 1
    for reason in report.unstable:
        summary.unstable[f"{name}: {reason}"] += 1
    for failure in report.failures:
        summary.failures.append({"op": name, "codegen": codegen, "case": case.sample, **failure})
        print(described(summary.failures[-1]), flush=True)


def described(failure):
    place = f"{failure['op']} case {failure['case']} on {failure['codegen']} of {failure['dtype']}"
    return f"WRONG {place}: {' '.join(failure['message'].split())[:300]}; inputs {', '.join(failure['inputs'])}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compare compiled operators with torch eager at sizes that no sample has.")
    parser.add_argument("--ops", help="only these operators, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--count", type=int, default=10, help="cases of each operator")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--codegens", default=",".join(CODEGENS), help="which of " + ",".join(CODEGENS))
    parser.add_argument("--turns", action="store_true", help="each case on one code generator, in turn")
    parser.add_argument("--share", default="0/1", help="I/N: only every Nth operator, from the Ith on")
    parser.add_argument("--list-failures", action="store_true", help="print the graphs of wrong answers")
    options = parser.parse_args(arguments)
    if "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known = records(os.environ["PYRITE_BIN"])
    names = matching(sorted(known), options.ops)
    share, shares = map(int, options.share.split("/"))
    if not names:
        parser.error("no operator has that name")
    chosen = [known[name] for name in names[share::shares]]
    done = collections.Counter()

    start = [time.monotonic()]

    def progress(name):
        done["all"] += 1
        seconds, start[0] = time.monotonic() - start[0], time.monotonic()
        if sys.stderr.isatty() or done["all"] % 50 == 0 or seconds > 20:
            print(f"{done['all']}/{len(chosen)} {name} {seconds:.1f} s", file=sys.stderr, flush=True)

    summary = run(chosen, options.count, options.seed, options.codegens.split(","), options.first, options.turns, progress)
    report(summary, options.list_failures)
    wrong = len({failure["op"] for failure in summary.failures})
    figures = f"{len(chosen)} operators, {summary.cases} cases: {summary.passed} passed, {len(summary.failures)} wrong"
    print(f"{figures} in {wrong} operators, {len(summary.undrawn)} operators that torch refuses at other sizes")
    return 1 if summary.failures else 0


def report(summary, graphs):
    for failure in summary.failures if graphs else []:
        print(described(failure))
        print(failure["graph"])
    for kind in ("unsupported", "unstable"):
        for reason, count in getattr(summary, kind).most_common():
            print(f"{kind} {count}: {reason}")
    for name, reason in summary.undrawn.items():
        print(f"undrawn {name}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
