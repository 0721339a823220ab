# test: round-trip
class Falls(torch.nn.Module):
    def forward(x):
        cos = x.cos()
        return (cos,)

class Rises(torch.nn.Module):
    def forward(self, x):
        sin = x.sin()
        return (sin,)

class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.falls = Falls()
        self.rises = Rises()

    def forward(self, flag : "b8[]", x : "f32[2]"):
        cond = torch.ops.higher_order.cond(flag, self.rises, self.falls, (x,))
        return (cond[0],)
