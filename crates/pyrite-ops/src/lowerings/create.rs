//! Tensors from nothing.

use pyrite_ir::OpError;
use pyrite_ir::lower::Lowering;
use pyrite_loops::{Binary, Type};

type Lowered = Result<(), OpError>;

/// One number everywhere: the argument of a position.
fn filled(l: &mut Lowering<'_>, index: usize) -> Lowered {
    let number = l.args.scalar(index)?;
    l.map(|p| {
        let ty = p.ty()?;
        p.literal(number, ty)
    })
}

/// The second argument everywhere.
pub fn full(l: &mut Lowering<'_>) -> Lowered {
    filled(l, 1)
}

/// The first argument, once.
pub fn scalar_tensor(l: &mut Lowering<'_>) -> Lowered {
    filled(l, 0)
}

/// Numbers at equal distances. Floats are computed in double precision.
pub fn arange(l: &mut Lowering<'_>) -> Lowered {
    let (start, step) = (l.args.scalar(0)?, l.args.scalar(2)?);
    l.map(|p| {
        let ty = if p.ty()?.is_float() { Type::F64 } else { Type::I64 };
        let axis = p.axes[0];
        let index = p.nest.index(axis);
        let index = p.code().cast(ty, index);
        let (start, step) = (p.literal(start, ty)?, p.literal(step, ty)?);
        let way = p.code().binary(Binary::Mul, index, step);
        Ok(p.code().binary(Binary::Add, start, way))
    })
}
