//! Data types and PyTorch's rules for combining them.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned byte.
    U8,
    /// Signed byte.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    BF16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Complex of two `f32`.
    C64,
    /// Complex of two `f64`.
    C128,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// 8-bit float with 4 bits of exponent, without infinities.
    F8E4M3,
    /// 8-bit float with 5 bits of exponent.
    F8E5M2,
    /// 8-bit float with 4 bits of exponent, without infinities and without a negative zero.
    F8E4M3Fnuz,
    /// 8-bit float with 5 bits of exponent, without infinities and without a negative zero.
    F8E5M2Fnuz,
}

/// The kinds of numbers, in the order in which promotion prefers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Bools.
    Bool,
    /// Integers.
    Int,
    /// Floating-point numbers.
    Float,
    /// Complex numbers.
    Complex,
}

/// Type, short name as FX prints it, name in `torch`, bytes.
const TABLE: [(DType, &str, &str, usize); 19] = [
    (DType::Bool, "b8", "bool", 1),
    (DType::U8, "u8", "uint8", 1),
    (DType::I8, "i8", "int8", 1),
    (DType::I16, "i16", "int16", 2),
    (DType::I32, "i32", "int32", 4),
    (DType::I64, "i64", "int64", 8),
    (DType::F16, "f16", "float16", 2),
    (DType::BF16, "bf16", "bfloat16", 2),
    (DType::F32, "f32", "float32", 4),
    (DType::F64, "f64", "float64", 8),
    (DType::C64, "c64", "complex64", 8),
    (DType::C128, "c128", "complex128", 16),
    (DType::U16, "u16", "uint16", 2),
    (DType::U32, "u32", "uint32", 4),
    (DType::U64, "u64", "uint64", 8),
    (DType::F8E4M3, "f8e4m3fn", "float8_e4m3fn", 1),
    (DType::F8E5M2, "f8e5m2", "float8_e5m2", 1),
    (DType::F8E4M3Fnuz, "f8e4m3fnuz", "float8_e4m3fnuz", 1),
    (DType::F8E5M2Fnuz, "f8e5m2fnuz", "float8_e5m2fnuz", 1),
];

impl DType {
    /// Every data type: those that every operator may take, from the narrowest category to the widest, then those that
    /// few operators take ([`Self::is_barebones`]).
    pub const ALL: [Self; 19] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::F8E4M3Fnuz,
        Self::F8E5M2Fnuz,
    ];

    /// Whether PyTorch has hardly more than storage and conversions of it: the wide unsigned integers and 8-bit floats.
    /// Operators take it where their record says so, and it has no part in promotion.
    pub fn is_barebones(self) -> bool {
        self > Self::C128
    }

    /// Whether it is a float of 8 bits.
    pub fn is_float8(self) -> bool {
        self >= Self::F8E4M3
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        TABLE[self as usize].3
    }

    /// The short name in FX annotations, such as `f32`.
    pub fn abbr(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The name in the `torch` module, such as `float32`.
    pub fn torch_name(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// The type of that short name.
    pub fn from_abbr(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The type of that name in the `torch` module, with its aliases (`float`, `long`, …).
    pub fn from_torch_name(name: &str) -> Option<Self> {
        let name = match name {
            "half" => "float16",
            "float" => "float32",
            "double" => "float64",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            "short" => "int16",
            "int" => "int32",
            "long" => "int64",
            other => other,
        };
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The kind of number.
    pub fn category(self) -> Category {
        match self {
            Self::Bool => Category::Bool,
            Self::U8 | Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U16 | Self::U32 | Self::U64 => {
                Category::Int
            }
            Self::F16 | Self::BF16 | Self::F32 | Self::F64 => Category::Float,
            Self::F8E4M3 | Self::F8E5M2 | Self::F8E4M3Fnuz | Self::F8E5M2Fnuz => Category::Float,
            Self::C64 | Self::C128 => Category::Complex,
        }
    }

    /// Whether it is a real floating-point type.
    pub fn is_float(self) -> bool {
        self.category() == Category::Float
    }

    /// Whether it is complex.
    pub fn is_complex(self) -> bool {
        self.category() == Category::Complex
    }

    /// Whether it is an integer type or bool.
    pub fn is_integral(self) -> bool {
        self.category() <= Category::Int
    }

    /// The least and the greatest integer of an integer type, as far as `i64` holds them; nothing for other types.
    pub fn integers(self) -> Option<(i64, i64)> {
        match self {
            Self::U8 => Some((0, u8::MAX.into())),
            Self::I8 => Some((i8::MIN.into(), i8::MAX.into())),
            Self::I16 => Some((i16::MIN.into(), i16::MAX.into())),
            Self::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            Self::I64 => Some((i64::MIN, i64::MAX)),
            Self::U16 => Some((0, u16::MAX.into())),
            Self::U32 => Some((0, u32::MAX.into())),
            Self::U64 => Some((0, i64::MAX)),
            _ => None,
        }
    }

    /// Whether it is float or complex: what a gradient can have.
    pub fn is_inexact(self) -> bool {
        self.category() >= Category::Float
    }

    /// The type of the real part; itself for a real type.
    #[must_use]
    pub fn to_real(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other => other,
        }
    }

    /// The complex type that holds it.
    #[must_use]
    pub fn to_complex(self) -> Self {
        match self {
            Self::F64 | Self::C128 => Self::C128,
            _ => Self::C64,
        }
    }

    /// The type of its category in double precision, for inexact types; itself otherwise. A float of 8 bits stays: its
    /// rounding is what a program that quantizes computes, not noise of it.
    #[must_use]
    pub fn to_double(self) -> Self {
        match self {
            Self::F16 | Self::BF16 | Self::F32 => Self::F64,
            Self::C64 => Self::C128,
            other => other,
        }
    }

    /// The type that arithmetic on half precision accumulates in; itself for the others.
    #[must_use]
    pub fn to_compute(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::F32,
            narrow if narrow.is_float8() => Self::F32,
            other => other,
        }
    }

    /// The type of a result that must be inexact: the default float for integers and bools.
    #[must_use]
    pub fn to_inexact(self) -> Self {
        if self.is_integral() { Self::F32 } else { self }
    }

    /// The common type of two tensors of equal rank class.
    #[must_use]
    pub fn promote(self, other: Self) -> Self {
        use DType::{BF16, Bool, C64, C128, F16, F32, F64, I16, U8};
        match (self, other) {
            (a, b) if a == b => a,
            (Bool, b) => b,
            (a, Bool) => a,
            (a, b) if a.category() != b.category() => {
                let (wide, narrow) = if a.category() > b.category() { (a, b) } else { (b, a) };
                if wide == C64 && narrow == F64 { C128 } else { wide }
            }
            // PyTorch refuses to combine them; callers do so before.
            (a, b) if a.is_barebones() || b.is_barebones() => a.max(b),
            (C64 | C128, _) => C128,
            (F64, _) | (_, F64) => F64,
            (F16, BF16) | (BF16, F16) | (F32, _) | (_, F32) => F32,
            // An unsigned byte needs a signed type with more bits.
            (U8, b) => {
                if b == Self::I8 {
                    I16
                } else {
                    b
                }
            }
            (a, U8) => {
                if a == Self::I8 {
                    I16
                } else {
                    a
                }
            }
            (a, b) => a.max(b),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.abbr())
    }
}

/// How much an operand counts when types are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A Python number.
    Number,
    /// A tensor without dimensions.
    Scalar,
    /// A tensor with dimensions.
    Tensor,
}

