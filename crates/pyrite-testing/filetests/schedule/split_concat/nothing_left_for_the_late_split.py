# Concatenation: kernels that were split before fusion are not split again.
# test: after:fuse
# test: after:split-concat-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 8]", y : "f32[64, 8]"):
        c = torch.ops.aten.cat.default([x, y], 1)
        exp = torch.ops.aten.exp.default(c)
        add = torch.ops.aten.add.Tensor(exp, c)
        return (add,)
# check: after:fuse
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[512] = input 1
#| buffer b2: f32[1024]
#| buffer b3: f32[1024]
#| buffer b4: f32[1024]
#| buffer b5: f32[1024]
#| buffer b6: f32[1024]
#| buffer b7: f32[1024]
#| buffer b8: f32[1024]
#| buffer b9: f32[1024]
#| buffer b10: f32[1024]
#| input b0 f32[64, 8] stride [8, 1] offset 0
#| input b1 f32[64, 8] stride [8, 1] offset 0
#| loop cat_exp_add
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b5[16*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b7[16*i0 + i1] = v2
#|     v4 = add v2 v0
#|     store f32 b9[16*i0 + i1] = v4
#| loop cat_exp_add
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[8 + 16*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b8[8 + 16*i0 + i1] = v2
#|     v4 = add v2 v0
#|     store f32 b10[8 + 16*i0 + i1] = v4
#| return [b4 f32[64, 16] stride [16, 1] offset 0]
# check: after:split-concat-late
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[512] = input 1
#| buffer b2: f32[1024]
#| buffer b3: f32[1024]
#| buffer b4: f32[1024]
#| buffer b5: f32[1024]
#| buffer b6: f32[1024]
#| buffer b7: f32[1024]
#| buffer b8: f32[1024]
#| buffer b9: f32[1024]
#| buffer b10: f32[1024]
#| input b0 f32[64, 8] stride [8, 1] offset 0
#| input b1 f32[64, 8] stride [8, 1] offset 0
#| loop cat_exp_add
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b5[16*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b7[16*i0 + i1] = v2
#|     v4 = add v2 v0
#|     store f32 b9[16*i0 + i1] = v4
#| loop cat_exp_add
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b6[8 + 16*i0 + i1] = v0
#|     v2 = exp v0
#|     store f32 b8[8 + 16*i0 + i1] = v2
#|     v4 = add v2 v0
#|     store f32 b10[8 + 16*i0 + i1] = v4
#| return [b4 f32[64, 16] stride [16, 1] offset 0]
