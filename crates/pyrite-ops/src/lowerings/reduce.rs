//! Reductions over dimensions.

use pyrite_ir::lower::{Lowering, kept};
use pyrite_ir::{OpError, Value};
use pyrite_loops::{Binary, Reduction, Type};
use pyrite_sym::SymInt;

use super::copy::dimension;

type Lowered = Result<(), OpError>;

/// The dimensions that an argument names; all of them where it names none.
fn dims(l: &Lowering<'_>, index: usize) -> Result<Vec<usize>, OpError> {
    let rank = l.args.tensor(0)?.meta.rank();
    let named = match l.args.value(index) {
        Value::None => Vec::new(),
        Value::List(_) => l.args.ints(index)?,
        _ => vec![l.args.int(index)?],
    };
    if named.is_empty() {
        return Ok((0..rank).collect());
    }
    // A number has a dimension that can be named but not reduced.
    named.into_iter().map(|d| dimension(d, rank)).filter(|d| rank > 0 || d.is_err()).collect()
}

/// The sum, in the result's type.
pub fn sum_dim(l: &mut Lowering<'_>) -> Lowered {
    summed(l, 1)
}

fn summed(l: &mut Lowering<'_>, index: usize) -> Lowered {
    let dims = dims(l, index)?;
    over(l, &dims, Reduction::Sum)
}

/// The product over all dimensions.
pub fn prod(l: &mut Lowering<'_>) -> Lowered {
    let dims: Vec<usize> = (0..l.args.tensor(0)?.meta.rank()).collect();
    over(l, &dims, Reduction::Prod)
}

/// The product over one dimension.
pub fn prod_dim(l: &mut Lowering<'_>) -> Lowered {
    let dims = dims(l, 1)?;
    over(l, &dims, Reduction::Prod)
}

fn over(l: &mut Lowering<'_>, dims: &[usize], op: Reduction) -> Lowered {
    l.reduce(
        dims,
        op,
        |p| {
            let ty = match p.ty()? {
                Type::Bool => Type::I32,
                ty => ty,
            };
            p.arg(0, ty)
        },
        |_, value| Ok(value),
    )
}

/// The mean over all dimensions.
pub fn mean(l: &mut Lowering<'_>) -> Lowered {
    let dims: Vec<usize> = (0..l.args.tensor(0)?.meta.rank()).collect();
    averaged(l, &dims)
}

/// The mean over dimensions.
pub fn mean_dim(l: &mut Lowering<'_>) -> Lowered {
    let dims = dims(l, 1)?;
    averaged(l, &dims)
}

fn averaged(l: &mut Lowering<'_>, dims: &[usize]) -> Lowered {
    let shape = l.args.tensor(0)?.meta.shape.clone();
    let count = dims.iter().fold(SymInt::Int(1), |n, d| n * shape[*d].clone());
    let ty = l.result()?.ty()?;
    l.reduce(
        dims,
        Reduction::Sum,
        |p| p.arg(0, ty),
        |nest, sum| {
            let count = if let Some(number) = count.as_int() {
                nest.code.number(number as f64, ty)
            } else {
                let count = nest.size(&count);
                nest.code.cast(ty, count)
            };
            Ok(nest.code.binary(Binary::Div, sum, count))
        },
    )
}

/// The largest over dimensions.
pub fn amax(l: &mut Lowering<'_>) -> Lowered {
    extreme(l, Reduction::Max)
}

/// The smallest over dimensions.
pub fn amin(l: &mut Lowering<'_>) -> Lowered {
    extreme(l, Reduction::Min)
}

fn extreme(l: &mut Lowering<'_>, op: Reduction) -> Lowered {
    let dims = dims(l, 1)?;
    over(l, &dims, op)
}

/// Whether one is true, over all dimensions.
pub fn any(l: &mut Lowering<'_>) -> Lowered {
    let dims: Vec<usize> = (0..l.args.tensor(0)?.meta.rank()).collect();
    l.reduce(&dims, Reduction::Any, |p| p.arg(0, Type::Bool), |_, value| Ok(value))
}

/// Whether one is true, over dimensions; a list that names none reduces nothing.
pub fn any_dim(l: &mut Lowering<'_>) -> Lowered {
    let dims = match l.args.value(1) {
        Value::List(named) if named.is_empty() => Vec::new(),
        _ => dims(l, 1)?,
    };
    l.reduce(&dims, Reduction::Any, |p| p.arg(0, Type::Bool), |_, value| Ok(value))
}

/// Where the largest is.
pub fn argmax(l: &mut Lowering<'_>) -> Lowered {
    place(l, Reduction::ArgMax)
}

/// Where the smallest is.
pub fn argmin(l: &mut Lowering<'_>) -> Lowered {
    place(l, Reduction::ArgMin)
}

fn place(l: &mut Lowering<'_>, op: Reduction) -> Lowered {
    let dims = dims(l, 1)?;
    picked(l, &dims, None, op)
}

/// The largest over a dimension, and where it is.
pub fn max_dim(l: &mut Lowering<'_>) -> Lowered {
    let dims = dims(l, 1)?;
    picked(l, &dims, Some(Reduction::Max), Reduction::ArgMax)
}

/// The smallest over a dimension, and where it is.
pub fn min_dim(l: &mut Lowering<'_>) -> Lowered {
    let dims = dims(l, 1)?;
    picked(l, &dims, Some(Reduction::Min), Reduction::ArgMin)
}

/// The place of an extreme value, the last result, and the value before it if it is asked for.
fn picked(l: &mut Lowering<'_>, dims: &[usize], value: Option<Reduction>, place: Reduction) -> Lowered {
    let source = l.args.tensor(0)?;
    let results = l.results;
    let mut nest = l.nest();
    let axes = nest.split(&source.meta.shape, dims);
    let loaded = nest.load_held(source, &axes)?;
    let comparable = if source.ty()? == Type::Bool { nest.code.cast(Type::I32, loaded) } else { loaded };
    // The place counts through the reduced dimensions in their order.
    let mut index = nest.code.integer(0, Type::I64);
    for dim in dims {
        let extent = nest.size(&source.meta.shape[*dim]);
        index = nest.code.binary(Binary::Mul, index, extent);
        let along = nest.index(axes[*dim]);
        index = nest.code.binary(Binary::Add, index, along);
    }
    let value = value.map(|op| nest.also_reduced(op, comparable, None));
    let place = nest.also_reduced(place, comparable, Some(index));
    let reduced: Vec<_> = dims.iter().map(|d| axes[*d]).collect();
    nest.next_phase(&reduced);
    for (result, place_of) in value.into_iter().chain([place]).zip(results) {
        let stored = nest.result(result);
        nest.store_at(place_of, &kept(&axes, dims, place_of.meta.rank()), stored)?;
    }
    l.finish(nest);
    Ok(())
}
