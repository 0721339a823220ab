# test: print
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        mine = torch.ops.mylib.custom_op.default(x, 3, mode = 'fast', dims = [0, 1])
        relu = torch.ops.aten.relu.default(mine)
        return (relu,)
# check: print
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[2, 3]"):
#|         mine = torch.ops.mylib.custom_op.default(x, 3, mode = 'fast', dims = [0, 1]);  x = None
#|         relu = torch.ops.aten.relu.default(mine);  mine = None
#|         return (relu,)
