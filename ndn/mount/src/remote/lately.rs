//! What was asked lately and is believed for a while.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use ndn_packet::Name;

use super::cache::Cache;
use crate::handles::lock;

/// Answers by name.
pub struct Lately<V> {
    answers: Mutex<Cache<Name, (Instant, V)>>,
    believed: Duration,
}

impl<V: Clone> Lately<V> {
    /// For answers of so many bytes in all, each believed for so long.
    pub fn new(bytes: usize, believed: Duration) -> Self {
        Self {
            answers: Mutex::new(Cache::new(bytes)),
            believed,
        }
    }

    /// An answer that is believed yet.
    pub fn get(&self, name: &Name) -> Option<V> {
        let (since, value) = lock(&self.answers).get(name)?;
        (since.elapsed() < self.believed).then_some(value)
    }

    /// An answer has come that is `bytes` large.
    pub fn put(&self, name: &Name, value: V, bytes: usize) {
        let bytes = bytes + name.wire_len();
        lock(&self.answers).insert(name.clone(), (Instant::now(), value), bytes);
    }
}
