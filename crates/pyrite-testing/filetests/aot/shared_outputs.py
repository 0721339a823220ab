# Two outputs that are views of a tensor which is not returned.
# test: functionalize
# test: run
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 2]"):
        add = torch.ops.aten.add.Tensor(x, 1)
        select = torch.ops.aten.select.int(add, 0, 0)
        t = torch.ops.aten.t.default(add)
        return (select, t)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[2, 2]"):
#|         add: "f32[2, 2]" = torch.ops.aten.add.Tensor(x, 1);  x = None
#|         select: "f32[2]" = torch.ops.aten.select.int(add, 0, 0)
#|         t: "f32[2, 2][1, 2]" = torch.ops.aten.t.default(add)
#|         return (select, t, add)
#| output 0 is a view of result 2: f32[2]cpu
#| output 1 is a view of result 2: f32[2, 2]cpu stride [1, 2]
# check: run
#| f32[2] stride [1] [2.5410e0, 7.0657e-1]
#| f32[2, 2] stride [1, 2] [2.5410e0, -1.1788e0, 7.0657e-1, 1.5684e0]
