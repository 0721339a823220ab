# Concatenation: a rotary embedding is one kernel.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 16]", s : "f32[4, 16]"):
        l = torch.ops.aten.slice.Tensor(x, 1, 0, 8)
        h = torch.ops.aten.slice.Tensor(x, 1, 8, 16)
        n = torch.ops.aten.neg.default(h)
        c = torch.ops.aten.cat.default([n, l], 1)
        m = torch.ops.aten.mul.Tensor(c, s)
        out = torch.ops.aten.add.Tensor(m, x)
        return (out,)
# check: after:lower
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[64] = input 1
#| buffer b2: f32[32]
#| buffer b3: f32[64]
#| buffer b4: f32[64]
#| buffer b5: f32[64]
#| input b0 f32[4, 16] stride [16, 1] offset 0
#| input b1 f32[4, 16] stride [16, 1] offset 0
#| loop neg
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8 + 16*i0 + i1]
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
#|     v0 = load f32 b0[16*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| loop mul
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[16*i0 + i1]
#|     v1 = load f32 b1[16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b4[16*i0 + i1] = v2
#| loop add
#|   axes 4, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b4[16*i0 + i1]
#|     v1 = load f32 b0[16*i0 + i1]
#|     v2 = add v0 v1
#|     store f32 b5[16*i0 + i1] = v2
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[64] = input 1
#| buffer b2: f32[32]
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
#| input b1 f32[4, 16] stride [16, 1] offset 0
#| loop neg
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8 + 16*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[8*i0 + i1] = v1
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[8*i0 + i1]
#|     store f32 b6[16*i0 + i1] = v0
#| loop cat
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     store f32 b7[8 + 16*i0 + i1] = v0
#| loop mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b6[16*i0 + i1]
#|     v1 = load f32 b1[16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b8[16*i0 + i1] = v2
#| loop mul
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b7[8 + 16*i0 + i1]
#|     v1 = load f32 b1[8 + 16*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b9[8 + 16*i0 + i1] = v2
#| loop add
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b8[16*i0 + i1]
#|     v1 = load f32 b0[16*i0 + i1]
#|     v2 = add v0 v1
#|     store f32 b10[16*i0 + i1] = v2
#| loop add
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b9[8 + 16*i0 + i1]
#|     v1 = load f32 b0[8 + 16*i0 + i1]
#|     v2 = add v0 v1
#|     store f32 b11[8 + 16*i0 + i1] = v2
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[64] = input 1
#| buffer b2: f32[32]
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
#| input b1 f32[4, 16] stride [16, 1] offset 0
#| loop neg_cat_mul_add_cat_mul_add
#|   axes 4, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8 + 16*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[8*i0 + i1] = v1
#|     store f32 b6[16*i0 + i1] = v1
#|     v4 = load f32 b1[16*i0 + i1]
#|     v5 = mul v1 v4
#|     store f32 b8[16*i0 + i1] = v5
#|     v7 = load f32 b0[16*i0 + i1]
#|     v8 = add v5 v7
#|     store f32 b10[16*i0 + i1] = v8
#|     store f32 b7[8 + 16*i0 + i1] = v7
#|     v11 = load f32 b1[8 + 16*i0 + i1]
#|     v12 = mul v7 v11
#|     store f32 b9[8 + 16*i0 + i1] = v12
#|     v14 = add v12 v0
#|     store f32 b11[8 + 16*i0 + i1] = v14
#| return [b5 f32[4, 16] stride [16, 1] offset 0]
