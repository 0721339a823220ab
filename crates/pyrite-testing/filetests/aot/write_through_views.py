# A write through a view of a view reaches the input, and every other view of it.
# test: functionalize
# test: run
# test: gradients
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]"):
        clone = torch.ops.aten.clone.default(x)
        transpose = torch.ops.aten.transpose.int(clone, 0, 1)
        select = torch.ops.aten.select.int(transpose, 0, 1)
        mul_ = torch.ops.aten.mul_.Scalar(select, 3)
        view = torch.ops.aten.view.default(clone, [6])
        sin = torch.ops.aten.sin.default(view)
        return (sin, mul_)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[2, 3]"):
#|         clone: "f32[2, 3]" = torch.ops.aten.clone.default(x);  x = None
#|         transpose: "f32[3, 2][1, 3]" = torch.ops.aten.transpose.int(clone, 0, 1);  clone = None
#|         select: "f32[2][3]" = torch.ops.aten.select.int(transpose, 0, 1)
#|         mul: "f32[2]" = torch.ops.aten.mul.Scalar(select, 3);  select = None
#|         select_scatter: "f32[3, 2][1, 3]" = torch.ops.aten.select_scatter.default(transpose, mul, 0, 1);  transpose = mul = None
#|         transpose_1: "f32[2, 3]" = torch.ops.aten.transpose.int(select_scatter, 0, 1)
#|         view: "f32[6]" = torch.ops.aten.view.default(transpose_1, [6]);  transpose_1 = None
#|         sin: "f32[6]" = torch.ops.aten.sin.default(view);  view = None
#|         select_1: "f32[2][3]" = torch.ops.aten.select.int(select_scatter, 0, 1);  select_scatter = None
#|         return (sin, select_1)
#| output 0 is result 0
#| output 1 is result 1
# check: run
#| f32[6] stride [1] [9.9956e-1, -7.7092e-1, -8.2080e-1, 5.3831e-1, 1.1174e-1, -9.8521e-1]
#| f32[2] stride [3] [-8.8029e-1, -3.2536e0]
# check: gradients
#| f32[2, 3] stride [1, 2] [2.4830e-3, 9.0923e-1, -4.7602e-2, 7.0229e-2, 5.0157e-1, 1.4279e-2]
