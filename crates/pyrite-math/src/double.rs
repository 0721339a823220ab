//! Functions of double precision.
//!
//! AVX2 does not convert between floats and 64-bit integers. Adding [`WHOLE`] to a whole number leaves the number in the
//! low bits of the sum, which serves every target.

use std::ops::{Deref, DerefMut};

use pyrite_loops::{Binary, Block, Compare, Shift, Type, Unary, Val};

use crate::builder::Builder;

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

/// `(1 + 2x) e^(x²) erfc x` over `(x - 4) / (x + 4)`, for `x` from 0 to 28.
const ERFC: [f64; 23] = [
    1.232_995_118_625_552_6,
    -0.139_621_116_840_562_97,
    0.015_379_652_102_619_957,
    0.068_097_054_254_743_79,
    -0.101_039_066_036_305_44,
    0.093_732_834_996_607_64,
    -0.066_330_365_812_616_21,
    0.037_167_515_564_785_51,
    -0.016_197_734_046_222_295,
    0.005_031_969_742_475_732,
    -0.000_757_773_429_091_875_2,
    -0.000_199_255_476_253_683_94,
    0.000_150_622_603_955_669_57,
    -2.440_312_639_602_469_6e-05,
    -1.122_568_732_770_148_7e-05,
    5.717_454_177_646_323e-06,
    3.026_497_532_550_689_7e-07,
    -8.341_113_439_095_622e-07,
    6.178_725_731_616_24e-08,
    1.141_947_969_011_364_7e-07,
    -7.617_021_349_101_117e-09,
    -1.317_671_120_033_288_7e-08,
    -1.664_234_372_923_541_6e-09,
];
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
const LOG10_E_LOW: f64 = 1.098_319_650_216_765e-17;

/// What a power is rounded to in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounded {
    Single,
    Double,
}

/// A function of one value that targets do not have themselves.
pub(crate) fn unary(code: &mut Block, op: Unary, x: Val) -> Option<Val> {
    let mut builder = Builder::new(code, F);
    let mut b = Double(&mut builder);
    Some(match op {
        Unary::Exp => b.exp(x),
        Unary::Exp2 => b.exp2(x),
        Unary::Expm1 => b.expm1(x),
        Unary::Log => b.log(x),
        Unary::Log2 => b.log_to(x, std::f64::consts::LOG2_E, LOG2_E_LOW),
        Unary::Log10 => b.log_to(x, std::f64::consts::LOG10_E, LOG10_E_LOW),
        Unary::Log1p => b.log1p(x),
        Unary::Sin | Unary::Cos | Unary::Tan => b.trigonometric(op, x),
        Unary::Asin => b.asin(x),
        Unary::Acos => b.acos(x),
        Unary::Atan => b.atan(x),
        Unary::Sinh => b.sinh(x),
        Unary::Cosh => b.cosh(x),
        Unary::Tanh => b.tanh(x),
        Unary::Asinh => b.asinh(x),
        Unary::Acosh => b.acosh(x),
        Unary::Atanh => b.atanh(x),
        Unary::Erf => b.erf(x),
        Unary::Erfc => b.erfc(x),
        _ => return None,
    })
}

/// A power, right in the last places of what it is rounded to.
pub(crate) fn pow(code: &mut Block, x: Val, y: Val, to: Rounded) -> Val {
    Double(&mut Builder::new(code, F)).pow(x, y, to)
}

/// The angle of the point `(x, y)`.
pub(crate) fn atan2(code: &mut Block, y: Val, x: Val) -> Val {
    Double(&mut Builder::new(code, F)).atan2(y, x)
}

/// Writes code of double precision.
pub(crate) struct Double<'a, 'b>(pub(crate) &'b mut Builder<'a>);

