//! Functions of the normal distribution, and entropy.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// `-x·ln x`, zero at zero, minus infinity below.
pub fn entr(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        -x * x.ln()
    } else if x == 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    }
}

/// `exp(x²)·erfc(x)`.
pub fn erfcx(x: f64) -> f64 {
    if x < -26.7 {
        return f64::INFINITY;
    }
    if x < 10.0 || x.is_nan() {
        return (x * x).exp() * libm::erfc(x);
    }
    let inverse = 0.5 / (x * x);
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while f64::abs(term) > 1e-18 && k < 40.0 {
        term *= -(2.0 * k - 1.0) * inverse;
        sum += term;
        k += 1.0;
    }
    sum * 0.5 * FRAC_2_SQRT_PI / x
}

/// The logarithm of the normal distribution function.
pub fn log_ndtr(x: f64) -> f64 {
    let scaled = x * FRAC_1_SQRT_2;
    if x < -1.0 { (erfcx(-scaled) / 2.0).ln() - scaled * scaled } else { (-libm::erfc(scaled) / 2.0).ln_1p() }
}

/// The inverse of the normal distribution function: Newton's method from a rough start, in the middle on the
/// distribution function itself, in the tails on its logarithm.
pub fn ndtri(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p == 1.0 {
        return f64::INFINITY;
    }
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.9 {
        return -ndtri(1.0 - p);
    }
    let root = (2.0 * PI).sqrt();
    if p > 0.1 {
        let target = p - 0.5;
        let mut x = root * target;
        for _ in 0..20 {
            let step = (0.5 * libm::erf(x * FRAC_1_SQRT_2) - target) * root * (0.5 * x * x).exp();
            x -= step;
            if step.abs() <= 1e-16 * x.abs() {
                break;
            }
        }
        return x;
    }
    let log = p.ln();
    let t = (-2.0 * log).sqrt();
    let mut x = -(t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308))));
    for _ in 0..10 {
        let value = log_ndtr(x);
        let step = (value - log) * root * (0.5 * x * x + value).exp();
        x -= step;
        if step.abs() <= 1e-15 * x.abs() {
            break;
        }
    }
    x
}
