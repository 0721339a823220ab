# test: infer
# test: run
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3, 4, 4][48, 1, 12, 3]cpu", y : "f32[2, 3, 4, 4]"):
        kept = torch.ops.aten.add.Tensor(x, 1)
        mixed = torch.ops.aten.add.Tensor(x, y)
        first_decides = torch.ops.aten.mul.Tensor(y, x)
        copied = torch.ops.aten.clone.default(x, memory_format = torch.contiguous_format)
        return (kept, mixed, first_decides, copied)
# check: infer
#| kept: f32[2, 3, 4, 4]cpu stride [48, 1, 12, 3]
#| mixed: f32[2, 3, 4, 4]cpu stride [48, 1, 12, 3]
#| first_decides: f32[2, 3, 4, 4]cpu
#| copied: f32[2, 3, 4, 4]cpu
# check: run
#| f32[2, 3, 4, 4] stride [48, 1, 12, 3] sum 1.0365e2 of 96
#| f32[2, 3, 4, 4] stride [48, 1, 12, 3] sum 2.2913e0 of 96
#| f32[2, 3, 4, 4] stride [48, 16, 4, 1] sum -1.4888e1 of 96
#| f32[2, 3, 4, 4] stride [48, 16, 4, 1] sum 7.6527e0 of 96
