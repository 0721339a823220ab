# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]", x : "f32[2]"):
        return (x,)
# check: errors
#| error[reader::duplicate-name]: two inputs are called `x`
#|  --> duplicate_input.py:3:37
#|   |
#| 3 | x
#|   = help: rename one of them
