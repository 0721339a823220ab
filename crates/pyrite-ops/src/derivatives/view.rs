//! Derivatives of views: the gradient goes back to the places that were viewed.
//!
//! `expand` needs no rule of its own beyond [`same`]: whoever asks for a gradient sums it down to the argument's shape.

use pyrite_ir::{Emit, Handle, Meta, OpError, Pullback, Value, args};
use pyrite_sym::SymInt;
use pyrite_tensor::{Complex64, DType, MemoryFormat};

use super::{Calculus, Rule, first};
use crate::rules::{wrap_dim, wrap_dims};

/// Operators that leave elements as they are: the gradient passes.
pub fn same(_: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(p.grad()?)
}

/// Operators that give another shape.
pub fn reshaped(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    first(e.reshape(p.grad()?, &shape)?)
}

/// `permute`.
pub fn permute(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let order = wrap_dims(&p.args.ints(1)?, e.rank(p.tensor(0)?))?;
    let mut back = vec![0; order.len()];
    for (to, from) in order.iter().enumerate() {
        back[*from] = to as i64;
    }
    first(e.one("aten.permute.default", args![p.grad()?, back])?)
}

/// `transpose`, `flip`, `tril` and other linear operators that are their own adjoints.
pub fn self_adjoint(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let mut values = p.args.values.to_vec();
    values[0] = p.grad()?.into();
    first(e.one(&p.args.schema.name, &values)?)
}

/// `movedim`: back from the destination to the source.
pub fn movedim(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one(&p.args.schema.name, &[p.grad()?.into(), p.value(2), p.value(1)])?)
}

/// `select`.
pub fn select(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    padded(e, p, "aten.select_backward.default")
}

/// `diagonal`.
pub fn diagonal(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    padded(e, p, "aten.diagonal_backward.default")
}

/// `unfold`.
pub fn unfold(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    padded(e, p, "aten.unfold_backward.default")
}

/// The `*_backward` operator that takes the gradient, the sizes of the argument, and the other arguments.
fn padded(e: &mut dyn Emit, p: &Pullback<'_>, op: &str) -> Rule {
    let mut values: Vec<Value<Handle>> = vec![p.grad()?.into(), (&*e.shape(p.tensor(0)?)).into()];
    values.extend_from_slice(&p.args.values[1..]);
    first(e.one(op, &values)?)
}

/// `slice`.
pub fn slice(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let start = p.args.opt_sym(2)?.unwrap_or(SymInt::Int(0));
    let end = p.args.opt_sym(3)?.unwrap_or(SymInt::Int(i64::MAX));
    let shape = e.shape(p.tensor(0)?);
    let values = args![p.grad()?, &*shape, p.args.int(1)?, start, end, p.args.sym(4)?];
    first(e.one("aten.slice_backward.default", values)?)
}

/// `narrow`.
pub fn narrow(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let dim = wrap_dim(p.args.int(1)?, shape.len())?;
    let start = p.args.sym(2)?;
    let start = if start.is_lt(0) { start + &shape[dim] } else { start };
    let end = &start + &p.args.sym(3)?;
    first(e.one("aten.slice_backward.default", args![p.grad()?, &*shape, dim, start, end, 1])?)
}

/// `squeeze` in all its forms: the dimensions that were dropped come back.
pub fn squeeze(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let shape = e.shape(p.tensor(0)?);
    let dims: Vec<usize> = match p.args.values.get(1) {
        None => (0..shape.len()).collect(),
        Some(Value::List(_)) => wrap_dims(&p.args.ints(1)?, shape.len())?,
        Some(_) => vec![wrap_dim(p.args.int(1)?, shape.len())?],
    };
    let mut grad = p.grad()?;
    for (dim, size) in shape.iter().enumerate() {
        if dims.contains(&dim) && size.is_eq(1) {
            grad = e.unsqueeze(grad, dim as i64)?;
        }
    }
    first(grad)
}

/// `unsqueeze`.
pub fn unsqueeze(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.one("aten.squeeze.dim", &[p.grad()?.into(), p.value(1)])?)
}

/// `split` and `chunk`: parts that lie side by side along a dimension, the last argument.
pub fn split(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let parts = part_gradients(e, p)?;
    first(e.one("aten.cat.default", args![parts, p.args.int(2)?])?)
}

/// `unbind`: a part for each index of a dimension.
pub fn unbind(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let parts = part_gradients(e, p)?;
    first(e.one("aten.stack.default", args![parts, p.args.int(1)?])?)
}

/// The gradients of all results, zeros where there is none.
fn part_gradients(e: &mut dyn Emit, p: &Pullback<'_>) -> Result<Vec<Handle>, OpError> {
    (0..p.grads.len())
        .map(|index| {
            let part = p.result(index)?;
            p.grad_of(index).map_or_else(|| e.zeros(&e.shape(part), part), Ok)
        })
        .collect()
}

/// `tensor_split`: parts between indices, which may overlap.
pub fn tensor_split(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    split_along(e, p, p.args.int(2)?)
}

