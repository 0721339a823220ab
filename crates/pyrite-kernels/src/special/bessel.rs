//! Bessel and Airy functions.
//!
//! The modified functions of the second kind come from `K(x) = ∫ exp(-x·cosh t)·cosh(νt) dt` by the trapezoidal rule,
//! which converges so fast on this integrand that some twenty points give full precision.

use std::f64::consts::{FRAC_PI_4, PI};

/// Euler's constant γ.
const EULER: f64 = 0.577_215_664_901_532_9;

/// From here on the asymptotic expansions have full precision.
const FAR: f64 = 20.0;

/// Numerator and denominator, highest power first, of the approximation by which the oscillation's second part is
/// computed beyond 5, in `25/x²`; the denominator's leading term, which is 1, is not listed.
struct Tail {
    numerator: [f64; 8],
    denominator: [f64; 7],
}

const ORDER_0: Tail = Tail {
    numerator: [
        -1.136_638_388_984_691_5e-2,
        -1.282_527_186_705_093_2,
        -1.955_395_442_577_359_7e1,
        -9.320_601_521_237_682e1,
        -1.776_811_679_804_880_5e2,
        -1.470_775_051_549_511_7e2,
        -5.141_053_267_665_993e1,
        -6.050_143_506_007_285,
    ],
    denominator: [
        6.431_782_561_181_78e1,
        8.564_300_259_769_806e2,
        3.882_401_836_054_016e3,
        7.240_467_741_956_525e3,
        5.930_727_011_873_17e3,
        2.062_093_316_603_278_5e3,
        2.420_057_402_402_914e2,
    ],
};

const ORDER_1: Tail = Tail {
    numerator: [
        5.108_625_947_501_766e-2,
        4.982_138_729_512_334,
        7.582_382_841_325_453e1,
        3.667_796_093_601_508e2,
        7.108_563_049_989_261e2,
        5.974_896_124_006_136e2,
        2.116_887_571_005_721_4e2,
        2.520_702_058_580_237_2e1,
    ],
    denominator: [
        7.423_732_770_356_752e1,
        1.056_448_860_382_628_2e3,
        4.986_410_583_376_536e3,
        9.562_318_924_047_562e3,
        7.997_041_604_473_507e3,
        2.826_192_785_176_391e3,
        3.360_936_078_106_983e2,
    ],
};

/// How far PyTorch's values beyond 5 are from the exact ones, as the amplitude of the oscillation: it evaluates the
/// approximation above without the denominator's leading term, which is felt in the seventh digit near 5.
fn deviation(x: f64, tail: &Tail) -> f64 {
    let z = 25.0 / (x * x);
    let horner = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * z + c);
    let (numerator, denominator) = (horner(&tail.numerator), horner(&tail.denominator));
    (numerator / denominator - numerator / (denominator + z.powi(7))) * 5.0 / x * (2.0 / (PI * x)).sqrt()
}

/// Bessel function of the first kind, order zero.
pub fn j0(x: f64) -> f64 {
    let x = x.abs();
    if x.is_infinite() {
        return f64::NAN;
    }
    libm::j0(x) - if x > 5.0 { deviation(x, &ORDER_0) * (x - FRAC_PI_4).sin() } else { 0.0 }
}

/// Bessel function of the first kind, order one.
pub fn j1(x: f64) -> f64 {
    if x < 0.0 {
        return -j1(-x);
    }
    if x.is_infinite() {
        return f64::NAN;
    }
    libm::j1(x) - if x > 5.0 { deviation(x, &ORDER_1) * (x - 3.0 * FRAC_PI_4).sin() } else { 0.0 }
}

/// Zero, negative numbers and infinity, which both functions of the second kind treat alike.
fn y_special(x: f64) -> Option<f64> {
    if x == 0.0 {
        Some(f64::NEG_INFINITY)
    } else if x < 0.0 || x.is_infinite() {
        Some(f64::NAN)
    } else {
        None
    }
}

/// Bessel function of the second kind, order zero.
pub fn y0(x: f64) -> f64 {
    y_special(x)
        .unwrap_or_else(|| libm::y0(x) + if x > 5.0 { deviation(x, &ORDER_0) * (x - FRAC_PI_4).cos() } else { 0.0 })
}

