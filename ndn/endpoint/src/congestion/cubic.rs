//! CUBIC (RFC 9438) with segments for bytes.

use super::{CongestionControl, CongestionControlFactory, whole};
use std::time::Duration;

/// Settings of [`Cubic`]; names and defaults are RFC 9438's.
#[derive(Debug, Clone, PartialEq)]
pub struct CubicConfig {
    /// First window in segments. Default 10.
    pub initial: f64,
    /// Least window after congestion, in segments; no more than `max`. Default 2.
    pub min: f64,
    /// Greatest window in segments. Default 4096.
    pub max: f64,
    /// C: how steep the cubic is, in segments a second cubed. Default 0.4.
    pub c: f64,
    /// β: what is left of the window after congestion. Default 0.7.
    pub beta: f64,
    /// Whether a flow that loses again below its last maximum makes room for others. Default true.
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self {
            initial: 10.0,
            min: 2.0,
            max: 4096.0,
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
        }
    }
}

impl CongestionControlFactory for CubicConfig {
    fn build(&self, _now: Duration) -> Box<dyn CongestionControl> {
        Box::new(Cubic::new(self.clone()))
    }
}

/// The stretch of congestion avoidance since the window was last cut.
#[derive(Debug, Clone)]
struct Epoch {
    start: Duration,
    /// K: seconds until the cubic reaches W_max again.
    k: f64,
    /// W_est: the window that Reno would have.
    reno: f64,
}

/// RFC 9438's window.
#[derive(Debug, Clone)]
pub struct Cubic {
    config: CubicConfig,
    window: f64,
    threshold: f64,
    w_max: f64,
    /// cwnd_prior: the window when it was last cut.
    prior: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    /// A window in slow start.
    pub fn new(config: CubicConfig) -> Self {
        let window = config.initial.clamp(1.0, config.max);
        Self {
            window,
            threshold: f64::INFINITY,
            w_max: 0.0,
            prior: 0.0,
            epoch: None,
            config,
        }
    }

    /// Sections 4.6 and 4.7: the new threshold, W_max with fast convergence, and the end of the epoch.
    fn cut(&mut self) {
        self.prior = self.window;
        self.w_max = if self.config.fast_convergence && self.window < self.w_max {
            self.window * (1.0 + self.config.beta) / 2.0
        } else {
            self.window
        };
        let least = self.config.min.min(self.config.max);
        self.threshold = (self.window * self.config.beta).max(least);
        self.epoch = None;
    }

    /// Sections 4.2 to 4.5: one segment's worth of congestion avoidance.
    fn avoid(&mut self, now: Duration, srtt: Duration) {
        let Self {
            config,
            window,
            w_max,
            prior,
            epoch,
            ..
        } = self;
        let epoch = epoch.get_or_insert_with(|| {
            if *w_max < *window {
                *w_max = *window; // slow start went past it, or there has been no congestion yet
            }
            Epoch {
                start: now,
                k: ((*w_max - *window) / config.c).cbrt(),
                reno: *window,
            }
        });
        let cubic = |t: f64| config.c * (t - epoch.k).powi(3) + *w_max;
        let t = now.saturating_sub(epoch.start).as_secs_f64();
        let alpha = if epoch.reno >= *prior {
            1.0
        } else {
            3.0 * (1.0 - config.beta) / (1.0 + config.beta)
        };
        let w_now = cubic(t);
        let target = cubic(t + srtt.as_secs_f64()).clamp(*window, *window * 1.5);
        epoch.reno += alpha / *window;
        *window = if w_now < epoch.reno {
            window.max(epoch.reno)
        } else {
            *window + (target - *window) / *window
        };
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> usize {
        whole(self.window)
    }

    fn on_data(&mut self, now: Duration, srtt: Option<Duration>) {
        if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.avoid(now, srtt.unwrap_or_default());
        }
        self.window = self.window.min(self.config.max);
    }

    fn on_congestion(&mut self, _now: Duration) {
        self.cut();
        self.window = self.threshold;
    }

    fn on_timeout(&mut self, _now: Duration) {
        self.cut();
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
    fn returns_to_w_max_after_k_seconds() {
        let mut w = Cubic::new(CubicConfig {
            initial: 1000.0,
            ..CubicConfig::default()
        });
        w.on_congestion(Duration::ZERO);
        assert_eq!(w.window(), 700);
        // K = cbrt(300 / 0.4) = 9.08 s. A round trip of 1 s has a window's worth of segments in it.
        let rtt = Duration::from_secs(1);
        let mut at = Vec::new();
        for second in 0..14u64 {
            let segments = w.window() as u64;
            for i in 0..segments {
                w.on_data(
                    Duration::from_secs(second) + Duration::from_micros(i * 1_000_000 / segments),
                    Some(rtt),
                );
            }
            at.push(w.window());
        }
        assert!((940..=1005).contains(&at[6]), "{at:?}");
        assert!(at[9].abs_diff(at[8]) < 5, "flat around W_max: {at:?}");
        assert!(at[13] > at[11] && at[13] > 1000, "probes beyond it: {at:?}");
    }

    #[test]
    fn is_at_least_reno_on_short_paths() {
        let mut w = Cubic::new(CubicConfig {
            initial: 100.0,
            ..CubicConfig::default()
        });
        w.on_congestion(Duration::ZERO);
        let rtt = Duration::from_millis(1);
        let mut now = Duration::ZERO;
        for _ in 0..100 {
            for _ in 0..w.window() {
                w.on_data(now, Some(rtt));
            }
            now += rtt;
        }
        // 70 + 100 round trips of 0.53 segments until 100, then 1 a round trip.
        assert!((115..200).contains(&w.window()), "{}", w.window());
    }

    #[test]
    fn the_greatest_window_holds_after_congestion_too() {
        let mut w = Cubic::new(CubicConfig {
            max: 1.0,
            ..CubicConfig::default()
        });
        w.on_congestion(Duration::ZERO);
        assert_eq!(w.window(), 1);
        w.on_data(Duration::ZERO, None);
        assert_eq!(w.window(), 1);
    }

    #[test]
    fn a_timeout_starts_over_from_one() {
        let mut w = Cubic::new(CubicConfig {
            initial: 100.0,
            ..CubicConfig::default()
        });
        w.on_timeout(Duration::ZERO);
        assert_eq!(w.window(), 1);
        for _ in 0..69 {
            w.on_data(Duration::ZERO, None);
        }
        assert_eq!(w.window(), 70);
    }
}
