//! The loop of a node: faces around a forwarder, with applications in the process.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ndn_forwarder::{FaceId, Forwarder, Output, Queues, Workers};
use ndn_packet::{Data, Name};

use super::core::{MAX_PENDING_BYTES, NodeCore};
use super::exchange::{Exchange, Parcel};
use super::shared::Shared;
use super::slots::{Face, Port, PortOwner, Slot};
use super::worker::Worker;
use super::{Driver, DriverOptions, random_u64};
use crate::config::{Lend, ListenConfig, NodeConfig};
use crate::error::StartError;
use crate::face::budgets::Budgets;
use crate::memory::packets::{PacketMemory, Sizes};
use crate::uri::FaceUri;

/// Outputs carried out at once where applications answer to them with more.
const OUTPUTS_A_ROUND: usize = 4096;

/// Makes the loops of a node, one for each worker, and opens what the configuration names, all of it with the first. The
/// one loop of a forwarder without workers is told to `alone`, several are told to `several`.
pub(crate) fn open_all<T>(
    mut config: NodeConfig,
    alone: impl FnOnce(Driver<Forwarder>) -> T,
    several: impl FnOnce(Vec<Driver<Worker>>) -> T,
) -> Result<T, StartError> {
    if config.forwarder.seed == 0 {
        config.forwarder.seed = random_u64().map_err(StartError::Loop)?;
    }
    if config.forwarder.unix_time_at_zero.is_zero() {
        config.forwarder.unix_time_at_zero = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
    }
    let count = config.workers.count;
    let options = DriverOptions {
        budgets: Budgets {
            memory: packet_memory(&config),
            ..Budgets::new(&config.memory, count)
        },
        managed_faces: config.managed_faces.clone(),
        epoch: Instant::now(),
    };
    if count == 1 {
        let core = Forwarder::new(config.forwarder.clone());
        let mut driver = Driver::new(core, options).map_err(StartError::Loop)?;
        driver.open(config)?;
        return Ok(alone(driver));
    }
    let workers = Workers::new(count, config.workers.prefix_components);
    tracing::info!(workers = count, "a thread for each worker");
    let outputs = config.forwarder.outputs_max_bytes / count;
    let limit = MAX_PENDING_BYTES.min(outputs) / 2;
    let desks = Exchange::between(count, limit).into_iter().enumerate();
    let drivers = desks.map(|(number, desk)| {
        let forwarder = Forwarder::worker(config.forwarder.clone(), &workers, number);
        let driver = Driver::new(Worker::new(forwarder, desk), options.clone())?;
        driver.core.desk().set_shared(driver.shared());
        Ok(driver)
    });
    let drivers: std::io::Result<Vec<_>> = drivers.collect();
    let mut drivers = drivers.map_err(StartError::Loop)?;
    drivers[0].open(config)?;
    Ok(several(drivers))
}

/// The memory that packets are lent from: what is received where a listener may lend it, and what is made here.
fn packet_memory(config: &NodeConfig) -> Option<Arc<PacketMemory>> {
    let lends = |listener: &ListenConfig| {
        let link = &listener.link;
        listener.uri.path().is_some()
            && link.shared_memory
            && link.jumbo
            && link.lend != Lend::Nobody
    };
    let received = if config.listeners.iter().any(lends) {
        config.memory.receive_buffers_bytes
    } else {
        0
    };
    let made = config.made_packets_bytes;
    if received + made == 0 {
        return None;
    }
    PacketMemory::new(Sizes {
        chunks: received,
        packets: received + made,
        // Packets of half such a piece fill as many bytes.
        large: 2 * (received + made),
        most: 2 * (received + made),
    })
    .inspect_err(|error| tracing::warn!(%error, "no memory to lend packets from; they are sent"))
    .ok()
}

impl<C: NodeCore> Driver<C> {
    /// Opens what the configuration names.
    fn open(&mut self, config: NodeConfig) -> Result<(), StartError> {
        for listener in config.listeners {
            let uri = listener.uri.clone();
            self.open_listener(listener)
                .map_err(|error| StartError::Listen { uri, error })?;
        }
        let channels = self.listening().iter().map(ToString::to_string).collect();
        self.core.forwarder_mut().set_channels(channels);
        for (prefix, strategy) in &config.strategies {
            self.core.forwarder_mut().set_strategy(prefix, *strategy);
        }
        for face in config.faces {
            let (uri, routes) = (face.uri.clone(), face.routes.clone());
            self.open_face(face)
                .and_then(|at| self.add_routes(at, &routes))
                .map_err(|error| StartError::Face { uri, error })?;
        }
        Ok(())
    }

    fn add_routes(&mut self, at: usize, routes: &[(ndn_packet::Name, u64)]) -> std::io::Result<()> {
        if let Some(Slot::Face(Face { id, .. })) = self.slots.get(at) {
            for (prefix, cost) in routes {
                self.core
                    .forwarder_mut()
                    .add_route(prefix, *id, *cost)
                    .map_err(std::io::Error::other)?;
            }
        }
        Ok(())
    }

