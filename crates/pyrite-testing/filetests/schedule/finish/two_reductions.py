# Finished kernels: two reductions over one input share a phase.
# test: after:fuse
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 40]"):
        a = torch.ops.aten.amax.default(x, [1])
        b = torch.ops.aten.amin.default(x, [1])
        out = torch.ops.aten.sub.Tensor(a, b)
        return (out,)
# check: after:fuse
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop amax_amin_sub
#|   axes 6, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = max v0
#|     r1 f32 = min v0
#|   phase
#|     v0 = result r0
#|     store f32 b1[i0] = v0
#|     v2 = result r1
#|     store f32 b2[i0] = v2
#|     v4 = sub v0 v2
#|     store f32 b3[i0] = v4
#| return [b3 f32[6] stride [1] offset 0]
# check: after:finish-kernels
#| buffer b0: f32[240] = input 0
#| buffer b1: f32[6]
#| buffer b2: f32[6]
#| buffer b3: f32[6]
#| input b0 f32[6, 40] stride [40, 1] offset 0
#| loop amax_amin_sub
#|   axes 6, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[40*i0 + i1]
#|     r0 f32 = max v0
#|     r1 f32 = min v0
#|   phase
#|     v0 = result r0
#|     v1 = result r1
#|     v2 = sub v0 v1
#|     store f32 b3[i0] = v2
#| return [b3 f32[6] stride [1] offset 0]
