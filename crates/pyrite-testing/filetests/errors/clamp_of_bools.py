# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "b8[2]", y : "b8[2]"):
        lower = torch.ops.aten.clamp.Tensor(x, y)
        both = torch.ops.aten.clamp.Tensor(x, y, y)
        return (lower, both)
# check: errors
#| error[reader::wrong-call]: aten.clamp.Tensor is not defined for b8
#|  --> clamp_of_bools.py:5:16
#|   |
#| 5 | torch.ops.aten.clamp.Tensor(x, y, y)
#|   = help: PyTorch refuses this call too: check shapes and types
