# Lowering: gather.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]", i : "i64[2, 4]"):
        out = torch.ops.aten.gather.default(x, 0, i)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: i64[8] = input 1
#| buffer b2: f32[8]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| input b1 i64[2, 4] stride [4, 1] offset 0
#| loop gather
#|   axes 2, 4
#|   rows i0, i1
#|   phase
#|     v0 = load i64 b1[4*i0 + i1]
#|     v1 = const i64 6
#|     v2 = const i64 0
#|     v3 = lt v0 v2
#|     v4 = select v3 v1 v0
#|     v5 = bounded v4 v1
#|     v6 = const i64 4
#|     v7 = mul v5 v6
#|     v8 = gather f32 b0[i1] at v7
#|     store f32 b2[4*i0 + i1] = v8
#| return [b2 f32[2, 4] stride [4, 1] offset 0]
