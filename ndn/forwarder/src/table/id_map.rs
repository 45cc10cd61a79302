//! A map keyed by numbers that the forwarder gave out itself, so that a cheap hash will do.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// From a number to what it stands for, such as from a face's number to its slot.
pub(crate) type IdMap<V = u32> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// Multiplies by an odd constant: enough for numbers given out one by one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }
}
