//! What happens to a Data packet.

use crate::face::{FaceSlot, INTERNAL_SLOT, LinkType};
use crate::forwarder::Forwarder;
use crate::scope::LOCALHOST;
use crate::shard::Tour;
use crate::state::nanos;
use crate::table::cs::Origin;
use crate::table::hash::HashedName;
use crate::table::pit::Matches;
use ndn_packet::{Data, MAX_PACKET, NetPacket, PitToken};
use smallvec::SmallVec;

/// Every face takes Data up to this many bytes: the packet size that all must take, less the longest link-layer header.
pub(crate) const ALL_TAKE: usize = MAX_PACKET - MAX_LP_HEADER;
const MAX_LP_HEADER: usize = 100;

/// Downstreams that a Data was sent to, with their tokens.
pub(crate) type Served = SmallVec<[(FaceSlot, Option<PitToken>); 4]>;

impl Forwarder {
    pub(crate) fn on_data(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
    ) {
        self.take_data(
            face,
            packet,
            data,
            name,
            &mut Served::new(),
            &Tour::default(),
        );
    }

    /// Takes in a Data that is at home here and may have been with other workers before, which have served some.
    pub(crate) fn take_data(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
        served: &mut Served,
        tour: &Tour,
    ) {
        let bytes = data.wire().len() as u64;
        self.state.count(face, |c| {
            c.in_data += 1;
            c.in_bytes += bytes;
        });
        let Some(ingress) = self.state.faces.get(face) else {
            return;
        };
        let from = ingress.id;
        if !ingress.is_local() && name.value().starts_with(LOCALHOST) {
            return self.state.count(face, |c| c.dropped_scope += 1);
        }
        let matches = self.asked_of(face, packet, data, name);
        if matches.is_empty() && !tour.wanted {
            return self.state.count(face, |c| c.dropped_unsolicited += 1);
        }
        let rejecter = match tour.rejecter {
            0 => self.rejecter(&matches),
            rejecter => rejecter,
        };
        let origin = Origin::new(from.short(), rejecter, self.state.now);
        let freshness = data.freshness().map_or(0, nanos);
        let cached = !packet.no_cache
            && face != INTERNAL_SLOT
            && self
                .cs
                .insert(name, data, self.state.now.saturating_add(freshness), origin);
        self.satisfy(face, packet, data, name, (matches, cached), served);
    }

    /// The entries that a Data from a face answers.
    pub(crate) fn asked_of(
        &self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
    ) -> Matches {
        let token = packet.pit_token.as_ref();
        let mut matches = self.state.pit.matches(name, data, token);
        // Only who was asked may answer: else any peer could put content in others' way.
        matches.retain(|id| self.state.pit.get(*id).has_out(face));
        matches
    }

    /// Who has rejected what came before, of those who wait in these entries, as [`Origin::new`] has it.
    pub(crate) fn rejecter(&self, matches: &Matches) -> u32 {
        let mut asked = matches.iter().map(|id| self.state.pit.get(*id));
        asked
            .find(|entry| entry.rejected)
            .and_then(|entry| self.state.faces.get(entry.ins.first()?.face))
            .map_or(0, |face| face.id.short())
    }

    /// Ends the entries that a Data answers, and sends it to those who wait. `cached` where a content store has it.
    pub(crate) fn satisfy(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
        (matches, cached): (Matches, bool),
        served: &mut Served,
    ) {
        let Some(ingress) = self.state.faces.get(face) else {
            return;
        };
        let (from, same_face_too) = (ingress.id, ingress.spec.link_type == LinkType::AdHoc);
        let freshness = data.freshness().map_or(0, nanos);
        let stays_fresh = freshness >= nanos(self.config.dead_nonce_lifetime);
        for id in matches {
            let entry = self.state.pit.get(id);
            let waiting = entry
                .ins
                .iter()
                .filter(|r| r.expiry > self.state.now && (r.face != face || same_face_too));
            let mut waiting: SmallVec<[_; 4]> = waiting.map(|r| (r.face, r.token)).collect();
            if data.wire().len() > ALL_TAKE {
                waiting.retain(|(to, token)| !self.state.refuse_large(id, *to, *token, data));
            }
            let entry = self.state.pit.get(id);
            let strategy = self.strategies.get_mut(entry.strategy);
            strategy.before_satisfy_interest(&self.state, id, face, name);
            if !cached || (self.state.pit.get(id).must_be_fresh() && !stays_fresh) {
                // The content store will not answer when the Interest comes around again.
                self.state.remember_nonces(id);
            }
            self.state.satisfied += 1;
            self.state.remove_entry(id);
            for (to, token) in waiting {
                if served.contains(&(to, token)) {
                    continue;
                }
                served.push((to, token));
                let mut copy = NetPacket::data(data.clone()).with_pit_token(token);
                copy.congestion_mark = packet.congestion_mark;
                copy.no_cache =
                    packet.no_cache && self.state.faces.get(to).is_some_and(|f| f.is_local());
                if self
                    .state
                    .faces
                    .get(to)
                    .is_some_and(|f| f.up && (f.is_local() || !name.value().starts_with(LOCALHOST)))
                {
                    self.state.send(to, Some(from), copy);
                }
            }
        }
    }

    /// Ends an entry that nobody answered in time.
    pub(crate) fn expire(&mut self, id: u32) {
        let strategy = self.strategies.get_mut(self.state.pit.get(id).strategy);
        strategy.before_expire_interest(&self.state, id);
        self.state.end_unsatisfied(id);
    }
}
