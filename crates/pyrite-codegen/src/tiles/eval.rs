//! Instructions over a tile.

use half::{bf16, f16};
use pyrite_loops::{Binary, Compare, Inst, Number, Shift, Type, Unary, Val};
use pyrite_tensor::DType;
use pyrite_tensor::random::stream::draw;

use super::math;
use super::slow::{slow_path_f32, slow_path_f64};
use crate::Fault;

/// One value for each lane.
#[derive(Clone, Debug)]
pub(crate) enum Reg {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Reg {
    pub(super) fn zeros(ty: Type, len: usize) -> Self {
        match ty {
            Type::Bool => Self::Bool(vec![false; len]),
            Type::I32 => Self::I32(vec![0; len]),
            Type::I64 => Self::I64(vec![0; len]),
            Type::F32 => Self::F32(vec![0.0; len]),
            Type::F64 => Self::F64(vec![0.0; len]),
        }
    }

    /// The register of an instruction as it is when a call begins.
    pub(super) fn start(inst: &Inst, ty: Type, len: usize, numbers: &[i64]) -> Self {
        match (*inst, ty) {
            (Inst::Const(n, _), Type::Bool) => Self::Bool(vec![as_f64(n) != 0.0; len]),
            (Inst::Const(Number::Int(n), _), Type::I32) => Self::I32(vec![n as i32; len]),
            (Inst::Const(Number::Float(n), _), Type::I32) => Self::I32(vec![n as i32; len]),
            (Inst::Const(Number::Int(n), _), Type::I64) => Self::I64(vec![n; len]),
            (Inst::Const(Number::Float(n), _), Type::I64) => Self::I64(vec![n as i64; len]),
            (Inst::Const(n, _), Type::F32) => Self::F32(vec![as_f64(n) as f32; len]),
            (Inst::Const(n, _), Type::F64) => Self::F64(vec![as_f64(n); len]),
            (Inst::Size(n), Type::I64) => Self::I64(vec![numbers[n as usize]; len]),
            _ => Self::zeros(ty, len),
        }
    }

    /// The lanes of 64-bit integers.
    pub(super) fn i64(&self) -> &[i64] {
        match self {
            Self::I64(lanes) => lanes,
            _ => unreachable!("indices are 64-bit integers"),
        }
    }

    /// Takes over the first lanes of another register; if that has only one, every lane becomes it.
    pub(super) fn assign(&mut self, from: &Self, len: usize) {
        fn copy<T: Copy>(to: &mut [T], from: &[T], len: usize) {
            if len == 1 { to.fill(from[0]) } else { to[..len].copy_from_slice(&from[..len]) }
        }
        match (self, from) {
            (Self::Bool(to), Self::Bool(from)) => copy(to, from, len),
            (Self::I32(to), Self::I32(from)) => copy(to, from, len),
            (Self::I64(to), Self::I64(from)) => copy(to, from, len),
            (Self::F32(to), Self::F32(from)) => copy(to, from, len),
            (Self::F64(to), Self::F64(from)) => copy(to, from, len),
            _ => unreachable!("a reduced number keeps its type"),
        }
    }

