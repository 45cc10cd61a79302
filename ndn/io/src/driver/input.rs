//! Reading: events, accepted peers, frames and datagrams into the forwarder.

use std::hash::BuildHasher;
use std::net::SocketAddr;

use bytes::Bytes;
use ndn_forwarder::FacePersistency;
use ndn_packet::NetPacket;
use rustc_hash::FxBuildHasher;

use super::slots::{Face, FaceKind, PortOwner, Slot, StreamState, UdpOrigin};
use super::timers::Timer;
use super::{Core, Driver};
use crate::face::link::Received;

impl<C: Core> Driver<C> {
    pub(super) fn on_event(&mut self, event: &mio::event::Event) {
        let at = event.token().0;
        match self.slots.get_mut(at) {
            None => {}
            Some(Slot::Listener(_)) => self.accept(at),
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

    /// Reads every ready face once, and calls `after_each` when it is read.
    pub fn read_ready(&mut self, mut after_each: impl FnMut(&mut Self)) {
        if !self.core.takes_more() {
            return;
        }
        let mut ready = std::mem::take(&mut self.ready);
        for &at in &ready {
            match self.slots.get_mut(at) {
                Some(Slot::Face(face)) => {
                    face.ready = false;
                    self.read_face(at);
                }
                Some(Slot::Port(port)) => {
                    port.ready = false;
                    self.read_port(at);
                }
                _ => {}
            }
            after_each(self);
        }
        ready.clear();
        // What became ready meanwhile was pushed to the list that took this one's place.
        if self.ready.is_empty() {
            self.ready = ready;
        }
    }

    fn read_face(&mut self, at: usize) {
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        let id = face.id;
        let Some(stream) = face.stream_up() else {
            return;
        };
        let packets = &mut self.packets;
        let read = stream.receive(self.now, &mut self.buffers, self.read_budget, |packet| {
            packets.push(packet)
        });
        let queued = stream.queued() > 0;
        let by_memory = stream.conn.memory_use().reads;
        if let Ok(more) = read
            && by_memory
            && !more
            && !std::mem::replace(&mut face.unarmed, true)
        {
            self.unarmed.push(at);
        }
        self.note_agreement(at);
        self.core.receive_batch(self.now, id, &mut self.packets);
        match read {
            Ok(more) => {
                if more {
                    self.make_ready(at);
                }
                // Greetings and agreements are queued while reading.
                if queued {
                    self.make_dirty(at);
                }
            }
            Err(error) => self.stream_failed(at, error),
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

    fn read_port(&mut self, at: usize) {
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
            self.receive_datagrams(at, &mut datagrams);
            self.datagrams = datagrams;
            if !more {
                return;
            }
            left = left.saturating_sub(n);
            if left == 0 {
                self.make_ready(at);
                return;
            }
        }
    }

    /// Takes what a port has received; packets that came from one peer in a row go on together.
    fn receive_datagrams(&mut self, port: usize, datagrams: &mut Vec<(SocketAddr, Bytes)>) {
        let mut packets = std::mem::take(&mut self.packets);
        let mut last = None;
        for (from, datagram) in datagrams.drain(..) {
            let Some(at) = self.face_of_peer(port, from, &datagram) else {
                continue;
            };
            if let Some(before) = last.replace(at)
                && before != at
            {
                self.hand_over(before, &mut packets);
            }
            packets.extend(self.receive_datagram(at, from, datagram));
        }
        if let Some(last) = last {
            self.hand_over(last, &mut packets);
        }
        self.packets = packets;
    }

    fn hand_over(&mut self, at: usize, packets: &mut Vec<NetPacket>) {
        if let Some(Slot::Face(face)) = self.slots.get(at) {
            self.core.receive_batch(self.now, face.id, packets);
        }
        packets.clear();
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
            Received::Hello(_) => {
                // On a multicast link there is nobody in particular to agree with.
                if !udp.multicast && !udp.face.link.said_hello() && udp.face.say_hello() {
                    self.make_dirty(at);
                }
                self.note_agreement(at);
            }
            Received::Nothing => {
                if !has_timer {
                    self.set_link_timer(at);
                }
            }
        }
        None
    }

    /// The face for a datagram: the port's own, or its sender's, made now if need be.
    fn face_of_peer(&mut self, at: usize, from: SocketAddr, datagram: &[u8]) -> Option<usize> {
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
        // Noise from the Internet makes no face.
        if !matches!(datagram.first(), Some(0x05 | 0x06 | 0x64)) {
            listener.refused += 1;
            return None;
        }
        if listener.peers.len() >= listener.config.max_faces {
            listener.refused += 1;
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
        }
        if let Some(Slot::Face(face)) = self.slots.get(face) {
            self.timers.set(self.now + idle, Timer::Idle(face.id));
        }
        Some(face)
    }
}
