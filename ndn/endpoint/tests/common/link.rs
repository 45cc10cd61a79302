//! One direction of a link: delay, jitter, loss, duplication, a rate with a queue that marks and drops.

use std::time::Duration;

/// What a direction does to packets.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// One way, without queueing.
    pub delay: Duration,
    /// Up to this much more, at random: reorders.
    pub jitter: Duration,
    /// Part of the packets lost, 0 to 1.
    pub loss: f64,
    /// Part of the packets that come twice.
    pub duplicate: f64,
    /// Bytes a second; 0 for no limit.
    pub rate: u64,
    /// Bytes that may wait before a packet is dropped.
    pub queue_bytes: u64,
    /// Bytes waiting from which on packets are marked.
    pub mark_bytes: u64,
}

impl Link {
    /// A perfect link with this delay.
    pub fn with_delay(delay: Duration) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            rate: 0,
            queue_bytes: u64::MAX,
            mark_bytes: u64::MAX,
        }
    }

    pub fn without_rate(self) -> Self {
        Self { rate: 0, ..self }
    }
}

/// A direction at work.
pub struct LinkState {
    pub link: Link,
    busy_until: Duration,
    random: u64,
    pub carried_bytes: u64,
    pub dropped: u64,
    pub marked: u64,
}

impl LinkState {
    pub fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            busy_until: Duration::ZERO,
            random: seed,
            carried_bytes: 0,
            dropped: 0,
            marked: 0,
        }
    }

    fn chance(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// When, and whether marked, a packet of `len` bytes arrives: nothing, once or twice.
    pub fn carry(&mut self, now: Duration, len: usize) -> Vec<(Duration, bool)> {
        let link = self.link;
        let (mut sent, mut marked) = (now, false);
        if link.rate > 0 {
            let start = self.busy_until.max(now);
            let queued = ((start - now).as_secs_f64() * link.rate as f64) as u64;
            if queued + len as u64 > link.queue_bytes {
                self.dropped += 1;
                return Vec::new();
            }
            marked = queued > link.mark_bytes;
            self.marked += u64::from(marked);
            self.busy_until = start + Duration::from_secs_f64(len as f64 / link.rate as f64);
            sent = self.busy_until;
        }
        self.carried_bytes += len as u64;
        let mut copies = Vec::new();
        if self.chance() >= link.loss {
            copies.push(());
        }
        if self.chance() < link.duplicate {
            copies.push(());
        }
        copies
            .into_iter()
            .map(|()| {
                (
                    sent + link.delay + link.jitter.mul_f64(self.chance()),
                    marked,
                )
            })
            .collect()
    }
}
