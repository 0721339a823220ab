# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, w : "f32[100, 64]", i : "i64[8, 16]"):
        embedding = torch.ops.aten.embedding.default(w, i)
        return (embedding,)
