# Parameters of the module get gradients; a buffer that is written is taken as an input and given back.
# test: functionalize
# test: gradients
# test: round-trip
class Repro(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter('weight', torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])))
        self.register_buffer('count', torch.tensor([0.0, 0.0, 0.0]))

    def forward(self, x : "f32[3]"):
        weight = self.weight
        count = self.count
        mul = x * weight
        add_ = count.add_(1.0)
        out = mul + add_
        return (out,)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[3]", weight: "f32[3]", count: "f32[3]"):
#|         mul: "f32[3]" = torch.ops.aten.mul.Tensor(x, weight);  x = weight = None
#|         add: "f32[3]" = torch.ops.aten.add.Tensor(count, 1.0);  count = None
#|         add_1: "f32[3]" = torch.ops.aten.add.Tensor(mul, add);  mul = None
#|         return (add, add_1)
#| input 1 is Constant("weight")
#| input 2 is Constant("count")
#| written inputs: [2]
#| output 0 is result 1
# check: gradients
#| f32[3] stride [1] [3.3333e-1, -6.6667e-1, 1.0000e0]
#| f32[3] stride [1] [5.1367e-1, -9.7810e-2, -7.2626e-1]
