//! Which handshakes are under way, and whether a peer may begin one: where it must not wait for a place, and one that has
//! had time enough would make room for it.
//!
//! It reads no clock and has no sockets: the loop says what time it is, and ends what is to be ended.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use rustc_hash::FxHashMap;

/// Handshakes under way at once, and those of one address.
pub(super) const MOST: usize = 256;
pub(super) const MOST_OF_ONE: usize = MOST / 4;
/// One that is older than this makes room for another, where there is none.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A handshake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handshake {
    /// Slot of its connection.
    pub slot: usize,
    /// Slot of the listener that it came in at.
    pub listener: usize,
    /// Its address, as far as that is counted as one.
    pub network: Option<IpAddr>,
    pub since: Duration,
    /// When it is given up.
    pub due: Duration,
    /// What it takes of the memory for faces.
    pub bytes: usize,
}

/// What a peer needs that can be had of a handshake alone that ends. The bounds that hold for every handshake are looked
/// at beside it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Needs {
    /// The listener in this slot has no place left.
    pub listener: Option<usize>,
    /// This network has no place left.
    pub network: Option<IpAddr>,
    /// Bytes of the memory for faces that are missing.
    pub bytes: usize,
}

/// Whether there is room for a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// Once the handshake in this slot is ended.
    InPlaceOf(usize),
    /// No handshake that has had time enough would make any.
    None,
}

/// The handshakes under way at all listeners.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// By number: the oldest first.
    all: BTreeMap<u64, Handshake>,
    begun: u64,
    by_network: FxHashMap<IpAddr, usize>,
}

impl UnderWay {
    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Notes one that begins; its number.
    pub fn begin(&mut self, handshake: Handshake) -> u64 {
        let id = self.begun;
        self.begun += 1;
        self.all.insert(id, handshake);
        if let Some(network) = handshake.network {
            *self.by_network.entry(network).or_default() += 1;
        }
        id
    }

    /// Forgets one that has come to its end.
    pub fn end(&mut self, id: u64) {
        let Some(network) = self.all.remove(&id).and_then(|ended| ended.network) else {
            return;
        };
        if let Some(own) = self.by_network.get_mut(&network) {
            *own -= 1;
            if *own == 0 {
                self.by_network.remove(&network);
            }
        }
    }

    /// Whether one more may begin, whoever comes: else whoever waits to be accepted may as well wait on.
    pub fn takes_more(&self, now: Duration) -> bool {
        self.all.len() < MOST || self.slow(now).next().is_some()
    }

    /// Whether there is room for a peer of this network that begins a handshake, and needs this beside.
    pub fn room_for_handshake(&self, now: Duration, network: Option<IpAddr>, needs: Needs) -> Room {
        let own = network.and_then(|network| self.by_network.get(&network));
        let is_crowded = own.is_some_and(|own| *own >= MOST_OF_ONE);
        let needs = Needs {
            network: if is_crowded { network } else { needs.network },
            ..needs
        };
        self.room(now, needs, self.all.len() >= MOST)
    }

    /// Whether there is room for a peer without a handshake that needs this.
    pub fn room_for_face(&self, now: Duration, needs: Needs) -> Room {
        self.room(now, needs, false)
    }

    fn room(&self, now: Duration, needs: Needs, are_full: bool) -> Room {
        let Needs {
            listener,
            network,
            bytes,
        } = needs;
        if !are_full && listener.is_none() && network.is_none() && bytes == 0 {
            return Room::Free;
        }
        let found = self.slow(now).find(|slow| {
            listener.is_none_or(|listener| slow.listener == listener)
                && network.is_none_or(|network| slow.network == Some(network))
                && slow.bytes >= bytes
        });
        found.map_or(Room::None, |slow| Room::InPlaceOf(slow.slot))
    }

    /// Those that have had time enough, the oldest first.
    fn slow(&self, now: Duration) -> impl Iterator<Item = &Handshake> {
        let all = self.all.values();
        all.take_while(move |handshake| handshake.since + PATIENCE <= now)
    }

    /// Slots of those that are given up by now.
    pub fn overdue(&self, now: Duration) -> Vec<usize> {
        let all = self.all.values().filter(|handshake| handshake.due <= now);
        all.map(|handshake| handshake.slot).collect()
    }

