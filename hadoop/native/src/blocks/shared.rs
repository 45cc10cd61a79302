//! What is known of blocks and asked of Java: shared by the loop, Java's threads and the workers.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ndn_io::{PacketBuffer, PacketBuffers};
use ndn_packet::Name;

use super::counters::Counters;
use super::known::Known;
use super::request::BlockKey;
use super::waiting::Waiting;
use super::workers::Workers;
use crate::outbox::Outbox;
use crate::segment::PACKET_OVERHEAD;
use crate::verify::Verify;

const SLOTS: usize = 1024;

/// How often blocks were invalidated so far: what was asked before, and is answered after, is not
/// remembered. A few blocks share a count, and nobody can tell which.
pub(super) struct Invalidated {
    hasher: RandomState,
    counts: Box<[u64; SLOTS]>,
}

impl Invalidated {
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            counts: Box::new([0; SLOTS]),
        }
    }

    fn slot(&self, block: &BlockKey) -> usize {
        (self.hasher.hash_one(block) % SLOTS as u64) as usize
    }

    pub fn count(&self, block: &BlockKey) -> u64 {
        self.counts[self.slot(block)]
    }

    pub fn add(&mut self, block: &BlockKey) {
        self.counts[self.slot(block)] += 1;
    }
}

/// What Java has answered, and is asked.
pub(super) struct Inner {
    pub known: Known,
    pub waiting: Waiting,
    pub invalidated: Invalidated,
    pub closed: bool,
}

/// What the loop, Java's threads and the workers share.
pub(super) struct Shared {
    pub prefix: Name,
    /// Whether replicas are served sealed, to whoever has a block token, and not
    /// otherwise.
    pub guarded: bool,
    pub segment_bytes: u32,
    pub verify: Verify,
    pub inner: Mutex<Inner>,
    pub asked: Condvar,
    pub outbox: Outbox,
    pub workers: Workers,
    /// Where packets are made that the router may be lent.
    pub buffers: Option<PacketBuffers>,
    pub counters: Counters,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a packet with so many bytes of content.
    pub fn buffer(&self, content: usize) -> Option<PacketBuffer> {
        self.buffers.as_ref()?.take(content + PACKET_OVERHEAD)
    }

    /// The files of a block are not what they were said to be.
    pub fn forget(&self, key: &BlockKey) {
        self.lock().known.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_invalidated_leaves_most_others_alone() {
        let block = |block| BlockKey {
            pool: "BP-1".into(),
            block,
        };
        let mut invalidated = Invalidated::new();
        for _ in 0..10_000 {
            invalidated.add(&block(0));
        }
        assert_eq!(invalidated.count(&block(0)), 10_000);
        let others = (1..1000).filter(|n| invalidated.count(&block(*n)) > 0);
        assert!(others.count() < 20);
    }
}
