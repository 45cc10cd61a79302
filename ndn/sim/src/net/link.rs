//! One direction of a link: a line of some rate and delay behind a queue that drops what does not fit.

use crate::topology::LinkSpec;
use std::collections::VecDeque;

/// Bits of a byte times nanoseconds of a second.
const BITS_AND_NANOS: u64 = 8 * 1_000_000_000;

/// What one direction of a link has carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames' bytes taken in, headers and acknowledgements counted.
    pub sent_bytes: u64,
    /// Bytes that came out at the other end.
    pub delivered_bytes: u64,
    /// Of those sent, what carries named data's packets.
    pub named_bytes: u64,
    /// Packets and trains of frames taken in.
    pub packets: u64,
    /// Packets and trains dropped because the queue was full.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Named data packets that were marked for congestion.
    pub marked: u64,
    /// Most bytes that ever waited.
    pub queue_peak_bytes: u64,
}

/// When the head and the tail of something come out of a link, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) head: u64,
    pub(crate) tail: u64,
    /// Bytes that waited before it.
    pub(crate) waiting: u64,
}

/// One direction. `T` is what travels.
#[derive(Debug)]
pub(crate) struct Line<T> {
    spec: LinkSpec,
    delay: u64,
    /// When the last bit taken in leaves.
    busy_until: u64,
    /// Payload not acknowledged yet, by whose acknowledgement the other direction will be charged.
    pub(crate) unacked: u64,
    in_flight: VecDeque<(u64, u64, T)>,
    /// What has overtaken the rest, and when the last of it leaves.
    express: VecDeque<(u64, u64, T)>,
    express_until: u64,
    pub(crate) counters: LinkCounters,
}

impl<T> Line<T> {
    pub(crate) fn new(spec: LinkSpec) -> Self {
        Line {
            delay: u64::try_from(spec.delay.as_nanos()).unwrap_or(u64::MAX),
            spec,
            busy_until: 0,
            unacked: 0,
            in_flight: VecDeque::new(),
            express: VecDeque::new(),
            express_until: 0,
            counters: LinkCounters::default(),
        }
    }

