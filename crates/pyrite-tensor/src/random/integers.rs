//! Filling tensors with whole numbers and bools, and permutations, as PyTorch's CPU kernels do.

use half::{bf16, f16};

use crate::walk::Walk;
use crate::{DType, Element, Tensor, dispatch};

use super::generator::{RandomError, TorchGenerator, require};
use super::order::{fill, visit_order};

/// From this many values on, PyTorch draws 64 bits for each.
const WIDE_RANGE: u64 = 1 << 28;
/// From this many elements on, PyTorch builds permutations inside out with 64-bit draws.
const LARGE_PERMUTATION: i64 = (u32::MAX / 20) as i64;

/// Bits of the significand, the implicit one included.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => f16::MANTISSA_DIGITS,
        DType::BF16 => bf16::MANTISSA_DIGITS,
        DType::F32 => f32::MANTISSA_DIGITS,
        _ => f64::MANTISSA_DIGITS,
    }
}

/// An integer in the element type, rounded once as a C++ cast does.
fn cast_integer<T: Element>(value: i64) -> T {
    match T::DTYPE {
        DType::F32 | DType::F16 | DType::BF16 => <T as Element>::from_f64(f64::from(value as f32)),
        _ => T::from_i64(value),
    }
}

/// An integer rounded to a float type and back.
fn round_trip(value: i64, dtype: DType) -> i64 {
    dispatch!(dtype, T => cast_integer::<T>(value).to_i64())
}

/// The smallest and the largest integer that a type holds.
fn bounds(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::Bool => (0.0, 1.0),
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::I16 => (-32_768.0, 32_767.0),
        DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
        DType::F16 => (-65_504.0, 65_504.0),
        _ => (f64::MIN, f64::MAX),
    }
}

/// The limits moved inward until they survive rounding to a float type, as PyTorch moves them.
fn representable(low: i64, high: i64, dtype: DType) -> (i64, i64) {
    if !dtype.is_float() {
        return (low, high);
    }
    let gap =
        |value: i64| 1i64 << (value.unsigned_abs().checked_ilog2().unwrap_or(0) + 1).saturating_sub(digits(dtype));
    let (above, below) = (low.wrapping_add(1), high.wrapping_sub(1));
    let (rounded_above, rounded_below) = (round_trip(above, dtype), round_trip(below, dtype));
    (
        if rounded_above < low { rounded_above.wrapping_add(gap(above)) } else { low },
        if rounded_below >= high { rounded_below.wrapping_sub(gap(below)) } else { high },
    )
}

fn check_bounds(first: i64, last: i64, dtype: DType) -> Result<(), RandomError> {
    let (smallest, largest) = bounds(dtype);
    let inside = |value: i64| (smallest..=largest).contains(&(value as f64));
    require(inside(first) && inside(last), "random_", || format!("{first}..={last} leaves the range of {dtype}"))
}

impl TorchGenerator {
    /// `torch.randint(low, high)` and `random_(low, high)`: whole numbers in [low, high), for every type but the
    /// complex ones.
    pub fn random_range(&mut self, out: &Tensor, low: i64, high: i64) -> Result<(), RandomError> {
        if out.dtype().is_complex() {
            return Err(RandomError::dtype("random_", out));
        }
        require(low < high, "random_", || format!("expects low < high, but [{low}, {high}) is empty"))?;
        let (low, high) = representable(low, high, out.dtype());
        require(low < high, "random_", || format!("[{low}, {high}) is empty in {}", out.dtype()))?;
        check_bounds(low, high - 1, out.dtype())?;
        self.fill_range(out, low, (high as u64).wrapping_sub(low as u64));
        Ok(())
    }

