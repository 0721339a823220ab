"""Runs PyTorch's operator database through Pyrite and compares with torch eager: `python conformance.py --help`.

Every sample of every OpInfo, in every dtype asked for, is traced by make_fx twice, as it is and with `core_aten_decompositions()`. The text
that FX prints goes to `pyrite worker` with the inputs, and `compare.py` compares the results. Core operators that no OpInfo reaches are
called directly, by `core_samples.py`. Progress goes to stderr, the summary to stdout, everything to the file of `--json`. The exit code is
1 when an answer was wrong, 2 when nothing was run.

An OpInfo is *failed* when one case had a wrong answer, an error, a crash or a hang; else *unsupported* when Pyrite said so of a case; else
*untraceable* when make_fx traced none of its samples; else *passed*.
"""

import argparse
import collections
import contextlib
import functools
import hashlib
import json
import multiprocessing
import operator
import os
import random
import signal
import sys
import time
import warnings
from dataclasses import dataclass, field

import torch
import torch.utils._pytree as pytree
from compare import WIDER, Outcome, describe_inputs, difference
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from worker import DTYPES, DTYPE_NAMES, Encoder, Untransportable, Worker, storage_bytes, storage_of

ALL_DTYPES = ["f32", "f64", "bf16", "i64", "b8", "c64"]
VARIANTS = ["traced", "core"]
SEED = 2025


def from_svd(u, s, vh):
    return (u[..., : s.shape[-1]] * s[..., None, :].to(u.dtype)) @ vh[..., : s.shape[-1], :]


# OpInfos whose results are unique only up to the sign or phase of vectors, with the matrix that the results stand for. OpInfo itself knows
# what else of them is unique.
UP_TO_PHASE = {
    "svd": lambda u, s, v: from_svd(u, s, v.mH),
    "svd_lowrank": lambda u, s, v: from_svd(u, s, v.mH),
    "pca_lowrank": lambda u, s, v: from_svd(u, s, v.mH),
    "linalg.svd": from_svd,
    "linalg.eig": lambda w, v: v @ torch.diag_embed(w) @ torch.linalg.pinv(v),
    "linalg.eigh": lambda w, v: v @ torch.diag_embed(w).to(v.dtype) @ v.mH,
}

# Operators that pick elements and say where they were, without promising which of several equal ones they pick.
PICKERS = {"aten::sort", "aten::topk", "aten::kthvalue", "aten::median", "aten::nanmedian", "aten::mode"}

# Operators that leave their result's memory as it was.
UNSET = {
    "aten::empty",
    "aten::empty_like",
    "aten::empty_permuted",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
}


@dataclass
class Options:
    """What one run covers; plain data, so that it can be sent to the processes that share the work."""

    dtypes: list = field(default_factory=lambda: list(ALL_DTYPES))
    samples: int | None = None
    variants: list = field(default_factory=lambda: list(VARIANTS))
    mode: str = "crossref"
    time_limit: float = 30.0
    command: list | None = None
    kept_failures: int = 5


QUICK = Options(dtypes=["f32", "bf16", "i64", "b8", "c64"], samples=2)


@dataclass
class Program:
    """A graph module, its text, and the inputs it runs with."""

    module: torch.fx.GraphModule
    inputs: list

    def __post_init__(self):
        self.text = self.module.print_readable(print_output=False, include_stride=True)
        self.overloads = sorted({str(node.target) for node in self.calls()})
        self.random = any(draws_numbers(node) for node in self.calls())

    def calls(self):
        for node in self.module.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                yield node

    def key(self):
        """Equal for programs whose run would be the same: text, input metadata and bytes."""
        encoder = Encoder()
        values = [encoder.value(value) for value in self.inputs]
        digest = hashlib.sha256(self.text.encode())
        digest.update(repr(values).encode())
        for storage in encoder.storages:
            digest.update(storage_bytes(storage))
        return digest.digest()

    def unset_outputs(self):
        """The positions of outputs that show uninitialised memory."""
        (output,) = [node for node in self.module.graph.nodes if node.op == "output"]
        return {k for k, node in enumerate(output.args[0]) if isinstance(node, torch.fx.Node) and is_unset(node)}

    def eager(self, inputs):
        """Runs in torch on copies of the inputs."""
        inputs = copy_inputs(inputs)
        storages = Encoder()
        for value in inputs:
            storages.value(value)
        if self.random:
            torch.manual_seed(SEED)
        return Outcome(self.module(*inputs), inputs, storages.storages)

    def truth(self):
        """The same in double precision, or None where that has no meaning or no kernel."""
        if self.random or not any(isinstance(v, torch.Tensor) and v.dtype in WIDER for v in self.inputs):
            return None
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(self.module.graph, {}))
        for node in graph.nodes:
            node.args, node.kwargs = pytree.tree_map(widened, (node.args, node.kwargs))
        wide = Program(torch.fx.GraphModule(self.module, graph, "Repro"), [widened(value) for value in self.inputs])
        try:
            return wide.eager(wide.inputs)
        except Exception:
            return None


