//! Rate limits for log lines.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time between two lines of one kind.
const INTERVAL: Duration = Duration::from_secs(60);
/// Lines about peers that may come at once, and time in which one more may.
const BURST: u32 = 64;
const REFILL: Duration = Duration::from_secs(1);

/// Lets the first of a run of equal events be logged, and then one a minute.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    next: Option<Duration>,
}

impl RateLimit {
    /// Whether what happens at `now` is to be logged.
    pub fn allows(&mut self, now: Duration) -> bool {
        let allows = self.next.is_none_or(|next| next <= now);
        if allows {
            self.next = Some(now + INTERVAL);
        }
        allows
    }
}

/// Limits the lines that peers can bring about by coming, going and sending what is malformed: 64 at once, then one a
/// second. Those left out are counted.
#[derive(Debug, Default)]
pub(crate) struct PeerLines {
    state: Mutex<Bucket>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// When it would be full again.
    full_at: Duration,
    left_out: u64,
}

impl PeerLines {
    /// Whether a line may be logged at `now`.
    pub fn allows(&self, now: Duration) -> bool {
        let mut bucket = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = bucket.full_at.max(now) + REFILL;
        let allows = full_at <= now + REFILL * BURST;
        if allows {
            bucket.full_at = full_at;
        } else {
            bucket.left_out += 1;
        }
        allows
    }

    /// How many lines were left out since this was asked last.
    pub fn take_left_out(&self) -> u64 {
        let mut bucket = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bucket.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_then_once_a_minute() {
        let mut limit = RateLimit::default();
        let allowed = (0..180).filter(|&s| limit.allows(Duration::from_secs(s)));
        assert_eq!(allowed.collect::<Vec<_>>(), [0, 60, 120]);
    }

    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let lines = PeerLines::default();
        let allowed = |from_ms: u64, to_ms: u64| {
            (from_ms..to_ms)
                .filter(|&ms| lines.allows(Duration::from_millis(ms)))
                .count()
        };
        assert_eq!(allowed(0, 1000), 64);
        assert_eq!(allowed(1000, 11_000), 10);
        assert_eq!(lines.take_left_out(), 11_000 - 74);
        assert_eq!(lines.take_left_out(), 0);
        assert_eq!(allowed(100_000, 100_064), 64, "after a rest there are more");
    }
}
