//! Normal numbers from uniform ones, sixteen at a time, with the rounding that PyTorch's kernels have.
//!
//! PyTorch turns blocks of sixteen uniform numbers into normal ones: the first eight give radii, the last eight
//! angles. For single precision its AVX2 kernel uses the polynomial logarithm, sine and cosine of the Cephes library
//! (Moshier's coefficients), which a compiler contracts into fused multiply-adds; the functions below state the same
//! sums with the fusions written out, so that every bit agrees. Double precision goes through the C library.

/// Sixteen normal numbers from sixteen uniform ones, in place.
pub(super) trait BoxMuller: Copy {
    /// Transforms one block.
    fn transform(block: &mut [Self; 16], mean: Self, std: Self);
}

impl BoxMuller for f64 {
    fn transform(block: &mut [f64; 16], mean: f64, std: f64) {
        for j in 0..8 {
            let radius = (-2.0 * (1.0 - block[j]).ln()).sqrt();
            let angle = std::f64::consts::TAU * block[j + 8];
            block[j] = (radius * angle.cos()).mul_add(std, mean);
            block[j + 8] = (radius * angle.sin()).mul_add(std, mean);
        }
    }
}

impl BoxMuller for f32 {
    fn transform(block: &mut [f32; 16], mean: f32, std: f32) {
        for j in 0..8 {
            let radius = (-2.0 * ln(1.0 - block[j])).sqrt();
            let (sin, cos) = sin_cos(std::f32::consts::TAU * block[j + 8]);
            block[j] = (radius * cos).mul_add(std, mean);
            block[j + 8] = (radius * sin).mul_add(std, mean);
        }
    }
}

/// Evaluates a polynomial, highest coefficient first.
fn horner(coefficients: &[f32], x: f32) -> f32 {
    coefficients.iter().copied().reduce(|sum, c| sum.mul_add(x, c)).unwrap_or(0.0)
}

/// The natural logarithm of a number in (0, 1].
fn ln(x: f32) -> f32 {
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    // The mantissa in [0.5, 1) and the exponent that belongs to it.
    let mut mantissa = f32::from_bits((bits & 0x807f_ffff) | 0x3f00_0000);
    let mut exponent = ((bits >> 23) as i32 - 127) as f32 + 1.0;
    if mantissa < std::f32::consts::FRAC_1_SQRT_2 {
        exponent -= 1.0;
        mantissa += mantissa - 1.0;
    } else {
        mantissa -= 1.0;
    }
    let square = mantissa * mantissa;
    let series = mantissa
        * horner(
            &[
                7.037_683_6e-2,
                -1.151_461e-1,
                0.116_769_984,
                -1.242_014_1e-1,
                1.424_932_3e-1,
                -1.666_805_8e-1,
                0.200_007_14,
                -2.499_999_4e-1,
                3.333_333e-1,
            ],
            mantissa,
        );
    // ln 2 is split in two, so that the product with the exponent is exact in its leading part.
    let low = series.mul_add(square, exponent * -2.121_944_4e-4);
    let sum = mantissa + (-square).mul_add(0.5, low);
    exponent.mul_add(0.693_359_4, sum)
}

/// Sine and cosine of an angle in [0, 2π].
fn sin_cos(x: f32) -> (f32, f32) {
    let octant = ((x * 1.273_239_5_f32) as i32 + 1) & !1;
    let turns = octant as f32;
    // π/4 is split in three, so that the reduction keeps all bits of a small remainder.
    let x = turns.mul_add(-0.785_156_25, x);
    let x = turns.mul_add(-2.418_756_5e-4, x);
    let x = turns.mul_add(-3.774_895e-8, x);
    let square = x * x;
    let even = horner(&[2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2], square) * square;
    let even = even.mul_add(square, -(square * 0.5)) + 1.0;
    let odd = horner(&[-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1], square) * square;
    let odd = x.mul_add(odd, x);
    let (sin, cos) = if octant & 2 == 0 { (odd, even) } else { (even, odd) };
    let negate = |value: f32, condition: bool| if condition { -value } else { value };
    (negate(sin, octant & 4 != 0), negate(cos, (octant - 2) & 4 == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomials_are_close_to_the_library_functions() {
        for i in 1..=4096u16 {
            let x = f32::from(i) / 4096.0;
            assert!((f64::from(ln(x)) - f64::from(x).ln()).abs() < 3e-7, "ln {x}");
            let angle = x * std::f32::consts::TAU;
            let (sin, cos) = sin_cos(angle);
            assert!((f64::from(sin) - f64::from(angle).sin()).abs() < 3e-7, "sin {angle}");
            assert!((f64::from(cos) - f64::from(angle).cos()).abs() < 3e-7, "cos {angle}");
        }
    }
}
