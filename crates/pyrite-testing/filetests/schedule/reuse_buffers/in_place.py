# Memory: an epilogue writes over the result of its GEMM.
# test: after:reuse-buffers
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 80]", w : "f32[80, 80]"):
        m = torch.ops.aten.mm.default(x, w)
        e = torch.ops.aten.exp.default(m)
        n = torch.ops.aten.mm.default(e, w)
        out = torch.ops.aten.exp.default(n)
        return (out,)
# check: after:reuse-buffers
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[6400] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[5120]
#| buffer b4: f32[5120]
#| buffer b5: f32[5120]
#| input b0 f32[64, 80] stride [80, 1] offset 0
#| input b1 f32[80, 80] stride [80, 1] offset 0
#| gemm mm: b2 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f32[64, 80] stride [80, 1] offset 0, b1 f32[80, 80] stride [80, 1] offset 0)
#|   epilogue exp along i1 64 positions 80
#|     axes 64, 5120
#|     rows
#|     phase i1
#|       v0 = load f32 b2[i1]
#|       v1 = exp v0
#|       store f32 b3[i1] = v1
#|   reuse b2 for b3
#|   free b0, b2
#| gemm mm_1: b4 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b3 f32[64, 80] stride [80, 1] offset 0, b1 f32[80, 80] stride [80, 1] offset 0)
#|   epilogue exp_1 along i1 64 positions 80
#|     axes 64, 5120
#|     rows
#|     phase i1
#|       v0 = load f32 b4[i1]
#|       v1 = exp v0
#|       store f32 b5[i1] = v1
#|   reuse b4 for b5
#|   free b3, b1, b4
#| return [b5 f32[64, 80] stride [80, 1] offset 0]
