# Concatenation: many parts are not split.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]"):
        c = torch.ops.aten.cat.default([x, x, x, x, x], 1)
        out = torch.ops.aten.exp.default(c)
        return (out,)
# check: after:lower
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[160]
#| buffer b2: f32[160]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[8 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[16 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[24 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[32 + 40*i0 + i1] = v0
#| loop exp
#|   axes 4, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[40*i0 + i1] = v1
#| return [b2 f32[4, 40] stride [40, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[160]
#| buffer b2: f32[160]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[8 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[16 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[24 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[32 + 40*i0 + i1] = v0
#| loop exp
#|   axes 4, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[40*i0 + i1] = v1
#| return [b2 f32[4, 40] stride [40, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[160]
#| buffer b2: f32[160]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[8 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[16 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[24 + 40*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b1[32 + 40*i0 + i1] = v0
#| loop exp
#|   axes 4, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[40*i0 + i1] = v1
#| return [b2 f32[4, 40] stride [40, 1] offset 0]
