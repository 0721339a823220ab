# Lowering: mm of integers.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "i64[8, 4]", y : "i64[4, 6]"):
        out = torch.ops.aten.mm.default(x, y)
        return (out,)
# check: after:lower
#| buffer b0: i64[32] = input 0
#| buffer b1: i64[24] = input 1
#| buffer b2: i64[48]
#| input b0 i64[8, 4] stride [4, 1] offset 0
#| input b1 i64[4, 6] stride [6, 1] offset 0
#| call mm: b2 i64[8, 6] stride [6, 1] offset 0 = aten.mm.default(b0 i64[8, 4] stride [4, 1] offset 0, b1 i64[4, 6] stride [6, 1] offset 0)
#| return [b2 i64[8, 6] stride [6, 1] offset 0]