    /// When the next one is given up. Each listener has a time of its own, so that it need not be the oldest.
    pub fn next_due(&self) -> Option<Duration> {
        self.all.values().map(|handshake| handshake.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 100;
    const TIMEOUT: Duration = Duration::from_secs(10);

    fn network(n: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, n]))
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Handshakes of a network at a listener, whose slots are numbered from `slot` on.
    fn begin(all: &mut UnderWay, slot: usize, count: usize, listener: usize, n: u8, now: Duration) {
        for slot in slot..slot + count {
            all.begin(Handshake {
                slot,
                listener,
                network: network(n),
                since: now,
                due: now + TIMEOUT,
                bytes: BYTES,
            });
        }
    }

    fn full() -> UnderWay {
        let mut all = UnderWay::default();
        for n in 0..4 {
            begin(&mut all, usize::from(n) * 64, 64, 0, n, at(u64::from(n)));
        }
        assert_eq!(all.len(), MOST);
        all
    }

    #[test]
    fn nobody_is_ended_where_there_is_room() {
        let mut all = UnderWay::default();
        begin(&mut all, 0, 63, 0, 1, at(0));
        let room = all.room_for_handshake(at(5000), network(1), Needs::default());
        assert_eq!(room, Room::Free);
        assert!(all.takes_more(at(0)));
    }

    #[test]
    fn the_oldest_that_has_had_time_enough_makes_room() {
        let all = full();
        let room = |ms, n| all.room_for_handshake(at(ms), network(n), Needs::default());
        assert!(!all.takes_more(at(999)));
        assert_eq!(room(999, 9), Room::None);
        assert!(all.takes_more(at(1000)));
        assert_eq!(room(1000, 9), Room::InPlaceOf(0));
        // A network that has its share ends its own alone.
        assert_eq!(room(1000, 2), Room::None);
        assert_eq!(room(1002, 2), Room::InPlaceOf(128));
    }

    #[test]
    fn an_ended_one_leaves_its_place() {
        let mut all = UnderWay::default();
        begin(&mut all, 0, MOST_OF_ONE, 0, 1, at(0));
        let room = |all: &UnderWay| all.room_for_handshake(at(0), network(1), Needs::default());
        assert_eq!(room(&all), Room::None);
        all.end(7);
        all.end(7);
        assert_eq!(room(&all), Room::Free);
        for id in 0..MOST_OF_ONE as u64 {
            all.end(id);
        }
        assert!(all.by_network.is_empty() && all.len() == 0);
    }

    #[test]
    fn what_a_peer_needs_comes_of_one_handshake_or_not_at_all() {
        let mut all = UnderWay::default();
        begin(&mut all, 0, 3, 5, 1, at(0));
        begin(&mut all, 3, 3, 6, 2, at(10));
        let room = |needs| all.room_for_face(at(2000), needs);
        let needs = Needs::default();
        assert_eq!(room(needs), Room::Free);
        for (listener, network, bytes, expected) in [
            (Some(6), None, 0, Room::InPlaceOf(3)),
            (None, network(2), 0, Room::InPlaceOf(3)),
            (None, None, BYTES, Room::InPlaceOf(0)),
            (Some(6), network(2), 1, Room::InPlaceOf(3)),
            (Some(5), network(2), 0, Room::None),
            (Some(7), None, 0, Room::None),
            (None, None, BYTES + 1, Room::None),
        ] {
            let needs = Needs {
                listener,
                network,
                bytes,
            };
            assert_eq!(room(needs), expected, "{needs:?}");
        }
    }

    #[test]
    fn each_is_given_up_at_its_own_time() {
        let mut all = UnderWay::default();
        begin(&mut all, 0, 1, 0, 1, at(0));
        all.begin(Handshake {
            slot: 1,
            listener: 1,
            network: None,
            since: at(100),
            due: at(300),
            bytes: BYTES,
        });
        assert_eq!(all.next_due(), Some(at(300)));
        assert!(all.overdue(at(299)).is_empty());
        assert_eq!(all.overdue(at(300)), [1]);
        assert_eq!(all.overdue(TIMEOUT), [0, 1]);
        all.end(1);
        assert_eq!(all.next_due(), Some(TIMEOUT));
    }
}
