//! Writes to memory that an operand shares, which PyTorch refuses.
//!
//! An operator that goes through its operands element by element may write to one of them where it reads it, and nowhere
//! else; one that writes by an index may write to none of them. Only dense tensors are looked at, as PyTorch does.

use crate::op::{Operator, Tag};
use crate::{Meta, OpError};

/// How the memory of two tensors of one storage meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlap {
    /// Element for element.
    Whole,
    /// Otherwise.
    Part,
}

impl Overlap {
    /// The overlap from which on an operator, by its functional form, refuses what it writes to.
    pub fn refused_by(functional: &Operator) -> Option<Self> {
        const BY_INDEX: [&str; 6] = [
            "aten.scatter.",
            "aten.scatter_add.",
            "aten.scatter_reduce.",
            "aten.index_add.",
            "aten.index_copy.",
            "aten.index_reduce.",
        ];
        let name = functional.name();
        if functional.has(Tag::Pointwise) || name == "aten.copy.default" {
            return Some(Self::Part);
        }
        BY_INDEX.iter().any(|prefix| name.starts_with(prefix)).then_some(Self::Whole)
    }

    /// How two tensors of one storage meet; `None` where they do not, where one is not dense, or where that is not known.
    pub fn between(a: &Meta, b: &Meta) -> Option<Self> {
        let place = |meta: &Meta| {
            let size = meta.dtype.size() as i64;
            let (begin, elements) = (meta.offset.hint()? * size, meta.numel().hint()?);
            (meta.is_dense() && elements > 0).then_some((begin, begin + elements * size))
        };
        let (one, other) = (place(a)?, place(b)?);
        let same_strides = a.stride.len() == b.stride.len() && a.stride.iter().zip(&b.stride).all(|(a, b)| a.is_eq(b));
        if one != other {
            return (one.0 < other.1 && other.0 < one.1).then_some(Self::Part);
        }
        Some(if same_strides { Self::Whole } else { Self::Part })
    }

    /// The error of an operator that writes to a tensor which shares memory with an operand.
    pub fn refusal(name: &str, written: &Meta, operand: &Meta) -> OpError {
        OpError::Invalid(format!(
            "{name} writes to a tensor ({written}) that shares some of its memory with an operand ({operand}); clone one"
        ))
    }
}
