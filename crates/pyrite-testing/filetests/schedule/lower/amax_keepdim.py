# Lowering: amax keepdim.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 5]"):
        out = torch.ops.aten.amax.default(x, [-1], True)
        return (out,)
# check: after:lower
#| buffer b0: f32[15] = input 0
#| buffer b1: f32[3]
#| input b0 f32[3, 5] stride [5, 1] offset 0
#| loop amax
#|   axes 3, 5
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[5*i0 + i1]
#|     r0 f32 = max v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#| return [b1 f32[3, 1] stride [1, 1] offset 0]
