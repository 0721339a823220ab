//! Scans along dimensions: a phase that takes its positions in order and adds each to what it has so far.
//!
//! As in PyTorch, single precision is carried in double precision.

use pyrite_ir::OpError;
use pyrite_ir::lower::Lowering;
use pyrite_loops::{Binary, Inst, Reduction, Type};
use pyrite_tensor::DType;

use super::copy::dimension;

/// Running sums, in the result's type.
pub fn cumsum(l: &mut Lowering<'_>) -> Result<(), OpError> {
    running(l, Reduction::Sum, Binary::Add)
}

/// Running products, in the result's type.
pub fn cumprod(l: &mut Lowering<'_>) -> Result<(), OpError> {
    running(l, Reduction::Prod, Binary::Mul)
}

fn running(l: &mut Lowering<'_>, reduction: Reduction, join: Binary) -> Result<(), OpError> {
    let (source, result) = (l.args.tensor(0)?.clone(), l.result()?);
    let (ty, rank, dtype) = (result.ty()?, source.meta.rank(), result.meta.dtype);
    if ty == Type::Bool {
        return Err(OpError::unsupported("running any and all in loops"));
    }
    source.ty()?;
    let dim = dimension(l.args.int(1)?, rank)?;
    if rank == 0 || source.meta.shape[dim].as_int() == Some(1) {
        return l.map(|p| {
            let x = p.own(0)?;
            let x = p.code().wrap(dtype, x);
            if join != Binary::Add || !ty.is_float() {
                return Ok(x);
            }
            // The sum begins with a zero, which takes the sign of another away.
            let zero = p.code().number(0.0, ty);
            Ok(p.code().binary(Binary::Add, zero, x))
        });
    }
    let carried = if dtype == DType::F32 { Type::F64 } else { ty };
    let mut nest = l.nest();
    let axes = nest.split(&source.meta.shape, &[dim]);
    let value = nest.load_held(&source, &axes)?;
    let value = nest.code.wrap(dtype, value);
    let value = nest.code.cast(carried, value);
    let so_far = nest.also_reduced(reduction, value, None);
    let before = nest.code.push(Inst::Before(so_far), carried);
    let now = nest.code.binary(join, before, value);
    nest.store(result, &axes, now)?;
    nest.next_phase(&[axes[dim]]);
    l.finish(nest);
    Ok(())
}
