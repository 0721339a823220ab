# Inside the region matmuls run in bfloat16 and losses in single precision; the region itself is gone afterwards.
# test: functionalize
# test: gradients
class Repro(torch.nn.Module):
    def forward(self, x : "f32[2, 3]", w : "f32[4, 3]", y : "f32[2, 4]"):
        entered = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)
        linear = torch._C._nn.linear(x, w)
        sin = torch.sin(linear)
        loss = torch.nn.functional.mse_loss(sin, y)
        left = torch.amp.autocast_mode._exit_autocast(entered)
        after = torch._C._nn.linear(x, w)
        return (sin, loss, after)
# check: functionalize
#| class Repro(torch.nn.Module):
#|     def forward(self, x: "f32[2, 3]", w: "f32[4, 3]", y: "f32[2, 4]"):
#|         _to_copy: "bf16[2, 3]" = torch.ops.aten._to_copy.default(x, dtype = torch.bfloat16)
#|         _to_copy_1: "bf16[4, 3]" = torch.ops.aten._to_copy.default(w, dtype = torch.bfloat16)
#|         linear: "bf16[2, 4]" = torch.ops.aten.linear.default(_to_copy, _to_copy_1);  _to_copy = _to_copy_1 = None
#|         sin: "bf16[2, 4]" = torch.ops.aten.sin.default(linear);  linear = None
#|         _to_copy_2: "f32[2, 4]" = torch.ops.aten._to_copy.default(sin, dtype = torch.float32)
#|         mse_loss: "f32[]" = torch.ops.aten.mse_loss.default(_to_copy_2, y);  y = _to_copy_2 = None
#|         linear_1: "f32[2, 4]" = torch.ops.aten.linear.default(x, w);  x = w = None
#|         return (sin, mse_loss, linear_1)
#| output 0 is result 0
#| output 1 is result 1
#| output 2 is result 2
# check: gradients
#| f32[2, 3] stride [3, 1] [-1.4191e-1, 4.4893e-2, -8.0035e-2, -4.5414e-2, 6.8941e-2, -7.5518e-2]
#| f32[4, 3] stride [3, 1] [-2.4900e-2, -2.6653e-2, 1.5981e-2, 1.9092e-1, -6.8096e-2, -2.8871e-1, 1.6895e-1, -8.2683e-2, -2.6966e-1, -1.0156e-1, 2.7058e-2, 1.4782e-1]
#| f32[2, 4] stride [4, 1] [-1.5213e-1, -6.3584e-2, -2.1868e-2, 1.5800e-1, 5.1788e-2, 5.0980e-2, 3.1533e-2, 9.1807e-2]
