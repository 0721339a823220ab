# Copies: a bmm writes where its result is copied to.
# test: after:lower
# test: after:elide-copy
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8, 40, 16]", k : "f32[8, 16, 24]"):
        m = torch.ops.aten.bmm.default(x, k)
        v = torch.ops.aten.view.default(m, [2, 4, 40, 24])
        p = torch.ops.aten.permute.default(v, [0, 2, 1, 3])
        out = torch.ops.aten.clone.default(p, memory_format = torch.contiguous_format)
        return (out,)
# check: after:lower
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[3072] = input 1
#| buffer b2: f32[7680]
#| buffer b3: f32[7680]
#| input b0 f32[8, 40, 16] stride [640, 16, 1] offset 0
#| input b1 f32[8, 16, 24] stride [384, 24, 1] offset 0
#| bmm
#|   link bmm: b2 f32[8, 40, 24] stride [960, 24, 1] offset 0 = aten.bmm.default(b0 f32[8, 40, 16] stride [640, 16, 1] offset 0, b1 f32[8, 16, 24] stride [384, 24, 1] offset 0)
#| loop clone
#|   axes 2, 40, 4, 24
#|   rows i0, i1, i2, i3
#|   phase
#|     v0 = load f32 b2[3840*i0 + 24*i1 + 960*i2 + i3]
#|     store f32 b3[3840*i0 + 96*i1 + 24*i2 + i3] = v0
#| return [b3 f32[2, 40, 4, 24] stride [3840, 96, 24, 1] offset 0]
# check: after:elide-copy
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[3072] = input 1
#| buffer b2: f32[7680]
#| buffer b3: f32[7680]
#| input b0 f32[8, 40, 16] stride [640, 16, 1] offset 0
#| input b1 f32[8, 16, 24] stride [384, 24, 1] offset 0
#| bmm
#|   link bmm: b3 f32[2, 4, 40, 24] stride [3840, 24, 96, 1] offset 0 = aten.bmm.default(b0 f32[8, 40, 16] stride [640, 16, 1] offset 0, b1 f32[8, 16, 24] stride [384, 24, 1] offset 0)
#| return [b3 f32[2, 40, 4, 24] stride [3840, 96, 24, 1] offset 0]
