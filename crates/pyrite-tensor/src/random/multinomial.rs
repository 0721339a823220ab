//! Sampling categories, as `torch.multinomial` does on the CPU.

use crate::{DType, Element, Tensor, dispatch};

use super::generator::{RandomError, TorchGenerator, require};

/// Whether a category can be drawn again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// It can.
    With,
    /// It cannot.
    Without,
}

const NAME: &str = "multinomial";

impl TorchGenerator {
    /// `torch.multinomial(weights, samples)`: indices into the last dimension of one row or several rows of weights.
    ///
    /// Exact for `f32` and `f64`. In half precision equal quotients are common, and PyTorch orders them as its
    /// partial sort happens to; here the first index wins.
    pub fn multinomial(
        &mut self,
        weights: &Tensor,
        samples: usize,
        replacement: Replacement,
    ) -> Result<Tensor, RandomError> {
        if !weights.dtype().is_float() {
            return Err(RandomError::dtype(NAME, weights));
        }
        require(matches!(weights.rank(), 1 | 2), NAME, || {
            format!("expects one or two dimensions, got {:?}", weights.shape())
        })?;
        let categories = weights.shape().last().copied().unwrap_or(0) as usize;
        require(samples > 0, NAME, || "cannot sample zero categories".into())?;
        require(replacement == Replacement::With || samples <= categories, NAME, || {
            format!("cannot sample {samples} of {categories} categories without replacement")
        })?;
        let values = weights.to_f64s();
        let rows = values.chunks_exact(categories.max(1));
        for row in rows.clone() {
            let valid = row.iter().all(|w| w.is_finite() && *w >= 0.0) && row.iter().sum::<f64>() > 0.0;
            require(valid, NAME, || "weights must be finite, not negative, and not all zero".into())?;
        }
        let picked: Vec<i64> = if replacement == Replacement::With && samples > 1 {
            let wide = weights.dtype() == DType::F64;
            rows.flat_map(|row| self.with_replacement(row, samples, wide)).collect()
        } else {
            let noise = Tensor::empty_strided(weights.shape(), weights.stride(), weights.dtype())
                .expect("a tensor of this shape exists");
            self.exponential(&noise, 1.0)?;
            let noise = noise.to_f64s();
            rows.zip(noise.chunks_exact(categories))
                .flat_map(|(row, noise)| largest_quotients(row, noise, samples, weights.dtype()))
                .collect()
        };
        let mut shape: Vec<i64> = weights.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = samples as i64;
        }
        Ok(Tensor::from_slice(&picked, &shape))
    }

    fn with_replacement(&mut self, row: &[f64], samples: usize, wide: bool) -> Vec<i64> {
        // Sums and quotients are rounded as the accumulating type of PyTorch rounds them.
        let round = |value: f64| if wide { value } else { f64::from(value as f32) };
        let mut sum = 0.0;
        let mut upto: Vec<f64> = row
            .iter()
            .map(|w| {
                sum = round(sum + w);
                sum
            })
            .collect();
        for value in &mut upto {
            *value = round(*value / sum);
        }
        if let Some(last) = upto.last_mut() {
            *last = 1.0;
        }
        (0..samples)
            .map(|_| {
                let draw = self.next_f64();
                upto.partition_point(|bound| *bound < draw) as i64
            })
            .collect()
    }
}

/// The indices of the largest `weight / noise`, largest first.
fn largest_quotients(row: &[f64], noise: &[f64], samples: usize, dtype: DType) -> Vec<i64> {
    let rounded = |value: f64| dispatch!(dtype, T => <T as Element>::from_f64(value).to_f64());
    let quotients: Vec<f64> = row.iter().zip(noise).map(|(w, n)| rounded(w / n)).collect();
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| quotients[*b].total_cmp(&quotients[*a]));
    order.into_iter().take(samples).map(|index| index as i64).collect()
}
