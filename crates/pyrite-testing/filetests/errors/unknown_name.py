# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        relu = torch.ops.aten.relu.default(y)
        return (relu,)
# check: errors
#| error[reader::unknown-name]: nothing is called `y`
#|  --> unknown_name.py:4:44
#|   |
#| 4 | y
#|   = help: check the spelling, or whether a line is missing
