//! Writing elements at places that tensors name.
//!
//! Kernels work on a dense copy of the tensor in its carrier, since most of them add, multiply or compare.

use pyrite_ir::{Args, Call, Freedom, Meta, OpDef, OpError, SymDims, Tag, Tolerance, Value, invalid};
use pyrite_tensor::{Category, DType, Scalar, Tensor, layout};

use super::index::check_along;
use crate::decompositions::index as by;
use crate::decompositions::pointwise as by_formula;
use crate::derivatives::scatter as d;
use crate::kernels::indexing::{Negative, Plan, adds_in_place, along, bounded};
use crate::lowerings::index as to_loops;
use crate::rules::{broadcast, expect_same_shape, preserved_strides, wrap_dim};
use pyrite_kernels::carried;
use pyrite_kernels::gemm::Factor;
use pyrite_kernels::{Carrier, dense};

/// The table.
pub const OPS: &[OpDef] = &[
    OpDef::kernel(
        "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        "A copy with the elements at the indexed places replaced, or added to.",
        index_put_infer,
        index_put,
    )
    .free(Freedom::WriteOrder)
    .lower(to_loops::index_put)
    .tags(&[Tag::Core])
    .derivative(d::index_put)
    .samples(&[
        "f32[4, 3], [i64[5]{-4..4}], f32[5, 3], True",
        "i64[4, 3], [b8[4, 3]], i64[]",
        "bf16[4, 3, 2]<[1, 8, 4], [None, i64[2]{0..3}], bf16[2, 2]",
        "c64[4], [i64[3]{0..4}], c64[3], True",
        "b8[4], [i64[3]{0..4}], b8[3], True",
    ]),
    OpDef::kernel(
        "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        "As `index_put`, where the caller vouches for the indices; they are checked all the same.",
        index_put_infer,
        index_put,
    )
    .free(Freedom::WriteOrder)
    .derivative(d::index_put)
    .decompose(by::unsafe_index_put)
    .samples(&["f32[4, 3], [i64[5]{0..4}], f32[5, 3], True"]),
    OpDef::written(
        "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
        "`index_put` in place.",
        "aten.index_put.default",
    )
    .samples(&["f32[4, 3], [i64[5]{0..4}], f32[5, 3]"]),
    OpDef::kernel(
        "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
        "A copy with values added at the indexed places where a mask holds; wrong indices elsewhere do not matter.",
        |args| Ok(preserved(args.tensor(0)?)),
        masked_index_put,
    )
    .derivative(d::masked_index_put)
    .samples(&["f32[4], b8[5], [i64[5]], f32[5]", "f64[4, 3], b8[5, 1], [i64[5]], f64[5, 3]"]),
    OpDef::kernel(
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        "A copy with the slices of a source, times a factor, added to the slices that an index names.",
        index_dim_infer,
        index_add,
    )
    .derivative(d::index_add)
    .decompose(by::index_add)
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[2, 3], alpha=2", "i32[4, 3], 1, i64[2]{0..3}, i32[4, 2]", "f32[], 0, i64[1]{0..1}, f32[]", "b8[4], 0, i64[2]{0..4}, b8[2], alpha=0"]),
    OpDef::written(
        "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)",
        "`index_add` in place.",
        "aten.index_add.default",
    )
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[2, 3]"]),
    OpDef::kernel(
        "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
        "A copy with the slices that an index names replaced by those of a source.",
        index_dim_infer,
        index_copy,
    )
    .free(Freedom::WriteOrder)
    .tolerance(Tolerance::Exact)
    .derivative(d::index_copy)
    .decompose(by::index_copy)
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[2, 3]", "b8[4, 3]<[1, 4], 1, i64[2]{0..3}, b8[4, 2]"]),
    OpDef::written(
        "aten::index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)",
        "`index_copy` in place.",
        "aten.index_copy.default",
    )
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[2, 3]"]),
    OpDef::kernel(
        "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        "A copy with the slices that an index names filled with a number.",
        index_fill_infer,
        index_fill,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::index_fill)
    .decompose(by::index_fill)
    .samples(&["f32[4, 3], 0, i64[2]{-4..4}, 2.5", "i64[4, 3]<[1, 4], 1, i64[2]{0..3}, 7"]),
    OpDef::kernel(
        "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
        "A copy with the slices that an index names filled with the element of a tensor without dimensions.",
        index_fill_infer,
        index_fill,
    )
    .tolerance(Tolerance::Exact)
    .derivative(d::index_fill)
    .decompose(by::index_fill)
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[]"]),
    OpDef::written(
        "aten::index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "`index_fill` in place.",
        "aten.index_fill.int_Scalar",
    )
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, 2.5"]),
    OpDef::written(
        "aten::index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
        "`index_fill` in place.",
        "aten.index_fill.int_Tensor",
    )
    .samples(&["f32[4, 3], 0, i64[2]{0..4}, f32[]"]),
    OpDef::kernel(
        "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
        "A copy with the slices of a source combined into the slices that an index names.",
        index_dim_infer,
        index_reduce,
    )
    .derivative(d::index_reduce)
    .samples(&[
        "f32[4, 3], 0, i64[5]{0..4}, f32[5, 3], 'prod'",
        "f32[4, 3], 0, i64[5]{0..4}, f32[5, 3], 'mean', include_self=False",
        "i64[4, 3], 1, i64[2]{0..3}, i64[4, 2], 'amax'",
        "f64[4, 3], 1, i64[2]{0..3}, f64[4, 2], 'amin', include_self=False",
    ]),
    OpDef::written(
        "aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "`index_reduce` in place.",
        "aten.index_reduce.default",
    )
    .samples(&["f32[4, 3], 0, i64[5]{0..4}, f32[5, 3], 'prod'"]),
    OpDef::kernel(
        "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "A copy with elements written to where an index tensor names their place along a dimension.",
        scatter_infer,
        |call| scatter(call, Combine::Replace, Start::Own),
    ).tolerance(Tolerance::Exact)
    .free(Freedom::WriteOrder)
    .tags(&[Tag::Core])
    .lower(to_loops::scatter)
    .derivative(d::scatter)
    .samples(&[
        "f32[4, 3], 1, i64[2, 1]{0..3}, f32[2, 3]",
        "i64[4, 3], 1, i64[2, 2]{0..3}, i64[2, 3]",
        "f32[], 0, i64[]{0..1}, f32[]",
        "i64[4, 3], 0, i64[0, 3], i64[2, 3]",
    ]),
    OpDef::kernel(
        "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        "A copy with a number written to the places along a dimension that an index tensor names.",
        scatter_infer,
        |call| scatter(call, Combine::Replace, Start::Own),
    ).tolerance(Tolerance::Exact)
    .tags(&[Tag::Core])
    .lower(to_loops::scatter)
    .derivative(d::scatter_value)
    .samples(&["f32[4, 3], 1, i64[4, 1]{0..3}, 2.5", "i64[4, 3], 0, i64[1, 3]{0..4}, 1"]),
    OpDef::kernel(
        "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        "`scatter` that adds or multiplies.",
        scatter_infer,
        |call| scatter(call, old_reduce(call.args.str(4)?)?, Start::Own),
    )
    .derivative(d::scatter_old_reduce)
    .decompose(by::scatter_reduce)
    .samples(&["f32[4, 3], 1, i64[2, 2]{0..3}, f32[2, 3], reduce='add'", "f32[4, 3], 1, i64[2, 2]{0..3}, f32[2, 3], reduce='multiply'"]),
    OpDef::kernel(
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        "`scatter` of a number that adds or multiplies.",
        scatter_infer,
        |call| scatter(call, old_reduce(call.args.str(4)?)?, Start::Own),
    )
    .derivative(d::scatter_old_reduce)
    .decompose(by::scatter_value_reduce)
    .samples(&["f32[4, 3], 1, i64[2, 2]{0..3}, 3, reduce='multiply'"]),
    OpDef::written(
        "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "`scatter` in place.",
        "aten.scatter.src",
    )
    .samples(&["f32[4, 3], 1, i64[2, 2]{0..3}, f32[2, 3]"]),
    OpDef::written(
        "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
        "`scatter` in place.",
        "aten.scatter.value",
    )
    .samples(&["f32[4, 3], 1, i64[4, 1]{0..3}, 2.5"]),
    OpDef::written(
        "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor(a!)",
        "`scatter` in place.",
        "aten.scatter.reduce",
    )
    .samples(&["f32[4, 3], 1, i64[2, 2]{0..3}, f32[2, 3], reduce='add'"]),
    OpDef::written(
        "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor(a!)",
        "`scatter` in place.",
        "aten.scatter.value_reduce",
    )
    .samples(&["f32[4, 3], 1, i64[2, 2]{0..3}, 3, reduce='add'"]),
    OpDef::kernel(
        "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        "A copy with elements added to where an index tensor names their place along a dimension.",
        scatter_infer,
        |call| scatter(call, Combine::Sum, Start::Own),
    )
    .lower(to_loops::scatter_add)
    .tags(&[Tag::Core])
    .derivative(d::scatter_add)
    .samples(&["f32[4, 3], 1, i64[4, 5]{0..3}, f32[4, 5]", "bf16[4], 0, i64[9]{0..4}, bf16[9]", "c64[4], 0, i64[9]{0..4}, c64[9]"]),
    OpDef::written(
        "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
        "`scatter_add` in place.",
        "aten.scatter_add.default",
    )
    .samples(&["f32[4, 3], 1, i64[4, 5]{0..3}, f32[4, 5]"]),
    OpDef::kernel(
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
        "A copy with elements combined into where an index tensor names their place along a dimension.",
        scatter_infer,
        scatter_reduce,
    )
    .tags(&[Tag::Core])
    .derivative(d::scatter_reduce)
    .samples(&[
        "f32[4, 3], 1, i64[4, 5]{0..3}, f32[4, 5], 'sum'",
        "f32[4, 3], 1, i64[4, 5]{0..3}, f32[4, 5], 'mean', include_self=False",
        "i64[4, 3], 0, i64[5, 3]{0..4}, i64[5, 3], 'mean'",
        "f64[4, 3], 0, i64[5, 3]{0..4}, f64[5, 3], 'amin', include_self=False",
        "bf16[4, 3], 0, i64[5, 3]{0..4}, bf16[5, 3], 'prod'",
    ]),
    OpDef::written(
        "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)",
        "`scatter_reduce` in place.",
        "aten.scatter_reduce.two",
    )
    .samples(&["f32[4, 3], 1, i64[4, 5]{0..3}, f32[4, 5], 'sum'"]),
    OpDef::kernel(
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        "A copy with a number where a mask holds.",
        masked_infer,
        masked_fill,
    ).tolerance(Tolerance::Exact)
    .tags(&[Tag::Pointwise])
    .tolerance(Tolerance::Exact)
    .derivative(d::masked_fill)
    .decompose(by_formula::masked_fill)
    .samples(&["f32[4, 3], b8[4, 3], -inf", "i64[3]<[2], b8[4, 1], 7", "bf16[], b8[2], 0.5"]),
    OpDef::kernel(
        "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        "A copy with the element of a tensor without dimensions where a mask holds.",
        masked_infer,
        masked_fill,
    ).tolerance(Tolerance::Exact)
    .tags(&[Tag::Pointwise])
    .tolerance(Tolerance::Exact)
    .derivative(d::masked_fill)
    .decompose(by_formula::masked_fill)
    .samples(&["f32[4, 3], b8[4, 3], f32[]"]),
    OpDef::written(
        "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
        "`masked_fill` in place.",
        "aten.masked_fill.Scalar",
    )
    .tags(&[Tag::Pointwise])
    .samples(&["f32[4, 3], b8[4, 3], 2.5"]),
    OpDef::written(
        "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
        "`masked_fill` in place.",
        "aten.masked_fill.Tensor",
    )
    .tags(&[Tag::Pointwise])
    .samples(&["f32[4, 3], b8[4, 3], f32[]"]),
    OpDef::kernel(
        "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
        "A copy with the elements of a source, in order, where a mask holds.",
        masked_infer,
        masked_scatter,
    ).tolerance(Tolerance::Exact)
    .tags(&[Tag::Core])
    .tolerance(Tolerance::Exact)
    .derivative(d::masked_scatter)
    .samples(&["f32[4, 3], b8[4, 3], f32[12]", "i64[3], b8[2, 1], i64[6]"]),
    OpDef::written(
        "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
        "`masked_scatter` in place.",
        "aten.masked_scatter.default",
    )
    .samples(&["f32[4, 3], b8[4, 3], f32[12]"]),
    OpDef::kernel(
        "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
        "A copy with elements written or added at positions that count through the whole tensor.",
        put_infer,
        put,
    )
    .free(Freedom::WriteOrder)
    .derivative(d::put)
    .decompose(by::put)
    .samples(&[
        "f32[4, 3], i64[1]{-12..12}, f32[1]",
        "i64[4, 3], i64[5]{-12..12}, i64[5]",
        "f32[4, 3]<[1, 4], i64[2, 2]{0..12}, f32[4], True",
    ]),
    OpDef::written(
        "aten::put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)",
        "`put` in place.",
        "aten.put.default",
    )
    .samples(&["f32[4, 3], i64[5]{0..12}, f32[5]"]),
];