    /// Counts from a number.
    pub(super) fn count(&mut self, first: i64, by: i64, len: usize) {
        let Self::I64(lanes) = self else { unreachable!("indices are 64-bit integers") };
        for (lane, out) in lanes[..len].iter_mut().enumerate() {
            *out = first + by * lane as i64;
        }
    }
}

fn as_f64(number: Number) -> f64 {
    match number {
        Number::Int(n) => n as f64,
        Number::Float(n) => n,
    }
}

fn map<A: Copy, R>(a: &[A], out: &mut [R], len: usize, f: impl Fn(A) -> R) {
    for (a, out) in a[..len].iter().zip(&mut out[..len]) {
        *out = f(*a);
    }
}

fn zip<A: Copy, B: Copy, R>(a: &[A], b: &[B], out: &mut [R], len: usize, f: impl Fn(A, B) -> R) {
    for ((a, b), out) in a[..len].iter().zip(&b[..len]).zip(&mut out[..len]) {
        *out = f(*a, *b);
    }
}

/// Computes an instruction that depends on its operands alone.
pub(super) fn compute<'a>(inst: &Inst, reg: &dyn Fn(Val) -> &'a Reg, out: &mut Reg, len: usize) {
    match *inst {
        Inst::Unary(op, a) => unary(op, reg(a), out, len),
        Inst::Binary(op, a, b) => binary(op, reg(a), reg(b), out, len),
        Inst::Fma(a, b, c) => fused(Sign::Plus, [reg(a), reg(b), reg(c)], out, len),
        Inst::Fnma(a, b, c) => fused(Sign::Minus, [reg(a), reg(b), reg(c)], out, len),
        Inst::Shift(by, a, count) => shift(by, reg(a), count, out, len),
        Inst::Bits(_, a) => bits(reg(a), out, len),
        Inst::Table(table, at) => {
            let (Reg::I64(out), words) = (out, table.words()) else { unreachable!("words are 64-bit integers") };
            let word = |at: i64| usize::try_from(at).ok().and_then(|at| words.get(at)).map_or(0, |word| *word as i64);
            map(reg(at).i64(), out, len, word);
        }
        Inst::Patch { op, a, mask, value } => patch(op, reg(a), reg(mask), reg(value), out, len),
        Inst::Compare(op, a, b) => compare(op, reg(a), reg(b), out, len),
        Inst::Select(c, a, b) => select(reg(c), reg(a), reg(b), out, len),
        Inst::Cast(_, a) => cast(reg(a), out, len),
        Inst::Wrap(to, a) => wrap(to, reg(a), out, len),
        _ => unreachable!("an instruction that depends on the position"),
    }
}

#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

/// The product of two values added to a third one, or taken from it.
fn fused(sign: Sign, [a, b, c]: [&Reg; 3], out: &mut Reg, len: usize) {
    match (a, b, c, out) {
        (Reg::F32(a), Reg::F32(b), Reg::F32(c), Reg::F32(out)) => {
            for (lane, out) in out[..len].iter_mut().enumerate() {
                let a = if matches!(sign, Sign::Plus) { a[lane] } else { -a[lane] };
                *out = a.mul_add(b[lane], c[lane]);
            }
        }
        (Reg::F64(a), Reg::F64(b), Reg::F64(c), Reg::F64(out)) => {
            for (lane, out) in out[..len].iter_mut().enumerate() {
                let a = if matches!(sign, Sign::Plus) { a[lane] } else { -a[lane] };
                *out = a.mul_add(b[lane], c[lane]);
            }
        }
        _ => unreachable!("floats of one type are multiplied and added"),
    }
}

fn shift(shift: Shift, a: &Reg, by: u32, out: &mut Reg, len: usize) {
    match (a, out) {
        (Reg::I32(a), Reg::I32(out)) => match shift {
            Shift::Left => map(a, out, len, |x| x << by),
            Shift::Right => map(a, out, len, |x| (x as u32 >> by) as i32),
            Shift::RightSigned => map(a, out, len, |x| x >> by),
        },
        (Reg::I64(a), Reg::I64(out)) => match shift {
            Shift::Left => map(a, out, len, |x| x << by),
            Shift::Right => map(a, out, len, |x| (x as u64 >> by) as i64),
            Shift::RightSigned => map(a, out, len, |x| x >> by),
        },
        _ => unreachable!("the bits of integers are moved"),
    }
}

fn bits(a: &Reg, out: &mut Reg, len: usize) {
    match (a, out) {
        (Reg::F32(a), Reg::I32(out)) => map(a, out, len, |x| x.to_bits() as i32),
        (Reg::I32(a), Reg::F32(out)) => map(a, out, len, |x| f32::from_bits(x as u32)),
        (Reg::F64(a), Reg::I64(out)) => map(a, out, len, |x| x.to_bits() as i64),
        (Reg::I64(a), Reg::F64(out)) => map(a, out, len, |x| f64::from_bits(x as u64)),
        (a, out) => out.assign(a, len),
    }
}

