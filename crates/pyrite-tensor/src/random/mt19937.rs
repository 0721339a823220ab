//! The Mersenne Twister of Matsumoto and Nishimura, 32-bit, as published.
//!
//! Takes a 32-bit seed, or the state of another engine, and gives the same words as `init_genrand` and `genrand_int32` of the reference code.

/// Words of state.
pub(super) const N: usize = 624;
/// Distance of the word that is mixed in.
const M: usize = 397;

/// The engine.
#[derive(Clone)]
pub(super) struct Mt19937 {
    state: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// The engine after seeding.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed; N];
        for i in 1..N {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    /// The engine with these words, of which so many are used up; `None` when that is more than there are.
    pub(super) fn from_words(state: &[u32; N], used: usize) -> Option<Self> {
        (used <= N).then_some(Self { state: *state, next: used })
    }

    /// The words, and how many of them are used up.
    pub(super) fn words(&self) -> (&[u32; N], usize) {
        (&self.state, self.next)
    }

    /// The next word.
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.renew();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn renew(&mut self) {
        for i in 0..N {
            let mixed = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let twist = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (mixed >> 1) ^ twist;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_word_is_the_one_of_the_cpp_standard() {
        let mut engine = Mt19937::new(5489);
        let word = (0..10_000).map(|_| engine.next_u32()).last();
        assert_eq!(word, Some(4_123_659_995));
    }
}
