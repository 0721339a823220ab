# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]", y : "f32[4]"):
        mm = torch.ops.aten.mm.default(x, x)
        add = torch.ops.aten.add.Tensor(x, y)
        view = torch.ops.aten.view.default(x, [5])
        return (mm, add, view)
# check: errors
#| error[reader::wrong-call]: aten.mm.default: shapes [2, 3] and [2, 3] cannot be multiplied (3 and 2)
#|  --> wrong_shapes.py:4:14
#|   |
#| 4 | torch.ops.aten.mm.default(x, x)
#|   = help: PyTorch refuses this call too: check shapes and types
#|
#| error[reader::wrong-call]: shapes [2, 3] and [4] do not broadcast
#|  --> wrong_shapes.py:5:15
#|   |
#| 5 | torch.ops.aten.add.Tensor(x, y)
#|   = help: PyTorch refuses this call too: check shapes and types
#|
#| error[reader::wrong-call]: sizes [5] do not hold 6 elements
#|  --> wrong_shapes.py:6:16
#|   |
#| 6 | torch.ops.aten.view.default(x, [5])
#|   = help: PyTorch refuses this call too: check shapes and types
