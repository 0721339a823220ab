# Lowering: scatter add.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]", i : "i64[4]", s : "f32[4]"):
        out = torch.ops.aten.scatter_add.default(x, 0, i, s)
        return (out,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: i64[4] = input 1
#| buffer b2: f32[4] = input 2
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 i64[4] stride [1] offset 0
#| input b2 f32[4] stride [1] offset 0
#| loop scatter_add
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     store f32 b3[i0] = v0
#| loop scatter_add
#|   axes 4
#|   rows i0
#|   phase
#|     v0 = load f32 b2[i0]
#|     v1 = load i64 b1[i0]
#|     v2 = const i64 6
#|     v3 = const i64 0
#|     v4 = lt v1 v3
#|     v5 = select v4 v2 v1
#|     v6 = bounded v5 v2
#|     scatter-add f32 b3[0] at v6 = v0
#| return [b3 f32[6] stride [1] offset 0]
