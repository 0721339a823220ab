# Epilogues: a kernel is the epilogue of a bmm.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 32, 72]", y : "f32[4, 72, 80]"):
        m = torch.ops.aten.bmm.default(x, y)
        out = torch.ops.aten.mul.Tensor(m, 0.5)
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[10240]
#| buffer b3: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| bmm
#|   link bmm: b2 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| loop mul
#|   axes 4, 128, 10240
#|   rows
#|   phase i2
#|     v0 = load f32 b2[i2]
#|     v1 = const f32 0.5
#|     v2 = mul v0 v1
#|     store f32 b3[i2] = v2
#| return [b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[10240]
#| buffer b3: f32[10240]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| bmm
#|   link bmm: b2 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#|   link mul along i2 128 positions 80
#|     axes 4, 128, 10240
#|     rows
#|     phase i2
#|       v0 = load f32 b2[i2]
#|       v1 = const f32 0.5
#|       v2 = mul v0 v1
#|       store f32 b3[i2] = v2
#| return [b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0]
