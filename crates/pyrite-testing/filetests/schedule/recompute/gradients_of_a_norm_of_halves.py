# The gradients of a layer norm of halves: rows and columns are summed from the halves themselves, nothing wider is stored between.
# test: after:fuse-column-sums
class Repro(torch.nn.Module):
    def forward(self, g : "bf16[2048, 768]", x : "bf16[2048, 768]", m : "f32[2048, 1]", r : "f32[2048, 1]", w : "bf16[768]", b : "bf16[768]"):
        n = torch.ops.aten.native_layer_norm_backward.default(g, x, [768], m, r, w, b, [True, True, True])
        a = n[0]
        c = n[1]
        d = n[2]
        return (a, c, d)
# check: after:fuse-column-sums
#| buffer b0: bf16[1572864] = input 0
#| buffer b1: bf16[1572864] = input 1
#| buffer b2: f32[2048] = input 2
#| buffer b3: f32[2048] = input 3
#| buffer b4: bf16[768] = input 4
#| buffer b5: bf16[768] = input 5
#| buffer b6: f32[1572864]
#| buffer b7: f32[1572864]
#| buffer b8: f32[1572864]
#| buffer b9: f32[1572864]
#| buffer b10: f32[768]
#| buffer b11: f32[1572864]
#| buffer b12: f32[2048]
#| buffer b13: f32[1572864]
#| buffer b14: f32[1572864]
#| buffer b15: f32[2048]
#| buffer b16: f32[1572864]
#| buffer b17: f32[1572864]
#| buffer b18: f32[1572864]
#| buffer b19: f32[1572864]
#| buffer b20: f32[768]
#| buffer b21: f32[768]
#| buffer b22: bf16[1572864]
#| buffer b23: bf16[768]
#| buffer b24: bf16[768]
#| buffer b25: f32[393216]
#| buffer b26: f32[393216]
#| input b0 bf16[2048, 768] stride [768, 1] offset 0
#| input b1 bf16[2048, 768] stride [768, 1] offset 0
#| input b2 f32[2048, 1] stride [1, 1] offset 0
#| input b3 f32[2048, 1] stride [1, 1] offset 0
#| input b4 bf16[768] stride [1] offset 0
#| input b5 bf16[768] stride [1] offset 0
#| loop _to_copy_sum_1__to_copy_5__to_copy_1_sub_mul_mul_5_sum__to_copy_4__to_copy_2_mul_1_mul_2_zeros
#|   axes 393216
#|   rows i0
#|   phase
#|     v0 = const f32 0.0
#|     store f32 b25[i0] = v0
#|     store f32 b26[i0] = v0
#| loop mean_sub_1_mean_1_mul_3_sub_2_mul_4__to_copy_3__to_copy_sum_1__to_copy_5__to_copy_1_sub_mul_mul_5_sum__to_copy_4__to_copy_2_mul_1_mul_2
#|   axes 4, 768, 768, 768, 768, 768, 768, 768, 512, 768, 2048, 2048, 2048, 2048, 2048
#|   rows i8, i0
#|   phase i1
#|     v0 = load bf16 b0[768*i0 + i1 + 3072*i8]
#|     v1 = load bf16 b4[i1]
#|     v2 = mul v0 v1
#|     v3 = load bf16 b1[768*i0 + i1 + 3072*i8]
#|     v4 = load f32 b2[i0 + 4*i8]
#|     v5 = sub v3 v4
#|     v6 = load f32 b3[i0 + 4*i8]
#|     v7 = mul v5 v6
#|     v8 = mul v2 v7
#|     r0 f32 = sum v2
#|     r1 f32 = sum v8
#|   phase i2
#|     v0 = load bf16 b0[768*i0 + i2 + 3072*i8]
#|     v1 = load bf16 b4[i2]
#|     v2 = mul v0 v1
#|     v3 = result r0
#|     v4 = const f32 768.0
#|     v5 = div v3 v4
#|     v6 = sub v2 v5
#|     v7 = load bf16 b1[768*i0 + i2 + 3072*i8]
#|     v8 = load f32 b2[i0 + 4*i8]
#|     v9 = sub v7 v8
#|     v10 = load f32 b3[i0 + 4*i8]
#|     v11 = mul v9 v10
#|     v12 = result r1
#|     v13 = div v12 v4
#|     v14 = mul v11 v13
#|     v15 = sub v6 v14
#|     v16 = mul v10 v15
#|     v17 = wrap bf16 v16
#|     store bf16 b22[768*i0 + i2 + 3072*i8] = v17
#|   phase i9
#|     v0 = load bf16 b0[768*i0 + 3072*i8 + i9]
#|     v1 = load bf16 b1[768*i0 + 3072*i8 + i9]
#|     v2 = load f32 b2[i0 + 4*i8]
#|     v3 = sub v1 v2
#|     v4 = load f32 b3[i0 + 4*i8]
#|     v5 = mul v3 v4
#|     v6 = mul v0 v5
#|     v7 = const i64 0
#|     scatter-add f32 b25[768*i8 + i9] at v7 = v0
#|     scatter-add f32 b26[768*i8 + i9] at v7 = v6
#| loop _to_copy_sum_1__to_copy_5__to_copy_1_sub_mul_mul_5_sum__to_copy_4__to_copy_2_mul_1_mul_2_of_blocks
#|   axes 2048, 768, 2048, 2048, 2048, 2048, 2048, 512
#|   rows i1
#|   lanes rows
#|   phase i7
#|     v0 = load f32 b25[i1 + 768*i7]
#|     v1 = load f32 b26[i1 + 768*i7]
#|     r0 f32 = sum v0
#|     r1 f32 = sum v1
#|   phase
#|     v0 = result r0
#|     v1 = wrap bf16 v0
#|     store bf16 b24[i1] = v1
#|     v3 = result r1
#|     v4 = wrap bf16 v3
#|     store bf16 b23[i1] = v4
#| return [b22 bf16[2048, 768] stride [768, 1] offset 0, b23 bf16[768] stride [1] offset 0, b24 bf16[768] stride [1] offset 0]
