# Lowering: broadcast mul.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 1]", y : "f32[4]"):
        out = torch.ops.aten.mul.Tensor(x, y)
        return (out,)
# check: after:lower
#| buffer b0: f32[3] = input 0
#| buffer b1: f32[4] = input 1
#| buffer b2: f32[12]
#| input b0 f32[3, 1] stride [1, 1] offset 0
#| input b1 f32[4] stride [1] offset 0
#| loop mul
#|   axes 3, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = load f32 b1[i1]
#|     v2 = mul v0 v1
#|     store f32 b2[4*i0 + i1] = v2
#| return [b2 f32[3, 4] stride [4, 1] offset 0]