def draws_numbers(node):
    """Whether a call uses the generator. Attention does only where it drops something."""
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args)), **node.kwargs}
    return "attention" not in node.target._schema.name or given.get("dropout_p", 0.0) != 0.0


def is_unset(node):
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    written = any(isinstance(user.target, torch._ops.OpOverload) and user.target._schema.is_mutable for user in node.users)
    if node.target._schema.name in UNSET:
        return not written
    view = node.target.is_view and isinstance(node.args[0], torch.fx.Node)
    return view and not written and is_unset(node.args[0])


def widened(value):
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        wide = torch.empty_strided(value.shape, value.stride(), dtype=WIDER[value.dtype])
        return wide.copy_(value)
    return value


def copy_inputs(inputs):
    """Copies whole storages, so that strides, offsets and sharing stay as they are."""
    copies = {}

    def copy(value):
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage._cdata not in copies:
            copies[storage._cdata] = storage_of(storage_bytes(storage))
        return torch.empty(0, dtype=value.dtype).set_(copies[storage._cdata], value.storage_offset(), value.shape, value.stride())

    return [copy(value) for value in inputs]


def plain_input(value):
    """A tensor that can travel: no autograd, no lazy bits, no subclass."""
    if value.layout != torch.strided or value.device.type != "cpu":
        raise Untransportable(f"a tensor with layout {value.layout} on {value.device}")
    if value.dtype not in DTYPE_NAMES:
        raise Untransportable(f"dtype {value.dtype}")
    return value.detach().resolve_conj().resolve_neg()


decompositions = functools.cache(core_aten_decompositions)


def trace(function, inputs, table):
    """The program of a function of tensors, with its results in one list and its constants as further inputs."""
    module = make_fx(
        lambda *tensors: pytree.tree_leaves(function(*tensors)),
        decomposition_table=table,
        tracing_mode="real",
        _error_on_data_dependent_ops=False,
    )(*copy_inputs(inputs))
    return lift_constants(module, inputs)


def lift_constants(module, inputs):
    graph, inputs = module.graph, list(inputs)
    last = [node for node in graph.nodes if node.op == "placeholder"]
    placeholders = {}
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            raise Untransportable(f"a constant of type {type(value).__name__}")
        if node.target not in placeholders:
            with graph.inserting_after(last[-1]) if last else graph.inserting_before(next(iter(graph.nodes))):
                placeholder = graph.placeholder(node.target)
            placeholder.meta = dict(node.meta)
            last.append(placeholder)
            placeholders[node.target] = placeholder
            inputs.append(plain_input(value))
        node.replace_all_uses_with(placeholders[node.target])
        graph.erase_node(node)
    graph.lint()
    return Program(torch.fx.GraphModule(module, graph, "Repro"), inputs)


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


@functools.cache
def opinfos():
    from torch.testing._internal.common_methods_invocations import op_db

    return {full_name(op): op for op in op_db}


@dataclass
class Case:
    """One program to be tried, or the reason why there is none. `settle` takes outputs to what is unique about them."""

    dtype: str
    sample: int
    variant: str
    program: Program | None = None
    untraceable: str | None = None
    unsupported: str | None = None
    settle: object = None


def opinfo_cases(op, options):
    supported = [dtype for dtype in options.dtypes if DTYPES[dtype] in op.supported_dtypes("cpu")]
    if not supported:
        yield Case("", 0, "traced", untraceable=f"torch has it on the CPU for none of {', '.join(options.dtypes)}")
    for dtype in supported:
        random.seed(SEED)
        torch.manual_seed(SEED)
        samples = draw_samples(op, DTYPES[dtype])
        for index in range(options.samples or sys.maxsize):
            try:
                with time_limit(options.time_limit):
                    sample = next(samples)
            except StopIteration:
                break
            except Exception as error:
                yield Case(dtype, index, "traced", untraceable=f"sample: {describe_error(error)}")
                break
            state = torch.get_rng_state()
            for variant in options.variants:
                yield opinfo_case(op, sample, Case(dtype, index, variant), options)
            # Samples are drawn lazily: what the runs above drew must not change the next one.
            torch.set_rng_state(state)