/// How an element is combined with what is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combine {
    Replace,
    Sum,
    Product,
    Mean,
    Max,
    Min,
}

/// What the places that are written to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// What the tensor holds there.
    Own,
    /// What combining nothing gives.
    Nothing,
}

impl Start {
    fn from_flag(include_self: bool) -> Self {
        if include_self { Self::Own } else { Self::Nothing }
    }
}

/// The names of reductions that `scatter` takes.
fn old_reduce(name: &str) -> Result<Combine, OpError> {
    match name {
        "add" => Ok(Combine::Sum),
        "multiply" => Ok(Combine::Product),
        other => invalid!("reduce must be 'add' or 'multiply', not '{other}'"),
    }
}

/// The names of reductions that `scatter_reduce` and `index_reduce` take.
fn new_reduce(name: &str) -> Result<Combine, OpError> {
    match name {
        "sum" => Ok(Combine::Sum),
        "prod" => Ok(Combine::Product),
        "mean" => Ok(Combine::Mean),
        "amax" => Ok(Combine::Max),
        "amin" => Ok(Combine::Min),
        other => invalid!("reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin', not '{other}'"),
    }
}

/// What combining needs of a carrier.
trait Combined: Carrier + Factor {
    /// Whether it is greater than, or is not a number; complex numbers compare by nothing.
    fn over(self, other: Self) -> bool;
    /// Whether it is less than, or is not a number.
    fn under(self, other: Self) -> bool;
    /// It divided by a count; integers round down.
    fn shared(self, count: i64) -> Self;
    /// The smallest and the largest value.
    const ENDS: (Self, Self);
    /// It as an element type holds it, where that is a half precision.
    fn held(self, _: DType) -> Self {
        self
    }
}

