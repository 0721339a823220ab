//! Sines, cosines and tangents of angles so large that a few parts of pi do not reduce them.
//!
//! An angle is an integer `m` below 2⁵³ times a power of two, 2ᵉ. Of 2/π only the bits matter whose product with the
//! angle is neither a multiple of four nor too small to be seen: 192 of them, from the bit `e - 2` on. The upper 128 bits
//! of their product with `m`, modulo 2¹⁹², are the quadrant (two bits) and the angle in it, as a fraction of a right one.

use pyrite_loops::{Binary, Block, Compare, Inst, Shift, Table, Type, Unary, Val};

use crate::builder::Builder;
use crate::double::Double;

const F: Type = Type::F64;
const I: Type = Type::I64;
const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;

/// The function of an angle of double precision whose magnitude is at least one.
pub(crate) fn of_any_size(code: &mut Block, op: Unary, x: Val) -> Val {
    let mut builder = Builder::new(code, F);
    let mut b = Double(&mut builder);
    let magnitude = b.abs(x);
    let exponent = b.shift(Shift::Right, magnitude, 52);
    let (fraction, one) = (b.i((1 << 52) - 1), b.i(1 << 52));
    let m = b.int(Binary::And, magnitude, fraction);
    let m = b.int(Binary::Or, m, one);
    // The table begins with 64 zeros, and the angle is `m` times two to the exponent less 1075.
    let bias = b.i(1075 + 2 - 64);
    let first = b.int(Binary::Sub, exponent, bias);
    let words = b.windows(first);
    let (high, _) = b.product(m, words[2]);
    let (next_high, next) = b.product(m, words[1]);
    let low = b.int(Binary::Add, high, next);
    let carry = b.carry(high, low);
    let top = b.int(Binary::Mul, m, words[0]);
    let top = b.int(Binary::Add, top, next_high);
    let top = b.int(Binary::Add, top, carry);

    let quadrant = b.shift(Shift::Right, top, 62);
    let part = b.shift(Shift::Left, top, 2);
    let lower = b.shift(Shift::Right, low, 62);
    let part = b.int(Binary::Or, part, lower);
    let rest = b.shift(Shift::Left, low, 2);
    // As a number with a sign, the part is that of the nearest right angle.
    let up = b.shift(Shift::Right, part, 63);
    let quadrant = b.int(Binary::Add, quadrant, up);
    let near = b.cast(F, part);
    let back = b.cast(I, near);
    let lost = b.int(Binary::Sub, part, back);
    let lost = b.cast(F, lost);
    let rest = b.shift(Shift::Right, rest, 1);
    let rest = b.cast(F, rest);
    let (unit, small) = (b.c((-64f64).exp2()), b.c((-127f64).exp2()));
    let (near, lost) = (b.mul(near, unit), b.mul(lost, unit));
    let lost = b.fma(rest, small, lost);
    let (half_pi, half_pi_low) = (b.c(std::f64::consts::FRAC_PI_2), b.c(HALF_PI_LOW));
    let r = b.mul(near, half_pi);
    let error = b.fnma(near, half_pi, r);
    let low = b.mul(near, half_pi_low);
    let low = b.fma(lost, half_pi, low);
    let low = b.sub(low, error);
    b.in_quadrant(op, x, quadrant, r, low)
}

impl Double<'_, '_> {
    /// 192 bits of 2/π, from one on, as three words.
    fn windows(&mut self, first: Val) -> [Val; 3] {
        let word = self.shift(Shift::Right, first, 6);
        let (mask, last) = (self.i(63), self.i(63));
        let by = self.int(Binary::And, first, mask);
        let back = self.int(Binary::Sub, last, by);
        let table: [Val; 4] = std::array::from_fn(|number| {
            let number = self.i(number as i64);
            let at = self.int(Binary::Add, word, number);
            self.code.append(Inst::Table(Table::TwoOverPi, at), I)
        });
        std::array::from_fn(|number| {
            let upper = self.int(Binary::Shl, table[number], by);
            let lower = self.shift(Shift::Right, table[number + 1], 1);
            let lower = self.int(Binary::Shr, lower, back);
            self.int(Binary::Or, upper, lower)
        })
    }

    /// The upper and the lower half of the product of 64-bit integers without sign.
    fn product(&mut self, a: Val, b: Val) -> (Val, Val) {
        let (a_high, b_high) = (self.shift(Shift::Right, a, 32), self.shift(Shift::Right, b, 32));
        let low = self.int(Binary::MulLow, a, b);
        let (x, y) = (self.int(Binary::MulLow, a_high, b), self.int(Binary::MulLow, a, b_high));
        let top = self.int(Binary::MulLow, a_high, b_high);
        let mask = self.i(0xffff_ffff);
        let carried = self.shift(Shift::Right, low, 32);
        let middle = self.int(Binary::Add, x, carried);
        let middle_low = self.int(Binary::And, middle, mask);
        let middle_low = self.int(Binary::Add, middle_low, y);
        let (x, y) = (self.shift(Shift::Right, middle, 32), self.shift(Shift::Right, middle_low, 32));
        let high = self.int(Binary::Add, top, x);
        let high = self.int(Binary::Add, high, y);
        let low = self.int(Binary::Mul, a, b);
        (high, low)
    }

    /// One if a sum without sign is below one of its terms, else zero.
    fn carry(&mut self, term: Val, sum: Val) -> Val {
        let least = self.i(i64::MIN);
        let (term, sum) = (self.int(Binary::Xor, term, least), self.int(Binary::Xor, sum, least));
        let below = self.cmp(Compare::Lt, I, sum, term);
        let (one, zero) = (self.i(1), self.i(0));
        self.select(below, one, zero)
    }

    /// The function of an angle in two parts, `quadrant` right angles further; `x` tells the sign.
    fn in_quadrant(&mut self, op: Unary, x: Val, quadrant: Val, r: Val, low: Val) -> Val {
        let (s, c) = self.sine_and_cosine(r);
        let s = self.fma(c, low, s);
        let c = self.fnma(s, low, c);
        let (first, none, sign_bit) = (self.i(1), self.i(0), self.c(-0.0));
        let odd = self.int(Binary::And, quadrant, first);
        let odd = self.cmp(Compare::Ne, I, odd, none);
        let sign = self.logic(Binary::And, x, sign_bit);
        let y = match op {
            Unary::Tan => {
                let minus = self.logic(Binary::Xor, c, sign_bit);
                let (top, bottom) = (self.select(odd, minus, s), self.select(odd, s, c));
                let y = self.div(top, bottom);
                self.logic(Binary::Xor, y, sign)
            }
            Unary::Cos => {
                let y = self.select(odd, s, c);
                let shifted = self.int(Binary::Add, quadrant, first);
                let flip = self.shift(Shift::Left, shifted, 62);
                let flip = self.logic(Binary::And, flip, sign_bit);
                self.logic(Binary::Xor, y, flip)
            }
            _ => {
                let y = self.select(odd, c, s);
                let flip = self.shift(Shift::Left, quadrant, 62);
                let flip = self.logic(Binary::And, flip, sign_bit);
                let y = self.logic(Binary::Xor, y, flip);
                self.logic(Binary::Xor, y, sign)
            }
        };
        // What is infinite or no number has no angle.
        let (a, most, nan) = (self.abs(x), self.c(f64::INFINITY), self.c(f64::NAN));
        let finite = self.cmp(Compare::Lt, F, a, most);
        self.select(finite, y, nan)
    }
}
