# Memory: what is returned is not overwritten.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]", y : "f32[6]"):
        a = torch.ops.aten.sort.default(x)
        g = a[0]
        b = torch.ops.aten.exp.default(g)
        out = torch.ops.aten.add.Tensor(b, g)
        return (out, g,)
# check: after:reuse-buffers
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6] = input 1
#| buffer b2: f32[6]
#| buffer b3: i64[6]
#| buffer b4: f32[6]
#| buffer b5: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[6] stride [1] offset 0
#| call sort: [b2 f32[6] stride [1] offset 0, b3 i64[6] stride [1] offset 0] = aten.sort.default(b0 f32[6] stride [1] offset 0, size -1, False)
#|   free b0, b3
#| loop exp_add
#|   axes 6
#|   rows
#|   phase i0
#|     v0 = load f32 b2[i0]
#|     v1 = exp v0
#|     v2 = add v1 v0
#|     store f32 b5[i0] = v2
#| return [b5 f32[6] stride [1] offset 0, b2 f32[6] stride [1] offset 0]
