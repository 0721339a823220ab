//! Functions as vector code, of double precision; see [`super::functions`].
//!
//! AVX2 does not convert between floats and 64-bit integers. Adding [`WHOLE`] to a whole number leaves the number in the
//! low bits of the sum, which serves both widths.

use pyrite_loops::{Type, Unary};

use super::Width;
use super::vector::{Alu, Cond, Kind, Logic, Op, Region, Rounding, Routine, Shift, V};

const F: Type = Type::F64;
const I: Type = Type::I64;

/// One and a half times 2⁵².
const WHOLE: f64 = 6_755_399_441_055_744.0;
const LN2_HIGH: f64 = std::f64::consts::LN_2;
const LN2_LOW: f64 = 2.319_046_813_846_299_6e-17;
/// ln 2 in two parts, the first so short that a multiple of it by an exponent is exact.
const LN2_FRONT: f64 = 0.693_147_180_559_663;
const LN2_BACK: f64 = 2.823_529_056_303_157_7e-13;
const TWO_THIRDS_LOW: f64 = 3.700_743_415_417_188e-17;
const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
/// Up to here three parts of pi/2 are enough to reduce an angle.
const LARGEST_ANGLE: f64 = 1e5;

/// `(e^r - 1 - r) / r²` for `r` within half of ln 2.
const EXP: [f64; 10] = [
    0.5,
    0.166_666_666_666_666_69,
    0.041_666_666_666_623_824,
    0.008_333_333_333_330_039,
    0.001_388_888_891_736_708_1,
    0.000_198_412_698_631_715_57,
    2.480_152_105_786_820_4e-05,
    2.755_726_827_690_569_6e-06,
    2.762_020_159_103_154_7e-07,
    2.510_047_250_569_499_6e-08,
];
/// `(log(1 + f) - 2s) / s³` over `s²` with `s = f / (2 + f)`.
const LOG: [f64; 8] = [
    0.666_666_666_666_666_6,
    0.400_000_000_000_008_85,
    0.285_714_285_707_997_84,
    0.222_222_223_925_810_45,
    0.181_817_955_475_211_37,
    0.153_862_447_376_216_65,
    0.132_686_383_692_668_25,
    0.130_880_348_509_275_55,
];
/// `(sin r - r) / r³` over `r²`, for `r` within a quarter of pi.
const SIN: [f64; 7] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_333_331,
    -0.000_198_412_698_412_650_17,
    2.755_731_921_930_192e-06,
    -2.505_210_621_952_189_5e-08,
    1.605_852_957_226_787_7e-10,
    -7.586_576_588_171_073e-13,
];
/// `(cos r - 1 + r²/2) / r⁴` over `r²`, for `r` within a quarter of pi.
const COS: [f64; 7] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_888_7,
    2.480_158_730_158_461_8e-05,
    -2.755_731_922_138_211_4e-07,
    2.087_675_578_389_404e-09,
    -1.147_045_974_967_560_7e-11,
    4.745_804_889_760_674e-14,
];
/// `(tanh x - x) / x³` over `x²`, for `x` within 0.625.
const TANH: [f64; 12] = [
    -0.333_333_333_333_333_3,
    0.133_333_333_333_330_42,
    -0.053_968_253_967_896_99,
    0.021_869_488_519_008_305,
    -0.008_863_235_103_240_878,
    0.003_592_121_751_154_962_2,
    -0.001_455_775_412_047_805_5,
    0.000_589_660_657_775_704_3,
    -0.000_237_590_649_605_556_2,
    9.257_116_129_556_769e-05,
    -3.120_110_142_579_74e-05,
    6.485_163_482_793_113e-06,
];
/// `erf x / x` over `x²`, for `x` within 0.85.
const ERF: [f64; 12] = [
    std::f64::consts::FRAC_2_SQRT_PI,
    -0.376_126_389_031_837_5,
    0.112_837_916_709_546_93,
    -0.026_866_170_645_018_894,
    0.005_223_977_623_934_868,
    -0.000_854_832_690_405_371_8,
    0.000_120_553_269_790_376_61,
    -1.492_545_130_538_004e-05,
    1.645_769_666_214_179_3e-06,
    -1.630_070_391_720_015e-07,
    1.419_079_573_876_693_3e-08,
    -8.840_255_392_847_787e-10,
];
/// The logarithm of `1 - erf x` over `x - 0.85`, for `x` from there to 6.
const ERF_REST: [f64; 20] = [
    -1.472_584_794_887_996_2,
    -2.388_981_280_298_332,
    -0.822_981_690_554_382_6,
    -0.048_041_850_427_368_14,
    0.011_593_188_273_174_909,
    -0.002_173_302_882_807_818_4,
    0.000_189_709_784_907_191_1,
    6.742_387_258_350_035e-05,
    -4.213_426_442_135_424_5e-05,
    1.261_277_784_877_43e-05,
    -1.924_600_156_398_025_3e-06,
    -2.736_463_337_881_826_4e-07,
    3.115_455_448_259_001_5e-07,
    -1.264_453_983_883_425e-07,
    3.490_519_960_381_531e-08,
    -7.105_005_188_150_881e-09,
    1.060_696_188_580_347_2e-09,
    -1.103_860_563_761_930_5e-10,
    7.158_415_397_354_115e-12,
    -2.174_620_410_244_157_8e-13,
];
/// `(log(1 + f) - 2s - 2s³/3) / s⁵` over `s²` with `s = f / (2 + f)`.
const LOG_TAIL: [f64; 8] = [
    0.4,
    0.285_714_285_714_293_75,
    0.222_222_222_216_518_83,
    0.181_818_183_362_012_03,
    0.153_845_948_847_819_38,
    0.133_348_085_304_112_88,
    0.117_061_424_635_159_67,
    0.117_240_808_919_224_73,
];

