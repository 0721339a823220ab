# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        mm = torch.ops.aten.mm.default(x)
        add = torch.ops.aten.add.Tensor(x, x, x, x)
        relu = torch.ops.aten.relu.default(x, beta = 2)
        return (mm, add, relu)
# check: errors
#| error[reader::wrong-arguments]: aten.mm.default needs the argument `mat2`
#|  --> wrong_arity.py:4:14
#|   |
#| 4 | torch.ops.aten.mm.default(x)
#|   = help: add the argument
#|
#| error[reader::wrong-arguments]: aten.add.Tensor takes 2 positional arguments, 4 were given
#|  --> wrong_arity.py:5:15
#|   |
#| 5 | torch.ops.aten.add.Tensor(x, x, x, x)
#|   = help: remove an argument
#|
#| error[reader::wrong-arguments]: aten.relu.default has no argument `beta`
#|  --> wrong_arity.py:6:16
#|   |
#| 6 | torch.ops.aten.relu.default(x, beta = 2)
#|   = help: check the argument's name
