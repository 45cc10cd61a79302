//! What the forwarding pipelines and the strategies share: faces, FIB, PIT, the packets to be sent, the time.
//!
//! The pipelines decide when a strategy is called; a strategy acts through the methods here, those that
//! [`Strategy`](crate::strategy::hooks::Strategy) names.

mod arrival;
mod end;
mod upstream;

pub(crate) use arrival::{Arrival, Hops};

use crate::face::{Face, FaceCounters, FaceId, FaceSlot, FaceTable, INTERNAL_SLOT};
use crate::output::Output;
use crate::outputs::Outputs;
use crate::shard::{Message, Place};
use crate::table::dead_nonce::DeadNonces;
use crate::table::fib::Fib;
use crate::table::hash::{HashKey, HashedName, NameHashes};
use crate::table::pit::Pit;
use bytes::Bytes;
use ndn_packet::{Data, Interest, NackReason, Name, NameRef, NetKind, NetPacket, PitToken};
use std::collections::VecDeque;
use std::time::Duration;

/// Nanoseconds of a duration; some 584 years fit.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The state; see the module.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) key: HashKey,
    pub(crate) faces: FaceTable,
    pub(crate) fib: Fib,
    pub(crate) pit: Pit,
    pub(crate) dead_nonces: DeadNonces,
    /// Packets for the internal face.
    pub(crate) internal: VecDeque<NetPacket>,
    pub(crate) outputs: Outputs,
    /// This worker among others, where there are any.
    pub(crate) place: Option<Place>,
    /// What other workers are to get.
    pub(crate) messages: VecDeque<(usize, Message)>,
    /// Short Interests that wait here ([`Entry::is_short`](crate::table::pit::Entry::is_short)).
    pub(crate) short: usize,
    /// The time of the call in progress, nanoseconds.
    pub(crate) now: u64,
    /// InterestLifetime is cut down to this, nanoseconds.
    pub(crate) max_interest_lifetime: u64,
    /// Names of the regions that this forwarder is in.
    pub(crate) producer_regions: Vec<Name>,
    pub(crate) totals: FaceCounters,
    pub(crate) satisfied: u64,
    pub(crate) unsatisfied: u64,
    /// Interests that a strategy sent to several faces at once because it did not know better.
    pub(crate) floods: u64,
}

