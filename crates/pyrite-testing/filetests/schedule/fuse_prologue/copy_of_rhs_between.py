# Prologues: what fills the right operand runs before.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, q : "f32[4, 80, 16]", k : "f32[4, 16, 80]", v : "f32[4, 16, 80]"):
        s = torch.ops.aten.bmm.default(q, k)
        p = torch.ops.aten.exp.default(s)
        t = torch.ops.aten.permute.default(v, [0, 2, 1])
        n = torch.ops.aten.neg.default(t)
        out = torch.ops.aten.bmm.default(p, n)
        return (out,)
# check: after:fuse-epilogue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[25600]
#| buffer b5: f32[5120]
#| buffer b6: f32[5120]
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| loop neg
#|   axes 4, 5120, 64
#|   rows
#|   phase i1
#|     v0 = load f32 b2[i1]
#|     v1 = neg v0
#|     store f32 b5[i1] = v1
#| bmm
#|   link bmm: b3 f32[4, 80, 80] stride [6400, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0)
#|   link exp along i2 320 positions 80
#|     axes 4, 320, 25600
#|     rows
#|     phase i2
#|       v0 = load f32 b3[i2]
#|       v1 = exp v0
#|       store f32 b4[i2] = v1
#| bmm
#|   link bmm_1: b6 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b5 f32[4, 80, 16] stride [1280, 1, 80] offset 0)
#| return [b6 f32[4, 80, 16] stride [1280, 16, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[25600]
#| buffer b5: f32[5120]
#| buffer b6: f32[5120]
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| loop neg
#|   axes 4, 5120, 64
#|   rows
#|   phase i1
#|     v0 = load f32 b2[i1]
#|     v1 = neg v0
#|     store f32 b5[i1] = v1
#| bmm
#|   link bmm: b3 f32[4, 80, 80] stride [6400, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0)
#|   link exp along i2 320 positions 80
#|     axes 4, 320, 25600
#|     rows
#|     phase i2
#|       v0 = load f32 b3[i2]
#|       v1 = exp v0
#|       store f32 b4[i2] = v1
#|   link bmm_1: b6 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b5 f32[4, 80, 16] stride [1280, 1, 80] offset 0)
#| return [b6 f32[4, 80, 16] stride [1280, 16, 1] offset 0]
