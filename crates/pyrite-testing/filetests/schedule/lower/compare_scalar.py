# Lowering: compare scalar.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "i64[7]"):
        out = torch.ops.aten.gt.Scalar(x, 3)
        return (out,)
# check: after:lower
#| buffer b0: i64[7] = input 0
#| buffer b1: b8[7]
#| input b0 i64[7] stride [1] offset 0
#| loop gt
#|   axes 7
#|   rows i0
#|   phase
#|     v0 = load i64 b0[i0]
#|     v1 = const i64 3
#|     v2 = gt v0 v1
#|     store b8 b1[i0] = v2
#| return [b1 b8[7] stride [1] offset 0]