/// `hsplit`.
pub fn hsplit(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let dim = i64::from(e.rank(p.tensor(0)?) != 1);
    split_along(e, p, dim)
}

/// `vsplit`.
pub fn vsplit(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    split_along(e, p, 0)
}

/// `dsplit`.
pub fn dsplit(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    split_along(e, p, 2)
}

fn split_along(e: &mut dyn Emit, p: &Pullback<'_>, dim: i64) -> Rule {
    if !matches!(p.args.value(1), Value::List(_)) {
        let parts = part_gradients(e, p)?;
        return first(e.one("aten.cat.default", args![parts, dim])?);
    }
    let indices = p.args.syms(1)?;
    let shape = e.shape(p.tensor(0)?);
    let mut sum: Option<Handle> = None;
    for index in 0..=indices.len() {
        let Some(grad) = p.grad_of(index) else { continue };
        let start = if index == 0 { SymInt::Int(0) } else { indices[index - 1].clone() };
        let end = indices.get(index).cloned().unwrap_or(SymInt::Int(i64::MAX));
        let padded = e.one("aten.slice_backward.default", args![grad, &*shape, dim, start, end, 1])?;
        sum = Some(match sum {
            Some(sum) => e.add(sum, padded)?,
            None => padded,
        });
    }
    sum.map_or(Ok(Vec::new()), first)
}

/// `view_as_real`.
pub fn view_as_real(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let dense = e.one("aten.contiguous.default", args![p.grad()?])?;
    first(e.unary("view_as_complex", dense)?)
}

/// `view_as_complex`.
pub fn view_as_complex(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.unary("view_as_real", p.grad()?)?)
}

/// `imag`.
pub fn imag(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.mul(p.grad()?, Complex64::I)?)
}

/// `_conj`.
pub fn conj(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.conj(p.grad()?)?)
}

/// `_neg_view`.
pub fn neg(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    first(e.neg(p.grad()?)?)
}

/// `as_strided`: the gradient is collected in a flat stand-in for the storage and read with the argument's own strides.
/// Where elements of the argument share memory, each gets its part of what their memory got.
pub fn as_strided(e: &mut dyn Emit, p: &Pullback<'_>) -> Rule {
    let x = e.meta(p.tensor(0)?).clone();
    let out = Meta { offset: p.args.opt_sym(3)?.unwrap_or_else(|| x.offset.clone()), ..e.meta(p.result(0)?).clone() };
    if x.numel().is_eq(0) || out.numel().is_eq(0) {
        return first(e.zeros_like(p.tensor(0)?)?);
    }
    let grad = p.grad()?;
    let base = x.offset.min(&out.offset);
    let (x, out) = (Meta { offset: &x.offset - &base, ..x }, Meta { offset: &out.offset - &base, ..out });
    let size = end(&x).max(&end(&out));
    let zeros = e.zeros(std::slice::from_ref(&size), grad)?;
    let mut storage = if may_overlap(&out) {
        add_at(e, zeros, &out, &size, grad)?
    } else {
        e.one("aten.as_strided_scatter.default", args![zeros, grad, &*out.shape, &*out.stride, &out.offset])?
    };
    if may_overlap(&x) {
        let one = e.one("aten.full.default", args![&*x.shape, 1, e.dtype(grad)])?;
        let count = add_at(e, zeros, &x, &size, one)?;
        storage = e.div(storage, count)?;
    }
    first(e.one("aten.as_strided.default", args![storage, &*x.shape, &*x.stride, &x.offset])?)
}

/// The element after the last that a tensor reaches.
fn end(meta: &Meta) -> SymInt {
    let steps = meta.shape.iter().zip(&meta.stride);
    steps.fold(&meta.offset + 1, |end, (size, stride)| end + (size - 1) * stride)
}

/// Whether elements may share memory: whether some stride does not exceed the reach of the smaller ones.
pub(super) fn may_overlap(meta: &Meta) -> bool {
    let mut dims: Vec<usize> = (0..meta.rank()).filter(|d| !meta.shape[*d].is_eq(1)).collect();
    pyrite_ir::meta::sort_dims(&mut dims, |a, b| meta.stride[a].is_lt(&meta.stride[b]));
    let mut reach = SymInt::Int(0);
    dims.iter().any(|dim| {
        let inside = meta.stride[*dim].is_le(&reach);
        reach = &reach + (&meta.shape[*dim] - 1) * &meta.stride[*dim];
        inside
    })
}

/// Adds the elements of a tensor to a flat storage at the places that sizes, strides and offset say.
fn add_at(e: &mut dyn Emit, storage: Handle, at: &Meta, size: &SymInt, elements: Handle) -> Result<Handle, OpError> {
    let places = e.one("aten.arange.default", args![size, DType::I64])?;
    let places = e.one("aten.as_strided.default", args![places, &*at.shape, &*at.stride, &at.offset])?;
    let flat = [at.numel()];
    let places = e.one("aten.clone.default", args![places, MemoryFormat::Contiguous])?;
    let (places, elements) = (e.reshape(places, &flat)?, e.reshape(elements, &flat)?);
    e.one("aten.index_add.default", args![storage, 0, places, elements])
}
