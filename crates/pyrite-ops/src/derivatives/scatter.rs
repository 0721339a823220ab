//! Derivatives of writing at places that tensors name: what was overwritten gets nothing, what was written gets the
//! gradient at its place.

use pyrite_ir::{Emit, Handle, OpError, Pullback, Value, args, unsupported};
use pyrite_sym::SymInt;
use pyrite_tensor::DType;

use super::{Calculus, Rule, first};

/// How an index tensor names places along a dimension.
#[derive(Clone, Copy)]
enum Naming {
    /// An index per slice: `index_add`.
    Slices,
    /// An index per element: `scatter_add`.
    Elements,
}

/// The places along a dimension that an index tensor names.
#[derive(Clone, Copy)]
pub(super) struct Places {
    naming: Naming,
    dim: i64,
    index: Handle,
}

impl Places {
    fn of(p: &Pullback<'_>, naming: Naming) -> Result<Self, OpError> {
        Ok(Self { naming, dim: p.args.int(1)?, index: p.tensor(2)? })
    }

    /// An index per element.
    pub fn of_elements(dim: i64, index: Handle) -> Self {
        Self { naming: Naming::Elements, dim, index }
    }

    /// The elements at the places.
    pub fn read(self, e: &mut dyn Emit, from: Handle) -> Result<Handle, OpError> {
        let op = match self.naming {
            Naming::Slices => "aten.index_select.default",
            Naming::Elements => "aten.gather.default",
        };
        e.one(op, args![from, self.dim, self.index])
    }

    /// A tensor with elements added at the places.
    pub fn add(self, e: &mut dyn Emit, to: Handle, elements: Handle) -> Result<Handle, OpError> {
        let op = match self.naming {
            Naming::Slices => "aten.index_add.default",
            Naming::Elements => "aten.scatter_add.default",
        };
        e.one(op, args![to, self.dim, self.index, elements])
    }

    /// A tensor with zeros at the places.
    fn clear(self, e: &mut dyn Emit, x: Handle) -> Result<Handle, OpError> {
        let op = match self.naming {
            Naming::Slices => "aten.index_fill.int_Scalar",
            Naming::Elements => "aten.scatter.value",
        };
        e.one(op, args![x, self.dim, self.index, 0])
    }

    /// The product of what is at the places and what goes there.
    fn product(self, e: &mut dyn Emit, x: Handle, src: Handle, own: bool) -> Result<Handle, OpError> {
        let op = match self.naming {
            Naming::Slices => "aten.index_reduce.default",
            Naming::Elements => "aten.scatter_reduce.two",
        };
        e.one(op, args![x, self.dim, self.index, src, "prod", own])
    }

    /// Of a source that may be larger than the index, the part that is written.
    fn written(self, e: &mut dyn Emit, mut src: Handle) -> Result<Handle, OpError> {
        if let Naming::Elements = self.naming {
            for (dim, size) in e.shape(self.index).iter().enumerate() {
                if !e.shape(src)[dim].is_eq(size) {
                    src = e.one("aten.slice.Tensor", args![src, dim, 0, size])?;
                }
            }
        }
        Ok(src)
    }

    /// The gradient of a source that may be larger than the index.
    fn padded(self, e: &mut dyn Emit, grad: Handle, src: Handle) -> Result<Handle, OpError> {
        let (from, to) = (e.shape(grad), e.shape(src));
        if matches!(self.naming, Naming::Slices) || from.iter().zip(&to).all(|(from, to)| from.is_eq(to)) {
            return Ok(grad);
        }
        let pad: Vec<SymInt> = from.iter().zip(&to).rev().flat_map(|(from, to)| [SymInt::Int(0), to - from]).collect();
        e.one("aten.constant_pad_nd.default", args![grad, pad])
    }

    /// The gradients of a tensor and of a source that was written to it.
    fn written_gradients(self, e: &mut dyn Emit, p: &Pullback<'_>, own: Handle, at: Handle) -> Rule {
        let mut grads = vec![(0, own.into())];
        if p.wants(3) {
            let src = self.read(e, at)?;
            grads.push((3, self.padded(e, src, p.tensor(3)?)?.into()));
        }
        Ok(grads)
    }
}

/// `scatter.src`.
pub fn scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    replaced(e, p, Naming::Elements)
}

/// `index_copy`.
pub fn index_copy(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    replaced(e, p, Naming::Slices)
}

