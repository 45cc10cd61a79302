//! What other threads ask of the loop.

use super::Driver;
use super::core::NodeCore;
use super::slots::{AppSlot, Face, FaceKind, Port, PortOwner, Slot, StreamState};
use crate::driver::shared::Command;
use crate::face::link::LinkCounters;
use crate::status::{FaceStatus, ListenerStatus, LoopStatus, NodeStatus};

impl<C: NodeCore> Driver<C> {
    pub(super) fn run_commands(&mut self) {
        let mut commands = std::mem::take(&mut self.commands);
        self.shared.take(&mut commands);
        for command in commands.drain(..) {
            self.run_command(command);
        }
        self.commands = commands;
    }

    fn run_command(&mut self, command: Command) {
        match command {
            Command::Wake(id) => {
                let Some((at, face)) = self.face(id) else {
                    return;
                };
                if let FaceKind::App(slot) = &face.kind {
                    // Cleared before the call: a wake during it is a new one.
                    slot.woken
                        .store(false, std::sync::atomic::Ordering::Release);
                    self.with_app(at, |app, now, out| app.on_wake(now, out));
                }
            }
            Command::Detach(id) => {
                if let Some((at, _)) = self.face(id) {
                    self.remove_face(at);
                }
            }
            Command::Attach {
                app,
                name,
                woken,
                reply,
            } => {
                let id = self.add_app(
                    &name,
                    AppSlot {
                        app,
                        woken,
                        deadline: None,
                    },
                );
                // Nobody there to hold the handle: nobody would ever detach it.
                if reply.send(id).is_err()
                    && let Some((at, _)) = self.face(id)
                {
                    self.remove_face(at);
                }
            }
            Command::WithForwarder(f) => f(self.core.forwarder_mut(), self.now),
            Command::Resolved(id, uri) => self.on_resolved(id, uri),
            Command::Status(reply) => {
                // Fails only if nobody waits any more.
                let _ = reply.send(self.status());
            }
            Command::Shutdown => self.stop = true,
        }
    }

    fn status(&mut self) -> LoopStatus {
        // What has been said to be so is told.
        self.core.take_parcels(self.now);
        let (queues, uses) = (self.queues(), self.budgets.uses());
        self.core.forwarder_mut().set_queues(queues);
        self.core.forwarder_mut().set_driver_memory(uses);
        let mut faces: Vec<FaceStatus> = self
            .slots
            .iter()
            .filter_map(|(_, slot)| match slot {
                Slot::Face(face) => self.face_status(face),
                _ => None,
            })
            .collect();
        faces.sort_by_key(|face| face.id);
        let listeners = self.slots.iter().filter_map(|(_, slot)| match slot {
            Slot::Listener(listener) => Some(ListenerStatus {
                uri: listener.config.uri.clone(),
                open_faces: listener.admission.open(),
                refused: listener.admission.refused,
                malformed: listener.admission.malformed,
                unproven: listener.admission.unproven,
            }),
            Slot::Port(Port {
                owner: PortOwner::Listener(listener),
                ..
            }) => Some(ListenerStatus {
                uri: listener.config.uri.clone(),
                open_faces: listener.admission.open(),
                refused: listener.admission.refused,
                malformed: listener.admission.malformed,
                unproven: listener.admission.unproven,
            }),
            _ => None,
        });
        let forwarder = self.core.forwarder();
        let status = NodeStatus {
            uptime: self.now,
            faces,
            listeners: listeners.collect(),
            forwarder: forwarder.status(),
            memory: forwarder.memory_parts().collect(),
        };
        LoopStatus {
            status,
            counters: forwarder.faces().map(|(id, _, _, c)| (id, c)).collect(),
        }
    }

    fn face_status(&self, face: &Face) -> Option<FaceStatus> {
        let mut status = FaceStatus {
            id: face.id,
            spec: self.core.forwarder().face(face.id)?.clone(),
            up: true,
            jumbo: false,
            shared_memory: false,
            dscp: None,
            queued_bytes: 0,
            packets: self.core.forwarder().counters(face.id)?,
            link: LinkCounters::default(),
        };
        match &face.kind {
            FaceKind::Stream(stream) => {
                status.up = stream.is_up();
                status.link = stream.counters();
                if let StreamState::Up(stream) = &stream.state {
                    status.jumbo = stream.link.is_jumbo();
                    status.shared_memory = stream.conn.memory_use().goes_both_ways();
                    status.dscp = stream.conn.dscp();
                    status.queued_bytes = stream.queued();
                }
            }
            FaceKind::Udp(udp) => {
                status.jumbo = udp.face.link.is_jumbo();
                status.dscp = udp.face.dscp();
                status.queued_bytes = udp.face.queued();
                status.link = udp.face.link.counters();
            }
            FaceKind::App(_) => status.jumbo = true,
        }
        Some(status)
    }
}
