//! Settings of a forwarder.

use crate::mgmt::CommandPolicy;
use crate::prefix_policy::PrefixRule;
use crate::state::nanos;
use crate::strategy::{StrategyKind, StrategySettings};
use crate::table::cs::CachePolicy;
use ndn_packet::Name;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`Forwarder`](crate::Forwarder), each with a default that suits a router of one rack.
///
/// All memory that strangers can fill has a bound here.
#[derive(Debug, Clone)]
pub struct Config {
    /// Content store: bytes of packets and of their entries. 0 turns it off. Default 256 MiB.
    pub cs_capacity_bytes: usize,
    /// Content store: packets below this size are copied, so that one of them does not keep the whole receive buffer
    /// it came in. Bytes; default 4096.
    pub cs_copy_below_bytes: usize,
    /// Content store: which packets are given up first when it is full. Default LRU.
    pub cs_policy: CachePolicy,
    /// Pending Interests in all. More are dropped and counted; of one face, those that would be more than are left to
    /// others. Default 262,144; at most 2^31.
    pub pit_max_entries: usize,
    /// Pending Interests that one face may have as a downstream. More are dropped and counted. Default 65,536.
    pub pit_max_per_face: usize,
    /// Bytes that pending Interests may take in all, with all that is kept of them: names, nonces, tokens, in- and
    /// out-records. More are dropped and counted; of one face, those that would take more than is left to others.
    /// Default 128 MiB.
    pub pit_max_bytes: usize,
    /// InterestLifetime is cut down to this. Default 120 s.
    pub max_interest_lifetime: Duration,
    /// Names of the regions this forwarder is in: an Interest whose ForwardingHint names one is forwarded by its own
    /// name. Default none.
    pub producer_regions: Vec<Name>,
    /// How long the nonces of finished Interests are remembered to detect loops. Default 6 s, as NFD has it.
    pub dead_nonce_lifetime: Duration,
    /// Nonces remembered; beyond this the oldest are forgotten early. Default 262,144.
    pub dead_nonce_max_entries: usize,
    /// Strategy of all prefixes for which none was chosen. Default best-route.
    pub default_strategy: StrategyKind,
    /// First interval in which a retransmitted Interest is not forwarded again; doubles each time. Default 10 ms.
    pub retx_suppression_min: Duration,
    /// Greatest such interval. Default 250 ms.
    pub retx_suppression_max: Duration,
    /// Self-learning: prefixes for which the answering face is remembered, the least recently used being forgotten.
    /// Default 65,536.
    pub learned_max_entries: usize,
    /// Self-learning: bytes of what is remembered, names included. Default 32 MiB.
    pub learned_max_bytes: usize,
    /// Self-learning: how long after a flood no other Interest under the same prefix is flooded, when there is still a
    /// face to send it to. Default 50 ms.
    pub learned_flood_interval: Duration,
    /// Self-learning: names below such a prefix that share so many first components are of one object, which whoever
    /// answers for a part of it has whole, and whoever has been given a part of it may have, too. Default none: what is
    /// learned of a name holds for those that differ in the last component.
    pub learned_groups: Vec<(Name, usize)>,
    /// Routes in the RIB that commands may make in all. Default 4,000,000.
    pub rib_max_routes: usize,
    /// Bytes that the RIB, the FIB and strategy choices may take before commands that add to them are refused. Default
    /// 1 GiB.
    pub routes_max_bytes: usize,
    /// Bytes of packets that may wait for the driver to take them. More are dropped and counted. Default 64 MiB.
    pub outputs_max_bytes: usize,
    /// Secret of the hash tables and of the random numbers. The driver takes it from the system's random source; a
    /// simulation gives a fixed one. Default 0.
    pub seed: u64,
    /// Unix time at the driver's time zero, for status, dataset versions and the age of commands. Default 0: unknown,
    /// commands are then accepted whatever their age.
    pub unix_time_at_zero: Duration,
    /// Who may manage the forwarder.
    pub commands: CommandPolicy,
    /// What faces to other hosts may announce: register, and be asked for by self-learning where no route leads. By the
    /// names that they have proven; nothing, for those that no rule is about. Default none at all: anything.
    pub prefix_rules: Option<Arc<[PrefixRule]>>,
    /// Version text in the general status. Default: `trunkline` and the version of this crate.
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cs_capacity_bytes: 256 << 20,
            cs_copy_below_bytes: 4096,
            cs_policy: CachePolicy::default(),
            pit_max_entries: 1 << 18,
            pit_max_per_face: 1 << 16,
            pit_max_bytes: 128 << 20,
            max_interest_lifetime: Duration::from_secs(120),
            producer_regions: Vec::new(),
            dead_nonce_lifetime: Duration::from_secs(6),
            dead_nonce_max_entries: 1 << 18,
            default_strategy: StrategyKind::BestRoute,
            retx_suppression_min: Duration::from_millis(10),
            retx_suppression_max: Duration::from_millis(250),
            learned_max_entries: 1 << 16,
            learned_max_bytes: 32 << 20,
            learned_flood_interval: Duration::from_millis(50),
            learned_groups: Vec::new(),
            rib_max_routes: 4_000_000,
            routes_max_bytes: 1 << 30,
            outputs_max_bytes: 64 << 20,
            seed: 0,
            unix_time_at_zero: Duration::ZERO,
            commands: CommandPolicy::default(),
            prefix_rules: None,
            version: concat!("trunkline ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Config {
    /// What strategies are told of it.
    pub(crate) fn strategy_settings(&self) -> StrategySettings {
        StrategySettings {
            retx_suppression_min: nanos(self.retx_suppression_min),
            retx_suppression_max: nanos(self.retx_suppression_max),
            learned_max_entries: self.learned_max_entries,
            learned_max_bytes: self.learned_max_bytes,
            learned_flood_interval: nanos(self.learned_flood_interval),
            learned_groups: self.learned_groups.clone(),
        }
    }
}
