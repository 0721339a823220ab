# test: ptx
# test: ptxas
class Repro(torch.nn.Module):
    def forward(self, x : "f32[64, 1000]"):
        softmax = torch.ops.aten._softmax.default(x, -1, False)
        return (softmax,)
# check: ptx
#| // amax_sub_exp_sum_div: a thread is a place in the block of a row
#| .version 7.4
#| .target sm_80
#| .address_size 64
#|
#| .visible .entry k_amax_sub_exp_sum_div(
#|     .param .u64 a0,
#|     .param .u64 a1,
#|     .param .u64 a2,
#|     .param .u64 a3,
#|     .param .u64 a4,
#|     .param .u64 a5,
#|     .param .u64 a6,
#|     .param .u64 a7,
#|     .param .u64 a8,
#|     .param .u64 a9,
#|     .param .u64 a10,
#|     .param .u64 a11
#| )
#| {
#|     .shared .align 8 .b8 shared[256];
#|     .reg .pred %p<65>;
#|     .reg .b32 %r<120>;
#|     .reg .b64 %d<49>;
#|     ld.param.u64 %d4, [a1];
#|     ld.param.u64 %d6, [a2];
#|     ld.param.u64 %d8, [a3];
#|     ld.param.u64 %d10, [a4];
#|     ld.param.u64 %d11, [a5];
#|     ld.param.u64 %d13, [a6];
#|     ld.param.u64 %d14, [a7];
#|     ld.param.u64 %d16, [a8];
#|     ld.param.u64 %d19, [a9];
#|     ld.param.u64 %d25, [a10];
#|     ld.param.u64 %d44, [a11];
#|     mov.b32 %r0, 0x00000000;
#|     mov.b32 %r1, 0x00000000;
#|     mov.u32 %r2, %ctaid.x;
#|     cvt.u64.u32 %d0, %r2;
#|     mov.u32 %r3, %tid.x;
#|     cvt.u64.u32 %d1, %r3;
#|     mov.u32 %r4, %nctaid.x;
#|     cvt.u64.u32 %d2, %r4;
#|     mov.u32 %r5, %ntid.x;
#|     cvt.u64.u32 %d3, %r5;
#|     mov.b64 %d5, %d0;
#| L0:
#|     setp.ge.u64 %p0, %d5, %d4;
#|     @%p0 bra L1;
#|     mad.lo.s64 %d7, %d5, 4000, %d6;
#|     mad.lo.s64 %d9, %d5, 4000, %d8;
#|     mad.lo.s64 %d12, %d0, %d11, %d10;
#|     mad.lo.s64 %d15, %d0, %d14, %d13;
#|     mad.lo.s64 %d17, %d5, 4000, %d16;
#|     // phase 0
#|     mov.b32 %r6, 0xff800000;
#|     mov.b64 %d18, 0x0000000000000001;
#|     mul.lo.s64 %d20, %d18, %d19;
#|     mov.b64 %d21, %d1;
#| L2:
#|     setp.ge.s64 %p1, %d21, %d20;
#|     @%p1 bra L3;
#|     mad.lo.s64 %d22, %d21, 4, %d7;
#|     ld.global.b32 %r7, [%d22];
#|     setp.gt.f32 %p2, %r7, %r6;
#|     setp.nan.f32 %p3, %r7, %r7;
#|     setp.num.f32 %p4, %r6, %r6;
#|     and.pred %p5, %p3, %p4;
#|     or.pred %p6, %p2, %p5;
#|     @%p6 mov.b32 %r6, %r7;
#|     add.s64 %d21, %d21, %d3;
#|     bra L2;
#| L3:
#|     shfl.sync.bfly.b32 %r8, %r6, 16, 31, 0xffffffff;
#|     setp.gt.f32 %p7, %r8, %r6;
#|     setp.nan.f32 %p8, %r8, %r8;
#|     setp.num.f32 %p9, %r6, %r6;
#|     and.pred %p10, %p8, %p9;
#|     or.pred %p11, %p7, %p10;
#|     @%p11 mov.b32 %r6, %r8;
#|     shfl.sync.bfly.b32 %r9, %r6, 8, 31, 0xffffffff;
#|     setp.gt.f32 %p12, %r9, %r6;
#|     setp.nan.f32 %p13, %r9, %r9;
#|     setp.num.f32 %p14, %r6, %r6;
#|     and.pred %p15, %p13, %p14;
#|     or.pred %p16, %p12, %p15;
#|     @%p16 mov.b32 %r6, %r9;
#|     shfl.sync.bfly.b32 %r10, %r6, 4, 31, 0xffffffff;
#|     setp.gt.f32 %p17, %r10, %r6;
#|     setp.nan.f32 %p18, %r10, %r10;
#|     setp.num.f32 %p19, %r6, %r6;
#|     and.pred %p20, %p18, %p19;
#|     or.pred %p21, %p17, %p20;
#|     @%p21 mov.b32 %r6, %r10;
#|     shfl.sync.bfly.b32 %r11, %r6, 2, 31, 0xffffffff;
#|     setp.gt.f32 %p22, %r11, %r6;
#|     setp.nan.f32 %p23, %r11, %r11;
#|     setp.num.f32 %p24, %r6, %r6;
#|     and.pred %p25, %p23, %p24;
#|     or.pred %p26, %p22, %p25;
#|     @%p26 mov.b32 %r6, %r11;
#|     shfl.sync.bfly.b32 %r12, %r6, 1, 31, 0xffffffff;
#|     setp.gt.f32 %p27, %r12, %r6;
#|     setp.nan.f32 %p28, %r12, %r12;
#|     setp.num.f32 %p29, %r6, %r6;
#|     and.pred %p30, %p28, %p29;
#|     or.pred %p31, %p27, %p30;
#|     @%p31 mov.b32 %r6, %r12;
#|     cvt.u32.u64 %r13, %d1;
#|     cvt.u32.u64 %r14, %d3;
#|     and.b32 %r15, %r13, 31;
#|     shr.u32 %r16, %r13, 5;
#|     shr.u32 %r17, %r14, 5;
#|     mov.u32 %r18, shared;
#|     mad.lo.s32 %r19, %r16, 8, %r18;
#|     mad.lo.s32 %r20, %r15, 8, %r18;
#|     setp.eq.u32 %p32, %r15, 0;
#|     setp.lt.u32 %p33, %r15, %r17;
#|     @%p32 st.shared.b32 [%r19+0], %r6;
#|     bar.sync 0;
#|     mov.b32 %r21, 0xff800000;
#|     mov.b32 %r6, %r21;
#|     @%p33 ld.shared.b32 %r6, [%r20+0];
#|     shfl.sync.bfly.b32 %r22, %r6, 16, 31, 0xffffffff;
#|     setp.gt.f32 %p34, %r22, %r6;
#|     setp.nan.f32 %p35, %r22, %r22;
#|     setp.num.f32 %p36, %r6, %r6;
#|     and.pred %p37, %p35, %p36;
#|     or.pred %p38, %p34, %p37;
#|     @%p38 mov.b32 %r6, %r22;
#|     shfl.sync.bfly.b32 %r23, %r6, 8, 31, 0xffffffff;
#|     setp.gt.f32 %p39, %r23, %r6;
#|     setp.nan.f32 %p40, %r23, %r23;
#|     setp.num.f32 %p41, %r6, %r6;
#|     and.pred %p42, %p40, %p41;
#|     or.pred %p43, %p39, %p42;
#|     @%p43 mov.b32 %r6, %r23;
#|     shfl.sync.bfly.b32 %r24, %r6, 4, 31, 0xffffffff;
#|     setp.gt.f32 %p44, %r24, %r6;
#|     setp.nan.f32 %p45, %r24, %r24;
#|     setp.num.f32 %p46, %r6, %r6;
#|     and.pred %p47, %p45, %p46;
#|     or.pred %p48, %p44, %p47;
#|     @%p48 mov.b32 %r6, %r24;
#|     shfl.sync.bfly.b32 %r25, %r6, 2, 31, 0xffffffff;
#|     setp.gt.f32 %p49, %r25, %r6;
#|     setp.nan.f32 %p50, %r25, %r25;
#|     setp.num.f32 %p51, %r6, %r6;
#|     and.pred %p52, %p50, %p51;
#|     or.pred %p53, %p49, %p52;
#|     @%p53 mov.b32 %r6, %r25;
#|     shfl.sync.bfly.b32 %r26, %r6, 1, 31, 0xffffffff;
#|     setp.gt.f32 %p54, %r26, %r6;
#|     setp.nan.f32 %p55, %r26, %r26;
#|     setp.num.f32 %p56, %r6, %r6;
#|     and.pred %p57, %p55, %p56;
#|     or.pred %p58, %p54, %p57;
#|     @%p58 mov.b32 %r6, %r26;
#|     shfl.sync.idx.b32 %r27, %r6, 0, 31, 0xffffffff;
#|     mov.b32 %r6, %r27;
#|     mov.b32 %r0, %r6;
#|     // phase 1
#|     mov.b64 %d23, 0x0000000000000000;
#|     mov.b64 %d24, 0x0000000000000001;
#|     mul.lo.s64 %d26, %d24, %d25;
#|     mov.b64 %d27, %d1;
#| L4:
#|     setp.ge.s64 %p59, %d27, %d26;
#|     @%p59 bra L5;
#|     mad.lo.s64 %d28, %d27, 4, %d9;
#|     ld.global.b32 %r28, [%d28];
#|     sub.rn.f32 %r29, %r28, %r0;
#|     mov.b32 %r30, 0xc2d00000;
#|     mov.b32 %r31, 0x42b20000;
#|     setp.gt.f32 %p60, %r30, %r29;
#|     selp.b32 %r32, %r30, %r29, %p60;
#|     setp.lt.f32 %p61, %r31, %r32;
#|     selp.b32 %r33, %r31, %r32, %p61;
#|     mov.b32 %r34, 0x3fb8aa3b;
#|     mov.b32 %r35, 0x3f317218;
#|     mov.b32 %r36, 0xb102e308;
#|     mul.rn.f32 %r37, %r33, %r34;
#|     cvt.rni.f32.f32 %r38, %r37;
#|     xor.b32 %r39, %r38, 0x80000000;
#|     fma.rn.f32 %r40, %r39, %r35, %r33;
#|     xor.b32 %r41, %r38, 0x80000000;
#|     fma.rn.f32 %r42, %r41, %r36, %r40;
#|     mov.b32 %r43, 0x3ab68b03;
#|     mov.b32 %r44, 0x3c090836;
#|     fma.rn.f32 %r45, %r43, %r42, %r44;
#|     mov.b32 %r46, 0x3d2aaa8b;
#|     fma.rn.f32 %r47, %r45, %r42, %r46;
#|     mov.b32 %r48, 0x3e2aaa6c;
#|     fma.rn.f32 %r49, %r47, %r42, %r48;
#|     mov.b32 %r50, 0x3f000000;
#|     fma.rn.f32 %r51, %r49, %r42, %r50;
#|     mul.rn.f32 %r52, %r42, %r42;
#|     fma.rn.f32 %r53, %r51, %r52, %r42;
#|     mov.b32 %r54, 0x3f800000;
#|     add.rn.f32 %r55, %r53, %r54;
#|     cvt.rzi.s32.f32 %r56, %r38;
#|     shr.s32 %r57, %r56, 1;
#|     sub.s32 %r58, %r56, %r57;
#|     add.s32 %r59, %r57, 127;
#|     shl.b32 %r60, %r59, 23;
#|     mul.rn.f32 %r61, %r55, %r60;
#|     add.s32 %r62, %r58, 127;
#|     shl.b32 %r63, %r62, 23;
#|     mul.rn.f32 %r64, %r61, %r63;
#|     mad.lo.s64 %d29, %d27, 4, %d12;
#|     st.global.b32 [%d29], %r64;
#|     cvt.f64.f32 %d30, %r64;
#|     add.rn.f64 %d23, %d23, %d30;
#|     add.s64 %d27, %d27, %d3;
#|     bra L4;
#| L5:
#|     mov.b64 {%r65, %r66}, %d23;
#|     shfl.sync.bfly.b32 %r67, %r65, 16, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r68, %r66, 16, 31, 0xffffffff;
#|     mov.b64 %d31, {%r67, %r68};
#|     add.rn.f64 %d23, %d23, %d31;
#|     mov.b64 {%r69, %r70}, %d23;
#|     shfl.sync.bfly.b32 %r71, %r69, 8, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r72, %r70, 8, 31, 0xffffffff;
#|     mov.b64 %d32, {%r71, %r72};
#|     add.rn.f64 %d23, %d23, %d32;
#|     mov.b64 {%r73, %r74}, %d23;
#|     shfl.sync.bfly.b32 %r75, %r73, 4, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r76, %r74, 4, 31, 0xffffffff;
#|     mov.b64 %d33, {%r75, %r76};
#|     add.rn.f64 %d23, %d23, %d33;
#|     mov.b64 {%r77, %r78}, %d23;
#|     shfl.sync.bfly.b32 %r79, %r77, 2, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r80, %r78, 2, 31, 0xffffffff;
#|     mov.b64 %d34, {%r79, %r80};
#|     add.rn.f64 %d23, %d23, %d34;
#|     mov.b64 {%r81, %r82}, %d23;
#|     shfl.sync.bfly.b32 %r83, %r81, 1, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r84, %r82, 1, 31, 0xffffffff;
#|     mov.b64 %d35, {%r83, %r84};
#|     add.rn.f64 %d23, %d23, %d35;
#|     cvt.u32.u64 %r85, %d1;
#|     cvt.u32.u64 %r86, %d3;
#|     and.b32 %r87, %r85, 31;
#|     shr.u32 %r88, %r85, 5;
#|     shr.u32 %r89, %r86, 5;
#|     mov.u32 %r90, shared;
#|     mad.lo.s32 %r91, %r88, 8, %r90;
#|     mad.lo.s32 %r92, %r87, 8, %r90;
#|     setp.eq.u32 %p62, %r87, 0;
#|     setp.lt.u32 %p63, %r87, %r89;
#|     bar.sync 0;
#|     @%p62 st.shared.b64 [%r91+0], %d23;
#|     bar.sync 0;
#|     mov.b64 %d36, 0x0000000000000000;
#|     mov.b64 %d23, %d36;
#|     @%p63 ld.shared.b64 %d23, [%r92+0];
#|     mov.b64 {%r93, %r94}, %d23;
#|     shfl.sync.bfly.b32 %r95, %r93, 16, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r96, %r94, 16, 31, 0xffffffff;
#|     mov.b64 %d37, {%r95, %r96};
#|     add.rn.f64 %d23, %d23, %d37;
#|     mov.b64 {%r97, %r98}, %d23;
#|     shfl.sync.bfly.b32 %r99, %r97, 8, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r100, %r98, 8, 31, 0xffffffff;
#|     mov.b64 %d38, {%r99, %r100};
#|     add.rn.f64 %d23, %d23, %d38;
#|     mov.b64 {%r101, %r102}, %d23;
#|     shfl.sync.bfly.b32 %r103, %r101, 4, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r104, %r102, 4, 31, 0xffffffff;
#|     mov.b64 %d39, {%r103, %r104};
#|     add.rn.f64 %d23, %d23, %d39;
#|     mov.b64 {%r105, %r106}, %d23;
#|     shfl.sync.bfly.b32 %r107, %r105, 2, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r108, %r106, 2, 31, 0xffffffff;
#|     mov.b64 %d40, {%r107, %r108};
#|     add.rn.f64 %d23, %d23, %d40;
#|     mov.b64 {%r109, %r110}, %d23;
#|     shfl.sync.bfly.b32 %r111, %r109, 1, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r112, %r110, 1, 31, 0xffffffff;
#|     mov.b64 %d41, {%r111, %r112};
#|     add.rn.f64 %d23, %d23, %d41;
#|     mov.b64 {%r113, %r114}, %d23;
#|     shfl.sync.idx.b32 %r115, %r113, 0, 31, 0xffffffff;
#|     shfl.sync.idx.b32 %r116, %r114, 0, 31, 0xffffffff;
#|     mov.b64 %d42, {%r115, %r116};
#|     mov.b64 %d23, %d42;
#|     cvt.rn.f32.f64 %r117, %d23;
#|     mov.b32 %r1, %r117;
#|     // phase 2
#|     mov.b64 %d43, 0x0000000000000001;
#|     mul.lo.s64 %d45, %d43, %d44;
#|     mov.b64 %d46, %d1;
#| L6:
#|     setp.ge.s64 %p64, %d46, %d45;
#|     @%p64 bra L7;
#|     mad.lo.s64 %d47, %d46, 4, %d15;
#|     ld.global.b32 %r118, [%d47];
#|     div.rn.f32 %r119, %r118, %r1;
#|     mad.lo.s64 %d48, %d46, 4, %d17;
#|     st.global.b32 [%d48], %r119;
#|     add.s64 %d46, %d46, %d3;
#|     bra L6;
#| L7:
#|     bar.sync 0;
#|     add.s64 %d5, %d5, %d2;
#|     bra L0;
#| L1:
#|     ret;
#| }
# check: ptxas
#| k_amax_sub_exp_sum_div sm_80: 32 registers, 0 bytes spilled, 256 bytes shared
#| k_amax_sub_exp_sum_div sm_90: 30 registers, 0 bytes spilled, 256 bytes shared
