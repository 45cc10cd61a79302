//! What happens to a Data packet.

use crate::face::{FaceSlot, INTERNAL_SLOT, LinkType};
use crate::forwarder::{Forwarder, nanos};
use crate::interest::LOCALHOST;
use crate::strategy::StrategyKind;
use crate::table::hash::HashedName;
use ndn_packet::{Data, NetPacket, PitToken};
use smallvec::SmallVec;

impl Forwarder {
    pub(crate) fn on_data(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
    ) {
        let bytes = data.wire().len() as u64;
        self.count(face, |c| {
            c.in_data += 1;
            c.in_bytes += bytes;
        });
        let Some(ingress) = self.faces.get(face) else {
            return;
        };
        let (from, same_face_too) = (ingress.id, ingress.spec.link_type == LinkType::AdHoc);
        if !ingress.is_local() && name.value().starts_with(LOCALHOST) {
            return self.count(face, |c| c.dropped_scope += 1);
        }
        let mut matches = self.pit.matches(name, data, packet.pit_token.as_ref());
        // Only who was asked may answer: else any peer could put content in others' way.
        matches.retain(|id| self.pit.get(*id).has_out(face));
        if matches.is_empty() {
            return self.count(face, |c| c.dropped_unsolicited += 1);
        }
        let freshness = data.freshness().map_or(0, nanos);
        let cached = !packet.no_cache
            && face != INTERNAL_SLOT
            && self
                .cs
                .insert(name, data, self.now.saturating_add(freshness));
        let stays_fresh = freshness >= nanos(self.config.dead_nonce_lifetime);
        let mut served: SmallVec<[(FaceSlot, Option<PitToken>); 4]> = SmallVec::new();
        for id in matches {
            let entry = self.pit.get(id);
            let waiting = entry
                .ins
                .iter()
                .filter(|r| r.expiry > self.now && (r.face != face || same_face_too));
            let waiting: SmallVec<[_; 4]> = waiting.map(|r| (r.face, r.token)).collect();
            if entry.strategy == StrategyKind::SelfLearning {
                self.learn(id, face, name);
            }
            if !cached || (self.pit.get(id).must_be_fresh() && !stays_fresh) {
                // The content store will not answer when the Interest comes around again.
                self.bury_nonces(id);
            }
            self.satisfied += 1;
            self.remove_entry(id);
            for (to, token) in waiting {
                if served.contains(&(to, token)) {
                    continue;
                }
                served.push((to, token));
                let mut copy = NetPacket::data(data.clone()).with_pit_token(token);
                copy.congestion_mark = packet.congestion_mark;
                copy.no_cache = packet.no_cache && self.faces.get(to).is_some_and(|f| f.is_local());
                if self
                    .faces
                    .get(to)
                    .is_some_and(|f| f.up && (f.is_local() || !name.value().starts_with(LOCALHOST)))
                {
                    self.send(to, Some(from), copy);
                }
            }
        }
    }

    /// Remembers the nonces of an entry that ends, so that the Interest is known if it comes around.
    pub(crate) fn bury_nonces(&mut self, id: u32) {
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
        self.pit.remove(id);
    }

    /// Ends an entry that nobody answered in time.
    pub(crate) fn expire(&mut self, id: u32) {
        if self.pit.get(id).strategy == StrategyKind::SelfLearning {
            self.doubt(id);
        }
        self.bury_nonces(id);
        self.unsatisfied += 1;
        self.remove_entry(id);
    }
}
