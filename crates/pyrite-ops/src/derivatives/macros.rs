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

/// Rules of functions of one tensor whose gradient is an operator of the registry: its name and its arguments, from the
/// gradient `g` and the pullback.
macro_rules! backward_rules {
    ($($(#[$doc:meta])* $name:ident |$g:ident, $p:ident| $op:literal [$($arg:expr),*];)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n")]
        $(#[$doc])*
        pub fn $name(
            e: &mut dyn ::pyrite_ir::Emit,
            $p: &::pyrite_ir::Pullback<'_>,
        ) -> Result<::pyrite_ir::Gradients, ::pyrite_ir::OpError> {
            let $g = $p.grad()?;
            Ok(vec![(0, e.call($op, ::pyrite_ir::args![$($arg),*])?)])
        }
    )*};
}

/// Rules of operators `g·f'(x)`, where `x` is the parameter of the number given: the second derivative of `f`, from
/// `x` (conjugated) and the pullback.
macro_rules! curved_rules {
    ($($(#[$doc:meta])* $name:ident $index:literal |$x:ident, $p:pat_param| $curvature:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n")]
        $(#[$doc])*
        pub fn $name(
            e: &mut dyn ::pyrite_ir::Emit,
            p: &::pyrite_ir::Pullback<'_>,
        ) -> Result<::pyrite_ir::Gradients, ::pyrite_ir::OpError> {
            let s = $crate::derivatives::formula::Sheet::new(e);
            let (h, g, $x) = (s.grad(p), s.argument(p, 0), s.argument(p, $index));
            let $p = p;
            let same = || {
                let mut rest = p.args.values[1..].to_vec();
                rest[$index - 1] = $crate::derivatives::formula::Operand::value($x);
                h.of(&p.args.schema.name, &rest)
            };
            let mut found = s.gradients(p, &[(0, &same)])?;
            if p.wants($index) {
                let curvature = $curvature;
                found.extend(s.gradients(p, &[($index, &|| h * g * curvature)])?);
            }
            Ok(found)
        }
    )*};
}

pub(super) use {backward_rules, binary_rules, curved_rules, unary_rules};
