# Fusion: a comparison stays in a register.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]", y : "f32[6]"):
        c = torch.ops.aten.gt.Tensor(x, y)
        out = torch.ops.aten.where.self(c, x, y)
        return (out,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6] = input 1
#| buffer b2: b8[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[6] stride [1] offset 0
#| loop gt
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = load f32 b1[i0]
#|     v2 = gt v0 v1
#|     store b8 b2[i0] = v2
#| loop where
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load b8 b2[i0]
#|     v1 = load f32 b0[i0]
#|     v2 = load f32 b1[i0]
#|     v3 = select v0 v1 v2
#|     store f32 b3[i0] = v3
#| return [b3 f32[6] stride [1] offset 0]
# check: after:fuse
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6] = input 1
#| buffer b2: b8[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[6] stride [1] offset 0
#| loop gt_where
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = load f32 b1[i0]
#|     v2 = gt v0 v1
#|     store b8 b2[i0] = v2
#|     v4 = select v2 v0 v1
#|     store f32 b3[i0] = v4
#| return [b3 f32[6] stride [1] offset 0]