fn patch(op: Unary, a: &Reg, mask: &Reg, value: &Reg, out: &mut Reg, len: usize) {
    let Reg::Bool(mask) = mask else { unreachable!("a mask is truth") };
    match (a, value, out) {
        (Reg::F32(a), Reg::F32(value), Reg::F32(out)) => {
            for (lane, out) in out[..len].iter_mut().enumerate() {
                *out = if mask[lane] { slow_path_f32(op, a[lane]) } else { value[lane] };
            }
        }
        (Reg::F64(a), Reg::F64(value), Reg::F64(out)) => {
            for (lane, out) in out[..len].iter_mut().enumerate() {
                *out = if mask[lane] { slow_path_f64(op, a[lane]) } else { value[lane] };
            }
        }
        _ => unreachable!("a function keeps the type of its value"),
    }
}

fn unary(op: Unary, a: &Reg, out: &mut Reg, len: usize) {
    match (a, out) {
        (Reg::Bool(a), Reg::Bool(out)) => map(a, out, len, |x| !x),
        (Reg::I32(a), Reg::I32(out)) => match op {
            Unary::Neg => map(a, out, len, i32::wrapping_neg),
            Unary::Abs => map(a, out, len, i32::wrapping_abs),
            Unary::Sign => map(a, out, len, i32::signum),
            _ => map(a, out, len, |x| !x),
        },
        (Reg::I64(a), Reg::I64(out)) => match op {
            Unary::Neg => map(a, out, len, i64::wrapping_neg),
            Unary::Abs => map(a, out, len, i64::wrapping_abs),
            Unary::Sign => map(a, out, len, i64::signum),
            _ => map(a, out, len, |x| !x),
        },
        (Reg::F32(a), Reg::F32(out)) => match op {
            Unary::Neg => map(a, out, len, |x| -x),
            Unary::Abs => map(a, out, len, f32::abs),
            Unary::Sqrt => map(a, out, len, f32::sqrt),
            _ => map(a, out, len, |x| math::unary_f32(op, x)),
        },
        (Reg::F64(a), Reg::F64(out)) => map(a, out, len, |x| math::unary_f64(op, x)),
        _ => unreachable!("a function keeps the type of its value"),
    }
}

fn binary(op: Binary, a: &Reg, b: &Reg, out: &mut Reg, len: usize) {
    match (a, b, out) {
        (Reg::Bool(a), Reg::Bool(b), Reg::Bool(out)) => match op {
            Binary::And => zip(a, b, out, len, |a, b| a & b),
            Binary::Or => zip(a, b, out, len, |a, b| a | b),
            _ => zip(a, b, out, len, |a, b| a ^ b),
        },
        (Reg::I32(a), Reg::I32(b), Reg::I32(out)) => match op {
            Binary::Add => zip(a, b, out, len, i32::wrapping_add),
            Binary::Sub => zip(a, b, out, len, i32::wrapping_sub),
            Binary::Mul => zip(a, b, out, len, i32::wrapping_mul),
            Binary::Max => zip(a, b, out, len, i32::max),
            Binary::Min => zip(a, b, out, len, i32::min),
            Binary::And => zip(a, b, out, len, |a, b| a & b),
            Binary::Or => zip(a, b, out, len, |a, b| a | b),
            _ => zip(a, b, out, len, |a, b| a ^ b),
        },
        (Reg::I64(a), Reg::I64(b), Reg::I64(out)) => match op {
            Binary::Add => zip(a, b, out, len, i64::wrapping_add),
            Binary::Sub => zip(a, b, out, len, i64::wrapping_sub),
            Binary::Mul => zip(a, b, out, len, i64::wrapping_mul),
            Binary::Max => zip(a, b, out, len, i64::max),
            Binary::Min => zip(a, b, out, len, i64::min),
            Binary::And => zip(a, b, out, len, |a, b| a & b),
            Binary::Or => zip(a, b, out, len, |a, b| a | b),
            Binary::Draw => zip(a, b, out, len, draw),
            Binary::MulLow => zip(a, b, out, len, |a, b| (u64::from(a as u32) * u64::from(b as u32)) as i64),
            Binary::Shl => zip(a, b, out, len, |a, b| a << (b & 63)),
            Binary::Shr => zip(a, b, out, len, |a, b| (a as u64 >> (b & 63)) as i64),
            _ => zip(a, b, out, len, |a, b| a ^ b),
        },
        (Reg::F32(a), Reg::F32(b), Reg::F32(out)) => match op {
            Binary::Add => zip(a, b, out, len, |a, b| a + b),
            Binary::Sub => zip(a, b, out, len, |a, b| a - b),
            Binary::Mul => zip(a, b, out, len, |a, b| a * b),
            Binary::Div => zip(a, b, out, len, |a, b| a / b),
            _ => zip(a, b, out, len, |a, b| math::binary_f32(op, a, b)),
        },
        (Reg::F64(a), Reg::F64(b), Reg::F64(out)) => match op {
            Binary::Add => zip(a, b, out, len, |a, b| a + b),
            Binary::Sub => zip(a, b, out, len, |a, b| a - b),
            Binary::Mul => zip(a, b, out, len, |a, b| a * b),
            Binary::Div => zip(a, b, out, len, |a, b| a / b),
            _ => zip(a, b, out, len, |a, b| math::binary_f64(op, a, b)),
        },
        _ => unreachable!("a function keeps the type of its values"),
    }
}

