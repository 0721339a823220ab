# test: print
# test: run
# test: round-trip
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[3, 4, 5]", i: "i64[2]"):
        row = x[1]
        window = x[:, 1:3, ::2]
        wide = x[..., None, 0]
        picked = x[:, i]
        size = x.size(0)
        shaped = x.view(size, -1)
        return (row, window, wide, picked, shaped)
# check: print
#| class GraphModule(torch.nn.Module):
#|     def forward(self, x: "f32[3, 4, 5]", i: "i64[2]"):
#|         row: "f32[4, 5]" = torch.ops.aten.select.int(x, 0, 1)
#|         slice: "f32[3, 2, 5][20, 5, 1]" = torch.ops.aten.slice.Tensor(x, 1, 1, 3)
#|         window: "f32[3, 2, 3][20, 5, 2]" = torch.ops.aten.slice.Tensor(slice, 2, None, None, 2);  slice = None
#|         unsqueeze: "f32[3, 4, 1, 5]" = torch.ops.aten.unsqueeze.default(x, 2)
#|         wide: "f32[3, 4, 1][20, 5, 5]" = torch.ops.aten.select.int(unsqueeze, 3, 0);  unsqueeze = None
#|         picked: "f32[3, 2, 5]" = torch.ops.aten.index.Tensor(x, [None, i]);  i = None
#|         shaped: "f32[3, 20]" = torch.ops.aten.view.default(x, [3, -1]);  x = None
#|         return (row, window, wide, picked, shaped)
# check: run
#| f32[4, 5] stride [5, 1] sum 4.6163e0 of 20
#| f32[3, 2, 3] stride [20, 5, 2] sum 1.8557e0 of 18
#| f32[3, 4, 1] stride [20, 5, 5] [-1.1258e0, 6.9201e-1, 3.4998e-1, -2.4728e-1, 5.9884e-1, -5.8550e-1, 9.4630e-1, 2.4841e-1, -1.0231e-1, 1.5419e0, 1.1108e0, 1.3253e0]
#| f32[3, 2, 5] stride [10, 5, 1] sum 4.7786e-1 of 30
#| f32[3, 20] stride [20, 1] sum 3.1982e0 of 60
