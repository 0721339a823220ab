# Lowering: constant pad.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[5]"):
        out = torch.ops.aten.constant_pad_nd.default(x, [1, 2], 0.5)
        return (out,)
# check: after:lower
#| buffer b0: f32[5] = input 0
#| buffer b1: f32[8]
#| input b0 f32[5] stride [1] offset 0
#| loop constant_pad_nd
#|   axes 8
#|   rows i0
#|   phase
#|     v0 = const f32 0.5
#|     store f32 b1[i0] = v0
#| loop constant_pad_nd
#|   axes 5
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     store f32 b1[1 + i0] = v0
#| return [b1 f32[8] stride [1] offset 0]
