# Lowering: topk is a call.
# test: after:lower
class Repro(torch.nn.Module):
    def forward(self, x : "f32[9]"):
        topk = torch.ops.aten.topk.default(x, 3)
        out = topk[0]
        return (out,)
# check: after:lower
#| buffer b0: f32[9] = input 0
#| buffer b1: f32[3]
#| buffer b2: i64[3]
#| input b0 f32[9] stride [1] offset 0
#| call topk: [b1 f32[3] stride [1] offset 0, b2 i64[3] stride [1] offset 0] = aten.topk.default(b0 f32[9] stride [1] offset 0, size 3, size -1, True, True)
#| return [b1 f32[3] stride [1] offset 0]
