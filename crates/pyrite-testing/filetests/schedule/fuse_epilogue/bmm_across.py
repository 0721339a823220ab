# Epilogues: a sum over matrices waits for the bmm.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 32, 72]", y : "f32[4, 72, 80]"):
        m = torch.ops.aten.bmm.default(x, y)
        out = torch.ops.aten.sum.dim_IntList(m, [0])
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[10240]
#| buffer b3: f32[2560]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| bmm
#|   link bmm: b2 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| loop sum
#|   axes 4, 32, 2560
#|   rows i2
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b2[2560*i0 + i2]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b3[i2] = v0
#| return [b3 f32[32, 80] stride [80, 1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[10240]
#| buffer b3: f32[2560]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| bmm
#|   link bmm: b2 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| loop sum
#|   axes 4, 32, 2560
#|   rows i2
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b2[2560*i0 + i2]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b3[i2] = v0
#| return [b3 f32[32, 80] stride [80, 1] offset 0]
