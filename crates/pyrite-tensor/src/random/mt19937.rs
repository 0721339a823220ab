//! The Mersenne Twister of Matsumoto and Nishimura, 32-bit, as published.
//!
//! Takes a 32-bit seed, or the state of another engine, and gives the same words as `init_genrand` and `genrand_int32` of the reference code.

/// Words of state.
pub(super) const N: usize = 624;
/// Distance of the word that is mixed in.
const M: usize = 397;

/// The engine. It is seeded at the first draw: most programs draw nothing, and seeding takes longer than they do.
#[derive(Clone)]
pub(super) struct Mt19937 {
    seed: u32,
    state: Option<Box<State>>,
}

#[derive(Clone)]
struct State {
    words: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// The engine after seeding.
    pub(super) fn new(seed: u32) -> Self {
        Self { seed, state: None }
    }

    /// The engine with these words, of which so many are used up; `None` when that is more than there are.
    pub(super) fn from_words(words: &[u32; N], used: usize) -> Option<Self> {
        (used <= N).then(|| Self { seed: 0, state: Some(Box::new(State { words: *words, next: used })) })
    }

    /// The words, and how many of them are used up.
    pub(super) fn words(&self) -> ([u32; N], usize) {
        let state = self.state.as_deref().cloned().unwrap_or_else(|| State::new(self.seed));
        (state.words, state.next)
    }

    /// The next word.
    pub(super) fn next_u32(&mut self) -> u32 {
        self.state.get_or_insert_with(|| Box::new(State::new(self.seed))).next_u32()
    }
}

impl State {
    fn new(seed: u32) -> Self {
        let mut words = [seed; N];
        for i in 1..N {
            let last = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { words, next: N }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.renew();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn renew(&mut self) {
        for i in 0..N {
            let mixed = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % N] & 0x7fff_ffff);
            let twist = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + M) % N] ^ (mixed >> 1) ^ twist;
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
