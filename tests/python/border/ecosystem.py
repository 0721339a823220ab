"""The test suites of packages that build on torch, through Pyrite: `python -m border.ecosystem gpytorch einops --folder FOLDER --help`.

Nobody here chose these programs. A folder holds what they need: `lib`, where the packages are installed, and `src`, the source distributions that carry
their tests; `--fetch` fills it from the package index. Each test that passes plainly, twice, is run again in two ways:

- `calls`: every call that the test's file makes of the package's functions, methods and modules is made on copies of what it is given, twice in eager and
  twice compiled. Results, arguments, gradients, errors, printed text, settings and the next random number must be eager's, as `border.examples` compares
  them. The test goes on with a plain call, so that one difference does not hide the next. What two eager calls do not do alike is not asked for.
- `tests`: the test itself is called from a captured frame with a tensor, twice, and must pass as it passes plainly.

A panic that Pyrite catches, a crash and a hang are differences, too; what torch's own capture does alone, `aot_eager` shows. Each test runs in a process of
its own. The exit code is 1 when something differs.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import io
import itertools
import json
import logging
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import urllib.parse
import urllib.request
import warnings

import cpu  # noqa: F401  (before torch)

import _pytest.runner
import numpy
import pytest
import torch
import torch._dynamo  # Once, before forks.

import pyrite  # noqa: F401  (before forks)
from border import examples
from border.observe import WAYS
from capture import isolation, suites
from capture.cases import seed_everything
from capture.snapshot import difference

# Packages whose source distributions carry tests that run on a CPU without a network, and what these need beside torch.
PACKAGES = (
    "einops opt_einsum gpytorch linear_operator pyro-ppl torchsde e3nn torch-optimizer nflows zuko normflows julius pytorch-wavelets pytorch-minimize roma "
    "tensorly pytorch-ignite timm torch-struct schedulefree segmentation-models-pytorch torch-harmonics"
).split()
NEEDED = (
    "pyro-api opt_einsum_fx pytorch_ranger jaxtyping wadler-lindig scipy scikit-learn joblib threadpoolctl pandas python-dateutil pytz six tzdata PyWavelets "
    "requests urllib3 certifi charset-normalizer multipledispatch parameterized loguru torchtestcase"
).split()

# Calls of one place in a test that are judged, and seconds of a test after which none is.
TIMES, ENOUGH = 4, 20
# What is counted of a file; `not read` is a file that wants what is not installed.
COUNTED = ("tests", "left out", "not read", "calls", "differences")
# Seconds of a file.
LONGEST = 3600

# What ends the process or reaches outside of it.
OUTSIDE = re.compile(r"cuda|distributed|xla|horovod|multiprocess|onnx|jit|compile|deploy|download|pretrained|notebooks|tensorflow|jax|mlx|cupy")

# What differs whatever the compiler does, and why.
KNOWN = [
    (r"[Dd]egenerate.*not close", "vectors that belong to equal singular values or eigenvalues are open"),
    (r"log_prob: .*absolute difference: inf", "a probability that cancels out to zero is the last bit of another"),
]


def no_network(*_args, **_kwargs):
    raise OSError("tests stay on this machine")


class Package:
    """A package of the folder: the names under which it is imported, and the files with its tests."""

    def __init__(self, name, folder):
        self.name = name
        normal = re.sub(r"[-_.]+", "-", name).lower()
        installed = {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each for each in importlib.metadata.distributions(path=[str(folder / "lib")])}
        sources = [each for each in sorted((folder / "src").glob("*-*")) if re.sub(r"[-_.]+", "-", each.name.rsplit("-", 1)[0]).lower() == normal]
        self.imported, self.files = [], []
        if normal in installed:
            self.imported = sorted({each.parts[0].removesuffix(".py") for each in installed[normal].files or () if each.suffix == ".py" and ".." not in each.parts})
        for source in sources:
            self.files += [each for each in sorted(source.rglob("*.py")) if re.fullmatch(r"test_.*|.*_test", each.stem) and not OUTSIDE.search(str(each.relative_to(source)))]

    @property
    def missing(self):
        return None if self.imported and self.files else f"{self.name}: skipped, not in the folder; --fetch installs it"


def fetch(names, folder):
    """Installs packages into a folder, and takes the sources with their tests there."""
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder / "lib")]
    subprocess.run([*words, *names, *NEEDED], check=True)
    for name in names:
        index = f"https://pypi.org/pypi/{name}/json"
        with urllib.request.urlopen(index) as answer:
            found = [each for each in json.load(answer)["urls"] if each["filename"].endswith(".tar.gz")]
        for each in found:
            with urllib.request.urlopen(urllib.parse.urljoin(index, each["url"])) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as archive:
                archive.extractall(folder / "src", filter="data")


class Marked(ast.NodeTransformer):
    """Calls become calls of `__judged__` with the function as first argument."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
            return node
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("__judged__", ast.Load()), node), [node.func, *node.args], node.keywords), node)


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a file of tests with its calls marked."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return compile(ast.fix_missing_locations(Marked().visit(ast.parse(self.get_data(path)))), path, "exec", dont_inherit=True)

    def exec_module(self, module):
        module.__judged__ = JUDGE
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, file):
        self.file = str(file)

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin == self.file:
            spec.loader = Loader(name, self.file)
            return spec
        return None


