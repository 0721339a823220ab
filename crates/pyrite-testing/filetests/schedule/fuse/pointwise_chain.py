# Fusion: a chain of pointwise operators is one kernel.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        b = torch.ops.aten.neg.default(a)
        out = torch.ops.aten.relu.default(b)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| buffer b3: f32[24]
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
#| loop relu
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[4*i0 + i1]
#|     v1 = const f32 0.0
#|     v2 = lt v0 v1
#|     v3 = select v2 v1 v0
#|     store f32 b3[4*i0 + i1] = v3
#| return [b3 f32[6, 4] stride [4, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| buffer b3: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp_neg_relu
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[4*i0 + i1] = v1
#|     v3 = neg v1
#|     store f32 b2[4*i0 + i1] = v3
#|     v5 = const f32 0.0
#|     v6 = lt v3 v5
#|     v7 = select v6 v5 v3
#|     store f32 b3[4*i0 + i1] = v7
#| return [b3 f32[6, 4] stride [4, 1] offset 0]
