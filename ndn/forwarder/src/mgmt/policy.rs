//! Whose commands are obeyed.

use ndn_packet::Verifier;
use std::time::Duration;

/// Which signatures on a command count.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Any: whoever can reach the forwarder by this way may command it. A DigestSha256 must be right; the keys of
    /// other signatures are not known and not asked for.
    Any,
    /// Those that one of these verifies.
    Keys(Vec<Verifier>),
}

/// Whose commands are obeyed.
#[derive(Debug, Clone)]
pub struct CommandPolicy {
    /// Under `/localhost/nfd`, from applications on this host. Default any: the permissions of the socket say who may.
    pub local: Trust,
    /// Under `/localhop/nfd/rib`, from neighbours: registration of prefixes alone. Default nobody.
    pub localhop_rib: Option<Trust>,
    /// How far the time in a signature may be from ours, when both are known. Default 120 s, as NFD has it.
    pub max_age: Duration,
}

impl Default for CommandPolicy {
    fn default() -> Self {
        CommandPolicy {
            local: Trust::Any,
            localhop_rib: None,
            max_age: Duration::from_secs(120),
        }
    }
}
