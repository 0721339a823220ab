//! Floats of 8 bits: the four formats that PyTorch has a type for.
//!
//! A format is given by the bits of its mantissa, the bias of its exponent and what lies beyond its largest number. Numbers
//! are rounded to the nearest, ties to even; the bits of a magnitude count the numbers of the format from zero, so that a
//! mantissa that rounds up carries into the exponent.

use bytemuck::{Pod, Zeroable};

/// What a format has beside numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// Infinities and NaNs, as IEEE floats have them.
    Infinity,
    /// One NaN of each sign; what is too large becomes the largest number.
    Nan,
    /// One NaN in place of the negative zero; what is too large becomes it.
    NanAtNegativeZero,
}

/// A format.
struct Format {
    mantissa: u32,
    bias: i32,
    beyond: Beyond,
}

impl Format {
    /// The bits of the first magnitude that is no number.
    const fn limit(&self) -> u32 {
        match self.beyond {
            Beyond::Infinity => 0x80 - (1 << self.mantissa),
            Beyond::Nan => 0x7f,
            Beyond::NanAtNegativeZero => 0x80,
        }
    }

    fn encode(&self, value: f32) -> u8 {
        let sign = u8::from(value.is_sign_negative()) << 7;
        let (nan, too_large) = match self.beyond {
            Beyond::Infinity => (sign | 0x7f, sign | 0x7c),
            Beyond::Nan => (sign | 0x7f, sign | 0x7e),
            Beyond::NanAtNegativeZero => (0x80, 0x80),
        };
        if value.is_nan() {
            return nan;
        }
        if value.is_infinite() {
            return too_large;
        }
        let magnitude = f64::from(value.abs());
        // The exponent of a double; smaller numbers than the least normal one share its spacing.
        let least = 1 - self.bias;
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(least);
        let steps = (magnitude * power(self.mantissa as i32 - exponent)).round_ties_even() as u32;
        let bits = (((exponent - least) as u32) << self.mantissa).saturating_add(steps);
        match (bits, self.beyond) {
            (bits, _) if bits >= self.limit() => too_large,
            (0, Beyond::NanAtNegativeZero) => 0,
            (bits, _) => sign | bits as u8,
        }
    }

    fn decode(&self, bits: u8) -> f32 {
        let magnitude = u32::from(bits & 0x7f);
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        if self.beyond == Beyond::NanAtNegativeZero && bits == 0x80 {
            return f32::NAN;
        }
        if magnitude >= self.limit() {
            let infinite = self.beyond == Beyond::Infinity && magnitude == self.limit();
            return if infinite { f32::INFINITY.copysign(sign) } else { f32::NAN };
        }
        let (field, fraction) = (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
        let steps = if field == 0 { fraction } else { fraction + (1 << self.mantissa) };
        let exponent = field.max(1) as i32 - self.bias;
        ((f64::from(steps) * power(exponent - self.mantissa as i32)) as f32).copysign(sign)
    }
}

/// A power of two.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

macro_rules! float8 {
    ($(#[$doc:meta])* $name:ident, $format:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            const FORMAT: Format = $format;

            /// The nearest number of the format.
            pub fn from_f32(value: f32) -> Self {
                Self(Self::FORMAT.encode(value))
            }

            /// It in single precision, exactly.
            pub fn to_f32(self) -> f32 {
                Self::FORMAT.decode(self.0)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }
    };
}

float8!(
    /// `torch.float8_e4m3fn`.
    F8E4M3, Format { mantissa: 3, bias: 7, beyond: Beyond::Nan }
);
float8!(
    /// `torch.float8_e5m2`.
    F8E5M2, Format { mantissa: 2, bias: 15, beyond: Beyond::Infinity }
);
float8!(
    /// `torch.float8_e4m3fnuz`.
    F8E4M3Fnuz, Format { mantissa: 3, bias: 8, beyond: Beyond::NanAtNegativeZero }
);
float8!(
    /// `torch.float8_e5m2fnuz`.
    F8E5M2Fnuz, Format { mantissa: 2, bias: 16, beyond: Beyond::NanAtNegativeZero }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_its_own_nearest() {
        for bits in 0..=u8::MAX {
            let same = |value: f32, again: u8| value.is_nan() || again == bits;
            assert!(same(F8E4M3(bits).to_f32(), F8E4M3::from_f32(F8E4M3(bits).to_f32()).0), "{bits:#x}");
            assert!(same(F8E5M2(bits).to_f32(), F8E5M2::from_f32(F8E5M2(bits).to_f32()).0), "{bits:#x}");
            assert!(same(F8E4M3Fnuz(bits).to_f32(), F8E4M3Fnuz::from_f32(F8E4M3Fnuz(bits).to_f32()).0), "{bits:#x}");
            assert!(same(F8E5M2Fnuz(bits).to_f32(), F8E5M2Fnuz::from_f32(F8E5M2Fnuz(bits).to_f32()).0), "{bits:#x}");
        }
    }

    #[test]
    fn the_largest_numbers_are_those_of_the_formats() {
        assert_eq!(F8E4M3(0x7e).to_f32(), 448.0);
        assert_eq!(F8E5M2(0x7b).to_f32(), 57344.0);
        assert_eq!(F8E4M3Fnuz(0x7f).to_f32(), 240.0);
        assert_eq!(F8E5M2Fnuz(0x7f).to_f32(), 57344.0);
    }

    #[test]
    fn what_is_too_large_becomes_the_largest_number_nan_or_infinite() {
        assert_eq!(F8E4M3::from_f32(464.0).0, 0x7e);
        assert_eq!(F8E4M3::from_f32(465.0).0, 0x7e);
        assert_eq!(F8E4M3::from_f32(f32::NEG_INFINITY).0, 0xfe);
        assert_eq!(F8E4M3::from_f32(f32::NAN).0, 0x7f);
        assert_eq!(F8E5M2::from_f32(61440.0).0, 0x7c);
        assert_eq!(F8E4M3Fnuz::from_f32(-1e9).0, 0x80);
        assert_eq!(F8E5M2Fnuz::from_f32(f32::MAX).0, 0x80);
    }

    #[test]
    fn ties_go_to_even_and_formats_without_a_negative_zero_have_none() {
        // Between 1 and 1.125.
        assert_eq!(F8E4M3::from_f32(1.0625).to_f32(), 1.0);
        assert_eq!(F8E4M3::from_f32(1.1875).to_f32(), 1.25);
        assert_eq!(F8E4M3::from_f32(-0.0).0, 0x80);
        assert_eq!(F8E4M3Fnuz::from_f32(-0.0).0, 0);
        assert_eq!(F8E4M3Fnuz::from_f32(-1e-9).0, 0);
        assert_eq!(F8E5M2::from_f32(1e-9).0, 0);
    }
}
