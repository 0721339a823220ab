# Nothing flows back through what was computed while gradients were off, or through a detached value.
# test: joint
# test: gradients
class Repro(torch.nn.Module):
    def forward(self, x : "f32[3]"):
        _set_grad_enabled = torch._C._set_grad_enabled(False)
        cos = torch.cos(x)
        _set_grad_enabled_1 = torch._C._set_grad_enabled(True)
        detach = x.detach()
        mul = cos * x
        add = mul + detach
        return (add,)
# check: joint
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[3]", tangents_1: "f32[3]"):
#|         cos: "f32[3]" = torch.ops.aten.cos.default(primals_1)
#|         detach: "f32[3]" = torch.ops.aten.detach.default(primals_1)
#|         mul: "f32[3]" = torch.ops.aten.mul.Tensor(cos, primals_1);  primals_1 = None
#|         add: "f32[3]" = torch.ops.aten.add.Tensor(mul, detach);  detach = mul = None
#|         mul_1: "f32[3]" = torch.ops.aten.mul.Tensor(tangents_1, cos);  cos = tangents_1 = None
#|         return (add, mul_1)
# check: gradients
#| f32[3] stride [1] [9.9319e-3, 3.1909e-1, -1.9041e-1]
