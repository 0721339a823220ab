"""Proof means that plain PyTorch agrees: `python repro.py` ends as announced, and nothing else is ever proven."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class Session:
    """A folder in which a program is minified."""

    def __init__(self, folder):
        self.folder = folder

    def minify(self, program, *arguments, python=sys.executable, imports=(), environment=(), prefix="", json_out=True, runs=1):
        (self.folder / "program.py").write_text(program)
        words = [os.environ["PYRITE_BIN"], "minify", "program.py", "--out", "found", "--python", python, "--jobs", "1", "--runs", str(runs)]
        words += ["--json"] if json_out else []
        for module in imports:
            words += ["--import", module]
        words += arguments
        if prefix:
            words = ["sh", "-c", f'{prefix}; exec "$@"', "sh", *words]
        # Pyrite and its workers run as a user would start them.
        environment = {**os.environ, "PYTHONPATH": str(HERE), **dict(environment)}
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=900)
        try:
            return done.returncode, json.loads(done.stdout), done.stderr
        except json.JSONDecodeError:
            return done.returncode, {}, done.stdout + done.stderr

    def plain(self, backend=None):
        """Runs the written file with plain Python; with another backend put in where one is given."""
        repro = self.folder / "found" / "repro.py"
        text = repro.read_text()
        if backend:
            import re

            repro = repro.with_name("changed.py")
            text, count = re.subn(r"torch\.compile\(mod, backend='[^']*'\)", f"torch.compile(mod, backend='{backend}')", text)
            assert count == 1, text
            repro.write_text(text)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYRITE")}
        environment |= {"PYTHONPATH": str(HERE), "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "cache")}
        done = subprocess.run([sys.executable, repro], env=environment, capture_output=True, text=True, errors="replace", timeout=600)
        assert not any("pyrite" in line for line in text.splitlines() if line.strip().startswith(("import", "from"))), text
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def forward(parameters, *lines):
    return f"class Repro(torch.nn.Module):\n    def forward(self, {parameters}):\n" + "".join(f"        {line}\n" for line in lines)


GRAD = "\ndef load_args(reader):\n    buf0 = reader.storage(None, 48)\n    reader.tensor(buf0, (3, 4), requires_grad=True, is_leaf=True)\nload_args._version = 0\n"

RELU = ("a = torch.sin(x)", "b = torch.relu(a)", "c = b * 2", "return (c,)")

# The gradients of two poolings: of different elements and of equal ones.
POOL_GRADIENT = forward(
    "x",
    "d = torch.ops.aten.detach.default(x)",
    "z = torch.ops.aten.sub.Tensor(x, d)",
    "p = torch.ops.aten.max_pool2d.default(x, [2, 2])",
    "q = torch.ops.aten.max_pool2d.default(z, [2, 2])",
    "return (p, q)",
) + GRAD.replace("48", "64").replace("(3, 4)", "(1, 1, 4, 4)")

WRONG = {
    "value": (forward('x : "f32[3, 4]"', *RELU), "value"),
    "shape": (forward('x : "f32[3, 4]"', *RELU), "shape"),
    "dtype": (forward('x : "f32[3, 4]"', *RELU), "dtype"),
    "stride": (forward('x : "f32[3, 4]"', *RELU), "stride"),
    "structure": (forward('x : "f32[3, 4]"', *RELU), "structure"),
    "alias": (forward('x : "f32[3, 4]"', "a = torch.ops.aten.t.default(x)", "return (a,)"), "aliasing"),
    "mutation": (forward('x : "f32[3, 4]"', "a = torch.ops.aten.relu_.default(x)", "b = a * 2", "return (b,)"), "mutation"),
    "gradient": (forward("x", *RELU) + GRAD, "value"),
    "pool_gradient": (POOL_GRADIENT, "value"),
}


@pytest.mark.parametrize("part", WRONG if os.environ.get("PYRITE_PROOFS") else ["value", "stride", "alias", "mutation", "gradient", "pool_gradient"])
def test_a_backend_that_is_wrong_in_one_part_of_the_contract_is_proven_by_plain_python(session, part):
    program, class_ = WRONG[part]
    code, report, said = session.minify(program, "--backend", f"torch:wrong_{part}", imports=["contract_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    assert report["signature"]["class"] == class_, report
    assert report["line"].startswith("bug: "), report
    code, out, error = session.plain()
    assert code == 1 and report["line"] in out, (out, error)
    code, out, error = session.plain("eager")
    assert code == 0 and "no bug" in out, (out, error)


FREE = {
    "topk": forward('x : "f32[4]"', "z = x * 0", "t = torch.ops.aten.topk.default(z, 2)", "v = t[0]", "i = t[1]", "return (v, i)"),
    "topk_unsorted": forward('x : "f32[6]"', "t = torch.ops.aten.topk.default(x, 3, -1, True, False)", "v = t[0]", "i = t[1]", "return (v, i)"),
    "eigh_equal": forward(
        'x : "f32[3, 3]"',
        "z = x * 0",
        "e = torch.ops.aten.eye.default(3)",
        "s = z + e",
        "t = torch.ops.aten._linalg_eigh.default(s)",
        "v = t[0]",
        "q = t[1]",
        "return (v, q)",
    ),
    "sort": forward('x : "f32[4]"', "z = x * 0", "t = torch.ops.aten.sort.default(z)", "v = t[0]", "i = t[1]", "return (v, i)"),
    "eigh": forward('x : "f32[3, 3]"', "s = x + x.mT", "t = torch.ops.aten._linalg_eigh.default(s)", "v = t[0]", "q = t[1]", "return (v, q)"),
    "svd": forward('x : "f32[3, 4]"', "t = torch.ops.aten._linalg_svd.default(x)", "u = t[0]", "s = t[1]", "v = t[2]", "return (u, s, v)"),
    "qr": forward('x : "f32[3, 3]"', "t = torch.ops.aten.linalg_qr.default(x)", "q = t[0]", "r = t[1]", "return (q, r)"),
    "angle": forward('x : "f32[4]"', "n = x * 0 - 1", "a = torch.ops.aten.angle.default(n)", "return (a,)"),
    "atan2": forward('x : "f32[4]"', "z = x * 0", "n = z - 1", "a = torch.ops.aten.atan2.default(z, n)", "return (a,)"),
    "order": forward(
        'x : "f32[4]", i : "i64[3]", y : "f32[3]"', "r = torch.ops.aten.index_put.default(x, [i], y)", "return (r,)"
    ),
    "scatter": forward('x : "f32[4]", i : "i64[3]", y : "f32[3]"', "r = torch.ops.aten.scatter.src(x, 0, i, y)", "return (r,)"),
    "random": forward('x : "f32[4]"', "r = torch.ops.aten.rand_like.default(x)", "s = r + x", "return (s,)"),
    "dropout": forward('x : "f32[64]"', "t = torch.ops.aten.native_dropout.default(x, 0.5, True)", "a = t[0]", "return (a,)"),
    "threads": forward('x : "f32[4]"', "a = torch.relu(x)", "return (a,)"),
    "pool": forward('x : "f32[1, 1, 4, 4]"', "z = x * 0", "t = torch.ops.aten.max_pool2d_with_indices.default(z, [2, 2])", "v = t[0]", "i = t[1]", "return (v, i)"),
    "cummax": forward('x : "bf16[6]"', "z = x * 0", "t = torch.ops.aten.cummax.default(z, 0)", "v = t[0]", "i = t[1]", "return (v, i)"),
    "pool_gradient": POOL_GRADIENT,
}


@pytest.mark.parametrize("freedom", FREE if os.environ.get("PYRITE_PROOFS") else ["topk", "topk_unsorted", "eigh", "eigh_equal", "order", "random", "threads", "pool", "pool_gradient"])
def test_a_backend_that_differs_by_what_operators_leave_open_is_not_proven(session, freedom):
    code, report, said = session.minify(FREE[freedom], "--backend", f"torch:free_{freedom}", imports=["contract_backends"])
    assert code == 1 and not report.get("proven") and report["verdict"] in ("pass", "noise"), (report, said)


@pytest.mark.parametrize(("bug", "kind"), [("bare_assert", "AssertionError"), ("mute", "Mute"), ("no_text", "RuntimeError"), ("unfinished", "ValueError")])
def test_an_error_is_proven_whatever_is_said_with_it(session, bug, kind):
    """Nothing, nothing that can be asked for, what is no text, or something on a line that others began."""
    program = forward('x : "f32[3, 4]"', *RELU)
    code, report, said = session.minify(program, "--backend", f"torch:{bug}", imports=["broken_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    assert report["line"].startswith(f"bug: forward: error {kind} at {bug} in broken_backends.py"), report
    assert session.plain()[0] == 1
    assert session.plain("eager")[0] == 0


def test_a_backend_that_ends_its_own_processes_does_not_hang(session):
    """Signals that Pyrite waits for itself reach the processes that it starts."""
    code, report, said = session.minify(PASS, "--backend", "torch:pool", "--time-limit", "20", imports=["broken_backends"])
    assert (code, report["verdict"]) == (1, "pass"), (report, said)


@pytest.mark.parametrize(
    ("bug", "class_", "code"), [("segfault", {"signal": 11}, -11), ("silent_exit", {"exit": 0}, 1), ("terminated", {"signal": 15}, -15)]
)
def test_a_crash_ends_the_plain_file_as_announced(session, bug, class_, code):
    program = forward('x : "f32[3, 4]"', *RELU)
    done, report, said = session.minify(program, "--backend", f"torch:{bug}", imports=["broken_backends"])
    assert (done, report["proven"], report["signature"]["class"]) == (0, True, class_), (report, said)
    assert session.plain()[0] == code
    assert session.plain("eager")[0] == 0


@pytest.mark.serial
def test_a_hang_ends_the_plain_file_by_its_own_limit(session):
    program = forward('x : "f32[1]"', "y = torch.relu(x)", "return (y,)")
    limits = ["--time-limit", "5", "--time-budget", "1"]
    code, report, said = session.minify(program, "--backend", "torch:hang", *limits, imports=["broken_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    code, out, _ = session.plain()
    assert code == 1 and "bug: forward: hang" in out


def test_an_abort_where_eager_raises_is_reached(session):
    program = forward(
        'x : "f32[4]"',
        "far = torch.ops.aten.full.default([1], 99, dtype=torch.int64)",
        "a = torch.relu(x)",
        "b = torch.ops.aten.index_select.default(a, 0, far)",
        "return (b,)",
    )
    code, report, said = session.minify(program, "--backend", "torch:abort", imports=["broken_backends"])
    assert (code, report["proven"], report["signature"]["class"]) == (0, True, {"signal": 6}), (report, said)
    assert session.plain()[0] == -6
    code, out, _ = session.plain("eager")
    assert code == 0 and "IndexError" in out or "no bug" in out


# Programs that eager refuses and a lenient backend does not, and whether that counts: a value that nobody uses may be left out, what eager
# lacks a kernel for is no mistake of a program, and whether a matrix is singular is a matter of rounding.
MISSING = {
    "index": ('x : "f32[4]"', True, "far = torch.ops.aten.full.default([1], 99, dtype=torch.int64)", "b = torch.ops.aten.index_select.default(a, 0, far)"),
    "target": ('x : "f32[4]"', True, "t = torch.ops.aten.add.Tensor(x, 99.0)", "i = torch.ops.aten.sigmoid.default(a)", "b = torch.ops.aten.binary_cross_entropy.default(i, t)"),
    "factor": ('x : "f32[4, 4]"', False, "n = torch.ops.aten.sub.Tensor(a, 9.0)", "b = torch.ops.aten.linalg_cholesky.default(n)"),
    "negative": (
        'x : "f32[4]"',
        True,
        "last = torch.ops.aten.full.default([1], -1, dtype=torch.int64)",
        "one = torch.ops.aten.ones.default([1])",
        "b = torch.ops.aten.index_add.default(a, 0, last, one)",
    ),
    "unused": (
        'x : "f32[4]"',
        False,
        "far = torch.ops.aten.full.default([1], 99, dtype=torch.int64)",
        "c = torch.ops.aten.index_select.default(a, 0, far)",
        "b = torch.ops.aten.cos.default(a)",
    ),
    "kernel": ('x : "b8[4]"', False, "b = torch.ops.aten.cumprod.default(a, 0, dtype=torch.bool)"),
}


@pytest.mark.parametrize("error", MISSING if os.environ.get("PYRITE_PROOFS") else ["negative", "unused"])
def test_a_result_where_eager_raises_is_a_missing_error(session, error):
    parameters, counts, *lines = MISSING[error]
    program = forward(parameters, "a = torch.ops.aten.clone.default(x)", *lines, "d = torch.ops.aten.sin.default(b)", "return (d,)")
    code, report, said = session.minify(program, "--backend", "torch:lenient", "--forward-only", imports=["contract_backends"])
    if not counts:
        assert code == 1 and not report.get("proven"), (report, said)
        return
    assert (code, report["proven"], report["signature"]["class"]) == (0, True, "missing-error"), (report, said)
    code, out, error = session.plain()
    assert code == 1 and report["line"] in out and "missing error" in out, (out, error)
    code, out, error = session.plain("eager")
    assert code == 0 and "no bug" in out, (out, error)


def test_a_misspelt_backend_is_a_mistake_of_usage(session):
    program = forward('x : "f32[4]"', "a = torch.relu(x)", "return (a,)")
    code, report, said = session.minify(program, "--backend", "torch:inductr")
    text = json.dumps(report) + said
    assert code == 2 and "did you mean `torch:inductor`" in text and not report.get("proven"), text


PASS = forward('x : "f32[4]"', "a = torch.relu(x)", "return (a,)")

READY = 'echo "{\\"ready\\": \\"9\\"}"; read line'

# Interpreters that are none, and answers that are none.
PYTHONS = [
    "exit 0",
    "exit 1",
    "exit 127",
    "kill -SEGV $$",
    "kill -KILL $$",
    "echo what",
    "echo '{\"ready\": 1'; exit 0",
    f"{READY}; exit 0",
    f"{READY}; exit 1",
    f"{READY}; kill -SEGV $$",
    f"{READY}; kill -ABRT $$",
    f"{READY}; echo garbage",
    f"{READY}; echo null",
    f"{READY}; echo '[]'",
    f"{READY}; echo '{{}}'",
    f"{READY}; echo '{{\"ok\": false}}'",
    f"{READY}; echo '{{\"ok\": true}}'",
    f"{READY}; echo '{{\"worker\": \"no room\"}}'",
    f"{READY}; f=$(echo \"$line\" | sed 's/.*\"folder\":\"\\([^\"]*\\)\".*/\\1/'); : > $f/results; echo '{{\"ok\": true}}'",
    f"{READY}; f=$(echo \"$line\" | sed 's/.*\"folder\":\"\\([^\"]*\\)\".*/\\1/'); echo '{{}}' > $f/results; echo '{{\"ok\": true}}'",
]


def test_no_fault_of_an_interpreter_is_proven(session):
    for number, body in enumerate(PYTHONS):
        python = session.folder / f"python{number}"
        python.write_text(f"#!/bin/sh\n{body}\n")
        python.chmod(0o755)
        code, report, said = session.minify(PASS, "--backend", "torch:aot_eager", python=str(python))
        assert code in (1, 2) and not report.get("proven"), (body, report, said)
        assert report.get("verdict") in (None, "invalid"), (body, report, said)


# What is wrong around a program: modules, settings, memory, the disk, the start of Python.
AROUND = {
    "missing module": {"imports": ["no_such_module"]},
    "module that raises": {"imports": ["raises"]},
    "module that exits": {"imports": ["exits"]},
    "module that dies": {"imports": ["dies"]},
    "unknown setting": {"arguments": ["--backend", "torch:inductor?no_such_setting=1"]},
    "no memory": {"arguments": ["--memory-limit", "1"]},
    "no disk": {"prefix": "trap '' XFSZ; ulimit -f 0"},
    "no fork": {"files": {"sitecustomize.py": "import os\ndef fork():\n    raise OSError('no more processes')\nos.fork = fork\n"}},
    "dying fork": {"files": {"sitecustomize.py": "import os\nos.register_at_fork(after_in_child=lambda: os._exit(7))\n"}},
    "broken torch": {"files": {"torch.py": "raise ImportError('half an installation')\n"}},
}


@pytest.mark.parametrize("fault", AROUND if os.environ.get("PYRITE_PROOFS") else ["module that raises", "no memory", "broken torch", "dying fork"])
def test_no_fault_around_a_program_is_proven(session, fault):
    case = AROUND[fault]
    modules = session.folder / "modules"
    modules.mkdir()
    files = {"raises.py": "raise RuntimeError('not today')\n", "exits.py": "raise SystemExit(1)\n", "dies.py": "import os\nos.abort()\n"}
    for name, text in {**files, **case.get("files", {})}.items():
        (modules / name).write_text(text)
    arguments = case.get("arguments", [])
    backend = [] if "--backend" in arguments else ["--backend", "torch:aot_eager"]
    code, report, said = session.minify(
        PASS,
        *backend,
        *arguments,
        imports=case.get("imports", ()),
        environment={"PYTHONPATH": str(modules)},
        prefix=case.get("prefix", ""),
    )
    assert code in (1, 2) and not report.get("proven") and report.get("verdict") in (None, "invalid"), (report, said)


def test_a_process_with_threads_does_not_fork(session):
    modules = session.folder / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n")
    program = forward('x : "f32[3, 4]"', *RELU)
    paths = os.pathsep.join([str(modules), str(HERE)])
    code, report, said = session.minify(
        program, "--backend", "torch:wrong_value", imports=["contract_backends"], environment={"PYTHONPATH": paths}
    )
    assert (code, report["proven"]) == (0, True), (report, said)


CUDA = """
import os

