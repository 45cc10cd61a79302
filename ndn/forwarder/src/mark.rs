//! When congestion is marked on a face: for whoever keeps its send queue.

use std::time::Duration;

/// The first wait between two congestion marks while a queue stays long; it shrinks with the
/// square root of the marks given, as CoDel's does.
pub const MARK_INTERVAL: Duration = Duration::from_millis(5);

/// Decides which packets carry a congestion mark: the first one once the queue has been long
/// for an interval, then one each interval, which shrinks while the queue stays long.
#[derive(Debug, Clone)]
pub struct CongestionMarker {
    on: bool,
    threshold: usize,
    interval: Duration,
    next: Option<Duration>,
    given: u32,
}

impl CongestionMarker {
    /// Marks where more than `threshold` bytes wait; never with 0.
    pub fn new(threshold: usize) -> Self {
        Self {
            on: threshold > 0,
            threshold,
            interval: MARK_INTERVAL,
            next: None,
            given: 0,
        }
    }

    /// The queue length in bytes above which it may mark; `None` where it never does.
    pub fn threshold(&self) -> Option<usize> {
        self.on.then_some(self.threshold)
    }

    /// Changes the settings; `None` leaves one as it is.
    pub fn set(
        &mut self,
        on: Option<bool>,
        interval: Option<Duration>,
        threshold_bytes: Option<usize>,
    ) {
        self.on = on.unwrap_or(self.on);
        self.interval = interval.unwrap_or(self.interval);
        self.threshold = threshold_bytes.unwrap_or(self.threshold);
    }

    fn below(&mut self) {
        self.next = None;
        self.given = 0;
    }

    /// Whether the packet queued now, behind `queued` bytes, carries a mark.
    pub fn marks(&mut self, now: Duration, queued: usize) -> bool {
        if queued <= self.threshold || !self.on {
            if self.next.is_some() {
                self.below();
            }
            return false;
        }
        match self.next {
            None => {
                self.next = Some(now + self.interval);
                false
            }
            Some(next) if now < next => false,
            Some(_) => {
                self.given = self.given.saturating_add(1);
                self.next = Some(now + self.interval.div_f64((f64::from(self.given) + 1.0).sqrt()));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_start_after_an_interval_and_come_faster() {
        let mut marker = CongestionMarker::new(1000);
        let ms = Duration::from_millis;
        let marked: Vec<u64> = (0..40).filter(|&t| marker.marks(ms(t), 2000)).collect();
        assert_eq!(marked[0], 5);
        assert!(marked.len() >= 6, "{marked:?}");
        assert!(!marker.marks(ms(41), 10));
        assert!(!marker.marks(ms(42), 2000));
    }
}
