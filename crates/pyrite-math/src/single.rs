//! Functions of single precision.

use std::ops::{Deref, DerefMut};

use pyrite_loops::{Binary, Block, Compare, Shift, Type, Unary, Val};

use crate::builder::Builder;

const F: Type = Type::F32;
const I: Type = Type::I32;

const LN2_HIGH: f64 = std::f32::consts::LN_2 as f64;
const LN2_LOW: f64 = std::f64::consts::LN_2 - LN2_HIGH;
const LOG2_E_HIGH: f64 = std::f32::consts::LOG2_E as f64;
const LOG2_E_LOW: f64 = std::f64::consts::LOG2_E - LOG2_E_HIGH;
const LOG10_E_HIGH: f64 = std::f32::consts::LOG10_E as f64;
const LOG10_E_LOW: f64 = std::f64::consts::LOG10_E - LOG10_E_HIGH;
const LOG10_2_HIGH: f64 = std::f32::consts::LOG10_2 as f64;
const LOG10_2_LOW: f64 = std::f64::consts::LOG10_2 - LOG10_2_HIGH;
const HALF_PI_HIGH: f64 = std::f32::consts::FRAC_PI_2 as f64;
const HALF_PI_MIDDLE: f64 = -4.371_139_000_186_241e-8;
const HALF_PI_LOW: f64 = -1.715_121_009_056_497e-15;

/// `(e^r - 1 - r) / r²` for `r` within half of ln 2.
const EXP: [f64; 5] = [0.5, 0.166_665_733_819, 0.041_666_550_110_3, 0.008_363_773_874_41, 0.001_392_692_661_4];
/// `(2^r - 1) / r` for `r` within a half.
const EXP2: [f64; 6] = [
    0.693_147_188_486,
    0.240_226_507_645,
    0.055_503_549_289_5,
    0.009_618_080_665_27,
    0.001_339_201_740_56,
    0.000_154_541_620_879,
];
/// `(log(1 + f) - f + f²/2) / f³` for `1 + f` between the root of a half and the root of two.
const LOG: [f64; 9] = [
    0.333_333_311_8,
    -0.249_999_969_58,
    0.200_007_157_489,
    -0.166_678_023_195,
    0.142_490_576_457,
    -0.124_256_873_315,
    0.116_854_199_235,
    -0.114_797_338_466,
    0.069_716_114_714_5,
];
/// `(sin r - r) / r³` over `r²`, for `r` within a quarter of pi.
const SIN: [f64; 4] = [-0.166_666_666_636, 0.008_333_331_785_22, -0.000_198_400_388_726, 2.724_378_140_95e-6];
/// `(cos r - 1 + r²/2) / r⁴` over `r²`, for `r` within a quarter of pi.
const COS: [f64; 4] = [0.041_666_666_664_1, -0.001_388_888_759_73, 2.480_056_042_99e-5, -2.729_583_082_76e-7];
/// `erf x / x` over `x²`, for `x` within 0.85.
const ERF: [f64; 6] = [
    1.128_379_159_82,
    -0.376_125_685_575,
    0.112_826_761_732,
    -0.026_800_760_257_9,
    0.005_047_969_196_48,
    -0.000_629_618_742_06,
];
/// The logarithm to base 2 of `1 - erf x`, for `x` from 0.85 to 4.
const ERF_REST: [f64; 7] = [
    -0.000_150_519_298_371,
    -1.627_449_305_39,
    -0.918_300_281_84,
    -0.150_801_427_887,
    0.032_489_411_246_7,
    -0.004_498_470_825_9,
    0.000_293_883_930_508,
];
/// `(tanh x - x) / x³` over `x²`, for `x` within 0.625.
const TANH: [f64; 5] =
    [-0.333_332_815_983, 0.133_314_237_906, -0.053_737_540_352_8, 0.020_630_199_808_1, -0.005_693_305_193_19];
/// Up to here three parts of pi/2 are enough to reduce an angle.
const LARGEST_ANGLE: f64 = 1e5;

/// A function of one value, where single precision computes it well enough.
pub(crate) fn unary(code: &mut Block, op: Unary, x: Val) -> Option<Val> {
    let mut builder = Builder::new(code, F);
    let mut b = Single(&mut builder);
    Some(match op {
        Unary::Exp => b.exp(x),
        Unary::Exp2 => b.exp2(x),
        Unary::Expm1 => b.expm1(x),
        Unary::Log | Unary::Log2 | Unary::Log10 => b.log(op, x),
        Unary::Log1p => b.log1p(x),
        Unary::Sin | Unary::Cos | Unary::Tan => b.trigonometric(op, x),
        Unary::Tanh => b.tanh(x),
        Unary::Erf => b.erf(x),
        _ => return None,
    })
}

/// Writes code of single precision.
struct Single<'a, 'b>(&'b mut Builder<'a>);

