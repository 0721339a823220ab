# Training updates running statistics in place, although batch_norm's schema does not say so.
# test: functionalize
# test: run
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 2]", mean : "f32[2]", var : "f32[2]", w : "f32[2]", b : "f32[2]"):
        norm = torch.nn.functional.batch_norm(x, mean, var, w, b, True, 0.1, 1e-05)
        relu = torch.nn.functional.relu(norm, inplace = True)
        return (relu,)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[4, 2]", mean: "f32[2]", var: "f32[2]", w: "f32[2]", b: "f32[2]"):
#|         _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(x, w, b, mean, var, True, 0.1, 1e-05);  x = mean = var = w = b = None
#|         getitem: "f32[4, 2]" = _native_batch_norm_legit_functional[0]
#|         getitem_3: "f32[2]" = _native_batch_norm_legit_functional[3]
#|         getitem_4: "f32[2]" = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
#|         relu: "f32[4, 2]" = torch.ops.aten.relu.default(getitem);  getitem = None
#|         return (getitem_3, getitem_4, relu)
#| written inputs: [1, 2]
#| output 0 is result 2
# check: run
#| f32[4, 2] stride [2, 1] [0.0000e0, 0.0000e0, 4.7091e-2, 9.2951e-1, 0.0000e0, 0.0000e0, 0.0000e0, 1.2695e0]
