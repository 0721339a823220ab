//! Orthogonal polynomials of degree `n`, by their three-term recurrences.
//!
//! A negative degree gives zero. Recurrences stop at the first NaN, and overflow where the element type does: from
//! infinity the next step makes a NaN, in single precision too.

/// Where numbers of the element type end.
#[derive(Clone, Copy)]
pub struct Width {
    /// The largest finite number.
    pub largest: f64,
    /// The largest degree of a Hermite polynomial that is computed; beyond it the result is NaN.
    pub hermite: f64,
}

impl Width {
    /// Single precision.
    pub const SINGLE: Self = Self { largest: f32::MAX as f64, hermite: 128.0 };
    /// Double precision.
    pub const DOUBLE: Self = Self { largest: f64::MAX, hermite: 512.0 };

    fn clip(self, value: f64) -> f64 {
        if value.abs() > self.largest { f64::INFINITY.copysign(value) } else { value }
    }
}

/// The integer that a degree given as a float means: its fraction is dropped, and what no integer is counts as negative.
fn degree(n: f64) -> f64 {
    if n.abs() < 9.2e18 { n.trunc() } else { -1.0 }
}

/// Runs `next(k, p[k], p[k-1])` up to degree `n` from the polynomials of degree 0 (which is 1) and 1.
fn recur(n: f64, first: f64, width: Width, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    if n < 0.0 {
        return 0.0;
    }
    if n == 0.0 {
        return 1.0;
    }
    let (mut before, mut current, mut k) = (1.0, width.clip(first), 1.0);
    while k < n && !current.is_nan() {
        (before, current) = (current, width.clip(next(k, current, before)));
        // Where nothing changes any more, it will not later.
        if current == before && current == 0.0 {
            break;
        }
        k += 1.0;
    }
    current
}

/// A kind of Chebyshev polynomial.
#[derive(Clone, Copy)]
pub enum Chebyshev {
    /// The first kind.
    T,
    /// The second kind.
    U,
    /// The third kind.
    V,
    /// The fourth kind.
    W,
}

/// A Chebyshev polynomial at `x`. Inside the interval of orthogonality the trigonometric form replaces the recurrence
/// for larger degrees.
pub fn chebyshev(kind: Chebyshev, x: f64, n: f64, width: Width) -> f64 {
    let n = degree(n);
    if n < 0.0 {
        return 0.0;
    }
    let even = n % 2.0 == 0.0;
    let alternating = if even { 1.0 } else { -1.0 };
    if x.abs() == 1.0 {
        let positive = x > 0.0;
        return match kind {
            Chebyshev::T => {
                if positive {
                    1.0
                } else {
                    alternating
                }
            }
            Chebyshev::U => (n + 1.0) * if positive { 1.0 } else { alternating },
            Chebyshev::V => {
                if positive {
                    1.0
                } else {
                    alternating * (2.0 * n + 1.0)
                }
            }
            Chebyshev::W => {
                if positive {
                    2.0 * n + 1.0
                } else {
                    alternating
                }
            }
        };
    }
    if n > 8.0 && x.abs() < 1.0 {
        let angle = x.acos();
        return match kind {
            Chebyshev::T => (n * angle).cos(),
            Chebyshev::U => ((n + 1.0) * angle).sin() / angle.sin(),
            Chebyshev::V => ((n + 0.5) * angle).cos() / (angle / 2.0).cos(),
            Chebyshev::W => ((n + 0.5) * angle).sin() / (angle / 2.0).sin(),
        };
    }
    let first = match kind {
        Chebyshev::T => x,
        Chebyshev::U => 2.0 * x,
        Chebyshev::V => 2.0 * x - 1.0,
        Chebyshev::W => 2.0 * x + 1.0,
    };
    recur(n, first, width, |_, current, before| 2.0 * x * current - before)
}

/// A Chebyshev polynomial on the interval from 0 to 1.
pub fn shifted_chebyshev(kind: Chebyshev, x: f64, n: f64, width: Width) -> f64 {
    chebyshev(kind, 2.0 * x - 1.0, n, width)
}

/// The physicists' Hermite polynomial.
pub fn hermite_h(x: f64, n: f64, width: Width) -> f64 {
    let n = degree(n);
    if n > width.hermite {
        return f64::NAN;
    }
    recur(n, 2.0 * x, width, |k, current, before| 2.0 * x * current - 2.0 * k * before)
}

/// The probabilists' Hermite polynomial.
pub fn hermite_he(x: f64, n: f64, width: Width) -> f64 {
    let n = degree(n);
    if n > width.hermite {
        return f64::NAN;
    }
    recur(n, x, width, |k, current, before| x * current - k * before)
}

/// The Laguerre polynomial.
pub fn laguerre(x: f64, n: f64, width: Width) -> f64 {
    let n = degree(n);
    if x == 0.0 && n >= 0.0 {
        return 1.0;
    }
    recur(n, 1.0 - x, width, |k, current, before| ((2.0 * k + 1.0 - x) * current - k * before) / (k + 1.0))
}

/// The Legendre polynomial.
pub fn legendre(x: f64, n: f64, width: Width) -> f64 {
    let n = degree(n);
    if x.abs() == 1.0 && n >= 0.0 {
        return if x > 0.0 || n % 2.0 == 0.0 { 1.0 } else { -1.0 };
    }
    recur(n, x, width, |k, current, before| ((2.0 * k + 1.0) * x * current - k * before) / (k + 1.0))
}
