# Lowering: bf16 add.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[5]", y : "bf16[5]"):
        out = torch.ops.aten.add.Tensor(x, y)
        return (out,)
# check: after:lower
#| buffer b0: bf16[5] = input 0
#| buffer b1: bf16[5] = input 1
#| buffer b2: bf16[5]
#| input b0 bf16[5] stride [1] offset 0
#| input b1 bf16[5] stride [1] offset 0
#| loop add
#|   axes 5
#|   rows i0
#|   phase
#|     v0 = load bf16 b0[i0]
#|     v1 = load bf16 b1[i0]
#|     v2 = add v0 v1
#|     store bf16 b2[i0] = v2
#| return [b2 bf16[5] stride [1] offset 0]
