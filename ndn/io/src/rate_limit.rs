//! A rate limit for log lines of one kind.

use std::time::Duration;

/// Time between two lines of one kind.
const INTERVAL: Duration = Duration::from_secs(60);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_then_once_a_minute() {
        let mut limit = RateLimit::default();
        let allowed = (0..180).filter(|&s| limit.allows(Duration::from_secs(s)));
        assert_eq!(allowed.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
