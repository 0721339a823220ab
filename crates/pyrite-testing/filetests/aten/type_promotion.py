# test: infer
# test: run
class Repro(torch.nn.Module):
    def forward(self, i : "i64[3]", b : "b8[3]", h : "bf16[3]", f : "f32[]"):
        int_div = torch.ops.aten.div.Tensor(i, i)
        half = torch.ops.aten.mul.Tensor(h, f)
        bool_sum = torch.ops.aten.sum.default(b)
        mixed = torch.ops.aten.add.Tensor(i, 1.5)
        return (int_div, half, bool_sum, mixed)
