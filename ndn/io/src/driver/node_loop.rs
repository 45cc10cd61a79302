//! The loop of a node: faces around a forwarder, with applications in the process.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ndn_forwarder::{FaceId, Forwarder, Output, Queues};
use ndn_packet::{Data, Name};

use super::shared::Shared;
use super::slots::{Face, Port, PortOwner, Slot};
use super::{Driver, DriverOptions, random_u64};
use crate::config::NodeConfig;
use crate::error::StartError;
use crate::face::budgets::Budgets;
use crate::uri::FaceUri;

/// Outputs carried out at once where applications answer to them with more.
const OUTPUTS_A_ROUND: usize = 4096;

impl Driver<Forwarder> {
    /// Opens what the configuration names.
    pub fn open(mut config: NodeConfig) -> Result<(Self, Arc<Shared>), StartError> {
        if config.forwarder.seed == 0 {
            config.forwarder.seed = random_u64().map_err(StartError::Loop)?;
        }
        if config.forwarder.unix_time_at_zero.is_zero() {
            config.forwarder.unix_time_at_zero = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
        }
        let options = DriverOptions {
            budgets: Budgets::new(&config.memory),
            managed_faces: config.managed_faces,
            epoch: Instant::now(),
        };
        let core = Forwarder::new(config.forwarder);
        let mut driver = Self::new(core, options).map_err(StartError::Loop)?;
        for listener in config.listeners {
            let uri = listener.uri.clone();
            driver
                .open_listener(listener)
                .map_err(|error| StartError::Listen { uri, error })?;
        }
        let channels = driver.listening().iter().map(ToString::to_string).collect();
        driver.core.set_channels(channels);
        for (prefix, strategy) in &config.strategies {
            driver.core.set_strategy(prefix, *strategy);
        }
        for face in config.faces {
            let (uri, routes) = (face.uri.clone(), face.routes.clone());
            driver
                .open_face(face)
                .and_then(|at| driver.add_routes(at, &routes))
                .map_err(|error| StartError::Face { uri, error })?;
        }
        let shared = driver.shared.clone();
        Ok((driver, shared))
    }

    fn add_routes(&mut self, at: usize, routes: &[(ndn_packet::Name, u64)]) -> std::io::Result<()> {
        if let Some(Slot::Face(Face { id, .. })) = self.slots.get(at) {
            for (prefix, cost) in routes {
                self.core
                    .add_route(prefix, *id, *cost)
                    .map_err(std::io::Error::other)?;
            }
        }
        Ok(())
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
            self.run_deadlines();
            self.core.set_queues(self.queues());
            self.core.set_driver_memory(self.budgets.uses());
            self.read_ready(Self::carry_out);
            self.carry_out();
            self.flush();
        }
    }

    fn run_deadlines(&mut self) {
        if self.core.deadline().is_some_and(|at| at <= self.now) {
            self.core.on_deadline(self.now);
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
    fn carry_out(&mut self) {
        let most = self.core.pending_outputs().max(OUTPUTS_A_ROUND);
        for _ in 0..most {
            match self.core.poll_output() {
                None => return,
                Some(Output::Send { face, packet }) => self.send(face, packet),
                Some(Output::TooLarge { face, data }) => self.too_large(face, &data),
                Some(Output::Rejected {
                    face,
                    downstream,
                    name,
                }) => self.rejected(face, downstream, &name),
                Some(Output::CreateFace(request)) => self.create_face(&request),
                Some(Output::DestroyFace { face }) => self.destroy_face(face),
                Some(Output::UpdateFace(update)) => self.update_face(&update),
            }
        }
        self.outputs_left = true;
    }

    fn too_large(&mut self, id: FaceId, data: &Data) {
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
            let uri = self.core.face(face).map(|spec| spec.remote_uri.as_str());
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

    fn destroy_face(&mut self, id: FaceId) {
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
