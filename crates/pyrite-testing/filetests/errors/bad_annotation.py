# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f33[2, 3]", y : "f32[99999999999999999999]", z : "f32[2, -3]"):
        return (x, y, z)
