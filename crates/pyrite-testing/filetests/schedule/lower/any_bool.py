# Lowering: any bool.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "b8[3, 5]"):
        out = torch.ops.aten.any.dim(x, 1)
        return (out,)
# check: after:lower
#| buffer b0: b8[15] = input 0
#| buffer b1: b8[3]
#| input b0 b8[3, 5] stride [5, 1] offset 0
#| loop any
#|   axes 3, 5
#|   rows i0
#|   phase i1
#|     v0 = load b8 b0[5*i0 + i1]
#|     r0 bool = any v0
#|   phase
#|     v0 = result r0
#|     store b8 b1[i0] = v0
#| return [b1 b8[3] stride [1] offset 0]
