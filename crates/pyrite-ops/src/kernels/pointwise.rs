//! Pointwise kernels: a function per carrier, applied to every element.
//!
//! ```ignore
//! Pointwise::over(call, [x, y], dtype)?.f32(|[x, y]| x + y).f64(|[x, y]| x + y).i64(|[x, y]| x.wrapping_add(y)).finish()
//! ```
//!
//! The first function whose type carries the compute type runs; `f64` also serves for the smaller floats, so a kernel
//! that needs no speed gives it alone. Results are converted to the element type of the output. Functions that answer
//! yes or no are given to `test_f64`, `test_i64` and `test_c128`.
//!
//! Operands of another element type than the carrier are converted before they are broadcast; a number therefore costs
//! nothing.

use num_complex::Complex64;
use pyrite_ir::{Call, Meta, OpError, Value};
use pyrite_tensor::element::Bool8;
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Element, Tensor};

use crate::rules::operand_dtype;
use pyrite_kernels::Carrier;

/// Below this many elements a loop stays on one thread.
const PARALLEL: usize = 1 << 15;
/// Operands that do not lie densely along a row are gathered in blocks of this many elements.
const BLOCK: usize = 128;

/// An argument as an operand: a tensor, or a number that stands for one.
pub fn operand(call: &Call<'_>, index: usize) -> Result<Tensor, OpError> {
    match call.args.value(index) {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        _ => call.args.scalar(index).map(Tensor::number),
    }
}

/// The type that operands have in common.
pub fn common_dtype(operands: &[&Tensor]) -> DType {
    let metas: Vec<Meta> = operands.iter().map(|t| Meta::of(t)).collect();
    operand_dtype(&metas)
}

/// A function of whole slices. It is called once for a row or a block, so that one copy of the loops around it serves all
/// functions of a type: the crate has half the code for it.
type OnSlices<'a, T, U, const N: usize> = dyn Fn([&[T]; N], &mut [U]) + Sync + 'a;

/// A pointwise computation that is looking for the function of its type.
pub struct Pointwise<const N: usize> {
    name: String,
    compute: DType,
    inputs: [Tensor; N],
    result: Tensor,
    done: Result<bool, OpError>,
}

impl<const N: usize> Pointwise<N> {
    /// Prepares a computation of the first result of a call, in the given type.
    pub fn over(call: &Call<'_>, inputs: [&Tensor; N], compute: DType) -> Result<Self, OpError> {
        Ok(Self::into(&call.args.schema.name, inputs, compute, call.allocate(0)?))
    }

    /// Prepares a computation of the first result of a call, in that result's own type.
    pub fn as_result(call: &Call<'_>, inputs: [&Tensor; N]) -> Result<Self, OpError> {
        Self::over(call, inputs, call.out_meta(0)?.dtype)
    }

    /// Prepares a computation into a fresh tensor; `name` is for messages.
    pub fn into(name: &str, inputs: [&Tensor; N], compute: DType, result: Tensor) -> Self {
        Self { name: name.to_owned(), compute, inputs: inputs.map(Tensor::clone), result, done: Ok(false) }
    }

    /// With every operand rounded to the compute type first, for functions that are sensitive to the last bit.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let compute = self.compute;
        self.inputs = self.inputs.map(|t| if t.dtype() == compute { t } else { t.cast(compute) });
        self
    }

    /// The function for single and half precision.
    #[must_use]
    pub fn f32(self, f: impl Fn([f32; N]) -> f32 + Sync) -> Self {
        self.run(f)
    }

    /// The function for single and half precision, of whole slices: for one that computes many elements at a time
    /// ([`pyrite_kernels::vector_math`]).
    #[must_use]
    pub fn f32_slices(self, f: impl Fn([&[f32]; N], &mut [f32]) + Sync) -> Self {
        self.run_slices(f)
    }

    /// The function for double precision, and for the smaller floats when they have none of their own.
    #[must_use]
    pub fn f64(self, f: impl Fn([f64; N]) -> f64 + Sync) -> Self {
        self.run(f)
    }

    /// The function for integers and bools.
    #[must_use]
    pub fn i64(self, f: impl Fn([i64; N]) -> i64 + Sync) -> Self {
        self.run(f)
    }

    /// The function for complex numbers.
    #[must_use]
    pub fn c128(self, f: impl Fn([Complex64; N]) -> Complex64 + Sync) -> Self {
        self.run(f)
    }

    /// The function from complex numbers to real ones.
    #[must_use]
    pub fn c128_to_f64(self, f: impl Fn([Complex64; N]) -> f64 + Sync) -> Self {
        self.run(f)
    }

    /// The function from real numbers to complex ones.
    #[must_use]
    pub fn f64_to_c128(self, f: impl Fn([f64; N]) -> Complex64 + Sync) -> Self {
        self.run(f)
    }

    /// The yes-or-no function for floats.
    #[must_use]
    pub fn test_f64(self, f: impl Fn([f64; N]) -> bool + Sync) -> Self {
        self.run(move |x| Bool8::from(f(x)))
    }

    /// The yes-or-no function for integers and bools.
    #[must_use]
    pub fn test_i64(self, f: impl Fn([i64; N]) -> bool + Sync) -> Self {
        self.run(move |x| Bool8::from(f(x)))
    }

    /// The yes-or-no function for complex numbers.
    #[must_use]
    pub fn test_c128(self, f: impl Fn([Complex64; N]) -> bool + Sync) -> Self {
        self.run(move |x| Bool8::from(f(x)))
    }

    /// The result, or an error when no function fits the type.
    pub fn finish(self) -> Result<Value<Tensor>, OpError> {
        if self.done? {
            Ok(self.result.into())
        } else {
            Err(OpError::unsupported(format!("{} for {}", self.name, self.compute)))
        }
    }

    fn run<T: Carrier, U: Element>(self, f: impl Fn([T; N]) -> U + Sync) -> Self {
        self.run_slices(|parts, to| dense(parts, to, &f))
    }

    fn run_slices<T: Carrier, U: Element>(mut self, f: impl Fn([&[T]; N], &mut [U]) + Sync) -> Self {
        if self.done == Ok(false) && T::carries(self.compute) {
            self.done = self.fill(&f).map(|()| true);
        }
        self
    }

    /// Computes every element, in the order in which the result lies in memory.
    fn fill<T: Carrier, U: Element>(&self, f: &OnSlices<'_, T, U, N>) -> Result<(), OpError> {
        let mut order: Vec<usize> = (0..self.result.rank()).collect();
        order.sort_by_key(|d| std::cmp::Reverse(self.result.stride()[*d]));
        let inputs = self.inputs.each_ref().map(|t| {
            let carried = if t.dtype() == T::DTYPE { t.clone() } else { t.cast(T::DTYPE) };
            carried.expanded(self.result.shape()).permuted(&order)
        });
        let out = self.result.permuted(&order);
        if out.dtype() == U::DTYPE && out.layout().is_contiguous() {
            rows(&inputs, &out, f);
        } else {
            let computed = Tensor::empty(out.shape(), U::DTYPE)?;
            rows(&inputs, &computed, f);
            out.write_from(&computed);
        }
        Ok(())
    }
}

