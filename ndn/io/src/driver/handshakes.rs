//! Peers that have connected and not proven yet who they are: so many in all and of one address, for so long (see
//! [`UnderWay`]), and a few of them at a time, as each step of theirs is worth many packets.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::admission::network;
use super::slots::{Arriving, Slot};
use super::timers::Timer;
use super::under_way::{Handshake, UnderWay};
use super::{Core, Driver};
use crate::face::budget::Share;
use crate::transport::Accepted;

/// Handshakes that go on in one round of the loop.
const STEPS: usize = 8;

/// The handshakes under way at all listeners.
#[derive(Default)]
pub(super) struct Handshakes {
    pub under_way: UnderWay,
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
}

impl<C: Core> Driver<C> {
    /// Ends the handshake in this slot, whose place another peer has.
    pub(super) fn end_slow_handshake(&mut self, at: usize) {
        self.end_handshake(at, "it took long, and others wait");
    }

    /// Begins the handshake of a peer that the listener in slot `listener` has let in, and that takes `bytes` of
    /// the memory for faces, as `cost` has them.
    pub(super) fn begin_handshake(
        &mut self,
        listener: usize,
        peer: Accepted,
        cost: Share,
        bytes: usize,
    ) {
        let timeout = match self.slots.get(listener) {
            Some(Slot::Listener(listener)) => listener.config.handshake_timeout,
            _ => Duration::ZERO,
        };
        let entry = self.slots.vacant_entry();
        let at = entry.key();
        let fd = peer.io.fd();
        let id = self.handshakes.under_way.begin(Handshake {
            slot: at,
            listener,
            network: peer.address.map(network),
            since: self.now,
            due: self.now + timeout,
            bytes,
        });
        entry.insert(Slot::Arriving(Arriving {
            id,
            peer,
            listener,
            ready: false,
            cost,
        }));
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
        self.handshakes.under_way.end(arriving.id);
        if arriving.ready {
            self.handshakes.ready.retain(|other| *other != at);
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
        for at in self.handshakes.under_way.overdue(self.now) {
            let cause = io::Error::from(io::ErrorKind::TimedOut).to_string();
            self.end_handshake(at, &cause);
        }
        self.set_handshake_timer();
    }

    fn set_handshake_timer(&mut self) {
        let Some(due) = self.handshakes.under_way.next_due() else {
            return;
        };
        if self.handshakes.timer_at.is_none_or(|at| due < at) {
            self.handshakes.timer_at = Some(due);
            self.timers.set(due, Timer::Handshakes);
        }
    }
}
