//! Arithmetic on Python's numbers, and on symbolic sizes.

use pyrite_ir::Value;
use pyrite_sym::SymInt;
use pyrite_tensor::Scalar;

use crate::forward::V;

/// The value of an operator of Python's `operator` module on numbers; `None` when it cannot be told here.
pub(crate) fn fold(name: &str, args: &[V]) -> Option<V> {
    let scalars: Option<Vec<Scalar>> = args.iter().map(Value::as_scalar).collect();
    match scalars?.as_slice() {
        [a] => unary(name, *a),
        [a, b] => binary(name, *a, *b),
        _ => None,
    }
}

fn as_int(value: Scalar) -> Option<i64> {
    match value {
        Scalar::Int(v) => Some(v),
        Scalar::Bool(v) => Some(v.into()),
        _ => None,
    }
}

fn unary(name: &str, a: Scalar) -> Option<V> {
    Some(match (name, a) {
        ("neg", Scalar::Float(v)) => Value::Float(-v),
        ("neg", Scalar::Complex(v)) => Value::Complex(-v),
        ("neg", v) => as_int(v)?.checked_neg()?.into(),
        ("pos", v) => v.into(),
        ("not_", v) => Value::Bool(!v.to_bool()),
        ("invert", v) => (!as_int(v)?).into(),
        _ => return None,
    })
}

fn binary(name: &str, a: Scalar, b: Scalar) -> Option<V> {
    if let (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) = (a, b) {
        let (a, b) = (a.to_c128(), b.to_c128());
        return Some(match name {
            "add" => Value::Complex(a + b),
            "sub" => Value::Complex(a - b),
            "mul" => Value::Complex(a * b),
            "eq" => Value::Bool(a == b),
            "ne" => Value::Bool(a != b),
            _ => return None,
        });
    }
    if let (Some(a), Some(b)) = (as_int(a), as_int(b)) {
        return Some(match name {
            "add" => a.checked_add(b)?.into(),
            "sub" => a.checked_sub(b)?.into(),
            "mul" => a.checked_mul(b)?.into(),
            "truediv" if b != 0 => Value::Float(a as f64 / b as f64),
            "floordiv" if b != 0 => a.checked_div(b).map(|_| floor_div(a, b))?.into(),
            "mod" if b != 0 => a.checked_rem(b).map(|r| if r != 0 && ((r < 0) != (b < 0)) { r + b } else { r })?.into(),
            "pow" if (0..64).contains(&b) => a.checked_pow(b as u32)?.into(),
            "pow" => Value::Float((a as f64).powf(b as f64)),
            "and_" => (a & b).into(),
            "or_" => (a | b).into(),
            "xor" => (a ^ b).into(),
            "lshift" if (0..63).contains(&b) => a.checked_mul(1 << b)?.into(),
            "rshift" if (0..64).contains(&b) => (a >> b).into(),
            "eq" => Value::Bool(a == b),
            "ne" => Value::Bool(a != b),
            "lt" => Value::Bool(a < b),
            "le" => Value::Bool(a <= b),
            "gt" => Value::Bool(a > b),
            "ge" => Value::Bool(a >= b),
            _ => return None,
        });
    }
    let (a, b) = (a.to_f64(), b.to_f64());
    Some(match name {
        "add" => Value::Float(a + b),
        "sub" => Value::Float(a - b),
        "mul" => Value::Float(a * b),
        "truediv" if b != 0.0 => Value::Float(a / b),
        "floordiv" if b != 0.0 => Value::Float((a / b).floor()),
        "mod" if b != 0.0 => Value::Float(a - (a / b).floor() * b),
        "pow" => Value::Float(a.powf(b)),
        "eq" => Value::Bool(a == b),
        "ne" => Value::Bool(a != b),
        "lt" => Value::Bool(a < b),
        "le" => Value::Bool(a <= b),
        "gt" => Value::Bool(a > b),
        "ge" => Value::Bool(a >= b),
        _ => return None,
    })
}

fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    if (a % b != 0) && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient }
}

/// The size that an operator gives for sizes.
pub(crate) fn symbolic(name: &str, args: &[SymInt]) -> Option<SymInt> {
    Some(match (name, args) {
        ("add", [a, b]) => a + b,
        ("sub", [a, b]) => a - b,
        ("mul", [a, b]) => a * b,
        ("floordiv", [a, b]) if b.as_int() != Some(0) => a.floor_div(b),
        ("mod", [a, b]) if b.as_int() != Some(0) => a.modulo(b),
        ("sym_min", [a, b]) => a.min(b),
        ("sym_max", [a, b]) => a.max(b),
        ("neg", [a]) => -a,
        ("pow", [a, SymInt::Int(n)]) if (0..8).contains(n) => (0..*n).fold(SymInt::Int(1), |p, _| p * a),
        _ => return None,
    })
}