def draw_samples(op, dtype):
    """As a generator, so that an error of the first sample is raised where those of later ones are."""
    yield from op.sample_inputs("cpu", dtype, requires_grad=False)


def opinfo_case(op, sample, case, options):
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        filled = list(leaves)
        for k, tensor in zip(places, tensors):
            filled[k] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        result = op(first, *args, **kwargs)
        if full_name(op) in UP_TO_PHASE:
            structure = pytree.tree_structure(result)
            case.settle = lambda outputs: (
                UP_TO_PHASE[full_name(op)](*outputs),
                sample.output_process_fn_grad(pytree.tree_unflatten(outputs, structure)),
            )
        return result

    try:
        with time_limit(options.time_limit):
            inputs = [plain_input(leaves[k]) for k in places]
            case.program = trace(function, inputs, decompositions() if case.variant == "core" else None)
    except Untransportable as error:
        case.unsupported = str(error)
    except Exception as error:
        case.untraceable = describe_error(error)
    return case


def describe_error(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


@contextlib.contextmanager
def time_limit(seconds):
    """Raises TimeoutError in Python code that runs for too long; works in the main thread of a process."""

    def stop(*_):
        raise TimeoutError(f"longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Report:
    """What happened to the cases of one OpInfo."""

    def __init__(self, name, options):
        self.name = name
        self.options = options
        self.cases = self.passed = self.failed = 0
        self.failures = []
        self.unsupported = collections.Counter()
        self.untraceable = collections.Counter()
        self.unstable = collections.Counter()
        self.exercised = set()
        self.seen = {}
        self.seconds = 0.0

    def run(self, cases, worker):
        start = time.monotonic()
        for case in cases:
            self.cases += 1
            self.add(case, worker)
        self.seconds = time.monotonic() - start
        return self

    def add(self, case, worker):
        if case.untraceable is not None:
            self.untraceable[case.untraceable] += 1
            return
        if case.unsupported is not None:
            self.unsupported[case.unsupported] += 1
            return
        try:
            key = case.program.key()
            if key not in self.seen:
                with time_limit(self.options.time_limit + worker.time_limit):
                    self.seen[key] = check(case, worker, self.options.mode)
            kind, message = self.seen[key]
        except Untransportable as error:
            kind, message = "unsupported", str(error)
        except TimeoutError as error:
            kind, message = "unstable", f"torch: {error}"
        if kind == "passed":
            self.passed += 1
            self.exercised.update(case.program.overloads)
        elif kind == "unsupported":
            self.unsupported[message] += 1
        elif kind == "unstable":
            self.unstable[message] += 1
        else:
            self.failed += 1
            if len(self.failures) < self.options.kept_failures:
                self.failures.append(describe_failure(case, message))

    @property
    def status(self):
        if self.failed:
            return "failed"
        if self.unsupported:
            return "unsupported"
        return "passed" if self.passed else "untraceable"

    def json(self):
        return {
            "name": self.name,
            "status": self.status,
            "cases": self.cases,
            "passed": self.passed,
            "failed": self.failed,
            "failures": self.failures,
            "unsupported": dict(self.unsupported.most_common()),
            "untraceable": dict(self.untraceable.most_common()),
            "unstable": dict(self.unstable.most_common()),
            "exercised": sorted(self.exercised),
            "seconds": round(self.seconds, 3),
        }


def describe_failure(case, message):
    return {
        "dtype": case.dtype,
        "sample": case.sample,
        "variant": case.variant,
        "message": message,
        "inputs": describe_inputs(case.program.inputs),
        "graph": case.program.text,
    }


def check(case, worker, mode):
    """Runs one program on both sides: ("passed" | "failed" | "unsupported" | "unstable", why)."""
    program = case.program
    try:
        expected = program.eager(program.inputs)
    except Exception as error:
        return "unstable", f"torch cannot run its own graph: {describe_error(error)}"
    answer = worker.run(program.text, program.inputs, seed=SEED if program.random else None, mode=mode)
    if answer.kind == "unsupported":
        return "unsupported", answer.op or answer.message
    if not answer.ok:
        return "failed", f"{answer.kind}: {answer.op + ': ' if answer.op else ''}{answer.message}"
    if not isinstance(answer.output, list):
        return "failed", "structure: the output is not a list"
    actual = Outcome(answer.output, *inputs_after(program, answer))
    truths = []

    def truth():
        if not truths:
            truths.append(program.truth())
        return truths[0]

    found = difference(expected, actual, truth=truth, unset=program.unset_outputs())
    if found is None or (": value:" in found and case.settle and settled_alike(case.settle, expected, actual)):
        return "passed", ""
    if found.startswith("output ") and ": value:" in found and picked_alike(program, expected, actual):
        return "passed", ""
    if not program.random and difference(program.eager(program.inputs), expected, truth=lambda: None, unset=program.unset_outputs()):
        return "unstable", "torch disagrees with itself"
    return "failed", found


def settled_alike(settle, expected, actual):
    try:
        torch.testing.assert_close(settle(actual.outputs), settle(expected.outputs), equal_nan=True)
        return True
    except AssertionError:
        return False


def picked_alike(program, expected, actual):
    """Whether outputs differ only in which of several equal elements a picking operator chose."""
    (output,) = [node for node in program.module.graph.nodes if node.op == "output"]
    placeholders = [node for node in program.module.graph.nodes if node.op == "placeholder"]
    for node, want, have in zip(output.args[0], expected.outputs, actual.outputs):
        if not isinstance(want, torch.Tensor) or torch.equal(want, have):
            continue
        if want.dtype != torch.int64 or node.target is not operator.getitem or node.args[1] != 1:
            return False
        pick = node.args[0]
        if pick.target._schema.name not in PICKERS or pick.args[0] not in placeholders:
            return False
        names = [argument.name for argument in pick.target._schema.arguments]
        given = {**dict(zip(names, pick.args)), **pick.kwargs}
        if given.get("stable"):
            return False
        values, dim = program.inputs[placeholders.index(pick.args[0])], given.get("dim", -1)
        if values.dim() > want.dim():
            want, have = want.unsqueeze(dim), have.unsqueeze(dim)
        if have.min() < 0 or have.max() >= values.shape[dim] or not same_elements(values.gather(dim, want), values.gather(dim, have)):
            return False
    return True


def same_elements(left, right):
    return torch.equal(left.nan_to_num(), right.nan_to_num()) and torch.equal(left.isnan(), right.isnan())


def inputs_after(program, answer):
    """The inputs as views of the storages that came back, and those storages."""
    encoder = Encoder()
    views = []
    for value in program.inputs:
        if isinstance(value, torch.Tensor):
            storage = answer.storages[encoder.storage(value)]
            value = torch.empty(0, dtype=value.dtype).set_(storage, value.storage_offset(), value.shape, value.stride())
        views.append(value)
    return views, answer.storages[: len(encoder.storages)]


def core_overloads():
    """The overloads that torch tags as core, as FX prints them."""
    names = set()
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = qualified.partition("::")
        name, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name, None)
        target = getattr(packet, overload or "default", None)
        if target is not None and torch.Tag.core in target.tags:
            names.add(str(target))
    return sorted(names)


def run_one(name, options, worker):
    if name.startswith("core:"):
        from core_samples import core_cases

        cases = core_cases(name.removeprefix("core:"), options)
    else:
        cases = opinfo_cases(opinfos()[name], options)
    return Report(name, options).run(cases, worker).json()


STATE = {}


def start_process(options):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    STATE["options"] = options
    STATE["worker"] = Worker(options.command, options.time_limit)


def run_in_process(name):
    return run_one(name, STATE["options"], STATE["worker"])


def run(names, options, jobs=1, progress=lambda done, total, report: None):
    """The reports of the named OpInfos, in the order of the names."""
    reports = {}
    with contextlib.ExitStack() as stack:
        if jobs > 1:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(context.Pool(jobs, start_process, (options,)))
            results = pool.imap_unordered(run_in_process, names, chunksize=4)
        else:
            start_process(options)
            stack.callback(STATE["worker"].stop)
            results = map(run_in_process, names)
        for report in results:
            reports[report["name"]] = report
            progress(len(reports), len(names), report)
    return [reports[name] for name in names]


def summarize(reports):
    """The numbers over all reports, as one JSON object."""
    counts = collections.Counter(report["status"] for report in reports if not report["name"].startswith("core:"))
    wrong = [report["name"] for report in reports if report["failed"]]
    exercised = set().union(*(report["exercised"] for report in reports)) if reports else set()
    core = core_overloads()
    missing = collections.Counter()
    for report in reports:
        for reason in report["unsupported"]:
            missing[reason] += 1
    return {
        "torch": torch.__version__,
        "opinfos": sum(counts.values()),
        "passed": counts["passed"],
        "failed": counts["failed"],
        "unsupported": counts["unsupported"],
        "untraceable": counts["untraceable"],
        "cases": sum(report["cases"] for report in reports),
        "cases_passed": sum(report["passed"] for report in reports),
        "cases_failed": sum(report["failed"] for report in reports),
        "wrong": wrong,
        "core": len(core),
        "core_exercised": sum(name in exercised for name in core),
        "core_not_exercised": [name for name in core if name not in exercised],
        "missing": dict(missing.most_common()),
        "unstable": {report["name"]: report["unstable"] for report in reports if report["unstable"]},
    }


def print_summary(summary, reports, *, whole, failures):
    """`whole`: all OpInfos were asked for, so what was not exercised is news. `failures`: print the graphs too."""
    print(f"{summary['opinfos']} OpInfos: {summary['passed']} passed, {summary['failed']} failed, ", end="")
    print(f"{summary['unsupported']} unsupported, {summary['untraceable']} untraceable")
    print(f"{summary['cases']} cases: {summary['cases_passed']} passed, {summary['cases_failed']} wrong")
    print(f"core overloads exercised and right: {summary['core_exercised']} of {summary['core']}")
    if whole and summary["core_not_exercised"]:
        print("  not exercised: " + ", ".join(summary["core_not_exercised"]))
    if summary["missing"]:
        print("missing, by the number of OpInfos that want it:")
        for reason, count in summary["missing"].items():
            print(f"  {count:4} {reason}")
    for name, reasons in summary["unstable"].items():
        print(f"no verdict on {name}: " + "; ".join(reasons))
    for report in reports:
        if report["failures"]:
            first = report["failures"][0]
            place = f"{first['dtype']} sample {first['sample']} {first['variant']}"
            print(f"WRONG {report['name']} ({report['failed']} of {report['cases']}): {place}: {first['message'][:300]}")
        if report["failures"] and failures:
            for failure in report["failures"]:
                print(f"--- {failure['dtype']} sample {failure['sample']} {failure['variant']}: {failure['message']}")
                print("    inputs: " + ", ".join(failure["inputs"]))
                print(failure["graph"])


def show_progress(done, total, report):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total} {report['name']} {report['status']}", end="", file=sys.stderr, flush=True)
    elif done % 50 == 0 or done == total or report["seconds"] > 30:
        print(f"{done}/{total} {report['name']} {report['status']} {report['seconds']:.1f} s", file=sys.stderr, flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compare Pyrite's interpreter with torch eager over PyTorch's operator database.")
    parser.add_argument("--ops", help="only these OpInfos, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--dtypes", default=",".join(ALL_DTYPES), help="which of " + ",".join(ALL_DTYPES))
    parser.add_argument("--variants", default=",".join(VARIANTS), help="which of " + ",".join(VARIANTS))
    parser.add_argument("--samples", type=int, help="at most this many samples per OpInfo and dtype")
    parser.add_argument("--quick", action="store_true", help="the subset of the test suite: two samples, no f64")
    parser.add_argument("--mode", default="crossref", help="how the worker runs: eager, crossref or schema")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the OpInfos")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds per sample")
    parser.add_argument("--json", metavar="FILE", help="write the summary and every report there")
    parser.add_argument("--list-failures", action="store_true", help="print the graphs of wrong answers")
    parser.add_argument("--worker", help="the command that serves instead of `$PYRITE_BIN worker`")
    chosen = parser.parse_args(arguments)

    options = Options(
        dtypes=QUICK.dtypes if chosen.quick else chosen.dtypes.split(","),
        samples=QUICK.samples if chosen.quick else chosen.samples,
        variants=chosen.variants.split(","),
        mode=chosen.mode,
        time_limit=chosen.time_limit,
        command=chosen.worker.split() if chosen.worker else None,
    )
    if options.command is None and "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    if unknown := [dtype for dtype in options.dtypes if dtype not in DTYPES]:
        parser.error(f"unknown dtype {unknown[0]}; known are {', '.join(DTYPES)}")
    names = select(chosen.ops)
    if not names:
        parser.error(f"no OpInfo is named {chosen.ops}")

    reports = run(names, options, chosen.jobs, show_progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    summary = summarize(reports)
    print_summary(summary, reports, whole=chosen.ops is None, failures=chosen.list_failures)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump({"summary": summary, "reports": reports}, file, indent=1)
    return 1 if summary["cases_failed"] else 0


def select(patterns):
    from core_samples import CORE_SAMPLES

    names = [*opinfos(), *("core:" + name for name in CORE_SAMPLES)]
    if not patterns:
        return names
    patterns = patterns.split(",")
    return [name for name in names if any(name == p or (p.endswith("*") and name.startswith(p[:-1])) for p in patterns)]


if __name__ == "__main__":
    sys.exit(main())
