"""What the processor of this machine lacks. Imported before torch.

Some virtual machines announce AMX and fault when it is used: torch's own bfloat16 matmuls die there with SIGILL. A process that does nothing
else tries it once per machine; where it dies, oneDNN is told not to use AMX in this process and in those that it starts. That is for tests alone:
Pyrite itself never sets the variable.
"""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

VARIABLE = "ONEDNN_MAX_CPU_ISA"
WITHOUT_AMX = "AVX512_CORE_BF16"

TRIED = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); print((x @ x)[0, 0].item())"


def avoid_faults():
    """Sets the variable if torch's kernels die without it. One that is set stays."""
    if VARIABLE not in os.environ and kernels_fault():
        os.environ[VARIABLE] = WITHOUT_AMX


def kernels_fault():
    """Whether torch's bfloat16 matmul ends its process; known from the first time on."""
    known = pathlib.Path(tempfile.gettempdir()) / f"pyrite-onednn-{machine()}"
    if not known.exists():
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        done = subprocess.run([sys.executable, "-c", TRIED], env=environment, capture_output=True)
        with tempfile.NamedTemporaryFile("w", dir=known.parent, delete=False) as file:
            file.write("faults" if done.returncode < 0 else "works")
        os.replace(file.name, known)
    return known.read_text() == "faults"


def machine():
    """What the answer depends on: the processor, its features, this start of the system, and torch."""
    parts = [platform.processor(), importlib.metadata.version("torch"), sys.executable]
    for file in ("/proc/cpuinfo", "/proc/sys/kernel/random/boot_id"):
        path = pathlib.Path(file)
        if path.exists():
            parts += [line for line in path.read_text().splitlines() if "MHz" not in line and "bogomips" not in line]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


avoid_faults()
