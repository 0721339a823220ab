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
# check: infer
#| select: f32[6]cpu
#| slice_1: f32[4, 3]cpu stride [6, 2]
#| permute: f32[3, 4]cpu stride [2, 6]
#| add_: f32[6]cpu
#| expand: f32[2, 6]cpu stride [0, 1]
# check: run
#| f32[4, 6] stride [6, 1] sum 6.2504e0 of 24
#| f32[3, 4] stride [2, 6] [-1.1258e0, 6.8399e-1, 1.6646e-1, 2.0050e0, -2.5058e-1, 1.4681e0, -1.4347e-1, 6.1806e-1, 8.4871e-1, 2.4437e0, 9.3183e-1, -8.4106e-1]
#| f32[2, 6] stride [0, 1] [6.8399e-1, -1.1152e0, 1.4681e0, 8.4229e-1, 2.4437e0, 1.2660e0, 6.8399e-1, -1.1152e0, 1.4681e0, 8.4229e-1, 2.4437e0, 1.2660e0]
