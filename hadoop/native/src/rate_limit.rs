//! A rate limit for log lines that strangers can bring about as often as they
//! like.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seconds between two lines of one kind.
const INTERVAL_S: u64 = 60;

/// Lets the first of many equal events be logged, and then one a minute.
pub(crate) struct RateLimit {
    /// Second from which on the next one is logged.
    next: AtomicU64,
}

impl RateLimit {
    pub const fn new() -> Self {
        RateLimit {
            next: AtomicU64::new(0),
        }
    }

    /// Whether what happens now is to be logged.
    pub fn allows(&self) -> bool {
        static START: OnceLock<Instant> = OnceLock::new();
        self.allows_at(START.get_or_init(Instant::now).elapsed().as_secs())
    }

    fn allows_at(&self, now_s: u64) -> bool {
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
        let limit = RateLimit::new();
        let allowed = (0..180).filter(|&s| limit.allows_at(s));
        assert_eq!(allowed.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
