# Sums over the columns of a matrix that the rows do not read stay a kernel of their own.
# test: after:fuse-column-sums
class Repro(torch.nn.Module):
    def forward(self, g : "f32[512, 4096]", x : "f32[512, 4096]"):
        mean = torch.ops.aten.mean.dim(g, [1], True)
        centered = torch.ops.aten.sub.Tensor(g, mean)
        columns = torch.ops.aten.sum.dim_IntList(x, [0])
        return (centered, columns)
# check: after:fuse-column-sums
#| buffer b0: f32[2097152] = input 0
#| buffer b1: f32[2097152] = input 1
#| buffer b2: f32[512]
#| buffer b3: f32[2097152]
#| buffer b4: f32[4096]
#| input b0 f32[512, 4096] stride [4096, 1] offset 0
#| input b1 f32[512, 4096] stride [4096, 1] offset 0
#| loop mean_sub
#|   axes 512, 4096, 4096
#|   rows i0
#|   phase i1
#|     v0 = load f32 b0[4096*i0 + i1]
#|     r0 f32 = sum v0
#|   phase i2
#|     v0 = load f32 b0[4096*i0 + i2]
#|     v1 = result r0
#|     v2 = const f32 4096.0
#|     v3 = div v1 v2
#|     v4 = sub v0 v3
#|     store f32 b3[4096*i0 + i2] = v4
#| loop sum
#|   axes 512, 4096
#|   rows i1
#|   lanes rows
#|   phase i0
#|     v0 = load f32 b1[4096*i0 + i1]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b4[i1] = v0
#| return [b3 f32[512, 4096] stride [4096, 1] offset 0, b4 f32[4096] stride [1] offset 0]