impl State {
    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(nanos(now));
    }

    /// Has the tables know a face as what it is said to be now.
    pub(crate) fn meet(&mut self, slot: FaceSlot) {
        let face = self.faces.get(slot);
        self.pit.meet(slot, face.is_some_and(Face::is_strangers));
    }

    /// What the dead nonce list remembers of a name and nonce.
    #[inline]
    pub(crate) fn fingerprint(&self, name: &HashedName<'_>, nonce: u32) -> u64 {
        self.key.pair(name.full(), u64::from(nonce))
    }

    /// Notes that an entry waits for what may be at home with other workers.
    pub(crate) fn note_short(&mut self, id: u32) {
        self.pit.get_mut(id).is_short = true;
        self.short += 1;
        if let Some(place) = self.place.as_ref().filter(|_| self.short == 1) {
            place.set_short(true);
        }
    }

    /// Counts for a face and for all.
    #[inline]
    pub(crate) fn count(&mut self, face: FaceSlot, change: impl Fn(&mut FaceCounters)) {
        self.faces.count(face, &change);
        change(&mut self.totals);
    }

    /// Hashes a name and calls `f` with it.
    pub(crate) fn with_hashes<R>(&self, name: &Name, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
        let mut hashes = NameHashes::default();
        hashes.push(&self.key, name.as_ref());
        f(&hashes.last(name.as_ref()))
    }

    /// Puts a packet out on a face, filling in and taking out what is between us and local applications.
    pub(crate) fn send(&mut self, to: FaceSlot, from: Option<FaceId>, mut packet: NetPacket) {
        let Some(face) = self.faces.get_mut(to) else {
            return;
        };
        packet.incoming_face = if face.spec.local_fields {
            from.map(|id| id.0)
        } else {
            None
        };
        packet.next_hop_face = None;
        let len = packet.wire().len();
        if !self.outputs.has_room(len) {
            face.counters.dropped_outputs_full += 1;
            self.totals.dropped_outputs_full += 1;
            return;
        }
        let bytes = len as u64;
        let id = face.id;
        let kind = match packet.packet {
            NetKind::Interest(_) => |c: &mut FaceCounters| c.out_interests += 1,
            NetKind::Data(_) => |c: &mut FaceCounters| c.out_data += 1,
            NetKind::Nack { .. } => |c: &mut FaceCounters| c.out_nacks += 1,
        };
        for counters in [&mut face.counters, &mut self.totals] {
            kind(counters);
            counters.out_bytes += bytes;
        }
        if to == INTERNAL_SLOT {
            self.internal.push_back(packet);
        } else {
            self.outputs.send(id, packet);
        }
    }

    /// Whether a face takes a packet of this size.
    pub(crate) fn takes(&self, to: FaceSlot, packet: &NetPacket) -> bool {
        let Some(max) = self.faces.get(to).and_then(|f| f.spec.max_packet_bytes) else {
            return true;
        };
        let len = packet.wire().len();
        (len + packet.to_lp().header_len(len)) as u64 <= max
    }

    /// Tells a downstream of a pending Interest that its face does not take what has come. False where it does.
    pub(crate) fn refuse_large(
        &mut self,
        id: u32,
        to: FaceSlot,
        token: Option<PitToken>,
        data: &Data,
    ) -> bool {
        if self.takes(to, &NetPacket::data(data.clone()).with_pit_token(token)) {
            return false;
        }
        let entry = self.pit.get(id);
        let nonce = entry.ins.iter().find(|r| r.face == to).map(|r| r.nonce);
        if let Ok(interest) = Interest::parse(Bytes::copy_from_slice(entry.wire())) {
            let interest = interest.with_nonce(nonce.unwrap_or(0));
            self.report_large(to, data.clone(), interest, token);
        }
        true
    }

    /// Answers an Interest whose Data is too large for the face that it came by. NDNLPv2 has no reason for that: the
    /// Nack gives none.
    pub(crate) fn report_large(
        &mut self,
        to: FaceSlot,
        data: Data,
        interest: Interest,
        token: Option<PitToken>,
    ) {
        if let Some(face) = self.faces.get(to).map(|face| face.id) {
            if self.outputs.has_room(data.wire().len()) {
                self.outputs.push(Output::TooLarge { face, data });
            }
            self.send_nack(to, NackReason::None, interest, token);
        }
    }

    /// A downstream says that Data from this face did not verify: it is counted, and told once to whoever runs us.
    pub(crate) fn blame(&mut self, liar: FaceSlot, downstream: FaceSlot, name: NameRef<'_>) {
        self.count(liar, |c| c.rejected = c.rejected.saturating_add(1));
        let downstream = self.faces.get(downstream).map(|face| face.id);
        if let (Some(face), Some(downstream)) = (self.faces.get_mut(liar), downstream)
            && !face.is_reported
            && self.outputs.has_room(name.value().len())
        {
            face.is_reported = true;
            self.outputs.push(Output::Rejected {
                face: face.id,
                downstream,
                name: name.to_name(),
            });
        }
    }

    /// Takes one of the doubts that a downstream may cast on what is learned, if one is left.
    pub(crate) fn take_doubt(&mut self, downstream: FaceSlot) -> bool {
        let now = self.now;
        let face = self.faces.get_mut(downstream);
        face.is_some_and(|face| face.take_doubt(now))
    }

    /// Sends a Nack for an Interest, unless the link is one where Nacks have no place.
    pub(crate) fn send_nack(
        &mut self,
        to: FaceSlot,
        reason: NackReason,
        interest: Interest,
        token: Option<PitToken>,
    ) {
        if self.faces.get(to).is_some_and(Face::is_point_to_point) {
            self.send(
                to,
                None,
                NetPacket::nack(reason, interest).with_pit_token(token),
            );
        }
    }
}
