# test: infer
# test: round-trip
class Repro(torch.nn.Module):
    def forward(self, s0 : "Sym(s0)", x : "f32[s0, 8]", y : "f32[s0, 8]"):
        add = torch.ops.aten.add.Tensor(x, y)
        view = torch.ops.aten.view.default(add, [s0, 4, 2])
        sum_1 = torch.ops.aten.sum.dim_IntList(view, [1])
        mul = s0 * 2
        view_1 = torch.ops.aten.view.default(sum_1, [mul])
        return (view_1,)
# check: infer
#| add: f32[s0, 8]cpu
#| view: f32[s0, 4, 2]cpu
#| sum_1: f32[s0, 2]cpu
#| mul: 2*s0
#| view_1: f32[2*s0]cpu
