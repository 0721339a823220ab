# test: print
# test: run
# test: round-trip
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[3, 4, 5]", i: "i64[2]"):
        row = x[1]
        window = x[:, 1:3, ::2]
        wide = x[..., None, 0]
        picked = x[:, i]
        size = x.size(0)
        shaped = x.view(size, -1)
        return (row, window, wide, picked, shaped)
