# test: print
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self):
        full = torch.ops.aten.full.default([2, 2], 3.5, dtype = torch.float64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
        arange = torch.ops.aten.arange.start_step(0, 10, 3, dtype = torch.int64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
        inf_1 = torch.ops.aten.mul.Tensor(full, float('-inf'))
        return (full, arange, inf_1)
# check: print
#| class Repro(torch.nn.Module):
#|     def forward(self):
#|         full: "f64[2, 2]" = torch.ops.aten.full.default([2, 2], 3.5, dtype = torch.float64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
#|         arange: "i64[4]" = torch.ops.aten.arange.start_step(0, 10, 3, dtype = torch.int64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
#|         inf_1: "f64[2, 2]" = torch.ops.aten.mul.Tensor(full, float('-inf'))
#|         return (full, arange, inf_1)
# check: run
#| f64[2, 2] stride [2, 1] [3.5000e0, 3.5000e0, 3.5000e0, 3.5000e0]
#| i64[4] stride [1] [0, 3, 6, 9]
#| f64[2, 2] stride [2, 1] [-inf, -inf, -inf, -inf]
