//! Scans along dimensions.
//!
//! Loops carry nothing from one position to the next, so a running sum is a sum over all positions of which those
//! further on count as zero. That is more additions than a scan needs, and still less than a call costs where the
//! dimension is short; a long one is refused.

use pyrite_ir::OpError;
use pyrite_ir::lower::Lowering;
use pyrite_loops::{AxisId, Compare, Reduction};

use super::copy::dimension;

/// The longest dimension that is summed up anew for each position.
const SHORT: i64 = 256;

/// Running sums, in the result's type.
pub fn cumsum(l: &mut Lowering<'_>) -> Result<(), OpError> {
    let (source, result) = (l.args.tensor(0)?.clone(), l.result()?);
    let ty = result.ty()?;
    let rank = source.meta.rank();
    if rank == 0 {
        return l.map(|p| p.arg(0, ty));
    }
    let dim = dimension(l.args.int(1)?, rank)?;
    if source.meta.shape[dim].as_int().is_none_or(|size| size > SHORT) {
        return Err(OpError::unsupported("long running sums in loops"));
    }
    let mut nest = l.nest();
    let axes = nest.rows(&result.meta.shape);
    let along = nest.kernel.add_axis(source.meta.shape[dim].clone());
    let mut read: Vec<Option<AxisId>> = axes.iter().copied().map(Some).collect();
    read[dim] = Some(along);
    let value = nest.load_at(&source, &read)?;
    let value = nest.code.cast(ty, value);
    let (there, here) = (nest.index(along), nest.index(axes[dim]));
    let counts = nest.code.compare(Compare::Le, there, here);
    let zero = nest.code.number(0.0, ty);
    let value = nest.code.select(counts, value, zero);
    let sum = nest.reduced(&[along], Reduction::Sum, value, None);
    nest.store(result, &axes, sum)?;
    l.finish(nest);
    Ok(())
}
