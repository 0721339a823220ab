# Concatenation: a reduction across parts needs the whole.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]", y : "f32[4, 8]"):
        c = torch.ops.aten.cat.default([x, y], 1)
        e = torch.ops.aten.exp.default(c)
        s = torch.ops.aten.sum.dim_IntList(e, [1])
        return (s,)
# check: after:lower
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[64]
#| buffer b3: f32[64]
#| buffer b4: f32[4]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b2[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b2[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[16*i0 + i1] = v1
#| loop sum
#|   axes 4, 16
#|   rows i0
#|   phase i1
#|     v0 = load f32 b3[16*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b4[i0] = v0
#| return [b4 f32[4] stride [1] offset 0]
# check: after:split-concat
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[64]
#| buffer b3: f32[64]
#| buffer b4: f32[4]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b2[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b2[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[16*i0 + i1] = v1
#| loop sum
#|   axes 4, 16
#|   rows i0
#|   phase i1
#|     v0 = load f32 b3[16*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b4[i0] = v0
#| return [b4 f32[4] stride [1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[32] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[64]
#| buffer b3: f32[64]
#| buffer b4: f32[4]
#| input b0 f32[4, 8] stride [8, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b2[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b2[8 + 16*i0 + i1] = v0
#| loop exp_sum
#|   axes 4, 16, 16
#|   rows i0
#|   phase i1
#|     v0 = load f32 b2[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[16*i0 + i1] = v1
#|     r0 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     store f32 b4[i0] = v0
#| return [b4 f32[4] stride [1] offset 0]