impl Combined for f32 {
    fn over(self, other: Self) -> bool {
        self > other || self.is_nan()
    }
    fn under(self, other: Self) -> bool {
        self < other || self.is_nan()
    }
    fn shared(self, count: i64) -> Self {
        self / count as Self
    }
    const ENDS: (Self, Self) = (Self::NEG_INFINITY, Self::INFINITY);
    fn held(self, dtype: DType) -> Self {
        match dtype {
            DType::F16 => pyrite_tensor::element::F16::from_f32(self).to_f32(),
            DType::BF16 => pyrite_tensor::element::BF16::from_f32(self).to_f32(),
            _ => self,
        }
    }
}

impl Combined for f64 {
    fn over(self, other: Self) -> bool {
        self > other || self.is_nan()
    }
    fn under(self, other: Self) -> bool {
        self < other || self.is_nan()
    }
    fn shared(self, count: i64) -> Self {
        self / count as Self
    }
    const ENDS: (Self, Self) = (Self::NEG_INFINITY, Self::INFINITY);
}

impl Combined for i64 {
    fn over(self, other: Self) -> bool {
        self > other
    }
    fn under(self, other: Self) -> bool {
        self < other
    }
    fn shared(self, count: i64) -> Self {
        self.div_euclid(count)
    }
    const ENDS: (Self, Self) = (Self::MIN, Self::MAX);
}

