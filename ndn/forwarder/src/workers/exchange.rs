//! How a worker gets what is its own, and the others get what is theirs.

use crate::face::{FaceId, FaceSlot, FaceSpec};
use crate::forwarder::Forwarder;
use crate::shard::{Body, Control, Message, Place, Tour};
use crate::strategy::StrategyKind;
use crate::table::fib::NextHop;
use crate::table::hash::HashedName;
use ndn_packet::{NetKind, NetPacket};
use std::time::Duration;

/// Where a packet that came on a face of this worker goes.
enum Way {
    /// It is this worker's.
    Here,
    To(usize),
    /// Home by the workers of these bits.
    Tour {
        left: u64,
        home: usize,
    },
}

impl Forwarder {
    /// What another worker must get next, if anything, and its number. To be asked, as [`Forwarder::poll_output`], after
    /// any call.
    pub fn poll_message(&mut self) -> Option<(usize, Message)> {
        let (to, message) = self.state.messages.pop_front()?;
        self.state.outputs.release(message.bytes());
        Some((to, message))
    }

    /// Takes in what other workers have for this one, leaving `messages` empty.
    pub fn receive_messages(&mut self, now: Duration, messages: &mut Vec<Message>) {
        self.state.set_now(now);
        let mut burst = std::mem::take(&mut self.arrived);
        for message in messages.drain(..) {
            // Packets that come one after the other are looked up together.
            if let Body::Packet {
                face,
                packet,
                again: false,
            } = message.0
            {
                if let Some(slot) = self.state.faces.slot(face) {
                    burst.push((slot, packet));
                }
                continue;
            }
            self.process_arrived(&mut burst);
            match message.0 {
                Body::Packet { face, packet, .. } => self.process_again(face, &packet),
                Body::Find {
                    face,
                    packet,
                    left,
                    home,
                } => self.on_find(face, packet, left, home),
                Body::Data { face, packet, tour } => self.on_tour(face, packet, tour),
                Body::Control(control) => self.obey(*control),
            }
        }
        self.process_arrived(&mut burst);
        self.arrived = burst;
        self.run_management();
    }

    /// Bytes of packets that the driver has taken from this worker and that others have not taken yet: they count as
    /// outputs that wait.
    pub fn set_bytes_on_their_way(&mut self, bytes: usize) {
        self.state.outputs.set_elsewhere(bytes);
    }

    /// Has another worker get something.
    pub(crate) fn tell(&mut self, worker: usize, message: Message) {
        self.state.outputs.hold(message.bytes());
        self.state.messages.push_back((worker, message));
    }

    /// Has all other workers get something, where there are any.
    pub(crate) fn tell_others(&mut self, control: impl Fn() -> Control) {
        let others = self.state.place.as_ref().map(|place| place.others());
        for worker in others.into_iter().flatten() {
            self.tell(worker, Message::control(control()));
        }
    }

    /// The home of a name, where that is another worker.
    #[inline]
    pub(crate) fn away(&self, name: &HashedName<'_>) -> Option<usize> {
        let place = self.state.place.as_ref()?;
        Some(place.home(name)).filter(|home| *home != place.number)
    }

    /// Passes on what is at home with other workers, leaving in `packets` what is not.
    pub(crate) fn pass_on(&mut self, face: FaceSlot, packets: &mut Vec<NetPacket>) {
        let Some(id) = self.state.faces.get(face).map(|face| face.id) else {
            return;
        };
        let mut all = std::mem::replace(packets, std::mem::take(&mut self.sorted));
        for packet in all.drain(..) {
            match self.way(&packet) {
                Way::Here => packets.push(packet),
                Way::To(home) => {
                    let (face, again) = (id, false);
                    self.pass(
                        home,
                        Body::Packet {
                            face,
                            packet,
                            again,
                        },
                    );
                }
                Way::Tour { left, home } => self.begin_tour(id, packet, left, home),
            }
        }
        self.sorted = all;
    }

