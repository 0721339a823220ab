//! What occurs: distinct elements, distinct slices, runs.

use pyrite_ir::{Args, Call, Meta, OpDef, OpError, Tag, Value, invalid};
use pyrite_sym::{SymEnv, SymInt};
use pyrite_tensor::layout::contiguous_strides;
use pyrite_tensor::{DType, Tensor};

use super::{Keys, Ordered};
use crate::rules::wrap_dim;

const TAGS: &[Tag] = &[Tag::DataDependentShape];

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        "The distinct elements in order, where each element is among them, and how often each occurs.",
        |a| flat_meta(a, a.bool(2)?, a.bool(3)?),
        |c| flat(c, Equal::Anywhere, c.args.bool(2)?, c.args.bool(3)?),
    )
    .tags(TAGS)
    .samples(&["i64[9], True, True, True", "f32[2, 3]", "b8[4], True, False, True", "f32[0, 3], True, True"]),
    OpDef::kernel(
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
        "The elements or slices without those equal to the one before.",
        |a| match a.opt_int(3)? {
            None => flat_meta(a, a.bool(1)?, a.bool(2)?),
            Some(dim) => slices_meta(a, dim),
        },
        |c| match c.args.opt_int(3)? {
            None => flat(c, Equal::Neighbours, c.args.bool(1)?, c.args.bool(2)?),
            Some(dim) => slices(c, dim, Equal::Neighbours),
        },
    )
    .tags(TAGS)
    .samples(&["i64[9]{0..2}, True, True", "i64[5, 2]{0..2}, True, True, 0", "f32[0]"]),
    OpDef::kernel(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        "The distinct slices along a dimension in order, where each slice is among them, and how often each occurs.",
        |a| slices_meta(a, a.int(1)?),
        |c| slices(c, c.args.int(1)?, Equal::Anywhere),
    )
    .tags(TAGS)
    .samples(&["i64[5, 2]{0..2}, 0, True, True, True", "f32[2, 3], 1", "i64[0, 2], 0"]),
    OpDef::kernel(
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        "The slices along a dimension without those equal to the one before.",
        |a| slices_meta(a, a.int(1)?),
        |c| slices(c, c.args.int(1)?, Equal::Neighbours),
    )
    .tags(TAGS)
    .samples(&["i64[5, 2]{0..2}, 0, True, True"]),
];

#[derive(Clone, Copy, PartialEq)]
enum Equal {
    Anywhere,
    Neighbours,
}

fn expect_ordered(input: &Meta) -> Result<(), OpError> {
    if input.dtype.is_complex() {
        invalid!("distinct elements are not defined for complex numbers");
    }
    Ok(())
}

fn flat_meta(a: &Args<'_, Meta>, inverse: bool, counts: bool) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input)?;
    let found = [SymEnv::new().unbacked()];
    let nothing = [SymInt::Int(0)];
    let inverse = if inverse { &input.shape[..] } else { &nothing };
    let counts = if counts { &found } else { &nothing };
    Ok(vec![input.fresh(&found, input.dtype), input.fresh(inverse, DType::I64), input.fresh(counts, DType::I64)].into())
}

fn slices_meta(a: &Args<'_, Meta>, dim: i64) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input)?;
    if input.rank() == 0 {
        invalid!("a tensor without dimensions has no slices");
    }
    let dim = wrap_dim(dim, input.rank())?;
    if input.shape.iter().enumerate().any(|(d, size)| d != dim && size.is_eq(0)) {
        invalid!("slices of shape {:?} along dimension {dim} have no elements", input.shape);
    }
    let found = SymEnv::new().unbacked();
    // The result is made of slices: their dimension is the slowest.
    let mut shape = input.shape.clone();
    shape[dim] = found.clone();
    let mut order: Vec<usize> = (0..input.rank()).filter(|d| *d != dim).collect();
    order.insert(0, dim);
    let stride = pyrite_ir::meta::strides_in_order(&shape, &order);
    let values = Meta { device: input.device.clone(), ..Meta::strided(&shape, &stride, input.dtype) };
    let inverse = input.fresh(&input.shape[dim..=dim], DType::I64);
    Ok(vec![values, inverse, input.fresh(&[found], DType::I64)].into())
}

/// Which group each of `len` items is in, and the first item of each group.
struct Groups {
    of: Vec<i64>,
    first: Vec<usize>,
}