fn replaced(e: &mut dyn Emit, p: &Pullback<'_>, naming: Naming) -> Rule {
    let (places, grad) = (Places::of(p, naming)?, p.grad()?);
    let own = places.clear(e, grad)?;
    places.written_gradients(e, p, own, grad)
}

/// `scatter_add`.
pub fn scatter_add(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    Places::of(p, Naming::Elements)?.written_gradients(e, p, grad, grad)
}

/// `index_add`.
pub fn index_add(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let mut grads = Places::of(p, Naming::Slices)?.written_gradients(e, p, grad, grad)?;
    if let Some((3, Value::Tensor(source))) = grads.last()
        && !matches!(p.args.value(4), Value::Int(SymInt::Int(1)))
    {
        let alpha = e.conj_value(p.value(4))?;
        let scaled = e.mul(*source, alpha)?;
        grads.pop();
        grads.push((3, scaled.into()));
    }
    Ok(grads)
}

/// `scatter.value`.
pub fn scatter_value(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(Places::of(p, Naming::Elements)?.clear(e, p.grad()?)?)
}

/// `index_fill`.
pub fn index_fill(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (places, grad) = (Places::of(p, Naming::Slices)?, p.grad()?);
    let mut grads = vec![(0, places.clear(e, grad)?.into())];
    if p.wants(3) {
        // A place that is named twice is filled once.
        let kept = e.one("aten.ones_like.default", args![grad, DType::Bool])?;
        let kept = places.clear(e, kept)?;
        let filled = e.select(kept, 0.0, grad)?;
        grads.push((3, e.unary("sum", filled)?.into()));
    }
    Ok(grads)
}

/// `scatter_reduce.two`.
pub fn scatter_reduce(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let places = Places::of(p, Naming::Elements)?;
    reduced(e, p, places, p.args.str(4)?, p.args.bool(5)?)
}

/// `scatter.reduce` and `scatter.value_reduce`, which PyTorch does not differentiate: whoever asks gets its error from it.
pub fn scatter_old_reduce(_: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    unsupported!("a derivative of {}, which PyTorch does not have either", p.args.schema.name)
}

/// `index_reduce`.
pub fn index_reduce(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let places = Places::of(p, Naming::Slices)?;
    reduced(e, p, places, p.args.str(4)?, p.args.bool(5)?)
}

fn reduced(e: &mut dyn Emit, p: &Pullback<'_>, places: Places, how: &str, own: bool) -> Rule {
    let (x, result, grad) = (p.tensor(0)?, p.result(0)?, p.grad()?);
    let src = places.written(e, p.tensor(3)?)?;
    let (mut to_self, to_src) = match how {
        "sum" => (grad, places.read(e, grad)?),
        "mean" => {
            let start = e.one("aten.full_like.default", args![grad, i64::from(own)])?;
            let ones = e.one("aten.ones_like.default", args![src])?;
            let count = places.add(e, start, ones)?;
            let count = e.one("aten.clamp_min.default", args![count, 1])?;
            let share = e.div(grad, count)?;
            (share, places.read(e, share)?)
        }
        "prod" => {
            let zero = e.compare("eq", x, 0)?;
            let factor = e.select(zero, 1.0, x)?;
            let others = places.product(e, factor, src, own)?;
            let others = e.mul(grad, others)?;
            (e.div(others, factor)?, of_factors(e, places, [x, src, result, grad], own)?)
        }
        _ => {
            let (own_best, best) = (e.one("aten.eq.Tensor", args![x, result])?, places.read(e, result)?);
            let src_best = e.one("aten.eq.Tensor", args![src, best])?;
            let (own_count, src_count) = (e.cast(own_best, e.dtype(grad))?, e.cast(src_best, e.dtype(grad))?);
            let count = places.add(e, own_count, src_count)?;
            let share = e.div(grad, count)?;
            let src_share = places.read(e, share)?;
            (e.mul(own_best, share)?, e.mul(src_best, src_share)?)
        }
    };
    if !own {
        to_self = places.clear(e, to_self)?;
    }
    Ok(vec![(0, to_self.into()), (3, places.padded(e, to_src, p.tensor(3)?)?.into())])
}

