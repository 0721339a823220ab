"""What Pyrite's debugger must show on a machine with a GPU: `python bars.py --pyrite BINARY --out FOLDER [NAME…]`.

Each scenario makes its own program, runs the command as a user would, and says what came of it; a line of JSON each, and all of them in
FOLDER/bars.json. The exit code is 1 where a scenario does not show what it must. Without a GPU it says so and ends with 0.
"""

import argparse
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SCENARIOS = {}

SMALL = """
class Repro(torch.nn.Module):
    def forward(self, x : "f32[32, 64]DEVICE", w : "f32[64, 64]DEVICE"):
        a = torch.sin(x)
        b = a @ w
        c = torch.relu(b)
        d = torch.cos(c)
        e = d.sum(-1)
        return (e, a)
"""


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Place:
    """Where a scenario works, and the command under test."""

    def __init__(self, folder, pyrite):
        self.folder, self.pyrite = folder, pyrite
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def environment(self, **more):
        path = os.pathsep.join([str(HERE), str(HERE.parent / "debugger")])
        return {**os.environ, "PYTHONPATH": path, **more}

    def write(self, name, text, device="[64, 1]cuda:0"):
        (self.folder / name).write_text(text.replace("DEVICE", device))
        return name

    def run(self, *words, timeout=280, **environment):
        """Runs the command; its exit code, its JSON lines, what it said, and how long it took."""
        begun = time.monotonic()
        command = [str(self.pyrite), *words, "--python", sys.executable]
        try:
            done = subprocess.run(command, cwd=self.folder, env=self.environment(**environment), capture_output=True, text=True, timeout=timeout)
            code, out, said = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            code, out, said = None, (error.stdout or b"").decode(), (error.stderr or b"").decode()
        (self.folder / "log").write_text(f"{command}\n{out}\n{said}\n")
        return code, out, said, round(time.monotonic() - begun, 1)

    def minify(self, program, backend, *words, out="found", **environment):
        code, printed, said, seconds = self.run("minify", program, "--backend", backend, "--out", out, "--runs", "1", "--json", *words, **environment)
        try:
            report = json.loads(printed)
        except json.JSONDecodeError:
            return {"code": code, "seconds": seconds, "said": (printed + said)[-1500:]}
        kept = ("nodes_before", "nodes_after", "inputs_after", "elements_after", "queries", "proven", "shown", "evidence", "backend", "verdict", "reason", "diagnostics")
        result = {"code": code, "seconds": seconds, **{key: report[key] for key in kept if key in report}}
        result["signature"] = report.get("signature")
        repro = self.folder / out / "repro.py"
        result["text"] = repro.read_text()[:6000] if repro.exists() else said[-1500:]
        if repro.exists():
            plain = subprocess.run([sys.executable, str(repro)], env=self.environment(**environment), capture_output=True, text=True, timeout=200)
            result["plain"] = [plain.returncode, (plain.stdout.strip().splitlines() or [plain.stderr[-300:]])[-1]]
        return result


def judged(place, programs, backend, workers=6):
    """The verdicts of many programs, by workers that stay."""
    question = {"backend": backend, "reference": "eager", "accuracy": "fp", "forward_only": False, "seed": 0}
    waiting, verdicts = queue.Queue(), {}
    for path in programs:
        waiting.put(path)

    def work():
        command = [str(place.pyrite), "--python", sys.executable, "worker"]
        worker = subprocess.Popen(command, cwd=place.folder, env=place.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while True:
            try:
                path = waiting.get_nowait()
            except queue.Empty:
                break
            begun = time.monotonic()
            worker.stdin.write(json.dumps({"cmd": "judge", "file": str(path), "question": question, "time_limit": 60.0, "blob": 0}) + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                answer = json.loads(line)
                if "verdict" in answer:
                    verdicts[path.name] = [answer["verdict"], round(time.monotonic() - begun, 2)]
                    break
        worker.stdin.close()
        worker.wait()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


RESNET = """
import sys
import torch, torchvision
import torch._dynamo.config, torch._inductor.config
torch._dynamo.config.repro_after, torch._dynamo.config.repro_level = "aot", 4
torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"
torch._inductor.config.fx_graph_cache = False
torch._dynamo.config.debug_dir_root = "dump"
torch.manual_seed(0)
model = MODEL
x = torch.randn(SHAPE, device="cuda")
try:
    with torch.autocast("cuda", torch.bfloat16, enabled=AUTOCAST):
        torch.compile(model.cuda().train())(x).sum().backward()
except Exception as error:
    print(type(error).__name__, str(error)[:300])
"""


def dumped(place, model, shape, autocast):
    text = RESNET.replace("MODEL", model).replace("SHAPE", shape).replace("AUTOCAST", str(autocast))
    place.write("train.py", text)
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "train.py"], cwd=place.folder, env=place.environment(), capture_output=True, text=True, timeout=200)
    launchers = sorted(place.folder.glob("dump/**/minifier_launcher.py"))
    return launchers, {"dump_seconds": round(time.monotonic() - begun, 1), "dump_said": (done.stdout + done.stderr)[-600:]}


