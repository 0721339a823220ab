# Lowering: cumsum.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 5]"):
        out = torch.ops.aten.cumsum.default(x, 1)
        return (out,)
# check: after:lower
#| buffer b0: f32[15] = input 0
#| buffer b1: f32[15]
#| input b0 f32[3, 5] stride [5, 1] offset 0
#| loop cumsum
#|   axes 3, 5
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[5*i0 + i1]
#|     v1 = cast f64 v0
#|     v2 = before r0 f64
#|     v3 = add v2 v1
#|     v4 = cast f32 v3
#|     store f32 b1[5*i0 + i1] = v4
#|     r0 f64 = sum v1
#| return [b1 f32[3, 5] stride [5, 1] offset 0]
