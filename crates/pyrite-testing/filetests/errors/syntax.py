# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        relu = torch.ops.aten.relu.default(x
        return (relu,)
# check: errors
#| error[reader::syntax]: Expected `)`, found newline
#|  --> syntax.py:4:45
#|   = help: the file must be Python as PyTorch or Pyrite prints it
