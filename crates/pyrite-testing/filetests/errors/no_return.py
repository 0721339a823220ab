# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        relu = torch.ops.aten.relu.default(x)
# check: errors
#| error[reader::no-graph]: `forward` returns nothing
#|  --> no_return.py:3:9
#|   |
#| 3 | forward
#|   = help: a graph ends with `return`: is the file complete?