class Judge:
    """Makes the calls of a package's functions compiled, too, once a way is chosen, and keeps in what they differ."""

    def __init__(self):
        self.begin(None, ())

    def begin(self, way, packages):
        """`way` compiles a function; without one calls are as they were."""
        self.way, self.packages = way, packages
        self.found, self.compared = [], 0
        self.seen, self.compiled = {}, {}
        self.is_busy, self.begun = False, time.monotonic()

    def __call__(self, function, /, *args, **kwargs):
        if self.way and not self.is_busy and (home := self.home(function)):
            frame = sys._getframe(1)
            place = frame.f_code.co_name, frame.f_lineno, home
            self.seen[place] = self.seen.get(place, 0) + 1
            if self.seen[place] <= TIMES and time.monotonic() - self.begun < ENOUGH:
                self.is_busy = True
                try:
                    with kept_random():
                        text = self.judged(home, function, args, kwargs)
                finally:
                    self.is_busy = False
                if text:
                    self.found.append(f"line {frame.f_lineno}, call {self.seen[place]} of {getattr(home, '__qualname__', home)}: {text}")
        return function(*args, **kwargs)

    def home(self, function):
        """The function or class of the package that is called, if it is one."""
        if isinstance(function, (types.MethodType, types.FunctionType)):
            found = getattr(function, "__func__", function)
        elif isinstance(function, (type, types.BuiltinFunctionType, types.BuiltinMethodType)):
            return None
        else:
            found = type(function)
        return found if (getattr(found, "__module__", None) or "").split(".")[0] in self.packages else None

    def judged(self, home, function, args, kwargs):
        given = function, args, kwargs
        try:
            seen = []
            for byte in examples.FILLED:
                examples.filled(byte)
                seen.append(run(entry, examples.duplicate(given))[0])
        except Exception:
            # It cannot be copied, or says nothing that can be compared.
            return None
        finally:
            examples.filled(0)
        if difference(seen[0], seen[1]):
            return None
        # A frame of its own for each function.
        if home not in self.compiled:
            self.compiled[home] = self.way(types.FunctionType(entry.__code__.replace(), globals(), "entry"))
        for call in ("", "again: "):
            have, raised = run(self.compiled[home], examples.duplicate(given))
            self.compared += 1
            if text := examples.parting(seen[0], have, raised, self.by_torch):
                others = examples.noisy(lambda noise: run(entry, examples.duplicate(given, noise))[0])
                if "not close" in text and examples.parting(seen[0], examples.within_noise(seen[0], have, others), raised, self.by_torch) is None:
                    continue
                return call + text
        return None


