"""Tests of installed packages, and CPython's own, each inside of a captured frame: `python -m capture.suites test.test_list sympy.core --help`.

Nobody here chose these programs. Test methods and functions are called from a frame with a tensor, so that all they do is evaluated by the capture,
inlined, guarded and broken at as any user's code is. A test that passes in plain Python has to pass there, twice, with the frame's own result right
both times. `test` means CPython's tests of the language and of the library that is written in it (`LANGUAGE`); other names are packages or modules
whose tests are found as pytest and unittest find them: classes of `unittest.TestCase`, and functions `test_…` that ask for no fixtures. A test
that fails beside others is asked once more in a process of its own. A caught panic of Pyrite's is a failure, too. The exit code is 1 when one differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import importlib
import inspect
import io
import itertools
import logging
import multiprocessing
import os
import pkgutil
import re
import sys
import tempfile
import time
import traceback
import unittest
import warnings

import cpu  # noqa: F401  (before torch)

import torch

import pyrite
from capture import isolation

# CPython's tests of what a program is made of. The others need processes, networks, files or screens, or test the interpreter's inside.
LANGUAGE = """
__all__ abc abstract_numbers annotations array asyncgen augassign baseexception base64 binascii binop bisect bool bufio builtin bytes call calendar charmapcodec class
cmath code codeop collections colorsys compare complex configparser contains context contextlib contextlib_async copy copyreg coroutines csv dataclasses
datetime decimal decorators defaultdict deque descr descrtut dict dictcomps dictviews difflib dynamic dynamicclassattribute enum enumerate except_star
exception_group exception_hierarchy exception_variations exceptions extcall fileinput float fnmatch format fractions frame fstring funcattrs
functools generator_stop generators genericalias genericclass genericpath genexps getopt global grammar graphlib hash heapq hmac html htmlparser
index int int_literal inspect ipaddress isinstance iter iterlen itertools json keyword keywordonlyarg lambda linecache list listcomps locale long longexp math
metaclass mimetypes module named_expressions netrc nturl2path numeric_tower opcodes operator optparse ordered_dict patma peepholer picklecommon pickle
pkgutil pow pprint print property pstats queue quopri raise random range re reprlib richcmp rlcompleter robotparser sched scope secrets set setcomps
shelve shlex slice sort statistics str strftime string string_literals stringprep structseq strptime strtod struct subclassinit sundry super superreload syntax
textwrap threading_local time timeit tokenize traceback tuple type_annotations type_cache type_comments types typechecks typing
ucn unary unicode unicodedata unpack unpack_ex unparse urlparse userdict userlist userstring uu uuid warnings weakref weakset with wsgiref xml_etree yield_from
zipapp keywordonlyarg positional_only_arg tstring type_params type_aliases monomorphic finalization eq ne memoryview bigmem univnewlines
""".split()

# What these ask for is of the interpreter's inside: frames on the stack, line numbers of code objects, memory, counts of references, other interpreters
# or processes, time.
OUTSIDE = re.compile(
    r"getrefcount|sys\._getframe|gc\.|tracemalloc|settrace|setprofile|support\.gc_collect|gc_collect|assert_python_ok|assert_python_failure|run_in_subinterp|subprocess"
    r"|_testcapi|_testinternalcapi|check_sizeof|sys\.getsizeof|bigmemtest|threading\.|socket|dis\.|recursion|f_locals|f_back|currentframe|inspect\.stack|\.stack\("
)


class Found:
    """A test: its name, and what makes a callable of it, with a context around the call."""

    def __init__(self, name, made):
        self.name, self.made = name, made


def modules_of(name):
    """The modules with tests that a name stands for."""
    if name == "test":
        known = {each.name for each in pkgutil.iter_modules(importlib.import_module("test").__path__)}
        yield from (f"test.test_{each}" for each in dict.fromkeys(LANGUAGE) if f"test_{each}" in known)
        return
    try:
        module = importlib.import_module(name)
    except Exception as error:
        print(f"{name}: cannot be imported: {error}", file=sys.stderr)
        return
    yield name
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}.", onerror=lambda _: None):
        last = each.name.rsplit(".", 1)[-1]
        if last.startswith("test_") or last.endswith("_test"):
            yield each.name


def tests_of(name):
    """The tests of a module."""
    try:
        module = importlib.import_module(name)
    except BaseException:
        # Tests that want something else installed skip themselves so.
        return
    cases = []
    for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
        cases += flat(suite)
    # A package's tests stand for themselves.
    cases = [each for each in cases if type(each).__module__ == name or name.startswith("test.")]
    for case in sorted(cases, key=lambda each: each.id()):
        method = getattr(case, case._testMethodName, None)
        if method is not None and not is_outside(method):
            yield Found(f"{name}:{type(case).__qualname__}.{case._testMethodName}", functools.partial(of_case, type(case), case._testMethodName))
    for attribute, function in sorted(vars(module).items()):
        if attribute.startswith("test") and inspect.isfunction(function) and function.__module__ == name and takes_nothing(function):
            if not is_outside(function):
                yield Found(f"{name}:{attribute}", functools.partial(of_function, function))
        if attribute.startswith("Test") and inspect.isclass(function) and not issubclass(function, unittest.TestCase) and function.__module__ == name:
            for method in sorted(each for each in dir(function) if each.startswith("test")):
                defined = getattr(function, method)
                if inspect.isfunction(defined) and takes_nothing(defined, 1) and not is_outside(defined):
                    yield Found(f"{name}:{attribute}.{method}", functools.partial(of_class, function, method))


def flat(suite):
    if isinstance(suite, unittest.TestSuite):
        return [case for each in suite for case in flat(each)]
    return [suite]


def takes_nothing(function, before=0):
    """Whether a test asks for no fixtures and has no parameters of pytest's."""
    marks = {mark.name for mark in getattr(function, "pytestmark", ())}
    return len(inspect.signature(function).parameters) == before and not marks & {"parametrize", "skip", "skipif", "xfail", "slow"}


