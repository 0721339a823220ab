"""Checks single operators: runs PyTorch's operator database under a dispatch mode and repeats every ATen call in Pyrite.

`python -m operators.dispatch_check --help`. Where `conformance.py` compares whole traced programs, this compares each call that eager makes, with the
very arguments it makes it with, so a mismatch names one overload. Only calls of overloads that Pyrite knows are repeated, or those that
`--ops`, `--opinfos` and `--ops-file` choose. Exit code 1 when an answer was wrong.
"""

import argparse
import collections
import re
import subprocess
import sys
import warnings

import torch
import torch.utils._pytree as pytree
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from operators.compare import WIDER, Outcome, describe_inputs, difference
from operators.worker import DTYPES, Encoder, Untransportable, Worker

SEED = 2025
UNSET = re.compile(r"aten\.(new_)?empty")


class CallEncoder(Encoder):
    """Also knows the values that only operator calls have."""

    def value(self, value):
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        return super().value(value)


def tensors(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def flat(output):
    return list(output) if isinstance(output, (tuple, list)) else [output]


def copied(tree):
    """Copies of all tensors that share storages and strides as the originals do."""
    storages = {}

    def copy(value):
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = storage.clone()
        fresh = torch.empty(0, dtype=value.dtype)
        return fresh.set_(storages[storage._cdata], value.storage_offset(), value.shape, value.stride())

    return pytree.tree_map(copy, tree)


def widened(tree):
    return pytree.tree_map(lambda v: v.to(WIDER[v.dtype]) if isinstance(v, torch.Tensor) and v.dtype in WIDER else v, tree)


class Checker(TorchDispatchMode):
    """Repeats every chosen call in Pyrite and counts what came of it, by overload."""

    def __init__(self, worker, chosen):
        super().__init__()
        self.worker = worker
        self.chosen = chosen
        self.counts = collections.defaultdict(collections.Counter)
        self.examples = {}
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = str(func)
        if name not in self.chosen:
            return func(*args, **kwargs)
        try:
            encoder = CallEncoder()
            request = {
                "cmd": "call",
                "op": name,
                "inputs": [encoder.value(value) for value in args],
                "kwargs": {key: encoder.value(value) for key, value in kwargs.items()},
                "seed": SEED,
            }
            table, blob = encoder.blob()
        except Untransportable as problem:
            self.note(name, "skipped", str(problem), args, kwargs)
            return func(*args, **kwargs)
        key = hash((str(request), blob))
        if key in self.seen:
            return func(*args, **kwargs)
        self.seen.add(key)
        before = copied((args, kwargs))
        answer = self.worker.ask({**request, "storages": table}, blob)
        torch.manual_seed(SEED)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self.note(name, "accepted what torch refuses" if answer.ok else "both refuse", str(error), args, kwargs)
            raise
        if not answer.ok:
            self.note(name, answer.kind, answer.message, *before)
            return result
        expected = Outcome(flat(result), tensors((args, kwargs)), encoder.storages)
        after = [self.moved(tensor, encoder, answer) for tensor in tensors((args, kwargs))]
        actual = Outcome(flat(answer.output), after, answer.storages[: len(encoder.storages)])

        def fp64():
            try:
                wide = widened(copied(before))
                torch.manual_seed(SEED)
                return Outcome(flat(func(*wide[0], **wide[1])), tensors(wide), [])
            except Exception:
                return None

        unset = set(range(9)) if UNSET.match(name) else set()
        found = difference(expected, actual, fp64=fp64, unset=unset)
        self.note(name, "wrong" if found else "right", found or "", *before)
        return result

    def moved(self, tensor, encoder, answer):
        """The tensor as Pyrite left it."""
        storage = answer.storages[encoder.index[tensor.untyped_storage()._cdata]]
        return torch.empty(0, dtype=tensor.dtype).set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())

    def note(self, name, outcome, message, args, kwargs):
        self.counts[name][outcome] += 1
        self.examples.setdefault((name, outcome), []).append((message, args, kwargs))


def known_overloads(binary):
    listing = subprocess.run([binary, "ops", "--json"], capture_output=True, check=True, text=True).stdout
    return set(re.findall(r'"name": "([^"]+)"', listing))


def overloads_in(path):
    """The operators that a Rust source file or a folder of them defines."""
    schemas = re.findall(r'"(\w+)::(\w+)(?:\.(\w+))?\(', open(path).read())
    return {f"{space}.{name}.{overload or 'default'}" for space, name, overload in schemas}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="overloads, comma separated (aten.add.Tensor or add)")
    parser.add_argument("--ops-file", action="append", default=[], help="all overloads that a Rust file defines")
    parser.add_argument("--opinfos", help="only these OpInfos, comma separated")
    parser.add_argument("--dtypes", default="f32,f64,bf16,i64,b8,c64")
    parser.add_argument("--samples", type=int, default=40, help="samples per OpInfo and dtype")
    parser.add_argument("--examples", type=int, default=2, help="examples shown per problem")
    parser.add_argument("--all-outcomes", action="store_true", help="show unsupported calls too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    worker = Worker(time_limit=30)
    known = known_overloads(worker.command[0])
    chosen = set(known)
    if options.ops_file:
        chosen = set().union(*map(overloads_in, options.ops_file)) & known
    if options.ops:
        wanted = options.ops.split(",")
        chosen = {name for name in known if name in wanted or name.split(".")[1] in wanted}
    # Reading the database makes the census of who uses what unnecessary: OpInfos that never reach a chosen overload are cheap.
    infos = [info for info in op_db if not options.opinfos or info.name in options.opinfos.split(",")]
    checker = Checker(worker, chosen)
    for number, info in enumerate(infos):
        print(f"\r{number}/{len(infos)} {info.name:<50}", end="", file=sys.stderr, flush=True)
        for dtype in (DTYPES[name] for name in options.dtypes.split(",")):
            if dtype not in info.supported_dtypes("cpu"):
                continue
            torch.manual_seed(SEED)
            try:
                samples = list(info.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception:
                continue
            for sample in samples[: options.samples]:
                try:
                    with checker:
                        info(sample.input, *sample.args, **sample.kwargs)
                except Exception:
                    pass
    print("\r" + " " * 70, file=sys.stderr)
    report(checker, chosen, options)
    sys.exit(any(counts["wrong"] + counts["error"] + counts["crashed"] + counts["hung"] for counts in checker.counts.values()))


def report(checker, chosen, options):
    quiet = {"right", "skipped", "both refuse"} | (set() if options.all_outcomes else {"unsupported"})
    for (name, outcome), examples in sorted(checker.examples.items()):
        if outcome in quiet:
            continue
        for message, args, kwargs in examples[: options.examples]:
            inputs = [describe(value) for value in args] + [f"{key}={describe(value)}" for key, value in kwargs.items()]
            print(f"{name}: {outcome}: {message[:400]}\n    ({', '.join(inputs)[:300]})")
    print()
    for name, counts in sorted(checker.counts.items()):
        print(f"{name:<50} {dict(counts)}")
    total = sum(checker.counts.values(), collections.Counter())
    print(f"\n{len(checker.counts)} of {len(chosen)} overloads exercised; {dict(total)}")


def describe(value):
    if isinstance(value, torch.Tensor):
        return describe_inputs([value])[0]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(item) for item in value) + "]"
    return repr(value)


if __name__ == "__main__":
    main()
