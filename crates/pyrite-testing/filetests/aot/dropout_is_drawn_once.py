# The mask is drawn by the forward half and kept for the backward half.
# test: partition
# test: gradients
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8]"):
        sin = torch.ops.aten.sin.default(x)
        dropout = torch.ops.aten.dropout.default(sin, 0.5, True)
        exp = torch.ops.aten.exp.default(dropout)
        return (exp,)
# check: partition
#| forward
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[8]"):
#|         sin: "f32[8]" = torch.ops.aten.sin.default(primals_1)
#|         native_dropout = torch.ops.aten.native_dropout.default(sin, 0.5, True);  sin = None
#|         getitem: "f32[8]" = native_dropout[0]
#|         getitem_1: "b8[8]" = native_dropout[1];  native_dropout = None
#|         exp: "f32[8]" = torch.ops.aten.exp.default(getitem);  getitem = None
#|         return (exp, primals_1, getitem_1, exp)
#|
#| backward, from 72 saved bytes
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[8]", getitem_1: "b8[8]", exp: "f32[8]", tangents_1: "f32[8]"):
#|         mul: "f32[8]" = torch.ops.aten.mul.Tensor(tangents_1, exp);  exp = tangents_1 = None
#|         native_dropout_backward: "f32[8]" = torch.ops.aten.native_dropout_backward.default(mul, getitem_1, 2.0);  getitem_1 = mul = None
#|         cos: "f32[8]" = torch.ops.aten.cos.default(primals_1);  primals_1 = None
#|         mul_1: "f32[8]" = torch.ops.aten.mul.Tensor(native_dropout_backward, cos);  native_dropout_backward = cos = None
#|         return (mul_1,)
# check: gradients
#| f32[8] stride [1] [0.0000e0, 0.0000e0, -2.7657e-2, 0.0000e0, 0.0000e0, 0.0000e0, 5.0412e-1, 7.3955e-1]
