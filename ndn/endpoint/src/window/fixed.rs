//! A window that never changes.

use super::CongestionControl;
use std::time::Duration;

/// Keeps the same number of Interests outstanding, as NDNd's and NFD's fixed-window fetchers do.
#[derive(Debug, Clone)]
pub struct Fixed {
    segments: usize,
}

impl Fixed {
    /// A window of `segments`, at least 1.
    pub fn new(segments: usize) -> Self {
        Self {
            segments: segments.max(1),
        }
    }
}

impl CongestionControl for Fixed {
    fn window(&self) -> usize {
        self.segments
    }

    fn on_data(&mut self, _now: Duration, _srtt: Option<Duration>) {}

    fn on_congestion(&mut self, _now: Duration) {}

    fn on_timeout(&mut self, _now: Duration) {}

    fn boxed(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}