impl Combined for pyrite_tensor::Complex64 {
    fn over(self, _: Self) -> bool {
        false
    }
    fn under(self, _: Self) -> bool {
        false
    }
    fn shared(self, count: i64) -> Self {
        self / count as f64
    }
    const ENDS: (Self, Self) = (Self::ZERO, Self::ZERO);
}

/// A dense tensor that elements are combined into.
struct Target<T> {
    values: Vec<T>,
    combine: Combine,
    start: Start,
    /// How many elements went to each place; empty where that does not matter.
    counts: Vec<i64>,
    /// The type that every sum is rounded to: PyTorch adds to the memory of some operators, and beside it in others.
    held: Option<DType>,
}

impl<T: Combined> Target<T> {
    fn new(x: &Tensor, combine: Combine, start: Start) -> Self {
        let counted = combine == Combine::Mean || start == Start::Nothing;
        Self { values: T::load(x), combine, start, counts: vec![0; if counted { x.numel() } else { 0 }], held: None }
    }

    /// The same where every addition rounds to the type of the result.
    fn in_place(x: &Tensor, combine: Combine) -> Self {
        Self { held: Some(x.dtype()), ..Self::new(x, combine, Start::Own) }
    }

    fn put(&mut self, at: usize, value: T) {
        if let Some(count) = self.counts.get_mut(at) {
            if *count == 0 && self.start == Start::Nothing {
                self.values[at] = match self.combine {
                    Combine::Replace | Combine::Sum | Combine::Mean => T::ZERO,
                    Combine::Product => T::from_i64(1),
                    Combine::Max => T::ENDS.0,
                    Combine::Min => T::ENDS.1,
                };
            }
            *count += 1;
        }
        let old = self.values[at];
        self.values[at] = match self.combine {
            Combine::Replace => value,
            Combine::Sum | Combine::Mean => {
                let sum = old.plus(value);
                self.held.map_or(sum, |dtype| sum.held(dtype))
            }
            Combine::Product => old.times(value),
            // Not a number stays, whichever side it is on.
            Combine::Max => {
                if value.over(old) {
                    value
                } else {
                    old
                }
            }
            Combine::Min => {
                if value.under(old) {
                    value
                } else {
                    old
                }
            }
        };
    }

