//! Round-trip times in bounded memory: counts in steps of one percent, and exact extremes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::units::as_ms;

/// Steps of 1% from 1 µs; the last one is beyond a minute.
const STEPS: usize = 1_800;
const STEP: f64 = 1.01;
const FIRST_NS: f64 = 1_000.0;

/// What many round trips have in common.
#[derive(Debug, Clone)]
pub struct RttStats {
    count: u64,
    sum_s: f64,
    sum_squares: f64,
    min: Duration,
    max: Duration,
    steps: Vec<u64>,
}

impl Default for RttStats {
    fn default() -> Self {
        RttStats {
            count: 0,
            sum_s: 0.0,
            sum_squares: 0.0,
            min: Duration::MAX,
            max: Duration::ZERO,
            steps: vec![0; STEPS],
        }
    }
}

impl RttStats {
    /// One more.
    pub fn add(&mut self, rtt: Duration) {
        let s = rtt.as_secs_f64();
        self.count += 1;
        self.sum_s += s;
        self.sum_squares += s * s;
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        let step = ((s * 1e9 / FIRST_NS).ln() / STEP.ln())
            .ceil()
            .clamp(0.0, (STEPS - 1) as f64);
        self.steps[step as usize] += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        if self.count == 0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(self.sum_s / self.count as f64)
        }
    }

    /// The standard deviation.
    pub fn deviation(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        let n = self.count as f64;
        let variance = (self.sum_squares / n - (self.sum_s / n).powi(2)).max(0.0);
        Duration::from_secs_f64(variance.sqrt())
    }

    /// The time within which this share of all came, to one percent.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (step, n) in self.steps.iter().enumerate() {
            seen += n;
            if seen >= wanted && step + 1 < STEPS {
                let upper = Duration::from_secs_f64(FIRST_NS * STEP.powi(step as i32) / 1e9);
                return upper.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Milliseconds by name; `null` where there was none.
    pub fn json(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        json!({
            "min": as_ms(self.min),
            "mean": as_ms(self.mean()),
            "p50": as_ms(self.quantile(0.5)),
            "p99": as_ms(self.quantile(0.99)),
            "max": as_ms(self.max),
            "deviation": as_ms(self.deviation()),
        })
    }

    /// A line for people.
    pub fn line(&self) -> String {
        format!(
            "round trip min {:.3}, mean {:.3}, p50 {:.3}, p99 {:.3}, max {:.3}, deviation {:.3} ms",
            as_ms(self.min),
            as_ms(self.mean()),
            as_ms(self.quantile(0.5)),
            as_ms(self.quantile(0.99)),
            as_ms(self.max),
            as_ms(self.deviation()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_percent() {
        let mut stats = RttStats::default();
        for us in 1..=1000 {
            stats.add(Duration::from_micros(us));
        }
        for (share, us) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = stats.quantile(share).as_secs_f64() * 1e6;
            assert!((got / us - 1.0).abs() <= 0.011, "{share}: {got}");
        }
        assert_eq!(stats.quantile(0.0), Duration::from_micros(1));
        assert_eq!(stats.count(), 1000);
        assert!((stats.mean().as_secs_f64() * 1e6 - 500.5).abs() < 0.01);
    }

    #[test]
    fn extremes_fit() {
        let mut stats = RttStats::default();
        stats.add(Duration::from_nanos(1));
        stats.add(Duration::from_secs(600));
        assert_eq!(stats.quantile(1.0), Duration::from_secs(600));
        assert_eq!(RttStats::default().json(), Value::Null);
    }
}
