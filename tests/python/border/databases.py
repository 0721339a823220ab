"""The databases of subjects that torch carries for its own tests, at every entry point: `python -m border.databases --help`.

OpInfos have sweeps of their own. Beside them torch's wheel knows: modules with arguments and inputs, training and evaluating (`modules`, and the older
`layers`), optimizers with their settings (`optimizers`), functions of lists of tensors (`foreach`), higher-order operators (`higher_order`), custom
operators and autograd functions, functions of torch written in Python (`references`), examples of what `torch.export` captures (`exports`), and calls
of `torch.nn.functional` (`functional`). Nobody here chose what they call. All that `observe` sees is eager's: outputs, what inputs, parameters and
buffers hold afterwards, their gradients. Each subject runs in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import itertools
import logging
import sys
import time
import warnings

import cpu  # noqa: F401  (before torch)

import torch
import torch.utils._pytree as pytree

import pyrite
from border.observe import WAYS, Judge, first_line
from capture import isolation
from capture.cases import seed_everything
from operators.harness import full_name

# So many samples of a subject are called, so many times an optimizer steps.
SAMPLES = 4
STEPS = 3

# What cannot be compared with eager's, and why.
LEFT_OUT = {
    "modules": {},
    "optimizers": {
        "SparseAdam": "takes sparse gradients only",
    },
    "higher_order": {
        "flex_gemm": "is for GPUs",
        "inline_asm_elementwise": "is for GPUs",
    },
}


class Subject:
    """Something that is called: `made()` gives the function, the arguments of its calls, and the module whose state belongs to them."""

    def __init__(self, name, made, backward=True):
        self.name, self.made, self.backward = name, made, backward


def of_samples(database, op, name, function, dtype, differentiated=True):
    """A subject that is called with the samples of an OpInfo."""

    def made():
        seed_everything(0)
        wants = differentiated and op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=wants), SAMPLES))
        return (lambda args, kwargs: function(*args, **kwargs)), [([each.input, *each.args], dict(each.kwargs)) for each in samples], None

    return Subject(f"{database}/{full_name(op)}{name}, {dtype}".replace("torch.", ""), made, differentiated)


def first_of(op, wanted):
    """The first of these dtypes that an OpInfo has."""
    return next((dtype for dtype in wanted if dtype in op.supported_dtypes("cpu")), None)


def modules():
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        for training in (False, True):
            for number in range(SAMPLES * 2):

                def made(info=info, training=training, number=number):
                    seed_everything(0)
                    given = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training))
                    if number >= len(given):
                        return None
                    built, called = given[number].constructor_input, given[number].forward_input
                    module = info.module_cls(*built.args, **built.kwargs).train(training)
                    if called is None:
                        return None
                    return (lambda args, kwargs: module(*args, **kwargs)), [(list(called.args), dict(called.kwargs))] * 2, module

                yield Subject(f"modules/{info.name.removeprefix('nn.')}.{number}, {'training' if training else 'evaluating'}", made)


def layers():
    from torch.testing._internal import common_nn

    for number, entry in enumerate([*common_nn.module_tests, *common_nn.get_new_module_tests(), *common_nn.criterion_tests]):

        def made(entry=entry):
            seed_everything(0)
            entry = dict(entry)
            constructor = entry.pop("constructor", None) or getattr(torch.nn, entry.pop("module_name"))
            entry.pop("module_name", None)

            def given(name):
                if f"{name}_fn" in entry:
                    return entry[f"{name}_fn"]()
                if f"{name}_size" in entry:
                    sizes = entry[f"{name}_size"]
                    return [torch.randn(size) for size in sizes] if isinstance(sizes, list) else torch.randn(sizes)
                return entry.get(name, ())

            module = constructor(*given("constructor_args"))
            inputs = given("input")
            inputs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
            if isinstance(target := given("target"), torch.Tensor):
                inputs.append(target)
            more = given("extra_args")
            inputs += more if isinstance(more, (tuple, list)) else [more]

            def wants(value):
                is_leaf = isinstance(value, torch.Tensor) and value.is_floating_point() and not value.requires_grad
                return value.detach().clone().requires_grad_() if is_leaf and entry.get("check_gradgrad", True) else value

            inputs = pytree.tree_map(wants, inputs)
            return (lambda args: module(*args)), [(inputs,)] * 2, module

        name = entry.get("fullname") or entry.get("module_name") or getattr(entry.get("constructor"), "__name__", "")
        yield Subject(f"layers/{number}.{name}{'_' + entry['desc'] if entry.get('desc') else ''}", made)


def functional():
    from torch.testing._internal import jit_metaprogramming_utils as utils

    for number, (name, first, args, *_) in enumerate(utils.get_nn_functional_tests()):

        def made(name=name, first=first, args=args):
            seed_everything(0)
            function = getattr(torch.nn.functional, name)
            (first,), _ = utils.create_input((first,))
            args, kwargs = utils.create_input(args)
            return (lambda args, kwargs: function(*args, **kwargs)), [([first, *args], kwargs)], None

        yield Subject(f"functional/{number}.{name}", made)


def optimizers():
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        if info.optim_cls.__name__ in LEFT_OUT["optimizers"]:
            continue
        for each in info.optim_inputs_func(device="cpu"):
            for settings in ({}, {"foreach": True}, {"foreach": False}, {"fused": True}):
                name = next(iter(settings), "")
                if name == "fused" and "cpu" not in info.supports_fused_on or name == "foreach" and "foreach" not in info.supported_impls:
                    continue
                if settings.items() & {"fused": True}.items() and (each.kwargs.get("differentiable") or each.kwargs.get("foreach")):
                    continue

                def made(info=info, each=each, settings=settings):
                    seed_everything(0)
                    # Muon takes matrices only.
                    bias = info.optim_cls.__name__ != "Muon"
                    module = torch.nn.Sequential(torch.nn.Linear(3, 5, bias=bias), torch.nn.Linear(5, 2, bias=False))
                    kwargs = {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in each.kwargs.items()} | settings
                    return stepping(info.optim_cls, kwargs, module, info.step_requires_closure), [(torch.randn(4, 3),)] * STEPS, None

                yield Subject(f"optimizers/{info.optim_cls.__name__} {each.desc} {settings or ''}", made, backward=False)


def stepping(optimizer, kwargs, module, closed):
    """A function that steps an optimizer; each copy of it has a module and an optimizer of its own, so that all begin alike."""

    def make():
        own = copy.deepcopy(module)
        chosen = optimizer(own.parameters(), **copy.deepcopy(kwargs))

        def backward(x):
            chosen.zero_grad()
            loss = own(x).square().sum()
            loss.backward()
            return loss

        def step(x):
            if closed:
                chosen.step(lambda: backward(x))
            else:
                chosen.step()

        def state():
            # Steps that are tensors may be numbers elsewhere; both are shown.
            held = [chosen.state[each] for each in own.parameters()]
            return [each.detach().clone() for each in own.parameters()], pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, held)

        return backward, step, state

    return make


def foreach():
    from torch.testing._internal import common_methods_invocations as found

    for op in found.foreach_op_db:
        for name, function in (("", op.op), ("_", op.inplace_variant)):
            for dtype in (torch.float32, torch.int64):
                if function is not None and dtype in op.supported_dtypes("cpu") and not (name == "" and function is op.inplace_variant):
                    yield of_samples("foreach", op, name, function, dtype, differentiated=not name)


def higher_order():
    from torch.testing._internal.hop_db import hop_db
    from torch.testing._internal.opinfo.definitions import nested  # noqa: F401

    for op in hop_db:
        dtype = first_of(op, (torch.float32, torch.int64))
        if op.name not in LEFT_OUT["higher_order"] and dtype:
            yield of_samples("higher_order", op, "", op.op, dtype)


def custom_operators():
    from torch.testing._internal.custom_op_db import custom_op_db

    for op in custom_op_db:
        if dtype := first_of(op, (torch.float32, torch.int64)):
            yield of_samples("custom_operators", op, "", op.op, dtype)


def autograd_functions():
    from torch.testing._internal.autograd_function_db import autograd_function_db

    for op in autograd_function_db:
        if dtype := first_of(op, (torch.float32, torch.int64)):
            yield of_samples("autograd_functions", op, "", op.op, dtype)


def references():
    from torch.testing._internal.common_methods_invocations import python_ref_db

    for op in python_ref_db:
        for dtype in (torch.float32, torch.int64):
            if dtype in op.supported_dtypes("cpu"):
                yield of_samples("references", op, "", op.op, dtype)


def exports():
    from torch._export.db.examples import all_examples

    for name, case in all_examples().items():

        def made(case=case):
            seed_everything(0)
            module = copy.deepcopy(case.model)
            calls = [(list(case.example_args), dict(case.example_kwargs))] * 2
            if case.extra_args:
                calls.append((list(case.extra_args), {}))
            return (lambda args, kwargs: module(*args, **kwargs)), calls, module

        yield Subject(f"exports/{name}", made)


DATABASES = {
    each.__name__: each
    for each in (modules, layers, functional, optimizers, foreach, higher_order, custom_operators, autograd_functions, references, exports)
}


def subjects(chosen=None):
    for name, database in DATABASES.items():
        if chosen is None or name in chosen:
            yield from database()


def compared(subject, way):
    """How many calls were compared, and what differs in one."""
    found = subject.made()
    if found is None:
        return 0, None
    function, calls, module = found
    if subject.name.startswith("optimizers/"):
        return stepped(function, calls, way)
    judge = Judge(function, way, backward=subject.backward, module=module)
    count = 0
    for number, arguments in enumerate(calls):
        if difference := judge.difference(arguments):
            return count, f"call {number}: {difference}"
        count += judge.accepted
    return count, None


def stepped(make, calls, way):
    """Steps an optimizer in plain Python and compiled, from gradients that are computed alike."""
    (backward, step, state), (own_backward, own_step, own_state) = make(), make()
    ours, _ = WAYS[way]
    compiled = ours(own_step)
    for number, (x,) in enumerate(calls):
        backward(x)
        own_backward(x)
        try:
            step(x)
        except Exception:
            return number, None
        try:
            compiled(x)
        except Exception as error:
            return number, f"call {number}: raises {type(error).__name__}: {first_line(error)}"
        for theirs, mine in zip(pytree.tree_leaves(state()), pytree.tree_leaves(own_state()), strict=True):
            if theirs is None or mine is None:
                if theirs is not mine:
                    return number, f"step {number}: {mine}, not {theirs}"
                continue
            try:
                torch.testing.assert_close(torch.as_tensor(mine), torch.as_tensor(theirs), rtol=2e-6, atol=1e-6, equal_nan=True)
            except AssertionError as error:
                return number, f"step {number}: {first_line(error)}"
    return len(calls), None


def check(subject, way):
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return compared(subject, way)
        finally:
            torch._dynamo.reset()
            pyrite.reset()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", action="append", choices=DATABASES, help="only this one; may be given again")
    parser.add_argument("--only", help="only subjects whose name has this text")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this entry point; may be given again")
    parser.add_argument("--part", default="1/1", help="only one part of the subjects, such as 2/4")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for a subject at an entry point")
    given = parser.parse_args()
    isolation.prepare()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    part, parts = map(int, given.part.split("/"))
    begun, total, differing = time.monotonic(), 0, 0
    all_subjects = [each for each in subjects(given.database) if not given.only or given.only in each.name]
    for subject in all_subjects[part - 1 :: parts]:
        ways = given.way or list(WAYS)
        for way, (answer, death) in zip(ways, isolation.together([lambda way=way: check(subject, way) for way in ways], given.time_limit)):
            count, text = answer or (0, death)
            total += count
            if text:
                differing += 1
                print(f"{subject.name}, {way}: {text}", flush=True)
    print(f"{len(all_subjects)} subjects: {total} calls compared, {differing} differences, {time.monotonic() - begun:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
