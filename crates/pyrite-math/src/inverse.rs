//! Inverse trigonometric and hyperbolic functions of double precision.

use pyrite_loops::{Binary, Compare, Type, Val};

use crate::double::Double;

const F: Type = Type::F64;
const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;
const PI_LOW: f64 = 1.224_646_799_147_353_2e-16;
/// From here on `x² + 1` is `x²`.
const LARGE: f64 = 268_435_456.0;
/// From here on half of `e^x` is computed by the square of a root.
const NEARLY_INFINITE: f64 = 709.0;

/// `(asin s / s - 1) / s²` over `s²`, for `s` within a half.
const ASIN: [f64; 14] = [
    0.166_666_666_666_666_66,
    0.075_000_000_000_001_19,
    0.044_642_857_142_550_19,
    0.030_381_944_475_693_704,
    0.022_372_157_435_623_815,
    0.017_352_816_768_546_473,
    0.013_963_775_787_848_137,
    0.011_566_511_821_890_942,
    0.009_621_402_747_344_831,
    0.009_322_101_501_082_774,
    0.003_035_007_172_726_763_6,
    0.019_579_201_619_744_684,
    -0.019_277_545_928_584_553,
    0.029_635_026_263_548_546,
];
/// `(atan t / t - 1) / t²` over `t²`, for `t` within one.
const ATAN: [f64; 22] = [
    -0.333_333_333_333_333_3,
    0.199_999_999_999_999_2,
    -0.142_857_142_857_012_34,
    0.111_111_111_102_682_97,
    -0.090_909_090_619_352_8,
    0.076_923_070_788_270_29,
    -0.066_666_579_345_737_68,
    0.058_822_644_167_764_49,
    -0.052_624_922_290_256_754,
    0.047_580_800_836_378_21,
    -0.043_306_538_430_670_664,
    0.039_386_875_407_986_32,
    -0.035_271_331_066_871_296,
    0.030_330_719_265_790_507,
    -0.024_191_345_810_140_718,
    0.017_183_981_722_113_35,
    -0.010_412_153_260_359_241,
    0.005_140_912_856_746_939,
    -0.001_961_255_427_168_532_6,
    0.000_537_683_929_739_624_4,
    -9.371_186_345_052_626e-05,
    7.767_624_330_289_919e-06,
];

impl Double<'_, '_> {
    /// Whether the magnitude is at most a half, and the arc sine: of the magnitude if so, else of the root of half of
    /// what it lacks to one.
    fn asin_parts(&mut self, a: Val) -> (Val, Val) {
        let (half, one) = (self.c(0.5), self.c(1.0));
        let near = self.cmp(Compare::Le, F, a, half);
        let square = self.mul(a, a);
        let rest = self.sub(one, a);
        let rest = self.mul(rest, half);
        let root = self.sqrt(rest);
        let (z, s) = (self.select(near, square, rest), self.select(near, a, root));
        let p = self.polynomial(z, &ASIN);
        let cube = self.mul(s, z);
        (near, self.fma(p, cube, s))
    }

    pub(crate) fn asin(&mut self, x: Val) -> Val {
        let a = self.abs(x);
        let (near, y) = self.asin_parts(a);
        let (high, low) = (self.c(std::f64::consts::FRAC_PI_2), self.c(HALF_PI_LOW));
        let twice = self.add(y, y);
        let twice = self.sub(twice, low);
        let far = self.sub(high, twice);
        let y = self.select(near, y, far);
        self.signed_as(y, x)
    }

    pub(crate) fn acos(&mut self, x: Val) -> Val {
        let a = self.abs(x);
        let (near, y) = self.asin_parts(a);
        let (high, low, zero) = (self.c(std::f64::consts::FRAC_PI_2), self.c(HALF_PI_LOW), self.c(0.0));
        let (pi, pi_low) = (self.c(std::f64::consts::PI), self.c(PI_LOW));
        let signed = self.signed_as(y, x);
        let rest = self.sub(signed, low);
        let middle = self.sub(high, rest);
        let twice = self.add(y, y);
        let rest = self.sub(twice, pi_low);
        let other = self.sub(pi, rest);
        let negative = self.cmp(Compare::Lt, F, x, zero);
        let far = self.select(negative, other, twice);
        self.select(near, middle, far)
    }

    /// The arc tangent of a number from 0 to 1.
    fn atan_of_ratio(&mut self, t: Val) -> Val {
        let square = self.mul(t, t);
        let p = self.polynomial(square, &ATAN);
        let cube = self.mul(square, t);
        self.fma(p, cube, t)
    }

    pub(crate) fn atan(&mut self, x: Val) -> Val {
        let (a, one) = (self.abs(x), self.c(1.0));
        let far = self.cmp(Compare::Gt, F, a, one);
        let inverse = self.div(one, a);
        let t = self.select(far, inverse, a);
        let y = self.atan_of_ratio(t);
        let y = self.or_rest_of_right_angle(far, y);
        self.signed_as(y, x)
    }