    /// Has a Data visit this worker first, if it is to visit it, and then the others.
    fn begin_tour(&mut self, face: FaceId, packet: NetPacket, left: u64, home: usize) {
        let own = self.state.place.as_ref().map_or(0, Place::bit);
        let tour = Box::new(Tour {
            left: left & !own,
            ..Tour::default()
        });
        if left & own != 0 {
            self.on_tour(face, packet, tour);
        } else {
            self.send_on_tour(face, packet, tour, home);
        }
    }

    /// Where a packet that came on a face of this worker goes.
    fn way(&self, packet: &NetPacket) -> Way {
        let Some(place) = &self.state.place else {
            return Way::Here;
        };
        let by_token = || {
            packet
                .pit_token
                .as_ref()
                .and_then(|token| place.of_token(token))
        };
        let home = || place.home_of(&self.state.key, packet.name());
        let to = match &packet.packet {
            NetKind::Interest(_) => home(),
            NetKind::Nack { .. } => by_token().unwrap_or_else(home),
            NetKind::Data(_) => match place.with_short() {
                0 => by_token().unwrap_or_else(home),
                with_short => {
                    let home = home();
                    match with_short & !(1 << home) {
                        0 => home,
                        left => return Way::Tour { left, home },
                    }
                }
            },
        };
        if to == place.number {
            Way::Here
        } else {
            Way::To(to)
        }
    }

    fn obey(&mut self, control: Control) {
        match control {
            Control::FaceAdded(id, spec) => {
                let slot = self.state.faces.add_as(id, spec);
                self.state.meet(slot);
                self.announce_face(id, crate::mgmt::FaceEventKind::Created);
            }
            Control::FaceRemoved(id) => self.drop_face(id),
            Control::FaceUp(id, up) => self.turn_face(id, up),
            Control::FaceLink(id, spec) => self.relink(id, |own| FaceSpec {
                persistency: own.persistency,
                mtu: own.mtu,
                local_fields: own.local_fields,
                congestion_marking: own.congestion_marking,
                base_congestion_marking_interval_ns: own.base_congestion_marking_interval_ns,
                default_congestion_threshold: own.default_congestion_threshold,
                ..spec.clone()
            }),
            Control::FaceManaged(id, spec) => {
                let slot = self.state.faces.slot(id);
                if let Some(slot) = slot
                    && let Some(face) = self.state.faces.get_mut(slot)
                {
                    let own = &mut face.spec;
                    own.persistency = spec.persistency;
                    own.mtu = spec.mtu;
                    own.local_fields = spec.local_fields;
                    own.congestion_marking = spec.congestion_marking;
                    own.base_congestion_marking_interval_ns =
                        spec.base_congestion_marking_interval_ns;
                    own.default_congestion_threshold = spec.default_congestion_threshold;
                    self.state.meet(slot);
                }
            }
            Control::NextHops(name, hops) => {
                // Faces that are gone are not known any more. What is for management's own face stays with it.
                let hops = hops.into_iter().filter(|(id, _)| *id != FaceId::INTERNAL);
                let hops = hops.filter_map(|(id, cost)| {
                    let face = self.state.faces.slot(id)?;
                    Some(NextHop { face, cost })
                });
                let affected = self.rib.set_direct(&name, hops.collect());
                self.update_fib(affected);
            }
            Control::Strategy(prefix, Some(kind)) => {
                self.choose(&prefix, StrategyKind::from_index(kind));
            }
            Control::Strategy(prefix, None) => {
                self.unchoose(&prefix);
            }
            Control::Store {
                capacity,
                admit,
                serve,
            } => self.set_store(capacity, admit, serve),
            Control::Erase(prefix) => {
                self.erase_own(&prefix, usize::MAX);
            }
            Control::Errand(errand) => self.on_errand(errand),
        }
    }
}
