//! What management does: an application behind the internal face that takes commands and serves datasets.

mod commands;
mod datasets;
mod events;
mod faces;

use crate::face::{FaceId, INTERNAL_SLOT};
use crate::forwarder::Forwarder;
use crate::manager::FRESHNESS;
use crate::mgmt::ControlResponse;
use crate::request::Request;
use crate::state::nanos;
use crate::table::fib::NextHop;
use bytes::Bytes;
use ndn_packet::{ComponentBuf, Data, Name, NetPacket, PitToken, SigningKey};
use std::time::Duration;

impl Forwarder {
    pub(crate) fn add_management_routes(&mut self) {
        let mut prefixes = vec![Name::from_components(
            ["localhost", "nfd"].map(ComponentBuf::generic),
        )];
        if self.manager.policy.localhop_rib.is_some() {
            prefixes.push(Name::from_components(
                ["localhop", "nfd", "rib"].map(ComponentBuf::generic),
            ));
        }
        for prefix in prefixes {
            let affected = self.rib.add_direct(
                &prefix,
                NextHop {
                    face: INTERNAL_SLOT,
                    cost: 0,
                },
            );
            self.update_fib(affected);
        }
    }

    /// Answers [`Output::CreateFace`](crate::Output::CreateFace): the face that was made, after
    /// [`Forwarder::add_face`], or why there is none.
    pub fn face_created(
        &mut self,
        now: Duration,
        request_id: u64,
        result: Result<FaceId, crate::output::CreateFaceError>,
    ) {
        self.state.set_now(now);
        self.finish_creating(request_id, result);
        self.run_management();
    }

    /// Says which listeners the driver has, as FaceUris, for the dataset `faces/channels`.
    pub fn set_channels(&mut self, uris: Vec<String>) {
        self.manager.channels = uris;
    }

    /// Does what came in over the internal face.
    pub(crate) fn run_management(&mut self) {
        if self.manager.started.is_none() {
            self.manager.started = Some(self.state.now);
        }
        while let Some(packet) = self.state.internal.pop_front() {
            if let Some(request) = Request::new(packet) {
                self.manage(request);
            }
        }
    }

    fn manage(&mut self, request: Request) {
        if request.localhop && request.module != "rib" {
            return;
        }
        match (request.module.as_str(), request.verb.as_str()) {
            ("faces", "events") => self.serve_event(&request),
            ("faces", "list" | "query" | "channels")
            | ("fib" | "rib" | "strategy-choice", "list")
            | ("cs", "info")
            | ("status", "general") => {
                if !request.localhop {
                    self.serve_dataset(&request);
                }
            }
            _ => self.serve_command(&request),
        }
    }

    fn serve_command(&mut self, request: &Request) {
        if let Some(wire) = self.manager.replies.get(&request.name) {
            // Sent again because our answer was lost, or replayed: it is not done again either way.
            let wire = wire.clone();
            return self.answer(wire, request.token);
        }
        let (is_of_a_peer, now) = (self.is_of_a_peer(request), self.state.now);
        if let Err(refusal) = self.manager.authorize(request, is_of_a_peer, now) {
            return self.respond(request, ControlResponse::error(403, refusal));
        }
        if let Some(response) = self.execute(request) {
            self.respond(request, response);
        }
    }

    /// Answers a command.
    fn respond(&mut self, request: &Request, response: ControlResponse) {
        self.respond_to(&request.name, request.token, response);
    }

    fn respond_to(&mut self, name: &Name, token: Option<PitToken>, response: ControlResponse) {
        let wire = Data::builder(name)
            .freshness(FRESHNESS)
            .content(&response.encode())
            .sign(&SigningKey::DigestSha256);
        if response.code != 403 {
            self.manager.replies.insert(name, &wire);
        }
        self.answer(wire, token);
    }

    /// Sends a Data back from the internal face.
    fn answer(&mut self, wire: Bytes, token: Option<PitToken>) {
        if let Ok(data) = Data::parse(wire) {
            let mut packet = NetPacket::data(data).with_pit_token(token);
            packet.no_cache = true;
            self.process_from_management(&packet);
        }
    }

    /// Milliseconds since the Unix epoch, or since the driver's time zero when that is not known.
    fn unix_ms(&self, at: u64) -> u64 {
        let time = self
            .manager
            .unix_time(at)
            .unwrap_or(Duration::from_nanos(at));
        nanos(time) / 1_000_000
    }
}
