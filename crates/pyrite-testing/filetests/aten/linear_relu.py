# test: print
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]", w : "f32[3, 8]", b : "f32[3]"):
        t = torch.ops.aten.t.default(w);  w = None
        addmm = torch.ops.aten.addmm.default(b, x, t);  b = x = t = None
        relu = torch.ops.aten.relu.default(addmm);  addmm = None
        return (relu,)
