# Copy elision: a bmm reads its left operand from the source of a copy.
# test: after:lower
# test: after:elide-copy
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 4, 16]", w : "f32[4, 16, 32]"):
        permute = torch.ops.aten.permute.default(x, [1, 0, 2])
        clone = torch.ops.aten.clone.default(permute, memory_format = torch.contiguous_format)
        bmm = torch.ops.aten.bmm.default(clone, w)
        return (bmm,)
# check: after:lower
#| buffer b0: f32[4096] = input 0
#| buffer b1: f32[2048] = input 1
#| buffer b2: f32[4096]
#| buffer b3: f32[8192]
#| input b0 f32[64, 4, 16] stride [64, 16, 1] offset 0
#| input b1 f32[4, 16, 32] stride [512, 32, 1] offset 0
#| loop clone
#|   axes 4, 64, 16
#|   rows i0, i1, i2
#|   phase
#|     v0 = load f32 b0[16*i0 + 64*i1 + i2]
#|     store f32 b2[1024*i0 + 16*i1 + i2] = v0
#| bmm
#|   link bmm: b3 f32[4, 64, 32] stride [2048, 32, 1] offset 0 = aten.bmm.default(b2 f32[4, 64, 16] stride [1024, 16, 1] offset 0, b1 f32[4, 16, 32] stride [512, 32, 1] offset 0)
#| return [b3 f32[4, 64, 32] stride [2048, 32, 1] offset 0]
# check: after:elide-copy
#| buffer b0: f32[4096] = input 0
#| buffer b1: f32[2048] = input 1
#| buffer b2: f32[4096]
#| buffer b3: f32[8192]
#| input b0 f32[64, 4, 16] stride [64, 16, 1] offset 0
#| input b1 f32[4, 16, 32] stride [512, 32, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 64, 32] stride [2048, 32, 1] offset 0 = aten.bmm.default(b0 f32[4, 64, 16] stride [16, 64, 1] offset 0, b1 f32[4, 16, 32] stride [512, 32, 1] offset 0)
#| return [b3 f32[4, 64, 32] stride [2048, 32, 1] offset 0]
