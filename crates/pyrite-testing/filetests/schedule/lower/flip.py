# Lowering: flip.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[5]"):
        out = torch.ops.aten.flip.default(x, [0])
        return (out,)
# check: after:lower
#| buffer b0: f32[5] = input 0
#| buffer b1: f32[5]
#| input b0 f32[5] stride [1] offset 0
#| loop flip
#|   axes 5
#|   rows i0
#|   phase
#|     v0 = load f32 b0[4 + -1*i0]
#|     store f32 b1[i0] = v0
#| return [b1 f32[5] stride [1] offset 0]
