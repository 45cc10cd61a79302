//! Interests that wait for what their answers lack.

use std::collections::HashMap;
use std::time::Duration;

use ndn_packet::{Interest, PitToken};

use crate::cluster::Need;

/// Bytes of memory of all that wait; further ones are refused. An Interest that says no more than a name takes some 500.
const MAX_BYTES: usize = 6 << 20;
/// What one takes beside its packet and the name of what it waits for: itself and its places in the tables.
const EACH_BYTES: usize = 400;

/// An Interest that has no answer yet.
pub(crate) struct PendingInterest {
    pub interest: Interest,
    pub token: Option<PitToken>,
    /// Nobody waits for the answer any more then.
    pub until: Duration,
}

impl PendingInterest {
    /// Bytes of memory; the name of what it waits for is hardly longer than its own.
    fn memory(&self) -> usize {
        2 * self.interest.wire().len() + EACH_BYTES
    }
}

/// Those that wait, under what they wait for, of limited bytes in all.
#[derive(Default)]
pub(crate) struct PendingInterests {
    by_need: HashMap<Need, Vec<PendingInterest>>,
    bytes: usize,
    /// Nobody stops waiting before: until then there is nobody to be forgotten.
    none_late_before: Duration,
}

impl PendingInterests {
    /// Whether there is room for one more; those that nobody waits for any more make it.
    pub fn has_room_for(&mut self, waiting: &PendingInterest, now: Duration) -> bool {
        let is_full = |room: &Self| room.bytes + waiting.memory() > MAX_BYTES;
        if is_full(self) && self.none_late_before <= now {
            self.forget_late(now);
        }
        !is_full(self)
    }

    /// Takes one in. What is kept is a copy: the packet lies in a buffer with many others.
    pub fn enter(&mut self, need: Need, waiting: PendingInterest) {
        let waiting = PendingInterest {
            interest: waiting.interest.compact(),
            ..waiting
        };
        self.bytes += waiting.memory();
        self.none_late_before = self.none_late_before.min(waiting.until);
        let all = self.by_need.entry(need);
        // Most are alone: a vector makes room for four at once.
        all.or_insert_with(|| Vec::with_capacity(1)).push(waiting);
    }

    /// Those that wait for this; they are here no longer.
    pub fn take(&mut self, need: &Need) -> Vec<PendingInterest> {
        let all = self.by_need.remove(need).unwrap_or_default();
        self.bytes -= all.iter().map(PendingInterest::memory).sum::<usize>();
        all
    }

    fn forget_late(&mut self, now: Duration) {
        self.by_need.retain(|_, all| {
            all.retain(|waiting| waiting.until > now);
            !all.is_empty()
        });
        let rest = || self.by_need.values().flatten();
        self.bytes = rest().map(PendingInterest::memory).sum();
        self.none_late_before = rest().map(|waiting| waiting.until).min().unwrap_or(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ndn_packet::Name;

    fn waiting(bytes: usize, until: u64) -> PendingInterest {
        let name: Name = "/c/f".parse().expect("a name");
        let wire = Interest::builder(&name)
            .application_parameters(vec![0; bytes])
            .nonce(1)
            .build();
        PendingInterest {
            interest: Interest::parse(wire).expect("an Interest"),
            token: None,
            until: Duration::from_secs(until),
        }
    }

    #[test]
    fn large_interests_are_fewer() {
        let fill = |bytes| {
            let mut room = PendingInterests::default();
            let need = |n: u64| Need::Segment(Name::new().append_segment(n));
            let mut count = 0;
            loop {
                let one = waiting(bytes, 4);
                if !room.has_room_for(&one, Duration::ZERO) {
                    break;
                }
                room.enter(need(count), one);
                count += 1;
            }
            assert_eq!(room.take(&need(count)).len(), 0);
            assert_eq!(room.take(&need(0)).len(), 1);
            assert!(room.has_room_for(&waiting(bytes, 9), Duration::ZERO));
            room.enter(need(0), waiting(bytes, 9));
            assert!(!room.has_room_for(&waiting(bytes, 9), Duration::ZERO));
            // In time, those make room that nobody waits for any more.
            assert!(room.has_room_for(&waiting(bytes, 9), Duration::from_secs(5)));
            assert_eq!(room.bytes, waiting(bytes, 9).memory());
            count
        };
        assert!(fill(0) > 10_000);
        let count = fill(60_000);
        assert!(count > 10 && count * 60_000 < MAX_BYTES as u64, "{count}");
    }

    #[test]
    fn what_waits_keeps_no_buffer() {
        let wire = waiting(5, 1).interest.wire().clone();
        let buffer = Bytes::from([&wire[..], &[0; 100_000]].concat());
        let interest = Interest::parse(buffer.slice(..wire.len())).expect("an Interest");
        let mut room = PendingInterests::default();
        let need = Need::Segment(Name::new());
        room.enter(
            need,
            PendingInterest {
                interest,
                ..waiting(5, 1)
            },
        );
        assert!(buffer.is_unique());
    }
}
