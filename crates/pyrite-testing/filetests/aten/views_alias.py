# test: infer
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]"):
        select = torch.ops.aten.select.int(x, 0, 1)
        slice_1 = torch.ops.aten.slice.Tensor(x, 1, 0, 6, 2)
        permute = torch.ops.aten.permute.default(slice_1, [1, 0])
        add_ = torch.ops.aten.add_.Tensor(select, 1)
        expand = torch.ops.aten.expand.default(add_, [2, 6])
        return (x, permute, expand)
