# Lowering: sum all.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f64[3, 5]"):
        out = torch.ops.aten.sum.default(x)
        return (out,)
# check: after:lower
#| buffer b0: f64[15] = input 0
#| buffer b1: f64[1]
#| input b0 f64[3, 5] stride [5, 1] offset 0
#| loop sum
#|   axes 3, 5
#|   rows
#|   phase i0, i1
#|     v0 = load f64 b0[5*i0 + i1]
#|     r0 f64 = sum v0
#|   phase
#|     v0 = result r0
#|     store f64 b1[0] = v0
#| return [b1 f64[] stride [] offset 0]