impl<'a> Deref for Double<'a, '_> {
    type Target = Builder<'a>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for Double<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Double<'_, '_> {
    /// A whole number in the low bits.
    fn whole(&mut self, n: Val) -> Val {
        let whole = self.c(WHOLE);
        self.add(n, whole)
    }

    pub(crate) fn exp(&mut self, x: Val) -> Val {
        self.exp_of_sum(x, None)
    }

    /// `e` to the sum of a number and a very small one.
    fn exp_of_sum(&mut self, x: Val, rest: Option<Val>) -> Val {
        let (low, high) = (self.c(-746.0), self.c(710.0));
        let x = self.float(Binary::Max, low, x);
        let x = self.float(Binary::Min, high, x);
        let (log2_e, high, low) = (self.c(std::f64::consts::LOG2_E), self.c(LN2_HIGH), self.c(LN2_LOW));
        let n = self.mul(x, log2_e);
        let n = self.nearest(n);
        let r = self.fnma(n, high, x);
        let mut r = self.fnma(n, low, r);
        if let Some(rest) = rest {
            r = self.add(r, rest);
        }
        let p = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        let t = self.fma(p, square, r);
        let one = self.c(1.0);
        let y = self.add(t, one);
        self.scale(y, n)
    }

    /// `e` and `m - 1` with `x = m · 2^e`, where `x` is positive and finite.
    fn split(&mut self, x: Val) -> (Val, Val) {
        let (tiny, up) = (self.c(f64::MIN_POSITIVE), self.c(18_014_398_509_481_984.0));
        let small = self.cmp(Compare::Lt, F, x, tiny);
        let raised = self.mul(x, up);
        let normal = self.select(small, raised, x);
        // The exponent is counted so that the rest lies between the root of a half and the root of two.
        let shift = self.i(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
        let biased = self.int(Binary::Add, normal, shift);
        let biased = self.shift(Shift::Right, biased, 52);
        let exponent = self.shift(Shift::Left, biased, 52);
        let one_bits = self.i(1023 << 52);
        let m = self.int(Binary::Sub, normal, exponent);
        let m = self.int(Binary::Add, m, one_bits);
        let high_bits = self.c(4_503_599_627_370_496.0);
        let e = self.logic(Binary::Or, biased, high_bits);
        let base = self.c(4_503_599_627_370_496.0 + 1023.0);
        let e = self.sub(e, base);
        let (bits, zero) = (self.c(54.0), self.c(0.0));
        let extra = self.select(small, bits, zero);
        let e = self.sub(e, extra);
        let one = self.c(1.0);
        (e, self.sub(m, one))
    }

    pub(crate) fn log(&mut self, x: Val) -> Val {
        let (e, f) = self.split(x);
        let (two, half) = (self.c(2.0), self.c(0.5));
        let below = self.add(f, two);
        let s = self.div(f, below);
        let square = self.mul(s, s);
        let p = self.polynomial(square, &LOG);
        let rest = self.mul(p, square);
        let halved = self.mul(f, half);
        let halved = self.mul(halved, f);
        let (high, low) = (self.c(LN2_HIGH), self.c(LN2_LOW));
        let sum = self.add(halved, rest);
        let part = self.mul(e, low);
        let part = self.fma(s, sum, part);
        let part = self.sub(halved, part);
        let part = self.sub(part, f);
        let y = self.mul(e, high);
        let lost = self.fnma(e, high, y);
        let part = self.add(part, lost);
        let y = self.sub(y, part);
        self.log_specials(x, y)
    }

    /// The logarithm where it is special: of zero, of negative numbers, of infinity and of NaN.
    fn log_specials(&mut self, x: Val, y: Val) -> Val {
        let zero = self.c(0.0);
        let (least, most) = (self.c(f64::NEG_INFINITY), self.c(f64::INFINITY));
        let nan = self.c(f64::NAN);
        let above = self.cmp(Compare::Gt, F, x, zero);
        let is_zero = self.cmp(Compare::Eq, F, x, zero);
        let infinite = self.cmp(Compare::Eq, F, x, most);
        let other = self.select(is_zero, least, nan);
        let y = self.select(above, y, other);
        self.select(infinite, x, y)
    }

    /// The logarithm of a number that is not negative, and what its rounding lost.
    pub(crate) fn log_pair(&mut self, x: Val) -> (Val, Val) {
        let (e, f) = self.split(x);
        let two = self.c(2.0);
        let below = self.add(f, two);
        let taken = self.sub(below, two);
        let below_low = self.sub(f, taken);
        let s = self.div(f, below);
        let left = self.fnma(s, below, f);
        let left = self.fnma(s, below_low, left);
        let s_low = self.div(left, below);

        // Of every product the error is computed, negated, by a fused multiplication.
        let doubled = self.add(s, s);
        let square = self.mul(s, s);
        let error = self.fnma(s, s, square);
        let square_low = self.mul(doubled, s_low);
        let square_low = self.sub(square_low, error);
        let cube = self.mul(square, s);
        let error = self.fnma(square, s, cube);
        let cube_low = self.mul(square_low, s);
        let cube_low = self.fma(square, s_low, cube_low);
        let cube_low = self.sub(cube_low, error);
        let (thirds, thirds_low) = (self.c(2.0 / 3.0), self.c(TWO_THIRDS_LOW));
        let third = self.mul(thirds, cube);
        let error = self.fnma(thirds, cube, third);
        let tail = self.polynomial(square, &LOG_TAIL);
        let fifth = self.mul(cube, square);
        let low = self.mul(fifth, tail);
        let low = self.fma(thirds, cube_low, low);
        let low = self.fma(thirds_low, cube, low);
        let low = self.sub(low, error);

        let (high, error) = self.sum(doubled, third);
        let low = self.add(low, error);
        let low = self.fma(two, s_low, low);
        let (front, back) = (self.c(LN2_FRONT), self.c(LN2_BACK));
        let whole = self.mul(e, front);
        let (high, error) = self.sum(whole, high);
        let low = self.add(low, error);
        let low = self.fma(e, back, low);
        let (high, low) = self.sum(high, low);

        let (zero, most) = (self.c(0.0), self.c(f64::INFINITY));
        let (above, finite) = (self.cmp(Compare::Gt, F, x, zero), self.cmp(Compare::Lt, F, x, most));
        let plain = self.logic(Binary::And, above, finite);
        (self.log_specials(x, high), self.select(plain, low, zero))
    }

    /// The sum of two numbers and what its rounding lost; the first is zero or the larger one.
    fn sum(&mut self, a: Val, b: Val) -> (Val, Val) {
        let sum = self.add(a, b);
        let taken = self.sub(sum, a);
        (sum, self.sub(b, taken))
    }

    fn pow(&mut self, x: Val, y: Val, to: Rounded) -> Val {
        let (zero, one, sign_bit) = (self.c(0.0), self.c(1.0), self.c(-0.0));
        let (least, most, nan) = (self.c(f64::NEG_INFINITY), self.c(f64::INFINITY), self.c(f64::NAN));
        let (a, size) = (self.abs(x), self.abs(y));
        let power = match to {
            Rounded::Single => {
                let log = self.log(a);
                let product = self.mul(y, log);
                self.exp(product)
            }
            Rounded::Double => {
                let (log, log_low) = self.log_pair(a);
                let product = self.mul(y, log);
                let error = self.fnma(y, log, product);
                let low = self.mul(y, log_low);
                let low = self.sub(low, error);
                // Beyond this the power is zero or infinite, and what was lost may be undefined.
                let (far, distance) = (self.c(1000.0), self.abs(product));
                let near = self.cmp(Compare::Lt, F, distance, far);
                let low = self.select(near, low, zero);
                self.exp_of_sum(product, Some(low))
            }
        };
        let whole = self.nearest(y);
        let whole = self.cmp(Compare::Eq, F, whole, y);
        let half = self.c(0.5);
        let half = self.mul(y, half);
        let even = self.nearest(half);
        let odd = self.cmp(Compare::Ne, F, even, half);
        let odd = self.logic(Binary::And, whole, odd);
        let sign = self.logic(Binary::And, x, sign_bit);
        let sign = self.select(odd, sign, zero);
        let power = self.logic(Binary::Or, power, sign);
        let (negative, finite) = (self.cmp(Compare::Lt, F, x, zero), self.cmp(Compare::Gt, F, x, least));
        let negative = self.logic(Binary::And, negative, finite);
        let undefined = self.but_not(whole, negative);
        let power = self.select(undefined, nan, power);
        let (none, unit) = (self.cmp(Compare::Eq, F, y, zero), self.cmp(Compare::Eq, F, x, one));
        let (level, endless) = (self.cmp(Compare::Eq, F, a, one), self.cmp(Compare::Eq, F, size, most));
        let is_one = self.logic(Binary::And, level, endless);
        let is_one = self.logic(Binary::Or, is_one, none);
        let is_one = self.logic(Binary::Or, is_one, unit);
        self.select(is_one, one, power)
    }

    fn erf(&mut self, x: Val) -> Val {
        let square = self.mul(x, x);
        let p = self.polynomial(square, &ERF);
        let near = self.mul(p, x);
        let a = self.abs(x);
        let (limit, largest, one, sign_bit) = (self.c(0.85), self.c(6.0), self.c(1.0), self.c(-0.0));
        let clamped = self.float(Binary::Min, largest, a);
        let beyond = self.sub(clamped, limit);
        let log = self.polynomial(beyond, &ERF_REST);
        let rest = self.exp(log);
        let far = self.sub(one, rest);
        let sign = self.logic(Binary::And, x, sign_bit);
        // A NaN is not below the limit, and the far half keeps it.
        let small = self.cmp(Compare::Lt, F, a, limit);
        let y = self.select(small, near, far);
        self.logic(Binary::Or, y, sign)
    }

    /// The sine and the cosine of an angle within a quarter of pi.
    pub(crate) fn sine_and_cosine(&mut self, r: Val) -> (Val, Val) {
        let square = self.mul(r, r);
        let s = self.polynomial(square, &SIN);
        let cube = self.mul(square, r);
        let s = self.fma(s, cube, r);
        let c = self.polynomial(square, &COS);
        let (half, one) = (self.c(-0.5), self.c(1.0));
        let near = self.fma(square, half, one);
        let fourth = self.mul(square, square);
        let c = self.fma(c, fourth, near);
        (s, c)
    }

    fn trigonometric(&mut self, op: Unary, x: Val) -> Val {
        let a = self.abs(x);
        let to_quadrants = self.c(std::f64::consts::FRAC_2_PI);
        let n = self.mul(a, to_quadrants);
        let n = self.nearest(n);
        let mut r = a;
        for part in HALF_PI {
            let part = self.c(part);
            r = self.fnma(n, part, r);
        }
        let (s, c) = self.sine_and_cosine(r);

        let quadrant = self.whole(n);
        let (first, zero, sign_bit) = (self.i(1), self.i(0), self.c(-0.0));
        let odd = self.logic(Binary::And, quadrant, first);
        let odd = self.cmp(Compare::Ne, I, odd, zero);
        let largest = self.c(LARGEST_ANGLE);
        if op == Unary::Tan {
            let minus = self.logic(Binary::Xor, c, sign_bit);
            let (top, bottom) = (self.select(odd, minus, s), self.select(odd, s, c));
            let y = self.div(top, bottom);
            let sign = self.logic(Binary::And, x, sign_bit);
            let y = self.logic(Binary::Xor, y, sign);
            let mask = self.cmp(Compare::Gt, F, a, largest);
            return self.patch(op, x, mask, y);
        }
        let cosine = op == Unary::Cos;
        let (when_odd, when_even) = if cosine { (s, c) } else { (c, s) };
        let y = self.select(odd, when_odd, when_even);
        let shifted = if cosine { self.int(Binary::Add, quadrant, first) } else { quadrant };
        let flip = self.shift(Shift::Left, shifted, 62);
        let flip = self.logic(Binary::And, flip, sign_bit);
        let mut y = self.logic(Binary::Xor, y, flip);
        if !cosine {
            let sign = self.logic(Binary::And, x, sign_bit);
            y = self.logic(Binary::Xor, y, sign);
        }
        let mask = self.cmp(Compare::Gt, F, a, largest);
        self.patch(op, x, mask, y)
    }

    fn tanh(&mut self, x: Val) -> Val {
        let square = self.mul(x, x);
        let p = self.polynomial(square, &TANH);
        let cube = self.mul(square, x);
        let near = self.fma(p, cube, x);
        let a = self.abs(x);
        let (largest, one, two) = (self.c(20.0), self.c(1.0), self.c(2.0));
        let clamped = self.float(Binary::Min, largest, a);
        let doubled = self.add(clamped, clamped);
        let e = self.exp(doubled);
        let e = self.add(e, one);
        let rest = self.div(two, e);
        let far = self.sub(one, rest);
        let (limit, sign_bit) = (self.c(0.625), self.c(-0.0));
        let sign = self.logic(Binary::And, x, sign_bit);
        let small = self.cmp(Compare::Lt, F, a, limit);
        let y = self.select(small, near, far);
        self.logic(Binary::Or, y, sign)
    }

    /// `n` and `e^r - 1` with `x = n ln 2 + r`.
    fn exp_parts(&mut self, x: Val) -> (Val, Val) {
        let (log2_e, high, low) = (self.c(std::f64::consts::LOG2_E), self.c(LN2_HIGH), self.c(LN2_LOW));
        let n = self.mul(x, log2_e);
        let n = self.nearest(n);
        let r = self.fnma(n, high, x);
        let r = self.fnma(n, low, r);
        let p = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        (n, self.fma(p, square, r))
    }

    fn exp2(&mut self, x: Val) -> Val {
        let x = self.clamp(x, -1080.0, 1025.0);
        let n = self.nearest(x);
        let r = self.sub(x, n);
        let (ln2, one) = (self.c(LN2_HIGH), self.c(1.0));
        let r = self.mul(r, ln2);
        let p = self.polynomial(r, &EXP);
        let square = self.mul(r, r);
        let t = self.fma(p, square, r);
        let y = self.add(t, one);
        self.scale(y, n)
    }

    pub(crate) fn expm1(&mut self, x: Val) -> Val {
        let clamped = self.clamp(x, -40.0, 710.0);
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

    /// A logarithm to another base, by what the natural one is multiplied with.
    fn log_to(&mut self, x: Val, factor: f64, factor_low: f64) -> Val {
        let (log, low) = self.log_pair(x);
        let (factor, factor_low) = (self.c(factor), self.c(factor_low));
        let y = self.mul(log, factor);
        let error = self.fnma(log, factor, y);
        let part = self.mul(low, factor);
        let part = self.fma(log, factor_low, part);
        let part = self.sub(part, error);
        let y = self.add(y, part);
        self.log_specials(x, y)
    }

    pub(crate) fn log1p(&mut self, x: Val) -> Val {
        let (zero, one) = (self.c(0.0), self.c(1.0));
        let u = self.add(x, one);
        let d = self.sub(u, one);
        let lost = self.sub(x, d);
        let (log, low) = self.log_pair(u);
        let part = self.div(lost, u);
        let part = self.add(part, low);
        let y = self.add(log, part);
        let y = self.log_specials(u, y);
        let none = self.cmp(Compare::Eq, F, x, zero);
        self.select(none, x, y)
    }

    /// One less the error function: `e^(-x²)` times a factor that changes slowly.
    fn erfc(&mut self, x: Val) -> Val {
        let a = self.abs(x);
        let largest = self.c(28.0);
        let a = self.float(Binary::Min, largest, a);
        let (four, one, two, zero) = (self.c(4.0), self.c(1.0), self.c(2.0), self.c(0.0));
        let (below, above) = (self.sub(a, four), self.add(a, four));
        let t = self.div(below, above);
        let p = self.polynomial(t, &ERFC);
        let bottom = self.fma(a, two, one);
        let p = self.div(p, bottom);
        let square = self.mul(a, a);
        let rest = self.fnma(a, a, square);
        let power = self.sub(zero, square);
        let e = self.exp_of_sum(power, Some(rest));
        let y = self.mul(e, p);
        let other = self.sub(two, y);
        let negative = self.cmp(Compare::Lt, F, x, zero);
        self.select(negative, other, y)
    }
}
