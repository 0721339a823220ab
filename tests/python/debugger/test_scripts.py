"""Faults that no single graph shows are reduced as Python source, and proven by plain PyTorch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# The guards are all left out, so that the second call runs with the first one's scale.
GUARD = '''"""A model whose scale changes from call to call."""
import torch

SCALE = 2.0
HISTORY = []


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
        self.outer = torch.nn.Linear(width, 1)

    def forward(self, x, label=None):
        # Some work.
        h = torch.relu(self.inner(x))
        h = h + x.mean()
        if label is not None:
            h = h * label
        return self.outer(h) * SCALE


def nothing(guards):
    return [False for _ in guards]


def main(steps=4):
    global SCALE
    model = Block(8).eval()
    compiled = torch.compile(model, backend="inductor", options={"guard_filter_fn": nothing})
    data = torch.ones(3, 8)
    with torch.no_grad():
        for step in range(steps):
            SCALE = float(step + 1)
            y = compiled(data)
            HISTORY.append(y.sum().item())
    print("sums", [round(v, 3) for v in HISTORY])
    return HISTORY


if __name__ == "__main__":
    main()
'''

EFFECT = """import torch

seen = []


def note(value):
    seen.append(value.shape[0])


@torch.compile
def f(x, w):
    y = x @ w
    note(y)
    z = torch.relu(y) + 1
    return z.sum()


total = 0
for k in range(3):
    total = total + f(torch.ones(2 + k, 4), torch.ones(4, 4))
print("total", total)
"""

ERROR = """import torch


@torch.compile(fullgraph=True)
def f(x):
    y = torch.sin(x)
    print("a graph ends here")
    return torch.cos(y)


def main():
    x = torch.ones(3)
    for _ in range(2):
        x = f(x)
    return x


main()
"""


def minified(folder, script, *words, imports=()):
    (folder / "script.py").write_text(script)
    command = [os.environ["PYRITE_BIN"], "--python", sys.executable]
    for module in imports:
        command += ["--import", module]
    command += ["minify-script", "--out", "found", "--json", *words, "script.py"]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def plain(folder):
    """Runs the written file with nothing of Pyrite around it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYRITE")}
    environment["PYTHONPATH"] = str(HERE)
    return subprocess.run([sys.executable, folder / "found" / "repro.py"], env=environment, capture_output=True, text=True, timeout=600)


CASES = {
    "a missing guard": (GUARD, (), "result", 24),
    "a lost side effect": (EFFECT, ("broken_dynamo",), "result", 12),
    "an error of capture": (ERROR, (), "error Unsupported", 7),
}


@pytest.mark.parametrize("fault", CASES if os.environ.get("PYRITE_PROOFS") else ["an error of capture"])
def test_a_fault_of_dynamo_is_reduced_to_a_few_lines_and_proven(tmp_path, fault):
    script, imports, way, lines = CASES[fault]
    code, found = minified(tmp_path, script, imports=imports)
    assert (code, found["proven"], found["difference"]) == (0, True, way), found
    assert found["lines_after"] <= lines and found["minimal"], found
    done = plain(tmp_path)
    assert done.returncode == 1 and found["line"] in done.stdout, (done.stdout, done.stderr)
    text = (tmp_path / "found" / "repro.py").read_text()
    assert not any("pyrite" in line for line in text.splitlines() if line.startswith(("import", "from"))), text
    # The same file with compiled code that is right: what it compiles is not compiled at all.
    changed = tmp_path / "found" / "repro.py"
    assert 'if mode == "eager":' in text
    changed.write_text(text.replace('if mode == "eager":', "if True:"))
    done = plain(tmp_path)
    assert done.returncode == 0 and "no bug" in done.stdout, (done.stdout, done.stderr)


COMPILED = "import torch\nf = torch.compile(lambda x: torch.sin(x) + 1)\ny = f(torch.ones(4, requires_grad=True))\n"

# Scripts that differ compiled from eager in nothing, or in what is no fault of compiled code: what they see of objects and addresses,
# of the order of sets, of time, of errors of their own.
RIGHT = {
    "right": COMPILED + "print(y)\n",
    "module": "import torch\nm = torch.compile(torch.nn.Linear(2, 2))\ny = m(torch.ones(1, 2))\nprint(m, type(m).__name__)\n",
    "address": COMPILED + "print(object())\ntext = repr(object())\n",
    "identity": COMPILED + "number, place = id(y), y.data_ptr()\nprint(number)\n",
    "order": COMPILED + "class A:\n    pass\nnames = {}\nfor k in range(9):\n    names[k] = A()\nfirst = [k for v in set(names.values()) for k in names if names[k] is v]\n",
    "unstable": "import time\nimport torch\nf = torch.compile(torch.sin)\ny = f(torch.ones(4)) + time.time()\nprint(time.time())\n",
    "wrong by itself": "import torch\nf = torch.compile(torch.sin)\nf(1 / 0)\n",
    "wrong inside": "import torch\nf = torch.compile(lambda x: x @ x)\nf(torch.ones(2, 3))\n",
    "no end": "import torch\nwhile True:\n    pass\n",
}

# With a backend that rounds otherwise.
ROUNDING = {
    "printed": "import torch\nf = torch.compile(lambda x: (x.exp() * 1e4).sum())\nprint(repr(f(torch.linspace(0, 9, 9999)).item()))\n",
    "integer": "import torch\nf = torch.compile(lambda x: (x.exp() * 1e4).sum())\nbits = f(torch.linspace(0, 9, 9999)).view(torch.int32).item()\n",
    "node": COMPILED + "print(y.sum())\n",
}


@pytest.mark.parametrize("script", RIGHT if os.environ.get("PYRITE_PROOFS") else ["module", "address", "identity", "unstable"])
def test_nothing_is_proven_of_a_script_that_compiled_code_does_not_change(tmp_path, script):
    code, found = minified(tmp_path, RIGHT[script], "--time-limit", "20")
    assert code == 1 and not found["proven"], found


@pytest.mark.parametrize("script", ROUNDING if os.environ.get("PYRITE_PROOFS") else ["node"])
def test_nothing_is_proven_of_a_backend_that_rounds_otherwise(tmp_path, script):
    code, found = minified(tmp_path, ROUNDING[script], "--backend", "inductor", "--time-limit", "200")
    assert code == 1 and not found["proven"], found


def test_a_command_may_be_asked_instead(tmp_path):
    (tmp_path / "check.sh").write_text('grep -q "torch.sin" "$1" && exit 1\nexit 0\n')
    code, found = minified(tmp_path, ERROR, "--check", f"sh {tmp_path}/check.sh")
    assert code == 0 and found["program"].strip() == "torch.sin", found
