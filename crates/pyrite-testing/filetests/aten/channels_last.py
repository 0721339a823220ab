# test: infer
# test: run
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3, 4, 4][48, 1, 12, 3]cpu", y : "f32[2, 3, 4, 4]"):
        kept = torch.ops.aten.add.Tensor(x, 1)
        mixed = torch.ops.aten.add.Tensor(x, y)
        first_decides = torch.ops.aten.mul.Tensor(y, x)
        copied = torch.ops.aten.clone.default(x, memory_format = torch.contiguous_format)
        return (kept, mixed, first_decides, copied)
