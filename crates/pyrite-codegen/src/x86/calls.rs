//! Calls of Rust functions for all lanes, from within a region.
//!
//! Every register that holds something is kept in the frame during a call.

#![expect(unsafe_code, reason = "machine code calls these functions with raw memory")]

use iced_x86::code_asm::{
    ptr,
    registers::gpr64::{r8, r9, r10, r11, rax, rdi, rdx, rsi, rsp},
};
use pyrite_loops::{AccessId, Type, Write};
use pyrite_tensor::DType;

use super::emitter::{Done, Emitter, K, Y, Z, frame};
use super::layout::{COUNT, FIRST, GIVEN, OPMASK, REGISTERS, SAVED, SECOND, STEPS};
use super::lower::Count;
use super::region::Context;
use super::registers::Registers;
use super::vector::{Kind, Region, Routine, V, VectorOp};
use crate::tiles::{self, LanePointer, Reg, math, to_i64};

/// What a function that the code calls needs to know; lives as long as the code.
#[derive(Clone, Copy, Debug)]
pub(super) enum RuntimeCall {
    Routine(Routine),
    AddAt(DType),
}

const KEPT: [iced_x86::code_asm::AsmRegister64; 6] = [rsi, rdi, r8, r9, r10, r11];

impl Emitter<'_> {
    /// Emits [`Op::Call`] and [`Op::Patch`].
    pub(super) fn routine(&mut self, regs: &mut Registers, region: &Region, v: V, op: &VectorOp, cx: &Context) -> Done {
        let position = v.0;
        let (VectorOp::Call { routine, a, b } | VectorOp::Patch { routine, a, b, .. }) = *op else { return Ok(()) };
        let kind = region.kind(v);
        let (first, second) = (self.source(regs, region, a, position)?, self.source(regs, region, b, position)?);
        let lanes = (self.bytes(region.kind(a)) / size(region.kind(a))).min(self.bytes(kind) / size(kind));
        if let VectorOp::Patch { mask, value, .. } = *op {
            let mask = self.source(regs, region, mask, position)?;
            let value = self.source(regs, region, value, position)?;
            let d = self.target(regs, region, v, position, &[])?;
            self.copy(kind, d, value)?;
            let mut done = self.asm.create_label();
            self.test_any(mask, cx.count)?;
            self.asm.jz(done)?;
            self.put_arguments(region, (a, first), (b, second))?;
            self.call(regs, RuntimeCall::Routine(routine), lanes)?;
            let given = frame(GIVEN);
            self.fetch(kind, 1, given)?;
            self.select(kind, d, mask, 1, d)?;
            self.asm.set_label(&mut done)?;
            self.asm.nop()?;
            self.release(regs, region, position);
            return Ok(());
        }
        self.put_arguments(region, (a, first), (b, second))?;
        self.release(regs, region, position);
        let d = self.target(regs, region, v, position, &[])?;
        self.call(regs, RuntimeCall::Routine(routine), lanes)?;
        let given = frame(GIVEN);
        self.fetch(kind, d, given)
    }

    pub(super) fn put_arguments(&mut self, region: &Region, a: (V, usize), b: (V, usize)) -> Done {
        let (first, second) = (frame(FIRST), frame(SECOND));
        self.put(region.kind(a.0), first, a.1)?;
        self.put(region.kind(b.0), second, b.1)
    }

    /// Emits [`VectorOp::AddAt`] for elements that no instruction adds to.
    pub(super) fn call_add_at(&mut self, regs: &Registers, access: AccessId, cx: &Context) -> Done {
        let to = frame(GIVEN);
        self.asm.mov(to, rdx)?;
        let steps = frame(STEPS);
        match cx.lane {
            Some(axis) => {
                let place = (access.0 as usize * self.kernel.axes.len() + axis.0 as usize) * 8;
                self.asm.mov(rax, steps)?;
                self.asm.mov(rax, ptr(rax + place as i32))?;
            }
            None => self.asm.mov(rax, 0i64)?,
        }
        let to = frame(GIVEN + 8);
        self.asm.mov(to, rax)?;
        match cx.count {
            Count::Full => self.asm.mov(rax, self.shape.lanes as i64)?,
            Count::Rest => {
                let count = frame(COUNT);
                self.asm.mov(rax, count)?;
            }
        }
        let to = frame(GIVEN + 16);
        self.asm.mov(to, rax)?;
        let dtype = self.kernel.access(access).dtype;
        self.call(regs, RuntimeCall::AddAt(dtype), 0)
    }

    /// Calls [`dispatch_runtime_call`]; all registers keep what they hold.
    fn call(&mut self, regs: &Registers, runtime_call: RuntimeCall, lanes: usize) -> Done {
        let (vectors, masks) = regs.occupied(self.is_wide());
        for (number, register) in KEPT.into_iter().enumerate() {
            let to = frame(SAVED + 8 * number as u32);
            self.asm.mov(to, register)?;
        }
        let wide = self.is_wide();
        for register in &vectors {
            let to = frame(REGISTERS + 64 * *register as u32);
            if wide { self.asm.vmovups(to, Z[*register])? } else { self.asm.vmovups(to, Y[*register])? }
        }
        let mut opmasks = masks;
        if wide {
            opmasks.push(7);
        }
        for mask in &opmasks {
            let to = frame(OPMASK + 8 * *mask as u32);
            self.asm.kmovq(to, K[*mask])?;
        }
        let runtime_call: *const RuntimeCall = self.keep(runtime_call);
        self.asm.mov(rdi, runtime_call as u64)?;
        self.asm.lea(rsi, ptr(rsp + FIRST as i32))?;
        self.asm.mov(rdx, lanes as i64)?;
        self.asm.vzeroupper()?;
        self.asm.mov(rax, dispatch_runtime_call as unsafe extern "sysv64" fn(_, _, _) as usize as u64)?;
        self.asm.call(rax)?;
        for mask in &opmasks {
            let from = frame(OPMASK + 8 * *mask as u32);
            self.asm.kmovq(K[*mask], from)?;
        }
        for register in &vectors {
            let from = frame(REGISTERS + 64 * *register as u32);
            if wide { self.asm.vmovups(Z[*register], from)? } else { self.asm.vmovups(Y[*register], from)? }
        }
        for (number, register) in KEPT.into_iter().enumerate() {
            let from = frame(SAVED + 8 * number as u32);
            self.asm.mov(register, from)?;
        }
        Ok(())
    }
}

