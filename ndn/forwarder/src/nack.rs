//! What happens when an upstream refuses, or is gone.

use crate::face::{Face, FaceSlot};
use crate::forwarder::Forwarder;
use crate::interest::Arrival;
use crate::strategy::StrategyKind;
use crate::table::hash::{HashedName, NameHashes};
use bytes::Bytes;
use ndn_packet::{Interest, NackReason, NetPacket};

/// The milder of two reasons: what a retry is likelier to overcome.
fn milder(a: NackReason, b: NackReason) -> NackReason {
    let severity = |reason| match reason {
        NackReason::Congestion => 1,
        NackReason::Duplicate => 2,
        NackReason::NoRoute => 3,
        NackReason::None | NackReason::Other(_) => 4,
    };
    if severity(b) < severity(a) { b } else { a }
}

impl Forwarder {
    pub(crate) fn on_nack(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        reason: NackReason,
        interest: &Interest,
        name: &HashedName<'_>,
    ) {
        let bytes = interest.wire().len() as u64;
        self.count(face, |c| {
            c.in_nacks += 1;
            c.in_bytes += bytes;
        });
        if !self.faces.get(face).is_some_and(Face::is_point_to_point) {
            return;
        }
        let by_token = packet.pit_token.as_ref().and_then(|t| self.pit.by_token(t));
        let by_token = by_token.filter(|&id| self.pit.get(id).name() == name.value());
        let Some(id) = by_token.or_else(|| self.pit.find(name, interest).ok()) else {
            return;
        };
        let nonce = interest.nonce();
        let Some(record) = self
            .pit
            .get_mut(id)
            .out_mut(face)
            .filter(|r| Some(r.nonce) == nonce)
        else {
            return;
        };
        record.nack = Some(reason);
        self.on_refusal(id, face, name);
    }

    /// Goes on after an upstream has refused: by another one, or by telling the downstreams.
    fn on_refusal(&mut self, id: u32, face: FaceSlot, name: &HashedName<'_>) {
        if self.pit.get(id).strategy == StrategyKind::SelfLearning {
            self.learned.forget_if(&name.without_last(1), face);
        }
        if self.pit.get(id).has_pending_out(self.now) {
            return self.break_deadlock(id);
        }
        if !self.try_elsewhere(id, name) {
            self.refuse(id);
        }
    }

    /// Sends the pending Interest to next hops that have not refused it. False when there are none.
    fn try_elsewhere(&mut self, id: u32, name: &HashedName<'_>) -> bool {
        let entry = self.pit.get(id);
        let Some(face) = entry
            .ins
            .iter()
            .find(|r| r.expiry > self.now)
            .map(|r| r.face)
        else {
            return false;
        };
        let Ok(interest) = Interest::parse(Bytes::copy_from_slice(entry.wire())) else {
            return false;
        };
        self.retry(
            id,
            &Arrival {
                face,
                interest: &interest,
                name,
                mark: None,
                again: true,
            },
        )
    }

    /// Tells all downstreams that nobody answers, and ends the entry.
    pub(crate) fn refuse(&mut self, id: u32) {
        let entry = self.pit.get(id);
        let reason = entry
            .outs
            .iter()
            .filter_map(|r| r.nack)
            .reduce(milder)
            .unwrap_or(NackReason::NoRoute);
        let waiting: Vec<_> = entry
            .ins
            .iter()
            .filter(|r| r.expiry > self.now)
            .map(|r| r.face)
            .collect();
        for face in waiting {
            self.refuse_one(id, face, reason);
        }
        self.bury_nonces(id);
        self.unsatisfied += 1;
        self.remove_entry(id);
    }

    /// Sends a Nack to one downstream; its record stays.
    fn refuse_one(&mut self, id: u32, face: FaceSlot, reason: NackReason) {
        let entry = self.pit.get(id);
        let Some((nonce, token)) = entry
            .ins
            .iter()
            .find(|r| r.face == face)
            .map(|r| (r.nonce, r.token))
        else {
            return;
        };
        if let Ok(interest) = Interest::parse(Bytes::copy_from_slice(entry.wire())) {
            self.send_nack(face, reason, interest.with_nonce(nonce), token);
        }
    }

    /// Two forwarders that asked each other, and nobody else is left to ask: this one gives way.
    fn break_deadlock(&mut self, id: u32) {
        let entry = self.pit.get(id);
        let mut pending = entry
            .outs
            .iter()
            .filter(|r| r.is_pending(self.now))
            .map(|r| r.face);
        let (Some(last), None) = (pending.next(), pending.next()) else {
            return;
        };
        if !entry.ins.iter().any(|r| r.face == last) {
            return;
        }
        let reason = entry
            .outs
            .iter()
            .filter_map(|r| r.nack)
            .reduce(milder)
            .unwrap_or(NackReason::NoRoute);
        self.refuse_one(id, last, reason);
        self.drop_in_record(id, last);
        self.end_if_unwanted(id);
    }

    /// Goes on without an upstream that is gone.
    pub(crate) fn fail_upstream(&mut self, face: FaceSlot) {
        if self
            .faces
            .get(face)
            .is_none_or(|f| f.counters.pending_out == 0)
        {
            return;
        }
        if let Some(face) = self.faces.get_mut(face) {
            // Nobody tries it again while the pending Interests are looked after.
            face.up = false;
        }
        for id in self.pit.live() {
            if !self.pit.get(id).has_out(face) {
                continue;
            }
            self.pit.get_mut(id).outs.retain(|r| r.face != face);
            self.count(face, |c| c.pending_out -= 1);
            let name = Bytes::copy_from_slice(self.pit.get(id).name());
            let Ok(name) = ndn_packet::Name::from_value(name) else {
                continue;
            };
            let mut hashes = NameHashes::default();
            hashes.push(&self.key, name.as_ref());
            self.on_refusal(id, face, &hashes.last(name.as_ref()));
        }
    }

    /// Forgets what a downstream that is gone waited for.
    pub(crate) fn drop_downstream(&mut self, face: FaceSlot) {
        if self
            .faces
            .get(face)
            .is_none_or(|f| f.counters.pending_in == 0)
        {
            return;
        }
        for id in self.pit.live() {
            self.drop_in_record(id, face);
            self.end_if_unwanted(id);
        }
    }

    /// Ends an entry that nobody waits for any more.
    fn end_if_unwanted(&mut self, id: u32) {
        if self.pit.get(id).ins.is_empty() {
            self.bury_nonces(id);
            self.unsatisfied += 1;
            self.remove_entry(id);
        }
    }

    fn drop_in_record(&mut self, id: u32, face: FaceSlot) {
        let entry = self.pit.get_mut(id);
        let before = entry.ins.len();
        entry.ins.retain(|r| r.face != face);
        let dropped = (before - entry.ins.len()) as u64;
        self.count(face, |c| c.pending_in -= dropped);
    }
}
