//! What tells one content of a tensor from another.
//!
//! Our own memory counts the writes to it. External memory, such as torch's, does not: torch's count of writes misses those
//! through `.data` and through other libraries. Its bytes are summed up instead, by a 64-bit hash at the speed of memory,
//! which takes a fraction of the time of packing a matrix. Two contents share a sum with a chance of 2⁻⁶⁴.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;
use pyrite_tensor::{Tensor, Version};

/// Bytes that are summed up at a time, by one thread.
const PART: usize = 1 << 18;

/// A content; equal ones are the same for everybody who reads it as a tensor of one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    /// That of our own memory.
    Own(Version),
    /// That of external memory, by its bytes.
    External(u64),
}

impl Fingerprint {
    /// The content of a tensor.
    pub fn of(tensor: &Tensor) -> Self {
        tensor.storage().version().map_or_else(|| Self::External(sum(tensor)), Self::Own)
    }
}

/// The sum of the bytes from a tensor's first element to its last.
fn sum(tensor: &Tensor) -> u64 {
    let (layout, size) = (tensor.layout(), tensor.dtype().size());
    let reach: i64 = layout.shape.iter().zip(&layout.stride).map(|(extent, step)| (extent - 1).max(0) * step).sum();
    let first = layout.offset as usize * size;
    let bytes = tensor.storage().read::<u8>();
    let bytes = &bytes[first..first + (reach as usize + 1) * size];
    let parts: Vec<&[u8]> = bytes.chunks(PART).collect();
    let sums = pyrite_threads::map(parts.len(), |part| hashed(|hasher| hasher.write(parts[part])));
    hashed(|hasher| sums.iter().for_each(|sum| hasher.write_u64(*sum)))
}

fn hashed(write: impl FnOnce(&mut dyn Hasher)) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    write(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyrite_tensor::{DType, Layout, Storage};
    use std::ptr::NonNull;

    /// A tensor over numbers that belong to the test.
    #[expect(unsafe_code, reason = "memory that is not ours")]
    fn external(numbers: &mut [f32], shape: &[i64], stride: &[i64], offset: i64) -> Tensor {
        let start = NonNull::new(numbers.as_mut_ptr().cast()).unwrap();
        // SAFETY: the numbers outlive the tensor, and nothing else reaches them while it lives.
        let storage = unsafe { Storage::external(start, numbers.len() * 4, Box::new(())) };
        let layout = Layout { shape: shape.into(), stride: stride.into(), offset };
        Tensor::new(storage, DType::F32, layout).unwrap()
    }

    #[test]
    fn every_change_of_external_memory_is_another_content() {
        let count = 3 * PART / 4 + 5;
        let mut numbers: Vec<f32> = (0..count).map(|i| i as f32).collect();
        let content = |numbers: &mut [f32]| Fingerprint::of(&external(numbers, &[count as i64], &[1], 0));
        let first = content(&mut numbers);
        assert_eq!(content(&mut numbers), first, "and the same is the same");
        let mut seen = vec![first];
        for at in [0, 1, PART / 4 - 1, PART / 4, count - 1] {
            numbers[at] = -1.0 - numbers[at];
            seen.push(content(&mut numbers));
        }
        numbers.iter_mut().for_each(|x| *x = -*x);
        seen.push(content(&mut numbers));
        numbers.swap(3, PART / 2);
        seen.push(content(&mut numbers));
        for (at, one) in seen.iter().enumerate() {
            assert!(!seen[at + 1..].contains(one), "content {at} came again");
        }
    }

    #[test]
    fn only_what_a_tensor_reaches_counts() {
        let mut numbers = vec![0.0f32; 40];
        let content = |numbers: &mut [f32]| Fingerprint::of(&external(numbers, &[2, 3], &[10, 1], 5));
        let first = content(&mut numbers);
        numbers[4] = 1.0;
        numbers[18] = 1.0;
        assert_eq!(content(&mut numbers), first);
        numbers[17] = 1.0;
        assert_ne!(content(&mut numbers), first);
    }
}
