# Prologues: one kernel before and one behind.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 32, 72]", y : "f32[4, 72, 80]"):
        e = torch.ops.aten.exp.default(x)
        m = torch.ops.aten.bmm.default(e, y)
        out = torch.ops.aten.relu.default(m)
        return (out,)
# check: after:fuse-epilogue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[9216]
#| buffer b3: f32[10240]
#| buffer b4: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| loop exp
#|   axes 4, 128, 9216
#|   rows
#|   phase i2
#|     v0 = load f32 b0[i2]
#|     v1 = exp v0
#|     store f32 b2[i2] = v1
#| bmm
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b2 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#|   link relu along i2 128 positions 80
#|     axes 4, 128, 10240
#|     rows
#|     phase i2
#|       v0 = load f32 b3[i2]
#|       v1 = const f32 0.0
#|       v2 = lt v0 v1
#|       v3 = select v2 v1 v0
#|       store f32 b4[i2] = v3
#| return [b4 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[9216]
#| buffer b3: f32[10240]
#| buffer b4: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| bmm
#|   link exp along i2 128 positions 72
#|     axes 4, 128, 9216
#|     rows
#|     phase i2
#|       v0 = load f32 b0[i2]
#|       v1 = exp v0
#|       store f32 b2[i2] = v1
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b2 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#|   link relu along i2 128 positions 80
#|     axes 4, 128, 10240
#|     rows
#|     phase i2
#|       v0 = load f32 b3[i2]
#|       v1 = const f32 0.0
#|       v2 = lt v0 v1
#|       v3 = select v2 v1 v0
#|       store f32 b4[i2] = v3
#| return [b4 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
