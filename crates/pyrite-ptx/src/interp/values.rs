//! What instructions compute, on bits.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::parse::{Binary, Kind, Round, Test, Ty, Unary};

/// The lowest bits of a number.
pub(super) fn cut(x: u64, bits: u32) -> u64 {
    if bits >= 64 { x } else { x & ((1 << bits) - 1) }
}

/// The lowest bits as a number with sign.
fn signed(x: u64, bits: u32) -> i64 {
    let up = 64 - bits.min(64);
    ((x << up) as i64) >> up
}

fn f32_of(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn of_f32(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// An operation on floats of either precision.
macro_rules! float {
    ($ty:expr, $a:expr, $b:expr, |$x:ident, $y:ident| $body:expr) => {
        if $ty.bits == 64 {
            let ($x, $y) = (f64::from_bits($a), f64::from_bits($b));
            ($body).to_bits()
        } else {
            let ($x, $y) = (f32_of($a), f32_of($b));
            of_f32($body)
        }
    };
}

pub(super) fn binary(op: Binary, ty: Ty, a: u64, b: u64) -> u64 {
    if ty.kind == Kind::Float {
        return match op {
            Binary::Add => float!(ty, a, b, |x, y| x + y),
            Binary::Sub => float!(ty, a, b, |x, y| x - y),
            Binary::Mul => float!(ty, a, b, |x, y| x * y),
            // With `.NaN`: one NaN is enough, and zeros are ordered.
            Binary::Max | Binary::Min => float!(ty, a, b, |x, y| {
                let second = (op == Binary::Max) == (x < y || (x == y && x.is_sign_negative()));
                if x.is_nan() || y.is_nan() {
                    (x + y).abs()
                } else if second {
                    y
                } else {
                    x
                }
            }),
            _ => float!(ty, a, b, |x, y| x / y),
        };
    }
    let bits = ty.bits;
    let (x, y) = (cut(a, bits), cut(b, bits));
    let whole = match op {
        Binary::Add => x.wrapping_add(y),
        Binary::Sub => x.wrapping_sub(y),
        Binary::Mul => x.wrapping_mul(y),
        Binary::MulWide => return cut(a, 32) * cut(b, 32),
        Binary::Div => x.checked_div(y).unwrap_or(u64::MAX),
        Binary::Rem => x.checked_rem(y).unwrap_or(u64::MAX),
        Binary::Max if ty.kind == Kind::Signed => signed(x, bits).max(signed(y, bits)) as u64,
        Binary::Max => x.max(y),
        Binary::Min if ty.kind == Kind::Signed => signed(x, bits).min(signed(y, bits)) as u64,
        Binary::Min => x.min(y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        // The number of places is 32 bits wide; more places than there are move everything out.
        Binary::Shl => {
            let by = cut(b, 32);
            if by >= u64::from(bits) { 0 } else { x << by }
        }
        Binary::Shr => {
            let by = cut(b, 32).min(u64::from(bits));
            match (ty.kind, by >= u64::from(bits)) {
                (Kind::Signed, over) => (signed(x, bits) >> if over { u64::from(bits) - 1 } else { by }) as u64,
                (_, true) => 0,
                (_, false) => x >> by,
            }
        }
    };
    cut(whole, bits)
}

pub(super) fn unary(op: Unary, ty: Ty, a: u64) -> u64 {
    match op {
        Unary::Neg => cut(cut(a, ty.bits).wrapping_neg(), ty.bits),
        Unary::Not => cut(!a, ty.bits),
        Unary::Sqrt => float!(ty, a, a, |x, _y| x.sqrt()),
        Unary::LeadingZeros => u64::from(a.leading_zeros()),
    }
}

pub(super) fn fma(ty: Ty, a: u64, b: u64, c: u64) -> u64 {
    if ty.bits == 64 {
        f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()
    } else {
        of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c)))
    }
}

pub(super) fn test(test: Test, ty: Ty, a: u64, b: u64) -> bool {
    fn holds<T: PartialOrd>(test: Test, a: &T, b: &T) -> bool {
        match test {
            Test::Eq => a == b,
            Test::Ne => a.partial_cmp(b).is_some_and(Ordering::is_ne),
            Test::Lt => a < b,
            Test::Le => a <= b,
            Test::Gt => a > b,
            Test::Ge => a >= b,
            Test::Neu => a != b,
            Test::Nan => a.partial_cmp(b).is_none(),
            Test::Num => a.partial_cmp(b).is_some(),
        }
    }
    match (ty.kind, ty.bits) {
        (Kind::Float, 64) => holds(test, &f64::from_bits(a), &f64::from_bits(b)),
        (Kind::Float, _) => holds(test, &f32_of(a), &f32_of(b)),
        (Kind::Signed, bits) => holds(test, &signed(a, bits), &signed(b, bits)),
        (_, bits) => holds(test, &cut(a, bits), &cut(b, bits)),
    }
}

pub(super) fn convert(to: Ty, from: Ty, round: Round, a: u64) -> u64 {
    let whole = |x: f64| match round {
        Round::Nearest | Round::NearestWhole => x.round_ties_even(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
        Round::Zero => x.trunc(),
    };
    let from_float = |x: f64| match (to.kind, to.bits) {
        (Kind::Float, 64) if round == Round::Nearest => x.to_bits(),
        (Kind::Float, 32) if round == Round::Nearest => of_f32(x as f32),
        (Kind::Float, 16) => u64::from(f16::from_f64(x).to_bits()),
        (Kind::Float, 64) => whole(x).to_bits(),
        (Kind::Float, _) => of_f32(whole(x) as f32),
        (Kind::Brain, _) => u64::from(bf16::from_f32(x as f32).to_bits()),
        // What does not fit becomes the nearest that does, and NaN zero.
        (Kind::Signed, 32) => u64::from(whole(x) as i32 as u32),
        _ => whole(x) as i64 as u64,
    };
    match (from.kind, from.bits) {
        (Kind::Float, 64) => from_float(f64::from_bits(a)),
        (Kind::Float, 32) => from_float(f64::from(f32_of(a))),
        (Kind::Float, _) => from_float(f16::from_bits(a as u16).to_f64()),
        (Kind::Signed, bits) => match (to.kind, to.bits) {
            (Kind::Float, 64) => (signed(a, bits) as f64).to_bits(),
            (Kind::Float, _) => of_f32(signed(a, bits) as f32),
            (_, wide) => cut(signed(a, bits) as u64, wide),
        },
        (_, bits) => cut(cut(a, bits), to.bits),
    }
}
