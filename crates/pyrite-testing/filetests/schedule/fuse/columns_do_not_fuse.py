# Fusion: a reduction over other rows ends a kernel.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 40]"):
        a = torch.ops.aten.exp.default(x)
        s = torch.ops.aten.sum.dim_IntList(a, [0], True)
        out = torch.ops.aten.sub.Tensor(a, s)
        return (out,)
# check: after:lower
#| buffer b0: f32[2560] = input 0
#| buffer b1: f32[2560]
#| buffer b2: f32[40]
#| buffer b3: f32[2560]
#| input b0 f32[64, 40] stride [40, 1] offset 0
#| loop exp
#|   axes 64, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[40*i0 + i1] = v1
#| loop sum
#|   axes 64, 40
#|   rows i1
#|   phase i0
#|     v0 = load f32 b1[40*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b2[i1] = v0
#| loop sub
#|   axes 64, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = load f32 b2[i1]
#|     v2 = sub v0 v1
#|     store f32 b3[40*i0 + i1] = v2
#| return [b3 f32[64, 40] stride [40, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[2560] = input 0
#| buffer b1: f32[2560]
#| buffer b2: f32[40]
#| buffer b3: f32[2560]
#| input b0 f32[64, 40] stride [40, 1] offset 0
#| loop exp_sum_sub
#|   axes 64, 40, 64, 64
#|   rows i1
#|   phase i0
#|     v0 = load f32 b0[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[40*i0 + i1] = v1
#|     r0 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     store f32 b2[i1] = v0
#|   phase i3
#|     v0 = load f32 b1[i1 + 40*i3]
#|     v1 = load f32 b2[i1]
#|     v2 = sub v0 v1
#|     store f32 b3[i1 + 40*i3] = v2
#| return [b3 f32[64, 40] stride [40, 1] offset 0]
