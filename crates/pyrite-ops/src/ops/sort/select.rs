//! Sorting and selecting by rank.

use pyrite_ir::{Args, Call, ExternKind, Freedom, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, args, invalid};
use pyrite_sym::SymInt;
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Element, Tensor};

use super::Ordered;
use crate::derivatives::{
    reduce::{indexed, whole_extreme},
    sort as d,
};
use crate::rules::{preserved_strides, reduced_shape, wrap_dim};
use pyrite_kernels::lanes::{Block, elements};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        "The elements in order along a dimension, and where they were.",
        |a| sort_meta(a, 1),
        |c| sort(c, 1),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .as_call(ExternKind::Kernel)
    .tags(&[Tag::Core])
    .derivative(d::sort)
    .samples(&["f32[3, 4]", "i64[3, 4], 0, True", "b8[5]", "f32[2, 3]<[1, 2]", "f32[]", "bf16[0, 3], 0"]),
    OpDef::kernel(
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        "The elements in order along a dimension, equal ones in their old order, and where they were.",
        |a| sort_meta(a, 2),
        |c| sort(c, 2),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .as_call(ExternKind::Kernel)
    .derivative(d::sort_second)
    .samples(&["f32[3, 4], stable=True", "i64[3, 4], stable=False, dim=0, descending=True"]),
    OpDef::composite("aten::msort(Tensor self) -> Tensor", "The elements in order along the first dimension.", |e, a| {
        Ok(e.many("aten.sort.default", args![*a.tensor(0)?, 0, false])?[0].into())
    })
    .samples(&["f32[3, 4]"]),
    OpDef::composite(
        "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
        "The places of the elements in order.",
        |e, a| Ok(e.many("aten.sort.default", args![*a.tensor(0)?, a.int(1)?, a.bool(2)?])?[1].into()),
    )
    .free(Freedom::Ties)
    .samples(&["f32[3, 4]", "i64[4], 0, True"]),
    OpDef::composite(
        "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
        "The places of the elements in order, equal ones in their old order.",
        |e, a| {
            let values = args![*a.tensor(0)?, a.bool(1)?, a.int(2)?, a.bool(3)?];
            Ok(e.many("aten.sort.stable", values)?[1].into())
        },
    )
    .free(Freedom::Ties)
    .samples(&["f32[3, 4], stable=True"]),
    OpDef::kernel(
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
        "The `k` largest or smallest elements along a dimension, and where they are.",
        topk_meta,
        topk,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .as_call(ExternKind::Kernel)
    .tags(&[Tag::Core])
    .derivative(d::sort_second)
    .samples(&["f32[3, 4], 2", "i64[5, 3], 2, 0, False", "f32[3], 0", "bf16[2, 3]<[1, 2], 3"]),
    OpDef::kernel(
        "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The k-th smallest element along a dimension, and where it is.",
        kth_meta,
        kth,
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .as_call(ExternKind::Kernel)
    .derivative(d::kthvalue)
    .samples(&["f32[3, 4], 2", "i64[5, 3], 2, 0, True", "f32[], 1"]),
    OpDef::kernel(
        "aten::median(Tensor self) -> Tensor",
        "The middle element, the lower of two; NaN if there is one.",
        whole_meta,
        |c| whole(c, Nan::Wins),
    ).tolerance(Tolerance::Exact)
    .derivative(whole_extreme)
    .samples(&["f32[3, 4]", "i64[4]", "f32[0]"]),
    OpDef::kernel(
        "aten::nanmedian(Tensor self) -> Tensor",
        "The middle element of those that are numbers.",
        whole_meta,
        |c| whole(c, Nan::Ignored),
    ).tolerance(Tolerance::Exact)
    .derivative(whole_extreme)
    .samples(&["f32[3, 4]", "i64[4]"]),
    OpDef::kernel(
        "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The middle element along a dimension, and where it is; NaN if there is one.",
        |a| picked_meta(a, 1, "median"),
        |c| median(c, Nan::Wins),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .derivative(indexed)
    .samples(&["f32[3, 4], 1", "i64[4, 3], 0, True", "f32[], 0"]),
    OpDef::kernel(
        "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The middle element of those that are numbers along a dimension, and where it is.",
        |a| picked_meta(a, 1, "nanmedian"),
        |c| median(c, Nan::Ignored),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .derivative(indexed)
    .samples(&["f32[3, 4], 1", "i64[4, 3], 0, True"]),
    OpDef::kernel(
        "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "The most frequent element along a dimension, the smallest of several, and its last place.",
        |a| picked_meta(a, 1, "mode"),
        |c| picked(c, 1, Pick::Mode),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::Ties)
    .derivative(indexed)
    .samples(&["f32[3, 4]", "i64[9, 3], 0, True", "b8[5]", "f32[]"]),
];

fn expect_ordered(input: &Meta, what: &str) -> Result<(), OpError> {
    if input.dtype.is_complex() {
        invalid!("{what} is not defined for complex numbers");
    }
    Ok(())
}

fn sort_meta(a: &Args<'_, Meta>, dim: usize) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input, "sort")?;
    wrap_dim(a.int(dim)?, input.rank())?;
    let strides = preserved_strides(input);
    let like = |dtype| Meta { device: input.device.clone(), ..Meta::strided(&input.shape, &strides, dtype) };
    Ok(vec![like(input.dtype), like(DType::I64)].into())
}

fn sort(call: &Call<'_>, dim: usize) -> Result<Value<Tensor>, OpError> {
    let direction = if call.args.bool(dim + 1)? { Direction::Down } else { Direction::Up };
    let dim = wrap_dim(call.args.int(dim)?, call.args.tensor(0)?.rank())?;
    choose(call, dim, usize::MAX, direction)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// An element as an integer that is ordered as elements are, with its place after it: equal elements keep their order.
trait Placed: Copy + Ord + Send {
    /// The place in its lane.
    fn place(self) -> i64;
}

impl Placed for u64 {
    fn place(self) -> i64 {
        i64::from(self as u32)
    }
}

impl Placed for u128 {
    fn place(self) -> i64 {
        self as u64 as i64
    }
}

/// The number of a float among all of them; both zeros are one, and NaN is the last.
fn rank_of_f32(x: f32) -> u32 {
    let bits = (x + 0.0).to_bits();
    // Negative numbers are ordered the other way round. No branch: the signs of data are not foreseen.
    let rank = bits ^ ((bits as i32 >> 31) as u32 | 1 << 31);
    if x.is_nan() { u32::MAX } else { rank }
}

/// The same in double precision.
fn rank_of_f64(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    let rank = bits ^ ((bits as i64 >> 63) as u64 | 1 << 63);
    if x.is_nan() { u64::MAX } else { rank }
}

fn rank_of_i64(x: i64) -> u64 {
    x as u64 ^ 1 << 63
}

/// How many elements are worth a task of their own.
const SHARE: usize = 1 << 13;

/// The first `count` elements of every lane in order, with their places, as the two results of a call.
fn choose(call: &Call<'_>, dim: usize, count: usize, direction: Direction) -> Result<Value<Tensor>, OpError> {
    let (values, indices) = (call.allocate(0)?, call.allocate(1)?);
    let input = call.args.tensor(0)?.contiguous();
    let block = Block::new(input.shape(), dim);
    let target = Block { len: count.min(block.len), ..block };
    if values.numel() == 0 {
        return Ok(vec![values, indices].into());
    }
    let short = u32::try_from(block.len).is_ok();
    // Backwards, what is last is first.
    let flip = if direction == Direction::Down { u64::MAX } else { 0 };
    let narrow = |rank: u32, place: usize| u64::from(rank ^ flip as u32) << 32 | place as u64;
    let wide = |rank: u64, place: usize| u128::from(rank ^ flip) << 64 | place as u128;
    let places = match input.dtype() {
        DType::F32 | DType::F16 | DType::BF16 if short => {
            chosen(&input.to_f32s(), block, target, |x, at| narrow(rank_of_f32(x), at))
        }
        dtype if dtype.is_float() => chosen(&input.to_f64s(), block, target, |x, at| wide(rank_of_f64(x), at)),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 if short => {
            chosen(&input.to_i64s(), block, target, |x, at| narrow(x as u32 ^ 1 << 31, at))
        }
        _ => chosen(&input.to_i64s(), block, target, |x, at| wide(rank_of_i64(x), at)),
    };
    indices.write_i64s(&places);
    crate::moved!(input.dtype(), T => {
        let from = input.storage().read::<T>();
        let from = &from[input.layout().offset as usize..];
        let picked = |(at, place): (usize, &i64)| {
            let outer = at / (target.len * target.inner);
            from[(outer * block.len + *place as usize) * block.inner + at % block.inner]
        };
        let sorted = places.iter().enumerate().map(picked).collect::<Vec<T>>();
        store_moved(&values, &sorted);
    });
    Ok(vec![values, indices].into())
}

/// Writes the elements of a tensor in order, whatever they mean.
fn store_moved<T: Element>(tensor: &Tensor, elements: &[T]) {
    let walk = Walk::new(tensor.shape(), &[tensor.stride()]);
    let mut to = tensor.storage().write::<T>();
    let (mut next, step) = (elements.iter(), walk.row_strides[0]);
    walk.each_row(|at| {
        let start = tensor.layout().offset + at[0];
        for (j, element) in next.by_ref().take(walk.row).enumerate() {
            to[(start + j as i64 * step) as usize] = *element;
        }
    });
}

/// The places of the first elements of every lane, as they lie in the target.
fn chosen<T: Copy + Sync, P: Placed>(
    from: &[T],
    block: Block,
    target: Block,
    placed: impl Fn(T, usize) -> P + Sync,
) -> Vec<i64> {
    let mut places = vec![0i64; target.lanes() * target.len];
    let together = SHARE.div_ceil(block.len);
    pyrite_threads::chunks(&mut places, together * target.len, |task, places| {
        let mut kept: Vec<P> = Vec::new();
        for (index, places) in places.chunks_mut(target.len).enumerate() {
            let start = block.start(task * together + index);
            let lane = (0..block.len).map(|i| placed(from[start + i * block.inner], i));
            first_in_order(lane, target.len, &mut kept);
            places.iter_mut().zip(&kept).for_each(|(to, placed)| *to = placed.place());
        }
    });
    if target.inner == 1 {
        return places;
    }
    let mut lying = vec![0i64; places.len()];
    for (lane, places) in places.chunks(target.len).enumerate() {
        target.scatter(places, lane, &mut lying);
    }
    lying
}

/// The first `count` of some elements in order. Where that is a small part of them, what is not among the first so far is
/// not looked at again.
fn first_in_order<P: Placed>(elements: impl ExactSizeIterator<Item = P>, count: usize, kept: &mut Vec<P>) {
    kept.clear();
    let room = count.saturating_mul(2).max(64);
    if room >= elements.len() {
        kept.extend(elements);
    } else {
        let mut last = None;
        for element in elements {
            if last.is_none_or(|last| element < last) {
                kept.push(element);
                if kept.len() == room {
                    last = Some(*kept.select_nth_unstable(count - 1).1);
                    kept.truncate(count);
                }
            }
        }
    }
    if kept.len() > count {
        kept.select_nth_unstable(count - 1);
        kept.truncate(count);
    }
    kept.sort_unstable();
}

fn topk_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input, "topk")?;
    if input.dtype == DType::Bool {
        invalid!("topk is not defined for bools");
    }
    let (k, dim) = (a.sym(1)?, wrap_dim(a.int(2)?, input.rank())?);
    let size = input.shape.get(dim).cloned().unwrap_or(SymInt::Int(1));
    if k.is_lt(0) || k.is_gt(&size) {
        invalid!("topk cannot take {k} of {size} elements");
    }
    let mut shape: SymDims = input.shape.clone();
    if let Some(size) = shape.get_mut(dim) {
        *size = k;
    }
    Ok(vec![input.fresh(&shape, input.dtype), input.fresh(&shape, DType::I64)].into())
}

fn topk(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let dim = wrap_dim(call.args.int(2)?, call.args.tensor(0)?.rank())?;
    let direction = if call.args.bool(3)? { Direction::Down } else { Direction::Up };
    // A tensor without dimensions has one element to take, whatever `k` says.
    let k = if call.args.tensor(0)?.rank() == 0 { 1 } else { call.args.int(1)? };
    choose(call, dim, k as usize, direction)
}

/// One element per lane and its place.
fn picked_meta(a: &Args<'_, Meta>, dim: usize, what: &str) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input, what)?;
    if input.dtype == DType::Bool && what != "mode" {
        invalid!("{what} is not defined for bools");
    }
    let at = wrap_dim(a.int(dim)?, input.rank())?;
    if input.shape.get(at).is_some_and(|size| size.is_eq(0)) {
        invalid!("{what} over an empty dimension of shape {:?} has no value", input.shape);
    }
    let shape = reduced_shape(&input.shape, &[at], a.bool(dim + 1)?);
    Ok(vec![input.fresh(&shape, input.dtype), input.fresh(&shape, DType::I64)].into())
}

fn kth_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    let (k, dim) = (a.sym(1)?, wrap_dim(a.int(2)?, input.rank())?);
    let size = input.shape.get(dim).cloned().unwrap_or(SymInt::Int(1));
    let result = picked_meta(a, 2, "kthvalue")?;
    if k.is_lt(1) || k.is_gt(&size) {
        invalid!("kthvalue cannot take element {k} of {size}");
    }
    Ok(result)
}

fn kth(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let k = call.args.int(1)?;
    picked(call, 2, Pick::Rank(k as usize - 1))
}

#[derive(Clone, Copy)]
enum Nan {
    Wins,
    Ignored,
}

#[derive(Clone, Copy)]
enum Pick {
    Rank(usize),
    Median(Nan),
    Mode,
}

fn median(call: &Call<'_>, nan: Nan) -> Result<Value<Tensor>, OpError> {
    picked(call, 1, Pick::Median(nan))
}

fn picked(call: &Call<'_>, dim: usize, pick: Pick) -> Result<Value<Tensor>, OpError> {
    let (values, indices) = (call.allocate(0)?, call.allocate(1)?);
    let input = call.args.tensor(0)?;
    let block = Block::new(input.shape(), wrap_dim(call.args.int(dim)?, input.rank())?);
    if input.dtype().is_float() {
        pick_in::<f64>(input, block, pick, &values, &indices);
    } else {
        pick_in::<i64>(input, block, pick, &values, &indices);
    }
    Ok(vec![values, indices].into())
}

fn pick_in<T: Ordered>(input: &Tensor, block: Block, pick: Pick, values: &Tensor, indices: &Tensor) {
    let from = elements::<T>(input);
    let lanes = if from.is_empty() { 0 } else { block.lanes() };
    let pairs: Vec<(T, i64)> = pyrite_threads::map(lanes, |lane| {
        let start = block.start(lane);
        let pairs = (0..block.len).map(|i| (from[start + i * block.inner], i as i64)).collect();
        pick_one(pairs, pick)
    });
    T::store(values, &pairs.iter().map(|p| p.0).collect::<Vec<_>>());
    indices.write_i64s(&pairs.iter().map(|p| p.1).collect::<Vec<_>>());
}

/// The element that a lane (which has some) is represented by.
fn pick_one<T: Ordered>(mut pairs: Vec<(T, i64)>, pick: Pick) -> (T, i64) {
    let by = |a: &(T, i64), b: &(T, i64)| a.0.order(b.0).then(a.1.cmp(&b.1));
    match pick {
        Pick::Rank(rank) => *pairs.select_nth_unstable_by(rank, by).1,
        Pick::Median(nan) => {
            let numbers = pairs.iter().filter(|p| !p.0.is_nan()).count();
            if let (Nan::Wins, Some(first)) = (nan, pairs.iter().find(|p| p.0.is_nan())) {
                return *first;
            }
            *pairs.select_nth_unstable_by(numbers.saturating_sub(1) / 2, by).1
        }
        Pick::Mode => {
            pairs.sort_unstable_by(by);
            let (mut best, mut longest, mut start) = (0, 0, 0);
            for end in 1..=pairs.len() {
                if end == pairs.len() || pairs[end].0 != pairs[start].0 {
                    if end - start > longest {
                        (best, longest) = (end - 1, end - start);
                    }
                    start = end;
                }
            }
            pairs[best]
        }
    }
}

fn whole_meta(a: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let input = a.tensor(0)?;
    expect_ordered(input, "median")?;
    if input.dtype == DType::Bool {
        invalid!("median is not defined for bools");
    }
    Ok(input.fresh(&[], input.dtype).into())
}

fn whole(call: &Call<'_>, nan: Nan) -> Result<Value<Tensor>, OpError> {
    let out = call.allocate(0)?;
    let input = call.args.tensor(0)?;
    if input.numel() == 0 {
        // What NaN becomes in the type.
        out.write_f64s(&[f64::NAN]);
    } else if input.dtype().is_float() {
        let pairs = input.to_f64s().into_iter().zip(0..).collect();
        out.write_f64s(&[pick_one(pairs, Pick::Median(nan)).0]);
    } else {
        let pairs = input.to_i64s().into_iter().zip(0..).collect();
        out.write_i64s(&[pick_one(pairs, Pick::Median(nan)).0]);
    }
    Ok(out.into())
}
