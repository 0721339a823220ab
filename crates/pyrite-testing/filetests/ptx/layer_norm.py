# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 768]", w : "f32[768]", b : "f32[768]"):
        layer_norm = torch.ops.aten.layer_norm.default(x, [768], w, b)
        return (layer_norm,)
