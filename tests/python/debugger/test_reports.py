"""Public reports of wrong results of Inductor on the CPU that the installed torch still has.

Each is buried in a program of fifteen more operators and must end in a proven repro of at most three, which names the operator of the
report. Everyday runs take one; `PYRITE_PROOFS` takes all. A torch that gets one right must be another than those of `WRONG_IN`, and nothing may be proven of it.
`docs/reports.md` lists what was tried.
"""

import os
from pathlib import Path

import pytest
import torch

from debugger.test_proof import session  # noqa: F401  (a fixture)
from gpu import bars

# The releases that were seen to be wrong in all of them.
WRONG_IN = ("2.15.0",)

REPORTS = {
    "197895": ("floor_divide", ["a = torch.ops.aten.abs.default(x)", "t = torch.ops.aten.round.default(a)", "n = torch.ops.aten.add.Tensor(t, 1.0)", "y = torch.ops.aten.floor_divide.default(n, 0.1)"]),
    "197895-div": ("aten.div", ["a = torch.ops.aten.abs.default(x)", "t = torch.ops.aten.round.default(a)", "n = torch.ops.aten.add.Tensor(t, 1.0)", "y = torch.ops.aten.div.Scalar_mode(n, 0.1, rounding_mode='floor')"]),
    "198057": ("remainder", ["f = torch.ops.aten.full_like.default(x, inf)", "y = torch.ops.aten.remainder.Tensor(x, f)"]),
    "198057-large": ("remainder", ["b = torch.ops.aten.full_like.default(x, 1e20)", "y = torch.ops.aten.remainder.Scalar(b, 3.0)"]),
}


@pytest.mark.parametrize("report", REPORTS if os.environ.get("PYRITE_PROOFS") else ["197895"])
def test_a_public_report_buried_in_a_program_ends_in_a_proven_repro_of_its_operator(session, report):  # noqa: F811
    operator, lines = REPORTS[report]
    body = "".join(f"        {line}\n" for line in [*lines, "z = torch.ops.aten.mul.Tensor(y, 2.0)", "return (z, p15)"])
    head = 'class Repro(torch.nn.Module):\n    def forward(self, x : "f32[64]", w : "f32[64, 64]"):'
    code, report, said = session.minify(head + bars.AROUND + body, "--backend", "torch:inductor", "--forward-only")
    if report.get("verdict") == "pass":
        # A torch that gets it right is accused of nothing; the one that is tested with does not.
        assert torch.__version__.split("+")[0] not in WRONG_IN, said
        return
    assert (code, report["proven"]) == (0, True), (report, said)
    calls = report["nodes_after"] - report["inputs_after"] - 1
    assert calls <= 3 and operator in (session.folder / "found" / "repro.py").read_text(), report
    assert session.plain()[0] == 1
