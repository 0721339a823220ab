# Copies: a copy that a kernel reads is made.
# test: after:lower
# test: after:elide-copy
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 40, 4, 16]", k : "f32[8, 16, 40]"):
        p = torch.ops.aten.permute.default(x, [0, 2, 1, 3])
        c = torch.ops.aten.clone.default(p, memory_format = torch.contiguous_format)
        v = torch.ops.aten.view.default(c, [8, 40, 16])
        b = torch.ops.aten.bmm.default(v, k)
        out = torch.ops.aten.exp.default(c)
        return (b, out,)
# check: after:lower
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[12800]
#| buffer b4: f32[5120]
#| input b0 f32[2, 40, 4, 16] stride [2560, 64, 16, 1] offset 0
#| input b1 f32[8, 16, 40] stride [640, 40, 1] offset 0
#| loop clone
#|   axes 2, 4, 40, 16
#|   rows i0, i1, i2, i3
#|   phase
#|     v0 = load f32 b0[2560*i0 + 16*i1 + 64*i2 + i3]
#|     store f32 b2[2560*i0 + 640*i1 + 16*i2 + i3] = v0
#| bmm
#|   link bmm: b3 f32[8, 40, 40] stride [1600, 40, 1] offset 0 = aten.bmm.default(b2 f32[8, 40, 16] stride [640, 16, 1] offset 0, b1 f32[8, 16, 40] stride [640, 40, 1] offset 0)
#| loop exp
#|   axes 2, 4, 40, 16
#|   rows i0, i1, i2, i3
#|   phase
#|     v0 = load f32 b2[2560*i0 + 640*i1 + 16*i2 + i3]
#|     v1 = exp v0
#|     store f32 b4[2560*i0 + 640*i1 + 16*i2 + i3] = v1
#| return [b3 f32[8, 40, 40] stride [1600, 40, 1] offset 0, b4 f32[2, 4, 40, 16] stride [2560, 640, 16, 1] offset 0]
# check: after:elide-copy
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[5120] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[12800]
#| buffer b4: f32[5120]
#| input b0 f32[2, 40, 4, 16] stride [2560, 64, 16, 1] offset 0
#| input b1 f32[8, 16, 40] stride [640, 40, 1] offset 0
#| loop clone
#|   axes 2, 4, 40, 16
#|   rows i0, i1, i2, i3
#|   phase
#|     v0 = load f32 b0[2560*i0 + 16*i1 + 64*i2 + i3]
#|     store f32 b2[2560*i0 + 640*i1 + 16*i2 + i3] = v0
#| bmm
#|   link bmm: b3 f32[8, 40, 40] stride [1600, 40, 1] offset 0 = aten.bmm.default(b2 f32[8, 40, 16] stride [640, 16, 1] offset 0, b1 f32[8, 16, 40] stride [640, 40, 1] offset 0)
#| loop exp
#|   axes 2, 4, 40, 16
#|   rows i0, i1, i2, i3
#|   phase
#|     v0 = load f32 b2[2560*i0 + 640*i1 + 16*i2 + i3]
#|     v1 = exp v0
#|     store f32 b4[2560*i0 + 640*i1 + 16*i2 + i3] = v1
#| return [b3 f32[8, 40, 40] stride [1600, 40, 1] offset 0, b4 f32[2, 4, 40, 16] stride [2560, 640, 16, 1] offset 0]
