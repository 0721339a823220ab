//! Families of rules, a line each.

/// Rules of functions of one tensor: the gradient `g`, the argument `x` and the result `y` (both conjugated, see
/// [`formula`](super::formula)) to the gradient of the argument.
macro_rules! unary_rules {
    ($($(#[$doc:meta])* $name:ident |$g:ident, $x:pat_param, $y:pat_param| $formula:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n")]
        $(#[$doc])*
        pub fn $name(
            e: &mut dyn ::pyrite_ir::Emit,
            p: &::pyrite_ir::Pullback<'_>,
        ) -> Result<::pyrite_ir::Gradients, ::pyrite_ir::OpError> {
            let s = $crate::derivatives::formula::Sheet::new(e);
            let ($g, $x, $y) = (s.grad(p), s.argument(p, 0), s.result(p, 0));
            s.gradients(p, &[(0, &|| $formula)])
        }
    )*};
}

/// Rules of functions of two operands, tensors or numbers: the gradient `g`, the operands `a` and `b` and the result
/// `y` (conjugated) to the gradients of both operands.
macro_rules! binary_rules {
    ($($(#[$doc:meta])* $name:ident |$g:ident, $a:pat_param, $b:pat_param, $y:pat_param| [$first:expr, $second:expr];)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n")]
        $(#[$doc])*
        pub fn $name(
            e: &mut dyn ::pyrite_ir::Emit,
            p: &::pyrite_ir::Pullback<'_>,
        ) -> Result<::pyrite_ir::Gradients, ::pyrite_ir::OpError> {
            let s = $crate::derivatives::formula::Sheet::new(e);
            let ($g, $a, $b, $y) = (s.grad(p), s.argument(p, 0), s.argument(p, 1), s.result(p, 0));
            s.gradients(p, &[(0, &|| $first), (1, &|| $second)])
        }
    )*};
}

pub(super) use {binary_rules, unary_rules};
