# Recompute: a value that reads more bytes than it has is stored, also where two kernels read it.
# test: after:fuse-late
# test: after:recompute
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 256]", y : "f32[64, 256]"):
        mul = torch.ops.aten.mul.Tensor(x, y)
        rows = torch.ops.aten.sum.dim_IntList(mul, [1])
        columns = torch.ops.aten.sum.dim_IntList(mul, [0])
        return (rows, columns)
# check: after:fuse-late
#| buffer b0: f32[16384] = input 0
#| buffer b1: f32[16384] = input 1
#| buffer b2: f32[16384]
#| buffer b3: f32[64]
#| buffer b4: f32[256]
#| input b0 f32[64, 256] stride [256, 1] offset 0
#| input b1 f32[64, 256] stride [256, 1] offset 0
#| loop mul_sum
#|   axes 64, 256, 256
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[256*i0 + i1]
#|     v1 = load f32 b1[256*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b2[256*i0 + i1] = v2
#|     r0 f32 = sum v2
#|   phase
#|     v0 = result r0
#|     store f32 b3[i0] = v0
#| loop sum_1
#|   axes 64, 256
#|   rows i1
#|   phase i0
#|     v0 = load f32 b2[256*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b4[i1] = v0
#| return [b3 f32[64] stride [1] offset 0, b4 f32[256] stride [1] offset 0]
# check: after:recompute
#| buffer b0: f32[16384] = input 0
#| buffer b1: f32[16384] = input 1
#| buffer b2: f32[16384]
#| buffer b3: f32[64]
#| buffer b4: f32[256]
#| input b0 f32[64, 256] stride [256, 1] offset 0
#| input b1 f32[64, 256] stride [256, 1] offset 0
#| loop mul_sum
#|   axes 64, 256, 256
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[256*i0 + i1]
#|     v1 = load f32 b1[256*i0 + i1]
#|     v2 = mul v0 v1
#|     store f32 b2[256*i0 + i1] = v2
#|     r0 f32 = sum v2
#|   phase
#|     v0 = result r0
#|     store f32 b3[i0] = v0
#| loop sum_1
#|   axes 64, 256
#|   rows i1
#|   phase i0
#|     v0 = load f32 b2[256*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b4[i1] = v0
#| return [b3 f32[64] stride [1] offset 0, b4 f32[256] stride [1] offset 0]
