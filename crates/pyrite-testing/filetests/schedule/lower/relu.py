# Lowering: relu.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 4]"):
        out = torch.ops.aten.relu.default(x)
        return (out,)
# check: after:lower
#| buffer b0: f32[12] = input 0
#| buffer b1: f32[12]
#| input b0 f32[3, 4] stride [4, 1] offset 0
#| loop relu
#|   axes 3, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = const f32 0.0
#|     v2 = lt v0 v1
#|     v3 = select v2 v1 v0
#|     store f32 b1[4*i0 + i1] = v3
#| return [b1 f32[3, 4] stride [4, 1] offset 0]
