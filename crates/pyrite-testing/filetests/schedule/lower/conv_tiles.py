# Lowering: conv tiles.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[1, 96, 14, 14]", w : "f32[96, 96, 3, 3]"):
        out = torch.ops.aten.convolution.default(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        return (out,)
# check: after:lower
#| buffer b0: f32[18816] = input 0
#| buffer b1: f32[82944] = input 1
#| buffer b2: f32[18816]
#| input b0 f32[1, 96, 14, 14] stride [18816, 196, 14, 1] offset 0
#| input b1 f32[96, 96, 3, 3] stride [864, 9, 3, 1] offset 0
#| conv convolution: b2 f32[1, 96, 14, 14] stride [18816, 196, 14, 1] offset 0 = aten.convolution.default(b0 f32[1, 96, 14, 14] stride [18816, 196, 14, 1] offset 0, b1 f32[96, 96, 3, 3] stride [864, 9, 3, 1] offset 0, None, [size 1, size 1], [size 1, size 1], [size 1, size 1], False, [size 0, size 0], size 1)
#| return [b2 f32[1, 96, 14, 14] stride [18816, 196, 14, 1] offset 0]
