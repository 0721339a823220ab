# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "bf16[64, 1024]"):
        gelu = torch.ops.aten.gelu.default(x)
        return (gelu,)
