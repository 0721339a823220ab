# Fusion: casts are instructions of the kernel.
# test: after:lower
# test: after:fuse
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[6, 40]"):
        f = torch.ops.aten._to_copy.default(x, dtype = torch.float32)
        s = torch.ops.aten.sum.dim_IntList(f, [1], True)
        d = torch.ops.aten.div.Tensor(f, s)
        out = torch.ops.aten._to_copy.default(d, dtype = torch.bfloat16)
        return (out,)
# check: after:lower
#| buffer b0: bf16[240] = input 0
#| buffer b1: f32[240]
#| buffer b2: f32[6]
#| buffer b3: f32[240]
#| buffer b4: bf16[240]
#| input b0 bf16[6, 40] stride [40, 1] offset 0
#| loop _to_copy
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load bf16 b0[40*i0 + i1]
#|     v1 = wrap bf16 v0
#|     store f32 b1[40*i0 + i1] = v1
#| loop sum
#|   axes 6, 40
#|   rows i0
#|   phase i1
#|     v0 = load f32 b1[40*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b2[i0] = v0
#| loop div
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b1[40*i0 + i1]
#|     v1 = load f32 b2[i0]
#|     v2 = div v0 v1
#|     store f32 b3[40*i0 + i1] = v2
#| loop _to_copy_1
#|   axes 6, 40
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b3[40*i0 + i1]
#|     v1 = wrap bf16 v0
#|     store bf16 b4[40*i0 + i1] = v1
#| return [b4 bf16[6, 40] stride [40, 1] offset 0]
# check: after:fuse
#| buffer b0: bf16[240] = input 0
#| buffer b1: f32[240]
#| buffer b2: f32[6]
#| buffer b3: f32[240]
#| buffer b4: bf16[240]
#| input b0 bf16[6, 40] stride [40, 1] offset 0
#| loop _to_copy_sum_div__to_copy_1
#|   axes 6, 40, 40, 40, 40
#|   rows i0
#|   phase i1
#|     v0 = load bf16 b0[40*i0 + i1]
#|     v1 = wrap bf16 v0
#|     store f32 b1[40*i0 + i1] = v1
#|     r0 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     store f32 b2[i0] = v0
#|   phase i3
#|     v0 = load f32 b1[40*i0 + i3]
#|     v1 = load f32 b2[i0]
#|     v2 = div v0 v1
#|     store f32 b3[40*i0 + i3] = v2
#|     v4 = wrap bf16 v2
#|     store bf16 b4[40*i0 + i3] = v4
#| return [b4 bf16[6, 40] stride [40, 1] offset 0]
