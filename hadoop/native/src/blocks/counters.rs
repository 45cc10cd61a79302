//! What a block source counts.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Counters of a source since it opened, and gauges of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockSourceStats {
    /// Interests received.
    pub interests: u64,
    /// Segments served.
    pub segments: u64,
    /// Data bytes in them, headers and checksums not counted.
    pub bytes: u64,
    /// Metadata packets served.
    pub metadata: u64,
    /// Content keys given to readers who may read.
    pub content_keys: u64,
    /// Requests for a content key whose sender has not the token's password.
    pub unproven: u64,
    /// Interests refused.
    pub nacks: u64,
    /// Questions to Java.
    pub asked: u64,
    /// Reads of block files that failed.
    pub read_errors: u64,
    /// Replicas open now.
    pub open_replicas: usize,
}

impl BlockSourceStats {
    /// Sums with another source of the same node.
    pub fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.metadata += other.metadata;
        self.content_keys += other.content_keys;
        self.unproven += other.unproven;
        self.nacks += other.nacks;
        self.asked += other.asked;
        self.read_errors += other.read_errors;
        self.open_replicas += other.open_replicas;
    }
}

/// The live counters behind [`BlockSourceStats`].
#[derive(Default)]
pub(super) struct Counters {
    pub interests: AtomicU64,
    pub segments: AtomicU64,
    pub bytes: AtomicU64,
    pub metadata: AtomicU64,
    pub content_keys: AtomicU64,
    pub unproven: AtomicU64,
    pub nacks: AtomicU64,
    pub asked: AtomicU64,
    pub read_errors: AtomicU64,
}

impl Counters {
    /// The counters as they are now.
    pub fn stats(&self, open_replicas: usize) -> BlockSourceStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BlockSourceStats {
            interests: read(&self.interests),
            segments: read(&self.segments),
            bytes: read(&self.bytes),
            metadata: read(&self.metadata),
            content_keys: read(&self.content_keys),
            unproven: read(&self.unproven),
            nacks: read(&self.nacks),
            asked: read(&self.asked),
            read_errors: read(&self.read_errors),
            open_replicas,
        }
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
