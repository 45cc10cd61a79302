//! A small seeded generator for nonces, so that a core repeats itself exactly under the same seed.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one addition and three multiplications a number.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn nonce(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}
