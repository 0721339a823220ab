# Epilogues: double precision.
# test: after:reorder-bmm
# test: after:fuse-epilogue
class Repro(torch.nn.Module):
    def forward(self, x : "f64[64, 32]", w : "f64[32, 80]"):
        m = torch.ops.aten.mm.default(x, w)
        out = torch.ops.aten.relu.default(m)
        return (out,)
# check: after:reorder-bmm
#| buffer b0: f64[2048] = input 0
#| buffer b1: f64[2560] = input 1
#| buffer b2: f64[5120]
#| buffer b3: f64[5120]
#| input b0 f64[64, 32] stride [32, 1] offset 0
#| input b1 f64[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f64[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f64[64, 32] stride [32, 1] offset 0, b1 f64[32, 80] stride [80, 1] offset 0)
#| loop relu
#|   axes 64, 5120
#|   rows
#|   phase i1
#|     v0 = load f64 b2[i1]
#|     v1 = const f64 0.0
#|     v2 = lt v0 v1
#|     v3 = select v2 v1 v0
#|     store f64 b3[i1] = v3
#| return [b3 f64[64, 80] stride [80, 1] offset 0]
# check: after:fuse-epilogue
#| buffer b0: f64[2048] = input 0
#| buffer b1: f64[2560] = input 1
#| buffer b2: f64[5120]
#| buffer b3: f64[5120]
#| input b0 f64[64, 32] stride [32, 1] offset 0
#| input b1 f64[32, 80] stride [80, 1] offset 0
#| gemm mm: b2 f64[64, 80] stride [80, 1] offset 0 = aten.mm.default(b0 f64[64, 32] stride [32, 1] offset 0, b1 f64[32, 80] stride [80, 1] offset 0)
#|   epilogue relu along i1 64 positions 80
#|     axes 64, 5120
#|     rows
#|     phase i1
#|       v0 = load f64 b2[i1]
#|       v1 = const f64 0.0
#|       v2 = lt v0 v1
#|       v3 = select v2 v1 v0
#|       store f64 b3[i1] = v3
#| return [b3 f64[64, 80] stride [80, 1] offset 0]
