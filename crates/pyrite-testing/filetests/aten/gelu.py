# test: print
# test: infer
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        gelu = torch.ops.aten.gelu.default(x, approximate = 'tanh')
        return (gelu,)
