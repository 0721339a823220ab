# Lowering: scatter add.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]", i : "i64[4]", s : "f32[4]"):
        out = torch.ops.aten.scatter_add.default(x, 0, i, s)
        return (out,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: i64[4] = input 1
#| buffer b2: f32[4] = input 2
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 i64[4] stride [1] offset 0
#| input b2 f32[4] stride [1] offset 0
#| call scatter_add: b3 f32[6] stride [1] offset 0 = aten.scatter_add.default(b0 f32[6] stride [1] offset 0, size 0, b1 i64[4] stride [1] offset 0, b2 f32[4] stride [1] offset 0)
#| fallback aten.scatter_add.default
#| return [b3 f32[6] stride [1] offset 0]
