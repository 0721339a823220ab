# Lowering: bmm.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 8, 4]", y : "f32[2, 4, 6]"):
        out = torch.ops.aten.bmm.default(x, y)
        return (out,)
# check: after:lower
#| buffer b0: f32[64] = input 0
#| buffer b1: f32[48] = input 1
#| buffer b2: f32[96]
#| input b0 f32[2, 8, 4] stride [32, 4, 1] offset 0
#| input b1 f32[2, 4, 6] stride [24, 6, 1] offset 0
#| bmm
#|   link bmm: b2 f32[2, 8, 6] stride [48, 6, 1] offset 0 = aten.bmm.default(b0 f32[2, 8, 4] stride [32, 4, 1] offset 0, b1 f32[2, 4, 6] stride [24, 6, 1] offset 0)
#| return [b2 f32[2, 8, 6] stride [48, 6, 1] offset 0]
