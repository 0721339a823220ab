# An input that is written, and outputs that are the input and a view of it.
# test: functionalize
# test: run
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4]", y : "f32[2]"):
        slice_1 = torch.ops.aten.slice.Tensor(x, 0, 0, 2)
        add_ = torch.ops.aten.add_.Tensor(slice_1, y)
        return (x, add_, y)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[4]", y: "f32[2]"):
#|         slice: "f32[2]" = torch.ops.aten.slice.Tensor(x, 0, 0, 2)
#|         add: "f32[2]" = torch.ops.aten.add.Tensor(slice, y);  slice = None
#|         slice_scatter: "f32[4]" = torch.ops.aten.slice_scatter.default(x, add, 0, 0, 2);  x = None
#|         return (slice_scatter, slice_scatter, add, y)
#| written inputs: [0]
#| output 0 is input 0
#| output 1 is a view of input 0: f32[2]cpu
#| output 2 is input 1
# check: run
#| f32[4] stride [1] [4.5647e-1, -1.6920e0, -2.1788e0, 5.6843e-1]
#| f32[2] stride [1] [4.5647e-1, -1.6920e0]
#| f32[2] stride [1] [-1.0845e0, -1.3986e0]
