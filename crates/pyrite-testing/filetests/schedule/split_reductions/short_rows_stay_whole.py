# Split reductions: a short reduction is one kernel.
# test: after:split-reductions
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8, 64]"):
        amax = torch.ops.aten.amax.default(x, [1])
        return (amax,)
# check: after:split-reductions
#| buffer b0: f32[512] = input 0
#| buffer b1: f32[8]
#| input b0 f32[8, 64] stride [64, 1] offset 0
#| loop amax
#|   axes 8, 64
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[64*i0 + i1]
#|     r0 f32 = max v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#| return [b1 f32[8] stride [1] offset 0]