impl<'a> Deref for Single<'a, '_> {
    type Target = Builder<'a>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for Single<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Single<'_, '_> {
    /// `n` and `e^r - 1` with `x = n ln 2 + r`.
    fn exp_parts(&mut self, x: Val) -> (Val, Val) {
        let (log2_e, high, low) = (self.c(LOG2_E_HIGH), self.c(LN2_HIGH), self.c(LN2_LOW));
        let n = self.mul(x, log2_e);
        let n = self.nearest(n);
        let r = self.fnma(n, high, x);
        let r = self.fnma(n, low, r);
        let p = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        (n, self.fma(p, square, r))
    }

    fn exp(&mut self, x: Val) -> Val {
        let x = self.clamp(x, -104.0, 89.0);
        let (n, t) = self.exp_parts(x);
        let one = self.c(1.0);
        let y = self.add(t, one);
        self.scale(y, n)
    }

    fn exp2(&mut self, x: Val) -> Val {
        let x = self.clamp(x, -151.0, 129.0);
        let n = self.nearest(x);
        let r = self.sub(x, n);
        let q = self.polynomial(r, &EXP2);
        let one = self.c(1.0);
        let y = self.fma(q, r, one);
        self.scale(y, n)
    }

    fn expm1(&mut self, x: Val) -> Val {
        let clamped = self.clamp(x, -18.0, 89.0);
        let (n, t) = self.exp_parts(clamped);
        let (zero, one) = (self.c(0.0), self.c(1.0));
        let back = self.sub(zero, n);
        let unit = self.scale(one, back);
        let rest = self.sub(one, unit);
        let y = self.add(t, rest);
        let y = self.scale(y, n);
        let none = self.cmp(Compare::Eq, F, x, zero);
        self.select(none, x, y)
    }

    /// `e` as an integer and `m - 1` with `x = m · 2^e`.
    fn split(&mut self, x: Val) -> (Val, Val) {
        let root = self.i(0x3f35_04f3);
        let e = self.int(Binary::Sub, x, root);
        let e = self.shift(Shift::RightSigned, e, 23);
        let exponent = self.shift(Shift::Left, e, 23);
        let m = self.int(Binary::Sub, x, exponent);
        let one = self.c(1.0);
        (e, self.sub(m, one))
    }

    /// `log(1 + f) - f`.
    fn log_rest(&mut self, f: Val) -> Val {
        let p = self.polynomial(f, &LOG);
        let square = self.mul(f, f);
        let cube = self.mul(square, f);
        let half = self.c(-0.5);
        let y = self.mul(p, cube);
        self.fma(square, half, y)
    }

    /// The logarithm where it is special: of zero, of negative numbers, of infinity and of NaN.
    fn log_specials(&mut self, x: Val, y: Val) -> Val {
        let (zero, least) = (self.c(0.0), self.c(f64::NEG_INFINITY));
        let (most, nan) = (self.c(f64::INFINITY), self.c(f64::NAN));
        let above = self.cmp(Compare::Gt, F, x, zero);
        let is_zero = self.cmp(Compare::Eq, F, x, zero);
        let infinite = self.cmp(Compare::Eq, F, x, most);
        let other = self.select(is_zero, least, nan);
        let y = self.select(above, y, other);
        self.select(infinite, x, y)
    }

    fn log(&mut self, op: Unary, x: Val) -> Val {
        let (tiny, up) = (self.c(f64::from(f32::MIN_POSITIVE)), self.c(8_388_608.0));
        let small = self.cmp(Compare::Lt, F, x, tiny);
        let raised = self.mul(x, up);
        let normal = self.select(small, raised, x);
        let (e, f) = self.split(normal);
        let e = self.cast(F, e);
        let (bits, zero) = (self.c(23.0), self.c(0.0));
        let extra = self.select(small, bits, zero);
        let e = self.sub(e, extra);
        let rest = self.log_rest(f);
        let y = match op {
            Unary::Log => {
                let (high, low) = (self.c(LN2_HIGH), self.c(LN2_LOW));
                let rest = self.fma(e, low, rest);
                let t = self.add(f, rest);
                self.fma(e, high, t)
            }
            Unary::Log2 => {
                let (high, low) = (self.c(LOG2_E_HIGH), self.c(LOG2_E_LOW));
                let t = self.add(f, rest);
                let lost = self.sub(f, t);
                let lost = self.add(lost, rest);
                let small = self.mul(t, low);
                let small = self.fma(lost, high, small);
                let small = self.fma(t, high, small);
                self.add(small, e)
            }
            _ => {
                let (high, low) = (self.c(LOG10_E_HIGH), self.c(LOG10_E_LOW));
                let (two_high, two_low) = (self.c(LOG10_2_HIGH), self.c(LOG10_2_LOW));
                let t = self.add(f, rest);
                let lost = self.sub(f, t);
                let lost = self.add(lost, rest);
                let small = self.mul(t, low);
                let small = self.fma(lost, high, small);
                let small = self.fma(e, two_low, small);
                let small = self.fma(t, high, small);
                self.fma(e, two_high, small)
            }
        };
        self.log_specials(x, y)
    }

    fn log1p(&mut self, x: Val) -> Val {
        let (zero, one) = (self.c(0.0), self.c(1.0));
        let u = self.add(x, one);
        let d = self.sub(u, one);
        let lost = self.sub(x, d);
        let (e, f) = self.split(u);
        let (bias, none) = (self.i(127), self.i(0));
        let back = self.int(Binary::Sub, bias, e);
        let back = self.int(Binary::Max, back, none);
        let back = self.shift(Shift::Left, back, 23);
        let f = self.fma(lost, back, f);
        let rest = self.log_rest(f);
        let e = self.cast(F, e);
        let (high, low) = (self.c(LN2_HIGH), self.c(LN2_LOW));
        let rest = self.fma(e, low, rest);
        let t = self.add(f, rest);
        let y = self.fma(e, high, t);
        let y = self.log_specials(u, y);
        let is_zero = self.cmp(Compare::Eq, F, x, zero);
        self.select(is_zero, x, y)
    }

    fn trigonometric(&mut self, op: Unary, x: Val) -> Val {
        let a = self.abs(x);
        let to_quadrants = self.c(std::f64::consts::FRAC_2_PI);
        let n = self.mul(a, to_quadrants);
        let n = self.nearest(n);
        let mut r = a;
        for part in [HALF_PI_HIGH, HALF_PI_MIDDLE, HALF_PI_LOW] {
            let part = self.c(part);
            r = self.fnma(n, part, r);
        }
        let square = self.mul(r, r);
        let s = self.polynomial(square, &SIN);
        let cube = self.mul(square, r);
        let s = self.fma(s, cube, r);
        let c = self.polynomial(square, &COS);
        let (half, one) = (self.c(-0.5), self.c(1.0));
        let near = self.fma(square, half, one);
        let fourth = self.mul(square, square);
        let c = self.fma(c, fourth, near);

        let quadrant = self.cast(I, n);
        let (first, zero) = (self.i(1), self.i(0));
        let odd = self.logic(Binary::And, quadrant, first);
        let odd = self.cmp(Compare::Ne, I, odd, zero);
        let sign_bit = self.c(-0.0);
        let sign = self.logic(Binary::And, x, sign_bit);
        let y = if op == Unary::Tan {
            let minus = self.logic(Binary::Xor, c, sign_bit);
            let (top, bottom) = (self.select(odd, minus, s), self.select(odd, s, c));
            let y = self.float(Binary::Div, top, bottom);
            self.logic(Binary::Xor, y, sign)
        } else {
            let cosine = op == Unary::Cos;
            let (when_odd, when_even) = if cosine { (s, c) } else { (c, s) };
            let y = self.select(odd, when_odd, when_even);
            let shifted = if cosine { self.int(Binary::Add, quadrant, first) } else { quadrant };
            let flip = self.shift(Shift::Left, shifted, 30);
            let flip = self.logic(Binary::And, flip, sign_bit);
            let y = self.logic(Binary::Xor, y, flip);
            if cosine { y } else { self.logic(Binary::Xor, y, sign) }
        };
        let largest = self.c(LARGEST_ANGLE);
        let mask = self.cmp(Compare::Gt, F, a, largest);
        self.patch(op, x, mask, y)
    }

    /// The first of two values where the magnitude is below a limit, else the second, with the sign of `x`.
    fn join_halves(&mut self, x: Val, limit: f64, near: Val, far: Val) -> Val {
        let a = self.abs(x);
        let (limit, sign_bit) = (self.c(limit), self.c(-0.0));
        let sign = self.logic(Binary::And, x, sign_bit);
        // A NaN is not below the limit, and the far half keeps it.
        let small = self.cmp(Compare::Lt, F, a, limit);
        let y = self.select(small, near, far);
        self.logic(Binary::Or, y, sign)
    }

    fn tanh(&mut self, x: Val) -> Val {
        let square = self.mul(x, x);
        let p = self.polynomial(square, &TANH);
        let cube = self.mul(square, x);
        let near = self.fma(p, cube, x);
        let a = self.abs(x);
        let (largest, one, two) = (self.c(10.0), self.c(1.0), self.c(2.0));
        let a = self.float(Binary::Min, largest, a);
        let doubled = self.add(a, a);
        let (n, t) = self.exp_parts(doubled);
        let e = self.add(t, one);
        let e = self.scale(e, n);
        let e = self.add(e, one);
        let rest = self.float(Binary::Div, two, e);
        let far = self.sub(one, rest);
        self.join_halves(x, 0.625, near, far)
    }

    fn erf(&mut self, x: Val) -> Val {
        let square = self.mul(x, x);
        let p = self.polynomial(square, &ERF);
        let near = self.mul(p, x);
        let a = self.abs(x);
        let largest = self.c(4.0);
        let a = self.float(Binary::Min, largest, a);
        let q = self.polynomial(a, &ERF_REST);
        let n = self.nearest(q);
        let r = self.sub(q, n);
        let e = self.polynomial(r, &EXP2);
        let one = self.c(1.0);
        let e = self.fma(e, r, one);
        let rest = self.scale(e, n);
        let far = self.sub(one, rest);
        self.join_halves(x, 0.85, near, far)
    }
}
