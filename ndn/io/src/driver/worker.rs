//! One worker of a forwarder with its loop's end of the exchange.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ndn_forwarder::{CreateFaceError, FaceId, FaceSpec, Forwarder, Message};
use ndn_packet::NetPacket;

use super::core::{Core, NodeCore};
use super::exchange::{Desk, Parcel};
use crate::face::link::LinkCounters;
use crate::uri::FaceUri;

/// The core of a loop that has others beside it.
pub(crate) struct Worker {
    forwarder: Forwarder,
    desk: Desk,
    /// What has come for the loop and is not yet done.
    parcels: VecDeque<Parcel>,
    messages: Vec<Message>,
    /// The loop that has the next peer's face.
    next_loop: usize,
}

impl Worker {
    pub fn new(forwarder: Forwarder, desk: Desk) -> Self {
        Self {
            forwarder,
            desk,
            parcels: VecDeque::new(),
            messages: Vec::new(),
            next_loop: 0,
        }
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Takes what has come, and has the worker do what is for it.
    fn take(&mut self, now: Duration) {
        // What comes meanwhile has its turn after the faces.
        for _ in 0..self.desk.pending() {
            let Some(parcels) = self.desk.take() else {
                return;
            };
            for parcel in parcels {
                match parcel {
                    Parcel::Message(message) => self.messages.push(message),
                    other => self.parcels.push_back(other),
                }
            }
            self.forwarder.receive_messages(now, &mut self.messages);
            self.dispatch();
        }
    }

    /// Hands over what the worker has for others.
    fn dispatch(&mut self) {
        while let Some((to, message)) = self.forwarder.poll_message() {
            self.desk.put(to, Parcel::Message(message));
        }
        self.desk.dispatch();
        let under_way = self.desk.under_way();
        self.forwarder.set_bytes_on_their_way(under_way);
    }
}

impl Core for Worker {
    fn takes_more(&self) -> bool {
        // What others have taken meanwhile is seen at once: they wake the loop for it.
        Core::takes_more(&self.forwarder) && self.desk.has_room()
    }

    fn may_sleep(&self) -> bool {
        self.desk.pending() == 0 && self.parcels.is_empty()
    }

    fn receive_batch(&mut self, now: Duration, face: FaceId, packets: &mut Vec<NetPacket>) {
        // What others knew before a packet was sent is known here before it is taken in.
        if self.desk.pending() > 0 {
            self.take(now);
        }
        self.forwarder.receive_batch(now, face, packets);
        packets.clear();
    }

    fn deadline(&self) -> Option<Duration> {
        self.forwarder.deadline()
    }

    fn add_face(&mut self, now: Duration, spec: FaceSpec) -> FaceId {
        let id = self.forwarder.add_face(now, spec);
        self.dispatch();
        id
    }

    fn remove_face(&mut self, now: Duration, face: FaceId) {
        self.forwarder.remove_face(now, face);
        self.dispatch();
    }

    fn face_up(&mut self, now: Duration, face: FaceId, local_uri: String, peer_names: Vec<String>) {
        Core::face_up(&mut self.forwarder, now, face, local_uri, peer_names);
        self.dispatch();
    }

    fn face_takes(&mut self, face: FaceId, max_packet: usize) {
        self.forwarder.face_takes(face, max_packet);
        self.dispatch();
    }

    fn face_down(&mut self, now: Duration, face: FaceId) {
        self.forwarder.face_down(now, face);
        self.dispatch();
    }

    fn face_failed(
        &mut self,
        face: FaceId,
        uri: &FaceUri,
        error: io::Error,
        counters: LinkCounters,
    ) {
        self.forwarder.face_failed(face, uri, error, counters);
    }

    fn face_created(
        &mut self,
        now: Duration,
        request: u64,
        outcome: Result<FaceId, CreateFaceError>,
    ) {
        self.forwarder.face_created(now, request, outcome);
    }

    fn next_loop(&mut self) -> Option<usize> {
        let next = self.next_loop;
        self.next_loop = (next + 1) % self.desk.loops();
        (next != self.desk.number()).then_some(next)
    }

    fn listens(&self) -> bool {
        self.desk.number() == 0
    }

    fn post(&mut self, to: usize, parcel: Parcel) {
        self.desk.put(to, parcel);
    }
}

impl NodeCore for Worker {
    fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    fn forwarder_mut(&mut self) -> &mut Forwarder {
        &mut self.forwarder
    }

    fn loop_of(&self, face: FaceId) -> Option<usize> {
        let number = face.worker(self.desk.loops());
        (number != self.desk.number()).then_some(number)
    }

    fn take_parcels(&mut self, now: Duration) {
        self.take(now);
    }

    fn next_parcel(&mut self) -> Option<Parcel> {
        self.parcels.pop_front()
    }

    fn dispatch(&mut self) {
        Worker::dispatch(self);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.desk.end_all();
    }
}
