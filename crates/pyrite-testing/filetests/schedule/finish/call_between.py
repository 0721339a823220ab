# Finished kernels: a call separates kernels.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        a = torch.ops.aten.exp.default(x)
        t = torch.ops.aten.sort.default(a)
        g = t[0]
        out = torch.ops.aten.neg.default(g)
        return (out,)
# check: after:fuse
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| buffer b3: i64[24]
#| buffer b4: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[4*i0 + i1]
#|     v1 = exp v0
#|     store f32 b1[4*i0 + i1] = v1
#| call sort: [b2 f32[6, 4] stride [4, 1] offset 0, b3 i64[6, 4] stride [4, 1] offset 0] = aten.sort.default(b1 f32[6, 4] stride [4, 1] offset 0, size -1, False)
#| loop neg
#|   axes 6, 4
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b2[4*i0 + i1]
#|     v1 = neg v0
#|     store f32 b4[4*i0 + i1] = v1
#| return [b4 f32[6, 4] stride [4, 1] offset 0]
# check: after:finish-kernels
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[24]
#| buffer b2: f32[24]
#| buffer b3: i64[24]
#| buffer b4: f32[24]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop exp
#|   axes 6, 24
#|   rows
#|   phase i1
#|     v0 = load f32 b0[i1]
#|     v1 = exp v0
#|     store f32 b1[i1] = v1
#| call sort: [b2 f32[6, 4] stride [4, 1] offset 0, b3 i64[6, 4] stride [4, 1] offset 0] = aten.sort.default(b1 f32[6, 4] stride [4, 1] offset 0, size -1, False)
#| loop neg
#|   axes 6, 24
#|   rows
#|   phase i1
#|     v0 = load f32 b2[i1]
#|     v1 = neg v0
#|     store f32 b4[i1] = v1
#| return [b4 f32[6, 4] stride [4, 1] offset 0]
