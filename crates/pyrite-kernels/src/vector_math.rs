//! Functions of single-precision slices, computed many elements at a time.
//!
//! Each computes in double precision, by formulas without branches: that makes the polynomials short, the arithmetic
//! simple and the result right to within one unit in the last place, and the compiler turns the loop into vector
//! instructions ([`super::simd`]). NaN stays NaN, infinities give the limits.
//!
//! `gelu`, `sigmoid` and `silu` round the error function or the exponential to single precision before they go on in
//! single precision. That is what PyTorch does, and it decides where the results become zero or NaN.

#![expect(clippy::inline_always, reason = "every function here is part of a `Loop`, which must be inlined")]

use std::marker::PhantomData;

use super::simd::{Loop, multiply_add, vectorized};

/// A function of one number, as part of a loop.
trait Function {
    fn at<const FUSED: bool>(x: f32) -> f32;
}

struct Map<'a, F> {
    from: &'a [f32],
    to: &'a mut [f32],
    function: PhantomData<F>,
}

impl<F: Function> Loop for Map<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (to, x) in self.to.iter_mut().zip(self.from) {
            *to = F::at::<FUSED>(*x);
        }
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident, $type:ident, |$x:ident, $fused:ident| $body:expr;)*) => {
        $(
            struct $type;

            impl Function for $type {
                #[inline(always)]
                fn at<const $fused: bool>($x: f32) -> f32 {
                    $body
                }
            }

            $(#[$doc])*
            pub fn $name([from]: [&[f32]; 1], to: &mut [f32]) {
                vectorized(Map { from, to, function: PhantomData::<$type> });
            }
        )*
    };
}

functions! {
    /// The exponential function.
    exp, Exp, |x, FUSED| exponential::<FUSED>(x);

    /// The hyperbolic tangent.
    tanh, Tanh, |x, FUSED| (hyperbolic_tangent::<FUSED>(f64::from(x)) as f32).copysign(x);

    /// The error function.
    erf, Erf, |x, FUSED| error_function::<FUSED>(x);

    /// The logistic function `1 / (1 + e^-x)`.
    sigmoid, Sigmoid, |x, FUSED| 1.0 / (1.0 + exponential::<FUSED>(-x));

    /// `x·sigmoid(x)`.
    silu, Silu, |x, FUSED| x / (1.0 + exponential::<FUSED>(-x));

    /// `x·Φ(x)` with the normal distribution function Φ.
    gelu, Gelu, |x, FUSED| x * 0.5 * (1.0 + error_function::<FUSED>(x * std::f32::consts::FRAC_1_SQRT_2));

    /// `gelu` by its tanh approximation.
    gelu_tanh, GeluTanh, |x, FUSED| {
        /// √(2/π)
        const SCALE: f64 = 0.797_884_560_802_865_4;
        const CUBIC: f64 = 0.044_715;
        let x = f64::from(x);
        (0.5 * x * (1.0 + hyperbolic_tangent::<FUSED>(SCALE * (x + CUBIC * x * x * x)))) as f32
    };
}

/// The exponential function as `power · (1 + rest)`, where `power` is one of two and `rest` is exact near zero. The
/// argument lies between -700 and 700, or is NaN.
#[inline(always)]
fn split_exponential<const FUSED: bool>(x: f64) -> (f64, f64) {
    // Adding this leaves an integer in the low bits, in two's complement.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let r = x - (shifted - ROUND) * std::f64::consts::LN_2;
    // The Taylor series: the first term left out is below 2e-10 for |r| ≤ ln 2 / 2.
    let p = multiply_add::<FUSED>(r, 1.0 / 40_320.0, 1.0 / 5_040.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 720.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 120.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 24.0);
    let p = multiply_add::<FUSED>(p, r, 1.0 / 6.0);
    let p = multiply_add::<FUSED>(p, r, 0.5);
    let rest = multiply_add::<FUSED>(p * r, r, r);
    (f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52), rest)
}

#[inline(always)]
fn exponential<const FUSED: bool>(x: f32) -> f32 {
    // Beyond these the result is zero or infinite in single precision.
    let (power, rest) = split_exponential::<FUSED>(f64::from(x.clamp(-120.0, 120.0)));
    multiply_add::<FUSED>(power, rest, power) as f32
}

/// The hyperbolic tangent as `(e^2x - 1) / (e^2x + 1)`; the sign of zero gets lost.
#[inline(always)]
fn hyperbolic_tangent<const FUSED: bool>(x: f64) -> f64 {
    // Beyond these the result is one or minus one.
    let (power, rest) = split_exponential::<FUSED>(2.0 * x.clamp(-25.0, 25.0));
    let minus_one = multiply_add::<FUSED>(power, rest, power - 1.0);
    minus_one / (minus_one + 2.0)
}