    fn store(mut self, out: &Tensor) {
        if self.combine == Combine::Mean {
            let own = i64::from(self.start == Start::Own);
            for (value, count) in self.values.iter_mut().zip(&self.counts) {
                *value = value.shared((count + own).max(1));
            }
        }
        T::store(out, &self.values);
    }
}

fn preserved(x: &Meta) -> Value<Meta> {
    Meta { device: x.device.clone(), ..Meta::strided(&x.shape, &preserved_strides(x), x.dtype) }.into()
}

fn index_put_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, values) = (args.tensor(0)?, args.tensor(2)?);
    if x.dtype != values.dtype {
        invalid!("index_put wants values of type {}, not {}", x.dtype, values.dtype);
    }
    Ok(preserved(x))
}

/// Combines values into a copy of `x` at indexed places.
fn put_at(
    x: &Tensor,
    indices: &[Option<&Tensor>],
    negative: Negative,
    values: &Tensor,
    combine: Combine,
    out: &Tensor,
) -> Result<(), OpError> {
    let plan = Plan::new(x.shape(), &layout::contiguous_strides(x.shape()), indices, negative)?;
    let sizes = |dims: &[i64]| dims.iter().map(|d| (*d).into()).collect::<SymDims>();
    let common = broadcast(&[&sizes(&plan.shape), &sizes(values.shape())])?;
    // Leading sizes of 1 in the values are dropped.
    let extra = common.len() - plan.shape.len();
    if common[..extra].iter().any(|d| !d.is_eq(1)) || sizes(&plan.shape)[..] != common[extra..] {
        invalid!("values of shape {:?} do not broadcast to the indexed shape {:?}", values.shape(), plan.shape);
    }
    let lead = values.rank().saturating_sub(plan.shape.len());
    let values = values.reshaped(&values.shape()[lead..]).expanded(&plan.shape);
    carried!(x.dtype(), T => {
        let mut target = Target::<T>::in_place(x, combine);
        let values = T::load(&values);
        let steps = layout::contiguous_strides(&plan.shape);
        plan.each_row(&steps, |at, place, (len, step, value_step)| {
            for j in 0..len as i64 {
                target.put((at + j * step) as usize, values[(place + j * value_step) as usize]);
            }
        });
        target.store(out);
    });
    Ok(())
}

fn accumulate(flag: bool) -> Combine {
    if flag { Combine::Sum } else { Combine::Replace }
}

fn index_put(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, indices, values) = (call.args.tensor(0)?, call.args.opt_tensors(1)?, call.args.tensor(2)?);
    let out = call.allocate(0)?;
    put_at(x, &indices, Negative::Wrap, values, accumulate(call.args.bool(3)?), &out)?;
    Ok(out.into())
}

fn masked_index_put(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, mask, indices) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.opt_tensors(2)?);
    let (values, out) = (call.args.tensor(3)?, call.allocate(0)?);
    if x.numel() == 0 {
        return Ok(out.into());
    }
    let shape = broadcast(&[&Meta::of(values).shape, &Meta::of(mask).shape])?;
    let shape = Meta::contiguous(&shape, values.dtype()).layout()?.shape;
    let masked = values.expanded(&shape).cast(x.dtype());
    let zero = Tensor::scalar(pyrite_tensor::Scalar::Int(0), x.dtype());
    fill_where(&masked, &excluded(&mask.expanded(&shape)), &zero);
    put_at(x, &indices, Negative::Clamp, &masked, Combine::Sum, &out)?;
    Ok(out.into())
}

