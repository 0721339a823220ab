//! Decompositions of operators that also have a kernel, a file per family, named by the records in [`crate::ops`].
//!
//! A decomposition computes what the kernel does by simpler operators: by PyTorch's core operators where the operator
//! is not one itself, and by pointwise operators and reductions where a compiler of loops can fuse them. Types, strides
//! and fresh memory of the results are taken care of by
//! [`Operator::decomposed`](pyrite_ir::Operator::decomposed); a rule widens half precision ([`Term::wide`]) and returns
//! whatever it computed. Rules look at metadata only and sizes may be symbolic.
//!
//! Most rules are formulas on a [`Sheet`](crate::derivatives::formula::Sheet), with the words of [`terms`].

pub mod activation;
pub mod activation_backward;
pub mod copy;
pub mod create;
pub mod image;
pub mod index;
pub mod loss;
pub mod matmul;
pub mod norm;
pub mod pointwise;
pub mod random;
pub mod reduce;
pub mod softmax;
mod terms;
pub mod view;

use pyrite_ir::{Args, Handle, OpError, Value};

pub use crate::derivatives::formula::{Operand, Sheet, Term};

/// What a rule returns.
type Rule = Result<Value<Handle>, OpError>;

/// The first arguments, in the type to compute in.
pub(crate) fn wide<'s, const N: usize>(s: &'s Sheet<'_>, a: &Args<'_, Handle>) -> [Term<'s>; N] {
    std::array::from_fn(|index| s.wide(a, index))
}

/// Rules of one formula: the sheet, the arguments as they were given, and the first of them as terms that are wide
/// enough to compute with.
macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident |$s:ident, $a:ident, [$($x:pat_param),*]| $formula:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n")]
        $(#[$doc])*
        pub fn $name(
            e: &mut dyn ::pyrite_ir::Emit,
            $a: &::pyrite_ir::Args<'_, ::pyrite_ir::Handle>,
        ) -> Result<::pyrite_ir::Value<::pyrite_ir::Handle>, ::pyrite_ir::OpError> {
            let $s = $crate::decompositions::Sheet::new(e);
            let [$($x),*] = $crate::decompositions::wide(&$s, $a);
            let term = $formula;
            $s.result_of(term)
        }
    )*};
}

pub(crate) use formulas;
