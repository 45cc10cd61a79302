//! Peers that have connected and not proven yet who they are: so many in all and of one address, for so long, and a few of
//! them at a time, as each step of theirs is worth many packets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::admission::network;
use super::slots::{Arriving, Slot};
use super::timers::Timer;
use super::{Core, Driver};
use crate::face::budget::Share;
use crate::transport::Accepted;

/// Handshakes under way at once, and those of one address.
const MOST: usize = 256;
const MOST_OF_ONE: usize = MOST / 4;
/// Where there are that many, one that is older than this makes room for another.
const PATIENCE: Duration = Duration::from_secs(1);
/// Handshakes that go on in one round of the loop.
const STEPS: usize = 8;

/// The handshakes under way at all listeners.
#[derive(Default)]
pub(super) struct Handshakes {
    /// Their slots, the oldest first.
    under_way: BTreeMap<u64, usize>,
    begun: u64,
    by_network: FxHashMap<IpAddr, usize>,
    /// Slots of those that may go on.
    ready: VecDeque<usize>,
    /// When they are looked after next.
    timer_at: Option<Duration>,
}

impl Handshakes {
    /// Whether one of them may go on.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether a peer with this address may begin one.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        let own = address.and_then(|address| self.by_network.get(&network(address)));
        own.is_none_or(|own| *own < MOST_OF_ONE)
    }
}

impl<C: Core> Driver<C> {
    /// Whether one more handshake may begin: there is room, or the oldest has had time enough.
    pub(super) fn may_begin_handshake(&self) -> bool {
        self.oldest_of_all()
            .is_none_or(|at| match self.slots.get(at) {
                Some(Slot::Arriving(arriving)) => arriving.since + PATIENCE <= self.now,
                _ => true,
            })
    }

    /// The oldest handshake, if there are as many as there may be.
    fn oldest_of_all(&self) -> Option<usize> {
        let under_way = &self.handshakes.under_way;
        let oldest = under_way.first_key_value().map(|(_, at)| *at);
        oldest.filter(|_| under_way.len() >= MOST)
    }

    /// Ends the oldest handshake that has had time enough, of an address's network if one is given. Whether there was one.
    pub(super) fn end_a_slow_handshake(&mut self, of: Option<IpAddr>) -> bool {
        let slow = self.handshakes.under_way.values().copied().find(|at| {
            matches!(self.slots.get(*at), Some(Slot::Arriving(arriving))
                if arriving.since + PATIENCE <= self.now
                    && of.is_none_or(|of| arriving.peer.address.map(network) == Some(network(of))))
        });
        if let Some(at) = slow {
            self.end_handshake(at, "it took long, and others wait");
        }
        slow.is_some()
    }

    /// Begins the handshake of a peer that the listener in slot `listener` has let in.
    pub(super) fn begin_handshake(&mut self, listener: usize, peer: Accepted, cost: Share) {
        if let Some(oldest) = self.oldest_of_all() {
            self.end_handshake(oldest, "it took long, and others wait");
        }
        let (fd, address) = (peer.io.fd(), peer.address);
        let id = self.handshakes.begun;
        self.handshakes.begun += 1;
        let at = self.slots.insert(Slot::Arriving(Arriving {
            id,
            peer,
            listener,
            since: self.now,
            ready: false,
            cost,
        }));
        self.handshakes.under_way.insert(id, at);
        if let Some(address) = address {
            *self
                .handshakes
                .by_network
                .entry(network(address))
                .or_default() += 1;
        }
        self.set_handshake_timer();
        match self.register(fd, at) {
            Ok(()) => self.handshake_ready(at),
            Err(error) => self.end_handshake(at, &error.to_string()),
        }
    }

    /// Has the handshake in this slot go on in this round or in one of the next.
    pub(super) fn handshake_ready(&mut self, at: usize) {
        if let Some(Slot::Arriving(arriving)) = self.slots.get_mut(at)
            && !std::mem::replace(&mut arriving.ready, true)
        {
            self.handshakes.ready.push_back(at);
        }
    }

    /// Has some handshakes go on.
    pub(super) fn step_handshakes(&mut self) {
        for _ in 0..STEPS {
            let Some(at) = self.handshakes.ready.pop_front() else {
                return;
            };
            self.step_handshake(at);
        }
    }

    fn step_handshake(&mut self, at: usize) {
        let Some(Slot::Arriving(arriving)) = self.slots.get_mut(at) else {
            return;
        };
        arriving.ready = false;
        match arriving.peer.io.connected() {
            None => {}
            Some(Ok(())) => {
                if let Some(arrived) = self.take_handshake(at) {
                    self.accepted(arrived.listener, arrived.peer, arrived.cost, true);
                }
            }
            Some(Err(error)) => self.end_handshake(at, &error.to_string()),
        }
    }

    fn take_handshake(&mut self, at: usize) -> Option<Arriving> {
        if !matches!(self.slots.get(at), Some(Slot::Arriving(_))) {
            return None;
        }
        let Some(Slot::Arriving(arriving)) = self.slots.try_remove(at) else {
            return None;
        };
        self.handshakes.under_way.remove(&arriving.id);
        if arriving.ready {
            self.handshakes.ready.retain(|other| *other != at);
        }
        let by_network = &mut self.handshakes.by_network;
        if let Some(address) = arriving.peer.address.map(network)
            && let Some(own) = by_network.get_mut(&address)
        {
            *own -= 1;
            if *own == 0 {
                by_network.remove(&address);
            }
        }
        Some(arriving)
    }

    /// Gives up a handshake.
    fn end_handshake(&mut self, at: usize, cause: &str) {
        let Some(ended) = self.take_handshake(at) else {
            return;
        };
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(ended.listener) {
            listener.admission.left(ended.peer.address);
            listener.admission.unproven += 1;
        }
        if self.may_log() {
            tracing::info!(
                remote = ended.peer.remote_uri,
                local = ended.peer.local_uri,
                cause,
                "peer refused: its handshake failed"
            );
        }
    }

    /// Gives up those that have taken too long.
    pub(super) fn on_handshake_timer(&mut self) {
        self.handshakes.timer_at = None;
        // Each listener has a time of its own, so the oldest need not be the first.
        let under_way: Vec<usize> = self.handshakes.under_way.values().copied().collect();
        for at in under_way {
            if self.handshake_due(at) <= self.now {
                let cause = io::Error::from(io::ErrorKind::TimedOut).to_string();
                self.end_handshake(at, &cause);
            }
        }
        self.set_handshake_timer();
    }

    /// When the handshake in this slot is given up.
    fn handshake_due(&self, at: usize) -> Duration {
        let Some(Slot::Arriving(arriving)) = self.slots.get(at) else {
            return Duration::ZERO;
        };
        match self.slots.get(arriving.listener) {
            Some(Slot::Listener(listener)) => arriving.since + listener.config.handshake_timeout,
            _ => Duration::ZERO,
        }
    }

    fn set_handshake_timer(&mut self) {
        let under_way = self.handshakes.under_way.values();
        let Some(due) = under_way.map(|at| self.handshake_due(*at)).min() else {
            return;
        };
        if self.handshakes.timer_at.is_none_or(|at| due < at) {
            self.handshakes.timer_at = Some(due);
            self.timers.set(due, Timer::Handshakes);
        }
    }
}