/// `dim`, and the index as a list of positions along it.
fn positions(args: &Args<'_, Tensor>, x: &Tensor, negative: Negative) -> Result<(usize, Vec<usize>), OpError> {
    let dim = wrap_dim(args.int(1)?, x.rank())?;
    let size = x.shape().get(dim).copied().unwrap_or(1);
    let indices = args.tensor(2)?.to_i64s();
    let places = indices.into_iter().map(|i| bounded(i, size, negative).map(|i| i as usize));
    Ok((dim, places.collect::<Result<_, _>>()?))
}

fn check_positions(args: &Args<'_, Meta>) -> Result<usize, OpError> {
    let (x, index) = (args.tensor(0)?, args.tensor(2)?);
    if !index.dtype.is_integral() || index.dtype == DType::Bool {
        invalid!("an index tensor must hold integers, not {}", index.dtype);
    }
    if index.rank() > 1 {
        invalid!("{} wants an index of one dimension, not {}", args.schema.name, index.rank());
    }
    wrap_dim(args.int(1)?, x.rank())
}

fn index_dim_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index, source) = (args.tensor(0)?, args.tensor(2)?, args.tensor(3)?);
    let dim = check_positions(args)?;
    if x.dtype != source.dtype {
        invalid!("{} wants a source of type {}, not {}", args.schema.name, x.dtype, source.dtype);
    }
    let mut expected: SymDims = x.shape.clone();
    if let Some(size) = expected.get_mut(dim) {
        *size = index.numel();
    }
    // Only `index_copy` takes a source of one element with another number of dimensions.
    let has_dims = x.rank() > 0 && source.rank() > 0;
    if has_dims || args.schema.param("alpha").is_some() || args.schema.param("reduce").is_some() {
        expect_same_shape("the source", &source.shape, &expected)?;
    }
    if !has_dims && !source.numel().is_eq(index.numel()) {
        invalid!("a source of shape {:?} for an index of shape {:?}", source.shape, index.shape);
    }
    if let Some(reduce) = args.schema.param("reduce") {
        new_reduce(args.str(reduce)?)?;
    }
    Ok(x.fresh(&x.shape, x.dtype).into())
}

/// Combines the slices of a source into a copy of `x`; `convert` is applied to each element.
fn combine_slices<T: Combined>(
    target: &mut Target<T>,
    shape: &[i64],
    (dim, places): (usize, &[usize]),
    source: &[T],
    convert: impl Fn(T) -> T,
) {
    let size = shape.get(dim).copied().unwrap_or(1) as usize;
    let inner = shape.iter().skip(dim + 1).product::<i64>() as usize;
    let outer = shape.iter().take(dim).product::<i64>() as usize;
    for o in 0..outer {
        for (i, place) in places.iter().enumerate() {
            for j in 0..inner {
                let value = convert(source[(o * places.len() + i) * inner + j]);
                target.put((o * size + place) * inner + j, value);
            }
        }
    }
}

fn index_add(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, source, out) = (call.args.tensor(0)?, call.args.tensor(3)?, call.allocate(0)?);
    let (dim, places) = positions(&call.args, x, Negative::Refuse)?;
    let alpha = match (x.dtype(), call.args.scalar(4)?) {
        (DType::Bool, alpha) => Tensor::scalar(Scalar::Int(alpha.to_bool().into()), DType::I64),
        (dtype, alpha) => Tensor::scalar(alpha, dtype),
    };
    carried!(x.dtype(), T => {
        let mut target = if adds_in_place(x.rank(), dim) {
            Target::<T>::in_place(x, Combine::Sum)
        } else {
            Target::<T>::new(x, Combine::Sum, Start::Own)
        };
        let (alpha, source) = (T::load(&alpha)[0], T::load(source));
        combine_slices(&mut target, x.shape(), (dim, &places), &source, |v| v.times(alpha));
        target.store(&out);
    });
    Ok(out.into())
}

fn index_copy(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    combine_index(call, Combine::Replace, Start::Own)
}

fn index_reduce(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    combine_index(call, new_reduce(call.args.str(4)?)?, Start::from_flag(call.args.bool(5)?))
}

fn combine_index(call: &Call<'_>, combine: Combine, start: Start) -> Result<Value<Tensor>, OpError> {
    let (x, source, out) = (call.args.tensor(0)?, call.args.tensor(3)?, call.allocate(0)?);
    let (dim, places) = positions(&call.args, x, Negative::Refuse)?;
    carried!(x.dtype(), T => {
        let mut target = Target::<T>::new(x, combine, start);
        combine_slices(&mut target, x.shape(), (dim, &places), &T::load(source), |v| v);
        target.store(&out);
    });
    Ok(out.into())
}

