//! The generator's state in the bytes that `torch.get_rng_state()` gives and `torch.set_rng_state()` takes.
//!
//! The layout, little-endian: the seed (u64), how many words are left plus one (i32), whether it is seeded (i32), the
//! next word (u64), the 624 words (u64 each), three numbers of which the second is the kept normal number (f64), whether
//! it is there (i32, padded), and a place that PyTorch keeps for single precision and does not use.

use super::TorchGenerator;
use super::mt19937::{Mt19937, N};

/// Bytes of a state.
pub const STATE_BYTES: usize = 5056;

const LEFT: usize = 8;
const SEEDED: usize = 12;
const NEXT: usize = 16;
const WORDS: usize = 24;
const NORMAL: usize = WORDS + 8 * N + 8;
const HAS_NORMAL: usize = NORMAL + 16;

impl TorchGenerator {
    /// The generator of a state; `None` when the bytes are none.
    pub fn from_state(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != STATE_BYTES || read::<4>(bytes, SEEDED) == [0; 4] {
            return None;
        }
        let word = |index: usize| u64::from_le_bytes(read(bytes, WORDS + 8 * index)) as u32;
        let left = usize::try_from(i32::from_le_bytes(read(bytes, LEFT))).ok()?;
        let engine = Mt19937::from_words(&std::array::from_fn(word), (N + 1).checked_sub(left)?)?;
        let kept = read::<4>(bytes, HAS_NORMAL) != [0; 4];
        Some(Self {
            seed: u64::from_le_bytes(read(bytes, 0)),
            engine,
            cached_normal: kept.then(|| f64::from_le_bytes(read(bytes, NORMAL))),
        })
    }

    /// Its state, for [`Self::from_state`] and for PyTorch.
    pub fn to_state(&self) -> Vec<u8> {
        let mut bytes = vec![0; STATE_BYTES];
        let (words, used) = self.engine.words();
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.seed.to_le_bytes());
        put(LEFT, &((N + 1 - used) as i32).to_le_bytes());
        put(SEEDED, &1i32.to_le_bytes());
        put(NEXT, &(used as u64).to_le_bytes());
        for (index, word) in words.iter().enumerate() {
            put(WORDS + 8 * index, &u64::from(*word).to_le_bytes());
        }
        if let Some(kept) = self.cached_normal {
            put(NORMAL, &kept.to_le_bytes());
            put(HAS_NORMAL, &1i32.to_le_bytes());
        }
        bytes
    }
}

fn read<const LENGTH: usize>(bytes: &[u8], at: usize) -> [u8; LENGTH] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Tensor};

    #[test]
    fn a_state_goes_on_where_the_generator_stopped() {
        for draws in [0, 1, 623, 624, 625, 2000] {
            let mut generator = TorchGenerator::new(7);
            (0..draws).for_each(|_| {
                generator.next_u32();
            });
            let mut again = TorchGenerator::from_state(&generator.to_state()).unwrap();
            assert_eq!(again.seed(), 7);
            for _ in 0..700 {
                assert_eq!(again.next_u32(), generator.next_u32(), "after {draws} draws");
            }
        }
    }

    #[test]
    fn the_kept_normal_number_is_part_of_the_state() {
        let mut generator = TorchGenerator::new(7);
        let out = Tensor::empty(&[1], DType::F64).unwrap();
        generator.normal(&out, 0.0, 1.0).unwrap();
        let mut again = TorchGenerator::from_state(&generator.to_state()).unwrap();
        assert_eq!(again.next_normal(0.0, 1.0), generator.next_normal(0.0, 1.0));
    }

    #[test]
    fn other_bytes_are_no_state() {
        assert!(TorchGenerator::from_state(&[0; 16]).is_none());
        assert!(TorchGenerator::from_state(&[0; STATE_BYTES]).is_none());
        let mut impossible = TorchGenerator::new(1).to_state();
        impossible[LEFT..LEFT + 4].copy_from_slice(&700i32.to_le_bytes());
        assert!(TorchGenerator::from_state(&impossible).is_none());
    }
}
