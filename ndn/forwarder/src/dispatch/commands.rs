//! What the commands on routes, strategies and the content store do.

use crate::face::{Face, FaceId, FaceSlot};
use crate::forwarder::Forwarder;
use crate::mgmt::{ControlParameters, ControlResponse};
use crate::output::RouteError;
use crate::request::Request;
use crate::rib::{CHILD_INHERIT, Route, RouteKey, origin};
use crate::scope::{LOCALHOP, LOCALHOST};
use crate::shard::Task;
use crate::strategy::StrategyKind;
use crate::table::fib::NextHop;
use crate::table::name_table::MAX_COMPONENTS;
use ndn_packet::Name;

/// Most packets that one command erases.
const ERASE_LIMIT: u64 = 1 << 16;
const ADMIT: u64 = 1;
const SERVE: u64 = 2;

/// What was done, or why not.
pub(super) type CommandResult = Result<ControlParameters, Box<ControlResponse>>;

/// A refusal.
pub(super) fn refusal(code: u64, text: impl Into<String>) -> Box<ControlResponse> {
    Box::new(ControlResponse::error(code, text))
}

fn no_room() -> Box<ControlResponse> {
    refusal(503, RouteError::TooManyRoutes.to_string())
}

fn bad_request(text: &str) -> Box<ControlResponse> {
    refusal(400, text)
}

impl Forwarder {
    /// Does a command that is allowed; `None` when its answer comes later.
    pub(super) fn execute(&mut self, request: &Request) -> Option<ControlResponse> {
        let Some(parameters) = parameters(request) else {
            return Some(*bad_request("Malformed command"));
        };
        let verb = (request.module.as_str(), request.verb.as_str());
        if verb == ("faces", "create") {
            return self.create_face(request, parameters);
        }
        if verb == ("cs", "erase") {
            return self.erase(request, parameters);
        }
        let answer = match verb {
            ("faces", "update") => self.update_face(request, parameters),
            ("faces", "destroy") => self.destroy_face(parameters),
            ("fib", "add-nexthop") => self.add_next_hop(request, parameters),
            ("fib", "remove-nexthop") => self.remove_next_hop(request, parameters),
            ("rib", "register") => self.register(request, parameters),
            ("rib", "unregister") => self.unregister(request, parameters),
            ("strategy-choice", "set") => self.choose_strategy(parameters),
            ("strategy-choice", "unset") => self.unchoose_strategy(parameters),
            ("cs", "config") => self.configure_cs(&parameters),
            _ => Err(refusal(501, "Unsupported command")),
        };
        Some(answer.map_or_else(|error| *error, ControlResponse::ok))
    }

    fn add_next_hop(&mut self, request: &Request, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        check_length(name)?;
        let face = chosen_face(request, &p);
        let slot = self
            .state
            .faces
            .slot(face)
            .ok_or_else(|| refusal(410, "Face not found"))?;
        let cost = p.cost.unwrap_or(0);
        let hop = NextHop {
            face: slot,
            cost: u32::try_from(cost).unwrap_or(u32::MAX),
        };
        if !self.has_room_for_routes() {
            return Err(no_room());
        }
        let affected = self.rib.add_direct(name, hop);
        self.update_fib(affected);
        Ok(ControlParameters {
            face_id: Some(face.0),
            cost: Some(cost),
            name: p.name,
            ..Default::default()
        })
    }

    fn remove_next_hop(&mut self, request: &Request, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        let face = chosen_face(request, &p);
        if let Some(slot) = self.state.faces.slot(face) {
            let affected = self.rib.remove_direct(name, slot);
            self.update_fib(affected);
        }
        Ok(ControlParameters {
            face_id: Some(face.0),
            name: p.name,
            ..Default::default()
        })
    }

    fn register(&mut self, request: &Request, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        check_length(name)?;
        let face = Self::registered_face(request, &p)?;
        let slot = self
            .state
            .faces
            .slot(face)
            .ok_or_else(|| refusal(410, "Face not found"))?;
        let of_hosts = [LOCALHOST, LOCALHOP];
        if request.localhop && of_hosts.iter().any(|scope| name.value().starts_with(scope)) {
            return Err(refusal(
                403,
                format!("{name} is of each host's own: a neighbour can't register it"),
            ));
        }
        if request.localhop && !self.may_announce(slot, name) {
            return Err(refusal(
                403,
                format!("the rules of this forwarder do not let this neighbour register {name}"),
            ));
        }
        let expiry = p
            .expiration_ms
            .map(|ms| self.state.now.saturating_add(ms.saturating_mul(1_000_000)));
        let route = Route {
            face: slot,
            origin: p.origin.unwrap_or(origin::APP),
            by_peer: self.is_of_a_peer(request),
            cost: p.cost.unwrap_or(0),
            flags: p.flags.unwrap_or(CHILD_INHERIT),
            expiry,
        };
        self.insert_route(name, route)
            .map_err(|error| match error {
                RouteError::NoSuchFace(_) => refusal(410, "Face not found"),
                RouteError::PrefixTooLong => refusal(414, error.to_string()),
                RouteError::TooManyRoutes => refusal(503, error.to_string()),
            })?;
        Ok(ControlParameters {
            face_id: Some(face.0),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_ms: p.expiration_ms,
            name: p.name,
            ..Default::default()
        })
    }

