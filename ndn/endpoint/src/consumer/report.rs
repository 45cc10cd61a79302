//! What a consumer tells about itself: outcome, state, reason of failure, counters.

use crate::Distrust;
use ndn_packet::Name;
use std::time::Duration;

/// What became of a Data given to [`Consumer::on_data`](super::Consumer::on_data).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It fills a gap; [`read`](super::Consumer::read) may have something.
    Accepted,
    /// This segment was here already.
    Duplicate,
    /// Not a segment this consumer waits for.
    Unsolicited,
    /// Longer than [`max_packet_bytes`](super::ConsumerConfig::max_packet_bytes): asked for again.
    Refused,
}

/// Where a consumer stands; the diagram is at the [crate's head](crate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// One Interest at a time, until something answers.
    Probing,
    /// The window is open.
    Flowing,
    /// Every segment has been read.
    Done,
    /// It gave up.
    Failed(FailReason),
}

/// Why a consumer gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailReason {
    /// Nothing that was owed came for [`give_up_after`](super::ConsumerConfig::give_up_after).
    #[error(
        "{prefix}: segment {segment} and nothing else came for {waited:?}; is its producer running and reachable?"
    )]
    Stalled {
        /// The stream.
        prefix: Name,
        /// First segment missing.
        segment: u64,
        /// How long nothing came.
        waited: Duration,
    },
    /// The network refused Interests for [`give_up_after`](super::ConsumerConfig::give_up_after).
    #[error(
        "{prefix}: no route to segment {segment} for {waited:?}; is the prefix registered and the segment still kept?"
    )]
    NoRoute {
        /// The stream.
        prefix: Name,
        /// First segment missing.
        segment: u64,
        /// How long there was no route.
        waited: Duration,
    },
    /// One segment stayed away for [`give_up_after`](super::ConsumerConfig::give_up_after) while others came.
    #[error(
        "{prefix}: segment {segment} did not come in {waited:?}, asked for {tries} times; does its producer still keep it?"
    )]
    Lost {
        /// The stream.
        prefix: Name,
        /// The segment.
        segment: u64,
        /// How long it stayed away.
        waited: Duration,
        /// Interests sent for it.
        tries: u32,
    },
    /// One segment was rejected more than [`max_rejects`](super::ConsumerConfig::max_rejects) times.
    #[error(
        "{prefix}: segment {segment} was rejected {times} times: {why}; {}", .why.way_out()
    )]
    Rejected {
        /// The stream.
        prefix: Name,
        /// The segment.
        segment: u64,
        /// How often it was rejected.
        times: u32,
        /// Why, the last time.
        why: Distrust,
    },
    /// The producer says, signed, that there is no such segment (ContentType Nack).
    #[error("{prefix}: its producer has no segment {segment}")]
    Refused {
        /// The stream.
        prefix: Name,
        /// The segment.
        segment: u64,
    },
}

/// Counters since the start, and gauges of now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsumerStats {
    /// Interests sent, all told.
    pub sent: u64,
    /// Of those, sent again after a loss, a Nack or a rejection.
    pub retransmitted: u64,
    /// Of those, sent again at the end of their lifetime for segments not known to exist yet.
    pub reexpressed: u64,
    /// Segments received, each counted once.
    pub received: u64,
    /// Segments handed on by `read`.
    pub read: u64,
    /// Bytes of the Data packets handed on by `read`, headers included.
    pub bytes: u64,
    /// Segments declared lost when the retransmission timeout ran out.
    pub timeouts: u64,
    /// How often a timeout was taken back, because what it had given up was only late.
    pub spurious_timeouts: u64,
    /// Segments declared lost because later ones had come.
    pub gaps: u64,
    /// Nacks received.
    pub nacks: u64,
    /// Data that was here already or that nobody asked for.
    pub duplicates: u64,
    /// Congestion marks received.
    pub marks: u64,
    /// How often the window was cut: by loss, mark or Nack, or by a timeout.
    pub decreases: u64,
    /// Data whose signature did not hold.
    pub rejected: u64,
    /// Smoothed round trip, once measured.
    pub srtt: Option<Duration>,
    /// Retransmission timeout now.
    pub rto: Duration,
    /// Window in segments now.
    pub window: usize,
    /// Interests outstanding now.
    pub outstanding: usize,
    /// Of those, the ones for segments not known to exist yet.
    pub early: usize,
    /// Segments received and not yet read now.
    pub buffered: usize,
}
