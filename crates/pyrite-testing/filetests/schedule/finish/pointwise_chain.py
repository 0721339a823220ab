# Finished kernels: a chain of pointwise operators is one kernel.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        b = torch.ops.aten.neg.default(a)
        out = torch.ops.aten.relu.default(b)
        return (out,)
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
# check: after:finish-kernels
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| buffer b3: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp_neg_relu
#|   axes 6, 24
#|   rows
#|   phase i1
#|     v0 = load f32 b0[i1]
#|     v1 = exp v0
#|     v2 = neg v1
#|     v3 = const f32 0.0
#|     v4 = lt v2 v3
#|     v5 = select v4 v3 v2
#|     store f32 b3[i1] = v5
#| return [b3 f32[6, 4] stride [4, 1] offset 0]
