# Finished kernels: rows of different rank are split to match.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3, 4]"):
        a = torch.ops.aten.exp.default(x)
        v = torch.ops.aten.view.default(a, [6, 4])
        s = torch.ops.aten.sum.dim_IntList(v, [1])
        return (s,)
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[6]
#| input b0 f32[2, 3, 4] stride [12, 4, 1] offset 0
#| loop exp_sum
#|   axes 2, 3, 4, 4
#|   rows i0, i1
#|   phase i2
#|     v0 = load f32 b0[12*i0 + 4*i1 + i2]
#|     v1 = exp v0
#|     store f32 b1[12*i0 + 4*i1 + i2] = v1
#|     r0 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     store f32 b2[3*i0 + i1] = v0
#| return [b2 f32[6] stride [1] offset 0]
# check: after:finish-kernels
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[6]
#| input b0 f32[2, 3, 4] stride [12, 4, 1] offset 0
#| loop exp_sum
#|   axes 2, 6, 4, 4
#|   rows i1
#|   phase i2
#|     v0 = load f32 b0[4*i1 + i2]
#|     v1 = exp v0
#|     r0 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     store f32 b2[i1] = v0
#| return [b2 f32[6] stride [1] offset 0]
