# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]", x : "f32[2]"):
        return (x,)
