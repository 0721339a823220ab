//! Filling tensors with real distributions, as PyTorch's CPU kernels do.

use half::{bf16, f16};

use crate::{DType, Element, Layout, Tensor, dispatch};

use super::box_muller::BoxMuller;
use super::generator::{RandomError, TorchGenerator, require};
use super::order::fill;

/// A complex tensor as a real one with a last dimension of two.
fn as_real(out: &Tensor) -> Tensor {
    let layout = out.layout();
    let mut real = Layout { offset: layout.offset * 2, ..layout.clone() };
    real.shape.push(2);
    real.stride.iter_mut().for_each(|stride| *stride *= 2);
    real.stride.push(1);
    out.view(out.dtype().to_real(), real).expect("the parts of a complex tensor lie in its storage")
}

/// The largest finite value of a float type.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::MAX.to_f64(),
        DType::BF16 => bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

impl TorchGenerator {
    /// `torch.rand` and `uniform_`: numbers in [from, to) of any float or complex type.
    pub fn uniform(&mut self, out: &Tensor, from: f64, to: f64) -> Result<(), RandomError> {
        if out.dtype().is_complex() {
            return self.uniform(&as_real(out), from, to);
        }
        if !out.dtype().is_float() {
            return Err(RandomError::dtype("uniform_", out));
        }
        let limit = largest(out.dtype());
        require((-limit..=limit).contains(&from) && (-limit..=limit).contains(&to), "uniform_", || {
            format!("[{from}, {to}) leaves the range of {}", out.dtype())
        })?;
        require(from <= to && to - from <= limit, "uniform_", || format!("[{from}, {to}) is not a range"))?;
        match out.dtype() {
            DType::F64 => fill(out, || not_the_end(self.next_f64().mul_add(to - from, from), from, to)),
            dtype => {
                let (low, high) = (from as f32, to as f32);
                dispatch!(dtype, T => {
                    let (first, end) = (<T as Element>::from_f64(from), <T as Element>::from_f64(to));
                    let mut draw = || <T as Element>::from_f64(f64::from(self.next_f32().mul_add(high - low, low)));
                    fill(out, || not_the_end(draw(), first, end));
                });
            }
        }
        Ok(())
    }

    /// `torch.randn` and `normal_`, for any float or complex type. A complex number gets half the variance in each
    /// part.
    pub fn normal(&mut self, out: &Tensor, mean: f64, std: f64) -> Result<(), RandomError> {
        require(std >= 0.0, "normal_", || format!("expects std >= 0, but std is {std}"))?;
        if out.dtype().is_complex() {
            return self.normal(&as_real(out), mean, std / std::f64::consts::SQRT_2);
        }
        if !out.dtype().is_float() {
            return Err(RandomError::dtype("normal_", out));
        }
        if out.numel() < 16 || !out.layout().is_contiguous() {
            dispatch!(out.dtype(), T => fill(out, || <T as Element>::from_f64(self.next_normal(mean, std))));
            return Ok(());
        }
        let (start, size) = (out.layout().offset as usize, out.numel());
        match out.dtype() {
            DType::F64 => {
                let data = &mut out.storage().write::<f64>()[start..start + size];
                self.normal_blocks(data, Self::next_f64, mean, std);
            }
            DType::F32 => {
                let data = &mut out.storage().write::<f32>()[start..start + size];
                self.normal_blocks(data, Self::next_f32, mean as f32, std as f32);
            }
            DType::F16 => {
                let data = &mut out.storage().write::<f16>()[start..start + size];
                self.normal_half_blocks(data, f16::from_f32, mean as f32, std as f32);
            }
            _ => {
                let data = &mut out.storage().write::<bf16>()[start..start + size];
                self.normal_half_blocks(data, bf16::from_f32, mean as f32, std as f32);
            }
        }
        Ok(())
    }

    /// Draws all uniform numbers first, then transforms; a rest of less than sixteen makes the last sixteen be drawn
    /// again.
    fn normal_blocks<T: BoxMuller>(&mut self, data: &mut [T], draw: impl Fn(&mut Self) -> T, mean: T, std: T) {
        data.fill_with(|| draw(self));
        let (blocks, rest) = data.as_chunks_mut::<16>();
        for block in blocks {
            T::transform(block, mean, std);
        }
        if !rest.is_empty()
            && let Some(last) = data.last_chunk_mut::<16>()
        {
            last.fill_with(|| draw(self));
            T::transform(last, mean, std);
        }
    }

    /// Draws and transforms block by block in single precision, and rounds at the end.
    fn normal_half_blocks<T: Element>(&mut self, data: &mut [T], round: impl Fn(f32) -> T, mean: f32, std: f32) {
        let mut convert = |block: &mut [T; 16]| {
            let mut values = [0.0f32; 16];
            values.fill_with(|| self.next_f32());
            f32::transform(&mut values, mean, std);
            *block = values.map(&round);
        };
        let (blocks, rest) = data.as_chunks_mut::<16>();
        blocks.iter_mut().for_each(&mut convert);
        if !rest.is_empty()
            && let Some(last) = data.last_chunk_mut::<16>()
        {
            convert(last);
        }
    }

    /// `exponential_(lambda)`, for float types.
    pub fn exponential(&mut self, out: &Tensor, lambda: f64) -> Result<(), RandomError> {
        require(lambda > 0.0, "exponential_", || format!("expects lambda > 0, but lambda is {lambda}"))?;
        self.float_fill("exponential_", out, |g| -1.0 / lambda * (-g.next_f64()).ln_1p())
    }

    /// `cauchy_(median, sigma)`, for float types.
    pub fn cauchy(&mut self, out: &Tensor, median: f64, sigma: f64) -> Result<(), RandomError> {
        require(sigma > 0.0, "cauchy_", || format!("expects sigma > 0, but sigma is {sigma}"))?;
        self.float_fill("cauchy_", out, |g| sigma.mul_add((std::f64::consts::PI * (g.next_f64() - 0.5)).tan(), median))
    }

    /// `log_normal_(mean, std)`, for float types.
    pub fn log_normal(&mut self, out: &Tensor, mean: f64, std: f64) -> Result<(), RandomError> {
        require(std > 0.0, "log_normal_", || format!("expects std > 0, but std is {std}"))?;
        self.float_fill("log_normal_", out, |g| g.next_normal(mean, std).exp())
    }

    fn float_fill(
        &mut self,
        function: &'static str,
        out: &Tensor,
        mut draw: impl FnMut(&mut Self) -> f64,
    ) -> Result<(), RandomError> {
        if !out.dtype().is_float() {
            return Err(RandomError::dtype(function, out));
        }
        dispatch!(out.dtype(), T => fill(out, || <T as Element>::from_f64(draw(self))));
        Ok(())
    }
}

/// Rounding can reach the end of a half-open range; PyTorch gives its start then.
fn not_the_end<T: PartialEq>(value: T, from: T, to: T) -> T {
    if value == to { from } else { value }
}
