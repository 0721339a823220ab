# test: print
# test: run
# test: round-trip
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2, 8]", L_w_: "f32[4, 8]", L_b_: "f32[4]"):
        l_x_ = L_x_
        l_w_ = L_w_
        linear = torch._C._nn.linear(l_x_, l_w_, L_b_);  l_x_ = None
        relu = torch.nn.functional.relu(linear, inplace = True);  linear = None
        total = relu.sum(-1, keepdim = True)
        scaled = total * 2 - 1
        scaled += 1
        return (scaled.view(-1),)
# check: print
#| class GraphModule(torch.nn.Module):
#|     def forward(self, L_x_: "f32[2, 8]", L_w_: "f32[4, 8]", L_b_: "f32[4]"):
#|         linear: "f32[2, 4]" = torch.ops.aten.linear.default(L_x_, L_w_, L_b_);  L_x_ = L_w_ = L_b_ = None
#|         relu: "f32[2, 4]" = torch.ops.aten.relu_.default(linear);  linear = None
#|         total: "f32[2, 1]" = torch.ops.aten.sum.dim_IntList(relu, [-1], True);  relu = None
#|         mul: "f32[2, 1]" = torch.ops.aten.mul.Tensor(total, 2);  total = None
#|         scaled: "f32[2, 1]" = torch.ops.aten.sub.Tensor(mul, 1);  mul = None
#|         add_: "f32[2, 1]" = torch.ops.aten.add_.Tensor(scaled, 1);  scaled = None
#|         view: "f32[2]" = torch.ops.aten.view.default(add_, [-1]);  add_ = None
#|         return (view,)
# check: run
#| f32[2] stride [1] [1.8276e1, 1.1273e1]
