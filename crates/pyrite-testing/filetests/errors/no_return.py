# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        relu = torch.ops.aten.relu.default(x)
