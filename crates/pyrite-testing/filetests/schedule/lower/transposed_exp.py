# Lowering: transposed exp.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 3]"):
        permute = torch.ops.aten.permute.default(x, [1, 0])
        out = torch.ops.aten.exp.default(permute)
        return (out,)
# check: after:lower
#| buffer b0: f32[12] = input 0
#| buffer b1: f32[12]
#| input b0 f32[4, 3] stride [3, 1] offset 0
#| loop exp
#|   axes 3, 4
#|   rows i1, i0
#|   phase
#|     v0 = load f32 b0[i0 + 3*i1]
#|     v1 = exp v0
#|     store f32 b1[i0 + 3*i1] = v1
#| return [b1 f32[3, 4] stride [1, 3] offset 0]
