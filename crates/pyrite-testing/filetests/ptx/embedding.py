# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, w : "f32[100, 64]", i : "i64[8, 16]"):
        embedding = torch.ops.aten.embedding.default(w, i)
        return (embedding,)
# check: ptxas
#| k_embedding sm_80: 22 registers, 0 bytes spilled, 0 bytes shared
#| k_embedding sm_90: 32 registers, 0 bytes spilled, 0 bytes shared
