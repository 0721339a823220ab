"""Everything that CI compares with eager on the CPU, on a GPU: `python -m gpu.sweep --out FOLDER [KIND…]`.

`samples`: PyTorch's samples of its operators, in f32 and bf16. `peers`: the small functions of `package/peer_*.py`, forward and with
gradients. `architectures`: public models, in evaluation, in training, in bf16 and by steps of an optimizer. `programs`: what users write around
models. All are compiled by `torch.compile(backend="pyrite")` and called until a CUDA graph is replayed; what comes out must be eager's on
the same device, or as near to double precision as eager's is.

Workers share the cases in an order that does not depend on how many there are. A case that ends its process, hangs, or leaves a
device fault behind is a result; the next one has a new process. A line of JSON for each case that fails; FOLDER/sweep.json has the counts as well. The
exit code is 1 where something differs. Without a GPU it says so and ends with 0.
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

HERE = Path(__file__).parent
# How long a case may take, and the first one of a process, which has torch to import.
LIMIT, FIRST = 120, 240
# The exit code of a worker whose device no longer answers.
LOST = 3


# The cases, by kind: `names()`, and `check(name)`, which returns what is wrong, `""` for nothing, or None where there is nothing to judge.


class Samples:
    """PyTorch's operators, by name, variant and type."""

    MOST = 4

    def __init__(self, device):
        import torch

        # Torch's module of samples forbids to set this later.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        from torch.testing._internal.common_methods_invocations import op_db

        self.device = device
        self.types = {"f32": torch.float32, "bf16": torch.bfloat16}
        self.operators = {f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db}

    def names(self):
        return [f"{name} {dtype}" for name in self.operators for dtype in self.types]

    def check(self, name):
        import torch

        from gpu.judge import difference, tensors
        from pyrite import aot

        name, dtype = name.split()
        op, dtype = self.operators[name], self.types[dtype]
        if dtype not in op.supported_dtypes(self.device):
            return None
        compiled = 0
        for number, sample in enumerate(self._samples(op, dtype)):
            try:
                want, again = (tensors(op(sample.input, *sample.args, **sample.kwargs)) for _ in range(2))
            except Exception:  # noqa: BLE001  (a sample that eager refuses is none)
                continue
            try:
                if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(want, again)):
                    continue
            except (RuntimeError, NotImplementedError):  # sparse ones, and complex halves
                continue

            def function(given, args, kwargs):
                return op.op(given, *args, **kwargs)

            torch._dynamo.reset()
            with aot.observed() as regions:
                run = torch.compile(function, backend="pyrite", dynamic=False)
                for _ in range(4):
                    have = tensors(run(sample.input, sample.args, sample.kwargs))
            compiled += any(region.segments for region in regions)
            if problem := difference(op, sample, have, want):
                return f"sample {number}: {problem}"
        return "" if compiled else None

    def _samples(self, op, dtype):
        try:
            return [each for each, _ in zip(op.sample_inputs(self.device, dtype), range(self.MOST))]
        except Exception:  # noqa: BLE001  (torch has none that can be made)
            return []


