# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        torch = torch.ops.mylib.op.default(x)
        return (torch,)
# check: errors
#| error[verify::bad-name]: `torch` means something else in a graph's text (node `torch`)
#|  --> reserved_name.py:4:9
#|   = help: correct the line; if Pyrite or PyTorch wrote it so, that is a bug to report
