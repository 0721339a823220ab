# Lowering: cat two.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]", y : "f32[2, 4]"):
        out = torch.ops.aten.cat.default([x, y], 1)
        return (out,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[8] = input 1
#| buffer b2: f32[14]
#| input b0 f32[2, 3] stride [3, 1] offset 0
#| input b1 f32[2, 4] stride [4, 1] offset 0
#| loop cat
#|   axes 2, 3
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[3*i0 + i1]
#|     store f32 b2[7*i0 + i1] = v0
#| loop cat
#|   axes 2, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[4*i0 + i1]
#|     store f32 b2[3 + 7*i0 + i1] = v0
#| return [b2 f32[2, 7] stride [7, 1] offset 0]
