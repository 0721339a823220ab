# Prologues: bmms of other batches stay apart.
# test: after:fuse-epilogue
# test: after:fuse-prologue
class Repro(torch.nn.Module):
    def forward(self, x : "f32[4, 32, 72]", y : "f32[4, 72, 80]", z : "f32[2, 80, 8]"):
        m = torch.ops.aten.bmm.default(x, y)
        r = torch.ops.aten.view.default(m, [2, 64, 80])
        out = torch.ops.aten.bmm.default(r, z)
        return (out,)
# check: after:fuse-epilogue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[1280] = input 2
#| buffer b3: f32[10240]
#| buffer b4: f32[1024]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| input b2 f32[2, 80, 8] stride [640, 8, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| bmm
#|   link bmm_1: b4 f32[2, 64, 8] stride [512, 8, 1] offset 0 = aten.bmm.default(b3 f32[2, 64, 80] stride [5120, 80, 1] offset 0, b2 f32[2, 80, 8] stride [640, 8, 1] offset 0)
#| return [b4 f32[2, 64, 8] stride [512, 8, 1] offset 0]
# check: after:fuse-prologue
#| buffer b0: f32[9216] = input 0
#| buffer b1: f32[23040] = input 1
#| buffer b2: f32[1280] = input 2
#| buffer b3: f32[10240]
#| buffer b4: f32[1024]
#| input b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0
#| input b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0
#| input b2 f32[2, 80, 8] stride [640, 8, 1] offset 0
#| bmm
#|   link bmm: b3 f32[4, 32, 80] stride [2560, 80, 1] offset 0 = aten.bmm.default(b0 f32[4, 32, 72] stride [2304, 72, 1] offset 0, b1 f32[4, 72, 80] stride [5760, 80, 1] offset 0)
#| bmm
#|   link bmm_1: b4 f32[2, 64, 8] stride [512, 8, 1] offset 0 = aten.bmm.default(b3 f32[2, 64, 80] stride [5120, 80, 1] offset 0, b2 f32[2, 80, 8] stride [640, 8, 1] offset 0)
#| return [b4 f32[2, 64, 8] stride [512, 8, 1] offset 0]