fn size(kind: Kind) -> usize {
    if kind == Kind::W64 { 8 } else { 4 }
}

/// The part of the frame that functions see.
#[repr(C)]
struct Frame {
    first: [u8; 64],
    second: [u8; 64],
    given: [u8; 64],
}

/// Runs a function for all lanes.
///
/// # Safety
/// Called by the code that holds the runtime call, with the arguments in its frame.
unsafe extern "sysv64" fn dispatch_runtime_call(runtime_call: *const RuntimeCall, frame: *mut Frame, lanes: usize) {
    // SAFETY: the code and its runtime calls live together, and the frame is that of the code that calls.
    let (runtime_call, frame) = unsafe { (&*runtime_call, &mut *frame) };
    match *runtime_call {
        RuntimeCall::Routine(Routine::SlowPath(op, Type::F64)) => {
            each(&frame.first, &frame.second, &mut frame.given, lanes, |x, _: f64| tiles::slow_path_f64(op, x));
        }
        RuntimeCall::Routine(Routine::SlowPath(op, _)) => {
            each(&frame.first, &frame.second, &mut frame.given, lanes, |x, _: f32| tiles::slow_path_f32(op, x));
        }
        RuntimeCall::Routine(Routine::Binary(op, Type::F64)) => {
            each(&frame.first, &frame.second, &mut frame.given, lanes, |x, y: f64| math::binary_f64(op, x, y));
        }
        RuntimeCall::Routine(Routine::Binary(op, _)) => {
            each(&frame.first, &frame.second, &mut frame.given, lanes, |x, y: f32| math::binary_f32(op, x, y));
        }
        RuntimeCall::Routine(Routine::Cast(from, to)) => cast(from, to, frame, lanes),
        // SAFETY: the caller of the kernel warrants that its scatters stay within their buffer.
        RuntimeCall::AddAt(dtype) => unsafe { add_at(dtype, frame) },
    }
}

/// A number that is plain bytes.
trait Plain: Copy {
    fn read(bytes: &[u8; 64], lane: usize) -> Self;
    fn write(self, bytes: &mut [u8; 64], lane: usize);
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Plain for $ty {
            fn read(bytes: &[u8; 64], lane: usize) -> Self {
                let mut own = [0; size_of::<$ty>()];
                own.copy_from_slice(&bytes[lane * size_of::<$ty>()..][..size_of::<$ty>()]);
                <$ty>::from_ne_bytes(own)
            }
            fn write(self, bytes: &mut [u8; 64], lane: usize) {
                bytes[lane * size_of::<$ty>()..][..size_of::<$ty>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
plain!(f32, f64, i64, i32, u64);

fn each<A: Plain, B: Plain, R: Plain>(
    first: &[u8; 64],
    second: &[u8; 64],
    given: &mut [u8; 64],
    lanes: usize,
    f: impl Fn(A, B) -> R,
) {
    for lane in 0..lanes {
        f(A::read(first, lane), B::read(second, lane)).write(given, lane);
    }
}

fn cast(from: Type, to: Type, frame: &mut Frame, lanes: usize) {
    let (first, second, given) = (&frame.first, &frame.second, &mut frame.given);
    match (from, to) {
        (Type::I64, Type::F32) => each(first, second, given, lanes, |x: i64, _: i64| x as f32),
        (Type::I64, _) => each(first, second, given, lanes, |x: i64, _: i64| x as f64),
        (Type::F32, _) => each(first, second, given, lanes, |x: f32, _: f32| to_i64(f64::from(x))),
        _ => each(first, second, given, lanes, |x: f64, _: f64| to_i64(x)),
    }
}

/// # Safety
/// The elements that the lanes reach are readable and writable.
unsafe fn add_at(dtype: DType, frame: &Frame) {
    let base = u64::read(&frame.given, 0) as *mut u8;
    let (step, count) = (i64::read(&frame.given, 1), i64::read(&frame.given, 2) as usize);
    let place = LanePointer { pointer: base, step, dtype };
    let value = match Type::of(dtype) {
        Some(Type::Bool) => Reg::Bool(lanes::<i32>(&frame.first, count).into_iter().map(|x| x != 0).collect()),
        Some(Type::I32) => Reg::I32(lanes(&frame.first, count)),
        Some(Type::I64) => Reg::I64(lanes(&frame.first, count)),
        Some(Type::F32) => Reg::F32(lanes(&frame.first, count)),
        _ => Reg::F64(lanes(&frame.first, count)),
    };
    // SAFETY: by the contract of this function.
    unsafe { place.scatter(&Reg::I64(lanes(&frame.second, count)), &value, Write::Add, count) }
}

fn lanes<T: Plain>(bytes: &[u8; 64], count: usize) -> Vec<T> {
    (0..count).map(|lane| T::read(bytes, lane)).collect()
}
