//! What happens to an Interest, up to the strategy.

use crate::data::ALL_TAKE;
use crate::face::{FaceId, FaceSlot};
use crate::forwarder::Forwarder;
use crate::scope::LOCALHOST;
use crate::state::{Arrival, nanos};
use crate::table::cs::{Query, Rejected};
use crate::table::hash::HashedName;
use crate::table::pit::{InRecord, Pit};
use ndn_packet::{Data, Interest, NetKind, NetPacket};
use std::borrow::Cow;

impl Forwarder {
    /// `again` where it has visited the content stores of other workers meanwhile.
    pub(crate) fn on_interest(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
        again: bool,
    ) {
        if !again {
            let bytes = interest.wire().len() as u64;
            self.state.count(face, |c| {
                c.in_interests += 1;
                c.in_bytes += bytes;
            });
        }
        let Some(ingress) = self.state.faces.get(face) else {
            return;
        };
        let (local, local_fields) = (ingress.is_local(), ingress.spec.local_fields);
        let (point_to_point, from) = (ingress.is_point_to_point(), ingress.id.short());
        if interest.hop_limit() == Some(0) {
            return self.state.count(face, |c| c.dropped_hop_limit += 1);
        }
        if !local && name.value().starts_with(LOCALHOST) {
            return self.state.count(face, |c| c.dropped_scope += 1);
        }
        let mut interest = Cow::Borrowed(interest);
        if interest.nonce().is_none() {
            let nonce = self.random.u32(..);
            interest = Cow::Owned(interest.with_nonce(nonce));
        }
        let nonce = interest.nonce().unwrap_or(0);
        let fingerprint = self.state.fingerprint(name, nonce);
        if self.state.dead_nonces.has(self.state.now, fingerprint) {
            return self.on_loop(face, packet, &interest, name);
        }

        let found = self.state.pit.find(name, &interest);
        if let Ok(id) = found {
            let entry = self.state.pit.get(id);
            let seen = entry.ins.iter().any(|r| r.nonce == nonce)
                || entry.outs.iter().any(|r| r.nonce == nonce);
            // The same again from the same face of a point-to-point link is no loop but a resent packet.
            let resent =
                point_to_point && entry.ins.iter().any(|r| r.nonce == nonce && r.face == face);
            if seen && !resent {
                return self.on_loop(face, packet, &interest, name);
            }
        }
        if found.is_err() && !again && !packet.rejected && self.has_many_homes(&interest, name) {
            return self.ask_other_stores(face, packet);
        }
        // Said again while it is pending, it is no other reject.
        let rejects = packet.rejected && !found.is_ok_and(|id| self.state.pit.get(id).rejected);
        let rejected = rejects.then(|| self.cs.reject(name, from, self.state.now));
        let doubted = match rejected {
            Some(Rejected::Held(liar)) => self.state.faces.slot(FaceId(liar.into())),
            _ => None,
        };
        if let Some(liar) = doubted {
            self.state.blame(liar, face, interest.name());
        }
        if found.is_err() {
            match rejected {
                // What has come since passed the caches then, and may be what this one asks for.
                Some(Rejected::Earlier) | None => {
                    let must_be_fresh = interest.must_be_fresh() && rejected.is_none();
                    if self.answer_from_store(face, packet, &interest, name, must_be_fresh) {
                        return;
                    }
                }
                Some(Rejected::Held(_) | Rejected::Unknown) => self.cs.misses += 1,
            }
        }
        if interest.hop_limit().is_some()
            && let Some(less) = interest.with_hop_limit_decremented()
        {
            interest = Cow::Owned(less);
        }
        let again = found.is_ok_and(|id| self.state.pit.get(id).ins.iter().any(|r| r.face == face));
        let Some(id) = self.record_downstream(found, face, packet, &interest, name) else {
            return self.state.count(face, |c| c.dropped_pit_full += 1);
        };
        let entry = self.state.pit.get_mut(id);
        entry.rejected |= packet.rejected;
        entry.doubted = doubted.or(entry.doubted);
        let arrival = Arrival {
            face,
            interest: &interest,
            name,
            mark: packet.congestion_mark,
            rejected: entry.rejected,
            doubted: entry.doubted,
            again,
        };
        if let Some(next_hop) = packet.next_hop_face.filter(|_| local_fields) {
            // The application knows what it does: neither routes nor scope are looked at.
            if let Some(slot) = self.state.faces.slot(FaceId(next_hop)) {
                self.state.send_interest(id, slot, &arrival);
            }
            return;
        }
        let strategy = self.strategies.get_mut(self.state.pit.get(id).strategy);
        strategy.after_receive_interest(&mut self.state, id, &arrival);
    }

