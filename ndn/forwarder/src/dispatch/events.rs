//! Notifications about faces: a sequence of Data, `/localhost/nfd/faces/events/seq=<n>`.

use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::manager::{FRESHNESS, KEPT};
use crate::mgmt::{FaceEvent, FaceEventKind, FaceStatus};
use crate::request::Request;
use crate::state::nanos;
use ndn_packet::{ComponentBuf, Data, Name, SigningKey};

fn stream_name() -> Name {
    Name::from_components(["localhost", "nfd", "faces", "events"].map(ComponentBuf::generic))
}

impl Forwarder {
    /// Makes a notification, and sends it to those who wait for it.
    pub(crate) fn announce_face(&mut self, face: FaceId, kind: FaceEventKind) {
        let Some(entry) = self.state.faces.by_id(face).filter(|_| self.manages()) else {
            return;
        };
        let face = FaceStatus::new(entry.id, &entry.spec, &entry.counters);
        let events = &mut self.manager.events;
        let seq = events.next;
        events.next += 1;
        let wire = Data::builder(&stream_name().append(ComponentBuf::sequence(seq)))
            .freshness(FRESHNESS)
            .content(&FaceEvent { kind, face }.encode())
            .sign(&SigningKey::DigestSha256);
        if events.kept.len() == KEPT {
            events.kept.pop_front();
        }
        events.kept.push_back((seq, self.state.now, wire.clone()));
        if std::mem::take(&mut events.wanted) {
            self.answer(wire, None);
        }
    }

    /// Answers with a notification that is there, or lets the Interest wait for the next.
    pub(super) fn serve_event(&mut self, request: &Request) {
        let events = &mut self.manager.events;
        let found = match request.name.get(4) {
            Some(component) => {
                let seq = component.as_sequence();
                events.kept.iter().find(|(n, ..)| Some(*n) == seq)
            }
            None => events
                .kept
                .back()
                .filter(|(_, at, _)| self.state.now - at < nanos(FRESHNESS)),
        };
        match found.map(|(.., wire)| wire.clone()) {
            Some(wire) => self.answer(wire, request.token),
            None => events.wanted = true,
        }
    }
}
