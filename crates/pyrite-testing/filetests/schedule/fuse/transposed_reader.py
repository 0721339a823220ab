# Fusion: a reader in another order takes the rows of the writer.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        p = torch.ops.aten.permute.default(a, [1, 0])
        out = torch.ops.aten.neg.default(p)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[4*i0 + i1] = v1
#| loop neg
#|   axes 4, 6
#|   rows i1, i0
#|   phase
#|     v0 = load f32 b1[i0 + 4*i1]
#|     v1 = neg v0
#|     store f32 b2[i0 + 4*i1] = v1
#| return [b2 f32[4, 6] stride [1, 4] offset 0]
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp_neg
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[4*i0 + i1] = v1
#|     v3 = neg v1
#|     store f32 b2[4*i0 + i1] = v3
#| return [b2 f32[4, 6] stride [1, 4] offset 0]