/// Bessel function of the second kind, order one.
pub fn y1(x: f64) -> f64 {
    y_special(x).unwrap_or_else(|| {
        libm::y1(x) + if x > 5.0 { deviation(x, &ORDER_1) * (x - 3.0 * FRAC_PI_4).cos() } else { 0.0 }
    })
}

/// `sin(x)/x`.
pub fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x == 0.0 {
        1.0
    } else {
        x.sin() / x
    }
}

/// `Σ (x²/4)ᵏ / (k!·(k+order)!)` times `(x/2)^order`: all terms have one sign.
fn i_series(x: f64, order: f64) -> f64 {
    let square = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-18 {
        term *= square / (k * (k + order));
        sum += term;
        k += 1.0;
    }
    sum * if order == 0.0 { 1.0 } else { x / 2.0 }
}

/// `√(2πx)·exp(-x)·I(x)` for large `x`; `order` is 0 or 1.
fn i_far(x: f64, order: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    loop {
        let odd = 2.0 * k - 1.0;
        let next: f64 = term * (odd * odd - 4.0 * order * order) / (8.0 * k * x);
        if next.abs() >= f64::abs(term) || next.abs() < 1e-18 {
            return sum;
        }
        term = next;
        sum += term;
        k += 1.0;
    }
}

/// Exponentially scaled modified Bessel function of the first kind, order zero.
pub fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x < FAR { (-x).exp() * i_series(x, 0.0) } else { i_far(x, 0.0) / (2.0 * PI).sqrt() / x.sqrt() }
}

/// Exponentially scaled modified Bessel function of the first kind, order one.
pub fn i1e(x: f64) -> f64 {
    let far = x.abs();
    let value =
        if far < FAR { (-far).exp() * i_series(far, 1.0) } else { i_far(far, 1.0) / (2.0 * PI).sqrt() / far.sqrt() };
    value.copysign(x)
}

/// Modified Bessel function of the first kind, order zero.
pub fn i0(x: f64) -> f64 {
    if x.abs() < FAR { i_series(x, 0.0) } else { x.abs().exp() * i0e(x) }
}

/// Modified Bessel function of the first kind, order one.
pub fn i1(x: f64) -> f64 {
    if x.abs() < FAR { i_series(x, 1.0) } else { x.abs().exp() * i1e(x) }
}

/// `exp(x)·K(x)` of any order for `x ≥ 1`.
fn k_scaled(x: f64, order: f64) -> f64 {
    let step = if x < 4.0 { 0.25 } else { 0.5 / x.sqrt() };
    let (mut sum, mut k) = (0.5, 1.0);
    loop {
        let t = step * k;
        // `cosh t - 1` without cancellation.
        let half = (t / 2.0).sinh();
        let term = (-2.0 * x * half * half).exp() * (order * t).cosh();
        sum += term;
        if term < 1e-18 {
            return sum * step;
        }
        k += 1.0;
    }
}

/// `K₀` for `0 < x < 1`.
fn k0_near(x: f64) -> f64 {
    let square = x * x / 4.0;
    let (mut term, mut psi, mut k) = (1.0, -EULER, 1.0);
    let log = (x / 2.0).ln();
    let mut sum = psi - log;
    while term > 1e-20 {
        term *= square / (k * k);
        psi += 1.0 / k;
        sum += term * (psi - log);
        k += 1.0;
    }
    sum
}

/// `K₁` for `0 < x < 1`.
fn k1_near(x: f64) -> f64 {
    let square = x * x / 4.0;
    let (mut term, mut psi, mut next, mut k) = (1.0, -EULER, 1.0 - EULER, 1.0);
    let mut sum = psi + next;
    while term > 1e-20 {
        term *= square / (k * (k + 1.0));
        psi += 1.0 / k;
        next += 1.0 / (k + 1.0);
        sum += term * (psi + next);
        k += 1.0;
    }
    1.0 / x + (x / 2.0).ln() * i_series(x, 1.0) - x / 4.0 * sum
}

