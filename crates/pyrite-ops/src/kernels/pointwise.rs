//! Pointwise kernels: a function per carrier, applied to every element.
//!
//! ```ignore
//! Pointwise::over(call, [x, y], dtype)?.f32(|[x, y]| x + y).f64(|[x, y]| x + y).i64(|[x, y]| x.wrapping_add(y)).finish()
//! ```
//!
//! The first function whose type carries the compute type runs; `f64` also serves for the smaller floats, so a kernel
//! that needs no speed gives it alone. Results are converted to the element type of the output.

use num_complex::Complex64;
use pyrite_ir::{Call, OpError, Value};
use pyrite_tensor::walk::Walk;
use pyrite_tensor::{DType, Tensor};
use rayon::prelude::*;

use super::Carrier;

/// Below this many elements a loop stays on one thread.
const PARALLEL: usize = 1 << 15;

/// A pointwise computation that is looking for the function of its type.
pub struct Pointwise<const N: usize> {
    name: String,
    compute: DType,
    result: Tensor,
    /// The inputs and the result with their dimensions in the order in which the result lies in memory.
    inputs: [Tensor; N],
    out: Tensor,
    done: bool,
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

    /// Prepares a computation into a tensor; `name` is for messages.
    pub fn into(name: &str, inputs: [&Tensor; N], compute: DType, result: Tensor) -> Self {
        let mut order: Vec<usize> = (0..result.rank()).collect();
        order.sort_by_key(|d| std::cmp::Reverse(result.stride()[*d]));
        let inputs = inputs.map(|t| t.expanded(result.shape()).permuted(&order));
        Self { name: name.to_owned(), compute, inputs, out: result.permuted(&order), result, done: false }
    }

    /// The function for single and half precision.
    #[must_use]
    pub fn f32(self, f: impl Fn([f32; N]) -> f32 + Sync) -> Self {
        self.run(f)
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

    /// The result, or an error when no function fits the type.
    pub fn finish(self) -> Result<Value<Tensor>, OpError> {
        if self.done {
            Ok(self.result.into())
        } else {
            Err(OpError::unsupported(format!("{} for {}", self.name, self.compute)))
        }
    }

    fn run<T: Carrier>(mut self, f: impl Fn([T; N]) -> T + Sync) -> Self {
        if !self.done && T::carries(self.compute) {
            self.done = true;
            if self.out.dtype() == T::DTYPE && self.inputs.iter().all(|t| t.dtype() == T::DTYPE) {
                direct(&self.inputs, &self.out, &f);
            } else {
                converted(&self.inputs, &self.out, &f);
            }
        }
        self
    }
}

/// Computes on the tensors' own memory. The output is fresh, so it shares no storage with an input.
fn direct<T: Carrier, const N: usize>(inputs: &[Tensor; N], out: &Tensor, f: &(impl Fn([T; N]) -> T + Sync)) {
    let read: Vec<_> = inputs.iter().map(|t| t.storage().read::<T>()).collect();
    let mut written = out.storage().write::<T>();
    let strides: Vec<&[i64]> = std::iter::once(out.stride()).chain(inputs.iter().map(Tensor::stride)).collect();
    let walk = Walk::new(out.shape(), &strides);
    let steps: [usize; N] = std::array::from_fn(|i| walk.row_strides[i + 1] as usize);
    let out_step = walk.row_strides[0] as usize;
    let unit = out_step == 1 && steps.iter().all(|s| *s == 1);
    walk.each_row(|at| {
        let starts: [usize; N] = std::array::from_fn(|i| (inputs[i].layout().offset + at[i + 1]) as usize);
        let target = at[0] as usize + out.layout().offset as usize;
        if unit {
            let rows: [&[T]; N] = std::array::from_fn(|i| &read[i][starts[i]..starts[i] + walk.row]);
            let to = &mut written[target..target + walk.row];
            if walk.row >= PARALLEL {
                let chunk = walk.row.div_ceil(rayon::current_num_threads());
                to.par_chunks_mut(chunk).enumerate().for_each(|(n, to)| {
                    let rows: [&[T]; N] = std::array::from_fn(|i| &rows[i][n * chunk..n * chunk + to.len()]);
                    row(&rows, to, f);
                });
            } else {
                row(&rows, to, f);
            }
        } else {
            for j in 0..walk.row {
                written[target + j * out_step] = f(std::array::from_fn(|i| read[i][starts[i] + j * steps[i]]));
            }
        }
    });
}

fn row<T: Copy, const N: usize>(rows: &[&[T]; N], to: &mut [T], f: &impl Fn([T; N]) -> T) {
    let len = to.len();
    let rows: [&[T]; N] = std::array::from_fn(|i| &rows[i][..len]);
    for (j, to) in to.iter_mut().enumerate() {
        *to = f(std::array::from_fn(|i| rows[i][j]));
    }
}

/// Computes on copies in the carrier type.
fn converted<T: Carrier, const N: usize>(inputs: &[Tensor; N], out: &Tensor, f: &(impl Fn([T; N]) -> T + Sync)) {
    let loaded: [Vec<T>; N] = std::array::from_fn(|i| T::load(&inputs[i]));
    let rows: [&[T]; N] = std::array::from_fn(|i| loaded[i].as_slice());
    let mut result = vec![T::from_i64(0); out.numel()];
    row(&rows, &mut result, f);
    T::store(out, &result);
}
