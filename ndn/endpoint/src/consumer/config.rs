//! What a consumer is told at its start.

use crate::{CongestionControlFactory, CubicConfig, RtoConfig, VerifyPolicy};
use ndn_packet::Name;
use std::sync::Arc;
use std::time::Duration;

/// Segments of a stream that were had before, and were bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rejected {
    /// None.
    #[default]
    None,
    /// The first that is wanted.
    First,
    /// One of them or more, and it is not known which.
    All,
}

/// Settings of a [`Consumer`](super::Consumer). Start from [`ConsumerConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Name of the stream: version included, segment number not.
    pub prefix: Name,
    /// First segment wanted. Default 0.
    pub first: u64,
    /// Last segment wanted, where known; else FinalBlockId or [`set_last`](super::Consumer::set_last) tells it.
    pub last: Option<u64>,
    /// Makes the congestion control. Default CUBIC.
    pub congestion: Arc<dyn CongestionControlFactory>,
    /// Lifetime of each Interest. Default 4 s.
    pub interest_lifetime: Duration,
    /// Bounds of the retransmission timeout.
    pub rto: RtoConfig,
    /// Once three later answers are here, a segment counts as lost after the usual round trip, but not before it is
    /// this late; twice as late or somewhat more when it is lost again, and so on. Covers reordering, and how long forwarders suppress
    /// repeats. Default 10 ms.
    pub reorder_wait: Duration,
    /// How long nothing may come that is owed, or one segment stay away while others come, before the stream fails.
    /// Default 15 s.
    pub give_up_after: Duration,
    /// How often one segment may have a bad signature before the stream fails. Default 3.
    pub max_rejects: u32,
    /// Segments outstanding or received but not yet read: with `max_packet_bytes`, the bound of the memory held.
    /// Default 1024.
    pub max_buffered_segments: usize,
    /// A Data of more bytes than this is dropped as if its signature were bad, before it is buffered. Default: no bound
    /// but that of packets.
    pub max_packet_bytes: usize,
    /// Segments outstanding or not yet read before the first is read; each that is read lets one more be, up to
    /// `max_buffered_segments`. So what a reader that stops early has asked for in vain is no more than this and what
    /// it has read. Default: no bound of its own.
    pub first_ahead: usize,
    /// First wait after a Nack for want of a route; doubles up to 32 times that. Default 20 ms.
    pub no_route_wait: Duration,
    /// Whether segments are asked for before they are produced. Default false.
    pub live: bool,
    /// Whether one Interest goes first and the window opens when it is answered, so that a network that learns routes
    /// floods once, not a window full. Default true.
    pub probe: bool,
    /// What is checked of each Data before it is handed on. Default DigestSha256.
    pub verify: VerifyPolicy,
    /// Whether a Data of ContentType Nack ends the stream, as its producer refuses. Set false where whoever reads tells
    /// what is genuine ([`VerifyPolicy::None`]): it is handed on as any other then, to be rejected. Default true.
    pub believe_nack: bool,
    /// Whether the FinalBlockId of a Data ends the stream there. Set false where what is genuine of a Data is told by
    /// its content alone, so that anybody may have put another FinalBlockId to it ([`VerifyPolicy::None`]): then
    /// [`last`](Self::last) and [`set_last`](super::Consumer::set_last) end it, or whoever reads. Default true.
    pub believe_final: bool,
    /// Whether every Interest goes past the caches (MustBeFresh): for streams whose segments have no freshness, and
    /// whose name caches may hold other bytes under. Default false.
    pub must_be_fresh: bool,
    /// Which segments were had before and were bad: their Interests go past whoever they came from, as after
    /// [`reject`](super::Consumer::reject). For streams that begin anew. Default none.
    pub rejected: Rejected,
    /// Seed of the nonces. Give each consumer its own, or networks take their Interests for loops. Default 0.
    pub seed: u64,
}

impl ConsumerConfig {
    /// The defaults, for the stream named `prefix`.
    pub fn new(prefix: Name) -> Self {
        Self {
            prefix,
            first: 0,
            last: None,
            congestion: Arc::new(CubicConfig::default()),
            interest_lifetime: Duration::from_secs(4),
            rto: RtoConfig::default(),
            reorder_wait: Duration::from_millis(10),
            give_up_after: Duration::from_secs(15),
            max_rejects: 3,
            max_buffered_segments: 1024,
            max_packet_bytes: usize::MAX,
            first_ahead: usize::MAX,
            no_route_wait: Duration::from_millis(20),
            live: false,
            probe: true,
            verify: VerifyPolicy::default(),
            believe_nack: true,
            believe_final: true,
            must_be_fresh: false,
            rejected: Rejected::None,
            seed: 0,
        }
    }
}