    /// An Interest whose nonce was seen before goes no further.
    fn on_loop(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
    ) {
        self.state.count(face, |c| c.dropped_loop += 1);
        let strategy = self.strategies.get_mut(self.strategy_choices.lookup(name));
        strategy.on_interest_loop(&mut self.state, face, interest, packet.pit_token);
    }

    fn answer_from_store(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
        must_be_fresh: bool,
    ) -> bool {
        let query = Query {
            can_be_prefix: interest.can_be_prefix(),
            must_be_fresh,
            now: self.state.now,
        };
        let Some(data) = self.cs.find(name, query).cloned() else {
            return false;
        };
        self.send_from_store(face, packet, interest, data);
        true
    }

    /// Answers an Interest by a Data that was cached.
    pub(crate) fn send_from_store(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        data: Data,
    ) {
        let answer = NetPacket::data(data).with_pit_token(packet.pit_token);
        if answer.wire().len() > ALL_TAKE
            && !self.state.takes(face, &answer)
            && let NetKind::Data(data) = answer.packet
        {
            let asked = interest.clone();
            return self.state.report_large(face, data, asked, packet.pit_token);
        }
        self.state.send(face, Some(FaceId::CONTENT_STORE), answer);
    }

    /// Puts a downstream down in an entry, making the entry if need be. `None` when a bound is met.
    fn record_downstream(
        &mut self,
        found: Result<u32, usize>,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
    ) -> Option<u32> {
        let lifetime = nanos(interest.lifetime_or_default()).min(self.state.max_interest_lifetime);
        let record = InRecord {
            face,
            nonce: interest.nonce().unwrap_or(0),
            expiry: self.state.now.saturating_add(lifetime),
            token: packet.pit_token,
        };
        let expiry = record.expiry;
        let known = found.ok().and_then(|id| {
            self.state
                .pit
                .get(id)
                .ins
                .iter()
                .position(|r| r.face == face)
        });
        let pending = self
            .state
            .faces
            .get(face)
            .map_or(0, |f| f.counters.pending_in as usize);
        if known.is_none() && pending >= self.config.pit_max_per_face {
            return None;
        }
        let id = match found {
            Ok(id) => id,
            Err(siblings) => {
                let pit = &mut self.state.pit;
                if !pit.has_room_for(face, pending, interest)
                    || !Pit::has_room_beside(siblings, name)
                {
                    return None;
                }
                let id = self.state.pit.insert(face, name, interest, siblings > 0);
                self.state.pit.get_mut(id).strategy = self.strategy_choices.lookup(name);
                if self.has_many_homes(interest, name) {
                    self.state.note_short(id);
                }
                id
            }
        };
        match known {
            Some(at) => self.state.pit.get_mut(id).ins[at] = record,
            None if self.state.pit.add_in(id, record) => {
                self.state.count(face, |c| c.pending_in += 1);
            }
            None => {
                if found.is_err() {
                    self.state.remove_entry(id);
                }
                return None;
            }
        }
        let last = self
            .state
            .pit
            .get(id)
            .ins
            .iter()
            .map(|r| r.expiry)
            .max()
            .unwrap_or(expiry);
        self.state.pit.expire_at(self.state.now, id, last);
        Some(id)
    }
}
