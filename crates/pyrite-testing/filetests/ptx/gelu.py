# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[64, 1024]"):
        gelu = torch.ops.aten.gelu.default(x)
        return (gelu,)
# check: ptxas
#| k__to_copy_mul_erf_add_mul_1_mul_2__to_copy_1_v8 sm_80: 32 registers, 0 bytes spilled, 0 bytes shared
#| k__to_copy_mul_erf_add_mul_1_mul_2__to_copy_1 sm_80: 21 registers, 0 bytes spilled, 0 bytes shared
#| k__to_copy_mul_erf_add_mul_1_mul_2__to_copy_1_v8 sm_90: 32 registers, 0 bytes spilled, 0 bytes shared
#| k__to_copy_mul_erf_add_mul_1_mul_2__to_copy_1 sm_90: 26 registers, 0 bytes spilled, 0 bytes shared
