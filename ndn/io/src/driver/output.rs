//! Writing: to applications, queues and sockets.

use std::time::Duration;

use ndn_forwarder::FaceId;
use ndn_packet::NetPacket;

use super::slots::{Face, FaceKind, Port, PortOwner, Slot, StreamState};
use super::{Core, Driver};
use crate::app::App;

impl<C: Core> Driver<C> {
    /// Sends a packet on a face: to its application, or into its send queue.
    pub fn send(&mut self, id: FaceId, packet: NetPacket) {
        let now = self.now;
        self.sent += 1;
        let Some(&at) = self.by_face.get(&id.0) else {
            return;
        };
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        match &mut face.kind {
            FaceKind::Stream(stream) => match &mut stream.state {
                StreamState::Up(stream) => stream.send(now, &packet),
                StreamState::Connecting(_) | StreamState::Waiting => {
                    stream.past.queue_drops += 1;
                    return;
                }
            },
            FaceKind::Udp(udp) => udp.face.send(now, &packet),
            FaceKind::App(_) => {
                self.with_app(at, |app, now, out| app.on_packet(now, packet, out));
                return;
            }
        }
        if !std::mem::replace(&mut face.dirty, true) {
            self.dirty.push(at);
        }
    }

    /// Calls an application and hands what it sends to the forwarder.
    pub(super) fn with_app(
        &mut self,
        at: usize,
        call: impl FnOnce(&mut dyn App, Duration, &mut Vec<NetPacket>),
    ) {
        let Some(Slot::Face(Face {
            id,
            kind: FaceKind::App(slot),
            ..
        })) = self.slots.get_mut(at)
        else {
            return;
        };
        call(slot.app.as_mut(), self.now, &mut self.packets);
        slot.deadline = slot.app.deadline();
        self.core.receive_batch(self.now, *id, &mut self.packets);
    }

    /// When the application in this slot wants to be called.
    pub(super) fn app_deadline(&self, at: usize) -> Option<Duration> {
        match self.slots.get(at) {
            Some(Slot::Face(Face {
                kind: FaceKind::App(slot),
                ..
            })) => slot.deadline,
            _ => None,
        }
    }

    /// Writes every face that got something, once.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for &at in &dirty {
            self.flush_face(at);
        }
        dirty.clear();
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    fn flush_face(&mut self, at: usize) {
        let Some(Slot::Face(face)) = self.slots.get_mut(at) else {
            return;
        };
        face.dirty = false;
        match &mut face.kind {
            FaceKind::Stream(stream) => {
                if let StreamState::Up(stream) = &mut stream.state
                    && let Err(error) = stream.flush()
                {
                    self.stream_failed(at, error);
                }
            }
            FaceKind::Udp(udp) => udp.face.flush(),
            FaceKind::App(_) => {}
        }
    }

    /// A UDP socket takes datagrams again: whoever waits for it writes.
    pub(super) fn flush_port(&mut self, at: usize) {
        let Some(Slot::Port(Port { owner, .. })) = self.slots.get(at) else {
            return;
        };
        let faces: Vec<usize> = match owner {
            PortOwner::Face(face) => vec![*face],
            PortOwner::Listener(listener) => listener.peers.values().copied().collect(),
        };
        for face in faces {
            let waits = matches!(
                self.slots.get(face),
                Some(Slot::Face(Face { kind: FaceKind::Udp(udp), .. })) if udp.face.queued() > 0
            );
            if waits {
                self.make_dirty(face);
            }
        }
    }
}
