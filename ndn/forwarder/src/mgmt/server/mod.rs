//! The forwarder's side of the management protocol: an application behind the internal face.

mod authorize;
mod commands;
mod datasets;
mod events;
mod faces;

use super::parameters::ControlResponse;
use super::policy::CommandPolicy;
use crate::config::Config;
use crate::face::{FaceId, INTERNAL_SLOT};
use crate::forwarder::Forwarder;
use crate::memory::MemoryUse;
use crate::state::nanos;
use crate::table::fib::NextHop;
use bytes::Bytes;
use ndn_packet::{
    Component, ComponentBuf, Data, Interest, Name, NetKind, NetPacket, PitToken, SigningKey,
};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Freshness of all that management answers.
const FRESHNESS: Duration = Duration::from_secs(1);
/// Answers to commands that are kept, so that a command that is sent again is not done again.
const MAX_REPLIES: usize = 1024;
/// Bytes of such answers and the commands' names.
const MAX_REPLY_BYTES: usize = 8 << 20;
/// Faces that are being made at once.
const MAX_CREATING: usize = 256;

/// State of management.
#[derive(Debug)]
pub(crate) struct Manager {
    policy: CommandPolicy,
    unix_time_at_zero: Duration,
    /// When the forwarder first heard the time, nanoseconds.
    started: Option<u64>,
    replies: HashMap<Name, Bytes>,
    reply_order: VecDeque<Name>,
    reply_bytes: usize,
    datasets: datasets::Store,
    events: events::Events,
    creating: HashMap<u64, faces::Creating>,
    next_request: u64,
    channels: Vec<String>,
}

impl Manager {
    pub(crate) fn new(config: &Config) -> Self {
        Manager {
            policy: config.commands.clone(),
            unix_time_at_zero: config.unix_time_at_zero,
            started: None,
            replies: HashMap::new(),
            reply_order: VecDeque::new(),
            reply_bytes: 0,
            datasets: datasets::Store::default(),
            events: events::Events::default(),
            creating: HashMap::new(),
            next_request: 0,
            channels: Vec::new(),
        }
    }

    /// Unix time at a moment, if it is known.
    fn unix_time(&self, now: u64) -> Option<Duration> {
        (!self.unix_time_at_zero.is_zero())
            .then(|| self.unix_time_at_zero + Duration::from_nanos(now))
    }

    fn keep_reply(&mut self, name: &Name, wire: &Bytes) {
        let name = name.compact();
        self.reply_bytes += reply_bytes(&name, wire);
        self.reply_order.push_back(name.clone());
        if let Some(old) = self.replies.insert(name.clone(), wire.clone()) {
            self.reply_bytes -= reply_bytes(&name, &old);
        }
        while (self.reply_order.len() > MAX_REPLIES || self.reply_bytes > MAX_REPLY_BYTES)
            && let Some(oldest) = self.reply_order.pop_front()
        {
            if let Some(old) = self.replies.remove(&oldest) {
                self.reply_bytes -= reply_bytes(&oldest, &old);
            }
        }
    }

    /// Bytes of what is kept for those who ask again.
    pub(crate) fn memory(&self) -> MemoryUse {
        MemoryUse {
            bytes: self.reply_bytes + self.datasets.memory() + self.events.memory(),
            capacity_bytes: MAX_REPLY_BYTES + datasets::MAX_BYTES + events::MAX_BYTES,
        }
    }
}

fn reply_bytes(name: &Name, wire: &Bytes) -> usize {
    2 * (name.value().len() + 2 * size_of::<Name>()) + wire.len()
}

/// A request that management got.
pub(super) struct Request {
    pub(super) interest: Interest,
    pub(super) name: Name,
    /// Our own, to be brought back by the answer.
    pub(super) token: Option<PitToken>,
    /// Where it came from.
    pub(super) face: FaceId,
    /// It is for a neighbour's forwarder, not for that of the same host.
    pub(super) localhop: bool,
    pub(super) module: String,
    pub(super) verb: String,
}

impl Request {
    fn new(packet: NetPacket) -> Option<Self> {
        let NetKind::Interest(interest) = packet.packet else {
            return None;
        };
        let name = interest.name_owned();
        let text = |n| {
            Some(
                std::str::from_utf8(name.get(n)?.as_generic()?)
                    .ok()?
                    .to_owned(),
            )
        };
        let (module, verb) = (text(2)?, text(3)?);
        let localhop = name.get(0) == Some(Component::generic(b"localhop"));
        let face = FaceId(packet.incoming_face?);
        Some(Request {
            interest,
            name,
            token: packet.pit_token,
            face,
            localhop,
            module,
            verb,
        })
    }
}

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
        if let Err(refusal) = self.manager.authorize(request, self.state.now) {
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
            self.manager.keep_reply(name, &wire);
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
