# test: errors
class Repro(torch.nn.Module):
    def forward(self, x : "f33[2, 3]", y : "f32[99999999999999999999]", z : "f32[2, -3]"):
        return (x, y, z)
# check: errors
#| error[reader::unknown-dtype]: unknown dtype `f33`
#|  --> bad_annotation.py:3:27
#|   |
#| 3 | "f33[2, 3]"
#|   = help: FX writes `f32[2, 3]`, `f32[2, 3][3, 1]cpu` or `Sym(s0)`
#|
#| error[reader::bad-size]: `99999999999999999999` is not a size
#|  --> bad_annotation.py:3:44
#|   |
#| 3 | "f32[99999999999999999999]"
#|   = help: FX writes `f32[2, 3]`, `f32[2, 3][3, 1]cpu` or `Sym(s0)`
#|
#| error[reader::bad-size]: `-3` is not a size
#|  --> bad_annotation.py:3:77
#|   |
#| 3 | "f32[2, -3]"
#|   = help: FX writes `f32[2, 3]`, `f32[2, 3][3, 1]cpu` or `Sym(s0)`
