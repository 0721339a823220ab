# Fusion: kernels that share nothing stay apart.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6]", y : "f32[6]"):
        a = torch.ops.aten.exp.default(x)
        b = torch.ops.aten.sin.default(y)
        return (a, b,)
# check: after:lower
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6] = input 1
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[6] stride [1] offset 0
#| loop exp
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     store f32 b2[i0] = v1
#| loop sin
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b1[i0]
#|     v1 = sin v0
#|     store f32 b3[i0] = v1
#| return [b2 f32[6] stride [1] offset 0, b3 f32[6] stride [1] offset 0]
# check: after:fuse
#| buffer b0: f32[6] = input 0
#| buffer b1: f32[6] = input 1
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6] stride [1] offset 0
#| input b1 f32[6] stride [1] offset 0
#| loop exp
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b0[i0]
#|     v1 = exp v0
#|     store f32 b2[i0] = v1
#| loop sin
#|   axes 6
#|   rows i0
#|   phase
#|     v0 = load f32 b1[i0]
#|     v1 = sin v0
#|     store f32 b3[i0] = v1
#| return [b2 f32[6] stride [1] offset 0, b3 f32[6] stride [1] offset 0]
