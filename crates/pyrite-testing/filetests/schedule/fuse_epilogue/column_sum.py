# Epilogues: a sum over columns waits for the whole GEMM.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 32]", w : "f32[32, 80]"):
        m = torch.ops.aten.mm.default(x, w)
        out = torch.ops.aten.sum.dim_IntList(m, [0])
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f32[2048] = input 0
#| buffer b1: f32[2560] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[80]
#| input b0 f32[64, 32] stride [32, 1] offset 0
#| input b1 f32[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f32[64, 32] stride [32, 1] offset 0, b1 f32[32, 80] stride [80, 1] offset 0)
#| loop sum
#|   axes 64, 80
#|   rows i1
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b2[80*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b3[i1] = v0
#| return [b3 f32[80] stride [1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f32[2048] = input 0
#| buffer b1: f32[2560] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[80]
#| input b0 f32[64, 32] stride [32, 1] offset 0
#| input b1 f32[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f32[64, 32] stride [32, 1] offset 0, b1 f32[32, 80] stride [80, 1] offset 0)
#| loop sum
#|   axes 64, 80
#|   rows i1
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b2[80*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b3[i1] = v0
#| return [b3 f32[80] stride [1] offset 0]
