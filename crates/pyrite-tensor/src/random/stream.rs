//! The fast stream of compiled programs: Philox2x32 of Salmon, Moraes, Dror and Shaw, with the seven rounds that are the
//! fewest to pass BigCrush.
//!
//! What is drawn is a function of a stream and a position in it and of nothing else, so that kernels compute it where
//! they need it, in any order, on any number of threads, and backward halves once more instead of keeping it. A round is
//! one multiplication of 32 bits, which vectors do eight or more of at a time.
//!
//! Invariant: the streams of two numbers never share a position below 2³².

use crate::DType;

/// How many rounds there are.
pub const ROUNDS: usize = 7;
/// What a round multiplies by.
pub const MULTIPLIER: u32 = 0xd256_d193;
/// How much a key grows from round to round.
pub const GROWTH: u32 = 0x9e37_79b9;

/// The 64 random bits at a position of a stream. The upper half of the stream's number is the key, the lower half the
/// upper half of the counter.
pub fn draw(stream: i64, position: i64) -> i64 {
    let counter = position.wrapping_add(stream << 32);
    let (first, second) = philox::<ROUNDS>([counter as u32, (counter >> 32) as u32], (stream >> 32) as u32);
    (u64::from(second) << 32 | u64::from(first)) as i64
}

/// How many random bits a uniform number of a type has: as many as are never rounded up to one. They are the lowest of
/// what is drawn.
pub fn uniform_bits(dtype: DType) -> i32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 | DType::C64 => 24,
        _ => 53,
    }
}

fn philox<const N: usize>([mut first, mut second]: [u32; 2], mut key: u32) -> (u32, u32) {
    for _ in 0..N {
        let product = u64::from(first) * u64::from(MULTIPLIER);
        (first, second) = ((product >> 32) as u32 ^ key ^ second, product as u32);
        key = key.wrapping_add(GROWTH);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_come_out() {
        assert_eq!(philox::<7>([0, 0], 0), (0x257a_3673, 0xcd26_be2a));
        assert_eq!(philox::<7>([u32::MAX, u32::MAX], u32::MAX), (0xab30_2c4d, 0x3dc9_d239));
        assert_eq!(philox::<7>([0x243f_6a88, 0x85a3_08d3], 0x1319_8a2e), (0xbedb_be6b, 0xe4c7_70b3));
        assert_eq!(philox::<10>([0, 0], 0), (0xff1d_ae59, 0x6cd1_0df2));
    }

    #[test]
    fn every_bit_is_as_often_set_as_not_and_streams_are_unlike() {
        let n = 1 << 16;
        let mut set = [0u32; 64];
        let mut alike = 0;
        for position in 0..n {
            let (bits, other) = (draw(7, position), draw(7 + (1 << 32), position));
            (0..64).for_each(|bit| set[bit] += (bits >> bit & 1) as u32);
            alike += (bits ^ other).count_zeros();
        }
        // Five deviations of a fair coin.
        let far = |count: f64, of: f64| (count - of / 2.0).abs() > 2.5 * of.sqrt();
        assert!(set.iter().all(|count| !far(f64::from(*count), n as f64)), "{set:?}");
        assert!(!far(f64::from(alike), 64.0 * n as f64), "{alike}");
    }

    #[test]
    fn neighbouring_streams_and_positions_do_not_meet() {
        let all: std::collections::HashSet<i64> =
            (0..64).flat_map(|stream| (0..64).map(move |position| draw(stream, position))).collect();
        assert_eq!(all.len(), 64 * 64);
    }
}
