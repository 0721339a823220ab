# Lowering: argmax.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 5]"):
        out = torch.ops.aten.argmax.default(x, 1)
        return (out,)
# check: after:lower
#| buffer b0: f32[15] = input 0
#| buffer b1: i64[3]
#| input b0 f32[3, 5] stride [5, 1] offset 0
#| loop argmax
#|   axes 3, 5
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[5*i0 + i1]
#|     v1 = const i64 0
#|     v2 = const i64 5
#|     v3 = mul v1 v2
#|     v4 = index i1
#|     v5 = add v3 v4
#|     r0 i64 = argmax v0 v5
#|   phase
#|     v0 = result r0
#|     store i64 b1[i0] = v0
#| return [b1 i64[3] stride [1] offset 0]
