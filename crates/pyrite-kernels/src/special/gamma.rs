//! The gamma function's relatives: digamma, polygamma, the Hurwitz zeta function, incomplete gamma functions.

use std::f64::consts::PI;

/// `(2k)!/B₂ₖ` for k = 1, 2, …: the denominators of the Euler-Maclaurin expansion of the zeta function.
const EULER_MACLAURIN: [f64; 12] = [
    12.0,
    -720.0,
    30_240.0,
    -1_209_600.0,
    47_900_160.0,
    -1.892_437_580_318_379_2e9,
    7.472_424_96e10,
    -2.950_130_727_918_164e12,
    1.164_678_281_435_006_7e14,
    -4.597_978_722_407_473e15,
    1.815_210_540_194_354_7e17,
    -7.166_165_256_175_667e18,
];

/// `B₂ₖ/2k` for k = 1, 2, …: the asymptotic expansion of digamma in `1/x²`.
const DIGAMMA: [f64; 8] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0, 1.0 / 12.0, -3617.0 / 8160.0];

/// `B₂ₖ/(2k(2k-1))`: Stirling's series.
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// The derivative of `ln Γ`: infinite at zero with the sign opposite to it, undefined at negative integers.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let part = x - x.trunc();
        if part == 0.0 || x.is_infinite() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * part).tan();
    }
    if x.is_infinite() {
        return x;
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = DIGAMMA.iter().rev().fold(0.0, |sum, c| (sum + c) * inverse);
    x.ln() - 0.5 / x - series - shift
}

/// The precision in which a reflection is computed; near a pole it decides what comes out.
#[derive(Clone, Copy, PartialEq)]
pub enum Precision {
    /// Of `f32` and the smaller types.
    Single,
    /// Of `f64`.
    Double,
}

/// The derivative of digamma. Below one half by reflection, which makes it very large, not infinite, at negative
/// integers: as large as the precision allows.
fn trigamma(x: f64, precision: Precision) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x < 0.5 {
        let pole = match precision {
            Precision::Double => (PI / (PI * x).sin()).powi(2),
            Precision::Single => {
                let (pi, sine) = (PI as f32, (PI as f32 * x as f32).sin());
                f64::from(pi * pi / (sine * sine))
            }
        };
        return pole - trigamma(1.0 - x, precision);
    }
    if x.is_infinite() {
        return 0.0;
    }
    zeta(2.0, x)
}

/// The n-th derivative of digamma.
pub fn polygamma(n: i64, x: f64, precision: Precision) -> f64 {
    match n {
        0 => digamma(x),
        1 => trigamma(x, precision),
        _ => {
            let order = n as f64;
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            sign * libm::tgamma(order + 1.0) * zeta(order + 1.0, x)
        }
    }
}

/// The Hurwitz zeta function `Σ (q + k)⁻ˣ`, by nine terms and the Euler-Maclaurin formula for the rest.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() && q > 0.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    let mut sum = q.powf(-x);
    let (mut base, mut terms, mut term) = (q, 0, 0.0f64);
    while terms < 9 || base <= 9.0 {
        terms += 1;
        base += 1.0;
        term = base.powf(-x);
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 2.0 {
            return sum;
        }
    }
    sum += term * base / (x - 1.0) - 0.5 * term;
    let (mut factor, mut k) = (1.0, 0.0);
    for denominator in EULER_MACLAURIN {
        factor *= x + k;
        term /= base;
        let part = factor * term / denominator;
        sum += part;
        if (part / sum).abs() < f64::EPSILON / 2.0 {
            break;
        }
        factor *= x + k + 1.0;
        term /= base;
        k += 2.0;
    }
    sum
}

/// The logarithm of the multivariate gamma function of dimension `p`.
pub fn mvlgamma(x: f64, p: i64) -> f64 {
    let dimension = p as f64;
    let start = dimension * (dimension - 1.0) / 4.0 * PI.ln();
    (0..p).fold(start, |sum, j| sum + libm::lgamma(x - j as f64 / 2.0))
}

/// The part of a gamma distribution's mass that an incomplete gamma function asks for.
#[derive(Clone, Copy, PartialEq)]
pub enum Tail {
    /// Below `x`.
    Lower,
    /// Above `x`.
    Upper,
}

/// The regularized incomplete gamma function.
pub fn incomplete_gamma(a: f64, x: f64, tail: Tail) -> f64 {
    let (none, all) = if tail == Tail::Lower { (0.0, 1.0) } else { (1.0, 0.0) };
    if x < 0.0 || a < 0.0 {
        return f64::NAN;
    }
    if a == 0.0 {
        return if x > 0.0 { all } else { f64::NAN };
    }
    if x == 0.0 {
        return none;
    }
    if a.is_infinite() {
        return if x.is_infinite() { f64::NAN } else { none };
    }
    if x.is_infinite() {
        return all;
    }
    if a.is_nan() || x.is_nan() {
        return f64::NAN;
    }
    if x < a + 1.0 {
        let lower = lower_series(a, x);
        if tail == Tail::Lower { lower } else { 1.0 - lower }
    } else {
        let upper = upper_fraction(a, x);
        if tail == Tail::Upper { upper } else { 1.0 - upper }
    }
}

/// Iterations after which a series is taken as it is; it needs about `6√a` near `x = a`.
const ENOUGH: usize = 1_000_000;

/// `xᵃ e⁻ˣ / Γ(a + 1)`, without the cancellation of large exponents where `a` is large.
fn density(a: f64, x: f64) -> f64 {
    if a < 16.0 {
        return (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
    }
    let offset = (x - a) / a;
    // `ln(1 + offset) - offset`
    let exponent = if offset.abs() < 0.1 {
        let (mut sum, mut power, mut k) = (0.0, -offset * offset, 2.0);
        while power.abs() > 1e-20 * offset * offset {
            sum += power / k;
            power *= -offset;
            k += 1.0;
        }
        sum
    } else {
        (x / a).ln() - offset
    };
    let inverse = 1.0 / (a * a);
    let stirling = STIRLING.iter().rev().fold(0.0, |sum, c| sum * inverse + c) / a;
    (a * exponent - stirling).exp() / (2.0 * PI * a).sqrt()
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..ENOUGH {
        term *= x / (a + k as f64);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum * density(a, x)
}

/// Legendre's continued fraction, evaluated by Lentz's method.
fn upper_fraction(a: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / tiny;
    let mut d = 1.0 / b;
    let mut value = d;
    for k in 1..ENOUGH {
        let k = k as f64;
        let numerator = -k * (k - a);
        b += 2.0;
        d = numerator * d + b;
        d = 1.0 / if d.abs() < tiny { tiny } else { d };
        c = b + numerator / c;
        c = if c.abs() < tiny { tiny } else { c };
        let step = d * c;
        value *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    density(a, x) * a * value
}