@scenario
def a_resnet18_training(place):
    launchers, result = dumped(place, "torchvision.models.resnet18()", "(4, 3, 96, 96)", False)
    if not launchers:
        return {**result, "fine": False}
    found = place.minify(str(launchers[0]), "torch:inductor", "--import", "inductor_bug", PYRITE_TEST_BUG="relu:accuracy")
    fine = found.get("proven") is True and found["nodes_after"] == 3 and found["plain"][0] == 1 and "cuda" in found["text"]
    return {**result, **found, "fine": fine, "in_time": found["seconds"] <= 90}


@scenario
def b_custom_operator(place):
    place.write("p.py", SMALL.replace("torch.relu(b)", "torch.ops.faulty.far_store.default(b)"))
    found = place.minify("p.py", "torch:inductor", "--import", "faulty")
    return {**found, "fine": found.get("proven") is True and found["nodes_after"] <= 5 and found["plain"][0] == 1 and "faulty.far_store" in json.dumps(found)}


EMBEDDING = """
class Repro(torch.nn.Module):
    def forward(self, x : "i64[6]cuda:0", w : "f32[10, 64]cuda:0"):
        far = x + 5000
        e = torch.nn.functional.embedding(far, w)
        t = torch.tanh(e)
        s = t.sum(-1)
        return (s,)
"""


@scenario
def b_embedding(place):
    place.write("p.py", EMBEDDING)
    found = place.minify("p.py", "torch:inductor")
    return {**found, "fine": found.get("proven") is True and found["plain"][0] == 1 and "device-side assert" in json.dumps(found["signature"])}


def fault(name, says, *words):
    def check(place):
        place.write("p.py", SMALL)
        found = place.minify("p.py", f"torch:{name}", "--import", "faulty", *words)
        fine = found.get("proven") is True and found["nodes_after"] <= 3 and found["plain"][0] == 1 and says in json.dumps(found["signature"])
        return {**found, "fine": fine}

    check.__name__ = f"c_{name}"
    return scenario(check)


fault("illegal_access", "illegal memory access")
fault("misaligned_address", "misaligned address")
fault("device_assert", "device-side assert")
fault("launch_failure", "launch failure")
fault("hang", "hang", "--time-limit", "8")
fault("out_of_memory", "out-of-memory", "--gpu-memory-limit", "1024")


@scenario
def c_next_worker(place):
    """How long after a fault the next program answers."""
    programs = []
    for k in range(8):
        text = SMALL if k % 2 else SMALL.replace("torch.relu(b)", "torch.tanh(b)")
        programs.append(place.folder / place.write(f"p{k}.py", text))
    result = {}
    for name in ("illegal_access", "device_assert"):
        import_words = ["--import", "faulty"]
        verdicts = judged_in_order(place, programs, f"torch:{name}", import_words)
        result[name] = [[next(iter(v)) if isinstance(v, dict) else v, s] for v, s in verdicts]
    good = [s for rows in result.values() for v, s in rows[2:] if v == "pass"]
    return {"verdicts": result, "slowest_after_a_fault": max(good, default=None), "fine": bool(good) and max(good) <= 2.0}


