# Split reductions: many rows occupy the device without being split.
# test: after:split-reductions
class Repro(torch.nn.Module):
    def forward(self, x : "f32[16384, 256]"):
        sum_1 = torch.ops.aten.sum.dim_IntList(x, [1])
        return (sum_1,)
# check: after:split-reductions
#| buffer b0: f32[4194304] = input 0
#| buffer b1: f32[16384]
#| input b0 f32[16384, 256] stride [256, 1] offset 0
#| loop sum
#|   axes 16384, 256
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[256*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#| return [b1 f32[16384] stride [1] offset 0]