/// What a power is rounded to in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounded {
    Single,
    Double,
}

/// A function of one value, where there is vector code for it.
pub(super) fn unary(region: &mut Region, width: Width, op: Unary, x: V) -> Option<V> {
    let mut b = Builder { r: region, width };
    Some(match op {
        Unary::Exp => b.exp(x),
        Unary::Log => b.log(x),
        Unary::Sin | Unary::Cos => b.trigonometric(op, x),
        Unary::Tanh => b.tanh(x),
        Unary::Erf => b.erf(x),
        _ => return None,
    })
}

/// A power, right in the last places of what it is rounded to.
pub(super) fn pow(region: &mut Region, width: Width, x: V, y: V, to: Rounded) -> V {
    Builder { r: region, width }.pow(x, y, to)
}

struct Builder<'a> {
    r: &'a mut Region,
    width: Width,
}

impl Builder<'_> {
    fn c(&mut self, x: f64) -> V {
        self.r.float(x, F)
    }

    fn i(&mut self, x: i64) -> V {
        self.r.int(x, Kind::W64)
    }

    fn alu(&mut self, alu: Alu, a: V, b: V) -> V {
        self.r.alu(alu, F, a, b)
    }

    fn abs(&mut self, x: V) -> V {
        let sign = self.c(-0.0);
        self.r.logic(Logic::AndNot, sign, x)
    }

    fn nearest(&mut self, x: V) -> V {
        self.r.pure(Op::Round(F, Rounding::Nearest, x), Kind::W64)
    }

    /// A polynomial by its coefficients, the constant first.
    fn polynomial(&mut self, x: V, coefficients: &[f64]) -> V {
        let mut sum = self.c(coefficients[coefficients.len() - 1]);
        for c in coefficients.iter().rev().skip(1) {
            let c = self.c(*c);
            sum = self.r.fma(F, sum, x, c);
        }
        sum
    }

    /// A whole number in the low bits.
    fn whole(&mut self, n: V) -> V {
        let whole = self.c(WHOLE);
        self.alu(Alu::Add, n, whole)
    }

    /// `y · 2ⁿ` for a whole `n` between -2044 and 2044.
    fn scale(&mut self, y: V, n: V) -> V {
        if self.width == Width::Avx512 {
            return self.r.pure(Op::Scale(F, y, n), Kind::W64);
        }
        let half = self.c(0.5);
        let first = self.alu(Alu::Mul, n, half);
        let first = self.nearest(first);
        let second = self.alu(Alu::Sub, n, first);
        let mut y = y;
        for part in [first, second] {
            let bits = self.whole(part);
            let bias = self.i(1023);
            let bits = self.r.alu(Alu::Add, I, bits, bias);
            let power = self.r.shift(Shift::Left, bits, 52);
            y = self.alu(Alu::Mul, y, power);
        }
        y
    }

    fn exp(&mut self, x: V) -> V {
        self.exp_of_sum(x, None)
    }

    /// `e` to the sum of a number and a very small one.
    fn exp_of_sum(&mut self, x: V, rest: Option<V>) -> V {
        let (low, high) = (self.c(-746.0), self.c(710.0));
        let x = self.alu(Alu::Max, low, x);
        let x = self.alu(Alu::Min, high, x);
        let (log2_e, high, low) = (self.c(std::f64::consts::LOG2_E), self.c(LN2_HIGH), self.c(LN2_LOW));
        let n = self.alu(Alu::Mul, x, log2_e);
        let n = self.nearest(n);
        let r = self.r.fnma(F, n, high, x);
        let mut r = self.r.fnma(F, n, low, r);
        if let Some(rest) = rest {
            r = self.alu(Alu::Add, r, rest);
        }
        let p = self.polynomial(r, &EXP);
        let square = self.alu(Alu::Mul, r, r);
        let t = self.r.fma(F, p, square, r);
        let one = self.c(1.0);
        let y = self.alu(Alu::Add, t, one);
        self.scale(y, n)
    }

    /// `e` and `m - 1` with `x = m · 2^e`, where `x` is positive and finite.
    fn split(&mut self, x: V) -> (V, V) {
        let (tiny, up) = (self.c(f64::MIN_POSITIVE), self.c(18_014_398_509_481_984.0));
        let small = self.r.cmp(Cond::Lt, F, x, tiny);
        let raised = self.alu(Alu::Mul, x, up);
        let normal = self.r.select(small, raised, x);
        // The exponent is counted so that the rest lies between the root of a half and the root of two.
        let shift = self.i(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
        let biased = self.r.alu(Alu::Add, I, normal, shift);
        let biased = self.r.shift(Shift::Right, biased, 52);
        let exponent = self.r.shift(Shift::Left, biased, 52);
        let one_bits = self.i(1023 << 52);
        let m = self.r.alu(Alu::Sub, I, normal, exponent);
        let m = self.r.alu(Alu::Add, I, m, one_bits);
        let high_bits = self.c(4_503_599_627_370_496.0);
        let e = self.r.logic(Logic::Or, biased, high_bits);
        let base = self.c(4_503_599_627_370_496.0 + 1023.0);
        let e = self.alu(Alu::Sub, e, base);
        let (bits, zero) = (self.c(54.0), self.c(0.0));
        let extra = self.r.select(small, bits, zero);
        let e = self.alu(Alu::Sub, e, extra);
        let one = self.c(1.0);
        (e, self.alu(Alu::Sub, m, one))
    }

    fn log(&mut self, x: V) -> V {
        let (e, f) = self.split(x);
        let (two, half) = (self.c(2.0), self.c(0.5));
        let below = self.alu(Alu::Add, f, two);
        let s = self.alu(Alu::Div, f, below);
        let square = self.alu(Alu::Mul, s, s);
        let p = self.polynomial(square, &LOG);
        let rest = self.alu(Alu::Mul, p, square);
        let halved = self.alu(Alu::Mul, f, half);
        let halved = self.alu(Alu::Mul, halved, f);
        let (high, low) = (self.c(LN2_HIGH), self.c(LN2_LOW));
        let sum = self.alu(Alu::Add, halved, rest);
        let part = self.alu(Alu::Mul, e, low);
        let part = self.r.fma(F, s, sum, part);
        let part = self.alu(Alu::Sub, halved, part);
        let part = self.alu(Alu::Sub, part, f);
        let y = self.alu(Alu::Mul, e, high);
        let lost = self.r.fnma(F, e, high, y);
        let part = self.alu(Alu::Add, part, lost);
        let y = self.alu(Alu::Sub, y, part);
        self.log_specials(x, y)
    }

    /// The logarithm where it is special: of zero, of negative numbers, of infinity and of NaN.
    fn log_specials(&mut self, x: V, y: V) -> V {
        let zero = self.c(0.0);
        let (least, most) = (self.c(f64::NEG_INFINITY), self.c(f64::INFINITY));
        let nan = self.c(f64::NAN);
        let above = self.r.cmp(Cond::Gt, F, x, zero);
        let is_zero = self.r.cmp(Cond::Eq, F, x, zero);
        let infinite = self.r.cmp(Cond::Eq, F, x, most);
        let other = self.r.select(is_zero, least, nan);
        let y = self.r.select(above, y, other);
        self.r.select(infinite, x, y)
    }

    /// The logarithm of a number that is not negative, and what its rounding lost.
    fn log_pair(&mut self, x: V) -> (V, V) {
        let (e, f) = self.split(x);
        let two = self.c(2.0);
        let below = self.alu(Alu::Add, f, two);
        let taken = self.alu(Alu::Sub, below, two);
        let below_low = self.alu(Alu::Sub, f, taken);
        let s = self.alu(Alu::Div, f, below);
        let left = self.r.fnma(F, s, below, f);
        let left = self.r.fnma(F, s, below_low, left);
        let s_low = self.alu(Alu::Div, left, below);

        // Of every product the error is computed, turned around, by a fused multiplication.
        let doubled = self.alu(Alu::Add, s, s);
        let square = self.alu(Alu::Mul, s, s);
        let error = self.r.fnma(F, s, s, square);
        let square_low = self.alu(Alu::Mul, doubled, s_low);
        let square_low = self.alu(Alu::Sub, square_low, error);
        let cube = self.alu(Alu::Mul, square, s);
        let error = self.r.fnma(F, square, s, cube);
        let cube_low = self.alu(Alu::Mul, square_low, s);
        let cube_low = self.r.fma(F, square, s_low, cube_low);
        let cube_low = self.alu(Alu::Sub, cube_low, error);
        let (thirds, thirds_low) = (self.c(2.0 / 3.0), self.c(TWO_THIRDS_LOW));
        let third = self.alu(Alu::Mul, thirds, cube);
        let error = self.r.fnma(F, thirds, cube, third);
        let tail = self.polynomial(square, &LOG_TAIL);
        let fifth = self.alu(Alu::Mul, cube, square);
        let low = self.alu(Alu::Mul, fifth, tail);
        let low = self.r.fma(F, thirds, cube_low, low);
        let low = self.r.fma(F, thirds_low, cube, low);
        let low = self.alu(Alu::Sub, low, error);

        let (high, error) = self.sum(doubled, third);
        let low = self.alu(Alu::Add, low, error);
        let low = self.r.fma(F, two, s_low, low);
        let (front, back) = (self.c(LN2_FRONT), self.c(LN2_BACK));
        let whole = self.alu(Alu::Mul, e, front);
        let (high, error) = self.sum(whole, high);
        let low = self.alu(Alu::Add, low, error);
        let low = self.r.fma(F, e, back, low);
        let (high, low) = self.sum(high, low);

        let (zero, most) = (self.c(0.0), self.c(f64::INFINITY));
        let (above, finite) = (self.r.cmp(Cond::Gt, F, x, zero), self.r.cmp(Cond::Lt, F, x, most));
        let plain = self.r.logic(Logic::And, above, finite);
        (self.log_specials(x, high), self.r.select(plain, low, zero))
    }

    /// The sum of two numbers and what its rounding lost; the first is zero or the larger one.
    fn sum(&mut self, a: V, b: V) -> (V, V) {
        let sum = self.alu(Alu::Add, a, b);
        let taken = self.alu(Alu::Sub, sum, a);
        (sum, self.alu(Alu::Sub, b, taken))
    }

    fn pow(&mut self, x: V, y: V, to: Rounded) -> V {
        let (zero, one, sign_bit) = (self.c(0.0), self.c(1.0), self.c(-0.0));
        let (least, most, nan) = (self.c(f64::NEG_INFINITY), self.c(f64::INFINITY), self.c(f64::NAN));
        let (a, size) = (self.abs(x), self.abs(y));
        let power = match to {
            Rounded::Single => {
                let log = self.log(a);
                let product = self.alu(Alu::Mul, y, log);
                self.exp(product)
            }
            Rounded::Double => {
                let (log, log_low) = self.log_pair(a);
                let product = self.alu(Alu::Mul, y, log);
                let error = self.r.fnma(F, y, log, product);
                let low = self.alu(Alu::Mul, y, log_low);
                let low = self.alu(Alu::Sub, low, error);
                // Beyond this the power is zero or infinite, and what was lost may be undefined.
                let (far, distance) = (self.c(1000.0), self.abs(product));
                let near = self.r.cmp(Cond::Lt, F, distance, far);
                let low = self.r.select(near, low, zero);
                self.exp_of_sum(product, Some(low))
            }
        };
        let whole = self.nearest(y);
        let whole = self.r.cmp(Cond::Eq, F, whole, y);
        let half = self.c(0.5);
        let half = self.alu(Alu::Mul, y, half);
        let even = self.nearest(half);
        let odd = self.r.cmp(Cond::Ne, F, even, half);
        let odd = self.r.logic(Logic::And, whole, odd);
        let sign = self.r.logic(Logic::And, x, sign_bit);
        let sign = self.r.select(odd, sign, zero);
        let power = self.r.logic(Logic::Or, power, sign);
        let (negative, finite) = (self.r.cmp(Cond::Lt, F, x, zero), self.r.cmp(Cond::Gt, F, x, least));
        let negative = self.r.logic(Logic::And, negative, finite);
        let undefined = self.r.logic(Logic::AndNot, whole, negative);
        let power = self.r.select(undefined, nan, power);
        let (none, unit) = (self.r.cmp(Cond::Eq, F, y, zero), self.r.cmp(Cond::Eq, F, x, one));
        let (level, endless) = (self.r.cmp(Cond::Eq, F, a, one), self.r.cmp(Cond::Eq, F, size, most));
        let settled = self.r.logic(Logic::And, level, endless);
        let settled = self.r.logic(Logic::Or, settled, none);
        let settled = self.r.logic(Logic::Or, settled, unit);
        self.r.select(settled, one, power)
    }

    fn erf(&mut self, x: V) -> V {
        let square = self.alu(Alu::Mul, x, x);
        let p = self.polynomial(square, &ERF);
        let near = self.alu(Alu::Mul, p, x);
        let a = self.abs(x);
        let (limit, largest, one, sign_bit) = (self.c(0.85), self.c(6.0), self.c(1.0), self.c(-0.0));
        let clamped = self.alu(Alu::Min, largest, a);
        let beyond = self.alu(Alu::Sub, clamped, limit);
        let log = self.polynomial(beyond, &ERF_REST);
        let rest = self.exp(log);
        let far = self.alu(Alu::Sub, one, rest);
        let sign = self.r.logic(Logic::And, x, sign_bit);
        // A NaN is not below the limit, and the far half keeps it.
        let small = self.r.cmp(Cond::Lt, F, a, limit);
        let y = self.r.select(small, near, far);
        self.r.logic(Logic::Or, y, sign)
    }

    fn trigonometric(&mut self, op: Unary, x: V) -> V {
        let a = self.abs(x);
        let to_quadrants = self.c(std::f64::consts::FRAC_2_PI);
        let n = self.alu(Alu::Mul, a, to_quadrants);
        let n = self.nearest(n);
        let mut r = a;
        for part in HALF_PI {
            let part = self.c(part);
            r = self.r.fnma(F, n, part, r);
        }
        let square = self.alu(Alu::Mul, r, r);
        let s = self.polynomial(square, &SIN);
        let cube = self.alu(Alu::Mul, square, r);
        let s = self.r.fma(F, s, cube, r);
        let c = self.polynomial(square, &COS);
        let (half, one) = (self.c(-0.5), self.c(1.0));
        let near = self.r.fma(F, square, half, one);
        let fourth = self.alu(Alu::Mul, square, square);
        let c = self.r.fma(F, c, fourth, near);

        let quadrant = self.whole(n);
        let (first, zero, sign_bit) = (self.i(1), self.i(0), self.c(-0.0));
        let odd = self.r.logic(Logic::And, quadrant, first);
        let odd = self.r.cmp(Cond::Ne, I, odd, zero);
        let cosine = op == Unary::Cos;
        let (when_odd, when_even) = if cosine { (s, c) } else { (c, s) };
        let y = self.r.select(odd, when_odd, when_even);
        let turned = if cosine { self.r.alu(Alu::Add, I, quadrant, first) } else { quadrant };
        let flip = self.r.shift(Shift::Left, turned, 62);
        let flip = self.r.logic(Logic::And, flip, sign_bit);
        let mut y = self.r.logic(Logic::Xor, y, flip);
        if !cosine {
            let sign = self.r.logic(Logic::And, x, sign_bit);
            y = self.r.logic(Logic::Xor, y, sign);
        }
        let largest = self.c(LARGEST_ANGLE);
        let mask = self.r.cmp(Cond::Gt, F, a, largest);
        self.r.pure(Op::Patch { routine: Routine::Unary(op, F), a: x, b: x, mask, value: y }, Kind::W64)
    }

    fn tanh(&mut self, x: V) -> V {
        let square = self.alu(Alu::Mul, x, x);
        let p = self.polynomial(square, &TANH);
        let cube = self.alu(Alu::Mul, square, x);
        let near = self.r.fma(F, p, cube, x);
        let a = self.abs(x);
        let (largest, one, two) = (self.c(20.0), self.c(1.0), self.c(2.0));
        let clamped = self.alu(Alu::Min, largest, a);
        let doubled = self.alu(Alu::Add, clamped, clamped);
        let e = self.exp(doubled);
        let e = self.alu(Alu::Add, e, one);
        let rest = self.alu(Alu::Div, two, e);
        let far = self.alu(Alu::Sub, one, rest);
        let (limit, sign_bit) = (self.c(0.625), self.c(-0.0));
        let sign = self.r.logic(Logic::And, x, sign_bit);
        let small = self.r.cmp(Cond::Lt, F, a, limit);
        let y = self.r.select(small, near, far);
        self.r.logic(Logic::Or, y, sign)
    }
}
