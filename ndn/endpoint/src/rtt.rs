//! Smoothed round trip and retransmission timeout (RFC 6298).

use std::time::Duration;

/// The bounds between which a retransmission timeout moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtoConfig {
    /// Timeout before anything was measured. Default 1 s (RFC 6298, 2.1).
    pub initial: Duration,
    /// Least timeout. Default 200 ms, as other NDN and TCP stacks use; RFC 6298's 1 s is for the world of 2011.
    pub min: Duration,
    /// Greatest timeout, back-off included. Default 4 s, the lifetime of an Interest.
    pub max: Duration,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(4),
        }
    }
}

/// RFC 6298 estimator: SRTT, RTTVAR, RTO with exponential back-off. Who feeds it obeys Karn's rule.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    config: RtoConfig,
    /// SRTT and RTTVAR once something was measured.
    measured: Option<(Duration, Duration)>,
    backoff: u32,
}

impl RttEstimator {
    pub(crate) fn new(config: RtoConfig) -> Self {
        Self {
            config,
            measured: None,
            backoff: 0,
        }
    }

    /// Takes a round trip of an Interest that was sent once only; ends the back-off.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.backoff = 0;
        self.measured = Some(match self.measured {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let deviation = srtt.abs_diff(rtt);
                ((srtt * 7 + rtt) / 8, (rttvar * 3 + deviation) / 4)
            }
        });
    }

    /// The smoothed round trip, once measured.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.measured.map(|(srtt, _)| srtt)
    }

    /// SRTT + 4 RTTVAR with no floor: how long an answer usually takes at most.
    pub(crate) fn usual(&self) -> Option<Duration> {
        self.measured.map(|(srtt, rttvar)| srtt + rttvar * 4)
    }

    /// The retransmission timeout now.
    pub(crate) fn rto(&self) -> Duration {
        self.doubled(self.backoff)
    }

    /// The timeout of an Interest for a segment that was lost `losses` times: doubled for each but the first.
    pub(crate) fn repeated_rto(&self, losses: u32) -> Duration {
        self.doubled(self.backoff.max(losses.saturating_sub(1).min(16)))
    }

    fn doubled(&self, times: u32) -> Duration {
        let base = self
            .usual()
            .unwrap_or(self.config.initial)
            .max(self.config.min);
        base.saturating_mul(1 << times).min(self.config.max)
    }

    /// Takes back what [`RttEstimator::back_off`] has done.
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Doubles the timeout (RFC 6298, 5.5), up to the maximum.
    pub(crate) fn back_off(&mut self) {
        if self.rto() < self.config.max {
            self.backoff = (self.backoff + 1).min(16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_rfc_6298() {
        let ms = Duration::from_millis;
        let mut e = RttEstimator::new(RtoConfig {
            initial: ms(1000),
            min: ms(1),
            max: ms(60_000),
        });
        assert_eq!(e.rto(), ms(1000));
        e.sample(ms(100));
        assert_eq!((e.srtt(), e.rto()), (Some(ms(100)), ms(300)));
        e.sample(ms(180)); // SRTT 110, RTTVAR 3/4*50 + 1/4*80 = 57.5
        assert_eq!((e.srtt(), e.rto()), (Some(ms(110)), ms(340)));
        e.back_off();
        e.back_off();
        assert_eq!(e.rto(), ms(1360));
        for _ in 0..30 {
            e.back_off();
        }
        assert_eq!(e.rto(), ms(60_000));
        e.sample(ms(110));
        assert!(e.rto() < ms(340));
    }
}
