//! What strategies are told when they are made.

use ndn_packet::Name;

/// The part of [`Config`](crate::Config) that concerns strategies; times are nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct StrategySettings {
    pub(crate) retx_suppression_min: u64,
    pub(crate) retx_suppression_max: u64,
    pub(crate) learned_max_entries: usize,
    pub(crate) learned_max_bytes: usize,
    pub(crate) learned_flood_interval: u64,
    pub(crate) learned_groups: Vec<(Name, usize)>,
}