class Peers:
    """The small functions of the package's tests, on tensors that the device makes."""

    def __init__(self, device):
        import torch

        sys.path.insert(0, str(HERE.parent / "package"))
        # Its functions make tensors where nothing names a device.
        torch.set_default_device(device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        import test_peer_cases

        self.tests = test_peer_cases

    def names(self):
        found = self.tests.PEERS
        # What eager refuses on the CPU is on a GPU accepted, or ends the context.
        found = {name: case for name, case in found.items() if not name.startswith("refused")}
        return [f"{name} {half}" for name, case in found.items() for half in ("forward", "gradients") if case.gradients or half == "forward"]

    def check(self, name):
        import torch

        tests = self.tests
        name, half = name.split()
        case, gradients = tests.PEERS[name], half == "gradients"
        plain, other = (tests.copy.deepcopy(case.function) if isinstance(case.function, torch.nn.Module) else case.function for _ in range(2))
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
            compiled = tests.by_torch(other, None)
            called = compiled if not isinstance(other, torch.nn.Module) else tests.Called(compiled, other)
            for make in (*[case.arguments] * 4, *case.then):
                torch.manual_seed(1)
                arguments = make()
                try:
                    tests.observed(tests.copy.deepcopy(plain), arguments, gradients)
                except Exception as error:  # noqa: BLE001
                    if any(each in str(error) for each in ("device", "CUDA", "not implemented", "CPU")):
                        return None  # it is made for the CPU
                try:
                    tests.compare_call(name, case, plain, called, arguments, gradients)
                except BaseException:  # pytest's failures are no exceptions
                    if not self.torch_differs(name, case, plain, arguments, gradients):
                        raise
                    return None
        return ""

    def torch_differs(self, name, case, plain, arguments, gradients):
        """Whether a call differs from eager by torch's own capture as well, whatever the backend."""
        import torch

        torch._dynamo.reset()
        compiled = torch.compile(plain, backend="aot_eager")
        called = compiled if not isinstance(plain, torch.nn.Module) else self.tests.Called(compiled, plain)
        try:
            self.tests.compare_call(name, case, plain, called, arguments, gradients)
        except BaseException:  # noqa: BLE001
            return True
        return False


class Architectures:
    """Public models, by name and mode."""

    def __init__(self, device):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        from models import region_sweep

        self.sweep, self.device = region_sweep, device

    def names(self):
        return [f"{name} {mode}" for name in self.sweep.ARCHITECTURES for mode in self.sweep.MODES]

    def check(self, name):
        row = self.sweep.check(*name.split(), device=self.device)
        if row.doubt:
            print(json.dumps({"kind": "architectures", "name": name, "doubt": row.doubt}), flush=True)
        return row.differs or ""


class Programs:
    """Programs around models, as users write them."""

    def __init__(self, device):
        import torch

        torch.set_default_device(device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        from models import test_user_programs

        self.tests = test_user_programs

    def names(self):
        return list(self.tests.PROGRAMS)

    def check(self, name):
        import torch

        try:
            self.tests.results(name)
        except Exception as error:  # noqa: BLE001
            if "device" in str(error):
                return None  # it is made for the CPU
            raise
        try:
            self.tests.test_a_program_computes_what_eager_computes("torch", name)
        except Exception:
            torch._dynamo.reset()
            try:
                self.tests.results(name, lambda step: torch.compile(step, backend="aot_eager"))
            except Exception:  # noqa: BLE001
                return None  # torch's own capture cannot do it
            raise
        return ""


KINDS = {"samples": Samples, "peers": Peers, "architectures": Architectures, "programs": Programs}


def work(kind, device, chosen):
    """Judges the cases whose names come in, a line each."""
    import torch

    import pyrite  # noqa: F401  (registers the backend)

    torch.set_num_threads(1)
    cases = KINDS[kind](device)
    if chosen == "names":
        print(json.dumps(cases.names()), flush=True)
        return 0
    for line in sys.stdin:
        name = line.strip()
        said = {}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                said["problem"] = cases.check(name)
                if device == "cuda":
                    torch.cuda.synchronize()
        except BaseException as error:  # noqa: BLE001  (what fails is a result)
            text = str(error).strip()
            said["problem"] = f"{type(error).__name__}: {' | '.join(text.splitlines()[:6])[:600]}"
            said["lost"] = "CUDA error" in text or "CUDA driver" in text
        print(json.dumps({"name": name, **said}), flush=True)
        if said.get("lost"):
            return LOST
    return 0


class Worker:
    """A process that judges cases until one of them ends it."""

    def __init__(self, kind, device):
        self.command = [sys.executable, "-X", "faulthandler", "-W", "ignore", "-m", "gpu.sweep", "--work", kind, "--device", device]
        self.process, self.answers = None, None

    def begin(self):
        self.answers = queue.Queue()
        self.log = open(os.devnull, "w") if not os.environ.get("SWEEP_LOG") else open(os.environ["SWEEP_LOG"], "a")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=HERE.parent)

        def read(process, answers):
            for line in process.stdout:
                answers.put(line)
            answers.put(None)

        threading.Thread(target=read, args=(self.process, self.answers), daemon=True).start()

    def ask(self, name, deadline):
        """What is wrong with a case; None for nothing to judge. Raises TimeoutError where the time of the whole sweep is over."""
        limit = LIMIT
        if self.process is None:
            self.begin()
            limit = FIRST
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except OSError:
            return self.lost("it died before it was asked")
        begun = time.monotonic()
        while True:
            left = min(begun + limit, deadline) - time.monotonic()
            try:
                line = self.answers.get(timeout=max(left, 0.01))
            except queue.Empty:
                self.end()
                if time.monotonic() >= deadline:
                    raise TimeoutError from None
                return f"it did not end within {limit} s"
            if line is None:
                return self.lost("the process died")
            told = json.loads(line)
            if "doubt" in told:
                print(line.strip(), flush=True)
                continue
            if told.get("lost"):
                self.end()
            return told["problem"]

    def lost(self, what):
        code = self.process.wait()
        self.process = None
        return f"{what}: exit code {code}"

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process = None


def sweep(kind, device, jobs, seconds, only):
    """What came of a kind: counts, and what fails."""
    listing = Worker(kind, device).command + ["--names"]
    done = subprocess.run(listing, capture_output=True, text=True, cwd=HERE.parent)
    if done.returncode:
        return {"kind": kind, "failed": done.stderr.strip().splitlines()[-1:]}
    names = sorted(json.loads(done.stdout.strip().splitlines()[-1]), key=lambda name: zlib.crc32(name.encode()))
    names = [name for name in names if not only or any(part in name for part in only)]
    waiting, counts, wrong = iter(names), collections.Counter(), {}
    deadline, lock = time.monotonic() + seconds, threading.Lock()

    def judge():
        worker = Worker(kind, device)
        while time.monotonic() < deadline:
            with lock:
                name = next(waiting, None)
            if name is None:
                break
            try:
                problem = worker.ask(name, deadline)
            except TimeoutError:
                break
            with lock:
                counts["none here" if problem is None else "wrong" if problem else "right"] += 1
                if problem:
                    wrong[name] = problem
                    print(json.dumps({"kind": kind, "name": name, "problem": problem}), flush=True)
        if worker.process is not None:
            worker.end()

    threads = [threading.Thread(target=judge) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = sum(counts.values())
    return {"kind": kind, "cases": len(names), "asked": asked, **counts, "problems": wrong}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long each kind may take")
    parser.add_argument("--only", action="append", default=[], help="only cases whose names have this in them")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--names", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.work, given.device, "names" if given.names else None)
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}; choose of {', '.join(KINDS)}")
    if given.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            print("there is no GPU here: nothing is compared")
            return 0
    results = []
    for kind in given.kinds or KINDS:
        results.append(sweep(kind, given.device, given.jobs, given.seconds, given.only))
        print(json.dumps({key: value for key, value in results[-1].items() if key != "problems"}), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "sweep.json").write_text(json.dumps(results, indent=1))
    return int(any(each.get("wrong") or "failed" in each for each in results))


if __name__ == "__main__":
    sys.exit(main())
