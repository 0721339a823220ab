# Lowering: bmm of half.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[2, 8, 4]", y : "bf16[2, 4, 6]"):
        out = torch.ops.aten.bmm.default(x, y)
        return (out,)
# check: after:lower
#| buffer b0: bf16[64] = input 0
#| buffer b1: bf16[48] = input 1
#| buffer b2: bf16[96]
#| input b0 bf16[2, 8, 4] stride [32, 4, 1] offset 0
#| input b1 bf16[2, 4, 6] stride [24, 6, 1] offset 0
#| call bmm: b2 bf16[2, 8, 6] stride [48, 6, 1] offset 0 = aten.bmm.default(b0 bf16[2, 8, 4] stride [32, 4, 1] offset 0, b1 bf16[2, 4, 6] stride [24, 6, 1] offset 0)
#| return [b2 bf16[2, 8, 6] stride [48, 6, 1] offset 0]
