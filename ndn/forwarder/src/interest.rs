//! What happens to an Interest, up to the strategy, and how a strategy sends it on.

use crate::face::{FaceId, FaceSlot, LinkType};
use crate::forwarder::{Forwarder, nanos};
use crate::table::cs::Query;
use crate::table::fib::NextHop;
use crate::table::hash::HashedName;
use crate::table::pit::{ENTRY_BYTES, InRecord, OutRecord, Pit};
use ndn_packet::{Interest, NackReason, NetPacket};
use smallvec::SmallVec;
use std::borrow::Cow;

/// First component `localhost`, as bytes of a name.
pub(crate) const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// First component `localhop`, as bytes of a name.
pub(crate) const LOCALHOP: &[u8] = b"\x08\x08localhop";

/// Next hops that may be used.
pub(crate) type Hops = SmallVec<[NextHop; 8]>;

/// An Interest on its way to a strategy.
pub(crate) struct Arrival<'a> {
    /// Where it came from.
    pub(crate) face: FaceSlot,
    /// As it is to be sent on: with a nonce and with one hop less.
    pub(crate) interest: &'a Interest,
    pub(crate) name: &'a HashedName<'a>,
    /// Congestion mark that it came with.
    pub(crate) mark: Option<u64>,
    /// Whether this downstream had asked before and asks again: only then has something been lost, perhaps.
    pub(crate) again: bool,
}

impl Forwarder {
    pub(crate) fn on_interest(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
    ) {
        let bytes = interest.wire().len() as u64;
        self.count(face, |c| {
            c.in_interests += 1;
            c.in_bytes += bytes;
        });
        let Some(ingress) = self.faces.get(face) else {
            return;
        };
        let (local, local_fields) = (ingress.is_local(), ingress.spec.local_fields);
        let point_to_point = ingress.is_point_to_point();
        if interest.hop_limit() == Some(0) {
            return self.count(face, |c| c.dropped_hop_limit += 1);
        }
        if !local && name.value().starts_with(LOCALHOST) {
            return self.count(face, |c| c.dropped_scope += 1);
        }
        let mut interest = Cow::Borrowed(interest);
        if interest.nonce().is_none() {
            let nonce = self.random() as u32;
            interest = Cow::Owned(interest.with_nonce(nonce));
        }
        let nonce = interest.nonce().unwrap_or(0);
        let fingerprint = self.fingerprint(name, nonce);
        if self.dead_nonces.has(self.now, fingerprint) {
            return self.on_loop(face, packet, &interest);
        }

        let found = self.pit.find(name, &interest);
        if let Ok(id) = found {
            let entry = self.pit.get(id);
            let seen = entry.ins.iter().any(|r| r.nonce == nonce)
                || entry.outs.iter().any(|r| r.nonce == nonce);
            // The same again from the same face of a point-to-point link is no loop but a resent packet.
            let resent =
                point_to_point && entry.ins.iter().any(|r| r.nonce == nonce && r.face == face);
            if seen && !resent {
                return self.on_loop(face, packet, &interest);
            }
        } else if self.answer_from_store(face, packet, &interest, name) {
            return;
        }
        if interest.hop_limit().is_some()
            && let Some(less) = interest.with_hop_limit_decremented()
        {
            interest = Cow::Owned(less);
        }
        let again = found.is_ok_and(|id| self.pit.get(id).ins.iter().any(|r| r.face == face));
        let Some(id) = self.record_downstream(found, face, packet, &interest, name) else {
            return self.count(face, |c| c.dropped_pit_full += 1);
        };
        let arrival = Arrival {
            face,
            interest: &interest,
            name,
            mark: packet.congestion_mark,
            again,
        };
        if let Some(next_hop) = packet.next_hop_face.filter(|_| local_fields) {
            // The application knows what it does: neither routes nor scope are looked at.
            if let Some(slot) = self.faces.slot(FaceId(next_hop)) {
                self.forward(id, slot, &arrival);
            }
            return;
        }
        self.choose_next_hops(id, &arrival);
    }

    /// What the dead nonce list remembers of a name and nonce.
    #[inline]
    pub(crate) fn fingerprint(&self, name: &HashedName<'_>, nonce: u32) -> u64 {
        self.key.pair(name.full(), u64::from(nonce))
    }

    /// Answers an Interest whose nonce was seen before.
    fn on_loop(&mut self, face: FaceSlot, packet: &NetPacket, interest: &Interest) {
        self.count(face, |c| c.dropped_loop += 1);
        self.send_nack(
            face,
            NackReason::Duplicate,
            interest.clone(),
            packet.pit_token,
        );
    }

