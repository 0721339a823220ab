# A row kernel and sums over the columns of the same matrices become one kernel: a block adds up over neighbouring rows.
# test: after:fuse-column-sums
class Repro(torch.nn.Module):
    def forward(self, g : "f32[512, 4096]", x : "f32[512, 4096]", w : "f32[4096]"):
        gw = torch.ops.aten.mul.Tensor(g, w)
        mean = torch.ops.aten.mean.dim(gw, [1], True)
        centered = torch.ops.aten.sub.Tensor(gw, mean)
        gx = torch.ops.aten.mul.Tensor(g, x)
        columns = torch.ops.aten.sum.dim_IntList(gx, [0])
        both = torch.ops.aten.mul.Tensor(centered, x)
        return (both, columns)
# check: after:fuse-column-sums
#| buffer b0: f32[2097152] = input 0
#| buffer b1: f32[2097152] = input 1
#| buffer b2: f32[4096] = input 2
#| buffer b3: f32[2097152]
#| buffer b4: f32[512]
#| buffer b5: f32[2097152]
#| buffer b6: f32[2097152]
#| buffer b7: f32[4096]
#| buffer b8: f32[2097152]
#| buffer b9: f32[524288]
#| input b0 f32[512, 4096] stride [4096, 1] offset 0
#| input b1 f32[512, 4096] stride [4096, 1] offset 0
#| input b2 f32[4096] stride [1] offset 0
#| loop mul_1_sum_zeros
#|   axes 524288
#|   rows i0
#|   phase
#|     v0 = const f32 0.0
#|     store f32 b9[i0] = v0
#| loop mul_mean_sub_mul_2_mul_1_sum
#|   axes 4, 4096, 4096, 4096, 4096, 128, 4096, 512
#|   rows i5, i0
#|   phase i1
#|     v0 = load f32 b0[4096*i0 + i1 + 16384*i5]
#|     v1 = load f32 b2[i1]
#|     v2 = mul v0 v1
#|     r0 f32 = sum v2
#|   phase i3
#|     v0 = load f32 b0[4096*i0 + i3 + 16384*i5]
#|     v1 = load f32 b2[i3]
#|     v2 = mul v0 v1
#|     v3 = result r0
#|     v4 = const f32 4096.0
#|     v5 = div v3 v4
#|     v6 = sub v2 v5
#|     v7 = load f32 b1[4096*i0 + i3 + 16384*i5]
#|     v8 = mul v6 v7
#|     store f32 b8[4096*i0 + i3 + 16384*i5] = v8
#|   phase i6
#|     v0 = load f32 b0[4096*i0 + 16384*i5 + i6]
#|     v1 = load f32 b1[4096*i0 + 16384*i5 + i6]
#|     v2 = mul v0 v1
#|     v3 = const i64 0
#|     scatter-add f32 b9[4096*i5 + i6] at v3 = v2
#| loop mul_1_sum_of_blocks
#|   axes 512, 4096, 512, 128
#|   rows i1
#|   lanes rows
#|   phase i3
#|     v0 = load f32 b9[i1 + 4096*i3]
#|     r0 f32 = sum v0
#|   phase
#|     v0 = result r0
#|     store f32 b7[i1] = v0
#| return [b8 f32[512, 4096] stride [4096, 1] offset 0, b7 f32[4096] stride [1] offset 0]
