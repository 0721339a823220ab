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

def float64(line, value):
    return ["d = torch.ops.aten._to_copy.default(x, dtype=torch.float64)", "s = torch.ops.aten.mul.Tensor(d, 0.0)", f"n = torch.ops.aten.add.Tensor(s, {value})", line]


def whole(*lines):
    return ["a = torch.ops.aten.abs.default(x)", "t = torch.ops.aten.round.default(a)", "n = torch.ops.aten.add.Tensor(t, 1.0)", *lines]


# The operator that a repro names, and the lines of the report: `y` is wrong, or `z` where the report's result must be the program's.
REPORTS = {
    "197895": ("floor_divide", whole("y = torch.ops.aten.floor_divide.default(n, 0.1)")),
    "197895-div": ("aten.div", whole("y = torch.ops.aten.div.Scalar_mode(n, 0.1, rounding_mode='floor')")),
    "198057": ("remainder", ["f = torch.ops.aten.full_like.default(x, inf)", "y = torch.ops.aten.remainder.Tensor(x, f)"]),
    # Powers of two are the same numbers in single and in double precision, so that the remainder is exact.
    "198057-large": ("remainder", whole("b = torch.ops.aten.mul.Tensor(n, 1180591620717411303424.0)", "y = torch.ops.aten.remainder.Scalar(b, 3.0)")),
    "198101": (
        "view.dtype",
        [
            "v = torch.ops.aten.view.dtype(q, torch.int32)",
            "m = torch.ops.aten.mul.Tensor(v, 2)",
            "s = torch.ops.aten.sub_.Tensor(m, -4)",
            "l = torch.ops.aten.slice.Tensor(q, 1, 2, 5)",
            "f = torch.ops.aten.fill_.Scalar(l, 2)",
            "z = torch.ops.aten.view.dtype(s, torch.int64)",
        ],
    ),
    "198133": ("erfinv", float64("y = torch.ops.aten.erfinv.default(n)", 1 - 1e-14)),
    "198134": ("acosh", float64("y = torch.ops.aten.acosh.default(n)", 1e200)),
    "198183": ("erf", ["n = torch.ops.aten.mul.Tensor(x, 1e-9)", "e = torch.ops.aten.erf.default(n)", "y = torch.ops.aten.mul.Tensor(e, 1e9)"]),
    "198183-atanh": ("atanh", ["n = torch.ops.aten.mul.Tensor(x, 1e-9)", "e = torch.ops.aten.atanh.default(n)", "y = torch.ops.aten.mul.Tensor(e, 1e9)"]),
    "198119": (
        "avg_pool2d_backward",
        [
            "i = torch.ops.aten.view.default(w, [1, 1, 64, 64])",
            "g = torch.ops.aten.ones.default([1, 1, 22, 22])",
            "y = torch.ops.aten.avg_pool2d_backward.default(g, i, [3, 3], [3, 3], [0, 0], True, True, None)",
        ],
    ),
    "191499": (
        "amin",
        [
            "a = torch.ops.aten.abs.default(x)",
            "b = torch.ops.aten.add.Tensor(a, 5.0)",
            "u = torch.ops.aten._to_copy.default(b, dtype=torch.uint8)",
            "y = torch.ops.aten.amin.default(u, [0])",
        ],
    ),
    "189799": (
        "reciprocal",
        [
            "a = torch.ops.aten.abs.default(x)",
            "h = torch.ops.aten.mul.Tensor(a, -0.01)",
            "c = torch.ops.aten.ceil.default(h)",
            "o = torch.ops.aten.zeros_like.default(c)",
            "s = torch.ops.aten.add.Tensor(c, o)",
            "y = torch.ops.aten.reciprocal.default(s)",
        ],
    ),
    "197089": ("std", ["n = torch.ops.aten.mul.Tensor(x, 1e-30)", "s = torch.ops.aten.std.correction(n)", "y = torch.ops.aten.mul.Tensor(s, 1e30)"]),
    "198081": (
        "aten.any",
        [
            "a = torch.ops.aten.abs.default(x)",
            "u = torch.ops.aten._to_copy.default(a, dtype=torch.uint8)",
            "z = torch.ops.aten.any.default(u)",
        ],
    ),
    "197108": (
        "var_mean",
        [
            "e = torch.ops.aten.slice.Tensor(x, 0, 0, 0)",
            "v = torch.ops.aten.var_mean.correction(e)",
            "y = v[1]",
        ],
    ),
    "133512": (
        "as_strided_copy",
        [
            "a = torch.ops.aten.add_.Tensor(strided, 1.0)",
            "y = torch.ops.aten.as_strided_copy.default(a, [3], [2])",
        ],
    ),
    # Eager raises an error, the compiled program gives a number.
    "185885": (
        "index_add",
        [
            "i = torch.ops.aten.full.default([2], -1, dtype=torch.int64)",
            "o = torch.ops.aten.ones.default([2, 64])",
            "y = torch.ops.aten.index_add.default(w, 0, i, o)",
        ],
    ),
    "193757": (
        "binary_cross_entropy",
        [
            "i = torch.ops.aten.sigmoid.default(x)",
            "a = torch.ops.aten.abs.default(x)",
            "t = torch.ops.aten.add.Tensor(a, 1.5)",
            "y = torch.ops.aten.binary_cross_entropy.default(i, t)",
        ],
    ),
    "175154": (
        "upsample_nearest2d",
        [
            "d = torch.ops.aten._to_copy.default(w, dtype=torch.float64)",
            "i = torch.ops.aten.view.default(d, [1, 1, 2048, 2])",
            "y = torch.ops.aten.upsample_nearest2d.vec(i, None, [1.3, 1.3])",
        ],
    ),
}


@pytest.mark.parametrize("report", REPORTS if os.environ.get("PYRITE_PROOFS") else ["197895"])
def test_a_public_report_buried_in_a_program_ends_in_a_proven_repro_of_its_operator(session, report):  # noqa: F811
    operator, lines = REPORTS[report]
    after = [] if lines[-1].startswith("z =") else ["z = torch.ops.aten.mul.Tensor(y, 2.0)"]
    body = "".join(f"        {line}\n" for line in [*lines, *after, "return (z, p15)"])
    head = 'class Repro(torch.nn.Module):\n    def forward(self, x : "f32[64]", w : "f32[64, 64]", q : "i64[4, 6]", strided : "f32[5][2]cpu"):'
    code, report, said = session.minify(head + bars.AROUND + body, "--backend", "torch:inductor", "--forward-only")
    if report.get("verdict") == "pass":
        # A torch that gets it right is accused of nothing; the one that is tested with does not.
        assert torch.__version__.split("+")[0] not in WRONG_IN, said
        return
    assert (code, report["proven"]) == (0, True), (report, said)
    calls = report["nodes_after"] - report["inputs_after"] - 1
    assert calls <= 3 and operator in (session.folder / "found" / "repro.py").read_text(), report
    assert session.plain()[0] == 1
