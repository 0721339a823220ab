# Memory: a wider result has memory of its own.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]"):
        a = torch.ops.aten.sort.default(x)
        g = a[0]
        out = torch.ops.aten._to_copy.default(g, dtype = torch.float64)
        return (out,)
# check: after:reuse-buffers
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6]
#| buffer b2: i64[6]
#| buffer b3: f64[6]
#| input b0 f32[6] stride [1] offset 0
#| call sort: [b1 f32[6] stride [1] offset 0, b2 i64[6] stride [1] offset 0] = aten.sort.default(b0 f32[6] stride [1] offset 0, size -1, False)
#|   free b0, b2
#| loop _to_copy
#|   axes 6
#|   rows
#|   phase i0
#|     v0 = load f32 b1[i0]
#|     v1 = cast f64 v0
#|     store f64 b3[i0] = v1
#|   free b1
#| return [b3 f64[6] stride [1] offset 0]
