# Fusion: a row that is broadcast is computed again or stays apart.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4]", y : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        out = torch.ops.aten.add.Tensor(y, a)
        return (out,)
# check: after:lower
#| buffer b0: f32[4] = input 0
#| buffer b1: f32[24] = input 1
#| buffer b2: f32[4]
#| buffer b3: f32[24]
#| input b0 f32[4] stride [1] offset 0
#| input b1 f32[6, 4] stride [4, 1] offset 0
#| loop exp
#|   axes 4
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     store f32 b2[i0] = v1
#| loop add
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[4*i0 + i1]
#|     v1 = load f32 b2[i1]
#|     v2 = add v0 v1
#|     store f32 b3[4*i0 + i1] = v2
#| return [b3 f32[6, 4] stride [4, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[4] = input 0
#| buffer b1: f32[24] = input 1
#| buffer b2: f32[4]
#| buffer b3: f32[24]
#| input b0 f32[4] stride [1] offset 0
#| input b1 f32[6, 4] stride [4, 1] offset 0
#| loop exp_add
#|   axes 4, 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     store f32 b2[i0] = v1
#|   phase i1
#|     v0 = load f32 b1[i0 + 4*i1]
#|     v1 = load f32 b2[i0]
#|     v2 = add v0 v1
#|     store f32 b3[i0 + 4*i1] = v2
#| return [b3 f32[6, 4] stride [4, 1] offset 0]
