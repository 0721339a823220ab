"""Runs PyTorch's operator database through Pyrite and compares with torch eager: `python -m operators.conformance --help`.

Every sample of every OpInfo, in every dtype asked for, is traced by make_fx twice, as it is and with `core_aten_decompositions()`. The text
that FX prints goes to `pyrite worker` with the inputs, and `compare.py` compares the results. Core operators that no OpInfo reaches are
called directly, by `core_samples.py`. Progress goes to stderr, the summary to stdout, everything to the file of `--json`. The exit code is
1 when an answer was wrong, 2 when nothing was run. `harness.py` says when an OpInfo passed.
"""

import argparse
import functools
import operator
import sys
from dataclasses import dataclass, field

import cpu  # noqa: F401  (before torch)

import torch
import torch.utils._pytree as pytree

from operators import harness
from operators.compare import Outcome, difference
from operators.harness import Arguments, Case, Report, describe_error, full_name, opinfos, sample_cases, show_progress, tracing
from operators.programs import SEED, decompositions, plain_input, trace
from operators.worker import DTYPES, Encoder

ALL_DTYPES = ["f32", "f64", "bf16", "i64", "b8", "c64"]
VARIANTS = ["traced", "core"]


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


@dataclass
class Options(harness.Options):
    """What one run covers."""

    dtypes: list = field(default_factory=lambda: list(ALL_DTYPES))
    variants: list = field(default_factory=lambda: list(VARIANTS))


QUICK = Options(dtypes=["f32", "bf16", "i64", "b8", "c64"], samples=2)


def opinfo_cases(op, options):
    def cases(dtype, index, sample):
        for variant in options.variants:
            yield opinfo_case(op, sample, Case(dtype, index, variant), options)

    supported = [dtype for dtype in options.dtypes if DTYPES[dtype] in op.supported_dtypes("cpu")]
    return sample_cases(op, supported, options, cases)


def opinfo_case(op, sample, case, options):
    arguments = Arguments(sample)

    def function(*tensors):
        first, args, kwargs = arguments.filled(tensors)
        result = op(first, *args, **kwargs)
        if full_name(op) in UP_TO_PHASE:
            structure = pytree.tree_structure(result)
            case.canonical = lambda outputs: (
                UP_TO_PHASE[full_name(op)](*outputs),
                sample.output_process_fn_grad(pytree.tree_unflatten(outputs, structure)),
            )
        return result

    with tracing(case, options):
        inputs = [plain_input(tensor) for tensor in arguments.tensors]
        case.program = trace(function, inputs, decompositions() if case.variant == "core" else None)
    return case


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
    fp64s = []

    def fp64():
        if not fp64s:
            fp64s.append(program.fp64())
        return fp64s[0]

    found = difference(expected, actual, fp64=fp64, unset=program.unset_outputs())
    if found is None or (": value:" in found and case.canonical and canonically_equal(case.canonical, expected, actual)):
        return "passed", ""
    if found.startswith("output ") and ": value:" in found and picked_alike(program, expected, actual):
        return "passed", ""
    if not program.random and difference(program.eager(program.inputs), expected, fp64=lambda: None, unset=program.unset_outputs()):
        return "unstable", "torch disagrees with itself"
    return "failed", found


def canonically_equal(canonical, expected, actual):
    try:
        torch.testing.assert_close(canonical(actual.outputs), canonical(expected.outputs), equal_nan=True)
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
        from operators.core_samples import core_cases

        cases = core_cases(name.removeprefix("core:"), options)
    else:
        cases = opinfo_cases(opinfos()[name], options)
    return Report(name, options, check).run(cases, worker).json()


run = functools.partial(harness.run, run_one)


def summarize(reports):
    """The numbers over all reports, as one JSON object."""
    exercised = set().union(*(report["exercised"] for report in reports)) if reports else set()
    core = core_overloads()
    return {
        **harness.tally(reports),
        "core": len(core),
        "core_exercised": sum(name in exercised for name in core),
        "core_not_exercised": [name for name in core if name not in exercised],
    }


def print_summary(summary, reports, *, whole, failures):
    """`whole`: all OpInfos were asked for, so what was not exercised is news."""
    harness.print_details(summary, reports, failures=failures)
    print(f"core overloads exercised and right: {summary['core_exercised']} of {summary['core']}")
    if whole and summary["core_not_exercised"]:
        print("  not exercised: " + ", ".join(summary["core_not_exercised"]))
    harness.print_tally(summary)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compare Pyrite's interpreter with torch eager over PyTorch's operator database.")
    harness.add_arguments(parser, ALL_DTYPES, ALL_DTYPES)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="which of " + ",".join(VARIANTS))
    parser.add_argument("--quick", action="store_true", help="the subset of the test suite: two samples, no f64")
    chosen = parser.parse_args(arguments)

    options = Options(
        dtypes=QUICK.dtypes if chosen.quick else chosen.dtypes.split(","),
        samples=QUICK.samples if chosen.quick else chosen.samples,
        variants=chosen.variants.split(","),
        modes=chosen.mode.split(","),
        time_limit=chosen.time_limit,
        command=chosen.worker.split() if chosen.worker else None,
    )
    names = select(chosen.ops)
    harness.check_arguments(parser, options, names)

    reports = run(names, options, chosen.jobs, show_progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    summary = summarize(reports)
    print_summary(summary, reports, whole=chosen.ops is None, failures=chosen.list_failures)
    if chosen.json:
        harness.write_json(chosen.json, summary, reports)
    return 1 if summary["cases_failed"] else 0


def select(patterns):
    from operators.core_samples import CORE_SAMPLES

    return harness.matching([*opinfos(), *("core:" + name for name in CORE_SAMPLES)], patterns)


if __name__ == "__main__":
    sys.exit(main())
