# Finished kernels: values in between are not stored.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]"):
        a = torch.ops.aten.exp.default(x)
        b = torch.ops.aten.neg.default(a)
        c = torch.ops.aten.sin.default(b)
        return (c,)
# check: after:fuse
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| loop exp_neg_sin
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     store f32 b1[i0] = v1
#|     v3 = neg v1
#|     store f32 b2[i0] = v3
#|     v5 = sin v3
#|     store f32 b3[i0] = v5
#| return [b3 f32[6] stride [1] offset 0]
# check: after:finish-kernels
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| loop exp_neg_sin
#|   axes 6
#|   rows
#|   phase i0
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     v2 = neg v1
#|     v3 = sin v2
#|     store f32 b3[i0] = v3
#| return [b3 f32[6] stride [1] offset 0]
