//! What happens when an upstream refuses, or is gone.

use crate::face::{Face, FaceSlot};
use crate::forwarder::Forwarder;
use crate::table::hash::{HashedName, NameHashes};
use crate::table::pit::Direction;
use bytes::Bytes;
use ndn_packet::{Interest, NackReason, NetPacket};

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
        self.state.count(face, |c| {
            c.in_nacks += 1;
            c.in_bytes += bytes;
        });
        if !self
            .state
            .faces
            .get(face)
            .is_some_and(Face::is_point_to_point)
        {
            return;
        }
        let by_token = packet
            .pit_token
            .as_ref()
            .and_then(|t| self.state.pit.by_token(t));
        let by_token = by_token.filter(|&id| self.state.pit.get(id).name() == name.value());
        let Some(id) = by_token.or_else(|| self.state.pit.find(name, interest).ok()) else {
            return;
        };
        let nonce = interest.nonce();
        let Some(record) = self
            .state
            .pit
            .get_mut(id)
            .out_mut(face)
            .filter(|r| Some(r.nonce) == nonce)
        else {
            return;
        };
        record.nack = Some(reason);
        let strategy = self.strategies.get_mut(self.state.pit.get(id).strategy);
        strategy.after_receive_nack(&mut self.state, id, face, name);
    }

    /// Goes on without an upstream that is gone.
    pub(crate) fn fail_upstream(&mut self, face: FaceSlot) {
        if let Some(face) = self.state.faces.get_mut(face) {
            // Nobody tries it again while the pending Interests are looked after.
            face.up = false;
        }
        for entry in self.state.pit.take_face(face, Direction::Out) {
            let Some(id) = self.state.pit.is_still(entry) else {
                continue;
            };
            if !self.state.pit.drop_out(id, face) {
                continue;
            }
            self.state.count(face, |c| c.pending_out -= 1);
            let name = Bytes::copy_from_slice(self.state.pit.get(id).name());
            let Ok(name) = ndn_packet::Name::from_value(name) else {
                continue;
            };
            let mut hashes = NameHashes::default();
            hashes.push(&self.state.key, name.as_ref());
            let strategy = self.strategies.get_mut(self.state.pit.get(id).strategy);
            let name = hashes.last(name.as_ref());
            strategy.after_receive_nack(&mut self.state, id, face, &name);
        }
    }

    /// Forgets what a downstream that is gone waited for.
    pub(crate) fn drop_downstream(&mut self, face: FaceSlot) {
        for entry in self.state.pit.take_face(face, Direction::In) {
            if let Some(id) = self.state.pit.is_still(entry) {
                self.state.drop_in_record(id, face);
                self.state.end_if_unwanted(id);
            }
        }
    }
}
