# Lowering: addmm row bias.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, b : "f32[6]", x : "f32[8, 4]", y : "f32[4, 6]"):
        out = torch.ops.aten.addmm.default(b, x, y)
        return (out,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[32] = input 1
#| buffer b2: f32[24] = input 2
#| buffer b3: f32[48]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[8, 4] stride [4, 1] offset 0
#| input b2 f32[4, 6] stride [6, 1] offset 0
#| gemm addmm: b3 f32[8, 6] stride [6, 1] offset 0 = aten.addmm.default(b0 f32[6] stride [1] offset 0, b1 f32[8, 4] stride [4, 1] offset 0, b2 f32[4, 6] stride [6, 1] offset 0, size 1, size 1)
#| return [b3 f32[8, 6] stride [6, 1] offset 0]