def spoil():
    import torch

    def bad(*_arguments, **_keywords):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use 'spawn'")

    torch.set_grad_enabled = bad

os.register_at_fork(after_in_child=spoil)
"""


def test_a_fork_that_cannot_use_cuda_is_asked_again_in_a_fresh_process(session):
    modules = session.folder / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(CUDA)
    code, report, said = session.minify(PASS, "--backend", "torch:aot_eager", environment={"PYTHONPATH": str(modules)})
    assert (code, report["verdict"]) == (1, "pass"), (report, said)


def test_two_errors_of_one_function_are_told_apart(session):
    program = forward('x : "f32[3, 4]"', "a = torch.relu(x)", "b = torch.cos(a)", "return (b,)")
    code, report, said = session.minify(program, "--backend", "torch:two_errors", imports=["broken_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    assert "relu" in report["line"] and "aten.relu" in (session.folder / "found" / "repro.py").read_text(), report


def test_storages_of_equal_bytes_stay_apart(session):
    """Parameters of a normalisation are ones and zeros of the same size, often; a file in which they alias is another program."""
    loading = (
        "\ndef load_args(reader):\n"
        + "".join(f"    buf{k} = reader.storage(None, 800, dtype_hint=torch.int64)\n    reader.tensor(buf{k}, (100,), dtype=torch.int64)\n" for k in range(2))
        + "load_args._version = 0\n"
    )
    program = forward("x, y", "a = torch.ops.aten.add_.Tensor(x, 1)", "b = y.float()", "c = torch.relu(b)", "return (a, c)") + loading
    code, report, said = session.minify(program, "--backend", "torch:needs_all", "--time-budget", "0.01", imports=["broken_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    code, out, error = session.plain("eager")
    assert code == 0, (out, error)


ENDS = {"wrong": 1, "error": 1, "crash": -11, "hang": 1}
SMALL = {
    "relu": "b = torch.relu(a)",
    "cos": "b = torch.cos(a)",
    "sum": "b = a.sum(-1)",
    "mm": "b = torch.ops.aten.mm.default(a, a)",
    "sigmoid": "b = torch.sigmoid(a)",
}
MODELS = {"gelu": "mlp", "layer_norm": "mlp", "convolution": "resnet18", "embedding": "bert", "tanh": "gpt2"}
PLANTED = [(kind, operator) for kind in ENDS for operator in [*SMALL, *MODELS]]
SAMPLE = [("wrong", "sum"), ("error", "mm"), ("crash", "sigmoid")]


@pytest.mark.parametrize(("kind", "operator"), PLANTED if os.environ.get("PYRITE_PROOFS") else SAMPLE)
def test_a_planted_bug_ends_the_plain_file_as_announced(session, kind, operator):
    storages = []
    if operator in SMALL:
        program = forward('x : "f32[4, 4]"', "a = torch.sin(x)", SMALL[operator], "c = b * 2", "d = torch.tanh(c)", "return (d,)")
    else:
        from models import dump_models

        folder = dump_models.dumps() / MODELS[operator]
        program = (folder / "aot_forward_repro.py").read_text()
        storages = ["--storages", str(folder / "storages")]
    limits = ["--time-limit", "30", "--time-budget", "60"] if kind == "hang" else []
    backend = ["--backend", f"torch:planted_{kind}_{operator}", "--forward-only"]
    code, report, said = session.minify(program, *backend, *limits, *storages, imports=["contract_backends"])
    assert (code, report["proven"]) == (0, True), (report, said)
    if kind != "hang":
        # Nothing can be taken away from the operator alone, with an element for each of its inputs.
        calls = report["nodes_after"] - report["inputs_after"] - 1
        picked = "getitem" in (session.folder / "found" / "repro.py").read_text()
        assert calls <= 1 + picked and report["elements_after"] <= max(report["inputs_after"], 1), report
    code, out, error = session.plain()
    assert code == ENDS[kind] and (code < 0 or report["line"] in out), (out, error)
    code, out, error = session.plain("eager")
    assert code == 0, (out, error)


# Programs on which Inductor is right: nothing is proven of any.
GOOD = [
    forward('x : "f32[8, 8]"', "a = torch.relu(x)", "b = a @ x", "c = b.softmax(-1)", "return (c, a)"),
    forward('x : "bf16[32, 32]"', "a = x.exp()", "b = a.sum(-1)", "c = b.log()", "return (c,)"),
    forward('x : "i64[16]"', "a = x * 3", "b = a.cumsum(0)", "return (b,)"),
    forward('x : "f32[4, 6]"', "t = torch.ops.aten.topk.default(x, 3)", "v = t[0]", "i = t[1]", "return (v, i)"),
    forward('x : "f32[4, 6]"', "a = torch.ops.aten.native_dropout.default(x, 0.5, True)", "b = a[0]", "c = b.sum()", "return (c,)"),
]


@pytest.mark.parametrize("number", range(len(GOOD)) if os.environ.get("PYRITE_PROOFS") else [4])
def test_nothing_is_proven_of_inductor_where_it_is_right(session, number):
    code, report, said = session.minify(GOOD[number], "--backend", "torch:inductor")
    assert code == 1 and report["verdict"] in ("pass", "noise"), (report, said)
