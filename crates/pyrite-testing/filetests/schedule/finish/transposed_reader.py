# Finished kernels: a reader in another order takes the rows of the writer.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        p = torch.ops.aten.permute.default(a, [1, 0])
        out = torch.ops.aten.neg.default(p)
        return (out,)
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
# check: after:finish-kernels
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp_neg
#|   axes 6, 24
#|   rows
#|   phase i1
#|     v0 = load f32 b0[i1]
#|     v1 = exp v0
#|     v2 = neg v1
#|     store f32 b2[i1] = v2
#| return [b2 f32[4, 6] stride [1, 4] offset 0]
