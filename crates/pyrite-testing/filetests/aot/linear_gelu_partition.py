# The backward half gets what matmuls need; what is cheap is computed again.
# test: joint
# test: partition
# test: gradients
class Repro(torch.nn.Module):
    def forward(self, x : "f32[8, 4]", w : "f32[4, 4]", b : "f32[4]"):
        linear = torch.ops.aten.linear.default(x, w, b)
        gelu = torch.ops.aten.gelu.default(linear)
        relu = torch.ops.aten.relu.default(gelu)
        return (relu,)
# check: joint
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[8, 4]", primals_2: "f32[4, 4]", primals_3: "f32[4]", tangents_1: "f32[8, 4]"):
#|         t: "f32[4, 4][1, 4]" = torch.ops.aten.t.default(primals_2);  primals_2 = None
#|         addmm: "f32[8, 4]" = torch.ops.aten.addmm.default(primals_3, primals_1, t);  primals_3 = None
#|         gelu: "f32[8, 4]" = torch.ops.aten.gelu.default(addmm)
#|         relu: "f32[8, 4]" = torch.ops.aten.relu.default(gelu);  gelu = None
#|         threshold_backward: "f32[8, 4]" = torch.ops.aten.threshold_backward.default(tangents_1, relu, 0);  tangents_1 = None
#|         gelu_backward: "f32[8, 4]" = torch.ops.aten.gelu_backward.default(threshold_backward, addmm);  addmm = threshold_backward = None
#|         t_1: "f32[4, 4]" = torch.ops.aten.t.default(t);  t = None
#|         mm: "f32[8, 4]" = torch.ops.aten.mm.default(gelu_backward, t_1);  t_1 = None
#|         t_2: "f32[4, 8][1, 4]" = torch.ops.aten.t.default(gelu_backward)
#|         mm_1: "f32[4, 4]" = torch.ops.aten.mm.default(t_2, primals_1);  primals_1 = t_2 = None
#|         t_3: "f32[4, 4][1, 4]" = torch.ops.aten.t.default(mm_1);  mm_1 = None
#|         sum: "f32[1, 4]" = torch.ops.aten.sum.dim_IntList(gelu_backward, [0], True);  gelu_backward = None
#|         view: "f32[4]" = torch.ops.aten.view.default(sum, [4]);  sum = None
#|         t_4: "f32[4, 4]" = torch.ops.aten.t.default(t_3);  t_3 = None
#|         return (relu, mm, t_4, view)
# check: partition
#| forward
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[8, 4]", primals_2: "f32[4, 4]", primals_3: "f32[4]"):
#|         t: "f32[4, 4][1, 4]" = torch.ops.aten.t.default(primals_2);  primals_2 = None
#|         addmm: "f32[8, 4]" = torch.ops.aten.addmm.default(primals_3, primals_1, t);  primals_3 = None
#|         gelu: "f32[8, 4]" = torch.ops.aten.gelu.default(addmm)
#|         relu: "f32[8, 4]" = torch.ops.aten.relu.default(gelu);  gelu = None
#|         t_1: "f32[4, 4]" = torch.ops.aten.t.default(t);  t = None
#|         return (relu, primals_1, addmm, t_1)
#|
#| backward, from 320 saved bytes
#| class Repro(torch.nn.Module):
#|     def forward(self, primals_1: "f32[8, 4]", addmm: "f32[8, 4]", t_1: "f32[4, 4]", tangents_1: "f32[8, 4]"):
#|         gelu: "f32[8, 4]" = torch.ops.aten.gelu.default(addmm)
#|         relu: "f32[8, 4]" = torch.ops.aten.relu.default(gelu);  gelu = None
#|         threshold_backward: "f32[8, 4]" = torch.ops.aten.threshold_backward.default(tangents_1, relu, 0);  tangents_1 = relu = None
#|         gelu_backward: "f32[8, 4]" = torch.ops.aten.gelu_backward.default(threshold_backward, addmm);  addmm = threshold_backward = None
#|         mm: "f32[8, 4]" = torch.ops.aten.mm.default(gelu_backward, t_1);  t_1 = None
#|         t_2: "f32[4, 8][1, 4]" = torch.ops.aten.t.default(gelu_backward)
#|         mm_1: "f32[4, 4]" = torch.ops.aten.mm.default(t_2, primals_1);  primals_1 = t_2 = None
#|         t_3: "f32[4, 4][1, 4]" = torch.ops.aten.t.default(mm_1);  mm_1 = None
#|         sum: "f32[1, 4]" = torch.ops.aten.sum.dim_IntList(gelu_backward, [0], True);  gelu_backward = None
#|         view: "f32[4]" = torch.ops.aten.view.default(sum, [4]);  sum = None
#|         t_4: "f32[4, 4]" = torch.ops.aten.t.default(t_3);  t_3 = None
#|         return (mm, t_4, view)
# check: gradients
#| f32[8, 4] stride [4, 1] sum 3.2331e-1 of 32
#| f32[4, 4] stride [4, 1] sum 4.3887e-2 of 16
#| f32[4] stride [1] [9.0596e-2, 2.5711e-1, 0.0000e0, 9.5283e-2]
