# Lowering: where.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, c : "b8[3]", x : "f32[3]", y : "f32[3]"):
        out = torch.ops.aten.where.self(c, x, y)
        return (out,)
# check: after:lower
#| buffer b0: b8[3] = input 0
#| buffer b1: f32[3] = input 1
#| buffer b2: f32[3] = input 2
#| buffer b3: f32[3]
#| input b0 b8[3] stride [1] offset 0
#| input b1 f32[3] stride [1] offset 0
#| input b2 f32[3] stride [1] offset 0
#| loop where
#|   axes 3
#|   rows i0
#|   phase
#|     v0 = load b8 b0[i0]
#|     v1 = load f32 b1[i0]
#|     v2 = load f32 b2[i0]
#|     v3 = select v0 v1 v2
#|     store f32 b3[i0] = v3
#| return [b3 f32[3] stride [1] offset 0]
