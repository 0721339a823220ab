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
#| .maxntid 512, 1, 1
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
#|
#| .visible .entry k_amax_sub_exp_sum_div_v4(
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
#| .maxntid 256, 1, 1
#| {
#|     .shared .align 8 .b8 shared[256];
#|     .reg .pred %p<90>;
#|     .reg .b32 %r<199>;
#|     .reg .b64 %d<47>;
#|     ld.param.u64 %d4, [a1];
#|     ld.param.u64 %d6, [a2];
#|     ld.param.u64 %d8, [a3];
#|     ld.param.u64 %d10, [a4];
#|     ld.param.u64 %d11, [a5];
#|     ld.param.u64 %d13, [a6];
#|     ld.param.u64 %d14, [a7];
#|     ld.param.u64 %d16, [a8];
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
#|     mul.lo.s64 %d18, %d1, 4;
#|     add.s64 %d19, %d18, 0;
#|     setp.ge.s64 %p1, %d19, 1000;
#|     @%p1 bra L2;
#|     mad.lo.s64 %d20, %d18, 4, %d7;
#|     ld.global.v4.b32 {%r7, %r8, %r9, %r10}, [%d20];
#| L2:
#|     add.s64 %d21, %d18, 0;
#|     setp.ge.s64 %p2, %d21, 1000;
#|     @%p2 bra L3;
#|     setp.gt.f32 %p3, %r7, %r6;
#|     setp.nan.f32 %p4, %r7, %r7;
#|     setp.num.f32 %p5, %r6, %r6;
#|     and.pred %p6, %p4, %p5;
#|     or.pred %p7, %p3, %p6;
#|     @%p7 mov.b32 %r6, %r7;
#|     setp.gt.f32 %p8, %r8, %r6;
#|     setp.nan.f32 %p9, %r8, %r8;
#|     setp.num.f32 %p10, %r6, %r6;
#|     and.pred %p11, %p9, %p10;
#|     or.pred %p12, %p8, %p11;
#|     @%p12 mov.b32 %r6, %r8;
#|     setp.gt.f32 %p13, %r9, %r6;
#|     setp.nan.f32 %p14, %r9, %r9;
#|     setp.num.f32 %p15, %r6, %r6;
#|     and.pred %p16, %p14, %p15;
#|     or.pred %p17, %p13, %p16;
#|     @%p17 mov.b32 %r6, %r9;
#|     setp.gt.f32 %p18, %r10, %r6;
#|     setp.nan.f32 %p19, %r10, %r10;
#|     setp.num.f32 %p20, %r6, %r6;
#|     and.pred %p21, %p19, %p20;
#|     or.pred %p22, %p18, %p21;
#|     @%p22 mov.b32 %r6, %r10;
#| L3:
#|     shfl.sync.bfly.b32 %r11, %r6, 16, 31, 0xffffffff;
#|     setp.gt.f32 %p23, %r11, %r6;
#|     setp.nan.f32 %p24, %r11, %r11;
#|     setp.num.f32 %p25, %r6, %r6;
#|     and.pred %p26, %p24, %p25;
#|     or.pred %p27, %p23, %p26;
#|     @%p27 mov.b32 %r6, %r11;
#|     shfl.sync.bfly.b32 %r12, %r6, 8, 31, 0xffffffff;
#|     setp.gt.f32 %p28, %r12, %r6;
#|     setp.nan.f32 %p29, %r12, %r12;
#|     setp.num.f32 %p30, %r6, %r6;
#|     and.pred %p31, %p29, %p30;
#|     or.pred %p32, %p28, %p31;
#|     @%p32 mov.b32 %r6, %r12;
#|     shfl.sync.bfly.b32 %r13, %r6, 4, 31, 0xffffffff;
#|     setp.gt.f32 %p33, %r13, %r6;
#|     setp.nan.f32 %p34, %r13, %r13;
#|     setp.num.f32 %p35, %r6, %r6;
#|     and.pred %p36, %p34, %p35;
#|     or.pred %p37, %p33, %p36;
#|     @%p37 mov.b32 %r6, %r13;
#|     shfl.sync.bfly.b32 %r14, %r6, 2, 31, 0xffffffff;
#|     setp.gt.f32 %p38, %r14, %r6;
#|     setp.nan.f32 %p39, %r14, %r14;
#|     setp.num.f32 %p40, %r6, %r6;
#|     and.pred %p41, %p39, %p40;
#|     or.pred %p42, %p38, %p41;
#|     @%p42 mov.b32 %r6, %r14;
#|     shfl.sync.bfly.b32 %r15, %r6, 1, 31, 0xffffffff;
#|     setp.gt.f32 %p43, %r15, %r6;
#|     setp.nan.f32 %p44, %r15, %r15;
#|     setp.num.f32 %p45, %r6, %r6;
#|     and.pred %p46, %p44, %p45;
#|     or.pred %p47, %p43, %p46;
#|     @%p47 mov.b32 %r6, %r15;
#|     cvt.u32.u64 %r16, %d1;
#|     cvt.u32.u64 %r17, %d3;
#|     and.b32 %r18, %r16, 31;
#|     shr.u32 %r19, %r16, 5;
#|     shr.u32 %r20, %r17, 5;
#|     mov.u32 %r21, shared;
#|     mad.lo.s32 %r22, %r19, 8, %r21;
#|     mad.lo.s32 %r23, %r18, 8, %r21;
#|     setp.eq.u32 %p48, %r18, 0;
#|     setp.lt.u32 %p49, %r18, %r20;
#|     @%p48 st.shared.b32 [%r22+0], %r6;
#|     bar.sync 0;
#|     mov.b32 %r24, 0xff800000;
#|     mov.b32 %r6, %r24;
#|     @%p49 ld.shared.b32 %r6, [%r23+0];
#|     shfl.sync.bfly.b32 %r25, %r6, 16, 31, 0xffffffff;
#|     setp.gt.f32 %p50, %r25, %r6;
#|     setp.nan.f32 %p51, %r25, %r25;
#|     setp.num.f32 %p52, %r6, %r6;
#|     and.pred %p53, %p51, %p52;
#|     or.pred %p54, %p50, %p53;
#|     @%p54 mov.b32 %r6, %r25;
#|     shfl.sync.bfly.b32 %r26, %r6, 8, 31, 0xffffffff;
#|     setp.gt.f32 %p55, %r26, %r6;
#|     setp.nan.f32 %p56, %r26, %r26;
#|     setp.num.f32 %p57, %r6, %r6;
#|     and.pred %p58, %p56, %p57;
#|     or.pred %p59, %p55, %p58;
#|     @%p59 mov.b32 %r6, %r26;
#|     shfl.sync.bfly.b32 %r27, %r6, 4, 31, 0xffffffff;
#|     setp.gt.f32 %p60, %r27, %r6;
#|     setp.nan.f32 %p61, %r27, %r27;
#|     setp.num.f32 %p62, %r6, %r6;
#|     and.pred %p63, %p61, %p62;
#|     or.pred %p64, %p60, %p63;
#|     @%p64 mov.b32 %r6, %r27;
#|     shfl.sync.bfly.b32 %r28, %r6, 2, 31, 0xffffffff;
#|     setp.gt.f32 %p65, %r28, %r6;
#|     setp.nan.f32 %p66, %r28, %r28;
#|     setp.num.f32 %p67, %r6, %r6;
#|     and.pred %p68, %p66, %p67;
#|     or.pred %p69, %p65, %p68;
#|     @%p69 mov.b32 %r6, %r28;
#|     shfl.sync.bfly.b32 %r29, %r6, 1, 31, 0xffffffff;
#|     setp.gt.f32 %p70, %r29, %r6;
#|     setp.nan.f32 %p71, %r29, %r29;
#|     setp.num.f32 %p72, %r6, %r6;
#|     and.pred %p73, %p71, %p72;
#|     or.pred %p74, %p70, %p73;
#|     @%p74 mov.b32 %r6, %r29;
#|     shfl.sync.idx.b32 %r30, %r6, 0, 31, 0xffffffff;
#|     mov.b32 %r6, %r30;
#|     mov.b32 %r0, %r6;
#|     // phase 1
#|     mov.b64 %d22, 0x0000000000000000;
#|     mul.lo.s64 %d23, %d1, 4;
#|     add.s64 %d24, %d23, 0;
#|     setp.ge.s64 %p75, %d24, 1000;
#|     @%p75 bra L4;
#| L4:
#|     add.s64 %d25, %d23, 0;
#|     setp.ge.s64 %p76, %d25, 1000;
#|     @%p76 bra L5;
#|     sub.rn.f32 %r31, %r7, %r0;
#|     sub.rn.f32 %r32, %r8, %r0;
#|     sub.rn.f32 %r33, %r9, %r0;
#|     sub.rn.f32 %r34, %r10, %r0;
#|     mov.b32 %r35, 0xc2d00000;
#|     mov.b32 %r36, 0x42b20000;
#|     setp.gt.f32 %p77, %r35, %r31;
#|     selp.b32 %r37, %r35, %r31, %p77;
#|     setp.gt.f32 %p78, %r35, %r32;
#|     selp.b32 %r38, %r35, %r32, %p78;
#|     setp.gt.f32 %p79, %r35, %r33;
#|     selp.b32 %r39, %r35, %r33, %p79;
#|     setp.gt.f32 %p80, %r35, %r34;
#|     selp.b32 %r40, %r35, %r34, %p80;
#|     setp.lt.f32 %p81, %r36, %r37;
#|     selp.b32 %r41, %r36, %r37, %p81;
#|     setp.lt.f32 %p82, %r36, %r38;
#|     selp.b32 %r42, %r36, %r38, %p82;
#|     setp.lt.f32 %p83, %r36, %r39;
#|     selp.b32 %r43, %r36, %r39, %p83;
#|     setp.lt.f32 %p84, %r36, %r40;
#|     selp.b32 %r44, %r36, %r40, %p84;
#|     mov.b32 %r45, 0x3fb8aa3b;
#|     mov.b32 %r46, 0x3f317218;
#|     mov.b32 %r47, 0xb102e308;
#|     mul.rn.f32 %r48, %r41, %r45;
#|     mul.rn.f32 %r49, %r42, %r45;
#|     mul.rn.f32 %r50, %r43, %r45;
#|     mul.rn.f32 %r51, %r44, %r45;
#|     cvt.rni.f32.f32 %r52, %r48;
#|     cvt.rni.f32.f32 %r53, %r49;
#|     cvt.rni.f32.f32 %r54, %r50;
#|     cvt.rni.f32.f32 %r55, %r51;
#|     xor.b32 %r56, %r52, 0x80000000;
#|     fma.rn.f32 %r57, %r56, %r46, %r41;
#|     xor.b32 %r58, %r53, 0x80000000;
#|     fma.rn.f32 %r59, %r58, %r46, %r42;
#|     xor.b32 %r60, %r54, 0x80000000;
#|     fma.rn.f32 %r61, %r60, %r46, %r43;
#|     xor.b32 %r62, %r55, 0x80000000;
#|     fma.rn.f32 %r63, %r62, %r46, %r44;
#|     xor.b32 %r64, %r52, 0x80000000;
#|     fma.rn.f32 %r65, %r64, %r47, %r57;
#|     xor.b32 %r66, %r53, 0x80000000;
#|     fma.rn.f32 %r67, %r66, %r47, %r59;
#|     xor.b32 %r68, %r54, 0x80000000;
#|     fma.rn.f32 %r69, %r68, %r47, %r61;
#|     xor.b32 %r70, %r55, 0x80000000;
#|     fma.rn.f32 %r71, %r70, %r47, %r63;
#|     mov.b32 %r72, 0x3ab68b03;
#|     mov.b32 %r73, 0x3c090836;
#|     fma.rn.f32 %r74, %r72, %r65, %r73;
#|     fma.rn.f32 %r75, %r72, %r67, %r73;
#|     fma.rn.f32 %r76, %r72, %r69, %r73;
#|     fma.rn.f32 %r77, %r72, %r71, %r73;
#|     mov.b32 %r78, 0x3d2aaa8b;
#|     fma.rn.f32 %r79, %r74, %r65, %r78;
#|     fma.rn.f32 %r80, %r75, %r67, %r78;
#|     fma.rn.f32 %r81, %r76, %r69, %r78;
#|     fma.rn.f32 %r82, %r77, %r71, %r78;
#|     mov.b32 %r83, 0x3e2aaa6c;
#|     fma.rn.f32 %r84, %r79, %r65, %r83;
#|     fma.rn.f32 %r85, %r80, %r67, %r83;
#|     fma.rn.f32 %r86, %r81, %r69, %r83;
#|     fma.rn.f32 %r87, %r82, %r71, %r83;
#|     mov.b32 %r88, 0x3f000000;
#|     fma.rn.f32 %r89, %r84, %r65, %r88;
#|     fma.rn.f32 %r90, %r85, %r67, %r88;
#|     fma.rn.f32 %r91, %r86, %r69, %r88;
#|     fma.rn.f32 %r92, %r87, %r71, %r88;
#|     mul.rn.f32 %r93, %r65, %r65;
#|     mul.rn.f32 %r94, %r67, %r67;
#|     mul.rn.f32 %r95, %r69, %r69;
#|     mul.rn.f32 %r96, %r71, %r71;
#|     fma.rn.f32 %r97, %r89, %r93, %r65;
#|     fma.rn.f32 %r98, %r90, %r94, %r67;
#|     fma.rn.f32 %r99, %r91, %r95, %r69;
#|     fma.rn.f32 %r100, %r92, %r96, %r71;
#|     mov.b32 %r101, 0x3f800000;
#|     add.rn.f32 %r102, %r97, %r101;
#|     add.rn.f32 %r103, %r98, %r101;
#|     add.rn.f32 %r104, %r99, %r101;
#|     add.rn.f32 %r105, %r100, %r101;
#|     cvt.rzi.s32.f32 %r106, %r52;
#|     shr.s32 %r107, %r106, 1;
#|     sub.s32 %r108, %r106, %r107;
#|     add.s32 %r109, %r107, 127;
#|     shl.b32 %r110, %r109, 23;
#|     mul.rn.f32 %r111, %r102, %r110;
#|     add.s32 %r112, %r108, 127;
#|     shl.b32 %r113, %r112, 23;
#|     mul.rn.f32 %r114, %r111, %r113;
#|     cvt.rzi.s32.f32 %r115, %r53;
#|     shr.s32 %r116, %r115, 1;
#|     sub.s32 %r117, %r115, %r116;
#|     add.s32 %r118, %r116, 127;
#|     shl.b32 %r119, %r118, 23;
#|     mul.rn.f32 %r120, %r103, %r119;
#|     add.s32 %r121, %r117, 127;
#|     shl.b32 %r122, %r121, 23;
#|     mul.rn.f32 %r123, %r120, %r122;
#|     cvt.rzi.s32.f32 %r124, %r54;
#|     shr.s32 %r125, %r124, 1;
#|     sub.s32 %r126, %r124, %r125;
#|     add.s32 %r127, %r125, 127;
#|     shl.b32 %r128, %r127, 23;
#|     mul.rn.f32 %r129, %r104, %r128;
#|     add.s32 %r130, %r126, 127;
#|     shl.b32 %r131, %r130, 23;
#|     mul.rn.f32 %r132, %r129, %r131;
#|     cvt.rzi.s32.f32 %r133, %r55;
#|     shr.s32 %r134, %r133, 1;
#|     sub.s32 %r135, %r133, %r134;
#|     add.s32 %r136, %r134, 127;
#|     shl.b32 %r137, %r136, 23;
#|     mul.rn.f32 %r138, %r105, %r137;
#|     add.s32 %r139, %r135, 127;
#|     shl.b32 %r140, %r139, 23;
#|     mul.rn.f32 %r141, %r138, %r140;
#|     mad.lo.s64 %d26, %d25, 4, %d12;
#|     setp.eq.u64 %p85, %d11, 0;
#|     @%p85 st.global.v4.b32 [%d26], {%r114, %r123, %r132, %r141};
#|     cvt.f64.f32 %d27, %r114;
#|     add.rn.f64 %d22, %d22, %d27;
#|     cvt.f64.f32 %d28, %r123;
#|     add.rn.f64 %d22, %d22, %d28;
#|     cvt.f64.f32 %d29, %r132;
#|     add.rn.f64 %d22, %d22, %d29;
#|     cvt.f64.f32 %d30, %r141;
#|     add.rn.f64 %d22, %d22, %d30;
#| L5:
#|     mov.b64 {%r142, %r143}, %d22;
#|     shfl.sync.bfly.b32 %r144, %r142, 16, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r145, %r143, 16, 31, 0xffffffff;
#|     mov.b64 %d31, {%r144, %r145};
#|     add.rn.f64 %d22, %d22, %d31;
#|     mov.b64 {%r146, %r147}, %d22;
#|     shfl.sync.bfly.b32 %r148, %r146, 8, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r149, %r147, 8, 31, 0xffffffff;
#|     mov.b64 %d32, {%r148, %r149};
#|     add.rn.f64 %d22, %d22, %d32;
#|     mov.b64 {%r150, %r151}, %d22;
#|     shfl.sync.bfly.b32 %r152, %r150, 4, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r153, %r151, 4, 31, 0xffffffff;
#|     mov.b64 %d33, {%r152, %r153};
#|     add.rn.f64 %d22, %d22, %d33;
#|     mov.b64 {%r154, %r155}, %d22;
#|     shfl.sync.bfly.b32 %r156, %r154, 2, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r157, %r155, 2, 31, 0xffffffff;
#|     mov.b64 %d34, {%r156, %r157};
#|     add.rn.f64 %d22, %d22, %d34;
#|     mov.b64 {%r158, %r159}, %d22;
#|     shfl.sync.bfly.b32 %r160, %r158, 1, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r161, %r159, 1, 31, 0xffffffff;
#|     mov.b64 %d35, {%r160, %r161};
#|     add.rn.f64 %d22, %d22, %d35;
#|     cvt.u32.u64 %r162, %d1;
#|     cvt.u32.u64 %r163, %d3;
#|     and.b32 %r164, %r162, 31;
#|     shr.u32 %r165, %r162, 5;
#|     shr.u32 %r166, %r163, 5;
#|     mov.u32 %r167, shared;
#|     mad.lo.s32 %r168, %r165, 8, %r167;
#|     mad.lo.s32 %r169, %r164, 8, %r167;
#|     setp.eq.u32 %p86, %r164, 0;
#|     setp.lt.u32 %p87, %r164, %r166;
#|     bar.sync 0;
#|     @%p86 st.shared.b64 [%r168+0], %d22;
#|     bar.sync 0;
#|     mov.b64 %d36, 0x0000000000000000;
#|     mov.b64 %d22, %d36;
#|     @%p87 ld.shared.b64 %d22, [%r169+0];
#|     mov.b64 {%r170, %r171}, %d22;
#|     shfl.sync.bfly.b32 %r172, %r170, 16, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r173, %r171, 16, 31, 0xffffffff;
#|     mov.b64 %d37, {%r172, %r173};
#|     add.rn.f64 %d22, %d22, %d37;
#|     mov.b64 {%r174, %r175}, %d22;
#|     shfl.sync.bfly.b32 %r176, %r174, 8, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r177, %r175, 8, 31, 0xffffffff;
#|     mov.b64 %d38, {%r176, %r177};
#|     add.rn.f64 %d22, %d22, %d38;
#|     mov.b64 {%r178, %r179}, %d22;
#|     shfl.sync.bfly.b32 %r180, %r178, 4, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r181, %r179, 4, 31, 0xffffffff;
#|     mov.b64 %d39, {%r180, %r181};
#|     add.rn.f64 %d22, %d22, %d39;
#|     mov.b64 {%r182, %r183}, %d22;
#|     shfl.sync.bfly.b32 %r184, %r182, 2, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r185, %r183, 2, 31, 0xffffffff;
#|     mov.b64 %d40, {%r184, %r185};
#|     add.rn.f64 %d22, %d22, %d40;
#|     mov.b64 {%r186, %r187}, %d22;
#|     shfl.sync.bfly.b32 %r188, %r186, 1, 31, 0xffffffff;
#|     shfl.sync.bfly.b32 %r189, %r187, 1, 31, 0xffffffff;
#|     mov.b64 %d41, {%r188, %r189};
#|     add.rn.f64 %d22, %d22, %d41;
#|     mov.b64 {%r190, %r191}, %d22;
#|     shfl.sync.idx.b32 %r192, %r190, 0, 31, 0xffffffff;
#|     shfl.sync.idx.b32 %r193, %r191, 0, 31, 0xffffffff;
#|     mov.b64 %d42, {%r192, %r193};
#|     mov.b64 %d22, %d42;
#|     cvt.rn.f32.f64 %r194, %d22;
#|     mov.b32 %r1, %r194;
#|     // phase 2
#|     mul.lo.s64 %d43, %d1, 4;
#|     add.s64 %d44, %d43, 0;
#|     setp.ge.s64 %p88, %d44, 1000;
#|     @%p88 bra L6;
#| L6:
#|     add.s64 %d45, %d43, 0;
#|     setp.ge.s64 %p89, %d45, 1000;
#|     @%p89 bra L7;
#|     div.rn.f32 %r195, %r114, %r1;
#|     div.rn.f32 %r196, %r123, %r1;
#|     div.rn.f32 %r197, %r132, %r1;
#|     div.rn.f32 %r198, %r141, %r1;
#|     mad.lo.s64 %d46, %d45, 4, %d17;
#|     st.global.v4.b32 [%d46], {%r195, %r196, %r197, %r198};
#| L7:
#|     bar.sync 0;
#|     add.s64 %d5, %d5, %d2;
#|     bra L0;
#| L1:
#|     ret;
#| }
# check: ptxas
#| k_amax_sub_exp_sum_div_v4 sm_80: 30 registers, 0 bytes spilled, 256 bytes shared
#| k_amax_sub_exp_sum_div sm_80: 32 registers, 0 bytes spilled, 256 bytes shared
#| k_amax_sub_exp_sum_div_v4 sm_90: 32 registers, 0 bytes spilled, 256 bytes shared
#| k_amax_sub_exp_sum_div sm_90: 30 registers, 0 bytes spilled, 256 bytes shared
