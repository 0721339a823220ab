# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        mm = torch.ops.aten.mm.default(x)
        add = torch.ops.aten.add.Tensor(x, x, x, x)
        relu = torch.ops.aten.relu.default(x, beta = 2)
        return (mm, add, relu)
