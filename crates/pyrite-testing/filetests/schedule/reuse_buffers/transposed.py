# Memory: a result in another order has memory of its own.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 6]"):
        a = torch.ops.aten.sort.default(x)
        g = a[0]
        p = torch.ops.aten.permute.default(g, [1, 0])
        out = torch.ops.aten.clone.default(p, memory_format = torch.contiguous_format)
        return (out,)
# check: after:reuse-buffers
#| buffer b0: f32[36] = input 0
#| buffer b1: f32[36]
#| buffer b2: i64[36]
#| buffer b3: f32[36]
#| input b0 f32[6, 6] stride [6, 1] offset 0
#| call sort: [b1 f32[6, 6] stride [6, 1] offset 0, b2 i64[6, 6] stride [6, 1] offset 0] = aten.sort.default(b0 f32[6, 6] stride [6, 1] offset 0, size -1, False)
#|   free b0, b2
#| loop clone
#|   axes 6, 6
#|   rows i0
#|   phase i1
#|     v0 = load f32 b1[i0 + 6*i1]
#|     store f32 b3[6*i0 + i1] = v0
#|   free b1
#| return [b3 f32[6, 6] stride [6, 1] offset 0]
