# Split reductions: the sum of a whole tensor is a sum of partial sums.
# test: after:finish-kernels
# test: after:split-reductions
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4096, 1024]"):
        sum_1 = torch.ops.aten.sum.default(x)
        return (sum_1,)
# check: after:finish-kernels
#| buffer b0: f32[4194304] = input 0
#| buffer b1: f32[1]
#| input b0 f32[4096, 1024] stride [1024, 1] offset 0
#| loop sum
#|   axes 4096, 4194304
#|   rows
#|   phase i1
#|     v0 = load f32 b0[i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[0] = v0
#| return [b1 f32[] stride [] offset 0]
# check: after:split-reductions
#| buffer b0: f32[4194304] = input 0
#| buffer b1: f32[1]
#| buffer b2: f64[1024]
#| input b0 f32[4096, 1024] stride [1024, 1] offset 0
#| loop sum_parts
#|   axes 4096, 4096, 1024
#|   rows i2
#|   phase i1
#|     v0 = load f32 b0[i1 + 4096*i2]
#|     v1 = cast f64 v0
#|     r0 f64 = sum v1
#|   phase
#|     v0 = result r0
#|     store f64 b2[i2] = v0
#| loop sum
#|   axes 4096, 4194304, 1024
#|   rows
#|   phase i2
#|     v0 = load f64 b2[i2]
#|     r0 f64 = sum v0
#|   phase
#|     v0 = result r0
#|     v1 = cast f32 v0
#|     store f32 b1[0] = v1
#| return [b1 f32[] stride [] offset 0]
