# Concatenation: parts of different sizes.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]", y : "f32[4, 24]"):
        c = torch.ops.aten.cat.default([x, y], 1)
        out = torch.ops.aten.exp.default(c)
        return (out,)
# check: after:lower
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[96] = input 1
#| buffer b2: f32[128]
#| buffer b3: f32[128]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 24] stride [24, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b2[32*i0 + i1] = v0
#| loop cat
#|   axes 4, 24
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[24*i0 + i1]
#|     store f32 b2[8 + 32*i0 + i1] = v0
#| loop exp
#|   axes 4, 32
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[32*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[32*i0 + i1] = v1
#| return [b3 f32[4, 32] stride [32, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[96] = input 1
#| buffer b2: f32[128]
#| buffer b3: f32[128]
#| buffer b4: f32[128]
#| buffer b5: f32[128]
#| buffer b6: f32[128]
#| buffer b7: f32[128]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 24] stride [24, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b4[32*i0 + i1] = v0
#| loop cat
#|   axes 4, 24
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[24*i0 + i1]
#|     store f32 b5[8 + 32*i0 + i1] = v0
#| loop exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b4[32*i0 + i1]
#|     v1 = exp v0
#|     store f32 b6[32*i0 + i1] = v1
#| loop exp
#|   axes 4, 24
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b5[8 + 32*i0 + i1]
#|     v1 = exp v0
#|     store f32 b7[8 + 32*i0 + i1] = v1
#| return [b3 f32[4, 32] stride [32, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[96] = input 1
#| buffer b2: f32[128]
#| buffer b3: f32[128]
#| buffer b4: f32[128]
#| buffer b5: f32[128]
#| buffer b6: f32[128]
#| buffer b7: f32[128]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 24] stride [24, 1] offset 0
#| loop cat_exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b4[32*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b6[32*i0 + i1] = v2
#| loop cat_exp
#|   axes 4, 24
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[24*i0 + i1]
#|     store f32 b5[8 + 32*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b7[8 + 32*i0 + i1] = v2
#| return [b3 f32[4, 32] stride [32, 1] offset 0]