    /// Where the mask is true what an angle lacks to a right one.
    fn or_rest_of_right_angle(&mut self, mask: Val, y: Val) -> Val {
        let (high, low) = (self.c(std::f64::consts::FRAC_PI_2), self.c(HALF_PI_LOW));
        let rest = self.sub(y, low);
        let rest = self.sub(high, rest);
        self.select(mask, rest, y)
    }

    pub(crate) fn atan2(&mut self, y: Val, x: Val) -> Val {
        let (a, b) = (self.abs(x), self.abs(y));
        let (zero, one) = (self.c(0.0), self.c(1.0));
        let steep = self.cmp(Compare::Gt, F, b, a);
        let (top, bottom) = (self.select(steep, a, b), self.select(steep, b, a));
        let t = self.div(top, bottom);
        // Infinities are equal to each other; so are zeros, whose angle is zero.
        let level = self.cmp(Compare::Eq, F, a, b);
        let nothing = self.cmp(Compare::Eq, F, bottom, zero);
        let t = self.select(level, one, t);
        let t = self.select(nothing, zero, t);
        let angle = self.atan_of_ratio(t);
        let angle = self.or_rest_of_right_angle(steep, angle);
        let (pi, pi_low) = (self.c(std::f64::consts::PI), self.c(PI_LOW));
        let rest = self.sub(angle, pi_low);
        let rest = self.sub(pi, rest);
        // A zero may be negative, so it is the bits that tell.
        let none = self.i(0);
        let behind = self.cmp(Compare::Lt, Type::I64, x, none);
        let angle = self.select(behind, rest, angle);
        let angle = self.signed_as(angle, y);
        let sum = self.add(x, y);
        let (no_x, no_y) = (self.cmp(Compare::Ne, F, x, x), self.cmp(Compare::Ne, F, y, y));
        let undefined = self.logic(Binary::Or, no_x, no_y);
        self.select(undefined, sum, angle)
    }

    /// Half of `e^a` for a large `a`.
    fn half_exp(&mut self, a: Val) -> Val {
        let half = self.c(0.5);
        let halved = self.mul(a, half);
        let root = self.exp(halved);
        let part = self.mul(root, half);
        self.mul(part, root)
    }

    pub(crate) fn sinh(&mut self, x: Val) -> Val {
        let (a, one, half) = (self.abs(x), self.c(1.0), self.c(0.5));
        let e = self.expm1(a);
        let above = self.add(e, one);
        let part = self.div(e, above);
        let sum = self.add(e, part);
        let y = self.mul(sum, half);
        let limit = self.c(NEARLY_INFINITE);
        let far = self.half_exp(a);
        let large = self.cmp(Compare::Gt, F, a, limit);
        let y = self.select(large, far, y);
        self.signed_as(y, x)
    }

    pub(crate) fn cosh(&mut self, x: Val) -> Val {
        let (a, half) = (self.abs(x), self.c(0.5));
        let e = self.exp(a);
        let part = self.div(half, e);
        let y = self.fma(e, half, part);
        let limit = self.c(NEARLY_INFINITE);
        let far = self.half_exp(a);
        let large = self.cmp(Compare::Gt, F, a, limit);
        self.select(large, far, y)
    }

    /// The logarithm of twice a large number.
    fn log_of_double(&mut self, a: Val) -> Val {
        let (log, ln2) = (self.log(a), self.c(std::f64::consts::LN_2));
        self.add(log, ln2)
    }

    pub(crate) fn asinh(&mut self, x: Val) -> Val {
        let (a, one, limit) = (self.abs(x), self.c(1.0), self.c(LARGE));
        let large = self.cmp(Compare::Gt, F, a, limit);
        let far = self.log_of_double(a);
        let square = self.mul(a, a);
        let root = self.add(square, one);
        let root = self.sqrt(root);
        let bottom = self.add(root, one);
        let part = self.div(square, bottom);
        let sum = self.add(a, part);
        let y = self.log1p(sum);
        let y = self.select(large, far, y);
        self.signed_as(y, x)
    }

    pub(crate) fn acosh(&mut self, x: Val) -> Val {
        let (one, limit, nan) = (self.c(1.0), self.c(LARGE), self.c(f64::NAN));
        let large = self.cmp(Compare::Gt, F, x, limit);
        let far = self.log_of_double(x);
        let t = self.sub(x, one);
        let twice = self.add(t, t);
        let square = self.fma(t, t, twice);
        let root = self.sqrt(square);
        let sum = self.add(t, root);
        let y = self.log1p(sum);
        let y = self.select(large, far, y);
        let below = self.cmp(Compare::Lt, F, x, one);
        self.select(below, nan, y)
    }

    pub(crate) fn atanh(&mut self, x: Val) -> Val {
        let (a, one, half) = (self.abs(x), self.c(1.0), self.c(0.5));
        let twice = self.add(a, a);
        let rest = self.sub(one, a);
        let ratio = self.div(twice, rest);
        let y = self.log1p(ratio);
        let y = self.mul(y, half);
        self.signed_as(y, x)
    }
}
