# Concatenation: parts with few neighbours in memory are not split.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 2]", y : "f32[4, 2]"):
        c = torch.ops.aten.cat.default([x, y], 1)
        out = torch.ops.aten.exp.default(c)
        return (out,)
# check: after:lower
#| buffer b0: f32[8] = input 0
#| buffer b1: f32[8] = input 1
#| buffer b2: f32[16]
#| buffer b3: f32[16]
#| input b0 f32[4, 2] stride [2, 1] offset 0
#| input b1 f32[4, 2] stride [2, 1] offset 0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[2*i0 + i1]
#|     store f32 b2[4*i0 + i1] = v0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[2*i0 + i1]
#|     store f32 b2[2 + 4*i0 + i1] = v0
#| loop exp
#|   axes 4, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[4*i0 + i1] = v1
#| return [b3 f32[4, 4] stride [4, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[8] = input 0
#| buffer b1: f32[8] = input 1
#| buffer b2: f32[16]
#| buffer b3: f32[16]
#| input b0 f32[4, 2] stride [2, 1] offset 0
#| input b1 f32[4, 2] stride [2, 1] offset 0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[2*i0 + i1]
#|     store f32 b2[4*i0 + i1] = v0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[2*i0 + i1]
#|     store f32 b2[2 + 4*i0 + i1] = v0
#| loop exp
#|   axes 4, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[4*i0 + i1] = v1
#| return [b3 f32[4, 4] stride [4, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[8] = input 0
#| buffer b1: f32[8] = input 1
#| buffer b2: f32[16]
#| buffer b3: f32[16]
#| input b0 f32[4, 2] stride [2, 1] offset 0
#| input b1 f32[4, 2] stride [2, 1] offset 0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[2*i0 + i1]
#|     store f32 b2[4*i0 + i1] = v0
#| loop cat
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[2*i0 + i1]
#|     store f32 b2[2 + 4*i0 + i1] = v0
#| loop exp
#|   axes 4, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b3[4*i0 + i1] = v1
#| return [b3 f32[4, 4] stride [4, 1] offset 0]
