# Epilogues: a softmax over rows is an epilogue.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 32]", w : "f32[32, 80]"):
        m = torch.ops.aten.mm.default(x, w)
        a = torch.ops.aten.amax.default(m, [1], True)
        s = torch.ops.aten.sub.Tensor(m, a)
        e = torch.ops.aten.exp.default(s)
        t = torch.ops.aten.sum.dim_IntList(e, [1], True)
        out = torch.ops.aten.div.Tensor(e, t)
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f32[2048] = input 0
#| buffer b1: f32[2560] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[64]
#| buffer b4: f32[5120]
#| buffer b5: f32[5120]
#| buffer b6: f32[64]
#| buffer b7: f32[5120]
#| buffer b8: f32[80] = scratch
#| input b0 f32[64, 32] stride [32, 1] offset 0
#| input b1 f32[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f32[64, 32] stride [32, 1] offset 0, b1 f32[32, 80] stride [80, 1] offset 0)
#| loop amax_sub_exp_sum_div
#|   axes 64, 80, 80, 80, 80, 80
#|   rows i0
#|   phase i1
#|     v0 = load f32 b2[80*i0 + i1]
#|     r0 f32 = max v0
#|   phase i2
#|     v0 = load f32 b2[80*i0 + i2]
#|     v1 = result r0
#|     v2 = sub v0 v1
#|     v3 = exp v2
#|     store f32 b8[i2] = v3
#|     r1 f32 = sum v3
#|   phase i5
#|     v0 = load f32 b8[i5]
#|     v1 = result r1
#|     v2 = div v0 v1
#|     store f32 b7[80*i0 + i5] = v2
#| return [b7 f32[64, 80] stride [80, 1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f32[2048] = input 0
#| buffer b1: f32[2560] = input 1
#| buffer b2: f32[5120]
#| buffer b3: f32[64]
#| buffer b4: f32[5120]
#| buffer b5: f32[5120]
#| buffer b6: f32[64]
#| buffer b7: f32[5120]
#| buffer b8: f32[80] = scratch
#| input b0 f32[64, 32] stride [32, 1] offset 0
#| input b1 f32[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f32[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f32[64, 32] stride [32, 1] offset 0, b1 f32[32, 80] stride [80, 1] offset 0)
#|   epilogue amax_sub_exp_sum_div along i0 64 positions 1
#|     axes 64, 80, 80, 80, 80, 80
#|     rows i0
#|     phase i1
#|       v0 = load f32 b2[80*i0 + i1]
#|       r0 f32 = max v0
#|     phase i2
#|       v0 = load f32 b2[80*i0 + i2]
#|       v1 = result r0
#|       v2 = sub v0 v1
#|       v3 = exp v2
#|       store f32 b8[i2] = v3
#|       r1 f32 = sum v3
#|     phase i5
#|       v0 = load f32 b8[i5]
#|       v1 = result r1
#|       v2 = div v0 v1
#|       store f32 b7[80*i0 + i5] = v2
#| return [b7 f32[64, 80] stride [80, 1] offset 0]
