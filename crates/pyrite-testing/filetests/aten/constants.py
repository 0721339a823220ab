# test: print
# test: run
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self):
        full = torch.ops.aten.full.default([2, 2], 3.5, dtype = torch.float64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
        arange = torch.ops.aten.arange.start_step(0, 10, 3, dtype = torch.int64, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
        inf_1 = torch.ops.aten.mul.Tensor(full, float('-inf'))
        return (full, arange, inf_1)