fn index_fill_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    check_positions(args)?;
    expect_single(args, 3)?;
    Ok(preserved(args.tensor(0)?))
}

/// An error when a fill value is a tensor with dimensions.
fn expect_single(args: &Args<'_, Meta>, at: usize) -> Result<(), OpError> {
    match args.value(at).as_tensor() {
        Some(value) if value.rank() > 0 => {
            invalid!("{} wants a value without dimensions, not shape {:?}", args.schema.name, value.shape)
        }
        _ => Ok(()),
    }
}

/// A number, or the element of a tensor without dimensions, in the type of `x`.
fn single(args: &Args<'_, Tensor>, at: usize, x: &Tensor) -> Result<Tensor, OpError> {
    let value = match args.value(at).as_tensor() {
        Some(tensor) => tensor.item(),
        None => args.scalar(at)?,
    };
    if value.dtype().category() == Category::Complex && !x.dtype().is_complex() {
        invalid!("{} cannot put a complex number into a tensor of type {}", args.schema.name, x.dtype());
    }
    Ok(Tensor::scalar(value, x.dtype()))
}

fn index_fill(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, out) = (call.args.tensor(0)?, call.allocate(0)?);
    let (dim, places) = positions(&call.args, x, Negative::Wrap)?;
    let value = single(&call.args, 3, x)?;
    out.write_from(x);
    let shape = x.shape();
    let inner = shape.iter().skip(dim + 1).product::<i64>() as usize;
    let size = shape.get(dim).copied().unwrap_or(1) as usize;
    let mut mask = vec![false; x.numel()];
    for block in mask.chunks_mut((size * inner).max(1)) {
        for place in &places {
            block[place * inner..(place + 1) * inner].fill(true);
        }
    }
    fill_where(&out, &mask, &value);
    Ok(out.into())
}

fn scatter_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = wrap_dim(args.int(1)?, x.rank())?;
    check_along(x, dim, index, "to write")?;
    let reduce = args.schema.param("reduce").map(|at| args.value(at));
    if x.dtype == DType::Bool && reduce.is_some_and(|reduce| matches!(reduce, Value::Str(kind) if &**kind == "mean")) {
        invalid!("{} has no mean of bools; convert them to floats", args.schema.name);
    }
    if let Some(source) = args.value(3).as_tensor() {
        if source.dtype != x.dtype {
            invalid!("{} wants a source of type {}, not {}", args.schema.name, x.dtype, source.dtype);
        }
        check_along(source, usize::MAX, index, "to read")?;
    }
    Ok(x.fresh(&x.shape, x.dtype).into())
}

fn scatter(call: &Call<'_>, combine: Combine, start: Start) -> Result<Value<Tensor>, OpError> {
    let (x, index, out) = (call.args.tensor(0)?, call.args.tensor(2)?, call.allocate(0)?);
    if index.numel() == 0 {
        out.write_from(x);
        return Ok(out.into());
    }
    let dim = wrap_dim(call.args.int(1)?, x.rank())?;
    let size = x.shape().get(dim).copied().unwrap_or(1);
    // A tensor without dimensions has one element, and so has an index that goes with it.
    let index =
        if index.rank() == 0 || x.rank() == 0 { index.reshaped(&[index.numel() as i64]) } else { index.clone() };
    let strides = if x.rank() == 0 { vec![1] } else { layout::contiguous_strides(x.shape()).to_vec() };
    let source = match call.args.value(3).as_tensor() {
        Some(source) => source.clone(),
        None => Tensor::scalar(call.args.scalar(3)?, x.dtype()).expanded(index.shape()),
    };
    let steps = if source.rank() == 0 { vec![1] } else { source.stride().to_vec() };
    let base = source.layout().offset as usize;
    carried!(x.dtype(), T => {
        let mut target = Target::<T>::new(x, combine, start);
        // The source may be larger than the index: its whole storage is what the strides address.
        let flat = source.view(source.dtype(), pyrite_tensor::Layout::contiguous(&[(source.storage().nbytes() / source.dtype().size()) as i64]))?;
        dense::read::<T, _>(&flat, |values| {
            along(&index, dim, (size, &strides), &steps, |at, place| target.put(at, values[base + place]))
        })?;
        target.store(&out);
    });
    Ok(out.into())
}

fn scatter_reduce(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    scatter(call, new_reduce(call.args.str(4)?)?, Start::from_flag(call.args.bool(5)?))
}

