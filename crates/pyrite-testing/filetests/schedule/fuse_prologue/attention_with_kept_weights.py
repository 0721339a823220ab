# Prologues: weights that are returned have memory.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, q : "f32[4, 80, 16]", k : "f32[4, 16, 80]", v : "f32[4, 80, 16]"):
        s = torch.ops.aten.bmm.default(q, k)
        p = torch.ops.aten.exp.default(s)
        out = torch.ops.aten.bmm.default(p, v)
        return (out, p,)
# check: after:fuse-epilogue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[25600]
#| buffer b5: f32[5120]
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0
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
#|   link bmm_1: b5 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0)
#| return [b5 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120] = input 2
#| buffer b3: f32[25600]
#| buffer b4: f32[25600]
#| buffer b5: f32[5120]
#| input b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| input b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0
#| input b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 80, 80] stride [6400, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b1 f32[4, 16, 80] stride [1280, 80, 1] offset 0)
#|   link exp along i2 320 positions 80
#|     axes 4, 320, 25600
#|     rows
#|     phase i2
#|       v0 = load f32 b3[i2]
#|       v1 = exp v0
#|       store f32 b4[i2] = v1
#|   link bmm_1: b5 f32[4, 80, 16] stride [1280, 16, 1] offset 0 = aten.bmm.default(b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0, b2 f32[4, 80, 16] stride [1280, 16, 1] offset 0)
#| return [b5 f32[4, 80, 16] stride [1280, 16, 1] offset 0, b4 f32[4, 80, 80] stride [6400, 80, 1] offset 0]
