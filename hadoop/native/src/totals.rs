//! Counters summed over all streams of a node, those that ended included.

use std::sync::{Mutex, PoisonError};

use ndn_endpoint::{ConsumerStats, ProducerStats};
use serde::Serialize;

/// Counters of producers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProducerTotals {
    /// Producers open now.
    pub open: u64,
    /// Segments published.
    pub published: u64,
    /// Bytes of their packets.
    pub published_bytes: u64,
    /// Interests received.
    pub interests: u64,
    /// Data given.
    pub answered: u64,
    /// Interests refused.
    pub nacks: u64,
    /// Segments retained now.
    pub retained_segments: u64,
    /// Bytes retained now.
    pub retained_bytes: u64,
    /// Interests waiting now.
    pub pending_interests: u64,
}

/// Counters of pulls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullTotals {
    /// Pulls open now.
    pub open: u64,
    /// Interests sent.
    pub interests: u64,
    /// Of those, sent again after a loss or Nack.
    pub retransmitted: u64,
    /// Of those, sent again because the segment is not made yet.
    pub reexpressed: u64,
    /// Segments received.
    pub received: u64,
    /// Segments taken.
    pub taken: u64,
    /// Bytes of the packets taken.
    pub taken_bytes: u64,
    /// Segments lost to a time-out.
    pub timeouts: u64,
    /// Nacks received.
    pub nacks: u64,
    /// Segments received twice.
    pub duplicates: u64,
    /// Segments that did not verify.
    pub rejected: u64,
    /// Segments received and not taken now.
    pub buffered_segments: u64,
}

impl ProducerTotals {
    /// Adds the counters, and the gauges too while the producer is `open`.
    pub fn add(&mut self, stats: &ProducerStats, open: bool) {
        self.published += stats.published;
        self.published_bytes += stats.published_bytes;
        self.interests += stats.interests;
        self.answered += stats.answered;
        self.nacks += stats.nacks;
        if open {
            self.open += 1;
            self.retained_segments += stats.retained as u64;
            self.retained_bytes += stats.retained_bytes as u64;
            self.pending_interests += stats.pending as u64;
        }
    }
}

impl PullTotals {
    /// Adds the counters, and the gauges too while the pull is `open`.
    pub fn add(&mut self, stats: &ConsumerStats, open: bool) {
        self.interests += stats.sent;
        self.retransmitted += stats.retransmitted;
        self.reexpressed += stats.reexpressed;
        self.received += stats.received;
        self.taken += stats.read;
        self.taken_bytes += stats.bytes;
        self.timeouts += stats.timeouts + stats.gaps;
        self.nacks += stats.nacks;
        self.duplicates += stats.duplicates;
        self.rejected += stats.rejected;
        if open {
            self.open += 1;
            self.buffered_segments += stats.buffered as u64;
        }
    }
}

/// What streams left behind that have ended.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<(ProducerTotals, PullTotals)>);

impl Ended {
    pub fn producer(&self, stats: &ProducerStats) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .add(stats, false);
    }

    pub fn pull(&self, stats: &ConsumerStats) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .add(stats, false);
    }

    pub fn totals(&self) -> (ProducerTotals, PullTotals) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
