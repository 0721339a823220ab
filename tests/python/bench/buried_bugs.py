"""How long it takes from a failing script to a proven repro: `python -m bench.buried_bugs [--peer] [NAME…]`.

Three bugs of torch 2.15, each buried in a small script. The first useful sentence and the proof are counted from the moment the script
fails, the whole from the start of the command. `--peer` runs PyTorch's own minifier on the same scripts: a run that dumps, then the
minifier. For a quiet machine; prints a line for each, and ends with 1 where a limit is missed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FLOOR = """
import torch

class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = self.norm(self.b(h) + x)
        t = h.abs().round() + 1.0
        bins = t // 0.1
        gate = torch.sigmoid(bins.mean(-1, keepdim=True) / 100)
        y = torch.tanh(h * gate) + torch.cos(h) * 0.5
        return (y.exp() / (1 + y.exp())).sum(-1), bins.sum(-1)

torch.manual_seed(0)
with torch.no_grad():
    print(torch.compile(Block(16))(torch.randn(8, 16))[1])
"""

INDEX = """
import torch

def f(x, index):
    h = torch.relu(x - 0.5)
    h = torch.tanh(h) * 2
    picked = h[index]
    return (picked.sigmoid() + 1).log().sum(-1)

print(torch.compile(f)(torch.randn(1, 8, 66, 66), torch.tensor([[1]])).shape)
"""

WRITE = """
import torch

def f(x, w):
    h = torch.relu(w @ w).sum(-1)
    y = x.view(torch.int32) * 2
    y.sub_(-4)
    x[:, 2:5] = 2
    return y.view(torch.int64), torch.cos(h) + 1

print(torch.compile(f)(torch.arange(-12, 12).reshape(4, 6), torch.randn(8, 8))[0])
"""

# The script, and how many calls its repro may have.
SCRIPTS = {"floor_divide": (FLOOR, 1), "index_abort": (INDEX, 1), "read_behind_write": (WRITE, 5)}
SENTENCE, PROOF = 30, 60


def pyrite(folder, text):
    """The seconds to the first sentence and to the proof, counted from the failure, the whole, and the calls that are left."""
    (folder / "script.py").write_text(text)
    command = [sys.executable, "-m", "pyrite", "debug", "--out", "found", "script.py"]
    begun, heard = time.monotonic(), []
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listen(stream):
        heard.extend((time.monotonic() - begun, line.rstrip()) for line in stream)

    listeners = [threading.Thread(target=listen, args=(stream,)) for stream in (process.stdout, process.stderr)]
    for listener in listeners:
        listener.start()
    process.wait()
    for listener in listeners:
        listener.join()
    heard.sort()

    def at(pattern):
        return next((when for when, line in heard if re.search(pattern, line)), None)

    failed, sentence, proven = at("a region failed"), at(r"^confirm: [1-9]"), at("proven")
    repro = folder / "found" / "repro.py"
    forward = repro.read_text().split("def forward")[1].split("return")[0] if repro.exists() else ""
    since = [round(when - failed, 1) if when is not None and failed is not None else None for when in (sentence, proven)]
    return {"sentence": since[0], "proof": since[1], "whole": round(time.monotonic() - begun, 1), "calls": forward.count("torch.ops"), "said": [line for _, line in heard][-12:]}


def peer(folder, text):
    """The seconds of PyTorch's run that dumps, and of its minifier, and what its last program has."""
    (folder / "script.py").write_text(text)
    environment = {**os.environ, "TORCHDYNAMO_REPRO_AFTER": "aot", "TORCHDYNAMO_REPRO_LEVEL": "4", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    begun = time.monotonic()
    subprocess.run([sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, timeout=900)
    dumped = time.monotonic() - begun
    launcher = next(iter(sorted(folder.glob("**/minifier_launcher.py"))), None)
    if launcher is None:
        return {"dump": round(dumped, 1), "minifier": "nothing was dumped"}
    begun = time.monotonic()
    done = subprocess.run([sys.executable, launcher, "minify"], cwd=folder, capture_output=True, text=True, timeout=900)
    made = next(iter(sorted(folder.glob("**/repro.py"))), None)
    calls = made.read_text().count("torch.ops") if made else None
    return {"dump": round(dumped, 1), "minifier": round(time.monotonic() - begun, 1), "calls": calls, "code": done.returncode}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    fine = True
    for name, (text, calls) in SCRIPTS.items():
        if words.names and name not in words.names:
            continue
        with tempfile.TemporaryDirectory() as place:
            found = pyrite(Path(place), text)
        said = found.pop("said")
        in_time = found["sentence"] is not None and found["sentence"] <= SENTENCE and found["proof"] is not None and found["proof"] <= PROOF
        small = 0 < found["calls"] <= calls
        fine &= in_time and small
        print(name, found, "in time" if in_time else "late", "small" if small else "large", flush=True)
        if not (in_time and small):
            print("\n".join(f"    {line}" for line in said), flush=True)
        if words.peer:
            with tempfile.TemporaryDirectory() as place:
                print(name, "PyTorch's minifier", peer(Path(place), text), flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
