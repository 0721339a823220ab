# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 768]", w : "f32[768]", b : "f32[768]"):
        layer_norm = torch.ops.aten.layer_norm.default(x, [768], w, b)
        return (layer_norm,)
# check: ptxas
#| k_mean_sub_mul_mean_1_add_rsqrt_mul_1_mul_2_add_1_v4 sm_80: 28 registers, 0 bytes spilled, 256 bytes shared
#| k_mean_sub_mul_mean_1_add_rsqrt_mul_1_mul_2_add_1 sm_80: 40 registers, 0 bytes spilled, 256 bytes shared
#| k_mean_sub_mul_mean_1_add_rsqrt_mul_1_mul_2_add_1_v4 sm_90: 30 registers, 0 bytes spilled, 256 bytes shared
#| k_mean_sub_mul_mean_1_add_rsqrt_mul_1_mul_2_add_1 sm_90: 54 registers, 0 bytes spilled, 256 bytes shared
