//! Reading: events, accepted peers, frames and datagrams into the forwarder.

use std::hash::BuildHasher;
use std::net::SocketAddr;

use bytes::Bytes;
use ndn_forwarder::{FaceId, FacePersistency};
use ndn_packet::NetPacket;
use rustc_hash::FxBuildHasher;

use super::slots::{Face, FaceKind, PortOwner, Slot, StreamState, UdpOrigin};
use super::timers::Timer;
use super::{
    BURST_OUTPUTS, Core, Driver, FACE_BYTES, MAX_BURST, MOST_BURST_OUTPUTS, TURN_LENT,
    TURN_PACKETS, TURN_SENT,
};
use crate::face::link::{self, Received};
use crate::face::stream::{Progress, Turn};

impl<C: Core> Driver<C> {
    pub(super) fn on_event(&mut self, event: &mio::event::Event) {
        let at = event.token().0;
        match self.slots.get_mut(at) {
            None => {}
            Some(Slot::Listener(_)) => self.accept(at),
            Some(Slot::Arriving(arriving)) => {
                arriving.peer.io.on_event(event);
                self.handshake_ready(at);
            }
            Some(Slot::Port(port)) => {
                port.port.on_event(event);
                if port.port.is_readable() {
                    self.make_ready(at);
                }
                if event.is_writable() {
                    self.flush_port(at);
                }
            }
            Some(Slot::Face(face)) => {
                let stream = match &mut face.kind {
                    FaceKind::Stream(stream) => stream,
                    FaceKind::Udp(udp) => {
                        udp.face.on_event(event);
                        return self.make_dirty(at);
                    }
                    FaceKind::App(_) => return,
                };
                match &mut stream.state {
                    StreamState::Waiting => {}
                    StreamState::Connecting(io) => {
                        // What the peer sends at once comes with this event.
                        io.on_event(event);
                        self.on_connecting(at);
                    }
                    StreamState::Up(stream) => {
                        stream.conn.on_event(event);
                        // A doorbell may mean bytes as well as room.
                        let room = event.is_writable() || stream.conn.memory_use().there;
                        if room && stream.queued() > 0 {
                            self.make_dirty(at);
                        }
                        self.make_ready(at);
                    }
                }
            }
        }
    }

    /// Reads every ready face for a turn, and calls `after` when packets of it have been handed over.
    pub fn read_ready(&mut self, mut after: impl FnMut(&mut Self)) {
        // There is work: the loop has not been about to sleep. Until it is, peers by shared memory need not ring, and
        // are looked at in every round.
        while let Some(at) = self.unarmed.pop() {
            if let Some(Slot::Face(face)) = self.slots.get_mut(at) {
                face.unarmed = false;
                self.make_ready(at);
            }
        }
        let mut ready = std::mem::take(&mut self.ready);
        for (i, &at) in ready.iter().enumerate() {
            if !self.core.takes_more() {
                // Those who had no turn are the first to have one.
                let late = std::mem::take(&mut self.ready);
                self.ready.extend_from_slice(&ready[i..]);
                self.ready.extend(late);
                return;
            }
            match self.slots.get_mut(at) {
                Some(Slot::Face(face)) => {
                    face.ready = false;
                    self.read_face(at, &mut after);
                }
                Some(Slot::Port(port)) => {
                    port.ready = false;
                    self.read_port(at, &mut after);
                }
                _ => {}
            }
        }
        ready.clear();
        // What became ready meanwhile was pushed to the list that took this one's place.
        if self.ready.is_empty() {
            self.ready = ready;
        }
    }

