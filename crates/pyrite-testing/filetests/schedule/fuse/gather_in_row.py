# Fusion: a gather within the row reads what the row wrote.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]", i : "i64[6, 1]"):
        e = torch.ops.aten.exp.default(x)
        g = torch.ops.aten.gather.default(e, 1, i)
        out = torch.ops.aten.neg.default(g)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: i64[6] = input 1
#| buffer b2: f32[24]
#| buffer b3: f32[6]
#| buffer b4: f32[6]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| input b1 i64[6, 1] stride [1, 1] offset 0
#| loop exp
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[4*i0 + i1] = v1
#| loop gather
#|   axes 6, 1
#|   rows i0
#|   phase
#|     v0 = load i64 b1[i0]
#|     v1 = const i64 4
#|     v2 = const i64 0
#|     v3 = lt v0 v2
#|     v4 = select v3 v1 v0
#|     v5 = bounded v4 v1
#|     v6 = gather f32 b2[4*i0] at v5
#|     store f32 b3[i0] = v6
#| loop neg
#|   axes 6, 1
#|   rows i0
#|   phase
#|     v0 = load f32 b3[i0]
#|     v1 = neg v0
#|     store f32 b4[i0] = v1
#| return [b4 f32[6, 1] stride [1, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: i64[6] = input 1
#| buffer b2: f32[24]
#| buffer b3: f32[6]
#| buffer b4: f32[6]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| input b1 i64[6, 1] stride [1, 1] offset 0
#| loop exp_gather_neg
#|   axes 6, 4, 1, 1
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[4*i0 + i1] = v1
#|   phase
#|     v0 = load i64 b1[i0]
#|     v1 = const i64 4
#|     v2 = const i64 0
#|     v3 = lt v0 v2
#|     v4 = select v3 v1 v0
#|     v5 = bounded v4 v1
#|     v6 = gather f32 b2[4*i0] at v5
#|     store f32 b3[i0] = v6
#|     v8 = neg v6
#|     store f32 b4[i0] = v8
#| return [b4 f32[6, 1] stride [1, 1] offset 0]
