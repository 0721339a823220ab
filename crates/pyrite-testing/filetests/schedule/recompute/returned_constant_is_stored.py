# Recompute: a constant that is returned is stored, and its readers load it.
# test: after:recompute-constants
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8, 16]"):
        arange = torch.ops.aten.arange.default(16, dtype = torch.float32)
        add = torch.ops.aten.add.Tensor(x, arange)
        return (add, arange)
# check: after:recompute-constants
#| buffer b0: f32[128] = input 0
#| buffer b1: f32[16]
#| buffer b2: f32[128]
#| input b0 f32[8, 16] stride [16, 1] offset 0
#| loop arange
#|   axes 16
#|   rows i0
#|   phase
#|     v0 = index i0
#|     v1 = cast f64 v0
#|     v2 = const f64 0.0
#|     v3 = const f64 1.0
#|     v4 = mul v1 v3
#|     v5 = add v2 v4
#|     v6 = cast f32 v5
#|     store f32 b1[i0] = v6
#| loop add
#|   axes 8, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     v1 = load f32 b1[i1]
#|     v2 = add v0 v1
#|     store f32 b2[16*i0 + i1] = v2
#| return [b2 f32[8, 16] stride [16, 1] offset 0, b1 f32[16] stride [1] offset 0]
