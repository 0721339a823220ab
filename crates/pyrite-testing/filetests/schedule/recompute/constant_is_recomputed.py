# Recompute: every kernel that reads a constant computes it.
# test: after:lower
# test: after:recompute-constants
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8, 16]", y : "f32[16, 8]"):
        arange = torch.ops.aten.arange.default(16, dtype = torch.float32)
        add = torch.ops.aten.add.Tensor(x, arange)
        mul = torch.ops.aten.mul.Tensor(y, 2.0)
        view = torch.ops.aten.view.default(arange, [16, 1])
        sub = torch.ops.aten.sub.Tensor(mul, view)
        return (add, sub)
# check: after:lower
#| buffer b0: f32[128] = input 0
#| buffer b1: f32[128] = input 1
#| buffer b2: f32[16]
#| buffer b3: f32[128]
#| buffer b4: f32[128]
#| buffer b5: f32[128]
#| input b0 f32[8, 16] stride [16, 1] offset 0
#| input b1 f32[16, 8] stride [8, 1] offset 0
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
#|     store f32 b2[i0] = v6
#| loop add
#|   axes 8, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     v1 = load f32 b2[i1]
#|     v2 = add v0 v1
#|     store f32 b3[16*i0 + i1] = v2
#| loop mul
#|   axes 16, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     v1 = const f32 2.0
#|     v2 = mul v0 v1
#|     store f32 b4[8*i0 + i1] = v2
#| loop sub
#|   axes 16, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b4[8*i0 + i1]
#|     v1 = load f32 b2[i0]
#|     v2 = sub v0 v1
#|     store f32 b5[8*i0 + i1] = v2
#| return [b3 f32[8, 16] stride [16, 1] offset 0, b5 f32[16, 8] stride [8, 1] offset 0]
# check: after:recompute-constants
#| buffer b0: f32[128] = input 0
#| buffer b1: f32[128] = input 1
#| buffer b2: f32[16]
#| buffer b3: f32[128]
#| buffer b4: f32[128]
#| buffer b5: f32[128]
#| input b0 f32[8, 16] stride [16, 1] offset 0
#| input b1 f32[16, 8] stride [8, 1] offset 0
#| loop add
#|   axes 8, 16
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[16*i0 + i1]
#|     v1 = index i1
#|     v2 = cast f64 v1
#|     v3 = const f64 0.0
#|     v4 = const f64 1.0
#|     v5 = mul v2 v4
#|     v6 = add v3 v5
#|     v7 = cast f32 v6
#|     v8 = add v0 v7
#|     store f32 b3[16*i0 + i1] = v8
#| loop mul
#|   axes 16, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     v1 = const f32 2.0
#|     v2 = mul v0 v1
#|     store f32 b4[8*i0 + i1] = v2
#| loop sub
#|   axes 16, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b4[8*i0 + i1]
#|     v1 = index i0
#|     v2 = cast f64 v1
#|     v3 = const f64 0.0
#|     v4 = const f64 1.0
#|     v5 = mul v2 v4
#|     v6 = add v3 v5
#|     v7 = cast f32 v6
#|     v8 = sub v0 v7
#|     store f32 b5[8*i0 + i1] = v8
#| return [b3 f32[8, 16] stride [16, 1] offset 0, b5 f32[16, 8] stride [8, 1] offset 0]
