# test: ptx
# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 32]", y : "f32[32]"):
        mul = torch.ops.aten.mul.Tensor(x, y)
        relu = torch.ops.aten.relu.default(mul)
        return (relu,)
