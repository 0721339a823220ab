# Lowering: slice of view.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[6, 4]"):
        view = torch.ops.aten.view.default(x, [4, 6])
        slice_1 = torch.ops.aten.slice.Tensor(view, 1, 1, 5, 2)
        out = torch.ops.aten.neg.default(slice_1)
        return (out,)
# check: after:lower
#| buffer b0: f32[24] = input 0
#| buffer b1: f32[8]
#| input b0 f32[6, 4] stride [4, 1] offset 0
#| loop neg
#|   axes 4, 2
#|   rows i0, i1
#|   phase
#|     v0 = load f32 b0[1 + 6*i0 + 2*i1]
#|     v1 = neg v0
#|     store f32 b1[2*i0 + i1] = v1
#| return [b1 f32[4, 2] stride [2, 1] offset 0]