JUDGE = Judge()


def entry(function, args, kwargs):
    return function(*args, **kwargs)


def run(function, arguments):
    seed_everything(0)
    return examples.observed(function, arguments)


@contextlib.contextmanager
def kept_random():
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        numpy.random.set_state(states[2])


class Runs:
    """A plugin of pytest's that runs each test in processes of its own, plainly and compiled."""

    def __init__(self, packages, ways, kinds, only, instances, time_limit, explain, say):
        self.packages, self.ways, self.kinds, self.only, self.instances = packages, ways, kinds, only, instances
        self.time_limit, self.explain, self.say = time_limit, explain, say
        self.counts = dict.fromkeys(COUNTED, 0)

    def pytest_collection_modifyitems(self, items):
        chosen = [each for each in items if not self.only or re.search(self.only, each.nodeid)]
        # The first of each test's parameters are often the simplest: taken evenly.
        families = {}
        for each in chosen:
            families.setdefault(each.nodeid.split("[")[0], []).append(each)
        items[:] = [each for family in families.values() for each in family[:: -(-len(family) // self.instances)]]

    def pytest_collectreport(self, report):
        if report.failed:
            self.counts["not read"] += 1
            if self.explain:
                self.say(f"{report.nodeid}: not read: {suites.brief(str(report.longrepr))}")

    def pytest_runtest_protocol(self, item, nextitem):
        # Those that run whole run twice.
        text, death = isolation.in_a_fork(lambda: outcome(item, None) or ("tests" in self.kinds and outcome(item, None)), self.time_limit)
        if text or death:
            self.counts["left out"] += 1
            if self.explain:
                self.say(f"{item.nodeid}: left out: {death or suites.brief(text)}")
            return True
        self.counts["tests"] += 1
        for way, kind in itertools.product(self.ways, self.kinds):
            ours, others = WAYS[way]
            (count, texts), death = self.asked(item, kind, ours, others is not None)
            if (texts or death) and others is not None:
                (_, told), died = self.asked(item, kind, others, True)
                known = {stem(each) for each in told}
                texts = [] if died else [each for each in texts if stem(each) not in known]
                death = None if died else death
            self.counts["calls"] += count
            for each in [*texts, *([death] if death else [])]:
                if not any(re.search(known, each) for known, _ in KNOWN):
                    self.counts["differences"] += 1
                    self.say(f"{item.nodeid}, {way}, {kind}: {each}")
        return True

    def asked(self, item, kind, way, by_torch):
        work = functools.partial(calls if kind == "calls" else whole, item, way, by_torch, self.packages)
        answer, death = isolation.in_a_fork(work, 4 * self.time_limit)
        return answer or (0, []), death


def stem(text):
    return text.split(":")[0]


def outcome(item, around):
    """What is wrong with a run of a test, or `None`; `around` calls its function."""
    if hasattr(item, "_initrequest"):
        item._initrequest()
    item.config.pluginmanager.register(around_call := Around(around))
    try:
        reports = _pytest.runner.runtestprotocol(item, log=False, nextitem=None)
    finally:
        item.config.pluginmanager.unregister(around_call)
    wrong = [each for each in reports if not each.passed or getattr(each, "wasxfail", None) is not None]
    return str(wrong[0].longrepr or wrong[0].outcome) if wrong else None


class Around:
    """A plugin that has a test's function called by another."""

    def __init__(self, around):
        self.around = around

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        if self.around is not None:
            plain = item.obj
            item.obj = functools.wraps(plain)(lambda *args, **kwargs: self.around(functools.partial(plain, *args, **kwargs)))
        return (yield)


def calls(item, way, by_torch, packages):
    """How many calls of a test were compared, and what differs."""
    JUDGE.begin(way, packages)
    JUDGE.by_torch = by_torch
    with suites.said_by_rust() as said:
        outcome(item, None)
    return JUDGE.compared, JUDGE.found + panics(said)


def whole(item, way, _by_torch, _packages):
    """What is wrong with a test that is called from a captured frame."""
    compiled = way(suites.probe)
    x = torch.arange(3.0)

    def around(test):
        have = compiled(test, x)
        if have.tolist() != [2.0, 4.0, 6.0]:
            raise AssertionError(f"the frame's own result is {have.tolist()}")

    with suites.said_by_rust() as said:
        texts = [f"{call}: {suites.brief(text)}" for call in ("first call", "second call") if (text := outcome(item, around))]
    return 0, texts[:1] + panics(said)


def panics(said):
    panic = re.search(rb"panicked at .*\n.*", said.getvalue())
    return [panic[0].decode()] if panic else []


def check_file(file, folder, packages, ways, kinds, only, instances, time_limit, explain):
    """What the tests of a file count; what differs is printed."""
    sys.dont_write_bytecode = True
    source = next(each for each in file.parents if each.parent == folder / "src")
    sys.path[:0] = [str(source), str(file.parent)]
    sys.path.append(str(folder / "lib"))
    sys.meta_path.insert(0, Finder(file))
    socket.socket.connect = no_network
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    shown = os.fdopen(os.dup(1), "w")
    runs = Runs(packages, ways, kinds, only, instances, time_limit, explain, lambda line: print(line, file=shown, flush=True))
    words = ["-s", "-q", "-c", os.devnull, "--rootdir", str(file.parent), "--assert=plain", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", str(file)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        pytest.main(words, plugins=[runs])
    return runs.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="*", default=PACKAGES, help="names of packages, as the index knows them")
    parser.add_argument("--folder", type=pathlib.Path, default=os.environ.get("PYRITE_ECOSYSTEM", "ecosystem"), help="where packages and their sources are; default: $PYRITE_ECOSYSTEM")
    parser.add_argument("--fetch", action="store_true", help="install the packages and take their sources first")
    parser.add_argument("--only", help="only tests whose name matches this expression")
    parser.add_argument("--instances", type=int, default=4, help="so many of a test with parameters")
    parser.add_argument("--files", help="only files whose path matches this expression")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this entry point; may be given again")
    parser.add_argument("--kind", action="append", choices=("calls", "tests"), help="only these runs")
    parser.add_argument("--part", default="1/1", help="only one part of the files, such as 2/4")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for a test in plain Python; four times as many where it is compiled")
    parser.add_argument("--explain", action="store_true", help="say why tests are left out")
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.fetch:
        fetch(given.package, folder)
    part, parts = map(int, given.part.split("/"))
    begun, works = time.monotonic(), []
    for package in (Package(name, folder) for name in given.package):
        if package.missing:
            print(package.missing)
        works += [(package, file) for file in package.files if package.imported and (not given.files or re.search(given.files, str(file)))]
    works = works[part - 1 :: parts]
    total = dict.fromkeys(COUNTED, 0)
    isolation.prepare()
    chosen = given.way or ["pyrite", "torch"], given.kind or ["calls", "tests"], given.only, given.instances, given.time_limit, given.explain
    for package, file in works:
        # What one file imports or changes is nothing to the next.
        answer, death = isolation.in_a_fork(functools.partial(check_file, file, folder, package.imported, *chosen), LONGEST)
        counts = answer or {"differences": 1}
        for kind, number in counts.items():
            total[kind] += number
        told = {kind: number for kind, number in counts.items() if number}
        print(f"{package.name} {file.name}: {death or told}", file=sys.stderr, flush=True)
    print(
        f"{len(works)} files, {total['not read']} of them not read, {total['tests']} tests that pass plainly, {total['left out']} left out: {total['calls']} calls compared, "
        f"{total['differences']} differences, {time.monotonic() - begun:.0f} s"
    )
    return 1 if total["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
