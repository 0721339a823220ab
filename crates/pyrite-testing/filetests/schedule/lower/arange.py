# Lowering: arange.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        out = torch.ops.aten.arange.start_step(0, 10, 3)
        return (out,)
# check: after:lower
#| buffer b0: f32[2] = input 0
#| buffer b1: i64[4]
#| input b0 f32[2] stride [1] offset 0
#| loop arange
#|   axes 4
#|   rows i0
#|   phase
#|     v0 = index i0
#|     v1 = const i64 0
#|     v2 = const i64 3
#|     v3 = mul v0 v2
#|     v4 = add v1 v3
#|     store i64 b1[i0] = v4
#| return [b1 i64[4] stride [1] offset 0]
