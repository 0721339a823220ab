# Lowering: sum columns.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 5]"):
        out = torch.ops.aten.sum.dim_IntList(x, [0])
        return (out,)
# check: after:lower
#| buffer b0: f32[15] = input 0
#| buffer b1: f32[5]
#| input b0 f32[3, 5] stride [5, 1] offset 0
#| loop sum
#|   axes 3, 5
#|   rows i1
#|   phase i0
#|     v0 = load f32 b0[5*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i1] = v0
#| return [b1 f32[5] stride [1] offset 0]
