# Finished kernels: a softmax is one kernel of phases over its rows.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 40]"):
        m = torch.ops.aten.amax.default(x, [1], True)
        s = torch.ops.aten.sub.Tensor(x, m)
        e = torch.ops.aten.exp.default(s)
        t = torch.ops.aten.sum.dim_IntList(e, [1], True)
        out = torch.ops.aten.div.Tensor(e, t)
        return (out,)
# check: after:fuse
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[240]
#| buffer b3: f32[240]
#| buffer b4: f32[6]
#| buffer b5: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop amax_sub_exp_sum_div
#|   axes 6, 40, 40, 40, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = max v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#|   phase i2
#|     v0 = load f32 b0[40*i0 + i2]
#|     v1 = load f32 b1[i0]
#|     v2 = sub v0 v1
#|     store f32 b2[40*i0 + i2] = v2
#|     v4 = exp v2
#|     store f32 b3[40*i0 + i2] = v4
#|     r1 f32 = sum v4
#|   phase
#|     v0 = result r1
#|     store f32 b4[i0] = v0
#|   phase i5
#|     v0 = load f32 b3[40*i0 + i5]
#|     v1 = load f32 b4[i0]
#|     v2 = div v0 v1
#|     store f32 b5[40*i0 + i5] = v2
#| return [b5 f32[6, 40] stride [40, 1] offset 0]
# check: after:finish-kernels
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[240]
#| buffer b3: f32[240]
#| buffer b4: f32[6]
#| buffer b5: f32[240]
#| buffer b6: f32[40] = scratch
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop amax_sub_exp_sum_div
#|   axes 6, 40, 40, 40, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = max v0
#|   phase i2
#|     v0 = load f32 b0[40*i0 + i2]
#|     v1 = result r0
#|     v2 = sub v0 v1
#|     v3 = exp v2
#|     store f32 b6[i2] = v3
#|     r1 f32 = sum v3
#|   phase i5
#|     v0 = load f32 b6[i5]
#|     v1 = result r1
#|     v2 = div v0 v1
#|     store f32 b5[40*i0 + i5] = v2
#| return [b5 f32[6, 40] stride [40, 1] offset 0]