/// Zero, negative numbers, infinity and NaN, which both functions of the second kind treat alike.
fn k_special(x: f64) -> Option<f64> {
    if x == 0.0 {
        Some(f64::INFINITY)
    } else if x.is_nan() || x < 0.0 {
        Some(f64::NAN)
    } else if x.is_infinite() {
        Some(0.0)
    } else {
        None
    }
}

/// Modified Bessel function of the second kind, order zero.
pub fn k0(x: f64) -> f64 {
    k_special(x).unwrap_or_else(|| if x < 1.0 { k0_near(x) } else { (-x).exp() * k_scaled(x, 0.0) })
}

/// Modified Bessel function of the second kind, order one.
pub fn k1(x: f64) -> f64 {
    k_special(x).unwrap_or_else(|| if x < 1.0 { k1_near(x) } else { (-x).exp() * k_scaled(x, 1.0) })
}

/// Exponentially scaled modified Bessel function of the second kind, order zero.
pub fn k0e(x: f64) -> f64 {
    k_special(x).unwrap_or_else(|| if x < 1.0 { x.exp() * k0_near(x) } else { k_scaled(x, 0.0) })
}

/// Exponentially scaled modified Bessel function of the second kind, order one.
pub fn k1e(x: f64) -> f64 {
    k_special(x).unwrap_or_else(|| if x < 1.0 { x.exp() * k1_near(x) } else { k_scaled(x, 1.0) })
}

/// The Airy function Ai.
///
/// Beyond 2 by `K₁⸝₃`, below -10 by its asymptotic expansion; between, Taylor series carry value and slope from zero in
/// steps of at most one, which is stable because no solution of `y'' = x·y` grows there.
pub fn airy_ai(x: f64) -> f64 {
    if x.is_nan() || x.is_infinite() {
        return f64::NAN;
    }
    if x > 2.0 {
        if x > 104.0 {
            return 0.0;
        }
        let zeta = 2.0 / 3.0 * x * x.sqrt();
        return (x / 3.0).sqrt() / PI * (-zeta).exp() * k_scaled(zeta, 1.0 / 3.0);
    }
    if x < -10.0 {
        return airy_far(-x);
    }
    let (mut at, mut value, mut slope) = (0.0, 0.355_028_053_887_817_2, -0.258_819_403_792_806_8);
    while at != x {
        let step = (x - at).clamp(-1.0, 1.0);
        (value, slope) = airy_step(at, step, value, slope);
        at = if step.abs() < 1.0 { x } else { at + step };
    }
    value
}

/// Value and slope at `at + h` of the solution of `y'' = x·y` with these at `at`.
fn airy_step(at: f64, h: f64, value: f64, slope: f64) -> (f64, f64) {
    // Coefficients times powers of h: two before, one before, current.
    let (mut a, mut b, mut c) = (value, slope * h, at * value * h * h / 2.0);
    let (mut sum, mut weighted) = (a + b + c, b + 2.0 * c);
    let mut k = 3.0;
    let mut small = 0;
    while small < 3 && k < 60.0 {
        let next = (at * b * h * h + a * h * h * h) / (k * (k - 1.0));
        (a, b, c) = (b, c, next);
        sum += c;
        weighted += k * c;
        small = if (k * c).abs() < 1e-18 { small + 1 } else { 0 };
        k += 1.0;
    }
    (sum, if h == 0.0 { slope } else { weighted / h })
}

/// Ai at `-x` for large `x`.
fn airy_far(x: f64) -> f64 {
    let zeta = 2.0 / 3.0 * x * x.sqrt();
    let (mut even, mut odd) = (1.0, 0.0);
    let (mut term, mut k) = (1.0f64, 1.0);
    for n in 1..40 {
        let next = term * (6.0 * k - 5.0) * (6.0 * k - 3.0) * (6.0 * k - 1.0) / (216.0 * k * (2.0 * k - 1.0)) / zeta;
        if next > term || next < 1e-18 {
            break;
        }
        term = next;
        match n % 4 {
            0 => even += term,
            1 => odd += term,
            2 => even -= term,
            _ => odd -= term,
        }
        k += 1.0;
    }
    let angle = zeta - FRAC_PI_4;
    (angle.cos() * even + angle.sin() * odd) / (PI.sqrt() * x.sqrt().sqrt())
}