    /// The memory that packets are lent from.
    pub fn packet_memory(&self) -> Option<Arc<PacketMemory>> {
        self.budgets.memory.clone()
    }

    /// Where the loop listens, in the order of the configuration.
    pub fn listening(&self) -> Vec<FaceUri> {
        let uri = |(_, slot): (usize, &Slot)| match slot {
            Slot::Listener(listener) => Some(listener.config.uri.clone()),
            Slot::Port(Port {
                owner: PortOwner::Listener(listener),
                ..
            }) => Some(listener.config.uri.clone()),
            _ => None,
        };
        self.slots.iter().filter_map(uri).collect()
    }

    /// Runs until told to stop.
    pub fn run(mut self) {
        self.shared.enter_loop();
        let _closing = Closing(self.shared.clone());
        while !self.stop {
            // What is left of the last round's outputs does not wait for events.
            let until = std::mem::take(&mut self.outputs_left).then_some(Duration::ZERO);
            if let Err(error) = self.wait(until) {
                tracing::error!(%error, "the node's loop cannot wait for events; it ends");
                break;
            }
            self.run_commands();
            self.take_parcels();
            self.run_deadlines();
            let (queues, uses) = (self.queues(), self.budgets.uses());
            self.core.forwarder_mut().set_queues(queues);
            self.core.forwarder_mut().set_driver_memory(uses);
            self.read_ready(Self::carry_out);
            self.carry_out();
            self.flush();
            // What the end of a face has left.
            self.core.dispatch();
        }
    }

    fn run_deadlines(&mut self) {
        if self.core.deadline().is_some_and(|at| at <= self.now) {
            self.core.forwarder_mut().on_deadline(self.now);
        }
        for i in 0..self.apps.len() {
            let at = self.apps[i];
            if self.app_deadline(at).is_some_and(|due| due <= self.now) {
                self.with_app(at, |app, now, out| app.on_deadline(now, out));
            }
        }
    }

    /// Carries out all that the forwarder asks, and some of what applications answer to it, which
    /// enters the forwarder at once: two that answer each other without end are not to hold the loop.
    pub(super) fn carry_out(&mut self) {
        self.do_parcels();
        // What other workers are to know is with them before anybody hears that it is so.
        self.core.dispatch();
        let most = self.core.forwarder().pending_outputs().max(OUTPUTS_A_ROUND);
        for _ in 0..most {
            match self.core.forwarder_mut().poll_output() {
                None => return self.core.dispatch(),
                Some(Output::Send { face, packet }) => match self.core.loop_of(face) {
                    None => self.send(face, packet),
                    Some(other) => {
                        self.sent += 1;
                        self.core.post(other, Parcel::Send(face, packet));
                    }
                },
                Some(Output::TooLarge { face, data }) => match self.core.loop_of(face) {
                    None => self.too_large(face, &data),
                    Some(other) => self.core.post(other, Parcel::TooLarge(face, data)),
                },
                Some(Output::Rejected {
                    face,
                    downstream,
                    name,
                }) => self.rejected(face, downstream, &name),
                Some(Output::CreateFace(request)) => self.create_face(&request),
                Some(Output::DestroyFace { face }) => match self.core.loop_of(face) {
                    None => self.destroy_face(face),
                    Some(other) => self.core.post(other, Parcel::Destroy(face)),
                },
                Some(Output::UpdateFace(update)) => match self.core.loop_of(update.face) {
                    None => self.update_face(&update),
                    Some(other) => self.core.post(other, Parcel::Update(Box::new(update))),
                },
            }
        }
        self.core.dispatch();
        self.outputs_left = true;
    }

    pub(super) fn too_large(&mut self, id: FaceId, data: &Data) {
        let Some((_, face)) = self.face(id) else {
            return;
        };
        let max_packet = face.max_packet;
        if let Some(link) = face.link_mut() {
            link.counters.oversize_out += 1;
        }
        if self.too_large.allows(self.now) {
            tracing::warn!(
                face = id.0,
                name = %data.name(),
                bytes = data.wire().len(),
                max_packet,
                "Data is larger than the face takes and was answered by a Nack; publish it in smaller segments, or connect by a face that agrees to jumbo packets"
            );
        }
    }

    fn rejected(&mut self, face: FaceId, downstream: FaceId, name: &Name) {
        if self.rejected.allows(self.now) {
            let spec = self.core.forwarder().face(face);
            let uri = spec.map(|spec| spec.remote_uri.as_str());
            tracing::warn!(
                face = face.0,
                uri,
                downstream = downstream.0,
                %name,
                "Data from the face did not verify, says a downstream; more of this face is only counted, as `rejected` in the list of faces"
            );
        }
    }

    /// What waits to be sent on all faces, and what may.
    pub(super) fn queues(&self) -> Queues {
        Queues {
            bytes: self.budgets.send_queues.used(),
            capacity_bytes: self.budgets.send_queues.capacity(),
            refused: self.budgets.send_queues.refused(),
        }
    }

    pub(super) fn destroy_face(&mut self, id: FaceId) {
        if let Some((at, _)) = self.face(id) {
            self.remove_face(at);
        }
    }
}

/// Tells those who wait for the loop that it has ended, however it has.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
