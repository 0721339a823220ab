# Epilogues: a residual is added in the epilogue.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 80]", w : "f32[80, 80]", b : "f32[80]"):
        m = torch.ops.aten.addmm.default(b, x, w)
        out = torch.ops.aten.add.Tensor(m, x)
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[6400] = input 1
#| buffer b2: f32[80] = input 2
#| buffer b3: f32[5120]
#| buffer b4: f32[5120]
#| input b0 f32[64, 80] stride [80, 1] offset 0
#| input b1 f32[80, 80] stride [80, 1] offset 0
#| input b2 f32[80] stride [1] offset 0
#| gemm addmm: b3 f32[64, 80] stride [80, 1] offset 0 = aten.addmm.default(b2 f32[80] stride [1] offset 0, b0 f32[64, 80] stride [80, 1] offset 0, b1 f32[80, 80] stride [80, 1] offset 0, size 1, size 1)
#| loop add
#|   axes 64, 5120
#|   rows
#|   phase i1
#|     v0 = load f32 b3[i1]
#|     v1 = load f32 b0[i1]
#|     v2 = add v0 v1
#|     store f32 b4[i1] = v2
#| return [b4 f32[64, 80] stride [80, 1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f32[5120] = input 0
#| buffer b1: f32[6400] = input 1
#| buffer b2: f32[80] = input 2
#| buffer b3: f32[5120]
#| buffer b4: f32[5120]
#| input b0 f32[64, 80] stride [80, 1] offset 0
#| input b1 f32[80, 80] stride [80, 1] offset 0
#| input b2 f32[80] stride [1] offset 0
#| gemm addmm: b3 f32[64, 80] stride [80, 1] offset 0 = aten.addmm.default(b2 f32[80] stride [1] offset 0, b0 f32[64, 80] stride [80, 1] offset 0, b1 f32[80, 80] stride [80, 1] offset 0, size 1, size 1)
#|   epilogue add along i1 64 positions 80
#|     axes 64, 5120
#|     rows
#|     phase i1
#|       v0 = load f32 b3[i1]
#|       v1 = load f32 b0[i1]
#|       v2 = add v0 v1
#|       store f32 b4[i1] = v2
#| return [b4 f32[64, 80] stride [80, 1] offset 0]
