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
# check: print
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[3, 5]"):
#|         max_1 = torch.ops.aten.max.dim(x, 1, True)
#|         getitem: "f32[3, 1]" = max_1[0]
#|         getitem_1: "i64[3, 1]" = max_1[1];  max_1 = None
#|         split = torch.ops.aten.split.Tensor(x, 2, 1);  x = None
#|         getitem_2: "f32[3, 1][5, 1]" = split[2];  split = None
#|         return (getitem, getitem_1, getitem_2)
# check: infer
#| max_1: (f32[3, 1]cpu, i64[3, 1]cpu)
#| getitem: f32[3, 1]cpu
#| getitem_1: i64[3, 1]cpu
#| split: (f32[3, 2]cpu stride [5, 1], f32[3, 2]cpu stride [5, 1], f32[3, 1]cpu stride [5, 1])
#| getitem_2: f32[3, 1]cpu stride [5, 1]
# check: run
#| f32[3, 1] stride [1, 1] [1.5410e0, 8.3803e-1, 1.1006e0]
#| i64[3, 1] stride [1, 1] [0, 2, 3]
#| f32[3, 1] stride [5, 1] [-1.0845e0, -4.0334e-1, -1.0712e0]
