# test: print
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 8]", w : "f32[3, 8]", b : "f32[3]"):
        t = torch.ops.aten.t.default(w);  w = None
        addmm = torch.ops.aten.addmm.default(b, x, t);  b = x = t = None
        relu = torch.ops.aten.relu.default(addmm);  addmm = None
        return (relu,)
# check: print
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[4, 8]", w: "f32[3, 8]", b: "f32[3]"):
#|         t: "f32[8, 3][1, 8]" = torch.ops.aten.t.default(w);  w = None
#|         addmm: "f32[4, 3]" = torch.ops.aten.addmm.default(b, x, t);  x = b = t = None
#|         relu: "f32[4, 3]" = torch.ops.aten.relu.default(addmm);  addmm = None
#|         return (relu,)
# check: run
#| f32[4, 3] stride [3, 1] [0.0000e0, 2.8326e0, 0.0000e0, 0.0000e0, 2.4551e0, 0.0000e0, 3.5185e-1, 0.0000e0, 3.0237e0, 0.0000e0, 4.1651e0, 0.0000e0]
