//! Additive increase, multiplicative decrease (RFC 5681 with segments for bytes).

use super::{CongestionControl, CongestionControlFactory, whole};
use std::time::Duration;

/// Settings of [`Aimd`].
#[derive(Debug, Clone, PartialEq)]
pub struct AimdConfig {
    /// First window in segments. Default 10.
    pub initial: f64,
    /// Least window after congestion, in segments. Default 2.
    pub min: f64,
    /// Greatest window in segments. Default 4096.
    pub max: f64,
    /// Segments added in a round trip of congestion avoidance. Default 1.
    pub increase: f64,
    /// What is left of the window after congestion. Default 0.5.
    pub decrease: f64,
}

impl Default for AimdConfig {
    fn default() -> Self {
        Self {
            initial: 10.0,
            min: 2.0,
            max: 4096.0,
            increase: 1.0,
            decrease: 0.5,
        }
    }
}

impl CongestionControlFactory for AimdConfig {
    fn build(&self, _now: Duration) -> Box<dyn CongestionControl> {
        Box::new(Aimd::new(self.clone()))
    }
}

/// TCP Reno's window.
#[derive(Debug, Clone)]
pub struct Aimd {
    config: AimdConfig,
    window: f64,
    threshold: f64,
}

impl Aimd {
    /// A window in slow start.
    pub fn new(config: AimdConfig) -> Self {
        Self {
            window: config.initial.clamp(1.0, config.max),
            threshold: f64::INFINITY,
            config,
        }
    }
}

impl CongestionControl for Aimd {
    fn window(&self) -> usize {
        whole(self.window)
    }

    fn on_data(&mut self, _now: Duration, _srtt: Option<Duration>) {
        self.window += if self.window < self.threshold {
            1.0
        } else {
            self.config.increase / self.window
        };
        self.window = self.window.min(self.config.max);
    }

    fn on_congestion(&mut self, _now: Duration) {
        self.threshold = (self.window * self.config.decrease).max(self.config.min);
        self.window = self.threshold;
    }

    fn on_timeout(&mut self, _now: Duration) {
        self.threshold = (self.window * self.config.decrease).max(self.config.min);
        self.window = 1.0;
    }

    fn clone_box(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_then_adds_one_a_round_trip() {
        let mut w = Aimd::new(AimdConfig {
            initial: 4.0,
            ..AimdConfig::default()
        });
        for _ in 0..4 {
            w.on_data(Duration::ZERO, None);
        }
        assert_eq!(w.window(), 8);
        w.on_congestion(Duration::ZERO);
        assert_eq!(w.window(), 4);
        for _ in 0..5 {
            w.on_data(Duration::ZERO, None);
        }
        assert_eq!(w.window(), 5);
        w.on_timeout(Duration::ZERO);
        assert_eq!(w.window(), 1);
        w.on_data(Duration::ZERO, None);
        assert_eq!(w.window(), 2);
    }
}
