# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]", y : "f32[4]"):
        mm = torch.ops.aten.mm.default(x, x)
        add = torch.ops.aten.add.Tensor(x, y)
        view = torch.ops.aten.view.default(x, [5])
        return (mm, add, view)
