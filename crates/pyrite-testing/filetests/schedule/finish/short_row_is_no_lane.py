# Finishing: the lanes lie along a long row, also where a row of two elements is dense.
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3, 16]"):
        permute = torch.ops.aten.permute.default(x, [0, 2, 1])
        slice_1 = torch.ops.aten.slice.Tensor(permute, 2, 0, 2)
        clone = torch.ops.aten.clone.default(slice_1, memory_format=torch.contiguous_format)
        return (clone,)
# check: after:finish-kernels
#| buffer b0: f32[96] = input 0
#| buffer b1: f32[64]
#| input b0 f32[2, 3, 16] stride [48, 16, 1] offset 0
#| loop clone
#|   axes 2, 16, 2
#|   rows i0, i2
#|   phase i1
#|     v0 = load f32 b0[48*i0 + i1 + 16*i2]
#|     store f32 b1[32*i0 + 2*i1 + i2] = v0
#| return [b1 f32[2, 16, 2] stride [32, 2, 1] offset 0]
