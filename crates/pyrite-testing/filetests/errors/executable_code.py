# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2]"):
        y = __import__('os').system('true')
        for i in range(3):
            x = torch.ops.aten.relu.default(x)
        return (x,)
# check: errors
#| error[reader::unknown-operator]: `__import__` is not a function that a graph can call
#|  --> executable_code.py:4:9
#|   |
#| 4 | y = __import__('os').system('true')
#|   = help: a graph calls operators and functions of torch
#|
#| error[reader::unsupported-python]: unsupported statement in a graph
#|  --> executable_code.py:5:9
#|   |
#| 5 | for i in range(3):
#|   = help: a graph consists of assignments, calls and one `return`
#|
#| note[reader::unknown-operator]: unknown operator `torch.Tensor.system`; it stays in the graph as an opaque call
#|  --> executable_code.py:4:9
#|   |
#| 4 | y = __import__('os').system('true')
#|   = help: a backend that knows it can run it, such as torch:eager