    /// The face that a command to register a prefix, or to take one back, is about. A neighbour may do that for its own
    /// face alone.
    fn registered_face(
        request: &Request,
        p: &ControlParameters,
    ) -> Result<FaceId, Box<ControlResponse>> {
        let face = chosen_face(request, p);
        if request.localhop && face != request.face {
            return Err(refusal(
                403,
                "a neighbour may register prefixes for its own face alone; leave FaceId out",
            ));
        }
        Ok(face)
    }

    /// Whether a command comes from another host.
    pub(super) fn is_of_a_peer(&self, request: &Request) -> bool {
        let face = self.state.faces.by_id(request.face);
        request.localhop && !face.is_some_and(Face::is_local)
    }

    fn may_announce(&self, face: FaceSlot, name: &Name) -> bool {
        let face = self.state.faces.get(face);
        face.is_some_and(|face| face.announces.has(name.value()))
    }

    fn unregister(&mut self, request: &Request, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        let face = Self::registered_face(request, &p)?;
        let origin = p.origin.unwrap_or(origin::APP);
        if let Some(face) = self.state.faces.slot(face) {
            let mut key = RouteKey {
                face,
                origin,
                by_peer: true,
            };
            self.withdraw_route(name, key);
            // A peer takes back what it has registered itself, and who is on this host takes back anything.
            if !self.is_of_a_peer(request) {
                key.by_peer = false;
                self.withdraw_route(name, key);
            }
        }
        Ok(ControlParameters {
            face_id: Some(face.0),
            origin: Some(origin),
            name: p.name,
            ..Default::default()
        })
    }

    fn choose_strategy(&mut self, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        let strategy = p
            .strategy
            .as_ref()
            .ok_or_else(|| bad_request("Strategy is required"))?;
        let kind = StrategyKind::from_name(strategy.as_ref())
            .ok_or_else(|| refusal(404, "Strategy not registered"))?;
        check_length(name)?;
        if !self.set_strategy(name, kind) {
            return Err(no_room());
        }
        Ok(ControlParameters {
            strategy: Some(kind.name()),
            name: p.name,
            ..Default::default()
        })
    }

    fn unchoose_strategy(&mut self, p: ControlParameters) -> CommandResult {
        let name = required(&p.name)?;
        if name.is_empty() {
            return Err(bad_request(
                "the choice for / cannot be taken back; set another",
            ));
        }
        self.unset_strategy(name);
        Ok(ControlParameters {
            name: p.name,
            ..Default::default()
        })
    }

    fn configure_cs(&mut self, p: &ControlParameters) -> CommandResult {
        if p.has_flags_without_mask() {
            return Err(bad_request("Flags must be accompanied by Mask"));
        }
        let capacity = match p.capacity {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => self.cs_capacity,
        };
        let admit = p.flag(ADMIT).unwrap_or(self.cs.admit);
        let serve = p.flag(SERVE).unwrap_or(self.cs.serve);
        self.set_stores(capacity, admit, serve);
        let flags = self.cs_flags();
        Ok(ControlParameters {
            capacity: Some(capacity as u64),
            flags: Some(flags),
            ..Default::default()
        })
    }

    pub(super) fn cs_flags(&self) -> u64 {
        u64::from(self.cs.admit) * ADMIT + u64::from(self.cs.serve) * SERVE
    }

    /// `None` where other workers may have more of what is to be erased.
    fn erase(&mut self, request: &Request, p: ControlParameters) -> Option<ControlResponse> {
        let name = match required(&p.name) {
            Ok(name) => name,
            Err(refusal) => return Some(*refusal),
        };
        if p.count == Some(0) {
            return Some(*bad_request("Count must be positive"));
        }
        let limit = p.count.unwrap_or(u64::MAX).min(ERASE_LIMIT) as usize;
        let (erased, more) = self.erase_own(name, limit);
        let task = Task::Erase {
            prefix: name.compact(),
            left: limit - erased,
            erased,
            more,
        };
        if erased < limit && self.state.place.is_some() {
            return match self.run_errand(request, task) {
                true => None,
                false => Some(ControlResponse::error(503, "too many requests; try again")),
            };
        }
        Some(erasing_done(p, erased, more))
    }

    /// Answers a command to erase content, all workers having done their part.
    pub(crate) fn finish_erasing(&mut self, request: &Request, erased: usize, more: bool) {
        if let Some(p) = parameters(request) {
            self.respond(request, erasing_done(p, erased, more));
        }
    }
}

fn parameters(request: &Request) -> Option<ControlParameters> {
    let component = request.name.get(4)?;
    ControlParameters::decode(component.value).ok()
}

/// The answer to a command to erase content. Capacity tells a client that asked for more that it must ask again.
fn erasing_done(p: ControlParameters, erased: usize, more: bool) -> ControlResponse {
    let again = more && p.count.is_none_or(|count| count > ERASE_LIMIT);
    ControlResponse::ok(ControlParameters {
        count: Some(erased as u64),
        capacity: again.then_some(ERASE_LIMIT),
        name: p.name,
        ..Default::default()
    })
}

/// The face that a command names, or else the one it came from.
pub(super) fn chosen_face(request: &Request, p: &ControlParameters) -> FaceId {
    p.face_id.filter(|id| *id != 0).map_or(request.face, FaceId)
}

fn required(name: &Option<Name>) -> Result<&Name, Box<ControlResponse>> {
    name.as_ref().ok_or_else(|| bad_request("Name is required"))
}

fn check_length(name: &Name) -> Result<(), Box<ControlResponse>> {
    if name.len() <= MAX_COMPONENTS {
        Ok(())
    } else {
        Err(refusal(414, RouteError::PrefixTooLong.to_string()))
    }
}
