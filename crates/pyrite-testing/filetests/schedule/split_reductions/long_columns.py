# Split reductions: long columns are reduced in parts.
# test: after:split-reductions
class Repro(torch.nn.Module):
    def forward(self, x : "f32[16384, 256]"):
        sum_1 = torch.ops.aten.sum.dim_IntList(x, [0])
        return (sum_1,)
# check: after:split-reductions
#| buffer b0: f32[4194304] = input 0
#| buffer b1: f32[256]
#| buffer b2: f64[32768]
#| input b0 f32[16384, 256] stride [256, 1] offset 0
#| loop sum_parts
#|   axes 128, 256, 128
#|   rows i2, i1
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b0[256*i0 + i1 + 32768*i2]
#|     v1 = cast f64 v0
#|     r0 f64 = sum v1
#|   phase
#|     v0 = result r0
#|     store f64 b2[i1 + 256*i2] = v0
#| loop sum
#|   axes 16384, 256, 128
#|   rows i1
#|   lanes rows
#|   phase i2
#|     v0 = load f64 b2[i1 + 256*i2]
#|     r0 f64 = sum v0
#|   phase
#|     v0 = result r0
#|     v1 = cast f32 v0
#|     store f32 b1[i1] = v1
#| return [b1 f32[256] stride [1] offset 0]
