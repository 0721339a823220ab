"""Compares Pyrite's gradients with torch autograd's over PyTorch's operator database: `python -m operators.gradients --help`.

Every sample of every OpInfo that supports autograd is traced by make_fx without autograd, in double precision, together with what OpInfo
says makes its results unique or its inputs valid. torch autograd differentiates the original operator for random tangents; Pyrite derives
the traced graph and runs outputs and gradients in one. Both must agree; no gradient and zeros are the same. Output and exit code are those
of `conformance.py`, and `harness.py` says when an OpInfo passed.
"""

import argparse
import functools
import sys
from dataclasses import dataclass, field

import cpu  # noqa: F401  (before torch)

import torch
import torch.utils._pytree as pytree

from operators import harness
from operators.compare import value_difference
from operators.harness import Arguments, Case, Report, describe_error, opinfos, sample_cases, show_progress, tracing
from operators.programs import SEED, copy_inputs, plain_input, trace
from operators.worker import DTYPES

ALL_DTYPES = ["f64", "c128"]
TOLERANCE = {"rtol": 1e-6, "atol": 1e-8}

# OpInfos whose gradients torch itself has wrong: it gives the gradient to the elements that were overwritten, none to those that were kept.
WRONG_IN_TORCH = {"as_strided_scatter"}


@dataclass
class Options(harness.Options):
    """What one run covers."""

    dtypes: list = field(default_factory=lambda: ["f64"])


@dataclass
class GradientCase(Case):
    """A program with the function it was traced from and, for each input, whether its gradient is wanted."""

    function: object = None
    wants: list = field(default_factory=list)

    def key(self):
        return self.program.key(), tuple(self.wants)


def opinfo_cases(op, options):
    def cases(dtype, index, sample):
        yield opinfo_case(op, sample, GradientCase(dtype, index, "traced"), options)

    supported = [dtype for dtype in options.dtypes if DTYPES[dtype] in op.supported_backward_dtypes("cpu")]
    return sample_cases(op, supported, options, cases, requires_grad=True)


def opinfo_case(op, sample, case, options):
    arguments = Arguments(sample)

    def function(*tensors):
        first, args, kwargs = arguments.filled(tensors)
        return sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, first, *args, **kwargs))

    case.function = function
    case.wants = [tensor.requires_grad for tensor in arguments.tensors]
    with tracing(case, options):
        case.program = trace(function, [plain_input(tensor) for tensor in arguments.tensors], None)
        # Constants of the trace are further inputs.
        case.wants += [False] * (len(case.program.inputs) - len(case.wants))
    return case


@dataclass
class Reference:
    """What torch autograd says: outputs, the tangents that flow into them or None, gradients of the wanted inputs."""

    outputs: list
    tangents: list
    gradients: list


def reference(case):
    tensors = copy_inputs(case.program.inputs)
    tensors = [tensor.requires_grad_() if want else tensor for tensor, want in zip(tensors, case.wants)]
    # OpInfos of random operators set the seed themselves, which a trace does not show.
    function = case.program.module if case.program.random else case.function
    torch.manual_seed(SEED)
    outputs = pytree.tree_leaves(function(*tensors))
    generator = torch.Generator().manual_seed(SEED)
    tangents = [
        torch.randn(value.shape, dtype=value.dtype, generator=generator) if isinstance(value, torch.Tensor) and value.requires_grad else None
        for value in outputs
    ]
    wanted = [tensor for tensor, want in zip(tensors, case.wants) if want]
    pairs = [(value, tangent) for value, tangent in zip(outputs, tangents) if tangent is not None]
    if not pairs or not wanted:
        return None
    gradients = torch.autograd.grad([value for value, _ in pairs], wanted, [tangent for _, tangent in pairs], allow_unused=True)
    outputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in outputs]
    return Reference(outputs, tangents, list(gradients))


def check(case, worker, mode):
    """Differentiates one program on both sides: ("passed" | "failed" | "unsupported" | "unstable", why)."""
    program = case.program
    try:
        expected = reference(case)
    except Exception as error:
        return "unstable", f"torch has no gradient: {describe_error(error)}"
    if expected is None:
        return "unstable", "torch has nothing to differentiate"
    answer = worker.grad(
        program.text, program.inputs, case.wants, expected.tangents, seed=SEED if program.random else None, mode=mode
    )
    if answer.kind == "unsupported":
        return "unsupported", missing(answer)
    if not answer.ok:
        return "failed", f"{answer.kind}: {answer.op + ': ' if answer.op else ''}{answer.message}"
    outputs, gradients = answer.output
    if len(outputs) != len(expected.outputs):
        return "failed", f"structure: {len(outputs)} outputs instead of {len(expected.outputs)}"
    unset = program.unset_outputs()
    for k, (want, have) in enumerate(zip(expected.outputs, outputs)):
        if k not in unset and (found := value_difference(want, have, lambda: None)):
            return "failed", f"output {k}: {found}"
    places = [k for k, want in enumerate(case.wants) if want]
    for k, want in zip(places, expected.gradients):
        if found := gradient_difference(program.inputs[k], want, gradients[k]):
            return "failed", f"gradient of input {k}: {found}"
    return "passed", ""


def missing(answer):
    """The reason of an unsupported case: an operator, or the derivative of one."""
    if "the derivative of" in answer.message:
        return "the derivative of" + answer.message.partition("the derivative of")[2]
    return answer.op or answer.message


def gradient_difference(value, want, have):
    """None, or what is wrong with a gradient of the value; no gradient and zeros are the same."""
    want = torch.zeros_like(value) if want is None else want.detach().resolve_conj().resolve_neg()
    have = torch.zeros_like(value) if have is None else have
    try:
        torch.testing.assert_close(have, want, equal_nan=True, **TOLERANCE)
        return None
    except AssertionError as error:
        return " ".join(str(error).split())


def run_one(name, options, worker):
    return Report(name, options, check).run(opinfo_cases(opinfos()[name], options), worker).json()


run = functools.partial(harness.run, run_one)


def select(patterns):
    return harness.matching([name for name, op in opinfos().items() if op.supports_autograd and name not in WRONG_IN_TORCH], patterns)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Compare Pyrite's gradients with torch autograd's over PyTorch's operator database.")
    harness.add_arguments(parser, Options().dtypes, ALL_DTYPES)
    chosen = parser.parse_args(arguments)

    options = Options(
        dtypes=chosen.dtypes.split(","),
        samples=chosen.samples,
        modes=chosen.mode.split(","),
        time_limit=chosen.time_limit,
        command=chosen.worker.split() if chosen.worker else None,
    )
    names = select(chosen.ops)
    harness.check_arguments(parser, options, names)

    reports = run(names, options, chosen.jobs, show_progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    summary = harness.tally(reports)
    harness.print_details(summary, reports, failures=chosen.list_failures)
    harness.print_tally(summary)
    if chosen.json:
        harness.write_json(chosen.json, summary, reports)
    return 1 if summary["cases_failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
