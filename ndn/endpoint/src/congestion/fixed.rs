//! A window that never changes.

use super::{CongestionControl, CongestionControlFactory};
use std::time::Duration;

/// Settings of [`Fixed`]: always so many segments, whatever the network says. For comparison, and for paths that carry
/// back-pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedConfig {
    /// The window in segments; 0 counts as 1.
    pub segments: usize,
}

impl FixedConfig {
    /// A window of `segments`.
    pub fn new(segments: usize) -> Self {
        Self { segments }
    }
}

impl CongestionControlFactory for FixedConfig {
    fn build(&self, _now: Duration) -> Box<dyn CongestionControl> {
        Box::new(Fixed::new(*self))
    }
}

/// Keeps the same number of Interests outstanding, as NDNd's and NFD's fixed-window fetchers do.
#[derive(Debug, Clone)]
pub struct Fixed {
    segments: usize,
}

impl Fixed {
    /// The window that `config` says, at least 1.
    pub fn new(config: FixedConfig) -> Self {
        Self {
            segments: config.segments.max(1),
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

    fn clone_box(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}
