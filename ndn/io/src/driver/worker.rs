//! One worker of a forwarder with its loop's end of the exchange.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ndn_forwarder::{CreateFaceError, FaceId, FaceSpec, Forwarder, Message};
use ndn_packet::NetPacket;
use rustc_hash::FxHashMap;

use super::core::{Core, NodeCore};
use super::exchange::{Desk, Parcel};
use crate::face::link::LinkCounters;
use crate::uri::FaceUri;

/// Packets by the faces that they came by, which have turns as the loop's own faces have: whoever asks without end keeps
/// nobody's Interests from theirs.
#[derive(Default)]
struct Turns {
    queues: FxHashMap<FaceId, VecDeque<(usize, Message)>>,
    /// Those that have packets; the first has its turn.
    faces: VecDeque<FaceId>,
}

impl Turns {
    fn push(&mut self, from: usize, message: Message) {
        let Some(face) = message.face() else {
            return;
        };
        let queue = self.queues.entry(face).or_default();
        if queue.is_empty() {
            self.faces.push_back(face);
        }
        queue.push_back((from, message));
    }

    /// Takes so many packets at most of the face whose turn it is; its turn ends where these were all.
    fn take(&mut self, most: usize, mut each: impl FnMut(usize, Message)) -> usize {
        let Some(queue) = self
            .faces
            .front()
            .and_then(|face| self.queues.get_mut(face))
        else {
            return 0;
        };
        let count = most.min(queue.len());
        queue
            .drain(..count)
            .for_each(|(from, message)| each(from, message));
        if queue.is_empty()
            && let Some(face) = self.faces.pop_front()
        {
            self.queues.remove(&face);
        }
        count
    }
}

/// The core of a loop that has others beside it.
pub(crate) struct Worker {
    forwarder: Forwarder,
    desk: Desk,
    /// What has come for the loop and is not yet done.
    parcels: VecDeque<Parcel>,
    /// Packets that have come and that the worker has not taken in yet, each with the loop that it is from.
    packets: Turns,
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
            packets: Turns::default(),
            messages: Vec::new(),
            next_loop: 0,
        }
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Takes parcels that have come, and has the worker do what is for it.
    fn take(&mut self, now: Duration) {
        // Those that come meanwhile have their turn later.
        for _ in 0..self.desk.parcels() {
            let Some(parcels) = self.desk.take_parcels() else {
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
        let packets = self.desk.packets() > 0 || !self.packets.faces.is_empty();
        let takes_packets = packets && self.desk.has_room_for_answers();
        !takes_packets && self.desk.parcels() == 0 && self.parcels.is_empty()
    }

    fn receive_batch(&mut self, now: Duration, face: FaceId, packets: &mut Vec<NetPacket>) {
        // What others knew before a packet was sent is known here before it is taken in.
        if self.desk.parcels() > 0 {
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

    fn loops(&self) -> usize {
        self.desk.loops()
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

    fn arrivals(&mut self, now: Duration) -> usize {
        for _ in 0..self.desk.packets() {
            let Some((from, packets)) = self.desk.take_packets() else {
                break;
            };
            for packet in packets {
                self.packets.push(from, packet);
            }
        }
        // What was known to who sent them is to be known here.
        self.take(now);
        self.packets.faces.len()
    }

    fn take_packets(&mut self, now: Duration, most: usize) -> Option<(usize, bool)> {
        let turn = self.packets.faces.front().copied();
        if turn.is_none() || !self.desk.has_room_for_answers() {
            return None;
        }
        let (desk, messages) = (&self.desk, &mut self.messages);
        let count = self.packets.take(most, |from, message| {
            desk.give_back(from, message.bytes());
            messages.push(message);
        });
        self.forwarder.receive_messages(now, &mut self.messages);
        Some((count, self.packets.faces.front().copied() != turn))
    }

    fn end_turn(&mut self) {
        if !self.packets.faces.is_empty() {
            self.packets.faces.rotate_left(1);
        }
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
