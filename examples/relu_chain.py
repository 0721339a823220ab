# A program as torch.compile captures it: something in it fails with one of the backends that fail on purpose.
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 6]", w : "f32[6, 6]"):
        a = torch.sin(x)
        b = a @ w
        c = torch.cos(b)
        d = torch.relu(c)
        e = torch.sigmoid(d)
        f = e.sum(-1)
        return (f, a)
