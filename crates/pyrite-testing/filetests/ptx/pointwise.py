# test: ptx
# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 32]", y : "f32[32]"):
        mul = torch.ops.aten.mul.Tensor(x, y)
        relu = torch.ops.aten.relu.default(mul)
        return (relu,)
# check: ptx
#| // mul_relu: a thread is a position
#| .version 7.4
#| .target sm_80
#| .address_size 64
#|
#| .visible .entry k_mul_relu(
#|     .param .u64 a0,
#|     .param .u64 a1,
#|     .param .u64 a2,
#|     .param .u64 a3,
#|     .param .u64 a4,
#|     .param .u64 a5
#| )
#| .maxntid 128, 1, 1
#| {
#|     .reg .pred %p<3>;
#|     .reg .b32 %r<13>;
#|     .reg .b64 %d<19>;
#|     ld.param.u64 %d4, [a1];
#|     ld.param.u64 %d8, [a2];
#|     ld.param.u64 %d11, [a3];
#|     ld.param.u64 %d14, [a4];
#|     ld.param.u64 %d16, [a5];
#|     mov.u32 %r0, %ctaid.x;
#|     cvt.u64.u32 %d0, %r0;
#|     mov.u32 %r1, %tid.x;
#|     cvt.u64.u32 %d1, %r1;
#|     mov.u32 %r2, %nctaid.x;
#|     cvt.u64.u32 %d2, %r2;
#|     mov.u32 %r3, %ntid.x;
#|     cvt.u64.u32 %d3, %r3;
#|     mad.lo.s64 %d5, %d0, %d3, %d1;
#|     mul.lo.s64 %d6, %d2, %d3;
#|     mov.b64 %d7, %d5;
#| L0:
#|     setp.ge.u64 %p0, %d7, %d4;
#|     @%p0 bra L1;
#|     setp.gt.u64 %p1, %d4, 0xffffffff;
#|     @%p1 bra L2;
#|     cvt.u32.u64 %r4, %d7;
#|     cvt.u32.u64 %r5, %d8;
#|     div.u32 %r6, %r4, %r5;
#|     rem.u32 %r7, %r4, %r5;
#|     cvt.u64.u32 %d9, %r6;
#|     cvt.u64.u32 %d10, %r7;
#|     bra L3;
#| L2:
#|     div.u64 %d9, %d7, %d8;
#|     rem.u64 %d10, %d7, %d8;
#| L3:
#|     mad.lo.s64 %d12, %d9, 128, %d11;
#|     mad.lo.s64 %d13, %d10, 4, %d12;
#|     mad.lo.s64 %d15, %d10, 4, %d14;
#|     mad.lo.s64 %d17, %d9, 128, %d16;
#|     mad.lo.s64 %d18, %d10, 4, %d17;
#|     ld.global.b32 %r8, [%d13];
#|     ld.global.b32 %r9, [%d15];
#|     mul.rn.f32 %r10, %r8, %r9;
#|     mov.b32 %r11, 0x00000000;
#|     setp.lt.f32 %p2, %r10, %r11;
#|     selp.b32 %r12, %r11, %r10, %p2;
#|     st.global.b32 [%d18], %r12;
#|     add.s64 %d7, %d7, %d6;
#|     bra L0;
#| L1:
#|     ret;
#| }
#|
#| .visible .entry k_mul_relu_v4(
#|     .param .u64 a0,
#|     .param .u64 a1,
#|     .param .u64 a2,
#|     .param .u64 a3,
#|     .param .u64 a4,
#|     .param .u64 a5
#| )
#| .maxntid 128, 1, 1
#| {
#|     .reg .pred %p<6>;
#|     .reg .b32 %r<25>;
#|     .reg .b64 %d<21>;
#|     ld.param.u64 %d4, [a1];
#|     ld.param.u64 %d8, [a2];
#|     ld.param.u64 %d13, [a3];
#|     ld.param.u64 %d16, [a4];
#|     ld.param.u64 %d18, [a5];
#|     mov.u32 %r0, %ctaid.x;
#|     cvt.u64.u32 %d0, %r0;
#|     mov.u32 %r1, %tid.x;
#|     cvt.u64.u32 %d1, %r1;
#|     mov.u32 %r2, %nctaid.x;
#|     cvt.u64.u32 %d2, %r2;
#|     mov.u32 %r3, %ntid.x;
#|     cvt.u64.u32 %d3, %r3;
#|     mad.lo.s64 %d5, %d0, %d3, %d1;
#|     mul.lo.s64 %d6, %d2, %d3;
#|     mov.b64 %d7, %d5;
#| L0:
#|     setp.ge.u64 %p0, %d7, %d4;
#|     @%p0 bra L1;
#|     shr.u64 %d9, %d8, 2;
#|     setp.gt.u64 %p1, %d4, 0xffffffff;
#|     @%p1 bra L2;
#|     cvt.u32.u64 %r4, %d7;
#|     cvt.u32.u64 %r5, %d9;
#|     div.u32 %r6, %r4, %r5;
#|     rem.u32 %r7, %r4, %r5;
#|     cvt.u64.u32 %d10, %r6;
#|     cvt.u64.u32 %d11, %r7;
#|     bra L3;
#| L2:
#|     div.u64 %d10, %d7, %d9;
#|     rem.u64 %d11, %d7, %d9;
#| L3:
#|     shl.b64 %d12, %d11, 2;
#|     mad.lo.s64 %d14, %d10, 128, %d13;
#|     mad.lo.s64 %d15, %d12, 4, %d14;
#|     mad.lo.s64 %d17, %d12, 4, %d16;
#|     mad.lo.s64 %d19, %d10, 128, %d18;
#|     mad.lo.s64 %d20, %d12, 4, %d19;
#|     ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%d15];
#|     ld.global.v4.b32 {%r12, %r13, %r14, %r15}, [%d17];
#|     mul.rn.f32 %r16, %r8, %r12;
#|     mul.rn.f32 %r17, %r9, %r13;
#|     mul.rn.f32 %r18, %r10, %r14;
#|     mul.rn.f32 %r19, %r11, %r15;
#|     mov.b32 %r20, 0x00000000;
#|     setp.lt.f32 %p2, %r16, %r20;
#|     setp.lt.f32 %p3, %r17, %r20;
#|     setp.lt.f32 %p4, %r18, %r20;
#|     setp.lt.f32 %p5, %r19, %r20;
#|     selp.b32 %r21, %r20, %r16, %p2;
#|     selp.b32 %r22, %r20, %r17, %p3;
#|     selp.b32 %r23, %r20, %r18, %p4;
#|     selp.b32 %r24, %r20, %r19, %p5;
#|     st.global.v4.b32 [%d20], {%r21, %r22, %r23, %r24};
#|     add.s64 %d7, %d7, %d6;
#|     bra L0;
#| L1:
#|     ret;
#| }
# check: ptxas
#| k_mul_relu_v4 sm_80: 24 registers, 0 bytes spilled, 0 bytes shared
#| k_mul_relu sm_80: 22 registers, 0 bytes spilled, 0 bytes shared
#| k_mul_relu_v4 sm_90: 30 registers, 0 bytes spilled, 0 bytes shared
#| k_mul_relu sm_90: 30 registers, 0 bytes spilled, 0 bytes shared
