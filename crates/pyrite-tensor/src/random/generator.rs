//! PyTorch's generator on the CPU: its state and its raw draws.
//!
//! The functions that fill tensors are in the sibling modules. They give, bit for bit, what PyTorch 2.15 gives on
//! x86-64 with AVX2 for the same sequence of calls after `torch.manual_seed(seed)`; how many threads PyTorch uses
//! does not matter, because it fills serially. The numbers that go through the C library (`log1p`, `sin`, `tan`, …)
//! are those of the C library that Rust links.

use crate::{DType, Tensor};

use super::mt19937::Mt19937;

/// Why a tensor cannot be filled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RandomError {
    /// The distribution has no values of this type.
    #[error("{function} cannot fill a tensor of type {dtype}")]
    DType {
        /// The function as PyTorch calls it.
        function: &'static str,
        /// The type of the output.
        dtype: DType,
    },
    /// A parameter of the distribution is out of its range.
    #[error("{function}: {reason}")]
    Parameter {
        /// The function as PyTorch calls it.
        function: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl RandomError {
    pub(super) fn dtype(function: &'static str, out: &Tensor) -> Self {
        Self::DType { function, dtype: out.dtype() }
    }
}

/// Checks a condition on a parameter.
pub(super) fn require(holds: bool, function: &'static str, reason: impl FnOnce() -> String) -> Result<(), RandomError> {
    if holds { Ok(()) } else { Err(RandomError::Parameter { function, reason: reason() }) }
}

/// PyTorch's generator for the CPU.
///
/// Every method that fills takes the output by shared reference and writes through the storage's lock. An output
/// that is not contiguous is filled in the order in which PyTorch visits it: by ascending stride, which for a dense
/// tensor is the order of memory.
#[derive(Clone)]
pub struct TorchGenerator {
    pub(super) seed: u64,
    pub(super) engine: Mt19937,
    /// The second number of the last pair of the scalar normal distribution.
    pub(super) cached_normal: Option<f64>,
}

impl TorchGenerator {
    /// The generator after `torch.manual_seed(seed)`. A negative seed of Python is its value modulo 2⁶⁴. Only the
    /// low 32 bits reach the engine, as in PyTorch.
    pub fn new(seed: u64) -> Self {
        Self { seed, engine: Mt19937::new(seed as u32), cached_normal: None }
    }

    /// The seed it started from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        self.engine.next_u32()
    }

    /// 64 random bits; the first draw gives the upper half.
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// A number in [0, 1) with 24 random bits.
    pub fn next_f32(&mut self) -> f32 {
        (self.next_u32() & 0x00ff_ffff) as f32 * (1.0 / 16_777_216.0)
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() & ((1 << 53) - 1)) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A normal number of the scalar path: pairs by the Box-Muller transform, the second one kept for the next call.
    pub(super) fn next_normal(&mut self, mean: f64, std: f64) -> f64 {
        let sample = if let Some(kept) = self.cached_normal.take() {
            kept
        } else {
            let angle = std::f64::consts::TAU * self.next_f64();
            let radius = (-2.0 * (-self.next_f64()).ln_1p()).sqrt();
            self.cached_normal = Some(radius * angle.sin());
            radius * angle.cos()
        };
        sample.mul_add(std, mean)
    }
}

impl std::fmt::Debug for TorchGenerator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TorchGenerator(seed {})", self.seed)
    }
}
