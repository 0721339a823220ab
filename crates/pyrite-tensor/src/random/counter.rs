//! Our own generator: Philox4x32-10 of Salmon, Moraes, Dror and Shaw (Random123).
//!
//! A number is a function of (seed, stream, index) and of nothing else, so that elements can be computed alone, in
//! any order and on any number of threads. Elements are numbered in the order of the shape, whatever the strides.
//!
//! Invariants: two streams of one seed never share a block; a block is never used for two elements.

use super::stream::uniform_bits;
use crate::Tensor;

/// A stateless generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterGenerator {
    seed: u64,
    stream: u64,
}

/// Ten rounds of multiplication and exchange.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xd251_1f53;
        let second = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

impl CounterGenerator {
    /// The generator of a seed and a stream. Give every operation of a program its own stream.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { seed, stream }
    }

    /// The four words at an index.
    pub fn words(self, index: u64) -> [u32; 4] {
        philox(
            [index as u32, (index >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32],
            [self.seed as u32, (self.seed >> 32) as u32],
        )
    }

    /// 64 bits at an index.
    pub fn bits(self, index: u64) -> u64 {
        let [low, high, ..] = self.words(index);
        u64::from(high) << 32 | u64::from(low)
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn uniform(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A normal number with mean zero and deviation one, by the Box-Muller transform.
    pub fn normal(self, index: u64) -> f64 {
        let [a, b, c, d] = self.words(index);
        let unit = |high: u32, low: u32| (u64::from(high) << 32 | u64::from(low)) >> 11;
        // The first number is in (0, 1], so that its logarithm is finite.
        let first = (unit(a, b) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0);
        let second = unit(c, d) as f64 * (1.0 / 9_007_199_254_740_992.0);
        (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    }

    /// A whole number in [low, high), without the bias of a remainder beyond 2⁻⁶⁴.
    ///
    /// # Panics
    /// When the range is empty.
    pub fn integer(self, index: u64, low: i64, high: i64) -> i64 {
        assert!(low < high, "an empty range");
        let range = high.wrapping_sub(low) as u64;
        let scaled = (u128::from(self.bits(index)) * u128::from(range)) >> 64;
        low.wrapping_add(scaled as i64)
    }

    /// Fills a tensor with numbers in [0, 1), each below one also after rounding to the element type.
    pub fn fill_uniform(self, out: &Tensor) {
        let bits = uniform_bits(out.dtype());
        let scale = 0.5f64.powi(bits);
        fill(out, |index| (self.bits(index) >> (64 - bits)) as f64 * scale);
    }

    /// Fills a tensor with normal numbers.
    pub fn fill_normal(self, out: &Tensor) {
        fill(out, |index| self.normal(index));
    }
}

fn fill(out: &Tensor, value: impl Fn(u64) -> f64) {
    let values: Vec<f64> = (0..out.numel() as u64).map(value).collect();
    out.write_f64s(&values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn the_published_vectors_come_out() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn an_element_depends_on_its_index_alone() {
        let generator = CounterGenerator::new(7, 1);
        let whole = Tensor::empty(&[64], DType::F64).unwrap();
        generator.fill_uniform(&whole);
        assert_eq!(whole.to_f64s()[40], generator.uniform(40));
        let transposed = Tensor::empty_strided(&[8, 8], &[1, 8], DType::F64).unwrap();
        generator.fill_uniform(&transposed);
        assert_eq!(transposed.to_f64s(), whole.to_f64s());
        assert_ne!(CounterGenerator::new(7, 2).words(0), generator.words(0));
    }

    #[test]
    fn the_moments_are_those_of_the_distributions() {
        let generator = CounterGenerator::new(1, 0);
        let n = 40_000;
        let normals: Vec<f64> = (0..n).map(|i| generator.normal(i)).collect();
        let mean = normals.iter().sum::<f64>() / n as f64;
        let variance = normals.iter().map(|v| v * v).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let uniform = (0..n).map(|i| generator.uniform(i)).sum::<f64>() / n as f64;
        assert!((uniform - 0.5).abs() < 0.01, "{uniform}");
    }

    #[test]
    fn integers_stay_in_their_range_and_uniforms_below_one() {
        let generator = CounterGenerator::new(9, 9);
        assert!((0..1000).all(|i| (-3..4).contains(&generator.integer(i, -3, 4))));
        assert!((0..100).all(|i| generator.integer(i, i64::MIN, i64::MAX) < i64::MAX));
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            let out = Tensor::empty(&[5000], dtype).unwrap();
            generator.fill_uniform(&out);
            assert!(out.to_f64s().iter().all(|v| (0.0..1.0).contains(v)));
        }
    }
}
