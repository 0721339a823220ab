"""The corpus and the hostile programs through Pyrite's capture, and the harness against compilers that are wrong on purpose."""

import ast
import fcntl
import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from capture import harness, known, random_programs
from capture.cases import CASES, Case, Message, Reuse, corpus
from capture.hostile import PROGRAMS
from capture.report import is_among

TESTS = pathlib.Path(__file__).parents[1]

needs_capture = pytest.mark.skipif(not harness.Pyrite.is_installed(), reason="this installation of pyrite has no `pyrite.compile`")


def expected_to_fail(names, failures):
    def marks(name):
        return [pytest.mark.xfail(reason=failures[name], strict=True)] if name in failures else []

    return [pytest.param(name, marks=marks(name)) for name in names]


def run_module(folder, *arguments):
    """What a module of this package prints, as data. Its process may crash; the one of the tests does not. The workers of one test run
    share a folder: the first that asks runs the module, the others read what it has printed."""
    kept = folder / ("_".join(arguments) + ".json")
    with open(kept.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            done = subprocess.run([sys.executable, "-m", *arguments], cwd=TESTS, capture_output=True, text=True, timeout=900)
            assert done.stdout.startswith("{"), done.stderr
            kept.write_text(done.stdout)
        return json.loads(kept.read_text())


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder of this test run. Where there are several workers, each has one of its own in it."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def one_thread():
    """Small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Of what the native code of a capture does not show by itself, every change is tried with so many of the cases only.
EVERY = 1 if os.environ.get("PYRITE_CORPUS") == "all" else 4
FAMILIES = sorted({name.split(".")[0] for name in corpus()})


def rows(shared, compiler, every=1):
    return run_module(shared, "capture.report", "--compiler", compiler, "--together", "--json", "--every", str(every))


@pytest.fixture(scope="module")
def eager_rows(shared):
    return rows(shared, "pyrite", EVERY)


@pytest.fixture(scope="module")
def native_rows(shared):
    return rows(shared, "native")


@pytest.fixture(scope="module")
def fx_rows(shared):
    return rows(shared, "fx", EVERY)


@pytest.fixture(scope="module")
def programs(shared):
    return run_module(shared, "capture.hostile", "--compiler", "pyrite")


def differing(rows, family):
    """The cases of a file that differ from plain Python, and in what."""
    return {name: row["differs"] for name, row in rows.items() if name.split(".")[0] == family and row["differs"] is not None}


def failing(family, *known_failures):
    return {name for failures in known_failures for name in failures if name.split(".")[0] == family}


@needs_capture
@pytest.mark.parametrize("family", FAMILIES)
def test_captured_functions_do_what_plain_python_does(eager_rows, family):
    found = differing(eager_rows, family)
    assert found.keys() == failing(family, known.CASES) & eager_rows.keys(), found


@needs_capture
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_functions_do_what_plain_python_does(native_rows, family):
    found = differing(native_rows, family)
    assert found.keys() == failing(family, known.CASES, known.NATIVE), found


@needs_capture
@pytest.mark.parametrize("family", FAMILIES)
def test_fx_graphs_do_what_plain_python_does(fx_rows, family):
    found = differing(fx_rows, family)
    assert found.keys() == failing(family, known.CASES) & fx_rows.keys(), found


@needs_capture
def test_every_case_is_run(native_rows, fx_rows):
    assert native_rows.keys() == corpus().keys()
    assert len(fx_rows) > len(corpus()) / EVERY / 1.3


DYING = """
import os, signal, time
from capture import isolation

def fail():
    raise ValueError("wrong")

isolation.prepare()
works = [lambda: 1, lambda: os.kill(os.getpid(), signal.SIGSEGV), fail, lambda: time.sleep(60), lambda: 5]
print(isolation.together(works, 3))
left = []
works = [lambda: left.append(1), lambda: os._exit(3) if left else 2, lambda: len(left)]
print(isolation.together(works, 3))
"""


def test_a_case_that_ends_the_process_of_all_is_named_and_the_others_go_on():
    done = subprocess.run([sys.executable, "-c", DYING], cwd=TESTS, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    first, second = map(ast.literal_eval, done.stdout.splitlines())
    died = first.pop(1)
    assert died[0] is None and died[1].startswith("died by SIGSEGV in <lambda> (<string>:9) < carry_out (isolation.py:"), died
    assert first == [
        (1, None),
        (None, "ValueError: wrong (<string>:6)"),
        (None, "no end after 3 s"),
        (5, None),
    ]
    # What a case leaves behind may end the next one; then it is no fault of that one alone.
    assert second == [(None, None), (None, "ended with code 3 and no answer in one process with others, not alone"), (0, None)]


@needs_capture
@pytest.mark.parametrize("name", expected_to_fail(PROGRAMS, known.PROGRAMS))
def test_a_hostile_program_runs_as_without_capture(programs, name):
    assert programs[name] is None


RANDOM_PROGRAMS = os.environ.get("PYRITE_CAPTURE_PROGRAMS", "150")
# Which kinds of guards are left out to see whether it is noticed: all of them only where many programs are run.
DROPPED = ["is", "class", "equal", "length", "keys", "code", "tensor", "lacks", "nothing", "something", "unchanged", "same", "differs", "compares"]


@needs_capture
@pytest.mark.parametrize("kind", DROPPED if int(RANDOM_PROGRAMS) > 1000 else ["equal", "length", "keys"])
def test_a_kind_of_guard_that_is_left_out_is_noticed(kind):
    command = [sys.executable, "-m", "capture.random_programs", "--drop", kind, "--count", "10000"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_capture
def test_every_kind_of_guard_can_be_left_out():
    from pyrite import _native

    assert sorted(_native.drop_guards(None)) == sorted(DROPPED)
    with pytest.raises(ValueError, match="there is no guard of that kind"):
        _native.drop_guards("nonsense")


@needs_capture
@pytest.mark.usefixtures("one_thread")
def test_random_programs_are_captured():
    compiler = harness.Pyrite()
    plain = []
    for seed in range(20):
        _, case = random_programs.as_case(random_programs.generate(seed), f"random {seed}")
        compiler.reset()
        compiler.graphs = 0
        harness.run(case, compiler.compile(case.function))
        if not compiler.graphs:
            plain.append(seed)
    assert len(plain) < 4, plain


@needs_capture
def test_random_programs_run_as_without_capture():
    command = [sys.executable, "-m", "capture.random_programs", "--compiler", "pyrite", "--count", RANDOM_PROGRAMS]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("one_thread")
def test_random_programs_agree_with_themselves_in_plain_python():
    for seed in range(30):
        text, case = random_programs.as_case(random_programs.generate(seed), f"random {seed}")
        again, _ = random_programs.as_case(random_programs.generate(seed), f"random {seed}")
        assert text == again
        assert harness.check(case, harness.Plain()) is None, text


def test_the_corpus_covers_the_language():
    assert len(corpus()) >= 300
    assert set(known.CASES) | set(known.NATIVE) <= set(corpus()) and set(known.PROGRAMS) <= set(PROGRAMS)


@pytest.mark.usefixtures("one_thread")
def test_every_case_agrees_with_itself_in_plain_python():
    cases = {name: case for name, case in corpus().items() if is_among(name, EVERY)}
    wrong = {name: harness.check(case, harness.Plain()) for name, case in cases.items()}
    assert {name: parting for name, parting in wrong.items() if parting} == {}


LOG = []


def subject(x, items):
    """Has a result, an alias, side effects of three kinds, a gradient and random numbers."""
    y = x.view(2, 3) * 2
    items.append(y)
    LOG.append(x.shape)
    print("called")
    if len(items) > 2:
        raise ValueError("too many")
    return {"y": y, "t": y.t(), "r": torch.rand(2), "n": len(items)}


def inputs(*items):
    return torch.randn(6, requires_grad=True), list(items)


SUBJECT = Case("subject", subject, (inputs, lambda: inputs(1, 2)), ("LOG",), Message.EXACT, Reuse.REQUIRED)


class Spoiled(harness.Plain):
    """Plain Python, except for one mistake."""

    def __init__(self, wrapper):
        self.wrapper = wrapper

    def compile(self, function):
        return lambda *args: self.wrapper(function, *args)


def changed(**replaced):
    def wrapper(function, x, items):
        result = function(x, items)
        return {name: replaced.get(name, lambda value: value)(value) for name, value in result.items()}

    return wrapper


def without_printing(function, x, items):
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        return function(x, items)


def without_side_effects_on_arguments(function, x, items):
    return function(x, list(items))


def without_side_effects_on_globals(function, x, items):
    result = function(x, items)
    LOG.clear()
    return result


def with_one_random_number_more(function, x, items):
    result = function(x, items)
    torch.rand(())
    return result


def with_another_exception(function, x, items):
    try:
        return function(x, items)
    except ValueError as error:
        raise RuntimeError(str(error)) from error.__cause__


def with_another_message(function, x, items):
    try:
        return function(x, items)
    except ValueError:
        raise ValueError("a few too many") from None


def without_gradients(function, x, items):
    with torch.no_grad():
        return function(x, items)


def with_wrong_gradients(function, x, items):
    result = function(x, items)
    if x.grad_fn is None:
        x.register_hook(lambda gradient: gradient * 2)
    return result


def with_grad_mode_left_off(function, x, items):
    result = function(x, items)
    torch.set_grad_enabled(False)
    return result


MISTAKES = {
    "value": (changed(y=lambda y: y + 0.01), "result"),
    "dtype": (changed(r=lambda r: r.double()), "torch.float64 instead of torch.float32"),
    "stride": (changed(r=lambda r: torch.stack([r, r], 1)[:, 0]), "stride"),
    "alias": (changed(t=lambda t: t.clone(memory_format=torch.preserve_format)), "storage"),
    "identity": (changed(y=lambda y: y.view_as(y)), "an object of its own instead of object 1 again"),
    "type": (changed(n=float), "float instead of a builtins.int"),
    "stdout": (without_printing, "stdout"),
    "arguments": (without_side_effects_on_arguments, "arguments"),
    "globals": (without_side_effects_on_globals, "globals"),
    "random": (with_one_random_number_more, "random"),
    "exception": (with_another_exception, "exception is a builtins.RuntimeError"),
    "message": (with_another_message, "message"),
    "requires_grad": (without_gradients, "requires_grad"),
    "gradient": (with_wrong_gradients, "gradient"),
    "grad mode": (with_grad_mode_left_off, "settings"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_harness_notices_a_wrong(mistake):
    wrapper, where = MISTAKES[mistake]
    assert harness.check(SUBJECT, harness.Plain()) is None
    assert where in harness.check(SUBJECT, Spoiled(wrapper))


def test_the_harness_notices_a_second_compilation():
    class Forgetful(harness.Plain):
        compiled = 0

        def compile(self, function):
            def run(*args):
                self.compiled += 1
                return function(*args)

            return run

        def compilations(self):
            return self.compiled

    assert "second call: compiled 1 graphs again" == harness.check(SUBJECT, Forgetful())


def test_a_case_is_declared_once():
    name, case = next(iter(CASES.items()))
    from capture.cases import case as declare

    with pytest.raises(ValueError, match="declared twice"):
        declare(*case.makers)(case.function)
    assert CASES[name] is case
