"""What the runs over PyTorch's operator database share: its samples, the verdict on each, and the processes that share the work.

An OpInfo is *failed* when one case had a wrong answer, an error, a crash or a hang; else *unsupported* when Pyrite said so of a case; else
*untraceable* when none of its samples could be traced; else *passed*.
"""

import collections
import contextlib
import functools
import json
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from dataclasses import dataclass, field

import torch
import torch.utils._pytree as pytree

from operators.compare import describe_inputs
from operators.programs import SEED, Program
from operators.worker import DTYPES, Untransportable, Worker


@dataclass
class Options:
    """What one run covers; plain data, so that it can be sent to the processes that share the work."""

    dtypes: list
    samples: int | None = None
    modes: list = field(default_factory=lambda: ["crossref"])
    time_limit: float = 30.0
    command: list | None = None
    kept_failures: int = 5


@dataclass
class Case:
    """One program to be tried, or the reason why there is none. `canonical` takes outputs to what is unique about them."""

    dtype: str
    sample: int
    variant: str
    program: Program | None = None
    untraceable: str | None = None
    unsupported: str | None = None
    canonical: object = None

    def key(self):
        """Equal for cases whose verdict would be the same."""
        return self.program.key()


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


@functools.cache
def opinfos():
    from torch.testing._internal.common_methods_invocations import op_db

    return {full_name(op): op for op in op_db}


class Arguments:
    """The arguments of a sample, apart into its tensors and the rest."""

    def __init__(self, sample):
        self.leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [k for k, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = [self.leaves[k] for k in self.places]

    def filled(self, tensors):
        """First argument, further ones and named ones, with other tensors."""
        leaves = list(self.leaves)
        for k, tensor in zip(self.places, tensors):
            leaves[k] = tensor
        return pytree.tree_unflatten(leaves, self.spec)


def sample_cases(op, dtypes, options, cases, requires_grad=False):
    """The cases that `cases(dtype, index, sample)` makes of each sample in each dtype."""
    if not dtypes:
        yield Case("", 0, "traced", untraceable=f"torch has it on the CPU for none of {', '.join(options.dtypes)}")
    for dtype in dtypes:
        random.seed(SEED)
        torch.manual_seed(SEED)
        samples = draw_samples(op, DTYPES[dtype], requires_grad)
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
            yield from cases(dtype, index, sample)
            # Samples are drawn lazily: what the runs above drew must not change the next one.
            torch.set_rng_state(state)


def draw_samples(op, dtype, requires_grad):
    """As a generator, so that an error of the first sample is raised where those of later ones are."""
    yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad)


@contextlib.contextmanager
def tracing(case, options):
    """Notes in the case why it could not be traced."""
    try:
        with time_limit(options.time_limit):
            yield
    except Untransportable as error:
        case.unsupported = str(error)
    except Exception as error:
        case.untraceable = describe_error(error)


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


# The verdicts on one case, the one that counts most first.
VERDICTS = ["failed", "unsupported", "unstable", "passed"]


class Report:
    """What happened to the cases of one OpInfo. `check(case, worker, mode)` gives a verdict and its reason."""

    def __init__(self, name, options, check):
        self.name = name
        self.check = check
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
            key = case.key()
            if key not in self.seen:
                found = [self.judge(case, worker, mode) for mode in self.options.modes]
                self.seen[key] = min(found, key=lambda verdict: VERDICTS.index(verdict[0]))
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

    def judge(self, case, worker, mode):
        with time_limit(self.options.time_limit + worker.time_limit):
            kind, message = self.check(case, worker, mode)
        return kind, f"{mode}: {message}" if kind == "failed" and len(self.options.modes) > 1 else message

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


STATE = {}


def start_process(run_one, options):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    STATE["run_one"] = run_one
    STATE["options"] = options
    STATE["worker"] = Worker(options.command, options.time_limit)


def run_in_process(name):
    return STATE["run_one"](name, STATE["options"], STATE["worker"])


