# test: print
# test: infer
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        gelu = torch.ops.aten.gelu.default(x, approximate = 'tanh')
        return (gelu,)
# check: print
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[2, 3]"):
#|         gelu: "f32[2, 3]" = torch.ops.aten.gelu.default(x, approximate = 'tanh');  x = None
#|         return (gelu,)
# check: infer
#| gelu: f32[2, 3]cpu
# check: run
#| f32[2, 3] stride [3, 1] [1.4458e0, -1.1285e-1, -3.1721e-2, 4.0647e-1, -1.5100e-1, -1.1347e-1]
