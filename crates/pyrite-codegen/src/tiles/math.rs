//! Functions of one number and of two, as scalar code.
//!
//! Single precision is computed in double precision and rounded once, so it is right but for the rarest halfway cases.

use pyrite_loops::{Binary, Unary};

/// A function of double precision.
pub(crate) fn unary_f64(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        Unary::Not => x,
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Trunc => x.trunc(),
        Unary::Round => x.round_ties_even(),
        Unary::Exp => x.exp(),
        Unary::Exp2 => x.exp2(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log2 => x.log2(),
        Unary::Log10 => x.log10(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => libm::asinh(x),
        // Below one the function of the library gives what rounding leaves of numbers that cancel.
        Unary::Acosh if x < 1.0 => f64::NAN,
        Unary::Acosh => libm::acosh(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Erf => libm::erf(x),
        Unary::Erfc => libm::erfc(x),
    }
}

/// A function of single precision.
pub(crate) fn unary_f32(op: Unary, x: f32) -> f32 {
    match op {
        // The two roundings of this one are part of what it is.
        Unary::Rsqrt => 1.0 / x.sqrt(),
        _ => unary_f64(op, f64::from(x)) as f32,
    }
}

/// A function of two numbers of double precision.
pub(crate) fn binary_f64(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Max => larger(a, b),
        Binary::Min => -larger(-a, -b),
        Binary::Pow => a.powf(b),
        Binary::Fmod => a % b,
        Binary::Atan2 => a.atan2(b),
        Binary::Scale => scale(a, b),
        Binary::And | Binary::Or | Binary::Xor | Binary::Draw | Binary::MulLow | Binary::Shl | Binary::Shr => a,
    }
}

/// A function of two numbers of single precision.
pub(crate) fn binary_f32(op: Binary, a: f32, b: f32) -> f32 {
    binary_f64(op, f64::from(a), f64::from(b)) as f32
}

/// `y · 2ⁿ`, rounded once: the first of two products is exact.
fn scale(y: f64, n: f64) -> f64 {
    if n.is_nan() {
        return n;
    }
    let n = n.clamp(-2044.0, 2044.0) as i64;
    let power = |n: i64| f64::from_bits(((n + 1023) as u64) << 52);
    let first = n / 2;
    y * power(first) * power(n - first)
}

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}
