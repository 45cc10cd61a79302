//! How a pending Interest ends: by refusing its downstreams, or without a word.

use super::State;
use crate::face::FaceSlot;
use crate::table::pit::Entry;
use bytes::Bytes;
use ndn_packet::{Interest, NackReason};

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

/// Why nobody answers an entry, in short.
fn mildest_reason(entry: &Entry) -> NackReason {
    let reasons = entry.outs.iter().filter_map(|r| r.nack);
    reasons.reduce(milder).unwrap_or(NackReason::NoRoute)
}

impl State {
    /// Tells all downstreams that nobody answers, and ends the entry.
    pub(crate) fn reject(&mut self, id: u32) {
        let entry = self.pit.get(id);
        let reason = mildest_reason(entry);
        let waiting: Vec<_> = entry
            .ins
            .iter()
            .filter(|r| r.expiry > self.now)
            .map(|r| r.face)
            .collect();
        for face in waiting {
            self.reject_one(id, face, reason);
        }
        self.end_unsatisfied(id);
    }

    /// Sends a Nack to one downstream; its record stays.
    fn reject_one(&mut self, id: u32, face: FaceSlot, reason: NackReason) {
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
    pub(crate) fn break_deadlock(&mut self, id: u32) {
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
        let reason = mildest_reason(entry);
        self.reject_one(id, last, reason);
        self.drop_in_record(id, last);
        self.end_if_unwanted(id);
    }

    /// Ends an entry that nobody waits for any more.
    pub(crate) fn end_if_unwanted(&mut self, id: u32) {
        if self.pit.get(id).ins.is_empty() {
            self.end_unsatisfied(id);
        }
    }

    pub(crate) fn drop_in_record(&mut self, id: u32, face: FaceSlot) {
        if self.pit.drop_in(id, face) {
            self.count(face, |c| c.pending_in -= 1);
        }
    }

    /// Ends an entry that was not answered.
    pub(crate) fn end_unsatisfied(&mut self, id: u32) {
        self.remember_nonces(id);
        self.unsatisfied += 1;
        self.remove_entry(id);
    }

    /// Remembers the nonces of an entry that ends, so that the Interest is known if it comes around.
    pub(crate) fn remember_nonces(&mut self, id: u32) {
        let entry = self.pit.get(id);
        for record in &entry.outs {
            self.dead_nonces.add(
                self.now,
                self.key.pair(entry.name_hash(), u64::from(record.nonce)),
            );
        }
    }

    /// Removes an entry, whatever its state.
    pub(crate) fn remove_entry(&mut self, id: u32) {
        let entry = self.pit.get(id);
        for record in &entry.ins {
            self.faces.count(record.face, |c| c.pending_in -= 1);
            self.totals.pending_in -= 1;
        }
        for record in &entry.outs {
            self.faces.count(record.face, |c| c.pending_out -= 1);
            self.totals.pending_out -= 1;
        }
        if entry.is_short {
            self.short -= 1;
            if let Some(place) = self.place.as_ref().filter(|_| self.short == 0) {
                place.set_short(false);
            }
        }
        self.pit.remove(id);
    }
}
