# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        relu = torch.ops.aten.relu.default(x
        return (relu,)
