# test: print
# test: infer
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3, 5]"):
        max_1 = torch.ops.aten.max.dim(x, 1, True)
        getitem = max_1[0]
        getitem_1 = max_1[1]
        split = torch.ops.aten.split.Tensor(x, 2, 1)
        getitem_2 = split[2]
        return [getitem, getitem_1, getitem_2]