fn compare(op: Compare, a: &Reg, b: &Reg, out: &mut Reg, len: usize) {
    fn run<T: Copy + PartialOrd>(op: Compare, a: &[T], b: &[T], out: &mut [bool], len: usize) {
        match op {
            Compare::Eq => zip(a, b, out, len, |a, b| a == b),
            Compare::Ne => zip(a, b, out, len, |a, b| a != b),
            Compare::Lt => zip(a, b, out, len, |a, b| a < b),
            Compare::Le => zip(a, b, out, len, |a, b| a <= b),
            Compare::Gt => zip(a, b, out, len, |a, b| a > b),
            Compare::Ge => zip(a, b, out, len, |a, b| a >= b),
        }
    }
    let Reg::Bool(out) = out else { unreachable!("a comparison gives a bool") };
    match (a, b) {
        (Reg::Bool(a), Reg::Bool(b)) => run(op, a, b, out, len),
        (Reg::I32(a), Reg::I32(b)) => run(op, a, b, out, len),
        (Reg::I64(a), Reg::I64(b)) => run(op, a, b, out, len),
        (Reg::F32(a), Reg::F32(b)) => run(op, a, b, out, len),
        (Reg::F64(a), Reg::F64(b)) => run(op, a, b, out, len),
        _ => unreachable!("values of one type are compared"),
    }
}

fn select(condition: &Reg, a: &Reg, b: &Reg, out: &mut Reg, len: usize) {
    fn run<T: Copy>(condition: &[bool], a: &[T], b: &[T], out: &mut [T], len: usize) {
        for (lane, out) in out[..len].iter_mut().enumerate() {
            *out = if condition[lane] { a[lane] } else { b[lane] };
        }
    }
    let Reg::Bool(condition) = condition else { unreachable!("a condition is a bool") };
    match (a, b, out) {
        (Reg::Bool(a), Reg::Bool(b), Reg::Bool(out)) => run(condition, a, b, out, len),
        (Reg::I32(a), Reg::I32(b), Reg::I32(out)) => run(condition, a, b, out, len),
        (Reg::I64(a), Reg::I64(b), Reg::I64(out)) => run(condition, a, b, out, len),
        (Reg::F32(a), Reg::F32(b), Reg::F32(out)) => run(condition, a, b, out, len),
        (Reg::F64(a), Reg::F64(b), Reg::F64(out)) => run(condition, a, b, out, len),
        _ => unreachable!("one of two values of one type is chosen"),
    }
}

/// Towards zero, as x86 converts: what does not fit becomes the least integer.
fn to_i32(x: f64) -> i32 {
    if x > -2_147_483_649.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

/// Towards zero, as x86 converts: what does not fit becomes the least integer.
pub(crate) fn to_i64(x: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) { x as i64 } else { i64::MIN }
}

