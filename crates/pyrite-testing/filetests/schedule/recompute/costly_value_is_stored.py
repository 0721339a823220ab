# Recompute: a value that is costly to compute is stored and loaded.
# test: after:recompute
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 256]"):
        erf = torch.ops.aten.erf.default(x)
        pow_1 = torch.ops.aten.pow.Tensor_Tensor(erf, x)
        rows = torch.ops.aten.sum.dim_IntList(pow_1, [1])
        columns = torch.ops.aten.sum.dim_IntList(pow_1, [0])
        return (rows, columns)
# check: after:recompute
#| buffer b0: f32[16384] = input 0
#| buffer b1: f32[16384]
#| buffer b2: f32[16384]
#| buffer b3: f32[64]
#| buffer b4: f32[256]
#| input b0 f32[64, 256] stride [256, 1] offset 0
#| loop erf_pow_sum
#|   axes 64, 256, 256
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[256*i0 + i1]
#|     v1 = erf v0
#|     store f32 b1[256*i0 + i1] = v1
#|     v3 = pow v1 v0
#|     store f32 b2[256*i0 + i1] = v3
#|     r0 f32 = sum v3
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
