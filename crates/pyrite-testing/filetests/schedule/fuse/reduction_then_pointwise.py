# Fusion: what follows a reduction runs in its rows.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        s = torch.ops.aten.sum.dim_IntList(x, [1])
        out = torch.ops.aten.exp.default(s)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop sum
#|   axes 6, 4
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[4*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#| loop exp
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b1[i0]
#|     v1 = exp v0
#|     store f32 b2[i0] = v1
#| return [b2 f32[6] stride [1] offset 0]
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop sum_exp
#|   axes 6, 4
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[4*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#|     v2 = exp v0
#|     store f32 b2[i0] = v2
#| return [b2 f32[6] stride [1] offset 0]
