# test: infer
# test: run
class Repro(torch.nn.Module):
    def forward(self, i : "i64[3]", b : "b8[3]", h : "bf16[3]", f : "f32[]"):
        int_div = torch.ops.aten.div.Tensor(i, i)
        half = torch.ops.aten.mul.Tensor(h, f)
        bool_sum = torch.ops.aten.sum.default(b)
        mixed = torch.ops.aten.add.Tensor(i, 1.5)
        return (int_div, half, bool_sum, mixed)
# check: infer
#| int_div: f32[3]cpu
#| half: bf16[3]cpu
#| bool_sum: i64[]cpu
#| mixed: f32[3]cpu
# check: run
#| f32[3] stride [1] [NaN, NaN, NaN]
#| bf16[3] stride [1] [8.7500e-1, -1.6699e-1, -1.2344e0]
#| i64[] stride [] [0]
#| f32[3] stride [1] [1.5000e0, 1.5000e0, 1.5000e0]
