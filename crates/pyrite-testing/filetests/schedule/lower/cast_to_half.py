# Lowering: cast to half.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[7]"):
        out = torch.ops.aten._to_copy.default(x, dtype = torch.float16)
        return (out,)
# check: after:lower
#| buffer b0: f32[7] = input 0
#| buffer b1: f16[7]
#| input b0 f32[7] stride [1] offset 0
#| loop _to_copy
#|   axes 7
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = wrap f16 v0
#|     store f16 b1[i0] = v1
#| return [b1 f16[7] stride [1] offset 0]
