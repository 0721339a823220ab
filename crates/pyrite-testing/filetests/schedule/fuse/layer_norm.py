# Fusion: statistics and normalisation share rows.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 40]", w : "f32[40]"):
        m = torch.ops.aten.mean.dim(x, [1], True)
        c = torch.ops.aten.sub.Tensor(x, m)
        q = torch.ops.aten.mul.Tensor(c, c)
        v = torch.ops.aten.mean.dim(q, [1], True)
        r = torch.ops.aten.rsqrt.default(v)
        n = torch.ops.aten.mul.Tensor(c, r)
        out = torch.ops.aten.mul.Tensor(n, w)
        return (out,)
# check: after:lower
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[40] = input 1
#| buffer b2: f32[6]
#| buffer b3: f32[240]
#| buffer b4: f32[240]
#| buffer b5: f32[6]
#| buffer b6: f32[6]
#| buffer b7: f32[240]
#| buffer b8: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| input b1 f32[40] stride [1] offset 0
#| loop mean
#|   axes 6, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     v1 = const f32 40.0
#|     v2 = div v0 v1
#|     store f32 b2[i0] = v2
#| loop sub
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[40*i0 + i1]
#|     v1 = load f32 b2[i0]
#|     v2 = sub v0 v1
#|     store f32 b3[40*i0 + i1] = v2
#| loop mul
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[40*i0 + i1]
#|     v1 = mul v0 v0
#|     store f32 b4[40*i0 + i1] = v1
#| loop mean_1
#|   axes 6, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b4[40*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     v1 = const f32 40.0
#|     v2 = div v0 v1
#|     store f32 b5[i0] = v2
#| loop rsqrt
#|   axes 6, 1
#|   rows i0
#|   phase
#|     v0 = load f32 b5[i0]
#|     v1 = rsqrt v0
#|     store f32 b6[i0] = v1
#| loop mul_1
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[40*i0 + i1]
#|     v1 = load f32 b6[i0]
#|     v2 = mul v0 v1
#|     store f32 b7[40*i0 + i1] = v2
#| loop mul_2
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b7[40*i0 + i1]
#|     v1 = load f32 b1[i1]
#|     v2 = mul v0 v1
#|     store f32 b8[40*i0 + i1] = v2
#| return [b8 f32[6, 40] stride [40, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[40] = input 1
#| buffer b2: f32[6]
#| buffer b3: f32[240]
#| buffer b4: f32[240]
#| buffer b5: f32[6]
#| buffer b6: f32[6]
#| buffer b7: f32[240]
#| buffer b8: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| input b1 f32[40] stride [1] offset 0
#| loop mean_sub_mul_mean_1_rsqrt_mul_1_mul_2
#|   axes 6, 40, 40, 40, 40, 1, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     v1 = const f32 40.0
#|     v2 = div v0 v1
#|     store f32 b2[i0] = v2
#|   phase i2
#|     v0 = load f32 b0[40*i0 + i2]
#|     v1 = load f32 b2[i0]
#|     v2 = sub v0 v1
#|     store f32 b3[40*i0 + i2] = v2
#|     v4 = mul v2 v2
#|     store f32 b4[40*i0 + i2] = v4
#|     r1 f32 = sum v4
#|   phase
#|     v0 = result r1
#|     v1 = const f32 40.0
#|     v2 = div v0 v1
#|     store f32 b5[i0] = v2
#|     v4 = rsqrt v2
#|     store f32 b6[i0] = v4
#|   phase i6
#|     v0 = load f32 b3[40*i0 + i6]
#|     v1 = load f32 b6[i0]
#|     v2 = mul v0 v1
#|     store f32 b7[40*i0 + i6] = v2
#|     v4 = load f32 b1[i6]
#|     v5 = mul v2 v4
#|     store f32 b8[40*i0 + i6] = v5
#| return [b8 f32[6, 40] stride [40, 1] offset 0]
