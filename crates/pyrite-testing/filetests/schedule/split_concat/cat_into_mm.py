# Concatenation: a GEMM reads the whole.
# test: after:lower
# test: after:split-concat
# test: after:fuse-late
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 8]", y : "f32[64, 8]", w : "f32[16, 16]"):
        c = torch.ops.aten.cat.default([x, y], 1)
        out = torch.ops.aten.mm.default(c, w)
        return (out,)
# check: after:lower
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[512] = input 1
#| buffer b2: f32[256] = input 2
#| buffer b3: f32[1024]
#| buffer b4: f32[1024]
#| input b0 f32[64, 8] stride [8, 1] offset 0
#| input b1 f32[64, 8] stride [8, 1] offset 0
#| input b2 f32[16, 16] stride [16, 1] offset 0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b3[16*i0 + i1] = v0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| gemm mm: b4 f32[64, 16] stride [16, 1] offset 0 = aten.mm.default(b3 f32[64, 16] stride [16, 1] offset 0, b2 f32[16, 16] stride [16, 1] offset 0)
#| return [b4 f32[64, 16] stride [16, 1] offset 0]
# check: after:split-concat
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[512] = input 1
#| buffer b2: f32[256] = input 2
#| buffer b3: f32[1024]
#| buffer b4: f32[1024]
#| input b0 f32[64, 8] stride [8, 1] offset 0
#| input b1 f32[64, 8] stride [8, 1] offset 0
#| input b2 f32[16, 16] stride [16, 1] offset 0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b3[16*i0 + i1] = v0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| gemm mm: b4 f32[64, 16] stride [16, 1] offset 0 = aten.mm.default(b3 f32[64, 16] stride [16, 1] offset 0, b2 f32[16, 16] stride [16, 1] offset 0)
#| return [b4 f32[64, 16] stride [16, 1] offset 0]
# check: after:fuse-late
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[512] = input 1
#| buffer b2: f32[256] = input 2
#| buffer b3: f32[1024]
#| buffer b4: f32[1024]
#| input b0 f32[64, 8] stride [8, 1] offset 0
#| input b1 f32[64, 8] stride [8, 1] offset 0
#| input b2 f32[16, 16] stride [16, 1] offset 0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[8*i0 + i1]
#|     store f32 b3[16*i0 + i1] = v0
#| loop cat
#|   axes 64, 8
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[8*i0 + i1]
#|     store f32 b3[8 + 16*i0 + i1] = v0
#| gemm mm: b4 f32[64, 16] stride [16, 1] offset 0 = aten.mm.default(b3 f32[64, 16] stride [16, 1] offset 0, b2 f32[16, 16] stride [16, 1] offset 0)
#| return [b4 f32[64, 16] stride [16, 1] offset 0]