/// The gradients of the factors that products at places are made of. A factor that is the only zero of its product gets
/// the product without it; the others get the product divided by them.
pub(super) fn of_factors(
    e: &mut dyn Emit,
    places: Places,
    [x, src, result, grad]: [Handle; 4],
    own: bool,
) -> Result<Handle, OpError> {
    let zero = e.compare("eq", src, 0)?;
    let ones = e.cast(zero, e.dtype(grad))?;
    let start = e.zeros(&e.shape(x), grad)?;
    let count = places.add(e, start, ones)?;
    let count = places.read(e, count)?;
    let single = e.compare("eq", count, 1)?;
    let single = e.one("aten.logical_and.default", args![zero, single])?;
    let others = e.select(single, 1.0, src)?;
    let without = places.product(e, x, others, own)?;
    let without = e.mul(grad, without)?;
    let without = places.read(e, without)?;
    let whole = e.mul(grad, result)?;
    let whole = places.read(e, whole)?;
    let divisor = e.select(zero, 1.0, src)?;
    let usual = e.div(whole, divisor)?;
    e.select(single, without, usual)
}

/// `index_put`.
pub fn index_put(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let mut grads = Vec::new();
    if p.args.bool(3)? {
        grads.push((0, grad.into()));
    } else if p.wants(0) {
        let zero = e.zeros(&[], grad)?;
        let kept = e.one("aten.index_put.default", &[grad.into(), p.value(1), zero.into(), false.into()])?;
        grads.push((0, kept.into()));
    }
    if p.wants(2) {
        grads.push((2, e.one("aten.index.Tensor", &[grad.into(), p.value(1)])?.into()));
    }
    Ok(grads)
}

/// `_unsafe_masked_index_put_accumulate`.
pub fn masked_index_put(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let grad = p.grad()?;
    let mut grads = vec![(0, grad.into())];
    if p.wants(3) {
        let values = [grad.into(), p.value(1), p.value(2), 0i64.into()];
        grads.push((3, e.one("aten._unsafe_masked_index.default", &values)?.into()));
    }
    Ok(grads)
}

/// `masked_fill`.
pub fn masked_fill(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (grad, mask) = (p.grad()?, p.tensor(1)?);
    let mut grads = Vec::new();
    if p.wants(0) {
        grads.push((0, e.one("aten.masked_fill.Scalar", args![grad, mask, 0])?.into()));
    }
    if p.wants(2) {
        let filled = e.masked(mask, grad)?;
        grads.push((2, e.unary("sum", filled)?.into()));
    }
    Ok(grads)
}

/// `masked_scatter`: the k-th element of the source went to the k-th place where the mask holds.
pub fn masked_scatter(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (grad, mask) = (p.grad()?, p.tensor(1)?);
    let mut grads = Vec::new();
    if p.wants(0) {
        grads.push((0, e.one("aten.masked_fill.Scalar", args![grad, mask, 0])?.into()));
    }
    if p.wants(2) {
        let (shape, count) = (e.shape(p.tensor(2)?), e.meta(p.tensor(2)?).numel());
        let zeros = e.zeros(std::slice::from_ref(&count), grad)?;
        let sum = if count.is_eq(0) {
            zeros
        } else {
            let flat = [e.meta(grad).numel()];
            let mask = e.expand(mask, &e.shape(grad))?;
            let mask = e.reshape(mask, &flat)?;
            let taken = e.reshape(grad, &flat)?;
            let taken = e.masked(mask, taken)?;
            let rank = e.one("aten.cumsum.default", args![mask, 0])?;
            let rank = e.sub(rank, 1)?;
            let rank = e.one("aten.clamp_min.default", args![rank, 0])?;
            e.one("aten.index_add.default", args![zeros, 0, rank, taken])?
        };
        grads.push((2, e.reshape(sum, &shape)?.into()));
    }
    Ok(grads)
}

/// `put`.
pub fn put(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let (grad, source) = (p.grad()?, p.tensor(2)?);
    let mut grads = Vec::new();
    if p.args.bool(3)? {
        grads.push((0, grad.into()));
    } else if p.wants(0) {
        let zeros = e.zeros(&e.shape(source), grad)?;
        grads.push((0, e.one("aten.put.default", args![grad, p.tensor(1)?, zeros, false])?.into()));
    }
    if p.wants(2) {
        let taken = e.one("aten.take.default", args![grad, p.tensor(1)?])?;
        grads.push((2, e.reshape(taken, &e.shape(source))?.into()));
    }
    Ok(grads)
}
