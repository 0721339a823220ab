# Memory: a result of another size has memory of its own.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.sort.default(x)
        g = a[0]
        out = torch.ops.aten.sum.dim_IntList(g, [1])
        return (out,)
# check: after:reuse-buffers
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: i64[24]
#| buffer b3: f32[6]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| call sort: [b1 f32[6, 4] stride [4, 1] offset 0, b2 i64[6, 4] stride [4, 1] offset 0] = aten.sort.default(b0 f32[6, 4] stride [4, 1] offset 0, size -1, False)
#|   free b0, b2
#| loop sum
#|   axes 6, 4
#|   rows i0
#|   phase i1
#|     v0 = load f32 b1[4*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b3[i0] = v0
#|   free b1
#| return [b3 f32[6] stride [1] offset 0]