/// Computes a dense output row by row, on several threads when it is large.
fn rows<T: Element, U: Element, const N: usize>(inputs: &[Tensor; N], out: &Tensor, f: &OnSlices<'_, T, U, N>) {
    let read: [_; N] = inputs.each_ref().map(|t| t.storage().read::<T>());
    let data: [&[T]; N] = read.each_ref().map(|guard| &**guard);
    let bases = inputs.each_ref().map(|t| t.layout().offset);
    let strides: Vec<&[i64]> = std::iter::once(out.stride()).chain(inputs.iter().map(Tensor::stride)).collect();
    let walk = Walk::new(out.shape(), &strides);
    let steps: [usize; N] = std::array::from_fn(|i| walk.row_strides[i + 1] as usize);
    let count = out.numel();
    if count == 0 {
        return;
    }
    let start = out.layout().offset as usize;
    let mut storage = out.storage().write::<U>();
    let written = &mut storage[start..start + count];
    let starts = |at: &[i64]| -> [usize; N] { std::array::from_fn(|i| (bases[i] + at[i + 1]) as usize) };
    let threads = if count < PARALLEL { 1 } else { pyrite_threads::count() };
    if threads == 1 {
        let mut rest = written.chunks_exact_mut(walk.row);
        walk.each_row(|at| {
            if let Some(to) = rest.next() {
                row(&data, starts(at), steps, to, f);
            }
        });
    } else if walk.rows() < 4 * threads {
        // Few long rows: each is divided.
        let chunk = walk.row.div_ceil(4 * threads).max(BLOCK);
        let mut rest = written.chunks_exact_mut(walk.row);
        walk.each_row(|at| {
            let begin = starts(at);
            if let Some(to) = rest.next() {
                pyrite_threads::chunks(to, chunk, |n, to| {
                    row(&data, std::array::from_fn(|i| begin[i] + n * chunk * steps[i]), steps, to, f);
                });
            }
        });
    } else {
        let share = walk.rows().div_ceil(4 * threads);
        pyrite_threads::chunks(written, share * walk.row, |n, to| {
            let mut rest = to.chunks_exact_mut(walk.row);
            let first = n * share;
            walk.rows_in(first..walk.rows().min(first + share), |at| {
                if let Some(to) = rest.next() {
                    row(&data, starts(at), steps, to, f);
                }
            });
        });
    }
}

/// Computes one row, or a part of one.
fn row<T: Element, U, const N: usize>(
    data: &[&[T]; N],
    starts: [usize; N],
    steps: [usize; N],
    to: &mut [U],
    f: &OnSlices<'_, T, U, N>,
) {
    if steps.iter().all(|s| *s == 1) {
        return f(std::array::from_fn(|i| &data[i][starts[i]..starts[i] + to.len()]), to);
    }
    let mut buffers = [[T::from_i64(0); BLOCK]; N];
    for i in 0..N {
        if steps[i] == 0 {
            let length = to.len().min(BLOCK);
            buffers[i][..length].fill(data[i][starts[i]]);
        }
    }
    for (n, to) in to.chunks_mut(BLOCK).enumerate() {
        let from: [usize; N] = std::array::from_fn(|i| starts[i] + n * BLOCK * steps[i]);
        for i in (0..N).filter(|i| steps[*i] > 1) {
            for (slot, value) in buffers[i][..to.len()].iter_mut().zip(data[i][from[i]..].iter().step_by(steps[i])) {
                *slot = *value;
            }
        }
        let parts: [&[T]; N] = std::array::from_fn(|i| {
            if steps[i] == 1 { &data[i][from[i]..from[i] + to.len()] } else { &buffers[i][..to.len()] }
        });
        f(parts, to);
    }
}

fn dense<T: Copy, U, const N: usize>(parts: [&[T]; N], to: &mut [U], f: &impl Fn([T; N]) -> U) {
    let len = to.len();
    let parts: [&[T]; N] = std::array::from_fn(|i| &parts[i][..len]);
    for (j, to) in to.iter_mut().enumerate() {
        *to = f(std::array::from_fn(|i| parts[i][j]));
    }
}
