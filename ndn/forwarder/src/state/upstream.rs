//! How a strategy finds the next hops of an Interest and sends it to one.

use super::arrival::{Arrival, Hops};
use super::{State, nanos};
use crate::face::{FaceSlot, LinkType};
use crate::scope::{LOCALHOP, LOCALHOST};
use crate::table::fib::NextHop;
use crate::table::pit::OutRecord;
use ndn_packet::NetPacket;

impl State {
    /// Sends an Interest on to a face, and puts that down in its PIT entry; false when it can't go there.
    pub(crate) fn send_interest(&mut self, id: u32, to: FaceSlot, arrival: &Arrival<'_>) -> bool {
        let Some(egress) = self.faces.get(to).filter(|f| f.up) else {
            return false;
        };
        if arrival.interest.hop_limit() == Some(0) && !egress.is_local() {
            self.count(to, |c| c.dropped_hop_limit += 1);
            return false;
        }
        let lifetime =
            nanos(arrival.interest.lifetime_or_default()).min(self.max_interest_lifetime);
        let nonce = arrival.interest.nonce().unwrap_or(0);
        let (sent, expiry) = (self.now, self.now.saturating_add(lifetime));
        let token = self.pit.token(id);
        let asked = OutRecord::new(to, nonce, sent, expiry);
        if let Some(record) = self.pit.get_mut(id).out_mut(to) {
            *record = OutRecord {
                suppression: record.suppression,
                ..asked
            };
        } else if self.pit.add_out(id, arrival.face, asked) {
            self.count(to, |c| c.pending_out += 1);
        } else {
            self.count(arrival.face, |c| c.dropped_pit_full += 1);
            return false;
        }
        let from = self.faces.get(arrival.face).map(|f| f.id);
        let mut packet = NetPacket::interest(arrival.interest.clone()).with_pit_token(Some(token));
        packet.congestion_mark = arrival.mark;
        packet.rejected = arrival.rejected;
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

    /// The next hops that the FIB has for an Interest, the cheapest first but one whose Data was rejected last, and
    /// whether it has any entry at all. Where a hint leads to a face that may not announce the name itself, nor has a
    /// route for it, it is not asked: whoever made the Interest would choose who answers.
    pub(crate) fn next_hops(&self, arrival: &Arrival<'_>) -> (Hops, bool) {
        let mut all: &[NextHop] = &[];
        let mut by_hint = false;
        for hint in arrival.interest.forwarding_hint() {
            if self
                .producer_regions
                .iter()
                .any(|region| hint.is_prefix_of(region))
            {
                all = &[];
                by_hint = false;
                break;
            }
            let (length, hops) = self.with_hashes(&hint.to_name(), |name| self.fib.lookup(name));
            if length > 0 || all.is_empty() {
                all = hops;
                by_hint = !hops.is_empty();
            }
            if length > 0 {
                break;
            }
        }
        if all.is_empty() {
            all = self.fib.lookup(arrival.name).1;
        }
        let name = arrival.name.value();
        let may_answer = |hop: &NextHop| {
            let face = self.faces.get(hop.face);
            let has_route = || {
                let (_, own) = self.fib.lookup(arrival.name);
                own.iter().any(|own| own.face == hop.face)
            };
            face.is_some_and(|face| face.announces.has(name)) || has_route()
        };
        let eligible = all.iter().copied();
        let mut hops: Hops = eligible
            .filter(|h| self.is_eligible(arrival.face, h.face, name))
            .filter(|h| !by_hint || may_answer(h))
            .collect();
        if let Some(at) = hops.iter().position(|h| Some(h.face) == arrival.doubted) {
            hops[at..].rotate_left(1);
        }
        (hops, !all.is_empty())
    }

    /// The faces open to discovery that an Interest may go to, for one that no route covers.
    pub(crate) fn discovery_faces(&self, arrival: &Arrival<'_>) -> Hops {
        self.faces
            .iter()
            .map(|(slot, _)| slot)
            .filter(|&slot| self.is_discoverable(arrival, slot))
            .map(|face| NextHop { face, cost: 0 })
            .collect()
    }

    /// Whether an Interest that no route covers may go to this face. One that may not announce the name is not asked: so
    /// it can't answer, and nothing is learned of it.
    pub(crate) fn is_discoverable(&self, arrival: &Arrival<'_>, to: FaceSlot) -> bool {
        let name = arrival.name.value();
        self.faces
            .get(to)
            .is_some_and(|face| face.spec.discovery && face.announces.has(name))
            && self.is_eligible(arrival.face, to, name)
    }
}