def is_outside(function):
    try:
        return OUTSIDE.search(inspect.getsource(function)) is not None
    except (OSError, TypeError):
        return True


def of_case(cls, name, around):
    case = cls(name)
    method = getattr(case, name)

    @functools.wraps(method)
    def replaced(*args):
        return around(functools.partial(method, *args) if args else method)

    setattr(case, name, replaced)
    result = unittest.TestResult()
    if setup := getattr(sys.modules[cls.__module__], "setUpModule", None):
        setup()
    cls.setUpClass()
    case.run(result)
    cls.tearDownClass()
    cls.doClassCleanups()
    if result.skipped or result.expectedFailures:
        return "skipped"
    problems = result.errors + result.failures
    return problems[0][1] if problems else None


def of_function(function, around):
    around(function)


def of_class(cls, name, around):
    instance = cls()
    for each in ("setup_class", "setup_method", "setup"):
        if hasattr(instance, each):
            setup = getattr(instance, each)
            setup(*[None] * len(inspect.signature(setup).parameters))
    around(getattr(instance, name))


def probe(test, x):
    y = x + 1
    test()
    return y * 2


def plainly(test):
    test()


def outcome(found, around):
    """`None` if a test passes, else what is wrong, in a line."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            text = found.made(around)
    except BaseException as error:
        if type(error).__name__ in ("Skipped", "SkipTest"):
            return "skipped"
        text = "".join(traceback.format_exception(error))
    return text


def in_plain_python(found):
    return outcome(found, plainly)


def captured(found, backend):
    """What differs when a test is captured, in either of two calls."""
    compiled = pyrite.compile(probe, backend=backend)
    x = torch.arange(3.0)

    def around(test):
        have = compiled(test, x)
        if have.tolist() != [2.0, 4.0, 6.0]:
            raise AssertionError(f"the frame's own result is {have.tolist()}")

    with said_by_rust() as said:
        for call in ("first call", "second call"):
            if (text := outcome(found, around)) not in (None, "skipped"):
                return f"{call}: {text}"
    # A frame that Pyrite fails over runs plain: nothing is wrong, and it is a bug all the same.
    panic = re.search(rb"panicked at .*\n.*", said.getvalue())
    return panic and panic[0].decode()


@contextlib.contextmanager
def said_by_rust():
    """What is written to the file descriptor of standard error."""
    said = io.BytesIO()
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said.write(file.read())


def brief(text):
    """The last line of a traceback, and where it was raised."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    message = next((line for line in reversed(lines) if not line.startswith(" ")), lines[-1])
    places = [match for line in lines if (match := re.search(r'File ".*?([^/"]+)", line (\d+), in (\S+)', line))]
    place = f" ({places[-1][1]}:{places[-1][2]} {places[-1][3]})" if places else ""
    return f"{message[:400]}{place}"


def passing(tests, time_limit):
    """The tests that pass in plain Python, twice in one process."""

    def twice(found):
        return in_plain_python(found) or in_plain_python(found)

    answers = isolation.together([functools.partial(twice, each) for each in tests], time_limit)
    return [each for each, (text, death) in zip(tests, answers) if not text and not death]


def differing(tests, backend, time_limit):
    """What differs when tests are captured, by name: first all in one process, then those that differ in one of their own."""

    def asked(chosen, answers):
        for each, (text, death) in zip(chosen, answers):
            if (told := death or text) not in (None, "skipped"):
                yield each, told

    works = [functools.partial(captured, each, backend) for each in tests]
    suspects = [each for each, _ in asked(tests, isolation.together(works, time_limit))]
    alone = [isolation.in_a_fork(functools.partial(captured, each, backend), time_limit) for each in suspects]
    return {each.name: text for each, text in asked(suspects, alone)}


def check_module(name, only, backend, time_limit, full):
    os.environ["PYTHONHASHSEED"] = "0"
    isolation.prepare()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.chdir(tempfile.mkdtemp())
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        tests = [each for each in tests_of(name) if not only or re.search(only, each.name)]
    kept = passing(tests, time_limit)
    found = differing(kept, backend, 4 * time_limit)
    counts = {"passed": len(kept) - len(found), "differs": len(found), "left out": len(tests) - len(kept)}
    return counts, [f"{test}: {text if full else brief(text)}" for test, text in found.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", default=["test"], help="packages or modules with tests; test: CPython's")
    parser.add_argument("--only", help="only tests whose name matches this expression")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds for a test in plain Python; four times as many where it is captured")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="print whole tracebacks")
    given = parser.parse_args()
    begun = time.monotonic()
    names = list(dict.fromkeys(itertools.chain.from_iterable(map(modules_of, given.name))))
    total = dict.fromkeys(("passed", "differs", "left out"), 0)
    # Each module in a fresh interpreter: what one imports or changes is nothing to the next.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(given.jobs, mp_context=context, max_tasks_per_child=1) as pool:
        works = [pool.submit(check_module, name, given.only, given.backend, given.time_limit, given.full) for name in names]
        for name, work in zip(names, works):
            try:
                counts, lines = work.result()
            except Exception as error:
                counts, lines = {"differs": 1}, [f"{name}: {type(error).__name__}: {error}"]
            for kind, number in counts.items():
                total[kind] += number
            for line in lines:
                print(line, flush=True)
            print(f"{name}: {counts}", file=sys.stderr, flush=True)
    print(f"{len(names)} modules: {total['passed']} tests pass captured, {total['differs']} differ, {total['left out']} left out, {time.monotonic() - begun:.0f} s")
    return 1 if total["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