fn masked_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, mask) = (args.tensor(0)?, args.tensor(1)?);
    if mask.dtype != DType::Bool {
        invalid!("{} wants a mask of bools, not {}", args.schema.name, mask.dtype);
    }
    if args.schema.param("source").is_some() {
        let source = args.tensor(2)?;
        if source.dtype != x.dtype {
            invalid!("{} wants a source of type {}, not {}", args.schema.name, x.dtype, source.dtype);
        }
    } else {
        expect_single(args, 2)?;
    }
    if let Value::Int(number) = args.value(2)
        && let (Some(number), Some((least, most))) = (number.as_int(), numbers_of(x.dtype))
        && !(least..=most).contains(&number)
    {
        invalid!("{} cannot put {number} into a tensor of type {}", args.schema.name, x.dtype);
    }
    Ok(x.fresh(&broadcast(&[&x.shape, &mask.shape])?, x.dtype).into())
}

/// The integers that torch converts to a type; unsigned types wrap those below zero. Nothing where it takes all of them.
fn numbers_of(dtype: DType) -> Option<(i64, i64)> {
    let (least, most) = dtype.integers()?;
    (most < i64::MAX).then_some((if least == 0 { -most } else { least }, most))
}

/// Where a mask does not hold, in order.
pub(super) fn excluded(mask: &Tensor) -> Vec<bool> {
    mask.to_bools().into_iter().map(|holds| !holds).collect()
}

/// Writes one value to the places of a tensor where the mask, in order, holds.
pub(super) fn fill_where(out: &Tensor, mask: &[bool], value: &Tensor) {
    crate::moved!(out.dtype(), T => {
        let value = value.storage().read::<T>()[value.layout().offset as usize];
        let walk = pyrite_tensor::walk::Walk::new(out.shape(), &[out.stride()]);
        let (base, step) = (out.layout().offset, walk.row_strides[0] as usize);
        let mut to = out.storage().write::<T>();
        let mut mask = mask.iter();
        walk.each_row(|at| {
            let start = (base + at[0]) as usize;
            for (j, holds) in mask.by_ref().take(walk.row).enumerate() {
                if *holds {
                    to[start + j * step] = value;
                }
            }
        });
    });
}

fn masked_fill(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, mask, out) = (call.args.tensor(0)?, call.args.tensor(1)?, call.allocate(0)?);
    let value = single(&call.args, 2, x)?;
    out.write_from(&x.expanded(out.shape()));
    fill_where(&out, &mask.expanded(out.shape()).to_bools(), &value);
    Ok(out.into())
}

fn masked_scatter(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, mask, source) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let out = call.allocate(0)?;
    let mask = mask.expanded(out.shape()).to_bools();
    let wanted = mask.iter().filter(|v| **v).count();
    if wanted > source.numel() {
        invalid!("masked_scatter has {} elements in its source for {wanted} places", source.numel());
    }
    out.write_from(&x.expanded(out.shape()));
    let source = source.contiguous();
    crate::moved!(out.dtype(), T => {
        let from = source.storage().read::<T>();
        let mut from = from.iter().skip(source.layout().offset as usize);
        let mut to = out.storage().write::<T>();
        for (place, _) in to.iter_mut().zip(&mask).filter(|(_, holds)| **holds) {
            if let Some(value) = from.next() {
                *place = *value;
            }
        }
    });
    Ok(out.into())
}

fn put_infer(args: &Args<'_, Meta>) -> Result<Value<Meta>, OpError> {
    let (x, index, source) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    if x.dtype != source.dtype || index.dtype != DType::I64 {
        invalid!(
            "put wants 64-bit positions and a source of type {}, not {} and {}",
            x.dtype,
            index.dtype,
            source.dtype
        );
    }
    if !index.numel().is_eq(source.numel()) {
        invalid!("put has {} positions for {} elements", index.numel(), source.numel());
    }
    Ok(preserved(x))
}

fn put(call: &Call<'_>) -> Result<Value<Tensor>, OpError> {
    let (x, index, source) = (call.args.tensor(0)?, call.args.tensor(1)?, call.args.tensor(2)?);
    let (out, count) = (call.allocate(0)?, x.numel() as i64);
    let places = index.to_i64s().into_iter().map(|i| bounded(i, count, Negative::Wrap));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let combine = accumulate(call.args.bool(3)?);
    carried!(x.dtype(), T => {
        let mut target = Target::<T>::in_place(x, combine);
        for (at, value) in places.iter().zip(T::load(source)) {
            target.put(*at as usize, value);
        }
        target.store(&out);
    });
    Ok(out.into())
}
