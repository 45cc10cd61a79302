//! Log lines that strangers can bring about as often as they like, said seldom.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seconds between two lines of one kind.
const INTERVAL_S: u64 = 60;

/// Lets the first of many equal events be said, and then one a minute.
pub(crate) struct Seldom {
    /// Second from which on the next one is said.
    next: AtomicU64,
}

impl Seldom {
    pub const fn new() -> Self {
        Seldom {
            next: AtomicU64::new(0),
        }
    }

    /// Whether what happens now is to be said.
    pub fn says(&self) -> bool {
        static START: OnceLock<Instant> = OnceLock::new();
        self.says_at(START.get_or_init(Instant::now).elapsed().as_secs())
    }

    fn says_at(&self, now_s: u64) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let until = now_s + INTERVAL_S;
        let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
        now_s >= next && self.next.compare_exchange(next, until, set, seen).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_then_once_a_minute() {
        let seldom = Seldom::new();
        let said = (0..180).filter(|&s| seldom.says_at(s));
        assert_eq!(said.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
