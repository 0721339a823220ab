# Fusion: a value that is returned is stored, and used from its register.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        b = torch.ops.aten.neg.default(a)
        return (a, b,)
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
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[4*i0 + i1]
#|     v1 = neg v0
#|     store f32 b2[4*i0 + i1] = v1
#| return [b1 f32[6, 4] stride [4, 1] offset 0, b2 f32[6, 4] stride [4, 1] offset 0]
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
#| return [b1 f32[6, 4] stride [4, 1] offset 0, b2 f32[6, 4] stride [4, 1] offset 0]