    /// `random_(low, None)`: whole numbers from `low` to the largest of the type (for a float type, the largest up
    /// to which all integers are exact).
    pub fn random_from(&mut self, out: &Tensor, low: i64) -> Result<(), RandomError> {
        let dtype = out.dtype();
        if dtype.is_complex() {
            return Err(RandomError::dtype("random_", out));
        }
        if low == i64::MIN {
            if !matches!(dtype, DType::I64 | DType::F64 | DType::F32 | DType::BF16) {
                return Err(RandomError::dtype("random_ over 64 bits", out));
            }
            dispatch!(dtype, T => fill(out, || cast_integer::<T>(self.next_u64() as i64)));
            return Ok(());
        }
        let last = match dtype {
            DType::I64 => i64::MAX,
            d if d.is_float() => 1 << digits(d),
            d => bounds(d).1 as i64,
        };
        let (low, _) = representable(low, i64::MAX, dtype);
        require(low < last || !dtype.is_float(), "random_", || format!("{low}..={last} is empty in {dtype}"))?;
        check_bounds(low, last, dtype)?;
        self.fill_range(out, low, (last as u64).wrapping_sub(low as u64).wrapping_add(1));
        Ok(())
    }

    fn fill_range(&mut self, out: &Tensor, low: i64, range: u64) {
        dispatch!(out.dtype(), T => fill(out, || {
            let bits = if range >= WIDE_RANGE { self.next_u64() } else { u64::from(self.next_u32()) };
            cast_integer::<T>((bits % range).wrapping_add(low as u64) as i64)
        }));
    }

    /// `random_()`: whole numbers from zero to the largest of the type (for a float type, to two to the number of
    /// its digits).
    pub fn random_full(&mut self, out: &Tensor) -> Result<(), RandomError> {
        let dtype = out.dtype();
        let count = match dtype {
            DType::Bool => 2,
            DType::U8 => 1 << 8,
            DType::I8 => 1 << 7,
            DType::I16 => 1 << 15,
            DType::I32 => 1 << 31,
            DType::I64 => 1 << 63,
            d if d.is_float() => (1u64 << digits(d)) + 1,
            _ => return Err(RandomError::dtype("random_", out)),
        };
        let wide = matches!(dtype, DType::I64 | DType::F64);
        dispatch!(dtype, T => fill(out, || {
            let bits = if wide { self.next_u64() } else { u64::from(self.next_u32()) };
            cast_integer::<T>((bits % count) as i64)
        }));
        Ok(())
    }

    /// `torch.randperm(n)`: the numbers below `n` in random order.
    pub fn permutation(&mut self, n: i64) -> Vec<i64> {
        if n < LARGE_PERMUTATION {
            let mut out: Vec<i64> = (0..n).collect();
            for i in 0..out.len().saturating_sub(1) {
                let other = i + self.next_u32() as usize % (out.len() - i);
                out.swap(i, other);
            }
            return out;
        }
        let mut out = Vec::with_capacity(n as usize);
        for i in 0..n {
            let other = (self.next_u64() % (i as u64 + 1)) as usize;
            out.push(i);
            out[i as usize] = out[other];
            out[other] = i;
        }
        out
    }

    /// `bernoulli_(p)`: one with probability `p`, else zero, for every type but the complex ones.
    pub fn bernoulli_scalar(&mut self, out: &Tensor, p: f64) -> Result<(), RandomError> {
        require((0.0..=1.0).contains(&p), "bernoulli_", || format!("expects 0 <= p <= 1, but p is {p}"))?;
        if out.dtype().is_complex() {
            return Err(RandomError::dtype("bernoulli_", out));
        }
        dispatch!(out.dtype(), T => fill(out, || T::from_i64(i64::from(self.next_f64() < p))));
        Ok(())
    }

