//! One operation of a region as instructions.

use iced_x86::code_asm::{
    ptr, qword_ptr,
    registers::{
        gpr32::{eax, ecx},
        gpr64::{r11, rax, rcx},
    },
};
use pyrite_loops::Type;

use super::emitter::{Done, Emitter, K, X, Y, Z, frame, mr, rm, rr, rri, rrr};
use super::layout::{BEGINS, COUNT, MASK32, MASK64, NUMBERS, STEPS};
use super::lower::Count;
use super::region::Context;
use super::registers::Registers;
use super::vector::{Alu, Cond, Kind, Logic, Region, Rounding, Shift, V, VectorOp};

/// A vector register under an opmask, where what is masked out stays or becomes zero.
macro_rules! masked {
    ($reg:expr, $k:expr) => {
        match $k {
            1 => $reg.k1(),
            2 => $reg.k2(),
            3 => $reg.k3(),
            4 => $reg.k4(),
            5 => $reg.k5(),
            6 => $reg.k6(),
            _ => $reg.k7(),
        }
    };
}

impl Emitter<'_> {
    /// Emits an operation that gives a value or has an effect.
    pub(super) fn operate(&mut self, regs: &mut Registers, region: &Region, index: usize, cx: &Context) -> Done {
        let v = V(index as u32);
        let position = index as u32;
        let op = region.ops[index];
        match op {
            // These are loaded from their home when they are needed.
            VectorOp::Const(..) | VectorOp::Lanes(_) | VectorOp::Slot(..) => return Ok(()),
            VectorOp::Load(access, element, place) => {
                return self.load(regs, region, v, (access, element, place), cx);
            }
            VectorOp::Store(access, element, place, value) => {
                return self.store(regs, region, position, (access, element, place, value), cx);
            }
            VectorOp::AddAt { .. } => return self.add_at(regs, region, position, &op, cx),
            VectorOp::Call { .. } | VectorOp::Patch { .. } => return self.routine(regs, region, v, &op, cx),
            VectorOp::Acc(number, kind) => {
                if let Some(register) = regs.accumulators[number as usize] {
                    regs.hold(v, register);
                } else {
                    let d = self.target(regs, region, v, position, &[])?;
                    let place = frame(cx.accumulators[number as usize][cx.copy]);
                    self.fetch(kind, d, place)?;
                }
                return Ok(());
            }
            VectorOp::SetAcc(number, value) => {
                let s = self.source(regs, region, value, position)?;
                let kind = region.kind(value);
                if let Some(register) = regs.accumulators[number as usize] {
                    self.copy(kind, register as usize, s)?;
                } else {
                    let place = frame(cx.accumulators[number as usize][cx.copy]);
                    self.put(kind, place, s)?;
                }
                self.release(regs, region, position);
                return Ok(());
            }
            VectorOp::SetSlot(slot, value) => {
                let s = self.source(regs, region, value, position)?;
                let place = frame(slot);
                self.put(region.kind(value), place, s)?;
                self.release(regs, region, position);
                return Ok(());
            }
            VectorOp::Check(mask) => {
                let s = self.source(regs, region, mask, position)?;
                let fault = self.fault;
                self.test_any(s, cx.count)?;
                self.asm.jnz(fault)?;
                self.release(regs, region, position);
                return Ok(());
            }
            _ => {}
        }
        let mut sources = Vec::with_capacity(3);
        let mut operands = Vec::with_capacity(3);
        op.each_operand(|v| operands.push(v));
        for operand in &operands {
            sources.push(self.source(regs, region, *operand, position)?);
        }
        let hint = cx.hints[index].and_then(|number| regs.accumulators[number as usize]);
        // Every instruction below has read its operands before it writes, so their registers may be given out.
        self.release(regs, region, position);
        let d = if let Some(register) = hint {
            regs.hold(v, register);
            register as usize
        } else {
            let preferred = match op {
                VectorOp::Fma(..) | VectorOp::Fnma(..) => vec![sources[2], sources[0], sources[1]],
                _ => sources.clone(),
            };
            self.target(regs, region, v, position, &preferred)?
        };
        self.compute(&op, region, d, &sources, cx)
    }

    fn compute(&mut self, op: &VectorOp, region: &Region, d: usize, s: &[usize], cx: &Context) -> Done {
        match *op {
            VectorOp::Number(number) => {
                self.asm.mov(rax, frame(NUMBERS))?;
                let place = ptr(rax + (number * 8) as i32);
                self.spread(d, place)?;
            }
            VectorOp::Index(axis) => {
                let number = axis.0 as usize;
                if region.axis == Some(axis) {
                    self.asm.mov(rax, r11)?;
                    let ahead = cx.copy * cx.stride;
                    if ahead != 0 {
                        self.asm.add(rax, ahead as i32)?;
                    }
                } else {
                    let counter = frame(self.layout.counters[number]);
                    self.asm.mov(rax, counter)?;
                }
                self.asm.mov(rcx, frame(BEGINS))?;
                self.asm.add(rax, ptr(rcx + (number * 8) as i32))?;
                self.spread_register(d)?;
            }
            VectorOp::LaneStep(access) | VectorOp::LaneStepWide(access) => {
                let axes = self.kernel.axes.len();
                let lane = cx.lane.map_or(0, |a| a.0 as usize);
                self.asm.mov(rax, frame(STEPS))?;
                let place = ptr(rax + ((access.0 as usize * axes + lane) * 8) as i32);
                if matches!(op, VectorOp::LaneStep(_)) {
                    rm!(self, vbroadcastss, self.bytes(Kind::W32), d, place);
                } else {
                    self.spread(d, place)?;
                }
            }
            VectorOp::Alu(alu, ty, ..) => self.alu(alu, ty, d, s[0], s[1])?,
            VectorOp::Fma(ty, ..) => self.fused(ty, Sign::Plus, d, s)?,
            VectorOp::Fnma(ty, ..) => self.fused(ty, Sign::Minus, d, s)?,
            VectorOp::Sqrt(ty, _) => match ty {
                Type::F64 => rr!(self, vsqrtpd, self.bytes(Kind::W64), d, s[0]),
                _ => rr!(self, vsqrtps, self.bytes(Kind::W32), d, s[0]),
            },
            VectorOp::Round(ty, rounding, _) => self.round(ty, rounding, d, s[0])?,
            VectorOp::Shift(shift, kind, _, by) => {
                let w = self.bytes(kind);
                match (shift, kind) {
                    (Shift::Left, Kind::W64) => rri!(self, vpsllq, w, d, s[0], by),
                    (Shift::Left, _) => rri!(self, vpslld, w, d, s[0], by),
                    (Shift::Right, Kind::W64) => rri!(self, vpsrlq, w, d, s[0], by),
                    (Shift::Right, _) => rri!(self, vpsrld, w, d, s[0], by),
                    (Shift::RightSigned, _) => rri!(self, vpsrad, w, d, s[0], by),
                }
            }
            VectorOp::Logic(logic, a, _) => self.logic(logic, region.kind(a), d, s[0], s[1])?,
            VectorOp::Cmp(cond, ty, ..) => self.cmp(cond, ty, d, s[0], s[1])?,
            VectorOp::Select(_, a, _) => self.select(region.kind(a), d, s[0], s[1], s[2])?,
            VectorOp::Convert(from, to, _) => self.convert(from, to, d, s[0])?,
            VectorOp::ThroughHalf(_) => match self.bytes(Kind::W32) {
                16 => {
                    self.asm.vcvtps2ph(X[d], X[s[0]], 0)?;
                    self.asm.vcvtph2ps(X[d], X[d])?;
                }
                32 => {
                    self.asm.vcvtps2ph(X[d], Y[s[0]], 0)?;
                    self.asm.vcvtph2ps(Y[d], X[d])?;
                }
                _ => {
                    self.asm.vcvtps2ph(Y[d], Z[s[0]], 0)?;
                    self.asm.vcvtph2ps(Z[d], Y[d])?;
                }
            },
            VectorOp::Scale(ty, ..) => match ty {
                Type::F64 => rrr!(self, vscalefpd, self.bytes(Kind::W64), d, s[0], s[1]),
                _ => rrr!(self, vscalefps, self.bytes(Kind::W32), d, s[0], s[1]),
            },
            VectorOp::Splat(a) => {
                if region.kind(a) == Kind::Mask && self.is_wide() {
                    self.asm.kmovw(eax, K[s[0]])?;
                    self.asm.and(eax, 1)?;
                    self.asm.neg(eax)?;
                    self.asm.kmovw(K[d], eax)?;
                } else {
                    match self.bytes(Kind::W32) {
                        16 => self.asm.vbroadcastss(X[d], X[s[0]])?,
                        32 => self.asm.vbroadcastss(Y[d], X[s[0]])?,
                        _ => self.asm.vbroadcastss(Z[d], X[s[0]])?,
                    }
                }
            }
            VectorOp::Swap(a, distance) => self.swap(region.kind(a), distance as usize, d, s[0])?,
            VectorOp::Active => {
                if self.is_wide() {
                    self.asm.kmovw(K[d], K[7])?;
                } else {
                    let place = frame(MASK32);
                    self.fetch(Kind::Mask, d, place)?;
                }
            }
            _ => unreachable!("handled where registers are given out"),
        }
        Ok(())
    }

    /// Eight bytes of memory in every lane.
    fn spread(&mut self, d: usize, place: iced_x86::code_asm::AsmMemoryOperand) -> Done {
        match self.bytes(Kind::W64) {
            32 => self.asm.vbroadcastsd(Y[d], place)?,
            _ => self.asm.vbroadcastsd(Z[d], place)?,
        }
        Ok(())
    }

    /// The number in `rax` in every lane.
    fn spread_register(&mut self, d: usize) -> Done {
        if self.is_wide() {
            rm!(self, vpbroadcastq, self.bytes(Kind::W64), d, rax);
        } else {
            self.asm.vmovq(X[d], rax)?;
            self.asm.vpbroadcastq(Y[d], X[d])?;
        }
        Ok(())
    }

    fn alu(&mut self, alu: Alu, ty: Type, d: usize, a: usize, b: usize) -> Done {
        let w = self.bytes(Kind::of(ty));
        match (ty, alu) {
            (Type::F32, Alu::Add) => rrr!(self, vaddps, w, d, a, b),
            (Type::F32, Alu::Sub) => rrr!(self, vsubps, w, d, a, b),
            (Type::F32, Alu::Mul) => rrr!(self, vmulps, w, d, a, b),
            (Type::F32, Alu::Div) => rrr!(self, vdivps, w, d, a, b),
            (Type::F32, Alu::Max) => rrr!(self, vmaxps, w, d, a, b),
            (Type::F32, Alu::Min) => rrr!(self, vminps, w, d, a, b),
            (Type::F64, Alu::Add) => rrr!(self, vaddpd, w, d, a, b),
            (Type::F64, Alu::Sub) => rrr!(self, vsubpd, w, d, a, b),
            (Type::F64, Alu::Mul) => rrr!(self, vmulpd, w, d, a, b),
            (Type::F64, Alu::Div) => rrr!(self, vdivpd, w, d, a, b),
            (Type::F64, Alu::Max) => rrr!(self, vmaxpd, w, d, a, b),
            (Type::F64, Alu::Min) => rrr!(self, vminpd, w, d, a, b),
            (Type::I32, Alu::Add) => rrr!(self, vpaddd, w, d, a, b),
            (Type::I32, Alu::Sub) => rrr!(self, vpsubd, w, d, a, b),
            (Type::I32, Alu::Mul) => rrr!(self, vpmulld, w, d, a, b),
            (Type::I32, Alu::Max) => rrr!(self, vpmaxsd, w, d, a, b),
            (Type::I32, Alu::Min) => rrr!(self, vpminsd, w, d, a, b),
            (Type::I64, Alu::Add) => rrr!(self, vpaddq, w, d, a, b),
            (Type::I64, Alu::Sub) => rrr!(self, vpsubq, w, d, a, b),
            (Type::I64, Alu::Mul) => rrr!(self, vpmullq, w, d, a, b),
            (Type::I64, Alu::Max) => rrr!(self, vpmaxsq, w, d, a, b),
            (Type::I64, Alu::Min) => rrr!(self, vpminsq, w, d, a, b),
            (_, Alu::MulLow) => rrr!(self, vpmuludq, w, d, a, b),
            (_, Alu::ShiftLeft) => rrr!(self, vpsllvq, w, d, a, b),
            (_, Alu::ShiftRight) => rrr!(self, vpsrlvq, w, d, a, b),
            _ => unreachable!("integers are not divided"),
        }
        Ok(())
    }

    fn fused(&mut self, ty: Type, sign: Sign, d: usize, s: &[usize]) -> Done {
        let w = self.bytes(Kind::of(ty));
        let (a, b, c) = (s[0], s[1], s[2]);
        if d == a || d == b {
            let other = if d == a { b } else { a };
            match (ty, sign) {
                (Type::F64, Sign::Plus) => rrr!(self, vfmadd213pd, w, d, other, c),
                (Type::F64, Sign::Minus) => rrr!(self, vfnmadd213pd, w, d, other, c),
                (_, Sign::Plus) => rrr!(self, vfmadd213ps, w, d, other, c),
                (_, Sign::Minus) => rrr!(self, vfnmadd213ps, w, d, other, c),
            }
            return Ok(());
        }
        self.copy(Kind::of(ty), d, c)?;
        match (ty, sign) {
            (Type::F64, Sign::Plus) => rrr!(self, vfmadd231pd, w, d, a, b),
            (Type::F64, Sign::Minus) => rrr!(self, vfnmadd231pd, w, d, a, b),
            (_, Sign::Plus) => rrr!(self, vfmadd231ps, w, d, a, b),
            (_, Sign::Minus) => rrr!(self, vfnmadd231ps, w, d, a, b),
        }
        Ok(())
    }

    fn round(&mut self, ty: Type, rounding: Rounding, d: usize, a: usize) -> Done {
        // Bit 3 keeps the inexact flag as it is.
        let mode = 8 | match rounding {
            Rounding::Nearest => 0,
            Rounding::Down => 1,
            Rounding::Up => 2,
            Rounding::Zero => 3,
        };
        let w = self.bytes(Kind::of(ty));
        match (self.is_wide(), ty) {
            (true, Type::F64) => rri!(self, vrndscalepd, w, d, a, mode),
            (true, _) => rri!(self, vrndscaleps, w, d, a, mode),
            (false, Type::F64) => match w {
                16 => self.asm.vroundpd(X[d], X[a], mode)?,
                _ => self.asm.vroundpd(Y[d], Y[a], mode)?,
            },
            (false, _) => match w {
                16 => self.asm.vroundps(X[d], X[a], mode)?,
                _ => self.asm.vroundps(Y[d], Y[a], mode)?,
            },
        }
        Ok(())
    }

    fn logic(&mut self, logic: Logic, kind: Kind, d: usize, a: usize, b: usize) -> Done {
        if kind == Kind::Mask && self.is_wide() {
            match logic {
                Logic::And => self.asm.kandw(K[d], K[a], K[b])?,
                Logic::Or => self.asm.korw(K[d], K[a], K[b])?,
                Logic::Xor => self.asm.kxorw(K[d], K[a], K[b])?,
                Logic::AndNot => self.asm.kandnw(K[d], K[a], K[b])?,
            }
            return Ok(());
        }
        let w = self.bytes(kind);
        match logic {
            Logic::And => rrr!(self, vandps, w, d, a, b),
            Logic::Or => rrr!(self, vorps, w, d, a, b),
            Logic::Xor => rrr!(self, vxorps, w, d, a, b),
            Logic::AndNot => rrr!(self, vandnps, w, d, a, b),
        }
        Ok(())
    }

    fn cmp(&mut self, cond: Cond, ty: Type, d: usize, a: usize, b: usize) -> Done {
        let w = self.bytes(Kind::of(ty));
        if ty.is_float() {
            let predicate = match cond {
                Cond::Eq => 0x00,
                Cond::Ne => 0x04,
                Cond::Lt => 0x11,
                Cond::Le => 0x12,
                Cond::Gt => 0x1e,
                Cond::Ge => 0x1d,
                Cond::Unordered => 0x03,
            };
            match (self.is_wide(), ty, w) {
                (true, Type::F64, 32) => self.asm.vcmppd(K[d], Y[a], Y[b], predicate)?,
                (true, Type::F64, _) => self.asm.vcmppd(K[d], Z[a], Z[b], predicate)?,
                (true, _, 16) => self.asm.vcmpps(K[d], X[a], X[b], predicate)?,
                (true, _, 32) => self.asm.vcmpps(K[d], Y[a], Y[b], predicate)?,
                (true, ..) => self.asm.vcmpps(K[d], Z[a], Z[b], predicate)?,
                (false, Type::F64, _) => self.asm.vcmppd(Y[d], Y[a], Y[b], predicate)?,
                (false, _, 16) => self.asm.vcmpps(X[d], X[a], X[b], predicate)?,
                (false, ..) => self.asm.vcmpps(Y[d], Y[a], Y[b], predicate)?,
            }
        } else if self.is_wide() {
            let predicate = match cond {
                Cond::Eq => 0,
                Cond::Lt => 1,
                Cond::Le => 2,
                Cond::Ne => 4,
                Cond::Ge => 5,
                Cond::Gt | Cond::Unordered => 6,
            };
            match (ty, w) {
                (Type::I64, 32) => self.asm.vpcmpq(K[d], Y[a], Y[b], predicate)?,
                (Type::I64, _) => self.asm.vpcmpq(K[d], Z[a], Z[b], predicate)?,
                (_, 16) => self.asm.vpcmpd(K[d], X[a], X[b], predicate)?,
                (_, 32) => self.asm.vpcmpd(K[d], Y[a], Y[b], predicate)?,
                _ => self.asm.vpcmpd(K[d], Z[a], Z[b], predicate)?,
            }
        } else {
            let (first, second) = if matches!(cond, Cond::Lt | Cond::Ge) { (b, a) } else { (a, b) };
            match (matches!(cond, Cond::Eq | Cond::Ne), ty, w) {
                (true, Type::I64, _) => self.asm.vpcmpeqq(Y[d], Y[first], Y[second])?,
                (true, _, 16) => self.asm.vpcmpeqd(X[d], X[first], X[second])?,
                (true, ..) => self.asm.vpcmpeqd(Y[d], Y[first], Y[second])?,
                (false, Type::I64, _) => self.asm.vpcmpgtq(Y[d], Y[first], Y[second])?,
                (false, _, 16) => self.asm.vpcmpgtd(X[d], X[first], X[second])?,
                (false, ..) => self.asm.vpcmpgtd(Y[d], Y[first], Y[second])?,
            }
            if matches!(cond, Cond::Ne | Cond::Le | Cond::Ge) {
                self.asm.vpcmpeqd(Y[0], Y[0], Y[0])?;
                self.asm.vxorps(Y[d], Y[d], Y[0])?;
            }
        }
        if !self.is_wide() && Kind::of(ty) == Kind::W64 {
            self.asm.vextractf128(X[0], Y[d], 1)?;
            self.asm.vshufps(X[d], X[d], X[0], 0x88)?;
        }
        Ok(())
    }

    /// Where the mask is true the first, else the second.
    pub(super) fn select(&mut self, kind: Kind, d: usize, mask: usize, a: usize, b: usize) -> Done {
        match (self.is_wide(), kind, self.bytes(kind)) {
            (true, Kind::W64, 32) => self.asm.vblendmpd(masked!(Y[d], mask), Y[b], Y[a])?,
            (true, Kind::W64, _) => self.asm.vblendmpd(masked!(Z[d], mask), Z[b], Z[a])?,
            (true, _, 16) => self.asm.vblendmps(masked!(X[d], mask), X[b], X[a])?,
            (true, _, 32) => self.asm.vblendmps(masked!(Y[d], mask), Y[b], Y[a])?,
            (true, ..) => self.asm.vblendmps(masked!(Z[d], mask), Z[b], Z[a])?,
            (false, Kind::W64, _) => {
                self.asm.vpmovsxdq(Y[0], X[mask])?;
                self.asm.vblendvpd(Y[d], Y[b], Y[a], Y[0])?;
            }
            (false, _, 16) => self.asm.vblendvps(X[d], X[b], X[a], X[mask])?,
            (false, ..) => self.asm.vblendvps(Y[d], Y[b], Y[a], Y[mask])?,
        }
        Ok(())
    }

    fn convert(&mut self, from: Type, to: Type, d: usize, a: usize) -> Done {
        let w = self.bytes(Kind::W32);
        let wide = self.bytes(Kind::W64) == 64;
        match (from, to, wide) {
            (Type::I32, Type::F32, _) => rr!(self, vcvtdq2ps, w, d, a),
            (Type::F32, Type::I32, _) => rr!(self, vcvttps2dq, w, d, a),
            (Type::F32, Type::F64, true) => self.asm.vcvtps2pd(Z[d], Y[a])?,
            (Type::F32, Type::F64, false) => self.asm.vcvtps2pd(Y[d], X[a])?,
            (Type::F64, Type::F32, true) => self.asm.vcvtpd2ps(Y[d], Z[a])?,
            (Type::F64, Type::F32, false) => self.asm.vcvtpd2ps(X[d], Y[a])?,
            (Type::I32, Type::F64, true) => self.asm.vcvtdq2pd(Z[d], Y[a])?,
            (Type::I32, Type::F64, false) => self.asm.vcvtdq2pd(Y[d], X[a])?,
            (Type::F64, Type::I32, true) => self.asm.vcvttpd2dq(Y[d], Z[a])?,
            (Type::F64, Type::I32, false) => self.asm.vcvttpd2dq(X[d], Y[a])?,
            (Type::I32, Type::I64, true) => self.asm.vpmovsxdq(Z[d], Y[a])?,
            (Type::I32, Type::I64, false) => self.asm.vpmovsxdq(Y[d], X[a])?,
            (Type::I64, Type::I32, true) => self.asm.vpmovqd(Y[d], Z[a])?,
            (Type::I64, Type::I32, false) => {
                self.asm.vextractf128(X[0], Y[a], 1)?;
                self.asm.vshufps(X[d], X[a], X[0], 0x88)?;
            }
            (Type::I64, Type::F64, _) => self.asm.vcvtqq2pd(Z[d], Z[a])?,
            (Type::F64, Type::I64, _) => self.asm.vcvttpd2qq(Z[d], Z[a])?,
            (Type::I64, Type::F32, _) => self.asm.vcvtqq2ps(Y[d], Z[a])?,
            (Type::F32, Type::I64, _) => self.asm.vcvttps2qq(Z[d], Y[a])?,
            _ => unreachable!("bools are not converted"),
        }
        Ok(())
    }

    fn swap(&mut self, kind: Kind, distance: usize, d: usize, a: usize) -> Done {
        let w = self.bytes(kind);
        match (distance * if kind == Kind::W64 { 8 } else { 4 }, w) {
            (32, _) => self.asm.vshuff64x2(Z[d], Z[a], Z[a], 0x4e)?,
            (16, 64) => self.asm.vshuff64x2(Z[d], Z[a], Z[a], 0xb1)?,
            (16, _) if self.is_wide() => self.asm.vshuff64x2(Y[d], Y[a], Y[a], 1)?,
            (16, _) => self.asm.vperm2f128(Y[d], Y[a], Y[a], 1)?,
            (8, _) => rri!(self, vpermilpd, w, d, a, 0x55),
            _ => rri!(self, vpermilps, w, d, a, 0xb1),
        }
        Ok(())
    }

    /// Sets the zero flag unless a lane that counts is true.
    pub(super) fn test_any(&mut self, mask: usize, count: Count) -> Done {
        if self.is_wide() {
            let mut tested = K[mask];
            if count == Count::Rest {
                self.asm.kandw(K[0], K[mask], K[7])?;
                tested = K[0];
            }
            if self.shape.lanes == 16 {
                self.asm.kortestw(tested, tested)?;
            } else {
                self.asm.kortestb(tested, tested)?;
            }
        } else {
            let w = self.bytes(Kind::W32);
            let mut tested = mask;
            if count == Count::Rest {
                let place = frame(MASK32);
                match w {
                    16 => self.asm.vandps(X[0], X[mask], place)?,
                    _ => self.asm.vandps(Y[0], Y[mask], place)?,
                }
                tested = 0;
            }
            match w {
                16 => self.asm.vmovmskps(eax, X[tested])?,
                _ => self.asm.vmovmskps(eax, Y[tested])?,
            }
            self.asm.test(eax, eax)?;
        }
        Ok(())
    }

    /// Takes the lanes that count from the number in `rax`.
    pub(super) fn set_count(&mut self) -> Done {
        let lanes = self.shape.lanes as i32;
        self.asm.mov(ecx, lanes)?;
        self.asm.cmp(rax, rcx)?;
        self.asm.cmovg(rax, rcx)?;
        let place = frame(COUNT);
        self.asm.mov(place, rax)?;
        if self.is_wide() {
            self.asm.mov(ecx, -1)?;
            self.asm.bzhi(ecx, ecx, eax)?;
            self.asm.kmovw(K[7], ecx)?;
            return Ok(());
        }
        let window = self.window();
        self.asm.neg(rax)?;
        self.asm.lea(rcx, window)?;
        let at = ptr(rcx + rax * 4 + 64);
        let (narrow, wide) = (frame(MASK32), frame(MASK64));
        let w = self.bytes(Kind::W32);
        rm!(self, vmovups, w, 0, at);
        mr!(self, vmovups, w, narrow, 0);
        self.asm.vpmovsxdq(Y[0], X[0])?;
        self.asm.vmovups(wide, Y[0])?;
        Ok(())
    }

    /// Says how many lanes count from here on, where that is known.
    pub(super) fn set_known_count(&mut self, lanes: i64) -> Done {
        if !self.is_wide() {
            self.asm.mov(rax, lanes)?;
            return self.set_count();
        }
        let place = frame(COUNT);
        self.asm.mov(qword_ptr(place), lanes as i32)?;
        self.asm.mov(ecx, (1i32 << lanes) - 1)?;
        self.asm.kmovw(K[7], ecx)?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}
