# Concatenation: a kernel behind a concatenation is split along its parts.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]", y : "f32[4, 8]"):
        a = torch.ops.aten.neg.default(x)
        c = torch.ops.aten.cat.default([a, y], 1)
        out = torch.ops.aten.exp.default(c)
        return (out,)
# check: after:lower
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32]
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop neg
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[8*i0 + i1] = v1
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b3[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b4[16*i0 + i1] = v1
#| return [b4 f32[4, 16] stride [16, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32]
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| buffer b6: f32[64]
#| buffer b7: f32[64]
#| buffer b8: f32[64]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop neg
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[8*i0 + i1] = v1
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b5[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b5[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b7[16*i0 + i1] = v1
#| loop exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b6[8 + 16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b8[8 + 16*i0 + i1] = v1
#| return [b4 f32[4, 16] stride [16, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32]
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| buffer b6: f32[64]
#| buffer b7: f32[64]
#| buffer b8: f32[64]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop neg_cat_exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[8*i0 + i1] = v1
#|     store f32 b5[16*i0 + i1] = v1
#|     v4 = exp v1
#|     store f32 b7[16*i0 + i1] = v4
#| loop cat_exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[8 + 16*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b8[8 + 16*i0 + i1] = v2
#| return [b4 f32[4, 16] stride [16, 1] offset 0]
