# Concatenation: what only split kernels read is split, too.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 16]", y : "f32[4, 8]", z : "f32[4, 8]"):
        c = torch.ops.aten.cat.default([y, z], 1)
        e = torch.ops.aten.exp.default(x)
        out = torch.ops.aten.mul.Tensor(c, e)
        return (out,)
# check: after:lower
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32] = input 2
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| input b0 f32[4, 16] stride [16, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| input b2 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b3[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b4[16*i0 + i1] = v1
#| loop mul
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[16*i0 + i1]
#|     v1 = load f32 b4[16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b5[16*i0 + i1] = v2
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32] = input 2
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| buffer b6: f32[64]
#| buffer b7: f32[64]
#| buffer b8: f32[64]
#| buffer b9: f32[64]
#| buffer b10: f32[64]
#| buffer b11: f32[64]
#| input b0 f32[4, 16] stride [16, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| input b2 f32[4, 8] stride [8, 1] offset 0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b7[8 + 16*i0 + i1] = v0
#| loop exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b8[16*i0 + i1] = v1
#| loop exp
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8 + 16*i0 + i1]
#|     v1 = exp v0
#|     store f32 b9[8 + 16*i0 + i1] = v1
#| loop mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b6[16*i0 + i1]
#|     v1 = load f32 b8[16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b10[16*i0 + i1] = v2
#| loop mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b7[8 + 16*i0 + i1]
#|     v1 = load f32 b9[8 + 16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b11[8 + 16*i0 + i1] = v2
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[32] = input 2
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| buffer b6: f32[64]
#| buffer b7: f32[64]
#| buffer b8: f32[64]
#| buffer b9: f32[64]
#| buffer b10: f32[64]
#| buffer b11: f32[64]
#| input b0 f32[4, 16] stride [16, 1] offset 0
#| input b1 f32[4, 8] stride [8, 1] offset 0
#| input b2 f32[4, 8] stride [8, 1] offset 0
#| loop cat_exp_mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[16*i0 + i1] = v0
#|     v2 = load f32 b0[16*i0 + i1]
#|     v3 = exp v2
#|     store f32 b8[16*i0 + i1] = v3
#|     v5 = mul v0 v3
#|     store f32 b10[16*i0 + i1] = v5
#| loop cat_exp_mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b7[8 + 16*i0 + i1] = v0
#|     v2 = load f32 b0[8 + 16*i0 + i1]
#|     v3 = exp v2
#|     store f32 b9[8 + 16*i0 + i1] = v3
#|     v5 = mul v0 v3
#|     store f32 b11[8 + 16*i0 + i1] = v5
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
