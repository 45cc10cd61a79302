//! Whom the faces of a loop serve.

use std::io;
use std::time::Duration;

use ndn_forwarder::{CreateFaceError, FaceId, FaceSpec, Forwarder};
use ndn_packet::NetPacket;

use super::exchange::Parcel;
use crate::face::link::LinkCounters;
use crate::uri::FaceUri;

/// Takes the packets that a loop's faces bring: a forwarder, or the one application of a
/// [`crate::Client`]. What it answers it hands to the loop by itself.
pub(crate) trait Core {
    /// Whether it takes more packets now. While it does not, faces are not read, and what peers
    /// send waits where they feel it.
    fn takes_more(&self) -> bool;

    /// Takes packets from a face, all of them.
    fn receive_batch(&mut self, now: Duration, face: FaceId, packets: &mut Vec<NetPacket>);

    /// Whether the loop may sleep, as far as other loops are concerned. Asked once they know that it is about to.
    fn may_sleep(&self) -> bool {
        true
    }

    /// When it wants to be called, if ever.
    fn deadline(&self) -> Option<Duration>;

    /// A face is made; returns its number.
    fn add_face(&mut self, now: Duration, spec: FaceSpec) -> FaceId;

    /// A face is gone.
    fn remove_face(&mut self, now: Duration, face: FaceId);

    /// A face has connected, by `local_uri`, to a peer that has proven to have `peer_names`.
    fn face_up(&mut self, now: Duration, face: FaceId, local_uri: String, peer_names: Vec<String>);

    /// A face takes packets of `max_packet` bytes from now on, as its two ends have agreed.
    fn face_takes(&mut self, face: FaceId, max_packet: usize);

    /// A face is not connected, and may come back.
    fn face_down(&mut self, now: Duration, face: FaceId);

    /// A face that was opened here has failed for good and is about to be removed.
    fn face_failed(
        &mut self,
        face: FaceId,
        uri: &FaceUri,
        error: io::Error,
        counters: LinkCounters,
    );

    /// What came of [`ndn_forwarder::CreateFace`] number `request`.
    fn face_created(
        &mut self,
        now: Duration,
        request: u64,
        outcome: Result<FaceId, CreateFaceError>,
    );

    /// The loop that is to have the face of the next peer that connects, where that is another one.
    fn next_loop(&mut self) -> Option<usize> {
        None
    }

    /// How many loops there are.
    fn loops(&self) -> usize {
        1
    }

    /// Whether listeners are with this loop.
    fn listens(&self) -> bool {
        true
    }

    /// Has another loop get something.
    fn post(&mut self, _to: usize, _parcel: Parcel) {}
}

/// A core that has a forwarder: all there is, or one of its workers, with a loop for each.
pub(crate) trait NodeCore: Core {
    /// The forwarder, or this loop's worker.
    fn forwarder(&self) -> &Forwarder;

    /// The same, to be changed.
    fn forwarder_mut(&mut self) -> &mut Forwarder;

    /// The loop that has a face, where that is another one.
    fn loop_of(&self, _face: FaceId) -> Option<usize> {
        None
    }

    /// Takes what has come from other loops, but packets.
    fn take_parcels(&mut self, _now: Duration) {}

    /// Faces of which packets have come from other loops.
    fn arrivals(&mut self, _now: Duration) -> usize {
        0
    }

    /// Takes so many of those packets at most, of the face whose turn it is; how many, and whether these were its last.
    /// `None` where there are none, or what comes of others is to be taken first.
    fn take_packets(&mut self, _now: Duration, _most: usize) -> Option<(usize, bool)> {
        None
    }

    /// Another face has its turn.
    fn end_turn(&mut self) {}

    /// Something for the loop of what has come.
    fn next_parcel(&mut self) -> Option<Parcel> {
        None
    }

    /// Hands over what there is for other loops.
    fn dispatch(&mut self) {}
}

impl NodeCore for Forwarder {
    fn forwarder(&self) -> &Forwarder {
        self
    }

    fn forwarder_mut(&mut self) -> &mut Forwarder {
        self
    }
}

/// Bytes of packets that may wait to be handed to their faces while more packets are read.
pub(super) const MAX_PENDING_BYTES: usize = 4 << 20;

impl Core for Forwarder {
    fn takes_more(&self) -> bool {
        self.outputs_bytes() < MAX_PENDING_BYTES
    }

    fn receive_batch(&mut self, now: Duration, face: FaceId, packets: &mut Vec<NetPacket>) {
        Self::receive_batch(self, now, face, packets);
        packets.clear();
    }

    fn deadline(&self) -> Option<Duration> {
        Self::deadline(self)
    }

    fn add_face(&mut self, now: Duration, spec: FaceSpec) -> FaceId {
        Self::add_face(self, now, spec)
    }

    fn remove_face(&mut self, now: Duration, face: FaceId) {
        Self::remove_face(self, now, face);
    }

    fn face_up(&mut self, now: Duration, face: FaceId, local_uri: String, peer_names: Vec<String>) {
        if let Some(spec) = self.face(face) {
            let spec = FaceSpec {
                local_uri,
                peer_names,
                ..spec.clone()
            };
            self.face_updated(face, spec);
        }
        self.set_face_up(now, face, true);
    }

    fn face_takes(&mut self, face: FaceId, max_packet: usize) {
        if let Some(spec) = self.face(face) {
            let spec = FaceSpec {
                max_packet_bytes: Some(max_packet as u64),
                ..spec.clone()
            };
            self.face_updated(face, spec);
        }
    }

    fn face_down(&mut self, now: Duration, face: FaceId) {
        self.set_face_up(now, face, false);
    }

    fn face_failed(&mut self, face: FaceId, uri: &FaceUri, error: io::Error, _: LinkCounters) {
        tracing::warn!(face = face.0, %uri, %error, "face failed and is removed");
    }

    fn face_created(
        &mut self,
        now: Duration,
        request: u64,
        outcome: Result<FaceId, CreateFaceError>,
    ) {
        Self::face_created(self, now, request, outcome);
    }
}
