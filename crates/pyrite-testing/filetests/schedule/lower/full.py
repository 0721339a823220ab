# Lowering: full.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        full = torch.ops.aten.full.default([2, 3], 1.5)
        out = torch.ops.aten.add.Tensor(full, 1)
        return (out,)
# check: after:lower
#| buffer b0: f32[2] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| input b0 f32[2] stride [1] offset 0
#| loop full
#|   axes 2, 3
#|   rows i0, i1
#|   phase
#|     v0 = const f32 1.5
#|     store f32 b1[3*i0 + i1] = v0
#| loop add
#|   axes 2, 3
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[3*i0 + i1]
#|     v1 = const f32 1.0
#|     v2 = add v0 v1
#|     store f32 b2[3*i0 + i1] = v2
#| return [b2 f32[2, 3] stride [3, 1] offset 0]
