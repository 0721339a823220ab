# A conjugate is the memory of its tensor, read otherwise: writes reach both, a resolved one is a copy.
# test: functionalize
class Repro(torch.nn.Module):
    def forward(self, z : "c64[3]"):
        conj = torch.ops.aten._conj.default(z)
        copy = torch.ops.aten.resolve_conj.default(conj)
        written = torch.ops.aten.mul_.Tensor(conj, 2.0)
        first = torch.ops.aten.select.int(conj, 0, 0)
        return (copy, written, first)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, z: "c64[3]"):
#|         _conj: "c64[3]" = torch.ops.aten._conj.default(z);  z = None
#|         clone: "c64[3]" = torch.ops.aten.clone.default(_conj, memory_format = torch.contiguous_format)
#|         mul: "c64[3]" = torch.ops.aten.mul.Tensor(_conj, 2.0);  _conj = None
#|         _conj_1: "c64[3]" = torch.ops.aten._conj.default(mul)
#|         select: "c64[]" = torch.ops.aten.select.int(mul, 0, 0)
#|         _conj_2: "c64[3]" = torch.ops.aten._conj.default(_conj_1)
#|         return (_conj_1, clone, mul, select, _conj_2)
#| written inputs: [0]
#| output 0 is result 1
#| output 1 is a view of result 4: c64[3]cpu
#| output 2 is a view of result 4: c64[]cpu
