//! What is asked for next.

use super::slot::{Slot, SlotState};
use super::{Consumer, Rejected, State, earliest};
use ndn_packet::{Interest, NetPacket};
use std::time::Duration;

impl Consumer {
    /// The next Interest to send, if one may be sent now. Call until `None` after anything else was called. One that
    /// follows a reject says so to the routers ([`NetPacket::rejected`]), and so does every repeat of it.
    pub fn poll_interest(&mut self, now: Duration) -> Option<NetPacket> {
        self.now = now;
        let room = self.room(now);
        if room == Room::None {
            return None;
        }
        let segment = self.next_to_send(now, room)?;
        let index = self.index(segment)?;
        let nonce = self.rng.u32(..);
        self.last_tx += 1;
        let slot = &mut self.ring[index];
        slot.state = SlotState::Pending;
        slot.tx = self.last_tx;
        slot.sent_at = now;
        slot.transmissions += 1;
        slot.nonce = nonce;
        slot.timed_out = false;
        if let Some(suspicion) = &mut self.suspicion {
            suspicion.asked = Some(segment);
        }
        let rejected = slot.rejected;
        let fresh = rejected || self.config.must_be_fresh;
        self.early += usize::from(slot.due.is_none());
        self.outstanding += 1;
        self.stats.sent += 1;
        if self.state == State::Probing {
            self.probe = Some(segment);
        }
        self.timer = earliest(self.timer, self.expiry(&self.ring[index]));
        let wire = self.template.interest(segment, nonce, fresh);
        Some(NetPacket {
            rejected,
            ..NetPacket::interest(Interest::parse(wire).ok()?)
        })
    }

    /// What the state and the window leave room for. Interests out for segments that do not exist yet fill the window
    /// for new ones, but do not keep a lost one that does exist from being asked for again.
    fn room(&mut self, now: Duration) -> Room {
        self.end_suspicion(now);
        let window = self.window_now();
        let open = match self.state {
            State::Done | State::Failed(_) => false,
            State::Flowing => true,
            State::Probing => {
                self.end_hold(now);
                self.hold.as_ref().is_none_or(|hold| !hold.waiting) && !self.probe_is_out()
            }
        };
        self.limited = self.outstanding >= window;
        if let Some(suspicion) = &self.suspicion {
            // One of what was given up, whatever else is out; then nothing until it is clear what has happened.
            return match open && self.may_ask(suspicion) {
                true => Room::Lost,
                false => Room::None,
            };
        }
        match open {
            true if !self.limited => Room::Any,
            true if self.outstanding - self.early < window => Room::Lost,
            _ => Room::None,
        }
    }

    /// Ends the silence when its time is over. The hold itself stays until something answers, so that the next one is
    /// longer.
    pub(super) fn end_hold(&mut self, now: Duration) {
        if let Some(hold) = &mut self.hold
            && hold.until <= now
        {
            hold.waiting = false;
        }
    }

    fn probe_is_out(&self) -> bool {
        self.probe
            .and_then(|segment| self.index(segment))
            .is_some_and(|index| matches!(self.ring[index].state, SlotState::Pending))
    }

    /// A segment whose slot is Lost: one to send again, else, if there is room for any, the next new one.
    fn next_to_send(&mut self, now: Duration, room: Room) -> Option<u64> {
        let mut at = 0;
        while let Some(&segment) = self.resend.get(at) {
            let slot = self.index(segment).map(|index| &self.ring[index]);
            let Some(slot) = slot.filter(|slot| matches!(slot.state, SlotState::Lost)) else {
                self.resend.remove(at);
                continue;
            };
            if slot.due.is_none() && room == Room::Lost {
                at += 1;
                continue;
            }
            if slot.due.is_some() {
                self.stats.retransmitted += 1;
            } else {
                self.stats.reexpressed += 1;
            }
            self.resend.remove(at);
            return Some(segment);
        }
        if room == Room::Lost {
            return None;
        }
        let next = self.base.checked_add(self.ring.len() as u64)?;
        if self.ring.len() >= self.ahead() || next > self.limit().min(self.wanted) {
            self.limited = false;
            return None;
        }
        let exists = !self.config.live || self.known.is_some_and(|known| known >= next);
        self.ring.push_back(Slot {
            rejected: match self.config.rejected {
                Rejected::None => false,
                Rejected::First => next == self.config.first,
                Rejected::All => true,
            },
            ..Slot::new(SlotState::Lost, exists.then_some(now))
        });
        Some(next)
    }
}

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Anything.
    Any,
    /// What was lost and exists.
    Lost,
    /// Nothing.
    None,
}
