//! A rate limit for log lines of one kind, which strangers can bring about as often as they like.

use std::time::Duration;

/// Time between two lines of one kind.
const INTERVAL: Duration = Duration::from_secs(60);

/// Lets the first of a run of equal events be logged, then one a minute, which tells how many were left out.
#[derive(Debug, Default)]
pub struct RateLimit {
    next: Option<Duration>,
    left_out: u64,
}

impl RateLimit {
    /// Whether what happens at `now` is to be logged: then how many before it were not.
    pub fn allows(&mut self, now: Duration) -> Option<u64> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + INTERVAL);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_then_once_a_minute() {
        let mut limit = RateLimit::default();
        let allowed: Vec<(u64, u64)> = (0..180)
            .filter_map(|s| Some((s, limit.allows(Duration::from_secs(s))?)))
            .collect();
        assert_eq!(allowed, [(0, 0), (60, 59), (120, 59)]);
    }
}