    /// `torch.bernoulli(p)` and `bernoulli_(p)`: each element has its own probability. `p` is a float tensor that
    /// broadcasts to the output.
    pub fn bernoulli_tensor(&mut self, out: &Tensor, p: &Tensor) -> Result<(), RandomError> {
        if out.dtype().is_complex() {
            return Err(RandomError::dtype("bernoulli_", out));
        }
        if !p.dtype().is_float() {
            return Err(RandomError::dtype("bernoulli_ with probabilities", p));
        }
        // Both are walked in the order of the output.
        let order = visit_order(out.layout());
        let p = p.expanded(out.shape());
        let pick = |dims: &[i64]| order.iter().map(|d| dims[*d]).collect::<Vec<i64>>();
        let walk = Walk::new(&pick(out.shape()), &[&pick(p.stride())]);
        let mut probabilities = Vec::with_capacity(out.numel());
        dispatch!(p.dtype(), T => {
            let data = p.storage().read::<T>();
            walk.each_row(|at| {
                let start = p.layout().offset + at[0];
                probabilities.extend(
                    (0..walk.row as i64).map(|i| data[(start + i * walk.row_strides[0]) as usize].to_f64()),
                );
            });
        });
        if let Some(bad) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return require(false, "bernoulli_", || format!("expects 0 <= p <= 1, but an element is {bad}"));
        }
        let wide = p.dtype() == DType::F64;
        let mut next = probabilities.into_iter();
        dispatch!(out.dtype(), T => fill(out, || {
            let draw = if wide { self.next_f64() } else { f64::from(self.next_f32()) };
            T::from_i64(i64::from(next.next().is_some_and(|p| draw < p)))
        }));
        Ok(())
    }

    /// The factors by which `torch.dropout(x, p, train=True)` multiplies its input: zero with probability `p`, else
    /// `1 / (1 - p)`. For `p` of zero and one PyTorch draws nothing; neither does this.
    pub fn dropout_factors(&mut self, out: &Tensor, p: f64) -> Result<(), RandomError> {
        require((0.0..=1.0).contains(&p), "dropout", || format!("expects 0 <= p <= 1, but p is {p}"))?;
        if !out.dtype().is_float() {
            return Err(RandomError::dtype("dropout", out));
        }
        let keep = 1.0 - p;
        if p == 0.0 || p == 1.0 {
            dispatch!(out.dtype(), T => fill(out, || <T as Element>::from_f64(keep)));
            return Ok(());
        }
        let scale = if out.dtype() == DType::F64 { 1.0 / keep } else { f64::from(1.0 / keep as f32) };
        dispatch!(out.dtype(), T => {
            let (kept, dropped) = (<T as Element>::from_f64(scale), <T as Element>::from_f64(0.0));
            fill(out, || if self.next_f64() < keep { kept } else { dropped });
        });
        Ok(())
    }

    /// `geometric_(p)`: the number of trials to the first success, for float and integer types.
    pub fn geometric(&mut self, out: &Tensor, p: f64) -> Result<(), RandomError> {
        require(p > 0.0 && p < 1.0, "geometric_", || format!("expects 0 < p < 1, but p is {p}"))?;
        if out.dtype() == DType::Bool || out.dtype().is_complex() {
            return Err(RandomError::dtype("geometric_", out));
        }
        let scale = (-p).ln_1p();
        dispatch!(out.dtype(), T => fill(out, || <T as Element>::from_f64((self.next_f64().ln() / scale).ceil())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_move_inward_to_what_a_float_type_can_hold() {
        assert_eq!(representable(0, 65_504, DType::F16), (0, 65_472));
        assert_eq!(representable(0, 10, DType::F16), (0, 10));
        assert_eq!(representable(-5, 300, DType::I64), (-5, 300));
    }

    #[test]
    fn an_empty_or_too_wide_range_is_refused() {
        let out = Tensor::empty(&[2], DType::I8).unwrap();
        let mut generator = TorchGenerator::new(0);
        assert!(generator.random_range(&out, 3, 3).is_err());
        assert!(generator.random_range(&out, 0, 300).is_err());
        assert!(generator.random_range(&out, i64::MIN, i64::MAX).is_err());
        assert!(generator.random_from(&out, i64::MIN).is_err());
        assert!(generator.bernoulli_scalar(&out, 1.5).is_err());
        assert!(generator.geometric(&out, 0.0).is_err());
    }
}