    fn answer_from_store(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        interest: &Interest,
        name: &HashedName<'_>,
    ) -> bool {
        let query = Query {
            can_be_prefix: interest.can_be_prefix(),
            must_be_fresh: interest.must_be_fresh(),
            now: self.now,
        };
        let Some(data) = self.cs.find(name, query) else {
            return false;
        };
        let answer = NetPacket::data(data.clone()).with_pit_token(packet.pit_token);
        self.send(face, Some(FaceId::CONTENT_STORE), answer);
        true
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
        let lifetime = interest
            .lifetime_or_default()
            .min(self.config.max_interest_lifetime);
        let record = InRecord {
            face,
            nonce: interest.nonce().unwrap_or(0),
            expiry: self.now.saturating_add(nanos(lifetime)),
            token: packet.pit_token,
        };
        let expiry = record.expiry;
        let known = found
            .ok()
            .and_then(|id| self.pit.get(id).ins.iter().position(|r| r.face == face));
        if known.is_none() {
            let pending = self.faces.get(face).map_or(0, |f| f.counters.pending_in);
            if pending >= self.config.pit_max_per_face as u64 {
                return None;
            }
        }
        let id = match found {
            Ok(id) => id,
            Err(siblings) => {
                let bytes = self.pit.bytes() + ENTRY_BYTES + interest.wire().len();
                if self.pit.len() >= self.config.pit_max_entries
                    || bytes > self.config.pit_max_bytes
                    || !Pit::has_room_beside(siblings, name)
                {
                    return None;
                }
                let id = self.pit.insert(name, interest, siblings > 0);
                self.pit.get_mut(id).strategy = self.strategy_of(name);
                id
            }
        };
        let entry = self.pit.get_mut(id);
        match known {
            Some(at) => entry.ins[at] = record,
            None => {
                entry.ins.push(record);
                self.count(face, |c| c.pending_in += 1);
            }
        }
        let last = self
            .pit
            .get(id)
            .ins
            .iter()
            .map(|r| r.expiry)
            .max()
            .unwrap_or(expiry);
        self.pit.expire_at(self.now, id, last);
        Some(id)
    }

    /// Sends an Interest on to a face, and puts that down.
    pub(crate) fn forward(&mut self, id: u32, to: FaceSlot, arrival: &Arrival<'_>) -> bool {
        let Some(egress) = self.faces.get(to).filter(|f| f.up) else {
            return false;
        };
        if arrival.interest.hop_limit() == Some(0) && !egress.is_local() {
            self.count(to, |c| c.dropped_hop_limit += 1);
            return false;
        }
        let lifetime = arrival
            .interest
            .lifetime_or_default()
            .min(self.config.max_interest_lifetime);
        let nonce = arrival.interest.nonce().unwrap_or(0);
        let (sent, expiry) = (self.now, self.now.saturating_add(nanos(lifetime)));
        let token = self.pit.token(id);
        let entry = self.pit.get_mut(id);
        match entry.out_mut(to) {
            Some(record) => {
                *record = OutRecord {
                    face: to,
                    nonce,
                    sent,
                    expiry,
                    suppression: record.suppression,
                    nack: None,
                    learned: false,
                };
            }
            None => {
                entry.outs.push(OutRecord {
                    face: to,
                    nonce,
                    sent,
                    expiry,
                    suppression: 0,
                    nack: None,
                    learned: false,
                });
                self.count(to, |c| c.pending_out += 1);
            }
        }
        let from = self.faces.get(arrival.face).map(|f| f.id);
        let mut packet = NetPacket::interest(arrival.interest.clone()).with_pit_token(Some(token));
        packet.congestion_mark = arrival.mark;
        self.send(to, from, packet);
        true
    }

    /// Whether an Interest from `from` may go to `to`.
    pub(crate) fn is_eligible(&self, from: FaceSlot, to: FaceSlot, name: &[u8]) -> bool {
        let Some(egress) = self.faces.get(to).filter(|f| f.up) else {
            return false;
        };
        if from == to && egress.spec.link_type != LinkType::AdHoc {
            return false;
        }
        if egress.is_local() {
            return true;
        }
        if name.starts_with(LOCALHOST) {
            return false;
        }
        !name.starts_with(LOCALHOP) || self.faces.get(from).is_some_and(|f| f.is_local())
    }

    /// The next hops that the FIB has for an Interest, the cheapest first, and whether it has any entry at all.
    pub(crate) fn next_hops(&self, arrival: &Arrival<'_>) -> (Hops, bool) {
        let mut all: &[NextHop] = &[];
        for hint in arrival.interest.forwarding_hint() {
            if self
                .config
                .producer_regions
                .iter()
                .any(|region| hint.is_prefix_of(region))
            {
                all = &[];
                break;
            }
            let (length, hops) = self.with_hashes(&hint.to_name(), |name| self.fib.lookup(name));
            if length > 0 || all.is_empty() {
                all = hops;
            }
            if length > 0 {
                break;
            }
        }
        if all.is_empty() {
            all = self.fib.lookup(arrival.name).1;
        }
        let eligible = all.iter().copied();
        let hops = eligible
            .filter(|h| self.is_eligible(arrival.face, h.face, arrival.name.value()))
            .collect();
        (hops, !all.is_empty())
    }
}
