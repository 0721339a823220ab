# Memory: a row is written over when it was read.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 40]"):
        a = torch.ops.aten.sort.default(x)
        g = a[0]
        m = torch.ops.aten.amax.default(g, [1], True)
        out = torch.ops.aten.sub.Tensor(g, m)
        return (out,)
# check: after:reuse-buffers
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[240]
#| buffer b2: i64[240]
#| buffer b3: f32[6]
#| buffer b4: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| call sort: [b1 f32[6, 40] stride [40, 1] offset 0, b2 i64[6, 40] stride [40, 1] offset 0] = aten.sort.default(b0 f32[6, 40] stride [40, 1] offset 0, size -1, False)
#|   free b0, b2
#| loop amax_sub
#|   axes 6, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b1[40*i0 + i1]
#|     r0 f32 = max v0
#|   phase i2
#|     v0 = load f32 b1[40*i0 + i2]
#|     v1 = result r0
#|     v2 = sub v0 v1
#|     store f32 b4[40*i0 + i2] = v2
#|   reuse b1 for b4
#|   free b1
#| return [b4 f32[6, 40] stride [40, 1] offset 0]
