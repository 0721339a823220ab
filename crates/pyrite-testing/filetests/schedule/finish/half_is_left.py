# Finished kernels: what leaves a half precision is rounded, and so is what it is computed from; an end in the same precision is not.
# test: after:finish-kernels
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[64]", y : "bf16[64]"):
        mul = torch.ops.aten.mul.Tensor(x, y)
        add = torch.ops.aten.add.Tensor(mul, x)
        out = torch.ops.aten._to_copy.default(add, dtype = torch.float32)
        sub = torch.ops.aten.sub.Tensor(x, y)
        neg = torch.ops.aten.neg.default(sub)
        return (out, neg)
# check: after:finish-kernels
#| buffer b0: bf16[64] = input 0
#| buffer b1: bf16[64] = input 1
#| buffer b2: bf16[64]
#| buffer b3: bf16[64]
#| buffer b4: f32[64]
#| buffer b5: bf16[64]
#| buffer b6: bf16[64]
#| input b0 bf16[64] stride [1] offset 0
#| input b1 bf16[64] stride [1] offset 0
#| loop mul_add__to_copy_sub_neg
#|   axes 64
#|   rows
#|   phase i0
#|     v0 = load bf16 b0[i0]
#|     v1 = load bf16 b1[i0]
#|     v2 = mul v0 v1
#|     v3 = wrap bf16 v2
#|     v4 = add v3 v0
#|     v5 = wrap bf16 v4
#|     store f32 b4[i0] = v5
#|     v7 = sub v0 v1
#|     v8 = neg v7
#|     store bf16 b6[i0] = v8
#| return [b4 f32[64] stride [1] offset 0, b6 bf16[64] stride [1] offset 0]