def run(run_one, names, options, jobs=1, progress=lambda done, total, report: None):
    """The reports of the named OpInfos, in the order of the names. `run_one(name, options, worker)` makes a report."""
    reports = {}
    with contextlib.ExitStack() as stack:
        if jobs > 1:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(context.Pool(jobs, start_process, (run_one, options)))
            results = pool.imap_unordered(run_in_process, names)
        else:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            start_process(run_one, options)
            stack.callback(STATE["worker"].stop)
            results = map(run_in_process, names)
        for report in results:
            reports[report["name"]] = report
            progress(len(reports), len(names), report)
    return [reports[name] for name in names]


def show_progress(done, total, report):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total} {report['name']} {report['status']}", end="", file=sys.stderr, flush=True)
    elif done % 50 == 0 or done == total or report["seconds"] > 30:
        print(f"{done}/{total} {report['name']} {report['status']} {report['seconds']:.1f} s", file=sys.stderr, flush=True)


def tally(reports):
    """The numbers that every run has, as one JSON object."""
    counts = collections.Counter(report["status"] for report in reports if not report["name"].startswith("core:"))
    missing = collections.Counter(reason for report in reports for reason in report["unsupported"])
    return {
        "torch": torch.__version__,
        "opinfos": sum(counts.values()),
        **{status: counts[status] for status in ("passed", "failed", "unsupported", "untraceable")},
        "cases": sum(report["cases"] for report in reports),
        "cases_passed": sum(report["passed"] for report in reports),
        "cases_failed": sum(report["failed"] for report in reports),
        "wrong": [report["name"] for report in reports if report["failed"]],
        "missing": dict(missing.most_common()),
        "unstable": {report["name"]: report["unstable"] for report in reports if report["unstable"]},
    }


def print_tally(summary):
    print(f"{summary['cases']} cases: {summary['cases_passed']} passed, {summary['cases_failed']} wrong")
    print(f"{summary['opinfos']} OpInfos: {summary['passed']} passed, {summary['failed']} failed, ", end="")
    print(f"{summary['unsupported']} unsupported, {summary['untraceable']} untraceable")


def print_details(summary, reports, *, failures):
    """What is missing, undecided and wrong. `failures`: print the graphs too."""
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


def matching(names, patterns):
    """The names that are among the patterns, which are separated by commas; a prefix ends in *. All without patterns."""
    if not patterns:
        return list(names)
    patterns = patterns.split(",")
    return [name for name in names if any(name == p or (p.endswith("*") and name.startswith(p[:-1])) for p in patterns)]


def add_arguments(parser, dtypes, known):
    """The arguments that every run has."""
    parser.add_argument("--ops", help="only these OpInfos, by name, separated by commas; a prefix ends in *")
    parser.add_argument("--dtypes", default=",".join(dtypes), help="which of " + ",".join(known))
    parser.add_argument("--samples", type=int, help="at most this many samples per OpInfo and dtype")
    parser.add_argument("--mode", default="crossref", help="how the worker runs: eager, crossref, schema or native; several have commas")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the OpInfos")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds per sample")
    parser.add_argument("--json", metavar="FILE", help="write the summary and every report there")
    parser.add_argument("--list-failures", action="store_true", help="print the graphs of wrong answers")
    parser.add_argument("--worker", help="the command that serves instead of `$PYRITE_BIN worker`")


def check_arguments(parser, options, names):
    if options.command is None and "PYRITE_BIN" not in os.environ:
        parser.error("set PYRITE_BIN to the path of the pyrite binary")
    if unknown := [dtype for dtype in options.dtypes if dtype not in DTYPES]:
        parser.error(f"unknown dtype {unknown[0]}; known are {', '.join(DTYPES)}")
    if not names:
        parser.error("no OpInfo has that name; PyTorch's names are like add and nn.functional.celu, and --ops 'nn.functional.*' selects several")


def write_json(path, summary, reports):
    with open(path, "w") as file:
        json.dump({"summary": summary, "reports": reports}, file, indent=1)
