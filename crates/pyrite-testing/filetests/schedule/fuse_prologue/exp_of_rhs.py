# Prologues: a kernel that fills the right operand is none.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 32, 72]", y : "f32[4, 72, 80]"):
        e = torch.ops.aten.exp.default(y)
        out = torch.ops.aten.bmm.default(x, e)
        return (out,)
# check: after:fuse-epilogue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[23040]
#| buffer b3: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| loop exp
#|   axes 4, 288, 23040
#|   rows
#|   phase i2
#|     v0 = load f32 b1[i2]
#|     v1 = exp v0
#|     store f32 b2[i2] = v1
#| bmm
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b2 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| return [b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[23040]
#| buffer b3: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| loop exp
#|   axes 4, 288, 23040
#|   rows
#|   phase i2
#|     v0 = load f32 b1[i2]
#|     v1 = exp v0
#|     store f32 b2[i2] = v1
#| bmm
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b2 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| return [b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