    /// A turn of the face in this slot: it ends when all has been read, or when the face has used up its bytes, its
    /// packets, or the packets that others may be sent because of it.
    fn read_face(&mut self, at: usize, after: &mut impl FnMut(&mut Self)) {
        let Some(Slot::Face(Face { id, .. })) = self.slots.get(at) else {
            return;
        };
        let (id, end) = (*id, self.sent + TURN_SENT);
        let mut left = TURN_PACKETS;
        let mut turn = Turn {
            bytes: self.read_budget,
            read: self.read_budget,
            burst: self.burst(),
            lent: TURN_LENT,
        };
        loop {
            let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
                return;
            };
            // What was carried out may have been the end of it.
            if face.id != id {
                return;
            }
            let Some(stream) = face.stream_up() else {
                return;
            };
            let read = stream.receive(self.now, &mut self.buffers, &mut turn, &mut self.packets);
            // Greetings and agreements are queued while reading.
            let queued = stream.queued() > 0;
            let progress = match read {
                Ok(Progress::Burst) => {
                    left = left.saturating_sub(turn.burst);
                    if stream.must_finish(&self.buffers)
                        || left > 0 && turn.lent > 0 && self.sent < end
                    {
                        Progress::Burst
                    } else {
                        Progress::Spent
                    }
                }
                Ok(progress) => progress,
                Err(error) => {
                    self.hand_over(id, after);
                    self.stream_failed(at, error);
                    return;
                }
            };
            let by_memory = stream.conn.memory_use().reads;
            if progress != Progress::Burst {
                stream.end_turn(self.now, &self.buffers, progress == Progress::Spent);
            }
            let waits = stream.deadline().is_some();
            match progress {
                Progress::Burst => {}
                Progress::Spent => self.make_ready(at),
                Progress::Drained => {
                    if by_memory && !std::mem::replace(&mut face.unarmed, true) {
                        self.unarmed.push(at);
                    }
                }
            }
            if queued {
                self.make_dirty(at);
            }
            if waits {
                self.set_link_timer(at);
            }
            self.note_agreement(at);
            self.hand_over(id, after);
            if progress != Progress::Burst {
                return;
            }
            turn.burst = self.burst();
        }
    }

    /// How many packets may be handed over at once.
    pub(super) fn burst(&self) -> usize {
        // Other loops have about as many.
        let faces = self.by_face.len().max(1) * self.core.loops();
        self.burst.min(MOST_BURST_OUTPUTS / faces).max(1)
    }

    /// Hands over the packets that came on a face, and has what comes of them carried out.
    fn hand_over(&mut self, face: FaceId, after: &mut impl FnMut(&mut Self)) {
        let count = self.packets.len();
        if count == 0 {
            return;
        }
        let before = self.sent;
        self.core.receive_batch(self.now, face, &mut self.packets);
        after(self);
        self.adapt_burst(count, before);
    }

    /// So many packets were handed over when `before` had been sent, and what comes of them has been carried out: fewer are
    /// next time where it was much.
    pub(super) fn adapt_burst(&mut self, count: usize, before: u64) {
        if self.sent - before > BURST_OUTPUTS {
            self.burst = (count / 2).max(1);
        } else if (self.sent - before) * 2 <= BURST_OUTPUTS {
            self.burst = (self.burst * 2).min(MAX_BURST);
        }
    }

    /// Before sleeping: true where no face has bytes in shared memory.
    pub(super) fn arm(&mut self) -> bool {
        let mut all = true;
        while let Some(at) = self.unarmed.pop() {
            let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
                continue;
            };
            face.unarmed = false;
            let Some(stream) = face.stream_up() else {
                continue;
            };
            match stream.conn.may_sleep() {
                Ok(true) => {}
                Ok(false) => {
                    all = false;
                    self.make_ready(at);
                }
                Err(error) => self.stream_failed(at, error),
            }
        }
        all
    }

    fn read_port(&mut self, at: usize, after: &mut impl FnMut(&mut Self)) {
        let end = self.sent + TURN_SENT;
        let mut left = self.read_budget;
        loop {
            let Some(Slot::Port(port)) = self.slots.get_mut(at) else {
                return;
            };
            let mut datagrams = std::mem::take(&mut self.datagrams);
            let n = port.port.receive(
                &mut self.datagram_buffers,
                &mut self.buffers.small,
                &mut |from, bytes| {
                    datagrams.push((from, bytes));
                },
            );
            let more = port.port.is_readable();
            self.receive_datagrams(at, &mut datagrams, after);
            self.datagrams = datagrams;
            if !more {
                return;
            }
            left = left.saturating_sub(n);
            if left == 0 || self.sent >= end {
                if matches!(self.slots.get(at), Some(Slot::Port(_))) {
                    self.make_ready(at);
                }
                return;
            }
        }
    }

    /// Takes what a port has received; packets that came from one peer in a row go on together.
    fn receive_datagrams(
        &mut self,
        port: usize,
        datagrams: &mut Vec<(SocketAddr, Bytes)>,
        after: &mut impl FnMut(&mut Self),
    ) {
        let mut last = None;
        for (from, datagram) in datagrams.drain(..) {
            let Some(at) = self.face_of_peer(port, from, &datagram) else {
                continue;
            };
            let Some(Slot::Face(Face { id, .. })) = self.slots.get(at) else {
                continue;
            };
            let id = *id;
            if let Some(before) = last.replace(id)
                && (before != id || self.packets.len() >= self.burst())
            {
                self.hand_over(before, after);
            }
            // What was handed over may have been the end of the face.
            if matches!(self.slots.get(at), Some(Slot::Face(face)) if face.id == id)
                && let Some(packet) = self.receive_datagram(at, from, datagram)
            {
                self.packets.push(packet);
            }
        }
        if let Some(last) = last {
            self.hand_over(last, after);
        }
    }

    fn receive_datagram(
        &mut self,
        at: usize,
        from: SocketAddr,
        datagram: Bytes,
    ) -> Option<NetPacket> {
        let now = self.now;
        let Some(Slot::Face(Face {
            kind: FaceKind::Udp(udp),
            link_timer,
            ..
        })) = self.slots.get_mut(at)
        else {
            return None;
        };
        if udp.own == Some(from) {
            return None;
        }
        udp.last_heard = now;
        // Those who speak on a multicast link number their fragments each for themselves.
        let sender = if udp.multicast {
            FxBuildHasher.hash_one(from)
        } else {
            0
        };
        let has_timer = *link_timer;
        match udp.face.link.receive(now, sender, datagram) {
            Received::Packet(packet) => return Some(packet),
            Received::Hello { answer, .. } => {
                // On a multicast link there is nobody in particular to agree with.
                if !udp.multicast && answer && udp.face.say_hello(false) {
                    self.make_dirty(at);
                }
                self.note_agreement(at);
            }
            // There is nothing to lend over a network.
            Received::Lent(..) => udp.face.link.counters.malformed += 1,
            Received::Nothing => {
                if !has_timer {
                    self.set_link_timer(at);
                }
            }
        }
        None
    }

    /// The face for a datagram: the port's own, or its sender's, made now if need be.
    fn face_of_peer(&mut self, at: usize, from: SocketAddr, datagram: &Bytes) -> Option<usize> {
        let Some(Slot::Port(port)) = self.slots.get_mut(at) else {
            return None;
        };
        let listener = match &mut port.owner {
            PortOwner::Face(face) => return Some(*face),
            PortOwner::Listener(listener) => listener,
        };
        if let Some(face) = listener.peers.get(&from) {
            return Some(*face);
        }
        if !link::opens_face(datagram) {
            listener.admission.malformed += 1;
            return None;
        }
        if !listener.admission.admits(Some(from.ip()), &listener.config) {
            return None;
        }
        if !self.budgets.faces.share().grows(FACE_BYTES) {
            listener.admission.refused += 1;
            return None;
        }
        let link = listener.config.link.clone();
        let idle = listener.config.idle_timeout;
        let speaker = port.port.clone();
        let face = self.add_udp_face(
            at,
            speaker,
            from,
            &link,
            UdpOrigin::OnDemand,
            FacePersistency::OnDemand,
        )?;
        if let Some(Slot::Port(port)) = self.slots.get_mut(at)
            && let PortOwner::Listener(listener) = &mut port.owner
        {
            listener.peers.insert(from, face);
            listener.admission.came(Some(from.ip()));
        }
        if let Some(Slot::Face(face)) = self.slots.get(face) {
            self.timers.set(self.now + idle, Timer::Idle(face.id));
        }
        Some(face)
    }
}