def judged_in_order(place, programs, backend, words):
    question = {"backend": backend, "reference": "eager", "accuracy": "fp", "forward_only": False, "seed": 0}
    command = [str(place.pyrite), "--python", sys.executable, *words, "worker"]
    worker = subprocess.Popen(command, cwd=place.folder, env=place.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    verdicts = []
    for path in programs:
        begun = time.monotonic()
        worker.stdin.write(json.dumps({"cmd": "judge", "file": str(path), "question": question, "time_limit": 60.0, "blob": 0}) + "\n")
        worker.stdin.flush()
        for line in worker.stdout:
            answer = json.loads(line)
            if "verdict" in answer:
                verdicts.append([answer["verdict"], round(time.monotonic() - begun, 2)])
                break
    worker.stdin.close()
    worker.wait()
    return verdicts


@scenario
def d_autocast_training(place):
    model = "torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))"
    launchers, result = dumped(place, model, "(32, 64)", True)
    if not launchers:
        return {**result, "fine": False}
    found = place.minify(str(launchers[0]), "torch:inductor", "--import", "inductor_bug", PYRITE_TEST_BUG="relu:accuracy")
    return {**result, **found, "fine": found.get("proven") is True and found["nodes_after"] == 3 and found["plain"][0] == 1}


@scenario
def e_cpu_dump(place):
    place.write("p.py", SMALL, device="")
    found = place.minify("p.py", "torch:inductor", "--import", "inductor_bug", PYRITE_TEST_BUG="relu:accuracy")
    return {**found, "fine": found.get("proven") is True and found["nodes_after"] == 3 and "cuda" not in found["text"].split("__main__")[0]}


@scenario
def e_moved_to_the_gpu(place):
    place.write("p.py", SMALL, device="")
    found = place.minify("p.py", "torch:inductor", "--device", "cuda:0", "--import", "inductor_bug", PYRITE_TEST_BUG="relu:accuracy")
    return {**found, "fine": found.get("proven") is True and found["nodes_after"] == 3 and "cuda:0" in found["text"]}


@scenario
def f_good_programs(place):
    sys.path.insert(0, str(HERE.parent))
    from gpu import good

    programs = []
    for name, text in good.programs():
        programs.append(place.folder / place.write(f"{name}.py", text))
    begun = time.monotonic()
    verdicts = judged(place, programs, "torch:inductor")
    kinds = {}
    for name, (verdict, _) in verdicts.items():
        kind = verdict if isinstance(verdict, str) else next(iter(verdict))
        kinds.setdefault(kind, []).append(name if kind in ("pass", "noise") else [name, str(verdict)[:400]])
    failing = kinds.get("fail", []) + kinds.get("flaky", [])
    counts = {kind: len(names) for kind, names in kinds.items()}
    kinds.pop("pass", None)
    return {"programs": len(programs), "seconds": round(time.monotonic() - begun, 1), "counts": counts, "others": kinds, "fine": not failing and len(verdicts) == len(programs)}


@scenario
def g_reduce_overhead(place):
    place.write("p.py", SMALL)
    found = place.minify("p.py", "torch:inductor?mode=reduce-overhead&calls=3&epilogue_fusion=true", "--forward-only")
    needs = "mode='reduce-overhead'" in found.get("text", "") and "epilogue_fusion" not in found.get("text", "")
    return {**found, "fine": found.get("proven") is True and found["plain"][0] == 1 and needs}


def inputs(*tensors):
    """A `load_args` with random tensors on the GPU: shapes, and whether a gradient is asked for."""
    lines = ["", "def load_args(reader):"]
    for number, (shape, gradient) in enumerate(tensors):
        elements = 1
        for size in shape:
            elements *= size
        lines.append(f"    buf{number} = reader.storage(None, {4 * elements}, device=device(type='cuda', index=0))")
        lines.append(f"    reader.tensor(buf{number}, {shape}, requires_grad={gradient}, is_leaf=True)")
    return "\n".join([*lines, "load_args._version = 0", ""])


AROUND = """
        p1 = torch.ops.aten.mm.default(w, w)
        p2 = torch.ops.aten.relu.default(p1)
        p3 = torch.ops.aten.tanh.default(p2)
        p4 = torch.ops.aten.sum.dim_IntList(p3, [-1])
        p5 = torch.ops.aten.sigmoid.default(p4)
        p6 = torch.ops.aten.mul.Tensor(p5, p4)
        p7 = torch.ops.aten.cos.default(p6)
        p8 = torch.ops.aten.add.Tensor(p7, p5)
        p9 = torch.ops.aten.exp.default(p8)
        p10 = torch.ops.aten.div.Tensor(p9, p8)
        p11 = torch.ops.aten.gelu.default(p10)
        p12 = torch.ops.aten.amax.default(p11, [0])
        p13 = torch.ops.aten.sin.default(p12)
        p14 = torch.ops.aten.neg.default(p13)
        p15 = torch.ops.aten.abs.default(p14)
"""


def report(number, parameters, body, tensors, nodes, *words):
    """A public report of a wrong result, buried in a program of fifteen more operators."""
    text = f"class Repro(torch.nn.Module):\n    def forward(self, {parameters}, w):" + AROUND + body + inputs(*tensors, ((64, 64), False))

    def check(place):
        place.write("p.py", text)
        found = place.minify("p.py", "torch:inductor", *words)
        fine = found.get("proven") is True and found["plain"][0] == 1 and found["nodes_after"] <= nodes
        return {**found, "fine": fine}

    check.__name__ = f"h_{number}"
    return scenario(check)


report(
    174172,
    "x",
    "        y = torch.ops.aten.copysign.Scalar(x, -0.0)\n        return (y, p15)\n",
    [((64,), False)],
    3,
)
report(
    193061,
    "x, t",
    """        t1, t2, t3, t4 = torch.ops.aten.chunk.default(t, 4, 1)
        n = torch.ops.aten.layer_norm.default(x, [1024])
        s = torch.ops.aten.add.Tensor(t1, 1.0)
        m = torch.ops.aten.mul.Tensor(n, s)
        a = torch.ops.aten.add.Tensor(m, t2)
        o = torch.ops.aten.layer_norm.default(a, [1024])
        u = torch.ops.aten.add.Tensor(t3, 1.0)
        q = torch.ops.aten.mul.Tensor(o, u)
        r = torch.ops.aten.add.Tensor(q, t4)
        z = torch.ops.aten.mul.Tensor(r, r)
        return (z, p15)
""",
    [((1, 32760, 1024), False), ((1, 4, 1024), True)],
    14,
    "--time-budget",
    "120",
)
report(
    189895,
    "x",
    """        m = torch.ops.aten.gt.Scalar(x, 0.0)
        i = torch.ops.aten._to_copy.default(m, dtype=torch.int64)
        s = torch.ops.aten.sum.dim_IntList(i, [1])
        c = torch.ops.aten.constant_pad_nd.default(s, [1, 0])
        return (c, p15)
""",
    [((2, 1048576), False)],
    5,
)


CHECK = HERE.parents[2] / "crates/pyrite-debug/src/torch/kernel_check.py"

KERNELS = """
import torch
import broken_kernels

torch.manual_seed(0)


def program(x, w):
    a = torch.sin(x)
    c = torch.relu(a)
    return c, c @ w


torch.compile(program)(torch.randn(32, 64, device="cuda"), torch.randn(64, 64, device="cuda"))
torch.cuda.synchronize()
"""


def kernel(way, kind, says):
    """A Triton kernel that is broken in one way, found in a script, and run alone where nothing is broken any more."""

    def check(place):
        place.write("script.py", KERNELS)
        begun = time.monotonic()
        words = [sys.executable, str(CHECK), "--out", "out", "script.py"]
        done = subprocess.run(words, cwd=place.folder, env=place.environment(PYRITE_TEST_KERNEL=way), capture_output=True, text=True, timeout=200)
        record = place.folder / "out/kernels.json"
        if not record.exists():
            return {"fine": False, "said": (done.stdout + done.stderr)[-1500:]}
        found, seconds = json.loads(record.read_text()), round(time.monotonic() - begun, 1)
        if found["kind"] is None or not found["file"]:
            return {"fine": False, "found": found, "seconds": seconds, "said": (done.stdout + done.stderr)[-600:]}
        alone = subprocess.run([sys.executable, "out/kernel.py"], cwd=place.folder, env=place.environment(), capture_output=True, text=True, timeout=200)
        line = (alone.stdout.strip().splitlines() or [alone.stderr[-500:]])[-1]
        named = found["kernel"].startswith("triton_") and "relu" in found["nodes"]
        fine = found["kind"] == kind and named and says in found["text"] and alone.returncode == 1 and line.startswith(f"bug: {kind}: ") and found["kernel"] in line
        return {"fine": fine, "found": found, "seconds": seconds, "alone": [alone.returncode, line], "text": Path(place.folder / "out/kernel.py").read_text()}

    check.__name__ = f"k_{way}"
    return scenario(check)


kernel("value", "value", "eager computes")
kernel("overrun", "overrun", "beyond the end of buf0")
kernel("unwritten", "unwritten", "elements of buf0")
kernel("nan", "value", "leaves nan")
kernel("fault", "fault", "illegal memory access in triton_")


@scenario
def k_good(place):
    """Good programs in one process: no kernel may be blamed."""
    lines = ["import torch", "torch.manual_seed(0)"]
    sys.path.insert(0, str(HERE.parent))
    from gpu import good

    for number, expression in enumerate(good.LAYERS):
        for dtype in ("float32", "bfloat16"):
            lines += [
                "torch._dynamo.reset()",
                f"u, v = (torch.randn(32, 48, device='cuda', dtype=torch.{dtype}, requires_grad=True) for _ in range(2))",
                f"print({number}, flush=True)",
                f"r = torch.compile(lambda x, y: {expression.replace('DEVICE', 'cuda')})(u.sigmoid(), v.sigmoid())",
                "r.float().mean().backward() if r.requires_grad else None",
            ]
    place.write("script.py", "\n".join(lines))
    words = [sys.executable, str(CHECK), "--out", "out", "script.py"]
    done = subprocess.run(words, cwd=place.folder, env=place.environment(), capture_output=True, text=True, timeout=280)
    record = place.folder / "out/kernels.json"
    found = json.loads(record.read_text()) if record.exists() else {"kind": "nothing written"}
    return {"fine": found["kind"] is None and found["checked"] >= 60, "found": found, "said": (done.stdout + done.stderr)[-600:]}


def session(place, *words, **environment):
    """The steps of `pyrite debug`, by their names, and how long it took."""
    code, out, said, seconds = place.run("debug", *words, "--json", timeout=420, **environment)
    steps = {}
    for line in out.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            step = json.loads(line)
            steps[step["step"]] = step["result"]
    return {"code": code, "seconds": seconds, "steps": steps, "said": said[-800:]}


def beside(place, result):
    """Whether a session has left a proven kernel of Triton's beside its repro, and says so in its report."""
    found, report = result["steps"].get("kernel") or {}, place.folder / "found/report.md"
    named = (found.get("kernel") or "").startswith("triton_") and "relu" in found.get("nodes", [])
    return bool(named and found.get("proven") and "## The guilty kernel" in report.read_text())


@scenario
def k_session(place):
    """From a wrong result to the repro, the kernel and the bisection, with what was tried of the toolchain."""
    place.write("p.py", SMALL)
    (place.folder / "other").mkdir()
    import triton

    (place.folder / "other/triton").symlink_to(Path(triton.__file__).parent)
    words = ["p.py", "--backend", "torch:inductor", "--import", "inductor_bug", "--runs", "1", "--out", "found", "--time-budget", "150"]
    result = session(place, *words, PYRITE_TEST_BUG="relu:accuracy", PYRITE_TRITON=str(place.folder / "other"))
    bisected = result["steps"].get("bisect") or {}
    stays = [each["verdict"] for each in bisected.get("triton", [])] == ["fail"]
    return {**result, "fine": beside(place, result) and stays and bisected.get("vanishes_with") is not None}


@scenario
def k_session_fault(place):
    """A kernel that writes far away: named, alone in a file, and seen by compute-sanitizer where that is installed."""
    place.write("p.py", SMALL)
    words = ["p.py", "--backend", "torch:inductor", "--import", "broken_kernels", "--runs", "1", "--out", "found", "--time-budget", "60"]
    result = session(place, *words, PYRITE_TEST_KERNEL="fault")
    found = result["steps"].get("kernel") or {}
    installed = shutil.which("compute-sanitizer") or Path("/usr/local/cuda/bin/compute-sanitizer").exists()
    seen = found.get("sanitizer") or {}
    mapped = not installed or (seen.get("kernel") == found.get("kernel") and "tl.store" in (seen.get("statement") or ""))
    return {**result, "installed": bool(installed), "fine": beside(place, result) and found.get("kind") == "fault" and mapped}


@scenario
def k_first_nan(place):
    model = "torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.ReLU(), torch.nn.Linear(32, 8), torch.nn.Softmax(-1)).cuda()"
    text = f"import torch, broken_kernels\ntorch.manual_seed(0)\nmodel = torch.compile({model})\n"
    text += "for step in range(3):\n    (model(torch.randn(12, 16, device='cuda')) ** 2).sum().backward()\n"
    place.write("train.py", text)
    result = session(place, "train.py", "--first-nan", "--out", "found", PYRITE_TEST_KERNEL="nan")
    found = result["steps"].get("kernel") or {}
    fine = result["code"] == 1 and found.get("kind") == "nonfinite" and found.get("proven") and "relu" in found.get("nodes", [])
    return {**result, "fine": bool(fine and "eager computes a finite number" in found["text"] and found.get("program"))}


# An assembler that is wrong where nobody limits how much it optimises.
PTXAS = """#!/bin/sh
case "$*" in
*--version*|*--opt-level*) ;;
*) for word in "$@"; do case "$word" in *.ptx) sed -i 's/add\\(\\.rn\\)\\?\\.f32/sub\\1.f32/' "$word";; esac; done;;
esac
exec REAL "$@"
"""


@scenario
def k_ptxas(place):
    from triton import knobs

    (place.folder / "ptxas").write_text(PTXAS.replace("REAL", knobs.nvidia.ptxas.path))
    (place.folder / "ptxas").chmod(0o755)
    place.write("p.py", SMALL.replace("torch.relu(b)", "b + x").replace("a @ w", "torch.cos(a)"))
    assembler = str(place.folder / "ptxas")
    own = {"TRITON_PTXAS_PATH": assembler, "TRITON_PTXAS_BLACKWELL_PATH": assembler, "TORCHINDUCTOR_CACHE_DIR": str(place.folder / "cache")}
    code, out, said, seconds = place.run("bisect", "p.py", "--backend", "torch:inductor", "--json", **own)
    try:
        found = json.loads(out)
    except json.JSONDecodeError:
        return {"fine": False, "said": (out + said)[-1500:], "seconds": seconds}
    return {"fine": "ptxas=2" in found.get("vanishes_with", []), "code": code, "seconds": seconds, "found": found, "said": said[-600:]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pyrite", default=os.environ.get("PYRITE_BIN", "pyrite"))
    parser.add_argument("--out", default="bars")
    parser.add_argument("--parallel", type=int, default=4, help="how many scenarios run at a time; those whose time counts run alone")
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("there is no GPU here, so nothing of this was shown")
        return 0
    # The scenarios start processes of their own, and this one holds nothing on the GPU.
    results, out = {}, Path(words.out)
    out.mkdir(parents=True, exist_ok=True)
    chosen = [name for name in SCENARIOS if not words.names or any(name.startswith(word) for word in words.names)]
    written = threading.Lock()

    def show(name):
        place = Place(Path("bars-work").absolute() / name, Path(words.pyrite).absolute())
        begun = time.monotonic()
        try:
            result = SCENARIOS[name](place)
        except Exception:
            log = place.folder / "log"
            result = {"fine": False, "raised": traceback.format_exc()[-1500:], "log": log.read_text()[-1500:] if log.exists() else ""}
        result["whole"] = round(time.monotonic() - begun, 1)
        brief = {key: value for key, value in result.items() if key != "text"}
        with written:
            results[name] = result
            print(name, "FINE" if result["fine"] else "NOT FINE", json.dumps(brief)[:1500], flush=True)
            (out / "bars.json").write_text(json.dumps(results, indent=1))

    alone = [name for name in chosen if name.startswith(("a_", "c_next", "f_"))]
    with ThreadPoolExecutor(words.parallel) as pool:
        list(pool.map(show, [name for name in chosen if name not in alone]))
    for name in alone:
        show(name)
    return 0 if all(result["fine"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