fn cast(a: &Reg, out: &mut Reg, len: usize) {
    match (a, out) {
        (Reg::Bool(a), Reg::Bool(out)) => map(a, out, len, |x| x),
        (Reg::I32(a), Reg::Bool(out)) => map(a, out, len, |x| x != 0),
        (Reg::I64(a), Reg::Bool(out)) => map(a, out, len, |x| x != 0),
        (Reg::F32(a), Reg::Bool(out)) => map(a, out, len, |x| x != 0.0),
        (Reg::F64(a), Reg::Bool(out)) => map(a, out, len, |x| x != 0.0),
        (Reg::Bool(a), Reg::I32(out)) => map(a, out, len, i32::from),
        (Reg::I32(a), Reg::I32(out)) => map(a, out, len, |x| x),
        (Reg::I64(a), Reg::I32(out)) => map(a, out, len, |x| x as i32),
        (Reg::F32(a), Reg::I32(out)) => map(a, out, len, |x| to_i32(f64::from(x))),
        (Reg::F64(a), Reg::I32(out)) => map(a, out, len, to_i32),
        (Reg::Bool(a), Reg::I64(out)) => map(a, out, len, i64::from),
        (Reg::I32(a), Reg::I64(out)) => map(a, out, len, i64::from),
        (Reg::I64(a), Reg::I64(out)) => map(a, out, len, |x| x),
        (Reg::F32(a), Reg::I64(out)) => map(a, out, len, |x| to_i64(f64::from(x))),
        (Reg::F64(a), Reg::I64(out)) => map(a, out, len, to_i64),
        (Reg::Bool(a), Reg::F32(out)) => map(a, out, len, |x| f32::from(u8::from(x))),
        (Reg::I32(a), Reg::F32(out)) => map(a, out, len, |x| x as f32),
        (Reg::I64(a), Reg::F32(out)) => map(a, out, len, |x| x as f32),
        (Reg::F32(a), Reg::F32(out)) => map(a, out, len, |x| x),
        (Reg::F64(a), Reg::F32(out)) => map(a, out, len, |x| x as f32),
        (Reg::Bool(a), Reg::F64(out)) => map(a, out, len, |x| f64::from(u8::from(x))),
        (Reg::I32(a), Reg::F64(out)) => map(a, out, len, f64::from),
        (Reg::I64(a), Reg::F64(out)) => map(a, out, len, |x| x as f64),
        (Reg::F32(a), Reg::F64(out)) => map(a, out, len, f64::from),
        (Reg::F64(a), Reg::F64(out)) => map(a, out, len, |x| x),
    }
}

fn wrap(to: DType, a: &Reg, out: &mut Reg, len: usize) {
    match (to, a, out) {
        (DType::F16, Reg::F32(a), Reg::F32(out)) => map(a, out, len, |x| f16::from_f32(x).to_f32()),
        (DType::BF16, Reg::F32(a), Reg::F32(out)) => map(a, out, len, |x| bf16::from_f32(x).to_f32()),
        (DType::U8, Reg::I32(a), Reg::I32(out)) => map(a, out, len, |x| i32::from(x as u8)),
        (DType::I8, Reg::I32(a), Reg::I32(out)) => map(a, out, len, |x| i32::from(x as i8)),
        (DType::I16, Reg::I32(a), Reg::I32(out)) => map(a, out, len, |x| i32::from(x as i16)),
        (_, a, out) => cast(a, out, len),
    }
}

pub(super) fn bounded(index: &Reg, extent: &Reg, out: &mut Reg, len: usize) -> Result<(), Fault> {
    let Reg::I64(out) = out else { unreachable!("indices are 64-bit integers") };
    zip(index.i64(), extent.i64(), out, len, |index, extent| if index < 0 { index + extent } else { index });
    let outside = out[..len].iter().zip(extent.i64()).any(|(index, extent)| index < &0 || index >= extent);
    if outside { Err(Fault::OutOfBounds) } else { Ok(()) }
}