    fn nanos(&self, bytes: u64) -> u64 {
        if let Some(product) = bytes.checked_mul(BITS_AND_NANOS) {
            return product / self.spec.rate_bps;
        }
        let nanos = u128::from(bytes) * u128::from(BITS_AND_NANOS) / u128::from(self.spec.rate_bps);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Bytes that may wait.
    pub(crate) fn queue_bytes(&self) -> u64 {
        self.spec.queue_bytes
    }

    /// Bytes that wait at `now`.
    fn waiting(&self, now: u64) -> u64 {
        let left = self.busy_until.saturating_sub(now);
        if left == 0 {
            return 0;
        }
        if let Some(product) = left.checked_mul(self.spec.rate_bps) {
            return product / BITS_AND_NANOS;
        }
        let bytes = u128::from(left) * u128::from(self.spec.rate_bps) / u128::from(BITS_AND_NANOS);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Takes in `bytes` in frames of at most `frame`, the first of which is here now and the last at `tail`. `None`
    /// when something waits and, with these, it would be more than `room`; an idle line takes anything.
    pub(crate) fn take(
        &mut self,
        now: u64,
        tail: u64,
        bytes: u64,
        frame: u64,
        room: u64,
    ) -> Option<Passage> {
        let waiting = self.waiting(now);
        if waiting > 0 && waiting.saturating_add(bytes) > room {
            self.counters.dropped += 1;
            self.counters.dropped_bytes += bytes;
            return None;
        }
        let first = self.nanos(bytes.min(frame));
        let start = self.busy_until.max(now);
        let end = (start + self.nanos(bytes)).max(tail + first);
        self.busy_until = end;
        let counters = &mut self.counters;
        counters.packets += 1;
        counters.sent_bytes += bytes;
        counters.queue_peak_bytes = counters.queue_peak_bytes.max(waiting + bytes);
        Some(Passage {
            head: start + first + self.delay,
            tail: end + self.delay,
            waiting,
        })
    }

    /// Takes in something small that goes before what a face keeps back for the link: it waits for the link's own queue
    /// alone, and is never dropped. Returns when it comes out.
    pub(crate) fn take_express(&mut self, now: u64, bytes: u64) -> u64 {
        let own_queue = now.saturating_add(self.nanos(self.spec.queue_bytes));
        let start = self
            .busy_until
            .clamp(now, own_queue)
            .max(self.express_until);
        let took = self.nanos(bytes);
        self.express_until = start + took;
        self.busy_until = self.busy_until.max(now) + took;
        self.counters.packets += 1;
        self.counters.sent_bytes += bytes;
        self.express_until + self.delay
    }

    /// Charges bytes that nothing waits for, such as a bare acknowledgement.
    pub(crate) fn charge(&mut self, now: u64, bytes: u64) {
        self.busy_until = self.busy_until.max(now) + self.nanos(bytes);
        self.counters.sent_bytes += bytes;
        self.counters.delivered_bytes += bytes;
    }

    /// Puts something on its way that comes out at `at`; true when it is the first there.
    pub(crate) fn push(&mut self, at: u64, bytes: u64, what: T) -> bool {
        debug_assert!(self.in_flight.back().is_none_or(|&(last, ..)| last <= at));
        self.in_flight.push_back((at, bytes, what));
        self.in_flight.len() == 1
    }

    /// Takes in a few bytes that will be here `at` some time and go before what faces keep back; nothing waits for them.
    /// Returns when they come out, as the line looks at `now`.
    pub(crate) fn pass(&mut self, now: u64, at: u64, bytes: u64) -> u64 {
        let own_queue = at.saturating_add(self.nanos(self.spec.queue_bytes));
        let took = self.nanos(bytes);
        let leaves = self.busy_until.clamp(at, own_queue) + took;
        self.charge(now, bytes);
        self.counters.packets += 1;
        leaves + self.delay
    }

    /// As [`Line::push`], for what was taken in by [`Line::take_express`].
    pub(crate) fn push_express(&mut self, at: u64, bytes: u64, what: T) -> bool {
        self.express.push_back((at, bytes, what));
        self.express.len() == 1
    }

    /// As [`Line::pop`], of what has overtaken the rest.
    pub(crate) fn pop_express(&mut self) -> Option<(T, Option<u64>)> {
        let (_, bytes, what) = self.express.pop_front()?;
        self.counters.delivered_bytes += bytes;
        Some((what, self.express.front().map(|&(at, ..)| at)))
    }

    /// Takes out the first, and tells when the next one comes.
    pub(crate) fn pop(&mut self) -> Option<(T, Option<u64>)> {
        let (_, bytes, what) = self.in_flight.pop_front()?;
        self.counters.delivered_bytes += bytes;
        Some((what, self.in_flight.front().map(|&(at, ..)| at)))
    }

    /// Bytes of what is on its way.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        let all = self.in_flight.iter().chain(&self.express);
        all.map(|&(_, bytes, _)| bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn line(rate_bps: u64) -> Line<u8> {
        Line::new(LinkSpec {
            rate_bps,
            delay: Duration::from_nanos(100),
            queue_bytes: 1000,
        })
    }

    #[test]
    fn a_line_takes_its_time() {
        let mut line = line(8_000_000_000); // a byte a nanosecond
        let one = line.take(0, 0, 1000, u64::MAX, 10_000).expect("idle");
        assert_eq!((one.head, one.tail, one.waiting), (1100, 1100, 0));
        let two = line.take(500, 500, 1000, u64::MAX, 10_000).expect("room");
        assert_eq!((two.tail, two.waiting), (2100, 500));
        assert_eq!(line.counters.queue_peak_bytes, 1500);
    }

    #[test]
    fn a_train_is_passed_on_before_its_end_has_come() {
        let mut line = line(8_000_000_000);
        let train = line.take(0, 0, 60_000, 1500, u64::MAX).expect("idle");
        assert_eq!((train.head, train.tail), (1600, 60_100));
        // A slower train before it: the end can't leave before it has come.
        let late = line
            .take(70_000, 200_000, 60_000, 1500, u64::MAX)
            .expect("idle");
        assert_eq!((late.head, late.tail), (71_600, 201_600));
    }

    #[test]
    fn what_is_small_waits_for_the_links_own_queue_alone() {
        let mut line = line(8_000_000_000);
        assert!(line.take(0, 0, 50_000, u64::MAX, u64::MAX).is_some());
        assert_eq!(line.take_express(0, 100), 1000 + 100 + 100);
        assert_eq!(line.take_express(0, 100), 1000 + 200 + 100);
        let after = line.take(0, 0, 1000, u64::MAX, u64::MAX).expect("room");
        assert_eq!(after.tail, 51_300, "what was overtaken comes so much later");
        assert_eq!(line.take_express(60_000, 100), 60_200);
    }

    #[test]
    fn a_full_queue_drops_and_an_idle_line_takes_anything() {
        let mut line = line(8_000_000_000);
        assert!(line.take(0, 0, 5000, u64::MAX, 1000).is_some());
        assert!(line.take(0, 0, 1, u64::MAX, 1000).is_none());
        assert!(line.take(0, 0, 1, u64::MAX, u64::MAX).is_some());
        assert!(line.take(4500, 4500, 400, u64::MAX, 1000).is_some());
        assert_eq!((line.counters.dropped, line.counters.dropped_bytes), (1, 1));
    }
}