impl Groups {
    fn new(
        len: usize,
        equal: Equal,
        order: impl Fn(usize, usize) -> std::cmp::Ordering,
        same: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut sorted: Vec<usize> = (0..len).collect();
        if equal == Equal::Anywhere {
            sorted.sort_by(|a, b| order(*a, *b));
        }
        let mut groups = Self { of: vec![0; len], first: Vec::new() };
        for (n, item) in sorted.iter().enumerate() {
            if n == 0 || !same(sorted[n - 1], *item) {
                groups.first.push(*item);
            }
            groups.of[*item] = groups.first.len() as i64 - 1;
        }
        groups
    }

    fn counts(&self) -> Vec<i64> {
        let mut counts = vec![0; self.first.len()];
        for group in &self.of {
            counts[*group as usize] += 1;
        }
        counts
    }
}

fn ints(values: &[i64], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape)
}

fn flat(call: &Call<'_>, equal: Equal, inverse: bool, counts: bool) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let groups = match Keys::of(input, input.dtype()) {
        Keys::Floats(keys) => flat_groups(&keys, equal),
        Keys::Ints(keys) => flat_groups(&keys, equal),
    };
    let found = groups.first.len() as i64;
    let values = Tensor::empty(&[found], input.dtype())?;
    match Keys::of(input, input.dtype()) {
        Keys::Floats(keys) => values.write_f64s(&groups.first.iter().map(|i| keys[*i]).collect::<Vec<_>>()),
        Keys::Ints(keys) => values.write_i64s(&groups.first.iter().map(|i| keys[*i]).collect::<Vec<_>>()),
    }
    let of = if inverse { ints(&groups.of, input.shape()) } else { ints(&[], &[0]) };
    let counts = if counts { ints(&groups.counts(), &[found]) } else { ints(&[], &[0]) };
    Ok(vec![values, of, counts].into())
}

fn flat_groups<T: Ordered>(keys: &[T], equal: Equal) -> Groups {
    Groups::new(keys.len(), equal, |a, b| keys[a].order(keys[b]), |a, b| keys[a] == keys[b])
}

fn slices(call: &Call<'_>, dim: i64, equal: Equal) -> Result<Value<Tensor>, OpError> {
    let input = call.args.tensor(0)?;
    let dim = wrap_dim(dim, input.rank())?;
    let mut order: Vec<usize> = (0..input.rank()).filter(|d| *d != dim).collect();
    order.insert(0, dim);
    let front = input.permuted(&order);
    let len = front.shape()[0] as usize;
    let (groups, values) = match Keys::of(&front, input.dtype()) {
        Keys::Floats(keys) => {
            let groups = slice_groups(&keys, len, equal);
            let values = write_slices(&front, &groups, |out| out.write_f64s(&pick(&keys, len, &groups)))?;
            (groups, values)
        }
        Keys::Ints(keys) => {
            let groups = slice_groups(&keys, len, equal);
            let values = write_slices(&front, &groups, |out| out.write_i64s(&pick(&keys, len, &groups)))?;
            (groups, values)
        }
    };
    let mut back: Vec<usize> = (1..=dim).collect();
    back.push(0);
    back.extend(dim + 1..input.rank());
    let counts = groups.counts();
    Ok(vec![values.permuted(&back), ints(&groups.of, &[len as i64]), ints(&counts, &[counts.len() as i64])].into())
}

fn slice_groups<T: Ordered>(keys: &[T], len: usize, equal: Equal) -> Groups {
    let size = keys.len() / len.max(1);
    let slice = |i: usize| &keys[i * size..(i + 1) * size];
    let order = |a: usize, b: usize| {
        let pairs = slice(a).iter().zip(slice(b));
        pairs.map(|(x, y)| x.order(*y)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    Groups::new(len, equal, order, |a, b| slice(a) == slice(b))
}

fn pick<T: Copy>(keys: &[T], len: usize, groups: &Groups) -> Vec<T> {
    let size = keys.len() / len.max(1);
    groups.first.iter().flat_map(|i| keys[i * size..(i + 1) * size].iter().copied()).collect()
}

fn write_slices(front: &Tensor, groups: &Groups, write: impl FnOnce(&Tensor)) -> Result<Tensor, OpError> {
    let mut shape = front.shape().to_vec();
    shape[0] = groups.first.len() as i64;
    let out = Tensor::empty_strided(&shape, &contiguous_strides(&shape), front.dtype())?;
    write(&out);
    Ok(out)
}
