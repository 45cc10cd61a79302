//! The loop's clock, read from other threads.

use std::time::{Duration, Instant};

/// Tells the time as a node's loop does, within a few microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    seen: Duration,
    at: Instant,
}

impl Clock {
    /// A clock from what the loop showed just now.
    pub fn new(seen: Duration) -> Self {
        Clock {
            seen,
            at: Instant::now(),
        }
    }

    /// The loop's time.
    pub fn now(&self) -> Duration {
        self.seen + self.at.elapsed()
    }
}
