# Fusion: a scan and what follows.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 40]"):
        c = torch.ops.aten.cumsum.default(x, 1)
        out = torch.ops.aten.exp.default(c)
        return (out,)
# check: after:lower
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[240]
#| buffer b2: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop cumsum
#|   axes 6, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     v1 = cast f64 v0
#|     v2 = before r0 f64
#|     v3 = add v2 v1
#|     v4 = cast f32 v3
#|     store f32 b1[40*i0 + i1] = v4
#|     r0 f64 = sum v1
#| loop exp
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = exp v0
#|     store f32 b2[40*i0 + i1] = v1
#| return [b2 f32[6, 40] stride [40, 1] offset 0]
# check: after:fuse
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[240]
#| buffer b2: f32[240]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop cumsum_exp
#|   axes 6, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     v1 = cast f64 v0
#|     v2 = before r0 f64
#|     v3 = add v2 v1
#|     v4 = cast f32 v3
#|     store f32 b1[40*i0 + i1] = v4
#|     v6 = exp v4
#|     store f32 b2[40*i0 + i1] = v6
#|     r0 f64 = sum v1
#| return [b2 f32[6, 40] stride [40, 1] offset 0]