/// The error function as `x·P(x²)/Q(x²)`, fitted to `|x| ≤ 4` with a relative error of 2e-9. Beyond that it is one in
/// single precision.
#[inline(always)]
fn error_function<const FUSED: bool>(x: f32) -> f32 {
    let x = f64::from(x.clamp(-4.0, 4.0));
    let t = x * x;
    let p = multiply_add::<FUSED>(t, -1.319_952_950_948_433_9e-8, 4.684_198_542_118_322e-6);
    let p = multiply_add::<FUSED>(p, t, 3.795_912_633_148_832e-4);
    let p = multiply_add::<FUSED>(p, t, 3.849_729_925_675_904e-3);
    let p = multiply_add::<FUSED>(p, t, 5.431_701_721_667_516e-2);
    let p = multiply_add::<FUSED>(p, t, 1.852_076_218_037_379e-1);
    let p = multiply_add::<FUSED>(p, t, 1.128_379_169_353_398_8);
    let q = multiply_add::<FUSED>(t, 6.310_513_440_054_983e-5, 1.307_570_428_924_772_2e-3);
    let q = multiply_add::<FUSED>(q, t, 1.546_226_582_961_176_5e-2);
    let q = multiply_add::<FUSED>(q, t, 1.139_598_116_775_386_9e-1);
    let q = multiply_add::<FUSED>(q, t, 4.974_693_946_479_37e-1);
    let q = multiply_add::<FUSED>(q, t, 1.0);
    (x * p / q) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes and both signs, and the special ones.
    fn numbers() -> Vec<f32> {
        let mut numbers: Vec<f32> = (0..u32::MAX / 4099).map(|i| f32::from_bits(i * 4099)).collect();
        numbers.extend((-2_000_000..2_000_000).map(|i| i as f32 * 6.1e-5));
        numbers.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-45, -1e-45]);
        numbers
    }

    /// How far a result is from the exact value, in units of its last place.
    fn distance(got: f32, exact: f64) -> f64 {
        let rounded = exact as f32;
        if got == rounded || (got.is_nan() && exact.is_nan()) {
            return 0.0;
        }
        let unit = f64::from(f32::from_bits((rounded.abs().to_bits() + 1).min(f32::MAX.to_bits())))
            - f64::from(f32::from_bits(rounded.abs().to_bits().min(f32::MAX.to_bits() - 1)));
        (f64::from(got) - exact).abs() / unit
    }

    fn compare(name: &str, function: impl Fn([&[f32]; 1], &mut [f32]), exact: impl Fn(f64) -> f64, bound: f64) {
        let numbers = numbers();
        let mut results = vec![0.0; numbers.len()];
        function([&numbers], &mut results);
        for (x, got) in numbers.iter().zip(&results) {
            let exact = exact(f64::from(*x));
            let away = distance(*got, exact);
            assert!(away <= bound, "{name}({x:e}) is {got:e}, exact {exact:e}: {away} units off");
        }
    }

    /// Runs the version for processors without wide vectors.
    fn plainly<F: Function>() -> impl Fn([&[f32]; 1], &mut [f32]) {
        |[from], to| to.iter_mut().zip(from).for_each(|(to, x)| *to = F::at::<false>(*x))
    }

    #[test]
    fn the_basic_functions_are_right_to_one_unit_in_the_last_place() {
        compare("exp", exp, libm::exp, 0.6);
        compare("exp", plainly::<Exp>(), libm::exp, 0.6);
        compare("tanh", tanh, libm::tanh, 0.6);
        compare("tanh", plainly::<Tanh>(), libm::tanh, 0.6);
        compare("erf", erf, libm::erf, 0.6);
        compare("erf", plainly::<Erf>(), libm::erf, 0.6);
    }

    #[test]
    fn zero_keeps_its_sign() {
        for function in [tanh, erf, silu, gelu, gelu_tanh] {
            let mut results = [1.0; 2];
            function([&[0.0, -0.0]], &mut results);
            assert_eq!(results.map(f32::to_bits), [0.0f32.to_bits(), (-0.0f32).to_bits()]);
        }
    }

    #[test]
    fn composed_functions_have_the_limits_and_values_of_single_precision() {
        let one = |function: fn([&[f32]; 1], &mut [f32]), x: f32| {
            let mut result = [0.0];
            function([&[x]], &mut result);
            result[0]
        };
        assert_eq!((one(sigmoid, 200.0), one(sigmoid, -200.0)), (1.0, 0.0));
        assert_eq!((one(silu, 50.0), one(gelu, 10.0), one(gelu_tanh, 10.0)), (50.0, 10.0, 10.0));
        assert_eq!((one(gelu, -20.0), one(gelu_tanh, -20.0)), (0.0, 0.0));
        for function in [sigmoid, silu, gelu, gelu_tanh] {
            assert!(one(function, f32::NAN).is_nan());
        }
        for i in -4000..4000 {
            let x = i as f32 * 2e-3;
            let wide = f64::from(x);
            let near =
                |got: f32, exact: f64| assert!((f64::from(got) - exact).abs() <= 2e-7 * exact.abs().max(1.0), "at {x}");
            near(one(sigmoid, x), 1.0 / (1.0 + (-wide).exp()));
            near(one(silu, x), wide / (1.0 + (-wide).exp()));
            near(one(gelu, x), wide * 0.5 * (1.0 + libm::erf(wide * std::f64::consts::FRAC_1_SQRT_2)));
            near(
                one(gelu_tanh, x),
                0.5 * wide * (1.0 + (0.797_884_560_802_865_4 * (wide + 0.044_715 * wide.powi(3))).tanh()),
            );
        }
    }
}