/// The type of a result from its operands: a lower-ranked operand matters only when its category is higher than
/// that of all higher-ranked ones.
pub fn result_type(operands: impl IntoIterator<Item = (DType, Rank)>) -> Option<DType> {
    let mut by_rank: [Option<DType>; 3] = [None; 3];
    for (dtype, rank) in operands {
        // A Python float or complex stands for the default type of its category.
        let dtype = match (rank, dtype) {
            (Rank::Number, DType::F64) => DType::F32,
            (Rank::Number, DType::C128) => DType::C64,
            (_, dtype) => dtype,
        };
        let slot = &mut by_rank[rank as usize];
        *slot = Some(slot.map_or(dtype, |seen| seen.promote(dtype)));
    }
    let [number, scalar, tensor] = by_rank;
    [scalar, number].into_iter().fold(tensor, |high, low| match (high, low) {
        (Some(high), Some(low)) if low.category() > high.category() => Some(high.promote(low)),
        (None, low) => low,
        (high, _) => high,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(TABLE[index].0, dtype);
            assert_eq!(DType::from_abbr(dtype.abbr()), Some(dtype));
            assert_eq!(DType::from_torch_name(dtype.torch_name()), Some(dtype));
        }
    }

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                assert_eq!(a.promote(b).promote(b), a.promote(b));
            }
        }
    }

    #[test]
    fn promotion_follows_pytorch_on_the_odd_pairs() {
        assert_eq!(DType::U8.promote(DType::I8), DType::I16);
        assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
        assert_eq!(DType::F64.promote(DType::C64), DType::C128);
        assert_eq!(DType::I64.promote(DType::F16), DType::F16);
    }

    #[test]
    fn a_number_changes_only_the_category() {
        let pick = |a, b| result_type([(a, Rank::Tensor), (b, Rank::Number)]).unwrap();
        assert_eq!(pick(DType::BF16, DType::F64), DType::BF16);
        assert_eq!(pick(DType::I64, DType::F64), DType::F32);
        assert_eq!(pick(DType::F64, DType::C128), DType::C128);
        assert_eq!(pick(DType::F32, DType::C128), DType::C64);
        assert_eq!(result_type([(DType::F32, Rank::Tensor), (DType::F64, Rank::Scalar)]), Some(DType::F32));
        assert_eq!(result_type([(DType::I32, Rank::Scalar), (DType::I64, Rank::Number)]), Some(DType::I32));
    }
}
