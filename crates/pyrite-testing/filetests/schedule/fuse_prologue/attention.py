# Prologues: scores, softmax and values are one statement.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, q : "f32[4, 80, 16]", k : "f32[4, 16, 80]", v : "f32[4, 80, 16]"):
        s = torch.ops.aten.bmm.default(q, k)
        m = torch.ops.aten.amax.default(s, [-1], True)
        d = torch.ops.aten.sub.Tensor(s, m)
        e = torch.ops.aten.exp.default(d)
        t = torch.ops.aten.sum.dim_IntList(e, [-1], True)
        p = torch.ops.aten.div.Tensor(e, t)
        out = torch.ops.aten.bmm.default(p, v)
        return (out,)
# check: after:fuse-epilogue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[320]
#| buffer b5: f32[25600]
#| buffer b6: f32[25600]
#| buffer b7: f32[320]
#| buffer b8: f32[25600]
#| buffer b9: f32[5120]
#| buffer b10: f32[80] = scratch
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 80, 80] stride [6400, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0)
#|   link amax_sub_exp_sum_div along i1 320 positions 1
#|     axes 4, 320, 80, 80, 80, 80, 80
#|     rows i1
#|     phase i2
#|       v0 = load f32 b3[80*i1 + i2]
#|       r0 f32 = max v0
#|     phase i3
#|       v0 = load f32 b3[80*i1 + i3]
#|       v1 = result r0
#|       v2 = sub v0 v1
#|       v3 = exp v2
#|       store f32 b10[i3] = v3
#|       r1 f32 = sum v3
#|     phase i6
#|       v0 = load f32 b10[i6]
#|       v1 = result r1
#|       v2 = div v0 v1
#|       store f32 b8[80*i1 + i6] = v2
#| bmm
#|   link bmm_1: b9 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b8 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0)
#| return [b9 f32[4, 80, 16] stride [1280, 16, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[320]
#| buffer b5: f32[25600]
#| buffer b6: f32[25600]
#| buffer b7: f32[320]
#| buffer b8: f32[25600]
#| buffer b9: f32[5120]
#| buffer b10: f32[80] = scratch
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 80, 80] stride [6400, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0)
#|   link amax_sub_exp_sum_div along i1 320 positions 1
#|     axes 4, 320, 80, 80, 80, 80, 80
#|     rows i1
#|     phase i2
#|       v0 = load f32 b3[80*i1 + i2]
#|       r0 f32 = max v0
#|     phase i3
#|       v0 = load f32 b3[80*i1 + i3]
#|       v1 = result r0
#|       v2 = sub v0 v1
#|       v3 = exp v2
#|       store f32 b10[i3] = v3
#|       r1 f32 = sum v3
#|     phase i6
#|       v0 = load f32 b10[i6]
#|       v1 = result r1
#|       v2 = div v0 v1
#|       store f32 b8[80*i1 + i6] = v2
#|   link bmm_1: b9 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b8 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0)
#| return [b9 f32[4, 80, 16] stride [1280, 16, 1] offset 0]
