//! Packets that concern more than one worker: Data on its way home, and Interests that look into content stores.

use crate::data::Served;
use crate::face::{FaceId, FaceSlot, INTERNAL_SLOT};
use crate::forwarder::Forwarder;
use crate::scope::LOCALHOST;
use crate::shard::{Body, Message, Tour};
use crate::table::cs::{Query, implicit_digest};
use crate::table::hash::{HashedName, NameHashes};
use ndn_packet::{Data, Interest, NetKind, NetPacket};

/// Takes the lowest bit.
fn next(bits: &mut u64) -> Option<usize> {
    let number = (*bits != 0).then_some(bits.trailing_zeros() as usize)?;
    *bits &= *bits - 1;
    Some(number)
}

impl Forwarder {
    /// Whether names under that of an Interest may be at home with several workers.
    pub(crate) fn has_many_homes(&self, interest: &Interest, name: &HashedName<'_>) -> bool {
        let Some(place) = &self.state.place else {
            return false;
        };
        interest.can_be_prefix()
            && implicit_digest(name).is_none()
            && place.is_short(name.len(), name.value())
    }

    /// A Data or Nack came here by its token, and is at home elsewhere: its entry has gone, the token is wrong, or a Data
    /// answers a short Interest.
    pub(crate) fn on_stray(&mut self, face: FaceSlot, packet: &NetPacket) {
        let Some(face) = self.state.faces.get(face).map(|face| face.id) else {
            return;
        };
        let packet = packet.clone();
        if matches!(packet.packet, NetKind::Data(_)) {
            return self.on_tour(face, packet, Box::default());
        }
        if let Some(place) = &self.state.place {
            let home = place.home_of(&self.state.key, packet.name());
            let again = false;
            self.pass(
                home,
                Body::Packet {
                    face,
                    packet,
                    again,
                },
            );
        }
    }

    /// A Data has come here on its way home.
    pub(super) fn on_tour(&mut self, face: FaceId, packet: NetPacket, mut tour: Box<Tour>) {
        let (Some(slot), NetKind::Data(data)) = (self.state.faces.slot(face), &packet.packet)
        else {
            return;
        };
        let mut hashes = NameHashes::default();
        hashes.push(&self.state.key, data.name());
        let name = hashes.last(data.name());
        let faces = &self.state.faces;
        let served = tour.served.iter();
        let mut served: Served = served
            .filter_map(|(face, token)| Some((faces.slot(*face)?, *token)))
            .collect();
        let Some(home) = self.away(&name) else {
            return self.take_data(slot, &packet, data, &name, &mut served, &tour);
        };
        if self.visit(slot, &packet, data, &name, &mut served, &mut tour) {
            let faces = &self.state.faces;
            let served = served.iter();
            tour.served = served
                .filter_map(|(slot, token)| Some((faces.get(*slot)?.id, *token)))
                .collect();
        }
        self.send_on_tour(face, packet, tour, home);
    }

    /// Sends a Data that is at home elsewhere where it goes next.
    pub(super) fn send_on_tour(
        &mut self,
        face: FaceId,
        packet: NetPacket,
        mut tour: Box<Tour>,
        home: usize,
    ) {
        let to = next(&mut tour.left).unwrap_or(home);
        self.pass(to, Body::Data { face, packet, tour });
    }

    /// Serves those who wait here for a Data that is at home elsewhere, where it is cached and counted. Whether there
    /// were any.
    fn visit(
        &mut self,
        face: FaceSlot,
        packet: &NetPacket,
        data: &Data,
        name: &HashedName<'_>,
        served: &mut Served,
        tour: &mut Tour,
    ) -> bool {
        let ingress = self.state.faces.get(face);
        if ingress.is_none_or(|face| !face.is_local() && name.value().starts_with(LOCALHOST)) {
            return false;
        }
        let matches = self.asked_of(face, packet, data, name);
        if matches.is_empty() {
            return false;
        }
        tour.wanted = true;
        if tour.rejecter == 0 {
            tour.rejecter = self.rejecter(&matches);
        }
        let will_be_cached = !packet.no_cache && face != INTERNAL_SLOT && self.cs.admit;
        self.satisfy(face, packet, data, name, (matches, will_be_cached), served);
        true
    }

    /// Sends a short Interest by the other content stores before it waits.
    pub(crate) fn ask_other_stores(&mut self, face: FaceSlot, packet: &NetPacket) {
        let (Some(place), Some(face)) = (&self.state.place, self.state.faces.get(face)) else {
            return;
        };
        let (mut left, home, face) = (place.other_bits(), place.number, face.id);
        if let Some(first) = next(&mut left) {
            let packet = packet.clone();
            self.pass(
                first,
                Body::Find {
                    face,
                    packet,
                    left,
                    home,
                },
            );
        }
    }

    /// A short Interest looks for Data here.
    pub(super) fn on_find(&mut self, face: FaceId, packet: NetPacket, mut left: u64, home: usize) {
        let (Some(slot), NetKind::Interest(interest)) =
            (self.state.faces.slot(face), &packet.packet)
        else {
            return;
        };
        let mut hashes = NameHashes::default();
        hashes.push(&self.state.key, interest.name());
        let query = Query {
            can_be_prefix: true,
            must_be_fresh: interest.must_be_fresh(),
            now: self.state.now,
        };
        let found = self.cs.probe(&hashes.last(interest.name()), query).cloned();
        if let Some(data) = found {
            return self.send_from_store(slot, &packet, interest, data);
        }
        match next(&mut left) {
            Some(to) => self.pass(
                to,
                Body::Find {
                    face,
                    packet,
                    left,
                    home,
                },
            ),
            None => {
                let again = true;
                self.pass(
                    home,
                    Body::Packet {
                        face,
                        packet,
                        again,
                    },
                );
            }
        }
    }

    /// Passes a packet on to another worker, if there is room.
    pub(super) fn pass(&mut self, worker: usize, body: Body) {
        let face = match &body {
            Body::Packet { face, .. } | Body::Find { face, .. } | Body::Data { face, .. } => *face,
            Body::Control(_) => FaceId::INTERNAL,
        };
        let message = Message(body);
        if self.state.outputs.has_room(message.bytes()) {
            self.tell(worker, message);
        } else if let Some(slot) = self.state.faces.slot(face) {
            self.state.count(slot, |c| c.dropped_outputs_full += 1);
        }
    }
}
