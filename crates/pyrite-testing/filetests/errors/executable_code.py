# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        y = __import__('os').system('true')
        for i in range(3):
            x = torch.ops.aten.relu.default(x)
        return (x,)
